"""The linear program of a node over the triangles of its unstable ReLUs.

Variables are the compact columns y, with the convex envelope of what they cost, and for each ReLU that is unstable or
was split  z = a - n,  0 <= a <= u,  0 <= n <= -l;  the chord  a / u + n / -l <= 1  is a row only where it is broken
(`chords`). A condition and a rule are a row each. All is scaled to the node: columns to their reach, neurons to their
bounds, costs to what is left up to the cutoff. What it proves is in `multipliers`.
"""

from __future__ import annotations

import math

from numba import njit

from ifonly.solvers.search.kernels.layout import (
    ACTIVE,
    AIM,
    BASIC,
    BETA,
    BIAS_AT,
    BREAK,
    CHOICE,
    COLUMN_COST,
    COLUMNS,
    DOWN,
    FIRST,
    HIGH,
    INACTIVE,
    INNER,
    ITEM_DOWN,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    LAST,
    LOW,
    MAXIMUM,
    NEURON,
    NONBASIC,
    OFFSET,
    ONCE,
    PIECE,
    POSITION,
    PRICE,
    RAY,
    ROW_COUNT,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SCALE,
    SIZE,
    SIZES,
    SLANT,
    SLOPE,
    SLOT,
    SQUARED,
    UNSPLIT_SIDE,
    UP,
    WEIGHT_AT,
    WHERE,
    ZC,
    TriangleProgram,
    Y,
)
from ifonly.solvers.search.kernels.long_step import (
    ABSENT,
)
from ifonly.solvers.search.kernels.tighten import beyond_rule

NEAR = 1e-6
"""Breakpoints of a square, in units of a reach, are no nearer to each other."""
SPREADS = (1.0, 0.3, 0.1)
"""Squares: where breakpoints are on both sides of the expected value, in units of what an average change costs."""


@njit(**INNER)
def begin_relaxation(pack, person, s, r, node, cut, limit, spread, vertices):
    """Set up the program of a node at level 0, from its bounds. `spread`: squares have their breakpoints around Y, by
    so much; the costs of other norms do not depend on Y. Where there is no space, it has no columns.
    """
    F, G, width = r.F[0], r.G[0], cut.width
    neurons = _list_neurons(node, G, r.T.shape[2] - 2 * pack.index[SIZES, 0] - 2)
    if neurons < 0:
        return TriangleProgram(0, 0, 0, 0, 0, 0.0, False)
    extra = pack.index[SIZES, pack.layers] + pack.rules
    rows_at = width + 1 + 5 * neurons
    groups = 0
    for k in range(cut.items):
        groups += has_group_row(pack.norm, k, s.I)
    pairs = 2 * width if pack.norm == MAXIMUM else 0
    p = TriangleProgram(
        width,
        neurons,
        rows_at,
        extra,
        rows_at + extra + groups + pairs,
        cost_unit(pack.norm, cut, limit, s),
        vertices,
    )
    for v in range(p.variables):
        G[WHERE, v] = ABSENT
        F[SLANT, v] = 0.0
    G[SIZE, ROW_COUNT], G[SIZE, COLUMNS], G[SIZE, RAY] = 0, 0, -1
    add_columns(pack.norm, s, r, cut, p, spread)
    _add_neurons(p, node, F, G)
    for j in range(G[SIZE, COLUMNS]):
        F[PRICE, j] = 0.0
    add_group_rows(pack.norm, s, r, cut, p)
    _add_network(pack, person, s, r, node, p)
    start_values(r.T[0], F, G)
    return p


@njit(**ONCE)
def _list_neurons(node, G, most):
    """The ReLUs that have a triangle or were split; -1 when there are more than `most`."""
    count = 0
    for h in range(len(node.zl)):
        G[SLOT, h] = -1
        if node.side[h] == RULE:
            continue
        if node.zl[h] < 0.0 < node.zu[h] or node.side[h] != UNSPLIT_SIDE:
            if count >= most:
                return -1
            G[NEURON, count], G[SLOT, h] = h, count
            count += 1
    return count


@njit(**INNER)
def has_group_row(norm, k, I):
    """1 for a choice that needs a row of its own, else 0."""
    return 1 if I[ITEM_KIND, k] == CHOICE and (norm == MAXIMUM or I[FIRST, k + 1] - I[FIRST, k] > 1) else 0


@njit(**INNER)
def cost_unit(norm, cut, limit, s):
    """What costs are measured in: what is left up to the limit, or all that can be spent."""
    if limit < math.inf:
        return max(limit - cut.base_cost, 1e-300)
    if norm == MAXIMUM:
        return max(cut.ceiling - cut.base_cost, 1e-300)
    total = 0.0
    for k in range(cut.items):
        if s.I[ITEM_KIND, k] == CHOICE:
            for c in range(s.I[FIRST, k], s.I[FIRST, k + 1]):
                total += s.F[COLUMN_COST, c]
        else:
            far = s.F[OFFSET, k] + max(s.F[ITEM_RATE, k] * s.F[UP, k], s.F[ITEM_DOWN, k] * s.F[DOWN, k])
            total += far * far if norm == SQUARED else far + s.F[ITEM_JUMP, k]
    return max(total, 1e-300)


@njit(**INNER)
def new_column(v, position, F, G):
    j = G[SIZE, COLUMNS]
    G[NONBASIC, j], G[POSITION, j], G[WHERE, v] = v, position, -1 - j
    G[SIZE, COLUMNS] = j + 1


@njit(**INNER)
def add_columns(norm, s, r, cut, p, spread):
    """The compact columns, and for linf the distance beyond the base's."""
    F, G = r.F[0], r.G[0]
    for k in range(cut.items):
        for c in range(s.I[FIRST, k], s.I[FIRST, k + 1]):
            if s.I[ITEM_KIND, k] == CHOICE:
                F[SCALE, c] = 1.0
                F[BREAK, c], F[BREAK + 1, c] = 0.0, 1.0
                F[SLOPE, c] = 0.0 if norm == MAXIMUM else s.F[COLUMN_COST, c] / p.unit
                G[LAST, c] = 1
                new_column(c, 0, F, G)
            else:
                scale = max(s.F[UP, k], s.F[DOWN, k])
                F[SCALE, c] = scale
                if norm == SQUARED:
                    _square_breaks(k, c, spread, p, s.F, F, G)
                else:
                    _number_breaks(norm, k, c, p, s.F, F, G)
                zero = 0
                while F[BREAK + zero, c] < 0.0:
                    zero += 1
                new_column(c, zero, F, G)
    if norm == MAXIMUM:
        F[SCALE, p.width], F[SLOPE, p.width] = p.unit, 1.0
        F[BREAK, p.width], F[BREAK + 1, p.width], G[LAST, p.width] = 0.0, 1e6, 1
        new_column(p.width, 0, F, G)


@njit(**ONCE)
def _number_breaks(norm, k, c, p, items, F, G):
    """A number goes down, stays or goes up: the envelope of its costs."""
    last, scale = 0, F[SCALE, c]
    F[BREAK, c] = 0.0
    if items[DOWN, k] > 0.0:
        F[BREAK, c], F[BREAK + 1, c], last = -items[DOWN, k] / scale, 0.0, 1
        price = items[ITEM_DOWN, k] + items[ITEM_JUMP, k] / items[DOWN, k]
        F[SLOPE, c] = 0.0 if norm == MAXIMUM else -price * scale / p.unit
    if items[UP, k] > 0.0:
        F[BREAK + last + 1, c] = items[UP, k] / scale
        price = items[ITEM_RATE, k] + items[ITEM_JUMP, k] / items[UP, k]
        F[SLOPE + last, c] = 0.0 if norm == MAXIMUM else price * scale / p.unit
        last += 1
    G[LAST, c] = last


@njit(**ONCE)
def _square_breaks(k, c, spread, p, items, F, G):
    """Breakpoints of a square around the value in Y; a chord's slope is the derivative in its middle."""
    scale = F[SCALE, c]
    low, high, centre = -items[DOWN, k] / scale, items[UP, k] / scale, items[Y, c] / scale
    rate = items[ITEM_RATE, k] if centre >= 0.0 else items[ITEM_DOWN, k]
    wide = spread / (rate * scale)
    F[BREAK, c], last, passed = low, 0, low >= 0.0
    for turn in range(2 * len(SPREADS) + 2):
        at = high
        if turn < len(SPREADS):
            at = centre - wide * SPREADS[turn]
        elif turn < 2 * len(SPREADS):
            at = centre + wide * SPREADS[2 * len(SPREADS) - 1 - turn]
        if not passed and at >= -NEAR:
            passed = True
            if high > 0.0:
                last += 1
                F[BREAK + last, c] = 0.0
        if turn <= 2 * len(SPREADS) and F[BREAK + last, c] + NEAR < at and (at < high - NEAR or at == high):
            last += 1
            F[BREAK + last, c] = at
    if F[BREAK + last, c] < high:
        last += 1
        F[BREAK + last, c] = high
    G[LAST, c] = last
    for b in range(last):
        middle = 0.5 * (F[BREAK + b, c] + F[BREAK + b + 1, c]) * scale
        own = items[ITEM_RATE, k] if middle > 0.0 else items[ITEM_DOWN, k]
        slope = 2.0 * own * (own * abs(middle) + items[OFFSET, k]) * scale / p.unit
        F[SLOPE + b, c] = slope if middle > 0.0 else -slope


@njit(**ONCE)
def _add_neurons(p, node, F, G):
    """The variables a and n of each ReLU; the columns of a, and what scales a neuron."""
    for i in range(p.neurons):
        h, a, n = G[NEURON, i], p.width + 1 + i, p.width + 1 + p.neurons + i
        low, high, side = node.zl[h], node.zu[h], node.side[h]
        F[SCALE, a] = max(max(high, -low), 1e-300)
        F[SLOPE, a], F[SLOPE, n], G[LAST, a], G[LAST, n] = 0.0, 0.0, 1, 1
        F[BREAK, a] = max(low, 0.0) / F[SCALE, a]
        F[BREAK + 1, a] = max(high, 0.0) / F[SCALE, a]
        F[BREAK, n] = max(-high, 0.0) / F[SCALE, a]
        F[BREAK + 1, n] = max(-low, 0.0) / F[SCALE, a]
        if side == ACTIVE:
            F[BREAK, n], F[BREAK + 1, n] = 0.0, 0.0
        elif side == INACTIVE:
            F[BREAK, a], F[BREAK + 1, a] = 0.0, 0.0
        if F[BREAK + 1, a] > 0.0:
            new_column(a, 0, F, G)


@njit(**INNER)
def new_row(v, low, high, beta, F, G):
    m = G[SIZE, ROW_COUNT]
    F[BREAK, v], F[BREAK + 1, v], F[SLOPE, v], G[LAST, v] = low, high, 0.0, 1
    F[BETA, m], G[BASIC, m], G[PIECE, m], G[WHERE, v] = beta, v, 0, m
    G[SIZE, ROW_COUNT] = m + 1
    return m


@njit(**INNER)
def add_group_rows(norm, s, r, cut, p):
    """At most one option of a choice; for linf no option that is dearer than the distance."""
    T, F, G, I = r.T[0], r.F[0], r.G[0], s.I
    v = p.rows_at + p.extra
    for k in range(cut.items):
        if not has_group_row(norm, k, I):
            continue
        m = new_row(v, 0.0, math.inf, cut.base_cost / p.unit if norm == MAXIMUM else 1.0, F, G)
        for j in range(G[SIZE, COLUMNS]):
            T[m, j] = 0.0
        for c in range(I[FIRST, k], I[FIRST, k + 1]):
            T[m, -1 - G[WHERE, c]] = s.F[COLUMN_COST, c] / p.unit if norm == MAXIMUM else 1.0
        if norm == MAXIMUM:
            T[m, -1 - G[WHERE, p.width]] = -1.0
        v += 1


@njit(**ONCE)
def _add_network(pack, person, s, r, node, p):
    """The rows of neurons, rules and conditions: each layer over columns and the values of ReLUs below it."""
    E, G, index = r.E, r.G[0], pack.index
    columns, half = G[SIZE, COLUMNS], r.E.shape[0] // 2
    for layer in range(pack.layers):
        here, below = (layer % 2) * half, (1 - layer % 2) * half
        at, last = index[BIAS_AT, layer], layer == pack.layers - 1
        for i in range(index[SIZES, layer + 1]):
            row, h = here + i, at + i
            if not last and G[SLOT, h] < 0 and node.zu[h] <= 0.0:
                continue
            for j in range(columns):
                E[row, j] = 0.0
            if layer == 0:
                for c in range(p.width):
                    E[row, c] = s.Wc[i, c] * r.F[0, SCALE, c]
                E[row, columns] = s.F[ZC, i]
            else:
                _combine_below(pack, layer, i, row, below, columns, r, node, p)
            if last:
                aim, low = person.need[AIM, i], person.need[LOW, i]
                add_condition(p.rows_at + i, row, columns, max(aim, low), r)
            elif G[SLOT, h] >= 0:
                _add_neuron_row(G[SLOT, h], row, columns, r, p)
            elif node.side[h] == RULE:
                add_rule(pack, person, layer, i, row, columns, r, p)


@njit(**ONCE)
def _combine_below(pack, layer, i, row, below, columns, r, node, p):
    """Pre-activation i of a layer over the program's columns, into PE; its constant is behind them."""
    E, F, G, index = r.E, r.F[0], r.G[0], pack.index
    m, under = index[SIZES, layer], index[BIAS_AT, layer - 1]
    w = index[WEIGHT_AT, layer] + i * m
    E[row, columns] = pack.biases[index[BIAS_AT, layer] + i]
    for t in range(m):
        f, h = pack.weights[w + t], under + t
        if f == 0.0 or node.zu[h] <= 0.0:
            continue
        if G[SLOT, h] >= 0:
            a = p.width + 1 + G[SLOT, h]
            if G[WHERE, a] != ABSENT:
                E[row, -1 - G[WHERE, a]] += f * F[SCALE, a]
        else:
            for j in range(columns + 1):
                E[row, j] += f * E[below + t, j]


@njit(**ONCE)
def _add_neuron_row(i, row, columns, r, p):
    """n = a - z of ReLU i."""
    T, F, G = r.T[0], r.F[0], r.G[0]
    a, n = p.width + 1 + i, p.width + 1 + p.neurons + i
    inverse = 1.0 / F[SCALE, a]
    m = new_row(n, F[BREAK, n], F[BREAK + 1, n], -r.E[row, columns] * inverse, F, G)
    for j in range(columns):
        T[m, j] = r.E[row, j] * inverse
    if G[WHERE, a] != ABSENT:
        T[m, -1 - G[WHERE, a]] -= 1.0


@njit(**INNER)
def add_rule(pack, person, layer, i, row, columns, r, p):
    first = pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        if pack.index[RULE_LAYER, j] == layer and pack.index[RULE_PLACE, j] == i:
            low, high = person.need[LOW, first + j], person.need[HIGH, first + j]
            least = high if high >= low else low + beyond_rule(low, high, 0.0)[0]
            add_condition(p.rows_at + first + j, row, columns, least, r)


@njit(**INNER)
def add_condition(v, row, columns, aim, r):
    """A row  value - aim >= 0,  scaled to a largest coefficient of 1."""
    T, F, G = r.T[0], r.F[0], r.G[0]
    size = 0.0
    for j in range(columns):
        size = max(size, abs(r.E[row, j]))
    scale = 1.0 / size if size > 0.0 else 1.0
    F[SCALE, v] = scale
    m = new_row(v, 0.0, math.inf, (r.E[row, columns] - aim) * scale, F, G)
    for j in range(columns):
        T[m, j] = -r.E[row, j] * scale


@njit(**INNER)
def start_values(T, F, G):
    """Take out of the rows what nonbasic variables are at the start."""
    for j in range(G[SIZE, COLUMNS]):
        x = F[BREAK + G[POSITION, j], G[NONBASIC, j]]
        if x != 0.0:
            for i in range(G[SIZE, ROW_COUNT]):
                F[BETA, i] -= T[i, j] * x


@njit(**INNER)
def centre_columns(s, cut, plane, take):
    """Numbers at the solution of a plane into Y: where squares have their breakpoints."""
    for k in range(cut.items):
        c = s.I[FIRST, k]
        if s.I[ITEM_KIND, k] != CHOICE:
            s.F[Y, c] = 0.0
            if plane[c] != 0.0:
                s.F[Y, c] = min(max(take[k] / plane[c], -s.F[DOWN, k]), s.F[UP, k])
