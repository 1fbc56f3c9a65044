"""Rows and multipliers that close a region: those of the record, single conditions, then a search for a mixture."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.certifying.float_check.game import add_answer, begin_game, mix_answers
from ifonly.certifying.float_check.layout import (
    ACT,
    ANSWERS,
    BIAS_AT,
    CONSTANT,
    DOWN,
    FIRST,
    FORCED,
    HEAD,
    INNER,
    IS_CHOICE,
    LEAST,
    MOST_HINTS,
    MOST_ROWS,
    MULTIPLIER,
    NARROW,
    ONCE,
    PATTERN,
    PLANE,
    REFINED,
    ROW_SLACK,
    RULE,
    SCALE,
    SHARE,
    SIZE,
    SIZES,
    SLACK,
    SPARE,
    SPARED,
    TRIAL,
    UP,
    WEIGHT_AT,
    ZC,
    Y,
)
from ifonly.certifying.float_check.planes import most_of, plane


@njit(**INNER)
def _set_pattern(q, w, width):
    """Which ReLUs are active at Y, into PATTERN."""
    F = w.F
    for i in range(q.index[SIZES, 1]):
        z = F[ZC, i]
        for t in range(width):
            z += w.Wc[i, t] * F[Y, t]
        F[ACT, i] = z
    for layer in range(1, q.layers - 1):
        m, at = q.index[SIZES, layer], q.index[BIAS_AT, layer]
        for i in range(q.index[SIZES, layer + 1]):
            z = q.biases[at + i]
            for j in range(m):
                z += q.weights[q.index[WEIGHT_AT, layer] + i * m + j] * max(F[ACT, at - m + j], 0.0)
            F[ACT, at + i] = z
    for h in range(w.side.shape[1]):
        F[PATTERN, h] = 1.0 if F[ACT, h] > 0.0 else 0.0


@njit(**INNER)
def _add_row(q, w, rows, layer, i, sign, slope, width):
    """Make a row's plane, scaled to a largest term of 1, unless it is there; returns its place (-1: no space)."""
    if rows >= MOST_ROWS:
        return -1
    at = q.index[BIAS_AT, layer]
    for h in range(w.side.shape[1]):
        bit = slope[h] > 0.5 if w.F[FORCED, h] < 0.0 else w.F[FORCED, h] > 0.5
        if w.bounds[0, h] >= 0.0 or w.bounds[1, h] <= 0.0:
            bit = w.bounds[0, h] >= 0.0
        w.bits[rows, h] = bit and h < at
    for r in range(rows):
        same = w.about[0, r] == layer and w.about[1, r] == i
        for h in range(at if same else 0):
            same &= w.bits[r, h] == w.bits[rows, h]
        if same:
            return r
    constant = plane(q, w, layer, i, sign, w.bits[rows], width)
    share = 0.0
    for t in range(width):
        share = max(share, abs(w.F[PLANE, t]) * w.F[SIZE, t])
    size = max(share, abs(constant))
    size = 1.0 / size if size > 0.0 else 1.0
    for t in range(width):
        w.A[rows, t] = w.F[PLANE, t] * size
    w.R[CONSTANT, rows], w.R[SLACK, rows] = constant * size, w.F[ROW_SLACK, at + i] * size
    w.R[SCALE, rows], w.R[SHARE, rows] = size, share * size
    w.R[SPARE, rows] = SPARED * w.F[NARROW, at + i] * size
    w.about[0, rows], w.about[1, rows], w.about[2, rows] = layer, i, np.int64(sign)
    return rows


@njit(**INNER)
def _value(q, w, rows, items, budget, m):
    """The most of the combination of rows, their slack included; the point that reaches it into Y."""
    width, constant = w.I[FIRST, items], 0.0
    for t in range(width):
        w.F[PLANE, t] = 0.0
    for r in range(rows):
        if m[r] > 0.0:
            constant += m[r] * (w.R[CONSTANT, r] + w.R[SLACK, r])
            for t in range(width):
                w.F[PLANE, t] += m[r] * w.A[r, t]
    return most_of(q.norm, w.F, w.I, items, budget, constant, True)


@njit(**INNER)
def _at(w, r, width):
    value = w.R[CONSTANT, r]
    for t in range(width):
        value += w.A[r, t] * w.F[Y, t]
    return value


@njit(**ONCE)
def _multipliers(q, w, rows, items, budget, m):
    """Look for multipliers m whose combination is negative everywhere: those that are best against the answers so far.

    Returns True when they are found; Y is otherwise a mixture of the answers that obeys the rows, where there is one.
    """
    width, shift, lowest = w.I[FIRST, items], 0.0, math.inf
    for r in range(rows):
        shift = max(shift, w.R[SLACK, r])
    shift += 2.0 + items
    begin_game(w, rows)
    for k in range(ANSWERS):
        value = _value(q, w, rows, items, budget, m)
        if value < 0.0:
            return True
        lowest = min(lowest, value)
        for t in range(width):
            w.answers[k, t] = w.F[Y, t]
        for r in range(rows):
            w.R[TRIAL, r] = shift + w.R[SLACK, r] + _at(w, r, width)
        level = add_answer(w, k + 1, rows) - shift
        if not (level < -1e-13 and lowest - level > 1e-10 * abs(level)):
            break
    mix_answers(w, rows, width, w.F[Y])
    return False


@njit(**INNER)
def _add_conditions(q, w, rows, slope, width):
    for r in range(q.index[SIZES, q.layers]):
        rows = max(rows, 1 + _add_row(q, w, rows, q.layers - 1, r, 1.0, slope, width))
    return rows


@njit(**INNER)
def _add_sides(q, w, d, rows, slope, width, deep):
    """Rows of the split ReLUs; `deep`: only of those whose rows depend on slopes."""
    for layer in range(1 if deep else 0, q.layers - 1):
        at = q.index[BIAS_AT, layer]
        for i in range(q.index[SIZES, layer + 1]):
            side = w.side[d, at + i]
            if side != 0:
                rows = max(rows, 1 + _add_row(q, w, rows, layer, i, 1.0 if side == 1 else -1.0, slope, width))
    return rows


@njit(**INNER)
def _add_hints(q, w, d, rows, width, log, at, m):
    """The rows of the record with their multipliers, which are those of rows scaled to a largest coefficient of 1."""
    hidden, conditions = w.side.shape[1], q.index[SIZES, q.layers]
    for r in range(MOST_ROWS):
        m[r] = 0.0
    listed = np.int64(log[at + HEAD - 1])
    for k in range(listed if listed < MOST_HINTS else MOST_HINTS):
        row = at + HEAD + hidden + k * (2 + hidden)
        about, times = np.int64(log[row]), log[row + 1]
        if not times > 0.0 or about >= conditions:
            continue
        layer, i, sign = q.layers - 1, about, 1.0
        if about < 0:
            side = w.side[d, -1 - about]
            if side == 0:
                continue
            layer, sign = 0, 1.0 if side == 1 else -1.0
            while q.index[BIAS_AT, layer + 1] <= -1 - about:
                layer += 1
            i = -1 - about - q.index[BIAS_AT, layer]
        place = _add_row(q, w, rows, layer, i, sign, log[row + 2 : row + 2 + hidden], width)
        rows = max(rows, place + 1)
        if place >= 0 and w.R[SHARE, place] > 0.0:
            m[place] += times / w.R[SHARE, place]
    return rows


@njit(**ONCE)
def close(q, w, d, items, budget, log, at):
    """Rows and multipliers (in R) that close the region: returns the number of rows; 0 when it was not closed:
    Y then has the last answer to the multipliers, and ACT the ReLUs' pre-activations there."""
    rows = _close(q, w, d, items, budget, log, at)
    if rows == 0:
        _set_pattern(q, w, w.I[FIRST, items])
    else:
        m, spare, small = w.R[MULTIPLIER], 0.0, False
        for r in range(rows):
            if m[r] > 0.0:
                spare += m[r] * w.R[SPARE, r]
                small |= not LEAST < m[r] * w.R[SCALE, r] < 1.0 / LEAST
        if small or not _value(q, w, rows, items, budget, m) < -spare:
            w.doubtful[0] = 1
    return rows


@njit(**ONCE)
def _close(q, w, d, items, budget, log, at):
    F, I, m = w.F, w.I, w.R[MULTIPLIER]
    width = I[FIRST, items]
    for k in range(items):
        for t in range(I[FIRST, k], I[FIRST, k + 1]):
            F[SIZE, t] = 1.0 if I[IS_CHOICE, k] else max(F[UP, k], F[DOWN, k])
    rows = _add_hints(q, w, d, 0, width, log, at, m)
    if rows > 0 and _value(q, w, rows, items, budget, m) < 0.0:
        return rows
    tried, kept, least = rows, 0, math.inf
    for r in range(rows):
        if m[r] > m[kept]:
            kept = r
    rows = _add_conditions(q, w, rows, F[RULE], width)
    for attempt in range(2):
        while tried < rows:
            for r in range(MOST_ROWS):
                m[r] = 1.0 if r == tried else 0.0
            value = _value(q, w, rows, items, budget, m)
            if value < 0.0:
                return rows
            if value < least:
                least, kept = value, tried
                _set_pattern(q, w, width)
            tried += 1
        if attempt == 0:
            rows = _add_conditions(q, w, rows, F[PATTERN], width)
    rows = _add_sides(q, w, d, rows, F[RULE], width, False)
    rows = _add_hints(q, w, d, rows, width, log, at, m)
    total = 0.0
    for r in range(rows):
        total += m[r]
    for r in range(MOST_ROWS):
        m[r] = m[r] / total if total > 0.0 else 1.0 if r == kept else 0.0
    for _ in range(REFINED if rows > 1 else 0):
        if _multipliers(q, w, rows, items, budget, m):
            return rows
        _set_pattern(q, w, width)
        more = _add_sides(q, w, d, _add_conditions(q, w, rows, F[PATTERN], width), F[PATTERN], width, True)
        if more == rows:
            break
        rows = more
    return 0
