"""Trees are compared with their library at every split: a misreading that random rows do not meet is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ifonly import Categorical, Explainer, Integer, Nearest, Real, Schema, Scorecard, import_model
from ifonly.errors import ModelError
from ifonly.model.importers.trees import model_of, read_trees
from ifonly.model.trees import Ensemble, edge_points

TOWNS = [f"t{k}" for k in range(12)]
SCHEMA = Schema([Real("x", 0.0, 1e6), Real("y", 0.0, 1e6), Integer("n", 0, 400), Categorical("town", TOWNS)])


def rare_forest() -> Any:
    """Splits that one row in many millions reaches: all that matters happens in a corner."""
    rng = np.random.default_rng(0)
    points = SCHEMA.sample(3000, rng)
    corner = rng.random(len(points)) < 0.7
    points[corner, 0] = rng.integers(0, 200, corner.sum()) / 10
    points[corner, 1] = rng.integers(0, 200, corner.sum()) / 10
    points[corner, 2] = rng.integers(0, 5, corner.sum())
    inside = (points[:, 0] < 20) & (points[:, 1] < 20)
    odd = (points[:, 0] * 10 + points[:, 1] * 7 + points[:, 3]) % 5 > 2
    labels = np.where(inside, odd, points[:, 2] > 200)
    return RandomForestClassifier(10, max_depth=12, random_state=0).fit(SCHEMA.encode(points), labels)


FOREST = rare_forest()
IMPORTED_TREES = read_trees(FOREST, SCHEMA)
assert IMPORTED_TREES is not None


def imported(ensemble: Ensemble) -> Any:
    assert IMPORTED_TREES is not None
    return model_of(replace(IMPORTED_TREES, ensemble=ensemble), FOREST, SCHEMA, front=[], classes=(), regression=False)


def changed(**fields: Any) -> Ensemble:
    ensemble = IMPORTED_TREES.ensemble  # type: ignore[union-attr]
    return replace(ensemble, nodes=replace(ensemble.nodes, **fields))


@pytest.mark.long
def test_every_misread_split_is_found() -> None:
    """A threshold that is off by one float32, or two children that are exchanged: any of them."""
    nodes, rng = IMPORTED_TREES.ensemble.nodes, np.random.default_rng(1)  # type: ignore[union-attr]
    assert imported(IMPORTED_TREES.ensemble).classes == (False, True)  # type: ignore[union-attr]
    inner = np.flatnonzero((nodes.column >= 0) & (nodes.column < 3))
    halves = np.flatnonzero(nodes.column >= 0)
    for node in rng.choice(inner, 100, replace=False):
        threshold = nodes.threshold.copy()
        number = np.float32(nodes.threshold[node])
        number = number if number <= nodes.threshold[node] else np.nextafter(number, np.float32(-np.inf))
        whole = nodes.column[node] == 2
        threshold[node] = nodes.threshold[node] - 1.0 if whole else np.nextafter(number, np.float32(-np.inf))
        own = nodes.threshold[nodes.column == nodes.column[node]]
        if (own == nodes.threshold[node]).sum() == 1 and not (own == threshold[node]).any():
            with pytest.raises(ModelError, match="disagree by"):
                imported(changed(threshold=threshold))
    for node in rng.choice(halves, 40, replace=False):
        left, right = nodes.left.copy(), nodes.right.copy()
        left[node], right[node] = right[node], left[node]
        with pytest.raises(ModelError, match="disagree by"):
            imported(changed(left=left, right=right))


def test_every_leaf_is_reached() -> None:
    form = imported(IMPORTED_TREES.ensemble).function.ensemble  # type: ignore[union-attr]
    reached = np.unique(form.leaves(edge_points(form, SCHEMA)))
    assert len(reached) == len(form.values) > 300
    at_random = np.unique(form.leaves(SCHEMA.sample(20_000, np.random.default_rng(0))))
    assert len(at_random) < len(form.values) / 2


def test_the_code_0_of_a_category_is_no_missing_value_to_lightgbm() -> None:
    """With zero_as_missing, zeros of numbers are missing, and codes of categories are not."""
    schema = Schema([Categorical("town", TOWNS[:4]), Integer("n", -2, 3)])
    rng = np.random.default_rng(0)
    points = schema.sample(400, rng)
    labels = ((points[:, 0] == 0) & (points[:, 1] > 0)).astype(int)
    frame = pd.DataFrame({
        "town": pd.Categorical([TOWNS[int(k)] for k in points[:, 0]], categories=TOWNS[:4]),
        "n": points[:, 1].astype(int),
    })  # fmt: skip
    options = {"min_child_samples": 2, "min_data_per_group": 1, "cat_smooth": 1.0, "n_estimators": 8, "verbose": -1}
    fitted = lightgbm.LGBMClassifier(zero_as_missing=True, n_jobs=1, **options).fit(frame, labels)
    model = import_model(fitted, schema)
    every = np.array([(k, n) for k in range(4) for n in range(-2, 4)], dtype=np.float64)
    table = pd.DataFrame({
        "town": pd.Categorical([TOWNS[int(k)] for k in every[:, 0]], categories=TOWNS[:4]),
        "n": every[:, 1].astype(int),
    })  # fmt: skip
    assert np.array_equal(model.exact_scores(every)[:, 0], fitted.predict(table, raw_score=True))
    assert model.decide(model.exact_scores(every)).any()
    assert isinstance(Explainer(model).explain({"town": "t1", "n": 2}), Nearest)


def test_every_edge_of_a_scorecard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bin one number wide among a million, misread: found at its edge."""
    from ifonly.model.importers import scorecard

    bins = [{"below": 500_000, "points": 0}, {"up_to": 500_000, "points": 9}, {"points": 0}]
    card = Scorecard.from_dict({"base": 0, "features": {"x": bins, "n": [{"points": 1}]}})
    assert import_model(card, SCHEMA).classes == ()
    whole = scorecard._edges
    monkeypatch.setattr(scorecard, "_tree", lambda units, i: _without_edges(scorecard, whole, units, i))
    with pytest.raises(ModelError, match="disagree by 9"):
        import_model(card, SCHEMA)


def _without_edges(scorecard: Any, whole: Any, units: Any, i: int) -> Any:
    """The tree of a feature whose edges were overlooked."""
    from ifonly.model.trees.tables import Axis, tree_of_table

    value = np.array([[units.value(i, units.schema.features[i].upper if i != 3 else 0.0)]], dtype=np.float64)
    return tree_of_table([Axis(i, np.zeros(0))], value, 0)
