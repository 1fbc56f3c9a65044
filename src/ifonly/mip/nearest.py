"""The search on the distance that MIP-EXP, MIP-SAT and SAT share (paper, Algorithm 1).

    exponential   [0, e], [e, 2e], [2e, 4e], ... until an interval holds a counterfactual, or the space ends
    binary        halve the interval that holds it (SAT: from the whole interval at once)

`find(budget)` says of the rows within a distance: there is one (here it is), there is none (proven), or undecided:
the rows there are within the rounding error of the margin. The nearest sure row and the proven bound are then not the
same number; each is searched for. (The paper passes both ends of the interval. The lower end excludes nothing that is
not excluded already, and is not a convex constraint, so it is left out.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from ifonly.mip.inputs import Floats

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
class Finding:
    """The row, if found, and its distance, which may be less than the budget; or what stopped the method."""

    verdict: Verdict
    point: Floats | None = None
    distance: float = math.inf
    limit: str = ""


@dataclass(slots=True, kw_only=True)
class Interval:
    """What is known so far."""

    point: Floats | None = None
    upper: float = math.inf
    """The distance of `point`."""
    floor: float = 0.0
    """Nothing sure was found within this."""
    proven: float = 0.0
    """Nothing at all is within this: the bound."""
    open: float = math.inf
    """The least budget that was undecided."""
    limit: str = ""
    asked: list[float] = field(default_factory=list)

    def hear(self, budget: float, finding: Finding) -> None:
        match finding.verdict:
            case Verdict.FOUND:
                if finding.distance < self.upper:
                    self.point, self.upper = finding.point, finding.distance
            case Verdict.NONE:
                self.floor, self.proven = max(self.floor, budget), max(self.proven, budget)
            case Verdict.UNDECIDED:
                self.floor, self.open = max(self.floor, budget), min(self.open, budget)
            case Verdict.STOPPED:
                self.limit = finding.limit or "stopped"


def nearest(
    find: Callable[[float], Finding], *, first: float, most: float, allowed: Callable[[float], float]
) -> Interval:
    """Search distances up to `most`, which no row exceeds. `first` >= `most` is plain binary search.

    `allowed(upper)` is the interval that is small enough.
    """
    known = Interval()
    budget = min(first, most)
    while known.point is None and not known.limit:
        _ask(known, find, budget)
        if known.point is None and budget >= most:
            if math.isinf(known.open) and not known.limit:
                known.proven = math.inf
            break
        budget = min(2.0 * budget, most)
    while known.point is not None and not known.limit and known.upper - known.floor > allowed(known.upper):
        _ask(known, find, _between(known.floor, known.upper))
    while math.isfinite(known.open) and not known.limit and known.open - known.proven > allowed(known.open):
        _ask(known, find, _between(known.proven, known.open))
    return known


def _ask(known: Interval, find: Callable[[float], Finding], budget: float) -> None:
    if len(known.asked) >= MOST_STEPS:
        known.limit = f"the nearest distance was not found in {MOST_STEPS} steps; ask for a larger gap"
        return
    known.asked.append(budget)
    known.hear(budget, find(budget))


def _between(low: float, high: float) -> float:
    """The middle; when the ends are of different sizes, the middle of their sizes."""
    if low <= 0.0:
        return high / GROWTH
    return math.sqrt(low * high) if high > 4.0 * low else 0.5 * (low + high)
