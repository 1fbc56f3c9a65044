"""Hypothesis tests: which differences between groups are significant, with exact tests and Holm's correction.

Each group that is large enough is compared with everybody else, twice: how many have recourse (Fisher's exact test of
the counts), and what it costs those who have it (Wilcoxon's rank sum test, with ties). Many comparisons find something
by chance alone, so their p-values are corrected by Holm's method: where no group differs, no comparison is significant
with probability 95 % or more. A difference that is not significant is called noise, however large it looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ifonly.printing import json_object

LEVEL = 0.05
FEWEST_COSTS = 5
"""On each side of a comparison of costs."""
_SLACK = 1e-7
"""Relative: tables as likely as the one that is there, though rounding makes them a little likelier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A group against everybody else. `mine` and `others` are shares with recourse, or median costs.

    `chance` is the p-value, corrected for the number of comparisons: the probability of a difference at least as large
    if the group were drawn at random; `real`: it is 5 % or less.
    """

    group: str
    what: Literal["share", "cost"]
    mine: float
    others: float
    chance: float

    @property
    def real(self) -> bool:
        return self.chance <= LEVEL

    def to_dict(self) -> dict[str, Any]:
        return json_object(self, ("group", "what", "mine", "others", "chance", "real"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a comparison needs to know of a group: who needs recourse, and the costs of those who have it."""

    name: str
    needing: int
    costs: NDArray[np.float64]


def find_differences(sides: Sequence[Side], everybody: Side) -> tuple[Difference, ...]:
    """Each side against everybody else, corrected; of two sides that are everybody, one comparison is enough."""
    whole = len(sides) == 2 and sum(side.needing for side in sides) == everybody.needing
    found: list[tuple[Difference, float]] = []
    for side in sides[:1] if whole else sides:
        found += _compared(side, everybody)
    corrected = holm([p for _, p in found])
    return tuple(
        Difference(group=d.group, what=d.what, mine=d.mine, others=d.others, chance=p)
        for (d, _), p in zip(found, corrected, strict=True)
    )


def _compared(side: Side, everybody: Side) -> list[tuple[Difference, float]]:
    mine, needing = len(side.costs), side.needing
    others, rest = len(everybody.costs) - mine, everybody.needing - needing
    found = []
    if needing and rest and 0 < mine + others < needing + rest:  # else all or none have it, in every group
        difference = Difference(
            group=side.name, what="share", mine=mine / needing, others=others / rest, chance=math.nan
        )
        found.append((difference, fisher(mine, needing, others, rest)))
    if min(mine, others) >= FEWEST_COSTS:
        left = _without(everybody.costs, side.costs)
        difference = Difference(
            group=side.name, what="cost", mine=float(np.median(side.costs)), others=float(np.median(left)),
            chance=math.nan,
        )  # fmt: skip
        found.append((difference, rank_sums(side.costs, left)))
    return found


def _without(everybody: NDArray[np.float64], mine: NDArray[np.float64]) -> NDArray[np.float64]:
    """The costs of everybody but mine, both ascending: each of mine is there as often as it is mine, or more."""
    values, counts = np.unique(everybody, return_counts=True)
    own, times = np.unique(mine, return_counts=True)
    counts[np.searchsorted(values, own)] -= times
    return np.repeat(values, counts)


def fisher(has: int, total: int, has_other: int, total_other: int) -> float:
    """Fisher's exact test, two-sided: the probability of tables no likelier than this one, its margins given."""
    having = has + has_other
    low, high = max(0, having - total_other), min(total, having)
    k = np.arange(low, high, dtype=np.float64)  # from k of `total` to k + 1 of them
    ratios = (total - k) * (having - k) / ((k + 1.0) * (total_other - having + k + 1.0))
    logarithms = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    likely = np.exp(logarithms - logarithms.max())
    return float(min(1.0, likely[likely <= likely[has - low] * (1.0 + _SLACK)].sum() / likely.sum()))


def rank_sums(mine: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Wilcoxon's rank sum test, two-sided: the normal approximation, with its corrections for ties and for steps."""
    n, m = len(mine), len(others)
    people = n + m
    _, inverse, ties = np.unique(np.concatenate((mine, others)), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2.0)[inverse]
    tied = float((ties.astype(np.float64) ** 3 - ties).sum()) / (people * (people - 1.0))
    variance = n * m / 12.0 * (people + 1.0 - tied)
    if variance <= 0.0:
        return 1.0
    off = abs(float(ranks[:n].sum()) - n * (people + 1.0) / 2.0)
    return math.erfc(max(0.0, off - 0.5) / math.sqrt(2.0 * variance))


def holm(chances: Sequence[float]) -> list[float]:
    """Holm's correction: the k-th smallest of n times n + 1 - k, and no less than the ones before it."""
    result, largest = [0.0] * len(chances), 0.0
    for k, i in enumerate(sorted(range(len(chances)), key=lambda i: chances[i])):
        largest = max(largest, min(1.0, chances[i] * (len(chances) - k)))
        result[i] = largest
    return result
