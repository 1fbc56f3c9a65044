"""Primal heuristics: points of a box that may be answers, from a plane, from a program's solution, from the network's
own linear piece.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.closed_forms import solve_plane
from ifonly.solvers.search.kernels.fine_grids import round_together
from ifonly.solvers.search.kernels.layout import (
    ACT,
    AIM,
    BASE,
    BEST,
    BIAS_AT,
    CHOICE,
    COLUMN,
    COLUMN_COST,
    DOWN,
    FEATURE,
    FIRST,
    HALT,
    HIGH,
    HOLDS,
    INNER,
    INTEGER,
    ITEM_GRID_OFFSET,
    ITEM_KIND,
    KIND,
    LOW,
    ONCE,
    OUT,
    PATTERN,
    PLANE,
    REAL,
    RESIDUAL,
    RULE_LAYER,
    RULE_PLACE,
    SIZES,
    SQUARED,
    START,
    TAKE,
    TOUCHES,
    UP,
    X,
    Y,
)
from ifonly.solvers.search.kernels.network import forward, neuron_plane
from ifonly.solvers.search.kernels.node import cost_of, grid_offset_of
from ifonly.solvers.search.kernels.support import allowed_changes

ROBUSTLY_HOLDS, POSSIBLY_HOLDS, BROKEN = 2, 1, 0
"""What can be said of the rules at a point."""
SPECK = 1e-9
"""A real number's change that is smaller than this share of its range is tried without."""


@njit(**INNER)
def realise(pack, items, a, take, F, I):
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
                grid_offset = grid_offset_of(F[ITEM_GRID_OFFSET, k], v > 0.0)
                y = np.ceil(y - grid_offset - 1e-9) + grid_offset
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
def round_solution(pack, items, F, I):
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
                grid_offset = grid_offset_of(F[ITEM_GRID_OFFSET, k], y > 0.0)
                far = np.ceil(abs(y) - grid_offset - 1e-7) + grid_offset if abs(y) > 1e-7 else 0.0
                y = far if y > 0.0 else -far
            x[g] = base[g] + min(max(y, -F[DOWN, k]), F[UP, k])
        else:
            share = 0.5
            while c < I[FIRST, k + 1]:
                if F[Y, c] > share:
                    share = F[Y, c]
                    x[g] = I[COLUMN, c] - pack.index[START, g]
                c += 1


@njit(**INNER)
def without_specks(pack, person, F):
    """Take the tiniest changes of reals out of X: an answer on a rule's edge often has them. True if there were any."""
    some = False
    for g in range(pack.price.shape[1]):
        v = F[X, g]
        if pack.index[KIND, g] == REAL and v != 0.0 and abs(v) <= SPECK * (person.box[1, g] - person.box[0, g]):
            F[X, g] = 0.0
            some = True
    return some


@njit(**INNER)
def try_point(pack, person, tree, F):
    """Evaluate X; keep it when it is favourable under any rounding and the best so far.

    Returns the condition that is met worst, and by how much. A point that is only possibly favourable (between LOW
    and HIGH) limits what can be proven: from then on boxes need not be bounded beyond it, only searched for points
    that may be returned.
    """
    forward(pack, person, F)
    return judge_point(pack, person, tree, F)


@njit(**ONCE)
def judge_point(pack, person, tree, F):
    """The same of a point X whose values are in ACT and OUT."""
    number, possible = tree.number, True
    worst, short = worst_condition(pack, person, F)
    rules = rules_hold(pack, person, F)
    for r in range(pack.index[SIZES, pack.layers]):
        possible &= F[OUT, r] >= person.need[LOW, r]
    if possible and rules != BROKEN and allowed_changes(pack, person, F[X]):
        cost = cost_of(pack, person.cost, F[X])
        if short < 0.0 or rules != ROBUSTLY_HOLDS:  # can neither be returned nor ruled out
            number[RESIDUAL] = min(number[RESIDUAL], cost)
        elif cost < number[BEST]:
            number[BEST] = cost
            for f in range(len(tree.best)):
                tree.best[f] = F[X, f]
    return worst, short


@njit(**ONCE)
def worst_condition(pack, person, F):
    """The condition that is met worst by the values in OUT, and by how much."""
    worst, short = np.int64(0), math.inf
    for r in range(pack.index[SIZES, pack.layers]):
        if F[OUT, r] - person.need[HIGH, r] < short:
            short = F[OUT, r] - person.need[HIGH, r]
            worst = r
    return worst, short


@njit(**INNER)
def rules_hold(pack, person, F):
    """Do the rules hold at the point X, whose pre-activations are in ACT?"""
    verdict = ROBUSTLY_HOLDS
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
def set_pattern(F):
    for h in range(F.shape[1]):
        F[PATTERN, h] = 1.0 if F[ACT, h] > 0.0 else 0.0


@njit(**INNER)
def newton(pack, person, tree, node, cut, tries, s):
    """Look for a better point from X: solve the network's own linear piece there, go to its solution, repeat."""
    F, I, items, width = s.F, s.I, cut.items, cut.width
    last, one = pack.layers - 1, np.int64(1)
    for _ in range(tries):
        worst, _ = worst_condition(pack, person, F)
        set_pattern(F)
        constant = neuron_plane(pack, last, worst, 1.0, node.zl, node.zu, F[PATTERN], one, width, F, s.Wc)
        constant -= person.need[AIM, worst]
        c = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, items, F, I)
        if c >= tree.number[BEST] or I[HALT, 0] != 0:
            return
        realise(pack, items, F[PLANE], F[TAKE], F, I)
        try_point(pack, person, tree, F)
        allowance = 0.5 * pack.relative_gap * c
        if pack.norm == SQUARED and round_together(items, F[PLANE], F[TAKE], allowance, F, I):
            try_point(pack, person, tree, F)
