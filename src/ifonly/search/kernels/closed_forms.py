"""Closed forms: the most that a linear function can gain within a budget, and the least cost of a needed gain.

A linear function a.y over the features of a node is a sum of per-feature *items*. Item k can gain at most G[k], and gaining
g of it costs at least

    g / e[k]                        (additive norms: l0, l1 and their mixtures)
    (g / e[k] + o[k])^2 - o[k]^2    (l2, in squared distance; o[k]: how far the item has moved already)

where e[k] is the item's best ratio of gain to cost over its values (see `item_gains`). That is a concave majorant of what the
feature can really do, exact for numbers under l1 and l2. Both forms are then a greedy pass (additive) or one
multiplier (l2), and any multiplier gives a valid bound:

    most_gain(budget)  = max sum g_k   subject to  sum cost_k(g_k) <= budget,  g_k <= G_k
    least_cost(need)   = min sum cost  subject to  sum g_k >= need,            g_k <= G_k

linf is not a sum: there, the ball is a box, and `least_cost_linf` looks for the smallest t at which every feature that moves
as far as cost t allows reaches the need.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

ADDITIVE, SQUARED, MAXIMUM = 0, 1, 2
"""How costs become a distance: their sum, the root of their sum, their maximum."""

OPTIONS = dict(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})


@njit(**OPTIONS)
def item_gains(a, sign, norm, items, item_start, item_numeric, up, down, rate, jump, column_cost, G, e):
    """Fill G and e of every item for the linear function sign * a.y over the node's compact columns."""
    total = 0.0
    for k in range(items):
        first = item_start[k]
        if item_numeric[k]:
            v = sign * a[first]
            reach = up[k] if v > 0.0 else down[k]
            v = abs(v)
            gain = v * reach
            if norm == ADDITIVE:
                price = jump[k] + rate[k] * reach
                ratio = gain / price if price > 0.0 else math.inf
            else:
                ratio = v / rate[k]
        else:
            gain = 0.0
            ratio = 0.0
            for c in range(first, item_start[k + 1]):
                v = sign * a[c]
                if v > 0.0:
                    gain = max(gain, v)
                    price = column_cost[c]
                    if norm == SQUARED:
                        price = math.sqrt(price)
                    ratio = max(ratio, v / price if price > 0.0 else math.inf)
        if gain <= 0.0:
            gain = 0.0
            ratio = 0.0
        G[k] = gain
        e[k] = ratio
        total += gain
    return total


@njit(**OPTIONS)
def most_gain(norm, items, budget, total, G, e, o, taken):
    """The largest sum of gains within the budget. `total` is the sum of G: the answer when everything is affordable."""
    if norm == MAXIMUM or budget == math.inf:
        return total
    if norm == SQUARED:
        return _most_gain_squared(items, budget, total, G, e, o)
    gained = 0.0
    for k in range(items):
        taken[k] = G[k] <= 0.0
        if e[k] == math.inf:  # free
            gained += G[k]
            taken[k] = True
    while True:
        best = -1
        for k in range(items):
            if not taken[k] and (best < 0 or e[k] > e[best]):
                best = k
        if best < 0:
            return gained
        reach = e[best] * budget
        if reach <= G[best]:
            return gained + reach
        gained += G[best]
        budget -= G[best] / e[best]
        taken[best] = True


@njit(**OPTIONS)
def _most_gain_squared(items, budget, total, G, e, o):
    """Any x > 0 gives the bound  budget / x + sum max_g [g - cost(g) / x];  a few steps to the x that spends the budget."""
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


@njit(**OPTIONS)
def least_cost(norm, items, need, G, e, o, take):
    """The least cost (additive: sum; l2: squared) of gaining `need`; infinity when it is out of reach.

    `take[k]` is what item k gains at the optimum.
    """
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
        return _least_cost_squared(items, need, G, e, o, take)
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


@njit(**OPTIONS)
def _least_cost_squared(items, need, G, e, o, take):
    """Any x >= 0 gives the bound  x * need - sum max_g [x g - cost(g)];  Newton, kept inside a bracket, on sum g = need."""
    square, offsets = 0.0, 0.0
    for k in range(items):
        if G[k] > take[k]:
            square += e[k] * e[k]
            offsets += e[k] * o[k]
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


@njit(**OPTIONS)
def gain_linf(a, t, items, item_start, item_numeric, item_integer, up, down, rate, offset, column_cost, take):
    """The gain of a.y when every feature moves as far as cost t allows (integers to whole steps)."""
    total = 0.0
    for k in range(items):
        first = item_start[k]
        gain = 0.0
        if item_numeric[k]:
            v = a[first]
            reach = up[k] if v > 0.0 else down[k]
            room = (t - offset[k]) / rate[k]
            if item_integer[k]:
                room = np.floor(room + 1e-9)
            reach = min(reach, room)
            if reach > 0.0:
                gain = abs(v) * reach
        else:
            for c in range(first, item_start[k + 1]):
                if column_cost[c] <= t * (1.0 + 1e-12) and a[c] > gain:
                    gain = a[c]
        take[k] = gain
        total += gain
    return total


@njit(**OPTIONS)
def least_cost_linf(a, need, low, high, items, item_start, item_numeric, item_integer, up, down, rate, offset,
                    column_cost, take):  # fmt: skip
    """The smallest t in [low, high] at which the gain reaches the need (a lower end of it: safe as a bound)."""
    if gain_linf(a, low, items, item_start, item_numeric, item_integer, up, down, rate, offset, column_cost, take) >= need:
        return low
    if gain_linf(a, high, items, item_start, item_numeric, item_integer, up, down, rate, offset, column_cost, take) < need:
        return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if gain_linf(a, middle, items, item_start, item_numeric, item_integer, up, down, rate, offset, column_cost,
                     take) >= need:  # fmt: skip
            high = middle
        else:
            low = middle
        if high - low <= 1e-15 * high:
            break
    gain_linf(a, high, items, item_start, item_numeric, item_integer, up, down, rate, offset, column_cost, take)
    return low
