"""Best-first branch and bound over disjunctions: conditions of the kind "one of these", exactly, with any method.

A condition such as "some feature keeps its value" or "a row of the data is near" is no inequality that a method could
search with, but each of its alternatives is a set of ordinary constraints.

    node        the alternatives chosen so far, as constraints, and a lower bound on the distance under them
    relaxation  the nearest row under these constraints; if it meets every condition, it is the best of its node
    branching   otherwise on the first condition that it breaks: one child per alternative

A row that meets a condition meets at least one of its alternatives, so nothing is lost; the search ends when no open
node has a bound below the best row found. Where a condition is a union of many balls, their boxes are bounded many at
a time before any of them is searched (`box_bounds`). Where conditions are only added (each further diverse answer must
differ from one more), the next search starts from the nodes that the last one left.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from ifonly.answering.values import CheckedResult, Floats
from ifonly.problem import Allowed, Range
from ifonly.problem.disjunctions import Alternative, Condition, Ordinary, PersonContext, rows_that_meet
from ifonly.results import Claim, Limits, Stop, StoppedBy
from ifonly.tolerances import DEFAULT, Tolerances

BALLS = 64
"""Of a union of balls, so many are bounded at a time."""
GUESSED = 1e-6
"""Relative: how much farther than a row of data an answer is looked for that must be no farther."""

NearestUnder: TypeAlias = Callable[[tuple[Ordinary, ...], Limits], CheckedResult]
"""The nearest row of one person, under these constraints besides those of the query, within these limits."""


class BoundsOfBoxes(Protocol):
    """What is known of many boxes at once (`box_bounds`)."""

    def bounds(
        self, constraints: Sequence[Sequence[Any]], below: float, limits: Limits
    ) -> tuple[Sequence[float], int] | None: ...

    def nearest_of(self, rows: Floats) -> float: ...

    def nothing_below(
        self, constraints: tuple[Any, ...], distance: float, limits: Limits
    ) -> tuple[float, int, float] | None: ...


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A node whose relaxation was solved: the constraints chosen, the lower bound, the result."""

    chosen: tuple[Ordinary, ...]
    bound: float
    found: CheckedResult


class Branching:
    """The nodes of one person's search. `nearest` may be called again with more conditions, not with fewer."""

    def __init__(
        self,
        solve: NearestUnder,
        context: PersonContext,
        tolerances: Tolerances = DEFAULT,
        boxes: BoundsOfBoxes | None = None,
    ) -> None:
        self._solve, self._context, self._tolerances, self._boxes = solve, context, tolerances, boxes
        self._guess = math.inf
        """How far some row is that meets the condition which is branched on: nothing beyond matters."""
        self._tried: dict[tuple[Ordinary, ...], float] = {}
        """The last distance below which a node was searched for rows."""
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
            self._settle(leaf, conditions, spent)
        while self._open and not self._beaten(self._open[0][0]) and not (spent.searches and spent.stop):
            bound, _, chosen, more = heapq.heappop(self._open)
            if more is not None:
                self._branch(bound, chosen, more, spent)
                continue
            if self._put_off(bound, chosen, spent):
                continue
            found = self._solve(chosen, spent.left)
            self._method = found.claim.method
            spent.count(found)
            rounding = found.claim.point is None and found.stop is not None and found.stop.by is StoppedBy.ROUNDING
            # the bound of a node is about rows that every rounding accepts, and says nothing where only others are left
            lower = found.lower if rounding else max(bound, found.lower)
            self._settle(_Leaf(chosen, lower, found), conditions, spent)
        return self._found(spent)

    def _put_off(self, bound: float, chosen: tuple[Ordinary, ...], spent: Spent) -> bool:
        """Is the node one of many balls that have nothing nearer than the best row, or than a row that will be? Then it
        waits for others: such a search is cut off at that distance."""
        below = min(self._guess, math.inf if self._best is None else self._best.upper)
        if self._boxes is None or not chosen or not bound * (1.0 + GUESSED) < below < math.inf:
            return False
        if self._tried.get(chosen) == below:
            return False
        self._tried[chosen] = below
        known = self._boxes.nothing_below(chosen, below, spent.left)
        if known is None:
            return False
        spent.nodes, spent.searches = spent.nodes + known[1], spent.searches + 1
        heapq.heappush(self._open, (max(bound, min(known[0], below)), -next(self._order), chosen, None))
        return True

    def _beaten(self, bound: float) -> bool:
        """Can nothing at this bound be nearer than the best row, up to the gap?"""
        return self._best is not None and self._tolerances.close(bound, self._best.upper)

    def _settle(self, leaf: _Leaf, conditions: Sequence[Condition], spent: Spent) -> None:
        """Keep a leaf whose row meets the conditions, branch where it does not, drop it where no row exists."""
        found = leaf.found
        if found.none_exists:
            return
        if found.point is not None:
            for condition in conditions:
                if not condition.holds(self._context, found.point):
                    alternatives = condition.alternatives(self._context, found.point, leaf.chosen)
                    self._look_at_rows_of(condition)
                    self._branch(leaf.bound, leaf.chosen, iter(alternatives), spent)
                    return
            if self._best is None or found.upper < self._best.upper:
                self._best = found
        self._leaves.append(leaf)

    def _look_at_rows_of(self, condition: Condition) -> None:
        """How far a row of the data is that meets the condition, once."""
        rows = rows_that_meet(condition)
        if self._boxes is not None and rows is not None and self._guess == math.inf:
            self._guess = self._boxes.nearest_of(rows) * (1.0 + GUESSED)

    def _branch(
        self, bound: float, chosen: tuple[Ordinary, ...], alternatives: Iterator[Alternative], spent: Spent
    ) -> None:
        """One child per alternative; those with a higher bound, which come last, are left until it is their turn."""
        alternatives = self._without_balls(bound, chosen, alternatives, spent)
        for alternative in alternatives:
            if alternative.bound > bound:
                rest = itertools.chain([alternative], alternatives)
                heapq.heappush(self._open, (alternative.bound, -next(self._order), chosen, rest))
                return
            self._push(bound, chosen, alternative.constraints)

    def _without_balls(
        self, bound: float, chosen: tuple[Ordinary, ...], alternatives: Iterator[Alternative], spent: Spent
    ) -> Iterator[Alternative]:
        """Children for the next balls, if these are balls, with bounds that many of them are given at once; the
        alternatives that are left."""
        first = next(alternatives, None)
        if first is None or not first.boxed or self._boxes is None:
            return alternatives if first is None else itertools.chain([first], alternatives)
        block = [first, *itertools.islice(alternatives, BALLS - 1)]
        below = min(self._guess, math.inf if self._best is None else self._best.upper)
        known = self._boxes.bounds([(*chosen, *one.constraints) for one in block], below, spent.left)
        if known is None:
            return itertools.chain(block, alternatives)
        spent.nodes += known[1]
        for one, own in zip(block, known[0], strict=True):
            self._push(max(bound, one.bound, own), chosen, one.constraints)
        return alternatives

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
