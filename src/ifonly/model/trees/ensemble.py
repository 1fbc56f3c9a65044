"""Decision tree ensembles as flat arrays of nodes, for all libraries.

    score_k(x) = ((start_k + sum_t value_k(leaf of x in tree t)) / divisor) * scale + shift_k

All trees share one list of nodes. At a node, a number goes left iff it is <= the threshold (or <), compared as
float32 or as float64; a category, by its code, iff its set has it; a missing value (NaN) as the node says. The sum is
added up tree by tree in `summation.precision`, as the library does it: then the scores are the library's, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.kind import ByFingerprint, Precision
from ifonly.model.trees.checks import EVERY, MAX_TREES, check_shapes, check_trees, frozen_array
from ifonly.printing import shown

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
Comparison: TypeAlias = Literal["<=", "<"]

AT_ONCE = 1 << 20
"""Rows times trees that are evaluated in one go."""
ROWS_AT_ONCE = 1 << 25
"""Rows times trees whose leaves are held at once."""
MANY_ROWS = 4096
"""From so many rows on, they are followed down the trees node by node instead of row by row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodes:
    """One entry per node. A leaf has column -1, and is its own child on both sides."""

    column: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Bools
    chosen: Ints
    """The row of `Ensemble.sets` that goes left, at a split of categories; -1 at a split of numbers."""
    leaf: Ints
    """The row of `Ensemble.values`; -1 where it is no leaf."""

    def __post_init__(self) -> None:
        for name, kind in NODE_FIELDS.items():
            object.__setattr__(self, name, frozen_array(getattr(self, name), kind, name, 1))
        if len({len(getattr(self, name)) for name in NODE_FIELDS}) != 1:
            raise ModelError("The lists of an ensemble's nodes must be of one length.")

    def __len__(self) -> int:
        return len(self.column)


NODE_FIELDS: dict[str, Any] = {
    "column": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "missing_left": np.bool_,
    "chosen": np.int32,
    "leaf": np.int32,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Summation:
    """How the leaves become scores: see the formula above. `ordered`: always tree by tree, in the order given."""

    start: Floats
    shift: Floats
    divisor: float = 1.0
    scale: float = 1.0
    precision: Precision = "float64"
    ordered: bool = True

    def __post_init__(self) -> None:
        for name in ("start", "shift"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.float64, name, 1))
        for name in ("divisor", "scale"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value) or value == 0:
                raise ModelError(
                    f"The {name} of an ensemble must be a finite number other than 0; it is {shown(value)}."
                )
            object.__setattr__(self, name, float(value))
        if self.start.shape != self.shift.shape or not len(self.start):
            raise ModelError("An ensemble has one start and one shift per output, and at least one output.")
        if self.precision not in ("float64", "float32") or not isinstance(self.ordered, bool):
            raise ModelError(f"An ensemble adds up in float64 or float32; got {shown(self.precision)}.")

    @classmethod
    def plain(cls, outputs: int) -> Summation:
        """The plain sum."""
        return cls(start=np.zeros(outputs), shift=np.zeros(outputs))


@dataclass(frozen=True, kw_only=True, eq=False)
class LibraryTree:
    """One tree as a library has it: a leaf has column -1; its row of `value` counts, that of other nodes does not."""

    column: Any
    threshold: Any
    left: Any
    right: Any
    value: Any
    missing_left: Any = None
    sets: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """At splits of categories: the codes that go left."""
    adds_to: int = EVERY


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble(ByFingerprint):
    """Trees over `columns` numbered columns. Arrays are read-only; equal ensembles have equal fingerprints."""

    columns: int
    nodes: Nodes
    values: Floats
    """Shape (leaves, outputs), or (leaves, 1) where each tree adds to one output."""
    roots: Ints
    adds_to: Ints
    """The output that each tree adds to, or EVERY."""
    summation: Summation
    sets: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    """Row by row: which codes go left."""
    comparison: Comparison = "<="
    compared_in: Precision = "float64"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen_array(self.values, np.float64, "values", 2))
        object.__setattr__(self, "roots", frozen_array(self.roots, np.int32, "roots", 1))
        object.__setattr__(self, "adds_to", frozen_array(self.adds_to, np.int32, "adds_to", 1))
        object.__setattr__(self, "sets", frozen_array(self.sets, np.bool_, "sets", 2))
        if self.comparison not in ("<=", "<") or self.compared_in not in ("float64", "float32"):
            raise ModelError(f"A split compares by <= or <, in float64 or float32; got {shown(self.comparison)}.")
        check_shapes(self)
        check_trees(self)

    def __repr__(self) -> str:
        return f"<Ensemble: {len(self.roots)} trees, {len(self.values)} leaves, {self.columns} columns>"

    @property
    def outputs(self) -> int:
        return len(self.summation.start)

    @cached_property
    def depth(self) -> int:
        """Splits on the longest way to a leaf."""
        nodes, here, depth = self.nodes, self.roots, 0
        while (inner := here[nodes.column[here] >= 0]).size:
            here = np.concatenate([nodes.left[inner], nodes.right[inner]])
            depth += 1
        return depth

    # ------------------------------------------------------------------ evaluation

    def goes_left(self, node: Any, value: Floats) -> Bools:
        """Whether the value of its column goes left at the node, for arrays of one shape."""
        nodes = self.nodes
        with np.errstate(invalid="ignore", over="ignore"):
            number = value.astype(np.float32).astype(np.float64) if self.compared_in == "float32" else value
            left = number <= nodes.threshold[node] if self.comparison == "<=" else number < nodes.threshold[node]
            if self.sets.size:
                inside = (value >= 0.0) & (value < self.sets.shape[1])
                code = np.where(inside, value, 0.0).astype(np.intp)
                left = np.where(nodes.chosen[node] >= 0, inside & self.sets[nodes.chosen[node], code], left)
        return np.where(np.isnan(value), nodes.missing_left[node], left)

    def leaves(self, x: Floats) -> Ints:
        """The leaf (a row of `values`) that each row reaches in each tree, shape (rows, trees)."""
        x = np.asarray(x, dtype=np.float64)
        if len(x) >= MANY_ROWS:
            return self._leaves_by_node(x)
        result = np.empty((len(x), len(self.roots)), dtype=np.int32)
        step = max(1, AT_ONCE // len(self.roots))
        for first in range(0, len(x), step):
            result[first : first + step] = self._leaves(x[first : first + step])
        return result

    def _leaves(self, x: Floats) -> Ints:
        nodes, trees = self.nodes, len(self.roots)
        here = np.tile(self.roots, len(x))
        going, column = np.arange(len(here)), nodes.column[here]
        while len(going := going[column >= 0]):
            node, column = here[going], column[column >= 0]
            left = self.goes_left(node, x[going // trees, column])
            here[going] = node = np.where(left, nodes.left[node], nodes.right[node])
            column = nodes.column[node]
        return nodes.leaf[here].reshape(len(x), trees)

    def _leaves_by_node(self, x: Floats) -> Ints:
        """The same tree by tree: at each node, all rows that reach it are parted at once."""
        nodes, columns = self.nodes, np.ascontiguousarray(x.T)
        plain = self.comparison == "<=" and not np.isnan(x).any()
        compared = columns
        if plain and self.compared_in == "float32":
            with np.errstate(over="ignore"):
                compared = columns.astype(np.float32).astype(np.float64)
        number, cuts = (nodes.chosen < 0).tolist(), nodes.threshold.tolist()
        codes = self._codes(columns)
        result = np.empty((len(self.roots), len(x)), dtype=np.int32)
        everyone = np.arange(len(x))
        for t, root in enumerate(self.roots.tolist()):
            waiting = [(root, everyone)]
            while waiting:
                node, rows = waiting.pop()
                column = nodes.column[node]
                if column < 0:
                    result[t, rows] = nodes.leaf[node]
                    continue
                if plain and number[node]:
                    left = compared[column][rows] <= cuts[node]
                elif column in codes:
                    left = self.sets[nodes.chosen[node]][codes[column][rows]]
                else:
                    left = self.goes_left(node, columns[column][rows])
                sides = ((nodes.left[node], rows[left]), (nodes.right[node], rows[~left]))
                waiting += [(child, part) for child, part in sides if len(part)]
        return np.ascontiguousarray(result.T)

    def _codes(self, columns: Floats) -> dict[int, NDArray[np.intp]]:
        """The values of those columns that sets of values split and that have no others than sets can hold."""
        chosen = np.unique(self.nodes.column[self.nodes.chosen >= 0]).tolist()
        good = [k for k in chosen if ((columns[k] >= 0.0) & (columns[k] < self.sets.shape[1])).all()]
        return {k: columns[k].astype(np.intp) for k in good}

    def scores(self, x: Floats) -> Floats:
        """The scores of rows, shape (rows, outputs), added up as the library does. Equal rows have equal scores."""
        step = max(MANY_ROWS, ROWS_AT_ONCE // len(self.roots))
        parts = [self.total(self.leaves(x[first : first + step])) for first in range(0, max(len(x), 1), step)]
        return np.concatenate(parts)

    def total(self, leaves: Ints) -> Floats:
        """The scores of rows that reach these leaves, shape (rows, trees)."""
        result = np.empty((len(leaves), self.outputs))
        for k in range(self.outputs):
            trees = np.flatnonzero((self.adds_to == k) | (self.adds_to == EVERY))
            result[:, k] = self._added(self.values[leaves[:, trees], k if self.values.shape[1] > 1 else 0], k)
        return result

    def _added(self, terms: Floats, output: int) -> Floats:
        """Sequential sum: `accumulate` fixes the order of summation, which `sum` does not."""
        how, kind = self.summation, np.dtype(self.summation.precision).type
        begun = np.concatenate([np.full((len(terms), 1), how.start[output]), terms], axis=1).astype(kind)
        with np.errstate(over="ignore", invalid="ignore"):
            summed = np.add.accumulate(begun, axis=1)[:, -1]
            return np.asarray(summed / kind(how.divisor) * kind(how.scale) + kind(how.shift[output]), dtype=np.float64)

    def rounding(self) -> Floats:
        """Rounding error bound per output, for any order of summation."""
        how, unit = self.summation, {"float64": 2.0**-53, "float32": 2.0**-24}[self.summation.precision]
        size = np.abs(how.start) + self.largest.sum(axis=0)
        terms = len(self.roots) + 4.0
        gamma = terms * unit / (1.0 - terms * unit)
        least = {"float64": 2.0**-1022, "float32": 2.0**-126}[how.precision]
        factor = abs(how.scale / how.divisor)
        return (gamma * (factor * size + np.abs(how.shift)) + 4.0 * least * (1.0 + factor)) * (1.0 + 1e-9)

    @cached_property
    def largest(self) -> Floats:
        """The largest |value| of a leaf of each tree for each output, shape (trees, outputs)."""
        largest = np.zeros((len(self.roots), self.outputs))
        leaf = self.nodes.leaf >= 0
        values, tree = np.abs(self.values[self.nodes.leaf[leaf]]), self.tree_of[leaf]
        for k in range(self.outputs):
            np.maximum.at(largest[:, k], tree, values[:, k if values.shape[1] > 1 else 0])
        largest[(self.adds_to[:, None] != EVERY) & (self.adds_to[:, None] != np.arange(self.outputs))] = 0.0
        return largest

    @cached_property
    def tree_of(self) -> Ints:
        """The tree that each node belongs to."""
        tree, here = np.full(len(self.nodes), -1, dtype=np.int32), self.roots
        tree[here] = np.arange(len(here))
        while (inner := here[self.nodes.column[here] >= 0]).size:
            for child in (self.nodes.left[inner], self.nodes.right[inner]):
                tree[child] = tree[inner]
            here = np.concatenate([self.nodes.left[inner], self.nodes.right[inner]])
        return tree

    # ------------------------------------------------------------------ identity

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over all that decides a score."""
        how = self.summation
        digest = hashlib.sha256(b"ifonly-trees-1")
        words = (self.comparison, self.compared_in, how.precision, how.ordered, self.columns, how.divisor, how.scale)
        digest.update(repr(words).encode())
        for array in (*(getattr(self.nodes, name) for name in NODE_FIELDS), self.values, self.roots, self.adds_to,
                      self.sets, how.start, how.shift):  # fmt: skip
            digest.update(repr(array.shape).encode())
            digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()

    # ------------------------------------------------------------------ making one

    @classmethod
    def of(
        cls,
        trees: Sequence[LibraryTree],
        *,
        columns: int,
        summation: Summation,
        comparison: Comparison = "<=",
        compared_in: Precision = "float64",
    ) -> Ensemble:
        """An ensemble of trees, in this order."""
        if not 1 <= len(trees) <= MAX_TREES:
            raise ModelError(f"An ensemble has between 1 and {MAX_TREES} trees; got {len(trees)}.")
        joined = _Joined()
        for tree in trees:
            joined.add(tree)
        return cls(
            columns=columns,
            nodes=joined.nodes(),
            values=np.concatenate(joined.values),
            roots=np.array(joined.roots),
            adds_to=np.array([tree.adds_to for tree in trees]),
            summation=summation,
            sets=joined.table(),
            comparison=comparison,
            compared_in=compared_in,
        )


class _Joined:
    """Builder of the shared list of nodes."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self.values: list[Floats] = []
        self.roots: list[int] = []
        self.sets: dict[tuple[int, ...], int] = {}
        self.count = self.leaves = 0

    def add(self, tree: LibraryTree) -> None:
        column = np.asarray(tree.column, dtype=np.int64)
        own, leaf = np.arange(len(column)), column < 0
        missing = np.zeros(len(column), dtype=bool) if tree.missing_left is None else np.asarray(tree.missing_left)
        chosen = np.full(len(column), -1)
        for node, codes in tree.sets.items():
            chosen[node] = self.sets.setdefault(tuple(sorted(set(map(int, codes)))), len(self.sets))
        self.parts.append(
            {
                "column": np.where(leaf, -1, column),
                "threshold": np.where(leaf | (chosen >= 0), 0.0, np.asarray(tree.threshold, dtype=np.float64)),
                "left": np.where(leaf, own, tree.left) + self.count,
                "right": np.where(leaf, own, tree.right) + self.count,
                "missing_left": missing & ~leaf,
                "chosen": np.where(leaf, -1, chosen),
                "leaf": np.where(leaf, np.cumsum(leaf) - 1 + self.leaves, -1),
            }
        )
        self.values.append(np.asarray(tree.value, dtype=np.float64).reshape(len(column), -1)[leaf])
        self.roots.append(self.count)
        self.count += len(column)
        self.leaves += int(leaf.sum())

    def nodes(self) -> Nodes:
        return Nodes(**{name: np.concatenate([part[name] for part in self.parts]) for name in NODE_FIELDS})

    def table(self) -> Bools:
        width = max((1 + max(codes, default=-1) for codes in self.sets), default=0)
        table = np.zeros((len(self.sets), max(width, 1 if self.sets else 0)), dtype=np.bool_)
        for codes, row in self.sets.items():
            table[row, list(codes)] = True
        return table
