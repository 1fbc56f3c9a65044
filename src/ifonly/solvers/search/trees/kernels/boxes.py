"""Boxes of cells: narrowing one, what its leaves can still add up to, and the leaves of its nearest point."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.trees.kernels.layout import (
    ABOVE,
    ADDITIVE,
    BASE,
    BELOW,
    CONDITION,
    GUARD,
    INNER,
    ONCE,
    TREE_OF,
    WORD,
    lowest_bit,
)
from ifonly.solvers.search.trees.kernels.points import has, leaf_of

ONE = np.uint64(1)
NOTHING = np.uint64(0)
BITS = 64


@njit(**INNER)
def lose(table, alive, side, cell):
    """A number's cell is dropped: the leaves that ask for no cell beyond it fall away."""
    for place in range(table.lost_at[side, cell], table.lost_at[side, cell + 1]):
        alive[table.lost_word[place]] &= table.lost_bit[place]


@njit(**INNER)
def lose_option(forest, table, alive, left, cell):
    """A choice's cell is dropped: the leaves fall away of which no cell is left."""
    for place in range(table.lost_at[BELOW, cell], table.lost_at[BELOW, cell + 1]):
        some = NOTHING
        for w in range(len(left)):
            some |= left[w] & forest.limit_set[table.lost_limit[place], w]
        if some == NOTHING:
            alive[table.lost_word[place]] &= table.lost_bit[place]


@njit(**INNER)
def keep_between(forest, table, stack, s, g, low, high):
    """Only these cells of a number are left."""
    first, alive = forest.start[g], stack.alive[s]
    for k in range(stack.least[s, g], low):
        lose(table, alive, BELOW, first + k)
    for k in range(high + 1, stack.most[s, g] + 1):
        lose(table, alive, ABOVE, first + k)
    stack.least[s, g], stack.most[s, g] = max(stack.least[s, g], low), min(stack.most[s, g], high)


@njit(**INNER)
def keep_restricted(forest, table, stack, s, g, words, turned):
    """Only the cells of a choice in a set are left; `turned`: only those that are not."""
    width = len(words)
    left = stack.left[s, g * width : (g + 1) * width]
    for w in range(width):
        gone = left[w] & (words[w] if turned else ~words[w])
        left[w] &= ~gone
        while gone != NOTHING:
            k = lowest_bit(gone)
            gone &= gone - ONE
            lose_option(forest, table, stack.alive[s], left, forest.start[g] + w * BITS + k)


@njit(**INNER)
def keep_cell(forest, table, stack, s, g, cell):
    """Only this cell of a choice is left."""
    width = len(forest.sets[0])
    left = stack.left[s, g * width : (g + 1) * width]
    for k in range(forest.start[g + 1] - forest.start[g]):
        if k != cell and has(left, k):
            left[k >> 6] &= ~(ONE << np.uint64(k & 63))
            lose_option(forest, table, stack.alive[s], left, forest.start[g] + k)


@njit(**INNER)
def place_point(forest, table, stack, s, v):
    """The leaf of one tree that the nearest point falls into."""
    leaf = leaf_of(forest.node, forest.sets, forest.choice, forest.roots[table.tree[TREE_OF, v]], stack.near[s])
    stack.at[s, v] = table.bit_of[table.tree[CONDITION, v], leaf]


@njit(**INNER)
def move_point(forest, table, stack, s, g):
    """The nearest point has another cell of feature g: its leaves in the trees that use it."""
    node, sets, choice, near = forest.node, forest.sets, forest.choice, stack.near[s]
    for place in range(table.user_at[g], table.user_at[g + 1]):
        v = table.user[place]
        leaf = leaf_of(node, sets, choice, forest.roots[table.tree[TREE_OF, v]], near)
        stack.at[s, v] = table.bit_of[table.tree[CONDITION, v], leaf]


@njit(**INNER)
def best_bit(alive, w, end):
    """The first bit that is set from word w on: the best leaf that a box leaves a tree; -1 if there is none."""
    while w < end and alive[w] == NOTHING:
        w += 1
    return w * BITS + lowest_bit(alive[w]) if w < end else np.int64(-1)


@njit(**ONCE)
def add_up(table, stack, s, sums):
    """Per condition, what the best leaves that are left add up to, and those of the nearest point; False if a tree has
    no leaf left.
    """
    alive = stack.alive[s]
    for j in range(len(table.settled)):
        sums[0, j] = sums[1, j] = table.settled[j]
    for v in range(table.tree.shape[1] - 1):
        j, best = table.tree[CONDITION, v], best_bit(alive, table.tree[WORD, v], table.tree[WORD, v + 1])
        if best < 0:
            return False
        sums[0, j] += table.gives[best]
        sums[1, j] += table.gives[stack.at[s, v]]
    return True


@njit(**ONCE)
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


@njit(**ONCE)
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


@njit(**ONCE)
def box_cost(forest, person, stack, s):
    """What the nearest point of the box costs."""
    total = 0.0
    for g in range(len(forest.choice)):
        cost = person.cost[stack.must[s, g], forest.start[g] + stack.near[s, g]]
        total = total + cost if forest.norm == ADDITIVE else max(total, cost)
    return total


@njit(**ONCE)
def afford(forest, table, person, stack, s, total, cutoff, g):
    """Drop the cells of feature g that make every point cost the cutoff or more."""
    cost, first, alive = person.cost[stack.must[s, g]], forest.start[g], stack.alive[s]
    allowance = cutoff - total + cost[first + stack.near[s, g]] if forest.norm == ADDITIVE else cutoff
    if forest.choice[g]:
        width = len(forest.sets[0])
        left = stack.left[s, g * width : (g + 1) * width]
        for w in range(width):
            bits = left[w]
            while bits != NOTHING:
                k = lowest_bit(bits)
                bits &= bits - ONE
                if not cost[first + w * BITS + k] < allowance:
                    left[w] &= ~(ONE << np.uint64(k))
                    lose_option(forest, table, alive, left, first + w * BITS + k)
        return
    while not cost[first + stack.least[s, g]] < allowance:
        lose(table, alive, BELOW, first + stack.least[s, g])
        stack.least[s, g] += 1
    while not cost[first + stack.most[s, g]] < allowance:
        lose(table, alive, ABOVE, first + stack.most[s, g])
        stack.most[s, g] -= 1


@njit(**ONCE)
def _left_of(forest, table, stack, s, g):
    """The least that shares leave of the cost of feature g in the box."""
    first, home = forest.start[g], table.home[g]
    if not forest.choice[g]:
        return table.reduced[1, first + min(max(home, stack.least[s, g]), stack.most[s, g])]
    best, width = math.inf, len(forest.sets[0])
    for w in range(width):
        bits = stack.left[s, g * width + w]
        while bits != NOTHING:
            best = min(best, table.reduced[0, first + w * BITS + lowest_bit(bits)])
            bits &= bits - ONE
    return best


@njit(**ONCE)
def priced_bound(forest, table, stack, s, sums):
    """What a point of the box that meets the conditions costs at least, by shares and worths; in a maximum, how much
    it lacks.
    """
    bound = table.number[BASE] - table.number[GUARD] - sums[0, len(forest.value)]
    for g in range(len(forest.choice)):
        bound += _left_of(forest, table, stack, s, g)
    return bound


@njit(**ONCE)
def give_up(forest, table, stack, s, g, allowance):
    """Drop the cells of feature g by which the bound is lifted by `allowance` or more; True if there are any."""
    first, near, alive, reduced, dropped = forest.start[g], stack.near[s, g], stack.alive[s], table.reduced[0], False
    allowance += _left_of(forest, table, stack, s, g)
    if forest.choice[g]:
        width = len(forest.sets[0])
        left = stack.left[s, g * width : (g + 1) * width]
        for w in range(width):
            bits = left[w]
            while bits != NOTHING:
                k = lowest_bit(bits)
                bits &= bits - ONE
                if w * BITS + k != near and reduced[first + w * BITS + k] >= allowance:
                    left[w] &= ~(ONE << np.uint64(k))
                    lose_option(forest, table, alive, left, first + w * BITS + k)
                    dropped = True
        return dropped
    while stack.least[s, g] < near and reduced[first + stack.least[s, g]] >= allowance:
        lose(table, alive, BELOW, first + stack.least[s, g])
        stack.least[s, g] += 1
        dropped = True
    while stack.most[s, g] > near and reduced[first + stack.most[s, g]] >= allowance:
        lose(table, alive, ABOVE, first + stack.most[s, g])
        stack.most[s, g] -= 1
        dropped = True
    return dropped
