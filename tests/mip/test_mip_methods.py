"""MIP-OBJ and MIP-EXP against the reference optima, the exact search and one another; limits; contradictions."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from agreement import disagreements, methods
from random_problems import random_problem

from cases import load
from ifonly import ClassTarget, Explainer, Limits, Stop, StoppedBy
from ifonly.errors import Contradiction, QuestionError, UnsupportedQuestion
from ifonly.methods import MipExp, MipObj, MipSat, Search
from ifonly.problem import Question
from ifonly.solvers.common.backends import available
from ifonly.solvers.common.contradiction import check_bound
from ifonly.solvers.common.distances import StepOutcome, Verdict, nearest

GUROBI = pytest.mark.skipif(not available("gurobi"), reason="gurobipy is not installed")
DATASETS = ("compas", "credit", "adult")


def compare_with_reference(dataset, variant, norm, method, rows):
    model, points, optima = load(dataset, "2x10", variant)
    known = np.flatnonzero(np.isfinite(optima[norm]))[:rows]
    answers = (
        Explainer(model)
        .using(method)
        .explain_many(
            [model.schema.row(points[i]) for i in known],
            target=ClassTarget(1, 0.0),
            distance=norm,
            limits=Limits(seconds=600.0),
        )
    )
    for i, answer in zip(known, answers, strict=True):
        assert answer.upper == pytest.approx(optima[norm][i], abs=1e-6), (dataset, norm, i, answer)
        assert answer.lower <= optima[norm][i] + 1e-9
        assert answer.lower >= optima[norm][i] - 2e-6


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("norm", ["l0", "l1", "linf"])
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("method", [MipObj(), MipExp(gap=1e-6)], ids=["objective", "interval"])
def test_reference_optima(dataset, norm, method):
    compare_with_reference(dataset, "norm", norm, method, rows=2)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("variant", ["norm", "raw"])
@GUROBI
def test_reference_optima_l2_with_squares_in_the_solver(dataset, variant):
    compare_with_reference(dataset, variant, "l2", MipObj(backend="gurobi"), rows=2)


@pytest.mark.parametrize("dataset", ["compas", "adult"])
def test_reference_optima_l2_by_tangents(dataset):
    compare_with_reference(dataset, "norm", "l2", MipExp(gap=1e-6), rows=1)


@pytest.mark.parametrize("dataset", DATASETS)
def test_reference_optima_of_raw_inputs(dataset):
    compare_with_reference(dataset, "raw", "l1", MipExp(gap=1e-6), rows=1)
    compare_with_reference(dataset, "raw", "l1", MipObj(bounds="interval"), rows=1)


@pytest.mark.parametrize("dataset", ["credit", "adult"])
def test_small_distances_by_linf_are_proven_too(dataset):
    """The level of linf had a unit of its own: a solver's tolerance of 1e-9 was more than the gap of a small distance."""
    model, points, optima = load(dataset, "2x10", "raw")
    answer = (
        Explainer(model)
        .using(MipObj())
        .explain(model.schema.row(points[0]), target=ClassTarget(1, 0.0), distance="linf")
    )
    assert answer.status == "nearest" and answer.upper == pytest.approx(optima["linf"][0], rel=1e-6)


def test_tangents_of_whole_columns_are_whole():
    """Between whole numbers they hold too, but HiGHS 1.15 then proved bounds beyond this row's optimum."""
    model, points, optima = load("adult", "2x10", "norm")
    answer = (
        Explainer(model)
        .using(MipExp())
        .explain(model.schema.row(points[21]), target=ClassTarget(1, 0.0), distance="l2")
    )
    assert answer.lower <= optima["l2"][21] * (1.0 + 1e-7)
    assert answer.status == "nearest" and answer.upper == pytest.approx(optima["l2"][21], rel=1e-6)


@GUROBI
def test_a_very_small_distance_by_l2():
    """The box reached 1e-7 beyond the budget, Gurobi took its end for a solution, and the budget was left undecided."""
    model, points, optima = load("adult", "2x10", "raw")
    answer = (
        Explainer(model)
        .using(MipExp(backend="gurobi"))
        .explain(model.schema.row(points[24]), target=ClassTarget(1, 0.0), distance="l2")
    )
    assert answer.status == "nearest" and answer.upper == pytest.approx(optima["l2"][24], rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_methods_agree_on_random_questions(first):
    for seed in range(first, first + 10):
        question, points = random_problem(seed)
        sentences, _ = disagreements(question, points, methods())
        assert not sentences, f"random_problem({seed}): {sentences}"


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("seed", [118, 127, 148, 182, 184, 237, 238, 265])
def test_questions_that_were_hard(seed):
    """A program wrongly called infeasible; the factual itself on the margin; flat networks; squares by tangents."""
    question, points = random_problem(seed)
    sentences, _ = disagreements(question, points, [Search(), MipObj(), MipExp()])
    assert not sentences


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("backend", [name for name in ("gurobi", "scip") if available(name)])
def test_the_unbounded_encoding_finds_the_same(backend):
    method = MipObj(backend=backend, bounds="none")
    compare_with_reference("credit", "norm", "l1", method, rows=2)
    for seed in range(8):
        question, points = random_problem(seed)
        sentences, _ = disagreements(question, points, [Search(), method])
        assert not sentences, f"random_problem({seed}): {sentences}"


def test_bounds_that_a_method_does_not_have():
    question, _ = random_problem(0)
    with pytest.raises(UnsupportedQuestion, match=r"'highs' has no indicator constraints.*use backend='gurobi'"):
        MipObj(bounds="none").prepare(question)
    for method in (MipExp(bounds="none"), MipSat(bounds="none"), MipObj(bounds="tight")):
        with pytest.raises(QuestionError, match=r"There are no bounds .* choose one of linear, backward, interval"):
            method.prepare(question)


@pytest.mark.parametrize("method", [MipObj(), MipExp()], ids=["objective", "interval"])
def test_a_time_limit_is_kept_and_its_bound_is_a_bound(method):
    model, points, optima = load("adult", "2x50", "norm")
    row = model.schema.row(points[0])
    answer = (
        Explainer(model)
        .using(method)
        .explain(row, target=ClassTarget(1, 0.0), distance="l1", limits=Limits(seconds=0.05))
    )
    assert answer.lower <= optima["l1"][0] <= answer.upper
    assert answer.status in ("within", "unknown") and answer.stop is not None and answer.stop.is_limit


def test_a_contradiction_names_both_numbers_and_saves_the_problem():
    question, points = random_problem(0)
    assert isinstance(question, Question)
    check_bound(question, points[0], 0.25, 0.25, "a")
    with pytest.raises(Contradiction, match=r"nothing is nearer than 0.5, but a row at 0.25 is known") as caught:
        check_bound(question, points[0], 0.5, 0.25, "a")
    path = Path(str(caught.value).rsplit(" ", 1)[1].rstrip("."))
    saved = json.loads(path.read_text())
    path.unlink()
    assert saved["said"] == {"method": "a", "lower": 0.5, "upper": 0.25}
    assert saved["factual"] == points[0].tolist()
    assert [len(layer["bias"]) for layer in saved["model"]["network"]] == [
        len(layer.bias) for layer in question.model.network.layers
    ]


# ---------------------------------------------------------------------- the search on the distance


def step_at(optimum, sure=None):
    """A finder that knows the nearest row, and the nearest sure one."""
    sure = optimum if sure is None else sure

    def find(budget):
        if budget >= sure:
            return StepOutcome(verdict=Verdict.FOUND, point=np.zeros(1), distance=0.5 * (sure + budget))
        return StepOutcome(verdict=Verdict.UNDECIDED if budget >= optimum else Verdict.NONE)

    return find


@pytest.mark.parametrize("optimum", [1e-7, 3e-4, 0.3, 0.99])
@pytest.mark.parametrize("first", [1e-3, math.inf])
def test_the_search_finds_the_step(optimum, first):
    known = nearest(step_at(optimum), first=first, most=1.0, allowed=lambda upper: 1e-6 * upper)
    assert known.proven <= optimum <= known.upper
    assert known.upper - known.proven <= 1e-6 * known.upper
    assert len(known.budgets) < 80


def test_undecided_budgets_leave_a_gap_and_no_more():
    known = nearest(step_at(0.2, sure=0.3), first=1e-3, most=1.0, allowed=lambda _: 1e-6)
    assert known.proven == pytest.approx(0.2, abs=1e-6) and known.upper == pytest.approx(0.3, abs=1e-6)


def test_nothing_within_the_farthest_row_is_a_proof():
    known = nearest(step_at(2.0), first=1e-3, most=1.0, allowed=lambda _: 1e-6)
    assert known.proven == math.inf and known.point is None
    undecided = nearest(step_at(0.5, sure=2.0), first=1e-3, most=1.0, allowed=lambda _: 1e-6)
    assert undecided.proven == pytest.approx(0.5, abs=1e-6) and undecided.point is None


def test_what_stops_the_finder_stops_the_search():
    late = Stop(StoppedBy.SECONDS, 1.0)
    known = nearest(
        lambda _: StepOutcome(verdict=Verdict.STOPPED, stop=late), first=1e-3, most=1.0, allowed=lambda _: 1e-6
    )
    assert known.stop == late and known.proven == 0.0 and known.point is None
