"""Hard bounds of a distribution: does it end at a value, or do the sampled rows merely not go beyond it?

The least of n numbers is a bound that the next row breaks with probability 1 / (n + 1), so an extreme of the data is no
invariant by itself. An edge is hard if rows are frequent right up to it: with counts m0, m1, m2 in the first three
bins from the edge inward, a smooth tail would go on with about

    m0 * r * min(1, r / r')      r = min(1, m0 / m1),  r' = m1 / m2

rows in the bin beyond it (its logarithm continued as a parabola, which is exact for a normal tail); none there has
probability exp(-that). The edge itself must be a value that rows have (repeatedly), zero, or a round number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ifonly.mining.clauses import Points

SPACINGS = 20
"""Rows at the edge whose mean distance tells how densely they lie there."""
ROUND = 500.0
"""A round number is a multiple of a power of ten, this many times as large as the distance between rows there."""
NEAR = 5.0
"""How many of these distances an edge may lie beyond the last row."""
SHARES = (0.02, 0.05, 0.125, 0.25, 0.5, 1.0)
"""Shares of the rows that the three bins hold together."""


def hard_edge(ascending: Points, needed: float) -> tuple[float, float] | None:
    """The lower edge of these numbers and its evidence (expected rows beyond it), if that is at least `needed`."""
    best = None
    for edge in _edges(ascending):
        evidence = rows_expected_beyond(ascending, edge)
        if evidence >= needed and (best is None or evidence > best[1]):
            best = edge, evidence
            if edge == ascending[0]:
                break
    return best


def _edges(ascending: Points) -> Iterator[float]:
    least = float(ascending[0])
    if len(ascending) > 1 and ascending[1] == least:
        yield least
    if least >= 0.0:
        yield 0.0
    few = ascending[: SPACINGS + 1]
    spacing, spread = float(few[-1] - least) / SPACINGS, float(ascending[-1] - least)
    if spacing <= 0.0 or spread <= 0.0:
        return
    power = 10.0 ** math.ceil(math.log10(spread))
    while power >= ROUND * spacing:
        edge = float(np.floor(least / power * (1.0 + 1e-15)) * power)
        if edge != 0.0 and least - edge <= NEAR * spacing:
            yield float(f"{edge:.12g}")
            return
        power /= 10.0


def rows_expected_beyond(ascending: Points, edge: float) -> float:
    """How many rows a smooth tail would have in the bin beyond the edge; the most over several widths of bins."""
    inward = ascending - edge
    count = len(inward)
    widths = {float(inward[min(count - 1, int(share * count))]) / 3.0 for share in SHARES if share * count >= 12}
    positive = np.searchsorted(inward, 0.0, side="right")
    if positive < count:
        widths.add(float(inward[positive]))  # from the edge to the next value
    return max((_continued(inward, width) for width in widths if width > 0.0), default=float(count))


def _continued(inward: Points, width: float) -> float:
    ends = np.searchsorted(inward, np.array([1.0, 2.0, 3.0]) * width * (1.0 - 1e-9), side="left")
    first, second, third = float(ends[0]), float(ends[1] - ends[0]), float(ends[2] - ends[1])
    if first == 0.0:
        return 0.0
    ratio = first / max(second, 1.0)
    before = max(second, 1.0) / max(third, 1.0)
    return first * min(1.0, ratio) * min(1.0, ratio / before)
