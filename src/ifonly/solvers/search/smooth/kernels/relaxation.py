"""The linear program of a node over the lines around its activations.

Variables are the compact columns y, with the convex envelope of what they cost, and for each neuron its pre-activation
z in [l, u], which is a row, and the value a of its activation, which is a column. Lines above and below it are rows
only where the solution breaks them, drawn at the solution. Otherwise the program is that of
`search.kernels.relaxation`; what it proves is in `multipliers`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.chords import add_distances
from ifonly.solvers.search.kernels.layout import (
    AIM,
    BIAS_AT,
    BREAK,
    COLUMNS,
    HALT,
    INNER,
    LAST,
    LOW,
    MAXIMUM,
    ONCE,
    PRICE,
    RAY,
    ROW_COUNT,
    RULE,
    SCALE,
    SIZE,
    SIZES,
    SLANT,
    SLOPE,
    WEIGHT_AT,
    WHERE,
    ZC,
    TriangleProgram,
)
from ifonly.solvers.search.kernels.long_step import ABSENT, add_pair_row, drop_row, solve_long_step, value_of
from ifonly.solvers.search.kernels.relaxation import (
    add_columns,
    add_condition,
    add_group_rows,
    add_rule,
    cost_unit,
    has_group_row,
    new_column,
    new_row,
    start_values,
)
from ifonly.solvers.search.kernels.simplex import OPTIMAL
from ifonly.solvers.search.smooth.kernels.curves import bend, line, size, value
from ifonly.solvers.search.smooth.kernels.layout import GELU, GELU_TANH, LINES, SILU

LINE_ROUNDS = 8
"""How often lines are drawn at the solution of a program."""
BROKEN_SHARE = 1e-4
"""A line is broken by more than this share of how far the activation is from a line."""
BROKEN_LEAST = 1e-9
"""The same in units of the activation's size."""


@njit(**INNER)
def begin_relaxation(pack, person, s, r, node, cut, limit, spread):
    """Set up the program of a node at level 0, from its bounds, without lines. `spread`: as for ReLUs."""
    F, G, width, neurons = r.F[0], r.G[0], cut.width, len(node.zl)
    extra = pack.index[SIZES, pack.layers] + pack.rules
    rows_at = width + 1 + (2 + LINES) * neurons
    groups = 0
    for k in range(cut.items):
        groups += has_group_row(pack.norm, k, s.I)
    pairs = 2 * width if pack.norm == MAXIMUM else 0
    unit = cost_unit(pack.norm, cut, limit, s)
    p = TriangleProgram(width, neurons, rows_at, extra, rows_at + extra + groups + pairs, unit, False)
    for v in range(p.variables):
        G[WHERE, v] = ABSENT
        F[SLANT, v] = 0.0
    G[SIZE, ROW_COUNT], G[SIZE, COLUMNS], G[SIZE, RAY] = 0, 0, -1
    add_columns(pack.norm, s, r, cut, p, spread)
    _add_activations(pack, node, p, F, G)
    for j in range(G[SIZE, COLUMNS]):
        F[PRICE, j] = 0.0
    add_group_rows(pack.norm, s, r, cut, p)
    _add_network(pack, person, s, r, node, p)
    start_values(r.T[0], F, G)
    return p


@njit(**INNER)
def value_at(p, h):
    """The variable of the value of neuron h's activation."""
    return p.width + 1 + h


@njit(**INNER)
def argument_at(p, h):
    """The variable of neuron h's pre-activation."""
    return p.width + 1 + p.neurons + h


@njit(**INNER)
def lines_from(p, h):
    """The first variable of neuron h's lines: LINES / 2 upper ones, then as many lower ones."""
    return p.width + 1 + 2 * p.neurons + LINES * h


@njit(**ONCE)
def _add_activations(pack, node, p, F, G):
    """The columns of the activations' values, and what scales a neuron."""
    for h in range(p.neurons):
        if node.side[h] == RULE:
            continue
        a, z, code, alpha = value_at(p, h), argument_at(p, h), pack.code[h], pack.alpha[h]
        low, high = min(node.zl[h], node.zu[h]), max(node.zl[h], node.zu[h])
        most = size(code, alpha, low, high)
        F[SCALE, a], F[SCALE, z] = max(most, 1e-300), max(max(-low, high), 1e-300)
        left, right = value(code, alpha, low), value(code, alpha, high)  # a power may fall
        least, greatest = min(left, right), max(left, right)
        if code in (GELU, GELU_TANH, SILU):
            least, greatest = -most, F[SCALE, a]
        F[BREAK, a], F[BREAK + 1, a] = least / F[SCALE, a], greatest / F[SCALE, a]
        F[SLOPE, a], G[LAST, a] = 0.0, 1
        new_column(a, 0, F, G)


@njit(**ONCE)
def _add_network(pack, person, s, r, node, p):
    """The rows of pre-activations, rules and conditions: each layer over the values of the activations below it."""
    E, F, G, index = r.E, r.F[0], r.G[0], pack.index
    columns, row = G[SIZE, COLUMNS], 0
    for layer in range(pack.layers):
        at, last = index[BIAS_AT, layer], layer == pack.layers - 1
        for i in range(index[SIZES, layer + 1]):
            for j in range(columns):
                E[row, j] = 0.0
            if layer == 0:
                for c in range(p.width):
                    E[row, c] = s.Wc[i, c] * F[SCALE, c]
                E[row, columns] = s.F[ZC, i]
            else:
                _combine_below(pack, layer, i, row, columns, r, p)
            if last:
                add_condition(p.rows_at + i, row, columns, max(person.need[AIM, i], person.need[LOW, i]), r)
            elif node.side[at + i] == RULE:
                add_rule(pack, person, layer, i, row, columns, r, p)
            else:
                _add_argument(at + i, row, columns, r, node, p)


@njit(**ONCE)
def _combine_below(pack, layer, i, row, columns, r, p):
    """Pre-activation i of a layer over the program's columns, into E; its constant is behind them."""
    E, F, G, index = r.E, r.F[0], r.G[0], pack.index
    m, under = index[SIZES, layer], index[BIAS_AT, layer - 1]
    w = index[WEIGHT_AT, layer] + i * m
    E[row, columns] = pack.biases[index[BIAS_AT, layer] + i]
    for t in range(m):
        a = value_at(p, under + t)
        if G[WHERE, a] != ABSENT:
            E[row, -1 - G[WHERE, a]] += pack.weights[w + t] * F[SCALE, a]


@njit(**ONCE)
def _add_argument(h, row, columns, r, node, p):
    """The row of neuron h's pre-activation, which is within its bounds."""
    T, F, G, z = r.T[0], r.F[0], r.G[0], argument_at(p, h)
    inverse = 1.0 / F[SCALE, z]
    low, high = min(node.zl[h], node.zu[h]), max(node.zl[h], node.zu[h])
    m = new_row(z, low * inverse, high * inverse, r.E[row, columns] * inverse, F, G)
    for j in range(columns):
        T[m, j] = -r.E[row, j] * inverse


@njit(**INNER)
def solve_relaxation(pack, s, r, level, cut, p, most, z):
    """Solve the program of a level, adding the lines, and for linf the costs, that its solution breaks."""
    T, F, G = r.T[level], r.F[level], r.G[level]
    turn = 0
    while True:
        status, z = solve_long_step(T, F, G, most, z, s.I[HALT])
        if status != OPTIMAL:
            return status, z
        before, drawn = G[SIZE, ROW_COUNT], 0
        if turn < LINE_ROUNDS:
            drawn = _add_lines(pack, T, F, G, r.F[0], p)
        if pack.norm == MAXIMUM:
            add_distances(T, F, G, s, cut, p)
        if drawn == 0 and G[SIZE, ROW_COUNT] == before:
            return status, z
        turn += 1


@njit(**INNER)
def gap_of(pack, h, p, F, G, scales):
    """How far the program's value of neuron h's activation is above (below: negative) that of its pre-activation; 0
    where that is next to nothing. `scales`: level 0 of the program's F.
    """
    a, z = value_at(p, h), argument_at(p, h)
    if G[WHERE, a] == ABSENT or G[WHERE, z] == ABSENT:
        return 0.0
    low, high = F[BREAK, z] * scales[SCALE, z], F[BREAK + 1, z] * scales[SCALE, z]
    code, alpha = pack.code[h], pack.alpha[h]
    at = min(max(value_of(z, F, G) * scales[SCALE, z], low), high)
    gap = value_of(a, F, G) * scales[SCALE, a] - value(code, alpha, at)
    return gap if abs(gap) > BROKEN_LEAST * scales[SCALE, a] else 0.0


@njit(**ONCE)
def _add_lines(pack, T, F, G, scales, p):
    """Draw the lines that the solution breaks, at the solution. Returns how many."""
    drawn = 0
    for h in range(p.neurons):
        gap = gap_of(pack, h, p, F, G, scales)
        if gap == 0.0:
            continue
        a, z, code, alpha = value_at(p, h), argument_at(p, h), pack.code[h], pack.alpha[h]
        wide, tall = scales[SCALE, z], scales[SCALE, a]
        low, high = F[BREAK, z] * wide, F[BREAK + 1, z] * wide
        if low > high:
            continue
        at = min(max(value_of(z, F, G) * wide, low), high)
        sign = 1.0 if gap > 0.0 else -1.0
        m, shift = line(code, alpha, sign, low, high, at)
        over = sign * value_of(a, F, G) * tall - m * at - shift
        if over <= BROKEN_SHARE * bend(code, alpha, low, high) + BROKEN_LEAST * tall:
            continue
        slot = _free_slot(lines_from(p, h) + (0 if gap > 0.0 else LINES // 2), G)
        if slot < 0:
            continue
        if G[WHERE, slot] != ABSENT:
            drop_row(T, F, G, slot)
        if G[SIZE, ROW_COUNT] < T.shape[0]:
            F[SLANT, slot] = m
            add_pair_row(T, F, G, slot, shift / tall, z, m * wide / tall, a, -sign)
            drawn += 1
    return drawn


@njit(**INNER)
def _free_slot(first, G):
    """A slot without a line, or one whose line does not bind; -1 if all bind."""
    found = np.int64(-1)
    for slot in range(first, first + LINES // 2):
        if G[WHERE, slot] == ABSENT:
            return np.int64(slot)
        if G[WHERE, slot] >= 0:
            found = np.int64(slot)
    return found


@njit(**INNER)
def clean_relaxation(T, F, G, p):
    """Take out the rows of lines that do not bind."""
    for v in range(p.width + 1 + 2 * p.neurons, p.rows_at):
        if G[WHERE, v] != ABSENT and G[WHERE, v] >= 0:
            drop_row(T, F, G, v)
