"""Rules about distances: at least so far from a given row, and at most so far from one.

A distance of the l0 and l1 family is a sum over features, and each feature's share is piecewise linear:

    numbers      |x - p| = 2 relu(x - p) - (x - p)
    options      one number an option
    jumps        [x != p] = (|x - p| - relu(x - p - s) - relu(p - s - x)) / s   for an integer in steps of s

so `dist >= t` and `dist <= t` are one hinge part each. Other distances are refused with a sentence: l2 is not piecewise
linear, linf is an either-or of single features (see `ifonly.branching`), and jumps of real numbers have no closed set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.problem.distance import Distance, Norm
from ifonly.problem.parts import Columns, Literal, Part, hinge_part, linear_part
from ifonly.schema import Integer, Numeric, Real, Schema
from ifonly.schema.features import plain, show_number
from ifonly.schema.printing import shown
from ifonly.tolerances import EDGE

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hinges:
    """constant + weight.u + sum_j weights[j] relu(hinges[j])."""

    line: Literal
    weights: Floats
    hinges: tuple[Literal, ...]

    def times(self, factor: float, plus: float) -> Hinges:
        """factor times this, plus a number."""
        line = Literal(factor * self.line.weight, factor * self.line.constant + plus)
        return Hinges(line, factor * self.weights, self.hinges)

    def part(self, columns: Columns, *, whole: bool = False) -> Part:
        if not self.hinges:
            return linear_part(columns, self.line)
        return hinge_part(columns, self.line, self.weights, self.hinges, whole=whole)


@dataclass(frozen=True, kw_only=True)
class Apart:
    """The answer is at least this far from a row, such as an earlier answer.

    `sides`: numbers that are known to be on one side of the point's (1: not below, -1: not above), because ranges
    besides this rule say so; their share is then a line without a hinge.
    """

    point: Sequence[float]
    at_least: float
    distance: Distance
    sides: Sequence[tuple[str, int]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sides", tuple(self.sides))
        object.__setattr__(self, "point", tuple(float(v) for v in self.point))
        object.__setattr__(self, "at_least", checked_length("The distance between answers", self.at_least))

    @property
    def subject(self) -> tuple[Any, ...]:
        """What the rule is about, with or without sides."""
        return Apart, self.point, self.at_least, self.distance

    def check(self, schema: Schema) -> None:
        check_piecewise_linear(schema, self.distance)

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        for name, side in self.sides:
            g = schema.index(name)
            if side * (after[g] - self.point[g]) < 0.0:
                return False
        return bool(self.distance.between(schema, np.array(self.point), after) >= self.at_least)

    def parts(self, columns: Columns) -> Sequence[Part]:
        count = _counted(columns.schema, self.distance)
        least = self.at_least
        if count:  # l0 of options and integers: the distance times n is a whole number
            least = math.ceil(least * count * (1.0 - EDGE)) / count
        measured = distance_in_hinges(columns, np.array(self.point), self.distance, dict(self.sides))
        return (measured.times(float(count or 1), -least * (count or 1)).part(columns, whole=bool(count)),)

    def describe(self) -> str:
        return f"at least {show_number(self.at_least)} ({self.distance.name}) from an earlier answer"


@dataclass(frozen=True, kw_only=True)
class Around:
    """The answer is at most this far from a row, such as a row of the data."""

    point: Sequence[float]
    at_most: float
    distance: Distance

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", tuple(float(v) for v in self.point))
        object.__setattr__(self, "at_most", checked_length("The distance to the data", self.at_most, least=0.0))

    def check(self, schema: Schema) -> None:
        check_piecewise_linear(schema, self.distance)

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        return bool(self.distance.between(schema, np.array(self.point), after) <= self.at_most)

    def parts(self, columns: Columns) -> Sequence[Part]:
        measured = distance_in_hinges(columns, np.array(self.point), self.distance)
        return (measured.times(-1.0, self.at_most).part(columns),)

    def describe(self) -> str:
        return f"at most {show_number(self.at_most)} ({self.distance.name}) from a row of the data"


def distance_in_hinges(
    columns: Columns, point: Floats, distance: Distance, sides: Mapping[str, int] | None = None
) -> Hinges:
    """The distance of a row from `point`, as a function of the row's unrolled columns."""
    schema = columns.schema
    check_piecewise_linear(schema, distance)
    n = len(schema)
    weight, scale = distance.weight_vector(schema) / n, distance.scale_vector(schema)
    line, constant = np.zeros(columns.width), 0.0
    weights: list[float] = []
    hinges: list[Literal] = []
    for g, feature in enumerate(schema.features):
        here = slice(int(columns.start[g]), int(columns.start[g + 1]))
        p, jump, rate = float(point[g]), distance.jump * weight[g], distance.rate * weight[g] / scale[g]
        if not isinstance(feature, Numeric):
            moved = np.abs(np.arange(len(feature.options)) - p)
            changed = (moved > 0).astype(np.float64)
            line[here] += jump * changed + rate * (moved if feature.kind == "ordinal" else changed)
            continue
        unit = np.zeros(columns.width)
        unit[here] = 1.0
        step = float(feature.step) if isinstance(feature, Integer) else math.inf
        slope = rate + jump / step
        # |x - p|: a line when x is on one side of p, else a line and a hinge
        side = (sides or {}).get(feature.name) or (1 if p <= feature.lower else -1 if p >= feature.upper else 0)
        line[here] += (side or -1) * slope
        constant -= (side or -1) * slope * p
        if not side:
            hinges.append(Literal(unit, -p))
            weights.append(2.0 * slope)
        for end, direction in ((feature.upper, 1.0), (feature.lower, -1.0)):
            if jump and direction * (end - p) > step and side != -direction:
                hinges.append(Literal(direction * unit, -direction * p - step))
                weights.append(-jump / step)
    return Hinges(Literal(line, constant), np.array(weights), tuple(hinges))


def check_piecewise_linear(schema: Schema, distance: Distance) -> None:
    """A sentence for distances that are not sums of piecewise linear shares."""
    distance.check(schema)
    if not distance.is_symmetric:
        raise QuestionError(
            "Costs by direction or by transition say what a change costs the person, not how far two rows are apart; "
            "leave them out of the distance between rows."
        )
    if distance.kind in (Norm.L2, Norm.LINF):
        why = "is not piecewise linear" if distance.kind is Norm.L2 else "is no sum over features"
        raise QuestionError(
            f"How far rows are apart cannot be asked exactly in {distance.name}, which {why}; measure it in l1: "
            f"apart_distance='l1' (on the command line: --apart-distance l1)."
        )
    reals = [feature.name for feature in schema.features if isinstance(feature, Real)]
    if distance.jump and reals:
        raise QuestionError(
            f"In {distance.name} a row is apart as soon as '{reals[0]}', a real number, differs by next to nothing; "
            f"measure how far rows are apart in l1: apart_distance='l1' (on the command line: --apart-distance l1)."
        )


def symmetric(distance: Distance) -> Distance:
    """The distance without costs by direction or by transition: how far two rows are apart, whoever comes first."""
    return distance if distance.is_symmetric else replace(distance, up={}, down={}, transitions={})


def unrolled(schema: Schema, point: Floats) -> Floats:
    """A point as unrolled columns."""
    columns = Columns(schema)
    result = np.zeros(columns.width)
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            result[columns.start[g]] = point[g]
        else:
            result[columns.start[g] + int(point[g])] = 1.0
    return result


def checked_length(what: str, number: Any, *, least: float = math.ulp(0.0)) -> float:
    """A finite number, positive unless `least` is 0."""
    value = plain(number)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise QuestionError(f"{what} must be a number {'>= 0' if least == 0.0 else '> 0'}; it is {shown(number)}.")
    return float(value)


def _counted(schema: Schema, distance: Distance) -> int:
    """n where the distance is a share of n equal features (l0 without weights), else 0."""
    return len(schema) if distance.norm == "l0" and not distance.weights else 0
