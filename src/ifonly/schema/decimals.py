"""Exact decimal arithmetic on numbers as they are written.

A float64 stands for the shortest decimal that reads back as the same number: 0.1 for a tenth, not for the binary number
next to it. Bounds, shares, steps and distances between rows are worked out on these decimals in exact arithmetic, and
rounded once, at the end, to the nearest float64. So 100 - 57 % is 43, and three steps of 0.1 from 5.27 are 5.57.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_PARTS = 2**50
"""Of the whole numbers that a grid is made of: float64 divides them with one rounding, and tells the results apart."""


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


@dataclass(frozen=True, slots=True)
class Grid:
    """The numbers origin + k step for k = 0, 1, ..., steps, each the float64 nearest to the exact one.

    They are (first + k by) / parts, in whole numbers of at most `MOST_PARTS`: the division is the only rounding.
    """

    first: int
    by: int
    parts: int
    steps: int

    @classmethod
    def of(cls, lower: float, upper: float, step: Fraction) -> Grid | None:
        """The grid from lower up to the last step that is not above upper; None if it is too fine for float64."""
        origin = written(lower)
        multiple = round(origin / step) * step
        origin = multiple if rounded(multiple) == lower else origin  # 0.08333333333333333 is one step of 1/12
        parts = math.lcm(origin.denominator, step.denominator)
        first, by = int(origin * parts), int(step * parts)
        steps = max(0, math.floor((written(upper) - origin) / step))
        if max(abs(first), abs(first + (steps + 2) * by), parts) > MOST_PARTS:
            return None
        grid = cls(first, by, parts, steps)
        return cls(first, by, parts, steps + 1) if grid.value(steps + 1) <= upper else grid

    @property
    def step(self) -> Fraction:
        return Fraction(self.by, self.parts)

    @property
    def decimal(self) -> bool:
        """Are its numbers decimals, which float64 writes as they are? (Thirds are not.)"""
        return pow(10, self.parts.bit_length(), self.parts) == 0

    def value(self, k: int) -> float:
        """The number after k steps."""
        return (self.first + k * self.by) / self.parts  # Python rounds a quotient of whole numbers once

    def values(self, k: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers after so many steps each."""
        return np.asarray((self.first + self.by * k.astype(np.float64)) / self.parts)

    def place(self, number: float) -> Fraction:
        """How many steps a number is above the first, exactly: whole on the grid."""
        k = self.nearest(number)
        return Fraction(k) if self.value(k) == number else (written(number) * self.parts - self.first) / self.by

    def nearest(self, number: float) -> int:
        """The place of the nearest number of the grid."""
        return min(max(round((number * self.parts - self.first) / self.by), 0), self.steps)

    def nearest_to(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers of the grid that these are nearest to."""
        return _nearest(numbers, *map(float, (self.first, self.by, self.parts, self.steps)))

    def between(self, first: float, last: float) -> tuple[int, int]:
        """The first and the last place in [first, last]; the first is the larger one if there is none."""
        low = min(max(math.ceil(self.place(first)), 0), self.steps + 1) if first > self.value(0) else 0
        high = max(min(math.floor(self.place(last)), self.steps), -1) if last < self.value(self.steps) else self.steps
        return low, high


class Grids:
    """The grids of several columns, for rows of these."""

    def __init__(self, grids: Sequence[Grid]) -> None:
        numbers = [(grid.first, grid.by, grid.parts, grid.steps) for grid in grids]
        self._first, self._by, self._parts, self._steps = np.array(numbers, dtype=np.float64).T
        self.ends = np.array([(grid.value(0), grid.value(grid.steps)) for grid in grids]).T
        """The first number of each, and the last."""

    def nearest_to(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each column, the numbers of its grid that these are nearest to."""
        return _nearest(numbers, self._first, self._by, self._parts, self._steps)


def _nearest(numbers: NDArray[np.float64], first: Any, by: Any, parts: Any, steps: Any) -> NDArray[np.float64]:
    places = np.minimum(np.maximum(np.rint((numbers * parts - first) / by), 0.0), steps)
    return np.asarray((first + by * places) / parts)
