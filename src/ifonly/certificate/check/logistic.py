"""The logistic function in exact arithmetic: its values from both sides, and lines above and below it on an interval.

    s(z) = 1 / (1 + exp(-z)),    s' = s (1 - s),    s(-z) = 1 - s(z),    tanh(z) = 2 s(2 z) - 1

It is convex below 0 and concave above. With any slope m, the line  m z + t  is above it on [low, high] if t is at least
s(z) - m z  at the ends of the part below 0, and  s(e) + s'(e) (z - e) - m z  at the ends of the part above 0, for
any e there. Slopes are guessed in floating point, shifts are exact and rounded outward.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from .layers import SLOPE_BITS
from .softmax import BITS, FARTHEST, exp_bounds

HALVINGS = 14
"""Of the search for the point whose tangent is above the other end."""

Line = tuple[int, int]
"""Slope and shift: in units of 2^-S, and of 2^-(P+S)."""


def value_bounds(z: int, grid: int) -> tuple[int, int]:
    """The logistic function of z (in units of 2^-grid) from below and above, in units of 2^-256."""
    one, far = 1 << BITS, FARTHEST << grid
    low, high = exp_bounds(Fraction(min(abs(z), far), 1 << grid))
    if z < 0:
        return (0 if z < -far else (one << BITS) // (one + high)), -(-(one << BITS) // (one + low))
    return (low << BITS) // (one + low), (one if z > far else -(-(high << BITS) // (one + high)))


def slope_bounds(z: int, grid: int) -> tuple[int, int]:
    """Its derivative, in the same units: s (1 - s) falls with |z|."""
    one = 1 << BITS
    low, high = value_bounds(abs(z), grid)
    return low * max(one - high, 0) >> BITS, -(-high * (one - low) >> BITS)


def values_on(low: int, high: int, grid: int) -> tuple[int, int]:
    """The least and the largest value on an interval, in units of 2^-grid, outward."""
    least, most = value_bounds(low, grid)[0], value_bounds(high, grid)[1]
    return (least << grid) >> BITS, -((-most << grid) >> BITS)


@lru_cache(maxsize=1024)
def lines(low: int, high: int, grid: int) -> tuple[Line, Line]:
    """A line above the logistic function on [low, high], and one below it."""
    slope, shift = _above(-high, -low, grid)
    return _above(low, high, grid), (slope, (1 << grid + SLOPE_BITS) - shift)


def _above(low: int, high: int, grid: int) -> Line:
    point = _touching(low, high, grid)
    if point is None:
        slope = _chord(low, high, grid)
        point = high
    else:
        slope = slope_bounds(point, grid)[0] >> BITS - SLOPE_BITS
    shifts = [_rounded(value_bounds(z, grid)[1], grid) - slope * z for z in (low, min(high, 0)) if low < 0]
    if high >= 0:
        there, (least, most) = value_bounds(point, grid)[1], slope_bounds(point, grid)
        for z in (max(low, 0), high):
            rise = (most if z > point else least) * (z - point)
            shifts.append(-(-((there << grid) + rise) >> BITS - SLOPE_BITS) - slope * z)
    return slope, max(shifts)


def _rounded(value: int, grid: int) -> int:
    """A value in units of 2^-(P+S), rounded up."""
    return -((-value << grid + SLOPE_BITS) >> BITS)


def _chord(low: int, high: int, grid: int) -> int:
    """The slope between the ends, about."""
    if low == high:
        return slope_bounds(low, grid)[0] >> BITS - SLOPE_BITS
    rise = max(value_bounds(high, grid)[1] - value_bounds(low, grid)[0], 0)
    return (rise << grid + SLOPE_BITS) // ((high - low) << BITS)


def _touching(low: int, high: int, grid: int) -> int | None:
    """Where above 0 a line above may touch: nearest to the middle with a tangent that is above the lower end, too.
    None where there is no such point: then the line is the chord.
    """
    if high <= 0:
        return None
    far, one = FARTHEST << grid, 1 << grid
    left, right = (max(min(end, far), -far) / one for end in (low, high))
    bad, good = max(0.5 * (left + right), 0.0), right
    if low >= 0 or _is_above(bad, left):
        good = bad
    elif not _is_above(right, left):
        return None
    else:
        for _ in range(HALVINGS):
            middle = 0.5 * (bad + good)
            bad, good = (bad, middle) if _is_above(middle, left) else (middle, good)
    top, bottom = good.as_integer_ratio()
    return max(min((top << grid) // bottom, high), low, 0)


def _is_above(at: float, end: float) -> bool:
    """Is the tangent at a point above the function at an end? In floating point: a guess."""
    value = 1.0 / (1.0 + math.exp(-at))
    return value + value * (1.0 - value) * (end - at) >= 1.0 / (1.0 + math.exp(-end))
