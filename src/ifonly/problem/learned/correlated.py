"""Mahalanobis cost: || L (x - x0) ||_1, where L^T L is the inverse covariance of the data (DACE).

A condition on the answer here; `answering.correlated` minimises the cost itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.problem.constraints import Constraint, Range
from ifonly.problem.disjunctions import Alternative, Ordinary, PersonContext
from ifonly.problem.distance_rules import checked_length, unrolled
from ifonly.problem.learned.data import only, points_of
from ifonly.problem.parts import Literal, Part, UnrolledColumns, linear_part
from ifonly.schema import Choice, Schema
from ifonly.schema.values import show_number

Floats = NDArray[np.float64]

COST_TOLERANCE = 1e-9
"""Relative: how far a correlated cost may exceed its cap, which real numbers meet only up to rounding."""

MOST_CONDITION = 1e10
"""Of a covariance that is inverted: beyond it, fewer than six digits of the inverse can be trusted."""


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """|| L (z - z0) ||_1, the l1 form of the Mahalanobis distance (DACE): z are numbers, levels, and a 0/1 column a
    category; L^T L is the inverse of their covariance in the data.

    A change along the grain of the data costs little, one against it much. `within(at_most)` is a condition on the
    answer; `Explainer.explain_correlated` minimises the cost itself.
    """

    schema: Schema
    factor: Floats
    """L over unrolled columns."""
    reach: Floats
    """How far a change that costs 1 can move each z."""

    @classmethod
    def of(cls, schema: Schema, table: Any, *, ridge: float = 1e-3) -> Mahalanobis:
        """From data. `ridge` is added to the variances (of standardised columns), so that constant and redundant
        columns do no harm."""
        points = points_of(schema, table, whole=True)
        ridge = checked_length("The ridge", ridge)
        coding = _coding(schema)
        if not len(coding):
            raise QuestionError("Nothing can change: every feature of the schema has one option only.")
        z = np.array([unrolled(schema, point) for point in points]) @ coding.T
        with np.errstate(all="ignore"):  # what overflows is refused below
            largest = np.abs(z).max(axis=0)  # squares of numbers above 1e154 would overflow
            spread = (z / np.where(largest > 0, largest, 1.0)).std(axis=0) * largest
            scale = 1.0 / np.where(spread > 0, spread, 1.0)
            covariance = np.cov(z * scale, rowvar=False, bias=True).reshape(len(scale), len(scale))
            factor = _factor(covariance + ridge * np.eye(len(scale)))
            cost, reach = (factor * scale) @ coding, np.abs(np.linalg.inv(factor)).max(axis=1) / scale
        if not (np.isfinite(cost).all() and np.isfinite(reach).all()):
            raise QuestionError("The data's numbers are too large, or too close together, to measure changes by them.")
        return cls(schema, cost, reach)

    def between(self, before: Any, after: Any) -> float:
        """The cost of a change, between rows."""
        return float(np.abs(self.terms(self.schema.read(before), self.schema.read(after))).sum())

    def terms(self, before: Floats, after: Floats) -> Floats:
        """L (z - z0), between points."""
        return np.asarray(self.factor @ (unrolled(self.schema, after) - unrolled(self.schema, before)))

    def box(self, before: Floats, at_most: float) -> Iterator[Constraint]:
        """What each feature can be after a change that costs at most so much."""
        reach = self.reach * at_most * (1.0 + COST_TOLERANCE)
        coding, columns, k = _coding(self.schema), UnrolledColumns(self.schema), 0
        for g, feature in enumerate(self.schema.features):
            own = columns.of(feature.name)
            rows = slice(
                k, k + (len(feature.options) - 1 if isinstance(feature, Choice) and not feature.ordered else 1)
            )
            k = rows.stop
            if isinstance(feature, Choice):
                z = coding[rows, own]
                yield from only(feature, (np.abs(z - z[:, [int(before[g])]]) <= reach[rows, None]).all(axis=0))
            else:
                yield Range(feature.name, float(before[g] - reach[rows][0]), float(before[g] + reach[rows][0]))

    def within(self, at_most: float) -> CorrelatedWithin:
        """The condition that the change costs at most so much."""
        return CorrelatedWithin(self, checked_length("The correlated change", at_most))


@dataclass(frozen=True, eq=False)
class CorrelatedWithin:
    """A sum of absolute values is at most so much, that is, for every choice of signs the signed sum is.

    The choices are far too many to list, but few of them matter: those of rows that an answer would otherwise be.
    """

    cost: Mahalanobis
    at_most: float

    def check(self, schema: Schema) -> None:
        if schema != self.cost.schema:
            raise QuestionError("This cost was learned for another schema; learn it from data of this one.")

    def holds(self, context: PersonContext, after: Floats) -> bool:
        return bool(np.abs(self.cost.terms(context.before, after)).sum() <= self.at_most * (1.0 + COST_TOLERANCE))

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        cut = self.cut(context, np.sign(self.cost.terms(context.before, after)))
        yield Alternative(0.0, (cut, *self.cost.box(context.before, self.at_most)))

    def cut(self, context: PersonContext, signs: Floats) -> SignedSum:
        """What the condition says for one choice of signs."""
        weight = signs @ self.cost.factor
        start = float(weight @ unrolled(context.schema, context.before))
        return SignedSum(tuple(weight.tolist()), start + self.at_most * (1.0 + COST_TOLERANCE / 2.0))

    def describe(self) -> str:
        return f"a correlated change of at most {show_number(self.at_most)}"


@dataclass(frozen=True)
class SignedSum:
    """weight.u <= at_most, where u are unrolled columns."""

    weight: tuple[float, ...]
    at_most: float

    def check(self, schema: Schema) -> None:
        assert len(self.weight) == UnrolledColumns(schema).width

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        return bool(np.array(self.weight) @ unrolled(schema, after) <= self.at_most)

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return (linear_part(columns, Literal(-np.array(self.weight), self.at_most)),)

    def describe(self) -> str:
        return "a correlated change that is small enough"


def _factor(covariance: Floats) -> Floats:
    """L with L^T L the inverse, where that can be computed: an inverse that is lost in rounding would prove nothing."""
    if not np.isfinite(covariance).all():
        raise QuestionError("The covariance of the data is not finite: its numbers are too large, or too near.")
    if not np.linalg.cond(covariance) < MOST_CONDITION:
        raise QuestionError("Columns of the data depend on each other; give a larger ridge, such as 1e-3.")
    inverse = np.linalg.inv(covariance)
    return np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2.0).T)


def _coding(schema: Schema) -> Floats:
    """Rows: z as linear functions of unrolled columns. Levels by their number; of k categories k - 1 have a column."""
    columns = UnrolledColumns(schema)
    rows = []
    for feature in schema.features:
        own = columns.of(feature.name)
        if isinstance(feature, Choice) and not feature.ordered:
            rows += [np.eye(columns.width)[own.start + i] for i in range(1, len(feature.options))]
            continue
        row = np.zeros(columns.width)
        row[own] = np.arange(len(feature.options)) if isinstance(feature, Choice) else 1.0
        rows.append(row)
    return np.array(rows)
