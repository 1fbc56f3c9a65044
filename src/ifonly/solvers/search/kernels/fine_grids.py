"""Rounding to a fine grid: the nearest row beside the solution of a plane under l2, or of several planes.

Under l2 many rows are next to the solution, and to round every number up is not the nearest of them. So all values near
the solution are tried of up to three numbers, and one more number gains what is then missing: of some hundred rows, the
cheapest is within the gap of the bound, where rounding up would leave a gap that only splitting step by step closes.
Where several planes bind (rules between numbers), rounding up may break one of them; again the values near the solution
are tried, and the cheapest row that meets all planes is taken.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.layout import (
    BASE,
    DOWN,
    FEATURE,
    FIRST,
    INNER,
    INTEGER,
    IS_PLANE,
    ITEM_DOWN,
    ITEM_GRID_OFFSET,
    ITEM_KIND,
    ITEM_RATE,
    MAXIMUM,
    OFFSET,
    REAL,
    RHS,
    SQUARED,
    TAKEN,
    UP,
    VALUE,
    X,
    Y,
)
from ifonly.solvers.search.kernels.node import grid_offset_of
from ifonly.solvers.search.kernels.splits import WIDE_STEPS

MOST_VARIED = 3
ONE, TWO, THREE = 60, 8, 3
"""How many steps to either side are tried of one varied number, of two, of three."""
MOST_TOGETHER = 5
"""Above this many numbers between two values, a solution of several planes is not rounded by trial."""
NEAR_END = 1e-4
"""Relative gap below which rounding is what is left: then more values near the solution are tried."""
SPARE = 1e-3
"""Steps by which the values that are tried reach beyond what the planes leave: each is then checked itself."""
WHOLE = 1e-6
"""How far a solution's small integers and shares of options may be from whole numbers to count as such."""


@njit(**INNER)
def _is_wide(k, take, F, I):
    return I[ITEM_KIND, k] == INTEGER and take[k] > 0.0 and F[UP, k] + F[DOWN, k] > WIDE_STEPS


@njit(**INNER)
def _roles(items, a, take, F, I):
    """The wide integer that gains least with a step, which comes last (-1: none); and how many are varied: those whose
    steps cost least, listed in TAKEN.
    """
    last, varied = -1, 0
    for k in range(items):
        if _is_wide(k, take, F, I) and (last < 0 or abs(a[I[FIRST, k]]) < abs(a[I[FIRST, last]])):
            last = k
    for k in range(items):
        if not _is_wide(k, take, F, I) or k == last:
            continue
        place = varied
        while place > 0 and F[ITEM_RATE, k] < F[ITEM_RATE, I[TAKEN, place - 1]]:
            place -= 1
        if place < MOST_VARIED:
            varied = min(varied + 1, MOST_VARIED)
            for j in range(varied - 1, place, -1):
                I[TAKEN, j] = I[TAKEN, j - 1]
            I[TAKEN, place] = k
    return last, varied


@njit(**INNER)
def _cost(k, up, y, F):
    rate = F[ITEM_RATE, k] if up else F[ITEM_DOWN, k]
    return (rate * y + F[OFFSET, k]) ** 2 - F[OFFSET, k] ** 2


@njit(**INNER)
def _value(k, v, gain, steps, F):
    """The value nearest to where item k gains so much, or so many steps after it; below 0 where it has none."""
    grid_offset = grid_offset_of(F[ITEM_GRID_OFFSET, k], v > 0.0)
    y = grid_offset + np.rint(gain / abs(v) - grid_offset) + steps
    return y if grid_offset <= y <= (F[UP, k] if v > 0.0 else F[DOWN, k]) else -1.0


@njit(**INNER)
def _set(k, v, y, F, I):
    F[X, I[FEATURE, k]] = F[BASE, I[FEATURE, k]] + (y if v > 0.0 else -y)


@njit(**INNER)
def _to_share(items, last, varied, a, take, F, I):
    """What the last and the varied numbers must gain, where the others are as in X; what they cost there, and how much
    of that is due to rounding.
    """
    need, paid, lost = 0.0, 0.0, 0.0
    for k in range(items):
        if I[ITEM_KIND, k] != INTEGER or take[k] <= 0.0:
            continue
        mine = k == last
        for j in range(varied):
            mine |= k == I[TAKEN, j]
        v, y = a[I[FIRST, k]], abs(F[X, I[FEATURE, k]] - F[BASE, I[FEATURE, k]])
        need += take[k] - (0.0 if mine else abs(v) * y)
        if mine:
            paid += _cost(k, v > 0.0, y, F)
            lost += _cost(k, v > 0.0, y, F) - _cost(k, v > 0.0, take[k] / abs(v), F)
    return need, paid, lost


@njit(**INNER)
def round_together(items, a, take, allowance, F, I):
    """Change the wide integers of X, a realised solution, so that they gain as much together and cost less; True if
    that is possible, and it gains more than the allowance.
    """
    last, varied = _roles(items, a, take, F, I)
    if varied == 0:
        return False
    need, paid, lost = _to_share(items, last, varied, a, take, F, I)
    if lost <= allowance:
        return False
    slope = a[I[FIRST, last]]
    grid_offset = grid_offset_of(F[ITEM_GRID_OFFSET, last], slope > 0.0)
    window = ONE if varied == 1 else (TWO if varied == 2 else THREE)
    ways = 2 * window + 1
    best, chosen, closing = paid * (1.0 - 1e-12), -1, 0.0
    for t in range(ways**varied):
        left, cost, digits = need, 0.0, t
        for j in range(varied):
            k = I[TAKEN, j]
            v = a[I[FIRST, k]]
            y = _value(k, v, take[k], digits % ways - window, F)
            digits //= ways
            cost += _cost(k, v > 0.0, y, F) if y >= 0.0 else np.inf
            left -= abs(v) * y
        if cost < best:
            y = _value(
                last, slope, abs(slope) * grid_offset, max(np.ceil(left / abs(slope) - grid_offset - 1e-9), 0.0), F
            )
            cost += _cost(last, slope > 0.0, y, F)
            if y >= 0.0 and cost < best:
                best, chosen, closing = cost, t, y
    if chosen < 0:
        return False
    for j in range(varied):
        k = I[TAKEN, j]
        _set(k, a[I[FIRST, k]], _value(k, a[I[FIRST, k]], take[k], chosen % ways - window, F), F, I)
        chosen //= ways
    _set(last, slope, closing, F, I)
    return True


@njit(**INNER)
def _beside(k, steps, F, I):
    """The value of item k so many steps from the one nearest to the solution Y; infinite outside of the box."""
    y = F[Y, I[FIRST, k]]
    offset = F[ITEM_GRID_OFFSET, k]
    value = offset + np.rint(y - offset) + steps
    return value if -F[DOWN, k] <= value <= F[UP, k] else np.inf


@njit(**INNER)
def _wide_or_whole(items, F, I):
    """The items on fine grids that the solution Y puts between two values, into TAKEN; returns how many, or -1 where
    there are too many, or the rest of Y is not whole.
    """
    wide = 0
    for k in range(items):
        if I[ITEM_KIND, k] == INTEGER and F[UP, k] + F[DOWN, k] > WIDE_STEPS:
            y = F[Y, I[FIRST, k]]
            if y != 0.0 and abs(y - _beside(k, 0, F, I)) > WHOLE:
                if wide == MOST_TOGETHER:
                    return -1
                I[TAKEN, wide] = k
                wide += 1
        elif I[ITEM_KIND, k] != REAL:
            for c in range(I[FIRST, k], I[FIRST, k + 1]):
                if abs(F[Y, c] - np.rint(F[Y, c])) > WHOLE:
                    return -1
    return wide


@njit(**INNER)
def _cost_beside(norm, k, y, F):
    own = (F[ITEM_RATE, k] if y > 0.0 else -F[ITEM_DOWN, k]) * y
    if norm == SQUARED:
        return (own + F[OFFSET, k]) ** 2
    return own + (F[OFFSET, k] if norm == MAXIMUM else 0.0)


@njit(**INNER)
def _meets_rows(t, ways, wide, rows, F, I, LF, LI, A):
    """Does trial t meet every plane?"""
    for i in range(rows):
        if LI[IS_PLANE, i]:
            value, digits = LF[VALUE, i] - LF[RHS, i], t
            for j in range(wide):
                k = I[TAKEN, j]
                value += A[i, I[FIRST, k]] * _beside(k, digits % ways - ways // 2, F, I)
                digits //= ways
            if value < 0.0:
                return False
    return True


@njit(**INNER)
def _span_of_first(others, ways, wide, rows, F, I, LF, LI, A):
    """Between which values of the first item all planes can be met, where the others have theirs; a little more."""
    least, most = -np.inf, np.inf
    for i in range(rows):
        if LI[IS_PLANE, i] == 0:
            continue
        value, digits = LF[VALUE, i] - LF[RHS, i], others
        for j in range(1, wide):
            k = I[TAKEN, j]
            value += A[i, I[FIRST, k]] * _beside(k, digits % ways - ways // 2, F, I)
            digits //= ways
        v = A[i, I[FIRST, I[TAKEN, 0]]]
        if v > 0.0:
            least = max(least, -value / v - SPARE)
        elif v < 0.0:
            most = min(most, -value / v + SPARE)
        elif value < 0.0:
            return 1.0, 0.0
    return least, most


@njit(**INNER)
def round_program(norm, cut, rows, near_end, F, I, LF, LI, A):
    """Round the solution Y of several planes in X, where the rest of it is: to the cheapest values near it that meet
    all planes. False where there are none, or nothing on a fine grid.
    """
    items, width = cut.items, cut.width
    wide = _wide_or_whole(items, F, I)
    if wide <= 0:
        return False
    for i in range(rows):
        LF[VALUE, i] = 0.0
        for t in range(width):
            LF[VALUE, i] += A[i, t] * F[Y, t]
        for j in range(wide):
            c = I[FIRST, I[TAKEN, j]]
            LF[VALUE, i] -= A[i, c] * F[Y, c]
    window = ONE if wide == 1 else (TWO if wide == 2 else (THREE if wide == 3 else 1))
    if near_end and wide > 1:
        window = 4 * TWO if wide == 2 else (2 * THREE + 1 if wide == 3 else (THREE if wide == 4 else 1))
    ways = 2 * window + 1
    best, chosen = np.inf, -1
    for others in range(ways ** (wide - 1)):  # the values of all but the first item
        rest, digits = 0.0, others
        for j in range(1, wide):
            y = _beside(I[TAKEN, j], digits % ways - window, F, I)
            digits //= ways
            own = _cost_beside(norm, I[TAKEN, j], y, F)
            rest = max(rest, own) if norm == MAXIMUM else rest + own
        if rest >= best:
            continue
        least, most = _span_of_first(others, ways, wide, rows, F, I, LF, LI, A)
        if least > most:
            continue
        for t in range(others * ways, (others + 1) * ways):
            y = _beside(I[TAKEN, 0], t % ways - window, F, I)
            if y < least or y > most:
                continue
            own = _cost_beside(norm, I[TAKEN, 0], y, F)
            cost = max(own, rest) if norm == MAXIMUM else own + rest
            if cost < best and _meets_rows(t, ways, wide, rows, F, I, LF, LI, A):
                best, chosen = cost, t
    if chosen < 0:
        return False
    for j in range(wide):
        k = I[TAKEN, j]
        F[X, I[FEATURE, k]] = F[BASE, I[FEATURE, k]] + _beside(k, chosen % ways - window, F, I)
        chosen //= ways
    return True
