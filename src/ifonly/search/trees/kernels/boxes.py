"""Boxes of cells: narrowing one, what its leaves can still add up to, and the leaves of its nearest point."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.search.trees.kernels.layout import (
    ADDITIVE,
    CONDITION,
    COUNT,
    INNER,
    RANKS,
    ROWS,
    USE,
    USED,
    USER,
    WORD,
    lowest_bit,
)
from ifonly.search.trees.kernels.points import has

ONE = np.uint64(1)
NOTHING = np.uint64(0)
BITS = 64


@njit(**INNER)
def narrow(forest, table, stack, s, g):
    """Feature g has fewer cells left: the leaves that fall away, in every tree that uses it."""
    for place in range(table.feature_at[g], table.feature_at[g + 1]):
        u = table.by_feature[place]
        v = table.use[USER, u]
        first, words = table.tree[WORD, v], table.tree[WORD, v + 1] - table.tree[WORD, v]
        rows, ranks = table.use[ROWS, u], table.use[RANKS, u]
        if forest.choice[g]:
            width = len(forest.sets[0])
            for w in range(words):
                union = NOTHING
                for k in range(stack.least[s, g], stack.most[s, g] + 1):
                    if has(stack.left[s, g * width : (g + 1) * width], k):
                        union |= table.mask[rows + table.rank[ranks + k] * words + w]
                stack.alive[s, first + w] &= union
            continue
        low = rows + table.rank[ranks + stack.least[s, g]] * words
        high = rows + (table.use[COUNT, u] + table.rank[ranks + stack.most[s, g]]) * words
        for w in range(words):
            stack.alive[s, first + w] &= table.mask[low + w] & table.mask[high + w]


@njit(**INNER)
def place_point(forest, table, stack, s, v):
    """The leaf of one tree that the nearest point falls into."""
    first, words = table.tree[WORD, v], table.tree[WORD, v + 1] - table.tree[WORD, v]
    for w in range(words):
        bits = stack.alive[s, first + w]
        u = table.tree[USE, v]
        while bits != NOTHING and u < table.tree[USE, v + 1]:
            g = table.use[USED, u]
            rank = table.rank[table.use[RANKS, u] + stack.near[s, g]]
            bits &= table.mask[table.use[ROWS, u] + rank * words + w]
            if not forest.choice[g]:
                bits &= table.mask[table.use[ROWS, u] + (table.use[COUNT, u] + rank) * words + w]
            u += 1
        if bits != NOTHING:
            stack.at[s, v] = (first + w) * BITS + lowest_bit(bits)
            return


@njit(**INNER)
def move_point(forest, table, stack, s, g):
    """The nearest point has another cell of feature g: its leaves in the trees that use it."""
    for place in range(table.feature_at[g], table.feature_at[g + 1]):
        place_point(forest, table, stack, s, table.use[USER, table.by_feature[place]])


@njit(**INNER)
def best_bit(table, stack, s, v):
    """The best leaf of a tree that the box leaves."""
    w = table.tree[WORD, v]
    while stack.alive[s, w] == NOTHING:
        w += 1
    return w * BITS + lowest_bit(stack.alive[s, w])


@njit(**INNER)
def add_up(table, stack, s, sums):
    """Per condition, what the best leaves that are left add up to, and those of the nearest point."""
    for j in range(len(table.settled)):
        sums[0, j] = sums[1, j] = table.settled[j]
    for v in range(table.tree.shape[1] - 1):
        j = table.tree[CONDITION, v]
        sums[0, j] += table.gives[best_bit(table, stack, s, v)]
        sums[1, j] += table.gives[stack.at[s, v]]


@njit(**INNER)
def settled(table, stack, s):
    """Is one leaf left of every tree?"""
    for v in range(table.tree.shape[1] - 1):
        count = 0
        for w in range(table.tree[WORD, v], table.tree[WORD, v + 1]):
            bits = stack.alive[s, w]
            if bits != NOTHING:
                count += 1 if bits & (bits - ONE) == NOTHING else 2
        if count > 1:
            return False
    return True


@njit(**INNER)
def nearest_cell(forest, person, stack, s, g):
    """The cheapest cell that is left of feature g; False if there is none."""
    cost, width = person.cost[stack.must[s, g]], len(forest.sets[0])
    best, cell = math.inf, -1
    for k in range(stack.least[s, g], stack.most[s, g] + 1):
        if cost[forest.start[g] + k] < best:
            if forest.choice[g] and not has(stack.left[s, g * width : (g + 1) * width], k):
                continue
            best, cell = cost[forest.start[g] + k], k
    if cell >= 0:
        stack.near[s, g] = cell
    return cell >= 0


@njit(**INNER)
def box_cost(forest, person, stack, s):
    """What the nearest point of the box costs."""
    total = 0.0
    for g in range(len(forest.choice)):
        cost = person.cost[stack.must[s, g], forest.start[g] + stack.near[s, g]]
        total = total + cost if forest.norm == ADDITIVE else max(total, cost)
    return total


@njit(**INNER)
def afford(forest, person, stack, s, total, cutoff, g):
    """Drop the cells of feature g that make every point cost the cutoff or more; True if there were any."""
    cost, first = person.cost[stack.must[s, g]], forest.start[g]
    room = cutoff - total + cost[first + stack.near[s, g]] if forest.norm == ADDITIVE else cutoff
    dropped = False
    if forest.choice[g]:
        width = len(forest.sets[0])
        for k in range(stack.least[s, g], stack.most[s, g] + 1):
            if has(stack.left[s, g * width : (g + 1) * width], k) and not cost[first + k] < room:
                stack.left[s, g * width + (k >> 6)] &= ~(ONE << np.uint64(k & 63))
                dropped = True
        return dropped
    while not cost[first + stack.least[s, g]] < room:
        stack.least[s, g] += 1
        dropped = True
    while not cost[first + stack.most[s, g]] < room:
        stack.most[s, g] -= 1
        dropped = True
    return dropped
