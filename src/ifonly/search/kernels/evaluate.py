"""Bound one box, look for a point in it, and say how to split it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.search.kernels.candidates import (
    SURELY_HOLDS,
    newton,
    realise,
    round_solution,
    rules_hold,
    set_pattern,
    try_point,
    without_specks,
)
from ifonly.search.kernels.closed_forms import solve_plane
from ifonly.search.kernels.layout import (
    AIM,
    ALPHA,
    BASE,
    BEST,
    BIAS_AT,
    FIRST,
    HIGH,
    INHERITED,
    INNER,
    LOW,
    MAXIMUM,
    MULTIPLIER,
    NU,
    NU_BEST,
    ONCE,
    PATTERN,
    PLANE,
    PLANE_BEST,
    RADIUS,
    RESIDUAL,
    ROW_KIND,
    ROWS,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SIZES,
    SQUARED,
    TAKE,
    TAKE_BEST,
    X,
    Y,
)
from ifonly.search.kernels.network import bound_layer, forward_compact, neuron_plane
from ifonly.search.kernels.node import clip_to_ball, compact, farthest_cost
from ifonly.search.kernels.planes import add_plane, begin_program, combine_surely, solve_program
from ifonly.search.kernels.simplex import INFEASIBLE, OPTIMAL, STUCK
from ifonly.search.kernels.splits import (
    UNSPLIT,
    any_relu,
    blame,
    choose_split,
    prefers_relu,
    split_dearest,
    split_fraction,
    split_options,
    split_rows,
    worst_relu,
)
from ifonly.search.kernels.support import allowed_changes, clip_to_support, split_changes

ROUNDS = 8
"""How often a node's planes are refined at the program's solution."""
WHOLE_ROOM = 1e-3
"""What a rule that takes only whole values may miss 0 by in a linear program."""
CLEAR = 3.0
"""Slacks: by how much a plane must exceed HIGH for a box to be searched further beyond the least cost of a point that
can be neither returned nor ruled out. One is in the plane already; candidates aim at more than the other two. A box
that stays below sits on the margin, and splitting it would not tell its rows apart.
"""
NOTHING = 1e-300
"""Below 0 by so little, a lower bound makes a ReLU unstable and changes no plane."""


@njit(**INNER)
def cutoff(pack, number):
    """Nodes at or beyond this cost need not be opened: the radius, or the best less what the gap allows."""
    return min(number[RADIUS], _less_gap(pack, number[BEST]))


@njit(**INNER)
def _less_gap(pack, cost):
    """The cost, less half of what the gap allows."""
    if cost == math.inf:
        return cost
    if pack.norm == SQUARED:
        d = math.sqrt(cost)
        d = max(d - 0.5 * min(pack.gap * max(d, 1.0), pack.relative_gap * d), 0.0)
        return d * d
    return cost - 0.5 * min(pack.gap * max(cost, 1.0), pack.relative_gap * cost)


@njit(**ONCE)
def evaluate(pack, person, s, lo, hi, mask, zl, zu, side, counted, tree, tries):
    """Bound a box. Returns (lower bound on the cost, split, where); may improve the best point.

    The split is a feature, -2 - h for the ReLU of neuron h, features + g for whether feature g changes, or UNSPLIT:
    then a bound below the cutoff is a limit of what can be proven in floating point. When the box is closed by planes,
    the rows and multipliers that do it are left in the scratch.
    """
    F, I = s.F, s.I
    norm, last = pack.norm, pack.layers - 1
    number, zero = tree.number, np.int64(0)
    conditions = pack.index[SIZES, pack.layers]
    out_at = pack.index[BIAS_AT, last]
    limit = cutoff(pack, number)
    tree.count[ROWS] = 0
    if not clip_to_support(pack, person, lo, hi, mask, counted):
        return math.inf, UNSPLIT, 0.0
    base_cost = clip_to_ball(pack, person.cost, limit, lo, hi, mask, F[BASE])
    if base_cost == math.inf:
        return math.inf, UNSPLIT, 0.0
    items = compact(pack, person, lo, hi, mask, F, I, s.Wc)
    width = I[FIRST, items]
    ceiling = min(limit, farthest_cost(items, F, I)) if norm == MAXIMUM else limit
    ceiling = max(ceiling, base_cost)
    for h in range(len(zl)):
        F[ALPHA, h] = 1.0 if zu[h] > -zl[h] else 0.0
    unstable = 0
    for layer in range(last):
        for r in range(conditions):  # the parent's bounds, and those of the layers so far, may be enough
            constant = neuron_plane(pack, last, r, 1.0, zl, zu, F[ALPHA], zero, width, F, s.Wc)
            constant += person.slack[out_at + r] - person.need[LOW, r]
            bound = solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I)
            if bound >= limit:
                _keep_row(s, tree, r, F[ALPHA])
                return bound, UNSPLIT, 0.0
        unstable += bound_layer(pack, layer, person.slack, zl, zu, limit - base_cost, items, F, I, s.Wc)

    ruled = _bound_rules(pack, person, zl, zu, base_cost, ceiling, items, F, I, s.Wc)
    if ruled >= limit:
        return ruled, UNSPLIT, 0.0
    bound, binding, binding_constant = -1.0, zero, 0.0
    splits = conditions > 1  # several conditions bind together
    changing, changing_at = UNSPLIT, 0.0
    slopes = F[ALPHA]
    for attempt in range(2):
        for r in range(conditions):
            if attempt == 1 and r != binding:
                continue
            constant = neuron_plane(pack, last, r, 1.0, zl, zu, slopes, zero, width, F, s.Wc)
            constant += person.slack[out_at + r] - person.need[LOW, r]
            c = solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I)
            if c > bound:
                bound, binding, binding_constant = c, r, constant
                _keep(width, items, F, I)
                _keep_row(s, tree, r, slopes)
        limit = cutoff(pack, number)
        if bound >= limit:
            return bound, UNSPLIT, 0.0
        if attempt == 0:
            realise(pack, items, F[PLANE_BEST], F[TAKE_BEST], F, I)
            try_point(pack, person, tree, F)
            splits |= rules_hold(pack, person, F) != SURELY_HOLDS
            if not allowed_changes(pack, person, F[X]):
                changing, changing_at = split_changes(pack, person, F[X], lo, hi, mask, counted)
            if unstable == 0:
                break
            set_pattern(F)
            slopes = F[PATTERN]
    bound = max(bound, ruled)
    for h in range(len(side)):
        splits |= side[h] != 0 and side[h] != RULE
    if unstable > 0:
        blame(pack, zl, zu, items, F, I, s.Wc)
        splits |= prefers_relu(items, unstable, lo, hi, F, I)
    newton(pack, person, tree, base_cost, ceiling, items, zl, zu, tries, F, I, s.Wc)
    limit = cutoff(pack, number)
    if bound >= limit:
        return bound, UNSPLIT, 0.0
    hopeless = False  # nothing in it may be returned: only its bound counts
    if number[RESIDUAL] < math.inf:
        shift = person.need[HIGH, binding] - person.need[LOW, binding] + CLEAR * person.slack[out_at + binding]
        c = solve_plane(norm, F[PLANE_BEST], binding_constant - shift, base_cost, ceiling, items, F, I)
        hopeless = c >= limit or _stays_below(pack, person, zl, zu, base_cost, ceiling, limit, items, F, I, s.Wc)
    if hopeless and max(bound, number[INHERITED]) >= _less_gap(pack, number[RESIDUAL]):
        return bound, UNSPLIT, 0.0
    if changing != UNSPLIT:
        return bound, changing, changing_at
    if splits:
        return _tighten(
            pack, person, s, tree, lo, hi, mask, zl, zu, side, counted, base_cost, ceiling, items, bound, hopeless
        )
    split, value = choose_split(pack, person.box, items, unstable, lo, hi, F, I)
    if split == UNSPLIT:
        split, value = split_options(pack, person.box, items, lo, hi, zu, F, I, s.Wc)
    return bound, split, value


@njit(**INNER)
def _stays_below(pack, person, zl, zu, base_cost, ceiling, limit, items, F, I, Wc):
    """Is a condition below HIGH, or not clear of it, in the whole box? With all slopes 0: a ReLU that takes away takes
    away nothing at best, also one that was split and is active from 0 on.
    """
    last, width = pack.layers - 1, I[FIRST, items]
    below = F[NU_BEST]
    for h in range(F.shape[1]):
        F[PATTERN, h] = 0.0
    for h in range(len(zl)):
        below[h] = zl[h] if zl[h] != 0.0 else -NOTHING
    for r in range(pack.index[SIZES, pack.layers]):
        slack = person.slack[pack.index[BIAS_AT, last] + r]
        constant = neuron_plane(pack, last, r, 1.0, below, zu, F[PATTERN], np.int64(0), width, F, Wc)
        constant += slack - person.need[HIGH, r] - CLEAR * slack
        if solve_plane(pack.norm, F[PLANE], constant, base_cost, ceiling, items, F, I) >= limit:
            return True
    return False


@njit(**INNER)
def _keep(width, items, F, I):
    """Remember the plane, its minimiser and its ReLU coefficients as the binding ones."""
    for t in range(width):
        F[PLANE_BEST, t] = F[PLANE, t]
    for k in range(items):
        F[TAKE_BEST, k] = F[TAKE, k]
    for h in range(F.shape[1]):
        F[NU_BEST, h] = F[NU, h]


@njit(**INNER)
def _keep_row(s, tree, kind, slopes):
    """Note the single row that bounds this box."""
    tree.count[ROWS] = 1
    s.LI[ROW_KIND, 0] = kind
    s.LF[MULTIPLIER, 0] = 1.0
    if s.B.shape[0] > 0:
        for h in range(s.B.shape[1]):
            s.B[0, h] = 1 if slopes[h] > 0.5 else 0


@njit(**INNER)
def _floor_of(pack, person, layer, i):
    first = pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        if pack.index[RULE_LAYER, j] == layer and pack.index[RULE_PLACE, j] == i:
            return person.need[LOW, first + j], person.need[HIGH, first + j]
    return 0.0, 0.0


@njit(**INNER)
def _bound_rules(pack, person, zl, zu, base_cost, ceiling, items, F, I, Wc):
    """What the rules alone cost, one by one; infinity when one cannot hold in this box."""
    bound, width, first = 0.0, I[FIRST, items], pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        layer, i = pack.index[RULE_LAYER, j], pack.index[RULE_PLACE, j]
        constant = neuron_plane(pack, layer, i, 1.0, zl, zu, F[ALPHA], np.int64(0), width, F, Wc)
        constant += person.slack[pack.index[BIAS_AT, layer] + i] - person.need[LOW, first + j]
        bound = max(bound, solve_plane(pack.norm, F[PLANE], constant, base_cost, ceiling, items, F, I))
    return bound


@njit(**ONCE)
def _tighten(pack, person, s, tree, lo, hi, mask, zl, zu, side, counted, base_cost, ceiling, items, bound, hopeless):
    """Bound a box under all its planes at once, adding the slopes that are tightest at each solution; then choose a
    split.
    """
    F, I, LF, LI = s.F, s.I, s.LF, s.LI
    norm, last, zero = pack.norm, pack.layers - 1, np.int64(0)
    width = I[FIRST, items]
    columns = begin_program(norm, items, F, I, LF, LI)
    rows = zero
    split_layers = zero  # in the first round the rows of all split ReLUs, later only those that depend on slopes
    exact, found = False, np.int64(OPTIMAL)
    changing, changing_at = UNSPLIT, 0.0
    slopes = F[ALPHA]
    for attempt in range(ROUNDS):
        before = rows
        for place in range(split_layers, pack.layers):
            layer = (
                last if place == split_layers else place - 1
            )  # the conditions first: without them nothing is bounded
            at = pack.index[BIAS_AT, layer]
            for i in range(pack.index[SIZES, layer + 1]):
                sign = 1.0
                if layer < last:
                    if side[at + i] == 0:
                        continue
                    sign = -1.0 if side[at + i] == 2 else 1.0
                if rows >= s.A.shape[0]:
                    continue
                constant = neuron_plane(pack, layer, i, sign, zl, zu, slopes, zero, width, F, s.Wc)
                slack = person.slack[at + i]
                constant += slack
                shift, surely = 0.0, 0.0  # a point may be on either side of a split ReLU
                if layer == last:
                    constant -= person.need[LOW, i]
                    shift = person.need[AIM, i] - person.need[LOW, i] + 2.0 * slack
                    surely = person.need[HIGH, i] - person.need[LOW, i] + CLEAR * slack
                elif side[at + i] == RULE:
                    low, high = _floor_of(pack, person, layer, i)
                    constant -= low
                    surely = max(high - low, 0.0)
                    if high > low:
                        shift = surely + 4.0 * slack
                    else:  # a whole value is not in doubt: no rounding may make its row too tight
                        shift = -WHOLE_ROOM if high < low else 2.0 * slack
                if attempt > 0:
                    value, size = constant - shift, abs(constant)
                    for t in range(width):
                        value += F[PLANE, t] * F[Y, t]
                        size += abs(F[PLANE, t] * F[Y, t])
                    if value >= -1e-9 * size:
                        continue
                add_plane(norm, constant, shift, surely, rows, columns, width, F, LF, LI, s.T, s.A)
                LI[ROW_KIND, rows] = i if layer == last else -1 - (at + i)
                if s.B.shape[0] > 0:
                    for h in range(s.B.shape[1]):
                        s.B[rows, h] = 1 if slopes[h] > 0.5 else 0
                rows += 1
        if attempt > 0 and rows == before:
            exact = True
            break
        split_layers = np.int64(1)
        c, rows, found = solve_program(norm, items, rows, columns, width, base_cost, ceiling, F, I, LF, LI, s.T, s.A)
        gained = c - bound
        if c > bound:
            bound = c
            tree.count[ROWS] = rows
        if bound >= cutoff(pack, tree.number):
            return bound, UNSPLIT, 0.0
        if found != INFEASIBLE:
            round_solution(pack, items, F, I)
            try_point(pack, person, tree, F)
            changing, changing_at = UNSPLIT, 0.0
            if not allowed_changes(pack, person, F[X]):
                changing, changing_at = split_changes(pack, person, F[X], lo, hi, mask, counted)
            if pack.rules > 0 and without_specks(pack, person, F):
                try_point(pack, person, tree, F)
        limit = cutoff(pack, tree.number)
        if bound >= limit:
            return bound, UNSPLIT, 0.0
        if c >= _less_gap(pack, tree.number[RESIDUAL]):
            shifted = combine_surely(rows, width, F, LF, LI, s.A)
            if hopeless or solve_plane(norm, F[PLANE], shifted, base_cost, ceiling, items, F, I) >= limit:
                return bound, UNSPLIT, 0.0
        forward_compact(pack, width, F, s.Wc)
        set_pattern(F)
        slopes = F[PATTERN]
        if attempt > 0 and gained < 1e-3 * (limit - bound):
            break
    if changing != UNSPLIT:
        return bound, changing, changing_at
    split, value = split_rows(pack, person.box, side, items, lo, hi, F, I)
    if split != UNSPLIT:
        return bound, split, value
    best = worst_relu(pack, zl, zu, exact, width, F, s.Wc)
    if best >= 0:
        return bound, -2 - best, 0.0
    split, value = split_fraction(pack, person.box, items, lo, hi, F, I)
    if split == UNSPLIT:
        split = any_relu(pack, zl, zu, width, F, s.Wc)
    if split == UNSPLIT:
        split, value = split_options(pack, person.box, items, lo, hi, zu, F, I, s.Wc)
    if split == UNSPLIT and found == STUCK:
        split, value = split_dearest(pack, person.box, items, lo, hi, F, I)
    return bound, split, value
