"""Diversity conditions: what makes a row different from an earlier answer, as disjunctive constraints.

The distance between two rows is computed exactly and rounded once (`problem.distance_rules.DistanceShares`), and is the
same in the search, in the check of a row and in what is reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.constraints import Allowed, Constraint, Domains, Fixed, Range, narrowed
from ifonly.problem.disjunctions import Alternative, Condition, Either, Ordinary, PersonContext
from ifonly.problem.distance import MOST, Distance, Norm
from ifonly.problem.distance_rules import AtLeastFar, check_piecewise_linear, checked_length, shares_of, symmetric
from ifonly.schema import Choice, Integer, Numeric, Real, Schema
from ifonly.schema.arguments import whole_number
from ifonly.schema.decimals import rounded, written
from ifonly.schema.values import show_number

Floats = NDArray[np.float64]
Differ: TypeAlias = Literal["distance", "features", "values"]
OVERLAP = 1e-6
"""Relative: by how much "not elsewhere" and "elsewhere" overlap for a real number. Where they only touch, a method has
to resolve a corner of no size."""
MOST_HINGED = 1
"""Earlier answers whose distance a node may hold in hinges; of more than these, sides are chosen first."""
MOST_SIDES = 6
"""Numbers whose sides are chosen at once."""


@dataclass(frozen=True)
class Diversity:
    """How many answers, and in what way and by how much they differ."""

    k: int
    apart: float = field(default=0.01, kw_only=True)
    differ: Differ = field(default="distance", kw_only=True)
    apart_distance: str | Distance | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        k = whole_number(self.k, "The number of answers, k, must be a whole number >= 1; it is", 1)
        if not isinstance(self.differ, str) or self.differ not in get_args(Differ):
            raise QuestionError(f"Answers can differ in {', '.join(get_args(Differ))}; not in {shown(self.differ)}.")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "apart", checked_length("How far answers are apart", self.apart))
        if self.apart > MOST:
            raise QuestionError(f"Answers can be at most {MOST:g} apart; got {shown(self.apart)}.")
        own = self.apart_distance
        if own is not None and self.differ == "features":
            raise QuestionError("Answers that differ in features are not told apart by a distance: leave it out.")
        if own is not None and not isinstance(own, Distance):
            object.__setattr__(self, "apart_distance", Distance(own))

    def measured(self, distance: Distance) -> Distance:
        """The distance between answers: its own, or else the question's, without costs that have a direction."""
        return symmetric(self.apart_distance if isinstance(self.apart_distance, Distance) else distance)

    def check(self, schema: Schema, distance: Distance) -> None:
        """A sentence where the condition cannot be met exactly."""
        measured = self.measured(distance)
        measured.check(schema)
        if self.differ == "distance" and measured.kind is not Norm.LINF:
            check_piecewise_linear(schema, measured)

    def describe(self, distance: Distance) -> str:
        """What every further answer had to do."""
        by = show_number(self.apart)
        match self.differ:
            case "distance":
                return f"and is at least {by} ({self.measured(distance).name}) from every answer above"
            case "features":
                return "and leaves unchanged something that each answer above changes"
            case "values":
                return f"and differs from each answer above in a value (a real number by {by} of its scale)"


def different(context: PersonContext, point: Floats, diversity: Diversity, settled: tuple[str, ...]) -> Condition:
    """The condition of being different from an earlier answer. `settled` are the real numbers with one value left."""
    schema, before, distance = context
    measured, by = diversity.measured(distance), diversity.apart
    match diversity.differ:
        case "features":
            moved = np.flatnonzero(point != before).tolist()
            return Either(tuple(Fixed(schema.names[g]) for g in moved), "other features change")
        case "values":
            return other_values(schema, point, measured, by)
        case "distance" if measured.kind is Norm.LINF:
            return far_in_one(schema, point, measured, by)
        case "distance":
            rule = AtLeastFar(point=point.tolist(), at_least=by, distance=measured, settled=settled)
            return _FarEnough(rule, far_in_one(schema, point, measured, by))


def settled_reals(schema: Schema, before: Floats, constraints: Sequence[Any]) -> tuple[str, ...]:
    """The real numbers that the constraints leave one value at most."""
    found: list[str] = []
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Real):
            own = [c for c in constraints if isinstance(c, Constraint) and c.feature == feature.name]
            whole = Domains(np.array([feature.lower]), np.array([feature.upper]), np.ones((1, 1), dtype=bool))
            left = narrowed(feature, before[g : g + 1], own, whole)
            if left.lower[0] >= left.upper[0]:
                found.append(feature.name)
    return tuple(found)


def distances_between(schema: Schema, distance: Distance, points: Sequence[Floats]) -> list[list[float]]:
    """How far each two points are apart, whatever costs have a direction."""
    distance = symmetric(distance)
    if distance.kind is Norm.L2:
        return [[float(distance.between(schema, a, b)) for b in points] for a in points]
    shares = shares_of(schema, distance)
    return [[shares.between(a, b) for b in points] for a in points]


@dataclass(frozen=True)
class _FarEnough:
    """At least so far from a row: by one feature alone, or by several together."""

    rule: AtLeastFar
    alone: Either

    def check(self, schema: Schema) -> None:
        self.rule.check(schema)

    def holds(self, context: PersonContext, after: Floats) -> bool:
        return self.rule.allows_row(context.schema, context.before, after)

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        """By one feature alone, or by several together, within the box where none is enough."""
        hinged = [(c, _sides(context.schema, c, chosen)) for c in chosen if isinstance(c, AtLeastFar) and not c.sides]
        hinged = [(rule, sides) for rule, sides in hinged if sides]
        if len(hinged) >= MOST_HINGED:
            rule, sides = hinged[0]
            yield from _on_sides(rule, sides)
            return
        yield from self.alone.alternatives(context, after, chosen)
        yield Alternative(0.0, (self.rule, *(other for other in self.alone.unless if other is not None)))

    def describe(self) -> str:
        return self.rule.describe()


_Side: TypeAlias = tuple[str, int, Range]


def _sides(schema: Schema, rule: AtLeastFar, chosen: Sequence[Ordinary]) -> list[tuple[_Side, _Side]]:
    """The numbers that may be on both sides of the rule's point."""
    inside = {c.feature: c for c in chosen if isinstance(c, Range)}
    result: list[tuple[_Side, _Side]] = []
    for feature, p in zip(schema.features, rule.point, strict=True):
        if isinstance(feature, Numeric) and feature.name not in rule.settled:
            name, step = feature.name, float(feature.step) if isinstance(feature, Integer) else 0.0
            domain = inside.get(name, Range(name, feature.lower, feature.upper))
            if max(feature.lower, domain.lower) < p < min(feature.upper, domain.upper):
                result.append(((name, 1, Range(name, lower=p)), (name, -1, Range(name, upper=p - step))))
    return result


def _on_sides(rule: AtLeastFar, sides: Sequence[tuple[_Side, _Side]]) -> Iterator[Alternative]:
    """Every choice of sides. On a side, the share of a number in the distance is a line.

    A method that has to choose the sides of several points by itself, by their hinges, is much slower.
    """
    for choice in itertools.product(*sides[:MOST_SIDES]):
        known = tuple((name, side) for name, side, _ in choice)
        yield Alternative(0.0, (replace(rule, sides=known), *(half for _, _, half in choice)))


def other_values(schema: Schema, point: Floats, distance: Distance, by: float) -> Either:
    """Some feature differs from the point's: an option, an integer, or a real number by `by` times its scale."""
    scale = shares_of(schema, distance if distance.kind is not Norm.L2 else replace(distance, norm="l1")).scale

    def differs(g: int, value: float) -> bool:
        if not isinstance(schema.features[g], Real):
            return bool(value != point[g])
        return rounded(abs(written(value) - written(float(point[g]))) / scale[g]) >= by

    return _elsewhere(schema, point, differs, "another value")


def far_in_one(schema: Schema, point: Floats, distance: Distance, by: float) -> Either:
    """At least `by` from the point by one feature alone. (In linf there is no other way.)"""
    shares = shares_of(schema, distance)

    def far(g: int, value: float) -> bool:
        return rounded(shares.of(g, float(point[g]), value)) >= by

    return _elsewhere(schema, point, far, "far enough in one feature")


def _elsewhere(schema: Schema, point: Floats, differs: Callable[[int, float], bool], words: str) -> Either:
    """Some feature has a value that differs from the point's: one of some options, a number above, a number below."""
    options: list[Constraint] = []
    unless: list[Constraint | None] = []
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Choice):
            other = [differs(g, float(i)) for i in range(len(feature.options))]
            if any(other):
                options.append(Allowed(feature.name, [o for o, far in zip(feature.options, other, strict=True) if far]))
                unless.append(
                    Allowed(feature.name, [o for o, far in zip(feature.options, other, strict=True) if not far])
                )
            continue
        for up in (True, False):
            value = _first(feature, float(point[g]), up, partial(differs, g))
            if value is not None:
                options.append(Range(feature.name, lower=value) if up else Range(feature.name, upper=value))
                step = -float(feature.step) if isinstance(feature, Integer) else OVERLAP * abs(value - float(point[g]))
                inside = value + step if up else value - step
                unless.append(Range(feature.name, upper=inside) if up else Range(feature.name, lower=inside))
    return Either(tuple(options), words, tuple(unless))


def _first(feature: Numeric, start: float, up: bool, differs: Callable[[float], bool]) -> float | None:
    """The value nearest to `start`, above or below it, that differs; None when the range ends before it.

    By halving: values farther away differ too. So it ends, whatever `differs` says and however small a difference is.
    """
    end = feature.upper if up else feature.lower
    if isinstance(feature, Integer):
        step = float(feature.step if up else -feature.step)
        near, far = 0, round((end - start) / step)
    else:
        near, far = _place(start), _place(end)

    def value(place: int) -> float:
        return start + place * step if isinstance(feature, Integer) else _at_place(place)

    if near == far or not differs(end):
        return None
    while abs(far - near) > 1:  # the value at `far` differs, the one at `near` does not
        middle = (near + far) // 2
        near, far = (near, middle) if differs(value(middle)) else (middle, far)
    return value(far)


def _place(number: float) -> int:
    """The place of a float64 among all of them, in order; 0 for 0."""
    bits = int(np.float64(abs(number)).view(np.int64))
    return -bits if number < 0 else bits


def _at_place(place: int) -> float:
    return math.copysign(float(np.int64(abs(place)).view(np.float64)), place)
