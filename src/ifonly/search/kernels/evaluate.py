"""Bound one box, look for a point in it, and say how to split it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.search.kernels.closed_forms import solve_plane
from ifonly.search.kernels.layout import (
    ACT,
    AIM,
    ALPHA,
    BASE,
    BEST,
    BIAS_AT,
    CHOICE,
    COLUMN,
    COLUMN_COST,
    DOWN,
    FEATURE,
    FIRST,
    HIGH,
    HOLDS,
    INNER,
    INTEGER,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    KIND,
    LOW,
    MAXIMUM,
    MULTIPLIER,
    NU,
    NU_BEST,
    ONCE,
    OUT,
    PATTERN,
    PLANE,
    PLANE_BEST,
    RADIUS,
    REAL,
    RESIDUAL,
    ROW_KIND,
    ROWS,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SCORE,
    SIZES,
    SQUARED,
    START,
    TAKE,
    TAKE_BEST,
    TOUCHES,
    UP,
    WEIGHT_AT,
    X,
    Y,
)
from ifonly.search.kernels.network import bound_layer, forward, forward_compact, neuron_plane
from ifonly.search.kernels.node import clip_to_ball, compact, cost_of, farthest_cost
from ifonly.search.kernels.planes import add_plane, begin_program, combine_surely, solve_program
from ifonly.search.kernels.simplex import INFEASIBLE, OPTIMAL, STUCK
from ifonly.search.kernels.support import allowed_changes, clip_to_support, split_changes

MANY_NUMBERS = 6
"""With more free numbers than this, ReLUs are split rather than features."""
FEW_UNSTABLE = 4
"""With at most this many unstable ReLUs, they are split once the number to blame has been halved."""
NARROW = 1e-3
"""A number whose interval is this short, relative to its size, is not halved further: ReLUs are split instead."""
FINEST = 1e-11
"""A real number's interval is not split below this share of its whole range."""
WIDE_STEPS = 16.0
"""An integer with more steps than this counts as a number that can be halved for ever."""
ROUNDS = 8
"""How often a node's planes are refined at the program's solution."""
SURELY_HOLDS, POSSIBLY_HOLDS, BROKEN = 2, 1, 0
"""What can be said of the rules at a point."""
WHOLE_ROOM = 1e-3
"""What a rule that takes only whole values may miss 0 by in a linear program."""
SPECK = 1e-9
"""A real number's change that is smaller than this share of its range is tried without."""
UNSPLIT = -1
"""What `evaluate` says of a box that cannot be resolved further in floating point."""


@njit(**INNER)
def cutoff(pack, number):
    """Nodes at or beyond this cost need not be opened: the radius, or the best less what the gap allows."""
    best = number[BEST]
    if best == math.inf:
        return number[RADIUS]
    if pack.norm == SQUARED:
        d = math.sqrt(best)
        d = max(d - 0.5 * min(pack.gap, pack.relative_gap * d), 0.0)
        return min(number[RADIUS], d * d)
    return min(number[RADIUS], best - 0.5 * min(pack.gap, pack.relative_gap * best))


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
            _realise(pack, items, F[PLANE_BEST], F[TAKE_BEST], F, I)
            _try_point(pack, person, tree, F)
            splits |= _rules_hold(pack, person, F) != SURELY_HOLDS
            if not allowed_changes(pack, person, F[X]):
                changing, changing_at = split_changes(pack, person, F[X], lo, hi, mask, counted)
            if unstable == 0:
                break
            _set_pattern(F)
            slopes = F[PATTERN]
    bound = max(bound, ruled)
    for h in range(len(side)):
        splits |= side[h] != 0 and side[h] != RULE
    if unstable > 0:
        _blame(pack, zl, zu, items, F, I, s.Wc)
        splits |= _prefers_relu(items, unstable, lo, hi, F, I)
    _newton(pack, person, tree, base_cost, ceiling, items, zl, zu, tries, F, I, s.Wc)
    limit = cutoff(pack, number)
    if bound >= limit:
        return bound, UNSPLIT, 0.0
    if bound >= number[RESIDUAL]:
        shift = person.need[HIGH, binding] - person.need[LOW, binding]
        if solve_plane(norm, F[PLANE_BEST], binding_constant - shift, base_cost, ceiling, items, F, I) >= limit:
            return bound, UNSPLIT, 0.0
    if changing != UNSPLIT:
        return bound, changing, changing_at
    if splits:
        return _tighten(
            pack, person, s, tree, lo, hi, mask, zl, zu, side, counted, base_cost, ceiling, items, bound, unstable
        )
    split, value = _choose_split(pack, person.box, items, unstable, lo, hi, F, I)
    if split == UNSPLIT:
        split, value = _split_options(pack, person.box, items, lo, hi, F, I)
    return bound, split, value


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
def _realise(pack, items, a, take, F, I):
    """A point X of the box that gains at least take[k] of a.y from every item: fractions are rounded up."""
    x, base = F[X], F[BASE]
    for g in range(pack.price.shape[1]):
        x[g] = base[g]
    for k in range(items):
        if take[k] <= 0.0:
            continue
        g = I[FEATURE, k]
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            v = a[c]
            reach = F[UP, k] if v > 0.0 else F[DOWN, k]
            y = take[k] / abs(v)
            if I[ITEM_KIND, k] == INTEGER:
                y = np.ceil(y - 1e-9)
            y = min(y, reach)
            x[g] = base[g] + (y if v > 0.0 else -y)
        else:
            best = np.int64(-1)
            while c < I[FIRST, k + 1]:
                if a[c] >= take[k] * (1.0 - 1e-12) and (best < 0 or F[COLUMN_COST, c] < F[COLUMN_COST, best]):
                    best = c
                c += 1
            if best >= 0:
                x[g] = I[COLUMN, best] - pack.index[START, g]


@njit(**INNER)
def _try_point(pack, person, tree, F):
    """Evaluate X; keep it when it is surely favourable and the best so far.

    Returns the condition that is met worst, and by how much. A point that is only possibly favourable (between LOW
    and HIGH) limits what can be proven: from then on boxes need not be bounded beyond it, only searched for points
    that may be returned.
    """
    number = tree.number
    forward(pack, person, F)
    worst, short, possible = np.int64(0), math.inf, True
    rules = _rules_hold(pack, person, F)
    for r in range(pack.index[SIZES, pack.layers]):
        if F[OUT, r] - person.need[HIGH, r] < short:
            short = F[OUT, r] - person.need[HIGH, r]
            worst = r
        possible &= F[OUT, r] >= person.need[LOW, r]
    if possible and rules != BROKEN and allowed_changes(pack, person, F[X]):
        cost = cost_of(pack, person.cost, F[X])
        if short < 0.0 or rules != SURELY_HOLDS:  # can neither be returned nor ruled out
            number[RESIDUAL] = min(number[RESIDUAL], cost)
        elif cost < number[BEST]:
            number[BEST] = cost
            for f in range(len(tree.best)):
                tree.best[f] = F[X, f]
    return worst, short


@njit(**INNER)
def _rules_hold(pack, person, F):
    """Do the rules hold at the point X, whose pre-activations are in ACT?"""
    verdict = SURELY_HOLDS
    first = pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        layer, i = pack.index[RULE_LAYER, j], pack.index[RULE_PLACE, j]
        value = F[ACT, pack.index[BIAS_AT, layer] + i]
        if value >= person.need[HIGH, first + j]:
            continue
        if value < person.need[LOW, first + j]:
            return BROKEN
        if not (person.need[HOLDS, first + j] and _untouched(pack, person, j, F[X])):
            verdict = POSSIBLY_HOLDS
    return verdict


@njit(**INNER)
def _untouched(pack, person, j, x):
    """Does the point leave alone every feature that rule j looks at?"""
    for g in range(pack.price.shape[1]):
        own = person.option[g] if pack.index[KIND, g] == CHOICE else 0.0
        if pack.index[TOUCHES + j, g] and x[g] != own:
            return False
    return True


@njit(**INNER)
def _without_specks(pack, person, F):
    """Take the tiniest changes of reals out of X: an answer on a rule's edge often has them. True if there were any."""
    some = False
    for g in range(pack.price.shape[1]):
        v = F[X, g]
        if pack.index[KIND, g] == REAL and v != 0.0 and abs(v) <= SPECK * (person.box[1, g] - person.box[0, g]):
            F[X, g] = 0.0
            some = True
    return some


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


@njit(**INNER)
def _set_pattern(F):
    for h in range(F.shape[1]):
        F[PATTERN, h] = 1.0 if F[ACT, h] > 0.0 else 0.0


@njit(**ONCE)
def _newton(pack, person, tree, base_cost, ceiling, items, zl, zu, tries, F, I, Wc):
    """Look for a better point from X: solve the network's own linear piece there, go to its solution, repeat."""
    width = I[FIRST, items]
    last, one = pack.layers - 1, np.int64(1)
    for _ in range(tries):
        worst, short = np.int64(0), math.inf
        for r in range(pack.index[SIZES, pack.layers]):
            if F[OUT, r] - person.need[HIGH, r] < short:
                short = F[OUT, r] - person.need[HIGH, r]
                worst = r
        _set_pattern(F)
        constant = neuron_plane(pack, last, worst, 1.0, zl, zu, F[PATTERN], one, width, F, Wc) - person.need[AIM, worst]
        c = solve_plane(pack.norm, F[PLANE], constant, base_cost, ceiling, items, F, I)
        if c >= tree.number[BEST]:
            return
        _realise(pack, items, F[PLANE], F[TAKE], F, I)
        _try_point(pack, person, tree, F)


# ------------------------------------------------------------------------------------------------ splitting features


@njit(**INNER)
def _blame(pack, zl, zu, items, F, I, Wc):
    """How much of the relaxation's error at the point in ACT each item is to blame for, into SCORE.

    The error of an unstable ReLU is shared among the features in proportion to what they add to its range; errors
    of deeper layers are passed down through the absolute weights.
    """
    index, blame = pack.index, F[NU]
    for h in range(F.shape[1]):
        blame[h] = 0.0
    for layer in range(pack.layers - 2, -1, -1):
        at, n, m = index[BIAS_AT, layer], index[SIZES, layer + 1], index[SIZES, layer]
        for i in range(n):
            h = at + i
            low, up = zl[h], zu[h]
            if up <= 0.0:
                blame[h] = 0.0
            elif low < 0.0:
                c, z = F[NU_BEST, h], F[ACT, h]
                if c > 0.0:
                    error = c * (up * (z - low) / (up - low) - max(z, 0.0))
                else:
                    error = -0.1 * c * min(up, -low)
                blame[h] = (blame[h] * up + max(error, 0.0)) / (up - low)
        if layer > 0:
            below, w = index[BIAS_AT, layer - 1], index[WEIGHT_AT, layer]
            for i in range(n):
                c = blame[at + i]
                if c != 0.0:
                    for t in range(m):
                        blame[below + t] += c * abs(pack.weights[w + i * m + t])
    for k in range(items):
        F[SCORE, k] = 0.0
        for c in range(I[FIRST, k], I[FIRST, k + 1]):
            total = 0.0
            for i in range(index[SIZES, 1]):
                total += blame[i] * abs(Wc[i, c])
            F[SCORE, k] = max(F[SCORE, k], total * (F[UP, k] + F[DOWN, k]))


@njit(**INNER)
def _prefers_relu(items, unstable, lo, hi, F, I):
    """Split ReLUs rather than features? With many free numbers, or when few are unstable and the number to blame was
    halved.
    """
    wide, best, score = 0, np.int64(-1), 0.0
    for k in range(items):
        if I[ITEM_KIND, k] != CHOICE and (I[ITEM_KIND, k] != INTEGER or F[UP, k] + F[DOWN, k] > WIDE_STEPS):
            wide += 1
        if F[SCORE, k] > score:
            best, score = k, F[SCORE, k]
    if wide > MANY_NUMBERS:
        return True
    if best < 0:
        return True
    if I[ITEM_KIND, best] == CHOICE or (I[ITEM_KIND, best] == INTEGER and F[UP, best] + F[DOWN, best] <= WIDE_STEPS):
        return False
    g = I[FEATURE, best]
    narrow = hi[g] - lo[g] <= NARROW * max(abs(lo[g]), abs(hi[g]))
    return (unstable <= FEW_UNSTABLE and not lo[g] < 0.0 < hi[g]) or narrow


@njit(**INNER)
def _choose_split(pack, whole, items, unstable, lo, hi, F, I):
    """The feature to split and where: by blame while ReLUs are unstable, else where the bound's minimiser is a
    fraction.
    """
    best, score = np.int64(-1), 0.0
    blamed = False
    if unstable > 0:
        for k in range(items):
            if F[SCORE, k] > score:
                best, score, blamed = k, F[SCORE, k], True
    if best < 0:
        for k in range(items):
            take = F[TAKE_BEST, k]
            if take <= 0.0:
                continue
            c = I[FIRST, k]
            part = 0.0
            if I[ITEM_KIND, k] == CHOICE:
                part = 0.0 if pack.norm == MAXIMUM else 1.0
            else:
                v = F[PLANE_BEST, c]
                reach = F[UP, k] if v > 0.0 else F[DOWN, k]
                y = take / abs(v)
                if I[ITEM_KIND, k] == INTEGER:
                    part = abs(y - np.rint(y))
                    if part < 1e-9:
                        part = 0.0
                elif F[ITEM_JUMP, k] > 0.0 and y < reach * (1.0 - 1e-9):
                    part = 1.0
            if part > score:
                best, score = k, part
    if best < 0:
        return UNSPLIT, 0.0
    g = I[FEATURE, best]
    if I[ITEM_KIND, best] == CHOICE:
        return g, F[BASE, g]
    if blamed:
        middle = 0.0 if lo[g] < 0.0 < hi[g] else 0.5 * (lo[g] + hi[g])
    else:
        v = F[PLANE_BEST, I[FIRST, best]]
        y = F[TAKE_BEST, best] / abs(v)
        middle = F[BASE, g] + (y if v > 0.0 else -y)
    return _number_split(pack, whole, g, middle, lo, hi)


@njit(**INNER)
def _number_split(pack, whole, g, middle, lo, hi):
    """A split of a number near `middle`, or UNSPLIT when its interval cannot be halved any more."""
    if pack.index[KIND, g] == INTEGER:
        return g, min(np.floor(middle), hi[g] - 1.0)
    if not lo[g] < middle < hi[g] or hi[g] - lo[g] <= FINEST * (whole[1, g] - whole[0, g]):
        return UNSPLIT, 0.0
    return g, middle


# ------------------------------------------------------------------------------------------------ splitting ReLUs


@njit(**ONCE)
def _tighten(pack, person, s, tree, lo, hi, mask, zl, zu, side, counted, base_cost, ceiling, items, bound, unstable):
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
                shift, surely = 4.0 * slack, 0.0
                if layer == last:
                    constant -= person.need[LOW, i]
                    shift = person.need[AIM, i] - person.need[LOW, i] + 2.0 * slack
                    surely = person.need[HIGH, i] - person.need[LOW, i]
                elif side[at + i] == RULE:
                    low, high = _floor_of(pack, person, layer, i)
                    constant -= low
                    surely = max(high - low, 0.0)
                    if high > low:
                        shift += surely
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
            _round_solution(pack, items, F, I)
            _try_point(pack, person, tree, F)
            changing, changing_at = UNSPLIT, 0.0
            if not allowed_changes(pack, person, F[X]):
                changing, changing_at = split_changes(pack, person, F[X], lo, hi, mask, counted)
            if pack.rules > 0 and _without_specks(pack, person, F):
                _try_point(pack, person, tree, F)
        limit = cutoff(pack, tree.number)
        if bound >= limit:
            return bound, UNSPLIT, 0.0
        if c >= tree.number[RESIDUAL]:
            shifted = combine_surely(rows, width, F, LF, LI, s.A)
            if solve_plane(norm, F[PLANE], shifted, base_cost, ceiling, items, F, I) >= limit:
                return bound, UNSPLIT, 0.0
        forward_compact(pack, width, F, s.Wc)
        _set_pattern(F)
        slopes = F[PATTERN]
        if attempt > 0 and gained < 1e-3 * (limit - bound):
            break
    if changing != UNSPLIT:
        return bound, changing, changing_at
    best = _worst_relu(pack, zl, zu, exact, width, F, s.Wc)
    if best >= 0:
        return bound, -2 - best, 0.0
    split, value = _split_fraction(pack, person.box, items, lo, hi, F, I)
    if split == UNSPLIT:
        split = _any_relu(pack, zl, zu, width, F, s.Wc)
    if split == UNSPLIT:
        split, value = _split_options(pack, person.box, items, lo, hi, F, I)
    if split == UNSPLIT and found == STUCK:
        split, value = _split_dearest(pack, person.box, items, lo, hi, F, I)
    return bound, split, value


@njit(**INNER)
def _split_options(pack, whole, items, lo, hi, F, I):
    """Set the base's value of an option or an integer apart from the rest; UNSPLIT when only reals are left.

    A point that sits on the margin to the last bit can neither be returned nor ruled out, but its neighbours can.
    """
    for k in range(items):
        g = I[FEATURE, k]
        if I[ITEM_KIND, k] == CHOICE:
            return g, F[BASE, g]
        if I[ITEM_KIND, k] == INTEGER:
            return _number_split(pack, whole, g, F[BASE, g], lo, hi)
    return UNSPLIT, 0.0


@njit(**INNER)
def _split_dearest(pack, whole, items, lo, hi, F, I):
    """Halve the number whose interval is widest in cost: for a box whose program was not solved, so that it ends
    somewhere.
    """
    best, cost = np.int64(-1), 0.0
    for k in range(items):
        this = (F[UP, k] + F[DOWN, k]) * F[ITEM_RATE, k]
        if this > cost:
            best, cost = k, this
    if best < 0:
        return UNSPLIT, 0.0
    g = I[FEATURE, best]
    return _number_split(pack, whole, g, 0.5 * (lo[g] + hi[g]), lo, hi)


@njit(**INNER)
def _worst_relu(pack, zl, zu, exact, width, F, Wc):
    """The unstable ReLU whose relaxation is farthest from it at the solution, or -1 when the relaxation is tight
    there.
    """
    best, error = np.int64(-1), 1e-12
    conditions = pack.index[SIZES, pack.layers]
    for r in range(conditions + pack.rules):
        layer, i = pack.layers - 1, r
        if r >= conditions:
            layer, i = pack.index[RULE_LAYER, r - conditions], pack.index[RULE_PLACE, r - conditions]
            if layer == 0:
                continue
        neuron_plane(pack, layer, i, 1.0, zl, zu, F[PATTERN], np.int64(0), width, F, Wc)
        for h in range(pack.index[BIAS_AT, layer]):
            if zl[h] < 0.0 < zu[h]:
                z, c = F[ACT, h], F[NU, h]
                if c > 0.0:
                    this = c * (zu[h] * (z - zl[h]) / (zu[h] - zl[h]) - max(z, 0.0))
                else:
                    this = 0.0 if exact else -0.1 * c * min(zu[h], -zl[h])
                if this > error:
                    best, error = h, this
    return best


@njit(**INNER)
def _any_relu(pack, zl, zu, width, F, Wc):
    """An unstable ReLU that a condition depends on, as a split, or UNSPLIT: for boxes that only rounding keeps open."""
    conditions = pack.index[SIZES, pack.layers]
    for r in range(conditions + pack.rules):
        layer, i = pack.layers - 1, r
        if r >= conditions:
            layer, i = pack.index[RULE_LAYER, r - conditions], pack.index[RULE_PLACE, r - conditions]
            if layer == 0:
                continue
        neuron_plane(pack, layer, i, 1.0, zl, zu, F[PATTERN], np.int64(0), width, F, Wc)
        for h in range(pack.index[BIAS_AT, layer]):
            if zl[h] < 0.0 < zu[h] and F[NU, h] != 0.0:
                return -2 - h
    return UNSPLIT


@njit(**INNER)
def _split_fraction(pack, whole, items, lo, hi, F, I):
    """A feature whose value in Y is no value of it, or UNSPLIT."""
    best, part, where = np.int64(-1), 1e-7, 0.0
    for k in range(items):
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            y = F[Y, c]
            reach = F[UP, k] if y > 0.0 else F[DOWN, k]
            away = 0.0
            if I[ITEM_KIND, k] == INTEGER:
                away = abs(y - np.rint(y))
            elif F[ITEM_JUMP, k] > 0.0 and 1e-9 * reach < abs(y) < reach * (1.0 - 1e-9):
                away = 0.25
            if away > part:
                best, part, where = k, away, y
        else:
            while c < I[FIRST, k + 1]:
                away = min(F[Y, c], 1.0 - F[Y, c])
                if away > part:
                    best, part = k, away
                c += 1
    if best < 0:
        return UNSPLIT, 0.0
    g = I[FEATURE, best]
    if I[ITEM_KIND, best] == CHOICE:
        return g, F[BASE, g]
    return _number_split(pack, whole, g, F[BASE, g] + where, lo, hi)


@njit(**INNER)
def _round_solution(pack, items, F, I):
    """Y as a point X of the box: integers away from the base, choices to their largest share."""
    x, base = F[X], F[BASE]
    for g in range(pack.price.shape[1]):
        x[g] = base[g]
    for k in range(items):
        g = I[FEATURE, k]
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            y = F[Y, c]
            if I[ITEM_KIND, k] == INTEGER:
                y = np.ceil(y - 1e-7) if y > 0.0 else np.floor(y + 1e-7)
            x[g] = base[g] + min(max(y, -F[DOWN, k]), F[UP, k])
        else:
            share = 0.5
            while c < I[FIRST, k + 1]:
                if F[Y, c] > share:
                    share = F[Y, c]
                    x[g] = I[COLUMN, c] - pack.index[START, g]
                c += 1
