"""Greedy start heuristic: moves by gain per cost from the person's own row, then every feature taken back as far as it
goes. It proves nothing; a search that begins with the nearest point is much shorter.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.layout import ADDITIVE, FREE, INNER, NEED, ONCE, OUTER, SLACK, SOURCES
from ifonly.solvers.search.trees.kernels.points import fulfils, single_moves, sums_of

MOST_MOVES = 100
SWAPS = 3
SHARE = 0.1
TINY = 1e-30


@njit(**INNER)
def home(forest, person, g):
    """The cheapest cell of a feature."""
    best = 0
    for k in range(forest.start[g + 1] - forest.start[g]):
        if person.cost[FREE, forest.start[g] + k] < person.cost[FREE, forest.start[g] + best]:
            best = k
    return best


@njit(**INNER)
def take(one, other):
    """one[:] = other, which compiles much faster so."""
    for i in range(len(one)):
        one[i] = other[i]


@njit(**INNER)
def cheapest(forest, person, cells):
    """The cheapest cell of every feature; False if one has none."""
    for g in range(len(forest.choice)):
        cells[g] = home(forest, person, g)
        if not person.cost[FREE, forest.start[g] + cells[g]] < math.inf:
            return False
    return True


@njit(**INNER)
def total_cost(forest, person, cells):
    total = 0.0
    for g in range(len(cells)):
        cost = person.cost[FREE, forest.start[g] + cells[g]]
        total = total + cost if forest.norm == ADDITIVE else max(total, cost)
    return total


@njit(**INNER)
def changed(person, g, cell):
    return not (cell == person.own[g] and person.stays[g])


@njit(**INNER)
def permitted(forest, person, cells, g, cell):
    """May feature g go to this cell, by the rules on which features change?"""
    count = 0
    for h in range(len(cells)):
        count += forest.counts[h] and changed(person, h, cell if h == g else cells[h])
    if count > person.most:
        return False
    for i in range(len(forest.pairs)):
        one, partner = forest.pairs[i, 0], forest.pairs[i, 1]
        moves = changed(person, one, cell if one == g else cells[one])
        if moves and not changed(person, partner, cell if partner == g else cells[partner]):
            return False
    return True


@njit(**INNER)
def _pick(forest, person, cells, sums, gains, most, completing):
    """The best single move: the cheapest that meets all conditions, or the one with the most gain per cost.

    Moves to `most` or beyond are left out, and those that bring less than a share of what is missing, if one brings
    more. Returns the feature (-1: none) and the cell.
    """
    total, best, chosen, to = total_cost(forest, person, cells), -math.inf, -1, -1
    free = person.most >= len(cells) and len(forest.pairs) == 0
    with_missing = 0.0
    for j in range(len(sums)):
        with_missing += max(forest.demand[NEED, j] + forest.demand[SLACK, j] - sums[j], 0.0)
    for g in range(len(cells)):
        first, now = forest.start[g], person.cost[FREE, forest.start[g] + cells[g]]
        for k in range(forest.start[g + 1] - first):
            cost = person.cost[FREE, first + k]
            if k == cells[g] or not cost < math.inf:
                continue
            after = total - now + cost if forest.norm == ADDITIVE else max(total, cost)
            if not after < most:
                continue
            gain, complete = 0.0, True
            for j in range(len(sums)):
                lack = forest.demand[NEED, j] + forest.demand[SLACK, j] - sums[j]
                complete = complete and gains[j, first + k] >= lack
                gain += min(gains[j, first + k], max(lack, 0.0))
            if (completing and not complete) or gain <= 0.0:
                continue
            worth = -after if completing else gain / max(cost - now, TINY)
            if not completing and gain < SHARE * with_missing:
                worth *= TINY
            if worth > best and (free or permitted(forest, person, cells, g, k)):
                best, chosen, to = worth, g, k
    return chosen, to


@njit(**ONCE)
def _take_back(forest, person, cells, sums, gains, nodes, moved):
    """Move features to cheaper cells, the largest saving first, as long as all conditions are met."""
    allowance = 0.0 if forest.norm == ADDITIVE else total_cost(forest, person, cells)
    free = person.most >= len(cells) and len(forest.pairs) == 0
    for _ in range(MOST_MOVES):
        if person.halt[0] != 0:
            return
        single_moves(forest, person, cells, gains, allowance, nodes, moved)
        best, chosen, to = 0.0, -1, -1
        for g in range(len(cells)):
            first, now = forest.start[g], person.cost[FREE, forest.start[g] + cells[g]]
            for k in range(forest.start[g + 1] - first):
                saving = now - person.cost[FREE, first + k]
                if not saving > best:
                    continue
                good = True
                for j in range(len(sums)):
                    good = good and sums[j] + gains[j, first + k] >= forest.demand[NEED, j] + forest.demand[SLACK, j]
                if good and (free or permitted(forest, person, cells, g, k)):
                    best, chosen, to = saving, g, k
        if chosen < 0:
            return
        for j in range(len(sums)):
            sums[j] += gains[j, forest.start[chosen] + to]
        cells[chosen] = to


@njit(**ONCE)
def _climb(forest, person, cells, sums, gains, best, nodes, moved):
    """Greedy moves from `cells` until all conditions are met; keeps the cheapest point met on the way in `best`."""
    found = math.inf
    for _ in range(MOST_MOVES):
        if person.halt[0] != 0:
            break
        allowance = found - total_cost(forest, person, cells) if forest.norm == ADDITIVE else found
        single_moves(forest, person, cells, gains, allowance, nodes, moved)
        g, k = _pick(forest, person, cells, sums, gains, found, True)
        if g >= 0:
            take(best, cells)
            best[g] = k
            found = total_cost(forest, person, best)
        g, k = _pick(forest, person, cells, sums, gains, found, False)
        if g < 0:
            break
        for j in range(len(sums)):
            sums[j] += gains[j, forest.start[g] + k]
        cells[g] = k
    return found


@njit(**ONCE)
def _swap(forest, person, best, cells, origin, sums, gains, nodes, moved):
    """Take one changed feature back and let another single move do: the best such point, in `best`; True if found."""
    found, better = total_cost(forest, person, best), False
    take(origin, best)
    for g in range(len(cells)):
        if origin[g] == home(forest, person, g) or person.halt[0] != 0:
            continue
        take(cells, origin)
        cells[g] = home(forest, person, g)
        sums_of(forest, cells, sums)
        allowance = found - total_cost(forest, person, cells) if forest.norm == ADDITIVE else found
        single_moves(forest, person, cells, gains, allowance, nodes, moved)
        h, k = _pick(forest, person, cells, sums, gains, found * (1.0 - 1e-12), True)
        if h >= 0:
            cells[h] = k
            take(best, cells)
            found, better = total_cost(forest, person, best), True
    return better


@njit(**INNER)
def _improve(forest, person, met, best, cells, origin, sums, gains, nodes, moved):
    """Take features back, and swap them, while that makes the point cheaper."""
    for _ in range(SWAPS):
        take(cells, best)
        sums_of(forest, cells, sums)
        _take_back(forest, person, cells, sums, gains, nodes, moved)
        take(best, cells)
        if met or not _swap(forest, person, best, cells, origin, sums, gains, nodes, moved):
            return


@njit(**INNER)
def _begin(forest, person, best, cells, origin, sums, gains, nodes, moved):
    """A point that meets all conditions but for rounding: its cost; infinity: none was found, -1: none is allowed."""
    if not cheapest(forest, person, cells):
        return -1.0
    for g in range(len(cells)):
        if not permitted(forest, person, cells, g, cells[g]):
            return math.inf
    sums_of(forest, cells, sums)
    unmet = 0
    for j in range(len(sums)):
        unmet += sums[j] < forest.demand[NEED, j] + forest.demand[SLACK, j]
    met = unmet == 0
    if met:
        take(best, cells)
    elif not _climb(forest, person, cells, sums, gains, best, nodes, moved) < math.inf:
        return math.inf
    _improve(forest, person, met, best, cells, origin, sums, gains, nodes, moved)
    return total_cost(forest, person, best)


@with_cache(SOURCES, **OUTER)
def some_point(forest, person, depth, best, leaves, scores):
    """A point that meets all conditions, in cells: its cost; infinity if none was found, -1 if no row is allowed."""
    count = len(forest.choice)
    cells, gains = np.empty((2, count), dtype=np.int32), np.empty((len(forest.value), forest.start[-1]))
    walk = np.empty((2, depth + 2), dtype=np.int32)
    cost = _begin(forest, person, best, cells[0], cells[1], np.empty(len(forest.value)), gains, walk[0], walk[1])
    return cost if not 0.0 <= cost < math.inf or fulfils(forest, best, leaves, scores) else math.inf
