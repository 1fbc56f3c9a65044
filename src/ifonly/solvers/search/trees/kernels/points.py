"""Points, given by their cells: the leaves they fall into, the library's own scores of them, and all single moves."""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.trees.kernels.layout import (
    BEGIN,
    COLUMN,
    CUT,
    DIVISOR,
    FEATURE,
    FREE,
    INNER,
    LEAF,
    LEAST,
    LEFT,
    MAXIMUM,
    MOST,
    OFFSET,
    ONCE,
    REQUIRED,
    RIGHT,
    SCALE,
    SHIFT,
    SINGLE,
)

EVERY = -1


@njit(**INNER)
def has(words, cell):
    """Is the cell in the set?"""
    return (words[cell >> 6] >> np.uint64(cell & 63)) & np.uint64(1) != np.uint64(0)


@njit(**INNER)
def goes_left(node, sets, choice, i, cell):
    return has(sets[node[CUT, i]], cell) if choice[node[COLUMN, i]] else cell <= node[CUT, i]


@njit(**INNER)
def leaf_of(node, sets, choice, i, cells):
    """The leaf below node i that a point falls into."""
    while node[COLUMN, i] >= 0:
        i = node[LEFT, i] if goes_left(node, sets, choice, i, cells[node[COLUMN, i]]) else node[RIGHT, i]
    return node[LEAF, i]


@njit(**ONCE)
def score_of(forest, leaves, output):
    """The library's own sum, tree by tree, in its own precision."""
    wide = forest.raw.shape[1] > 1
    begin, shift = forest.summing[BEGIN, output], forest.summing[SHIFT, output]
    divisor, scale = forest.summing[DIVISOR, output], forest.summing[SCALE, output]
    if forest.summing[SINGLE, output] != 0.0:
        small = np.float32(begin)
        for t in range(len(leaves)):
            if forest.adds_to[t] == EVERY or forest.adds_to[t] == output:
                small = np.float32(small + np.float32(forest.raw[leaves[t], output if wide else 0]))
        small = np.float32(small / np.float32(divisor))
        small = np.float32(small * np.float32(scale))
        return np.float64(np.float32(small + np.float32(shift)))
    total = begin
    for t in range(len(leaves)):
        if forest.adds_to[t] == EVERY or forest.adds_to[t] == output:
            total = total + forest.raw[leaves[t], output if wide else 0]
    return total / divisor * scale + shift


@njit(**INNER)
def fulfils(forest, cells, leaves, scores):
    """Do the library's own scores of a point meet every condition? `leaves` and `scores` are its buffers."""
    for t in range(len(forest.roots)):
        leaves[t] = leaf_of(forest.node, forest.sets, forest.choice, forest.roots[t], cells)
    for k in range(len(scores)):
        scores[k] = score_of(forest, leaves, k)
    for j in range(len(forest.coefficients)):
        total = 0.0
        for k in range(len(scores)):
            if forest.coefficients[j, k] != 0.0:
                total += forest.coefficients[j, k] * scores[k]
        if total - forest.demand[OFFSET, j] < forest.demand[REQUIRED, j]:
            return False
    return True


@njit(**INNER)
def sums_of(forest, cells, sums):
    """The sums of the leaves that a point falls into, one per condition."""
    for j in range(len(sums)):
        sums[j] = 0.0
    for t in range(len(forest.roots)):
        leaf = leaf_of(forest.node, forest.sets, forest.choice, forest.roots[t], cells)
        for j in range(len(sums)):
            sums[j] += forest.value[j, leaf]


@njit(**ONCE)
def _credit(forest, leaf, moved, base, gains):
    """A leaf that is reached when feature `moved` alone goes where the leaf asks."""
    for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
        if forest.limit[FEATURE, i] != moved:
            continue
        first, last = forest.start[moved], forest.start[moved + 1]
        if forest.choice[moved]:
            for k in range(last - first):
                if has(forest.limit_set[i], k):
                    for j in range(len(gains)):
                        gains[j, first + k] += forest.value[j, leaf] - forest.value[j, base]
        else:
            for j in range(len(gains)):
                gain = forest.value[j, leaf] - forest.value[j, base]
                gains[j, first + forest.limit[LEAST, i]] += gain
                if first + forest.limit[MOST, i] + 1 < last:
                    gains[j, first + forest.limit[MOST, i] + 1] -= gain


@njit(**INNER)
def single_moves(forest, person, cells, gains, allowance, node_stack, moved_stack):
    """gains[j, cell]: by how much condition j grows when the cell's feature alone goes there.

    Right for cells that cost less than `allowance` more than the feature does now (in a maximum: less than that).
    """
    cost, start, flat = person.cost[FREE], forest.start, forest.norm == MAXIMUM
    node_of, sets, choice = forest.node, forest.sets, forest.choice
    for j in range(len(gains)):
        for k in range(gains.shape[1]):
            gains[j, k] = 0.0
    for t in range(len(forest.roots)):
        base = leaf_of(node_of, sets, choice, forest.roots[t], cells)
        height = 1
        node_stack[0], moved_stack[0] = forest.roots[t], -1
        while height:
            height -= 1
            node, moved = node_stack[height], moved_stack[height]
            while node_of[COLUMN, node] >= 0:
                column = node_of[COLUMN, node]
                left = goes_left(node_of, sets, choice, node, cells[column])
                own = node_of[LEFT, node] if left else node_of[RIGHT, node]
                other = node_of[RIGHT, node] if left else node_of[LEFT, node]
                beyond = start[column] + node_of[CUT, node] + (1 if left else 0)
                now = 0.0 if flat else cost[start[column] + cells[column]]
                near = choice[column] or (
                    start[column] <= beyond < start[column + 1] and cost[beyond] < now + allowance
                )
                if near and (moved == -1 or moved == column):
                    node_stack[height], moved_stack[height] = other, column
                    height += 1
                node = own
            leaf = node_of[LEAF, node]
            if moved >= 0 and leaf != base and not forest.dead[leaf]:
                _credit(forest, leaf, moved, base, gains)
    for g in range(len(forest.choice)):
        if not forest.choice[g]:
            for j in range(len(gains)):
                for k in range(forest.start[g] + 1, forest.start[g + 1]):
                    gains[j, k] += gains[j, k - 1]
