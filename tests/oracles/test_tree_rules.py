"""Rules in boxes of cells against every row: what is dropped breaks a rule, and what is nearest without a search is."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from comparison import answers, disagreements
from random_trees import random_tree_problem
from sklearn.tree import DecisionTreeClassifier

from ifonly import Derived, Explainer, Nearest
from ifonly.problem import Question
from ifonly.problem.costs import People
from ifonly.results import Limits
from ifonly.schema import Choice, Integer, Real, Schema
from ifonly.solvers.search import Enumerate, Search
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.trees import forest_search, person_search
from ifonly.solvers.search.trees.forest_search import ForestSearch
from ifonly.solvers.search.trees.open_boxes import everything
from ifonly.solvers.search.trees.solver import ForestSolver

SEARCH = Search(table_rows=0)
MOST_ROWS = 3000


def rows_of(question: Question, people: People) -> np.ndarray | None:
    """Every row that the only person may have; None where there are many."""
    values: list[Sequence[float]] = []
    for g, feature in enumerate(question.schema.features):
        if isinstance(feature, Choice):
            values.append(range(len(feature.options)))
        elif isinstance(feature, Real):  # in a finite question at most one value is left of it
            assert people.lower[0, g] >= people.upper[0, g]
            values.append([float(people.lower[0, g])])
        else:
            assert isinstance(feature, Integer)
            values.append(range(int(feature.lower), int(feature.upper) + 1, int(feature.step)))
    if math.prod(map(len, values)) > MOST_ROWS:
        return None
    return np.array(list(itertools.product(*values)), dtype=np.float64)


def search_of(question: Question, point: np.ndarray) -> ForestSearch | None:
    """The search of one person, over as soon as it begins; None where there is no rule that needs a look at the row."""
    solver = SEARCH.prepare(question)
    assert isinstance(solver, ForestSolver)
    if solver.packed.rules is None:
        return None
    people, quiet = solver.costs.domains(point[None, :]), ProgressReporter(0, None)
    search = ForestSearch(solver.packed, solver.packed.forest, people, 0, Limits(nodes=1), quiet, threading.Event())
    search.claim()
    return search


def random_box(search: ForestSearch, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    least, most, left, _ = everything(search.forest)
    for g in range(len(least)):
        if search.forest.choice[g]:
            gone = rng.random(int(most[g]) + 1) < 0.3
            for k in np.flatnonzero(gone).tolist():
                left[g, k >> 6] &= ~(np.uint64(1) << np.uint64(k & 63))
        else:
            least[g], most[g] = np.sort(rng.integers(0, most[g] + 1, 2))
    return least, most, left


@pytest.mark.parametrize("block", range(4))
def test_the_nearest_row_of_a_box_is_that_of_all_its_rows(block: int) -> None:
    told = found = 0
    for seed in range(60 * block, 60 * (block + 1)):
        question, points = random_tree_problem(seed, finite=True, ruled=True)
        search = search_of(question, points[0])
        rows = None if search is None else rows_of(question, search.people)
        if search is None or search.packed.rules is None or rows is None:
            continue
        rng = np.random.default_rng([seed, 41])
        admitted = np.array([question.allows(points[0], row) is None for row in rows])
        distances = np.array([float(question.measure.between(points[0], row)) for row in rows])
        for _ in range(8):
            inside = search.packed.rules.inside(search.people, random_box(search, rng))
            held = admitted.copy()
            for g, feature in enumerate(question.schema.features):
                if isinstance(feature, Choice):
                    columns = inside.allowed[0, search.packed.cells.costs.start[g] :]
                    held &= columns[rows[:, g].astype(int)]
                else:
                    held &= (rows[:, g] >= inside.lower[0, g]) & (rows[:, g] <= inside.upper[0, g])
            best = float(distances[held].min(initial=math.inf))
            known = search.narrowing.nearest(inside)
            if known is None:
                continue
            told += 1
            assert (known.point is None) == (best == math.inf), seed
            assert known.lower <= best, seed
            if known.point is not None:
                found += 1
                assert question.allows(points[0], known.point) is None
                assert math.isclose(float(question.measure.between(points[0], known.point)), best, abs_tol=1e-12), seed
    assert told > 100
    assert found > 50


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("block", range(4))
def test_first_rows_and_narrowed_boxes_change_no_answer(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the rules refuse the nearest row without them, and boxes are done with by narrowing them."""
    around, narrowed = [], []
    look, nearest = ForestSearch._looked_around, person_search.Narrowing.nearest

    def counted_look(self, *asked):
        claim = look(self, *asked)
        around.append(self.found is not None)
        return claim

    def counted_nearest(self, inside, below):
        known = nearest(self, inside, below)
        narrowed.append(known is not None)
        return known

    monkeypatch.setattr(ForestSearch, "_looked_around", counted_look)
    monkeypatch.setattr(person_search.Narrowing, "nearest", counted_nearest)
    monkeypatch.setattr(forest_search, "AROUND_NODES", [3, 20, 200, 1][block])
    for seed in range(400 + 60 * block, 400 + 60 * (block + 1)):
        question, points = random_tree_problem(seed, finite=True, ruled=True)
        ours, theirs = answers(question, points, SEARCH), answers(question, points, Enumerate())
        assert not list(disagreements(ours, theirs)), f"seed {seed}"
    assert any(around)
    assert sum(narrowed) > 3


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_box_at_the_edge_of_a_rule_is_searched(norm: str) -> None:
    """What rounding may take from a rule lets the box reach the edge of a case of a definition, where clauses do not
    tell which case it is; the nearest row of the box is far from there, and still proven."""
    schema = Schema([Real("x", 0, 1), Integer("k", 0, 3), Integer("d", 0, 6)])
    rows = np.array([[x, k, d] for x in (0.0, 1.0) for k in range(4) for d in range(7)])
    tree = DecisionTreeClassifier(random_state=0).fit(rows, rows[:, 2] >= 4)
    rule = Derived("d", "if x >= 0.4 then 2 * k else k")
    answer = Explainer(tree, schema=schema, constraints=[rule]).explain({"x": 0.6, "k": 0, "d": 0}, distance=norm)
    assert isinstance(answer, Nearest) and answer.counterfactual == {"x": 0.6, "k": 2, "d": 4}
