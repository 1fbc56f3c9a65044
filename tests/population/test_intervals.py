"""Intervals: against exact arithmetic, and by what they promise of samples whose truth is known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from ifonly.population.intervals import (
    MOST_RESAMPLED,
    at_least,
    at_most,
    incomplete_beta,
    mean_interval,
    median_interval,
    share_interval,
)


def exactly_at_least(count: int, total: int, p: Fraction) -> Fraction:
    terms = (math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in range(count, total + 1))
    return sum(terms, start=Fraction(0))


@pytest.mark.parametrize(("count", "total"), [(0, 1), (1, 1), (0, 9), (3, 9), (9, 9), (1, 40), (20, 40), (39, 40)])
def test_the_ends_of_a_share_are_where_the_tails_are(count: int, total: int) -> None:
    interval = share_interval(count, total)
    assert interval is not None
    low, high = map(Fraction, interval)
    tail = Fraction(1, 40)
    assert low == 0 if count == 0 else abs(exactly_at_least(count, total, low) - tail) < 1e-12
    assert high == 1 if count == total else abs(1 - exactly_at_least(count + 1, total, high) - tail) < 1e-12


def test_the_tails_of_binomials() -> None:
    for total in (1, 7, 30):
        for count in range(total + 2):
            for p in (0.001, 0.3, 0.5, 0.97):
                true = float(exactly_at_least(count, total, Fraction(p)))
                assert at_least(count, total, p) == pytest.approx(true, abs=1e-13)
                assert at_most(count - 1, total, p) == pytest.approx(1 - true, abs=1e-13)
    assert incomplete_beta(1, 1, 0.25) == pytest.approx(0.25)
    assert incomplete_beta(5e5, 5e5, 0.5) == pytest.approx(0.5)


def test_shares_cover_at_least_as_often_as_they_say() -> None:
    """Over all samples of 30, by their exact probabilities: never less than 95 %."""
    intervals = [share_interval(k, 30) for k in range(31)]
    for p in np.linspace(0.01, 0.99, 99).tolist():
        chance = [math.comb(30, k) * p**k * (1 - p) ** (30 - k) for k in range(31)]
        inside = (c for c, ends in zip(chance, intervals, strict=True) if ends is not None and ends[0] <= p <= ends[1])
        assert sum(inside) >= 0.95
    assert share_interval(0, 0) is None


@pytest.mark.parametrize("total", [6, 11, 40, 41])
def test_medians_cover_at_least_as_often_as_they_say(total: int) -> None:
    """The interval is from the r-th smallest to the r-th largest: it misses when fewer than r coins show one side."""
    interval = median_interval(np.arange(1.0, total + 1))
    assert interval is not None
    rank = int(interval[0])
    assert interval[1] == total + 1 - rank
    missed = 2 * (1 - exactly_at_least(rank, total, Fraction(1, 2)))
    assert missed <= Fraction(1, 20)
    assert 2 * (1 - exactly_at_least(rank + 1, total, Fraction(1, 2))) > Fraction(1, 20)  # and it is no wider


def test_too_few_costs_have_no_interval() -> None:
    assert median_interval(np.arange(5.0)) is None
    assert mean_interval(np.arange(4.0), 0) is None


def test_means_cover_about_as_often_as_they_say() -> None:
    chance = np.random.default_rng(1)
    inside = 0
    for k in range(200):
        interval = mean_interval(chance.normal(3.0, 1.0, 60), k)
        assert interval is not None
        inside += interval[0] <= 3.0 <= interval[1]
    assert 180 <= inside <= 199  # about 94 %, as the bootstrap has it for 60


def test_a_mean_is_the_same_again_and_normal_where_it_is_of_many() -> None:
    chance = np.random.default_rng(2)
    few, many = chance.exponential(1.0, MOST_RESAMPLED), chance.exponential(1.0, MOST_RESAMPLED + 1)
    assert mean_interval(few, 7) == mean_interval(few, 7) != mean_interval(few, 8)
    one, other = mean_interval(few, 7), mean_interval(many, 7)
    assert one is not None and other is not None
    assert one[1] - one[0] == pytest.approx(other[1] - other[0], rel=0.1)
    assert (other[0] + other[1]) / 2 == pytest.approx(many.mean())
