"""Lines above and below an activation on an interval, in exact arithmetic.

An upper line of f (or of -f) on [low, high] with slope m is  m z + t  with t at least the largest f(z) - m z. The
interval has parts in which f is convex, where that is largest at an end; in which it is concave, where
f(z) <= f(e) + f'(e) (z - e)  for any e there; and, of width 2^-60, around a turn, where f only grows or only falls.
Where a line should touch is guessed in floating point: any m and e are sound.
"""

from __future__ import annotations

from functools import lru_cache

from . import logistic
from .activations import IDENTITY, LOGISTIC, TURN_BITS, Curve
from .layers import SLOPE_BITS
from .logistic import Line
from .softmax import BITS

PIECES = 17
"""Of an interval that is guessed in: an odd number, so that its middle is inside one."""
HALVINGS = 40
FARTHEST_GUESS = 2.0**60

ONE = 1 << SLOPE_BITS
CONVEX, CONCAVE, TURNING = "convex", "concave", "turning"
Part = tuple[str, int, int]
"""How the function bends, and from where to where."""


@lru_cache(maxsize=512)
def lines(curve: Curve, low: int, high: int, grid: int) -> tuple[Line, Line]:
    """A line above an activation on [low, high], in units of 2^-grid, and one below it."""
    if curve.name == LOGISTIC:
        return logistic.lines(low, high, grid)
    if curve.name == IDENTITY:
        return (1 << SLOPE_BITS, 0), (1 << SLOPE_BITS, 0)
    slope, shift = _Mirrored(curve, -1, grid).above(low, high)
    return _Mirrored(curve, 1, grid).above(low, high), (-slope, -shift)


def values_on(curve: Curve, low: int, high: int, grid: int) -> tuple[int, int]:
    """The least and the largest value on an interval, in units of 2^-grid, outward."""
    least, most = curve.values(low, high, grid)
    return (least << grid) >> BITS, -((-most << grid) >> BITS)


class _Mirrored:
    """An activation, or minus it."""

    def __init__(self, curve: Curve, sign: int, grid: int) -> None:
        self.curve, self.sign, self.grid = curve, sign, grid

    def most(self, z: int) -> int:
        """At least the value at z, in units of 2^-256."""
        low, high = self.curve.value(z, self.grid)
        return high if self.sign > 0 else -low

    def slope(self, z: int) -> tuple[int, int]:
        low, high = self.curve.slope(z, self.grid)
        return (low, high) if self.sign > 0 else (-high, -low)

    def guess(self, z: float) -> tuple[float, float]:
        value, slope = self.curve.guess(z)
        return self.sign * value, self.sign * slope

    def above(self, low: int, high: int) -> Line:
        parts = self.parts(low, high)
        slope, touching = self._touching(parts, low, high)
        shifts: list[int] = []
        for bend, first, last in parts:
            values = {z: self._up(self.most(z)) for z in (first, last)}
            if bend == CONVEX:
                shifts += [value - slope * z for z, value in values.items()]
            elif bend == TURNING:
                shifts.append(max(values.values()) + max(-slope * first, -slope * last))
            else:
                at = touching if touching is not None else self._parallel(slope, first, last)
                shifts += self._tangent(slope, at, first, last)
        return slope, max(shifts)

    def parts(self, low: int, high: int) -> list[Part]:
        """The interval, part by part."""
        bends = (CONVEX, CONCAVE) if self.sign > 0 else (CONCAVE, CONVEX)
        if self.curve.turn is None:
            return [(bends[0], low, high)]
        turn, shift = self.curve.turn, self.grid - TURN_BITS
        inner = turn << shift if shift >= 0 else turn >> -shift
        outer = turn + 1 << shift if shift >= 0 else -(-(turn + 1) >> -shift)
        ends = (low, -outer, -inner, inner, outer, high)
        kinds = (bends[1], TURNING, bends[0], TURNING, bends[1])
        found = [(kind, max(a, low), min(b, high)) for kind, a, b in zip(kinds, ends, ends[1:], strict=False)]
        if low == high:
            return [next(one for one in found if one[1] == one[2])]
        return [one for one in found if one[1] < one[2]]

    def _tangent(self, slope: int, at: int, first: int, last: int) -> list[int]:
        """What a shift must be at least on a part in which the function is below its tangent at a point."""
        there, (least, most) = self.most(at), self.slope(at)
        return [
            -(-((there << self.grid) + (most if z > at else least) * (z - at)) >> BITS - SLOPE_BITS) - slope * z
            for z in (first, last)
        ]

    def _up(self, value: int) -> int:
        """A value in units of 2^-(P+S), rounded up."""
        return -((-value << self.grid + SLOPE_BITS) >> BITS)

    def _chord(self, low: int, high: int) -> int:
        if low == high:
            return self.slope(low)[0] >> BITS - SLOPE_BITS
        return (self.most(high) - self.most(low) << self.grid + SLOPE_BITS) // ((high - low) << BITS)

    def _touching(self, parts: list[Part], low: int, high: int) -> tuple[int, int | None]:
        """A slope, and, if there is only one concave part, the middle of which it is that of, this middle."""
        if all(bend != CONCAVE for bend, _, _ in parts):
            return self._chord(low, high), None
        middle = (low + high) // 2
        if len(parts) == 1:
            return self.slope(middle)[0] >> BITS - SLOPE_BITS, middle
        places = [low + (high - low) * k // PIECES for k in range(PIECES + 1)]
        points = [_float(z, self.grid) for z in places]
        values = [self.guess(z)[0] for z in points]
        if any(bend == CONCAVE and first <= middle <= last for bend, first, last in parts):
            center = _float(middle, self.grid)
            value, slope = self.guess(center)
            if all(v <= value + slope * (z - center) for z, v in zip(points, values, strict=True)):
                return self.slope(middle)[0] >> BITS - SLOPE_BITS, None
        return self._chord(*(places[k] for k in _hull_at_middle(points, values))), None

    def _parallel(self, slope: int, first: int, last: int) -> int:
        """Where on a part in which the slope falls it is about this one."""
        wanted = _float(slope, SLOPE_BITS)
        left, right = _float(first, self.grid), _float(last, self.grid)
        if self.guess(left)[1] <= wanted:
            return first
        if self.guess(right)[1] >= wanted:
            return last
        for _ in range(HALVINGS):
            center = 0.5 * (left + right)
            if self.guess(center)[1] > wanted:
                left = center
            else:
                right = center
        top, bottom = left.as_integer_ratio()
        return max(min((top << self.grid) // bottom, last), first)


def _float(z: int, grid: int) -> float:
    """About a number of units of 2^-grid."""
    far = int(FARTHEST_GUESS) << grid
    return max(min(z, far), -far) / (1 << grid)


def _hull_at_middle(points: list[float], values: list[float]) -> tuple[int, int]:
    """Two points, one on each side of the middle, between which a line is highest there."""
    half = len(points) // 2
    center = 0.5 * (points[half - 1] + points[half])
    best, found = None, (half - 1, half)
    for j in range(half, len(points)):
        for k in range(half):
            wide = points[j] - points[k]
            height = values[k] + (values[j] - values[k]) * ((center - points[k]) / wide) if wide > 0.0 else values[k]
            if best is None or height > best:
                best, found = height, (k, j)
    return found


def chords_of(bounds: list[tuple[int, int]]) -> tuple[list[int], list[int], list[int]]:
    """For each ReLU: relu(z) <= above * z + shift, and >= below * z, on its interval."""
    above, shift, below = [], [], []
    for low, high in bounds:
        if low >= 0 or high <= 0:
            slope = ONE if low >= 0 else 0
            above.append(slope)
            shift.append(0)
            below.append(slope)
        else:
            slope = (high << SLOPE_BITS) // (high - low)
            above.append(slope)
            shift.append(max(-slope * low, high * (ONE - slope)))
            below.append(ONE if high > -low else 0)
    return above, shift, below
