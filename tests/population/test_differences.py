"""Differences: the tests against all tables and permutations, noise called noise, and planted differences found."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ifonly import Nearest, NoneExists, audit
from ifonly.population import Grouping
from ifonly.population.differences import Side, find_differences, fisher, holm, rank_sums
from ifonly.report import audit_page, plain
from ifonly.results import Change


def test_fisher_against_all_tables() -> None:
    for total, other in ((3, 4), (8, 5), (10, 10)):
        for having in range(total + other + 1):
            ways = {
                k: Fraction(math.comb(total, k) * math.comb(other, having - k), math.comb(total + other, having))
                for k in range(max(0, having - other), min(total, having) + 1)
            }
            for k, likely in ways.items():
                true = sum(way for way in ways.values() if way <= likely)
                assert fisher(k, total, having - k, other) == pytest.approx(float(true), rel=1e-9)


def test_fisher_of_many() -> None:
    assert fisher(400_000, 500_000, 400_500, 500_000) == pytest.approx(0.2118, abs=1e-4)  # as scipy has it
    assert fisher(400_000, 500_000, 402_000, 500_000) < 1e-5


@pytest.mark.parametrize("values", [8, 40], ids=["many ties", "few ties"])
def test_rank_sums_against_all_permutations(values: int) -> None:
    chance = np.random.default_rng(values)
    for _ in range(6):
        costs = np.sort(chance.integers(0, values, 14).astype(float))
        ranks = np.array([((costs < c).sum() + (costs <= c).sum() + 1) / 2 for c in costs])
        mine = chance.permutation(14)[:6]
        sums = np.array([ranks[list(chosen)].sum() for chosen in combinations(range(14), 6)])
        middle = 6 * 15 / 2
        true = float((np.abs(sums - middle) >= abs(ranks[mine].sum() - middle) - 1e-9).mean())
        told = rank_sums(np.sort(costs[mine]), np.sort(np.delete(costs, mine)))
        assert told == pytest.approx(true, abs=0.04)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def side(name: str, has: int, needing: int, cost: float = 1.0) -> Side:
    return Side(name=name, needing=needing, costs=np.linspace(cost, 2 * cost, has))


def joined(*sides: Side) -> Side:
    costs = np.sort(np.concatenate([one.costs for one in sides]))
    return Side(name="everybody", needing=sum(one.needing for one in sides), costs=costs)


def test_two_groups_are_compared_once_and_three_each_with_the_rest() -> None:
    a, b, c = side("a", 50, 60), side("b", 40, 60), side("c", 55, 60)
    assert [(d.group, d.what) for d in find_differences([a, b], joined(a, b))] == [("a", "share"), ("a", "cost")]
    assert {d.group for d in find_differences([a, b, c], joined(a, b, c))} == {"a", "b", "c"}
    assert {d.group for d in find_differences([a, b], joined(a, b, c))} == {"a", "b"}  # c is too small to be compared
    everybody = side("a", 60, 60), side("b", 60, 60)  # all have it: nothing to compare but costs
    assert [d.what for d in find_differences(everybody, joined(*everybody))] == ["cost"]


def people(groups: int, seed: int) -> list[Any]:
    chance = np.random.default_rng(seed)
    costs, has = chance.exponential(1.0, 300).tolist(), chance.random(300) < 0.7
    return [answer(i, str(chance.integers(groups)), cost if has[i] else None) for i, cost in enumerate(costs)]


def answer(row: int, group: str, cost: float | None) -> Any:
    common: dict[str, Any] = {"row": row, "factual": {"g": group}, "target": "yes", "distance_name": "l1"}
    if cost is None:
        return NoneExists(lower=math.inf, **common)
    return Nearest(lower=cost, upper=cost, counterfactual={}, changes=(Change("n", 0, 1),), **common)


@pytest.mark.long
def test_noise_is_called_noise() -> None:
    """Labels drawn at random: in at least 95 % of many populations no difference is told."""
    quiet = sum(
        not any(one.real for one in audit(people(groups, seed), by="g").differences)
        for seed in range(60)
        for groups in (2, 4)
    )
    assert quiet >= 0.95 * 120
    assert "noise" in plain(audit_page(audit(people(4, 3), by="g")))


def test_what_is_planted_is_found() -> None:
    for seed in range(10):
        chance = np.random.default_rng(seed)
        answers = [
            answer(i, g, float(chance.exponential(2.0 if g == "b" else 1.0)) if chance.random() > lost else None)
            for g, lost in (("a", 0.1), ("b", 0.1), ("c", 0.4))
            for i in range(200)
        ]
        found = {(one.group, one.what) for one in audit(answers, by="g").differences if one.real}
        assert {("b", "cost"), ("c", "share")} <= found


def test_small_groups_are_named_and_not_compared() -> None:
    answers = [*people(2, 1), *(answer(i, "few", 9.0) for i in range(29))]
    told = audit(answers, by="g")
    assert {one.group for one in told.differences} == {"0", "1"}
    assert "Not compared, since fewer than 30 of them need recourse: few (29)." in plain(audit_page(told))
    assert {one.group for one in audit(answers, by=Grouping("g", least=29)).differences} == {"0", "1", "few"}
    lonely = audit(answers, by=Grouping("g", least=10_000))
    assert lonely.differences == () and "No group is compared" in plain(audit_page(lonely))
