"""MIP encoding of the trees that one person can reach, beside the columns of the inputs.

    cuts      a binary y_k for each open cut of a number, y_k = [x <= c_k];  y_1 <= y_2 <= ...
              beyond the cuts next to the factual, a number's indicator of having changed is 1
              x >= least + sum of (right_k - right_{k-1}) (1 - y_k),   x <= most - sum of (left_{k+1} - left_k) y_k
    options   the inputs' own columns: y = the sum of those that go left
    leaves    one column each, real numbers; they add up to 1 in each tree, and at each split

              leaves on the left <= y,   leaves on the right <= 1 - y

Where every y is 0 or 1, so is every leaf. left_k and right_k are the values next to the cut on either side; that they
may be closer than a solver's tolerance does no harm, since the row is read from the binaries (`read_row`).
Leaves that were excluded together: at least one of them is not reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered
from ifonly.resources import check_limits
from ifonly.solvers.common.backends.protocol import Floats, Form
from ifonly.solvers.common.input_side import InputSide
from ifonly.solvers.common.inputs import Inputs, Person, read_point
from ifonly.solvers.common.trees import Cuts, Leaf, PersonTrees, ReachableTree, Split, values_after

Ints = NDArray[np.intp]

LINK_SLACK = 1e-9
"""Of a real number's unit: how far it may be on the wrong side of a cut in a program. Rows that are tight to the last
bit make solvers call programs infeasible that are not."""


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A program of inputs and a model; the conditions are z v + c."""

    form: Form
    z: Floats
    c: Floats
    cuts: dict[int, Ints] = field(default_factory=dict)
    """Of trees: the columns of the open cuts of each number."""


@dataclass(kw_only=True)
class _Rows:
    """Rows on their way into a program."""

    entries: list[tuple[Sequence[int], Sequence[float], float]] = field(default_factory=list)

    def add(self, columns: Sequence[int], values: Sequence[float], limit: float) -> None:
        self.entries.append((columns, values, limit))

    def dense(self, columns: int) -> tuple[Floats, Floats]:
        check_limits(2 * 8 * len(self.entries) * columns)  # this, and the rows of the program with it
        rows = np.zeros((len(self.entries), columns))
        for row, (at, values, _) in zip(rows, self.entries, strict=True):
            np.add.at(row, np.asarray(at, dtype=np.intp), values)
        return rows, np.array([limit for _, _, limit in self.entries])


@dataclass(kw_only=True)
class _TreeEncoder:
    """Trees on their way into a program: their leaves get columns as they are met."""

    inputs: Inputs
    starts: Sequence[int]
    cuts: dict[int, Ints]
    rows: _Rows
    column: int
    leaf: dict[int, int] = field(default_factory=dict)
    """The column of each row of the ensemble's values."""

    def encode_tree(self, tree: ReachableTree) -> list[int]:
        """The columns of the tree's leaves, once their rows are written."""
        if isinstance(tree, Leaf):
            self.leaf[tree.row] = self.column
            self.column += 1
            return [self.leaf[tree.row]]
        left, right = self.encode_tree(tree.left), self.encode_tree(tree.right)
        columns, values, constant = self.goes_left(tree)
        self.rows.add([*left, *columns], [1.0] * len(left) + [-value for value in values], constant)
        self.rows.add([*right, *columns], [1.0] * len(right) + values, 1.0 - constant)
        return left + right

    def goes_left(self, split: Split) -> tuple[list[int], list[float], float]:
        """y of a split, as a sum of columns and a constant."""
        if split.feature in self.cuts:
            return [int(self.cuts[split.feature][split.place])], [1.0], 0.0
        first, inputs = self.starts[split.feature], self.inputs
        mine = np.flatnonzero(inputs.feature == split.feature).tolist()
        base = int(inputs.minus[mine[0]]) - first
        if base in split.options:  # all but those that go right
            others = [j for j in mine if int(inputs.plus[j]) - first not in split.options]
            return others, [-1.0] * len(others), 1.0
        chosen = [j for j in mine if int(inputs.plus[j]) - first in split.options]
        return chosen, [1.0] * len(chosen), 0.0


def with_trees(lowered: Lowered, person: Person, side: InputSide, form: Form, forest: PersonTrees) -> Encoded:
    """The program with the trees' columns and rows."""
    rows, cuts, column = _Rows(), {}, len(form.cost)
    for g, mine in forest.cuts.items():
        cuts[g] = column + np.arange(len(mine))
        column += len(mine)
        _link(lowered, side.inputs, g, mine, cuts[g].tolist(), rows)
        _mark(lowered, person, side, g, mine, cuts[g].tolist(), rows)
    first_leaf = column
    starts = lowered.start.tolist()
    tree_encoder = _TreeEncoder(inputs=side.inputs, starts=starts, cuts=cuts, rows=rows, column=column)
    c = forest.constant.copy()
    for tree in forest.reachable:
        check_limits()
        if isinstance(tree, Leaf):
            c += forest.weight[:, tree.row]
            continue
        leaves = tree_encoder.encode_tree(tree)
        rows.add(leaves, [1.0] * len(leaves), 1.0)
        rows.add(leaves, [-1.0] * len(leaves), -1.0)
    for combination in forest.excluded:
        _exclude(forest, tree_encoder.leaf, combination, rows)
    columns = tree_encoder.column
    z = np.zeros((len(c), columns))
    for row, at in tree_encoder.leaf.items():
        z[:, at] = forest.weight[:, row]
    more = columns - len(form.cost)
    below, limit = rows.dense(columns)
    made = replace(
        form,
        cost=np.append(form.cost, np.zeros(more)),
        square=np.append(form.square, np.zeros(more)),
        rows=np.vstack([np.pad(form.rows, ((0, 0), (0, more))), below]),
        limit=np.append(form.limit, limit),
        lower=np.append(form.lower, np.zeros(more)),
        upper=np.append(form.upper, np.ones(more)),
        integer=np.append(form.integer, np.arange(len(form.cost), columns) < first_leaf),
    )
    return Encoded(form=made, z=z, c=c, cuts=cuts)


def _link(lowered: Lowered, inputs: Inputs, g: int, cuts: Cuts, y: list[int], rows: _Rows) -> None:
    """Between a number and its cuts; in units that suit a solver."""
    if not y:
        return
    for one, next_one in pairwise(y):
        rows.add([one, next_one], [1.0, -1.0], 0.0)
    mine = np.flatnonzero(inputs.feature == g)
    in_steps = bool(lowered.step[g])
    moves = np.sign(inputs.unit[mine]) if in_steps else inputs.unit[mine]
    base = 0.0 if in_steps else float(inputs.base[lowered.start[g]])
    unit, slack = (1.0, 0.0) if in_steps else (float(np.abs(moves).max()), LINK_SLACK)  # whole numbers are exact
    rising = np.diff(cuts.right, prepend=cuts.least) / unit
    falling = np.diff(cuts.left, append=cuts.most) / unit
    moves = moves / unit
    rows.add([*mine, *y], [*-moves, *-rising], (base - float(cuts.right[-1])) / unit + slack)
    rows.add([*mine, *y], [*moves, *falling], (cuts.most - base) / unit + slack)


def _mark(lowered: Lowered, person: Person, side: InputSide, g: int, cuts: Cuts, y: list[int], rows: _Rows) -> None:
    """Beyond the cuts next to the factual a number has changed, by however little."""
    if g not in side.changed:
        return
    indicator = len(side.inputs) + int(np.flatnonzero(side.changed == g)[0])
    own = int(np.searchsorted(cuts.left, 0.0 if lowered.step[g] else person.factual[g]))
    if own < len(y):
        rows.add([y[own], indicator], [-1.0, -1.0], -1.0)
    if own > 0:
        rows.add([y[own - 1], indicator], [1.0, -1.0], 0.0)


def _exclude(forest: PersonTrees, leaf: dict[int, int], combination: Ints, rows: _Rows) -> None:
    """Not all of these leaves together. Where one of them cannot be reached, that holds already."""
    open_ones = [
        row for row, tree in zip(combination.tolist(), forest.reachable, strict=True) if isinstance(tree, Split)
    ]
    fixed = all(tree.row == row for row, tree in zip(combination.tolist(), forest.reachable, strict=True)
                if isinstance(tree, Leaf))  # fmt: skip
    if fixed and all(row in leaf for row in open_ones):
        columns = [leaf[row] for row in open_ones]
        rows.add(columns, [1.0] * len(columns), len(columns) - 1.0)


def read_row(
    lowered: Lowered, person: Person, inputs: Inputs, values: Floats, forest: PersonTrees, cuts: dict[int, Ints]
) -> Floats:
    """The row of a solution: each number on the side of every cut that its binaries say."""
    point = read_point(lowered, person, inputs, values[: len(inputs)])
    for g, mine in forest.cuts.items():
        cell = len(mine) - int(np.round(values[cuts[g]]).sum())
        least, most = mine.ends(cell)
        if lowered.step[g]:
            steps = round((point[g] - person.factual[g]) / lowered.step[g])
            point[g] = values_after(lowered, person, g, np.array([min(max(float(steps), least), most)]))[0]
        else:
            point[g] = min(max(point[g], least), most)
    return point
