"""Shares of a priced box, kept so that its parts begin with them: any shares give a valid bound, good ones a good one.

A part has fewer leaves, and so fewer crossings. The share that a tree paid for a crossing which none of its leaves asks
about any more goes to its next crossing: outward if leaves need it, since who crosses that one crosses both, and inward
if they stay. So a part begins with the bound of the box that it comes from.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from ifonly.solvers.search.trees.kernels.crossings import CELL, NEEDS
from ifonly.solvers.search.trees.kernels.layout import INNER, Floats, Ints, Places
from ifonly.solvers.search.trees.kernels.points import has


class Shares(NamedTuple):
    """The shares above 0 of a box, tree by tree, and the worths; with worths of 0, none."""

    near: Places
    """(feature): the nearest cell of the box."""
    key: Ints
    """Twice (tree * cells + cell), plus NEEDS or STAYS."""
    price: Floats
    worth: Floats
    """(condition)."""


@njit(**INNER)
def _heir(forest, ball, near, program, t, g, cell, side):
    """The slot of a tree that takes over the share of a crossing of a number; -1 if none does."""
    first, up, found = forest.start[g], cell > forest.start[g] + near[g], -1
    if not first + ball[0][g] <= cell <= first + ball[1][g]:
        return -1
    for slot in range(program.slot_at[t], program.slot_at[t + 1]):
        k = program.slots[CELL, slot]
        if not first <= k < forest.start[g + 1] or (k > first + near[g]) != up:
            continue
        beyond = k - cell if up else cell - k
        if side != NEEDS:
            beyond = -beyond
        if beyond >= 0 and (found < 0 or beyond < abs(program.slots[CELL, found] - cell)):
            found = slot
    return found


@njit(**INNER)
def _same(program, t, cell):
    """The slot of a tree for this very cell; -1 if it has none."""
    for slot in range(program.slot_at[t], program.slot_at[t + 1]):
        if program.slots[CELL, slot] == cell:
            return slot
    return -1


@njit(**INNER)
def inherit(forest, ball, near, program, shares, price):
    """The shares of a box, as far as they say anything of the crossings of a part of it."""
    cells, i = forest.start[-1], 0
    for t in range(len(program.tree_of)):
        first = 2 * program.tree_of[t] * cells
        while i < len(shares.key) and shares.key[i] < first:
            i += 1
        while i < len(shares.key) and shares.key[i] < first + 2 * cells:
            cell, side, g = (shares.key[i] - first) // 2, shares.key[i] % 2, 0
            while forest.start[g + 1] <= cell:
                g += 1
            place, slot = cell - forest.start[g], -1
            if forest.choice[g]:
                if near[g] == shares.near[g] and has(ball[2][g], place):
                    slot = _same(program, t, cell)
            elif (place > shares.near[g]) == (place > near[g]) and place != near[g]:
                slot = _heir(forest, ball, near, program, t, g, cell, side)
            if slot >= 0:
                price[2 * slot + side] += shares.price[i]
            i += 1


@njit(**INNER)
def count_shares(price):
    """How many are above 0."""
    count = 0
    for i in range(len(price)):
        count += price[i] > 0.0
    return count


@njit(**INNER)
def note_shares(forest, program, price, shares):
    """Write down the shares above 0."""
    cells, used = forest.start[-1], 0
    for t in range(len(program.tree_of)):
        for i in range(2 * program.slot_at[t], 2 * program.slot_at[t + 1]):
            if price[i] > 0.0:
                shares.key[used] = 2 * (program.tree_of[t] * cells + program.slots[CELL, i // 2]) + i % 2
                shares.price[used] = price[i]
                used += 1
