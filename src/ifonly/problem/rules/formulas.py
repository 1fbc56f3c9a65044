"""Formulas over rows: comparisons of linear expressions and memberships, joined by and, or, not, judged exactly.

A comparison of numbers is  constant + sum_g a_g x_g + sum_g b_g[option of g]  >=, >, = or != 0  in whole coefficients,
and is judged in rational arithmetic on decimals: those that were written, and those that the numbers of the row stand
for (see `ifonly.schema.decimals`), so 0.1 and 0.2 meet x + y <= 0.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from ifonly.schema import Schema
from ifonly.schema.decimals import written

ROUNDING = 2.0**-40
"""Relative: what float64 may lose in a sum of fewer than 4,000 terms; beyond it a sign is certain."""

COMPARES = {">=": ge, "<=": le, ">": gt, "<": lt, "=": eq, "!=": ne}


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + sum of coefficient times number + sum of values by option; features by their position."""

    numbers: tuple[tuple[int, int], ...]
    options: tuple[tuple[int, tuple[int, ...]], ...]
    constant: int

    def value(self, point: Sequence[float] | NDArray[np.float64]) -> int | Fraction:
        total: int | Fraction = self.constant
        for g, values in self.options:
            total += values[int(point[g])]
        for g, coefficient in self.numbers:
            x = float(point[g])
            total += coefficient * (int(x) if x.is_integer() and abs(x) < 2**53 else written(x))
        return total

    def signs(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sign of the value in each row: in float64 where rounding leaves no doubt, else by the value itself."""
        try:
            terms = [coefficient * points[:, g] for g, coefficient in self.numbers]
            terms += [np.array(values, dtype=np.float64)[points[:, g].astype(np.intp)] for g, values in self.options]
            total = np.full(len(points), float(self.constant))
        except OverflowError:
            return np.array([np.sign(float(self.value(point) > 0) - float(self.value(point) < 0)) for point in points])
        size = np.abs(total)
        for term in terms:
            total, size = total + term, size + np.abs(term)
        result = np.sign(total)
        doubtful = ~((np.abs(total) > ROUNDING * size) & (size < math.inf))
        if doubtful.any():  # sums of whole numbers are exact
            whole = [points[:, g] % 1.0 == 0.0 for g, _ in self.numbers]
            doubtful &= ~((size < 2.0**53) & np.all(whole, axis=0))
        for i in np.flatnonzero(doubtful).tolist():
            value = self.value(points[i])
            result[i] = (value > 0) - (value < 0)
        return result

    def negative(self) -> Linear:
        return Linear(
            tuple((g, -a) for g, a in self.numbers),
            tuple((g, tuple(-v for v in values)) for g, values in self.options),
            -self.constant,
        )

    def plus(self, constant: int) -> Linear:
        return Linear(self.numbers, self.options, self.constant + constant)


@dataclass(frozen=True, slots=True)
class Compare:
    """linear >= 0, > 0, = 0 or != 0; `words` is how the rule put it."""

    linear: Linear
    sign: str
    words: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """The feature, by position, has one of these options."""

    feature: int
    options: frozenset[int]


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Denial:
    part: Formula


Formula: TypeAlias = Compare | Member | Every | Some | Denial


def holds_each(formula: Formula, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """In which rows is it true?"""
    match formula:
        case Compare(linear, sign):
            return np.asarray(COMPARES[sign](linear.signs(points), 0))
        case Member(g, options):
            return np.isin(points[:, g], list(options))
        case Every(parts) | Some(parts):
            every = isinstance(formula, Every)
            result = np.full(len(points), every)
            for part in parts:
                one = holds_each(part, points)
                result = result & one if every else result | one
            return result
        case Denial(part):
            return ~holds_each(part, points)
        case _:
            assert_never(formula)


def features_of(formula: Formula) -> frozenset[int]:
    """The positions of the features that it looks at."""
    match formula:
        case Compare(linear, _):
            return frozenset(g for g, _ in (*linear.numbers, *linear.options))
        case Member(g, _):
            return frozenset((g,))
        case Every(parts) | Some(parts):
            return frozenset().union(*map(features_of, parts))
        case Denial(part):
            return features_of(part)
        case _:
            assert_never(formula)


def without_missing(formula: Formula, schema: Schema) -> Formula:
    """The part of a formula that does not need the missing numbers of a schema."""
    return _without(formula, schema.unknown, True) or Every(())


def _without(formula: Formula, unknown: frozenset[int], positive: bool) -> Formula | None:
    """The formula without comparisons of missing numbers, which are neither true nor false: a rule is broken only where
    it is false. None where nothing is left to break; under a negation (not `positive`), nothing that holds.
    """
    match formula:
        case Compare() | Member():
            return None if features_of(formula) & unknown else formula
        case Denial(part):
            left = _without(part, unknown, not positive)
            return None if left is None else Denial(left)
        case Every(parts) | Some(parts):
            kept = [_without(part, unknown, positive) for part in parts]
            known = tuple(part for part in kept if part is not None)
            enough = len(known) == len(parts) if isinstance(formula, Every) != positive else bool(known) or not parts
            return type(formula)(known) if enough else None
        case _:
            assert_never(formula)
