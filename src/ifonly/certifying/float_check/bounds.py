"""Bounds of the ReLUs over a region, and what the checker may see in another way."""

from __future__ import annotations

import math

from numba import njit

from ifonly.certifying.float_check.layout import (
    BIAS_AT,
    CLOSED,
    DOUBT,
    EMPTY,
    FARTHEST,
    FIRST,
    FOR_ROWS,
    FORCED,
    LITERALS,
    NARROW,
    NEAR,
    ONCE,
    OPEN,
    ROW_SLACK,
    RULE,
    SIZES,
    TIE,
    WEIGHT_AT,
)
from ifonly.certifying.float_check.planes import most_of, plane


@njit(**ONCE)
def bound_hidden(q, w, d, items, budget, known):
    """Bounds of the ReLUs, starting from the `known` ones. Returns EMPTY (a split ReLU cannot be on its side), OPEN
    (the checker may see it in another way) or CLOSED (all is well).

    The checker's bounds are inside these, by at most `doubt`. What hangs on more than that difference:

    - which slope the checker takes below a ReLU, at a tie: left open;
    - whether a ReLU is stable. Of a row's own slopes the one is taken that a stable ReLU would have (FORCED). A split
      ReLU that may be 0 everywhere is left open: it counts as active although it was split to be inactive. Bounds that
      the checker may not have computed, since the ReLU is stable without them, are left open too, in every layer: a
      box below is not empty for the checker because of a bound of the whole that only floating point has;
    - chords. Planes can leave the interval that a chord was drawn for, and there a difference in the interval counts
      for more, by how far they leave it in widths of the interval. The slack of what follows grows by that; of rows,
      whose own slopes may lead farther out, it is FOR_ROWS times as large (ROW_SLACK).
    """
    stretch = 1.0
    for layer in range(q.layers - 1):
        farthest = 0.0
        for i in range(q.index[SIZES, layer + 1]):
            became, outside = _bound_neuron(q, w, d, items, budget, known, layer, i, stretch)
            if became != CLOSED:
                return became
            farthest = max(farthest, outside)
        stretch *= 1.0 + farthest
        if stretch > FARTHEST:
            return OPEN
    for h in range(q.index[BIAS_AT, q.layers - 1], len(q.slack)):
        w.F[ROW_SLACK, h], w.F[NARROW, h] = FOR_ROWS * q.slack[h] * stretch, q.narrow[h] * stretch
    if w.doubtful[0] and w.side.shape[1] > 0 and known[0, 0] == -math.inf:
        return OPEN  # bounds of the whole count in every box: rather the checker's own
    return CLOSED


@njit(**ONCE)
def _bound_neuron(q, w, d, items, budget, known, layer, i, stretch):
    """Bounds of one ReLU. Returns what `bound_hidden` does, and how far planes leave its interval."""
    h = q.index[BIAS_AT, layer] + i
    slack, narrow = q.slack[h] * stretch, q.narrow[h] * stretch
    doubt = DOUBT * slack
    if layer == 0 and i >= q.index[LITERALS, 0]:  # it leads nowhere, so any bounds do
        w.bounds[0, h] = w.bounds[1, h] = w.F[RULE, h] = 0.0
        w.F[FORCED, h], w.F[ROW_SLACK, h], w.F[NARROW, h] = -1.0, FOR_ROWS * slack, narrow
        return CLOSED, 0.0
    low, high = known[0, h], known[1, h]
    side = w.side[d, h]
    if side == 1:
        low = max(low, 0.0)
    elif side == 2:
        high = min(high, 0.0)
    if layer > 0 and low < 0.0 < high:
        least, most = _interval(q, w, layer, i)
        least, most = least - slack, most + slack
        low, high = max(low, least), min(high, most)
        if -doubt <= least < 0.0 or 0.0 < most <= doubt:
            return OPEN, 0.0
        if abs(least) <= narrow or abs(most) <= narrow:
            w.doubtful[0] = 1
    unstable = low < 0.0 < high
    lowest, highest = low, high
    for which in range(1, 3):
        if side == which or unstable:
            constant = plane(q, w, layer, i, 3.0 - 2.0 * which, w.F[RULE], w.I[FIRST, items])
            most = slack + most_of(q.norm, w.F, w.I, items, budget, constant, False)
            if abs(most) <= narrow:
                w.doubtful[0] = 1
            if which == 1:
                high, highest = min(high, most), most
            else:
                low, lowest = max(low, -most), -most
    if low > high:
        if low - high <= narrow:
            w.doubtful[0] = 1
        return EMPTY, 0.0
    w.bounds[0, h], w.bounds[1, h] = low, high
    w.F[RULE, h] = 1.0 if low >= 0.0 or (high > 0.0 and high > -low) else 0.0
    w.F[FORCED, h], w.F[ROW_SLACK, h], w.F[NARROW, h] = -1.0, FOR_ROWS * slack, narrow
    if low < 0.0 and low >= -doubt and side == 2:
        return OPEN, 0.0
    if not low < 0.0 < high:
        return CLOSED, 0.0
    if min(-low, high) <= narrow:
        w.doubtful[0] = 1
    if layer < q.layers - 2:
        if abs(high + low) <= TIE * (high - low) + doubt:
            return OPEN, 0.0
        if abs(high + low) <= NEAR * TIE * (high - low) + narrow:
            w.doubtful[0] = 1
    return _outside(w, h, max(highest - high, low - lowest, 0.0), slack, known[0, h] == -math.inf)


@njit(**ONCE)
def _outside(w, h, outside, slack, fresh):
    """What becomes of an unstable ReLU, and how far planes leave its interval, in what a difference counts for."""
    low, high, doubt = w.bounds[0, h], w.bounds[1, h], DOUBT * slack
    if low < -doubt and high > doubt:
        return CLOSED, DOUBT * outside / (high - low)
    if fresh:
        return OPEN, 0.0
    w.doubtful[0] = 1
    if low >= -doubt and high <= doubt:
        return CLOSED, (outside + high - low) / slack
    w.F[FORCED, h] = 1.0 if low >= -doubt else 0.0
    return CLOSED, DOUBT * outside / (high - low)


@njit(**ONCE)
def _interval(q, w, layer, i):
    """Bounds of a pre-activation from those of the layer below, each at its worst."""
    m, at = q.index[SIZES, layer], q.index[BIAS_AT, layer - 1]
    weight = q.index[WEIGHT_AT, layer] + i * m
    low = high = q.biases[q.index[BIAS_AT, layer] + i]
    for j in range(m):
        v, most = q.weights[weight + j], w.bounds[1, at + j]
        if most > 0.0:
            least = max(w.bounds[0, at + j], 0.0)
            low += v * (least if v > 0.0 else most)
            high += v * (most if v > 0.0 else least)
    return low, high
