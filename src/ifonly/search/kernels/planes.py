"""Several planes at once: the bound of a box under all inequalities that its favourable points satisfy.

Rows are planes  c + a.y >= 0  over the node's compact columns: upper planes of each condition (for more than one
choice of slopes), and one for each ReLU that was split on the way (its pre-activation is >= 0, or <= 0). Any
combination of rows with multipliers >= 0 is again such a plane, so the bound is the closed form of the combination;
the multipliers come from the dual simplex (sums and maxima) or from a Newton ascent of the dual (squares).

Each row has two constants: CONSTANT, which every favourable point satisfies, and a slightly smaller one for which
the program is solved, so that its solution survives rounding as a point.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.search.kernels.closed_forms import solve_plane
from ifonly.search.kernels.layout import (
    AT_UPPER,
    BASIC,
    BASIC_VALUE,
    CHOICE,
    COLUMN_COST,
    CONSTANT,
    DOWN,
    FIRST,
    GRADIENT,
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
    ROW,
    SQUARED,
    STEP,
    SURELY,
    UP,
    UPPER,
    VALUE,
    Y,
)
from ifonly.search.kernels.simplex import FEASIBLE, INFEASIBLE, OPTIMAL, STUCK, add_row, reoptimise

MOST_STEPS = 60
FLAT = 1e-9
"""l2: a step ends where the dual rises this much less than at its beginning."""
ASCENT_MARGIN = 1e-11
"""l2: the ascent ends this near to its rows (scaled to the box), so it is asked for as much more."""


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
            for side in range(2):
                reach, rate = (F[UP, k], F[ITEM_RATE, k]) if side == 0 else (F[DOWN, k], F[ITEM_DOWN, k])
                if reach > 0.0:
                    LI[LP_COLUMN, count] = c
                    LI[LP_ITEM, count] = k
                    LF[REACH, count] = reach if side == 0 else -reach
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
def add_plane(norm, constant, shift, surely, rows, columns, width, F, LF, LI, T, A):
    """Add the row  constant + PLANE.y >= 0,  scaled to a largest coefficient of 1.

    The program is solved for `shift` more; `surely` more is what a point needs that may be returned.
    """
    a = F[PLANE]
    size = 0.0
    for j in range(columns):
        c = LI[LP_COLUMN, j]
        v = a[c] * LF[REACH, j] if c >= 0 else 0.0
        LF[ROW, j] = v
        size = max(size, abs(v))
    scale = 1.0 / size if size > 0.0 else 1.0
    for j in range(columns):
        LF[ROW, j] *= scale
    if norm != SQUARED:
        room = 2.0 * FEASIBLE if size > 0.0 else 0.0  # a row without columns is not the solution's business
        add_row((shift - constant) * scale + room, rows, columns, LF, LI, T)
    for t in range(width):
        A[rows, t] = a[t] * scale
    LF[CONSTANT, rows] = constant * scale
    LF[RHS, rows] = (shift - constant) * scale + (ASCENT_MARGIN if norm == SQUARED else 0.0)
    LF[SURELY, rows] = surely * scale
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
    """Add rows that the present solution breaks: one option a choice, and for linf cost <= distance. Returns the new
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
def combine_surely(rows, width, F, LF, LI, A):
    """`combine`, for points that may be returned."""
    constant = combine(rows, width, F, LF, LI, A)
    for i in range(rows):
        if LI[IS_PLANE, i] and LF[MULTIPLIER, i] > 0.0:
            constant -= LF[MULTIPLIER, i] * LF[SURELY, i]
    return constant


@njit(**INNER)
def solve_program(norm, items, rows, columns, width, base_cost, ceiling, F, I, LF, LI, T, A):
    """Bound the box under all rows. Returns (bound, rows, found); the combined plane is in PLANE, the solution in Y.

    `found` is OPTIMAL when Y is the program's solution, INFEASIBLE when it has none; the bound is valid either way.
    """
    found = np.int64(OPTIMAL)
    if norm == SQUARED:
        _ascend_squares(items, rows, width, F, I, LF, T, A)
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
        loose = base_cost + _cost_squared(items, F, I) > bound * (1.0 + 1e-8)
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
        _read_solution(rows, columns, LF, LI)
        for t in range(width):
            F[Y, t] = 0.0
        for j in range(columns):
            c = LI[LP_COLUMN, j]
            if c >= 0:
                F[Y, c] += LF[REACH, j] * min(max(LF[VALUE, j], 0.0), 1.0)
    constant = combine(rows, width, F, LF, LI, A)
    bound = max(bound, solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I))
    if norm != SQUARED and found == INFEASIBLE and bound < ceiling:
        # no point can be returned from here, but some may be possible: bound those
        begin_program(norm, items, F, I, LF, LI)
        for i in range(rows):
            for j in range(columns):
                c = LI[LP_COLUMN, j]
                LF[ROW, j] = A[i, c] * LF[REACH, j] if LI[IS_PLANE, i] and c >= 0 else 0.0
            add_row(-LF[CONSTANT, i] if LI[IS_PLANE, i] else -1.0, i, columns, LF, LI, T)
        status, rows, failed = _optimise(norm, items, rows, columns, base_cost, F, I, LF, LI, T)
        _read_multipliers(rows, columns, failed, LF, LI, T)
        constant = combine(rows, width, F, LF, LI, A)
        bound = max(bound, solve_plane(norm, F[PLANE], constant, base_cost, ceiling, items, F, I))
    return bound, planes if norm == SQUARED else rows, np.int64(STUCK) if loose else found


@njit(**INNER)
def _optimise(norm, items, rows, columns, base_cost, F, I, LF, LI, T):
    """Solve the linear program, adding group rows that its solution breaks. Returns (status, rows, failed row)."""
    status, failed = np.int64(STUCK), np.int64(-1)
    for _ in range(40):
        status, failed = reoptimise(rows, columns, LF, LI, T, 200)
        if status != OPTIMAL:
            break
        more = _add_group_rows(norm, items, rows, columns, base_cost, F, I, LF, LI, T)
        if more == rows:
            break
        rows = more
    return status, rows, failed


@njit(**INNER)
def _cost_squared(items, F, I):
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
def _ascend_squares(items, rows, width, F, I, LF, H, A):
    """l2: ascent of the dual  sum_i m_i b_i + sum_k min_y [cost_k(y) - (sum_i m_i a_i).y]  over m >= 0; minimiser in Y.

    The dual is concave and quadratic by pieces. Each step goes along Newton's direction for the rows in play as far as
    the dual rises and no multiplier turns negative; a row whose multiplier ends at 0 is out of play until it is broken.
    """
    m, gradient, step = LF[MULTIPLIER], LF[GRADIENT], LF[STEP]
    value = _dual_value(items, rows, width, m, F, I, LF, A)
    stalled = 0
    for _ in range(MOST_STEPS):
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
            if not left_out:
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
