"""Upper bounds of ReLUs over the ball itself, by its vertices: under additive norms, and without records.

Numbers are split into one that goes up and one that goes down, so that all columns have one direction. Costs are at
least proportional to the columns, so the points that cost at most the budget lie in a simplex: its vertices are the
base, and as far in the direction of each column as the budget goes. A ReLU of a linear function is convex, and so is
below its interpolation at the vertices,

    relu(b + d y) <= relu(b) + sum over columns c of (relu(b + d_c t_c) - relu(b)) y_c / t_c,

which is exact at the base, where a chord is farthest from the ReLU. Layer by layer, z is below a linear function of y
by what is known of the ReLUs below it. Each is a row of the relaxation where its solution breaks it.
"""

from __future__ import annotations

import math

from numba import njit

from ifonly.solvers.search.kernels.closed_forms import price_columns
from ifonly.solvers.search.kernels.layout import (
    ACTIVE,
    ADDITIVE,
    BASIC,
    BETA,
    BIAS_AT,
    BREAK,
    CHOICE,
    COLUMN,
    COLUMN_COST,
    COLUMNS,
    DOWN,
    FEATURE,
    FIRST,
    INACTIVE,
    INNER,
    ITEM_DOWN,
    ITEM_GRID_OFFSET,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    LAST,
    LOSS,
    LOST,
    NEURON,
    OFFSET,
    ONCE,
    PIECE,
    ROW_COUNT,
    RULE,
    SCALE,
    SIZE,
    SIZES,
    SLOPE,
    UNIT_LOSS,
    UP,
    WEIGHT_AT,
    WHERE,
    ZC,
    Cut,
    Scratch,
    Y,
)
from ifonly.solvers.search.kernels.long_step import ABSENT, value_of

BROKEN_VERTEX_ROW = 1e-7
FARTHER = 1.0 + 1e-9
"""Vertices are moved out by this factor, which only weakens what they say."""


@njit(**INNER)
def has_vertices(pack, s, limit):
    """Is there a simplex? Under norms that add up costs, with a cutoff; and there are no records, which have no place
    for the multipliers of its rows."""
    return pack.norm == ADDITIVE and s.B.shape[0] == 0 and limit < math.inf


@njit(**INNER)
def one_way(pack, s, r, cut, limit):
    """The node with numbers in one direction each: (buffers, cut). Those that it has where there are no vertices."""
    if not has_vertices(pack, s, limit):
        return s, cut
    F, I, Wc = r.items, r.kinds, r.columns
    for k in range(cut.items + 1):
        I[FIRST, k] = s.I[FIRST, k]
    items, width = cut.items, cut.width
    for k in range(cut.items):
        _copy_item(s, k, k, F, I)
        for c in range(s.I[FIRST, k], s.I[FIRST, k + 1]):
            _copy_column(s, c, c, F, I, Wc)
        if s.I[ITEM_KIND, k] != CHOICE and s.F[UP, k] > 0.0 and s.F[DOWN, k] > 0.0:
            _copy_item(s, k, items, F, I)
            _copy_column(s, s.I[FIRST, k], width, F, I, Wc)
            F[DOWN, k], F[UP, items] = 0.0, 0.0
            I[COLUMN, width] = s.I[FIRST, k]
            items, width = items + 1, width + 1
            I[FIRST, items] = width
    price_columns(pack.norm, items, F, I)
    for i in range(pack.index[SIZES, 1]):
        F[ZC, i] = s.F[ZC, i]
    for h in range(s.F.shape[1] + LOST):
        F[LOSS, h] = s.F[LOSS, h]
    for k in range(LOST, 0):
        F[LOSS, k] = s.F[LOSS, k]
    return Scratch(F, I, Wc, s.LF, s.LI, s.T, s.A, s.B), Cut(items, width, cut.base_cost, cut.ceiling)


@njit(**INNER)
def _copy_item(s, k, to, F, I):
    for row in (UP, DOWN, ITEM_RATE, ITEM_DOWN, ITEM_JUMP, OFFSET, ITEM_GRID_OFFSET):
        F[row, to] = s.F[row, k]
    I[FEATURE, to], I[ITEM_KIND, to] = s.I[FEATURE, k], s.I[ITEM_KIND, k]


@njit(**INNER)
def _copy_column(s, c, to, F, I, Wc):
    F[COLUMN_COST, to], I[COLUMN, to] = s.F[COLUMN_COST, c], s.I[COLUMN, c]
    for i in range(len(Wc)):
        Wc[i, to] = s.Wc[i, c]


@njit(**INNER)
def both_ways(w, s, cut, whole):
    """The solution in Y of the buffers `w`, with numbers in one direction, back into those of the node."""
    for c in range(whole.width):
        s.F[Y, c] = w.F[Y, c]
    for c in range(whole.width, cut.width):
        s.F[Y, w.I[COLUMN, c]] += w.F[Y, c]


@njit(**INNER)
def bound_by_vertices(pack, person, s, r, node, cut, limit):
    """Linear functions of the columns above and below each ReLU, into `upper`: over the columns, the constant, and
    what its terms add up to at most."""
    budget = max(limit - cut.base_cost, 0.0) * FARTHER
    _set_vertices(s, cut, budget)
    unit, last = s.F[LOSS, UNIT_LOSS] * (cut.width + 16), pack.layers - 1
    for layer in range(last):
        for i in range(pack.index[SIZES, layer + 1]):
            h = pack.index[BIAS_AT, layer] + i
            above, below = r.upper[0, h], r.upper[1, h]
            if node.side[h] == RULE or node.zu[h] <= 0.0 or node.side[h] == INACTIVE:
                _nothing(above, below, cut.width)
                continue
            if layer == 0:
                _first_functions(s, cut, i, above, below)
            else:
                _functions_above(pack, r, cut, layer, i, above, below)
            error = person.slack[h] + unit * above[cut.width + 1]
            above[cut.width] += error
            below[cut.width] -= error
            if node.zl[h] < 0.0 and node.side[h] != ACTIVE:
                _interpolate(s, cut, above)
                if below[cut.width] <= 0.0:
                    for c in range(cut.width + 1):
                        below[c] = 0.0


@njit(**INNER)
def _set_vertices(s, cut, budget):
    """How far the budget goes in the direction of each column, into Y: below 0 for what goes down."""
    F, I = s.F, s.I
    for k in range(cut.items):
        for c in range(I[FIRST, k], I[FIRST, k + 1]):
            down = I[ITEM_KIND, k] != CHOICE and F[UP, k] <= 0.0
            far = 1.0 if I[ITEM_KIND, k] == CHOICE else max(F[UP, k], F[DOWN, k])
            price = F[COLUMN_COST, c] if I[ITEM_KIND, k] == CHOICE else (F[ITEM_DOWN, k] if down else F[ITEM_RATE, k])
            if I[ITEM_KIND, k] != CHOICE:
                price += F[ITEM_JUMP, k] / far * (1.0 - 1e-12)
            far = max(budget / price, far) if price > 0.0 else math.inf
            F[Y, c] = -far if down else far


@njit(**INNER)
def _nothing(above, below, width):
    for c in range(width + 2):
        above[c], below[c] = 0.0, 0.0


@njit(**INNER)
def _first_functions(s, cut, i, above, below):
    """A pre-activation of the first layer is linear."""
    size = abs(s.F[ZC, i])
    for k in range(cut.items):
        far = 1.0 if s.I[ITEM_KIND, k] == CHOICE else max(s.F[UP, k], s.F[DOWN, k])
        for c in range(s.I[FIRST, k], s.I[FIRST, k + 1]):
            above[c], below[c] = s.Wc[i, c], s.Wc[i, c]
            size += abs(s.Wc[i, c]) * far
    above[cut.width], below[cut.width], above[cut.width + 1] = s.F[ZC, i], s.F[ZC, i], size


@njit(**INNER)
def _functions_above(pack, r, cut, layer, i, above, below):
    """A pre-activation of a later layer, by the functions of the ReLUs that it reads."""
    index, width = pack.index, cut.width
    m, under = index[SIZES, layer], index[BIAS_AT, layer - 1]
    w, bias = index[WEIGHT_AT, layer] + i * m, pack.biases[index[BIAS_AT, layer] + i]
    for c in range(width + 2):
        above[c], below[c] = 0.0, 0.0
    size = abs(bias)
    for t in range(m):
        f = pack.weights[w + t]
        if f == 0.0:
            continue
        one, other = (r.upper[0, under + t], r.upper[1, under + t])
        size += abs(f) * one[width + 1]
        if f > 0.0:
            for c in range(width + 1):
                above[c] += f * one[c]
                below[c] += f * other[c]
        else:
            for c in range(width + 1):
                above[c] += f * other[c]
                below[c] += f * one[c]
    above[width] += bias
    below[width] += bias
    above[width + 1] = size


@njit(**INNER)
def _interpolate(s, cut, above):
    """From a function above z to one above its ReLU: equal to it at the vertices."""
    b = above[cut.width]
    active = max(b, 0.0)
    for c in range(cut.width):
        t, d = s.F[Y, c], above[c]
        if abs(t) == math.inf:
            above[c] = max(d, 0.0) if t > 0.0 else min(d, 0.0)
        else:
            above[c] = (max(b + d * t, 0.0) - active) / t
    above[cut.width] = active


@njit(**ONCE)
def add_vertex_rows(T, F, G, r, p):
    """Add the rows that the solution breaks: what is above a ReLU, less its value."""
    columns = G[SIZE, COLUMNS]
    for i in range(p.neurons):
        a, n, slot = p.width + 1 + i, p.width + 1 + p.neurons + i, p.width + 1 + 4 * p.neurons + i
        if G[WHERE, a] == ABSENT or G[WHERE, n] == ABSENT or F[BREAK + 1, a] <= 0.0 or F[BREAK + 1, n] <= 0.0:
            continue
        if G[WHERE, slot] != ABSENT or G[SIZE, ROW_COUNT] >= T.shape[0]:
            continue
        above, scale = r.upper[0, r.G[0, NEURON, i]], 1.0 / r.F[0, SCALE, a]
        value = above[p.width] * scale - value_of(a, F, G)
        for c in range(p.width):
            value += above[c] * r.F[0, SCALE, c] * scale * value_of(c, F, G)
        if value >= -BROKEN_VERTEX_ROW:
            continue
        m = G[SIZE, ROW_COUNT]
        for j in range(columns):
            T[m, j] = 0.0
        for v in range(p.width + 1):
            x, f = (v, above[v] * r.F[0, SCALE, v] * scale) if v < p.width else (a, -1.0)
            k = G[WHERE, x]
            if f == 0.0 or k == ABSENT:
                continue
            if k >= 0:
                for j in range(columns):
                    T[m, j] += f * T[k, j]
            else:
                T[m, -1 - k] -= f
        F[BREAK, slot], F[BREAK + 1, slot], F[SLOPE, slot] = 0.0, math.inf, 0.0
        F[BETA, m], G[LAST, slot] = value, 1
        G[BASIC, m], G[PIECE, m], G[WHERE, slot] = slot, 0, m
        G[SIZE, ROW_COUNT] = m + 1
