"""Confidence intervals at 95 %, of shares, medians and means.

a share    Clopper and Pearson's exact interval: at its ends p, k or more (k or fewer) of n have probability 2.5 %
a median   exact, for any distribution: two order statistics between which it lies, by the binomial distribution
a mean     the bootstrap's percentiles, from a stated seed; of many costs the normal interval, which these approach
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Interval: TypeAlias = tuple[float, float]

CONFIDENCE = 0.95
TAIL = (1.0 - CONFIDENCE) / 2.0
NORMAL = 1.959963984540054
"""The normal deviate that TAIL of all draws exceed."""
RESAMPLES = 2000
MOST_RESAMPLED = 5000
"""Costs: above that, a mean is as good as normal."""
FEWEST = 5
"""Costs: below that, a bootstrap is meaningless."""
_STEPS = 100
"""Halvings: more than float64 has digits."""


def share_interval(count: int, total: int) -> Interval | None:
    """Clopper and Pearson's interval of the share that `count` of `total` estimates; None for a total of 0."""
    if not total:
        return None
    low = 0.0 if count == 0 else _root(lambda p: at_least(count, total, p) - TAIL)
    high = 1.0 if count == total else _root(lambda p: TAIL - at_most(count, total, p))
    return low, high


def at_least(count: int, total: int, p: float) -> float:
    """The probability of `count` or more of `total`, each with probability p."""
    return 1.0 if count <= 0 else 0.0 if count > total else incomplete_beta(count, total - count + 1, p)


def at_most(count: int, total: int, p: float) -> float:
    """The probability of `count` or fewer of `total`, each with probability p."""
    return 1.0 if count >= total else 0.0 if count < 0 else incomplete_beta(total - count, count + 1, 1.0 - p)


def median_interval(costs: NDArray[np.float64]) -> Interval | None:
    """Between which of these costs (ascending) the median lies; None for fewer than six costs, which are not enough."""
    rank = _median_rank(len(costs))
    return None if rank == 0 else (float(costs[rank - 1]), float(costs[-rank]))


def _median_rank(total: int) -> int:
    """The largest r such that fewer than r of so many fair coins show heads with probability at most TAIL."""
    low, high = 0, total // 2  # low holds, and high + 1 does not
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if at_most(middle - 1, total, 0.5) <= TAIL else (low, middle - 1)
    return low


def mean_interval(costs: NDArray[np.float64], seed: int) -> Interval | None:
    """The bootstrap's percentiles of the mean; of many costs the normal interval; None of too few."""
    if len(costs) < FEWEST:
        return None
    if len(costs) > MOST_RESAMPLED:
        half = NORMAL * float(np.std(costs, ddof=1)) / math.sqrt(len(costs))
        return float(np.mean(costs)) - half, float(np.mean(costs)) + half
    rng, at_once = np.random.default_rng([seed, len(costs)]), 100
    drawn = (rng.integers(len(costs), size=(at_once, len(costs))) for _ in range(RESAMPLES // at_once))
    means = np.concatenate([costs[some].mean(axis=1) for some in drawn])
    low, high = np.quantile(means, [TAIL, 1.0 - TAIL]).tolist()
    return low, high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's evaluation of its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    tiny = 1e-300
    upper, lower = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    lower = 1.0 / (lower if abs(lower) > tiny else tiny)
    result, m = lower, 0
    while True:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        before = result
        for term in (even, odd):
            lower, upper = 1.0 + term * lower, 1.0 + term / upper
            lower = 1.0 / (lower if abs(lower) > tiny else tiny)
            upper = upper if abs(upper) > tiny else tiny
            result *= lower * upper
        if abs(result - before) <= 1e-15 * abs(result) or m > 100_000:
            return result


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function of [0, 1] crosses zero."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (low, middle) if rising(middle) > 0.0 else (middle, high)
    return (low + high) / 2.0
