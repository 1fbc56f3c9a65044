"""One node of the search: a box of the input space, cut with the ball of the present radius, and its bound.

The box is made *compact* first: features that cannot move inside box and ball are folded into the bias, and what is left
(usually a handful) is written as changes from the box's cheapest corner, its *base*. Everything after that is linear algebra
on a few columns.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.search.kernels.closed_forms import (
    ADDITIVE,
    MAXIMUM,
    OPTIONS,
    SQUARED,
    item_gains,
    least_cost,
    least_cost_linf,
    most_gain,
)

REAL, INTEGER, CHOICE = 0, 1, 2
"""Kinds of feature. Numbers are searched as changes from the factual: reals in their own unit, integers in steps."""

GRAIN = 1e-12
"""Relative outward slack of the box that a ball allows."""


@njit(**OPTIONS)
def clip_to_ball(norm, budget, kind, start, rate, jump, option_cost, lo, hi, mask, base):
    """Shrink the box (in place) to what the ball of cost `budget` allows; fill `base`, the cheapest corner.

    Returns the base's cost, or infinity when nothing is left. For linf costs are compared one by one; otherwise each feature
    may spend what the cheapest values of the others leave.
    """
    n = len(kind)
    spent = 0.0
    for g in range(n):
        if kind[g] != CHOICE:
            if lo[g] > hi[g]:
                return math.inf
            v = lo[g] if lo[g] > 0.0 else (hi[g] if hi[g] < 0.0 else 0.0)
            base[g] = v
            own = number_cost(norm, rate[g], jump[g], v)
        else:
            own = math.inf
            for c in range(start[g], start[g + 1]):
                if mask[c] and option_cost[c] < own:
                    own = option_cost[c]
                    base[g] = c - start[g]
            if own == math.inf:
                return math.inf
        spent = max(spent, own) if norm == MAXIMUM else spent + own
    if spent > budget * (1.0 + GRAIN):
        return math.inf
    if budget == math.inf:
        return spent
    for g in range(n):
        if kind[g] != CHOICE:
            own = number_cost(norm, rate[g], jump[g], base[g])
            room = (budget if norm == MAXIMUM else budget - spent + own) * (1.0 + GRAIN) + 1e-300
            if norm == SQUARED:
                reach = math.sqrt(room) / rate[g]
            elif room < jump[g]:
                reach = 0.0
            elif rate[g] > 0.0:
                reach = (room - jump[g]) / rate[g]
            else:
                reach = math.inf
            if kind[g] == INTEGER:
                reach = np.floor(reach + 1e-9)
            if hi[g] > reach:
                hi[g] = max(reach, base[g])
            if lo[g] < -reach:
                lo[g] = min(-reach, base[g])
        else:
            first = start[g]
            own = option_cost[first + int(base[g])]
            room = (budget if norm == MAXIMUM else budget - spent + own) * (1.0 + GRAIN)
            for c in range(first, start[g + 1]):
                if mask[c] and option_cost[c] > room:
                    mask[c] = 0
    return spent


@njit(**OPTIONS)
def number_cost(norm, rate, jump, change):
    if change == 0.0:
        return 0.0
    if norm == SQUARED:
        return (rate * change) ** 2
    return jump + rate * abs(change)


@njit(**OPTIONS)
def cost_of(norm, kind, start, rate, jump, option_cost, x):
    """The cost of a point: sum, sum of squares, or maximum, as the norm says."""
    total = 0.0
    for g in range(len(kind)):
        if kind[g] != CHOICE:
            own = number_cost(norm, rate[g], jump[g], x[g])
        else:
            own = option_cost[start[g] + int(x[g])]
        total = max(total, own) if norm == MAXIMUM else total + own
    return total


@njit(**OPTIONS)
def compact(norm, kind, start, rate, jump, option_cost, option, first_weight, z, lo, hi, mask, base,
            item_feature, item_start, item_numeric, item_integer, up, down, item_rate, item_jump, offset, column,
            column_cost, Wc, zc):  # fmt: skip
    """Write the live features as items over compact columns: z_1 = zc + Wc y, with y = 0 at the base.

    `z` is the first layer at the factual, `option` the factual's options. Returns the number of items.
    """
    outputs = len(z)
    items = 0
    width = 0
    item_start[0] = 0
    for i in range(outputs):
        zc[i] = z[i]
    for g in range(len(kind)):
        if kind[g] != CHOICE:
            v = base[g]
            if v != 0.0:
                c = start[g]
                for i in range(outputs):
                    zc[i] += first_weight[i, c] * v
            if hi[g] > lo[g]:
                item_feature[items] = g
                item_numeric[items] = True
                item_integer[items] = kind[g] == INTEGER
                up[items] = hi[g] - v
                down[items] = v - lo[g]
                item_rate[items] = rate[g]
                item_jump[items] = jump[g] if v == 0.0 else 0.0
                offset[items] = rate[g] * abs(v)
                column[width] = start[g]
                width += 1
                items += 1
                item_start[items] = width
        else:
            first = start[g]
            old, new = first + option[g], first + int(base[g])
            if old != new:
                for i in range(outputs):
                    zc[i] += first_weight[i, new] - first_weight[i, old]
            before = width
            for c in range(first, start[g + 1]):
                if mask[c] and c != new:
                    column[width] = c
                    column_cost[width] = option_cost[c] if norm == MAXIMUM else option_cost[c] - option_cost[new]
                    width += 1
            if width > before:
                item_feature[items] = g
                item_numeric[items] = False
                item_integer[items] = False
                up[items] = 1.0
                down[items] = 0.0
                item_rate[items] = 0.0
                item_jump[items] = 0.0
                offset[items] = 0.0
                items += 1
                item_start[items] = width
    for k in range(items):
        if item_numeric[k]:
            c = item_start[k]
            for i in range(outputs):
                Wc[i, c] = first_weight[i, column[c]]
        else:
            g = item_feature[k]
            new = start[g] + int(base[g])
            for c in range(item_start[k], item_start[k + 1]):
                for i in range(outputs):
                    Wc[i, c] = first_weight[i, column[c]] - first_weight[i, new]
    return items


@njit(**OPTIONS)
def descend(layer, v, constant, sizes, weight_at, weights, bias_at, biases, zl, zu, alpha, exact, width, Wc, zc, nu, a):
    """An upper plane over compact columns for  constant + v . relu(z_layer)  by backward substitution.

    An unstable ReLU with a positive coefficient is replaced by its chord u (z - l) / (u - l), one with a negative coefficient
    by alpha z. With `exact` the pattern is given by alpha itself (1 active, 0 inactive) and the plane is the network's own
    linear piece. `v` is used up; `nu` keeps the coefficient that each ReLU had; `a` receives the plane. Returns its constant.
    """
    while True:
        at = bias_at[layer]
        n = sizes[layer + 1]
        for j in range(n):
            h = at + j
            c = v[j]
            nu[h] = c
            if c == 0.0:
                continue
            if exact:
                v[j] = c * alpha[h]
            elif zl[h] >= 0.0:
                pass
            elif zu[h] <= 0.0:
                v[j] = 0.0
            elif c > 0.0:
                s = c * zu[h] / (zu[h] - zl[h])
                v[j] = s
                constant -= s * zl[h]
            else:
                v[j] = c * alpha[h]
        if layer == 0:
            for t in range(width):
                a[t] = 0.0
            for j in range(n):
                c = v[j]
                if c != 0.0:
                    constant += c * zc[j]
                    row = Wc[j]
                    for t in range(width):
                        a[t] += c * row[t]
            return constant
        m = sizes[layer]
        W = weights[weight_at[layer] : weight_at[layer] + n * m].reshape(n, m)
        lower_v = nu[bias_at[layer - 1] : bias_at[layer - 1] + m]  # the next v is built in place of the next nu
        for t in range(m):
            lower_v[t] = 0.0
        for j in range(n):
            c = v[j]
            if c != 0.0:
                constant += c * biases[at + j]
                row = W[j]
                for t in range(m):
                    lower_v[t] += c * row[t]
        for t in range(m):
            v[t] = lower_v[t]
        layer -= 1


@njit(**OPTIONS)
def bound_hidden(hidden_layers, sizes, weight_at, weights, bias_at, biases, slack, zl, zu, alpha, norm, budget, items,
                 item_start, item_numeric, up, down, item_rate, item_jump, offset, column_cost, Wc, zc, nu, a, v, G, e,
                 taken):  # fmt: skip
    """Tighten zl and zu (in place) for every ReLU that is still unstable, over box and ball, layer by layer."""
    width = item_start[items]
    unstable = 0
    for layer in range(hidden_layers):
        at = bias_at[layer]
        m = sizes[layer]
        for i in range(sizes[layer + 1]):
            h = at + i
            if zl[h] >= 0.0 or zu[h] <= 0.0:
                continue
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                if layer == 0:
                    row = Wc[i]
                    constant = sign * zc[i]
                    total = item_gains(row, sign, norm, items, item_start, item_numeric, up, down, item_rate, item_jump,
                                       column_cost, G, e)  # fmt: skip
                else:
                    W = weights[weight_at[layer] + i * m : weight_at[layer] + (i + 1) * m]
                    for t in range(m):
                        v[t] = sign * W[t]
                    constant = descend(layer - 1, v, sign * biases[h], sizes, weight_at, weights, bias_at, biases, zl, zu,
                                       alpha, False, width, Wc, zc, nu, a)  # fmt: skip
                    total = item_gains(a, 1.0, norm, items, item_start, item_numeric, up, down, item_rate, item_jump,
                                       column_cost, G, e)  # fmt: skip
                high = constant + slack[h] + total
                if high > 0.0:
                    high = constant + slack[h] + most_gain(norm, items, budget, total, G, e, offset, taken)
                if side == 0:
                    zu[h] = min(zu[h], high)
                    if zu[h] <= 0.0:
                        break
                else:
                    zl[h] = max(zl[h], -high)
            if zl[h] < 0.0 < zu[h]:
                alpha[h] = 1.0 if zu[h] > -zl[h] else 0.0
                unstable += 1
    return unstable


@njit(**OPTIONS)
def forward(x, kind, start, option, first_weight, z, sizes, layers, weight_at, weights, bias_at, biases, act, g):
    """Scores of a point: fills the pre-activations `act` and the conditions' values `g`."""
    n = sizes[1]
    last = layers == 1
    for i in range(n):
        s = z[i]
        if last:
            g[i] = s
        else:
            act[i] = s
    out = g if last else act
    for f in range(len(kind)):
        if kind[f] != CHOICE:
            if x[f] != 0.0:
                c = start[f]
                for i in range(n):
                    out[i] += first_weight[i, c] * x[f]
        else:
            new = int(x[f])
            if new != option[f]:
                c, d = start[f] + new, start[f] + option[f]
                for i in range(n):
                    out[i] += first_weight[i, c] - first_weight[i, d]
    for layer in range(1, layers):
        m, n = sizes[layer], sizes[layer + 1]
        before = bias_at[layer - 1]
        W = weights[weight_at[layer] : weight_at[layer] + n * m].reshape(n, m)
        for i in range(n):
            s = biases[bias_at[layer] + i]
            row = W[i]
            for j in range(m):
                s += row[j] * max(act[before + j], 0.0)
            if layer == layers - 1:
                g[i] = s
            else:
                act[bias_at[layer] + i] = s
