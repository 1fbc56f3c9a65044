"""Test points at every split and every leaf of trees: a wrong comparison, cast, set or direction changes their scores.

For each different split of the library, rows are generated that reach it (they obey the splits above it), with its
feature

    a number    at the largest value that goes left, and at the next one
    a choice    at each option that may come there

Then come rows for the leaves that none of these has reached, so that both sides of every split are compared. A split
that sends all rows of the schema to one side is compared, too: that may be the misreading. Nodes that no row of the
schema reaches are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model.trees.ensemble import Bools, Ensemble, Floats
from ifonly.schema import Choice, Integer, Numeric, Schema

MOST_LEAVES = 1 << 27
"""Rows times trees that are spent on options; each split gets an option per side, however many there are."""
AT_ONCE = 1 << 24
"""Entries of the tables of options that are held at once."""
LEAST_ROUND = 1000
ENOUGH_SPLITS = 3_000
"""Up to so many, equal splits of different nodes are all compared."""
TRIES = 50
"""Random points that are tried for one whose score depends on the split."""


def edge_points(form: Ensemble, schema: Schema, *, library: Ensemble | None = None, seed: int = 0) -> Floats:
    """Points at the splits of an ensemble over features, to both sides of each, and at every leaf.

    `library` is the ensemble, node by node, before it was bound to the features: it defines which splits are different.
    """
    rng = np.random.default_rng(seed)
    nodes = _different(form if library is None else library, rng)
    numbers, choices = nodes[form.nodes.chosen[nodes] < 0], nodes[form.nodes.chosen[nodes] >= 0]
    spare = max(0, MOST_LEAVES // len(form.roots) - 2 * len(nodes))
    step = max(1, AT_ONCE // (len(schema) * (1 + form.sets.shape[1])))
    parts = [
        *(_at_numbers(form, schema, part, rng) for part in _blocks(numbers, step)),
        *(_at_choices(form, schema, part, rng, spare * len(part) // len(choices)) for part in _blocks(choices, step)),
    ]
    points = np.concatenate([np.zeros((0, len(schema))), *parts])
    return np.concatenate([points, *_at_leaves(form, schema, points, step, rng)])


def _different(library: Ensemble, rng: np.random.Generator) -> NDArray[np.intp]:
    """One node, any, for each different split; and others, where there are few."""
    nodes = library.nodes
    inner = rng.permutation(np.flatnonzero(nodes.column >= 0))
    values, which = np.unique(nodes.threshold[inner], return_inverse=True)
    which = np.where(nodes.chosen[inner] < 0, which, len(values) + nodes.chosen[inner])
    width = len(values) + len(library.sets)
    key = (nodes.column[inner].astype(np.int64) * width + which) * 2 + nodes.missing_left[inner]
    first = np.unique(key, return_index=True)[1]
    return np.concatenate([inner[first], np.delete(inner, first)[: max(0, ENOUGH_SPLITS - len(first))]])


def _at_leaves(form: Ensemble, schema: Schema, points: Floats, step: int, rng: np.random.Generator) -> list[Floats]:
    """Points at the leaves that these points do not reach, some at a time: each reaches one of every tree."""
    nodes, seen, parts = form.nodes, np.zeros(len(form.values), dtype=np.bool_), []
    seen[form.leaves(points)] = True
    waiting = rng.permutation(np.flatnonzero(nodes.leaf >= 0))
    while len(waiting := waiting[~seen[nodes.leaf[waiting]]]):
        some = waiting[: min(step, max(LEAST_ROUND, len(waiting) // 4))]
        boxes = _boxes(form, schema, some)
        parts.append(boxes.points(schema, np.flatnonzero(boxes.reached), rng))
        seen[form.leaves(parts[-1])] = True
        seen[nodes.leaf[some]] = True
    return parts


def _blocks(nodes: NDArray[np.intp], step: int) -> list[NDArray[np.intp]]:
    return [nodes[first : first + step] for first in range(0, len(nodes), step)]


@dataclass(frozen=True, eq=False)
class _Boxes:
    """What the splits above each node leave of each feature: numbers from least to most, and the allowed options."""

    least: Floats
    most: Floats
    allowed: Bools
    reached: Bools
    """Whether any row of the schema reaches the node."""

    def points(self, schema: Schema, rows: NDArray[np.intp], rng: np.random.Generator) -> Floats:
        """A random point in the box of each of these nodes, half of its numbers at ends of the box, where cuts are."""
        points = np.clip(rng.uniform(-0.5, 1.5, (len(rows), len(schema))), 0.0, 1.0)
        for i, feature in enumerate(schema.features):
            if isinstance(feature, Choice):
                usable = self.allowed[rows, i, : len(feature.options)]
                points[:, i] = np.where(usable, rng.random(usable.shape), -1.0).argmax(axis=1)
                continue
            least, most = self.least[rows, i], self.most[rows, i]
            if isinstance(feature, Integer):
                points[:, i] = least + feature.step * np.round(points[:, i] * (most - least) / feature.step)
            else:
                points[:, i] = np.where(points[:, i] == 1.0, most, least + points[:, i] * (most - least))
            points[:, i] = np.clip(points[:, i], least, most)
        return points

    def distinguishing(self, form: Ensemble, schema: Schema, at: _At, rng: np.random.Generator) -> Floats:
        """The same with a given value of each node's feature, where the two sides of the node give different scores,
        if some of a few random points do."""
        points = self.points(schema, at.rows, rng)
        points[np.arange(len(points)), at.columns] = at.values
        again = np.arange(len(points))
        for _ in range(TRIES):
            again = again[~_distinguishes(form, at.nodes[again], points[again])]
            points[again] = self.points(schema, at.rows[again], rng)
            points[again, at.columns[again]] = at.values[again]
        return points


@dataclass(frozen=True, eq=False)
class _At:
    """Requested points: at these nodes, with these values of their features."""

    nodes: NDArray[np.intp]
    rows: NDArray[np.intp]
    columns: NDArray[Any]
    values: Floats


def _distinguishes(form: Ensemble, nodes: NDArray[np.intp], points: Floats) -> Bools:
    """Whether the two sides of a node give a point different scores."""
    ends = []
    for here in (form.nodes.left[nodes].copy(), form.nodes.right[nodes].copy()):
        while len(going := np.flatnonzero(form.nodes.column[here] >= 0)):
            node = here[going]
            left = form.goes_left(node, points[going, form.nodes.column[node]])
            here[going] = np.where(left, form.nodes.left[node], form.nodes.right[node])
        ends.append(form.values[form.nodes.leaf[here]])
    return (ends[0] != ends[1]).any(axis=1)


def _boxes(form: Ensemble, schema: Schema, nodes: NDArray[np.intp]) -> _Boxes:
    split = form.nodes
    parent = np.full(len(split), -1)
    inner = np.flatnonzero(split.column >= 0)
    parent[split.left[inner]] = parent[split.right[inner]] = inner
    count = (len(nodes), len(schema))
    least, most = np.full(count, -np.inf), np.full(count, np.inf)
    allowed = np.ones((*count, form.sets.shape[1]), dtype=np.bool_)
    here, rows = nodes, np.arange(len(nodes))
    while len(rows := rows[parent[here] >= 0]):
        here = here[parent[here] >= 0]
        above = parent[here]
        column, cut, chosen = split.column[above], split.threshold[above], split.chosen[above]
        left, number = split.left[above] == here, chosen < 0
        most[rows, column] = np.minimum(most[rows, column], np.where(number & left, cut, np.inf))
        least[rows, column] = np.maximum(least[rows, column], np.where(number & ~left, cut, -np.inf))
        if not number.all():
            which = ~number
            allowed[rows[which], column[which]] &= form.sets[chosen[which]] == left[which, None]
        here = above
    reached = np.ones(len(nodes), dtype=np.bool_)
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Choice):
            reached &= allowed[:, i, : len(feature.options)].any(axis=1)
        else:
            least[:, i] = np.maximum(_next(feature, least[:, i]), feature.lower)
            most[:, i] = np.minimum(most[:, i], feature.upper)
            reached &= least[:, i] <= most[:, i]
    return _Boxes(least, most, allowed, reached)


def _at_numbers(form: Ensemble, schema: Schema, nodes: NDArray[np.intp], rng: np.random.Generator) -> Floats:
    """For each of these splits of numbers, a point at its cut and one just above."""
    boxes = _boxes(form, schema, nodes)
    rows = np.flatnonzero(boxes.reached)
    columns, cuts = form.nodes.column[nodes[rows]], form.nodes.threshold[nodes[rows]]
    below, above = boxes.least[rows, columns], boxes.most[rows, columns]
    for i, feature in enumerate(schema.features):
        mine = np.flatnonzero((columns == i) & np.isfinite(cuts))
        if not isinstance(feature, Choice) and len(mine):
            least, most = below[mine], above[mine]
            below[mine] = np.clip(cuts[mine], least, most)
            above[mine] = np.clip(_next(feature, cuts[mine]), least, most)
    points = boxes.distinguishing(form, schema, _At(nodes[rows], rows, columns, below), rng)
    beyond = points.copy()
    beyond[np.arange(len(rows)), columns] = above
    return np.concatenate([points, beyond])


def _at_choices(form: Ensemble, schema: Schema, nodes: NDArray[np.intp], rng: np.random.Generator, most: int) -> Floats:
    """For each of these splits of options, a point at each option; at one per side, and `most` more in all."""
    boxes = _boxes(form, schema, nodes)
    columns = form.nodes.column[nodes]
    usable = boxes.allowed[np.arange(len(nodes)), columns] & boxes.reached[:, None]
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Choice):
            usable[columns == i, len(feature.options) :] = False
    left = form.sets[form.nodes.chosen[nodes]]
    kept = np.zeros_like(usable)
    for side in (usable & left, usable & ~left):
        some = np.flatnonzero(side.any(axis=1))
        kept[some, np.where(side, rng.random(side.shape), -1.0)[some].argmax(axis=1)] = True
    rest = np.argwhere(usable & ~kept)
    rest = rest if len(rest) <= most else rng.permutation(rest)[:most]
    rows, options = np.concatenate([np.argwhere(kept), rest]).T
    return boxes.distinguishing(form, schema, _At(nodes[rows], rows, columns[rows], options.astype(np.float64)), rng)


def _next(feature: Numeric, numbers: Floats) -> Floats:
    """The next number of the feature."""
    return numbers + feature.step if isinstance(feature, Integer) else np.nextafter(numbers, np.inf)
