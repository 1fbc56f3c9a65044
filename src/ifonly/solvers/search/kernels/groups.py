"""Groups of conditions that no weight above the first layer connects, as those of several models: in a node, a group is
bounded only if the solution at hand breaks one of its conditions.

Where a condition holds at the solution of a relaxation, no plane above it cuts that solution off, however tight the
bounds of its neurons are. Until then they have the bounds of the parent, which hold in the node, too.
"""

from __future__ import annotations

from numba import njit

from ifonly.solvers.search.kernels.layout import (
    BIAS_AT,
    BOUNDED_GROUP,
    CONDITION_BOUND,
    GROUP,
    INNER,
    LOW,
    ONCE,
    OUT,
    SIZES,
)
from ifonly.solvers.search.kernels.network import bound_layer, layer_losses


@njit(**ONCE)
def group_of(pack, r):
    """The group of condition r."""
    return pack.index[GROUP, pack.index[BIAS_AT, pack.layers - 1] + r]


@njit(**ONCE)
def begin_groups(pack, s, bounded):
    """At the start of a node: no group is bounded, or all are."""
    for k in range(pack.groups):
        s.I[BOUNDED_GROUP, k] = bounded


@njit(**INNER)
def broken_group(pack, person, F, I):
    """A group that is not bounded, with a condition that is broken at the values in OUT, the one with the largest bound
    so far; -1 where there is none.
    """
    group, most = -1, -1.0
    for r in range(pack.index[SIZES, pack.layers]):
        k = group_of(pack, r)
        if F[OUT, r] < person.need[LOW, r] and I[BOUNDED_GROUP, k] == 0 and F[CONDITION_BOUND, r] > most:
            group, most = k, F[CONDITION_BOUND, r]
    return group


@njit(**INNER)
def bound_group(pack, person, s, node, cut, limit, group):
    """Bound the neurons of a group; returns how many are unstable."""
    unstable, last = 0, pack.layers - 1
    for layer in range(last):
        budget = limit - cut.base_cost
        unstable += bound_layer(pack, layer, group, person.slack, node.zl, node.zu, budget, cut.items, s.F, s.I, s.Wc)
        if layer + 1 < last:
            layer_losses(pack, layer + 1, group, node.zu, s.F)
    if group >= 0:
        s.I[BOUNDED_GROUP, group] = 1
    return unstable
