"""The allowed row with the least correlated cost: is there one that costs at most so much, or half of it?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ifonly.answering.branching import QueryRequest
from ifonly.answering.values import CheckedResult, Floats
from ifonly.problem.disjunctions import Ordinary, PersonContext
from ifonly.problem.learned.correlated import ROOM, CorrelatedWithin, Mahalanobis
from ifonly.results import Limits
from ifonly.solvers.common.distances import Interval, StepOutcome, Verdict, nearest
from ifonly.tolerances import Tolerances


class _Costs:
    """One person's questions about what a row costs at most. Signs that mattered are kept for the next question."""

    def __init__(self, ask: QueryRequest, context: PersonContext, cost: Mahalanobis, limits: Limits) -> None:
        self.ask, self.context, self.cost, self.limits = ask, context, cost, limits
        self.told: list[CheckedResult] = []
        self.rows: dict[float, CheckedResult] = {}
        self.signs: set[tuple[float, ...]] = set()

    def under(self, more: Sequence[Ordinary]) -> CheckedResult:
        self.told.append(self.ask(tuple(more), self.limits))
        return self.told[-1]

    def costs(self, found: CheckedResult, point: Floats) -> tuple[float, Floats]:
        """What a row costs, kept with it; and the terms of the sum."""
        terms = self.cost.terms(self.context.before, point)
        length = float(np.abs(terms).sum())
        self.rows[length] = found
        return length, terms

    def find(self, budget: float) -> StepOutcome:
        """Ask under the signs known so far, learn those of the row found, until it is within the budget."""
        condition = CorrelatedWithin(self.cost, budget)
        while True:
            cuts = [condition.cut(self.context, np.array(choice)) for choice in sorted(self.signs)]
            found = self.under([*cuts, *self.cost.box(self.context.before, budget)])
            point = found.claim.point
            if found.witness is None or point is None:
                limit = found.stop is not None and found.stop.is_limit
                verdict = Verdict.NONE if found.none_exists else Verdict.STOPPED if limit else Verdict.UNDECIDED
                return StepOutcome(verdict=verdict, stop=found.stop)
            length, terms = self.costs(found, point)
            choice = tuple(np.sign(terms).tolist())
            if length <= budget * (1.0 + ROOM) or choice in self.signs:
                return StepOutcome(verdict=Verdict.FOUND, point=point, distance=length)
            self.signs.add(choice)


def least_correlated(
    ask: QueryRequest, context: PersonContext, cost: Mahalanobis, *, limits: Limits, tolerances: Tolerances
) -> CheckedResult:
    """The row with the least cost; its bounds and its witness's distance are in that cost. Limits are per question."""
    costs = _Costs(ask, context, cost, limits)
    first = costs.under(())
    if first.witness is None or first.claim.point is None:
        return first
    most, _ = costs.costs(first, first.claim.point)
    allowed = tolerances.allowed
    known = nearest(costs.find, first=most, most=most, allowed=allowed) if most > 0.0 else Interval()
    upper = min(costs.rows)
    best = costs.rows[upper]
    lower = min(known.proven, upper)
    assert best.witness is not None
    stop = None if tolerances.close(lower, upper) else known.stop or best.stop
    claim = replace(
        best.claim,
        lower=lower,
        stop=stop,
        nodes=sum(found.claim.nodes for found in costs.told),
        seconds=math.fsum(found.claim.seconds for found in costs.told),
        record=None,
        lower_any_rounding=None,
    )
    return CheckedResult(claim, replace(best.witness, distance=upper))
