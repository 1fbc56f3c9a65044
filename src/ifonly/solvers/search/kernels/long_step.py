"""Dual simplex with convex piecewise-linear costs, on a dense tableau that can be copied, changed and solved again.

    x_B = beta - T x_N,   each variable between its first and its last breakpoint, with a slope of its cost in between

The cost of a variable is part of the ratio test (long steps: a variable may pass breakpoints while the dual still
rises), so a number that may go up and down is one column. It supplies multipliers, never a bound: see `relaxation`.

Arrays of one program: T; F (BETA per row, PRICE per column: the reduced cost without the variable's own; SLANT, BREAK
and SLOPE per variable); G (BASIC and PIECE per row, NONBASIC and POSITION per column, WHERE and LAST per variable).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.layout import (
    BASIC,
    BETA,
    BREAK,
    COLUMNS,
    INNER,
    LAST,
    NONBASIC,
    ONCE,
    PIECE,
    PIVOT_ROW,
    POSITION,
    PRICE,
    RATIOS,
    RAY,
    ROW_COUNT,
    SIZE,
    SLANT,
    SLOPE,
    WHERE,
)
from ifonly.solvers.search.kernels.simplex import INFEASIBLE, OPTIMAL, PIVOT, STUCK

ABSENT = 1 << 40
"""WHERE of a variable that is not in the program; otherwise its row, or -1 - its column."""
NEXT_PIECE = -2
"""Instead of an entering column: the basic variable stays, on the next piece of its cost."""
MOST_PIVOTS = 1500
FEASIBLE = 1e-9
"""By how much a variable, in units of its range, may miss its bounds."""


@njit(**INNER)
def value_of(v, F, G):
    """The value of a variable in the present solution; 0 if it is not in the program."""
    k = G[WHERE, v]
    if k == ABSENT:
        return 0.0
    return F[BETA, k] if k >= 0 else F[BREAK + G[POSITION, -1 - k], v]


@njit(**INNER)
def reduced_price(v, F, G):
    """The reduced cost of a variable without its own cost: the multiplier of its bounds."""
    k = G[WHERE, v]
    if k == ABSENT:
        return 0.0
    if k < 0:
        return F[PRICE, -1 - k]
    return F[RAY, 0] if G[SIZE, RAY] == v else 0.0


@njit(**INNER)
def move_bound(T, F, G, v, high, to, z):
    """A new upper or lower bound of a variable without cost; returns the program's value."""
    place, k = G[LAST, v] if high else np.int64(0), G[WHERE, v]
    if k < 0 and G[POSITION, -1 - k] == place:
        j = -1 - k
        change = to - F[BREAK + place, v]
        z += F[PRICE, j] * change
        for i in range(G[SIZE, ROW_COUNT]):
            F[BETA, i] -= T[i, j] * change
    F[BREAK + place, v] = to
    return z


@njit(**INNER)
def copy_program(T, F, G, variables, breaks, T2, F2, G2):
    """Copy a program of so many variables with at most so many breakpoints."""
    rows, columns = G[SIZE, ROW_COUNT], G[SIZE, COLUMNS]
    for i in range(rows):
        for j in range(columns):
            T2[i, j] = T[i, j]
        F2[BETA, i] = F[BETA, i]
        G2[BASIC, i] = G[BASIC, i]
        G2[PIECE, i] = G[PIECE, i]
    for j in range(columns):
        F2[PRICE, j] = F[PRICE, j]
        G2[NONBASIC, j] = G[NONBASIC, j]
        G2[POSITION, j] = G[POSITION, j]
    for v in range(variables):
        F2[SLANT, v] = F[SLANT, v]
        G2[WHERE, v] = G[WHERE, v]
        G2[LAST, v] = G[LAST, v]
    for b in range(breaks):
        for v in range(variables):
            F2[BREAK + b, v] = F[BREAK + b, v]
            F2[SLOPE + b, v] = F[SLOPE + b, v]
    G2[SIZE, ROW_COUNT], G2[SIZE, COLUMNS], G2[SIZE, RAY] = rows, columns, G[SIZE, RAY]


@njit(**INNER)
def add_pair_row(T, F, G, slot, constant, v, c, w, d):
    """Add the row  slot = constant + c v + d w >= 0  in terms of the present basis."""
    m = G[SIZE, ROW_COUNT]
    beta = constant + c * value_of(v, F, G) + d * value_of(w, F, G)
    for j in range(G[SIZE, COLUMNS]):
        T[m, j] = 0.0
    for turn in range(2):
        x, f = (v, c) if turn == 0 else (w, d)
        k = G[WHERE, x]
        if k == ABSENT:
            continue
        if k >= 0:
            for j in range(G[SIZE, COLUMNS]):
                T[m, j] += f * T[k, j]
        else:
            T[m, -1 - k] -= f
    F[BETA, m] = beta
    F[BREAK, slot], F[BREAK + 1, slot], F[SLOPE, slot] = 0.0, math.inf, 0.0
    G[LAST, slot] = 1
    G[BASIC, m], G[PIECE, m], G[WHERE, slot] = slot, 0, m
    G[SIZE, ROW_COUNT] = m + 1


@njit(**INNER)
def drop_row(T, F, G, v):
    """Take out the row in which a variable is basic, and the variable."""
    i, last = G[WHERE, v], G[SIZE, ROW_COUNT] - 1
    G[SIZE, ROW_COUNT] = last
    G[WHERE, v] = ABSENT
    if i != last:
        for j in range(G[SIZE, COLUMNS]):
            T[i, j] = T[last, j]
        F[BETA, i], G[BASIC, i], G[PIECE, i] = F[BETA, last], G[BASIC, last], G[PIECE, last]
        G[WHERE, G[BASIC, i]] = i


@njit(**INNER)
def drop_column(T, F, G, v):
    """Take out a nonbasic variable that is 0."""
    j, last = -1 - G[WHERE, v], G[SIZE, COLUMNS] - 1
    G[SIZE, COLUMNS] = last
    G[WHERE, v] = ABSENT
    if j != last:
        for i in range(G[SIZE, ROW_COUNT]):
            T[i, j] = T[i, last]
        F[PRICE, j], G[NONBASIC, j], G[POSITION, j] = F[PRICE, last], G[NONBASIC, last], G[POSITION, last]
        G[WHERE, G[NONBASIC, j]] = -1 - j


@njit(**INNER)
def solve_long_step(T, F, G, cut, z, halt):
    """Solve from a dual feasible basis whose value is z, or until the value reaches `cut`. Returns (OPTIMAL, INFEASIBLE
    or STUCK, value).

    INFEASIBLE where the value is at the cut, too; where there is no solution at all, the ray has been followed that
    far.
    """
    G[SIZE, RAY] = -1
    for _ in range(MOST_PIVOTS):
        leaving, up, missing = _leaving_row(T, F, G)
        if leaving < 0:
            return np.int64(OPTIMAL), z
        if halt[0] != 0:
            break
        sign = 1.0 if up else -1.0
        gap = _slope_gap(F, G, leaving, up)
        entering, z, length, theta, slope = _entering_column(T, F, G, leaving, sign, missing, gap, z)
        if entering == NEXT_PIECE:
            for j in range(G[SIZE, COLUMNS]):
                F[PRICE, j] -= sign * gap * T[leaving, j]
            G[PIECE, leaving] += 1 if up else -1
            if z >= cut:
                return np.int64(INFEASIBLE), z
            continue
        own = F[SLOPE + G[PIECE, leaving], G[BASIC, leaving]]
        if entering < 0:
            step = sign * (theta + max(1.01 * (cut - z), 0.0) / slope)
            for j in range(G[SIZE, COLUMNS]):
                F[PRICE, j] -= step * T[leaving, j]
            G[SIZE, RAY], F[RAY, 0] = G[BASIC, leaving], -step - own
            return np.int64(INFEASIBLE), max(z, 1.01 * cut)
        z += (length - theta) * slope
        _exchange(T, F, G, leaving, entering, up, sign)
        if z >= cut:
            return np.int64(INFEASIBLE), z
    return np.int64(STUCK), z


@njit(**ONCE)
def _leaving_row(T, F, G):
    """The row that breaks its piece most, measured by the length of the row: (row or -1, above?, by how much)."""
    leaving, up, missing, score = np.int64(-1), False, 0.0, 0.0
    for i in range(G[SIZE, ROW_COUNT]):
        v, piece, beta = G[BASIC, i], G[PIECE, i], F[BETA, i]
        below, above = F[BREAK + piece, v] - beta, beta - F[BREAK + piece + 1, v]
        most = max(below, above)
        if most > FEASIBLE:
            length = 1e-3
            for j in range(G[SIZE, COLUMNS]):
                length += T[i, j] * T[i, j]
            if most * most > score * length:
                score, missing, leaving, up = most * most / length, most, i, above > below
    return leaving, up, missing


@njit(**ONCE)
def _slope_gap(F, G, row, up):
    """How far the dual can go before the basic variable of a row is better off on its next piece: by how much the slope
    of its cost changes there; infinity at its last breakpoint."""
    v, piece = G[BASIC, row], G[PIECE, row]
    if up:
        return F[SLOPE + piece + 1, v] - F[SLOPE + piece, v] if piece + 1 < G[LAST, v] else math.inf
    return F[SLOPE + piece, v] - F[SLOPE + piece - 1, v] if piece > 0 else math.inf


@njit(**INNER)
def _ratio(T, F, G, row, sign, j):
    """How far the dual can go before the reduced cost of column j changes its sign; infinity where it never does."""
    t, v, p = sign * T[row, j], G[NONBASIC, j], G[POSITION, j]
    if t > PIVOT and F[BREAK + G[LAST, v], v] > F[BREAK + p, v]:
        return max((F[PRICE, j] + F[SLOPE + p, v]) / t, 0.0)
    if t < -PIVOT and F[BREAK, v] < F[BREAK + p, v]:
        return max((F[PRICE, j] + F[SLOPE + p - 1, v]) / t, 0.0)
    return math.inf


@njit(**ONCE)
def _entering_column(T, F, G, row, sign, slope, gap, z):
    """Long steps: pass breakpoints while the dual rises, up to `gap`. Returns (column, -1 for none or NEXT_PIECE where
    the gap comes first; value; where the pivot is; where it stands; the slope there)."""
    ratios, columns, theta = F[RATIOS], G[SIZE, COLUMNS], 0.0
    for j in range(columns):
        ratios[j] = _ratio(T, F, G, row, sign, j)
    while True:
        q, least, size = np.int64(-1), math.inf, 0.0
        for j in range(columns):
            least = min(least, ratios[j] + 1e-11)
        for j in range(columns):  # the largest pivot among almost equal ratios
            if ratios[j] <= least and ratios[j] < math.inf and abs(T[row, j]) > size:
                q, size = j, abs(T[row, j])
        if gap < math.inf and (q < 0 or ratios[q] >= gap):
            return np.int64(NEXT_PIECE), z + max(gap - theta, 0.0) * slope, gap, gap, slope
        if q < 0:
            return q, z, theta, theta, slope
        length, v, p, t = max(ratios[q], theta), G[NONBASIC, q], G[POSITION, q], sign * T[row, q]
        to = p + 1 if t > 0.0 else p - 1
        change = F[BREAK + to, v] - F[BREAK + p, v]
        if slope - abs(change * t) <= 0.0:
            return q, z, length, theta, slope
        z += (length - theta) * slope
        theta = length
        slope -= abs(change * t)
        for i in range(G[SIZE, ROW_COUNT]):
            F[BETA, i] -= T[i, q] * change
        G[POSITION, q] = to
        ratios[q] = _ratio(T, F, G, row, sign, q)


@njit(**ONCE)
def _exchange(T, F, G, leaving, q, up, sign):
    """Exchange the basic variable of a row, which leaves at an end of its piece, with the nonbasic one of column q."""
    v, basic, p, piece = G[NONBASIC, q], G[BASIC, leaving], G[POSITION, q], G[PIECE, leaving]
    enters = p if sign * T[leaving, q] > 0.0 else p - 1
    own, leaves = F[SLOPE + piece, basic], piece + 1 if up else piece
    f = (F[PRICE, q] + F[SLOPE + enters, v]) / T[leaving, q]
    change = (F[BETA, leaving] - F[BREAK + leaves, basic]) / T[leaving, q]
    inverse, columns, row = 1.0 / T[leaving, q], G[SIZE, COLUMNS], F[PIVOT_ROW]
    for j in range(columns):
        t = T[leaving, j]
        F[PRICE, j] -= f * t
        row[j] = t * inverse
    row[q] = 0.0
    for i in range(G[SIZE, ROW_COUNT]):
        t = T[i, q]
        if t != 0.0 and i != leaving:
            F[BETA, i] -= t * change
            for j in range(columns):
                T[i, j] -= t * row[j]
            T[i, q] = -t * inverse
    row[q] = inverse
    for j in range(columns):
        T[leaving, j] = row[j]
    F[BETA, leaving] = F[BREAK + p, v] + change
    F[PRICE, q] = -f - own
    G[BASIC, leaving], G[NONBASIC, q] = v, basic
    G[WHERE, v], G[WHERE, basic] = leaving, -1 - q
    G[PIECE, leaving], G[POSITION, q] = enters, leaves
