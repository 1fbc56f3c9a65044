"""Clauses over a table of points: implications between conditions, and linear inequalities between numbers.

    FeatureCondition  a feature has one of some options, or lies in an interval
    Implication       if one condition holds of a row, so does another
    LinearBounds      lower <= sum of coefficient times number <= upper

Each is evaluated on all rows at once, and is a sentence of the rule language.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.words import show_name, show_option
from ifonly.schema import Choice, Integer, Numeric, Schema
from ifonly.schema.number_text import clear_number

Points: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FeatureCondition:
    """The feature lies in [lower, upper], without its ends if `strict`; or it is one of these options, by number."""

    feature: int
    lower: float = -math.inf
    upper: float = math.inf
    options: frozenset[int] | None = None
    strict: bool = False

    def holds(self, points: Points) -> Rows:
        """Of which rows it holds; never of a missing number."""
        column = points[:, self.feature]
        if self.options is not None:
            return np.isin(column, sorted(self.options))
        if self.strict:
            return (column > self.lower) & (column < self.upper)
        if self.lower == self.upper:
            return column == self.lower
        return (column >= self.lower) & (column <= self.upper)

    def words(self, schema: Schema) -> str:
        feature = schema.features[self.feature]
        name = show_name(feature.name)
        if isinstance(feature, Choice):
            assert self.options is not None
            return _options_words(name, feature, self.options)
        if self.strict:
            return f"{name} > {_number(self.lower)}" if self.upper == math.inf else f"{name} < {_number(self.upper)}"
        if isinstance(feature, Integer) and (self.upper <= feature.lower or self.lower >= feature.upper):
            return f"{name} = {_number(min(self.upper, feature.upper) if self.upper <= feature.lower else self.lower)}"
        if self.lower == self.upper:
            sign = "=" if isinstance(feature, Integer) else "<=" if self.upper <= feature.lower else ">="
            return f"{name} {sign} {_number(self.lower)}"
        if self.lower == -math.inf or (isinstance(feature, Numeric) and self.lower <= feature.lower):
            return f"{name} <= {_number(self.upper)}"
        if self.upper == math.inf or (isinstance(feature, Numeric) and self.upper >= feature.upper):
            return f"{name} >= {_number(self.lower)}"
        return f"{name} in [{_number(self.lower)}, {_number(self.upper)}]"


@dataclass(frozen=True, slots=True)
class Implication:
    """Where `condition` holds, so does `consequence`."""

    condition: FeatureCondition
    consequence: FeatureCondition

    @property
    def features(self) -> tuple[int, ...]:
        return self.condition.feature, self.consequence.feature

    def relevant(self, points: Points) -> Rows:
        """The rows in which it could have failed."""
        return self.condition.holds(points) & ~np.isnan(points[:, self.consequence.feature])

    def broken(self, points: Points) -> Rows:
        return self.relevant(points) & ~self.consequence.holds(points)

    def words(self, schema: Schema) -> str:
        return f"if {self.condition.words(schema)} then {self.consequence.words(schema)}"


@dataclass(frozen=True, slots=True)
class LinearBounds:
    """lower <= sum of coefficient times number <= upper; an equation where both are within `slack` of one value."""

    terms: tuple[tuple[int, float], ...]
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def features(self) -> tuple[int, ...]:
        return tuple(feature for feature, _ in self.terms)

    def values(self, points: Points) -> Points:
        total: Points = np.zeros(len(points))
        for feature, coefficient in self.terms:
            total += coefficient * points[:, feature]
        return total

    def relevant(self, points: Points) -> Rows:
        """The rows in which it could have failed: for other values of its first feature that occur, it would have."""
        rest, (first, coefficient) = LinearBounds(self.terms[1:]).values(points), self.terms[0]
        column = points[:, first]
        ends = coefficient * np.array([np.nanmin(column), np.nanmax(column)])
        low, high = ends.min() + rest, ends.max() + rest
        return (low < self.lower - self._rounding(points)) | (high > self.upper + self._rounding(points))

    def broken(self, points: Points) -> Rows:
        values, rounding = self.values(points), self._rounding(points)
        return (values < self.lower - rounding) | (values > self.upper + rounding)

    def _rounding(self, points: Points) -> Points | float:
        """What summing in float64 can be off by; nothing where two numbers are compared."""
        whole = len(self.terms) == 2 and all(coefficient in (1.0, -1.0) for _, coefficient in self.terms)
        if whole and self.lower in (0.0, -math.inf) and self.upper in (0.0, math.inf):
            return 0.0
        size: Points = np.zeros(len(points))
        for feature, coefficient in self.terms:
            size += np.abs(coefficient * points[:, feature])
        return 1e-12 * (1.0 + size)

    def words(self, schema: Schema) -> str:
        left, right = self._sides(schema)
        if self.lower == self.upper == 0.0:
            return f"{left} = {right}"
        if (self.lower, self.upper) == (0.0, math.inf):
            return f"{left} >= {right}"
        total = " ".join(_term(schema, g, c, first=k == 0) for k, (g, c) in enumerate(self.terms))
        if self.lower == self.upper:
            return f"{total} = {_number(self.lower)}"
        low = f"{_number(self.lower)} <= " if self.lower > -math.inf else ""
        high = f" <= {_number(self.upper)}" if self.upper < math.inf else ""
        return low + total + high

    def _sides(self, schema: Schema) -> tuple[str, str]:
        """What is added, and what is taken away."""
        plus = [(g, c) for g, c in self.terms if c > 0]
        minus = [(g, -c) for g, c in self.terms if c < 0]
        left, right = (" ".join(_term(schema, g, c, first=k == 0) for k, (g, c) in enumerate(side)) or "0"
                       for side in (plus, minus))  # fmt: skip
        return left, right


Clause: TypeAlias = Implication | LinearBounds


def _options_words(name: str, feature: Choice, options: frozenset[int]) -> str:
    shown = [show_option(feature.options[k]) for k in sorted(options)]
    last = len(feature.options) - 1
    if len(shown) == 1:
        return f"{name} = {shown[0]}"
    if feature.ordered and max(options) - min(options) == len(options) - 1:
        if max(options) == last:
            return f"{name} >= {shown[0]}"
        if min(options) == 0:
            return f"{name} <= {shown[-1]}"
    others = [show_option(option) for k, option in enumerate(feature.options) if k not in options]
    if len(others) == 1:
        return f"{name} != {others[0]}"
    if len(others) < len(shown):
        return f"{name} not in ({', '.join(others)})"
    return f"{name} in ({', '.join(shown)})"


def _term(schema: Schema, feature: int, coefficient: float, *, first: bool) -> str:
    name, size = show_name(schema.names[feature]), abs(coefficient)
    sign = ("" if coefficient > 0 else "-") if first else ("+ " if coefficient > 0 else "- ")
    return sign + (name if size == 1.0 else f"{_number(size)} * {name}")


def _number(value: float) -> str:
    return clear_number(value)
