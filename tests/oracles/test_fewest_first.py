"""Fewest changes first, then the nearest: against a list of all rows."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_problems import random_problem

from ifonly import Distance, Explainer, Integer, Limits, Nearest, Network, NoneExists, Real, Schema
from ifonly.methods import Enumerate
from ifonly.problem import Query, Question
from ifonly.results import Claim, Stop, StoppedBy
from ifonly.solvers.search import Search

SEEDS = 150


def by_hand(question: Question, factual: Any) -> tuple[int, float] | None:
    """The least number of changes, and the least distance among rows with that many; None without a row."""
    values = [
        np.arange(f.lower, f.upper + 0.5, f.step) if isinstance(f, Integer) else np.arange(len(f.options))  # type: ignore[union-attr]
        for f in question.schema.features
    ]
    rows = np.array(list(itertools.product(*values)), dtype=float)
    rows = rows[question.score_margin(rows)[0] >= question.rounding_bound]  # sure rows: a tie on the margin is none
    rows = np.array([row for row in rows if question.allows(factual, row) is None])
    if not len(rows):
        return None
    changes = (rows != factual).sum(axis=1)
    fewest = rows[changes == changes.min()]
    return int(changes.min()), float(question.distance.between(question.schema, factual, fewest).min())


@pytest.mark.long
@pytest.mark.parametrize("method", [Enumerate(), Search(), Search(table_rows=0)], ids=["enumerate", "search", "tree"])
def test_against_all_rows(method: Any) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(SEEDS):
        question, points = random_problem(seed, finite=True)
        if any(isinstance(f, Real) for f in question.schema):
            continue
        explainer = Explainer(question.model).using(method)
        asked: Any = {"target": question.target, "distance": question.distance, "constraints": question.constraints}
        rows = [question.schema.row(point) for point in points]
        nearest = explainer.explain_many(rows, **asked)
        for i, answer in enumerate(explainer.explain_many(rows, Query(fewest_first=True), **asked)):
            expected = by_hand(question, points[i])
            kinds[answer.status] += 1
            if "margin" in answer.note or "rounding" in answer.note:
                continue
            scores = question.model.scores(points[i][None, :])
            if answer.already:  # the model's own word, whatever the margin and the constraints ask of changes
                assert replace(question.target, margin=0.0).met(question.model, scores)[0], seed
                continue
            if expected is None:
                assert isinstance(answer, NoneExists), seed
                continue
            assert isinstance(answer, Nearest), (seed, answer)
            assert len(answer.changes) == expected[0], seed
            assert answer.upper == pytest.approx(expected[1], abs=1e-9), seed
            kinds["another row"] += answer.upper > nearest[i].upper + 1e-9
    assert min(kinds[kind] for kind in ("nearest", "none exists", "another row")) >= 3, kinds


SCHEMA = Schema([Integer("a", 0, 10), Integer("b", 0, 10), Integer("c", 0, 10)])
NETWORK = Network.of([([[1.0, 1.0, 3.0]], [-8.5])])
ROW = {"a": 0, "b": 0, "c": 0}


def test_in_words() -> None:
    explainer = Explainer(NETWORK, schema=SCHEMA)
    answer = explainer.using(Enumerate()).explain(ROW, Query(fewest_first=True), distance="linf")
    assert [str(change) for change in answer.changes] == ["c: 0 -> 3"]
    assert answer.distance_name == "fewest changes, then linf"
    assert str(answer) == (
        "If c had been 3 instead of 0, the decision would have changed to 1; "
        "no smaller allowed change does it (proven, fewest changes, then linf distance 0.1)."
    )
    assert len(explainer.using(Enumerate()).explain(ROW, distance="linf").changes) > 1
    already = explainer.using(Enumerate()).explain({"a": 9, "b": 9, "c": 9}, Query(fewest_first=True), target=1)
    assert (already.upper, already.changes) == (0.0, ())


class Scripted:
    """Claims what it is told, by the distance that it is asked for."""

    name = "scripted"

    def __init__(self, **claims: Claim) -> None:
        self.claims, self.limits = claims, []  # type: ignore[var-annotated]

    def prepare(self, question: Question, tolerances: Any = None) -> Any:
        script = self

        class Solver:
            def solve(self, points: Any, limits: Limits, **more: Any) -> list[Claim]:
                script.limits.append(limits.seconds)
                return [script.claims[question.distance.name]] * len(points)

        return Solver()


LATE = Stop(StoppedBy.SECONDS, 200.0)
"""The share of a stage."""


def claim(point: Any, lower: float, stop: Stop | None = None) -> Claim:
    return Claim(point=None if point is None else np.array(point, dtype=float), lower=lower, method="s", stop=stop)


def ask(**claims: Claim) -> Any:
    method = Scripted(**claims)
    answer = (
        Explainer(NETWORK, schema=SCHEMA)
        .using(method, reasons=False)
        .explain(ROW, Query(fewest_first=True), limits=Limits(seconds=400.0))
    )
    assert method.limits == [pytest.approx(200.0, abs=50.0)] * len(method.limits)  # less what preparing took
    return answer


def test_both_stages_must_be_proven() -> None:
    one, two = [0, 0, 3], [9, 0, 0]
    nearest = Distance("l1").between(SCHEMA, np.zeros(3), np.array(one, dtype=float))
    assert ask(l0=claim(one, 1 / 3), l1=claim(one, nearest)).status == "nearest"
    # a bound above zero changes is a bound of one: numbers of changes are whole
    assert ask(l0=claim(one, 0.01, LATE), l1=claim(one, nearest)).status == "nearest"
    fewer = ask(l0=claim([1, 1, 3], 1 / 3, LATE), l1=claim(one, nearest))
    assert (fewer.status, fewer.upper) == ("within", nearest)
    assert fewer.note == "fewer than 3 changes were not ruled out: time limit of 200 s"
    late = ask(l0=claim(two, 1 / 3), l1=claim(None, 0.05, LATE))
    assert (late.status, late.lower, late.upper, late.stop) == ("within", 0.05, pytest.approx(0.3), LATE)
    open_ended = ask(l0=claim(None, 1 / 3, LATE))
    assert (open_ended.status, open_ended.lower, open_ended.stop) == ("unknown", 0.0, LATE)
    assert ask(l0=claim(None, math.inf)).status == "none exists"


def test_a_second_stage_that_denies_the_first_is_a_contradiction() -> None:
    from ifonly.errors import Contradiction

    with pytest.raises(Contradiction, match="claims that none exists"):
        ask(l0=claim([0, 0, 3], 1 / 3), l1=claim(None, math.inf))
