"""One region in floating point, as `ifonly.certificate.check.region` has it in integers: corner and ball.

Every bound is taken too high by more than floating point can be off. What the checker could decide in another way for
a difference of that size (which of two slopes it takes, whether a ReLU is stable) is not decided here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.certifying.float_check.layout import (
    BASE,
    CHOICE,
    COLUMN,
    COST,
    DOWN,
    FIRST,
    INNER,
    IS_CHOICE,
    ITEM_JUMP,
    ITEM_RATE,
    JUMP,
    MAXIMUM,
    MOVED,
    NEAR,
    ONCE,
    RATE,
    RELATIVE,
    SIZES,
    SQUARED,
    START,
    STEP,
    TIE,
    UP,
    ZC,
)


@njit(**ONCE)
def clip(q, w, d):
    """The cheapest corner of box d and what the ball leaves around it. Returns (items, budget); no items: -1."""
    w.doubtful[0] = 0
    spent = _corner(q, w, d)
    if spent < 0.0:
        return -1, 0.0
    budget = q.radius - spent
    if abs(budget) <= NEAR * RELATIVE * q.radius < math.inf:
        w.doubtful[0] = 1
    if budget < -RELATIVE * q.radius:
        return -1, 0.0
    budget = max(budget, 0.0) + RELATIVE * (q.radius if q.radius < math.inf else 0.0)
    for i in range(q.index[SIZES, 1]):
        w.F[ZC, i] = q.z[i]
    items, width = 0, 0
    for g in range(q.price.shape[1]):
        if q.index[CHOICE, g] == 0:
            added = _add_number(q, w, d, g, budget, items, width)
        else:
            added = _add_choice(q, w, d, g, budget, items, width)
        if added > 0:
            items, width = items + 1, width + added
    w.I[FIRST, items] = width
    return items, budget


@njit(**ONCE)
def _corner(q, w, d):
    """The cheapest value of each feature, into BASE; returns what they cost, -1 when a feature has none."""
    spent = 0.0
    for g in range(q.price.shape[1]):
        c, cost = q.index[START, g], 0.0
        if q.index[CHOICE, g] == 0:
            lo, hi = w.low[d, g], w.high[d, g]
            if lo > hi:
                size = RELATIVE * (abs(lo) + abs(hi))
                if lo - hi <= NEAR * size:
                    w.doubtful[0] = 1
                if lo - hi > size:
                    return -1.0
                hi = lo
            w.F[BASE, g] = max(lo, min(hi, 0.0))
            cost = _number_cost(q, g, abs(w.F[BASE, g]))
        else:
            best = -1
            for o in range(q.index[START, g + 1] - c):
                if w.mask[d, c + o] and (best < 0 or q.cost[c + o] < q.cost[c + best]):
                    best = o
            if best < 0:
                return -1.0
            w.F[BASE, g] = best
            cost = q.cost[c + best]
        spent = max(spent, cost) if q.norm == MAXIMUM else spent + cost
    return spent


@njit(**ONCE)
def _add_number(q, w, d, g, budget, items, width):
    """The item of a number that can move within the ball, and its column; returns the number of columns."""
    F, c, base = w.F, q.index[START, g], w.F[BASE, g]
    n = q.index[SIZES, 1]
    if base != 0.0:
        for i in range(n):
            F[ZC, i] += base * q.first[i, c]
    up, down = _reaches(q, w, d, g, budget)
    if up <= 0.0 and down <= 0.0:
        return 0
    F[UP, items], F[DOWN, items], F[MOVED, items] = up, down, abs(base)
    F[ITEM_RATE, items] = q.price[RATE, g]
    F[ITEM_JUMP, items] = q.price[JUMP, g] if base == 0.0 else 0.0
    w.I[IS_CHOICE, items], w.I[FIRST, items], w.I[COLUMN, width] = 0, width, c
    for i in range(n):
        w.Wc[i, width] = q.first[i, c]
    return 1


@njit(**ONCE)
def _add_choice(q, w, d, g, budget, items, width):
    """The item of a choice with options within the ball, and their columns; returns the number of columns."""
    c, n, begin = q.index[START, g], q.index[SIZES, 1], width
    at, old = c + np.int64(w.F[BASE, g]), c + q.option[g]
    if at != old:
        for i in range(n):
            w.F[ZC, i] += q.first[i, at] - q.first[i, old]
    most = q.radius if q.norm == MAXIMUM else budget
    for k in range(c, q.index[START, g + 1]):
        beyond = q.cost[k] - (0.0 if q.norm == MAXIMUM else q.cost[at])
        if w.mask[d, k] and k != at:
            if abs(beyond - most) <= NEAR * RELATIVE * most < math.inf:
                w.doubtful[0] = 1
            if beyond <= most * (1.0 + RELATIVE):
                w.F[COST, width], w.I[COLUMN, width] = beyond, k
                for i in range(n):
                    w.Wc[i, width] = q.first[i, k] - q.first[i, at]
                width += 1
    if width > begin:
        w.I[IS_CHOICE, items], w.I[FIRST, items] = 1, begin
    return width - begin


@njit(**INNER)
def _number_cost(q, g, change):
    if q.norm == SQUARED:
        return q.price[RATE, g] * change * change
    return q.price[RATE, g] * change + (q.price[JUMP, g] if change > 0.0 else 0.0)


@njit(**ONCE)
def _reaches(q, w, d, g, budget):
    """How far up and down from the corner a number can go, a little more than within the ball."""
    base, rate, step = w.F[BASE, g], q.price[RATE, g], q.price[STEP, g]
    moved, reach = abs(base), math.inf
    if q.radius < math.inf and rate > 0.0:
        if q.norm == SQUARED:
            reach = math.sqrt(budget / rate + moved * moved) - moved
        elif q.norm == MAXIMUM:
            reach = max(q.radius / rate - moved, 0.0)
        else:
            reach = max(budget - (q.price[JUMP, g] if moved == 0.0 else 0.0), 0.0) / rate
        reach += RELATIVE * (reach + moved)
    up, down = min(w.high[d, g] - base, reach), min(base - w.low[d, g], reach)
    if step > 0.0:
        if reach < math.inf and abs(reach / step - np.round(reach / step)) <= 10.0 * TIE:
            w.doubtful[0] = 1
        up, down = np.floor(up / step + TIE) * step, np.floor(down / step + TIE) * step
    return max(up, 0.0), max(down, 0.0)
