"""Lagrangian bound of a box by subgradients: the price of every crossing is shared among the trees that need it.

A point x in a box has one leaf per tree. What x costs beyond the nearest point is the sum of the prices of its
*crossings*: cuts of a number that it lies beyond, or an option that is not the nearest. With shares a of the trees that
need a crossing, b of those that must stay on this side of it, and a worth w of the conditions (all >= 0),

    cost(x) >= total + w . need - sum b + sum over features of min (price - sum a + sum b, added up over crossings)
                     + sum over trees of min over leaves of (- w . value + a of its crossings + b of its stays)

for whatever a, b and w: the dual of the linear program with one variable per leaf and per crossing. They are improved
by subgradients, and the best ones are kept. A leaf that would lift the bound to the cost of the best point is dropped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.branching import take_note, where_to_split
from ifonly.solvers.search.trees.kernels.crossings import (
    CELL,
    NEEDS,
    STAYS,
    LeafProgram,
    list_crossings,
    list_needs,
    sizes,
)
from ifonly.solvers.search.trees.kernels.layout import (
    ADDITIVE,
    BASE,
    BEYOND,
    FREE,
    GUARD,
    INNER,
    OUTER,
    SOURCES,
    Bytes,
    Floats,
    Places,
)
from ifonly.solvers.search.trees.kernels.narrowing import least_outward, narrow
from ifonly.solvers.search.trees.kernels.points import has, leaf_of
from ifonly.solvers.search.trees.kernels.shares import Shares, count_shares, inherit, note_shares

STEADY = 20
"""Rounds without a better bound after which steps are halved."""
KEEP = 0.9
"""Of the direction of the last step."""
FIRST_PACE, PACE = 0.3, 0.1
"""How fast worths move, beside shares: without shares to begin with, and with those of a larger box."""
FIRST_WORTH, LEAST_WORTH = 0.125, 0.25
"""Worths begin with this part of what the cutoff allows for what the nearest point misses: low, since worths that are
too high for the first shares fall to 0. Below this part of where they began, they move no slower."""
FIRST_STEP, NEXT_STEP = 1.0, 0.25
"""Of the first step, as a part of Polyak's: without shares, and with those of a larger box, which are good already."""
ROUNDING = 2.0**-40


class Dual(NamedTuple):
    """Shares, worths, and what follows from them."""

    price: Floats
    """(2 * slot + side): the shares."""
    worth: Floats
    """(condition)."""
    best: Floats
    """The shares, then the worths, of the best bound so far."""
    grad: Floats
    heading: Floats
    taken: Floats
    """(cell): what the trees pay for the crossing into it."""
    reduced: Floats
    """(cell): what that leaves of its cost."""
    crossed: Bytes
    rate: Floats
    """(cell): how often the crossing into it is made, on an average over the last rounds."""
    paid: Floats
    """(leaf): what it costs its tree, less its worth."""
    chosen: Places
    """(tree): its cheapest leaf."""


class Priced(NamedTuple):
    """What is known of a box by its prices; with empty arrays, nothing."""

    paid: Floats
    """(leaf of the forest)."""
    dropped: Bytes
    """(leaf of the forest): no row below the cutoff falls into it."""
    reduced: Floats
    """(2, cell): what shares leave of its cost; and the least of that in all cells from there on outward."""
    number: Floats
    """See BEYOND, BASE, GUARD."""


@njit(**INNER)
def _leave(cost, own, gone, reduced, k, best, at):
    """What is left of the cost of cell k; the cheapest cell so far."""
    reduced[k] = cost[k] - own - gone
    return (reduced[k], k) if reduced[k] < best else (best, at)


@njit(**INNER)
def _reduce(forest, cost, ball, near, program, dual):
    """What the shares leave of each cell's cost; the cheapest cells cross what is set in `crossed`.

    Returns the sum over features of the least that is left, less all that is paid for staying.
    """
    least, most, left = ball
    taken, reduced, crossed, total = dual.taken, dual.reduced, dual.crossed, 0.0
    for k in range(len(taken)):
        taken[k] = 0.0
        crossed[k] = 0
    for slot in range(program.slots.shape[1]):
        taken[program.slots[CELL, slot]] += dual.price[2 * slot + NEEDS] - dual.price[2 * slot + STAYS]
        total -= dual.price[2 * slot + STAYS]
    for g in range(len(near)):
        first, home = forest.start[g], forest.start[g] + near[g]
        best, at, own = 0.0, home, cost[home]
        reduced[home] = 0.0
        if forest.choice[g]:
            for k in range(first, forest.start[g + 1]):
                if k != home and has(left[g], k - first):
                    best, at = _leave(cost, own, taken[home] + taken[k], reduced, k, best, at)
            if at != home:
                crossed[home] = crossed[at] = 1
        else:
            gone = 0.0
            for k in range(home + 1, first + most[g] + 1):
                gone += taken[k]
                best, at = _leave(cost, own, gone, reduced, k, best, at)
            gone = 0.0
            for k in range(home - 1, first + least[g] - 1, -1):
                gone += taken[k]
                best, at = _leave(cost, own, gone, reduced, k, best, at)
            for k in range(home + 1, at + 1):
                crossed[k] = 1
            for k in range(at, home):
                crossed[k] = 1
        total += best
    return total


@njit(**INNER)
def _pay(program, dual):
    """What each leaf costs its tree, the cheapest leaf of every tree; and the sum of those."""
    total, price, entry = 0.0, dual.price, program.entry
    for t in range(len(program.tree_of)):
        best = math.inf
        for p in range(program.tree_at[t], program.tree_at[t + 1]):
            cost = 0.0
            for j in range(len(dual.worth)):
                cost -= dual.worth[j] * program.value[j, p]
            for e in range(program.leaf_at[p], program.leaf_at[p + 1]):
                cost += price[entry[e]]
            dual.paid[p] = cost
            if cost < best:
                best, dual.chosen[t] = cost, p
        total += best
    return total


@njit(**INNER)
def _evaluate(forest, cost, ball, near, program, dual):
    """The bound, beyond the cost of the nearest point."""
    bound = _reduce(forest, cost, ball, near, program, dual) + _pay(program, dual)
    for j in range(len(dual.worth)):
        bound += dual.worth[j] * program.need[j]
    return bound


@njit(**INNER)
def _turn(program, dual, rate):
    """The next direction: the subgradient, and most of the last one. Returns the square of its length."""
    grad, heading, slots, norm = dual.grad, dual.heading, program.slots, 0.0
    for slot in range(slots.shape[1]):
        over = 1.0 if dual.crossed[slots[CELL, slot]] else 0.0
        grad[2 * slot + NEEDS], grad[2 * slot + STAYS] = -over, over - 1.0
    conditions = grad[2 * slots.shape[1] :]
    for j in range(len(dual.worth)):
        conditions[j] = program.need[j]
    for t in range(len(program.tree_of)):
        p = dual.chosen[t]
        for e in range(program.leaf_at[p], program.leaf_at[p + 1]):
            grad[program.entry[e]] += 1.0
        for j in range(len(dual.worth)):
            conditions[j] -= program.value[j, p]
    for j in range(len(dual.worth)):
        conditions[j] *= rate
    for i in range(len(grad)):
        heading[i] = grad[i] + KEEP * heading[i]
        now = dual.price[i] if i < len(dual.price) else dual.worth[i - len(dual.price)]
        if now <= 0.0 and heading[i] < 0.0:
            heading[i] = 0.0
        norm += heading[i] * heading[i]
    return norm


@njit(**INNER)
def _spread(forest, cost, ball, near):
    """What the farthest cells of the box cost beyond the nearest point, added up."""
    spread = 0.0
    for g in range(len(near)):
        first = forest.start[g]
        if not forest.choice[g]:
            spread += cost[first + ball[0][g]] + cost[first + ball[1][g]] - 2.0 * cost[first + near[g]]
        else:
            for k in range(first, forest.start[g + 1]):
                if has(ball[2][g], k - first):
                    spread += cost[k] - cost[first + near[g]]
    return spread


@njit(**INNER)
def _step(dual, rate, length):
    """Go so far in the direction; `rate`: how much farther worths go."""
    size = len(dual.price)
    for i in range(size):
        if dual.heading[i] != 0.0:
            dual.price[i] = max(dual.price[i] + length * dual.heading[i], 0.0)
    for j in range(len(dual.worth)):
        dual.worth[j] = max(dual.worth[j] + length * rate * dual.heading[size + j], 0.0)


@njit(**INNER)
def _swap(dual, back):
    """Keep the shares and worths in `best`; `back`: take them from there."""
    size, best = len(dual.price), dual.best
    for i in range(size):
        if back:
            dual.price[i] = best[i]
        else:
            best[i] = dual.price[i]
    for j in range(len(dual.worth)):
        if back:
            dual.worth[j] = best[size + j]
        else:
            best[size + j] = dual.worth[j]


@njit(**INNER)
def _heaviest(worth):
    most = 0.0
    for j in range(len(worth)):
        most = max(most, worth[j])
    return most


@njit(**INNER)
def _climb(forest, person, cost, ball, near, program, dual, rounds, allowance, first):
    """Subgradient ascent, as long as the bound is below `allowance` and there is time; the best shares and worths are
    left in `dual`. `first`: there are no shares to begin with.
    """
    step, pace = (FIRST_STEP, FIRST_PACE) if first else (NEXT_STEP, PACE)
    found, steady, least = -math.inf, 0, LEAST_WORTH * _heaviest(dual.worth)
    mean = _spread(forest, cost, ball, near) / max(program.slots.shape[1], 1)
    for turn in range(rounds):
        bound = _evaluate(forest, cost, ball, near, program, dual)
        take_note(dual.rate, dual.crossed, KEEP if turn else 0.0)
        steady += 1
        if bound > found:
            if bound > found + 1e-3 * abs(allowance):
                steady = 0
            found = bound
            _swap(dual, False)
        if bound >= allowance or person.halt[0] != 0:
            break
        if steady >= STEADY:
            step, steady = 0.5 * step, 0
        rate = pace * max(_heaviest(dual.worth), least) / mean if mean > 0.0 else 0.0
        norm = _turn(program, dual, rate)
        if norm <= 0.0:
            break
        _step(dual, rate, step * ((allowance if allowance > 0.0 else 0.1 * abs(bound)) - bound) / norm)
    _swap(dual, True)
    return _evaluate(forest, cost, ball, near, program, dual)


@njit(**INNER)
def _begin(forest, program, dual, near, allowance):
    """Worths to begin with: a part of what the cutoff allows for what the nearest point misses."""
    unmet = 0
    for j in range(len(dual.worth)):
        dual.grad[j] = program.need[j]
        for t in range(len(program.tree_of)):
            root = forest.roots[program.tree_of[t]]
            dual.grad[j] -= forest.value[j, leaf_of(forest.node, forest.sets, forest.choice, root, near)]
        unmet += dual.grad[j] > 0.0
    for j in range(len(dual.worth)):
        if dual.grad[j] > 0.0:
            dual.worth[j] = FIRST_WORTH * allowance / dual.grad[j] / unmet if allowance > 0.0 else 1.0 / unmet


@njit(**INNER)
def _conclude(forest, ball, near, program, dual, priced, limit):
    """Drop leaves and cells that would lift the bound to the limit, and note what the search needs of the rest."""
    bound, guard, base = priced.number[BEYOND], abs(limit), priced.number[BASE]
    for i in range(len(dual.price)):
        guard += dual.price[i]
        if i % 2 == STAYS:
            base -= dual.price[i]
    for j in range(len(dual.worth)):
        base += dual.worth[j] * program.need[j]
        guard += abs(dual.worth[j] * program.need[j])
    for t in range(len(program.tree_of)):
        most = 0.0
        for p in range(program.tree_at[t], program.tree_at[t + 1]):
            most = max(most, abs(dual.paid[p]))
        guard += most
    guard *= ROUNDING
    priced.number[BASE], priced.number[GUARD] = base, guard
    allowance = limit - bound + 2.0 * guard
    for t in range(len(program.tree_of)):
        for p in range(program.tree_at[t], program.tree_at[t + 1]):
            priced.paid[program.leaf_of[p]] = dual.paid[p]
            priced.dropped[program.leaf_of[p]] = dual.paid[p] - dual.paid[dual.chosen[t]] >= allowance
    narrow(forest, ball, near, dual.reduced, allowance)
    for k in range(len(dual.reduced)):
        priced.reduced[0, k] = dual.reduced[k]
    least_outward(forest, ball, near, priced.reduced)


@with_cache(SOURCES, **OUTER)
def share(forest, person, table, ball, near, total, limit, shares, rounds):
    """Price a box, which is narrowed, beginning with the shares of a larger one: what is known by its prices, its own
    shares, and where to split it: the feature, and the cell (see `where_to_split`).
    """
    cells, conditions = forest.start[-1], len(forest.value)
    trees, leaves, most = sizes(forest, table)
    places, entries, count = np.empty(leaves, dtype=np.int32), 4 * most, most
    while True:
        program = LeafProgram(
            np.empty((2, count), dtype=np.int32), np.zeros(trees + 1, dtype=np.int32),
            np.empty(trees, dtype=np.int32), np.zeros(trees + 1, dtype=np.int32),
            places, np.empty(leaves + 1, dtype=np.int32), np.empty(entries, dtype=np.int32),
            np.empty((conditions, leaves)), np.empty(conditions),
        )  # fmt: skip
        slots, _, used = list_crossings(forest, table, ball, near, program, np.full(len(near), -1), np.full(cells, -1))
        if slots == count and used <= entries:
            break
        count, entries = slots, used
    list_needs(forest, table, program)
    dual = Dual(
        np.zeros(2 * slots), shares.worth.copy(), np.zeros(2 * slots + conditions),
        np.zeros(2 * slots + conditions), np.zeros(2 * slots + conditions),
        np.zeros(cells), np.full(cells, np.inf), np.zeros(cells, dtype=np.uint8), np.zeros(cells), np.zeros(leaves),
        np.zeros(trees, dtype=np.int32),
    )  # fmt: skip
    additive, first = forest.norm == ADDITIVE, _heaviest(shares.worth) <= 0.0
    cost, allowance = person.cost[FREE] if additive else np.zeros(cells), limit - total
    inherit(forest, ball, near, program, shares, dual.price)
    if first:
        _begin(forest, program, dual, near, allowance)
    bound = total + _climb(forest, person, cost, ball, near, program, dual, rounds, allowance, first)
    count = count_shares(dual.price)
    own = Shares(near.copy(), np.empty(count, dtype=np.int64), np.empty(count), dual.worth.copy())
    note_shares(forest, program, dual.price, own)
    priced = Priced(np.zeros(len(forest.dead)), np.zeros(len(forest.dead), dtype=np.uint8), np.empty((2, cells)),
                    np.array([bound, total, 0.0]))  # fmt: skip
    _conclude(forest, ball, near, program, dual, priced, limit)
    return priced, own, where_to_split(forest, person, ball, near, dual.rate)
