"""The question of a sufficient reason: which outcome, among which rows, and which features are preferred."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.distance import Distance
from ifonly.problem.distance_rules import checked_length
from ifonly.problem.open_target import OpenTarget, OtherTarget
from ifonly.problem.query import Query, checked_constraints
from ifonly.problem.target import MARGIN, Target
from ifonly.schema import Schema
from ifonly.schema.arguments import items
from ifonly.schema.decimals import written
from ifonly.schema.values import plain, show_number

MOST_SEVERAL = 10_000
"""Reasons that may be asked for."""


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """The rows that count: those that meet these constraints, and those within this distance of the person's row."""

    constraints: Any = ()
    radius: float | None = None
    distance: Any = "l1"

    def __post_init__(self) -> None:
        query = Query(distance=self.distance, constraints=self.constraints)
        object.__setattr__(self, "constraints", query.constraints)
        object.__setattr__(self, "distance", query.measure)
        if self.radius is not None:
            object.__setattr__(self, "radius", checked_length("The radius of a neighbourhood", self.radius))

    @property
    def measure(self) -> Distance:
        assert isinstance(self.distance, Distance)
        return self.distance

    @property
    def words(self) -> tuple[str, ...]:
        """What narrows the rows, in words."""
        own = tuple(one if isinstance(one, str) else one.describe() for one in self.constraints)
        return (
            own if self.radius is None else (*own, f"{self.measure.name} distance at most {show_number(self.radius)}")
        )


@dataclass(frozen=True, kw_only=True)
class Sufficiency:
    """Which features, held at the person's values, decide the outcome alone?

    `target` is the outcome that the person does not have; by default any other decision. `within` narrows the rows that
    count: constraints, a radius (l1), or a `Neighbourhood`; by default all rows of the schema that obey its rules
    between features. `prefer`: features of which reasons should consist (as few others as possible), or a weight per
    feature, of which the least sum is looked for. `several`: how many reasons, least first; None for all.
    """

    target: Any = None
    within: Any = ()
    prefer: Any = field(default=())
    several: int | None = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", _strict(Query(target=self.target).target))
        object.__setattr__(self, "within", _neighbourhood(self.within))
        prefer = dict(self.prefer) if _is_weights(self.prefer) else self.prefer  # as `replace` gives it
        object.__setattr__(self, "prefer", _preferred(prefer))
        number = plain(self.several)
        whole = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and not (whole and 1 <= number <= MOST_SEVERAL):
            raise QuestionError(
                f"The number of reasons must be a whole number from 1 to {MOST_SEVERAL:,}, or None for all; it is "
                f"{shown(self.several)}."
            )
        object.__setattr__(self, "several", number)

    def query(self, schema: Schema, facts: tuple[Any, ...]) -> Query:
        """The query of which the answer is a row that is decided otherwise."""
        constraints = (*facts, *checked_constraints(self.within.constraints, schema))
        return Query(target=self.target, distance=self.within.measure, constraints=tuple(dict.fromkeys(constraints)))

    def weights(self, schema: Schema, names: tuple[str, ...]) -> list[int]:
        """What each feature of these weighs, as a whole number."""
        given = dict(self.prefer) if _is_weights(self.prefer) else None
        for name in self.prefer if given is None else given:
            schema.index(name)
        if given is None:
            preferred = set(self.prefer)
            return [1 if not preferred or name in preferred else 1 + len(preferred) for name in names]
        exact = [written(given.get(name, 1.0)) for name in names]
        common = math.lcm(*(one.denominator for one in exact))
        return [int(one * common) for one in exact]

    @property
    def counts(self) -> bool:
        """Does every feature weigh the same, so that a smallest set is one of the fewest features?"""
        return not self.prefer


def sufficiency_of(sufficiency: Any, target: Any = None, within: Any = None, several: Any = 1) -> Sufficiency:
    """A question with the parts that are given beside it, which replace its own."""
    if sufficiency is None:
        return Sufficiency(target=target, within=() if within is None else within, several=several)
    if not isinstance(sufficiency, Sufficiency):
        raise QuestionError(f"The question of a reason is a Sufficiency(prefer=...); got {shown(sufficiency)}.")
    return replace(
        sufficiency,
        target=sufficiency.target if target is None else target,
        within=sufficiency.within if within is None else within,
        several=sufficiency.several if several == 1 else several,
    )


def _strict(target: Any) -> Target | OpenTarget:
    """The target without the default margin, which keeps changes clear of rounding: here every row that is decided so
    counts, by however little."""
    if target is None:
        return OtherTarget(margin=0.0)
    return replace(target, margin=0.0) if target.margin <= MARGIN else target


def _neighbourhood(within: Any) -> Neighbourhood:
    if isinstance(within, Neighbourhood):
        return within
    number = plain(within)
    if isinstance(number, int | float) and not isinstance(number, bool):
        return Neighbourhood(radius=number)
    if isinstance(within, str):
        within = (within,)
    return Neighbourhood(constraints=within)


def _is_weights(prefer: Any) -> bool:
    """Is it pairs of names and weights?"""
    return (
        isinstance(prefer, tuple) and bool(prefer) and all(isinstance(one, tuple) and len(one) == 2 for one in prefer)
    )


def _preferred(prefer: Any) -> tuple[Any, ...]:
    if not isinstance(prefer, Mapping):
        names = items(prefer)
        if names is None or not all(isinstance(name, str) for name in names):
            raise QuestionError(
                f"Name the preferred features in a list, or give a weight of each; got {shown(prefer)}."
            )
        return tuple(dict.fromkeys(names))
    found = []
    for name, given in prefer.items():
        weight = plain(given)
        if not isinstance(name, str) or isinstance(weight, bool) or not isinstance(weight, int | float):
            raise QuestionError(f"A weight is a number for the name of a feature; got {shown({name: given})}.")
        if not 1e-6 <= weight <= 1e6:
            raise QuestionError(f"The weight of '{name}' must be between 1e-6 and 1e6; it is {shown(weight)}.")
        found.append((name, float(weight)))
    return tuple(found)
