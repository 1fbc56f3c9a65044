"""Points of a box that may be answers: judged, and looked for along the network's own tangent planes."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.search.kernels.candidates import BROKEN, SURELY_HOLDS, realise, rules_hold
from ifonly.search.kernels.closed_forms import solve_plane
from ifonly.search.kernels.fine_grids import round_together
from ifonly.search.kernels.layout import (
    AIM,
    BEST,
    HALT,
    HIGH,
    INNER,
    LOW,
    ONCE,
    OUT,
    PLANE,
    RESIDUAL,
    SIZES,
    SQUARED,
    TAKE,
    X,
)
from ifonly.search.kernels.node import cost_of
from ifonly.search.kernels.support import allowed_changes
from ifonly.search.smooth.kernels.planes import forward, neuron_plane, set_tangents


@njit(**INNER)
def try_point(pack, person, tree, F):
    """Evaluate X; keep it when it is surely favourable and the best so far. As `candidates.try_point`."""
    number = tree.number
    forward(pack, person, F)
    short, possible = math.inf, True
    for r in range(pack.index[SIZES, pack.layers]):
        short = min(short, F[OUT, r] - person.need[HIGH, r])
        possible &= F[OUT, r] >= person.need[LOW, r]
    rules = rules_hold(pack, person, F)
    if possible and rules != BROKEN and allowed_changes(pack, person, F[X]):
        cost = cost_of(pack, person.cost, F[X])
        if short < 0.0 or rules != SURELY_HOLDS:  # can neither be returned nor ruled out
            number[RESIDUAL] = min(number[RESIDUAL], cost)
        elif cost < number[BEST]:
            number[BEST] = cost
            for f in range(len(tree.best)):
                tree.best[f] = F[X, f]


@njit(**ONCE)
def newton(pack, person, tree, cut, tries, s):
    """Look for a better point from X: the cheapest on the network's tangent plane there, and again from that one."""
    F, I = s.F, s.I
    for _ in range(tries):
        worst, short = np.int64(0), math.inf
        for r in range(pack.index[SIZES, pack.layers]):
            if F[OUT, r] - person.need[HIGH, r] < short:
                short = F[OUT, r] - person.need[HIGH, r]
                worst = r
        set_tangents(pack, F)
        constant = neuron_plane(pack, pack.layers - 1, worst, 1.0, 1, cut.width, F, s.Wc) - person.need[AIM, worst]
        c = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, I)
        if c >= tree.number[BEST] or I[HALT, 0] != 0:
            return
        realise(pack, cut.items, F[PLANE], F[TAKE], F, I)
        try_point(pack, person, tree, F)
        if pack.norm == SQUARED and round_together(cut.items, F[PLANE], F[TAKE], 0.5 * pack.relative_gap * c, F, I):
            try_point(pack, person, tree, F)
