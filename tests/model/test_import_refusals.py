"""Wrong inputs: each is refused in one sentence that names what is wrong."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, OneClassSVM

from ifonly import Explainer, Network, Schema, import_model, load_model
from ifonly.errors import FileError, IfonlyError, ModelError, UnsupportedModel
from ifonly.model.importers import load_pickle
from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, to_frame

PLAIN = Schema((Real("x", 0, 4), Integer("n", 0, 9), Binary("b")))
MIXED = Schema((Real("x", 0, 4), Categorical("c", ("u", "v", "w")), Ordinal("o", ("lo", None, "hi")), Binary("b")))


def rows(schema: Schema) -> tuple[Any, np.ndarray, np.ndarray]:
    """A DataFrame, encoded columns, and labels."""
    points = schema.sample(60, np.random.default_rng(0))
    return to_frame(schema, points), schema.encode(points), (points[:, 0] > 2).astype(int)


def fit(model: Any, schema: Schema = PLAIN, *, encoded: bool = True, labels: Any = None) -> Any:
    frame, array, known = rows(schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(array if encoded else frame, known if labels is None else labels)


def raw(*transformers: Any, schema: Schema = MIXED) -> Any:
    return fit(make_pipeline(*transformers, LogisticRegression()), schema, encoded=False)


def mlp(**options: Any) -> MLPClassifier:
    return MLPClassifier(hidden_layer_sizes=(4,), max_iter=5, random_state=0, **options)


def damaged() -> Any:
    model = fit(mlp())
    model.coefs_[1][2, 0] = np.nan
    return model


def scrambled() -> Any:
    """Its own predictions do not follow from its weights."""
    model = fit(LogisticRegression())

    class Contrary(LogisticRegression):
        def predict(self, X: Any) -> Any:  # noqa: N803 scikit-learn's own name
            return 1 - super().predict(X)

    model.__class__ = Contrary
    return model


def moody() -> Any:
    class Moody(LogisticRegression):
        def decision_function(self, X: Any) -> Any:  # noqa: N803 scikit-learn's own name
            return super().decision_function(X) + 0.01

    model = fit(LogisticRegression())
    model.__class__ = Moody
    return model


def one_hot(*columns: str, **options: Any) -> ColumnTransformer:
    return ColumnTransformer([("encode", OneHotEncoder(**options), list(columns))])


def odd_activation() -> Any:
    """A perceptron that somebody has patched."""
    model = fit(mlp())
    model.activation = "cube"
    return model


def left_missing() -> Any:
    """An encoder that leaves a missing value missing, which nobody met in training."""
    frame, _, labels = rows(Schema((MIXED["x"], MIXED["c"], Ordinal("o", ("lo", "hi")), MIXED["b"])))
    model = make_pipeline(
        ColumnTransformer([("e", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), ["o"])]),
        LogisticRegression(),
    )
    return model.fit(frame, labels)


SKLEARN: dict[str, tuple[Any, Schema, type[IfonlyError], str]] = {
    "activation": (odd_activation, PLAIN, UnsupportedModel, "activation 'cube' of the MLPClassifier is not supported"),
    "neighbours": (
        lambda: fit(KNeighborsClassifier(n_neighbors=2)), PLAIN, UnsupportedModel, "estimator KNeighborsCl",
    ),
    "poisson": (lambda: fit(PoissonRegressor()), PLAIN, UnsupportedModel, "estimator PoissonRegressor"),
    "clusters": (lambda: fit(KMeans(2, n_init=1)), PLAIN, UnsupportedModel, "estimator KMeans"),
    "unfitted": (lambda: MLPClassifier(), PLAIN, ModelError, "The MLPClassifier is not fitted; call fit"),
    "unfitted pipeline": (
        lambda: make_pipeline(StandardScaler(), LogisticRegression()), PLAIN, ModelError,
        "The LogisticRegression is not fitted",
    ),
    "unfitted search": (
        lambda: GridSearchCV(LogisticRegression(), {"C": [1.0]}), PLAIN, ModelError, "The GridSearchCV is not fitted",
    ),
    "class": (lambda: LogisticRegression, PLAIN, ModelError, "LogisticRegression is a class; pass a fitted object"),
    "multilabel": (
        lambda: fit(mlp(), labels=np.random.default_rng(0).integers(0, 2, (60, 3))), PLAIN, UnsupportedModel,
        r"gives 3 labels at once \(multilabel\)",
    ),
    "NaN weights": (damaged, PLAIN, ModelError, r"'MLPClassifier.coefs_\[1\]' has NaN or infinite weights"),
    "column count": (
        lambda: fit(LogisticRegression()), MIXED, ModelError, r"takes 3 columns, but the schema encodes to 8: 'x'",
    ),
    "column names": (
        lambda: fit(LogisticRegression(), encoded=False), MIXED, ModelError,
        "was fitted with a column 'n', but the schema encodes to 8",
    ),
    "other names": (
        lambda: fit(make_pipeline(StandardScaler(), LogisticRegression()), encoded=False),
        Schema((Real("y", 0, 1), Real("z", 0, 1))), ModelError, "the columns 'x', 'n', 'b', none of which is a feature",
    ),
    "unknown column": (
        lambda: raw(StandardScaler(), schema=PLAIN), Schema(PLAIN.features[:2]), ModelError,
        "'standardscaler' reads the column 'b', which is not a feature of the schema",
    ),
    "kernel": (lambda: fit(SVC(kernel="poly")), PLAIN, UnsupportedModel, "kernel 'poly' of the SVC"),
    "kernel of one class": (
        lambda: fit(OneClassSVM(kernel="sigmoid")), PLAIN, UnsupportedModel, "kernel 'sigmoid' of the OneClassSVM",
    ),
    "kernel of a regression": (lambda: fit(SVR()), PLAIN, UnsupportedModel, "kernel 'rbf' of the SVR"),
    "votes of curves": (
        lambda: fit(SVC(), labels=np.arange(60) % 3), PLAIN, UnsupportedModel, "SVC decides among 3 classes by votes",
    ),
    "density": (lambda: fit(GaussianMixture(2)), PLAIN, UnsupportedModel, "decides nothing without a threshold"),
    "unfitted classes": (lambda: GaussianNB(), PLAIN, ModelError, "GaussianNB is not fitted"),
    "unfitted kernel": (lambda: SVC(), PLAIN, ModelError, "SVC is not fitted"),
    "votes": (
        lambda: fit(SVC(kernel="linear"), labels=np.arange(60) % 3), PLAIN, UnsupportedModel,
        "SVC decides among 3 classes by votes",
    ),
    "polynomials": (
        lambda: fit(make_pipeline(PolynomialFeatures(), LogisticRegression())), PLAIN, UnsupportedModel,
        r"'polynomialfeatures' \(PolynomialFeatures\) multiplies feature 'x'; .* after the OneHotEncoder",
    ),
    "quantiles": (
        lambda: fit(make_pipeline(QuantileTransformer(n_quantiles=5, output_distribution="normal"), LogisticRegression())),
        PLAIN, UnsupportedModel, "curved by QuantileTransformer, .*; declare it as Integer with a step",
    ),
    "function": (
        lambda: fit(make_pipeline(FunctionTransformer(np.nan_to_num), LogisticRegression())), PLAIN, UnsupportedModel,
        "function 'nan_to_num' in the FunctionTransformer 'functiontransformer' may be anything",
    ),
    "clip": (
        lambda: fit(make_pipeline(MinMaxScaler(clip=True), LogisticRegression())),
        Schema((Real("x", 0, 40), *PLAIN.features[1:])), ModelError,
        r"'minmaxscaler' clips feature 'x' to \[0, 1\], but rows of the schema reach",
    ),
    "text": (
        lambda: fit(make_pipeline(StandardScaler(), LogisticRegression()), encoded=False),
        Schema((*PLAIN.features[:2], Binary("b", ("no", "yes")))), ModelError,
        "'standardscaler' needs numbers, but feature 'b' has the option 'no'",
    ),
    "number as category": (
        lambda: raw(one_hot("n"), schema=PLAIN), PLAIN, ModelError,
        r"\(OneHotEncoder\) encodes feature 'n' as categories, but the schema calls it a number",
    ),
    "unknown option": (
        lambda: raw(one_hot("c", "b")),
        Schema((MIXED["x"], Categorical("c", ("u", "v", "z")), *MIXED.features[2:])), ModelError,
        r"'columntransformer.encode' \(OneHotEncoder\) does not know the option 'z' of feature 'c'",
    ),
    "missing": (
        left_missing, MIXED, ModelError, "feature 'o' reaches 'LogisticRegression' without a value for its option None",
    ),
    "contrary": (scrambled, PLAIN, ModelError, "predicts 0 where its own scores .* say 1|predicts 1 where .* say 0"),
    "moody": (moody, PLAIN, ModelError, r"The imported model and the original disagree by 0\.01"),
    "transformer": (
        lambda: fit(make_pipeline(StandardScaler(), MinMaxScaler())), PLAIN, ModelError, "does not end in an estimator",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "schema", "error", "message"), SKLEARN.values(), ids=SKLEARN)
def test_sklearn(make: Any, schema: Schema, error: type[IfonlyError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        import_model(make(), schema)
    assert "\n" not in str(caught.value) and str(caught.value).rstrip().endswith((".", "?"))


def test_an_output_that_is_no_score() -> None:
    model = fit(MLPRegressor(hidden_layer_sizes=(3,), max_iter=3))
    model.out_activation_ = "exp"  # as loss="poisson" makes it, in versions that have it
    with pytest.raises(UnsupportedModel, match="output activation 'exp' of the MLPRegressor is not piecewise linear"):
        import_model(model, PLAIN)


def test_classes_that_do_not_fit() -> None:
    model = fit(LogisticRegression())
    with pytest.raises(ModelError, match=r"decides between 2 classes, but 3 class names were given: \['a', 'b', 'c'\]"):
        import_model(model, PLAIN, classes=("a", "b", "c"))
    with pytest.raises(ModelError, match="class 'a' is named twice"):
        import_model(model, PLAIN, classes=("a", "a"))
    with pytest.raises(ModelError, match="class names must be a list of names; got 'ab'"):
        import_model(model, PLAIN, classes="ab")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="LogisticRegression is a classifier, not a regression"):
        import_model(model, PLAIN, regression=True)
    with pytest.raises(ModelError, match="LinearRegression is a regression; it has no classes"):
        import_model(fit(LinearRegression()), PLAIN, classes=("a", "b"))
    with pytest.raises(ModelError, match="A regression has no classes"):
        import_model(Network.of([(np.ones((1, 3)), [0.0])]), PLAIN, classes=("a", "b"), regression=True)


def test_scores_that_overflow() -> None:
    network = Network.of([(np.full((1, 3), 1e300), [0.0]), (np.full((1, 1), 1e300), [0.0])])
    with np.errstate(all="ignore"), pytest.raises(ModelError, match="gives NaN or infinite scores .* narrow"):
        import_model(network, PLAIN)


def test_things_that_are_no_models() -> None:
    for thing, name in (("text", None), (3, "builtins.int"), ([1, 2], "builtins.list"), (pd.DataFrame(), "DataFrame")):
        if name is None:
            with pytest.raises(FileError, match=r"ends in .npz, .json, .csv .*; 'text' does not"):
                import_model(thing, PLAIN)
        else:
            with pytest.raises(UnsupportedModel, match=f"A model of type .*{name} cannot be imported"):
                import_model(thing, PLAIN)


def test_an_explainer_refuses_in_the_same_words() -> None:
    with pytest.raises(UnsupportedModel, match="activation 'cube'"):
        Explainer(odd_activation(), schema=PLAIN)


# ---------------------------------------------------------------------- pickles


class Trap:
    """Says so when it is unpickled."""

    sprung = False

    def __reduce__(self) -> Any:
        return _spring, ()


def _spring() -> None:
    Trap.sprung = True


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib", ".pt", ".pth", ".PKL"])
def test_a_pickle_is_only_loaded_by_name(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{ending}"
    path.write_bytes(pickle.dumps(Trap()))
    for load in (load_model, import_model):
        with pytest.raises(FileError, match="loading such a file runs code in it.*load_pickle"):
            load(path, PLAIN)
    assert not Trap.sprung


def test_a_pickle_by_name(tmp_path: Path) -> None:
    import joblib

    model = fit(LogisticRegression())
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    joblib.dump(model, tmp_path / "model.joblib")
    expected = import_model(model, PLAIN)
    for name in ("model.pkl", "model.joblib"):
        assert load_pickle(tmp_path / name, PLAIN).network == expected.network


def test_pickles_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(fit(LogisticRegression()))[:50])
    with pytest.raises(FileError, match="cannot be unpickled, or is damaged"):
        load_pickle(path, PLAIN)
    path.write_bytes(b"cscript\nNet\n.".replace(b"script", b"ifonly.errors"))  # a class that is not there
    with pytest.raises(FileError, match="needs a class that cannot be found here .*export it to ONNX"):
        load_pickle(path, PLAIN)
    path.write_bytes(pickle.dumps({"weight": [1.0]}))
    with pytest.raises(ModelError, match="'model.pkl' holds a dict, not a model"):
        load_pickle(path, PLAIN)
    with pytest.raises(FileError, match="none.pkl': no such file"):
        load_pickle(tmp_path / "none.pkl", PLAIN)
    path.rename(tmp_path / "model.npz")
    with pytest.raises(FileError, match=r"ends in .pkl, .pickle, .joblib, .pt or .pth; 'model.npz' does not"):
        load_pickle(tmp_path / "model.npz", PLAIN)
    with pytest.raises(FileError, match="not a network file of ifonly, or is damaged"):
        load_model(tmp_path / "model.npz", PLAIN)


# ---------------------------------------------------------------------- what is imported when

FRAMEWORKS = ("sklearn", "torch", "onnx", "pandas", "scipy", "joblib")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_framework_is_imported_until_its_model_is_there(tmp_path: Path) -> None:
    loaded = f"print([m for m in {FRAMEWORKS!r} if m in sys.modules])"
    assert run(f"import sys, ifonly, ifonly.model.importers; {loaded}") == "[]"
    code = f"""
import sys, ifonly
from ifonly import Network, Real, Schema, import_model, load_model
from ifonly.model import save_network
schema = Schema([Real("x", 0, 1)])
save_network(Network.of([([[1.0]], [-0.5])]), {str(tmp_path / "n.npz")!r})
load_model({str(tmp_path / "n.npz")!r}, schema)
try:
    import_model(object(), schema)
except ifonly.IfonlyError:
    {loaded}
"""
    assert run(code) == "[]"


def test_onnx_is_named_when_it_is_missing(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["onnx"] = None
from ifonly import Real, Schema, load_model
try:
    load_model({str(tmp_path / "m.onnx")!r}, Schema([Real("x", 0, 1)]))
except ImportError as error:
    print(error)
"""
    assert run(code) == (
        "Reading an ONNX file needs the package 'onnx', which is not installed; "
        "install it with: pip install 'ifonly[onnx]'"
    )
