"""Pruning threshold: the cost from which on a node need not be opened."""

from __future__ import annotations

import math

from numba import njit

from ifonly.solvers.search.kernels.layout import BEST, INNER, RADIUS, SQUARED


@njit(**INNER)
def cutoff(pack, number):
    """Nodes at or beyond this cost need not be opened: the radius, or the best less what the gap allows."""
    return min(number[RADIUS], less_gap(pack, number[BEST]))


@njit(**INNER)
def less_gap(pack, cost):
    """The cost, less half of what the gap allows."""
    if cost == math.inf:
        return cost
    if pack.norm == SQUARED:
        d = math.sqrt(cost)
        d = max(d - 0.5 * min(pack.gap * max(d, 1.0), pack.relative_gap * d), 0.0)
        return d * d
    return cost - 0.5 * min(pack.gap * max(cost, 1.0), pack.relative_gap * cost)
