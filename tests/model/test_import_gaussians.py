"""Gaussian classifiers, Gaussian mixtures and machines with RBF kernels: decided as scikit-learn decides."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, OneClassSVM

import ifonly
from ifonly import Categorical, Explainer, Integer, Nearest, Real, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers import gaussians
from ifonly.model.importers.gaussian_models import import_density

SCHEMA = Schema([Integer("a", 100, 109), Integer("b", -4, 4), Categorical("c", ["x", "y", "z"])])
ROWS = np.array(list(itertools.product(range(100, 110), range(-4, 5), range(3))), dtype=float)
LABELS = ((ROWS[:, 0] - 104) ** 2 + ROWS[:, 1] ** 2 + 3 * ROWS[:, 2] < 14).astype(int)
CLASSIFIERS = {
    "quadratic": lambda: QuadraticDiscriminantAnalysis(reg_param=0.01),
    "bayes": GaussianNB,
    "svc": SVC,
    "svc with probabilities": lambda: SVC(probability=True, random_state=0),
    "one class": lambda: OneClassSVM(nu=0.2),
}
WRAPPED = {
    "alone": lambda estimator: estimator,
    "scaled": lambda estimator: make_pipeline(StandardScaler(), estimator),
    "searched": lambda estimator: GridSearchCV(make_pipeline(StandardScaler(), estimator), {}, cv=2, scoring=_first),
}


def _first(fitted: Any, x: Any, y: Any = None) -> float:
    return 0.0


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_every_row_is_decided_as_predict_decides(classifier: str, wrapped: str) -> None:
    fitted = WRAPPED[wrapped](CLASSIFIERS[classifier]()).fit(SCHEMA.encode(ROWS), LABELS)
    model = import_model(fitted, SCHEMA)
    own = fitted.predict(SCHEMA.encode(ROWS))
    for scores in (model.exact_scores(ROWS), model.scores(ROWS), pickle.loads(pickle.dumps(model.original))(ROWS)):
        assert (np.array(model.classes)[model.decide(scores)] == own).all()
    assert (np.abs(model.exact_scores(ROWS) - model.scores(ROWS)) <= model.error_at(ROWS)).all()
    assert model.accepted == (1 if classifier == "one class" else None)
    assert (model.probabilities is not None) == (classifier in ("quadratic", "bayes"))


@pytest.mark.parametrize("classifier", ["quadratic", "bayes"])
def test_more_classes(classifier: str) -> None:
    labels = np.array(["low", "middle", "high"])[LABELS + (ROWS[:, 0] > 106)]
    fitted = CLASSIFIERS[classifier]().fit(SCHEMA.encode(ROWS), labels)
    model = import_model(fitted, SCHEMA)
    own = fitted.predict(SCHEMA.encode(ROWS))
    assert (np.array(model.classes)[model.decide(model.exact_scores(ROWS))] == own).all()
    assert model.probabilities is not None
    assert np.allclose(model.probabilities(ROWS), fitted.predict_proba(SCHEMA.encode(ROWS)))


@pytest.mark.parametrize("components", [1, 2, 4])
@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_a_density_is_at_least_its_threshold(covariance: str, components: int) -> None:
    mixture = GaussianMixture(components, covariance_type=covariance, random_state=0, reg_covar=1e-3)
    for fitted in (mixture, make_pipeline(StandardScaler(), mixture)):
        scores = fitted.fit(SCHEMA.encode(ROWS)).score_samples(SCHEMA.encode(ROWS))
        threshold = float(np.sort(scores)[60:62].mean())
        model = import_density(fitted, SCHEMA, threshold)
        assert (model.classes, model.accepted) == ((-1, 1), 1)
        assert (model.decide(model.scores(ROWS)) == (scores >= threshold)).all()
        exact = model.exact_scores(ROWS)
        assert (np.abs(exact - model.scores(ROWS)) <= model.error_at(ROWS)).all()
        clear = np.abs(exact[:, 0]) > model.error_at(ROWS)[:, 0]
        assert clear.mean() > 0.9
        assert ((exact[:, 0] > 0.0) == (scores >= threshold))[clear].all()


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_covers_the_deployed_score_in_exact_arithmetic(seed: int) -> None:
    """Of one component, the density by fractions of the stored matrices, and by scikit-learn: no farther than E."""
    rng = np.random.default_rng(seed)
    schema = Schema([Real(name, -1e3, 1e3) for name in "abc"])
    data = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)) * 10.0 ** rng.integers(-2, 3, 3) + 10.0 * rng.normal(
        size=3
    )
    covariance = ("full", "tied", "diag", "spherical")[seed % 4]
    fitted = GaussianMixture(1, covariance_type=covariance, random_state=0).fit(data)
    rows = np.concatenate([data, schema.sample(20, rng)])
    model = import_density(fitted, schema, -3.0)
    root = np.asarray(fitted.precisions_cholesky_)
    matrix = {"full": lambda: root[0], "tied": lambda: root, "diag": lambda: np.diag(root[0]),
              "spherical": lambda: np.diag(np.repeat(root, 3))}[covariance]()  # fmt: skip
    mean = [Fraction(x) for x in fitted.means_[0].tolist()]
    constant = float(np.log(np.diag(matrix)).sum() - 1.5 * math.log(2.0 * math.pi))
    for row, score, error in zip(rows, model.scores(rows)[:, 0], model.error_at(rows)[:, 0], strict=True):
        x = [Fraction(a) - m for a, m in zip(row.tolist(), mean, strict=True)]
        total = Fraction(0)
        for column in matrix.T.tolist():
            total += sum((a * Fraction(p) for a, p in zip(x, column, strict=True)), Fraction(0)) ** 2
        exact = Fraction(constant) - total / 2 + 3
        assert abs(Fraction(float(score)) - exact) <= Fraction(float(error)) + Fraction(1, 10**13)


def test_nothing_overflows_far_from_the_data_or_in_its_middle() -> None:
    """Densities of e^40 times the threshold, and of e^(-10^12)."""
    schema = Schema([Real("a", -1e3, 1e3), Real("b", -1e3, 1e3)])
    data = np.random.default_rng(0).normal(size=(100, 2)) * 1e-3
    fitted = GaussianMixture(2, random_state=0, reg_covar=1e-12).fit(data)
    threshold = float(fitted.score_samples(data).max()) - 40.0
    model = import_density(fitted, schema, threshold)
    answer = Explainer(model).explain({"a": 500.0, "b": -3.0}, target=1)
    assert answer.counterfactual is not None
    row = schema.encode(schema.read(answer.counterfactual)[None, :])
    assert fitted.score_samples(row)[0] >= threshold
    assert isinstance(answer, Nearest)


def test_columns_of_options_take_no_squares() -> None:
    fitted = GaussianNB().fit(SCHEMA.encode(ROWS), LABELS)
    assert sum(import_model(fitted, SCHEMA).function.sizes()["hidden"]) <= 2 * 2 + 1
    front = ColumnTransformer([("numbers", StandardScaler(), ["a", "b"]), ("options", OneHotEncoder(), ["c"])])
    table = pd.DataFrame(
        {
            "a": ROWS[:, 0].astype(int),
            "b": ROWS[:, 1].astype(int),
            "c": np.array(["x", "y", "z"])[ROWS[:, 2].astype(int)],
        }
    )
    piped = make_pipeline(front, GaussianNB()).fit(table, LABELS)
    model = import_model(piped, SCHEMA)
    assert sum(model.function.sizes()["hidden"]) <= 2 * 2 + 2
    assert (model.decide(model.exact_scores(ROWS)) == piped.predict(table)).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GaussianNB().fit(SCHEMA.encode(ROWS).astype(np.float32), LABELS), UnsupportedModel, "in float32"),
        (lambda: GaussianNB(var_smoothing=0.0).fit(SCHEMA.encode(ROWS), SCHEMA.encode(ROWS)[:, 3]), UnsupportedModel,
         "without any variance; fit it with var_smoothing"),
        (lambda: CalibratedClassifierCV(GaussianNB(), cv=2).fit(SCHEMA.encode(ROWS), LABELS), UnsupportedModel,
         "but not inside another estimator"),
        (lambda: OneClassSVM(kernel="poly").fit(SCHEMA.encode(ROWS)), UnsupportedModel, "fit it with kernel='rbf'"),
    ],
)  # fmt: skip
def test_what_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(error, match=message):
        import_model(make(), SCHEMA)


def test_other_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = SVC().fit(SCHEMA.encode(ROWS), LABELS)
    with pytest.raises(ModelError, match="SVC is a classifier, not a regression"):
        import_model(fitted, SCHEMA, regression=True)
    monkeypatch.setattr(gaussians, "MOST_VECTORS", 10)
    with pytest.raises(UnsupportedModel, match=r"support vectors.*at most 10 are searched"):
        import_model(fitted, SCHEMA)


@pytest.mark.parametrize("kind", ["mixture", "naive bayes", "machine"])
def test_certificates_state_them(kind: str, tmp_path: Path) -> None:
    encoded = SCHEMA.encode(ROWS)
    if kind == "mixture":
        mixture = GaussianMixture(2, random_state=0).fit(encoded[LABELS == 1])
        model = import_density(mixture, SCHEMA, float(np.quantile(mixture.score_samples(encoded), 0.8)) + 1e-5)
    else:
        model = import_model((GaussianNB() if kind == "naive bayes" else SVC()).fit(encoded, LABELS), SCHEMA)
    person = ROWS[np.flatnonzero(model.decide(model.scores(ROWS)) == 0)[0]]
    explainer = Explainer(model)
    certificate = ifonly.certify(explainer, SCHEMA.row(person), target=model.classes[1])
    certificate.save(tmp_path / "answer.cert")
    checked = ifonly.check(tmp_path / "answer.cert")
    assert checked.verdict == "VALID", checked.failure


def test_a_mixture_whose_covariances_are_of_another_type_is_refused() -> None:
    mixture = GaussianMixture(2, random_state=0).fit(SCHEMA.encode(SCHEMA.sample(60, np.random.default_rng(0))))
    for other in ("diag", "tied", "spherical", "none"):
        mixture.covariance_type = other
        with pytest.raises(UnsupportedModel, match="fit it again"):
            import_density(mixture, SCHEMA, -1e3)
