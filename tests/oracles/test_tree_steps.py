"""Trees over numbers that move in steps: the search against the enumerator, for people on and off the grid."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from ifonly import ClassTarget, Distance, Explainer, Integer, Ordinal, Range, Real, Schema, import_model
from ifonly.methods import Enumerate
from ifonly.problem import Question
from ifonly.solvers.search.trees.kernels.layout import FREE, MUST
from ifonly.solvers.search.trees.solver import TREE_KERNELS, ForestSolver
from ifonly.tolerances import Tolerances

NORMS = ("l0", "l1", "l2", "linf")


def made(seed: int) -> tuple[Any, Schema, list[Any]]:
    rng = np.random.default_rng(seed)
    schema = Schema(
        [
            Real("price", 0.0, 0.5, step=0.01),
            Real("years", 0.0, 2.0, step="1/12"),
            Integer("n", 0, 3),
            Ordinal("grade", ["a", "b", "c"]),
        ]
    )
    points = np.column_stack([rng.uniform(0, 0.5, 200).round(3), rng.uniform(0, 2, 200), rng.integers(0, 4, 200),
                              rng.integers(0, 3, 200)])  # fmt: skip
    points[::2, 0] = points[::2, 0].round(2)
    encoded = schema.encode(points)
    weight = rng.normal(size=encoded.shape[1]) / encoded.std(axis=0).clip(1e-9)
    labels = (encoded @ weight + 0.3 * rng.normal(size=200) > np.median(encoded @ weight)).astype(int)
    model = (
        XGBClassifier(n_estimators=6, max_depth=3)
        if seed % 2
        else RandomForestClassifier(5, max_depth=3, random_state=seed)
    )
    fitted = model.fit(encoded, labels)
    return import_model(fitted, schema), schema, [schema.row(point) for point in points[:6]]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_what_the_enumerator_finds(seed: int) -> None:
    model, _, people = made(seed)
    explainer = Explainer(model)
    for k, row in enumerate(people):
        rules = [[], ["price only goes up"], ["at most 1 change"], ["years changes only with price"], ["n <= 2"],
                 ["price + n <= 2.5"]][k]  # fmt: skip
        asked: dict[str, Any] = {"distance": NORMS[(seed + k) % 4], "constraints": rules}
        ours, theirs = explainer.explain(row, **asked), explainer.using(Enumerate()).explain(row, **asked)
        assert ours.status == theirs.status, (seed, k, ours, theirs)
        assert ours.upper == pytest.approx(theirs.upper, rel=1e-9), (seed, k, ours, theirs)


@pytest.mark.parametrize("seed", range(30))
def test_the_prices_of_cells_are_those_of_the_nearest_steps_in_them(seed: int) -> None:
    """Against going through all steps: of every cell the least cost of a change into it, and of staying."""
    rng = np.random.default_rng(seed)
    step = str(rng.choice(["0.01", "0.05", "0.4", "1/7"]))
    schema = Schema([Real("x", -1, 1, step=step), Real("y", 0, 1)])
    grid = schema.grids[0]
    rows = np.column_stack([rng.uniform(-1, 1, 60), rng.random(60)])
    rows[::2, 0] = 2.0 * grid.values(rng.integers(0, grid.steps, 30)) - rows[1::2, 0]  # some cuts are on the grid
    fitted = DecisionTreeClassifier(max_depth=5, random_state=seed).fit(rows, rng.random(60) < 0.5)
    model = import_model(fitted, schema)
    norm = str(rng.choice(["l1", "l2", "linf", "l0"]))
    ends = sorted(rng.uniform(-1, 1, size=2).tolist())
    question = Question(model=model, target=ClassTarget(True), distance=Distance(norm, up={"x": 2.0}),
                        constraints=[Range("x", *ends)])  # fmt: skip
    solver = ForestSolver(question, Tolerances())
    cells, own = solver.packed.cells, float(grid.value(int(rng.integers(0, grid.steps + 1))))
    own = own if rng.random() < 0.7 else float(rng.uniform(-1, 1))
    priced = cells.person(cells.costs.domains(np.array([[own, 0.5]])), 0, TREE_KERNELS.now)
    every = [grid.value(k) for k in range(grid.steps + 1)]
    edges = [-math.inf, *cells.cuts(0).tolist(), math.inf]
    costs = cells.costs
    for k, (below, end) in enumerate(pairwise(edges)):
        inside = [v for v in every if below < v <= end and ends[0] <= v <= ends[1] and v != own]
        prices = [float(costs.jump[0] + (costs.rate if v > own else costs.rate_down)[0] * abs(v - own)) for v in inside]
        least = min((p**2 if norm == "l2" else p for p in prices), default=math.inf)
        assert priced.cost[MUST, k] == pytest.approx(least)
        stays = below < own <= end and ends[0] <= own <= ends[1]
        assert priced.cost[FREE, k] == pytest.approx(0.0 if stays else least)
        if math.isfinite(least):
            assert priced.value[MUST, k] in inside
