"""scikit-learn's trees: the imported function is the library's, bit for bit, also at every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from ifonly import import_model
from model.forests import SCHEMA, everywhere, points_and_labels

FRACTIONS = [
    DecisionTreeClassifier(random_state=0),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(20, random_state=0),
    RandomForestClassifier(20, max_depth=3, random_state=0, n_jobs=2),
    ExtraTreesClassifier(20, random_state=0),
    BaggingClassifier(n_estimators=10, max_features=0.5, random_state=0),
    BaggingClassifier(RandomForestClassifier(5, random_state=0), n_estimators=4, random_state=0),
    VotingClassifier(
        [("a", RandomForestClassifier(5, random_state=0)), ("b", DecisionTreeClassifier(random_state=1))],
        voting="soft",
        weights=[2, 1],
    ),
]
BOOSTED = [
    GradientBoostingClassifier(n_estimators=20, random_state=0),
    GradientBoostingClassifier(n_estimators=20, init="zero", random_state=0),
    HistGradientBoostingClassifier(max_iter=20),
    AdaBoostClassifier(n_estimators=20, random_state=0),
    AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=20, random_state=0),
]
REGRESSIONS = [
    DecisionTreeRegressor(random_state=0),
    RandomForestRegressor(20, random_state=0),
    ExtraTreesRegressor(20, random_state=0),
    BaggingRegressor(n_estimators=10, max_features=0.5, random_state=0),
    VotingRegressor([("a", RandomForestRegressor(5, random_state=0)), ("b", DecisionTreeRegressor(random_state=1))]),
    GradientBoostingRegressor(n_estimators=20, random_state=0),
    HistGradientBoostingRegressor(max_iter=20),
]


def exact(model: Any) -> bool:
    return bool(model.function.ensemble.summation.ordered)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", FRACTIONS, ids=lambda e: type(e).__name__)
def test_fractions(estimator: Any, classes: int) -> None:
    points, labels = points_and_labels(classes=classes)
    estimator.fit(SCHEMA.encode(points), labels)
    model = import_model(estimator, SCHEMA)
    rows = everywhere(model)
    ours, theirs = model.exact_scores(rows), estimator.predict_proba(SCHEMA.encode(rows))
    assert np.abs(ours - theirs).max() <= model.error.max()
    if not isinstance(estimator, VotingClassifier) and estimator not in (FRACTIONS[3], FRACTIONS[6]):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(model.decide(model.scores(rows)), estimator.predict(SCHEMA.encode(rows)))
    assert model.error.max() < 1e-13


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", BOOSTED, ids=lambda e: type(e).__name__)
def test_boosting(estimator: Any, classes: int) -> None:
    points, labels = points_and_labels(classes=classes)
    estimator.fit(SCHEMA.encode(points), labels)
    model = import_model(estimator, SCHEMA)
    rows = everywhere(model)
    theirs = estimator.decision_function(SCHEMA.encode(rows)).reshape(len(rows), -1)
    assert np.array_equal(model.exact_scores(rows), theirs)
    assert np.array_equal(model.decide(model.scores(rows)), estimator.predict(SCHEMA.encode(rows)))
    assert not model.error.any() and model.deviation == 0.0
    assert (model.probabilities is not None) == (classes == 2)


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=lambda e: type(e).__name__)
def test_regressions(estimator: Any) -> None:
    points, _ = points_and_labels()
    estimator.fit(SCHEMA.encode(points), points[:, 0] + np.sin(points[:, 1]))
    model = import_model(estimator, SCHEMA)
    rows = everywhere(model)
    ours, theirs = model.exact_scores(rows)[:, 0], estimator.predict(SCHEMA.encode(rows))
    assert np.abs(ours - theirs).max() <= model.error.max()
    if exact(model):
        assert np.array_equal(ours, theirs)
    assert not model.is_classifier
