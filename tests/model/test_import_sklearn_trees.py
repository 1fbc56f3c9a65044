"""scikit-learn's trees: the imported function is the library's, bit for bit, also at every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
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
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from ifonly import Categorical, Integer, Ordinal, Real, Schema, import_model
from ifonly.errors import UnsupportedModel
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


@pytest.mark.long(keep=6)
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


@pytest.mark.long(keep=2)
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
    share = np.exp(theirs)
    own = estimator.predict_proba(SCHEMA.encode(rows))
    by_softmax = np.allclose(share / share.sum(axis=1, keepdims=True), own, rtol=0.0, atol=1e-12)
    assert (model.probabilities is not None) == (classes == 2 or by_softmax)


@pytest.mark.long(keep=1)
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


def test_votes_of_single_trees() -> None:
    points, labels = points_and_labels(classes=3)
    members = [(str(k), DecisionTreeClassifier(max_depth=3, max_features=2, random_state=k)) for k in range(5)]
    voting = VotingClassifier(members, voting="hard", weights=[1, 2, 1, 1, 1]).fit(SCHEMA.encode(points), labels)
    model = import_model(voting, SCHEMA)
    rows = everywhere(model)
    assert np.array_equal(model.decide(model.scores(rows)), voting.predict(SCHEMA.encode(rows)))
    assert np.abs(model.exact_scores(rows) - model.scores(rows)).max() <= model.error.max() < 1e-14


def test_a_score_of_zero_is_decided_as_the_library_does() -> None:
    """A first tree that says 0 everywhere: gradient boosting decides a score of exactly 0 for the second class."""
    x = np.array([[-2.0, 0, 1, 0, 0, 0, 1, 0, 0, 0], [2.0, 0, 1, 0, 0, 0, 1, 0, 0, 0]] * 2)
    boosting = GradientBoostingClassifier(n_estimators=1, init="zero", max_depth=1).fit(x, [0, 1, 1, 0])
    model = import_model(boosting, SCHEMA)
    row = SCHEMA.sample(1, np.random.default_rng(0))
    assert boosting.decision_function(SCHEMA.encode(row))[0] == 0.0
    assert boosting.predict(SCHEMA.encode(row))[0] == 1
    assert model.decide(model.scores(row))[0] == model.decide(model.exact_scores(row))[0] == 1


# ---------------------------------------------------------------------- pipelines


def scaled(scaler: Any) -> Any:
    rest = ["town=x", "town=y", "town=z", "owner", "level>=1", "level>=2", "level>=3"]
    return make_column_transformer((scaler, ["rate", "age", "debt"]), ("passthrough", rest))


FRONTS = {
    "standard": scaled(StandardScaler()),
    "min max": scaled(MinMaxScaler((-1, 3))),
    "max abs": scaled(MaxAbsScaler()),
    "robust": scaled(RobustScaler()),
    "two in a row": scaled(make_pipeline(StandardScaler(), MinMaxScaler())),
    "turned around": FeatureUnion(
        [("a", scaled(StandardScaler())), ("b", scaled(RobustScaler()))], transformer_weights={"a": -3.7}
    ),
    "selected": make_pipeline(scaled(StandardScaler()), VarianceThreshold()),
}
ENDS = {
    "forest": lambda: RandomForestClassifier(10, random_state=0),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=10),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=10, random_state=0),
}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("front", FRONTS)
def test_at_the_end_of_a_pipeline(front: str, end: str) -> None:
    """Cuts on the user's own numbers, exact to the last bit of the scaler's arithmetic."""
    points, labels = points_and_labels()
    table = pd.DataFrame(SCHEMA.encode(points), columns=list(SCHEMA.columns))
    pipeline = make_pipeline(clone(FRONTS[front]), ENDS[end]()).fit(table, labels)
    model = import_model(pipeline, SCHEMA)
    rows = everywhere(model)
    asked = pd.DataFrame(SCHEMA.encode(rows), columns=list(SCHEMA.columns))
    theirs = pipeline.predict_proba(asked) if end == "forest" else pipeline.decision_function(asked)[:, None]
    assert np.array_equal(model.exact_scores(rows), theirs)


@pytest.mark.long
def test_the_users_own_values_with_encoders_and_missing_options() -> None:
    schema = Schema(
        [
            Real("rate", -3, 3),
            Categorical("town", ["x", "y", None]),
            Integer("age", 0, 60),
            Ordinal("level", ["a", "b", "c"]),
        ]
    )
    points = schema.sample(400, np.random.default_rng(1))
    table = pd.DataFrame([schema.row(point) for point in points])
    columns = make_column_transformer(
        (StandardScaler(), ["rate"]),
        (OneHotEncoder(), ["town"]),
        (SimpleImputer(), ["age"]),
        (OrdinalEncoder(categories=[["c", "a", "b"]]), ["level"]),
    )
    labels = (points[:, 0] + (points[:, 1] == 2) + (points[:, 3] == 1) > 0.5).astype(int)
    search = GridSearchCV(
        make_pipeline(columns, RandomForestClassifier(10, random_state=0)), {"randomforestclassifier__max_depth": [4]}
    )
    search.fit(table, labels)
    model = import_model(search, schema)
    rows = everywhere(model)
    asked = pd.DataFrame([schema.row(row) for row in rows])
    assert np.array_equal(model.exact_scores(rows), search.predict_proba(asked))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mark", ["category", "names", "objects"])
def test_categories_of_histogram_boosting(mark: str) -> None:
    schema = Schema([Real("rate", -3, 3), Categorical("town", ["x", "y", "z", None, "new"]), Integer("age", 0, 60)])
    points = schema.sample(400, np.random.default_rng(1))
    points[:, 1] = np.minimum(points[:, 1], 3)
    table = pd.DataFrame([schema.row(point) for point in points])
    labels = (points[:, 0] + (points[:, 1] == 2) - (points[:, 1] == 3) > 0.3).astype(int)
    if mark == "category":
        table["town"] = pd.Categorical(table["town"])
    if mark == "objects":  # as pandas 2 makes them: None is a category of its own, and NaN another
        table["town"] = pd.Series([schema.row(point)["town"] for point in points], dtype=object)
    chosen = "from_dtype" if mark == "category" else ["town"]
    boosting = HistGradientBoostingClassifier(max_iter=15, categorical_features=chosen).fit(table, labels)
    with pytest.warns(UserWarning, match="was fitted without the option 'new' of feature 'town'"):
        model = import_model(boosting, schema)
    rows = everywhere(model)
    asked = pd.DataFrame([schema.row(row) for row in rows])
    if mark == "objects":
        asked["town"] = pd.Series([schema.row(row)["town"] for row in rows], dtype=object)
    assert np.array_equal(model.exact_scores(rows)[:, 0], boosting.decision_function(asked))
    assert len(model.function.option_sets[1]) >= 1


# ---------------------------------------------------------------------- refusals


def refusals() -> Any:
    points, labels = points_and_labels()
    x, y = SCHEMA.encode(points), labels
    yield AdaBoostRegressor(n_estimators=3).fit(x, points[:, 0]), "weighted median"
    yield BaggingClassifier(GradientBoostingClassifier(n_estimators=2), n_estimators=2).fit(x, y), "no sum over leaves"
    yield AdaBoostClassifier(RandomForestClassifier(3), n_estimators=2).fit(x, y), "AdaBoost over RandomForest"
    hard = VotingClassifier([("a", RandomForestClassifier(3)), ("b", DecisionTreeClassifier())], voting="hard")
    yield hard.fit(x, y), "voting='soft'"
    yield (
        GradientBoostingClassifier(n_estimators=2, init=DecisionTreeClassifier()).fit(x, y),
        "starts from DecisionTree",
    )
    yield HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(x, y), "exponential of a sum"
    yield RandomForestClassifier(2).fit(x, np.stack([y, 1 - y], axis=1)), "2 answers at once"
    yield DecisionTreeClassifier().fit(x, np.zeros(len(x))), "one class only"
    yield make_pipeline(PCA(3), RandomForestClassifier(3)).fit(x, y), "mixes 10 features|mixes 6 features"


@pytest.mark.long
def test_refusals_say_why() -> None:
    for estimator, words in refusals():
        with pytest.raises(UnsupportedModel, match=words):
            import_model(estimator, SCHEMA)
