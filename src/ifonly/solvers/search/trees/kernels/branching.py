"""Where a priced box is split, so that the bound rises on either side.

In the linear program a crossing is made in part. How often the cheapest cells made it, on an average over the rounds of
pricing, tells which part. A move that is made in part and costs much lifts the bound of both sides: of one by its cost,
of the other since the trees have to do without it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.trees.kernels.layout import FREE, INNER
from ifonly.solvers.search.trees.kernels.points import has

SELDOM = 0.02
"""Crossings that are made less often than this are no reason for a split."""
PART = 0.75
"""Of what a move costs on an average: a number is split where it has cost so much."""


@njit(**INNER)
def _move(forest, person, ball, near, rate, g, up):
    """How much there is in splitting the move of a number in one direction, and the cell to split it at."""
    first, own = forest.start[g], person.cost[FREE, forest.start[g] + near[g]]
    step, end = (1, ball[1][g]) if up else (-1, ball[0][g])
    if near[g] == end:
        return 0.0, -1
    often, expected, before, k = rate[first + near[g] + step], 0.0, own, near[g]
    if often < SELDOM:
        return 0.0, -1
    while k != end:
        k += step
        if person.cost[FREE, first + k] < math.inf:
            expected += rate[first + k] * (person.cost[FREE, first + k] - before)
            before = person.cost[FREE, first + k]
    k = near[g] + step
    while k != end and not person.cost[FREE, first + k] - own >= PART * expected / often:
        k += step
    return expected * (1.0 - min(often, 1.0 - SELDOM)), k if up else k + 1


@njit(**INNER)
def _widest(forest, ball, near):
    """Where most cells are left: a number in the middle, a choice at some option that is not the nearest."""
    most, chosen, cell = 0, -1, -1
    for g in range(len(near)):
        count, other = 0, -1
        for k in range(ball[0][g], ball[1][g] + 1):
            if not forest.choice[g] or has(ball[2][g], k):
                count += 1
                if k != near[g]:
                    other = k
        if count - 1 > most:
            most, chosen = count - 1, g
            cell = other if forest.choice[g] else (ball[0][g] + ball[1][g] + 1) // 2
    return chosen, cell


@njit(**INNER)
def where_to_split(forest, person, ball, near, rate):
    """The feature, and the cell: a number is split below it, a choice into this cell and the others."""
    best, chosen, cell = 0.0, -1, -1
    for g in range(len(near)):
        first, own = forest.start[g], person.cost[FREE, forest.start[g] + near[g]]
        if forest.choice[g]:
            for k in range(forest.start[g + 1] - first):
                often = rate[first + k]
                if k != near[g] and has(ball[2][g], k) and often >= SELDOM and person.cost[FREE, first + k] < math.inf:
                    score = often * (person.cost[FREE, first + k] - own) * (1.0 - min(often, 1.0 - SELDOM))
                    if score > best:
                        best, chosen, cell = score, g, k
            continue
        for up in (True, False):
            score, place = _move(forest, person, ball, near, rate, g, up)
            if score > best:
                best, chosen, cell = score, g, place
    return (chosen, cell) if chosen >= 0 else _widest(forest, ball, near)


@njit(**INNER)
def take_note(rate, crossed, keep):
    """A round more in the average of the crossings that are made."""
    for k in range(len(rate)):
        rate[k] = keep * rate[k] + (1.0 - keep) * np.float64(crossed[k])
