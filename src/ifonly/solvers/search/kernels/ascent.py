"""Lagrangian dual of a node under l2: projected Newton ascent over the multipliers of its planes (see `planes`)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.layout import (
    CHOICE,
    COLUMN_COST,
    DOWN,
    FIRST,
    GRADIENT,
    HALT,
    INNER,
    ITEM_DOWN,
    ITEM_KIND,
    ITEM_RATE,
    MULTIPLIER,
    OFFSET,
    PLANE,
    RHS,
    ROW,
    STEP,
    UP,
    Y,
)

MOST_STEPS = 60
FLAT = 1e-9
"""l2: a step ends where the dual rises this much less than at its beginning."""


@njit(**INNER)
def cost_squared(items, F, I):
    """What Y costs beyond the base, under l2."""
    cost = 0.0
    for k in range(items):
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            own = F[ITEM_RATE, k] * F[Y, c] if F[Y, c] > 0.0 else -F[ITEM_DOWN, k] * F[Y, c]
            cost += (own + F[OFFSET, k]) ** 2 - F[OFFSET, k] ** 2
        else:
            while c < I[FIRST, k + 1]:
                cost += F[COLUMN_COST, c] * F[Y, c]
                c += 1
    return cost


@njit(**INNER)
def ascend_squares(items, rows, width, F, I, LF, H, A):
    """l2: ascent of the dual  sum_i m_i b_i + sum_k min_y [cost_k(y) - (sum_i m_i a_i).y]  over m >= 0; minimiser in Y.

    The dual is concave and quadratic by pieces. Each step goes along Newton's direction for the rows in play as far as
    the dual rises and no multiplier turns negative; a row whose multiplier ends at 0 is out of play until it is broken.
    """
    m, gradient, step = LF[MULTIPLIER], LF[GRADIENT], LF[STEP]
    value = _dual_value(items, rows, width, m, F, I, LF, A)
    stalled = 0
    for _ in range(MOST_STEPS):
        if I[HALT, 0] != 0:
            return
        worst = 0.0
        for i in range(rows):
            gradient[i] = _slope(i, width, F, LF, A)
            if m[i] > 0.0 or gradient[i] > 0.0:
                worst = max(worst, abs(gradient[i]))
        if worst <= 1e-13:
            return
        for _ in range(rows if stalled == 0 else 0):
            _newton_system(items, rows, F, I, LF, H, A)
            _solve_cholesky(rows, H, step)
            left_out = False
            for i in range(rows):
                if m[i] == 0.0 and step[i] < 0.0:  # it wants in, but not with the others: leave it out of this step
                    gradient[i] = 0.0
                    left_out = True
            if not left_out or I[HALT, 0] != 0:
                break
        rise = 0.0
        for i in range(rows):
            rise += step[i] * gradient[i]
        if rise <= 0.0 or stalled > 0:  # no direction of ascent: the gradient is one
            for i in range(rows):
                gradient[i] = _slope(i, width, F, LF, A)
                step[i] = gradient[i] if m[i] > 0.0 or gradient[i] > 0.0 else 0.0
            rise = 0.0
            for i in range(rows):
                rise += step[i] * gradient[i]
        longest, blocking = math.inf, np.int64(-1)
        for i in range(rows):
            if step[i] < 0.0 and -m[i] / step[i] < longest:
                longest, blocking = -m[i] / step[i], i
        length = _rising_length(items, rows, width, rise, longest, F, I, LF, A)
        for i in range(rows):
            m[i] = max(m[i] + length * step[i], 0.0)
        if length == longest:
            m[blocking] = 0.0
        new = _dual_value(items, rows, width, m, F, I, LF, A)
        stalled = stalled + 1 if new - value <= 1e-15 * abs(new) and length != longest else 0
        value = new
        if stalled > 2:
            return


@njit(**INNER)
def _slope(i, width, F, LF, A):
    """How the dual rises with the multiplier of row i, at the minimiser in Y."""
    slope = LF[RHS, i]
    for t in range(width):
        slope -= A[i, t] * F[Y, t]
    return slope


@njit(**INNER)
def _newton_system(items, rows, F, I, LF, H, A):
    """The dual's curvature over the rows that are, or want to be, in play, into H (lower triangle); gradient: STEP."""
    m, gradient, step = LF[MULTIPLIER], LF[GRADIENT], LF[STEP]
    for i in range(rows):
        for j in range(i + 1):
            H[i, j] = 0.0
    for k in range(items):
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            y = abs(F[Y, c])
            up = F[PLANE, c] > 0.0
            reach, rate = (F[UP, k], F[ITEM_RATE, k]) if up else (F[DOWN, k], F[ITEM_DOWN, k])
            if 0.0 < y < reach:
                w = 0.5 / rate**2
                for i in range(rows):
                    if (m[i] > 0.0 or gradient[i] > 0.0) and A[i, c] != 0.0:
                        for j in range(i + 1):
                            H[i, j] += w * A[i, c] * A[j, c]
    trace = 0.0
    for i in range(rows):
        trace = max(trace, H[i, i])
    ridge = 1e-13 * trace + 1e-300
    for i in range(rows):
        active = m[i] > 0.0 or gradient[i] > 0.0
        step[i] = gradient[i] if active else 0.0
        H[i, i] += ridge
        if not active or H[i, i] <= 2.0 * ridge:
            H[i, i] = 1.0 if not active else max(H[i, i], abs(gradient[i]))
            for j in range(rows):
                if j < i:
                    H[i, j] = 0.0
                elif j > i:
                    H[j, i] = 0.0


@njit(**INNER)
def _rising_length(items, rows, width, rise, longest, F, I, LF, A):
    """How far along STEP, from the multipliers, the dual rises (first by `rise`); at most `longest`."""
    flat = FLAT * rise
    low, high, slope_low, slope_high = 0.0, min(1.0, longest), rise, 0.0
    for _ in range(60):
        slope_high = _slope_along(items, rows, width, high, F, I, LF, A)
        if abs(slope_high) <= flat or (slope_high > 0.0 and (high >= longest or high > 1e12)):
            return high
        if slope_high < 0.0:
            break
        low, slope_low = high, slope_high
        high = min(4.0 * high, longest)
    for turn in range(60):
        share = slope_low / (slope_low - slope_high) if turn % 3 < 2 else 0.5
        middle = low + share * (high - low)
        if not low < middle < high or high - low <= 1e-14 * high:
            break
        slope = _slope_along(items, rows, width, middle, F, I, LF, A)
        if abs(slope) <= flat:
            return middle
        if slope > 0.0:
            low, slope_low = middle, slope
        else:
            high, slope_high = middle, slope
    return low if low > 0.0 else high


@njit(**INNER)
def _slope_along(items, rows, width, length, F, I, LF, A):
    """The dual's slope along STEP at this length; the minimiser there is left in Y."""
    for i in range(rows):
        LF[ROW, i] = max(LF[MULTIPLIER, i] + length * LF[STEP, i], 0.0)
    _dual_value(items, rows, width, LF[ROW], F, I, LF, A)
    slope = 0.0
    for i in range(rows):
        if LF[STEP, i] != 0.0:
            slope += LF[STEP, i] * _slope(i, width, F, LF, A)
    return slope


@njit(**INNER)
def _solve_cholesky(n, H, b):
    """Solve H x = b in place, H positive definite, its lower triangle given (and overwritten)."""
    for j in range(n):
        d = H[j, j]
        for k in range(j):
            d -= H[j, k] * H[j, k]
        d = math.sqrt(d) if d > 1e-14 * H[j, j] else math.inf  # a dependent row takes no step
        H[j, j] = d
        for i in range(j + 1, n):
            s = H[i, j]
            for k in range(j):
                s -= H[i, k] * H[j, k]
            H[i, j] = s / d
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= H[i, k] * b[k]
        b[i] = s / H[i, i]
    for i in range(n - 1, -1, -1):
        s = b[i]
        for k in range(i + 1, n):
            s -= H[k, i] * b[k]
        b[i] = s / H[i, i]


@njit(**INNER)
def _dual_value(items, rows, width, m, F, I, LF, A):
    """The dual at multipliers m (beyond the base's cost); the combined plane into PLANE, the minimiser into Y."""
    a, y = F[PLANE], F[Y]
    value = 0.0
    for t in range(width):
        a[t] = 0.0
    for i in range(rows):
        if m[i] > 0.0:
            value += m[i] * LF[RHS, i]
            for t in range(width):
                a[t] += m[i] * A[i, t]
    for k in range(items):
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            w, o = a[c], F[OFFSET, k]
            reach, r = (F[UP, k], F[ITEM_RATE, k]) if w > 0.0 else (F[DOWN, k], F[ITEM_DOWN, k])
            move = min(max(abs(w) / (2.0 * r * r) - o / r, 0.0), reach)
            y[c] = move if w > 0.0 else -move
            value += (r * move + o) ** 2 - o * o - abs(w) * move
        else:
            best, where = 0.0, np.int64(-1)
            while c < I[FIRST, k + 1]:
                y[c] = 0.0
                v = F[COLUMN_COST, c] - a[c]
                if v < best:
                    best, where = v, c
                c += 1
            if where >= 0:
                y[where] = 1.0
            value += best
    return value
