"""The trees as far as one person's ball reaches them.

Of each tree the leaves are kept that the ball reaches, best first, as bits. A box is then an AND of masks, and the best
leaf that it leaves a tree is the lowest bit. Trees of which one leaf is left are added up once and for all.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.search.trees.kernels.greedy import home
from ifonly.search.trees.kernels.layout import (
    ADDITIVE,
    CONDITION,
    COUNT,
    FEATURE,
    FREE,
    INNER,
    LEAST,
    MOST,
    ONCE,
    OUTER,
    RANKS,
    ROWS,
    SOURCES,
    USE,
    USED,
    USER,
    WORD,
    Table,
)
from ifonly.search.trees.kernels.points import EVERY, has

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
WORD_BITS = 64


@njit(**OUTER)
def reach(forest, person, cutoff, near, least, most, left):
    """The cells that are affordable below the cutoff, by feature; returns the cost of the nearest point.

    Infinity where no row is allowed, or none is nearer than the cutoff.
    """
    total = 0.0 if SOURCES >= 0 else 1.0
    for g in range(len(forest.choice)):
        cost = person.cost[FREE, forest.start[g] : forest.start[g + 1]]
        near[g] = home(forest, person, g)
        total = total + cost[near[g]] if forest.norm == ADDITIVE else max(total, cost[near[g]])
    if not total < cutoff:
        return math.inf
    for g in range(len(forest.choice)):
        cost = person.cost[FREE, forest.start[g] : forest.start[g + 1]]
        room = cutoff - total + cost[near[g]] if forest.norm == ADDITIVE else cutoff
        least[g], most[g] = len(cost), -1
        for k in range(len(cost)):
            if cost[k] < room:
                least[g], most[g] = min(least[g], k), max(most[g], k)
                if forest.choice[g]:
                    left[g, k >> 6] |= ONE << np.uint64(k & 63)
    return total


@njit(**INNER)
def _entry(forest, person, i, near):
    """What it costs more to be where limit i of a leaf asks; -1 where the nearest point is there already."""
    g = forest.limit[FEATURE, i]
    first, own = forest.start[g], person.cost[FREE, forest.start[g] + near[g]]
    if forest.choice[g]:
        if has(forest.limit_set[i], near[g]):
            return -1.0
        best = math.inf
        for k in range(forest.start[g + 1] - first):
            if has(forest.limit_set[i], k):
                best = min(best, person.cost[FREE, first + k])
        return best - own
    low, high = forest.limit[LEAST, i], forest.limit[MOST, i]
    if low <= near[g] <= high:
        return -1.0
    best = math.inf
    if near[g] < low:
        for k in range(low, high + 1):
            if person.cost[FREE, first + k] < math.inf:
                best = person.cost[FREE, first + k]
                break
    else:
        for k in range(high, low - 1, -1):
            if person.cost[FREE, first + k] < math.inf:
                best = person.cost[FREE, first + k]
                break
    return best - own


@njit(**INNER)
def reached(forest, person, leaf, near, total, cutoff):
    """Can a row nearer than the cutoff fall into the leaf?"""
    if forest.dead[leaf]:
        return False
    for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
        more = _entry(forest, person, i, near)
        if more < 0.0:
            continue
        if forest.norm == ADDITIVE:
            total += more
            if not total < cutoff:
                return False
        elif not person.cost[FREE, forest.start[forest.limit[FEATURE, i]] + near[forest.limit[FEATURE, i]]] + more < cutoff:
            return False
    return True


@njit(**INNER)
def _matters(forest, i, least, most, left):
    """Does limit i of a leaf exclude any cell of the ball?"""
    g = forest.limit[FEATURE, i]
    if not forest.choice[g]:
        return forest.limit[LEAST, i] > least[g] or forest.limit[MOST, i] < most[g]
    for w in range(left.shape[1]):
        if left[g, w] & ~forest.limit_set[i, w] != np.uint64(0):
            return True
    return False


@njit(**INNER)
def _mark(forest, kept, number, ball, marks, uses):
    """The features that part the kept leaves of one tree, in `uses`, and in `marks` the cells where ranks begin."""
    least, most, left = ball
    used = 0
    for b in range(number):
        leaf = kept[b]
        for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
            if not _matters(forest, i, least, most, left):
                continue
            g = forest.limit[FEATURE, i]
            first = forest.start[g]
            new = True
            for u in range(used):
                new = new and uses[u] != g
            if new:
                uses[used] = g
                used += 1
                for k in range(first, forest.start[g + 1]):
                    marks[k] = forest.choice[g]
            if not forest.choice[g]:
                if forest.limit[LEAST, i] > least[g]:
                    marks[first + forest.limit[LEAST, i]] = 1
                if forest.limit[MOST, i] < most[g]:
                    marks[first + forest.limit[MOST, i] + 1] = 1
    return used


@njit(**INNER)
def _widest(forest):
    widest = 0
    for t in range(len(forest.roots)):
        widest = max(widest, forest.first_leaf[t + 1] - forest.first_leaf[t])
    return widest


@njit(**INNER)
def _keep(forest, person, place, near, total, cutoff, kept):
    """The leaves that are reached of one tree, best first for one condition; one where all add the same."""
    t, j = place // len(forest.value), place % len(forest.value)
    number = 0
    for i in range(forest.first_leaf[t], forest.first_leaf[t + 1]):
        if reached(forest, person, forest.order[j, i], near, total, cutoff):
            kept[number] = forest.order[j, i]
            number += 1
    same = forest.adds_to[t] != EVERY and forest.value[j, kept[0]] == forest.value[j, kept[number - 1]]
    return 1 if same else number


@njit(**OUTER)
def measure(forest, person, ball, near, total, cutoff):
    """How large the table will be: trees, words, uses, ranks, words of masks."""
    sizes = np.zeros(5, dtype=np.int64) if SOURCES >= 0 else np.zeros(0, dtype=np.int64)
    least, most, left = ball
    kept, uses = np.empty(_widest(forest), dtype=np.int32), np.empty(len(forest.choice), dtype=np.int64)
    marks = np.zeros(forest.start[-1], dtype=np.uint8)
    for place in range(len(forest.roots) * len(forest.value)):
        number = _keep(forest, person, place, near, total, cutoff, kept)
        if number <= 1:
            continue
        words, used = (number + WORD_BITS - 1) // WORD_BITS, _mark(forest, kept, number, ball, marks, uses)
        rows = 0
        for u in range(used):
            g = uses[u]
            for k in range(least[g], most[g] + 1):
                rows += 1 if forest.choice[g] else 2 * (marks[forest.start[g] + k] or k == least[g])
            sizes[3] += most[g] - least[g] + 1
        sizes[0] += 1
        sizes[1] += words
        sizes[2] += used
        sizes[4] += rows * words
    return sizes


@njit(**ONCE)
def _write_use(forest, table, place, kept, number, words, ball, marks, at):
    """Ranks and masks of one feature of one tree. `at`: where ranks and masks begin; returns where they end."""
    least, most, _ = ball
    g = table.use[USED, place]
    first, rank_at, row_at = forest.start[g], at[0], at[1]
    ranks = 0
    for k in range(least[g], most[g] + 1):
        if k > least[g] and marks[first + k]:
            ranks += 1
        table.rank[rank_at + k - least[g]] = ranks
    ranks += 1
    table.use[RANKS, place], table.use[ROWS, place], table.use[COUNT, place] = rank_at - least[g], row_at, ranks
    rows = ranks if forest.choice[g] else 2 * ranks
    for k in range(rows * words):
        table.mask[row_at + k] = ALL
    for b in range(number):
        leaf, word, bit = kept[b], b // WORD_BITS, ~(ONE << np.uint64(b % WORD_BITS))
        for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
            if forest.limit[FEATURE, i] != g:
                continue
            if forest.choice[g]:
                for k in range(least[g], most[g] + 1):
                    if not has(forest.limit_set[i], k):
                        table.mask[row_at + (k - least[g]) * words + word] &= bit
                continue
            low, high = max(forest.limit[LEAST, i], least[g]), min(forest.limit[MOST, i], most[g])
            for r in range(table.rank[rank_at + high - least[g]] + 1, ranks):
                table.mask[row_at + r * words + word] &= bit
            for r in range(table.rank[rank_at + low - least[g]]):
                table.mask[row_at + (ranks + r) * words + word] &= bit
    at[0] += most[g] - least[g] + 1
    at[1] += rows * words


@njit(**ONCE)
def _write_tree(forest, table, v, condition, kept, number, ball, marks, at):
    """The leaves of one tree for one condition, and its uses."""
    words = (number + WORD_BITS - 1) // WORD_BITS
    table.tree[CONDITION, v] = condition
    first = table.tree[WORD, v]
    table.tree[WORD, v + 1] = first + words
    for w in range(words):
        table.alive[first + w] = np.uint64(0)
    for b in range(number):
        table.alive[first + b // WORD_BITS] |= ONE << np.uint64(b % WORD_BITS)
        table.leaf[first * WORD_BITS + b] = kept[b]
        table.gives[first * WORD_BITS + b] = forest.value[condition, kept[b]]
    uses = np.empty(len(forest.choice), dtype=np.int64)
    used = _mark(forest, kept, number, ball, marks, uses)
    begin = table.tree[USE, v]
    table.tree[USE, v + 1] = begin + used
    for u in range(used):
        table.use[USED, begin + u], table.use[USER, begin + u] = uses[u], v
        _write_use(forest, table, begin + u, kept, number, words, ball, marks, at)


@njit(**ONCE)
def _sort_uses(forest, table):
    """Uses, feature by feature."""
    free = np.zeros(len(table.feature_at), dtype=np.int64)
    for g in range(len(free)):
        table.feature_at[g] = 0
    for u in range(table.use.shape[1]):
        table.feature_at[table.use[USED, u] + 1] += 1
    for g in range(len(forest.choice)):
        table.feature_at[g + 1] += table.feature_at[g]
    for g in range(len(free)):
        free[g] = table.feature_at[g]
    for u in range(table.use.shape[1]):
        g = table.use[USED, u]
        table.by_feature[free[g]] = u
        free[g] += 1


@njit(**OUTER)
def build(forest, person, ball, near, total, cutoff, sizes):
    """The table of the ball of the cutoff."""
    conditions = len(forest.value) if SOURCES >= 0 else 0
    trees = sizes[0]
    table = Table(
        np.zeros((3, trees + 1), dtype=np.int64),
        np.empty(sizes[1] * WORD_BITS, dtype=np.int32),
        np.empty(sizes[1] * WORD_BITS),
        np.empty((5, sizes[2]), dtype=np.int64),
        np.empty(sizes[3], dtype=np.int32),
        np.empty(sizes[4], dtype=np.uint64),
        np.empty(sizes[2], dtype=np.int64),
        np.empty(len(forest.choice) + 1, dtype=np.int64),
        np.zeros(conditions),
        np.empty(sizes[1], dtype=np.uint64),
    )
    marks, at = np.zeros(forest.start[-1], dtype=np.uint8), np.zeros(2, dtype=np.int64)
    kept, v = np.empty(_widest(forest), dtype=np.int32), 0
    for place in range(len(forest.roots) * conditions):
        j = place % conditions
        number = _keep(forest, person, place, near, total, cutoff, kept)
        if number == 1:
            table.settled[j] += forest.value[j, kept[0]]
        else:
            _write_tree(forest, table, v, j, kept, number, ball, marks, at)
            v += 1
    _sort_uses(forest, table)
    return table
