"""Several answers instead of one: each the nearest row that differs enough from all earlier ones (MIP-DIVERSE).

    x_1 = the nearest,    x_i = the nearest with  differs(x_i, x_j) for all j < i        (paper, section on diversity)

What counts as different is the person's choice:

    distance   dist(x_i, x_j) >= apart                                  (the paper's delta)
    features   x_i leaves unchanged something that x_j changes          (another way out, not a detour on the same one)
    values     some feature of x_i differs from x_j: an option, an integer, or a real number by at least
               apart times its scale                                    (Russell's condition, made sound for reals)

How far two rows are apart is worked out exactly and rounded once (`ifonly.problem.apart.Shares`), and means the same to
the search, to the judgement of a row and in what is reported.

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

from ifonly.asking.branching import Branching, Condition, Either, Ordinary, Person, Way, is_condition
from ifonly.errors import Contradiction, QuestionError
from ifonly.printing import shown
from ifonly.problem import Allowed, Constraint, Distance, Fixed, Norm, Range
from ifonly.problem.apart import Apart, check_piecewise_linear, checked_length, shares_of, symmetric
from ifonly.problem.constraints import Domains, narrowed
from ifonly.problem.distance import MOST
from ifonly.problem.rules import read_constraint
from ifonly.proof import Answer, Limits, Method, Nearest, NoneExists
from ifonly.schema import Choice, Integer, Numeric, Real, Schema
from ifonly.schema.decimals import rounded, written
from ifonly.schema.features import plain, show_number
from ifonly.tolerances import Tolerances

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

    def constraints_for(self, constraints: Any) -> tuple[Any, ...]: ...

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
            raise QuestionError(f"The number of answers, k, must be a whole number >= 1; it is {shown(self.k)}.")
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
    settled = _settled(schema, before, explainer.constraints_for(constraints))
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
        conditions.append(_different(schema, before, point, distance, diversity, settled))
    if isinstance(ended, NoneExists) and not conditions:  # the question itself has no answer: say why
        ended = explainer.explain(row, distance=distance, constraints=ordinary, limits=limits, **question)
    apart = _between(schema, symmetric(distance), points)
    words = diversity.describe(distance)
    return DiverseAnswers(found, ended=ended, apart=apart, condition=words, seconds=time.perf_counter() - begun)


def _between(schema: Schema, distance: Distance, points: Sequence[Floats]) -> list[list[float]]:
    """How far each two points are apart."""
    if distance.kind is Norm.L2:
        return [[float(distance.between(schema, a, b)) for b in points] for a in points]
    shares = shares_of(schema, distance)
    return [[shares.between(a, b) for b in points] for a in points]


def _settled(schema: Schema, before: Floats, constraints: Sequence[Any]) -> tuple[str, ...]:
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


def _different(
    schema: Schema,
    before: Floats,
    point: Floats,
    distance: Distance,
    diversity: Diversity,
    settled: tuple[str, ...],
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
            rule = Apart(point=point.tolist(), at_least=by, distance=measured, settled=settled)
            return _FarEnough(rule, far_in_one(schema, point, measured, by))


@dataclass(frozen=True)
class _FarEnough:
    """At least so far from a row: by one feature alone, or by several together."""

    rule: Apart
    alone: Either

    def check(self, schema: Schema) -> None:
        self.rule.check(schema)

    def holds(self, person: Person, after: Floats) -> bool:
        return self.rule.allows_row(person.schema, person.before, after)

    def ways(self, person: Person, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Way]:
        """By one feature alone, or by several together, within the box where none is enough."""
        hinged = [(c, _sides(person.schema, c, chosen)) for c in chosen if isinstance(c, Apart) and not c.sides]
        hinged = [(rule, sides) for rule, sides in hinged if sides]
        if len(hinged) >= MOST_HINGED:
            rule, sides = hinged[0]
            yield from _on_sides(rule, sides)
            return
        yield from self.alone.ways(person, after, chosen)
        yield Way(0.0, (self.rule, *(other for other in self.alone.unless if other is not None)))

    def describe(self) -> str:
        return self.rule.describe()


_Side: TypeAlias = tuple[str, int, Range]


def _sides(schema: Schema, rule: Apart, chosen: Sequence[Ordinary]) -> list[tuple[_Side, _Side]]:
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


def _on_sides(rule: Apart, sides: Sequence[tuple[_Side, _Side]]) -> Iterator[Way]:
    """Every choice of sides. On a side, the share of a number in the distance is a line.

    A method that has to choose the sides of several points by itself, by their hinges, is much slower.
    """
    for choice in itertools.product(*sides[:MOST_SIDES]):
        known = tuple((name, side) for name, side, _ in choice)
        yield Way(0.0, (replace(rule, sides=known), *(half for _, _, half in choice)))


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
