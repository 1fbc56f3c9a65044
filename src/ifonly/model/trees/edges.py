"""Rows that sit on the splits of trees: where a wrong comparison, cast or direction would show.

For a split, rows are made that reach it (they obey the splits above it), with its feature at the cut, one step above
and one below; or with an option of its set, and one outside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ifonly.model.trees.ensemble import Bools, Floats
from ifonly.model.trees.kind import Trees
from ifonly.schema import Choice, Integer, Numeric

MOST_SPLITS, ENOUGH_SPLITS = 10_000, 3_000
"""Splits that are looked at: each cut and each set of options once, up to the first number; others up to the second."""


def edge_points(trees: Trees, *, seed: int) -> Floats:
    """Points at the splits of trees, and to both sides of each."""
    rng = np.random.default_rng(seed)
    nodes = _chosen_nodes(trees, rng)
    if not len(nodes):
        return np.zeros((0, len(trees.schema)))
    points, (least, most, allowed) = trees.schema.sample(len(nodes), rng), _boxes(trees, nodes)
    for i, feature in enumerate(trees.schema.features):
        if isinstance(feature, Choice):
            usable = allowed[:, i, : len(feature.options)]
            wrong = ~usable[np.arange(len(points)), points[:, i].astype(np.intp)]
            points[wrong, i] = usable[wrong].argmax(axis=1)
        else:
            inside = (points[:, i] > least[:, i]) & (points[:, i] <= most[:, i])
            nearest = np.where(np.isfinite(most[:, i]), most[:, i], _step(feature, least[:, i], up=True))
            points[:, i] = np.where(inside, points[:, i], np.clip(nearest, feature.lower, feature.upper))
    return _at_splits(trees, nodes, points)


def _chosen_nodes(trees: Trees, rng: np.random.Generator) -> NDArray[np.intp]:
    """Inner nodes: first one of every different split, then any others."""
    nodes = trees.ensemble.nodes
    inner = rng.permutation(np.flatnonzero(nodes.column >= 0))
    values, which = np.unique(nodes.threshold[inner], return_inverse=True)
    which = np.where(nodes.chosen[inner] < 0, which, len(values) + nodes.chosen[inner])
    width = len(values) + len(trees.ensemble.sets)
    _, first = np.unique(nodes.column[inner].astype(np.int64) * width + which, return_index=True)
    others = np.delete(inner, first)
    return np.concatenate([inner[rng.permutation(first)][:MOST_SPLITS], others[: max(0, ENOUGH_SPLITS - len(first))]])


def _boxes(trees: Trees, nodes: NDArray[np.intp]) -> tuple[Floats, Floats, Bools]:
    """What the splits above a node leave of each feature: least < x <= most, and the allowed options."""
    form, split = trees.ensemble, trees.ensemble.nodes
    parent = np.full(len(split), -1)
    inner = np.flatnonzero(split.column >= 0)
    parent[split.left[inner]] = parent[split.right[inner]] = inner
    count = (len(nodes), len(trees.schema))
    least, most = np.full(count, -np.inf), np.full(count, np.inf)
    allowed = np.ones((*count, form.sets.shape[1]), dtype=np.bool_)
    here, rows = nodes, np.arange(len(nodes))
    while len(rows := rows[parent[here] >= 0]):
        here = here[parent[here] >= 0]
        above = parent[here]
        column, cut, left, chosen = (
            split.column[above],
            split.threshold[above],
            split.left[above] == here,
            split.chosen[above],
        )
        low, high = np.where(left, -np.inf, cut), np.where(left, cut, np.inf)
        number = chosen < 0
        least[rows, column] = np.maximum(least[rows, column], np.where(number, low, -np.inf))
        most[rows, column] = np.minimum(most[rows, column], np.where(number, high, np.inf))
        if not number.all():
            which = ~number
            sets = form.sets[chosen[which]] == left[which, None]
            allowed[rows[which], column[which]] &= sets
        here = above
    return least, most, allowed


def _at_splits(trees: Trees, nodes: NDArray[np.intp], points: Floats) -> Floats:
    """Each point on its split, above and below it."""
    form, result = trees.ensemble, []
    for i, feature in enumerate(trees.schema.features):
        mine = form.nodes.column[nodes] == i
        own, cut, chosen = points[mine], form.nodes.threshold[nodes[mine]], form.nodes.chosen[nodes[mine]]
        if isinstance(feature, Choice):
            table = form.sets[chosen][:, : len(feature.options)]
            values = [table.argmax(axis=1).astype(np.float64), (~table).argmax(axis=1).astype(np.float64)]
        else:
            values = [cut, _step(feature, cut, up=True), _step(feature, cut, up=False)]
            values = [np.clip(value, feature.lower, feature.upper) for value in values]
        for value in values:
            moved = own.copy()
            moved[:, i] = value
            result.append(moved)
    return np.concatenate(result)


def _step(feature: Numeric, numbers: Floats, *, up: bool) -> Floats:
    """The next number of the feature above or below."""
    if isinstance(feature, Integer):
        return numbers + (feature.step if up else -feature.step)
    return np.nextafter(numbers, np.inf if up else -np.inf)
