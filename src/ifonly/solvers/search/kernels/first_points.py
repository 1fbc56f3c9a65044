"""The points that are looked for before boxes are bounded."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import newton, try_point
from ifonly.solvers.search.kernels.cutoff import cutoff
from ifonly.solvers.search.kernels.evaluate import cut_node
from ifonly.solvers.search.kernels.layout import BASE, BEST, INNER, X
from ifonly.solvers.search.kernels.probing import is_probed
from ifonly.solvers.search.kernels.walk import find_point

FIRST_TRIES = 6


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
