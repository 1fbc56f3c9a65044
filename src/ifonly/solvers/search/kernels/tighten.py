"""Cutting planes for one box: slopes that are tightest at each solution of its program; then the split."""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import round_solution, set_pattern, try_point, without_specks
from ifonly.solvers.search.kernels.closed_forms import item_gains, solve_plane
from ifonly.solvers.search.kernels.cutoff import cutoff, less_gap
from ifonly.solvers.search.kernels.fine_grids import NEAR_END, round_program
from ifonly.solvers.search.kernels.groups import bound_group, broken_group
from ifonly.solvers.search.kernels.layout import (
    AIM,
    ALPHA,
    BEST,
    BIAS_AT,
    HALT,
    HIGH,
    INACTIVE,
    INNER,
    LOW,
    ONCE,
    OUT,
    PATTERN,
    PLANE,
    RESIDUAL,
    ROW_KIND,
    ROWS,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SIZES,
    UNSPLIT_SIDE,
    X,
    Y,
)
from ifonly.solvers.search.kernels.network import forward_compact, neuron_plane, plane_loss
from ifonly.solvers.search.kernels.planes import add_plane, begin_program, combine_robust, solve_program
from ifonly.solvers.search.kernels.simplex import INFEASIBLE, OPTIMAL, STUCK
from ifonly.solvers.search.kernels.splits import (
    SPLIT_ORDER,
    UNSPLIT,
    any_relu,
    place_of,
    split_dearest,
    split_fraction,
    split_options,
    split_rows,
    worst_relu,
)
from ifonly.solvers.search.kernels.support import allowed_changes, split_changes

ROUNDS = 8
"""How often a node's planes are refined at the program's solution."""
WHOLE_SLACK = 1e-3
"""What a rule that is never a little below 0 may miss it by in a linear program, as a share of how far below it is."""
CLEAR = 3.0
"""Slacks: by how much a plane must exceed HIGH for a box to be searched further beyond the least cost of a point that
can be neither returned nor ruled out. One is in the plane already; candidates aim at more than the other two. A box
that stays below sits on the margin, and splitting it would not separate its rows.
"""


@njit(**ONCE)
def tighten(pack, person, s, tree, node, cut, bound, hopeless):
    """Bound a box under all its planes at once, adding the slopes that are tightest at each solution; then choose a
    split.
    """
    F, I = s.F, s.I
    columns = begin_program(pack.norm, cut.items, F, I, s.LF, s.LI)
    rows = np.int64(0)
    exact, found = False, np.int64(OPTIMAL)
    changing, changing_at = UNSPLIT, 0.0
    slopes = F[ALPHA]
    for attempt in range(ROUNDS):
        if I[HALT, 0] != 0:
            return bound, UNSPLIT, 0.0
        before = rows
        rows = _add_rows(pack, person, s, node, cut, rows, columns, slopes, attempt, not hopeless)
        if attempt > 0 and rows == before:
            exact = True
            break
        c, rows, found = solve_program(pack.norm, cut, rows, columns, s)
        gained = c - bound
        if c > bound:
            bound = c
            tree.count[ROWS] = rows
        if bound >= cutoff(pack, tree.number):
            return bound, UNSPLIT, 0.0
        if found != INFEASIBLE:
            round_solution(pack, cut.items, F, I)
            try_point(pack, person, tree, F)
            changing, changing_at = UNSPLIT, 0.0
            if not allowed_changes(pack, person, F[X]):
                changing, changing_at = split_changes(pack, person, F[X], node.lo, node.hi, node.mask, node.counted)
            near_end = tree.number[BEST] - bound <= NEAR_END * bound
            if bound < cutoff(pack, tree.number) and round_program(
                pack.norm, cut, rows, near_end, F, I, s.LF, s.LI, s.A
            ):
                try_point(pack, person, tree, F)
            if pack.rules > 0 and without_specks(pack, person, F):
                try_point(pack, person, tree, F)
        limit = cutoff(pack, tree.number)
        if bound >= limit:
            return bound, UNSPLIT, 0.0
        if c >= less_gap(pack, tree.number[RESIDUAL]):
            shifted = combine_robust(rows, cut.width, F, s.LF, s.LI, s.A)
            shut = solve_plane(pack.norm, F[PLANE], shifted, cut.base_cost, cut.ceiling, cut.items, F, I) >= limit
            if hopeless or shut:
                return bound, UNSPLIT, 0.0
        forward_compact(pack, cut.width, F, s.Wc)
        set_pattern(F)
        slopes = F[PATTERN]
        group = broken_group(pack, person, F, I)
        if group >= 0:
            bound_group(pack, person, s, node, cut, limit, group)
        elif attempt > 0 and gained < 1e-3 * (limit - bound):
            break
    if changing != UNSPLIT:
        return bound, changing, changing_at
    split, value = _split_of(pack, person, s, node, cut, exact, found)
    return bound, split, value


@njit(**ONCE)
def beyond_condition(person, r, slack):
    """By how much more than its row says candidates aim at a condition, and rows that are returned must meet it."""
    low = person.need[LOW, r]
    return person.need[AIM, r] - low + 2.0 * slack, person.need[HIGH, r] - low + CLEAR * slack


@njit(**ONCE)
def beyond_rule(low, high, slack):
    """The same of a rule."""
    robust_shift = max(high - low, 0.0)
    if high > low:
        return robust_shift + 4.0 * slack, robust_shift
    # a whole value, or one on a grid, is not in doubt (high is half of its gap): no rounding may make its row too tight
    return 2.0 * WHOLE_SLACK * high if high < low else 2.0 * slack, robust_shift


@njit(**ONCE)
def is_met(constant, shift, width, F):
    """Does the solution in Y meet the row in PLANE, but for rounding?"""
    value, size = constant - shift, abs(constant)
    for t in range(width):
        value += F[PLANE, t] * F[Y, t]
        size += abs(F[PLANE, t] * F[Y, t])
    return value >= -1e-9 * size


@njit(**ONCE)
def _never_broken(constant, items, F, I):
    """Does every point of the box meet the row in PLANE?"""
    return item_gains(F[PLANE], -1.0, items, F, I) <= constant


@njit(**INNER)
def newton_together(pack, person, s, tree, node, cut, tries):
    """Look for a better point from X: solve the network's own linear piece there under all conditions and rules at
    once, go to its solution, repeat.
    """
    F, conditions, one = s.F, pack.index[SIZES, pack.layers], np.int64(1)
    for _ in range(tries):
        set_pattern(F)
        columns, rows = begin_program(pack.norm, cut.items, F, s.I, s.LF, s.LI), np.int64(0)
        for r in range(min(conditions + pack.rules, s.A.shape[0])):
            layer, i = place_of(pack, r)
            constant = neuron_plane(pack, layer, i, 1.0, node.zl, node.zu, F[PATTERN], one, cut.width, F, s.Wc)
            if r < conditions:
                constant -= person.need[AIM, r]
            else:
                low, slack = person.need[LOW, r], plane_loss(person.slack[pack.index[BIAS_AT, layer] + i], F)
                constant -= low + beyond_rule(low, person.need[HIGH, r], slack)[0]
                if _never_broken(constant, cut.items, F, s.I):
                    continue
            add_plane(pack.norm, constant, 0.0, 0.0, np.bool_(True), rows, columns, cut.width, s)
            rows += 1
        c, rows, found = solve_program(pack.norm, cut, rows, columns, s)
        if found == INFEASIBLE or c >= tree.number[BEST] or s.I[HALT, 0] != 0:
            return
        round_solution(pack, cut.items, F, s.I)
        try_point(pack, person, tree, F)


@njit(**INNER)
def _add_rows(pack, person, s, node, cut, rows, columns, slopes, attempt, robust):
    """Add the planes of split ReLUs, rules and conditions; after the first round only those that the solution in Y
    breaks. `robust`: the solution is to be returned as a point. Returns the number of rows.
    """
    F, width, last = s.F, cut.width, pack.layers - 1
    first = np.int64(0) if attempt == 0 else np.int64(1)  # the first layer's rows depend on no slopes
    for place in range(first, pack.layers):
        layer = last if place == first else place - 1  # the conditions first: without them nothing is bounded
        at = pack.index[BIAS_AT, layer]
        for i in range(pack.index[SIZES, layer + 1]):
            sign = 1.0
            if layer < last:
                if node.side[at + i] == UNSPLIT_SIDE:
                    continue
                sign = -1.0 if node.side[at + i] == INACTIVE else 1.0
            if rows >= s.A.shape[0] or s.I[HALT, 0] != 0:
                continue
            if attempt > 0 and layer == last and _is_reached(person, i, person.slack[at + i], F):
                continue
            constant = neuron_plane(pack, layer, i, sign, node.zl, node.zu, slopes, np.int64(0), width, F, s.Wc)
            slack = plane_loss(person.slack[at + i], F)
            constant += slack
            shift, robust_shift = 0.0, 0.0  # a point may be on either side of a split ReLU
            if layer == last:
                constant -= person.need[LOW, i]
                shift, robust_shift = beyond_condition(person, i, slack)
            elif node.side[at + i] == RULE:
                low, high = _floor_of(pack, person, layer, i)
                constant -= low
                shift, robust_shift = beyond_rule(low, high, slack)
                if s.B.shape[0] == 0 and _never_broken(constant - max(shift, robust_shift, 0.0), cut.items, F, s.I):
                    continue
            if attempt > 0 and is_met(constant, shift if robust else 0.0, width, F):
                continue
            add_plane(pack.norm, constant, shift, robust_shift, robust, rows, columns, width, s)
            s.LI[ROW_KIND, rows] = i if layer == last else -1 - (at + i)
            if s.B.shape[0] > 0:
                for h in range(s.B.shape[1]):
                    s.B[rows, h] = 1 if slopes[h] > 0.5 else 0
            rows += 1
    return rows


@njit(**INNER)
def _is_reached(person, r, slack, F):
    """Is what condition r aims at reached by the values in OUT? Then no plane above it cuts the solution off."""
    return F[OUT, r] >= person.need[LOW, r] + beyond_condition(person, r, slack)[0]


@njit(**INNER)
def _floor_of(pack, person, layer, i):
    first = pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        if pack.index[RULE_LAYER, j] == layer and pack.index[RULE_PLACE, j] == i:
            return person.need[LOW, first + j], person.need[HIGH, first + j]
    return 0.0, 0.0


@njit(**INNER)
def _split_of(pack, person, s, node, cut, exact, found):
    """The split of a box that several planes leave open."""
    F, I, items = s.F, s.I, cut.items
    split, value = split_rows(pack, person.box, node.side, items, node.lo, node.hi, F, I)
    if split != UNSPLIT:
        return split, value
    best = worst_relu(pack, node.zl, node.zu, exact, cut.width, F, I, s.Wc)
    if best >= 0:
        return -2 - best, 0.0
    for most, few in SPLIT_ORDER:
        if split == UNSPLIT:
            split, value = split_fraction(pack, person.box, items, most, node.lo, node.hi, F, I)
        if split == UNSPLIT:
            split = any_relu(pack, node.zl, node.zu, cut.width, F, s.Wc)
        if split == UNSPLIT:
            split, value = split_options(pack, person.box, items, few, node.lo, node.hi, node.zu, F, I, s.Wc)
    if split == UNSPLIT and found == STUCK:
        split, value = split_dearest(pack, person.box, items, node.lo, node.hi, F, I)
    return split, value
