"""Exponential and binary search on the distance, for MIP-EXP, MIP-SAT and SAT (paper, Algorithm 1).

    exponential   [0, e], [e, 2e], [2e, 4e], ... until an interval holds a counterfactual, or the space ends
    binary        halve the interval that holds it (SAT: from the whole interval at once)

`find(budget)` says of the rows within a distance: there is one (here it is), there is none (proven), or undecided:
the rows there are within the rounding error of the margin. The nearest robust row and the proven bound are then not the
same number; each is searched for. (The paper passes both ends of the interval. The lower end excludes nothing that is
not excluded already, and is not a convex constraint, so it is left out.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ifonly.problem import Lowered, Norm
from ifonly.resources import LimitReached
from ifonly.results import Claim, Limits, Stop, StoppedBy
from ifonly.solvers.common.contradiction import check_bound
from ifonly.solvers.common.distance_box import number_costs, within_distance
from ifonly.solvers.common.input_side import BUDGET_SLACK
from ifonly.solvers.common.inputs import Floats, Person
from ifonly.tolerances import Tolerances

MOST_STEPS = 400
GROWTH = 8.0
"""Below nothing but 0, an interval is cut by this instead of halved."""


class Verdict(Enum):
    """What `find` says."""

    FOUND = "found"
    NONE = "none"
    UNDECIDED = "undecided"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """The row, if found, and its distance, which may be less than the budget; or what stopped the method."""

    verdict: Verdict
    point: Floats | None = None
    distance: float = math.inf
    stop: Stop | None = None


@dataclass(slots=True, kw_only=True)
class Interval:
    """What is known so far."""

    point: Floats | None = None
    upper: float = math.inf
    """The distance of `point`."""
    floor: float = 0.0
    """No robust row was found within this."""
    proven: float = 0.0
    """Nothing at all is within this: the bound."""
    open: float = math.inf
    """The least budget that was undecided."""
    stop: Stop | None = None
    budgets: list[float] = field(default_factory=list)

    def update(self, budget: float, finding: StepOutcome) -> None:
        match finding.verdict:
            case Verdict.FOUND:
                if finding.distance < self.upper:
                    self.point, self.upper = finding.point, finding.distance
            case Verdict.NONE:
                self.floor, self.proven = max(self.floor, budget), max(self.proven, budget)
            case Verdict.UNDECIDED:
                self.floor, self.open = max(self.floor, budget), min(self.open, budget)
            case Verdict.STOPPED:
                self.stop = finding.stop or Stop(StoppedBy.TROUBLE)


def nearest(
    find: Callable[[float], StepOutcome], *, first: float, most: float, allowed: Callable[[float], float]
) -> Interval:
    """Search distances up to `most`, which no row exceeds. `first` >= `most` is plain binary search.

    `allowed(upper)` is the interval that is small enough.
    """
    known = Interval()
    budget = min(first, most)
    while known.point is None and known.stop is None:
        _ask(known, find, budget)
        if known.point is None and budget >= most:
            if math.isinf(known.open) and known.stop is None:
                known.proven = math.inf
            break
        budget = min(2.0 * budget, most)
    while known.point is not None and known.stop is None and known.upper - known.floor > allowed(known.upper):
        _ask(known, find, _between(known.floor, known.upper))
    while math.isfinite(known.open) and known.stop is None and known.open - known.proven > allowed(known.open):
        _ask(known, find, _between(known.proven, known.open))
    return known


def _ask(known: Interval, find: Callable[[float], StepOutcome], budget: float) -> None:
    if len(known.budgets) >= MOST_STEPS:
        known.stop = Stop(StoppedBy.STEPS, MOST_STEPS)
        return
    known.budgets.append(budget)
    known.update(budget, find(budget))


def _between(low: float, high: float) -> float:
    """The middle; when the ends are of different sizes, the middle of their sizes."""
    if low <= 0.0:
        return high / GROWTH
    return math.sqrt(low * high) if high > 4.0 * low else 0.5 * (low + high)


def farthest(lowered: Lowered, person: Person) -> float:
    """A distance that no allowed row exceeds."""
    ends = (number_costs(lowered, end - person.factual) for end in (person.lower, person.upper))
    number = np.maximum(*ends)
    number = number**2 if lowered.norm is Norm.L2 else number
    options = np.maximum.reduceat(np.where(person.allowed, person.cost, 0.0), lowered.start[:-1])
    costs = np.where(lowered.numeric, number, options)
    total = float(costs.max() if lowered.norm is Norm.LINF else costs.sum()) * (1.0 + 1e-9) + 1e-12
    return math.sqrt(total) if lowered.norm is Norm.L2 else total


def cut_to(lowered: Lowered, person: Person, budget: float) -> Person | None:
    """The person with domains cut to the budget; None where some feature has no value left."""
    searched = within_distance(lowered, person, budget)
    gone = (searched.lower > searched.upper) & lowered.numeric
    return None if gone.any() or searched.empty(lowered) else searched


def accepted(lowered: Lowered) -> float:
    """Relative: how far beyond the budget a row may be. Tangents meet a parabola only to the solver's tolerance."""
    return 1e-7 if lowered.norm is Norm.L2 else 2.0 * BUDGET_SLACK


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceSteps:
    """Where a search on the distance begins and ends."""

    first: float
    """The first interval; from the farthest distance on, the search is plain bisection."""
    gap: float | None
    """How small the last must be; None: as the tolerances say."""
    tolerances: Tolerances
    limits: Limits = field(default_factory=Limits)


def search_distances(
    lowered: Lowered, person: Person, find: Callable[[float], StepOutcome], steps: DistanceSteps, method: str
) -> Claim:
    """`nearest` for one person as a claim (its nodes: the budgets tried), once it is seen to contradict nothing."""
    gap, tolerances = steps.gap, steps.tolerances
    allowed = tolerances.allowed if gap is None else lambda _: gap
    share = 0.5 if gap is None else 1.0  # two ends share what the tolerances allow

    def small(upper: float) -> float:
        return max(share * allowed(upper), 4.0 * accepted(lowered) * upper, 1e-15)

    def found(budget: float) -> StepOutcome:
        try:
            return find(budget)
        except LimitReached as reached:  # what earlier budgets have shown stays
            return StepOutcome(verdict=Verdict.STOPPED, stop=steps.limits.stop(reached))

    known = nearest(found, first=steps.first, most=farthest(lowered, person), allowed=small)
    check_bound(lowered.question, person.factual, known.proven, known.upper, method)
    reached = (
        gap is not None and known.point is not None and known.upper - known.proven > tolerances.allowed(known.upper)
    )
    return Claim(
        point=known.point,
        lower=min(known.proven, known.upper),
        method=method,
        stop=known.stop or (Stop(StoppedBy.GAP, gap) if reached else None),
        nodes=len(known.budgets),
    )
