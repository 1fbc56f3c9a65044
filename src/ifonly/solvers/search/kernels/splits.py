"""Branching rules: which feature or ReLU to split in a box that is still open, and where."""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.layout import (
    ACT,
    ACTIVE,
    BASE,
    BIAS_AT,
    BOUNDED_GROUP,
    CHOICE,
    DOWN,
    FEATURE,
    FIRST,
    GRID_OFFSET,
    GROUP,
    INACTIVE,
    INNER,
    INTEGER,
    ITEM_GRID_OFFSET,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    KIND,
    LEAST,
    MAXIMUM,
    MOST,
    NU,
    NU_BEST,
    ONCE,
    PATTERN,
    PLANE_BEST,
    READS_FROM,
    READS_TO,
    REAL,
    RULE_LAYER,
    RULE_PLACE,
    SCORE,
    SIZES,
    TAKE_BEST,
    UP,
    WEIGHT_AT,
    Y,
)
from ifonly.solvers.search.kernels.network import neuron_plane
from ifonly.solvers.search.kernels.node import grid_offset_of, next_value, value_below

MANY_NUMBERS = 6
"""With more free numbers than this, ReLUs are split rather than features."""
FEW_UNSTABLE = 4
"""With at most this many unstable ReLUs, they are split once the number to blame has been halved."""
NARROW = 1e-3
"""A number whose interval is this short, relative to its size, is not halved further: ReLUs are split instead."""
FINEST = 1e-11
"""A real number's interval is not split below this share of its whole range."""
WIDE_STEPS = 16.0
"""An integer with more steps than this counts as a number that can be halved for ever."""
MANY_STEPS = 1024.0
"""The values of an integer are set apart one by one below this many; one with more is halved until it has them. A step
of it is a small change, too: where its value is a fraction, it is split only when nothing else is left, like a real.
"""
SPLIT_ORDER = ((MANY_STEPS, WIDE_STEPS), (np.inf, np.inf))
"""Up to how many steps integers are split at fractions, and their values are set apart: first the ones, then all."""
FEW_ROWS = 64
"""A box of integers and options with at most this many rows is split by its features, once `MANY_SIDES` ReLUs were
split on the way to it: its rows can be counted, the sides of its ReLUs cannot.
"""
MANY_SIDES = 6
UNSPLIT = -1
"""What `evaluate` says of a box that cannot be resolved further in floating point."""


@njit(**ONCE)
def blame_below(pack, layer, blame):
    """Pass what the neurons of a layer are to blame for down to those below, through the absolute weights."""
    at, n, m = pack.index[BIAS_AT, layer], pack.index[SIZES, layer + 1], pack.index[SIZES, layer]
    below, w = pack.index[BIAS_AT, layer - 1], pack.index[WEIGHT_AT, layer]
    for i in range(n):
        c = blame[at + i]
        if c != 0.0:
            for t in range(pack.index[READS_FROM, at + i], pack.index[READS_TO, at + i]):
                blame[below + t] += c * abs(pack.weights[w + i * m + t])


@njit(**ONCE)
def blame_items(pack, items, blame, F, I, Wc):
    """Pass what the neurons of the first layer are to blame for on to the items, into SCORE."""
    for k in range(items):
        F[SCORE, k] = 0.0
        for c in range(I[FIRST, k], I[FIRST, k + 1]):
            total = 0.0
            for i in range(pack.index[SIZES, 1]):
                total += blame[i] * abs(Wc[i, c])
            F[SCORE, k] = max(F[SCORE, k], total * (F[UP, k] + F[DOWN, k]))


@njit(**ONCE)
def halve_item(pack, whole, k, lo, hi, F, I):
    """The split of item k: of a choice its base's option, of a number at 0 or in the middle; UNSPLIT when it cannot be
    halved any more.
    """
    g = I[FEATURE, k]
    if I[ITEM_KIND, k] == CHOICE:
        return g, F[BASE, g]
    return number_split(pack, whole, g, 0.0 if lo[g] < 0.0 < hi[g] else 0.5 * (lo[g] + hi[g]), lo, hi)


@njit(**INNER)
def blame(pack, zl, zu, items, F, I, Wc):
    """How much of the relaxation's error at the point in ACT each item is to blame for, into SCORE.

    The error of an unstable ReLU is shared among the features in proportion to what they add to its range; errors
    of deeper layers are passed down through the absolute weights.
    """
    index, blame = pack.index, F[NU]
    for h in range(F.shape[1]):
        blame[h] = 0.0
    for layer in range(pack.layers - 2, -1, -1):
        at, n = index[BIAS_AT, layer], index[SIZES, layer + 1]
        for i in range(n):
            h = at + i
            low, up = zl[h], zu[h]
            if up <= 0.0:
                blame[h] = 0.0
            elif low < 0.0:
                c, z = F[NU_BEST, h], F[ACT, h]
                if c > 0.0:
                    error = c * (up * (z - low) / (up - low) - max(z, 0.0))
                else:
                    error = -0.1 * c * min(up, -low)
                blame[h] = (blame[h] * up + max(error, 0.0)) / (up - low)
        if layer > 0:
            blame_below(pack, layer, blame)
    blame_items(pack, items, blame, F, I, Wc)


@njit(**INNER)
def prefers_relu(items, unstable, lo, hi, F, I):
    """Split ReLUs rather than features? With many free numbers, or when few are unstable and the number to blame was
    halved.
    """
    wide, best, score = 0, np.int64(-1), 0.0
    for k in range(items):
        if I[ITEM_KIND, k] != CHOICE and (I[ITEM_KIND, k] != INTEGER or F[UP, k] + F[DOWN, k] > WIDE_STEPS):
            wide += 1
        if F[SCORE, k] > score:
            best, score = k, F[SCORE, k]
    if wide > MANY_NUMBERS:
        return True
    if best < 0:
        return True
    if I[ITEM_KIND, best] == CHOICE or (I[ITEM_KIND, best] == INTEGER and F[UP, best] + F[DOWN, best] <= WIDE_STEPS):
        return False
    g = I[FEATURE, best]
    narrow = hi[g] - lo[g] <= NARROW * max(abs(lo[g]), abs(hi[g]))
    return (unstable <= FEW_UNSTABLE and not lo[g] < 0.0 < hi[g]) or narrow


@njit(**INNER)
def _fraction(y, grid_offset):
    """How far y >= 0 is from a value: 0, or whole steps from the first one that way."""
    return min(y, grid_offset - y) if y < grid_offset else abs(y - grid_offset - np.rint(y - grid_offset))


@njit(**INNER)
def choose_split(pack, whole, items, unstable, most, lo, hi, F, I):
    """The feature to split and where: by blame while ReLUs are unstable, else where the bound's minimiser is a
    fraction (of an integer with at most so many steps).
    """
    best, score = np.int64(-1), 0.0
    blamed = False
    if unstable > 0:
        for k in range(items):
            if F[SCORE, k] > score:
                best, score, blamed = k, F[SCORE, k], True
    if best < 0:
        for k in range(items):
            take = F[TAKE_BEST, k]
            if take <= 0.0:
                continue
            c = I[FIRST, k]
            part = 0.0
            if I[ITEM_KIND, k] == CHOICE:
                part = 0.0 if pack.norm == MAXIMUM else 1.0
            else:
                v = F[PLANE_BEST, c]
                reach = F[UP, k] if v > 0.0 else F[DOWN, k]
                y = take / abs(v)
                if I[ITEM_KIND, k] == INTEGER:
                    part = _fraction(y, grid_offset_of(F[ITEM_GRID_OFFSET, k], v > 0.0))
                    if part < 1e-9 or F[UP, k] + F[DOWN, k] > most:
                        part = 0.0
                elif F[ITEM_JUMP, k] > 0.0 and y < reach * (1.0 - 1e-9):
                    part = 1.0
            if part > score:
                best, score = k, part
    if best < 0:
        return UNSPLIT, 0.0
    if blamed:
        return halve_item(pack, whole, best, lo, hi, F, I)
    g = I[FEATURE, best]
    if I[ITEM_KIND, best] == CHOICE:
        return g, F[BASE, g]
    v = F[PLANE_BEST, I[FIRST, best]]
    y = F[TAKE_BEST, best] / abs(v)
    return number_split(pack, whole, g, F[BASE, g] + (y if v > 0.0 else -y), lo, hi)


@njit(**INNER)
def number_split(pack, whole, g, middle, lo, hi):
    """A split of a number near `middle`, or UNSPLIT when its interval cannot be halved any more."""
    if pack.index[KIND, g] == INTEGER:
        grid_offset = whole[GRID_OFFSET, g]
        return g, min(value_below(middle, grid_offset), next_value(hi[g], grid_offset, -1.0))
    if not lo[g] < middle < hi[g] or hi[g] - lo[g] <= FINEST * (whole[MOST, g] - whole[LEAST, g]):
        return UNSPLIT, 0.0
    return g, middle


@njit(**INNER)
def influence(pack, zu, items, F, I, Wc):
    """Which items a condition or a rule depends on, in this box: 1 or 0 into SCORE.

    A neuron counts unless it is inactive in the whole box, if a neuron that counts, a condition or a rule reads it.
    """
    index, counts, last = pack.index, F[NU], pack.layers - 1
    for h in range(F.shape[1]):
        counts[h] = 0.0
    if last == 0:
        for i in range(index[SIZES, 1]):
            counts[i] = 1.0
    for layer in range(last, 0, -1):
        at, n, m = index[BIAS_AT, layer], index[SIZES, layer + 1], index[SIZES, layer]
        below, w = index[BIAS_AT, layer - 1], index[WEIGHT_AT, layer]
        for i in range(n):
            if layer == last or counts[at + i] != 0.0:
                for t in range(m):
                    if pack.weights[w + i * m + t] != 0.0 and zu[below + t] > 0.0:
                        counts[below + t] = 1.0
        for j in range(pack.rules):
            if index[RULE_LAYER, j] == layer - 1:
                counts[below + index[RULE_PLACE, j]] = 1.0
    for k in range(items):
        F[SCORE, k] = 0.0
        for c in range(I[FIRST, k], I[FIRST, k + 1]):
            for i in range(index[SIZES, 1]):
                if counts[i] != 0.0 and Wc[i, c] != 0.0:
                    F[SCORE, k] = 1.0


@njit(**INNER)
def split_options(pack, whole, items, most, lo, hi, zu, F, I, Wc):
    """Set the base's value of an option or an integer (with at most so many steps) apart from the rest; UNSPLIT when
    only reals are left, or what no condition depends on.

    A point that sits on the margin to the last bit can neither be returned nor ruled out, but its neighbours can,
    unless their scores are the same.
    """
    influence(pack, zu, items, F, I, Wc)
    for k in range(items):
        if F[SCORE, k] == 0.0:
            continue
        g = I[FEATURE, k]
        if I[ITEM_KIND, k] == CHOICE:
            return g, F[BASE, g]
        if I[ITEM_KIND, k] == INTEGER and F[UP, k] + F[DOWN, k] <= most:
            one_by_one = F[UP, k] + F[DOWN, k] <= MANY_STEPS
            return number_split(pack, whole, g, F[BASE, g] if one_by_one else 0.5 * (lo[g] + hi[g]), lo, hi)
    return UNSPLIT, 0.0


@njit(**INNER)
def split_rows(pack, whole, side, items, lo, hi, F, I):
    """Halve the feature with the most values, in a box of few rows and many split ReLUs; UNSPLIT in others."""
    sides = 0
    for h in range(len(side)):
        if side[h] == ACTIVE or side[h] == INACTIVE:
            sides += 1
    if sides < MANY_SIDES:
        return UNSPLIT, 0.0
    rows, best, most = 1.0, np.int64(-1), 0.0
    for k in range(items):
        if I[ITEM_KIND, k] == REAL:
            return UNSPLIT, 0.0
        values = 1.0 + (I[FIRST, k + 1] - I[FIRST, k] if I[ITEM_KIND, k] == CHOICE else F[UP, k] + F[DOWN, k])
        rows *= values
        if values > most:
            best, most = k, values
    if best < 0 or rows > FEW_ROWS:
        return UNSPLIT, 0.0
    g = I[FEATURE, best]
    if I[ITEM_KIND, best] == CHOICE:
        return g, F[BASE, g]
    return number_split(pack, whole, g, 0.5 * (lo[g] + hi[g]), lo, hi)


@njit(**INNER)
def split_dearest(pack, whole, items, lo, hi, F, I):
    """Halve the number whose interval is widest in cost: for a box whose program was not solved, so that it ends
    somewhere.
    """
    best, cost = np.int64(-1), 0.0
    for k in range(items):
        this = (F[UP, k] + F[DOWN, k]) * F[ITEM_RATE, k]
        if this > cost:
            best, cost = k, this
    if best < 0:
        return UNSPLIT, 0.0
    g = I[FEATURE, best]
    return number_split(pack, whole, g, 0.5 * (lo[g] + hi[g]), lo, hi)


@njit(**INNER)
def split_fraction(pack, whole, items, most, lo, hi, F, I):
    """A feature (of integers: with at most so many steps) whose value in Y is no value of it, or UNSPLIT."""
    best, part, where = np.int64(-1), 1e-7, 0.0
    for k in range(items):
        c = I[FIRST, k]
        if I[ITEM_KIND, k] != CHOICE:
            y = F[Y, c]
            reach = F[UP, k] if y > 0.0 else F[DOWN, k]
            away = 0.0
            if I[ITEM_KIND, k] == INTEGER:
                away = _fraction(abs(y), grid_offset_of(F[ITEM_GRID_OFFSET, k], y > 0.0))
                if F[UP, k] + F[DOWN, k] > most:
                    away = 0.0
            elif F[ITEM_JUMP, k] > 0.0 and 1e-9 * reach < abs(y) < reach * (1.0 - 1e-9):
                away = 0.25
            if away > part:
                best, part, where = k, away, y
        else:
            while c < I[FIRST, k + 1]:
                away = min(F[Y, c], 1.0 - F[Y, c])
                if away > part:
                    best, part = k, away
                c += 1
    if best < 0:
        return UNSPLIT, 0.0
    g = I[FEATURE, best]
    if I[ITEM_KIND, best] == CHOICE:
        return g, F[BASE, g]
    return number_split(pack, whole, g, F[BASE, g] + where, lo, hi)


@njit(**INNER)
def place_of(pack, r):
    """Layer and place of condition r; the rules are counted on from the conditions."""
    rule = r - pack.index[SIZES, pack.layers]
    if rule < 0:
        return pack.layers - 1, r
    return pack.index[RULE_LAYER, rule], pack.index[RULE_PLACE, rule]


@njit(**INNER)
def worst_relu(pack, zl, zu, exact, width, F, I, Wc):
    """The unstable ReLU whose relaxation is farthest from it at the solution, or -1 when the relaxation is tight there;
    of groups that were not bounded, none: their conditions hold there.
    """
    best, error = np.int64(-1), 1e-12
    for r in range(pack.index[SIZES, pack.layers] + pack.rules):
        layer, i = place_of(pack, r)
        group = pack.index[GROUP, pack.index[BIAS_AT, layer] + i]
        if group >= 0 and I[BOUNDED_GROUP, group] == 0:
            continue
        neuron_plane(pack, layer, i, 1.0, zl, zu, F[PATTERN], np.int64(0), width, F, Wc)
        for h in range(pack.index[BIAS_AT, layer]):
            if zl[h] < 0.0 < zu[h]:
                z, c = F[ACT, h], F[NU, h]
                if c > 0.0:
                    this = c * (zu[h] * (z - zl[h]) / (zu[h] - zl[h]) - max(z, 0.0))
                else:
                    this = 0.0 if exact else -0.1 * c * min(zu[h], -zl[h])
                if this > error:
                    best, error = h, this
    return best


@njit(**INNER)
def any_relu(pack, zl, zu, width, F, Wc):
    """An unstable ReLU that a condition depends on, as a split, or UNSPLIT: for boxes that only rounding keeps open."""
    for r in range(pack.index[SIZES, pack.layers] + pack.rules):
        layer, i = place_of(pack, r)
        neuron_plane(pack, layer, i, 1.0, zl, zu, F[PATTERN], np.int64(0), width, F, Wc)
        for h in range(pack.index[BIAS_AT, layer]):
            if zl[h] < 0.0 < zu[h] and F[NU, h] != 0.0:
                return -2 - h
    return UNSPLIT
