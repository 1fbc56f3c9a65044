"""The trees of a model in cells: what no question changes, made once per model and shared by all its questions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ifonly.model.trees import Ensemble, Trees
from ifonly.problem.parts import UnrolledColumns
from ifonly.resources import check_limits
from ifonly.schema import Choice

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class CellTable:
    """Of each number the intervals between its cuts, of each choice the options that no split parts."""

    start: NDArray[np.int64]
    """The cells of feature g are start[g] to start[g + 1] - 1."""
    columns: NDArray[np.int64]
    """The unrolled columns of feature g are columns[g] to columns[g + 1] - 1."""
    choice: NDArray[np.uint8]
    table: Floats
    """Row 0: the cut below each cell of a number (the first has none). Row 1: the cell of each unrolled column."""

    @classmethod
    def of(cls, trees: Trees) -> CellTable:
        counts, lower, classes = [], [], []
        choice = np.array([isinstance(feature, Choice) for feature in trees.schema.features])
        for g, (cuts, sets) in enumerate(zip(trees.cuts, trees.option_sets, strict=True)):
            if not choice[g]:
                counts.append(len(cuts) + 1)
                lower.append(np.concatenate([[-np.inf], cuts]))
                classes.append(np.zeros(1))
                continue
            kinds = np.unique(sets, axis=1, return_inverse=True)[1].ravel() if len(sets) else np.zeros(sets.shape[1])
            counts.append(int(kinds.max()) + 1)
            lower.append(np.zeros(counts[-1]))
            classes.append(kinds.astype(np.float64))
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        columns = UnrolledColumns(trees.schema).start
        table = np.zeros((2, max(int(start[-1]), int(columns[-1]))))
        table[0, : start[-1]] = np.concatenate(lower)
        table[1, : columns[-1]] = np.concatenate(classes)
        return cls(start=start, columns=columns, choice=choice.astype(np.uint8), table=table)

    def cuts(self, g: int) -> Floats:
        return self.table[0, self.start[g] + 1 : self.start[g + 1]]

    def classes(self, g: int) -> NDArray[np.int64]:
        """The cell of each option."""
        return self.table[1, self.columns[g] : self.columns[g + 1]].astype(np.int64)

    @property
    def words(self) -> int:
        """Words of bits for the cells of a choice. Numbers, however many cells they have, need none."""
        return max(1, -(-int(np.diff(self.start)[self.choice != 0].max(initial=0)) // 64))


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedTrees:
    """The kernels' arrays of an ensemble (see `Forest`), as far as no question changes them."""

    cells: CellTable
    node: NDArray[np.int32]
    sets: NDArray[np.uint64]
    roots: NDArray[np.int32]
    tree_of_leaf: NDArray[np.int64]
    first_leaf: NDArray[np.int64]
    limit_at: NDArray[np.int64]
    dead: NDArray[np.uint8]
    limit: NDArray[np.int32]
    limit_set: NDArray[np.uint64]
    raw: Floats
    adds_to: NDArray[np.int32]

    @classmethod
    def of(cls, trees: Trees, kernel: Any) -> SharedTrees:
        ensemble, cells = trees.ensemble, CellTable.of(trees)
        check_limits()
        node, sets = _nodes(ensemble, cells)
        check_limits()
        at, limit, limit_set, dead = _limits(node, sets, cells, len(ensemble.values), kernel)
        leaf = np.flatnonzero(ensemble.nodes.leaf >= 0)
        tree = np.zeros(len(ensemble.values), dtype=np.int64)
        tree[ensemble.nodes.leaf[leaf]] = ensemble.tree_of[leaf]
        first = np.concatenate([[0], np.cumsum(np.bincount(tree, minlength=len(ensemble.roots)))])
        return cls(
            cells=cells,
            node=node,
            sets=sets,
            roots=ensemble.roots.copy(),  # copies may be written to, and kernels are compiled for such arrays
            tree_of_leaf=tree,
            first_leaf=first.astype(np.int64),
            limit_at=at,
            dead=dead,
            limit=limit,
            limit_set=limit_set,
            raw=ensemble.values.copy(),
            adds_to=ensemble.adds_to.copy(),
        )

    @property
    def parts(self) -> tuple[Any, ...]:
        """What is in the arrays of every question."""
        return tuple(getattr(self, part.name) for part in fields(self))


_KNOWN: WeakKeyDictionary[Trees, SharedTrees] = WeakKeyDictionary()
"""Of the models that are in use, one each."""


def shared_trees(trees: Trees, kernel: Any) -> SharedTrees:
    """The arrays of these trees, made at the first question to them by the kernels that are loaded."""
    known = _KNOWN.get(trees)
    if known is None:
        known = _KNOWN[trees] = SharedTrees.of(trees, kernel)
    return known


def _nodes(ensemble: Ensemble, cells: CellTable) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """The nodes with cells for thresholds, and sets of cells for sets of options."""
    nodes = ensemble.nodes
    cut = np.zeros(len(nodes), dtype=np.int64)
    rows: list[NDArray[np.uint64]] = [np.zeros((1, cells.words), dtype=np.uint64)]
    used = 1
    for g, choice in enumerate(cells.choice):
        mine = np.flatnonzero(nodes.column == g)
        if not choice:
            cuts = cells.cuts(g)
            place = np.searchsorted(cuts, nodes.threshold[mine])
            cut[mine] = np.where(nodes.threshold[mine] == -np.inf, -1, place)
        elif len(mine):
            which, inverse = np.unique(nodes.chosen[mine], return_inverse=True)
            words = np.zeros((len(which), cells.words), dtype=np.uint64)
            for option, cell in enumerate(cells.classes(g).tolist()):
                here = ensemble.sets[which, option].astype(np.uint64)
                words[:, cell >> 6] |= here << np.uint64(cell & 63)
            rows.append(words)
            cut[mine] = used + inverse.ravel()
            used += len(which)
    stacked = np.stack([nodes.column, cut, nodes.left, nodes.right, nodes.leaf]).astype(np.int32)
    return np.ascontiguousarray(stacked), np.concatenate(rows)


def _limits(node: NDArray[np.int32], sets: NDArray[np.uint64], cells: CellTable, leaves: int, kernel: Any) -> Any:
    """Where the limits of each leaf begin, the limits, their sets, and which leaves nothing reaches."""
    at, dead, parent = np.zeros(leaves + 1, dtype=np.int64), np.zeros(leaves, dtype=np.uint8), kernel.parents_of(node)
    limit, limit_set = np.zeros((3, 0), dtype=np.int32), np.zeros((0, sets.shape[1]), dtype=np.uint64)
    count = np.diff(cells.start)
    kernel.leaf_limits(node, parent, sets, cells.choice, count, at, limit, limit_set, dead)
    if at[-1]:
        check_limits(int(at[-1]) * (12 + sets[0].nbytes))
        limit = np.zeros((3, int(at[-1])), dtype=np.int32)
        limit_set = np.zeros((int(at[-1]), sets.shape[1]), dtype=np.uint64)
        kernel.leaf_limits(node, parent, sets, cells.choice, count, at, limit, limit_set, dead)
    return at, limit, limit_set, dead
