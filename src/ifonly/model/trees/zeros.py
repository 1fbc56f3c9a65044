"""Trees of libraries that read zeros as missing values, rewritten so that zeros are numbers.

Where a split sends zero to another side than its neighbours, one comparison cannot express that. It becomes several,
with copies of the subtree, each for numbers of one sign, or for zero alone:

    x < 0.7, zeros right    x < 0: left (negative)    x <= 0: right (zero)    x < 0.7: left (positive), else right

Below such a split the sign of its column is known, so no column is rewritten twice on one path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.model.trees.ensemble import Ensemble, LibraryTree

Sign: TypeAlias = Literal["negative", "zero", "positive"]
MOST_TIMES = 64
"""How many times larger than it was a tree may become."""


def without_missing_zeros(ensemble: Ensemble, columns: frozenset[int]) -> Ensemble:
    """The same function, where zeros of these columns were missing values, of trees to which they are numbers."""
    trees = []
    sizes = np.bincount(ensemble.tree_of, minlength=len(ensemble.roots))
    for t, root in enumerate(ensemble.roots.tolist()):
        copied = _CopiedTree(ensemble, columns, most=MOST_TIMES * int(sizes[t]))
        copied.copy(root, {})
        trees.append(copied.tree(int(ensemble.adds_to[t])))
    return Ensemble.of(
        trees,
        columns=ensemble.columns,
        summation=ensemble.summation,
        comparison=ensemble.comparison,
        compared_in=ensemble.compared_in,
    )


@dataclass
class _CopiedTree:
    """A tree while it is copied, parents before children."""

    old: Ensemble
    columns: frozenset[int]
    most: int
    rows: list[list[Any]] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    sets: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        least = float(np.finfo(self.old.compared_in).smallest_subnormal)
        self.below, self.upto = (0.0, least) if self.old.comparison == "<" else (-least, 0.0)

    def copy(self, node: int, signs: dict[int, Sign]) -> int:
        """The place of a copy of what is below a node, for numbers of these signs."""
        nodes = self.old.nodes
        column, missing_left = int(nodes.column[node]), bool(nodes.missing_left[node])
        left, right = int(nodes.left[node]), int(nodes.right[node])
        if column < 0:
            return self._add(-1, 0.0, False, self.old.values[nodes.leaf[node]])
        if column not in self.columns or nodes.chosen[node] >= 0:
            return self._split(node, signs)
        zero_left = bool(self.old.goes_left(np.array([node]), np.zeros(1))[0])
        sign = signs.get(column)
        if sign == "zero":
            return self.copy(left if missing_left else right, signs)
        if (sign == "negative" and zero_left) or (sign == "positive" and not zero_left):
            return self.copy(left if sign == "negative" else right, signs)
        if sign is not None or zero_left == missing_left:
            return self._split(node, signs)
        return self._apart(node, signs)

    def _apart(self, node: int, signs: dict[int, Sign]) -> int:
        """The split in three: negative numbers, zero, positive numbers; missing values go with zero."""
        column = int(self.old.nodes.column[node])
        negative: dict[int, Sign] = {**signs, column: "negative"}
        zero: dict[int, Sign] = {**signs, column: "zero"}
        positive: dict[int, Sign] = {**signs, column: "positive"}
        first = self._add(column, self.below, False)
        left = self.copy(node, negative)
        second = self._add(column, self.upto, True)
        self.rows[first][3:] = [left, second]
        self.rows[second][3:] = [self.copy(node, zero), self.copy(node, positive)]
        return first

    def _split(self, node: int, signs: dict[int, Sign]) -> int:
        nodes = self.old.nodes
        chosen = int(nodes.chosen[node])
        place = self._add(int(nodes.column[node]), float(nodes.threshold[node]), bool(nodes.missing_left[node]))
        if chosen >= 0:
            self.sets[place] = np.flatnonzero(self.old.sets[chosen]).tolist()
        left, right = int(nodes.left[node]), int(nodes.right[node])
        self.rows[place][3:] = [self.copy(left, signs), self.copy(right, signs)]
        return place

    def _add(self, column: int, threshold: float, missing_left: bool, value: Any = None) -> int:
        if len(self.rows) > self.most:
            raise UnsupportedModel(
                f"The model takes zeros for missing values, and with zeros as numbers its trees would be more than "
                f"{MOST_TIMES} times as large; give it a dense table (sparse_threshold=0), or fit it with zeros as "
                f"numbers.",
                operation="zeros as missing numbers",
            )
        self.rows.append([column, threshold, missing_left, len(self.rows), len(self.rows)])
        self.values.append(np.zeros(self.old.values.shape[1]) if value is None else value)
        return len(self.rows) - 1

    def tree(self, adds_to: int) -> LibraryTree:
        column, threshold, missing_left, left, right = (np.array(part) for part in zip(*self.rows, strict=True))
        return LibraryTree(
            column=column,
            threshold=threshold,
            left=left,
            right=right,
            value=np.stack(self.values),
            missing_left=missing_left,
            sets=self.sets,
            adds_to=adds_to,
        )
