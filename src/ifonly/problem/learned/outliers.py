"""Local outlier factor with one neighbour (as in DACE), bounded from above: a disjunctive constraint, by branching.

With k = 1 the reachability distances cancel. Let y be the row of the data that is nearest to x, and r(y) how far y is
from the row that is nearest to it. Then LOF(x) = max(1, d(x, y) / r(y)), so that LOF(x) <= t says

    d(x, y) <= t r(y)     a ball around y, and
    d(x, y) <= d(x, v)    for every other row v: x is in the cell of y

Balls are the alternatives. The cell's inequalities are added where an answer breaks them: d(x, v) - d(x, y) is
piecewise linear, as both distances are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.problem.disjunctions import Alternative, Ordinary, PersonContext
from ifonly.problem.distance import Distance
from ifonly.problem.distance_rules import AtMostFar, Hinges, check_piecewise_linear, distance_in_hinges
from ifonly.problem.learned.data import points_of
from ifonly.problem.learned.near import box
from ifonly.problem.parts import Literal, Part, UnrolledColumns
from ifonly.schema import Schema
from ifonly.schema.arguments import real_number
from ifonly.schema.values import show_number

Floats = NDArray[np.float64]

MOST_ROWS = 20_000
TIE = 1e-9
"""In units of the largest radius: distances that differ by less count as equal, and rows are not too far only by so
much. What is searched keeps twice that away from every edge, so that no rounding of distances changes a verdict."""


@dataclass(frozen=True, eq=False)
class LocalOutlierFactor:
    """The local outlier factor of the answer, with one neighbour, is at most so much.

    `LocalOutlierFactor.of(schema, table)` reads the distinct rows of the table. Where several rows of it are nearest,
    the factor is the largest of those that they give.
    """

    points: Floats
    radius: Floats
    """Of each row: how far it is from the nearest other row."""
    at_most: float
    distance: Distance = field(default_factory=Distance)

    @classmethod
    def of(
        cls, schema: Schema, table: Any, at_most: float = 1.5, distance: str | Distance = "l1"
    ) -> LocalOutlierFactor:
        own = distance if isinstance(distance, Distance) else Distance(distance)
        words = "The local outlier factor is at most a number from 1 on (rows of the data have 1); it is"
        factor = real_number(at_most, words, lambda number: 1.0 <= number <= 1e6)
        points = np.unique(points_of(schema, table, whole=True), axis=0)
        if not 2 <= len(points) <= MOST_ROWS:
            raise QuestionError(
                f"A local outlier factor needs from 2 to {MOST_ROWS:,} distinct rows; the table has {len(points):,}. "
                f"Give {'a sample of them' if len(points) > 2 else 'more rows'}."
            )
        check_piecewise_linear(schema, own)
        return cls(points, _radii(schema, own, points), factor, own)

    def check(self, schema: Schema) -> None:
        check_piecewise_linear(schema, self.distance)
        if self.points.ndim != 2 or self.points.shape[1] != len(schema):
            raise QuestionError(
                f"The rows of the data must have {len(schema)} values each; make them with LocalOutlierFactor.of."
            )

    @property
    def tie(self) -> float:
        """How far apart two distances are that count as equal."""
        return TIE * float(self.radius.max())

    @property
    def reach(self) -> Floats:
        """Of each row, how far an answer may be of which it is the nearest row."""
        return np.maximum(self.at_most * self.radius - 2.0 * self.tie, 0.0)

    def factors(self, schema: Schema, points: Floats) -> Floats:
        """The local outlier factors of rows."""
        result = np.zeros(len(points))
        for i, point in enumerate(points):
            away = self.distance.between(schema, point, self.points)
            nearest = away <= away.min() + self.tie
            result[i] = max(1.0, float((away[nearest] / self.radius[nearest]).max()))
        return result

    def _refusing(self, schema: Schema, point: Floats) -> NDArray[np.int64]:
        """The rows that are nearest to a point and too far from it."""
        away = self.distance.between(schema, point, self.points)
        nearest = np.flatnonzero(away <= away.min() + self.tie)
        return nearest[away[nearest] > self.reach[nearest] + self.tie]

    def holds(self, context: PersonContext, after: Floats) -> bool:
        return not len(self._refusing(context.schema, after))

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        """Balls at first; in the ball of a row, this one is nearer than a row that refuses, or that does not refuse."""
        schema, reach = context.schema, self.reach
        cell = next((one for one in chosen if isinstance(one, Cell)), None)
        if cell is None:
            away = self.distance.between(schema, context.before, self.points)
            worth = np.maximum(away - reach, 0.0) * (1.0 - TIE) if context.distance == self.distance else 0.0 * away
            for i in np.argsort(worth, kind="stable").tolist():
                yield Alternative(float(worth[i]), self._ball(schema, i, Cell), boxed=True)
            return
        other = int(self._refusing(schema, after)[0])
        than = self.points[other].tolist()
        yield Alternative(0.0, (NearerRow(to=cell.point, than=than, by=2.0 * self.tie, distance=self.distance),))
        yield Alternative(0.0, self._ball(schema, other, AtMostFar))

    def _ball(self, schema: Schema, i: int, kind: type[AtMostFar]) -> tuple[Ordinary, ...]:
        point, reach = self.points[i], float(self.reach[i])
        within = kind(point=point.tolist(), at_most=reach, distance=self.distance)
        return within, *box(schema, point, reach, self.distance)

    def describe(self) -> str:
        return f"a local outlier factor of at most {show_number(self.at_most)}"


class Cell(AtMostFar):
    """The ball around the row of the data that is nearest to the answer."""


@dataclass(frozen=True, kw_only=True)
class NearerRow:
    """The answer is nearer to one row than to another, by this much."""

    to: Sequence[float]
    than: Sequence[float]
    by: float
    distance: Distance

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", tuple(self.to))
        object.__setattr__(self, "than", tuple(self.than))

    def check(self, schema: Schema) -> None:
        check_piecewise_linear(schema, self.distance)

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        near, far = (self.distance.between(schema, np.array(row), after) for row in (self.to, self.than))
        return bool(far - near >= self.by)

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        near, far = (distance_in_hinges(columns, np.array(row), self.distance) for row in (self.to, self.than))
        line = Literal(far.line.weight - near.line.weight, far.line.constant - near.line.constant - self.by)
        both = Hinges(line, np.concatenate([far.weights, -near.weights]), (*far.hinges, *near.hinges))
        return (both.part(columns),)

    def describe(self) -> str:
        return "nearer to one row of the data than to another"


def _radii(schema: Schema, distance: Distance, points: Floats) -> Floats:
    """How far each row is from the nearest other one."""
    result = np.zeros(len(points))
    for i, point in enumerate(points):
        away = distance.between(schema, point, points)
        away[i] = np.inf
        result[i] = away.min()
    return result
