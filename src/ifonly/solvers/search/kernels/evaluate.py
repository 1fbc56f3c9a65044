"""Evaluation of a node: lower bound of its box, candidates in it, and how to branch."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import ROBUSTLY_HOLDS, newton, realise, rules_hold, set_pattern, try_point
from ifonly.solvers.search.kernels.closed_forms import price_columns, solve_plane
from ifonly.solvers.search.kernels.cutoff import cutoff, less_gap
from ifonly.solvers.search.kernels.fine_grids import round_together
from ifonly.solvers.search.kernels.groups import begin_groups, group_of
from ifonly.solvers.search.kernels.layout import (
    ALL_GROUPS,
    ALPHA,
    BASE,
    BIAS_AT,
    BOUNDED_GROUP,
    CONDITION_BOUND,
    FIRST,
    HALT,
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
    RESIDUAL,
    ROW_KIND,
    ROWS,
    RULE,
    RULE_GROUP,
    RULE_LAYER,
    RULE_PLACE,
    SIZES,
    SQUARED,
    STEPS,
    TAKE,
    TAKE_BEST,
    UNSPLIT_SIDE,
    ZC,
    Cut,
    X,
)
from ifonly.solvers.search.kernels.narrowing import narrow_by_rules
from ifonly.solvers.search.kernels.network import begin_losses, bound_layer, layer_losses, neuron_plane, plane_loss
from ifonly.solvers.search.kernels.node import clip_to_ball, compact, farthest_cost
from ifonly.solvers.search.kernels.probing import is_probed, probe_relus
from ifonly.solvers.search.kernels.splits import SPLIT_ORDER, UNSPLIT, blame, choose_split, prefers_relu, split_options
from ifonly.solvers.search.kernels.support import allowed_changes, clip_to_support, split_changes
from ifonly.solvers.search.kernels.tighten import CLEAR, newton_together, tighten

NOTHING = 1e-300
"""Below 0 by so little, a lower bound makes a ReLU unstable and changes no plane."""


@njit(**ONCE)
def cut_node(pack, person, s, node, limit):
    """The node, cut to the ball of what costs less than the limit, in compact columns; where nothing is left of it, the
    base costs infinity.
    """
    F, I = s.F, s.I
    if not clip_to_support(pack, person, node.lo, node.hi, node.mask, node.counted):
        return Cut(0, 0, math.inf, math.inf)
    if pack.rules > 0 and s.B.shape[0] == 0 and not narrow_by_rules(pack, person, node.lo, node.hi, node.mask):
        return Cut(0, 0, math.inf, math.inf)  # a record would have to say why
    base_cost = clip_to_ball(pack, person, limit, node.lo, node.hi, node.mask, F[BASE])
    if base_cost == math.inf:
        return Cut(0, 0, math.inf, math.inf)
    items = compact(pack, person, node.lo, node.hi, node.mask, F, I, s.Wc)
    price_columns(pack.norm, items, F, I)
    ceiling = min(limit, farthest_cost(items, F, I)) if pack.norm == MAXIMUM else limit
    return Cut(items, I[FIRST, items], base_cost, max(ceiling, base_cost))


@njit(**ONCE)
def evaluate(pack, person, s, r, node, tree, tries):
    """Bound a box. Returns (lower bound on the cost, split, where); may improve the best point.

    The split is a feature, -2 - h for the ReLU of neuron h, features + g for whether feature g changes, or UNSPLIT:
    then a bound below the cutoff is a limit of what can be proven in floating point. When the box is closed by planes,
    the rows and multipliers that do it are left in the scratch.
    """
    F, I, number = s.F, s.I, tree.number
    limit = cutoff(pack, number)
    tree.count[ROWS] = 0
    tree.count[STEPS] = 0
    cut = cut_node(pack, person, s, node, limit)
    if cut.base_cost == math.inf:
        return math.inf, UNSPLIT, 0.0
    items = cut.items
    group = _begin_bounds(pack, person, s, node)
    bound, unstable = _bound_layers(pack, person, s, node, cut, tree, limit, group)
    if bound >= limit:
        return bound, UNSPLIT, 0.0
    if I[HALT, 0] != 0:
        return -1.0, UNSPLIT, 0.0
    ruled = _bound_rules(pack, person, node, cut, s)
    if ruled >= limit:
        return ruled, UNSPLIT, 0.0
    if group == RULE_GROUP:
        bound, binding, binding_constant, closed, more = _bound_groups(pack, person, s, node, cut, tree, limit)
        unstable += more
    else:
        bound, binding, binding_constant, closed = _bound_conditions(pack, person, s, node, cut, tree, unstable)
    if closed:
        return bound, UNSPLIT, 0.0
    bound = max(bound, ruled)
    splits = _any_side(node)
    together = pack.index[SIZES, pack.layers] > 1 or rules_hold(pack, person, F) != ROBUSTLY_HOLDS  # by several planes
    changing, changing_at = UNSPLIT, 0.0
    if not allowed_changes(pack, person, F[X]):
        changing, changing_at = split_changes(pack, person, F[X], node.lo, node.hi, node.mask, node.counted)
    if unstable > 0:
        blame(pack, node.zl, node.zu, items, F, I, s.Wc)
        splits |= prefers_relu(items, unstable, node.lo, node.hi, F, I)
    newton(pack, person, tree, node, cut, tries, s)
    if together and s.B.shape[0] == 0:  # a record keeps the row that bounds the box, where the program would be
        newton_together(pack, person, s, tree, node, cut, tries)
    limit = cutoff(pack, number)
    if bound >= limit:
        return bound, UNSPLIT, 0.0
    hopeless = _hopeless(pack, person, node, cut, limit, binding, binding_constant, bound, s, tree)
    if hopeless and max(bound, number[INHERITED]) >= less_gap(pack, number[RESIDUAL]):  # only its bound counts
        return bound, UNSPLIT, 0.0
    if changing != UNSPLIT:
        return bound, changing, changing_at
    if unstable > 0 and is_probed(pack, person, r):
        bound, split, settled = probe_relus(pack, person, s, r, tree, node, cut, bound, hopeless)
        if settled:
            return bound, split, 0.0
        splits = True
    if splits or together:
        return _bound_together(pack, person, s, tree, node, cut, bound, hopeless, np.int64(0) if splits else unstable)
    split, value = _split_of_one_plane(pack, person, node, items, unstable, s)
    return bound, split, value


@njit(**ONCE)
def _begin_bounds(pack, person, s, node):
    """Slopes and losses by the bounds of the parent. Returns which neurons are bounded first: all, or where conditions
    are in several groups those of rules.
    """
    F = s.F
    for h in range(len(node.zl)):
        F[ALPHA, h] = 1.0 if node.zu[h] > -node.zl[h] else 0.0
    begin_losses(pack, person, F)
    for layer in range(1, pack.layers - 1):
        layer_losses(pack, layer, ALL_GROUPS, node.zu, F)
    by_group = pack.groups > 1 and s.B.shape[0] == 0  # a record has the slopes of all
    begin_groups(pack, s, np.int64(0) if by_group else np.int64(1))
    return RULE_GROUP if by_group else ALL_GROUPS


@njit(**ONCE)
def _bound_together(pack, person, s, tree, node, cut, bound, hopeless, unstable):
    """Bound a box under all its planes; where ReLUs are unstable, the feature to blame is split rather than a ReLU."""
    feature, at = UNSPLIT, 0.0
    if unstable > 0:
        most = SPLIT_ORDER[0][0]
        feature, at = choose_split(pack, person.box, cut.items, unstable, most, node.lo, node.hi, s.F, s.I)
    bound, split, value = tighten(pack, person, s, tree, node, cut, bound, hopeless)
    if feature != UNSPLIT and split < UNSPLIT:
        return bound, feature, at
    return bound, split, value


@njit(**ONCE)
def _any_side(node):
    """Was a ReLU split on the way to this box?"""
    some = False
    for h in range(len(node.side)):
        some |= node.side[h] != UNSPLIT_SIDE and node.side[h] != RULE
    return some


@njit(**INNER)
def _split_of_one_plane(pack, person, node, items, unstable, s):
    """The split of a box that one plane leaves open."""
    split, value = UNSPLIT, 0.0
    for most, few in SPLIT_ORDER:
        if split == UNSPLIT:
            split, value = choose_split(pack, person.box, items, unstable, most, node.lo, node.hi, s.F, s.I)
        if split == UNSPLIT:
            split, value = split_options(pack, person.box, items, few, node.lo, node.hi, node.zu, s.F, s.I, s.Wc)
    return split, value


@njit(**INNER)
def _solve_condition(pack, person, s, node, cut, r, slopes):
    """The bound of condition r's plane, the plane's constant, and what rounding can do to it."""
    F, last = s.F, pack.layers - 1
    constant = neuron_plane(pack, last, r, 1.0, node.zl, node.zu, slopes, np.int64(0), cut.width, F, s.Wc)
    loss = plane_loss(person.slack[pack.index[BIAS_AT, last] + r], F)
    constant += loss - person.need[LOW, r]
    return solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, s.I), constant, loss


@njit(**INNER)
def _bound_layers(pack, person, s, node, cut, tree, limit, group):
    """Bound the neurons layer by layer, of one group or of all, trying its conditions with what is known before each.
    Returns a bound, which counts only if it closes the box, and how many neurons are unstable.
    """
    F, I, last = s.F, s.I, pack.layers - 1
    bound, unstable = -1.0, 0
    for layer in range(last):
        for r in range(pack.index[SIZES, pack.layers]):
            if group != ALL_GROUPS and (layer == 0 or group_of(pack, r) != group):  # tried before the first layer
                continue
            bound = _solve_condition(pack, person, s, node, cut, r, F[ALPHA])[0]
            if bound >= limit:
                _keep_row(s, tree, r, F[ALPHA])
                return bound, unstable
        budget = limit - cut.base_cost
        unstable += bound_layer(pack, layer, group, person.slack, node.zl, node.zu, budget, cut.items, F, I, s.Wc)
        if layer + 1 < last:
            layer_losses(pack, layer + 1, group, node.zu, F)
    if group >= 0:
        I[BOUNDED_GROUP, group] = 1
    return bound, unstable


@njit(**INNER)
def _bound_conditions(pack, person, s, node, cut, tree, unstable):
    """The conditions' planes with the slopes of the bounds, then that of the binding one with the slopes of the pattern
    at its solution, which is tried as a point in between and left in X.

    Returns (bound, binding condition, constant of its plane less what it must clear, whether the box is closed).
    """
    F, I = s.F, s.I
    bound, binding, binding_constant, binding_loss = -1.0, np.int64(0), 0.0, 0.0
    slopes = F[ALPHA]
    for attempt in range(2):
        for r in range(pack.index[SIZES, pack.layers]):
            if attempt == 1 and r != binding:
                continue
            c, constant, loss = _solve_condition(pack, person, s, node, cut, r, slopes)
            if c > bound:
                bound, binding, binding_constant, binding_loss = c, r, constant, loss
                keep_plane(cut, F)
                _keep_row(s, tree, r, slopes)
        if bound >= cutoff(pack, tree.number):
            return bound, binding, binding_constant, True
        if attempt == 0:
            realise(pack, cut.items, F[PLANE_BEST], F[TAKE_BEST], F, I)
            try_point(pack, person, tree, F)
            if unstable == 0:
                break
            set_pattern(F)
            slopes = F[PATTERN]
    return bound, binding, binding_constant - CLEAR * binding_loss, False


@njit(**INNER)
def _bound_groups(pack, person, s, node, cut, tree, limit):
    """The same where conditions are in several groups: all with the bounds of the parent, then with those of the node
    while the binding one does not have them. Returns the number of unstable neurons, too.
    """
    F, I, unstable = s.F, s.I, 0
    bound, binding, binding_constant, binding_loss = -1.0, np.int64(0), 0.0, 0.0
    group = ALL_GROUPS
    while True:
        for r in range(pack.index[SIZES, pack.layers]):
            if group != ALL_GROUPS and group_of(pack, r) != group:
                continue
            c, constant, loss = _solve_condition(pack, person, s, node, cut, r, F[ALPHA])
            F[CONDITION_BOUND, r] = c
            if c > bound:
                bound, binding, binding_constant, binding_loss = c, r, constant, loss
                keep_plane(cut, F)
                _keep_row(s, tree, r, F[ALPHA])
                if bound >= limit:
                    return bound, binding, binding_constant, True, unstable
        group = group_of(pack, binding)
        if I[BOUNDED_GROUP, group] != 0 or I[HALT, 0] != 0:
            break
        c, more = _bound_layers(pack, person, s, node, cut, tree, limit, group)
        unstable += more
        if c >= limit:
            return c, binding, binding_constant, True, unstable
    realise(pack, cut.items, F[PLANE_BEST], F[TAKE_BEST], F, I)
    try_point(pack, person, tree, F)
    if unstable > 0:
        set_pattern(F)
        c, constant, loss = _solve_condition(pack, person, s, node, cut, binding, F[PATTERN])
        if c > bound:
            bound, binding_constant, binding_loss = c, constant, loss
            keep_plane(cut, F)
            _keep_row(s, tree, binding, F[PATTERN])
    closed = bound >= cutoff(pack, tree.number)
    return bound, binding, binding_constant - CLEAR * binding_loss, closed, unstable


@njit(**INNER)
def _hopeless(pack, person, node, cut, limit, binding, binding_constant, bound, s, tree):
    """Can nothing in the box be returned? By the binding plane, or by another condition's; asked where a point is known
    that can be neither returned nor ruled out.
    """
    if tree.number[RESIDUAL] == math.inf:
        return False
    shift = person.need[HIGH, binding] - person.need[LOW, binding]
    plane, constant = s.F[PLANE_BEST], binding_constant - shift
    c = solve_plane(pack.norm, plane, constant, cut.base_cost, cut.ceiling, cut.items, s.F, s.I)
    if c < limit and not _stays_below(pack, person, node, cut, limit, s):
        return False
    if pack.norm == SQUARED:
        _round_bound(pack, person, tree, cut, bound, s)
    return True


@njit(**INNER)
def _round_bound(pack, person, tree, cut, bound, s):
    """Try the row beside the binding plane's solution: where no row may be returned, `newton` finds none to round, and
    a residual that is a step too dear would leave the box to be split step by step.
    """
    F, I = s.F, s.I
    realise(pack, cut.items, F[PLANE_BEST], F[TAKE_BEST], F, I)
    if round_together(cut.items, F[PLANE_BEST], F[TAKE_BEST], 0.5 * pack.relative_gap * bound, F, I):
        try_point(pack, person, tree, F)


@njit(**INNER)
def _stays_below(pack, person, node, cut, limit, s):
    """Is a condition below HIGH, or not clear of it, in the whole box? With all slopes 0: a ReLU that takes away takes
    away nothing at best, also one that was split and is active from 0 on.
    """
    F, last = s.F, pack.layers - 1
    below = F[NU_BEST]
    for h in range(F.shape[1]):
        F[PATTERN, h] = 0.0
    for h in range(len(node.zl)):
        below[h] = node.zl[h] if node.zl[h] != 0.0 else -NOTHING
    for r in range(pack.index[SIZES, pack.layers]):
        constant = neuron_plane(pack, last, r, 1.0, below, node.zu, F[PATTERN], np.int64(0), cut.width, F, s.Wc)
        slack = plane_loss(person.slack[pack.index[BIAS_AT, last] + r], F)
        constant += slack - person.need[HIGH, r] - CLEAR * slack
        if solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, s.I) >= limit:
            return True
    return False


@njit(**ONCE)
def keep_plane(cut, F):
    """Remember the plane, its minimiser and its coefficients of the neurons as the binding ones."""
    for t in range(cut.width):
        F[PLANE_BEST, t] = F[PLANE, t]
    for k in range(cut.items):
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
def _bound_rules(pack, person, node, cut, s):
    """What the rules alone cost, one by one; infinity when one cannot hold in this box."""
    F, bound, first = s.F, 0.0, pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        layer, i = pack.index[RULE_LAYER, j], pack.index[RULE_PLACE, j]
        if layer == 0 and F[ZC, i] >= person.need[LOW, first + j]:
            continue  # it holds at the base, which costs least
        constant = neuron_plane(pack, layer, i, 1.0, node.zl, node.zu, F[ALPHA], np.int64(0), cut.width, F, s.Wc)
        constant += plane_loss(person.slack[pack.index[BIAS_AT, layer] + i], F) - person.need[LOW, first + j]
        if constant < 0.0:
            c = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, s.I)
            bound = max(bound, c)
    return bound
