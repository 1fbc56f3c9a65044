"""Conditions of the kind "one of these": answered exactly by branching, with any method.

Some conditions on a row are no inequality that a method could search with, but become ordinary constraints once it is
said in which of several ways they are met: a feature keeps its value (which one?), a row of the data is near (which
one?). The nearest row under them is found by best-first search over those choices:

    a node      some ways already chosen, as constraints; its bound: nothing allowed by them is nearer
    ask         for the nearest row under them. Does it meet every condition? Then it is the best of its node
    branch      else on the first condition that it breaks: one child a way

Nothing is lost, since a row that meets the condition meets it in at least one of the ways; and the search ends when
no open node's bound is below the best row found. Where conditions are only added (each further answer must differ from
one more), the next search starts from the nodes that the last one left.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Allowed, Constraint, Distance, Range
from ifonly.problem.rule import RowRule
from ifonly.problem.rules.rule import Gap, Rule
from ifonly.proof import Answer, Limits, Nearest, NoneExists, Unknown, Within
from ifonly.schema import Schema
from ifonly.tolerances import DEFAULT, Tolerances

Floats = NDArray[np.float64]
Ordinary = Constraint | RowRule


class Person(NamedTuple):
    """Whom a question is about, and in which distance."""

    schema: Schema
    before: Floats
    distance: Distance


class Way(NamedTuple):
    """One way of meeting a condition; no row that meets it so is nearer to the person than `bound`."""

    bound: float
    constraints: tuple[Ordinary, ...]


class Condition(Protocol):
    """A constraint that is met in one of several ways."""

    def check(self, schema: Schema) -> None: ...

    def holds(self, person: Person, after: Floats) -> bool:
        """Is it met by a finished row?"""

    def ways(self, person: Person, after: Floats, chosen: Sequence[Ordinary]) -> Iterable[Way]:
        """Every row allowed by those `chosen` that meets it is allowed by the constraints of one of these as well."""

    def describe(self) -> str: ...


def is_condition(constraint: Any) -> TypeGuard[Condition]:
    return hasattr(constraint, "ways")


@dataclass(frozen=True)
class Either:
    """At least one of these constraints on single features holds.

    `unless[i]`, where it is not None, holds of every row of which `options[i]` does not. It makes the ways disjoint:
    each excludes the earlier ones.
    """

    options: tuple[Constraint, ...]
    words: str
    unless: tuple[Constraint | None, ...] = ()

    def check(self, schema: Schema) -> None:
        for option in self.options:
            option.check(schema)

    def holds(self, person: Person, after: Floats) -> bool:
        schema, before, _ = person
        for option in self.options:
            g = schema.index(option.feature)
            if option.allows(schema.features[g], float(before[g]), float(after[g])):
                return True
        return False

    def ways(self, person: Person, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Way]:
        others = self.unless or (None,) * len(self.options)
        for i, option in enumerate(self.options):
            yield Way(0.0, (option, *(other for other in others[:i] if other is not None)))

    def describe(self) -> str:
        return self.words


MOST_GAPS = 8
"""Gaps that a rule may leave in a number and be searched as it is, in neurons of its own; with more, by branching."""


@dataclass(frozen=True)
class OutsideGaps:
    """A rule about one number that leaves it many values: a row that falls into a gap is moved below it or above it.

    Each way is a range, so no neuron stands for the rule, however many values there are.
    """

    rule: Rule
    gaps: tuple[Gap, ...]

    def check(self, schema: Schema) -> None:
        self.rule.check(schema)

    def holds(self, person: Person, after: Floats) -> bool:
        return self.rule.allows_row(person.schema, person.before, after)

    def ways(self, person: Person, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Way]:
        (name,) = self.rule.features(person.schema)
        value = float(after[person.schema.index(name)])
        below, above = next(gap for gap in self.gaps if gap[0] < value < gap[1])
        if below > -math.inf:
            yield Way(0.0, (Range(name, upper=below),))
        if above < math.inf:
            yield Way(0.0, (Range(name, lower=above),))

    def describe(self) -> str:
        return self.rule.describe()


def as_conditions(constraints: Iterable[Any], schema: Schema) -> tuple[Any, ...]:
    """The constraints, those rules as conditions that are better branched on than searched as they are."""
    result: list[Any] = []
    for constraint in constraints:
        gaps = constraint.gaps(schema) if isinstance(constraint, Rule) else ()
        result.append(OutsideGaps(constraint, gaps) if len(gaps) > MOST_GAPS else constraint)
    return tuple(result)


Ask = Callable[[tuple[Ordinary, ...], Limits], Answer]
"""The nearest row of one person, under these constraints besides those of the question, within these limits."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A node that was asked about: the ways chosen, a bound, the answer."""

    chosen: tuple[Ordinary, ...]
    bound: float
    answer: Answer


class Branching:
    """The nodes of one person's search. `nearest` may be called again with more conditions, not with fewer."""

    def __init__(self, ask: Ask, person: Person, tolerances: Tolerances = DEFAULT) -> None:
        self._ask, self._person, self._tolerances = ask, person, tolerances
        self._order = itertools.count()
        self._open: list[tuple[float, int, tuple[Ordinary, ...]]] = [(0.0, 0, ())]
        self._seen: set[frozenset[Ordinary]] = set()
        self._leaves: list[_Leaf] = []
        self._best: Answer | None = None
        self._last: Answer | None = None

    def nearest(self, conditions: Sequence[Condition], limits: Limits) -> Answer:
        """The nearest row that meets all conditions. The limits are for all the asking together."""
        spent = _Spent(limits)
        leaves, self._leaves, self._best = self._leaves, [], None
        for leaf in leaves:
            self._settle(leaf, conditions)
        while self._open and not self._beaten(self._open[0][0]) and not (spent.asked and spent.limit):
            bound, _, chosen = heapq.heappop(self._open)
            answer = self._last = self._ask(chosen, spent.left)
            spent.nodes, spent.asked = spent.nodes + answer.nodes, spent.asked + 1
            self._settle(_Leaf(chosen, max(bound, answer.lower), answer), conditions)
        return self._answer(spent)

    def _beaten(self, bound: float) -> bool:
        """Can nothing at this bound be nearer than the best row, up to the gap?"""
        best = self._best
        return best is not None and best.upper - bound <= self._tolerances.allowed(best.upper)

    def _settle(self, leaf: _Leaf, conditions: Sequence[Condition]) -> None:
        """Keep a leaf whose row meets the conditions; branch where it does not; forget it where there is none."""
        answer = leaf.answer
        if isinstance(answer, NoneExists):
            return
        if answer.counterfactual is not None:
            after = self._person.schema.read(answer.counterfactual)
            for condition in conditions:
                if not condition.holds(self._person, after):
                    for way in condition.ways(self._person, after, leaf.chosen):
                        self._push(max(leaf.bound, way.bound), leaf.chosen, way.constraints)
                    return
            if self._best is None or answer.upper < self._best.upper:
                self._best = answer
        self._leaves.append(leaf)

    def _push(self, bound: float, chosen: tuple[Ordinary, ...], more: tuple[Ordinary, ...]) -> None:
        together = combined((*chosen, *more))
        if together is None:
            return
        key = frozenset(together)
        assert key != frozenset(chosen), "a way that adds nothing"
        if key not in self._seen:
            self._seen.add(key)
            heapq.heappush(self._open, (bound, -next(self._order), together))  # of equals the newest first

    def _answer(self, spent: _Spent) -> Answer:
        """The claim about all nodes: with the best row, or in the words of the last answer."""
        best = self._best
        lower = min([leaf.bound for leaf in self._leaves] + [entry[0] for entry in self._open[:1]], default=math.inf)
        notes = [leaf.answer.note for leaf in self._leaves if leaf.answer.note]
        new: dict[str, Any] = {"seconds": spent.seconds, "nodes": spent.nodes, "record": None,
                               "note": spent.limit or next(iter(notes), "")}  # fmt: skip
        if best is not None:
            lower = min(lower, best.upper)
            if best.upper - lower <= self._tolerances.allowed(best.upper):
                return Nearest(**_shared(best) | new | {"lower": lower, "note": ""})
            return Within(**_shared(best) | new | {"lower": lower})
        assert self._last is not None
        new |= {"lower": lower, "upper": math.inf, "counterfactual": None, "changes": (), "decision_after": None,
                "score_after": math.nan}  # fmt: skip
        if lower == math.inf:
            return NoneExists(**_shared(self._last) | new | {"note": ""})
        return Unknown(**_shared(self._last) | new)


class _Spent:
    """What one call has spent of its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._begun, self.nodes, self.asked = limits, time.perf_counter(), 0, 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begun

    @property
    def limit(self) -> str:
        """Which limit is reached, in words; empty when none is."""
        return self._limits.reached(seconds=self.seconds, nodes=self.nodes)

    @property
    def left(self) -> Limits:
        seconds, nodes = self._limits.seconds, self._limits.nodes
        return replace(
            self._limits,
            seconds=None if seconds is None else max(seconds - self.seconds, 1e-3),
            nodes=None if nodes is None else max(nodes - self.nodes, 1),
        )


def combined(constraints: Sequence[Ordinary]) -> tuple[Ordinary, ...] | None:
    """The same with one range or one list of values a feature, and the last word on each `subject` of a rule; None when
    a range or a list is empty."""
    result: dict[Any, Ordinary] = {}
    for constraint in constraints:
        kind = type(constraint)
        key = (
            (kind, constraint.feature)
            if isinstance(constraint, Range | Allowed)
            else getattr(constraint, "subject", constraint)
        )
        known = result.get(key)
        if isinstance(constraint, Range) and isinstance(known, Range):
            lower, upper = max(known.lower, constraint.lower), min(known.upper, constraint.upper)
            if lower > upper:
                return None
            constraint = Range(known.feature, lower, upper)
        elif isinstance(constraint, Allowed) and isinstance(known, Allowed):
            values = [value for value in known.values if value in constraint.values]
            if not values:
                return None
            constraint = Allowed(known.feature, values)
        result[key] = constraint
    return tuple(result.values())


def _shared(answer: Answer) -> dict[str, Any]:
    """What every kind of answer has."""
    return {field.name: getattr(answer, field.name) for field in fields(Unknown)}
