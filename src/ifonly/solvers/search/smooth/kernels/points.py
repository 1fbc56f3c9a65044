"""Primal heuristics: points of a box that may be answers, judged, and looked for along the network's tangent planes."""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import judge_point, realise, round_solution, worst_condition
from ifonly.solvers.search.kernels.closed_forms import solve_plane
from ifonly.solvers.search.kernels.fine_grids import round_together
from ifonly.solvers.search.kernels.layout import (
    AIM,
    BEST,
    CHOICE,
    FIRST,
    HALT,
    HIGH,
    INNER,
    ITEM_KIND,
    ONCE,
    OUT,
    PLANE,
    SIZES,
    SQUARED,
    TAKE,
    Y,
)
from ifonly.solvers.search.kernels.planes import add_plane, begin_program, solve_program
from ifonly.solvers.search.kernels.simplex import INFEASIBLE
from ifonly.solvers.search.kernels.splits import place_of
from ifonly.solvers.search.smooth.kernels.planes import forward, forward_compact, neuron_plane, set_tangents

STRETCHES = 2


@njit(**INNER)
def try_point(pack, person, tree, F):
    """Evaluate X; keep it when it is favourable under any rounding and the best so far. As `candidates.try_point`."""
    forward(pack, person, F)
    return judge_point(pack, person, tree, F)


@njit(**INNER)
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


@njit(**INNER)
def newton_together(pack, person, s, tree, cut, tries):
    """Look for a better point from Y: the cheapest on the tangent planes there, stretched until favourable; then
    on those of both points, and so on. One plane has its cheapest point in a corner; where the score is concave,
    several have it where a cheapest point between two corners is.
    """
    F, outputs, last, one = s.F, pack.index[SIZES, pack.layers], pack.layers - 1, np.int64(1)
    columns, rows = begin_program(pack.norm, cut.items, F, s.I, s.LF, s.LI), np.int64(0)
    for _ in range(tries):
        round_solution(pack, cut.items, F, s.I)
        _, short = try_point(pack, person, tree, F)
        for _ in range(STRETCHES):
            if short < 0.0:
                short = _stretch(pack, person, s, tree, cut)
        if rows + outputs > s.A.shape[0] or s.I[HALT, 0] != 0:
            return
        set_tangents(pack, F)
        for k in range(outputs):
            constant = neuron_plane(pack, last, k, 1.0, one, cut.width, F, s.Wc) - person.need[AIM, k]
            add_plane(pack.norm, constant, 0.0, 0.0, np.bool_(True), rows, columns, cut.width, s)
            rows += 1
        c, rows, found = solve_program(pack.norm, cut, rows, columns, s)
        if found == INFEASIBLE or c >= tree.number[BEST]:
            return


@njit(**ONCE)
def newton_ruled(pack, person, s, tree, cut, tries):
    """Look for a better point from Y, where rules are curved: the cheapest on the tangent planes there of all
    conditions and rules, and again from that one."""
    F, count, one = s.F, pack.index[SIZES, pack.layers], np.int64(1)
    for _ in range(tries):
        forward_compact(pack, cut.width, F, s.Wc)
        set_tangents(pack, F)
        columns, rows = begin_program(pack.norm, cut.items, F, s.I, s.LF, s.LI), np.int64(0)
        for r in range(count + pack.rules):
            if rows >= s.A.shape[0] - cut.items or s.I[HALT, 0] != 0:
                return
            layer, i = place_of(pack, r)
            high = person.need[HIGH, r]
            aim = person.need[AIM, r] if r < count else high + 0.5 * abs(high)
            constant = neuron_plane(pack, layer, i, 1.0, one, cut.width, F, s.Wc) - aim
            add_plane(pack.norm, constant, 0.0, 0.0, np.bool_(True), rows, columns, cut.width, s)
            rows += 1
        c, rows, found = solve_program(pack.norm, cut, rows, columns, s)
        if found == INFEASIBLE or c >= tree.number[BEST]:
            return
        round_solution(pack, cut.items, F, s.I)
        try_point(pack, person, tree, F)


@njit(**INNER)
def _stretch(pack, person, s, tree, cut):
    """Stretch the changes of numbers in Y until the worst condition is met on its tangent plane; returns by how much it
    is."""
    F, worst = s.F, worst_condition(pack, person, s.F)[0]
    missing, slope = person.need[AIM, worst] - F[OUT, worst], 0.0
    set_tangents(pack, F)
    neuron_plane(pack, pack.layers - 1, worst, 1.0, np.int64(1), cut.width, F, s.Wc)
    for k in range(cut.items):
        if s.I[ITEM_KIND, k] != CHOICE:
            slope += F[PLANE, s.I[FIRST, k]] * F[Y, s.I[FIRST, k]]
    if slope <= missing:  # it would take more than twice as much
        return -1.0
    for k in range(cut.items):
        if s.I[ITEM_KIND, k] != CHOICE:
            F[Y, s.I[FIRST, k]] *= 1.0 + missing / slope
    round_solution(pack, cut.items, F, s.I)
    return try_point(pack, person, tree, F)[1]
