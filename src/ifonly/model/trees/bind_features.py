"""Binding of tree ensembles to features: splits of a library's columns as splits of the features of a schema.

Each column that the trees read is a function of one feature: a number as it is or scaled, or something of a choice
(its code, a one-hot column, an encoder's value). So a split of a column is a split of a feature:

    numbers   x <= cut goes left, in float64, where cut is the largest number of the feature whose column goes left;
              found by bisection on the floats (or on the integer feature's grid) through the column's own arithmetic,
              which is monotone
    choices   the set of options that go left

Splits that send all rows that reach them to one side are removed. The result reads points (one float64 per feature,
options by their numbers), compares by <= in float64, and has the scores of the original on every row of the schema, bit
for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.trees.ensemble import Bools, Ensemble, Floats, Ints, Nodes
from ifonly.schema import Choice, Integer, Numeric, Schema

AT_ONCE = 1 << 23
"""Numbers that are held at once while rows are followed down the trees."""
ROUNDS = 66
"""Halvings that part any two of the 2^64 floats."""


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """The columns that an ensemble reads: the feature that each depends on, and their values for points."""

    owners: Sequence[int]
    columns: Callable[[Floats], Floats]


def bound(ensemble: Ensemble, feature_columns: FeatureColumns, schema: Schema) -> Ensemble:
    """The same function of the schema's points, without splits where all rows go one way."""
    return reachable(bound_splits(ensemble, feature_columns, schema), schema)


def reachable(ensemble: Ensemble, schema: Schema) -> Ensemble:
    """The same function, without the splits where all rows of the schema that reach them go one way."""
    return _pruned(ensemble, _one_way(ensemble, schema))


def bound_splits(ensemble: Ensemble, feature_columns: FeatureColumns, schema: Schema) -> Ensemble:
    """The same function of the schema's points, with every split of the library."""
    if len(feature_columns.owners) != ensemble.columns:
        raise ModelError(f"The trees read {ensemble.columns} columns, but there are {len(feature_columns.owners)}.")
    binding = _Binding(ensemble, feature_columns, schema)
    binding.bind_choices()
    turns: dict[int, list[int]] = {}
    for j in np.unique(ensemble.nodes.column[ensemble.nodes.column >= 0]).tolist():
        if isinstance(schema.features[feature_columns.owners[j]], Numeric):
            turns.setdefault(feature_columns.owners[j], []).append(j)
    while any(turns.values()):  # columns of one feature take turns; different features go together
        binding.bind_numbers([columns.pop() for columns in turns.values() if columns])
    return binding.ensemble()


class _Binding:
    """The nodes of the new ensemble, while its columns are bound."""

    def __init__(self, ensemble: Ensemble, feature_columns: FeatureColumns, schema: Schema) -> None:
        self.old, self.feature_columns, self.schema, nodes = ensemble, feature_columns, schema, ensemble.nodes
        self.column, self.left, self.right = nodes.column.copy(), nodes.left.copy(), nodes.right.copy()
        self.threshold, self.missing_left = np.zeros(len(nodes)), nodes.missing_left.copy()
        self.chosen: Ints = np.full(len(nodes), -1, dtype=np.int32)
        self.sets: dict[bytes, int] = {}
        self.tables: list[Bools] = []

    def nodes_of(self, column: int) -> NDArray[np.intp]:
        return np.flatnonzero(self.old.nodes.column == column)

    def points(self, count: int) -> Floats:
        return np.repeat(self.schema.grid[0][None, :], count, axis=0)

    def bind_choices(self) -> None:
        """A set of options per node."""
        options = {i: len(f.options) for i, f in enumerate(self.schema.features) if isinstance(f, Choice)}
        if not options:
            return
        points = self.points(max(options.values()))
        for i, count in options.items():
            points[:, i] = np.minimum(np.arange(len(points)), count - 1)
        columns = self.feature_columns.columns(points)
        for j, owner in enumerate(self.feature_columns.owners):
            at = self.nodes_of(j)
            if owner in options and len(at):
                values = np.broadcast_to(columns[: options[owner], j], (len(at), options[owner]))
                self._choose(at, self.old.goes_left(at[:, None], values))
                self.column[at], self.missing_left[at] = owner, False

    def _choose(self, at: NDArray[np.intp], left: Bools) -> None:
        for node, chosen in zip(at.tolist(), left, strict=True):
            key = chosen.tobytes()
            if key not in self.sets:
                self.sets[key] = len(self.tables)
                self.tables.append(chosen)
            self.chosen[node] = self.sets[key]

    def bind_numbers(self, columns: list[int]) -> None:
        """A cut per node, for columns of different features."""
        splits = [_Splits(self, j) for j in columns]
        rows = max(len(split.first) for split in splits)
        for look in ("low", "high", *(["middle"] * ROUNDS)):
            points = self.points(rows)
            for split in splits:
                points[: len(split.first), split.owner] = split.numbers(look)
            values = self.feature_columns.columns(points)
            for split in splits:
                split.learn(look, self.old.goes_left(split.first, values[: len(split.first), split.column]))
        for split in splits:
            cuts, turned = split.cuts()
            at = split.at
            self.threshold[at], self.column[at] = cuts, split.owner
            self.missing_left[at] = self.missing_left[at] != turned
            at = at[turned]
            self.left[at], self.right[at] = self.right[at], self.left[at]

    def ensemble(self) -> Ensemble:
        width = max((len(f.options) for f in self.schema.features if isinstance(f, Choice)), default=0)
        sets = np.zeros((len(self.tables), width), dtype=np.bool_)
        for row, table in zip(sets, self.tables, strict=True):
            row[: len(table)] = table
        nodes = Nodes(
            column=self.column,
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            missing_left=self.missing_left,
            chosen=self.chosen,
            leaf=self.old.nodes.leaf,
        )
        return replace(
            self.old, columns=len(self.schema), nodes=nodes, sets=sets, comparison="<=", compared_in="float64"
        )


def _one_way(ensemble: Ensemble, schema: Schema) -> Ints:
    """The node that all rows which come to a node go on to: itself, where rows part."""
    on = np.arange(len(ensemble.nodes), dtype=np.int32)
    size = len(schema) * (2 + ensemble.sets.shape[1])
    step = max(1, AT_ONCE // size // max(1, len(ensemble.nodes) // len(ensemble.roots)))
    for first in range(0, len(ensemble.roots), step):
        _follow(ensemble, schema, ensemble.roots[first : first + step], on)
    return on


def _follow(ensemble: Ensemble, schema: Schema, here: Ints, on: Ints) -> None:
    """Down from these roots, with what the splits above leave of each feature: least < x <= most, and options."""
    nodes, width = ensemble.nodes, ensemble.sets.shape[1]
    least, most = (np.full((len(here), len(schema)), end) for end in (-np.inf, np.inf))
    counts = [len(f.options) if isinstance(f, Choice) else 0 for f in schema.features]
    allowed = np.repeat((np.arange(width) < np.array(counts)[:, None])[None], len(here), axis=0)
    while len(inner := np.flatnonzero(nodes.column[here] >= 0)):
        here, least, most, allowed = here[inner], least[inner], most[inner], allowed[inner]
        at = np.arange(len(here)), nodes.column[here]
        cut, chosen = nodes.threshold[here], nodes.chosen[here]
        number, own = chosen < 0, allowed[at]
        table = ensemble.sets[chosen] if len(ensemble.sets) else np.zeros_like(own)
        inside, outside = (np.where(number[:, None], own, own & part) for part in (table, ~table))
        below, above = np.minimum(most[at], cut), np.maximum(least[at], cut)
        goes_left = np.where(number, least[at] < below, inside.any(axis=1))
        goes_right = np.where(number, above < most[at], outside.any(axis=1))
        left, right = nodes.left[here], nodes.right[here]
        on[here] = np.where(goes_left & goes_right, here, np.where(goes_left, left, right))
        below, above = np.where(number, below, most[at]), np.where(number, above, least[at])
        sides = (
            (part[goes_left] for part in (left, least, _with(most, at, below), _with(allowed, at, inside))),
            (part[goes_right] for part in (right, _with(least, at, above), most, _with(allowed, at, outside))),
        )
        here, least, most, allowed = (np.concatenate(parts) for parts in zip(*sides, strict=True))


def _with(array: NDArray[Any], at: tuple[Any, Any], values: NDArray[Any]) -> NDArray[Any]:
    """A copy of the array with these values there."""
    changed = array.copy()
    changed[at] = values
    return changed


def _pruned(ensemble: Ensemble, on: Ints) -> Ensemble:
    """Without the nodes that are passed over, and what only they lead to."""
    while not np.array_equal(on, on[on]):
        on = on[on]
    nodes, roots = ensemble.nodes, on[ensemble.roots]
    left, right = on[nodes.left], on[nodes.right]
    kept, here = np.zeros(len(nodes), dtype=np.bool_), roots
    while len(here):
        kept[here] = True
        inner = here[nodes.column[here] >= 0]
        here = np.concatenate([left[inner], right[inner]])
    number, leaf = np.cumsum(kept) - 1, nodes.leaf[kept & (nodes.column < 0)]
    place = np.full(len(ensemble.values) + 1, -1)
    place[leaf] = np.arange(len(leaf))
    shorter = Nodes(
        column=nodes.column[kept],
        threshold=nodes.threshold[kept],
        left=number[left[kept]],
        right=number[right[kept]],
        missing_left=nodes.missing_left[kept],
        chosen=nodes.chosen[kept],
        leaf=place[nodes.leaf[kept]],
    )
    return replace(ensemble, nodes=shorter, roots=number[roots], values=ensemble.values[leaf])


@dataclass(eq=False)
class _Splits:
    """The splits of one column, each threshold once, while the numbers that they part are looked for."""

    binding: _Binding
    column: int
    ways: dict[str, Bools] = field(default_factory=dict)

    def __post_init__(self) -> None:
        old = self.binding.old.nodes
        self.owner, self.at = self.binding.feature_columns.owners[self.column], self.binding.nodes_of(self.column)
        feature = self.binding.schema.features[self.owner]
        assert isinstance(feature, Numeric)
        if (old.chosen[self.at] >= 0).any():
            raise ModelError(
                f"The trees split feature '{feature.name}' by categories, but the schema calls it a number; "
                f"declare it as Categorical or Ordinal, with the values that the model knows."
            )
        _, first, self.same = np.unique(old.threshold[self.at], return_index=True, return_inverse=True)
        self.first = self.at[first]
        ends, self.number = _ranked(feature)
        self.low, self.high = (np.full(len(first), rank, dtype=np.int64) for rank in ends)

    @property
    def middle(self) -> NDArray[np.int64]:
        return (self.low >> 1) + (self.high >> 1) + (self.low & self.high & 1)  # high - low may be beyond int64

    def numbers(self, look: str) -> Floats:
        return self.number(getattr(self, look))

    def learn(self, look: str, left: Bools) -> None:
        """low stays on the side of the least number, high on that of the largest."""
        if look != "middle":
            self.ways[look] = left
            return
        middle = self.middle
        same, between = left == self.ways["low"], middle > self.low
        self.low, self.high = np.where(same & between, middle, self.low), np.where(same | ~between, self.high, middle)

    def cuts(self) -> tuple[Floats, Bools]:
        """Of each node, and whether what is at most the cut goes right instead of left."""
        least, largest = self.ways["low"], self.ways["high"]
        cuts = np.where(least == largest, np.where(least, np.inf, -np.inf), self.numbers("low"))
        return cuts[self.same], ((least != largest) & ~least)[self.same]


def _ranked(feature: Numeric) -> tuple[tuple[int, int], Callable[[NDArray[np.int64]], Floats]]:
    """The numbers of a feature in order: the ranks of the first and the last, and the number of each rank."""
    if isinstance(feature, Integer):
        return (0, feature.steps), lambda rank: feature.lower + feature.step * rank.astype(np.float64)
    bits: Any = np.array([feature.lower, feature.upper]).view(np.int64)
    low, high = np.where(bits < 0, np.int64(-(2**63)) - bits, bits).tolist()
    return (low, high), _float_of_rank


def _float_of_rank(rank: NDArray[np.int64]) -> Floats:
    return np.where(rank < 0, np.int64(-(2**63)) - rank, rank).view(np.float64)
