"""Constraints on the support (the features that change): at most so many, and some only with a partner.

A feature *must* change in a box that excludes the person's own value, and *cannot* in a box that holds nothing else.
Where a point changes what it may not, the box is split on whether one feature changes: in one half it keeps its value,
in the other it counts as changed (its box is the same: the half that keeps it has the rest).
"""

from __future__ import annotations

from numba import njit

from ifonly.solvers.search.kernels.layout import (
    CHOICE,
    GRID_OFFSET,
    INNER,
    INTEGER,
    KIND,
    PARTNER,
    PARTNERED,
    START,
    UNCOUNTED,
)
from ifonly.solvers.search.kernels.node import next_value, number_cost


@njit(**INNER)
def _must(pack, person, g, lo, hi, mask):
    if pack.index[KIND, g] == CHOICE:
        return mask[pack.index[START, g] + person.option[g]] == 0
    return lo[g] > 0.0 or hi[g] < 0.0


@njit(**INNER)
def _cannot(pack, person, g, lo, hi, mask):
    if pack.index[KIND, g] != CHOICE:
        return lo[g] >= 0.0 and hi[g] <= 0.0
    first = pack.index[START, g]
    others = 0
    for c in range(first, pack.index[START, g + 1]):
        if mask[c] and c != first + person.option[g]:
            others += 1
    return others == 0


@njit(**INNER)
def keep(pack, person, g, lo, hi, mask):
    """Let feature g keep its value (an empty box if it must not)."""
    if pack.index[KIND, g] != CHOICE:
        lo[g], hi[g] = max(lo[g], 0.0), min(hi[g], 0.0)
        return
    first = pack.index[START, g]
    for c in range(first, pack.index[START, g + 1]):
        if c != first + person.option[g]:
            mask[c] = 0


@njit(**INNER)
def _leave(pack, person, g, lo, hi, mask):
    """Let feature g change, where that is a smaller box; True if it is one."""
    if pack.index[KIND, g] == CHOICE:
        own = pack.index[START, g] + person.option[g]
        was = mask[own] != 0
        mask[own] = 0
        return was
    if pack.index[KIND, g] == INTEGER and lo[g] == 0.0:
        lo[g] = next_value(0.0, person.box[GRID_OFFSET, g], 1.0)
        return True
    if pack.index[KIND, g] == INTEGER and hi[g] == 0.0:
        hi[g] = next_value(0.0, person.box[GRID_OFFSET, g], -1.0)
        return True
    return False


@njit(**INNER)
def clip_to_support(pack, person, lo, hi, mask, counted):
    """Shrink the box (in place) to what the number of changes and the partners allow; False when nothing is left."""
    n = pack.price.shape[1]
    pairs = pack.pairs
    if person.most >= n and pairs == 0:
        return True
    for _ in range(n + 1):
        again = False
        changes = 0
        for g in range(n):
            if pack.index[UNCOUNTED, g] == 0 and (counted[g] or _must(pack, person, g, lo, hi, mask)):
                changes += 1
        if changes > person.most:
            return False
        if changes == person.most:
            for g in range(n):
                if pack.index[UNCOUNTED, g] != 0:
                    continue
                if not (counted[g] or _must(pack, person, g, lo, hi, mask) or _cannot(pack, person, g, lo, hi, mask)):
                    keep(pack, person, g, lo, hi, mask)
                    again = True
        for p in range(pairs):
            g, partner = pack.index[PARTNERED, p], pack.index[PARTNER, p]
            if _cannot(pack, person, partner, lo, hi, mask):
                if _must(pack, person, g, lo, hi, mask) or counted[g]:
                    return False
                if not _cannot(pack, person, g, lo, hi, mask):
                    keep(pack, person, g, lo, hi, mask)
                    again = True
            elif counted[g] or _must(pack, person, g, lo, hi, mask):
                again |= _leave(pack, person, partner, lo, hi, mask)
        if not again:
            return True
    return True


@njit(**INNER)
def _changes(pack, person, g, x):
    return x[g] != person.option[g] if pack.index[KIND, g] == CHOICE else x[g] != 0.0


@njit(**INNER)
def allowed_changes(pack, person, x):
    """May exactly the features change that x changes?"""
    n = pack.price.shape[1]
    if person.most < n:
        changes = 0
        for g in range(n):
            if pack.index[UNCOUNTED, g] == 0 and _changes(pack, person, g, x):
                changes += 1
        if changes > person.most:
            return False
    for p in range(pack.pairs):
        if _changes(pack, person, pack.index[PARTNERED, p], x) and not _changes(
            pack, person, pack.index[PARTNER, p], x
        ):
            return False
    return True


@njit(**INNER)
def split_changes(pack, person, x, lo, hi, mask, counted):
    """For a point that changes what it may not: the split (features + g: whether g changes), and where."""
    n = pack.price.shape[1]
    for p in range(pack.pairs):
        g, partner = pack.index[PARTNERED, p], pack.index[PARTNER, p]
        if _changes(pack, person, g, x) and not _changes(pack, person, partner, x):
            if counted[g] or _must(pack, person, g, lo, hi, mask):
                return partner, next_value(
                    0.0, person.box[GRID_OFFSET, partner], -1.0
                )  # an integer whose box goes both ways
            return n + g, 0.0
    best, dearest = n, -1.0
    for g in range(n):
        if pack.index[UNCOUNTED, g] != 0:
            continue
        if _changes(pack, person, g, x) and not counted[g] and not _must(pack, person, g, lo, hi, mask):
            if pack.index[KIND, g] == CHOICE:
                own = person.cost[pack.index[START, g] + int(x[g])]
            else:
                own = number_cost(pack.norm, pack.price, g, x[g])
            if own > dearest:
                best, dearest = n + g, own
    return best, 0.0
