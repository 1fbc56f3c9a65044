"""Rules about distances: at least so far from a given row, and at most so far from one.

A distance of the l0 and l1 family is a sum over features, and each feature's share is piecewise linear:

    numbers      |x - p| = 2 relu(x - p) - (x - p)
    options      one number per option
    jumps        [x != p] = (|x - p| - relu(x - p - s) - relu(p - s - x)) / s   for an integer in steps of s

so `dist >= t` and `dist <= t` are one hinge part each. Other distances are refused with a sentence: l2 is not piecewise
linear, linf is an either-or of single features (see `answering.branching`), and jumps of real numbers have no closed
set.

Two rows are at least t apart when their distance, worked out exactly on the decimals that they are written in and
rounded once (`DistanceShares.between`), is a float64 >= t. The judgement, the search and what is reported all mean
that one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached
from ifonly.errors import QuestionError
from ifonly.problem.distance import Distance, Norm
from ifonly.problem.parts import Literal, Part, UnrolledColumns, hinge_part, linear_part
from ifonly.schema import Integer, Numeric, Real, Schema
from ifonly.schema.arguments import real_number
from ifonly.schema.decimals import rounded, written
from ifonly.schema.values import show_number

Floats = NDArray[np.float64]

MAX_WHOLE = 2**40
"""How large a distance between rows of integers and options may be in units of its lattice: no method then rounds."""


class DistanceShares:
    """What each feature adds to a distance (in linf: to its maximum), exactly, on the decimals that rows stand for.

    `jump[g]` for any change, `rate[g]` for a unit of a number, for a level of an ordinal, for another option.
    """

    def __init__(self, schema: Schema, distance: Distance) -> None:
        assert distance.kind is not Norm.L2 and distance.is_symmetric
        self.maximum = distance.kind is Norm.LINF
        self.counted = [f.kind in ("binary", "categorical") for f in schema.features]
        self.scale = [_scale(feature, distance) for feature in schema.features]
        weights = [written(distance.weights.get(name, 1.0)) / len(schema) for name in schema.names]
        self.jump = [written(distance.jump) * weight for weight in weights]
        self.rate = [written(distance.rate) * weight / scale for weight, scale in zip(weights, self.scale, strict=True)]

    def of(self, g: int, one: float, other: float) -> Fraction:
        """The share of feature g."""
        if one == other:
            return Fraction(0)
        return self.jump[g] + self.rate[g] * (1 if self.counted[g] else abs(written(one) - written(other)))

    def between(self, one: Floats, other: Floats) -> float:
        """The distance between two rows, rounded once."""
        shares = [self.of(g, a, b) for g, (a, b) in enumerate(zip(one.tolist(), other.tolist(), strict=True))]
        return rounded(max(shares) if self.maximum else sum(shares, Fraction(0)))


@cached(2**22)
def shares_of(schema: Schema, distance: Distance) -> DistanceShares:
    """The shares of a distance; kept, since rows are judged one at a time."""
    return DistanceShares(schema, distance)


def _scale(feature: Any, distance: Distance) -> Fraction:
    """`Distance.scale_vector`, exactly."""
    if not isinstance(feature, Numeric):
        return Fraction(len(feature.options) if feature.kind == "ordinal" else 1)
    own = distance.scales.get(feature.name)
    return written(own) if own is not None else written(feature.upper) - written(feature.lower) or Fraction(1)


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

    def part(self, columns: UnrolledColumns, *, whole: bool = False) -> Part:
        if not self.hinges:
            return linear_part(columns, self.line)
        return hinge_part(columns, self.line, self.weights, self.hinges, whole=whole)


@dataclass(frozen=True, kw_only=True)
class AtLeastFar:
    """The answer is at least this far from a row, such as an earlier answer.

    `sides`: numbers that are known to be on one side of the point's (1: not below, -1: not above), because ranges
    besides this rule say so; their share is then a line without a hinge. `settled`: numbers that are known to be the
    point's, because nothing else is allowed.
    """

    point: Sequence[float]
    at_least: float
    distance: Distance
    sides: Sequence[tuple[str, int]] = ()
    settled: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "settled", tuple(self.settled))
        object.__setattr__(self, "sides", tuple(self.sides))
        object.__setattr__(self, "point", tuple(float(v) for v in self.point))
        object.__setattr__(self, "at_least", checked_length("The distance between answers", self.at_least))

    @property
    def subject(self) -> tuple[Any, ...]:
        """What the rule is about, with or without sides."""
        return AtLeastFar, self.point, self.at_least, self.distance

    def check(self, schema: Schema) -> None:
        check_piecewise_linear(schema, self.distance)

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        for name, side in self.sides:
            g = schema.index(name)
            if side * (after[g] - self.point[g]) < 0.0:
                return False
        if any(after[g] != self.point[g] for g in map(schema.index, self.settled)):
            return False
        return shares_of(schema, self.distance).between(np.array(self.point), after) >= self.at_least

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        lattice = self._lattice(columns.schema)
        times, least = lattice or Fraction(1), written(self.at_least)
        if lattice is not None:  # the distance times this is a whole number: which is the first that counts?
            below = math.nextafter(self.at_least, -math.inf)  # from the middle between the two on, numbers round up
            least = Fraction(math.ceil((Fraction(below) + Fraction(self.at_least)) / 2 * times))
            if rounded(least / times) < self.at_least:
                least += 1
        measured = distance_in_hinges(
            columns, np.array(self.point), self.distance, dict(self.sides), settled=self.settled, times=times
        )
        return (measured.times(1.0, -float(least)).part(columns, whole=lattice is not None),)

    def _lattice(self, schema: Schema) -> Fraction | None:
        """The least number that makes every distance whole; None where real numbers change, or where it is huge."""
        shares, units, largest = shares_of(schema, self.distance), [], Fraction(0)
        for g, feature in enumerate(schema.features):
            if feature.name in self.settled:
                continue
            if isinstance(feature, Real):
                return None
            unit = shares.rate[g] * (feature.step if isinstance(feature, Integer) else 1)
            most = feature.steps if isinstance(feature, Integer) else len(feature.options)
            units += [unit, shares.jump[g]]
            largest += shares.jump[g] + unit * most
        whole = math.lcm(*(unit.denominator for unit in units))
        times = Fraction(whole, math.gcd(*(int(unit * whole) for unit in units)) or 1)
        return times if times * largest <= MAX_WHOLE else None

    def describe(self) -> str:
        return f"at least {show_number(self.at_least)} ({self.distance.name}) from an earlier answer"


@dataclass(frozen=True, kw_only=True)
class AtMostFar:
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

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        measured = distance_in_hinges(columns, np.array(self.point), self.distance)
        return (measured.times(-1.0, self.at_most).part(columns),)

    def describe(self) -> str:
        return f"at most {show_number(self.at_most)} ({self.distance.name}) from a row of the data"


def distance_in_hinges(
    columns: UnrolledColumns,
    point: Floats,
    distance: Distance,
    sides: Mapping[str, int] | None = None,
    *,
    settled: Collection[str] = (),
    times: Fraction = Fraction(1),
) -> Hinges:
    """The distance of a row from `point` (times a number), as a function of the row's unrolled columns."""
    schema = columns.schema
    check_piecewise_linear(schema, distance)
    shares = shares_of(schema, distance)
    line, constant = np.zeros(columns.width), Fraction(0)
    weights: list[float] = []
    hinges: list[Literal] = []
    for g, feature in enumerate(schema.features):
        if feature.name in settled:
            continue
        here = slice(int(columns.start[g]), int(columns.start[g + 1]))
        p, jump = float(point[g]), times * shares.jump[g]
        if not isinstance(feature, Numeric):
            line[here] += [float(times * shares.of(g, p, float(i))) for i in range(len(feature.options))]
            continue
        unit = np.zeros(columns.width)
        unit[here] = 1.0
        step = Fraction(feature.step) if isinstance(feature, Integer) else None
        slope = times * shares.rate[g] + (jump / step if step else 0)
        # |x - p|: a line when x is on one side of p, else a line and a hinge
        side = (sides or {}).get(feature.name) or (1 if p <= feature.lower else -1 if p >= feature.upper else 0)
        line[here] += (side or -1) * float(slope)
        constant -= (side or -1) * slope * written(p)
        if not side:
            hinges.append(Literal(unit, -p))
            weights.append(2.0 * float(slope))
        for end, direction in ((feature.upper, 1.0), (feature.lower, -1.0)):
            if jump and step and direction * (end - p) > step and side != -direction:
                hinges.append(Literal(direction * unit, -direction * p - float(step)))
                weights.append(-float(jump / step))
    return Hinges(Literal(line, float(constant)), np.array(weights), tuple(hinges))


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
            f"In {distance.name} a row is apart as soon as '{reals[0]}', a real number, differs by arbitrarily little; "
            f"measure how far rows are apart in l1: apart_distance='l1' (on the command line: --apart-distance l1)."
        )


def symmetric(distance: Distance) -> Distance:
    """The distance without costs by direction or by transition: how far two rows are apart, whoever comes first."""
    return distance if distance.is_symmetric else replace(distance, up={}, down={}, transitions={})


def unrolled(schema: Schema, point: Floats) -> Floats:
    """A point as unrolled columns."""
    columns = UnrolledColumns(schema)
    result = np.zeros(columns.width)
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            result[columns.start[g]] = point[g]
        else:
            result[columns.start[g] + int(point[g])] = 1.0
    return result


def checked_length(what: str, number: Any, *, least: float = math.ulp(0.0)) -> float:
    """A finite number, positive unless `least` is 0."""
    words = f"{what} must be a number {'>= 0' if least == 0.0 else '> 0'}; it is"
    return real_number(number, words, lambda value: least <= value < math.inf)
