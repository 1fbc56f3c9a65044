"""The tree of a search that probed ReLUs: what its multipliers show of each node, in the checker's own arithmetic.

A recorded probe says by which multipliers one side of a ReLU was bounded. How far that side reaches follows from them
in this proof's own ball and with the bounds that are shown here already; so nothing but multipliers is taken over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.certificate.check.box import Box
from ifonly.certificate.check.multipliers import MAX_STEPS, Multipliers, ShownBounds
from ifonly.certificate.check.region import Bounds, Region
from ifonly.certificate.check.statement import Statement
from ifonly.certifying.leaves import NetworkFloats, place, written_split
from ifonly.certifying.multipliers import Planes
from ifonly.solvers.search.record import Multipliers as Recorded
from ifonly.solvers.search.record import NodeRecord, Record

STEP_BITS, LEAF_BITS = 26, 44
"""Of the largest multiplier of a bound, and of a leaf."""
SHRINKS = 0.9998
"""A bound that falls to less than this share of itself is written down."""
ROOM = (1e-11, 1e-8, 1e-5)
"""Of the sizes of all terms: what is added to a bound, until it is shown."""
SAME = 1e-7
"""Of the largest multiplier: one that is so near to what it is without being written is not written."""

Floats = NDArray[np.float64]


class FloatBounds:
    """The network over one box in floating point: planes by multipliers, and their largest values."""

    def __init__(self, network: NetworkFloats, region: Region) -> None:
        self.network, self.region = network, region
        self.grid = float(1 << region.statement.grid)
        self.starts = region.statement.starts

    @cached_property
    def planes(self) -> Planes:
        """Not before it is needed: there are none of an empty region."""
        return Planes(self.region)

    def ends(self, bounds: Bounds) -> tuple[list[Floats], list[Floats]]:
        both = [np.array(row, dtype=float).reshape(-1, 2) / self.grid for row in bounds]
        return [one[:, 0] for one in both], [one[:, 1] for one in both]

    def most(
        self, bounds: Bounds, conditions: Floats, neurons: Floats, skipped: int = -1
    ) -> tuple[float, float, float]:
        """The largest value over box and ball; the coefficient of the value of neuron `skipped`, whose own part is left
        out; and the size of all terms.
        """
        lows, highs = self.ends(bounds)
        weight, bias = self.network.layers[-1]
        v, constant, size, g_skipped = conditions @ weight, float(conditions @ bias), 0.0, 0.0
        for layer in range(len(bounds) - 1, -1, -1):
            start, low, high, g = self.starts[layer], lows[layer], highs[layer], v
            w = neurons[start : start + len(g)]
            w = np.where(np.isnan(w), np.where(low >= 0.0, g, 0.0), w)
            part = np.maximum(g * np.maximum(low, 0.0) - w * low, g * np.maximum(high, 0.0) - w * high)
            part = np.where((low < 0.0) & (high > 0.0), np.maximum(part, 0.0), part)
            size += float((np.abs(g) + np.abs(w)) @ np.maximum(np.abs(low), np.abs(high)))
            if start <= skipped < start + len(g):
                g_skipped, part[skipped - start] = float(g[skipped - start]), 0.0
            weight, bias = (self.planes.weight, self.planes.first) if layer == 0 else self.network.layers[layer]
            constant += float(part.sum() + w @ bias)
            size += float(np.abs(w) @ np.abs(bias))
            v = w @ weight
        y = self.planes.answer(v)
        gain = float(v @ y)
        return constant + gain, g_skipped, size + abs(constant) + abs(gain)

    def coefficients(self, bounds: Bounds, conditions: Floats, neurons: Floats) -> Floats:
        """The coefficient of each ReLU's value."""
        low, _ = self.ends(bounds)
        v, found = conditions @ self.network.layers[-1][0], np.zeros(self.starts[len(bounds)])
        for layer in range(len(bounds) - 1, -1, -1):
            start = self.starts[layer]
            found[start : start + len(v)] = v
            w = neurons[start : start + len(v)]
            w = np.where(np.isnan(w), np.where(low[layer] >= 0.0, v, 0.0), w)
            v = w @ (self.planes.weight if layer == 0 else self.network.layers[layer][0])
        return found

    def chords(self, bounds: Bounds, layer: int, row: Floats) -> Floats:
        """Multipliers by backward substitution of `row`, coefficients of the values of a layer's ReLUs, and of all
        layers below."""
        lows, highs = self.ends(bounds)
        found, v = np.zeros(self.starts[len(bounds)]), row
        for k in range(layer, -1, -1):
            low, high = lows[k], highs[k]
            open_ = (low < 0.0) & (high > 0.0)
            slope = np.where(v > 0.0, high / np.where(open_, high - low, 1.0), np.where(high > -low, 1.0, 0.0))
            w = np.where(open_, slope * v, np.where(low >= 0.0, v, 0.0))
            found[self.starts[k] : self.starts[k] + len(w)] = w
            v = w @ (self.planes.weight if k == 0 else self.network.layers[k][0])
        return found


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: NodeRecord
    box: Box
    region: Region
    floats: FloatBounds
    fresh: bool
    """Its numbers and options are others than those of the node above."""
    inherited: tuple[Recorded, ...]


class ProbedTree:
    """Writes the tree of a search's last phase. `by_hand` closes boxes of which the records do not say how."""

    def __init__(
        self, statement: Statement, network: NetworkFloats, radius: int | None, known: Bounds, by_hand: Any, sides: Any
    ) -> None:
        self.statement, self.network, self.radius, self.known = statement, network, radius, known
        self.by_hand, self.sides = by_hand, sides

    def written(self, record: Record) -> Iterator[Any]:
        """The nodes in preorder."""
        nodes = [node for node in record.nodes if node.phase == record.phases]
        children: dict[int, list[NodeRecord]] = {}
        for node in nodes[1:]:
            children.setdefault(node.parent, []).append(node)
        if not nodes or nodes[0].parent >= 0:  # the records do not begin with the whole
            yield from self.by_hand(Box.whole(self.statement), ())
            return
        waiting = [self._work(nodes[0], Box.whole(self.statement), None, ())]
        while waiting:
            work = waiting.pop()
            shown = _ProbedNode(self, work)
            yield from shown.written()
            if shown.closed:
                continue
            below = children.get(work.record.name, [])
            if len(below) != 2:
                yield from self.by_hand(shown.box, ())
                continue
            split = written_split(self.statement, work.record.split, work.record.value)
            yield split
            boxes = self.sides(self.statement, shown.box, split)
            own = tuple(one for one in work.record.probes if one.neuron < 0)[-1:] or work.inherited
            waiting += [
                self._work(child, box, work if split[0] == "relu" else None, own)
                for child, box in zip(reversed(below), reversed(boxes), strict=True)
            ]

    def _work(self, record: NodeRecord, box: Box, above: _Waiting | None, inherited: tuple[Recorded, ...]) -> _Waiting:
        region = Region(self.statement, box, self.radius, hidden=False)
        if above is not None:
            return _Waiting(record, box, region, above.floats, False, inherited)
        return _Waiting(record, box, region, FloatBounds(self.network, region), True, inherited)


class _ProbedNode:
    """One node: bounds that its probes show, and whether that closes it."""

    def __init__(self, tree: ProbedTree, work: _Waiting) -> None:
        self.tree, self.work, self.box, self.floats = tree, work, work.box, work.floats
        self.statement = tree.statement
        self.steps = ShownBounds(tree.statement, work.region, tree.known)
        self.entries: list[Any] = []
        self.closed = False

    def written(self) -> Iterator[Any]:
        leaf = self._leaf()
        if self.entries:
            yield {"bounds": self.entries}
        if leaf is not None:
            self.closed = True
            yield leaf

    def _leaf(self) -> Any:
        """The leaf that closes the node; None where it stays open. Bounds are shown on the way."""
        if self.work.region.empty:
            return {"rows": []}
        self._bound_again()
        candidates = list(self.work.inherited)
        for probe in self.work.record.probes:
            if self.steps.empty:
                return {"rows": []}
            if self._is_about_all(probe):
                candidates.append(probe)
                if (leaf := self._closed_by(probe.conditions, probe.neurons)) is not None:
                    return leaf
            if probe.neuron >= 0:
                self._show(probe.neuron, probe.active, probe.conditions, probe.neurons, SHRINKS)
        if self.steps.empty:
            return {"rows": []}
        for probe in reversed(candidates):
            if (leaf := self._closed_by(probe.conditions, probe.neurons)) is not None:
                return leaf
        return self._closed_by_a_plane()

    def _is_about_all(self, probe: Recorded) -> bool:
        """Is it about the whole node? So is a probe of the one side that is left."""
        if probe.neuron < 0:
            return True
        layer, i = place(self.statement, probe.neuron)
        low, high = self.steps.bounds[layer][i]
        return low >= 0 if probe.active else high <= 0

    def _closed_by(self, conditions: Floats, neurons: Floats) -> Any:
        multipliers, conditions, neurons = self._rounded(conditions, neurons, LEAF_BITS, -1)
        most, _, _ = self.floats.most(self.steps.bounds, conditions, neurons)
        if most < 0.0 and self.steps.closes(multipliers):
            return {"multipliers": [*multipliers]}
        return None

    def _closed_by_a_plane(self) -> Any:
        """One condition by backward substitution."""
        outputs = self.statement.sizes[-1]
        last = self.statement.layers - 2
        for k in range(outputs):
            conditions = np.eye(outputs)[k]
            neurons = self.floats.chords(self.steps.bounds, last, self.tree.network.layers[-1][0][k])
            if (leaf := self._closed_by(conditions, neurons)) is not None:
                return leaf
        return None

    # ------------------------------------------------------------------ bounds

    def _bound_again(self) -> None:
        """Backward substitution for what is unstable: what it is made of may have other bounds now."""
        outputs = np.zeros(self.statement.sizes[-1])
        for layer, row in enumerate(self.steps.bounds):
            if layer == 0 and not self.work.fresh:
                continue
            for i in range(len(row)):
                if not row[i][0] < 0 < row[i][1]:
                    continue
                h = self.statement.starts[layer] + i
                for sign in (1, -1):
                    weight = sign * self.tree.network.layers[layer][0][i]
                    neurons = self.floats.chords(self.steps.bounds, layer - 1, weight)
                    neurons[h] = sign
                    self._show(h, sign == 1, outputs, neurons, SHRINKS)

    def _show(self, h: int, above: bool, conditions: Floats, neurons: Floats, shrinks: float) -> None:
        """Bound neuron h from above, or from below, by multipliers; written down where that is worth it."""
        layer, i = place(self.statement, h)
        low, high = self.steps.bounds[layer][i]
        sign, one = 1 if above else -1, 1 << self.statement.grid
        before = high if above else -low
        if before <= 0 or len(self.entries) >= MAX_STEPS:
            return
        multipliers, conditions, neurons = self._rounded(conditions, neurons, STEP_BITS, h)
        most, g, size = self.floats.most(self.steps.bounds, conditions, neurons, h)
        own = g - neurons[h] if above else neurons[h]
        for room in ROOM:
            far = _reach(most + room * size, own, before / one)
            if far >= shrinks * before / one:
                return
            bound = sign * round(far * one)
            if self.steps.shows(layer, i, sign, bound, multipliers):
                text = (bound / one).hex()
                if round(float.fromhex(text) * one) != bound:
                    return
                self.steps.add(layer, i, sign, bound)
                self.box = self.box.bounded(layer, i, sign, bound)
                self.entries.append([layer, i, sign, text, [*multipliers]])
                return

    def _rounded(
        self, conditions: Floats, neurons: Floats, bits: int, probed: int
    ) -> tuple[Multipliers, Floats, Floats]:
        """The multipliers as whole numbers, and what they stand for. What follows from the others is left out."""
        largest = max(float(np.abs(conditions).max(initial=0.0)), float(np.abs(neurons).max(initial=0.0)))
        if not 0.0 < largest < np.inf:
            return ([0] * len(conditions), [0] * len(neurons)), np.zeros(len(conditions)), np.zeros(len(neurons))
        unit = 2.0 ** (bits - np.frexp(largest)[1])
        first, second = np.maximum(np.round(conditions * unit), 0.0), np.round(neurons * unit)
        low = np.concatenate(self.floats.ends(self.steps.bounds)[0])
        default = np.where(low >= 0.0, self.floats.coefficients(self.steps.bounds, first, second), 0.0)
        left_out = np.abs(second - default) <= np.where(low >= 0.0, SAME * 2.0**bits, 0.0)
        if probed >= 0:
            left_out[probed] = False
        whole: list[int | None] = [None if out else int(m) for m, out in zip(second, left_out, strict=True)]
        return ([int(m) for m in first], whole), first, np.where(left_out, np.nan, second)


def _reach(most: float, own: float, before: float) -> float:
    """How far |z| can be on a side where `most` + own |z| >= 0."""
    if own >= 0.0:
        return 0.0 if most + own * before < 0.0 else before
    return max(most / -own, 0.0)
