"""Nearness to data: within a distance of some row of it. A disjunctive constraint, answered by branching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.problem.constraints import Constraint, Range
from ifonly.problem.disjunctions import Alternative, Ordinary, PersonContext
from ifonly.problem.distance import Distance
from ifonly.problem.distance_rules import AtMostFar, check_piecewise_linear, checked_length
from ifonly.problem.learned.data import only, points_of
from ifonly.schema import Choice, Schema
from ifonly.tolerances import EDGE

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Near:
    """The answer is within `at_most` of at least one row of the data.

    `Near.of(schema, table, at_most)` reads the rows. A union of balls, one per row: it is searched ball by ball, in the
    order of what each can still be worth, until no other can hold a nearer answer.
    """

    points: Floats
    at_most: float
    distance: Distance = field(default_factory=Distance)

    @classmethod
    def of(cls, schema: Schema, table: Any, at_most: float, distance: str | Distance = "l1") -> Near:
        own = distance if isinstance(distance, Distance) else Distance(distance)
        near = cls(
            np.unique(points_of(schema, table, whole=True), axis=0),
            checked_length("The distance to the data", at_most),
            own,
        )
        near.check(schema)
        return near

    def check(self, schema: Schema) -> None:
        check_piecewise_linear(schema, self.distance)
        if self.points.ndim != 2 or self.points.shape[1] != len(schema):
            raise QuestionError(f"The rows of the data must have {len(schema)} values each; make them with Near.of.")

    @property
    def reach(self) -> float:
        """Rows at `at_most` to the last bits count as near."""
        return self.at_most * (1.0 + EDGE)

    def holds(self, context: PersonContext, after: Floats) -> bool:
        return bool(self.distance.between(context.schema, after, self.points).min() <= self.reach)

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        schema, before, distance = context
        away = self.distance.between(schema, before, self.points)
        same = distance == self.distance  # then the triangle inequality bounds what a ball is worth
        for i in np.argsort(away, kind="stable").tolist():
            point = self.points[i]
            bound = max(0.0, float(away[i]) - self.reach) if same else 0.0
            rule = AtMostFar(point=point.tolist(), at_most=self.reach, distance=self.distance)
            inside = box(schema, point, self.reach, self.distance)
            yield Alternative(bound * (1.0 - EDGE), (rule, *inside), boxed=True)

    def describe(self) -> str:
        return f"within {self.at_most:g} ({self.distance.name}) of a row of the data"


def box(schema: Schema, point: Floats, reach: float, distance: Distance) -> Iterator[Constraint]:
    """What each feature can be at most so far from a point: it says no more than `AtMostFar`, but to every method."""
    weight, scale = distance.weight_vector(schema), distance.scale_vector(schema)
    for g, feature in enumerate(schema.features):
        others = np.repeat(point[None, :], len(feature.options), axis=0) if isinstance(feature, Choice) else None
        if others is not None:
            others[:, g] = np.arange(len(others))
            yield from only(feature, distance.between(schema, point, others) <= reach)
        elif distance.rate:
            radius = reach * len(schema) * scale[g] / (distance.rate * weight[g]) * (1.0 + EDGE)
            yield Range(feature.name, float(point[g]) - radius, float(point[g]) + radius)
