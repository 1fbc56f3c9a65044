"""Dual simplex with bounds, small and dense, to which rows can be added: it supplies multipliers, never a bound.

    min c.x   subject to   A x >= b,   0 <= x <= u        with c >= 0, so that the slack basis is dual feasible

Only the multipliers of the rows are taken from it; the bound itself is the closed form of the aggregated row, which
is valid for any multipliers >= 0. The tableau keeps the nonbasic columns only:  x_B[i] + sum_j T[i, j] x_N[j] =
constant. Variables 0..columns-1 are the program's own, columns + i is the slack of row i.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.layout import AT_UPPER, BASIC, BASIC_VALUE, INNER, NONBASIC, REDUCED, ROW, UPPER

FEASIBLE = 1e-11
PIVOT = 1e-9
OPTIMAL, INFEASIBLE, STUCK = 0, 1, 2


@njit(**INNER)
def add_row(b, rows, columns, LF, LI, T):
    """Append the row  LF[ROW] . x >= b  in terms of the present basis."""
    coefficients, u = LF[ROW], LF[UPPER]
    value = -b
    for j in range(columns):
        v = LI[NONBASIC, j]
        T[rows, j] = 0.0
        if v < columns:
            c = coefficients[v]
            T[rows, j] = -c
            if LI[AT_UPPER, j]:
                value += c * u[v]
    for i in range(rows):
        v = LI[BASIC, i]
        if v < columns:
            c = coefficients[v]
            if c != 0.0:
                value += c * LF[BASIC_VALUE, i]
                for j in range(columns):
                    T[rows, j] += c * T[i, j]
    LI[BASIC, rows] = columns + rows
    LF[BASIC_VALUE, rows] = value
    u[columns + rows] = math.inf


@njit(**INNER)
def reoptimise(rows, columns, LF, LI, T, most_pivots):
    """Dual simplex to optimality. Returns (OPTIMAL | INFEASIBLE | STUCK, the row that proves infeasibility)."""
    values, u, d = LF[BASIC_VALUE], LF[UPPER], LF[REDUCED]
    for _ in range(most_pivots):
        r, worst, goal = np.int64(-1), FEASIBLE, 0.0
        for i in range(rows):
            if -values[i] > worst:
                r, worst, goal = i, -values[i], 0.0
            over = values[i] - u[LI[BASIC, i]]
            if over > worst:
                r, worst, goal = i, over, u[LI[BASIC, i]]
        if r < 0:
            return np.int64(OPTIMAL), r
        sign = 1.0 if values[r] < goal else -1.0
        q, ratio, size = np.int64(-1), math.inf, 0.0
        for j in range(columns):
            t = sign * T[r, j]
            if (t < -PIVOT and LI[AT_UPPER, j] == 0) or (t > PIVOT and LI[AT_UPPER, j] == 1):
                this = abs(d[j]) / abs(t)
                if this < ratio - 1e-12 or (this <= ratio + 1e-12 and abs(t) > size):
                    q, ratio, size = j, min(this, ratio), abs(t)
        if q < 0:
            return np.int64(INFEASIBLE), r
        _pivot(r, q, goal, rows, columns, LF, LI, T)
    return np.int64(STUCK), np.int64(-1)


@njit(**INNER)
def _pivot(r, q, goal, rows, columns, LF, LI, T):
    """Exchange the basic variable of row r, which leaves at `goal`, with the nonbasic variable of column q."""
    values, d = LF[BASIC_VALUE], LF[REDUCED]
    p = T[r, q]
    step = (values[r] - goal) / p
    for i in range(rows):
        values[i] -= T[i, q] * step
    entering, leaving = LI[NONBASIC, q], LI[BASIC, r]
    values[r] = (LF[UPPER, entering] if LI[AT_UPPER, q] else 0.0) + step
    inverse = 1.0 / p
    for j in range(columns):
        T[r, j] *= inverse
    T[r, q] = inverse
    for i in range(rows):
        f = T[i, q]
        if i != r and f != 0.0:
            for j in range(columns):
                T[i, j] -= f * T[r, j]
            T[i, q] = -f * inverse
    f = d[q]
    if f != 0.0:
        for j in range(columns):
            d[j] -= f * T[r, j]
    d[q] = -f * inverse
    LI[BASIC, r], LI[NONBASIC, q] = entering, leaving
    LI[AT_UPPER, q] = 1 if goal > 0.0 else 0
