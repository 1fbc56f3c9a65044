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

from ifonly.search.trees.kernels import boxes, greedy, points
from ifonly.search.trees.kernels.layout import (
    ADDITIVE,
    COLUMN,
    CONDITION,
    CUT,
    FEATURE,
    FREE,
    GROWN,
    LEAF,
    LEAST,
    LEFT,
    MOST,
    NEED,
    RIGHT,
    SLACK,
    Forest,
    LeafTable,
    PricedPerson,
    Stack,
)

Floats = NDArray[np.float64]
Places = NDArray[np.int32]


def _in_set(words: NDArray[np.uint64], cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Is each cell in the set in its row?"""
    word = np.take_along_axis(words, (cells >> 6)[:, None], axis=1)[:, 0]
    return (word >> (cells & 63).astype(np.uint64)) & np.uint64(1) != 0


def _leaves(forest: Forest, roots: Places, cells: Places) -> Places:
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
    sums[:] = forest.value[:, _leaves(forest, forest.roots, cells)].sum(axis=1)


def move_point(forest: Forest, table: LeafTable, stack: Stack, s: int, g: int) -> None:
    """The nearest point has another cell of feature g: its leaves in the trees that use it."""
    v = table.user[table.user_at[g] : table.user_at[g + 1]]
    leaves = _leaves(forest, forest.roots[table.tree[GROWN, v]], stack.near[s])
    stack.at[s, v] = table.bit_of[table.tree[CONDITION, v], leaves]


def single_moves(
    forest: Forest, person: PricedPerson, cells: Places, gains: Floats, room: float, *stacks: Places
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
    gain = forest.value[:, leaf] - forest.value[:, _leaves(forest, forest.roots, cells)][:, _tree_of(forest)[leaf]]
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
    return int(changed.sum()) <= person.most and bool(
        (~changed[forest.pairs[:, 0]] | changed[forest.pairs[:, 1]]).all()
    )


VECTORISED: dict[Any, Callable[..., Any]] = {
    points.sums_of: sums_of,
    points.single_moves: single_moves,
    boxes.move_point: move_point,
    greedy._pick: pick,
}
"""By kernel, what stands in for it."""
