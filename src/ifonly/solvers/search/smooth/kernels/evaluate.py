"""Evaluation of a node under smooth activations: lower bound of its box, candidates in it, and how to branch."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import realise, round_solution, without_specks
from ifonly.solvers.search.kernels.closed_forms import solve_plane
from ifonly.solvers.search.kernels.cutoff import cutoff, less_gap
from ifonly.solvers.search.kernels.evaluate import cut_node, keep_plane
from ifonly.solvers.search.kernels.layout import (
    ACT,
    BEST,
    BIAS_AT,
    HALT,
    HIGH,
    INHERITED,
    INNER,
    LOW,
    NU,
    NU_BEST,
    ONCE,
    OUT,
    PLANE,
    PLANE_BEST,
    RESIDUAL,
    ROWS,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SCORE,
    SIZES,
    TAKE_BEST,
    X,
)
from ifonly.solvers.search.kernels.network import begin_losses, plane_loss
from ifonly.solvers.search.kernels.planes import add_plane, begin_program, combine_robust, solve_program
from ifonly.solvers.search.kernels.probing import is_probed
from ifonly.solvers.search.kernels.simplex import INFEASIBLE
from ifonly.solvers.search.kernels.splits import (
    SPLIT_ORDER,
    UNSPLIT,
    blame_below,
    blame_items,
    choose_split,
    halve_item,
    place_of,
    split_fraction,
    split_options,
)
from ifonly.solvers.search.kernels.support import allowed_changes, split_changes
from ifonly.solvers.search.kernels.tighten import CLEAR, beyond_condition, beyond_rule, is_met
from ifonly.solvers.search.smooth.kernels.curves import value
from ifonly.solvers.search.smooth.kernels.layout import (
    LOWER_SHIFT,
    LOWER_SLOPE,
    MATTERS,
    MISSED,
    UPPER_SHIFT,
    UPPER_SLOPE,
)
from ifonly.solvers.search.smooth.kernels.planes import bound_layer, forward_compact, lines_at, neuron_plane
from ifonly.solvers.search.smooth.kernels.points import newton, newton_ruled, try_point
from ifonly.solvers.search.smooth.kernels.probing import probe_neurons
from ifonly.solvers.search.smooth.kernels.walk import find_point

REFERENCES = 3
"""How often the lines are drawn anew, at the solution of the ones before."""
ROUNDS = 4
"""The same where several planes bind together."""
GAINED = 0.05
"""Of what is missing: lines are drawn anew while a round gains this much."""
RULED_TRIES = 6
AT_ENDS = 0.1
"""How much the distance of a line from its activation at an end counts, beside that at the point."""


@njit(**ONCE)
def evaluate(pack, person, s, r, node, tree, tries):
    """Bound a box. Returns (lower bound on the cost, split, where); may improve the best point.

    The split is a feature, -2 - h for neuron h at `where`, features + g for whether feature g changes, or UNSPLIT: then
    a bound below the cutoff is a limit of what can be proven in floating point.
    """
    F, I, number = s.F, s.I, tree.number
    limit = cutoff(pack, number)
    tree.count[ROWS] = 0
    cut = cut_node(pack, person, s, node, limit)
    if cut.base_cost == math.inf:
        return math.inf, UNSPLIT, 0.0
    items = cut.items
    begin_losses(pack, person, F)
    for layer in range(pack.layers - 1):
        bound_layer(pack, layer, person.slack, node.zl, node.zu, limit - cut.base_cost, items, F, I, s.Wc)
    if I[HALT, 0] != 0:
        return -1.0, UNSPLIT, 0.0
    if _is_empty(node):
        return limit, UNSPLIT, 0.0
    ruled = _bound_rules(pack, person, cut, s)
    if ruled >= limit:
        return ruled, UNSPLIT, 0.0
    bound, constant = _bound_conditions(pack, person, s, node, cut, tree)
    if bound >= cutoff(pack, number):
        return bound, UNSPLIT, 0.0
    bound = max(bound, ruled)
    changing, changing_at = UNSPLIT, 0.0
    if not allowed_changes(pack, person, F[X]):
        changing, changing_at = split_changes(pack, person, F[X], node.lo, node.hi, node.mask, node.counted)
    missed = _blame(pack, node.zl, node.zu, items, s)
    newton(pack, person, tree, cut, tries, s)
    limit = cutoff(pack, number)
    if bound >= limit:
        return bound, UNSPLIT, 0.0
    if max(bound, number[INHERITED]) >= less_gap(pack, number[RESIDUAL]) and _hopeless(pack, person, cut, limit, s):
        return bound, UNSPLIT, 0.0
    if changing != UNSPLIT:
        return bound, changing, changing_at
    if pack.layers > 1 and is_probed(pack, person, r):
        bound, split, where, settled = probe_neurons(pack, person, s, r, tree, node, cut, bound)
        if settled:
            return bound, split, where
    together = pack.rules > 0 or pack.index[SIZES, pack.layers] > 1
    if together:
        bound, shut, changing, changing_at = _together(pack, person, s, node, cut, tree, bound)
        if shut or bound >= cutoff(pack, number):
            return bound, UNSPLIT, 0.0
        if changing != UNSPLIT:
            return bound, changing, changing_at
    broken = together and _blame_broken(pack, person, node, cut, s)
    relaxed = solve_plane(pack.norm, F[PLANE_BEST], constant - missed, cut.base_cost, cut.ceiling, items, F, I) >= limit
    split, where = _split(pack, person, s, node, items, relaxed, together)
    if broken and pack.rules > 0:
        newton_ruled(pack, person, s, tree, cut, np.int64(RULED_TRIES))
        if bound >= cutoff(pack, tree.number):
            return bound, UNSPLIT, 0.0
    return bound, split, where


@njit(**INNER)
def _is_empty(node):
    """Do the bounds of some pre-activation exclude each other?"""
    empty = False
    for h in range(len(node.zl)):
        empty |= node.side[h] != RULE and node.zl[h] > node.zu[h]
    return empty


@njit(**INNER)
def look_for_points(pack, person, s, r, node, tree, first, last):
    """Look for points before boxes are bounded, by walks from starts `first` to `last`: as for ReLUs."""
    cut = cut_node(pack, person, s, node, cutoff(pack, tree.number))
    if cut.base_cost < math.inf and (is_probed(pack, person, r) or tree.number[BEST] == math.inf):
        find_point(pack, person, s, cut, tree, first, last)


@njit(**INNER)
def _bound_rules(pack, person, cut, s):
    """What the rules alone cost, one by one; infinity when one cannot hold in this box."""
    F, bound, first = s.F, 0.0, pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        layer, i = pack.index[RULE_LAYER, j], pack.index[RULE_PLACE, j]
        constant = neuron_plane(pack, layer, i, 1.0, 0, cut.width, F, s.Wc)
        constant += plane_loss(person.slack[pack.index[BIAS_AT, layer] + i], F) - person.need[LOW, first + j]
        c = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, s.I)
        bound = max(bound, c)
    return bound


@njit(**INNER)
def _bound_conditions(pack, person, s, node, cut, tree):
    """The conditions' planes, with the lines drawn at the middle, then at the solution of the binding plane, which is
    tried as a point and left in X.

    Returns the bound, and the constant of the binding plane, less what it must reach.
    """
    F, I, last = s.F, s.I, pack.layers - 1
    out_at = pack.index[BIAS_AT, last]
    bound, binding, binding_constant = -1.0, np.int64(0), 0.0
    for attempt in range(REFERENCES):
        before = bound
        for r in range(pack.index[SIZES, pack.layers]):
            if attempt > 0 and r != binding:
                continue
            constant = neuron_plane(pack, last, r, 1.0, 0, cut.width, F, s.Wc)
            constant += plane_loss(person.slack[out_at + r], F) - person.need[LOW, r]
            c = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, I)
            if c > bound:
                bound, binding, binding_constant = c, r, constant
                keep_plane(cut, F)
        limit = cutoff(pack, tree.number)
        if bound >= limit or (attempt > 0 and bound - before < GAINED * (limit - before)):
            break
        realise(pack, cut.items, F[PLANE_BEST], F[TAKE_BEST], F, I)
        try_point(pack, person, tree, F)
        if attempt < REFERENCES - 1:
            lines_at(pack, node.zl, node.zu, F)
    return bound, binding_constant


@njit(**INNER)
def _hopeless(pack, person, cut, limit, s):
    """Can nothing in the box be returned, since a condition is below HIGH, or not clear of it? Then only the box's
    bound counts."""
    F, last = s.F, pack.layers - 1
    for r in range(pack.index[SIZES, pack.layers]):
        constant = neuron_plane(pack, last, r, 1.0, 0, cut.width, F, s.Wc)
        constant -= (CLEAR - 1.0) * plane_loss(person.slack[pack.index[BIAS_AT, last] + r], F) + person.need[HIGH, r]
        if solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, s.I) >= limit:
            return True
    return False


@njit(**INNER)
def _together(pack, person, s, node, cut, tree, bound):
    """Bound a box under all its conditions and rules at once, with lines drawn anew at each solution, which is tried as
    a point. Returns the bound; whether only that counts, since nothing in the box may be returned; and a split where a
    solution changes what it may not.
    """
    F, I = s.F, s.I
    columns = begin_program(pack.norm, cut.items, F, I, s.LF, s.LI)
    rows = np.int64(0)
    changing, changing_at = UNSPLIT, 0.0
    for attempt in range(ROUNDS):
        if I[HALT, 0] != 0:
            break
        before, was = rows, bound
        rows = _add_rows(pack, person, s, cut.width, rows, columns, attempt)
        if rows == before:
            break
        c, rows, found = solve_program(pack.norm, cut, rows, columns, s)
        bound, limit = max(bound, c), cutoff(pack, tree.number)
        if c >= less_gap(pack, tree.number[RESIDUAL]):
            shifted = combine_robust(rows, cut.width, F, s.LF, s.LI, s.A)
            if solve_plane(pack.norm, F[PLANE], shifted, cut.base_cost, cut.ceiling, cut.items, F, I) >= limit:
                return bound, True, UNSPLIT, 0.0
        if bound >= limit or found == INFEASIBLE:
            break
        round_solution(pack, cut.items, F, I)
        try_point(pack, person, tree, F)
        changing, changing_at = UNSPLIT, 0.0
        if not allowed_changes(pack, person, F[X]):
            changing, changing_at = split_changes(pack, person, F[X], node.lo, node.hi, node.mask, node.counted)
        if pack.rules > 0 and without_specks(pack, person, F):
            try_point(pack, person, tree, F)
        forward_compact(pack, cut.width, F, s.Wc)
        lines_at(pack, node.zl, node.zu, F)
        if attempt > 0 and bound - was < GAINED * (cutoff(pack, tree.number) - was):
            break
    return bound, False, changing, changing_at


@njit(**INNER)
def _add_rows(pack, person, s, width, rows, columns, attempt):
    """Add the planes of conditions and rules; after the first round only those that the solution in Y breaks. Returns
    the number of rows.
    """
    F, count = s.F, pack.index[SIZES, pack.layers]
    for r in range(count + pack.rules):
        if rows >= s.A.shape[0]:
            break
        layer, i = place_of(pack, r)
        constant = neuron_plane(pack, layer, i, 1.0, 0, width, F, s.Wc)
        slack = plane_loss(person.slack[pack.index[BIAS_AT, layer] + i], F)
        low, high = person.need[LOW, r], person.need[HIGH, r]
        constant += slack - low
        if r < count:
            shift, robust_shift = beyond_condition(person, r, slack)
        else:
            shift, robust_shift = beyond_rule(low, high, slack)
        if attempt > 0 and is_met(constant, shift, width, F):
            continue
        add_plane(pack.norm, constant, shift, robust_shift, True, rows, columns, width, s)
        rows += 1
    return rows


@njit(**INNER)
def _blame(pack, zl, zu, items, s):
    """How much of the distance between lines and activations each item is to blame for, into SCORE, at the point X,
    whose pre-activations are in ACT. Returns by how much the lines of the binding plane miss the activations there.
    """
    for h in range(len(pack.code)):
        s.F[MISSED, h] = 0.0
    missed = _add_missed(pack, zl, zu, s.F[NU_BEST], 1.0, s.F)
    _pass_blame(pack, zl, zu, items, s)
    return missed


@njit(**ONCE)
def _blame_broken(pack, person, node, cut, s):
    """The same for all conditions and rules that are not met at the point Y, whose pre-activations are in ACT, and by
    whose lines they are: each counts the same. Is there any? If there is none, SCORE stays as it is."""
    F, count, some = s.F, pack.index[SIZES, pack.layers], False
    for h in range(len(pack.code)):
        F[MISSED, h] = 0.0
    for r in range(count + pack.rules):
        layer, i = place_of(pack, r)
        value_there = F[OUT, r] if r < count else F[ACT, pack.index[BIAS_AT, layer] + i]
        if layer == 0 or value_there >= person.need[HIGH, r]:
            continue
        neuron_plane(pack, layer, i, 1.0, 0, cut.width, F, s.Wc)
        missed = _add_missed(pack, node.zl, node.zu, F[NU], 0.0, F)
        if missed > 0.0:
            some = True
            _add_missed(pack, node.zl, node.zu, F[NU], 1.0 / missed, F)
    if some:
        _pass_blame(pack, node.zl, node.zu, cut.items, s)
    return some


@njit(**INNER)
def _add_missed(pack, zl, zu, counts, share, F):
    """By how much the lines of a plane, in which each activation counts so much, miss the activations at the point in
    ACT; a share of it, and of what they miss at the ends, is added to MISSED."""
    total = 0.0
    for h in range(len(pack.code)):
        c, low, high = counts[h], zl[h], zu[h]
        if c == 0.0 or high <= low:
            continue
        steep, shift = F[UPPER_SLOPE, h], F[UPPER_SHIFT, h]
        if c < 0.0:
            steep, shift = F[LOWER_SLOPE, h], F[LOWER_SHIFT, h]
        code, alpha, z = pack.code[h], pack.alpha[h], min(max(F[ACT, h], low), high)
        left, right = value(code, alpha, low), value(code, alpha, high)
        here = max(c * (steep * z + shift - value(code, alpha, z)), 0.0)
        ends = max(c * (steep * low + shift - left), c * (steep * high + shift - right))
        total += here
        F[MISSED, h] += share * (here + AT_ENDS * max(ends, 0.0))
    return total


@njit(**INNER)
def _pass_blame(pack, zl, zu, items, s):
    """What neurons miss is shared among the features in proportion to what they add to a neuron's range; that of
    deeper layers is passed down through the absolute weights."""
    F, index, blame = s.F, pack.index, s.F[NU]
    for h in range(len(pack.code)):
        blame[h] = 0.0
    for layer in range(pack.layers - 2, -1, -1):
        at, n = index[BIAS_AT, layer], index[SIZES, layer + 1]
        for i in range(n):
            h = at + i
            low, high = zl[h], zu[h]
            if high <= low or (F[MISSED, h] == 0.0 and blame[h] == 0.0):
                blame[h] = 0.0
                continue
            risen = abs(value(pack.code[h], pack.alpha[h], high) - value(pack.code[h], pack.alpha[h], low))
            blame[h] = (blame[h] * risen + F[MISSED, h]) / (high - low)
        if layer > 0:
            blame_below(pack, layer, blame)
    blame_items(pack, items, blame, F, s.I, s.Wc)


@njit(**INNER)
def _split(pack, person, s, node, items, relaxed, together):
    """The feature to split and where: by blame where the lines keep the box open (`relaxed`), or else where the
    solution is no row; then by blame, and at last whatever can be separated.
    """
    F, I, lo, hi = s.F, s.I, node.lo, node.hi
    split, where = UNSPLIT, 0.0
    if not relaxed:
        if together:
            split, where = split_fraction(pack, person.box, items, math.inf, lo, hi, F, I)
        if split == UNSPLIT:
            split, where = choose_split(pack, person.box, items, 0, math.inf, lo, hi, F, I)
    if split == UNSPLIT:
        split, where = _split_blamed(pack, person, items, lo, hi, F, I)
    for _, few in SPLIT_ORDER:
        if split == UNSPLIT:
            split, where = split_options(pack, person.box, items, few, lo, hi, F[MATTERS], F, I, s.Wc)
    return split, where


@njit(**INNER)
def _split_blamed(pack, person, items, lo, hi, F, I):
    """Halve the item to blame most; where it cannot be halved any more, the next."""
    for _ in range(items):
        best, score = np.int64(-1), 0.0
        for k in range(items):
            if F[SCORE, k] > score:
                best, score = k, F[SCORE, k]
        if best < 0:
            break
        split, where = halve_item(pack, person.box, best, lo, hi, F, I)
        if split != UNSPLIT:
            return split, where
        F[SCORE, best] = 0.0
    return UNSPLIT, 0.0
