"""Values of a number whose own value is off its grid, rounding together, and what a fine grid costs."""

import math

import numpy as np
import pytest
from harness import compiled
from random_rules import random_ruled_problem

from ifonly import Explainer, Network, Real, Schema, datasets
from ifonly.methods import Enumerate
from ifonly.model import network_model
from ifonly.problem.parts import UnrolledColumns
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules.rule import Rule
from ifonly.schema import Numeric
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


@pytest.mark.parametrize("own", [10.0, 10.005], ids=["on the grid", "off the grid"])
def test_a_row_on_the_edge_of_a_rule_takes_one_more_search_off_the_grid(monkeypatch, own):
    """On its grid, a rule's value is in no doubt. Off it, what the rule leaves is one step nearer than what a search may
    return; the model's rounding is not in doubt, so nothing is searched for that."""
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
        answer = explainer.explain({"most": own, "last": 5.0, "age": 30.0}, target="yes")
        assert answer.status == "nearest"
        assert answer.counterfactual == {"most": value, "last": value, "age": 30.0}
        assert len(searches) == (1 if own == 10.0 else 2) and searches[0] == math.inf
        assert all(answer.upper < below < math.inf for below in searches[1:])  # below the row of the first search


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_amounts_in_cents_stand_on_the_edges_of_rules(norm):
    """Rows of Credit whose nearest row is on the edge of a rule in cents: a search that may not return it opens up to
    200,000 nodes under l2."""
    data, explainer = datasets.load("credit"), Explainer(datasets.network("credit")).using(reasons=False)
    for person in (776, 5743, 6732, 9023, 23745):
        answer = explainer.explain(data.row(person), distance=norm)
        assert answer.status == "nearest" and answer.nodes < 3000
        bill = answer.counterfactual["MostRecentBillAmount"]
        assert bill not in (70.01, 250.01)


@pytest.mark.parametrize("norm", ["l0", "l1", "linf"])
def test_rules_about_thirds_are_judged_as_they_are_written(norm):
    """Of 1/3 and 1/3 a rule adds up 0.3333333333333333 twice: a sum that is 2/3 by the grid is below it as written."""
    schema = Schema([Real("x", 0, 1, step="1/3"), Real("y", 0, 1, step="1/3")])
    explainer = Explainer(network_model(Network.of([([[1.0, 1.2]], [-0.5])]), schema, classes=("no", "yes")))
    for rule in ("3 * x + 3 * y >= 2", "x + 2 * y >= 1", "x >= 2 * y"):
        found, every = (
            one.explain({"x": 0.0, "y": 0.0}, constraints=[rule], distance=norm)
            for one in (explainer, explainer.using(Enumerate()))
        )
        assert found.upper == pytest.approx(every.upper) and found.lower <= every.upper


def test_clauses_about_grids_say_how_far_below_zero_they_can_be():
    """A part is at least 0 on rows that keep the rule, and at most minus its gap on all others whose numbers are on
    their grids; judged by the rule itself."""
    told = 0
    for seed in range(150):
        question, _ = random_ruled_problem(seed, finite=True, steps=True)
        schema, columns = question.schema, UnrolledColumns(question.schema)
        if not schema.grids:
            continue
        points, start = schema.sample(300, np.random.default_rng(seed)), columns.start
        unrolled = np.zeros((len(points), columns.width))
        for g, feature in enumerate(schema.features):
            at = start[g] + (0 if isinstance(feature, Numeric) else points[:, g].astype(int))
            unrolled[np.arange(len(points)), at] = points[:, g] if isinstance(feature, Numeric) else 1.0
        for rule in question.rules:
            if not isinstance(rule, Rule):
                continue
            own = rule.parts(columns)
            if not own:  # every row keeps it
                continue
            values = np.array([part.value(unrolled) for part in own]).reshape(len(own), -1)
            gaps = np.array([1.0 if part.whole else part.gap for part in own])[:, None]
            sure = np.broadcast_to(gaps > 1e-9, values.shape)
            assert ((values >= -0.01 * gaps) | (values <= -0.99 * gaps))[sure].all(), (seed, rule.describe())
            if (gaps > 1e-9).all():
                assert np.array_equal((values >= -0.5 * gaps).all(axis=0), rows_allowed(rule, schema, points, points))
            told += sum(part.gap > 0.0 for part in own)
    assert told > 50
