"""The search for any row that trees decide as asked, against all rows: a row is found exactly where there is one."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from random_trees import random_tree_problem
from test_sufficient import all_rows

from ifonly import Integer
from ifonly.answering.answerer import ANY_ROW
from ifonly.problem import Question
from ifonly.results import Limits
from ifonly.schema import Choice
from ifonly.solvers.search.trees import first_row
from ifonly.solvers.search.trees.compiled import TREE_KERNELS
from ifonly.solvers.search.trees.kernels.layout import REQUIRED
from ifonly.solvers.search.trees.solver import ForestSolver

CASES = int(os.environ.get("IFONLY_FIRST_ROW_CASES", "40"))
MOST_FEATURES = 6


def check(question: Question, point: np.ndarray, solver: ForestSolver) -> str:
    rows = all_rows(question.schema)
    rows = rows[[question.allows(point, row) is None for row in rows]]
    c, d = question.conditions
    score = (question.model.exact_scores(rows) @ c.T - d).min(axis=1, initial=np.inf) if len(rows) else np.zeros(0)
    packed = solver.packed
    sure = bool((score >= packed.forest.demand[REQUIRED].max()).any())
    weaker = packed.any_rounding_forest or packed.forest
    some = bool((score >= weaker.demand[REQUIRED].max()).any())
    claim = solver.solve(point[None, :], Limits())[0]
    assert claim.stop is None
    if claim.point is not None:
        assert question.allows(point, claim.point) is None
        own = question.model.exact_scores(claim.point[None, :]) @ c.T - d
        assert (own >= packed.forest.demand[REQUIRED]).all()
        return "a row"
    assert not sure
    assert claim.lower == (0.0 if some else np.inf)
    return "in doubt" if some else "none"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize("mergings", [first_row.MERGINGS, ((1, 8), (3, 64))])
def test_a_row_is_found_exactly_where_there_is_one(
    ruled: bool, mergings: tuple[tuple[int, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lists that are merged soon, too."""
    TREE_KERNELS.load()
    monkeypatch.setattr(first_row, "MERGINGS", mergings)
    kinds: Counter[str] = Counter()
    for seed in range(CASES, 4 * CASES) if ruled else range(CASES):  # under rules, fewer questions are of this kind
        question, points = random_tree_problem(seed, finite=True, ruled=ruled)
        features = question.schema.features
        if any(not isinstance(f, Choice | Integer) for f in features) or len(features) > MOST_FEATURES:
            continue
        solver = ForestSolver(question, ANY_ROW)
        if first_row.takes(solver.packed, solver.costs.most_changes):
            kinds[check(question, points[0], solver)] += 1
    assert kinds["a row"] >= 5, kinds
    assert kinds["none"] >= 3, kinds
