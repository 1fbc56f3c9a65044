"""Several actions under causes: each the cheapest that leaves out something that every earlier one acts on.

    A_1 = what the cheapest action acts on,    the next: the cheapest with  A_j not in A  for all earlier j

A branch is a set of features that are not acted on. The cheapest action of a branch that acts on all of an earlier A_j
opens a branch for each feature of A_j, without it: each action that the condition allows is in one of these. An action
is given when no open branch can have a cheaper one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ifonly.answering.branching import Spent
from ifonly.answering.recourse import FoundAction, RecourseAnswerer
from ifonly.answering.values import Floats, ResolvedTarget, SearchSettings
from ifonly.causes import CausalModel
from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem import Fixed, Query
from ifonly.problem.rules.derived import derived_features
from ifonly.results.diverse_recourse import DiverseRecourse
from ifonly.results.recourse import Recourse

MOST = 100
"""Actions of one person."""


class Branch(NamedTuple):
    """What is not acted on, the cheapest action without it, and what that acts on."""

    without: frozenset[str]
    found: FoundAction
    acts_on: frozenset[str]


@dataclass(frozen=True)
class ActionBranching:
    """One person's question, by branches."""

    answerer: RecourseAnswerer
    resolved: ResolvedTarget
    point: Floats
    causes: CausalModel
    query: Query
    settings: SearchSettings

    def branch(self, without: frozenset[str], spent: Spent) -> Branch:
        fixed = tuple(Fixed(name) for name in sorted(without))
        query = replace(self.query, constraints=(*self.query.constraints, *fixed))
        settings = replace(self.settings, limits=spent.left)
        found = self.answerer.found(self.resolved, self.point, self.causes, query, settings)
        spent.count(found.result)
        return Branch(without, found, self.acts_on(found))

    def acts_on(self, found: FoundAction) -> frozenset[str]:
        names, row = self.answerer.schema.names, found.result.point
        if row is None:
            return frozenset()
        free = {*self.causes.graph, *derived_features(self.query.constraints)}
        moved = {names[g] for g in range(len(names)) if row[g] != self.point[g]}
        return frozenset((moved - free) | {names[g] for g in found.acted})

    def next(self, branches: list[Branch], earlier: list[frozenset[str]]) -> FoundAction:
        """The cheapest action that acts on all of no earlier one; branches are opened until it is known."""
        spent = Spent(self.settings.limits)
        seen = {one.without for one in branches}
        while True:
            allowed = [one for one in branches if one.found.result.point is not None and _new(one, earlier)]
            best = min(allowed, key=lambda one: one.found.result.upper, default=None)
            upper = math.inf if best is None else best.found.result.upper
            old = [one for one in branches if one.acts_on and not _new(one, earlier) and one.found.result.lower < upper]
            if not old or spent.stop:
                break
            first = min(old, key=lambda one: one.found.result.lower)
            branches.remove(first)
            taken = next(some for some in earlier if some <= first.acts_on)
            for name in sorted(taken):
                if (without := first.without | {name}) not in seen:
                    seen.add(without)
                    branches.append(self.branch(without, spent))
        return self._closed(best, branches, spent)

    def _closed(self, best: Branch | None, branches: list[Branch], spent: Spent) -> FoundAction:
        """With the bound of all branches."""
        lower = min((one.found.result.lower for one in branches), default=math.inf)
        found = FoundAction(branches[0].found.result._replace(scores=None)) if best is None else best.found
        result = found.result
        point = None if best is None else result.claim.point
        lower = min(lower, math.inf if best is None else result.upper)
        closed = lower == math.inf or (best is not None and self.answerer.tolerances.close(lower, result.upper))
        left = next((one.found.result.stop for one in branches if one.found.result.stop), None)
        claim = replace(result.claim, point=point, lower=lower, stop=None if closed else spent.stop or left,
                        nodes=spent.nodes or result.claim.nodes, seconds=spent.seconds)  # fmt: skip
        upper = math.inf if best is None else result.upper
        return FoundAction(type(result)(claim, upper, result.scores), found.acted)


def _new(branch: Branch, earlier: list[frozenset[str]]) -> bool:
    return not any(some <= branch.acts_on for some in earlier)


# size: what a person is asked with
def diverse_recourse(
    answerer: RecourseAnswerer, row: Any, causes: CausalModel, k: Any, query: Query, settings: SearchSettings
) -> DiverseRecourse:
    """Up to k actions. The limits are for each."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST:
        raise QuestionError(f"Ask for 1 to {MOST} actions; got {shown(k)}.")
    point, query, breaks, batch, resolved, already = answerer.begun(row, causes, query)

    def told(found: FoundAction, reasons: bool = False) -> Recourse:
        known = (found, breaks, batch, resolved)
        return answerer.told(point, causes, query, replace(settings, reasons=settings.reasons and reasons), known)

    if already is not None:
        return DiverseRecourse((told(FoundAction(already)),))
    asked = ActionBranching(answerer, resolved, point, causes, query, settings)
    branches = [asked.branch(frozenset(), Spent(settings.limits))]
    found: list[Recourse] = []
    earlier: list[frozenset[str]] = []
    while len(found) < k:
        one = asked.next(branches, earlier)
        if one.result.point is None:
            return DiverseRecourse(tuple(found), told(one, reasons=not found))
        found.append(told(one))
        earlier.append(asked.acts_on(one))
    return DiverseRecourse(tuple(found))
