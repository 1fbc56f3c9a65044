"""Sums of trees and other models, against brute force over every row by the estimator's own predict, and its scores."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from ifonly import Accepted, Categorical, Explainer, Integer, Limits, Real, Schema, ScoreTarget, import_model
from ifonly.errors import UnsupportedModel, UnsupportedQuestion
from ifonly.methods import Enumerate

SCHEMA = Schema(
    [Integer("age", 18, 40), Real("rate", 0.0, 2.0, step=0.1), Categorical("job", ["a", "b", "c"]), Integer("n", 0, 3)]
)


def front() -> Any:
    return make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["age", "rate", "n"]))


def of(estimator: Any) -> Any:
    return make_pipeline(front(), estimator)


def table(points: Any) -> pd.DataFrame:
    rows = [SCHEMA.row(point) for point in points]
    return pd.DataFrame(rows).astype({"age": int, "n": int, "rate": float})


def every_row() -> Any:
    grid = Real("rate", 0.0, 2.0, step=0.1).grid
    assert grid is not None
    rates = grid.values(np.arange(grid.steps + 1))
    return np.array(list(itertools.product(range(18, 41), rates, range(3), range(4))), dtype=np.float64)


def data(seed: int, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    points = every_row()[rng.integers(0, len(every_row()), 300)]
    merit = 0.1 * points[:, 0] + points[:, 1] * (points[:, 2] - 1) + 0.3 * points[:, 3] + rng.normal(0, 0.4, 300)
    return points, np.digitize(merit, np.quantile(merit, np.linspace(0, 1, classes + 1)[1:-1] + 0.1))


def forest(**how: Any) -> Any:
    return of(RandomForestClassifier(6, max_depth=4, random_state=0, **how))


def linear() -> Any:
    return of(LogisticRegression())


def net() -> Any:
    return of(MLPClassifier((4,), activation="tanh", max_iter=60, random_state=0))


def vote(*members: Any, **how: Any) -> Any:
    return VotingClassifier([(str(i), one) for i, one in enumerate(members)], voting="soft", **how)


def stack(*members: Any, **how: Any) -> Any:
    return StackingClassifier([(str(i), one) for i, one in enumerate(members)], LogisticRegression(), cv=2, **how)


def boosted() -> Any:
    return of(GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0))


MODELS: dict[str, Any] = {
    "soft vote of a forest and a logistic regression": lambda: vote(forest(), linear(), weights=[2, 1]),
    "soft vote of boosting, a forest and a perceptron": lambda: vote(boosted(), forest(), net()),
    "stack of a forest and a perceptron": lambda: stack(forest(), net()),
    "stack of boosting and a logistic regression": lambda: stack(
        of(HistGradientBoostingClassifier(max_iter=8, max_depth=3)), linear()
    ),
    "stack of a forest, passthrough": lambda: of(
        stack(RandomForestClassifier(5, max_depth=3, random_state=0), LogisticRegression(), passthrough=True)
    ),
    "three calibrators of a forest": lambda: CalibratedClassifierCV(forest(), cv=3),
    "isotonic calibrators of boosting": lambda: CalibratedClassifierCV(boosted(), cv=2, method="isotonic"),
    "XGBoost and a logistic regression": lambda: vote(
        of(XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1)), linear()
    ),
}


def fitted(make: Any, seed: int, classes: int = 2) -> Any:
    points, labels = data(seed, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(table(points), labels)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
@pytest.mark.parametrize("name", MODELS)
def test_the_nearest_row_of_all(name: str, norm: str) -> None:
    estimator = fitted(MODELS[name], 1)
    model = import_model(estimator, SCHEMA)
    assert model.function.name.startswith("a sum of trees")
    rows = every_row()
    decided = np.asarray(estimator.predict(table(rows)))
    assert (model.decide(model.exact_scores(rows)) == decided).mean() > 0.9999
    explainer = Explainer(model)
    for person in np.random.default_rng(2).choice(len(rows), 6, replace=False).tolist():
        query = {"distance": norm, "constraints": ["age only goes up"] if person % 2 else []}
        answer = explainer.explain(SCHEMA.row(rows[person]), **query)
        wanted = (decided != decided[person]) & ((rows[:, 0] >= rows[person, 0]) if person % 2 else True)
        far = _distance(rows[person], rows[wanted], norm)
        if not wanted.any():
            assert answer.status == "none exists"
            continue
        assert answer.status == "nearest"
        assert answer.distance == pytest.approx(far.min(), rel=1e-9)


def _distance(person: Any, rows: Any, norm: str) -> Any:
    """The default distance, written once more: changes over ranges, a choice counts 1, by the number of features."""
    changes = np.abs(rows - person) / np.array([22.0, 2.0, 1.0, 3.0])
    changes[:, 2] = changes[:, 2] > 0
    whole = {
        "l1": changes.sum(axis=1),
        "linf": changes.max(axis=1, initial=0.0),
        "l2": np.sqrt((changes**2).sum(axis=1)),
    }
    return whole[norm] / (2 if norm == "l2" else 4)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("rules", [["at most one change"], ["if job = c then n >= 2", "rate changes only with n"]])
def test_under_rules(rules: list[str]) -> None:
    model = import_model(fitted(MODELS["soft vote of a forest and a logistic regression"], 3), SCHEMA)
    explainer = Explainer(model).using(reasons=False)
    for point in every_row()[::1500]:
        row = SCHEMA.row(point)
        found, listed = (one.explain(row, constraints=rules) for one in (explainer, explainer.using(Enumerate())))
        assert found.status == listed.status
        assert found.distance == pytest.approx(listed.distance, rel=1e-9)


@pytest.mark.long
def test_three_classes_and_regressions() -> None:
    several = import_model(fitted(lambda: OneVsRestClassifier(vote(forest(), linear())), 4, classes=3), SCHEMA)
    points, _ = data(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = [("f", of(RandomForestRegressor(5, max_depth=3, random_state=0))), ("l", of(LinearRegression()))]
        regression = VotingRegressor(members).fit(table(points), points[:, 0] * points[:, 1])
    predicted = import_model(regression, SCHEMA)
    for model, target in (
        (several, 2),
        (predicted, ScoreTarget(at_least=30.0)),
        (predicted, ScoreTarget(at_least=20.0, at_most=22.0)),
    ):
        explainer = Explainer(model).using(reasons=False)
        for point in every_row()[::2500]:
            row = SCHEMA.row(point)
            found, listed = (one.explain(row, target=target) for one in (explainer, explainer.using(Enumerate())))
            assert found.status == listed.status
            assert found.status != "nearest" or found.distance == pytest.approx(listed.distance, rel=1e-9)


@pytest.mark.long
def test_rounding_is_within_its_bound() -> None:
    """Against the members' own probabilities, added up exactly."""
    for name in ("soft vote of boosting, a forest and a perceptron", "XGBoost and a logistic regression"):
        estimator = fitted(MODELS[name], 6)
        model = import_model(estimator, SCHEMA)
        rows = every_row()[::37]
        members = [one.predict_proba(table(rows))[:, 1].tolist() for one in estimator.estimators_]
        exact = np.array([math.fsum(parts) / len(parts) for parts in zip(*members, strict=True)])
        error = model.error_at(rows)[:, 1] + model.error_in("float64")[1]
        assert (np.abs(model.exact_scores(rows)[:, 1] - exact) <= error).all()
        assert (np.abs(estimator.predict_proba(table(rows))[:, 1] - exact) <= error).all()
        assert error.max() < 1e-4


@pytest.mark.long
def test_limits_give_what_is_proven_so_far() -> None:
    explainer = Explainer(import_model(fitted(MODELS["soft vote of boosting, a forest and a perceptron"], 1), SCHEMA))
    person = SCHEMA.row(every_row()[77])
    whole = explainer.explain(person)
    part = explainer.explain(person, limits=Limits(nodes=1))
    assert part.lower <= whole.distance * (1 + 1e-9)
    assert part.status in ("within", "unknown", "nearest")


@pytest.mark.long
def test_what_is_refused_says_what_to_do() -> None:
    estimator = fitted(MODELS["soft vote of a forest and a logistic regression"], 1)
    real = Schema([SCHEMA["age"], Real("rate", 0.0, 2.0), *SCHEMA.features[2:]])
    with pytest.raises(
        UnsupportedModel, match=r"'rate' is a real number without a step.*Real\('rate', 0, 2, step=0.01\)"
    ):
        import_model(estimator, real)
    with pytest.raises(UnsupportedModel, match="curve of a sum of trees and other models"):
        import_model(fitted(lambda: CalibratedClassifierCV(vote(forest(), linear()), cv=2), 1), SCHEMA)
    model = import_model(estimator, SCHEMA)
    other = import_model(fitted(forest, 1), SCHEMA)
    with pytest.raises(UnsupportedQuestion, match="use enumerate"):
        Explainer(model).explain(SCHEMA.row(every_row()[0]), constraints=[Accepted(by=other, target=1)])
