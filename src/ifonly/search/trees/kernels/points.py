"""Points, given by their cells: the leaves they fall into, the library's own scores of them, and all single moves."""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.search.trees.kernels.layout import (
    ASKED,
    BEGIN,
    COLUMN,
    CUT,
    FEATURE,
    INNER,
    LEAF,
    LEAST,
    LEFT,
    MOST,
    OFFSET,
    RIGHT,
    SHIFT,
)

EVERY = -1


@njit(**INNER)
def goes_left(forest, node, cell):
    cut = forest.node[CUT, node]
    if forest.choice[forest.node[COLUMN, node]]:
        return (forest.sets[cut, cell >> 6] >> np.uint64(cell & 63)) & np.uint64(1) != np.uint64(0)
    return cell <= cut


@njit(**INNER)
def has(words, cell):
    """Is the cell in the set?"""
    return (words[cell >> 6] >> np.uint64(cell & 63)) & np.uint64(1) != np.uint64(0)


@njit(**INNER)
def leaf_of(forest, tree, cells):
    node = forest.roots[tree]
    while forest.node[COLUMN, node] >= 0:
        left = goes_left(forest, node, cells[forest.node[COLUMN, node]])
        node = forest.node[LEFT, node] if left else forest.node[RIGHT, node]
    return forest.node[LEAF, node]


@njit(**INNER)
def score_of(forest, leaves, output):
    """The library's own sum, tree by tree, in its own precision."""
    wide = forest.raw.shape[1] > 1
    begin, shift = forest.summing[BEGIN, output], forest.summing[SHIFT, output]
    if forest.single:
        small = np.float32(begin)
        for t in range(len(leaves)):
            if forest.adds_to[t] == EVERY or forest.adds_to[t] == output:
                small = np.float32(small + np.float32(forest.raw[leaves[t], output if wide else 0]))
        small = np.float32(small / np.float32(forest.divisor))
        small = np.float32(small * np.float32(forest.scale))
        return np.float64(np.float32(small + np.float32(shift)))
    total = begin
    for t in range(len(leaves)):
        if forest.adds_to[t] == EVERY or forest.adds_to[t] == output:
            total = total + forest.raw[leaves[t], output if wide else 0]
    return total / forest.divisor * forest.scale + shift


@njit(nogil=True, error_model="numpy")
def fulfils(forest, cells):
    """Do the library's own scores of a point meet every condition?"""
    trees = len(forest.roots)
    leaves = np.empty(trees, dtype=np.int32)
    for t in range(trees):
        leaves[t] = leaf_of(forest, t, cells)
    outputs = forest.summing.shape[1]
    scores = np.empty(outputs)
    for k in range(outputs):
        scores[k] = score_of(forest, leaves, k)
    for j in range(len(forest.coefficients)):
        total = 0.0
        for k in range(outputs):
            if forest.coefficients[j, k] != 0.0:
                total += forest.coefficients[j, k] * scores[k]
        if total - forest.demand[OFFSET, j] < forest.demand[ASKED, j]:
            return False
    return True


@njit(**INNER)
def sums_of(forest, cells, sums):
    """The sums of the leaves that a point falls into, one per condition."""
    for j in range(len(sums)):
        sums[j] = 0.0
    for t in range(len(forest.roots)):
        leaf = leaf_of(forest, t, cells)
        for j in range(len(sums)):
            sums[j] += forest.value[j, leaf]


@njit(**INNER)
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
def single_moves(forest, cells, gains, node_stack, moved_stack):
    """gains[j, cell]: by how much condition j grows when the cell's feature alone goes there."""
    for j in range(len(gains)):
        for k in range(gains.shape[1]):
            gains[j, k] = 0.0
    for t in range(len(forest.roots)):
        base = leaf_of(forest, t, cells)
        height = 1
        node_stack[0], moved_stack[0] = forest.roots[t], -1
        while height:
            height -= 1
            node, moved = node_stack[height], moved_stack[height]
            while forest.node[COLUMN, node] >= 0:
                column = forest.node[COLUMN, node]
                left = goes_left(forest, node, cells[column])
                own = forest.node[LEFT, node] if left else forest.node[RIGHT, node]
                other = forest.node[RIGHT, node] if left else forest.node[LEFT, node]
                if moved == -1 or moved == column:
                    node_stack[height], moved_stack[height] = other, column
                    height += 1
                node = own
            leaf = forest.node[LEAF, node]
            if moved >= 0 and leaf != base and not forest.dead[leaf]:
                _credit(forest, leaf, moved, base, gains)
    for g in range(len(forest.choice)):
        if not forest.choice[g]:
            for j in range(len(gains)):
                for k in range(forest.start[g] + 1, forest.start[g + 1]):
                    gains[j, k] += gains[j, k - 1]
