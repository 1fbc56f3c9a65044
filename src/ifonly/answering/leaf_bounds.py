"""Bounds on what trees can say of the rows that actions reach, for many sets of acted features at once.

A leaf is in reach of a set if what follows can be in it within the amount, and if entering it with all that is acted on
costs no more than that. The best leaf in reach of each tree, added up, bounds each condition from above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.model.trees import Trees
from ifonly.problem import Lowered, Norm, People, Question
from ifonly.solvers.search.trees.pack import SummedTrees, leaf_values

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_NUMBERS = 20_000_000
"""Of a table of leaves and features."""
ROOM = 1e-9
"""Relative: more than rounding can do to the sum of a forest."""


@dataclass(frozen=True, eq=False)
class TreeLeaves:
    """All leaves of trees: what each asks of a row, tree by tree."""

    low: Floats
    """(leaf, feature): of numbers, which are above it."""
    high: Floats
    """(leaf, feature): which are not above this."""
    options: Mask
    """(leaf, unrolled column): of choices, which options it allows."""
    row: NDArray[np.intp]
    """Of each leaf, its row of the ensemble's values."""
    first: NDArray[np.intp]
    """(tree): its first leaf."""

    @classmethod
    def of(cls, trees: Trees, start: NDArray[np.int64]) -> TreeLeaves | None:
        """Found level by level; None where the tables would be very large."""
        nodes, roots, count = trees.ensemble.nodes, trees.ensemble.roots, len(trees.schema)
        if len(trees.ensemble.values) * (2 * count + int(start[-1])) > MOST_NUMBERS:
            return None
        here, tree = roots.astype(np.intp), np.arange(len(roots))
        boxes = LeafBoxes.everything(len(roots), count, int(start[-1]))
        done: list[tuple[NDArray[np.intp], NDArray[np.intp], LeafBoxes]] = []
        while len(here):
            leaf = nodes.column[here] < 0
            done.append((tree[leaf], nodes.leaf[here[leaf]].astype(np.intp), boxes.part(leaf)))
            here, tree, boxes = here[~leaf], tree[~leaf], boxes.part(~leaf)
            boxes = LeafBoxes.joined([_side(trees, start, here, boxes, left=left) for left in (True, False)])
            here = np.concatenate([nodes.left[here], nodes.right[here]]).astype(np.intp)
            tree = np.concatenate([tree, tree])
        tree, row = (np.concatenate([one[k] for one in done]) for k in (0, 1))
        order = np.argsort(tree, kind="stable")
        boxes = LeafBoxes.joined([one[2] for one in done]).part(order)
        first = np.searchsorted(tree[order], np.arange(len(roots)))
        return cls(boxes.low, boxes.high, boxes.options, row[order], first)


class LeafBoxes(NamedTuple):
    """What nodes of trees ask of a row, as the leaves do."""

    low: Floats
    high: Floats
    options: Mask

    @classmethod
    def everything(cls, count: int, features: int, width: int) -> LeafBoxes:
        low, high = np.full((count, features), -np.inf), np.full((count, features), np.inf)
        return cls(low, high, np.ones((count, width), dtype=np.bool_))

    @classmethod
    def joined(cls, each: Sequence[LeafBoxes]) -> LeafBoxes:
        low, high = np.concatenate([one.low for one in each]), np.concatenate([one.high for one in each])
        return cls(low, high, np.concatenate([one.options for one in each]))

    def part(self, which: NDArray[Any]) -> LeafBoxes:
        return LeafBoxes(self.low[which], self.high[which], self.options[which])


def _side(trees: Trees, start: NDArray[np.int64], here: NDArray[np.intp], boxes: LeafBoxes, *, left: bool) -> LeafBoxes:
    """What is left of boxes on one side of their nodes."""
    nodes, low, high, options = trees.ensemble.nodes, boxes.low.copy(), boxes.high.copy(), boxes.options.copy()
    column, chosen = nodes.column[here], nodes.chosen[here]
    number = np.flatnonzero(chosen < 0)
    at, cut = (number, column[number]), nodes.threshold[here[number]]
    if left:
        high[at] = np.minimum(high[at], cut)
    else:
        low[at] = np.maximum(low[at], cut)
    for k in np.flatnonzero(chosen >= 0).tolist():
        columns = slice(int(start[column[k]]), int(start[column[k] + 1]))
        inside = trees.ensemble.sets[chosen[k], : columns.stop - columns.start]
        options[k, columns] &= inside if left else ~inside
    return LeafBoxes(low, high, options)


@dataclass(frozen=True, eq=False)
class LeafBounds:
    """The leaves of a model's trees under one question, whose costs `lowered` has."""

    leaves: TreeLeaves
    lowered: Lowered
    values: Floats
    """(condition, leaf): what it adds."""
    need: Floats
    """(condition): what the leaves add up to, at least, wherever the model decides so."""

    @classmethod
    def of(cls, question: Question, lowered: Lowered, leaves: TreeLeaves) -> LeafBounds:
        summed = SummedTrees.of(question.model.function)
        c, d = question.conditions
        factor, (start, shift) = summed.factor, summed.summing[:2]
        values = leaf_values(summed.trees.ensemble, c * factor)[:, leaves.row]
        constant = c @ (start * factor + shift) - d
        largest = np.maximum.reduceat(np.abs(values), leaves.first, axis=1).sum(axis=1)
        size = largest + np.abs(c) @ (np.abs(start * factor) + np.abs(shift)) + np.abs(d) + question.margins
        return cls(leaves, lowered, values, question.margins - constant - np.abs(c) @ summed.rounding - ROOM * size)

    # size: what a person may do
    def most(
        self, point: Floats, people: People, able: Mask, reach: tuple[Floats, Floats, Mask], amount: Floats
    ) -> tuple[Floats, Floats]:
        """(set, condition): upper bounds; and what the conditions are now. `able`: (set, feature) can it be acted on;
        `reach`: (set, feature) ends of numbers, and (set, unrolled column) options, within the amount."""
        leaves, inside = self.leaves, self._follows(able, reach)
        within = self._cost(point, people, able) <= amount[:, None] * (1.0 + ROOM)
        inside &= within
        most = np.stack(
            [
                np.maximum.reduceat(np.where(inside, one, -np.inf), leaves.first, axis=1).sum(axis=1)
                for one in self.values
            ],
            axis=1,
        )
        here = self._holds(point)
        now = np.maximum.reduceat(np.where(here, self.values, -np.inf), leaves.first, axis=1).sum(axis=1)
        return most, now

    def _holds(self, point: Floats) -> Mask:
        """(leaf): is the point in it?"""
        costs, leaves = self.lowered, self.leaves
        numbers, own = costs.numbers, costs.start[costs.choices] + point[costs.choices].astype(np.intp)
        above, below = point[numbers] > leaves.low[:, numbers], point[numbers] <= leaves.high[:, numbers]
        return np.asarray((above & below).all(axis=1) & leaves.options[:, own].all(axis=1))

    def _follows(self, able: Mask, reach: tuple[Floats, Floats, Mask]) -> Mask:
        """(set, leaf): can what is not acted on be in it?"""
        costs, leaves, (low, high, options) = self.lowered, self.leaves, reach
        inside = np.ones((len(able), len(leaves.row)), dtype=np.bool_)
        for g in np.flatnonzero(~able.all(axis=0)).tolist():
            if costs.numeric[g]:
                fits = (high[:, g, None] > leaves.low[:, g]) & (low[:, g, None] <= leaves.high[:, g])
            else:
                columns = slice(int(costs.start[g]), int(costs.start[g + 1]))
                fits = np.asarray((options[:, None, columns] & leaves.options[:, columns]).any(axis=2))
            inside &= fits | able[:, g, None]
        return inside

    def _cost(self, point: Floats, people: People, able: Mask) -> Floats:
        """(set, leaf): what it costs at least to enter it with what can be acted on."""
        costs, leaves = self.lowered, self.leaves
        each = np.zeros((len(leaves.row), costs.features))
        numbers = costs.numbers
        own, able_to = point[numbers], (people.lower[0, numbers], people.upper[0, numbers])
        up = np.maximum(leaves.low[:, numbers] - own, 0.0)
        down = np.maximum(own - leaves.high[:, numbers], 0.0)
        moved = costs.rate[numbers] * up + costs.rate_down[numbers] * down
        moved = np.where((own > leaves.low[:, numbers]) & (down == 0.0), 0.0, costs.jump[numbers] + moved)
        out = (able_to[1] < leaves.low[:, numbers]) | (able_to[0] > leaves.high[:, numbers])
        each[:, numbers] = np.where(out, np.inf, moved)
        price = np.sqrt(people.cost[0]) if costs.norm is Norm.L2 else people.cost[0]
        price = np.where(people.allowed[0], price, np.inf)
        for g in costs.choices.tolist():
            columns = slice(int(costs.start[g]), int(costs.start[g + 1]))
            each[:, g] = np.where(leaves.options[:, columns], price[columns], np.inf).min(axis=1)
        return _total(each, able, costs.norm)


def _total(each: Floats, able: Mask, norm: Norm) -> Floats:
    """(set, leaf): what the changes of the features that can be acted on cost together."""
    always, result = able.all(axis=0), []
    square = each**2 if norm is Norm.L2 else each
    add = np.max if norm is Norm.LINF else np.sum
    base = add(square[:, always], axis=1, initial=0.0)
    for some in able & ~always:
        parts = np.column_stack([base, square[:, some]])
        result.append(add(parts, axis=1))
    total = np.array(result)
    return np.sqrt(total) if norm is Norm.L2 else total
