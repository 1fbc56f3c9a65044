"""Proof trees for ensembles of trees: boxes are split until the sum of the best leaves in reach is too small.

A leaf of the ensemble is in reach of a box if they meet at a cost below the radius. There are no records to write the
proof from: the search for trees closes boxes by prices, which a certificate does not state. So the space is split
again, with the radius that the search found, at the edges of the best leaves. Floating point decides, on the safe side;
what it leaves open goes to exact arithmetic.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.certificate.check.box import Box, Extent
from ifonly.certificate.check.distance import MAXIMUM, SQUARED
from ifonly.certificate.check.region import Region
from ifonly.certificate.check.rules import narrow
from ifonly.certificate.check.schema import StatedChoice
from ifonly.certificate.check.statement import Statement
from ifonly.certificate.check.trees import beyond, closes, floor_change
from ifonly.certifying.effort import Effort
from ifonly.certifying.leaves import Leaves, NetworkFloats
from ifonly.certifying.nearer import raise_if_nearer
from ifonly.certifying.prover import MOST_SPLITS, Prover, Unclosed
from ifonly.resources import check_limits

CANDIDATES = 8
"""Splits that are compared."""
SAFE_COST, SAFE_SUM = 1e-11, 1e-10
"""Of the radius, and of the sum of absolute values: what floating point may be off by."""

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class ForestCells:
    """The leaves of an ensemble in cells: the same for every person."""

    def __init__(self, statement: Statement) -> None:
        forest = statement.forest
        assert forest is not None
        leaves = [leaf for tree in forest.trees for leaf in tree]
        self.tree = np.repeat(np.arange(len(forest.trees)), [len(tree) for tree in forest.trees])
        # whole numbers, divided as such: a shift of 5e-324, as of gradient boosting, makes them larger than any float
        size = max([1, *(abs(v) for leaf in leaves for v in leaf.adds), *map(abs, forest.constants)])
        self.adds = np.array([[v / size for v in leaf.adds] for leaf in leaves])
        self.constants = np.array([c / size for c in forest.constants])
        self.slack = SAFE_SUM * float(
            np.abs(self.adds).max(initial=0.0) * len(forest.trees) + np.abs(self.constants).max(initial=0.0)
        )
        self.cuts: list[list[float]] = []
        self.low = np.zeros((len(leaves), len(statement.schema)), dtype=np.intp)
        self.high = np.zeros_like(self.low)
        self.masks: list[NDArray[np.bool_]] = []
        for g, feature in enumerate(statement.schema.features):
            cuts = sorted({t for leaf in leaves for t in (leaf.above.get(g), leaf.below.get(g)) if t is not None})
            self.cuts.append(cuts)
            if isinstance(feature, StatedChoice):
                whole = range(len(feature.options))
                self.masks.append(np.array([[o in leaf.options.get(g, whole) for o in whole] for leaf in leaves]))
                continue
            self.masks.append(np.zeros((0, 0), dtype=np.bool_))
            place = {t: k for k, t in enumerate(cuts)}
            self.low[:, g] = [place[leaf.above[g]] + 1 if g in leaf.above else 0 for leaf in leaves]
            self.high[:, g] = [place[leaf.below[g]] if g in leaf.below else len(cuts) for leaf in leaves]


@dataclass(frozen=True, slots=True)
class _Node:
    box: Box
    low: Ints
    high: Ints
    options: tuple[NDArray[np.bool_], ...]
    alive: Ints
    costs: Floats
    """(alive leaf, feature): what the leaf and the box leave of the feature costs at least."""


class ForestProver:
    """One person's question at one radius."""

    def __init__(self, statement: Statement, cells: ForestCells, radius: int | None, effort: Effort) -> None:
        self.statement, self.cells, self.effort = statement, cells, effort
        self.exact_radius = radius
        unit = 1 << statement.cost_unit
        self.radius = np.inf if radius is None else radius / unit * (1.0 + SAFE_COST)
        self.floors = [[floor_change(statement, g, t) for t in cuts] for g, cuts in enumerate(cells.cuts)]
        self.own = [bisect_left(floors, 0) for floors in self.floors]
        self.down: list[Floats] = []
        self.up: list[Floats] = []
        self.prices = [np.array([c / unit for c in statement.option_costs[g]]) for g in range(len(statement.schema))]
        for g in range(len(statement.schema)):
            price = self._cell_prices(g)
            self.up.append(np.minimum.accumulate(price[::-1])[::-1])
            self.down.append(np.minimum.accumulate(price))
        self.splits = 0

    def _cell_prices(self, g: int) -> Floats:
        """The least cost of a value in each cell; infinite where none is allowed."""
        statement, domain, floors = self.statement, self.statement.domains[g], self.floors[g]
        if statement.is_choice[g]:
            return np.zeros(1)
        result, unit = [], 1 << statement.cost_unit
        for k in range(len(floors) + 1):
            low = domain.low if k == 0 else max(domain.low, beyond(statement, g, self.cells.cuts[g][k - 1]))
            most = domain.high if k == len(floors) else domain.parted(floors[k])[0] + (not domain.coarse)
            high = min(domain.high, most)
            if low > high:
                result.append(np.inf)
                continue
            change = low if low > 0 else high if high < 0 else 0
            rate = statement.rates[g] if change > 0 else statement.rates_down[g]
            cost = rate * change * change if statement.norm == SQUARED else rate * abs(change)
            moved = change or (k > 0 and self.cells.cuts[g][k - 1] >= statement.factual[g])
            result.append((cost + (statement.jumps[g] if moved else 0)) / unit * (1.0 - SAFE_COST))
        return np.array(result)

    # ------------------------------------------------------------------ the tree

    def prove(self) -> list[Any]:
        """The tree in preorder."""
        waiting, tree = [self._root()], list[Any]()
        while waiting:
            check_limits()
            node = waiting.pop()
            self.statement.meter.keep(2_000)
            if node is None or self._is_closed(node):
                tree.append({"rows": []})
                continue
            split = self._split(node)
            if split is None:
                tree += self._by_hand(node)
                continue
            self.splits += 1
            self.effort.check_splits(self.splits)
            if self.splits > MOST_SPLITS:
                raise Unclosed
            tree.append(split)
            waiting += reversed([self._side(node, split, second) for second in (False, True)])
        return tree

    def _root(self) -> _Node | None:
        cells, n = self.cells, len(self.statement.schema)
        low = np.zeros(n, dtype=np.intp)
        high = np.array([len(cuts) for cuts in cells.cuts], dtype=np.intp)
        options = tuple(np.array([o in d.options for o in range(len(p))], dtype=np.bool_)
                        for d, p in zip(self.statement.domains, self.prices, strict=True))  # fmt: skip
        node = _Node(
            Box.whole(self.statement), low, high, options, np.arange(len(cells.tree)), np.zeros((len(cells.tree), n))
        )
        return self._narrowed(node, range(n))

    def _narrowed(self, node: _Node, features: Any) -> _Node | None:
        """The node with the costs of these features computed anew, and what the rules leave of it."""
        changed = set(features)
        if self.statement.rules.any:
            extent = node.box.extent()
            if not narrow(self.statement, extent):
                return None
            low, high, options = self._cells_of(extent)
            for g in range(len(low)):
                if low[g] > node.low[g] or high[g] < node.high[g] or (options[g] != node.options[g]).any():
                    changed.add(g)
            node = replace(node, low=np.maximum(low, node.low), high=np.minimum(high, node.high), options=options)
        for g in changed:
            if node.low[g] > node.high[g] or (self.statement.is_choice[g] and not node.options[g].any()):
                return None
        cells, alive, costs = self.cells, node.alive, node.costs.copy()
        for g in changed:
            costs[:, g] = self._costs(node, g, alive)
        total = costs.max(axis=1) if self.statement.norm == MAXIMUM else costs.sum(axis=1)
        kept = total < self.radius
        alive, costs = alive[kept], costs[kept]
        if len(np.unique(cells.tree[alive])) < len(self.statement.forest.trees):  # type: ignore[union-attr]
            return None
        return replace(node, alive=alive, costs=costs)

    def _costs(self, node: _Node, g: int, alive: Ints) -> Floats:
        """What a feature costs at least in each of these leaves and the box."""
        if self.statement.is_choice[g]:
            allowed = self.cells.masks[g][alive] & node.options[g]
            return np.asarray(np.where(allowed, self.prices[g], np.inf).min(axis=1))
        low, high = (
            np.maximum(self.cells.low[alive, g], node.low[g]),
            np.minimum(self.cells.high[alive, g], node.high[g]),
        )
        own, end = self.own[g], len(self.up[g]) - 1
        cost = np.where(
            low > own, self.up[g][np.minimum(low, end)], np.where(high < own, self.down[g][np.maximum(high, 0)], 0.0)
        )
        return np.where(low > high, np.inf, cost)

    def _cells_of(self, extent: Extent) -> tuple[Ints, Ints, tuple[NDArray[np.bool_], ...]]:
        n = len(self.statement.schema)
        low, high, options = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp), []
        for g in range(n):
            low[g], high[g] = (bisect_left(self.floors[g], end) for end in (extent.low[g], extent.high[g]))
            options.append(np.array([o in extent.options[g] for o in range(len(self.prices[g]))], dtype=np.bool_))
        return low, high, tuple(options)

    def _bests(self, alive: Ints, r: int) -> tuple[float, Ints]:
        """The most that a condition can reach with these leaves, and the leaf of each tree that does it."""
        trees, values = self.cells.tree[alive], self.cells.adds[alive, r]
        order = np.lexsort((values, trees))
        ends = np.append(np.flatnonzero(np.diff(trees[order])), len(order) - 1)
        best = order[ends]
        return float(self.cells.constants[r] + values[best].sum()), alive[best]

    def _most(self, alive: Ints, r: int) -> float:
        """The same without the leaves; -infinity where a tree has none."""
        trees = self.cells.tree[alive]
        if not len(alive):
            return -np.inf
        starts = np.flatnonzero(np.append(True, np.diff(trees) > 0))
        if len(starts) < self.cells.tree[-1] + 1:
            return -np.inf
        return float(self.cells.constants[r] + np.maximum.reduceat(self.cells.adds[alive, r], starts).sum())

    def _is_closed(self, node: _Node) -> bool:
        return any(self._most(node.alive, r) < -self.cells.slack for r in range(len(self.cells.constants)))

    # ------------------------------------------------------------------ splits

    def _split(self, node: _Node) -> list[Any] | None:
        """The best of the splits at edges of the best leaves; None where the box is inside all of them."""
        order = sorted(range(len(self.cells.constants)), key=lambda r: self._most(node.alive, r))
        for r in order:
            top, best = self._bests(node.alive, r)
            candidates = self._candidates(node, best)
            if candidates:
                return max(candidates, key=lambda split: self._score(node, split, r, top))
        return None

    def _candidates(self, node: _Node, best: Ints) -> list[list[Any]]:
        cells, weights = self.cells, dict[tuple[int, int], int]()
        low, high = cells.low[best], cells.high[best]
        for g in np.flatnonzero(node.high > node.low).tolist():
            places = [*(low[low[:, g] > node.low[g], g] - 1).tolist(), *high[high[:, g] < node.high[g], g].tolist()]
            for k in places:
                weights[g, k] = weights.get((g, k), 0) + 1
        for g in np.flatnonzero(self.statement.is_choice).tolist():
            left = np.flatnonzero(node.options[g])
            if len(left) > 1:
                own = cells.masks[g][best][:, left]
                partly = own[~own.all(axis=1)]
                for k, option in enumerate(left.tolist()):
                    count = int(min(partly[:, k].sum(), len(partly) - partly[:, k].sum())) if len(partly) else 0
                    if count or len(partly):
                        weights[g, option] = count + 1
        chosen = sorted(weights, key=lambda key: -weights[key])[:CANDIDATES]
        return [
            ["option", g, k] if self.statement.is_choice[g] else ["cut", g, cells.cuts[g][k].hex()] for g, k in chosen
        ]

    def _score(self, node: _Node, split: list[Any], r: int, top: float) -> float:
        drops = []
        for second in (False, True):
            side = self._cells_side(node, split, second)
            g = split[1]
            costs = node.costs.copy() if self.statement.norm == MAXIMUM else node.costs
            mine = self._costs(side, g, node.alive)
            if self.statement.norm == MAXIMUM:
                costs[:, g] = mine
                total = costs.max(axis=1)
            else:
                total = costs.sum(axis=1) - np.where(np.isinf(costs[:, g]), 0.0, costs[:, g]) + mine
            most = self._most(node.alive[total < self.radius], r)
            drops.append(top + 1e-9 if most < -self.cells.slack else max(top - most, 0.0))
        return (drops[0] + 1e-3 * top + 1e-12) * (drops[1] + 1e-3 * top + 1e-12)

    def _cells_side(self, node: _Node, split: list[Any], second: bool) -> _Node:
        kind, g, value = split
        if kind == "option":
            mask = node.options[g].copy()
            mask &= (np.arange(len(mask)) == value) != second
            return replace(node, options=(*node.options[:g], mask, *node.options[g + 1 :]))
        k = bisect_left(self.cells.cuts[g], float.fromhex(value))
        low, high = node.low.copy(), node.high.copy()
        if second:
            low[g] = max(low[g], k + 1)
        else:
            high[g] = min(high[g], k)
        return replace(node, low=low, high=high)

    def _side(self, node: _Node, split: list[Any], second: bool) -> _Node | None:
        kind, g, value = split
        if kind == "option":
            boxes = node.box.split_option(g, value)
        else:
            boxes = node.box.split_cut(self.statement, g, float.fromhex(value))
        return self._narrowed(replace(self._cells_side(node, split, second), box=boxes[second]), (g,))

    def _by_hand(self, node: _Node) -> list[Any]:
        """A box in which the ensemble is constant and favourable: its rows cost too much, or break a rule."""
        statement, known = self.statement, self._rules.known
        region = None if known is None else Region(statement, node.box, self.exact_radius, known)
        if region is None or region.empty or closes(region, self._rules.in_reach):
            return [{"rows": []}]
        raise_if_nearer(statement, region.extent, self.exact_radius)
        if not statement.rules.any and not statement.sizes[-1]:
            raise Unclosed
        return self._rules.by_hand(node.box, ())

    @cached_property
    def _rules(self) -> Prover:
        """Splits on rules what the ensemble does not tell apart."""
        leaves = Leaves(self.statement, NetworkFloats(self.statement), self.exact_radius)
        return Prover(self.statement, leaves, self.exact_radius, MOST_SPLITS, self.effort)
