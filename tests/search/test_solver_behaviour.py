"""The search as a whole: limits that hold, interruptions, progress, and answers that depend on nothing but the question."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from questions import TENTS_OPTIMUM, beside_the_boundary, hard_people, hard_question

from cases import load
from ifonly import ClassTarget, Distance, Explainer, Limits, Nearest, NoneExists, OnlyUp, Range, Unknown, Within
from ifonly.methods import Enumerate, Search, Tolerances
from ifonly.problem import Question
from ifonly.results import Claim, Progress, Stop, StoppedBy
from ifonly.solvers.search import load_kernels, worker
from ifonly.solvers.search.kernels import search as kernel

NORMS: tuple[Any, ...] = ("l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7})
IDS = ("l0", "l1", "l2", "linf", "mixture")
every_norm = pytest.mark.parametrize("norm", NORMS, ids=IDS)


HARD = Search(probing="never")
"""With probing, the hard question takes a few nodes under l1."""


def solve(question: Question, points: np.ndarray, limits: Limits | None = None, **options: Any) -> list[Claim]:
    """The search itself, without the witness check and the shorter numbers of the API."""
    return Search(table_rows=0).prepare(question).solve(points, limits or Limits(), **options)


def told(claim: Claim) -> tuple[Any, ...]:
    """All of a claim but the seconds."""
    return claim.lower, claim.stop, claim.nodes, None if claim.point is None else claim.point.tolist()


def credit(norm: Any = "l1", margin: float = 0.0, constraints: Any = ()) -> tuple[Question, np.ndarray, np.ndarray]:
    """The credit network: question, people, and the optima where they are known."""
    model, points, optima = load("credit", "2x10", "norm")
    target = ClassTarget(1, margin=margin)
    question = Question(model=model, target=target, distance=Distance(norm), constraints=constraints)
    return question, points, optima.get(norm if isinstance(norm, str) else "", np.zeros(0))


LONG = 300.0
"""Seconds: what nothing here takes, unless it does not end."""


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Kernels are loaded before anything is timed."""
    load_kernels()


# ---------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_time_limit_holds(norm: str) -> None:
    question, limits = hard_question(norm), Limits(seconds=0.3)
    begun, worked = time.perf_counter(), time.thread_time()  # of the processor: others do not stretch it
    answer = (
        Explainer(question.model)
        .using(HARD)
        .explain(question.schema.row(hard_people(1)[0]), target=question.target, distance=norm, limits=limits)
    )
    assert time.thread_time() - worked < 1.5
    assert isinstance(answer, Within | Unknown)
    assert answer.note == "time limit of 0.3 s"
    assert 0.3 <= answer.seconds <= time.perf_counter() - begun
    assert answer.lower <= TENTS_OPTIMUM <= answer.upper


def test_the_time_limit_is_a_persons_own() -> None:
    worked = time.thread_time()
    claims = solve(hard_question(), hard_people(3), Limits(seconds=0.2))
    assert time.thread_time() - worked < 2.0
    assert [claim.stop for claim in claims] == [Stop(StoppedBy.SECONDS, 0.2)] * 3


@pytest.mark.parametrize("nodes", [1, 2, 3, 50, 255, 256, 257, 1000])
def test_the_node_limit_holds(nodes: int) -> None:
    """Nodes come in pairs: at most one more than was asked for."""
    (claim,) = solve(hard_question(), hard_people(1), Limits(nodes=nodes))
    assert nodes <= claim.nodes <= nodes + 1
    assert claim.stop == Stop(StoppedBy.NODES, nodes)
    assert claim.lower <= TENTS_OPTIMUM


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    question, points, _ = credit("l2")
    free = solve(question, points[:10])
    limited = solve(question, points[:10], Limits(seconds=LONG, nodes=10**6, memory_bytes=2**28))
    assert [told(claim) for claim in limited] == [told(claim) for claim in free]


def test_a_proven_bound_is_never_lost_to_a_limit() -> None:
    """More nodes never prove less, and never more than the optimum."""
    question, points, optima = credit("l2")
    hardest = int(np.argmax([claim.nodes for claim in solve(question, points)]))
    last = 0.0
    for nodes in (1, 3, 9, 27, 81, 243, 729, 10**5):
        (claim,) = solve(question, points[hardest : hardest + 1], Limits(nodes=nodes))
        assert last <= claim.lower <= optima[hardest] * (1.0 + 1e-9)
        last = claim.lower
    assert claim.stop is None
    assert last >= optima[hardest] * (1.0 - 1e-5)


@pytest.mark.long
def test_the_memory_limit_has_a_sentence() -> None:
    (claim,) = solve(hard_question(), hard_people(1), Limits(memory_bytes=3 * 2**20, seconds=LONG))
    assert claim.stop is not None and claim.stop.words() == "memory limit of 3 MiB"
    assert claim.lower <= TENTS_OPTIMUM
    answer = Explainer(hard_question().model).explain(
        hard_question().schema.row(hard_people(1)[0]), distance="l2", limits=Limits(memory_bytes=2**20)
    )
    assert isinstance(answer, Within | Unknown)
    assert "memory limit of 1 MiB" in str(answer)


def test_the_node_limit_counts_both_passes() -> None:
    for seed in range(12):
        model, point = beside_the_boundary(seed, 1e-6)
        question = Question(model=model, target=ClassTarget(1, margin=0.0))
        (free,) = solve(question, point[None, :])
        for nodes in range(1, free.nodes):
            (claim,) = solve(question, point[None, :], Limits(nodes=nodes))
            assert claim.nodes <= nodes + 1, (seed, nodes)


def test_a_limit_that_stops_the_second_pass_is_named() -> None:
    model, point = beside_the_boundary(0, 1e-6)
    question = Question(model=model, target=ClassTarget(1, margin=0.0))
    (claim,) = solve(question, point[None, :], Limits(nodes=1))
    assert claim.stop == Stop(StoppedBy.NODES, 1)


# ---------------------------------------------------------------------------------------------- interruptions


class Interrupting:
    """A listener that has had enough: at every event of a search under way, or only the first time that `when` is true."""

    def __init__(self, when: Callable[[], bool] | None = None) -> None:
        self.when, self.done = when, False

    def __call__(self, progress: Progress) -> None:
        if progress.nodes and (self.when is None or (not self.done and self.when())):
            self.done = True
            raise KeyboardInterrupt


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interruption_ends_everything(threads: int) -> None:
    before, begun = threading.active_count(), time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        solve(hard_question(), hard_people(4), Limits(seconds=LONG), threads=threads, listen=Interrupting())
    assert time.perf_counter() - begun < LONG
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_an_explainer_goes_on_after_an_interruption(threads: int) -> None:
    question = hard_question()
    explainer = Explainer(question.model, threads=threads)
    rows = [question.schema.row(point) for point in hard_people(4)]
    packed = {"target": question.target, "distance": question.distance}
    with pytest.raises(KeyboardInterrupt):
        explainer.using(listen=Interrupting()).explain_many(rows, **packed, limits=Limits(seconds=LONG))
    after = explainer.explain_many(rows, **packed, limits=Limits(nodes=20))
    fresh = Explainer(question.model).explain_many(rows, **packed, limits=Limits(nodes=20))
    assert [(a.lower, a.upper, a.nodes) for a in after] == [(a.lower, a.upper, a.nodes) for a in fresh]


def test_one_worker_that_fails_ends_the_others() -> None:
    begun = time.perf_counter()
    second = Interrupting(when=lambda: threading.current_thread().name.endswith("_1"))
    with pytest.raises(KeyboardInterrupt):
        solve(hard_question(), hard_people(4), Limits(seconds=LONG), threads=2, listen=second)
    assert time.perf_counter() - begun < LONG


# ---------------------------------------------------------------------------------------------- progress


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_progress_only_goes_forward(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Progress] = []
    monkeypatch.setattr(worker, "SLICE_SECONDS", 0.0)  # an event per slice, and slices of two nodes
    HARD.prepare(hard_question(norm)).solve(hard_people(2), Limits(nodes=600), listen=heard.append)
    assert [event.finished for event in heard] == sorted(event.finished for event in heard)
    assert (heard[-1].finished, heard[-1].people) == (2, 2)
    under_way = [event for event in heard if event.nodes]
    assert len(under_way) >= 4
    for person in (0, 1):
        mine = [event for event in under_way if event.finished == person]
        for earlier, later in zip(mine[:-1], mine[1:], strict=True):
            assert later.nodes > earlier.nodes
            assert later.seconds > earlier.seconds
            assert later.lower >= earlier.lower * (1.0 - 1e-12)
            assert later.upper <= earlier.upper
        assert all(event.lower <= TENTS_OPTIMUM + 1e-3 for event in mine)
        assert all(event.lower <= event.upper for event in mine)


def test_progress_counts_everyone_once() -> None:
    question, points, _ = credit()
    for threads in (1, 3):
        heard: list[Progress] = []
        solve(question, np.tile(points, (5, 1)), threads=threads, listen=heard.append)
        assert [event.finished for event in heard] == sorted({event.finished for event in heard})
        assert (heard[-1].finished, heard[-1].people) == (5 * len(points), 5 * len(points))


# ---------------------------------------------------------------------------------------------- the same answers


@pytest.mark.long(keep=2)
@every_norm
@pytest.mark.parametrize("constraints", [(), (OnlyUp("EducationLevel"),)], ids=["free", "only up"])
def test_answers_do_not_depend_on_threads_company_or_order(norm: Any, constraints: Any) -> None:
    question, points, _ = credit(norm, constraints=constraints)
    alone = [told(solve(question, point[None, :])[0]) for point in points]
    for threads in (1, 2, 3):
        assert [told(claim) for claim in solve(question, points, threads=threads)] == alone
    assert [told(claim) for claim in solve(question, points[::-1])] == alone[::-1]
    assert [told(claim) for claim in solve(question, points[5:9])] == alone[5:9]


def test_duplicates_are_answered_alike() -> None:
    question, points, _ = credit()
    people = points[[3, 1, 3, 3, 0, 1]]
    rows = [question.schema.row(point) for point in people]
    for threads in (1, 2):
        answers = Explainer(question.model, threads=threads).explain_many(rows)
        assert [answer.row for answer in answers] == list(range(6))
        for i, j in ((0, 2), (0, 3), (1, 5)):
            assert answers[i].counterfactual == answers[j].counterfactual
            assert (answers[i].lower, answers[i].upper) == (answers[j].lower, answers[j].upper)


def test_nobody_pays_for_another_compilation() -> None:
    """One person, many people, one feature, records, a second pass, a table: the kernels have one signature."""
    model, points, _ = load("compas")
    beside, point = beside_the_boundary(0, 1e-6)
    Explainer(beside).explain(beside.schema.row(point), target=ClassTarget(1, margin=0.0))
    for count in (1, 2, 3, 70):
        rows = [model.schema.row(point) for point in points[:count]]
        for method in (Search(), Search(table_rows=0), Search(records=True)):
            Explainer(model, threads=2).using(method).explain_many(rows, constraints=[OnlyUp("AgeGroup")])
    assert len(kernel.search_people.signatures) == 1
    assert len(kernel.scan_table.signatures) == 1


# ---------------------------------------------------------------------------------------------- what is asked


@every_norm
def test_both_directions(norm: Any) -> None:
    """From class 0 to 1 and from 1 to 0, against the enumerator."""
    model, _, _ = load("compas")
    points = model.schema.sample(60, np.random.default_rng(0))
    rows = [model.schema.row(point) for point in points]
    ours = Explainer(model).using(Search(table_rows=0)).explain_many(rows, distance=norm)
    tabled = Explainer(model).explain_many(rows, distance=norm)
    theirs = Explainer(model).using(Enumerate()).explain_many(rows, distance=norm)
    assert {answer.decision_before for answer in ours} == {0, 1}
    for a, b, c in zip(ours, theirs, tabled, strict=True):
        assert isinstance(a, Nearest)
        assert a.decision_after == 1 - a.decision_before
        assert a.upper == pytest.approx(b.upper, abs=1e-12)
        assert c.upper == pytest.approx(b.upper, abs=1e-12)


@every_norm
def test_margins(norm: Any) -> None:
    """Every score keeps its margin, and a larger margin is never nearer."""
    model, points, _ = load("credit")
    last = np.zeros(12)
    for margin in (0.0, 1e-6, 0.1, 1.0):
        target = ClassTarget(1, margin=margin)
        rows = [model.schema.row(point) for point in points[:12]]
        answers = Explainer(model).explain_many(rows, distance=norm, target=target)
        assert all(isinstance(answer, Nearest) for answer in answers)
        assert min(answer.score_after for answer in answers) >= margin
        upper = np.array([answer.upper for answer in answers])
        assert (upper >= last * (1.0 - 1e-6)).all()
        last = upper


def test_a_target_out_of_reach_is_proven_to_be() -> None:
    model, points, _ = load("credit")
    for norm in ("l1", "linf"):
        answer = Explainer(model).explain(model.schema.row(points[0]), target=ClassTarget(1, margin=1e4), distance=norm)
        assert isinstance(answer, NoneExists)
    forbidden = [Range(name, float(points[0][g]), float(points[0][g])) for g, name in enumerate(model.schema.names)
                 if model.schema[name].kind in ("real", "integer")]  # fmt: skip
    answer = Explainer(model).explain(model.schema.row(points[0]), constraints=forbidden)
    assert isinstance(answer, NoneExists | Nearest)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("gap", [0.1, 1e-3, 1e-9])
@every_norm
def test_gaps_are_honoured(norm: Any, gap: float) -> None:
    question, points, optima = credit(norm)
    for tolerances in (Tolerances(gap=0.5, relative_gap=gap), Tolerances(gap=gap, relative_gap=0.5)):
        claims = Search(table_rows=0).prepare(question, tolerances).solve(points[:12], Limits())
        exact = solve(question, points[:12])
        for i, (claim, best) in enumerate(zip(claims, exact, strict=True)):
            assert claim.point is not None
            upper = question.distance.between(question.schema, points[i], claim.point)
            assert claim.lower <= upper <= claim.lower + tolerances.allowed(upper) * (1.0 + 1e-6)
            assert claim.lower <= question.distance.between(question.schema, points[i], best.point) * (1.0 + 1e-12)
            if len(optima):
                assert claim.lower - 1e-9 <= optima[i] <= upper + 1e-9


def test_a_question_that_is_met_already_costs_nothing() -> None:
    question, points, _ = credit()
    answers = Explainer(question.model).explain_many(
        [question.schema.row(point) for point in points[:3]], target=ClassTarget(0, margin=0.0)
    )
    for answer in answers:
        assert isinstance(answer, Nearest)
        assert (answer.lower, answer.upper, answer.changes) == (0.0, 0.0, ())
    assert math.isfinite(answers[0].seconds)
