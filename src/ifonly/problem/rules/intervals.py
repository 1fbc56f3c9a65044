"""Interval arithmetic on sets: the values that a rule leaves one number, as disjoint closed intervals in order.

A rule about a single number (`n in (0, 5, 10)`, `Age != 30`, `if Age >= 30 then Age >= 40`) says no more than this, and
unions and intersections of intervals stay as small as what they say, where clauses multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

Intervals: TypeAlias = list[tuple[Fraction, Fraction]]


def union(several: Sequence[Intervals], step: int) -> Intervals:
    """What is in one of them. `step`: of a whole number, between whose steps there is nothing; 0 for a real one."""
    result: Intervals = []
    for low, high in sorted(pair for one in several for pair in one):
        if result and low <= result[-1][1] + step:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return result


def intersection(several: Sequence[Intervals]) -> Intervals:
    """What is in all of them, of which there is at least one."""
    while len(several) > 1:
        pairs = [several[i : i + 2] for i in range(0, len(several), 2)]
        several = [_both(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return several[0]


def _both(one: Intervals, other: Intervals) -> Intervals:
    result: Intervals = []
    i = j = 0
    while i < len(one) and j < len(other):
        low, high = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if low <= high:
            result.append((low, high))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return result
