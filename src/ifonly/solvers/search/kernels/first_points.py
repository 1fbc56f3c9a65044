"""Primal heuristics of the whole tree: points that are looked for before boxes are bounded, and around better ones."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import newton, try_point
from ifonly.solvers.search.kernels.cutoff import cutoff
from ifonly.solvers.search.kernels.evaluate import cut_node
from ifonly.solvers.search.kernels.layout import (
    BASE,
    BEST,
    CHOICE,
    GRID_OFFSET,
    HALT,
    INNER,
    INTEGER,
    KIND,
    LEAST,
    MOST,
    ONCE,
    RATE,
    RATE_DOWN,
    SQUARED,
    START,
    X,
)
from ifonly.solvers.search.kernels.network import forward
from ifonly.solvers.search.kernels.node import value_below
from ifonly.solvers.search.kernels.probing import is_probed
from ifonly.solvers.search.kernels.tighten import newton_together
from ifonly.solvers.search.kernels.walk import find_point

FIRST_TRIES = 6
NEARBY, FARTHEST, NEAREST = 0.5, 1.0, 0.02
"""The trust region of a local search: each number moves as far as costs this share of the best point's cost. At first,
at most and at least."""
WIDER, NARROWER = 1.5, 0.4
"""What this is multiplied by after a step that found a better point, and after one that did not."""
LOCAL_STEPS, LOCAL_TRIES = 16, 3
GAINED = 1e-4
"""A better point costs less by this share."""


@njit(**INNER)
def look_for_points(pack, person, s, r, node, tree, first, last):
    """Look for points before boxes are bounded: in the ball of one, there is less to bound. At first from the base, by
    the network's own linear pieces; then by walks from starts `first` to `last`, where that found nothing or ReLUs
    are probed.
    """
    F, cut = s.F, cut_node(pack, person, s, node, cutoff(pack, tree.number))
    if cut.base_cost == math.inf:
        return
    if first == 0 and tree.number[BEST] == math.inf:
        for g in range(pack.price.shape[1]):
            F[X, g] = F[BASE, g]
        try_point(pack, person, tree, F)
        newton(pack, person, tree, node, cut, np.int64(FIRST_TRIES), s)
    pieces = is_probed(pack, person, r)
    if last > first and (pieces or tree.number[BEST] == math.inf):
        find_point(pack, person, s, r, node, cut, tree, pieces, first, last)


@njit(**INNER)
def improve_point(pack, person, s, r, node, tree):
    """A node has found a better point: go on from it through the linear pieces of the network."""
    cut = cut_node(pack, person, s, node, cutoff(pack, tree.number))
    if cut.base_cost < math.inf:
        find_point(pack, person, s, r, node, cut, tree, np.bool_(True), np.int64(0), np.int64(0))


@njit(**INNER)
def search_nearby(pack, person, s, node, tree):
    """A node has found a better point: sequential linear programming from there, in a trust region. The network's own
    linear piece is solved in a box around the best point; a better point enlarges the next box, none shrinks it.
    """
    share = NEARBY
    for _ in range(LOCAL_STEPS):
        before = tree.number[BEST]
        _box_around(pack, person, tree, node, share)
        cut = cut_node(pack, person, s, node, cutoff(pack, tree.number))
        if cut.base_cost == math.inf or s.I[HALT, 0] != 0:
            return
        for g in range(len(tree.best)):
            s.F[X, g] = tree.best[g]
        forward(pack, person, s.F)
        newton_together(pack, person, s, tree, node, cut, np.int64(LOCAL_TRIES))
        better = tree.number[BEST] < before * (1.0 - GAINED)
        share = min(share * WIDER, FARTHEST) if better else share * NARROWER
        if share < NEAREST:
            return


@njit(**ONCE)
def _box_around(pack, person, tree, node, share):
    """Make a node of the best point's options, and of the numbers around its own: whole steps where there are steps."""
    cost = math.sqrt(tree.number[BEST]) if pack.norm == SQUARED else tree.number[BEST]
    for g in range(pack.price.shape[1]):
        x, low, high = tree.best[g], person.box[LEAST, g], person.box[MOST, g]
        if pack.index[KIND, g] == CHOICE:
            first = pack.index[START, g]
            for c in range(first, pack.index[START, g + 1]):
                node.mask[c] = 1 if c == first + int(x) else 0
            continue
        rate = min(pack.price[RATE, g], pack.price[RATE_DOWN, g])
        if rate > 0.0:
            far = share * cost / rate
            if pack.index[KIND, g] == INTEGER:
                grid_offset = person.box[GRID_OFFSET, g]
                low = max(low, value_below(x - max(far, 1.0), grid_offset))
                high = min(high, value_below(x + max(far, 1.0), grid_offset))
            else:
                low, high = max(low, x - far), min(high, x + far)
        node.lo[g], node.hi[g] = low, high
