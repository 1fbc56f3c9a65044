"""Vectorised kernels: what takes most of the time of the search for trees in plain Python, as numpy does it.

They stand in for kernels of the same names until those are compiled (`ifonly.compiling.plain`), and do the same; sums
of gains are in another order, so their last bits may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.solvers.search.trees.kernels import boxes, greedy, points, search
from ifonly.solvers.search.trees.kernels.boxes import BITS
from ifonly.solvers.search.trees.kernels.layout import (
    ADDITIVE,
    COLUMN,
    CONDITION,
    CUT,
    FEATURE,
    FREE,
    HEIGHT,
    LEAF,
    LEAST,
    LEFT,
    MOST,
    NEED,
    RIGHT,
    SLACK,
    TREE_OF,
    WORD,
    Forest,
    LeafTable,
    PricedPerson,
    Stack,
    State,
)

Floats = NDArray[np.float64]
Places = NDArray[np.int32]


def _in_set(words: NDArray[np.uint64], cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Is each cell in the set in its row?"""
    word = np.take_along_axis(words, (cells >> 6)[:, None], axis=1)[:, 0]
    return (word >> (cells & 63).astype(np.uint64)) & np.uint64(1) != 0


def leaves_of(forest: Forest, roots: Places, cells: Places) -> Places:
    """The leaves below these roots that a point falls into: all walk down together."""
    at = roots.copy()
    while (inside := np.flatnonzero(forest.node[COLUMN, at] >= 0)).size:
        i = at[inside]
        column, cut = forest.node[COLUMN, i], forest.node[CUT, i]
        cell, left = cells[column], cells[column] <= cut
        if (among := np.flatnonzero(forest.choice[column])).size:
            left[among] = _in_set(forest.sets[cut[among]], cell[among])
        at[inside] = np.where(left, forest.node[LEFT, i], forest.node[RIGHT, i])
    return forest.node[LEAF, at]


def sums_of(forest: Forest, cells: Places, sums: Floats) -> None:
    """The sums of the leaves that a point falls into, one per condition."""
    sums[:] = forest.value[:, leaves_of(forest, forest.roots, cells)].sum(axis=1)


def move_point(forest: Forest, table: LeafTable, stack: Stack, s: int, g: int) -> None:
    """The nearest point has another cell of feature g: its leaves in the trees that use it."""
    v = table.user[table.user_at[g] : table.user_at[g + 1]]
    leaves = leaves_of(forest, forest.roots[table.tree[TREE_OF, v]], stack.near[s])
    stack.at[s, v] = table.bit_of[table.tree[CONDITION, v], leaves]


def single_moves(
    forest: Forest, person: PricedPerson, cells: Places, gains: Floats, allowance: float, *stacks: Places
) -> None:
    """gains[j, cell]: by how much condition j grows when the cell's feature alone goes there: all leaves of which the
    point breaks one limit are reached by a move of that feature.
    """
    feature, near = forest.limit[FEATURE], cells[forest.limit[FEATURE]]
    broken = (near < forest.limit[LEAST]) | (near > forest.limit[MOST])
    if (among := np.flatnonzero(forest.choice[feature])).size:
        broken[among] = ~_in_set(forest.limit_set[among], near[among])
    leaf_of = np.repeat(np.arange(len(forest.dead)), np.diff(forest.limit_at))
    alone = (np.bincount(leaf_of[broken], minlength=len(forest.dead)) == 1) & (forest.dead == 0)
    moves = np.flatnonzero(broken & alone[leaf_of])
    g, leaf = feature[moves], leaf_of[moves]
    gain = forest.value[:, leaf] - forest.value[:, leaves_of(forest, forest.roots, cells)][:, _tree_of(forest)[leaf]]
    first, number = forest.start[g], forest.choice[g] == 0
    up, down = first + forest.limit[LEAST, moves], first + forest.limit[MOST, moves] + 1
    inside, options = number & (down < forest.start[g + 1]), np.flatnonzero(~number)
    bits = np.unpackbits(forest.limit_set[moves[options]].view(np.uint8), axis=1, bitorder="little")
    which, k = np.nonzero(bits & (np.arange(bits.shape[1]) < np.diff(forest.start)[g[options], None]))
    to, size = first[options[which]] + k, gains.shape[1]
    for j in range(len(gains)):
        gains[j] = np.bincount(up[number], gain[j, number], size) - np.bincount(down[inside], gain[j, inside], size)
        for h in np.flatnonzero(forest.choice == 0).tolist():
            mine = gains[j, forest.start[h] : forest.start[h + 1]]
            np.cumsum(mine, out=mine)
        gains[j] += np.bincount(to, gain[j, options[which]], size)


def _tree_of(forest: Forest) -> NDArray[np.int64]:
    """The tree of each leaf."""
    tree = np.empty(len(forest.dead), dtype=np.int64)
    here, which = forest.roots, np.arange(len(forest.roots))
    while here.size:
        column = forest.node[COLUMN, here]
        tree[forest.node[LEAF, here[column < 0]]] = which[column < 0]
        here, which = here[column >= 0], which[column >= 0]
        here, which = np.concatenate([forest.node[LEFT, here], forest.node[RIGHT, here]]), np.tile(which, 2)
    return tree


# size: the parameters of the kernel that it replaces
def pick(
    forest: Forest, person: PricedPerson, cells: Places, sums: Floats, gains: Floats, most: float, completing: bool
) -> tuple[int, int]:
    """The best single move: the cheapest that meets all conditions, or the one with the most gain per cost."""
    cost, count = person.cost[FREE], np.diff(forest.start)
    own = forest.start[:-1] + cells
    total, now = float(cost[own].sum() if forest.norm == ADDITIVE else cost[own].max()), np.repeat(cost[own], count)
    lack = forest.demand[NEED] + forest.demand[SLACK] - sums
    after = total - now + cost if forest.norm == ADDITIVE else np.maximum(total, cost)
    gain = np.minimum(gains, np.maximum(lack, 0.0)[:, None]).sum(axis=0)
    possible = (cost < math.inf) & (after < most) & (gain > 0.0)
    possible[own] = False
    if completing:
        possible &= (gains >= lack[:, None]).all(axis=0)
        worth = -after
    else:
        worth = gain / np.maximum(cost - now, greedy.TINY)
        worth[gain < greedy.SHARE * np.maximum(lack, 0.0).sum()] *= greedy.TINY
    free = person.most >= len(cells) and len(forest.pairs) == 0
    found = np.flatnonzero(possible)
    for place in found[np.argsort(-worth[found], kind="stable")].tolist():
        g = int(np.searchsorted(forest.start, place, side="right")) - 1
        k = place - int(forest.start[g])
        if free or _permitted(forest, person, cells, g, k):
            return g, k
    return -1, -1


def _permitted(forest: Forest, person: PricedPerson, cells: Places, g: int, cell: int) -> bool:
    """May feature g go to this cell, by the rules on which features change?"""
    moved = cells.copy()
    moved[g] = cell
    changed = ~((moved == person.own) & (person.stays != 0))
    return int(changed[forest.counts != 0].sum()) <= person.most and bool(
        (~changed[forest.pairs[:, 0]] | changed[forest.pairs[:, 1]]).all()
    )


def _best_bits(table: LeafTable, alive: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The best leaf that a box leaves each tree: its first bit that is set; -1 if there is none."""
    some = np.flatnonzero(alive)
    place = np.searchsorted(some, table.tree[WORD, :-1])
    word = np.append(some, len(alive))[place]
    found = word < table.tree[WORD, 1:]
    bits = np.append(alive, np.uint64(0))[word]
    lowest = np.frexp((bits & (~bits + np.uint64(1))).astype(np.float64))[1] - 1  # a power of two is exact
    return np.where(found, word * BITS + lowest, -1)


def add_up(table: LeafTable, stack: Stack, s: int, sums: Floats) -> bool:
    """Per condition, what the best leaves that are left add up to, and those of the nearest point; False if a tree has
    no leaf left.
    """
    best, condition, count = _best_bits(table, stack.alive[s]), table.tree[CONDITION, :-1], len(table.settled)
    sums[:, :count] = table.settled
    if (best < 0).any():
        return False
    sums[0, :count] += np.bincount(condition, table.gives[best], count)
    sums[1, :count] += np.bincount(condition, table.gives[stack.at[s]], count)
    return True


def choose(forest: Forest, table: LeafTable, stack: Stack, state: State) -> tuple[int, int, int]:
    """The split that the best leaves want most and the nearest point breaks: (feature, side, cell or limit)."""
    s, priced = int(state.count[HEIGHT]) - 1, len(table.settled) > len(forest.value)
    condition, best, at = table.tree[CONDITION, :-1], _best_bits(table, stack.alive[s]), stack.at[s]
    need = np.append(forest.demand[NEED] + forest.demand[SLACK], math.inf)
    wanting = (best != at) & ~(state.sums[1, condition] >= need[condition])
    for wants in (condition == len(forest.value), condition < len(forest.value)) if priced else (wanting,):
        v = np.flatnonzero(wanting & wants)
        gain = np.maximum(table.gives[best[v]] - table.gives[at[v]], 1e-300)
        if (split := _most_frequent(forest, stack.near[s], table.leaf[best[v]], gain)) is not None:
            return split
    return -1, 0, 0


def _most_frequent(forest: Forest, near: Places, leaves: Places, gain: Floats) -> tuple[int, int, int] | None:
    """Credit every limit of these leaves that the nearest point breaks; the first one with the most credit."""
    count = forest.limit_at[leaves + 1] - forest.limit_at[leaves]
    i = np.repeat(forest.limit_at[leaves] - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
    g, gain = forest.limit[FEATURE, i], np.repeat(gain, count)
    above, options = near[g] < forest.limit[LEAST, i], forest.choice[g] != 0
    broken = above | (near[g] > forest.limit[MOST, i])
    broken[options] = ~_in_set(forest.limit_set[i[options]], near[g[options]])
    i, g, gain, side, options = i[broken], g[broken], gain[broken], (above & ~options)[broken], options[broken]
    if not len(i):
        return None
    cell = np.where(options, 0, np.where(side, forest.limit[LEAST, i], forest.limit[MOST, i]))
    _, first, which = np.unique(2 * (forest.start[g] + cell) + side, return_index=True, return_inverse=True)
    weight = np.bincount(which, gain)
    chosen = min(np.flatnonzero(weight == weight.max()).tolist(), key=lambda key: int(first[key]))
    k = int(first[chosen])
    if not options[k]:
        return int(g[k]), int(side[k]), int(cell[k])
    mine = np.flatnonzero(which == chosen)
    return int(g[k]), 0, int(i[mine[np.argmax(gain[mine])]])


VECTORISED: dict[Any, Callable[..., Any]] = {
    points.sums_of: sums_of,
    points.single_moves: single_moves,
    boxes.move_point: move_point,
    boxes.add_up: add_up,
    search.choose: choose,
    greedy._pick: pick,
}
"""By kernel, what replaces it."""
