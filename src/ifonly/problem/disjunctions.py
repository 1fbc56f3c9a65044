"""Disjunctive constraints: conditions whose alternatives are ordinary constraints, but which are no inequality that a
method could search with. `answering.branching` branches on the alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.constraints import Constraint, Range
from ifonly.problem.distance import Distance
from ifonly.problem.rule import RowRule
from ifonly.problem.rules.rule import Gap, Rule
from ifonly.schema import Schema

Floats = NDArray[np.float64]
Ordinary: TypeAlias = Constraint | RowRule


class PersonContext(NamedTuple):
    """The schema, the person's point and the distance of a question."""

    schema: Schema
    before: Floats
    distance: Distance


class Alternative(NamedTuple):
    """One alternative of a condition; no row that meets it is nearer to the person than `bound`."""

    bound: float
    constraints: tuple[Ordinary, ...]
    boxed: bool = False
    """One of many balls, of which the constraints on single features leave a small box."""


class Condition(Protocol):
    """A disjunctive constraint: one of its alternatives must hold."""

    def check(self, schema: Schema) -> None: ...

    def holds(self, context: PersonContext, after: Floats) -> bool:
        """Is it met by a finished row?"""

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterable[Alternative]:
        """Every row allowed by those `chosen` that meets the condition is allowed by one of these as well. In the order
        of their bounds: they are asked for one by one."""

    def describe(self) -> str: ...


def rows_that_meet(condition: Condition) -> Floats | None:
    """The rows of data that a union of balls is about, which all meet it; None of other conditions."""
    return getattr(condition, "points", None)


def is_condition(constraint: Any) -> TypeGuard[Condition]:
    return hasattr(constraint, "alternatives")


@dataclass(frozen=True)
class Either:
    """At least one of these constraints on single features holds.

    `unless[i]`, where it is not None, holds of every row of which `options[i]` does not. It makes the alternatives
    disjoint: each excludes the earlier ones.
    """

    options: tuple[Constraint, ...]
    words: str
    unless: tuple[Constraint | None, ...] = ()

    def check(self, schema: Schema) -> None:
        for option in self.options:
            option.check(schema)

    def holds(self, context: PersonContext, after: Floats) -> bool:
        schema, before, _ = context
        for option in self.options:
            g = schema.index(option.feature)
            if option.allows(schema.features[g], float(before[g]), float(after[g])):
                return True
        return False

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        others = self.unless or (None,) * len(self.options)
        for i, option in enumerate(self.options):
            yield Alternative(0.0, (option, *(other for other in others[:i] if other is not None)))

    def describe(self) -> str:
        return self.words


MOST_GAPS = 8
"""Gaps that a rule may leave in a number and be searched as it is, in neurons of its own; with more, by branching."""


@dataclass(frozen=True)
class OutsideGaps:
    """A rule about one number that leaves it many values: a row that falls into a gap is moved below it or above it.

    Each alternative is a range, so the rule needs no neurons, however many values there are.
    """

    rule: Rule
    gaps: tuple[Gap, ...]

    def check(self, schema: Schema) -> None:
        self.rule.check(schema)

    def holds(self, context: PersonContext, after: Floats) -> bool:
        return self.rule.allows_row(context.schema, context.before, after)

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        (name,) = self.rule.features(context.schema)
        value = float(after[context.schema.index(name)])
        below, above = next(gap for gap in self.gaps if gap[0] < value < gap[1])
        if below > -math.inf:
            yield Alternative(0.0, (Range(name, upper=below),))
        if above < math.inf:
            yield Alternative(0.0, (Range(name, lower=above),))

    def describe(self) -> str:
        return self.rule.describe()


def as_conditions(constraints: Iterable[Any], schema: Schema) -> tuple[Any, ...]:
    """The constraints, those rules as conditions that are better branched on than searched as they are."""
    result: list[Any] = []
    for constraint in constraints:
        gaps = constraint.gaps(schema) if isinstance(constraint, Rule) else ()
        result.append(OutsideGaps(constraint, gaps) if len(gaps) > MOST_GAPS else constraint)
    return tuple(result)
