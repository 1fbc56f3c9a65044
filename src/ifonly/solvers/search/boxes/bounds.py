"""Upper bounds of C s over boxes of a person's values, for sums of trees and a network, many boxes at once.

A box has, of each feature, the values between two places of a list: numbers in order, options from the cheapest on.
Of a tree the best leaf that the box reaches counts; the network is bounded layer by layer, with the first layer feature
by feature, so that a choice counts one option and not all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.layers import affine, layers_of
from ifonly.model.mixed import MixedSum, largest_of, on
from ifonly.model.rounding import column_box
from ifonly.model.trees.ensemble import Ensemble
from ifonly.problem import Question
from ifonly.resources import check_limits
from ifonly.schema import Choice, Schema

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
OUTWARD = 1e-10
"""Relative to the size of what is added up: more than float64 loses."""


@dataclass(frozen=True, eq=False)
class LeafCells:
    """The leaves of all parts, tree by tree: the cells (numbers) and options (choices) that reach each."""

    first: NDArray[np.int64]
    """Where the leaves of each tree begin."""
    part: NDArray[np.int64]
    """The first tree of each part."""
    value: Floats
    cuts: tuple[Floats, ...]
    least: Places
    """(features, leaves): the first cell of a number; `most` the last."""
    most: Places
    options: dict[int, NDArray[np.bool_]]
    """Of each choice: (leaves, options)."""

    @classmethod
    def of(cls, function: MixedSum, schema: Schema) -> LeafCells:
        cuts = tuple(np.unique(np.concatenate([trees.cuts[g] for trees in function.parts])) for g in range(len(schema)))
        counts = [len(f.options) if isinstance(f, Choice) else 0 for f in schema.features]
        found: list[tuple[Places, Places, dict[int, NDArray[np.bool_]], float]] = []
        first: list[int] = []
        part: list[int] = []
        for trees in function.parts:
            part.append(len(first))
            for root in trees.ensemble.roots.tolist():
                first.append(len(found))
                found += _leaves(trees.ensemble, root, cuts, counts)
        check_limits(16 * len(found) * (len(schema) + sum(counts)))
        options = {
            g: np.array([sets.get(g, np.ones(count, dtype=np.bool_)) for _, _, sets, _ in found])
            for g, count in enumerate(counts)
            if count
        }
        least, most = (np.array([leaf[k] for leaf in found]).T.copy() for k in (0, 1))
        value = np.array([leaf[3] for leaf in found])
        return cls(np.array(first), np.array(part), value, cuts, least, most, options)


def _leaves(ensemble: Ensemble, root: int, cuts: tuple[Floats, ...], counts: list[int]) -> list[Any]:
    """Every leaf of a tree that something may reach: its cells, options and value."""
    nodes, result = ensemble.nodes, []
    begin = np.zeros(len(cuts), dtype=np.int64), np.array([len(c) for c in cuts], dtype=np.int64)
    stack: list[Any] = [(root, *begin, {})]
    while stack:
        node, least, most, sets = stack.pop()
        g = int(nodes.column[node])
        if g < 0:
            result.append((least, most, sets, float(ensemble.values[nodes.leaf[node], 0])))
            continue
        for child, left in ((int(nodes.left[node]), True), (int(nodes.right[node]), False)):
            if counts[g]:
                goes = ensemble.sets[nodes.chosen[node], : counts[g]] == left
                kept = sets.get(g, np.ones(counts[g], dtype=np.bool_)) & goes
                if kept.any():
                    stack.append((child, least, most, {**sets, g: kept}))
                continue
            place = int(np.searchsorted(cuts[g], nodes.threshold[node])) if nodes.threshold[node] > -np.inf else -1
            low, high = least.copy(), most.copy()
            if left:
                high[g] = min(high[g], place)
            else:
                low[g] = max(low[g], place + 1)
            if low[g] <= high[g]:
                stack.append((child, low, high, sets))
    return result


@dataclass(frozen=True, eq=False)
class BoxBounds:
    """Bounds of a question, for anybody."""

    question: Question
    leaves: LeafCells

    @property
    def function(self) -> MixedSum:
        function = self.question.model.function
        assert isinstance(function, MixedSum)
        return function

    @cached_property
    def gains(self) -> Floats:
        """(condition, part): what a unit of each part adds to C s."""
        return np.asarray(self.question.conditions[0] @ self.function.weight)

    @cached_property
    def layers(self) -> tuple[list[tuple[Floats, Floats]], list[Any]]:
        """The network's layers, the last of which gives the conditions."""
        c = self.question.conditions[0]
        assert self.function.network is not None
        layers, activations = layers_of(self.function.network)
        return [*layers[:-1], (c @ layers[-1][0], c @ layers[-1][1])], activations

    @cached_property
    def sensitivity(self) -> Floats:
        """How much each unit of the first layer may move the conditions, about."""
        layers, activations = self.layers
        found = np.ones(len(layers[-1][1]))
        for k in range(len(layers) - 1, 0, -1):
            found = found @ np.abs(layers[k][0])
            found = found * (0.25 if activations[k - 1].name == "sigmoid" else 1.0)
        return found

    @cached_property
    def least(self) -> Floats:
        """What C s must be above for a row to be accepted under some rounding, less what is lost here."""
        question, function = self.question, self.function
        _, d = question.conditions
        size = np.abs(self.gains) @ np.array([1.0 + largest_of(one) for one in function.parts])
        size = size + np.abs(d) + 1.0 + np.abs(question.conditions[0]) @ np.abs(function.shift)
        if function.network is not None:
            lower, upper = (ends[None, :] for ends in column_box(question.schema))
            every = np.ones(lower.shape[1], dtype=np.bool_)
            own = function.network.error(lower, upper, "float64", every)[0]  # some units of what is added up
            size = size + np.abs(question.conditions[0]) @ own / 2.0**-52
        return np.asarray(d + question.margins - question.computed_error - OUTWARD * size)


@dataclass(frozen=True, eq=False)
class PersonBounds:
    """The same for one person, whose `values` of each feature boxes speak of."""

    bounds: BoxBounds
    values: tuple[Floats, ...]

    @cached_property
    def _cells(self) -> list[Places]:
        """The cell of each value of a number."""
        return [np.searchsorted(cuts, own) for cuts, own in zip(self.bounds.leaves.cuts, self.values, strict=True)]

    @cached_property
    def _reached(self) -> dict[int, NDArray[np.int32]]:
        """(leaf, place): how many of a choice's first options reach a leaf."""
        reached = {}
        for g, sets in self.bounds.leaves.options.items():
            counted = np.cumsum(sets[:, self.values[g].astype(np.intp)], axis=1, dtype=np.int32)
            reached[g] = np.concatenate([np.zeros((len(sets), 1), dtype=np.int32), counted], axis=1)
        return reached

    def is_choice(self, g: int) -> bool:
        return g in self.bounds.leaves.options

    def has_option(self, g: int, leaf: Places, place: Places) -> NDArray[np.bool_]:
        """(boxes, trees): does the option at this place of a choice reach these leaves?"""
        counted = self._reached[g]
        return np.asarray(counted[leaf, place[:, None] + 1] > counted[leaf, place[:, None]])

    def beside(self, g: int, leaf: Places, place: Places) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Places]:
        """(boxes, trees): is the number at this place below or above these leaves, and where does a split part them?"""
        leaves, cells = self.bounds.leaves, self._cells[g]
        own, least, most = cells[place][:, None], leaves.least[g, leaf], leaves.most[g, leaf]
        below, above = own < least, own > most
        at = np.where(below, np.searchsorted(cells, least, side="left"), np.searchsorted(cells, most, side="right"))
        return below, above, at

    def alive(self, low: Places, high: Places) -> NDArray[np.bool_]:
        """(boxes, leaves): does the box reach the leaf?"""
        leaves = self.bounds.leaves
        result = np.ones((len(low), len(leaves.value)), dtype=np.bool_)
        for g, cells in enumerate(self._cells):
            if g in leaves.options:
                counted = self._reached[g]
                result &= (counted[:, high[:, g] + 1] > counted[:, low[:, g]]).T
            elif len(leaves.cuts[g]):
                result &= leaves.least[g] <= cells[high[:, g]][:, None]
                result &= leaves.most[g] >= cells[low[:, g]][:, None]
        return result

    def upper(self, low: Places, high: Places, alive: NDArray[np.bool_]) -> Floats:
        """(boxes, conditions): more than C s of any row of each box."""
        bounds, function, leaves = self.bounds, self.bounds.function, self.bounds.leaves
        ends = []
        for best, worst in ((np.maximum, -np.inf), (np.minimum, np.inf)):
            by_tree = best.reduceat(np.where(alive, leaves.value, worst), leaves.first, axis=1)
            ends.append(np.add.reduceat(by_tree, leaves.part, axis=1))
        result = np.broadcast_to(bounds.question.conditions[0] @ function.shift, (len(low), len(bounds.gains))).copy()
        for j, (trees, curve) in enumerate(zip(function.parts, function.curves, strict=True)):
            how = trees.ensemble.summation
            z = np.sort([(how.start[0] + end[:, j]) / how.divisor * how.scale + how.shift[0] for end in ends], axis=0)
            gain = bounds.gains[:, j]
            result += np.where(gain > 0.0, gain * on(curve, z[1])[:, None], gain * on(curve, z[0])[:, None])
        return result if function.network is None else result + self._network_upper(low, high)

    # ------------------------------------------------------------------ the network

    @cached_property
    def _contributions(self) -> list[tuple[Floats, Floats, Floats]]:
        """Of each feature: what each value adds to the first layer; of choices the least and most from a place on."""
        weight, schema = self.bounds.layers[0][0][0], self.bounds.question.schema
        base = np.array([own[0] for own in self.values])
        result = []
        for g, own in enumerate(self.values):
            rows = np.repeat(base[None, :], len(own), axis=0)
            rows[:, g] = own
            columns = list(schema.feature_columns[g])
            added = schema.encode(rows)[:, columns] @ weight[:, columns].T
            from_end = added[::-1]
            least, most = (best.accumulate(from_end, axis=0)[::-1] for best in (np.minimum, np.maximum))
            result.append((added, least, most))
        return result

    def added(self, g: int, low: Places, high: Places) -> tuple[Floats, Floats]:
        """The least and the most that the values of a feature add to the first layer, over boxes."""
        added, least, most = self._contributions[g]
        if self.is_choice(g):  # one option, or all from one on
            alone = (low == high)[:, None]
            return np.where(alone, added[low], least[low]), np.where(alone, added[low], most[low])
        ends = added[low], added[high]
        return np.minimum(*ends), np.maximum(*ends)

    def _network_upper(self, low: Places, high: Places) -> Floats:
        layers, activations = self.bounds.layers
        lower = upper = np.broadcast_to(layers[0][1], (len(low), len(layers[0][1])))
        for g in range(len(self.values)):
            least, most = self.added(g, low[:, g], high[:, g])
            lower, upper = lower + least, upper + most
        for (weight, bias), activation in zip(layers[1:], activations, strict=True):
            lower, upper = affine(weight, bias, *activation.values(lower, upper))
        return upper
