"""An ensemble over the columns of a library, as one over the features of a schema.

Each column that the trees read is a function of one feature: a number as it is or scaled, or something of a choice
(its code, a one-hot column, an encoder's value). So a split of a column is a split of a feature:

    numbers   x <= cut goes left, in float64, where cut is the largest number of the feature whose column goes left;
              found by bisection on the floats (or on the integer feature's grid) through the column's own arithmetic,
              which is monotone; -inf or inf where all numbers of the feature go one way
    choices   the set of options that go left

The result reads points (one float64 per feature, options by their numbers), compares by <= in float64, and gives the
scores of the original on every row of the schema, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.trees.ensemble import Bools, Ensemble, Floats, Ints, Nodes
from ifonly.schema import Choice, Integer, Numeric, Schema

ROUNDS = 66
"""Halvings that part any two of the 2^64 floats."""


@dataclass(frozen=True, eq=False)
class Read:
    """One column: which feature it depends on, and its values for numbers of that feature (options by number)."""

    feature: int
    values: Callable[[Floats], Floats]


def bound(ensemble: Ensemble, reads: Sequence[Read], schema: Schema) -> Ensemble:
    """The same function of the schema's points."""
    if len(reads) != ensemble.columns:
        raise ModelError(f"The trees read {ensemble.columns} columns, but {len(reads)} are given.")
    made = _Made(ensemble, schema)
    for j, read in enumerate(reads):
        at = np.flatnonzero(ensemble.nodes.column == j)
        if not len(at):
            continue
        if isinstance(schema.features[read.feature], Choice):
            made.by_options(at, read)
        else:
            made.by_cuts(at, read)
    return made.ensemble()


class _Made:
    """The nodes of the new ensemble, while its columns are bound one by one."""

    def __init__(self, ensemble: Ensemble, schema: Schema) -> None:
        self.old, self.schema, nodes = ensemble, schema, ensemble.nodes
        self.column, self.left, self.right = nodes.column.copy(), nodes.left.copy(), nodes.right.copy()
        self.threshold, self.missing_left = np.zeros(len(nodes)), nodes.missing_left.copy()
        self.chosen: Ints = np.full(len(nodes), -1, dtype=np.int32)
        self.sets: dict[bytes, int] = {}
        self.tables: list[Bools] = []

    def by_options(self, at: NDArray[np.intp], read: Read) -> None:
        """A set of options per node."""
        feature = self.schema.features[read.feature]
        assert isinstance(feature, Choice)
        values = read.values(np.arange(len(feature.options), dtype=np.float64))
        left = self.old.goes_left(at[:, None], np.broadcast_to(values, (len(at), len(values))))
        for node, chosen in zip(at.tolist(), left, strict=True):
            key = chosen.tobytes()
            if key not in self.sets:
                self.sets[key] = len(self.tables)
                self.tables.append(chosen)
            self.chosen[node] = self.sets[key]
        self.column[at], self.missing_left[at] = read.feature, False

    def by_cuts(self, at: NDArray[np.intp], read: Read) -> None:
        """A cut per node. Nodes of one threshold have one cut, so each is looked for once."""
        feature = self.schema.features[read.feature]
        assert isinstance(feature, Numeric)
        keys = np.stack([self.old.nodes.threshold[at], self.old.nodes.chosen[at].astype(np.float64)])
        _, first, same = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        if (self.old.nodes.chosen[at] >= 0).any():
            raise ModelError(
                f"The trees split feature '{feature.name}' by categories, but the schema calls it a number; "
                f"declare it as Categorical or Ordinal, with the values that the model knows."
            )
        cuts, swapped = _cuts(feature, read, lambda which, x: self.old.goes_left(at[first[which]], x), len(first))
        cuts, swapped = cuts[same.ravel()], swapped[same.ravel()]
        self.threshold[at], self.column[at] = cuts, read.feature
        turned = at[swapped]
        self.left[turned], self.right[turned] = self.right[turned], self.left[turned]
        missing = np.broadcast_to(read.values(np.array([np.nan])), len(at))
        self.missing_left[at] = self.old.goes_left(at, missing) != swapped

    def ensemble(self) -> Ensemble:
        width = max((len(table) for table in self.tables), default=0)
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


def _cuts(
    feature: Numeric, read: Read, goes_left: Callable[[NDArray[np.intp], Floats], Bools], count: int
) -> tuple[Floats, Bools]:
    """For each split the largest number that goes the way of the least one, and whether that way is right."""
    ranks, number = _numbers(feature)
    every = np.arange(count)

    def way(rank: NDArray[np.int64]) -> Bools:
        return goes_left(every, read.values(number(rank)))

    low, high = (np.full(count, rank, dtype=np.int64) for rank in ranks)
    first, last = way(low), way(high)
    for _ in range(ROUNDS):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # high - low may be beyond int64
        same = (way(middle) == first) & (middle > low)
        low, high = np.where(same, middle, low), np.where(same | (middle == low), high, middle)
    cuts = number(low)
    cuts[(first == last) & first], cuts[(first == last) & ~first] = np.inf, -np.inf
    return cuts, (first != last) & ~first


def _numbers(feature: Numeric) -> tuple[tuple[int, int], Callable[[NDArray[np.int64]], Floats]]:
    """The numbers of a feature in order: the ranks of the first and the last, and the number of each rank."""
    if isinstance(feature, Integer):
        return (0, feature.steps), lambda rank: feature.lower + feature.step * rank.astype(np.float64)
    ends = np.array([feature.lower, feature.upper])
    bits = ends.view(np.int64)
    low, high = np.where(bits < 0, np.int64(-(2**63)) - bits, bits).tolist()  # -0.0 ranks with 0.0
    return (low, high), _float_of_rank


def _float_of_rank(rank: NDArray[np.int64]) -> Floats:
    return np.where(rank < 0, np.int64(-(2**63)) - rank, rank).view(np.float64)
