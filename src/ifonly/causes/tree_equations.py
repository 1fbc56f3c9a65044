"""Trees as equations: constant on cells of their causes, so a ReLU unit per leaf of a one-hot code of these cells.

The cuts of a number, c_1 < c_2 < ..., part it into the cells x <= c_1, c_1 < x <= c_2, ... Which cell a number is in is
an unknown with a column per cell, tied to the number by two linear rules (`problem.actions`). A leaf is a set of cells
(or options) per cause that its tree looks at; where all columns are 0 or 1 and one per cause is 1,

    leaf that looks at one cause     the sum of its columns
    leaf that looks at k causes      relu(the sum of its columns - (k - 1))

Leaves of several trees over the same cells are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model import Network
from ifonly.model.trees import Trees
from ifonly.schema import Choice, Feature, Integer, Real

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_CUTS = 255
"""Of one cause: as many as libraries that bin their data make."""
MOST_REGIONS = 2000
"""Leaves over several causes, each a ReLU unit."""


@dataclass(frozen=True, eq=False)
class TreeNetwork:
    """The network of trees over the columns of cells and options, the cuts of each cause (None: it has options), and
    bounds of its value."""

    network: Network
    cuts: tuple[Floats | None, ...]
    ends: tuple[float, float]


def tree_network(trees: Trees, follower: Feature) -> TreeNetwork:
    """The network of trees over the features of their schema."""
    features = trees.schema.features
    cuts = [None if isinstance(f, Choice) else _within(f, trees.cuts[k]) for k, f in enumerate(features)]
    for feature, own in zip(features, cuts, strict=True):
        if own is not None and len(own) > MOST_CUTS:
            raise _too_large(follower, f"part '{feature.name}' at {len(own)} numbers; at most {MOST_CUTS} can")
    widths = [len(f.options) if isinstance(f, Choice) else len(_cut(own)) + 1
              for f, own in zip(features, cuts, strict=True)]  # fmt: skip
    start = np.concatenate(([0], np.cumsum(widths)))
    bias, low, high = 0.0, 0.0, 0.0
    regions: dict[bytes, float] = {}
    looked: dict[bytes, tuple[Mask, int]] = {}
    for leaves in _trees(trees, cuts, start):
        values = [value for _, value in leaves]
        low, high, middle = low + min(values), high + max(values), (min(values) + max(values)) / 2
        bias += middle
        for cells, value in leaves:
            key = np.packbits(cells).tobytes()
            regions[key] = regions.get(key, 0.0) + value - middle
            whole = [cells[a:b].all() for a, b in pairwise(start)]
            looked[key] = cells, len(whole) - int(np.sum(whole))
    summation = trees.ensemble.summation
    scale = summation.scale / summation.divisor
    shift = float(summation.start[0]) * scale + float(summation.shift[0])
    parts = [(*looked[key], scale * value) for key, value in regions.items()]
    ends = sorted((low * scale + shift, high * scale + shift))
    network = _network(follower, start, parts, scale * bias + shift)
    return TreeNetwork(network, tuple(cuts), (ends[0], ends[1]))


def _network(follower: Feature, start: Any, parts: Sequence[tuple[Mask, int, float]], bias: float) -> Network:
    """Leaves (columns, how many causes they look at, value) as a network."""
    width = int(start[-1])
    linear, units = np.zeros(width), [(cells, causes, value) for cells, causes, value in parts if causes > 1]
    for cells, causes, value in parts:
        if causes == 1:
            linear += value * _partial(cells, start)
        elif causes == 0:
            bias += value
    if len(units) > MOST_REGIONS:
        raise _too_large(follower, f"have {len(units)} leaves over several causes; at most {MOST_REGIONS} can")
    if not units:
        return Network.of([(linear[None, :], [bias])])
    first = np.vstack([np.eye(width), *(_partial(cells, start)[None, :] for cells, _, _ in units)])
    below = np.concatenate([np.zeros(width), [1.0 - causes for _, causes, _ in units]])
    last = np.concatenate([linear, [value for _, _, value in units]])
    return Network.of([(first, below), (last[None, :], [bias])])


def _partial(cells: Mask, start: Any) -> Floats:
    """The columns of a leaf, without those of causes that it does not look at."""
    columns = cells.astype(np.float64)
    for a, b in pairwise(start):
        if cells[a:b].all():
            columns[a:b] = 0.0
    return columns


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
