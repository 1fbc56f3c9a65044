"""Support of the data: the values that occur, by feature and in pairs of features, as constraints and linear rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.problem.constraints import Constraint, Range
from ifonly.problem.disjunctions import Ordinary
from ifonly.problem.learned.data import check_learning, ends_of, only, partners_of, points_of
from ifonly.problem.parts import Literal, Part, UnrolledColumns, linear_part
from ifonly.schema import Choice, Numeric, Real, Schema
from ifonly.tolerances import EDGE

Floats = NDArray[np.float64]


def support(
    schema: Schema, table: Any, *, quantiles: tuple[float, float] = (0.0, 1.0), least: int = 1
) -> tuple[Constraint, ...]:
    """The options that occur at least `least` times, and the range of each number between two quantiles of the data."""
    points = points_of(schema, table)
    check_learning(quantiles, least)
    result: list[Constraint] = []
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Choice):
            occurs = np.bincount(points[:, g].astype(np.intp), minlength=len(feature.options)) >= least
            result += only(feature, occurs)
        else:
            low, high = ends_of(feature, points[:, g], quantiles)
            if low > feature.lower or high < feature.upper:
                result.append(Range(feature.name, low, high))
    return tuple(result)


def pairs(
    schema: Schema, table: Any, *, quantiles: tuple[float, float] = (0.0, 1.0), least: int = 1
) -> tuple[Ordinary, ...]:
    """`support`, and besides: options only with options that occur together with them at least `least` times, and
    numbers only in the range (between two quantiles) that occurs together with each option."""
    points = points_of(schema, table)
    rules: list[Ordinary] = list(support(schema, table, quantiles=quantiles, least=least))
    choices = [(g, feature) for g, feature in enumerate(schema.features) if isinstance(feature, Choice)]
    choices.sort(key=lambda choice: len(choice[1].options))  # a pair has one rule, by the one with fewer options
    for k, (g, feature) in enumerate(choices):
        chosen = points[:, g].astype(np.intp)
        common = np.bincount(chosen, minlength=len(feature.options)) >= least
        together: dict[tuple[tuple[str, tuple[int, ...]], ...], list[int]] = {}
        for option in np.flatnonzero(common).tolist():
            partners = partners_of(points[chosen == option], choices[k + 1 :], least)
            together.setdefault(partners, []).append(option)
        rules += [OptionsTogether(feature.name, tuple(own), others) for others, own in together.items() if others]
        for h, number in enumerate(schema.features):
            if isinstance(number, Numeric):
                ends = [ends_of(number, points[chosen == i, h], quantiles) if ok else (number.lower, number.upper)
                        for i, ok in enumerate(common)]  # fmt: skip
                overall = ends_of(number, points[:, h], quantiles)
                if any(low > overall[0] or high < overall[1] for low, high in ends):
                    rules.append(NumberGivenOption(number.name, feature.name, tuple(ends)))
    return tuple(rules)


@dataclass(frozen=True)
class OptionsTogether:
    """If the feature is one of these options, then each partner is one of those: one linear part for all partners."""

    feature: str
    options: tuple[int, ...]
    partners: tuple[tuple[str, tuple[int, ...]], ...]

    def check(self, schema: Schema) -> None:
        for name in (self.feature, *(name for name, _ in self.partners)):
            if not isinstance(schema[name], Choice):
                raise QuestionError(f"Feature '{name}' is a number: it has a range given an option, not partners.")

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        if int(after[schema.index(self.feature)]) not in self.options:
            return True
        return all(int(after[schema.index(name)]) in allowed for name, allowed in self.partners)

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        """Every partner that is elsewhere costs 1; so much is allowed only where the feature is elsewhere too."""
        weight = np.zeros(columns.width)
        start = columns.of(self.feature).start
        weight[[start + i for i in self.options]] = -float(len(self.partners))
        for name, allowed in self.partners:
            weight[[columns.of(name).start + i for i in allowed]] += 1.0
        return (linear_part(columns, Literal(weight, 0.0)),)

    def describe(self) -> str:
        return f"{self.feature} occurs in the data with {', '.join(name for name, _ in self.partners)}"


@dataclass(frozen=True)
class NumberGivenOption:
    """The number lies in the range that goes with the option of another feature."""

    number: str
    feature: str
    ends: tuple[tuple[float, float], ...]

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        if not isinstance(schema[self.number], Numeric) or not isinstance(feature, Choice):
            raise QuestionError(f"'{self.number}' must be a number and '{self.feature}' a feature with options.")
        if len(self.ends) != len(feature.options):
            raise QuestionError(f"There must be a range for each of the {len(feature.options)} options.")

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        low, high = self.ends[int(after[schema.index(self.feature)])]
        slack = self.slack(schema)
        return bool(low - slack <= after[schema.index(self.number)] <= high + slack)

    def slack(self, schema: Schema) -> float:
        """A real number at the end of its range must not be lost to rounding: the range is slightly wider."""
        number = schema[self.number]
        return EDGE * number.width if isinstance(number, Real) else 0.0

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        number, own = columns.schema[self.number], columns.of(self.feature)
        assert isinstance(number, Numeric)
        slack = self.slack(columns.schema)
        parts = []
        for side, end in ((1.0, number.lower), (-1.0, number.upper)):
            ends = np.array([pair[0] if side > 0 else pair[1] for pair in self.ends])
            if (ends == end).all():
                continue
            weight = np.zeros(columns.width)
            weight[columns.of(self.number)] = side
            weight[own] = -side * ends
            parts.append(linear_part(columns, Literal(weight, slack)))
        return tuple(parts)

    def describe(self) -> str:
        return f"{self.number} is in the range that occurs with {self.feature}"
