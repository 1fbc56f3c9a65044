"""Solving a relaxation: chords, and for linf the costs of numbers, become rows when the solution breaks them."""

from __future__ import annotations

from numba import njit

from ifonly.solvers.search.kernels.layout import (
    BREAK,
    CHOICE,
    DOWN,
    FIRST,
    HALT,
    INNER,
    ITEM_DOWN,
    ITEM_KIND,
    ITEM_RATE,
    MAXIMUM,
    OFFSET,
    ONCE,
    ROW_COUNT,
    SCALE,
    SIZE,
    SLANT,
    UP,
    WHERE,
    Y,
)
from ifonly.solvers.search.kernels.long_step import (
    ABSENT,
    add_pair_row,
    drop_column,
    drop_row,
    solve_long_step,
    value_of,
)
from ifonly.solvers.search.kernels.simplex import OPTIMAL
from ifonly.solvers.search.kernels.vertices import add_vertex_rows

BROKEN_ROW = 1e-8


@njit(**INNER)
def solve_relaxation(pack, s, r, level, cut, p, most, z):
    """Solve the program of a level, adding the chords, and for linf the costs, that its solution breaks."""
    T, F, G = r.T[level], r.F[level], r.G[level]
    while True:
        status, z = solve_long_step(T, F, G, most, z, s.I[HALT])
        if status != OPTIMAL:
            return status, z
        before = G[SIZE, ROW_COUNT]
        _add_chords(T, F, G, p)
        if p.vertices:
            add_vertex_rows(T, F, G, r, p)
        if pack.norm == MAXIMUM:
            add_distances(T, F, G, s, cut, p)
        if G[SIZE, ROW_COUNT] == before:
            return status, z


@njit(**INNER)
def has_triangle(i, p, F, G):
    """May ReLU i of the program still be on both sides?"""
    a, n = p.width + 1 + i, p.width + 1 + p.neurons + i
    return G[WHERE, a] != ABSENT and G[WHERE, n] != ABSENT and F[BREAK + 1, a] > 0.0 and F[BREAK + 1, n] > 0.0


@njit(**INNER)
def triangle_gap(i, p, F, G):
    """How far ReLU i is from being on one side only, in units of its bounds."""
    if not has_triangle(i, p, F, G):
        return 0.0
    return min(value_of(p.width + 1 + i, F, G), value_of(p.width + 1 + p.neurons + i, F, G))


@njit(**ONCE)
def _add_chords(T, F, G, p):
    for i in range(p.neurons):
        if not has_triangle(i, p, F, G):
            continue
        a, n = p.width + 1 + i, p.width + 1 + p.neurons + i
        up, down = F[BREAK + 1, a], F[BREAK + 1, n]
        slant = up / (up + down)
        if slant * down - (1.0 - slant) * value_of(a, F, G) - slant * value_of(n, F, G) >= -BROKEN_ROW:
            continue
        slot = p.width + 1 + 2 * p.neurons + i
        if G[WHERE, slot] != ABSENT and G[WHERE, slot] < 0:  # an older chord that binds keeps its slot
            slot += p.neurons
        if G[WHERE, slot] != ABSENT and G[WHERE, slot] < 0:
            continue
        if G[WHERE, slot] != ABSENT:
            drop_row(T, F, G, slot)
        if G[SIZE, ROW_COUNT] < T.shape[0]:
            F[SLANT, slot] = slant
            add_pair_row(T, F, G, slot, slant * down, a, slant - 1.0, n, -slant)


@njit(**INNER)
def add_distances(T, F, G, s, cut, p):
    """linf: no number may cost more than the distance."""
    far = p.width
    for k in range(cut.items):
        if s.I[ITEM_KIND, k] == CHOICE:
            continue
        c = s.I[FIRST, k]
        x = value_of(c, F, G)
        rate = (s.F[ITEM_RATE, k] if x > 0.0 else -s.F[ITEM_DOWN, k]) * F[SCALE, c] / p.unit
        over = (s.F[OFFSET, k] - cut.base_cost) / p.unit
        slot = p.variables - 2 * p.width + 2 * c + (0 if x > 0.0 else 1)
        broken = rate * x + over - value_of(far, F, G) > BROKEN_ROW
        if broken and G[WHERE, slot] == ABSENT and G[SIZE, ROW_COUNT] < T.shape[0]:
            add_pair_row(T, F, G, slot, -over, far, 1.0, c, -rate)


@njit(**INNER)
def clean_relaxation(T, F, G, p):
    """Take out the rows of chords and vertices that do not bind, and columns that are fixed at 0."""
    for v in range(p.width + 1 + 2 * p.neurons, p.width + 1 + 5 * p.neurons):
        if G[WHERE, v] != ABSENT and G[WHERE, v] >= 0:
            drop_row(T, F, G, v)
    for v in range(p.width + 1, p.width + 1 + 2 * p.neurons):
        if G[WHERE, v] != ABSENT and G[WHERE, v] < 0 and F[BREAK + 1, v] <= 0.0:
            drop_column(T, F, G, v)


@njit(**INNER)
def read_columns(s, r, cut, p):
    """The solution of level 0 into Y."""
    F, G = r.F[0], r.G[0]
    for k in range(cut.items):
        for c in range(s.I[FIRST, k], s.I[FIRST, k + 1]):
            x = value_of(c, F, G) * F[SCALE, c]
            low, high = (0.0, 1.0) if s.I[ITEM_KIND, k] == CHOICE else (-s.F[DOWN, k], s.F[UP, k])
            s.F[Y, c] = min(max(x, low), high)
