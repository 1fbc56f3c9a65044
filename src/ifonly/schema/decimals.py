"""Numbers as people write them.

A float64 stands for the shortest decimal that reads back as the same number: 0.1 for a tenth, not for the binary number
next to it. Bounds, shares, steps and distances between rows are worked out on these decimals in exact arithmetic, and
rounded once, at the end, to the nearest float64. So 100 - 57 % is 43, and three steps of 0.1 from 5.27 are 5.57.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache


@lru_cache(maxsize=1 << 14)
def written(number: float) -> Fraction:
    """The decimal that a float64 stands for."""
    number = float(number)
    return Fraction(int(number)) if abs(number) < 2**53 and number.is_integer() else Fraction(repr(number))


def rounded(number: Fraction | int) -> float:
    """The nearest float64; infinite beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def stepped(start: float, steps: int, step: float) -> float:
    """So many steps away."""
    return rounded(written(start) + steps * written(step))


def steps_to(start: float, value: float, step: float) -> int:
    """How many steps away a value is, to the nearest."""
    return round((written(value) - written(start)) / written(step))


def steps_between(start: float, step: float, first: float, last: float) -> tuple[int, int]:
    """The least and the largest number of steps that end in [first, last]; the least is the larger one if none does."""
    low = math.ceil((written(first) - written(start)) / written(step))
    high = math.floor((written(last) - written(start)) / written(step))
    # a decimal with more digits than a float64 has is rounded: its float64 may be inside where it is not, or outside
    low += (stepped(start, low, step) < first) - (stepped(start, low - 1, step) >= first)
    high += (stepped(start, high + 1, step) <= last) - (stepped(start, high, step) > last)
    return low, high
