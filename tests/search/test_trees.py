"""The search for trees: limits and the bounds it leaves, progress, threads, partners inside one cell, ties."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ifonly import Explainer, Integer, Real, Schema
from ifonly.compiling import Kernels
from ifonly.model import Model
from ifonly.model.trees import Ensemble, LibraryTree, Summation, Trees
from ifonly.problem import ClassTarget, Distance, OnlyWith, Question, Steps
from ifonly.problem.rules import read_constraint
from ifonly.results import Limits, Progress, StoppedBy
from ifonly.solvers.search import Search
from ifonly.solvers.search.compiled import KERNELS
from ifonly.solvers.search.trees import forest_search

NO_LIMITS = Limits()


def model_of(schema: Schema, trees: list[LibraryTree], shift: float = 0.0) -> Model:
    summation = Summation(start=np.zeros(1), shift=np.array([shift]))
    function = Trees(Ensemble.of(trees, columns=len(schema), summation=summation), schema)
    return Model(function=function, schema=schema, original=function.ensemble.scores, classes=("no", "yes"))


def stump(column: int, threshold: float, left: float, right: float) -> LibraryTree:
    return LibraryTree(
        column=[column, -1, -1], threshold=[threshold, 0.0, 0.0], left=[1, -1, -1], right=[2, -1, -1],
        value=[0.0, left, right], adds_to=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def hard() -> tuple[Question, np.ndarray]:
    """Many features that all count a little: a knapsack."""
    rng = np.random.default_rng(0)
    schema = Schema([Real(f"f{i}", 0.0, 1.0) for i in range(14)])
    trees = [stump(g, c, 0.0, float(rng.uniform(0.8, 1.2))) for g in range(14) for c in (0.3, 0.5, 0.7)]
    question = Question(model=model_of(schema, trees, shift=-22.0), target=ClassTarget("yes"))
    return question, rng.uniform(0.0, 0.25, (3, 14))


def solved(question: Question, points: np.ndarray, limits: Limits = NO_LIMITS, **options: object) -> list:
    return Search(table_rows=0).prepare(question).solve(points, limits, **options)


def test_a_limit_leaves_a_row_and_a_bound(hard: tuple[Question, np.ndarray]) -> None:
    question, points = hard
    nearest = question.measure.between(points[0], solved(question, points[:1])[0].point)
    for limits, by in ((Limits(nodes=20), StoppedBy.NODES), (Limits(seconds=1e-9), StoppedBy.SECONDS)):
        (claim,) = solved(question, points[:1], limits)
        assert claim.stop is not None and claim.stop.by is by
        assert 0.0 <= claim.lower <= nearest
        assert claim.point is not None and question.measure.between(points[0], claim.point) >= nearest * (1 - 1e-12)


def test_memory_is_a_limit_too(hard: tuple[Question, np.ndarray]) -> None:
    question, points = hard
    (claim,) = solved(question, points[:1], Limits(memory_bytes=100))
    assert claim.stop is not None and claim.stop.by is StoppedBy.MEMORY


def test_threads_change_nothing_and_progress_counts(hard: tuple[Question, np.ndarray]) -> None:
    question, points = hard
    heard: list[Progress] = []
    alone, together = solved(question, points), solved(question, points, threads=2, listen=heard.append)
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one.point, other.point) and one.lower == other.lower and one.nodes == other.nodes
    assert heard[-1].finished == heard[-1].people == 3
    assert all(told.lower <= told.upper for told in heard)


def test_a_cut_is_crossed_by_one_float() -> None:
    schema = Schema([Real("x", 0.0, 1.0)])
    question = Question(model=model_of(schema, [stump(0, 0.3, -1.0, 1.0)]), target=ClassTarget("yes"))
    (claim,) = solved(question, np.array([[0.3]]))
    assert claim.point is not None and claim.point[0] == np.nextafter(0.3, 1.0)


def test_steps_are_decimals() -> None:
    """Three steps of 0.1 from 0 are 0.3, which is not above a cut at 0.3, though 0.1 + 0.1 + 0.1 is."""
    schema = Schema([Real("x", 0.0, 1.0)])
    model = model_of(schema, [stump(0, 0.3, -1.0, 1.0)])
    question = Question(model=model, target=ClassTarget("yes"), constraints=[Steps("x", 0.1)])
    (claim,) = solved(question, np.array([[0.0]]))
    assert claim.point is not None and claim.point[0] == 0.4


def test_a_partner_may_change_inside_its_cell() -> None:
    schema = Schema([Integer("age", 0, 9), Integer("job", 0, 9)])
    model = model_of(schema, [stump(0, 4, -1.0, 1.0)])
    question = Question(
        model=model, target=ClassTarget("yes"), distance=Distance("l1"), constraints=[OnlyWith("age", "job")]
    )
    (claim,) = solved(question, np.array([[3.0, 7.0]]))
    assert claim.point is not None and claim.point[0] == 5.0 and abs(claim.point[1] - 7.0) == 1.0


def test_a_rule_elsewhere_does_not_lose_the_next_number_above_a_cut() -> None:
    """The person's own value is the cut: the next float64 above it is a change that a sum of float64 may lose."""
    schema = Schema([Real("x", -1.352478962636067, -0.35247896263606693), Real("y", -1.0, 0.0)])
    cut = -0.8781776654999041
    model = model_of(schema, [stump(0, cut, -1.0, 1.0)])
    rule = read_constraint("not (y > -0.9 and y < -0.5)", schema)
    question = Question(model=model, target=ClassTarget("yes", margin=0.0), constraints=[rule])
    (claim,) = solved(question, np.array([[cut, -0.7]]), Limits(seconds=600.0))
    assert claim.stop is None
    assert claim.point is not None and claim.point[0] == np.nextafter(cut, 0.0)
    assert rule.allows_row(schema, claim.point, claim.point)
    assert abs(claim.point[1] + 0.7) == pytest.approx(0.2, abs=1e-6)  # -0.9 and -0.5 are equally near


def test_rules_can_be_the_first_thing_that_a_process_asks_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for networks, which is asked about them, has its kernels ready however little time there is."""
    monkeypatch.setattr(KERNELS, "now", None)
    monkeypatch.setattr(KERNELS, "compiled", False)
    schema = Schema([Integer("x", 0, 9), Integer("y", 0, 9)])
    question = Question(
        model=model_of(schema, [stump(0, 4, -1.0, 1.0)]),
        target=ClassTarget("yes"),
        constraints=[read_constraint("x + y >= 9", schema)],
    )
    (claim,) = solved(question, np.array([[3.0, 0.0]]), Limits(seconds=0.2))
    assert claim.lower >= 0.0


@pytest.mark.parametrize("wanted, found", [("no", True), ("yes", False)])
def test_a_tie_is_the_first_class(wanted: str, found: bool) -> None:
    schema = Schema([Integer("x", 0, 3)])
    model = model_of(schema, [stump(0, 1, 1.0 if wanted == "no" else -1.0, 0.0)])
    question = Question(model=model, target=ClassTarget(wanted, margin=0.0))
    (claim,) = solved(question, np.array([[0.0]]))
    assert (claim.point is not None) is found
    assert claim.lower < math.inf if found else claim.lower == math.inf


def test_a_bound_grows_while_the_search_goes_on(
    hard: tuple[Question, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where everything takes too long, what is open has a bound from its prices: most of the distance at once."""
    question, points = hard
    monkeypatch.setattr(forest_search, "PLAIN_NODES", 5)
    monkeypatch.setattr(forest_search, "PRICED_NODES", 10)
    nearest = solved(question, points[:1])[0].lower
    (claim,) = solved(question, points[:1], Limits(nodes=12))
    assert claim.stop is not None and 0.8 * nearest <= claim.lower <= nearest


def test_luck_shares_the_limits(hard: tuple[Question, np.ndarray]) -> None:
    """Where no row is sure, whether luck could make one is asked with what is left of the limits."""
    question, points = hard
    nodes = solved(question, points[:1])[0].nodes
    solver = Search(table_rows=0).prepare(question)
    far = solver.packed.forest._replace(demand=solver.packed.forest.demand + np.array([[30.0], [0.0], [0.0], [30.0]]))
    solver.packed = replace(solver.packed, forest=far, any_rounding_forest=solver.packed.forest)
    (unlimited,) = solver.solve(points[:1], NO_LIMITS)
    assert unlimited.point is None and unlimited.lower < math.inf and unlimited.nodes >= nodes
    (stopped,) = solver.solve(points[:1], Limits(nodes=1))
    assert stopped.stop is not None and stopped.stop.by is StoppedBy.NODES and stopped.nodes <= 1


def test_compiling_begins_before_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bool] = []
    kernels = Kernels("nowhere:KERNELS", "nothing", lambda: ({}, 0), lambda _: None)
    monkeypatch.setattr(Kernels, "cached", False)
    monkeypatch.setattr(Kernels, "_compile_in_background", lambda self: begun.append(True))
    monkeypatch.delenv("IFONLY_COMPILE", raising=False)
    kernels.begin()
    assert begun == [True]
    kernels.compiled = True
    kernels.begin()
    assert begun == [True]
    monkeypatch.setattr("ifonly.solvers.search.trees.solver.TREE_KERNELS.begin", lambda: begun.append(False))
    Explainer(model_of(Schema([Real("x", 0.0, 1.0)]), [stump(0, 0.3, -1.0, 1.0)]))
    assert begun == [True, False]


def test_what_no_question_changes_is_shared_by_all() -> None:
    """A number needs no bits, however many cuts it has; and the second question brings only what is its own."""
    schema = Schema([Real("x", 0.0, 1.0), Real("y", 0.0, 1.0)])
    trees = [stump(k % 2, (k + 1) / 1002, 0.0, 1.0) for k in range(1000)]
    model = model_of(schema, trees, shift=-500.0)
    first, second = (
        Search().prepare(Question(model=model, target=ClassTarget("yes"), distance=Distance(norm))).packed.forest
        for norm in ("l1", "l2")
    )
    assert first.limit_set.shape == (2000, 1)
    own = sum(np.asarray(part).nbytes for part in second) - sum(
        part.nbytes for part in second if isinstance(part, np.ndarray) and any(part is other for other in first)
    )
    leaves = second.value.size
    assert own < 20 * leaves < sum(np.asarray(part).nbytes for part in second) / 2
