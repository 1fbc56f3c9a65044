"""Primal heuristics: points of a box that may be answers, judged, and looked for along the network's tangent planes."""

from __future__ import annotations

from numba import njit

from ifonly.solvers.search.kernels.candidates import judge_point, realise, worst_condition
from ifonly.solvers.search.kernels.closed_forms import solve_plane
from ifonly.solvers.search.kernels.fine_grids import round_together
from ifonly.solvers.search.kernels.layout import (
    AIM,
    BEST,
    HALT,
    INNER,
    ONCE,
    PLANE,
    SQUARED,
    TAKE,
)
from ifonly.solvers.search.smooth.kernels.planes import forward, neuron_plane, set_tangents


@njit(**INNER)
def try_point(pack, person, tree, F):
    """Evaluate X; keep it when it is favourable under any rounding and the best so far. As `candidates.try_point`."""
    forward(pack, person, F)
    judge_point(pack, person, tree, F)


@njit(**ONCE)
def newton(pack, person, tree, cut, tries, s):
    """Look for a better point from X: the cheapest on the network's tangent plane there, and again from that one."""
    F, I = s.F, s.I
    for _ in range(tries):
        worst, _ = worst_condition(pack, person, F)
        set_tangents(pack, F)
        constant = neuron_plane(pack, pack.layers - 1, worst, 1.0, 1, cut.width, F, s.Wc) - person.need[AIM, worst]
        c = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, I)
        if c >= tree.number[BEST] or I[HALT, 0] != 0:
            return
        realise(pack, cut.items, F[PLANE], F[TAKE], F, I)
        try_point(pack, person, tree, F)
        if pack.norm == SQUARED and round_together(cut.items, F[PLANE], F[TAKE], 0.5 * pack.relative_gap * c, F, I):
            try_point(pack, person, tree, F)
