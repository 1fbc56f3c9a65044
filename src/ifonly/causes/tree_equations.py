"""Trees as equations: constant on regions of their causes, of which a choice says which one a row is in.

The cuts of a number, c_1 < c_2 < ..., part it into the cells x <= c_1, c_1 < x <= c_2, ... A leaf is a set of cells (or
options) per cause, so the leaves of a tree are a partition of the causes' values into regions, and so are the regions
that the leaves of several trees leave of one another. With an unknown choice per partition, its region,

    value of the trees = intercept + the sum over partitions of values . region

is linear, and the ties between a region and the causes are linear rules (`problem.actions`). Trees that look at one and
the same cause are one partition; others are joined while that has few regions, since one choice says more than two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import UnsupportedModel
from ifonly.model import Network
from ifonly.model.trees import Trees
from ifonly.schema import Choice, Feature, Integer, Real

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_CUTS = 255
"""Of one cause: as many as libraries that bin their data make."""
MOST_LEAVES = 2000
"""Over several causes, of one equation."""
KEPT_REGIONS = 64
"""Of single points, of each equation."""
MOST_JOINED = 64
"""Regions of trees over several causes that are joined."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Regions, by the columns of the cells and options that each allows, and the value on each."""

    columns: Mask
    """(region, column)"""
    values: Floats

    def joined(self, other: Partition, start: Any) -> Partition:
        """What the regions of two partitions leave of one another, with the sum of their values."""
        columns = (self.columns[:, None, :] & other.columns[None, :, :]).reshape(-1, self.columns.shape[1])
        values = (self.values[:, None] + other.values[None, :]).ravel()
        some = np.logical_and.reduce([columns[:, a:b].any(axis=1) for a, b in pairwise(start)])
        return Partition(columns[some], values[some])

    def looked(self, start: Any) -> list[int]:
        """The causes on which the region depends."""
        return [k for k, (a, b) in enumerate(pairwise(start)) if not self.columns[:, a:b].all()]


@dataclass(frozen=True, eq=False)
class TreeRegions:
    """Partitions whose values add up to that of trees."""

    partitions: tuple[Partition, ...]
    intercept: float
    cuts: tuple[Floats | None, ...]
    """Of each cause: where they part its numbers into cells; None for options."""
    start: NDArray[np.intp]
    """The first column of each cause, and the number of columns."""

    def block(self, k: int) -> slice:
        """The columns of cause k."""
        return slice(int(self.start[k]), int(self.start[k + 1]))

    def regions(self, own: Floats) -> NDArray[np.intp]:
        """(row, partition): the region that each point of the causes is in."""
        if len(own) > 1:
            return self._regions(own)
        known, key = self._known, own.tobytes()
        if key not in known:
            if len(known) >= KEPT_REGIONS:
                known.clear()
            known[key] = self._regions(own)
        return known[key]

    @cached_property
    def _known(self) -> dict[bytes, NDArray[np.intp]]:
        """The regions of single points: each partition is asked for its own."""
        return {}

    def _regions(self, own: Floats) -> NDArray[np.intp]:
        places = [values.astype(np.intp) if cuts is None else cell_of(cuts, values)
                  for cuts, values in zip(self.cuts, own.T, strict=True)]  # fmt: skip
        columns = np.stack(places, axis=1) + self.start[:-1]
        found = [one.columns[:, columns].all(axis=2).argmax(axis=0) for one in self.partitions]
        return np.stack(found, axis=1) if found else np.zeros((len(own), 0), dtype=np.intp)

    def interval(self, options: Sequence[int], lower: Floats, upper: Floats) -> tuple[float, float]:
        """Bounds of the value where the causes, of which each has so many options (0: a number), are between these; by
        a column per number or option."""
        able, at = [], 0
        for count, cuts, (first, last) in zip(options, self.cuts, pairwise(self.start), strict=True):
            if cuts is None:
                able.append(upper[at : at + count] > 0.0)
            else:
                cell = np.arange(last - first)
                able.append((cell >= cell_of(cuts, lower[at])) & (cell <= cell_of(cuts, upper[at])))
            at += max(count, 1)
        low = high = self.intercept
        for one in self.partitions:
            columns = [one.columns[:, a:b] & some for some, (a, b) in zip(able, pairwise(self.start), strict=True)]
            values = one.values[np.logical_and.reduce([some.any(axis=1) for some in columns])]
            low, high = low + float(values.min()), high + float(values.max())
        return low, high

    def secants(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        """Of trees of one number, for each interval of it: a slope, and bounds of value - slope * number."""
        cuts, values = self.cuts[0], self._by_cell
        assert cuts is not None
        first, last = values[cell_of(cuts, lower)], values[cell_of(cuts, upper)]
        wide = upper > lower
        slope = np.where(wide, (last - first) / np.where(wide, upper - lower, 1.0), 0.0)
        left = np.maximum(lower[:, None], np.concatenate([[-np.inf], cuts]))
        right = np.minimum(upper[:, None], np.concatenate([cuts, [np.inf]]))
        inside, moved = left <= right, slope[:, None]
        ends = np.stack([values - moved * left, values - moved * right])
        low, high = np.where(inside, ends.min(axis=0), np.inf), np.where(inside, ends.max(axis=0), -np.inf)
        return slope, low.min(axis=1), high.max(axis=1)

    @cached_property
    def _by_cell(self) -> Floats:
        """Of trees of one number: the value in each of its cells."""
        cells = len(_cut(self.cuts[0])) + 1
        return np.full(cells, self.intercept) + sum(one.values @ one.columns[:, :cells] for one in self.partitions)

    @property
    def network(self) -> Network:
        """The value as a linear function of a column per region."""
        return Network.of([(np.concatenate([one.values for one in self.partitions])[None, :], [self.intercept])])


def tree_regions(trees: Trees, follower: Feature) -> TreeRegions:
    """The regions of trees over the features of their schema."""
    features = trees.schema.features
    cuts = [None if isinstance(f, Choice) else _within(f, trees.cuts[k]) for k, f in enumerate(features)]
    for feature, own in zip(features, cuts, strict=True):
        if own is not None and len(own) > MOST_CUTS:
            raise _too_large(follower, f"part '{feature.name}' at {len(own)} numbers; at most {MOST_CUTS} can")
    widths = [len(f.options) if isinstance(f, Choice) else len(_cut(own)) + 1
              for f, own in zip(features, cuts, strict=True)]  # fmt: skip
    start = np.concatenate(([0], np.cumsum(widths)))
    each = [Partition(np.array([cells for cells, _ in leaves]), np.array([value for _, value in leaves]))
            for leaves in _trees(trees, cuts, start)]  # fmt: skip
    leaves = sum(len(one.values) for one in each if len(one.looked(start)) > 1)
    if leaves > MOST_LEAVES:
        raise _too_large(follower, f"have {leaves} leaves over several causes; at most {MOST_LEAVES} can")
    partitions = _joined(each, start)
    summation = trees.ensemble.summation
    scale = summation.scale / summation.divisor
    shift = float(summation.start[0]) * scale + float(summation.shift[0])
    scaled = [Partition(one.columns, scale * one.values) for one in partitions]
    return TreeRegions(tuple(scaled), shift, tuple(cuts), start)


def _joined(each: Iterable[Partition], start: Any) -> list[Partition]:
    """The partitions of trees, those of one cause joined, others while they have few regions."""
    by_cause: dict[int, Partition] = {}
    several: list[Partition] = []
    for one in each:
        looked = one.looked(start)
        if len(looked) > 1:
            several.append(one)
        else:
            cause = looked[0] if looked else 0
            by_cause[cause] = by_cause[cause].joined(one, start) if cause in by_cause else one
    found: list[Partition] = []
    for one in several:
        both = found[-1].joined(one, start) if found else one
        if found and len(both.values) <= MOST_JOINED:
            found[-1] = both
        else:
            found.append(one)
    return [*by_cause.values(), *found]


def _too_large(follower: Feature, what: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"The trees of the equation of '{follower.name}' {what} be searched exactly: fit fewer or smaller trees, or on "
        f"binned causes (such as max_bins=32).",
        operation="trees",
    )


def _cut(cuts: Floats | None) -> Floats:
    return np.zeros(0) if cuts is None else cuts


def _within(feature: Feature, cuts: Floats) -> Floats:
    """The cuts that part the range of a number; of steps, one for each two neighbours."""
    assert isinstance(feature, Real | Integer)
    inside = cuts[(cuts >= feature.lower) & (cuts < feature.upper)]
    if not len(inside):
        return inside
    _, first = np.unique(ends_beside(feature, inside)[0], return_index=True)
    return inside[first]


def _trees(trees: Trees, cuts: Sequence[Floats | None], start: Any) -> Iterator[list[tuple[Mask, float]]]:
    """Tree by tree, its leaves that can be reached: the columns they allow, and their value."""
    ensemble, nodes = trees.ensemble, trees.ensemble.nodes
    for root in ensemble.roots.tolist():
        leaves: list[tuple[Mask, float]] = []
        waiting = [(root, np.ones(int(start[-1]), dtype=np.bool_))]
        while waiting:
            node, cells = waiting.pop()
            column = int(nodes.column[node])
            if column < 0:
                leaves.append((cells, float(ensemble.values[nodes.leaf[node], 0])))
                continue
            here = slice(int(start[column]), int(start[column + 1]))
            left = _left(trees, node, cuts[column], here.stop - here.start)
            for child, side in ((int(nodes.left[node]), left), (int(nodes.right[node]), ~left)):
                if (cells[here] & side).any():
                    inside = cells.copy()
                    inside[here] &= side
                    waiting.append((child, inside))
        yield leaves


def _left(trees: Trees, node: int, cuts: Floats | None, width: int) -> Mask:
    """The cells, or options, of its column that go left at a node."""
    nodes = trees.ensemble.nodes
    if cuts is None:
        return np.asarray(trees.ensemble.sets[nodes.chosen[node], :width])
    feature = trees.schema.features[int(nodes.column[node])]
    threshold = float(nodes.threshold[node])
    assert isinstance(feature, Real | Integer)
    return np.array([_last_value(feature, cuts, k) <= threshold for k in range(width)])


def _last_value(feature: Real | Integer, cuts: Floats, cell: int) -> float:
    """Of a cell; every cut of the trees has it on the side of all its values."""
    if cell == len(cuts):
        return feature.upper
    return float(cuts[cell]) if step_of(feature) is None else float(ends_beside(feature, cuts[cell : cell + 1])[0][0])


# ---------------------------------------------------------------------- numbers in steps


def step_of(feature: Feature) -> float | None:
    """The step from one value in a point to the next; None for real numbers without one."""
    if isinstance(feature, Real):
        return None if feature.grid is None else float(feature.grid.step)
    return float(feature.step) if isinstance(feature, Integer) else 1.0


def ends_beside(feature: Real | Integer, cuts: Floats) -> tuple[Floats, Floats]:
    """The last value up to each cut, and the first above it; of numbers without steps, the cut twice."""
    step = step_of(feature)
    if step is None:
        return cuts, cuts
    near = np.floor((cuts - feature.lower) / step)[:, None] + np.arange(-2.0, 4.0)
    grid = feature.grid if isinstance(feature, Real) else None
    values = feature.lower + near * step if grid is None else grid.values(near)
    last = (values <= cuts[:, None]).sum(axis=1) - 1
    rows = np.arange(len(cuts))
    return np.asarray(values[rows, last]), np.asarray(values[rows, last + 1])


def cell_of(cuts: Floats, values: Floats) -> NDArray[np.intp]:
    """The cell of each number."""
    return np.searchsorted(cuts, values, side="left")
