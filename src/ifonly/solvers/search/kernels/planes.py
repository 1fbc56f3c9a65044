"""Lagrangian bound of a box under several linear inequalities that its favourable points satisfy.

Rows are planes  c + a.y >= 0  over the node's compact columns: upper planes of each condition (for more than one
choice of slopes), and one for each ReLU that was split on the way (its pre-activation is >= 0, or <= 0). Any
combination of rows with multipliers >= 0 is again such a plane, so the bound is the closed form of the combination;
the multipliers come from the dual simplex (sums and maxima) or from a Newton ascent of the dual (squares).

Each row has two constants: CONSTANT, which every favourable point satisfies, and a slightly smaller one for which
the program is solved, so that its solution survives rounding as a point.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.ascent import ascend_squares, cost_squared
from ifonly.solvers.search.kernels.closed_forms import solve_plane
from ifonly.solvers.search.kernels.layout import (
    AT_UPPER,
    BASIC,
    BASIC_VALUE,
    CHOICE,
    COLUMN_COST,
    CONSTANT,
    DOWN,
    FIRST,
    HALT,
    INNER,
    IS_PLANE,
    ITEM_DOWN,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    LP_COLUMN,
    LP_ITEM,
    MAXIMUM,
    MULTIPLIER,
    NONBASIC,
    OFFSET,
    PLANE,
    REACH,
    REDUCED,
    RHS,
    ROBUST_SHIFT,
    ROW,
    SQUARED,
    UP,
    UPPER,
    VALUE,
    Y,
)
from ifonly.solvers.search.kernels.simplex import FEASIBLE, INFEASIBLE, OPTIMAL, STUCK, add_row, reoptimise

ASCENT_MARGIN = 1e-11
"""l2: the ascent ends this near to its rows (scaled to the box), so it aims at as much more."""


@njit(**INNER)
def begin_program(norm, items, F, I, LF, LI):
    """Set up a node's program: a variable in [0, 1] for each direction of a number and each option; returns their
    number.

    linf has one more variable, the distance beyond the base's.
    """
    count = 0
    for k in range(items):
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            for way in range(2):
                reach, rate = (F[UP, k], F[ITEM_RATE, k]) if way == 0 else (F[DOWN, k], F[ITEM_DOWN, k])
                if reach > 0.0:
                    LI[LP_COLUMN, count] = c
                    LI[LP_ITEM, count] = k
                    LF[REACH, count] = reach if way == 0 else -reach
                    LF[REDUCED, count] = 0.0 if norm == MAXIMUM else F[ITEM_JUMP, k] + rate * reach
                    count += 1
        else:
            while c < I[FIRST, k + 1]:
                LI[LP_COLUMN, count] = c
                LI[LP_ITEM, count] = k
                LF[REACH, count] = 1.0
                LF[REDUCED, count] = 0.0 if norm == MAXIMUM else F[COLUMN_COST, c]
                count += 1
                c += 1
    if norm == MAXIMUM:
        LI[LP_COLUMN, count] = -1
        LI[LP_ITEM, count] = -1
        LF[REACH, count] = 0.0
        LF[REDUCED, count] = 1.0
        count += 1
    for j in range(count):
        LI[NONBASIC, j] = j
        LI[AT_UPPER, j] = 0
        LF[UPPER, j] = 1.0 if LI[LP_COLUMN, j] >= 0 else 1e6
    return count


@njit(**INNER)
def add_plane(norm, constant, shift, robust_shift, robust, rows, columns, width, s):
    """Add the row  constant + PLANE.y >= 0,  scaled to a largest coefficient of 1.

    `robust`: the program is solved for `shift` more, and for what its own solution may miss; otherwise for points that
    satisfy the row and no more. A point that may be returned meets it by `robust_shift` more.
    """
    LF, LI, A, a = s.LF, s.LI, s.A, s.F[PLANE]
    size = 0.0
    for j in range(columns):
        c = LI[LP_COLUMN, j]
        v = a[c] * LF[REACH, j] if c >= 0 else 0.0
        LF[ROW, j] = v
        size = max(size, abs(v))
    scale = 1.0 / size if size > 0.0 else 1.0
    for j in range(columns):
        LF[ROW, j] *= scale
    needed = (shift if robust else 0.0) - constant
    if norm != SQUARED:
        margin = 2.0 * FEASIBLE if size > 0.0 and robust else 0.0  # a row without columns constrains no solution
        add_row(needed * scale + margin, rows, columns, LF, LI, s.T)
    for t in range(width):
        A[rows, t] = a[t] * scale
    LF[CONSTANT, rows] = constant * scale
    LF[RHS, rows] = needed * scale + (ASCENT_MARGIN if norm == SQUARED and robust else 0.0)
    LF[ROBUST_SHIFT, rows] = robust_shift * scale
    LF[MULTIPLIER, rows] = 0.0
    LI[IS_PLANE, rows] = 1


@njit(**INNER)
def _price(j, k, F, I, LF, LI):
    if I[ITEM_KIND, k] == CHOICE:
        return F[COLUMN_COST, LI[LP_COLUMN, j]]
    reach = LF[REACH, j]
    return F[ITEM_RATE, k] * reach if reach > 0.0 else -F[ITEM_DOWN, k] * reach


@njit(**INNER)
def _add_group_rows(norm, items, rows, columns, base_cost, F, I, LF, LI, T):
    """Add rows that the present solution breaks: one option per choice, and for linf cost <= distance. Returns the new
    count.
    """
    _read_solution(rows, columns, LF, LI)
    x = LF[VALUE]
    distance = base_cost + x[columns - 1] if norm == MAXIMUM else 0.0
    for k in range(items):
        if rows >= T.shape[0]:
            break
        total, cost = 0.0, 0.0
        for j in range(columns):
            if LI[LP_ITEM, j] == k:
                total += x[j]
                cost += x[j] * _price(j, k, F, I, LF, LI)
        broken = 0
        if I[ITEM_KIND, k] == CHOICE and total > 1.0 + 1e-9:
            broken = 1
        elif norm == MAXIMUM and cost + F[OFFSET, k] > distance * (1.0 + 1e-12) + 1e-18:
            broken = 2
        if broken:
            size = 1.0
            if broken == 2:
                size = 0.0
                for j in range(columns):
                    if LI[LP_ITEM, j] == k:
                        size = max(size, _price(j, k, F, I, LF, LI))
            for j in range(columns):
                LF[ROW, j] = 0.0
                if LI[LP_ITEM, j] == k:
                    LF[ROW, j] = -1.0 if broken == 1 else -_price(j, k, F, I, LF, LI) / size
            rhs = -1.0
            if broken == 2:
                LF[ROW, columns - 1] = 1.0 / size
                rhs = (F[OFFSET, k] - base_cost) / size
            add_row(rhs, rows, columns, LF, LI, T)
            LI[IS_PLANE, rows] = 0
            rows += 1
    return rows


@njit(**INNER)
def _read_solution(rows, columns, LF, LI):
    for j in range(columns):
        v = LI[NONBASIC, j]
        if v < columns:
            LF[VALUE, v] = LF[UPPER, v] if LI[AT_UPPER, j] else 0.0
    for i in range(rows):
        v = LI[BASIC, i]
        if v < columns:
            LF[VALUE, v] = LF[BASIC_VALUE, i]


@njit(**INNER)
def _read_multipliers(rows, columns, failed, LF, LI, T):
    """Multipliers of the rows: of the optimum, or (failed >= 0) of the row that shows that there is no point at all."""
    m = LF[MULTIPLIER]
    for i in range(rows):
        m[i] = 0.0
    sign = 1.0
    if failed >= 0:
        sign = 1.0 if LF[BASIC_VALUE, failed] < 0.0 else -1.0
        v = LI[BASIC, failed]
        if v >= columns:
            m[v - columns] = 1.0
    for j in range(columns):
        v = LI[NONBASIC, j]
        if v >= columns:
            m[v - columns] = max(LF[REDUCED, j] if failed < 0 else sign * T[failed, j], 0.0)


@njit(**INNER)
def combine(rows, width, F, LF, LI, A):
    """The combination of the plane rows with their multipliers, into PLANE; returns its constant."""
    a = F[PLANE]
    constant = 0.0
    for t in range(width):
        a[t] = 0.0
    for i in range(rows):
        m = LF[MULTIPLIER, i]
        if LI[IS_PLANE, i] and m > 0.0:
            constant += m * LF[CONSTANT, i]
            for t in range(width):
                a[t] += m * A[i, t]
    return constant


@njit(**INNER)
def combine_robust(rows, width, F, LF, LI, A):
    """`combine`, for points that may be returned."""
    constant = combine(rows, width, F, LF, LI, A)
    for i in range(rows):
        if LI[IS_PLANE, i] and LF[MULTIPLIER, i] > 0.0:
            constant -= LF[MULTIPLIER, i] * LF[ROBUST_SHIFT, i]
    return constant


@njit(**INNER)
def solve_program(norm, cut, rows, columns, s):
    """Bound the box under all rows. Returns (bound, rows, found); the combined plane is in PLANE, the solution in Y.

    `found` is OPTIMAL when Y is the program's solution, INFEASIBLE when it has none; the bound is valid either way.
    """
    F, I, LF, LI, T, A = s.F, s.I, s.LF, s.LI, s.T, s.A
    items, width, base_cost, ceiling = cut.items, cut.width, cut.base_cost, cut.ceiling
    found = np.int64(OPTIMAL)
    if norm == SQUARED:
        ascend_squares(items, rows, width, F, I, LF, T, A)
        for i in range(rows):
            value = -LF[RHS, i]
            for t in range(width):
                value += A[i, t] * F[Y, t]
            if value < -0.5 * ASCENT_MARGIN:
                found = np.int64(STUCK)
    bound, planes, loose = 0.0, rows, False
    if norm == SQUARED and found == OPTIMAL:  # feasible; optimal only if its cost is the bound
        constant = combine(rows, width, F, LF, LI, A)
        bound = solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I)
        loose = base_cost + cost_squared(items, F, I) > bound * (1.0 + 1e-8)
    if found == STUCK:  # l2: is there a point at all? The linear program over the same rows knows, and finds one
        constant = combine(rows, width, F, LF, LI, A)
        bound = solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I)
        begin_program(norm, items, F, I, LF, LI)
        for i in range(rows):
            for j in range(columns):
                LF[ROW, j] = A[i, LI[LP_COLUMN, j]] * LF[REACH, j]
            add_row(LF[RHS, i], i, columns, LF, LI, T)
    if norm != SQUARED or found == STUCK:
        status, rows, failed = _optimise(norm, items, rows, columns, base_cost, F, I, LF, LI, T)
        if norm != SQUARED or status == INFEASIBLE:
            found = status
        _read_multipliers(rows, columns, failed, LF, LI, T)
        _read_y(rows, columns, width, F, LF, LI)
    constant = combine(rows, width, F, LF, LI, A)
    bound = max(bound, solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I))
    if norm != SQUARED and found == INFEASIBLE and bound < ceiling:
        # no point can be returned from here, but some may be possible: bound those
        begin_program(norm, items, F, I, LF, LI)
        _add_possible_rows(rows, columns, LF, LI, T, A)
        status, rows, failed = _optimise(norm, items, rows, columns, base_cost, F, I, LF, LI, T)
        _read_multipliers(rows, columns, failed, LF, LI, T)
        constant = combine(rows, width, F, LF, LI, A)
        bound = max(bound, solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I))
    return bound, planes if norm == SQUARED else rows, np.int64(STUCK) if loose else found


@njit(**INNER)
def _read_y(rows, columns, width, F, LF, LI):
    """The linear program's solution into Y."""
    _read_solution(rows, columns, LF, LI)
    for t in range(width):
        F[Y, t] = 0.0
    for j in range(columns):
        c = LI[LP_COLUMN, j]
        if c >= 0:
            F[Y, c] += LF[REACH, j] * min(max(LF[VALUE, j], 0.0), 1.0)


@njit(**INNER)
def _add_possible_rows(rows, columns, LF, LI, T, A):
    """The planes once more, with the constants that every favourable point satisfies; other rows say nothing."""
    for i in range(rows):
        for j in range(columns):
            c = LI[LP_COLUMN, j]
            LF[ROW, j] = A[i, c] * LF[REACH, j] if LI[IS_PLANE, i] and c >= 0 else 0.0
        add_row(-LF[CONSTANT, i] if LI[IS_PLANE, i] else -1.0, i, columns, LF, LI, T)


@njit(**INNER)
def _optimise(norm, items, rows, columns, base_cost, F, I, LF, LI, T):
    """Solve the linear program, adding group rows that its solution breaks. Returns (status, rows, failed row)."""
    status, failed = np.int64(STUCK), np.int64(-1)
    for _ in range(40):
        status, failed = reoptimise(rows, columns, LF, LI, T, 200)
        if status != OPTIMAL or I[HALT, 0] != 0:
            break
        more = _add_group_rows(norm, items, rows, columns, base_cost, F, I, LF, LI, T)
        if more == rows:
            break
        rows = more
    return status, rows, failed
