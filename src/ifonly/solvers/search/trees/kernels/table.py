"""The trees as far as one person's ball reaches them.

Of each tree the leaves are kept that the ball reaches, best first, as bits: the best leaf that a box leaves is the
lowest bit. For every cell there is a list of the leaves that are lost when a box loses the cell. Trees of which one
leaf is left are added up once and for all.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.layout import (
    ABOVE,
    ADDITIVE,
    BELOW,
    COLUMN,
    CONDITION,
    CUT,
    FEATURE,
    FREE,
    INNER,
    LEAF,
    LEAST,
    LEFT,
    LISTED,
    MOST,
    ONCE,
    OUTER,
    RIGHT,
    SOURCES,
    TREE_OF,
    WORD,
    LeafTable,
)
from ifonly.solvers.search.trees.kernels.points import EVERY, has

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
NOTHING = np.uint64(0)
WORD_BITS = 64


@njit(**INNER)
def _reach(forest, person, cutoff, near, ball):
    least, most, left = ball
    total = 0.0
    for g in range(len(forest.choice)):
        first, best = forest.start[g], math.inf
        for k in range(least[g], most[g] + 1):
            if person.cost[FREE, first + k] < best and (not forest.choice[g] or has(left[g], k)):
                near[g], best = k, person.cost[FREE, first + k]
        total = total + best if forest.norm == ADDITIVE else max(total, best)
    if not total < cutoff:
        return math.inf
    for g in range(len(forest.choice)):
        cost = person.cost[FREE, forest.start[g] : forest.start[g + 1]]
        allowance = cutoff - total + cost[near[g]] if forest.norm == ADDITIVE else cutoff
        low, high = len(cost), -1
        for k in range(least[g], most[g] + 1):
            if cost[k] < allowance:
                low, high = min(low, k), max(high, k)
            elif forest.choice[g]:
                left[g, k >> 6] &= ~(ONE << np.uint64(k & 63))
        least[g], most[g] = low, high
    return total


@with_cache(SOURCES, **OUTER)
def reach(forest, person, cutoff, near, ball):
    """Narrow a box to the cells that are affordable below the cutoff; returns the cost of its nearest point.

    Infinity where no row is allowed, or none is nearer than the cutoff.
    """
    return _reach(forest, person, cutoff, near, ball)


@njit(**ONCE)
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


@njit(**ONCE)
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
        elif (
            not person.cost[FREE, forest.start[forest.limit[FEATURE, i]] + near[forest.limit[FEATURE, i]]] + more
            < cutoff
        ):
            return False
    return True


@njit(**INNER)
def _left(forest, leaf, left):
    """Does the box leave every choice a cell that the leaf asks for? (Of numbers, the walk down the tree has seen to
    it: intervals that meet two by two meet.)
    """
    for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
        g = forest.limit[FEATURE, i]
        some = not forest.choice[g]
        for w in range(left.shape[1]):
            some = some or left[g, w] & forest.limit_set[i, w] != NOTHING
        if not some:
            return False
    return True


@njit(**ONCE)
def _matters(forest, i, least, most, left):
    """Does limit i of a leaf exclude any cell of the ball?"""
    g = forest.limit[FEATURE, i]
    if not forest.choice[g]:
        return forest.limit[LEAST, i] > least[g] or forest.limit[MOST, i] < most[g]
    for w in range(left.shape[1]):
        if left[g, w] & ~forest.limit_set[i, w] != NOTHING:
            return True
    return False


@njit(**INNER)
def _sort(kept, number, key):
    """Leaves in the order of their keys: Shell's sort, since there are mostly few."""
    gap = number // 2
    while gap > 0:
        for i in range(gap, number):
            leaf, mine, k = kept[i], key[i], i
            while k >= gap and key[k - gap] > mine:
                kept[k], key[k] = kept[k - gap], key[k - gap]
                k -= gap
            kept[k], key[k] = leaf, mine
        gap = 1 if gap == 2 else gap * 5 // 11


@njit(**INNER)
def _reached(forest, person, t, near, ball, limits, kept, walk):
    """The leaves of one tree that are reached; returns how many."""
    least, most, left = ball
    number, height = 0, 1
    walk[0] = forest.roots[t]
    while height:
        height -= 1
        i = walk[height]
        while forest.node[COLUMN, i] >= 0:
            g, cut = forest.node[COLUMN, i], forest.node[CUT, i]
            if forest.choice[g]:
                down = up = False
                for w in range(left.shape[1]):
                    down = down or left[g, w] & forest.sets[cut, w] != NOTHING
                    up = up or left[g, w] & ~forest.sets[cut, w] != NOTHING
            else:
                down, up = least[g] <= cut, most[g] > cut
            if down and up:
                walk[height] = forest.node[RIGHT, i]
                height += 1
            i = forest.node[LEFT, i] if down else forest.node[RIGHT, i]
        leaf = forest.node[LEAF, i]
        if _left(forest, leaf, left) and reached(forest, person, leaf, near, limits[0], limits[1]):
            kept[number] = leaf
            number += 1
    return number


@njit(**INNER)
def _keep(forest, priced, t, j, kept, number, key):
    """Sort the leaves of one tree, best first for one condition, or, after all of those, by their prices.

    Those that are dropped come last. Returns how many there are, one where all are the same; and how many not dropped.
    """
    alive = 0
    for i in range(number):
        gone = len(priced.dropped) > 0 and priced.dropped[kept[i]]
        alive += not gone
        key[i] = math.inf if gone else forest.rank[j, kept[i]] if j < len(forest.rank) else priced.paid[kept[i]]
    _sort(kept, number, key)
    if alive < number:
        return number, alive
    if j == len(forest.rank):
        same = priced.paid[kept[0]] == priced.paid[kept[number - 1]]
    else:
        same = forest.adds_to[t] != EVERY and forest.value[j, kept[0]] == forest.value[j, kept[number - 1]]
    return (1, 1) if same else (number, alive)


# size: a table has many parts
@njit(**INNER)
def _list_leaves(forest, person, priced, table, near, ball, limits, walk):
    """Bits for the leaves of every tree and condition; returns how many of them are still open."""
    conditions, real, v = len(table.settled), len(forest.value), 0
    for t in range(len(forest.roots)):
        for j in range(conditions):
            first = table.tree[WORD, v]
            kept, key = table.leaf[first * WORD_BITS :], table.gives[first * WORD_BITS :]
            number = _reached(forest, person, t, near, ball, limits, kept, walk)
            number, alive = _keep(forest, priced, t, j, kept, number, key)
            if alive == 0:
                table.settled[0] = -math.inf
            if number == 1:
                table.settled[j] += forest.value[j, kept[0]] if j < real else -priced.paid[kept[0]]
                continue
            words = (number + WORD_BITS - 1) // WORD_BITS
            table.tree[CONDITION, v], table.tree[TREE_OF, v], table.tree[WORD, v + 1] = j, t, first + words
            for w in range(words):
                rest = alive - w * WORD_BITS
                table.alive[first + w] = (
                    ALL if rest >= WORD_BITS else NOTHING if rest <= 0 else (ONE << np.uint64(rest)) - ONE
                )
            table.tree[LISTED, v] = number
            for b in range(number):
                table.gives[first * WORD_BITS + b] = forest.value[j, kept[b]] if j < real else -priced.paid[kept[b]]
                table.bit_of[j, kept[b]] = first * WORD_BITS + b
            v += 1
    return v


@njit(**INNER)
def _note(forest, ball, i, side, counts):
    """Count limit i of a leaf at the cell with which the leaf is lost; -1 where it cannot be, else the cell."""
    least, most, _ = ball
    g = forest.limit[FEATURE, i]
    if side == BELOW:
        cell = forest.limit[MOST, i]
        inside = cell < most[g]
    else:
        cell = forest.limit[LEAST, i]
        inside = cell > least[g]
    if not inside:
        return -1
    counts[side, forest.start[g] + cell + 1] += 1
    return forest.start[g] + cell


@njit(**INNER)
def _count(forest, table, trees, ball, users):
    """How many leaves are lost with each cell, one place further on; how many trees use each feature likewise."""
    total = 0
    for v in range(trees):
        first_bit = table.tree[WORD, v] * WORD_BITS
        for bit in range(first_bit, first_bit + table.tree[LISTED, v]):
            dropped = (table.alive[bit // WORD_BITS] >> np.uint64(bit % WORD_BITS)) & ONE == NOTHING
            leaf = table.leaf[bit]
            for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
                if not _matters(forest, i, ball[0], ball[1], ball[2]):
                    continue
                g = forest.limit[FEATURE, i]
                if users[g] != v:
                    users[g] = v
                    table.user_at[g + 1] += 1
                if dropped:
                    continue
                if forest.choice[g]:
                    for k in range(forest.start[g + 1] - forest.start[g]):
                        if has(forest.limit_set[i], k) and has(ball[2][g], k):
                            table.lost_at[BELOW, forest.start[g] + k + 1] += 1
                            total += 1
                else:
                    for side in (BELOW, ABOVE):
                        total += _note(forest, ball, i, side, table.lost_at) >= 0
    return total


@njit(**INNER)
def _sum_up(forest, table):
    """Counts become places; those from above follow those from below."""
    cells, total = forest.start[-1], 0
    for side in range(2):
        table.lost_at[side, 0] = total
        for k in range(cells):
            table.lost_at[side, k + 1] += table.lost_at[side, k]
        total = table.lost_at[side, cells]
    for g in range(len(forest.choice)):
        table.user_at[g + 1] += table.user_at[g]


@njit(**INNER)
def _put(table, free, side, cell, bit, i):
    place = free[side, cell]
    free[side, cell] += 1
    table.lost_word[place] = bit // WORD_BITS
    table.lost_bit[place] = ~(ONE << np.uint64(bit % WORD_BITS))
    table.lost_limit[place] = i


@njit(**INNER)
def _list_losses(forest, table, trees, ball, users, free, free_user):
    """The leaves that are lost with each cell, and the trees that use each feature."""
    least, most, left = ball
    for v in range(trees):
        first_bit = table.tree[WORD, v] * WORD_BITS
        for bit in range(first_bit, first_bit + table.tree[LISTED, v]):
            dropped = (table.alive[bit // WORD_BITS] >> np.uint64(bit % WORD_BITS)) & ONE == NOTHING
            leaf = table.leaf[bit]
            for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
                if not _matters(forest, i, least, most, left):
                    continue
                g = forest.limit[FEATURE, i]
                first = forest.start[g]
                if users[g] != v:
                    users[g] = v
                    table.user[free_user[g]] = v
                    free_user[g] += 1
                if dropped:
                    continue
                if forest.choice[g]:
                    for k in range(forest.start[g + 1] - first):
                        if has(forest.limit_set[i], k) and has(left[g], k):
                            _put(table, free, BELOW, first + k, bit, i)
                    continue
                if forest.limit[MOST, i] < most[g]:
                    _put(table, free, BELOW, first + forest.limit[MOST, i], bit, i)
                if forest.limit[LEAST, i] > least[g]:
                    _put(table, free, ABOVE, first + forest.limit[LEAST, i], bit, i)


@with_cache(SOURCES, **OUTER)
def build(forest, person, ball, near, total, cutoff, depth, priced):
    """The table of a box below the cutoff."""
    features = len(forest.choice)
    conditions = len(forest.value) + (len(priced.paid) > 0)
    words = 0
    for t in range(len(forest.roots)):
        words += conditions * ((forest.first_leaf[t + 1] - forest.first_leaf[t] + WORD_BITS - 1) // WORD_BITS)
    nothing = np.empty(0, dtype=np.int32)
    draft = LeafTable(
        np.zeros((4, len(forest.roots) * conditions + 1), dtype=np.int64),
        np.empty((words + 1) * WORD_BITS, dtype=np.int32),
        np.empty((words + 1) * WORD_BITS),
        np.empty((conditions, len(forest.dead)), dtype=np.int32),
        np.zeros((2, forest.start[-1] + 1), dtype=np.int64),
        nothing,
        np.empty(0, dtype=np.uint64),
        nothing,
        np.zeros(features + 1, dtype=np.int64),
        nothing,
        np.zeros(conditions),
        np.empty(words, dtype=np.uint64),
        near.copy(),
        priced.reduced,
        priced.number,
    )
    walk = np.empty(depth + 2, dtype=np.int32)
    trees = _list_leaves(forest, person, priced, draft, near, ball, (total, cutoff), walk)
    lost = _count(forest, draft, trees, ball, np.full(features, -1))
    _sum_up(forest, draft)
    table = LeafTable(
        draft.tree[:, : trees + 1].copy(), draft.leaf, draft.gives, draft.bit_of, draft.lost_at,
        np.empty(lost, dtype=np.int32), np.empty(lost, dtype=np.uint64), np.empty(lost, dtype=np.int32),
        draft.user_at, np.empty(draft.user_at[-1], dtype=np.int32), draft.settled,
        draft.alive[: draft.tree[WORD, trees]], draft.home, draft.reduced, draft.number,
    )  # fmt: skip
    _list_losses(forest, table, trees, ball, np.full(features, -1), draft.lost_at.copy(), draft.user_at.copy())
    return table
