"""A node of the branch and bound: a box of the input space, intersected with the ball of the present radius.

The box is made *compact* first: features that cannot move inside box and ball are folded into the bias, and what is
left (usually a handful) is written as changes from the box's cheapest corner, its *base*. Everything after that is
linear algebra on a few columns.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.layout import (
    BASE,
    CHOICE,
    COLUMN,
    COLUMN_COST,
    DOWN,
    FEATURE,
    FIRST,
    GRID_OFFSET,
    INNER,
    INTEGER,
    ITEM_DOWN,
    ITEM_GRID_OFFSET,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    JUMP,
    KIND,
    MAXIMUM,
    OFFSET,
    RATE,
    RATE_DOWN,
    SQUARED,
    START,
    UP,
    ZC,
)

GRAIN = 1e-12
"""Relative outward slack of the box that a ball allows."""


@njit(**INNER)
def value_below(v, grid_offset):
    """The largest change of an integer that is not above v."""
    if grid_offset == 0.0:
        return np.floor(v)
    k = np.floor(v - grid_offset + 1e-9)
    return 0.0 if k == -1.0 and v >= 0.0 else k + grid_offset


@njit(**INNER)
def next_value(v, grid_offset, way):
    """The change of an integer that comes after v (way 1.0) or before it (-1.0)."""
    if grid_offset == 0.0:
        return v + way
    if v == 0.0:
        return grid_offset if way > 0.0 else grid_offset - 1.0
    k = np.rint(v - grid_offset) + way
    return 0.0 if (k == 0.0 and way > 0.0) or (k == -1.0 and way < 0.0) else k + grid_offset


@njit(**INNER)
def grid_offset_of(grid_offset, up):
    """How far the first value is, that way."""
    return grid_offset if up or grid_offset == 0.0 else 1.0 - grid_offset


@njit(**INNER)
def number_cost(norm, price, g, change):
    """What changing number g costs."""
    if change == 0.0:
        return 0.0
    own = price[RATE, g] * change if change > 0.0 else -price[RATE_DOWN, g] * change
    return own * own if norm == SQUARED else price[JUMP, g] + own


@njit(**INNER)
def cost_of(pack, cost, x):
    """The cost of a point: sum, sum of squares, or maximum, as the norm says."""
    total = 0.0
    index, price = pack.index, pack.price
    for g in range(price.shape[1]):
        if index[KIND, g] != CHOICE:
            own = number_cost(pack.norm, price, g, x[g])
        else:
            own = cost[index[START, g] + int(x[g])]
        total = max(total, own) if pack.norm == MAXIMUM else total + own
    return total


@njit(**INNER)
def _reach(norm, rate, jump, allowance, whole, grid_offset):
    """How far a number can go for so much cost; `grid_offset` is that of its direction."""
    if norm == SQUARED:
        reach = math.sqrt(allowance) / rate
    elif allowance < jump:
        reach = 0.0
    elif rate > 0.0:
        reach = (allowance - jump) / rate
    else:
        reach = math.inf
    return max(np.floor(reach - grid_offset + 1e-9) + grid_offset, 0.0) if whole else reach


@njit(**INNER)
def clip_to_ball(pack, person, budget, lo, hi, mask, base):
    """Shrink the box (in place) to what the ball of cost `budget` allows; fill `base`, the cheapest corner.

    Returns the base's cost, or infinity when nothing is left. For linf costs are compared one by one; otherwise
    each feature may spend what the cheapest values of the others leave.
    """
    norm, index, price, cost = pack.norm, pack.index, pack.price, person.cost
    n = price.shape[1]
    spent = 0.0
    for g in range(n):
        if index[KIND, g] != CHOICE:
            if lo[g] > hi[g]:
                return math.inf
            v = lo[g] if lo[g] > 0.0 else (hi[g] if hi[g] < 0.0 else 0.0)
            base[g] = v
            own = number_cost(norm, price, g, v)
        else:
            own = math.inf
            for c in range(index[START, g], index[START, g + 1]):
                if mask[c] and cost[c] < own:
                    own = cost[c]
                    base[g] = c - index[START, g]
            if own == math.inf:
                return math.inf
        spent = max(spent, own) if norm == MAXIMUM else spent + own
    if spent > budget * (1.0 + GRAIN):
        return math.inf
    if budget == math.inf:
        return spent
    for g in range(n):
        if index[KIND, g] != CHOICE:
            own = number_cost(norm, price, g, base[g])
            allowance = (budget if norm == MAXIMUM else budget - spent + own) * (1.0 + GRAIN) + 1e-300
            whole, grid_offset = index[KIND, g] == INTEGER, person.box[GRID_OFFSET, g]
            reach = _reach(norm, price[RATE, g], price[JUMP, g], allowance, whole, grid_offset)
            if hi[g] > reach:
                hi[g] = max(reach, base[g])
            reach = _reach(
                norm, price[RATE_DOWN, g], price[JUMP, g], allowance, whole, grid_offset_of(grid_offset, False)
            )
            if lo[g] < -reach:
                lo[g] = min(value_below(-reach, grid_offset) if whole else -reach, base[g])
        else:
            first = index[START, g]
            own = cost[first + int(base[g])]
            allowance = (budget if norm == MAXIMUM else budget - spent + own) * (1.0 + GRAIN)
            for c in range(first, index[START, g + 1]):
                if mask[c] and cost[c] > allowance:
                    mask[c] = 0
    return spent


@njit(**INNER)
def _set_reach(k, base, low, high, whole, grid_offset, F):
    """How far item k goes up and down from its base, and its grid offset: without one, values are whole steps apart."""
    F[ITEM_GRID_OFFSET, k] = grid_offset if base == 0.0 else 0.0
    F[UP, k] = np.rint(high - base) if whole and F[ITEM_GRID_OFFSET, k] == 0.0 else high - base
    F[DOWN, k] = np.rint(base - low) if whole and F[ITEM_GRID_OFFSET, k] == 0.0 else base - low


@njit(**INNER)
def compact(pack, person, lo, hi, mask, F, I, Wc):
    """Write the live features as items over compact columns: z_1 = ZC + Wc y, with y = 0 at the base. Returns their
    number.
    """
    index, price, first_weight = pack.index, pack.price, pack.first
    base, zc = F[BASE], F[ZC]
    outputs = len(person.z)
    items, width = 0, 0
    I[FIRST, 0] = 0
    for i in range(outputs):
        zc[i] = person.z[i]
    for g in range(price.shape[1]):
        first = index[START, g]
        before = width
        if index[KIND, g] != CHOICE:
            v = base[g]
            if v != 0.0:
                for i in range(outputs):
                    zc[i] += first_weight[i, first] * v
            if hi[g] > lo[g]:
                _set_reach(items, v, lo[g], hi[g], index[KIND, g] == INTEGER, person.box[GRID_OFFSET, g], F)
                F[ITEM_RATE, items] = price[RATE, g]
                F[ITEM_DOWN, items] = price[RATE_DOWN, g]
                F[ITEM_JUMP, items] = price[JUMP, g] if v == 0.0 else 0.0
                F[OFFSET, items] = price[RATE, g] * v if v > 0.0 else -price[RATE_DOWN, g] * v
                I[COLUMN, width] = first
                for i in range(outputs):
                    Wc[i, width] = first_weight[i, first]
                width += 1
        else:
            old, new = first + person.option[g], first + int(base[g])
            if old != new:
                for i in range(outputs):
                    zc[i] += first_weight[i, new] - first_weight[i, old]
            for c in range(first, index[START, g + 1]):
                if mask[c] and c != new:
                    I[COLUMN, width] = c
                    F[COLUMN_COST, width] = person.cost[c]
                    if pack.norm != MAXIMUM:
                        F[COLUMN_COST, width] -= person.cost[new]
                    for i in range(outputs):
                        Wc[i, width] = first_weight[i, c] - first_weight[i, new]
                    width += 1
            if width > before:
                _set_reach(items, 0.0, 0.0, 1.0, True, 0.0, F)
                F[ITEM_RATE, items] = 0.0
                F[ITEM_DOWN, items] = 0.0
                F[ITEM_JUMP, items] = 0.0
                F[OFFSET, items] = 0.0
        if width > before:
            I[FEATURE, items] = g
            I[ITEM_KIND, items] = index[KIND, g]
            items += 1
            I[FIRST, items] = width
    return items


@njit(**INNER)
def farthest_cost(items, F, I):
    """linf: a distance within which every point of the box lies."""
    far = 0.0
    for k in range(items):
        if I[ITEM_KIND, k] != CHOICE:
            far = max(far, F[OFFSET, k] + max(F[ITEM_RATE, k] * F[UP, k], F[ITEM_DOWN, k] * F[DOWN, k]))
        else:
            for c in range(I[FIRST, k], I[FIRST, k + 1]):
                far = max(far, F[COLUMN_COST, c])
    return far * (1.0 + 1e-9)
