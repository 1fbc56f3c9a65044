"""Actions: greedy covers against all covers, and every count against the model itself."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ifonly import Categorical, Explainer, Integer, Network, Query, Real, Schema, audit
from ifonly.population import actions
from ifonly.population.actions import ActionStep, applied, candidates, find_cover, greedy
from ifonly.population.aggregation import Sample

SCHEMA = Schema(
    [Integer("Age", 18, 80), Real("Income", 0, 100, step=0.5), Categorical("Job", ["clerk", "nurse", "none"])],
    rules=["Age is fixed"],
)
NETWORK = Network.of([([[0.02, 0.1, 1.0, 2.0, -3.0]], [-6.05])])
EXPLAINER = Explainer(NETWORK, schema=SCHEMA, classes=["no", "yes"])
QUERY = Query(target="yes", constraints=["Income changes by at most 30"])


def drawn(count: int, seed: int = 0) -> list[dict[str, Any]]:
    chance = np.random.default_rng(seed)
    return [
        {"Age": int(chance.integers(18, 81)), "Income": float(chance.integers(0, 121)) / 2,
         "Job": ["clerk", "nurse", "none"][int(chance.integers(3))]}
        for _ in range(count)
    ]  # fmt: skip


def test_greedy_is_as_good_as_it_must_be() -> None:
    chance = np.random.default_rng(5)
    for _ in range(40):
        helps = chance.random((8, 25)) < chance.random()
        chosen = greedy(helps, 0.0)
        size = len(chosen)
        if not size:
            assert not helps.any()
            continue
        covered = helps[chosen].any(axis=0).sum()
        best = max(helps[list(some)].any(axis=0).sum() for some in combinations(range(8), size))
        assert covered >= (1 - (1 - 1 / size) ** size) * best
        left = np.ones(25, dtype=bool)
        for k in chosen:  # each is the best of all at its turn
            assert (helps[k] & left).sum() == (helps & left).sum(axis=1).max() > 0
            left &= ~helps[k]


def test_of_actions_that_help_nearly_as_many_the_first_is_taken() -> None:
    helps = np.zeros((3, 100), dtype=bool)
    helps[0, :60], helps[1, :79], helps[2, :80] = True, True, True
    assert (greedy(helps), greedy(helps, 0.0)) == ([1], [2])
    assert greedy(np.zeros((0, 5), dtype=bool)) == greedy(np.zeros((3, 5), dtype=bool)) == []


def test_every_count_is_what_the_model_says() -> None:
    """Apply each action by hand to each person, in the user's own values, and ask the network's own formula."""
    people = drawn(200)
    answers = EXPLAINER.explain_many(people, QUERY)
    cover = audit(answers, judge=EXPLAINER.judge(QUERY)).everybody.details.cover
    assert cover is not None and not cover.sampled
    needing = [answer.factual for answer in answers if not answer.already]
    assert cover.people == len(needing)
    helped = [[_helps(action.steps, person) for person in needing] for action in cover.actions]
    assert [sum(row) for row in helped] == [action.helps for action in cover.actions]
    assert sum(map(any, zip(*helped, strict=True))) == cover.helped
    assert cover.helped > 0.5 * len(needing)


def _helps(steps: tuple[ActionStep, ...], person: Any) -> bool:
    after = dict(person)
    for step in steps:
        after[step.feature] = step.to if step.by is None else after[step.feature] + step.by
    if not 0 <= after["Income"] <= 100 or abs(after["Income"] - person["Income"]) > 30 or after == person:
        return False
    job = {"clerk": 1.0, "nurse": 2.0, "none": -3.0}[after["Job"]]
    return bool(0.02 * after["Age"] + 0.1 * after["Income"] + job - 6.05 > 0) and after["Age"] == person["Age"]


def test_where_actions_come_from() -> None:
    answers = list(EXPLAINER.explain_many(drawn(60), QUERY))
    found = candidates(answers, SCHEMA)
    sets = {tuple(change.feature for change in answer.changes) for answer in answers if answer.changes}
    assert {tuple(step.feature for step in steps) for steps in found} <= sets
    for steps in found:
        for step in steps:
            assert step.by is None or (2 * step.by == int(2 * step.by) and step.by > 0)  # in whole steps of 0.5
    assert candidates([], SCHEMA) == []


def test_actions_in_words_and_on_points() -> None:
    assert str(ActionStep("Income", by=12.5)) == "Income +12.5"
    assert str(ActionStep("Income", by=-1500)) == "Income -1500"
    assert str(ActionStep("Job", to="nurse")) == "Job -> nurse"
    schema = Schema([Real("x", 0, 1, step=0.1)])
    moved = applied((ActionStep("x", by=0.2),), np.array([[0.1], [0.7], [0.9]]), schema)
    assert moved.ravel().tolist()[:2] == [0.3, 0.9]  # as written, not 0.30000000000000004


def test_a_sample_chooses_with_one_half_and_counts_with_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MOST_PEOPLE", 40)
    answers = [a for a in EXPLAINER.explain_many(drawn(150), QUERY) if not a.already]
    cover = find_cover(answers, EXPLAINER.judge(QUERY), sampled=False)
    assert cover is not None and cover.sampled and cover.people == 20
    assert cover.interval is not None and cover.interval[0] <= cover.share <= cover.interval[1]


def test_a_judge_keeps_the_rules() -> None:
    judge = EXPLAINER.judge(QUERY)
    before = np.array([[30.0, 40.0, 1.0]] * 4)
    after = np.array([[30.0, 60.0, 1.0], [80.0, 60.0, 1.0], [30.0, 75.0, 1.0], [30.0, 60.25, 1.0]])
    assert judge.accepted(before, after).tolist() == [True, False, False, False]  # age, too far, off the grid
    assert judge.reasons is not None
    assert EXPLAINER.judge(QUERY, reasons=False).reasons is None


def test_what_rules_it_out_is_asked() -> None:
    people = [{"Age": 20, "Income": 5.0, "Job": "none"}] * 3
    query = Query(target="yes", constraints=["Income changes by at most 10", "Job is fixed"])
    told = EXPLAINER.audit(people, query).everybody
    assert told.without == 3
    assert [(one.words, one.count, one.asked) for one in told.details.blame] == [("Income changes by at most 10", 3, 3)]
    quiet = audit(EXPLAINER.explain_many(people, query), judge=EXPLAINER.judge(query, reasons=False)).everybody
    assert quiet.details.blame == ()


def test_a_sample_is_fair() -> None:
    import random

    counts = np.zeros(20)
    for seed in range(2000):
        sample = Sample(random.Random(seed), most=5)
        for i in range(20):
            sample.offer(i, None)  # type: ignore[arg-type]
        counts[[person for person, _ in sample.kept]] += 1
    assert (abs(counts - 500) < 100).all()
