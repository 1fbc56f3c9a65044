"""Rows on the very edge of a rule about real numbers.

What rules leave is sometimes a single value (`Income <= 0` over [0, 50000]), and a method in floating point comes near
it, not to it. Rules are written in round numbers, so the row that is meant is a rounder one close by.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ifonly.problem.costs import Floats
from ifonly.problem.lowering import Lowered

NEAR = 1e-6
"""A share of a domain: how far a rounder value may be."""
DECIMALS = 7


def rounder(lowered: Lowered, factual: Floats, low: Floats, high: Floats, point: Floats) -> Iterator[Floats]:
    """What a point all but is: numbers on few decimals, on the ends of their domains, on the factual; then itself."""
    near, ends = NEAR * (high - low), point.copy()
    for target in (low, high, factual):
        close = lowered.numeric & (np.abs(point - target) <= near)
        ends[close] = np.clip(target, low, high)[close]
    real = lowered.numeric & (lowered.step == 0.0)
    for decimals in range(DECIMALS):
        rounded = np.clip(np.round(ends, decimals), low, high)
        yield np.where(real & (np.abs(rounded - ends) <= near), rounded, ends)
    yield ends
    yield point
