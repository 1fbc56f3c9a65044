"""Several answers instead of one: each the nearest row that differs enough from all earlier ones (MIP-DIVERSE).

    x_1 = the nearest,    x_i = the nearest with  differs(x_i, x_j) for all j < i        (paper, section on diversity)

What counts as different is the person's choice:

    distance   dist(x_i, x_j) >= apart                                  (the paper's delta)
    features   x_i leaves unchanged something that x_j changes          (another way out, not a detour on the same one)
    values     some feature of x_i differs from x_j: an option, an integer, or a real number by at least
               apart times its scale                                    (Russell's condition, made sound for reals)

Every answer carries its own proof, given the earlier ones. A set of fewer than k ends with the proof that no further
row exists, or with the limit that was hit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ifonly.answering.branching import Branching
from ifonly.answering.values import CheckedResult, Floats
from ifonly.errors import Contradiction
from ifonly.problem.disjunctions import Condition, PersonContext
from ifonly.problem.diversity import Diversity, different
from ifonly.results import Limits


class DiverseResults(NamedTuple):
    """What was found, nearest first; `ended` is what ended the set before it was full."""

    found: list[CheckedResult]
    ended: CheckedResult | None

    @property
    def points(self) -> list[Floats]:
        return [found.claim.point for found in self.found if found.claim.point is not None]


class DiverseSearch(NamedTuple):
    """One person's search for several rows: the nodes so far, whom it is about, the conditions of the query itself."""

    branching: Branching
    context: PersonContext
    conditions: list[Condition]
    settled: tuple[str, ...]
    """The real numbers that the constraints leave one value."""


def find_diverse(
    asking: DiverseSearch, diversity: Diversity, first: CheckedResult | None, limits: Limits
) -> DiverseResults:
    """Up to k rows, nearest first. `first` is the row as it is of someone who has what is asked already. The limits are
    for each row.
    """
    branching, context, conditions, settled = asking
    found: list[CheckedResult] = [] if first is None else [first]
    points = [one.claim.point for one in found]
    conditions = [*conditions, *(different(context, p, diversity, settled) for p in points if p is not None)]
    while len(found) < diversity.k:
        one = branching.nearest(conditions, limits)
        point = one.claim.point
        if one.witness is None or point is None:
            return DiverseResults(found, one)
        if any(np.array_equal(point, other) for other in points if other is not None):
            raise Contradiction(f"Answer {len(found) + 1} is a copy of an earlier one: {point.tolist()}.")
        found.append(one)
        points.append(point)
        conditions.append(different(context, point, diversity, settled))
    return DiverseResults(found, None)
