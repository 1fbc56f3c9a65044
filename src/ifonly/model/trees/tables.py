"""Lookup tables as decision trees: the terms of additive models and scorecards.

A term of such a model is a table: the cells of one column (or of two, or more), and a value for each. As a tree, the
widest side of the table is halved until the values that are left are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model.trees.ensemble import LibraryTree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axis:
    """One side of a table. Cell k is up to `cuts[k]`, the last one above all; without cuts, cell k is category k."""

    column: int
    cuts: Floats | None


def tree_of_table(axes: Sequence[Axis], values: Floats, adds_to: int) -> LibraryTree:
    """The tree of a table of values, shape (cells of each axis ..., outputs)."""
    builder = _TreeBuilder(list(axes), values)
    builder.build(tuple((0, count) for count in values.shape[:-1]))
    column, threshold, left, right = (list(row) for row in zip(*builder.rows, strict=True))
    return LibraryTree(
        column=column,
        threshold=threshold,
        left=left,
        right=right,
        value=np.array(builder.values),
        sets=builder.sets,
        adds_to=adds_to,
    )


@dataclass
class _TreeBuilder:
    """Builder of a tree by recursive bisection, parents before children."""

    axes: list[Axis]
    table: Floats
    rows: list[list[Any]] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    sets: dict[int, list[int]] = field(default_factory=dict)

    def build(self, box: tuple[tuple[int, int], ...]) -> int:
        """The node for a box of cells, from the first of each side to before the last."""
        inside = self.table[tuple(slice(*side) for side in box)].reshape(-1, self.table.shape[-1])
        node = len(self.rows)
        self.rows.append([-1, 0.0, node, node])
        self.values.append(inside[0])
        if (inside == inside[0]).all():
            return node
        widest = max(range(len(box)), key=lambda i: box[i][1] - box[i][0])
        (first, last), axis = box[widest], self.axes[widest]
        middle = (first + last) // 2
        if axis.cuts is None:
            threshold, self.sets[node] = 0.0, list(range(first, middle))
        else:
            threshold = float(axis.cuts[middle - 1])
        left, right = (
            self.build((*box[:widest], side, *box[widest + 1 :])) for side in ((first, middle), (middle, last))
        )
        self.rows[node] = [axis.column, threshold, left, right]
        return node
