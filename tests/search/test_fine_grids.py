"""Values of a number whose own value is off its grid, rounding together, and what a fine grid costs."""

import math

import numpy as np
import pytest
from harness import compiled

from ifonly import Explainer, Network, Real, Schema, datasets
from ifonly.model import network_model
from ifonly.solvers.search.kernels import fine_grids, node
from ifonly.solvers.search.kernels.layout import (
    BASE,
    DOWN,
    FEATURE,
    FIRST,
    FLOAT_ROWS,
    INT_ROWS,
    INTEGER,
    ITEM_DOWN,
    ITEM_GRID_OFFSET,
    ITEM_KIND,
    ITEM_RATE,
    UP,
    X,
)
from ifonly.solvers.search.worker import Budget


@pytest.mark.parametrize("grid_offset", [0.0, 0.25, 0.1234567, 1.0 - 1e-9])
def test_values_in_order(grid_offset):
    below, following = compiled(node.value_below), compiled(node.next_value)
    values = sorted({0.0, *(k + grid_offset for k in range(-6, 6))})
    for before, after in zip(values, values[1:], strict=False):
        assert following(before, grid_offset, 1.0) == after
        assert following(after, grid_offset, -1.0) == before
        assert below(before, grid_offset) == before
        assert below(0.5 * (before + after), grid_offset) == before or after - before < 1e-8


@pytest.mark.long
@pytest.mark.parametrize("grid_offsets", [(0.0, 0.0, 0.0), (0.3, 0.0, 0.8)])
def test_numbers_rounded_together_gain_as_much_and_cost_less(grid_offsets):
    rng = np.random.default_rng(5)
    better = 0
    for _ in range(50):
        F, I = np.zeros((FLOAT_ROWS, 4)), np.zeros((INT_ROWS, 5), dtype=np.int64)
        I[FIRST, :4], I[FEATURE, :3], I[ITEM_KIND, :3] = range(4), range(3), INTEGER
        F[UP, :3] = np.array(grid_offsets) + 1000.0
        F[DOWN, :3] = 1000.0 - np.array(grid_offsets)
        F[ITEM_RATE, :3] = F[ITEM_DOWN, :3] = rate = rng.uniform(1e-3, 2e-3, 3)
        F[ITEM_GRID_OFFSET, :3] = grid_offsets
        slope = rng.uniform(0.5, 2.0, 3) * rng.choice([-1.0, 1.0], 3)
        y = slope / rate**2 * 1e-4  # a minimiser of squares on a plane
        take = np.abs(slope * y)
        first = np.where(
            slope > 0.0, grid_offsets, np.where(np.array(grid_offsets) > 0.0, 1.0 - np.array(grid_offsets), 0.0)
        )
        up = np.sign(slope) * (np.ceil(np.abs(y) - first) + first)
        F[X, :3], F[BASE, :3] = up, 0.0
        if compiled(fine_grids.round_together)(3, slope, take, 0.0, F, I):
            better += 1
            found = F[X, :3].copy()
            assert slope @ found >= take.sum() - 1e-9
            assert ((rate * found) ** 2).sum() < ((rate * up) ** 2).sum()
            assert np.allclose((found - grid_offsets) % 1.0, 0.0, atol=1e-9) or np.allclose(
                np.abs((found - grid_offsets) % 1.0 - 0.5), 0.5
            )
        else:
            assert (F[X, :3] == up).all()
    assert better > 40


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_fine_grid_costs_about_what_real_numbers_do(norm):
    data, model = datasets.load("credit", rules=False), datasets.network("credit", rules=False)
    points = data.points()[:400]
    denied = points[model.scores(points)[:, 0] < 0][:30]
    features = [Real(f.name, f.lower, f.upper, step="0.01") if isinstance(f, Real) else f for f in data.schema.features]
    stepped = network_model(model.network, Schema(features, data.schema.columns), classes=model.classes)
    rows = [data.schema.row(point) for point in denied]
    real, grid = (Explainer(one).explain_many(rows, distance=norm) for one in (model, stepped))
    assert all(answer.status == "nearest" for answer in (*real, *grid))
    assert sum(answer.nodes for answer in grid) <= 1.5 * sum(answer.nodes for answer in real)
    assert all(b.upper >= a.lower for a, b in zip(real, grid, strict=True))


def test_a_row_on_the_edge_of_a_rule_takes_one_more_search(monkeypatch):
    """What the rule leaves is one step nearer than what a search may return; the model's rounding is not in doubt, so
    nothing is searched for that."""
    searches, searched = [], Budget.on

    def counted(budget, packed, batch, radius):
        searches.append(float(batch.best[0, -1]))
        searched(budget, packed, batch, radius)

    monkeypatch.setattr(Budget, "on", counted)
    schema = Schema([Real("most", 0, 1000, step=0.01), Real("last", 0, 1000, step=0.01), Real("age", 0, 100)])
    curved = [
        ([[0.3, 1.0, 0.01], [0.1, -0.5, 0.02], [0.0, 1.0, -0.1]], [-12.0, 3.0, 1.0]),
        ([[1.0, -0.7, 0.4]], [-9.0]),
    ]
    for layers, value in (([([[0.0, 1.0, 0.0]], [-12.0])], 12.01), (curved, 12.65)):
        explainer = Explainer(Network.of(layers), schema=schema, classes=("no", "yes"), constraints=["last <= most"])
        searches.clear()
        answer = explainer.explain({"most": 10.0, "last": 5.0, "age": 30.0}, target="yes")
        assert answer.status == "nearest"
        assert answer.counterfactual == {"most": value, "last": value, "age": 30.0}
        assert len(searches) == 2 and searches[0] == math.inf
        assert answer.upper < searches[1] < math.inf  # below the row of the first search
