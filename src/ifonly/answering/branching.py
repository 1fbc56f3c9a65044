"""Conditions of the kind "one of these": answered exactly by branching, with any method.

Some conditions on a row are no inequality that a method could search with, but become ordinary constraints once it is
said in which of several ways they are met: a feature keeps its value (which one?), a row of the data is near (which
one?). The nearest row under them is found by best-first search over those choices:

    a node      some ways already chosen, as constraints; its bound: nothing allowed by them is nearer
    ask         for the nearest row under them. Does it meet every condition? Then it is the best of its node
    branch      else on the first condition that it breaks: one child per way

Nothing is lost, since a row that meets the condition meets it in at least one of the ways; and the search ends when
no open node's bound is below the best row found. Where conditions are only added (each further answer must differ from
one more), the next search starts from the nodes that the last one left.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ifonly.answering.values import CheckedResult
from ifonly.problem import Allowed, Range
from ifonly.problem.disjunctions import Condition, Ordinary, PersonContext
from ifonly.results import Claim, Limits, Stop, StoppedBy
from ifonly.tolerances import DEFAULT, Tolerances

QueryRequest: TypeAlias = Callable[[tuple[Ordinary, ...], Limits], CheckedResult]
"""The nearest row of one person, under these constraints besides those of the query, within these limits."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A node that was asked about: the ways chosen, a bound, what was found."""

    chosen: tuple[Ordinary, ...]
    bound: float
    found: CheckedResult


class Branching:
    """The nodes of one person's search. `nearest` may be called again with more conditions, not with fewer."""

    def __init__(self, ask: QueryRequest, context: PersonContext, tolerances: Tolerances = DEFAULT) -> None:
        self._ask, self._situation, self._tolerances = ask, context, tolerances
        self._order = itertools.count()
        self._open: list[tuple[float, int, tuple[Ordinary, ...]]] = [(0.0, 0, ())]
        self._seen: set[frozenset[Ordinary]] = set()
        self._leaves: list[_Leaf] = []
        self._best: CheckedResult | None = None
        self._method = ""

    def nearest(self, conditions: Sequence[Condition], limits: Limits) -> CheckedResult:
        """The nearest row that meets all conditions. The limits are for all the asking together."""
        spent = Spent(limits)
        leaves, self._leaves, self._best = self._leaves, [], None
        for leaf in leaves:
            self._settle(leaf, conditions)
        while self._open and not self._beaten(self._open[0][0]) and not (spent.prepared_query and spent.stop):
            bound, _, chosen = heapq.heappop(self._open)
            found = self._ask(chosen, spent.left)
            self._method = found.claim.method
            spent.nodes, spent.prepared_query = spent.nodes + found.claim.nodes, spent.prepared_query + 1
            rounding = found.claim.point is None and found.stop is not None and found.stop.by is StoppedBy.ROUNDING
            lower = (
                found.lower if rounding else max(bound, found.lower)
            )  # `bound` is of rows that every rounding accepts
            self._settle(_Leaf(chosen, lower, found), conditions)
        return self._found(spent)

    def _beaten(self, bound: float) -> bool:
        """Can nothing at this bound be nearer than the best row, up to the gap?"""
        return self._best is not None and self._tolerances.close(bound, self._best.upper)

    def _settle(self, leaf: _Leaf, conditions: Sequence[Condition]) -> None:
        """Keep a leaf whose row meets the conditions; branch where it does not; forget it where there is none."""
        found = leaf.found
        if found.none_exists:
            return
        after = found.claim.point
        if found.witness is not None and after is not None:
            for condition in conditions:
                if not condition.holds(self._situation, after):
                    for way in condition.ways(self._situation, after, leaf.chosen):
                        self._push(max(leaf.bound, way.bound), leaf.chosen, way.constraints)
                    return
            if self._best is None or found.upper < self._best.upper:
                self._best = found
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

    def _found(self, spent: Spent) -> CheckedResult:
        """What is known of all nodes together."""
        best = self._best
        lower = min([leaf.bound for leaf in self._leaves] + [entry[0] for entry in self._open[:1]], default=math.inf)
        stop = spent.stop or next((leaf.found.stop for leaf in self._leaves if leaf.found.stop is not None), None)
        if best is None:
            claim = Claim(point=None, lower=lower, method=self._method, stop=None if lower == math.inf else stop)
        else:
            lower = min(lower, best.upper)
            closed = self._tolerances.close(lower, best.upper)
            claim = replace(
                best.claim, lower=lower, lower_any_rounding=None, stop=None if closed else stop, record=None
            )
        return CheckedResult(
            replace(claim, nodes=spent.nodes, seconds=spent.seconds), None if best is None else best.witness
        )


class Spent:
    """What one call has spent of its limits."""

    def __init__(self, limits: Limits, seconds: float = 0.0) -> None:
        self._limits, self._begun, self.nodes, self.prepared_query = limits, time.perf_counter() - seconds, 0, 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begun

    @property
    def stop(self) -> Stop | None:
        """Which limit is reached."""
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
    """The same with one range or one list of values per feature, and the last word on each `subject` of a rule; None
    when a range or a list is empty."""
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
