"""Reasons where not everything can be decided, and through the API."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Allowed,
    Explainer,
    Fixed,
    Integer,
    Nearest,
    Network,
    NoneExists,
    OnlyDown,
    OnlyUp,
    Range,
    Real,
    Schema,
    Stop,
    StoppedBy,
)
from ifonly.answering import reasons as module
from ifonly.answering.reasons import relaxed
from ifonly.answering.values import CheckedResult
from ifonly.methods import Enumerate
from ifonly.problem import MaxChanges, OnlyWith
from ifonly.problem.constraints import MaxDelta, Steps
from ifonly.problem.rules import Rule
from ifonly.results import Claim, Reasons
from ifonly.tolerances import DEFAULT

LATE = Stop(StoppedBy.SECONDS, 1.0)
THERE = 0.5, np.ones(1)
ROW = CheckedResult(Claim(point=np.ones(1), lower=0.5, method="s"), *THERE)
LOOSE = CheckedResult(Claim(point=np.ones(1), lower=0.1, method="s", stop=LATE), *THERE)
NONE = CheckedResult(Claim(point=None, lower=math.inf, method="s"))
OPEN = CheckedResult(Claim(point=None, lower=0.1, method="s", stop=LATE))
A, B, C = Fixed("a"), Fixed("b"), Fixed("c")


def find_reasons(constraints: list[Any], ask: Any, seconds: float | None = None) -> Reasons:
    return module.find_reasons(constraints, ask, lambda after: (), seconds=seconds, tolerances=DEFAULT)


def test_each_question_is_asked_once_and_implied_ones_not_at_all() -> None:
    asked: list[tuple[Any, ...]] = []

    def ask(constraints: tuple[Any, ...]) -> Any:
        asked.append(constraints)
        return NONE if A in constraints and B in constraints else ROW

    reasons = find_reasons([A, B, C, A], ask)
    assert reasons.blame == ("a is fixed", "b is fixed")
    assert [r.dropped for r in reasons.relaxations] == [("a is fixed",), ("b is fixed",)]
    assert len(asked) == len(set(asked))
    assert (A, B, C) not in asked  # that is known from the start


def test_what_is_not_decided_is_said() -> None:
    def ask(constraints: tuple[Any, ...]) -> Any:
        if len(constraints) < 2:
            return ROW
        return OPEN if C in constraints else NONE

    reasons = find_reasons([A, B, C], ask)
    assert reasons.blame == ("a is fixed", "b is fixed")
    assert reasons.minimal
    assert not any(r.dropped in (("a is fixed",), ("b is fixed",)) for r in reasons.relaxations)
    assert "whether it is possible if a may change (time limit of 1 s)" in reasons.note

    def hopeless(constraints: tuple[Any, ...]) -> Any:
        return OPEN if constraints else ROW

    vague = find_reasons([A, B], hopeless)
    assert vague.blame == ("a is fixed", "b is fixed")
    assert not vague.minimal
    assert "that 'b is fixed' is needed to rule it out (time limit of 1 s)" in vague.note
    assert [r.dropped for r in vague.relaxations] == [("a is fixed", "b is fixed")]  # that it needs both is not proven
    assert "that 'a is fixed' must be dropped (time limit of 1 s)" in vague.note


def test_the_number_of_questions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SEARCHES", 3)
    count = 0

    def ask(constraints: tuple[Any, ...]) -> Any:
        nonlocal count
        count += 1
        return ROW if len(constraints) < 3 else NONE

    reasons = find_reasons([Fixed(f"f{i}") for i in range(8)], ask)
    assert count == 3
    assert not reasons.minimal
    assert "(more than 3 questions)" in reasons.note


def test_the_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question takes a second; all together have ten."""
    now = 0.0
    monkeypatch.setattr(module.time, "perf_counter", lambda: now)

    def ask(constraints: tuple[Any, ...]) -> Any:
        nonlocal now
        now += 1.0
        return ROW if len(constraints) < 6 else NONE

    reasons = find_reasons([Fixed(f"f{i}") for i in range(9)], ask, seconds=10.0)
    assert now == 11.0
    assert "(time limit of 10 s)" in reasons.note
    assert not find_reasons([Fixed(f"f{i}") for i in range(6)], ask).note


def test_a_relaxation_that_is_not_proven_nearest() -> None:
    (only,) = find_reasons([A], lambda constraints: LOOSE).relaxations
    assert (only.proven, only.lower, only.distance) == (False, 0.1, 0.5)


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (Fixed("a"), "a may change"),
        (OnlyUp("a"), "a may also go down"),
        (OnlyDown("a"), "a may also go up"),
        (Range("a", upper=3), "a may be above 3"),
        (Range("a", lower=-0.5), "a may be below -0.5"),
        (Range("a", 1, 2000), "a may be outside [1, 2,000]"),
        (Allowed("a", ["p", "q"]), "a may be other than p or q"),
        (MaxDelta("a", by=2), "a may change by more than 2"),
        (MaxDelta("a", share=0.07), "a may change by more than 7 %"),
        (Steps("a", 5), "a may change by any amount"),
        (Rule("a >= b"), "the rule 'a >= b' is dropped"),
        (MaxChanges(2), "more than 2 may change"),
        (OnlyWith("a", "b"), "a may change without b"),
    ],
)
def test_constraints_that_are_dropped_in_words(constraint: Any, words: str) -> None:
    assert relaxed(constraint) == words


# ---------------------------------------------------------------------- through the API

SCHEMA = Schema([Integer("n", 0, 10), Real("x", 0.0, 1.0)])
EXPLAINER = Explainer(Network.of([([[1.0, 10.0]], [-9.5])]), schema=SCHEMA)
POOR = {"n": 1, "x": 0.25}


def test_many_people_only_on_request() -> None:
    asked: Any = {"constraints": [Fixed("n"), Fixed("x")], "target": 1}
    (quiet,) = EXPLAINER.explain_many([POOR], **asked)
    assert isinstance(quiet, NoneExists) and quiet.reasons is None
    twice = EXPLAINER.using(reasons=True).explain_many([POOR, {"n": 99}, POOR, {"n": 0, "x": 0.5}], **asked)
    assert [answer.status for answer in twice] == ["none exists", "error", "none exists", "none exists"]
    assert [answer.row for answer in twice] == [0, 1, 2, 3]
    assert twice[0].reasons == twice[2].reasons
    assert twice[0].reasons != twice[3].reasons
    single = EXPLAINER.explain(POOR, **asked)
    assert isinstance(single, NoneExists)
    assert single.reasons == twice[0].reasons
    unasked = EXPLAINER.using(reasons=False).explain(POOR, **asked)
    assert isinstance(unasked, NoneExists) and unasked.reasons is None


def test_a_method_that_cannot_answer_without_a_constraint_is_helped_out() -> None:
    answer = EXPLAINER.using(Enumerate()).explain(POOR, constraints=[Fixed("n"), Fixed("x")], target=1)
    assert isinstance(answer, NoneExists) and answer.method == "enumerate"
    assert answer.reasons is not None
    assert {r.dropped for r in answer.reasons.relaxations} == {("n is fixed",), ("x is fixed",)}
    assert all(r.proven for r in answer.reasons.relaxations)


def test_no_row_at_all() -> None:
    never = Explainer(Network.of([([[0.0, 0.0]], [-1.0])]), schema=SCHEMA).explain(POOR, constraints=[Fixed("n")])
    assert str(never) == "No row at all turns the decision into 1, whatever may change (proven)."


def test_the_constraints_of_schema_and_explainer_are_named_too() -> None:
    schema = Schema(SCHEMA.features, rules=["n is fixed"])
    explainer = Explainer(EXPLAINER.model.network, schema=schema, constraints=["x <= 0.5"])
    answer = explainer.explain(POOR, target=1)
    assert isinstance(answer, NoneExists)
    assert answer.reasons is not None
    assert answer.reasons.blame == ("n is fixed", "x <= 0.5")
    freed = explainer.explain(POOR, target=1, constraints=["n is free"])
    assert isinstance(freed, Nearest)
    assert [change.feature for change in freed.changes] == ["n", "x"]
    assert isinstance(explainer.explain(POOR, target=1, constraints=["x is free"]), Nearest)
