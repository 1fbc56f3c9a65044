"""scikit-learn models become networks that give the same scores, and decide as `predict` does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from ifonly import Explainer, Model, import_model
from ifonly.methods import Enumerate
from ifonly.model.importers.probabilities import settled
from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, Schema, to_frame

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
Agree = Callable[[Model], None]


def fitted(model: Any, table: Any, labels: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few iterations are enough here
        return model.fit(table, labels)


def mlp(*hidden: int, activation: str = "relu") -> MLPClassifier:
    return MLPClassifier(hidden_layer_sizes=hidden, activation=activation, max_iter=20, random_state=0)


CLASSIFIERS = {
    "mlp": lambda: mlp(9, 6),
    "mlp, deep": lambda: mlp(8, 7, 6, 5),
    "mlp, no hidden layer": lambda: mlp(),
    "mlp, identity": lambda: mlp(6, 5, activation="identity"),
    "logistic": lambda: LogisticRegression(max_iter=20),
    "logistic, no intercept": lambda: LogisticRegression(max_iter=20, fit_intercept=False),
    "linear svc": LinearSVC,
    "sgd": lambda: SGDClassifier(max_iter=20, random_state=0),
    "sgd, log loss": lambda: SGDClassifier(loss="log_loss", max_iter=20, random_state=0),
    "perceptron": lambda: Perceptron(max_iter=20, random_state=0),
    "ridge classifier": RidgeClassifier,
    "discriminant": LinearDiscriminantAnalysis,
}
REGRESSIONS = {
    "mlp": lambda: MLPRegressor(hidden_layer_sizes=(8, 5), max_iter=20, random_state=0),
    "linear": LinearRegression,
    "ridge": Ridge,
    "elastic net": lambda: ElasticNet(alpha=0.1),
    "sgd": lambda: SGDRegressor(alpha=100.0, eta0=1e-6, max_iter=5, random_state=0),
    "linear svr": lambda: LinearSVR(max_iter=50, random_state=0),
    "svr": lambda: SVR(kernel="linear", C=0.1, max_iter=50),
}


@pytest.mark.parametrize("names", [(0, 1), ("no", "yes"), ("low", "mid", "high"), (1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers(make: Any, names: tuple[Any, ...], schema: Schema, rows: Any, agree: Agree) -> None:
    estimator = fitted(make(), rows.encoded, rows.labels(names))
    model = import_model(estimator, schema)
    agree(model)
    assert model.classes == tuple(sorted(names))
    assert model.network.outputs == (1 if len(names) == 2 else len(names))
    points = schema.sample(1000, np.random.default_rng(5))
    decided = np.array(model.classes)[model.decide(model.scores(points))]
    assert (decided == estimator.predict(schema.encode(points))).all()


@pytest.mark.parametrize("make", REGRESSIONS.values(), ids=REGRESSIONS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_regressions(make: Any, outputs: int, schema: Schema, rows: Any, agree: Agree) -> None:
    estimator = make()
    if outputs > 1 and isinstance(estimator, SGDRegressor | LinearSVR | SVR):
        outputs = 1  # these predict one number only
    target = rows.encoded @ np.random.default_rng(0).normal(size=(len(schema.columns), outputs))
    model = import_model(fitted(estimator, rows.encoded, target[:, 0] if outputs == 1 else target), schema)
    agree(model)
    assert model.classes == () and not model.is_classifier and model.network.outputs == outputs


def test_a_linear_support_vector_machine_of_two_classes(schema: Schema, rows: Any, agree: Agree) -> None:
    estimator = fitted(SVC(kernel="linear", C=0.5), rows.encoded, rows.labels(("no", "yes")))
    agree(import_model(estimator, schema))


def test_a_support_vector_machine_decides_for_the_second_class_at_zero() -> None:
    schema = Schema((Integer("x", -3, 3),))
    estimator = SVC(kernel="linear").fit([[-1.0], [1.0]], ["no", "yes"])
    model = import_model(estimator, schema)
    zero = np.zeros((1, 1))
    assert estimator.decision_function(zero)[0] == 0.0
    assert model.classes[model.decide(model.scores(zero))[0]] == estimator.predict(zero)[0]


def test_classes_can_be_renamed(schema: Schema, rows: Any) -> None:
    estimator = fitted(LogisticRegression(), rows.encoded, rows.labels((0, 1)))
    assert import_model(estimator, schema, classes=("denied", "approved")).classes == ("denied", "approved")


def test_float32_weights_are_float32(schema: Schema, rows: Any, agree: Agree) -> None:
    estimator = fitted(mlp(6), rows.encoded.astype(np.float32), rows.labels((0, 1)))
    model = import_model(estimator, schema)
    assert model.precision == "float32"
    agree(model)


def test_an_estimator_that_knows_its_columns_by_name(schema: Schema, rows: Any, agree: Agree) -> None:
    shuffled = list(reversed(schema.columns))
    frame = pd.DataFrame(rows.encoded, columns=list(schema.columns))[shuffled]
    agree(import_model(fitted(mlp(6), frame, rows.labels((0, 1))), schema))
    some = frame[shuffled[3:]]
    agree(import_model(fitted(LogisticRegression(), some, rows.labels((0, 1))), schema))


# ---------------------------------------------------------------------- pipelines

NUMBERS, TEXTS = ["income", "age", "children"], ["job", "school", "town"]


def preprocessing(numbers: Any, texts: Any, **options: Any) -> ColumnTransformer:
    return ColumnTransformer([("numbers", numbers, NUMBERS), ("texts", texts, TEXTS)], **options)


PIPELINES = {
    "standard, onehot": lambda: preprocessing(StandardScaler(), OneHotEncoder(), remainder="passthrough"),
    "minmax, onehot drop first": lambda: preprocessing(MinMaxScaler(), OneHotEncoder(drop="first")),
    "maxabs, onehot if_binary": lambda: preprocessing(MaxAbsScaler(), OneHotEncoder(drop="if_binary")),
    "robust, ordinal": lambda: preprocessing(RobustScaler(), OrdinalEncoder(encoded_missing_value=-1)),
    "dense, ignoring": lambda: preprocessing(
        StandardScaler(with_mean=False), OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    ),
    "infrequent": lambda: preprocessing(
        StandardScaler(with_std=False), OneHotEncoder(min_frequency=80, handle_unknown="infrequent_if_exist")
    ),
    "target encoder": lambda: preprocessing("passthrough", TargetEncoder(random_state=0)),
    "clip that cannot bite": lambda: preprocessing(
        "drop", make_pipeline(OrdinalEncoder(encoded_missing_value=-1), MinMaxScaler(clip=True))
    ),
    "weights": lambda: preprocessing(
        StandardScaler(), OneHotEncoder(), transformer_weights={"numbers": 2.0, "texts": -0.5}
    ),
    "nested": lambda: preprocessing(
        make_pipeline(FunctionTransformer(), make_pipeline(RobustScaler(), "passthrough", MinMaxScaler((-1, 1)))),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(), StandardScaler(with_mean=False)),
        remainder=StandardScaler(),
    ),
    "selected": lambda: make_pipeline(
        preprocessing(StandardScaler(), OneHotEncoder(sparse_output=False)), VarianceThreshold(0.01), SelectKBest(k=5)
    ),
    "projected": lambda: make_pipeline(
        preprocessing(StandardScaler(), OneHotEncoder(sparse_output=False)), PCA(4, whiten=True), TruncatedSVD(3)
    ),
    "union": lambda: make_pipeline(
        preprocessing("passthrough", OneHotEncoder(sparse_output=False)),
        FeatureUnion([("a", StandardScaler()), ("b", PCA(2)), ("c", "drop")], transformer_weights={"b": 3.0}),
    ),
    "by type": lambda: ColumnTransformer(
        [
            ("numbers", StandardScaler(), make_column_selector(dtype_include="number")),
            ("others", OneHotEncoder(), make_column_selector(dtype_exclude="number")),
        ]
    ),
    "by position": lambda: ColumnTransformer(
        [
            ("slice", OneHotEncoder(), slice(3, 5)),
            ("names", StandardScaler(), slice("age", "age")),
            ("mask", OneHotEncoder(), [False, True, False, False, False, False, True]),
            ("one", MaxAbsScaler(), [-2]),
        ],
        remainder="drop",
    ),
    "float32 encoder": lambda: preprocessing(
        "drop", make_pipeline(OneHotEncoder(dtype=np.float32), StandardScaler(with_mean=False))
    ),
    "pandas output": lambda: preprocessing(
        StandardScaler(), OneHotEncoder(sparse_output=False), remainder="passthrough"
    ).set_output(transform="pandas"),
}


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize("names", [("no", "yes"), ("low", "mid", "high")], ids=str)
def test_pipelines(
    make: Any, names: tuple[str, ...], schema: Schema, rows: Any, agree: Agree, request: pytest.FixtureRequest
) -> None:
    if "target encoder" in request.node.name and len(names) > 2 and SKLEARN < (1, 4):
        pytest.skip("before 1.4, TargetEncoder knew two classes only")
    pipeline = Pipeline([("prepare", make()), ("decide", mlp(7))])
    model = import_model(fitted(pipeline, rows.frame, rows.labels(names)), schema)
    agree(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = pipeline.predict(rows.frame)
    assert (np.array(model.classes)[model.decide(model.scores(rows.points))] == predicted).all()


@pytest.mark.parametrize(
    "final", [LogisticRegression(), LinearSVC(), LinearRegression(), SVC(kernel="linear")], ids=str
)
def test_other_estimators_in_pipelines(final: Any, schema: Schema, rows: Any, agree: Agree) -> None:
    pipeline = make_pipeline(preprocessing(StandardScaler(), OneHotEncoder()), make_pipeline("passthrough", final))
    agree(import_model(fitted(pipeline, rows.frame, rows.labels((0, 1))), schema))


def test_a_finished_search(schema: Schema, rows: Any, agree: Agree) -> None:
    pipeline = make_pipeline(preprocessing(StandardScaler(), OneHotEncoder()), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2)
    agree(import_model(fitted(search, rows.frame, rows.labels((0, 1))), schema))


@pytest.mark.parametrize("dtype", ["str", object])
@pytest.mark.parametrize("marker", [None, np.nan], ids=str)
def test_missing_categories_of_every_kind(dtype: Any, marker: Any, schema: Schema, rows: Any, agree: Agree) -> None:
    """None, NaN and pandas' own missing text are different categories to an encoder; the schema has one option."""
    frame = rows.frame
    for name in TEXTS:
        frame[name] = pd.Series([marker if pd.isna(v) else v for v in frame[name]], dtype=dtype)
    pipeline = make_pipeline(preprocessing(StandardScaler(), OneHotEncoder()), mlp(5))
    model = import_model(fitted(pipeline, frame, rows.labels((0, 1))), schema)
    agree(model)
    missing = rows.points[:, schema.index("town")] == 2
    odds = pipeline.predict_proba(frame[missing])
    assert model.scores(rows.points[missing])[:, 0] == pytest.approx(np.log(odds[:, 1] / odds[:, 0]), abs=1e-9)


def test_columns_that_the_schema_does_not_have_may_be_dropped(schema: Schema, rows: Any, agree: Agree) -> None:
    frame = rows.frame.assign(id=range(len(rows.points)))
    pipeline = make_pipeline(preprocessing(StandardScaler(), OneHotEncoder()), LogisticRegression())
    agree(import_model(fitted(pipeline, frame, rows.labels((0, 1))), schema))


def test_a_pipeline_on_arrays_of_raw_values(schema: Schema, rows: Any, agree: Agree) -> None:
    values = rows.frame.to_numpy(dtype=object)
    encode = ColumnTransformer([("a", OneHotEncoder(), [1, 3, 4, 6]), ("b", StandardScaler(), [0, 2, 5])])
    agree(import_model(fitted(make_pipeline(encode, mlp(5)), values, rows.labels((0, 1))), schema))


def test_a_pipeline_on_encoded_columns(schema: Schema, rows: Any, agree: Agree) -> None:
    pipeline = make_pipeline(StandardScaler(), PCA(6), mlp(5))
    agree(import_model(fitted(pipeline, rows.encoded, rows.labels((0, 1))), schema))
    frame = pd.DataFrame(rows.encoded, columns=list(schema.columns))
    agree(import_model(fitted(pipeline, frame, rows.labels((0, 1))), schema))


def test_values_in_the_users_own_types(agree: Agree) -> None:
    schema = Schema(
        (
            Binary("flag", (True, False)),
            Binary("sex", ("f", "m")),
            Categorical("grade", (1, 2, 5), encoding="onehot"),
            Ordinal("rate", (0.5, 1.5, None)),
            Ordinal("size", (10, 20, 30, 40), encoding="code"),
            Real("x", 0, 1),
        )
    )
    points = schema.sample(200, np.random.default_rng(0))
    encode = ColumnTransformer(
        [
            ("sex", OneHotEncoder(drop="if_binary"), ["sex"]),
            ("flag", "passthrough", ["flag", "size"]),
            ("grade", StandardScaler(), ["grade", "x"]),
            ("rate", make_pipeline(SimpleImputer(), MinMaxScaler(clip=True)), ["rate"]),
        ]
    )
    pipeline = fitted(make_pipeline(encode, LogisticRegression()), to_frame(schema, points), points[:, 0] > 0)
    model = import_model(pipeline, schema)
    agree(model)
    assert model.classes == (False, True)


def test_an_explanation_holds_for_the_pipeline_itself() -> None:
    schema = Schema(
        (
            Integer("age", 18, 40),
            Categorical("job", ("baker", "nurse", "pilot")),
            Ordinal("school", ("none", "some", "all")),
            Binary("married"),
        )
    )
    points = schema.sample(300, np.random.default_rng(0))
    frame, labels = (
        to_frame(schema, points),
        np.where(points[:, 0] + 5 * points[:, 1] + 3 * points[:, 2] > 38, "yes", "no"),
    )
    encode = ColumnTransformer([("n", StandardScaler(), ["age"])], remainder=OneHotEncoder())
    pipeline = fitted(make_pipeline(encode, mlp(8)), frame, labels)
    row = schema.row(points[list(pipeline.predict(frame)).index("no")])
    answer = Explainer(pipeline, schema=schema).using(Enumerate()).explain(row)
    assert answer.status == "nearest" and answer.decision_before == "no"
    assert pipeline.predict(pd.DataFrame([answer.counterfactual]))[0] == "yes"


def test_scores_tie_where_probabilities_do() -> None:
    """The decision is the model's own, which is made on rounded probabilities."""
    logits = np.array([[1e-18], [1e-3], [-1e-3]])
    assert settled(logits, 1 / (1 + np.exp(-logits)))[:, 0].tolist() == [0.0, 1e-3, -1e-3]
    several = np.array([[1.0, 1.0 + 1e-16, 0.0], [0.0, 1e-17, -2.0]])
    likely = np.exp(several) / np.exp(several).sum(axis=1, keepdims=True)
    assert settled(several, likely).argmax(axis=1).tolist() == [0, 0]
