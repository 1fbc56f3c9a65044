"""Rules in boxes of cells: cells with which a clause of the rules cannot hold are dropped.

A clause holds in a row where one of its inequalities does, constant + sum of terms >= 0 with one term per feature. In a
box each term is at most the largest that it is in a cell that is left. Where that leaves one inequality of a clause, it
must hold, and the cells go with which it cannot.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.boxes import lose, lose_option, move_point, nearest_cell
from ifonly.solvers.search.trees.kernels.layout import (
    ABOVE,
    BELOW,
    INNER,
    ONCE,
    OUTER,
    SOURCES,
    lowest_bit,
)

ONE = np.uint64(1)
NOTHING = np.uint64(0)
BITS = 64
MOST_ROUNDS = 20
ON_GRID = 1e-6
"""Of a step: as close as this to a value of the grid is on it."""


@njit(**INNER)
def _ends_of_cell(x, step, ends, cuts, k):
    """Numbers that no value of a cell is beyond. Of cells beyond the domain, these are its ends."""
    low = min(max(ends[0], cuts[k - 1] if k > 0 else -math.inf), ends[1])
    high = max(min(ends[1], cuts[k] if k < len(cuts) else math.inf), ends[0])
    if step > 0.0:
        first = x + step * math.ceil((low - x) / step - ON_GRID)
        if k > 0 and first <= cuts[k - 1]:
            first += step
        last = x + step * math.floor((high - x) / step + ON_GRID)
        if first <= last:
            return first, last
    return low, high


# size: the parts of a question that the ends of cells depend on, each an array
@with_cache(SOURCES, **OUTER)
def fill_terms(rules, factual, ends, allowed, step, choice, start, column, cuts):
    """The largest of each term in each cell of its feature. `step`: 0 for numbers that are not whole."""
    for t in range(len(rules.feature)):
        g = rules.feature[t]
        largest = rules.largest[rules.largest_at[t] : rules.largest_at[t + 1]]
        weight = rules.weight[rules.weight_at[t] : rules.weight_at[t + 1]]
        if choice[g]:
            largest[:] = -math.inf
            for o in range(len(weight)):
                k = np.int64(cuts[1, column[g] + o])
                if allowed[column[g] + o]:
                    largest[k] = max(largest[k], weight[o])
        else:
            for k in range(len(largest)):
                low, high = _ends_of_cell(factual[g], step[g], ends[:, g], cuts[0, start[g] + 1 : start[g + 1]], k)
                largest[k] = weight[0] * (high if weight[0] > 0.0 else low)


@njit(**INNER)
def _largest(forest, stack, s, rules, t):
    """The largest that a term is in the cells that are left."""
    g, first = rules.feature[t], rules.largest_at[t]
    if not forest.choice[g]:
        return max(rules.largest[first + stack.least[s, g]], rules.largest[first + stack.most[s, g]])
    best, width = -math.inf, len(forest.sets[0])
    for w in range(width):
        bits = stack.left[s, g * width + w]
        while bits != NOTHING:
            best = max(best, rules.largest[first + w * BITS + lowest_bit(bits)])
            bits &= bits - ONE
    return best


@njit(**INNER)
def _drop(forest, table, stack, s, rules, t, rest):
    """Drop the cells in which a term is less than -rest; True if there are any."""
    g, first, alive, dropped = rules.feature[t], rules.largest_at[t], stack.alive[s], False
    if forest.choice[g]:
        width = len(forest.sets[0])
        left = stack.left[s, g * width : (g + 1) * width]
        for w in range(width):
            bits = left[w]
            while bits != NOTHING:
                k = w * BITS + lowest_bit(bits)
                bits &= bits - ONE
                if rules.largest[first + k] + rest < 0.0:
                    left[w] &= ~(ONE << np.uint64(k & 63))
                    lose_option(forest, table, alive, left, forest.start[g] + k)
                    dropped = True
        return dropped
    while rules.largest[first + stack.least[s, g]] + rest < 0.0 and stack.least[s, g] < stack.most[s, g]:
        lose(table, alive, BELOW, forest.start[g] + stack.least[s, g])
        stack.least[s, g] += 1
        dropped = True
    while rules.largest[first + stack.most[s, g]] + rest < 0.0 and stack.least[s, g] < stack.most[s, g]:
        lose(table, alive, ABOVE, forest.start[g] + stack.most[s, g])
        stack.most[s, g] -= 1
        dropped = True
    return dropped


@njit(**INNER)
def _moved(forest, table, person, stack, s, g):
    """The nearest point of the box, of whose feature g cells were dropped; False if the box is empty."""
    before = stack.near[s, g]
    if not nearest_cell(forest, person, stack, s, g):
        return False
    if stack.near[s, g] != before:
        move_point(forest, table, stack, s, g)
    return True


@njit(**INNER)
def _only_one(forest, stack, s, rules, c):
    """The inequality of a clause that must hold, and the largest that it is: -1 where several can, -2 where none."""
    only, most = -2, 0.0
    for i in range(rules.clause_at[c], rules.clause_at[c + 1]):
        total = rules.constant[i]
        for t in range(rules.term_at[i], rules.term_at[i + 1]):
            total += _largest(forest, stack, s, rules, t)
        if total >= 0.0:
            if only >= 0:
                return -1, 0.0
            only, most = i, total
    return only, most


@njit(**ONCE)
def follow(forest, table, person, stack, s, rules):
    """Drop the cells with which some clause cannot hold; False if no row of the box obeys all."""
    again = len(rules.clause_at) > 1
    while again:
        again = False
        for c in range(len(rules.clause_at) - 1):
            only, most = _only_one(forest, stack, s, rules, c)
            if only == -2:
                return False
            if only < 0:
                continue
            for t in range(rules.term_at[only], rules.term_at[only + 1]):
                rest = most - _largest(forest, stack, s, rules, t)
                if _drop(forest, table, stack, s, rules, t, rest):
                    again = True
                    if not _moved(forest, table, person, stack, s, rules.feature[t]):
                        return False
    return True


@njit(**INNER)
def _term_in(rules, choice, column, box, t):
    """The largest that a term is in a box of values."""
    g, first = rules.feature[t], rules.weight_at[t]
    lower, upper, allowed = box
    if not choice[g]:
        weight = rules.weight[first]
        return weight * (upper[g] if weight > 0.0 else lower[g])
    best = -math.inf
    for o in range(column[g + 1] - column[g]):
        if allowed[column[g] + o]:
            best = max(best, rules.weight[first + o])
    return best


@njit(**INNER)
def _narrow_to(rules, factual, step, choice, column, box, t, rest):
    """Leave out what makes a term less than -rest; True if there is any."""
    g, first = rules.feature[t], rules.weight_at[t]
    lower, upper, allowed = box
    if choice[g]:
        narrower = False
        for o in range(column[g + 1] - column[g]):
            if allowed[column[g] + o] and rules.weight[first + o] + rest < 0.0:
                allowed[column[g] + o] = False
                narrower = True
        return narrower
    weight = rules.weight[first]
    end = -rest / weight
    if step[g] > 0.0:
        steps = (end - factual[g]) / step[g]
        steps = math.ceil(steps - ON_GRID) if weight > 0.0 else math.floor(steps + ON_GRID)
        end = factual[g] + step[g] * steps
    if weight > 0.0 and end > lower[g]:
        lower[g] = end
        return True
    if weight < 0.0 and end < upper[g]:
        upper[g] = end
        return True
    return False


# size: a box, and what its values are judged by
@with_cache(SOURCES, **OUTER)
def narrow_values(rules, constant, factual, step, choice, column, lower, upper, allowed):
    """Leave out the values with which some clause cannot hold, for so many rounds at most; False if none is left."""
    box = lower, upper, allowed
    for _ in range(MOST_ROUNDS):
        again = False
        for c in range(len(rules.clause_at) - 1):
            only, most = -2, 0.0
            for i in range(rules.clause_at[c], rules.clause_at[c + 1]):
                total = constant[i]
                for t in range(rules.term_at[i], rules.term_at[i + 1]):
                    total += _term_in(rules, choice, column, box, t)
                if total >= 0.0 and only != -1:
                    only, most = (i, total) if only == -2 else (-1, 0.0)
            if only == -2:
                return False
            if only < 0:
                continue
            for t in range(rules.term_at[only], rules.term_at[only + 1]):
                rest = most - _term_in(rules, choice, column, box, t)
                again |= _narrow_to(rules, factual, step, choice, column, box, t, rest)
        if not again:
            return True
    return True
