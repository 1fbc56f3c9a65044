"""Depth-first branch and bound over boxes of cells, pruned by the cost of the best point so far.

A box is closed when its nearest point costs no less than the best one, when its best leaves cannot meet the conditions,
or when its nearest point does meet them. Otherwise it is split where the best leaves want it most.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.boxes import (
    add_up,
    afford,
    best_bit,
    box_cost,
    give_up,
    keep_between,
    keep_cell,
    keep_restricted,
    move_point,
    nearest_cell,
    place_point,
    priced_bound,
    settled,
)
from ifonly.solvers.search.trees.kernels.greedy import changed
from ifonly.solvers.search.trees.kernels.layout import (
    ADDITIVE,
    BEST,
    CONDITION,
    DONE,
    FEATURE,
    HEIGHT,
    INNER,
    LEAST,
    LEFT_OVER,
    LOOK,
    LOST,
    MEMORY,
    MOST,
    MUST,
    NEED,
    NODES,
    NOT_ASKED,
    ONCE,
    OUTER,
    SLACK,
    SLICE,
    SOURCES,
    UNKNOWN,
    WORD,
)
from ifonly.solvers.search.trees.kernels.points import fulfils, has, leaf_of, sums_of
from ifonly.solvers.search.trees.kernels.rules import follow

EQUAL = 1e-12
"""Relative: costs that are as close as this count as equal."""
ONE = np.uint64(1)
NOTHING = np.uint64(0)
CLOSED, OPEN, ASK, ASK_NETWORKS = 0, 1, 2, 3


@njit(**ONCE)
def _changes(forest, table, person, stack, s):
    """Rules on which features change: who must, since its partner does; who may not. False if none is left."""
    features = len(forest.choice)
    for _ in range(len(forest.pairs)):
        for i in range(len(forest.pairs)):
            one, partner = forest.pairs[i, 0], forest.pairs[i, 1]
            if not changed(person, one, stack.near[s, one]) and not stack.must[s, one]:
                continue
            if stack.must[s, partner] or changed(person, partner, stack.near[s, partner]):
                continue
            stack.must[s, partner] = MUST
            before = stack.near[s, partner]
            if not nearest_cell(forest, person, stack, s, partner):
                return False
            if stack.near[s, partner] != before:
                move_point(forest, table, stack, s, partner)
    count = 0
    for g in range(features):
        count += forest.counts[g] and (changed(person, g, stack.near[s, g]) or stack.must[s, g])
    if count > person.most:
        return False
    if count == person.most:
        for g in range(features):
            if forest.counts[g] and not changed(person, g, stack.near[s, g]) and not stack.must[s, g]:
                if forest.choice[g]:
                    keep_cell(forest, table, stack, s, g, person.own[g])
                else:
                    keep_between(forest, table, stack, s, g, person.own[g], person.own[g])
    return True


@njit(**ONCE)
def bounded(forest, table, stack, state, s, cutoff):
    """Can the leaves that are left meet the conditions, below the cutoff as far as prices tell? Cells are dropped in
    which they cannot.
    """
    additive, priced = forest.norm == ADDITIVE, len(table.settled) > len(forest.value)
    again = True
    while again:
        again = False
        if not add_up(table, stack, s, state.sums):
            return False
        for j in range(len(forest.value)):
            if state.sums[0, j] < forest.demand[NEED, j] - forest.demand[SLACK, j]:
                return False
        if priced:
            bound, limit = priced_bound(forest, table, stack, s, state.sums), cutoff if additive else 0.0
            if bound >= limit and (additive or bound > 0.0):
                return False
            if additive:
                stack.bound[s] = max(stack.bound[s], bound)
            for g in range(len(forest.choice)):
                again |= give_up(forest, table, stack, s, g, limit - bound)
    return True


@njit(**INNER)
def _has_lost(forest, stack, s):
    """Is the nearest row that the networks accept no more in the box?"""
    if stack.other[s, 0] < 0:
        return stack.other[s, 0] == UNKNOWN
    width = forest.sets.shape[1]
    for g in range(len(forest.choice)):
        cell = stack.other[s, g]
        if forest.choice[g]:
            if (stack.left[s, g * width + cell // 64] >> np.uint64(cell % 64)) & ONE == NOTHING:
                return True
        elif cell < stack.least[s, g] or cell > stack.most[s, g]:
            return True
    return False


@njit(**ONCE)
def settle(forest, table, person, stack, state, rules):
    """Look at the box on top: CLOSED, OPEN if it must be split, ASK if its nearest point must be judged by rules,
    ASK_NETWORKS if these may have no row in it.
    """
    s = state.count[HEIGHT] - 1
    if person.most < len(forest.choice) or len(forest.pairs):
        if not _changes(forest, table, person, stack, s):
            return CLOSED
    if not follow(forest, table, person, stack, s, rules):
        return CLOSED
    total, cutoff = box_cost(forest, person, stack, s), state.number[BEST] * (1.0 - EQUAL)
    if not max(total, stack.bound[s]) < cutoff:
        return CLOSED
    stack.bound[s] = max(total, stack.bound[s])
    for g in range(len(forest.choice)):
        afford(forest, table, person, stack, s, total, cutoff, g)
    if not bounded(forest, table, stack, state, s, cutoff):
        return CLOSED
    met = True
    for j in range(len(forest.value)):
        met = met and state.sums[1, j] >= forest.demand[NEED, j] - forest.demand[SLACK, j]
    if met:
        if fulfils(forest, stack.near[s], state.leaves, state.scores):
            if forest.ruled:
                return ASK
            state.number[BEST] = total
            for g in range(len(forest.choice)):
                state.best[g], state.best[len(forest.choice) + g] = stack.near[s, g], stack.must[s, g]
            return CLOSED
        if settled(table, stack, s):
            return CLOSED
    return ASK_NETWORKS if _has_lost(forest, stack, s) else OPEN


@njit(**ONCE)
def _want(forest, stack, s, state, leaf, gain):
    """Credit every limit of a preferred leaf that the nearest point breaks."""
    for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
        g, near = forest.limit[FEATURE, i], stack.near[s, forest.limit[FEATURE, i]]
        if forest.choice[g]:
            side, cell = 0, 0
            if has(forest.limit_set[i], near):
                continue
        elif near < forest.limit[LEAST, i]:
            side, cell = 1, forest.limit[LEAST, i]
        elif near > forest.limit[MOST, i]:
            side, cell = 0, forest.limit[MOST, i]
        else:
            continue
        place = forest.start[g] + cell
        if state.weight[side, place] == 0.0:
            state.touched[state.touched[0] + 1] = 2 * place + side
            state.touched[0] += 1
            if forest.choice[g]:
                state.preferred[g], state.weight[1, place] = -1, 0.0
        state.weight[side, place] += gain
        if forest.choice[g] and gain > state.weight[1, place]:
            state.preferred[g], state.weight[1, place] = i, gain


@njit(**INNER)
def _wants(forest, table, stack, s, state, v):
    """What the best leaf of a tree wants, unless its condition is met."""
    j = table.tree[CONDITION, v]
    best, at = best_bit(stack.alive[s], table.tree[WORD, v], table.tree[WORD, v + 1]), stack.at[s, v]
    met = j < len(forest.value) and state.sums[1, j] >= forest.demand[NEED, j] + forest.demand[SLACK, j]
    if best != at and not met:
        _want(forest, stack, s, state, table.leaf[best], max(table.gives[best] - table.gives[at], 1e-300))


@njit(**INNER)
def _most_credit(forest, state):
    """The split with the most credit: (feature, side, cell or limit), feature -1 if none has any."""
    most, chosen = -1.0, -1
    for i in range(1, state.touched[0] + 1):
        place, side = state.touched[i] // 2, state.touched[i] % 2
        if state.weight[side, place] > most:
            most, chosen = state.weight[side, place], state.touched[i]
    for i in range(1, state.touched[0] + 1):
        state.weight[0, state.touched[i] // 2] = state.weight[1, state.touched[i] // 2] = 0.0
    if chosen < 0:
        return np.int64(-1), 0, 0
    g = np.int64(0)
    while forest.start[g + 1] <= chosen // 2:
        g += 1
    return g, chosen % 2, state.preferred[g] if forest.choice[g] else chosen // 2 - forest.start[g]


@njit(**ONCE)
def choose(forest, table, stack, state):
    """The split that the best leaves want most and the nearest point breaks: (feature, side, cell or limit)."""
    s, priced = state.count[HEIGHT] - 1, len(table.settled) > len(forest.value)
    state.touched[0] = 0
    for v in range(table.tree.shape[1] - 1):
        if priced == (table.tree[CONDITION, v] == len(forest.value)):
            _wants(forest, table, stack, s, state, v)
    if priced and state.touched[0] == 0:
        for v in range(table.tree.shape[1] - 1):
            if table.tree[CONDITION, v] < len(forest.value):
                _wants(forest, table, stack, s, state, v)
    return _most_credit(forest, state)


@njit(**INNER)
def broken(forest, near, leaf):
    """A limit of a leaf that a point breaks, as a split: (feature, side, cell or limit), feature -1 if none."""
    for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
        g = np.int64(forest.limit[FEATURE, i])
        if forest.choice[g]:
            if not has(forest.limit_set[i], near[g]):
                return g, 0, i
        elif near[g] < forest.limit[LEAST, i]:
            return g, 1, np.int64(forest.limit[LEAST, i])
        elif near[g] > forest.limit[MOST, i]:
            return g, 0, np.int64(forest.limit[MOST, i])
    return np.int64(-1), 0, 0


@njit(**ONCE)
def open_tree(forest, table, stack, s):
    """Any split of a box in which no leaf is preferred: at a limit of a leaf of some tree that has several left."""
    for v in range(table.tree.shape[1] - 1):
        for bit in range(table.tree[WORD, v] * 64, table.tree[WORD, v + 1] * 64):
            alive = (stack.alive[s, bit // 64] >> np.uint64(bit % 64)) & ONE != NOTHING
            if alive and bit != stack.at[s, v]:
                return broken(forest, stack.near[s], table.leaf[bit])
    return np.int64(-1), 0, 0


@njit(**ONCE)
def tell_apart(forest, stack, s, state, other):
    """The split between the nearest point and another one that tells most of what the trees make of the two; feature
    -1 where no tree tells them apart.
    """
    near = stack.near[s]
    state.touched[0] = 0
    for t in range(len(forest.roots)):
        leaf = leaf_of(forest.node, forest.sets, forest.choice, forest.roots[t], other)
        own = leaf_of(forest.node, forest.sets, forest.choice, forest.roots[t], near)
        if leaf != own:
            loss = 1e-300
            for j in range(len(forest.value)):
                loss += max(forest.value[j, own] - forest.value[j, leaf], 0.0)
            _want(forest, stack, s, state, leaf, loss)
    return _most_credit(forest, state)


@njit(**ONCE)
def _copy(stack, s):
    """The box on top, once more."""
    for g in range(stack.least.shape[1]):
        stack.least[s + 1, g], stack.most[s + 1, g] = stack.least[s, g], stack.most[s, g]
        stack.near[s + 1, g], stack.must[s + 1, g] = stack.near[s, g], stack.must[s, g]
        stack.other[s + 1, g] = stack.other[s, g]
    for w in range(stack.left.shape[1]):
        stack.left[s + 1, w] = stack.left[s, w]
    for w in range(stack.alive.shape[1]):
        stack.alive[s + 1, w] = stack.alive[s, w]
    for v in range(stack.at.shape[1]):
        stack.at[s + 1, v] = stack.at[s, v]
    stack.bound[s + 1] = stack.bound[s]


@njit(**ONCE)
def split(forest, table, person, stack, state, g, side, place):
    """The box on top becomes two: where the nearest point stays, and, above it, where it moves."""
    s = state.count[HEIGHT] - 1
    _copy(stack, s)
    for turn in range(2):
        if forest.choice[g]:
            keep_restricted(forest, table, stack, s + turn, g, forest.limit_set[place], turn == 0)
        elif side == turn:
            keep_between(forest, table, stack, s + turn, g, place + 1 - side, stack.most[s + turn, g])
        else:
            keep_between(forest, table, stack, s + turn, g, stack.least[s + turn, g], place - side)
    if nearest_cell(forest, person, stack, s + 1, g):
        move_point(forest, table, stack, s + 1, g)
        state.count[HEIGHT] += 1


@njit(**INNER)
def _begin(forest, table, person, box, bound, stack, state):
    least, most, left, must = box
    width = left.shape[1]
    state.count[HEIGHT] = 0
    for g in range(len(least)):
        stack.least[0, g], stack.most[0, g], stack.must[0, g] = least[g], most[g], must[g]
        for w in range(width):
            stack.left[0, g * width + w] = left[g, w]
        if not nearest_cell(forest, person, stack, 0, g):
            return
    for w in range(len(table.alive)):
        stack.alive[0, w] = table.alive[w]
    stack.bound[0], stack.other[0, 0] = bound, NOT_ASKED
    for v in range(table.tree.shape[1] - 1):
        place_point(forest, table, stack, 0, v)
    state.count[HEIGHT] = 1


@with_cache(SOURCES, **OUTER)
def begin(forest, table, person, box, bound, stack, state):
    """The box as the only one on the stack: cells left of each feature, and who must change."""
    _begin(forest, table, person, box, bound, stack, state)


@njit(**INNER)
def run(forest, table, person, stack, state, end, other, rules):
    """Look at boxes until none is open, `end` nodes have been, or the stack is full."""
    apart = len(other) > 0
    while state.count[HEIGHT] > 0:
        if state.count[NODES] >= end:
            return SLICE
        if state.count[HEIGHT] + 1 >= len(stack.bound):
            return MEMORY
        s = state.count[HEIGHT] - 1
        if apart:
            g, side, place = tell_apart(forest, stack, s, state, other)
            apart = False
        else:
            state.count[NODES] += 1
            found = settle(forest, table, person, stack, state, rules)
            if found == ASK:
                return LOOK
            if found == ASK_NETWORKS:
                return LOST
            if found == CLOSED:
                state.count[HEIGHT] -= 1
                continue
            g, side, place = choose(forest, table, stack, state)
            if g < 0:
                g, side, place = open_tree(forest, table, stack, s)
        if g < 0:
            state.number[LEFT_OVER] = min(state.number[LEFT_OVER], stack.bound[s])
            state.count[HEIGHT] -= 1
            continue
        split(forest, table, person, stack, state, g, side, place)
    return DONE


@with_cache(SOURCES, **OUTER)
def advance(forest, table, person, stack, state, nodes, other, rules):
    """Go on for so many nodes. First split the box on top between its nearest point and another (none: empty)."""
    return run(forest, table, person, stack, state, state.count[NODES] + nodes, other, rules)


@with_cache(SOURCES, **OUTER)
def sums_at(forest, cells, sums):
    """The sums of the leaves that a point falls into, one per condition."""
    sums_of(forest, cells, sums)
