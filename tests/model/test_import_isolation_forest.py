"""Isolation forests: decided as scikit-learn's own `predict` does, also on the threshold itself, and searched exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Accepted, Categorical, Explainer, Integer, Nearest, Network, NoneExists, Schema, import_model
from ifonly.errors import UnsupportedModel
from ifonly.methods import Enumerate, Search
from ifonly.model import network_model

SCHEMA = Schema([Integer("a", 0, 9), Integer("b", 0, 9), Integer("c", -3, 3), Categorical("d", ["x", "y", "z"])])
ROWS = np.array(list(itertools.product(range(10), range(10), range(-3, 4), range(3))), dtype=float)


def table(seed: int, rows: int = 300) -> np.ndarray:
    """Most rows around the middle."""
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.binomial(9, 0.4, rows), rng.binomial(9, 0.5, rows), rng.binomial(6, 0.5, rows) - 3,
                              rng.choice(3, rows, p=[0.7, 0.25, 0.05])])  # fmt: skip
    return SCHEMA.encode(points.astype(float))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "options",
    [{}, {"contamination": 0.1}, {"contamination": 0.4, "max_samples": 50}, {"max_features": 0.5}, {"bootstrap": True}],
    ids=str,
)
def test_every_row_is_decided_as_predict_decides(options: dict[str, object]) -> None:
    forest = IsolationForest(n_estimators=30, random_state=1, **options).fit(table(1))
    model = import_model(forest, SCHEMA)
    assert model.classes == (-1, 1)
    assert model.accepted == 1
    own = forest.predict(SCHEMA.encode(ROWS))
    assert (np.array(model.classes)[model.decide(model.exact_scores(ROWS))] == own).all()
    assert (np.array(model.classes)[model.decide(model.scores(ROWS))] == own).all()


def test_rows_on_the_threshold_are_inliers() -> None:
    forest = IsolationForest(n_estimators=20, random_state=2).fit(table(2))
    forest.offset_ = float(np.sort(forest.score_samples(SCHEMA.encode(ROWS)))[500])  # the score of some row
    model = import_model(forest, SCHEMA)
    own = forest.predict(SCHEMA.encode(ROWS))
    assert (np.array(model.classes)[model.decide(model.exact_scores(ROWS))] == own).all()
    assert (forest.decision_function(SCHEMA.encode(ROWS)) == 0.0).any()


def test_a_pipeline_and_other_names() -> None:
    forest = make_pipeline(StandardScaler(), IsolationForest(n_estimators=10, random_state=3, contamination=0.2))
    model = import_model(forest.fit(table(3)), SCHEMA, classes=("odd", "usual"))
    assert model.accepted == "usual"
    assert (model.decide(model.scores(ROWS)) == (forest.predict(SCHEMA.encode(ROWS)) == 1)).all()


def test_all_inliers_all_outliers() -> None:
    forest = IsolationForest(n_estimators=5, random_state=4).fit(table(4))
    for offset, inside in ((-2.0, 1), (0.5, 0)):
        forest.offset_ = offset
        model = import_model(forest, SCHEMA)
        assert (model.decide(model.scores(ROWS)) == inside).all()


def test_single_rows_are_refused() -> None:
    forest = IsolationForest(n_estimators=5, random_state=4, max_samples=1).fit(table(4))
    with pytest.raises(UnsupportedModel, match="fitted on single rows, so all rows have the same score"):
        import_model(forest, SCHEMA)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_inlier_by_trying_every_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forest = IsolationForest(n_estimators=25, random_state=seed, contamination=float(rng.uniform(0.05, 0.5)))
    forest.fit(table(seed))
    width = len(SCHEMA.columns)
    network = Network.of([(rng.normal(size=(6, width)) / 3.0, rng.normal(size=6)), (rng.normal(size=(1, 6)), [-0.5])])
    model = network_model(network, SCHEMA)
    explainer, accepted = Explainer(model), Accepted(by=forest, name="isolation forest")
    encoded = SCHEMA.encode(ROWS)
    good = (forest.predict(encoded) == 1) & (model.scores(ROWS)[:, 0] >= 1e-6)
    for point in SCHEMA.sample(4, rng):
        if model.scores(point)[0, 0] > 0.0:
            continue
        answers = [
            explainer.using(method).explain(SCHEMA.row(point), target=1, constraints=[accepted])
            for method in (Search(table_rows=0), Enumerate())
        ]
        nearest = np.abs(ROWS - point)[good] / np.array([9, 9, 6, 1])
        nearest[:, 3] = nearest[:, 3] > 0
        for answer in answers:
            if not good.any():
                assert isinstance(answer, NoneExists)
                continue
            assert isinstance(answer, Nearest)
            assert answer.upper == pytest.approx(float(nearest.sum(axis=1).min()) / 4.0, abs=1e-9)
            assert forest.predict(SCHEMA.encode(SCHEMA.read(answer.counterfactual)[None, :]))[0] == 1
