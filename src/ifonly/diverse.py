"""Several answers instead of one: each the nearest row that differs enough from all earlier ones (MIP-DIVERSE).

    x_1 = the nearest,    x_i = the nearest with  differs(x_i, x_j) for all j < i        (paper, section on diversity)

What counts as different is the person's choice:

    distance   dist(x_i, x_j) >= apart                                  (the paper's delta)
    features   x_i leaves unchanged something that x_j changes          (another way out, not a detour on the same one)
    values     some feature of x_i differs from x_j: an option, an integer, or a real number by at least
               apart times its scale                                    (Russell's condition, made sound for reals)

Every answer carries its own proof, given the earlier ones. A set of fewer than k ends with the proof that no further
row exists, or with the limit that was hit.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray

from ifonly.branching import Branching, Condition, Either, Ordinary, Person, Way, is_condition
from ifonly.errors import Contradiction, QuestionError
from ifonly.problem import Allowed, Constraint, Distance, Fixed, Norm, Range
from ifonly.problem.apart import Apart, check_piecewise_linear, checked_length, symmetric
from ifonly.problem.constraints import Domains
from ifonly.problem.rules import merged, read_constraint
from ifonly.proof import Answer, Limits, Method, Nearest, NoneExists
from ifonly.schema import Choice, Integer, Numeric, Real, Schema
from ifonly.schema.features import plain, show_number
from ifonly.tolerances import EDGE, Tolerances

Floats = NDArray[np.float64]
Differ: TypeAlias = Literal["distance", "features", "values"]
NO_LIMITS = Limits()
OVERLAP = 1e-6
"""Relative: by how much "not elsewhere" and "elsewhere" overlap for a real number. Where they only touch, a method has
to resolve a corner of no size."""
MOST_HINGED = 1
"""Earlier answers whose distance a node may hold in hinges; of more than these, sides are chosen first."""
MOST_SIDES = 6
"""Numbers whose sides are chosen at once."""


class DiverseAnswers(Sequence[Answer]):
    """Answers in the order of their distance, each given the earlier ones, and what ended the set.

    `ended` is None when as many as asked for were found; else the `NoneExists` or `Unknown` of the next one.
    `apart[i][j]` is the distance between answers i and j, in the distance of the question.
    """

    def __init__(
        self,
        answers: Sequence[Answer],
        *,
        ended: Answer | None,
        apart: Sequence[Sequence[float]],
        condition: str,
        seconds: float = 0.0,
    ) -> None:
        self._answers, self.ended, self.condition, self.seconds = tuple(answers), ended, condition, seconds
        self.apart = tuple(tuple(row) for row in apart)

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Answer, ...]: ...
    def __getitem__(self, index: int | slice) -> Answer | tuple[Answer, ...]:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    @property
    def proven(self) -> bool:
        """Is every answer proven nearest given the earlier ones, and the end, if there is one, proven too?"""
        ended = self.ended is None or isinstance(self.ended, NoneExists)
        return ended and all(isinstance(answer, Nearest) for answer in self._answers)

    @property
    def k_diversity(self) -> float:
        """The mean distance between two of the answers (paper); NaN for fewer than two."""
        k = len(self)
        pairs = [self.apart[i][j] for i in range(k) for j in range(i + 1, k)]
        return math.fsum(pairs) / len(pairs) if pairs else math.nan

    @property
    def k_distance(self) -> float:
        """The mean distance of the answers from the person (paper); NaN without any."""
        return math.fsum(a.upper for a in self) / len(self) if len(self) else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "answers": [answer.to_dict() for answer in self],
            "ended": None if self.ended is None else self.ended.to_dict(),
            "condition": self.condition,
            "proven": self.proven,
            "k_diversity": None if math.isnan(self.k_diversity) else self.k_diversity,
            "k_distance": None if math.isnan(self.k_distance) else self.k_distance,
            "apart": [list(row) for row in self.apart],
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        lines = [f"{i}. {words}" for i, words in enumerate(self.sentences, 1)]
        return "\n".join([*lines, *([self.ending] if self.ending else [])])

    @property
    def sentences(self) -> list[str]:
        """One an answer."""
        said, plainly = list(map(str, self)), "no smaller change does it"
        return said[:1] + [one.replace(plainly, f"{plainly}, given the answers above") for one in said[1:]]

    @property
    def ending(self) -> str:
        """Why there are no more, in a sentence; empty when there are as many as asked for."""
        if self.ended is None:
            return ""
        if not isinstance(self.ended, NoneExists):
            return f"The search for another answer was stopped ({self.ended.note})."
        if not len(self):
            return str(self.ended)
        wanted = f"{self.ended.subject} {self.ended.state or self.ended.target}"
        return f"No other allowed row makes {wanted} {self.condition} (proven)."

    def __repr__(self) -> str:
        return f"<DiverseAnswers: {len(self)}{'' if self.proven else ', not all proven'}>"


class Asks(Protocol):
    """What is needed of an explainer."""

    schema: Schema
    tolerances: Tolerances
    constraints: tuple[Any, ...]

    def standing(self, row: Any, *, target: Any, distance: str | Distance, constraints: Any) -> Any: ...

    def nearest_allowed(
        self,
        row: Any,
        *,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[Any] = (),
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
    ) -> Answer: ...

    def explain(
        self,
        row: Any,
        *,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[Any] = (),
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
        reasons: bool = True,
    ) -> Answer: ...


@dataclass(frozen=True, kw_only=True)
class Diversity:
    """How many answers, and in what way and by how much they differ."""

    k: int
    apart: float = 0.01
    differ: Differ = "distance"
    apart_distance: str | Distance | None = None

    def __post_init__(self) -> None:
        k = plain(self.k)
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise QuestionError(f"The number of answers, k, must be a whole number >= 1; it is {self.k!r}.")
        if self.differ not in get_args(Differ):
            raise QuestionError(f"Answers can differ in {', '.join(get_args(Differ))}; not in {self.differ!r}.")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "apart", checked_length("How far answers are apart", self.apart))
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


def explain_diverse(
    explainer: Asks,
    row: Any,
    diversity: Diversity,
    *,
    distance: str | Distance = "l1",
    constraints: Sequence[Any] = (),
    limits: Limits = NO_LIMITS,
    **question: Any,
) -> DiverseAnswers:
    """Up to k answers, nearest first. `limits` are for each answer. See `Explainer.explain_diverse`."""
    begun, schema = time.perf_counter(), explainer.schema
    before = schema.read(row)
    distance = distance if isinstance(distance, Distance) else Distance(distance)
    diversity.check(schema, distance)
    read = [read_constraint(c, schema) if isinstance(c, str) else c for c in constraints]
    ordinary = tuple(c for c in read if not is_condition(c))

    def ask(chosen: tuple[Ordinary, ...], left: Limits) -> Answer:
        asked = (*ordinary, *chosen)
        return explainer.nearest_allowed(row, distance=distance, constraints=asked, limits=left, **question)

    found: list[Answer] = []
    points: list[Floats] = []
    ended: Answer | None = None
    conditions: list[Condition] = [c for c in read if is_condition(c)]
    for condition in conditions:
        condition.check(schema)
    branching = Branching(ask, Person(schema, before, distance), explainer.tolerances)
    finite = _is_finite(schema, before, merged(schema, (*explainer.constraints, *ordinary)))
    while len(found) < diversity.k:
        answer = None if found else explainer.standing(
            row, target=question.get("target"), distance=distance, constraints=constraints
        )  # fmt: skip
        if answer is None:
            answer = branching.nearest(conditions, limits)
        if answer.counterfactual is None:
            ended = answer
            break
        point = schema.read(answer.counterfactual)
        if any(np.array_equal(point, other) for other in points):
            raise Contradiction(f"Answer {len(found) + 1} is a copy of an earlier one: {answer.counterfactual}.")
        found.append(answer)
        points.append(point)
        conditions.append(_different(schema, before, point, distance, diversity, finite=finite))
    if isinstance(ended, NoneExists) and not conditions:  # the question itself has no answer: say why
        ended = explainer.explain(row, distance=distance, constraints=ordinary, limits=limits, **question)
    between = symmetric(distance).between
    apart = [[float(between(schema, a, b)) for b in points] for a in points]
    words = diversity.describe(distance)
    return DiverseAnswers(found, ended=ended, apart=apart, condition=words, seconds=time.perf_counter() - begun)


def _is_finite(schema: Schema, before: Floats, constraints: Sequence[Any]) -> bool:
    """Do the constraints leave every real number one value at most?"""
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Real):
            domain = Domains(np.array([feature.lower]), np.array([feature.upper]), np.ones((1, 1), dtype=bool))
            for constraint in constraints:
                if getattr(constraint, "feature", None) == feature.name and hasattr(constraint, "restrict"):
                    constraint.restrict(feature, before[g : g + 1], domain)
            if domain.lower[0] < domain.upper[0]:
                return False
    return True


def _different(
    schema: Schema, before: Floats, point: Floats, distance: Distance, diversity: Diversity, *, finite: bool
) -> Condition:
    """The condition of being different from an earlier answer."""
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
            return _FarEnough(point=point, at_least=by, distance=measured, finite=finite)


@dataclass(frozen=True, kw_only=True)
class _FarEnough:
    """At least so far from a row, to the last bit.

    The methods search with the rule `Apart`. Where real numbers may change, it keeps clear of the edge by `EDGE`. Where
    none may (`finite`), rows often lie exactly at the edge: the rule lets them pass, and those that rounding takes
    below it are excluded one by one.
    """

    point: Floats
    at_least: float
    distance: Distance
    finite: bool

    def check(self, schema: Schema) -> None:
        self.rule.check(schema)

    @property
    def rule(self) -> Apart:
        at_least = self.at_least * (1.0 - EDGE) if self.finite else self.at_least + EDGE
        return Apart(point=self.point.tolist(), at_least=at_least, distance=self.distance)

    def holds(self, person: Person, after: Floats) -> bool:
        return bool(self.distance.between(person.schema, self.point, after) >= self.at_least)

    def ways(self, person: Person, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Way]:
        """By one feature alone, or by several together, within the box where none is enough."""
        if self.rule.allows_row(person.schema, person.before, after):
            yield from other_values(person.schema, after, self.distance, 1.0).ways(person, after, chosen)
            return
        hinged = [(c, _sides(person.schema, c, chosen)) for c in chosen if isinstance(c, Apart) and not c.sides]
        hinged = [(rule, sides) for rule, sides in hinged if sides]
        if len(hinged) >= MOST_HINGED:
            rule, sides = hinged[0]
            yield from _on_sides(rule, sides)
            return
        alone = far_in_one(person.schema, self.point, self.distance, self.rule.at_least)
        yield from alone.ways(person, after, chosen)
        yield Way(0.0, (self.rule, *(other for other in alone.unless if other is not None)))

    def describe(self) -> str:
        return self.rule.describe()


_Side: TypeAlias = tuple[str, int, Range]


def _sides(schema: Schema, rule: Apart, chosen: Sequence[Ordinary]) -> list[tuple[_Side, _Side]]:
    """The numbers that may be on both sides of the rule's point."""
    inside = {c.feature: c for c in chosen if isinstance(c, Range)}
    result: list[tuple[_Side, _Side]] = []
    for feature, p in zip(schema.features, rule.point, strict=True):
        if isinstance(feature, Numeric):
            name, step = feature.name, float(feature.step) if isinstance(feature, Integer) else 0.0
            domain = inside.get(name, Range(name, feature.lower, feature.upper))
            if max(feature.lower, domain.lower) < p < min(feature.upper, domain.upper):
                result.append(((name, 1, Range(name, lower=p)), (name, -1, Range(name, upper=p - step))))
    return result


def _on_sides(rule: Apart, sides: Sequence[tuple[_Side, _Side]]) -> Iterator[Way]:
    """Every choice of sides. On a side, the share of a number in the distance is a line.

    A method that has to choose the sides of several points by itself, by their hinges, is much slower.
    """
    for choice in itertools.product(*sides[:MOST_SIDES]):
        known = tuple((name, side) for name, side, _ in choice)
        yield Way(0.0, (replace(rule, sides=known), *(half for _, _, half in choice)))


def other_values(schema: Schema, point: Floats, distance: Distance, by: float) -> Either:
    """Some feature differs from the point's; a real number by `by` times its scale at least."""
    radius = by * distance.scale_vector(schema)

    def differs(g: int, value: float) -> bool:
        move = abs(value - point[g])
        return bool(move >= radius[g] if isinstance(schema.features[g], Real) else move > 0.0)

    return _elsewhere(schema, point, radius, differs, "another value")


def far_in_one(schema: Schema, point: Floats, distance: Distance, by: float) -> Either:
    """At least `by` from the point by one feature alone. (In linf there is no other way.)"""
    needed = np.maximum(by * len(schema) / distance.weight_vector(schema) - distance.jump, 0.0)
    radius = needed * distance.scale_vector(schema) / (distance.rate or math.inf)

    def far(g: int, value: float) -> bool:
        other = point.copy()
        other[g] = value
        return bool(distance.between(schema, point, other) >= by)

    return _elsewhere(schema, point, radius, far, "far enough in one feature")


def _elsewhere(
    schema: Schema, point: Floats, radius: Floats, differs: Callable[[int, float], bool], words: str
) -> Either:
    """Some feature has a value that differs from the point's: one of some options, a number above, a number below.

    `radius` says about how far away those numbers begin; where exactly, `differs` does.
    """
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
        step = float(feature.step) if isinstance(feature, Integer) else -OVERLAP * float(radius[g])
        for sign in (1.0, -1.0):
            value = _first(feature, float(point[g]), sign * float(radius[g]), partial(differs, g))
            if value is not None:
                up = sign > 0
                options.append(Range(feature.name, lower=value) if up else Range(feature.name, upper=value))
                inside = value - sign * step
                unless.append(Range(feature.name, upper=inside) if up else Range(feature.name, lower=inside))
    return Either(tuple(options), words, tuple(unless))


def _first(feature: Numeric, start: float, radius: float, differs: Callable[[float], bool]) -> float | None:
    """The value nearest to `start` in the direction of `radius` that differs; None when the range ends before it."""
    if isinstance(feature, Integer):
        step = math.copysign(feature.step, radius)
        value = start + step * max(1, math.floor(radius / step) - 1)
    else:  # the last digits of start + radius are a guess; a step is one of them, however small the value itself is
        step = math.copysign(math.ulp(max(abs(start), abs(start + radius))), radius)
        value = start + radius
        while differs(value - step):
            value -= step
    while feature.lower <= value <= feature.upper:
        if differs(value):
            return value
        value += step
    return None
