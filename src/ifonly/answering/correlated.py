"""Least Mahalanobis cost by bisection on a bound: is there an allowed row that costs no more than that?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ifonly.answering.answerer import Answerer
from ifonly.answering.branching import NearestUnder
from ifonly.answering.runner import parted
from ifonly.answering.values import CheckedResult, Floats, SearchSettings
from ifonly.errors import QuestionError, RowError
from ifonly.problem import Query
from ifonly.problem.disjunctions import Ordinary, PersonContext
from ifonly.problem.learned.correlated import COST_TOLERANCE, CorrelatedWithin, Mahalanobis
from ifonly.problem.missing import without_imputable
from ifonly.results import Answer, Limits
from ifonly.solvers.common.distances import Interval, StepOutcome, Verdict, nearest
from ifonly.tolerances import Tolerances


def correlated_answer(
    answerer: Answerer, point: Floats, cost: Mahalanobis, query: Query, settings: SearchSettings
) -> Answer:
    """The answer of one person, with its bounds in the correlated cost. The limits are for each search."""
    schema = answerer.schema
    query, breaks = answerer.without_broken(point, query)
    plain = replace(query, constraints=without_imputable(query.constraints, schema))
    if parted(plain.constraints)[0]:
        raise QuestionError("A correlated cost cannot be minimised under a condition such as Near.")
    if missing := schema.missing_names(point):
        raise RowError(
            f"A correlated cost has no meaning where '{missing[0]}' is missing; fill it in.", feature=missing[0]
        )
    batch, resolved, found = answerer.one(point, query)
    found = found or least_correlated(
        answerer.runner.under(resolved, point, plain, settings),
        PersonContext(schema, point, query.measure),
        cost,
        limits=settings.limits,
        tolerances=answerer.tolerances,
    )
    answer = answerer.builder.answer(batch, resolved, found, query)
    return replace(answer, distance_name="correlated l1", breaks=(*breaks, *answer.breaks))


class _Costs:
    """One person's questions about what a row costs at most. Signs that mattered are kept for the next question."""

    def __init__(self, solve: NearestUnder, context: PersonContext, cost: Mahalanobis, limits: Limits) -> None:
        self.solve, self.context, self.cost, self.limits = solve, context, cost, limits
        self.results: list[CheckedResult] = []
        self.rows: dict[float, CheckedResult] = {}
        self.signs: set[tuple[float, ...]] = set()

    def under(self, more: Sequence[Ordinary]) -> CheckedResult:
        self.results.append(self.solve(tuple(more), self.limits))
        return self.results[-1]

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
            point = found.point
            if point is None:
                limit = found.stop is not None and found.stop.is_limit
                verdict = Verdict.NONE if found.none_exists else Verdict.STOPPED if limit else Verdict.UNDECIDED
                return StepOutcome(verdict=verdict, stop=found.stop)
            length, terms = self.costs(found, point)
            choice = tuple(np.sign(terms).tolist())
            if length <= budget * (1.0 + COST_TOLERANCE) or choice in self.signs:
                return StepOutcome(verdict=Verdict.FOUND, point=point, distance=length)
            self.signs.add(choice)


def least_correlated(
    solve: NearestUnder, context: PersonContext, cost: Mahalanobis, *, limits: Limits, tolerances: Tolerances
) -> CheckedResult:
    """The row with the least cost; its bounds and its witness's distance are in that cost. Limits are per question."""
    costs = _Costs(solve, context, cost, limits)
    first = costs.under(())
    if first.point is None:
        return first
    most, _ = costs.costs(first, first.point)
    allowed = tolerances.allowed
    known = nearest(costs.find, first=most, most=most, allowed=allowed) if most > 0.0 else Interval()
    upper = min(costs.rows)
    best = costs.rows[upper]
    lower = min(known.proven, upper)
    stop = None if tolerances.close(lower, upper) else known.stop or best.stop
    claim = replace(
        best.claim,
        lower=lower,
        stop=stop,
        nodes=sum(found.claim.nodes for found in costs.results),
        seconds=math.fsum(found.claim.seconds for found in costs.results),
        record=None,
        lower_any_rounding=None,
    )
    return CheckedResult(claim, upper, best.scores)
