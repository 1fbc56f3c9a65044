"""Best-first branch and bound over disjunctions: conditions of the kind "one of these", exactly, with any method.

A condition such as "some feature keeps its value" or "a row of the data is near" is no inequality that a method could
search with, but each of its alternatives is a set of ordinary constraints.

    node        the alternatives chosen so far, as constraints, and a lower bound on the distance under them
    relaxation  the nearest row under these constraints; if it meets every condition, it is the best of its node
    branching   otherwise on the first condition that it breaks: one child per alternative

A row that meets a condition meets at least one of its alternatives, so nothing is lost; the search ends when no open
node has a bound below the best row found. Where conditions are only added (each further diverse answer must differ from
one more), the next search starts from the nodes that the last one left.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ifonly.answering.values import CheckedResult
from ifonly.problem import Allowed, Range
from ifonly.problem.disjunctions import Alternative, Condition, Ordinary, PersonContext
from ifonly.results import Claim, Limits, Stop, StoppedBy
from ifonly.tolerances import DEFAULT, Tolerances

NearestUnder: TypeAlias = Callable[[tuple[Ordinary, ...], Limits], CheckedResult]
"""The nearest row of one person, under these constraints besides those of the query, within these limits."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A node whose relaxation was solved: the constraints chosen, the lower bound, the result."""

    chosen: tuple[Ordinary, ...]
    bound: float
    found: CheckedResult


class Branching:
    """The nodes of one person's search. `nearest` may be called again with more conditions, not with fewer."""

    def __init__(self, solve: NearestUnder, context: PersonContext, tolerances: Tolerances = DEFAULT) -> None:
        self._solve, self._context, self._tolerances = solve, context, tolerances
        self._order = itertools.count()
        self._open: list[tuple[float, int, tuple[Ordinary, ...], Iterator[Alternative] | None]] = [(0.0, 0, (), None)]
        self._seen: set[frozenset[Ordinary]] = set()
        self._leaves: list[_Leaf] = []
        self._best: CheckedResult | None = None
        self._method = ""

    def nearest(self, conditions: Sequence[Condition], limits: Limits) -> CheckedResult:
        """The nearest row that meets all conditions. The limits are for all nodes together."""
        spent = Spent(limits)
        leaves, self._leaves, self._best = self._leaves, [], None
        for leaf in leaves:
            self._settle(leaf, conditions)
        while self._open and not self._beaten(self._open[0][0]) and not (spent.searches and spent.stop):
            bound, _, chosen, more = heapq.heappop(self._open)
            if more is not None:
                self._branch(bound, chosen, more)
                continue
            found = self._solve(chosen, spent.left)
            self._method = found.claim.method
            spent.count(found)
            rounding = found.claim.point is None and found.stop is not None and found.stop.by is StoppedBy.ROUNDING
            # the bound of a node is about rows that every rounding accepts, and says nothing where only others are left
            lower = found.lower if rounding else max(bound, found.lower)
            self._settle(_Leaf(chosen, lower, found), conditions)
        return self._found(spent)

    def _beaten(self, bound: float) -> bool:
        """Can nothing at this bound be nearer than the best row, up to the gap?"""
        return self._best is not None and self._tolerances.close(bound, self._best.upper)

    def _settle(self, leaf: _Leaf, conditions: Sequence[Condition]) -> None:
        """Keep a leaf whose row meets the conditions, branch where it does not, drop it where no row exists."""
        found = leaf.found
        if found.none_exists:
            return
        if found.point is not None:
            for condition in conditions:
                if not condition.holds(self._context, found.point):
                    alternatives = condition.alternatives(self._context, found.point, leaf.chosen)
                    self._branch(leaf.bound, leaf.chosen, iter(alternatives))
                    return
            if self._best is None or found.upper < self._best.upper:
                self._best = found
        self._leaves.append(leaf)

    def _branch(self, bound: float, chosen: tuple[Ordinary, ...], alternatives: Iterator[Alternative]) -> None:
        """One child per alternative; those with a higher bound, which come last, are left until it is their turn."""
        for alternative in alternatives:
            if alternative.bound > bound:
                rest = itertools.chain([alternative], alternatives)
                heapq.heappush(self._open, (alternative.bound, -next(self._order), chosen, rest))
                return
            self._push(bound, chosen, alternative.constraints)

    def _push(self, bound: float, chosen: tuple[Ordinary, ...], more: tuple[Ordinary, ...]) -> None:
        together = combined((*chosen, *more))
        if together is None:
            return
        key = frozenset(together)
        assert key != frozenset(chosen), "an alternative that adds nothing"
        if key not in self._seen:
            self._seen.add(key)
            entry = (bound, -next(self._order), together, None)  # among equal bounds, the newest first
            heapq.heappush(self._open, entry)

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
        claim = replace(claim, nodes=spent.nodes, seconds=spent.seconds)
        return CheckedResult(claim) if best is None else CheckedResult(claim, best.upper, best.scores)


class Spent:
    """What one call has spent of its limits."""

    def __init__(self, limits: Limits, seconds: float = 0.0) -> None:
        self._limits, self._begun, self.nodes, self.searches = limits, time.perf_counter() - seconds, 0, 0

    def count(self, found: CheckedResult) -> None:
        """One more search, with its nodes."""
        self.nodes, self.searches = self.nodes + found.claim.nodes, self.searches + 1

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
    """The same with one range or one list of values per feature, and the last of the rules on one `subject`; None when
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
