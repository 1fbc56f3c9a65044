"""Continuous knapsacks in closed form: the most that a linear function gains within a budget, and the least cost of a
needed gain.

A linear function a.y over the features of a node is a sum of per-feature *items*. Item k can gain at most G[k], and
gaining g of it costs at least

    g / e[k]                        (additive norms: l0, l1 and their mixtures)
    (g / e[k] + o[k])^2 - o[k]^2    (l2, in squared distance; o[k]: how far the item has moved already)

where e[k] is the item's best ratio of gain to cost over its values (see `item_gains`). That is a concave majorant
of what the feature can really do, exact for numbers under l1 and l2. Both forms are then a greedy pass (additive)
or one multiplier (l2), and any multiplier gives a valid bound:

    most_gain(budget)  = max sum g_k   subject to  sum cost_k(g_k) <= budget,  g_k <= G_k
    least_cost(need)   = min sum cost  subject to  sum g_k >= need,            g_k <= G_k

linf is not a sum: there, the ball is a box, and `least_cost_linf` looks for the smallest t at which every feature
that moves as far as cost t allows reaches the need.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.layout import (
    ADDITIVE,
    CHOICE,
    COLUMN_COST,
    DOWN,
    FIRST,
    GAIN,
    GAIN_DOWN,
    GAIN_UP,
    INNER,
    INTEGER,
    ITEM_DOWN,
    ITEM_GRID_OFFSET,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    MAXIMUM,
    OFFSET,
    RATIO,
    RATIO_DOWN,
    RATIO_UP,
    SQUARED,
    TAKE,
    TAKEN,
    UP,
)
from ifonly.solvers.search.kernels.node import grid_offset_of

MOST_STEPS = 2.0**20
MOST_TIMES = 1024.0
STEP_SLACK = 1e-3
"""Of `whole_need`: with fewer steps and multiples than these, what rounding does to a whole multiple is far below this
part of a step."""


@njit(**INNER)
def price_columns(norm, items, F, I):
    """Fill what `item_gains` needs of each column, once for a node."""
    for k in range(items):
        for c in range(I[FIRST, k], I[FIRST, k + 1]):
            if I[ITEM_KIND, k] != CHOICE:
                F[GAIN_UP, c], F[GAIN_DOWN, c] = F[UP, k], F[DOWN, k]
                F[RATIO_UP, c] = _ratio(norm, F[UP, k], F[ITEM_RATE, k], F[ITEM_JUMP, k])
                F[RATIO_DOWN, c] = _ratio(norm, F[DOWN, k], F[ITEM_DOWN, k], F[ITEM_JUMP, k])
            else:
                price = math.sqrt(F[COLUMN_COST, c]) if norm == SQUARED else F[COLUMN_COST, c]
                F[GAIN_UP, c], F[GAIN_DOWN, c] = 1.0, 0.0
                F[RATIO_UP, c], F[RATIO_DOWN, c] = 1.0 / price if price > 0.0 else math.inf, 0.0


@njit(**INNER)
def _ratio(norm, reach, rate, jump):
    """The best ratio of a number's movement, one way, to its cost."""
    if reach <= 0.0:
        return 0.0
    price = jump + rate * reach if norm == ADDITIVE else rate
    if price <= 0.0:
        return math.inf
    return (reach if norm == ADDITIVE else 1.0) / price


@njit(**INNER)
def item_gains(a, sign, items, F, I):
    """Fill GAIN and RATIO of every item for the linear function sign * a.y; returns the sum of gains."""
    G, e, first, total = F[GAIN], F[RATIO], I[FIRST], 0.0
    for c in range(first[items]):  # of each column, without branches
        v = sign * a[c]
        gain = max(v * F[GAIN_UP, c], -v * F[GAIN_DOWN, c])
        ratio = max(v * F[RATIO_UP, c], -v * F[RATIO_DOWN, c])
        G[c] = gain if gain > 0.0 else 0.0
        e[c] = ratio if gain > 0.0 else 0.0  # 0 times an infinite ratio is none
    for k in range(items):  # in place: an item's columns are not before it
        gain, ratio = G[first[k]], e[first[k]]
        for c in range(first[k] + 1, first[k + 1]):
            gain, ratio = max(gain, G[c]), max(ratio, e[c])
        G[k], e[k] = gain, ratio
        total += gain
    return total


@njit(**INNER)
def most_gain(norm, items, budget, total, F, I):
    """The largest sum of gains within the budget. `total` is the sum of all: the answer when all is affordable."""
    if norm == MAXIMUM or budget == math.inf:
        return total
    if norm == SQUARED:
        return _most_gain_squared(items, budget, total, F)
    G, e, taken = F[GAIN], F[RATIO], I[TAKEN]
    gained = 0.0
    for k in range(items):
        taken[k] = 1 if G[k] <= 0.0 else 0
        if e[k] == math.inf:  # free
            gained += G[k]
            taken[k] = 1
    while True:
        best = -1
        for k in range(items):
            if taken[k] == 0 and (best < 0 or e[k] > e[best]):
                best = k
        if best < 0:
            return gained
        reach = e[best] * budget
        if reach <= G[best]:
            return gained + reach
        gained += G[best]
        budget -= G[best] / e[best]
        taken[best] = 1


@njit(**INNER)
def _most_gain_squared(items, budget, total, F):
    """Any x > 0 gives the bound  budget / x + sum max_g [g - cost(g) / x];  a few steps to the x that spends the
    budget.
    """
    G, e, o = F[GAIN], F[RATIO], F[OFFSET]
    square, offsets = 0.0, 0.0
    for k in range(items):
        if G[k] > 0.0 and e[k] < math.inf:
            square += e[k] * e[k]
            offsets += o[k] * o[k]
    if square == 0.0:
        return total
    x = 2.0 * math.sqrt((budget + offsets) / square)
    best = total
    for _ in range(4):
        spent, square, offsets, value = 0.0, 0.0, 0.0, 0.0
        for k in range(items):
            if G[k] <= 0.0:
                continue
            if e[k] == math.inf:
                value += G[k]
                continue
            g = e[k] * (0.5 * x * e[k] - o[k])
            if g <= 0.0:
                continue
            if g >= G[k]:
                cost = (G[k] / e[k] + o[k]) ** 2 - o[k] * o[k]
                spent += cost
                value += G[k] - cost / x
            else:
                cost = (g / e[k] + o[k]) ** 2 - o[k] * o[k]
                value += g - cost / x
                square += e[k] * e[k]
                offsets += o[k] * o[k]
        best = min(best, value + budget / x)
        if square == 0.0 or budget + offsets - spent <= 0.0:
            break
        step = 2.0 * math.sqrt((budget + offsets - spent) / square)
        if abs(step - x) <= 1e-9 * x:
            break
        x = step
    return best


@njit(**INNER)
def least_cost(norm, items, need, F):
    """The least cost (additive: sum; l2: squared) of gaining `need`; infinity when it is out of reach.

    TAKE of item k is what it gains at the optimum.
    """
    G, e, take = F[GAIN], F[RATIO], F[TAKE]
    total = 0.0
    for k in range(items):
        take[k] = 0.0
        total += G[k]
    if need <= 0.0:
        return 0.0
    if total < need:
        return math.inf
    for k in range(items):
        if e[k] == math.inf and need > 0.0:
            take[k] = min(G[k], need)
            need -= take[k]
    if need <= 0.0:
        return 0.0
    if norm == SQUARED:
        return _least_cost_squared(items, need, F)
    cost = 0.0
    while need > 0.0:
        best = -1
        for k in range(items):
            if take[k] == 0.0 and G[k] > 0.0 and (best < 0 or e[k] > e[best]):
                best = k
        if best < 0:
            return math.inf if need > 1e-12 * total else cost
        take[best] = min(G[best], need)
        need -= take[best]
        cost += take[best] / e[best]
    return cost


@njit(**INNER)
def _least_cost_squared(items, need, F):
    """Any x >= 0 gives the bound  x * need - sum max_g [x g - cost(g)];  Newton, kept inside a bracket, on sum g =
    need.
    """
    G, e, o, take = F[GAIN], F[RATIO], F[OFFSET], F[TAKE]
    square, offsets = 0.0, 0.0
    for k in range(items):
        if G[k] > 0.0 and e[k] < math.inf:
            square += e[k] * e[k]
            offsets += e[k] * o[k]
    if square == 0.0:
        return 0.0
    x = 2.0 * (need + offsets) / square
    low, high = 0.0, math.inf
    bound = 0.0
    for _ in range(60):
        gained, slope, value = 0.0, 0.0, x * need
        for k in range(items):
            if G[k] <= 0.0 or e[k] == math.inf:
                continue
            g = e[k] * (0.5 * x * e[k] - o[k])
            if g <= 0.0:
                take[k] = 0.0
                continue
            if g >= G[k]:
                g = G[k]
            else:
                slope += 0.5 * e[k] * e[k]
            take[k] = g
            gained += g
            value -= x * g - ((g / e[k] + o[k]) ** 2 - o[k] * o[k])
        bound = max(bound, value)
        if abs(gained - need) <= 1e-13 * need:
            break
        if gained < need:
            low = x
        else:
            high = x
        step = x + (need - gained) / slope if slope > 0.0 else (2.0 * x if high == math.inf else 0.5 * (low + high))
        if step <= low or step >= high:
            step = 2.0 * x if high == math.inf else 0.5 * (low + high)
        if step == x:
            break
        x = step
    return bound


@njit(**INNER)
def gain_linf(a, t, items, F, I):
    """The gain of a.y when every feature moves as far as cost t allows (integers to whole steps)."""
    total = 0.0
    for k in range(items):
        c = I[FIRST, k]
        gain = 0.0
        if I[ITEM_KIND, k] != CHOICE:
            v = a[c]
            reach, rate = (F[UP, k], F[ITEM_RATE, k]) if v > 0.0 else (F[DOWN, k], F[ITEM_DOWN, k])
            far = (t - F[OFFSET, k]) / rate
            if I[ITEM_KIND, k] == INTEGER:
                grid_offset = grid_offset_of(F[ITEM_GRID_OFFSET, k], v > 0.0)
                far = np.floor(far - grid_offset + 1e-9) + grid_offset
            reach = min(reach, far)
            if reach > 0.0:
                gain = abs(v) * reach
        else:
            while c < I[FIRST, k + 1]:
                if F[COLUMN_COST, c] <= t * (1.0 + 1e-12) and a[c] > gain:
                    gain = a[c]
                c += 1
        F[TAKE, k] = gain
        total += gain
    return total


@njit(**INNER)
def least_cost_linf(a, need, low, high, items, F, I):
    """The smallest t in [low, high] at which the gain reaches the need (a lower end of it: safe as a bound)."""
    if gain_linf(a, low, items, F, I) >= need:
        return low
    high *= 1.0 + 1e-9
    if gain_linf(a, high, items, F, I) < need:
        return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        if high - low <= 1e-15 * high or middle <= low or middle >= high:
            break
        if gain_linf(a, middle, items, F, I) >= need:
            high = middle
        else:
            low = middle
    gain_linf(a, high, items, F, I)
    return low


@njit(**INNER)
def whole_need(a, need, items, F, I):
    """What a.y must reach where it must reach `need`: more than that, if it can only be whole multiples of something.

    So it is when all that it depends on are integers, in steps, and every coefficient is a whole multiple of the least.
    Without this, equal coefficients leave half a step open that no split of an integer closes.
    """
    least = math.inf
    for k in range(items):
        first = I[FIRST, k]
        if I[ITEM_KIND, k] == INTEGER:
            if a[first] != 0.0:
                if max(F[UP, k], F[DOWN, k]) > MOST_STEPS or F[ITEM_GRID_OFFSET, k] != 0.0:
                    return need
                least = min(least, abs(a[first]))
        else:
            for t in range(first, I[FIRST, k + 1]):
                if a[t] != 0.0:
                    return need
    if least == math.inf or not 0.0 < need < MOST_STEPS * least:
        return need
    for k in range(items):
        times = a[I[FIRST, k]] / least
        if I[ITEM_KIND, k] == INTEGER and (times != np.rint(times) or abs(times) > MOST_TIMES):
            return need
    return max(need, math.ceil(need / least - STEP_SLACK) * least * (1.0 - 1e-12))


@njit(**INNER)
def solve_plane(norm, a, constant, base_cost, ceiling, items, F, I):
    """The least total cost of a point of the box with  constant + a.y >= 0."""
    need = whole_need(a, -constant, items, F, I)
    if norm == MAXIMUM:
        return least_cost_linf(a, need, base_cost, ceiling, items, F, I)
    item_gains(a, 1.0, items, F, I)
    return base_cost + least_cost(norm, items, need, F)
