"""The linear program of a box: one variable per leaf and per crossing of a cut, and what leaves say of crossings.

A crossing is named by the cell that is entered by it, away from the nearest point; of a choice, by the option, and the
nearest option stands for leaving it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ifonly.solvers.search.trees.kernels.layout import (
    CONDITION,
    FEATURE,
    INNER,
    LEAST,
    MOST,
    NEED,
    SLACK,
    TREE_OF,
    WORD,
    Floats,
    Places,
)
from ifonly.solvers.search.trees.kernels.points import has

ONE = np.uint64(1)
NOTHING = np.uint64(0)
NEEDS, STAYS, NEITHER = 0, 1, -1
CELL, NEXT = 0, 1
"""Rows of the slots, one per tree and crossing: the cell that is entered by it; the tree's next slot of the feature."""


class LeafProgram(NamedTuple):
    """The linear program of a box: leaves of every tree, and what they say of the crossings."""

    slots: Places
    """(2, slot): see CELL, NEXT."""
    slot_at: Places
    """(tree): where its slots begin."""
    tree_of: Places
    """(tree): which one it is."""
    tree_at: Places
    leaf_of: Places
    leaf_at: Places
    entry: Places
    """Of a leaf: twice a slot, plus NEEDS or STAYS."""
    value: Floats
    """(condition, leaf)."""
    need: Floats


@njit(**INNER)
def _only(words, left, count):
    """The only cell that a limit leaves of a choice; -1 if there are several."""
    one = -1
    for k in range(count):
        if has(words, k) and has(left, k):
            if one >= 0:
                return -1
            one = k
    return one


@njit(**INNER)
def _slots_of(forest, ball, near, i, first, count, slots, of_cell, head):
    """The crossings that limit i of a leaf is about, as slots of its tree, whose own begin at `first`."""
    least, most, left = ball
    g = forest.limit[FEATURE, i]
    start = forest.start[g]
    if forest.choice[g]:
        one = _only(forest.limit_set[i], left[g], forest.start[g + 1] - start)
        cells = (near[g] if one == near[g] or not has(forest.limit_set[i], near[g]) else -1, one)
    else:
        low, high = forest.limit[LEAST, i] - 1, forest.limit[MOST, i]
        low = -1 if low < least[g] else low + 1 if low >= near[g] else low
        high = -1 if high >= most[g] else high + 1 if high >= near[g] else high
        cells = (low, high)
    for k in cells:
        if k >= 0 and of_cell[start + k] < first:
            of_cell[start + k] = count
            slots[CELL, count] = start + k
            slots[NEXT, count] = head[g] if head[g] >= first else -1
            head[g] = count
            count += 1
    return count


@njit(**INNER)
def _side(forest, ball, near, i, k):
    """What limit i of a leaf says of the crossing into cell k: NEEDS, STAYS or NEITHER."""
    g = forest.limit[FEATURE, i]
    if forest.choice[g]:
        words, left = forest.limit_set[i], ball[2][g]
        one = _only(words, left, forest.start[g + 1] - forest.start[g])
        if k == near[g]:
            return NEEDS if not has(words, k) else STAYS if one == k else NEITHER
        return NEEDS if one == k else NEITHER if has(words, k) else STAYS
    low, high = forest.limit[LEAST, i], forest.limit[MOST, i]
    if k > near[g]:
        return NEEDS if low >= k else STAYS if high < k else NEITHER
    return NEEDS if high <= k else STAYS if low > k else NEITHER


@njit(**INNER)
def list_crossings(forest, table, ball, near, program, head, of_cell):
    """Slots of every tree, its leaves, and what each leaf says of the slots; returns how many slots, trees, entries."""
    slots, leaf_of, leaf_at, entry = program.slots, program.leaf_of, program.leaf_at, program.entry
    count, trees, places, used, last = 0, 0, 0, 0, -1
    for v in range(table.tree.shape[1] - 1):
        if table.tree[TREE_OF, v] == last:
            continue
        last, first, leaves = table.tree[TREE_OF, v], count, places
        for bit in range(table.tree[WORD, v] * 64, table.tree[WORD, v + 1] * 64):
            if (table.alive[bit // 64] >> np.uint64(bit % 64)) & ONE != NOTHING:
                leaf = table.leaf[bit]
                leaf_of[places] = leaf
                places += 1
                for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
                    count = _slots_of(forest, ball, near, i, first, count, slots, of_cell, head)
        for p in range(leaves, places):
            leaf_at[p] = used
            for i in range(forest.limit_at[leaf_of[p]], forest.limit_at[leaf_of[p] + 1]):
                g = forest.limit[FEATURE, i]
                slot = head[g] if head[g] >= first else -1
                while slot >= 0:
                    side = _side(forest, ball, near, i, slots[CELL, slot] - forest.start[g])
                    if side != NEITHER:
                        if used < len(entry):
                            entry[used] = 2 * slot + side
                        used += 1
                    slot = slots[NEXT, slot]
        program.tree_of[trees] = last
        trees += 1
        program.tree_at[trees], program.slot_at[trees] = places, count
    leaf_at[places] = used
    return count, trees, used


@njit(**INNER)
def list_needs(forest, table, program):
    """What the conditions must reach with the leaves of these trees alone, and what each leaf adds."""
    for j in range(len(program.need)):
        program.need[j] = forest.demand[NEED, j] - forest.demand[SLACK, j] - table.settled[j]
        for p in range(len(program.leaf_of)):
            program.value[j, p] = forest.value[j, program.leaf_of[p]]
    t, last = -1, -1
    for v in range(table.tree.shape[1] - 1):
        if table.tree[TREE_OF, v] != last:
            last = table.tree[TREE_OF, v]
            t += 1
            for j in range(len(program.need)):
                program.need[j] += forest.value[j, program.leaf_of[program.tree_at[t]]]
        j = table.tree[CONDITION, v]
        program.need[j] -= forest.value[j, program.leaf_of[program.tree_at[t]]]


@njit(**INNER)
def sizes(forest, table):
    """How many trees, leaves and slots there are, the latter at most."""
    trees, leaves, slots, last = 0, 0, 0, -1
    for v in range(table.tree.shape[1] - 1):
        if table.tree[TREE_OF, v] == last:
            continue
        last = table.tree[TREE_OF, v]
        trees += 1
        for bit in range(table.tree[WORD, v] * 64, table.tree[WORD, v + 1] * 64):
            if (table.alive[bit // 64] >> np.uint64(bit % 64)) & ONE != NOTHING:
                leaves += 1
                slots += 2 * (forest.limit_at[table.leaf[bit] + 1] - forest.limit_at[table.leaf[bit]])
    return trees, leaves, slots
