"""Memory layout of the kernels for tree ensembles.

A *cell* is what the cuts of all trees leave of a feature: an interval between two cuts, or the options that no split
parts. Cells of all features are numbered through: those of feature g are start[g] to start[g + 1] - 1, and inside a
feature they count from 0. Options have no order, so what is left of them is a set of bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ifonly.compiling import fingerprint

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

INNER = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
"""For kernels that only kernels call. They allocate nothing, and so need not count references to arrays, which would
take most of their time. Nothing here is reassociated or fused: scores are the library's, to the bit."""
ONCE = INNER
"""For kernels with a single caller: LLVM inlines them there (`link_time`)."""
OUTER = {"nogil": True, "error_model": "numpy"}
"""For kernels that Python calls: `with_cache(SOURCES, **OUTER)`."""

SOURCES = fingerprint(__file__)

ADDITIVE, MAXIMUM = 0, 1
"""How costs become a distance: their sum (under l2 of squares), or their maximum."""
DONE, SLICE, MEMORY, LOOK, LOST = 0, 1, 2, 3, 4
"""Why the search returned: finished, the slice of nodes is used up, the stack is full, a box must be looked at, a box
has lost the row that networks accept."""
UNKNOWN, NOT_ASKED = -1, -2
"""In the place of that row (`Stack.other`)."""

# ---- Forest.node (int32 rows)
COLUMN, CUT, LEFT, RIGHT, LEAF = 0, 1, 2, 3, 4
"""A cell <= CUT goes left; of options those in row CUT of `Forest.sets`. COLUMN is -1 at a leaf."""
# ---- Forest.limit (int32 rows): what a leaf asks of one feature
FEATURE, LEAST, MOST = 0, 1, 2
# ---- Forest.summing (float64 rows, one entry per output)
BEGIN, SHIFT, DIVISOR, SCALE, SINGLE = 0, 1, 2, 3, 4
"""How sums become scores; SINGLE: does the library add up in float32?"""
# ---- Forest.demand (float64 rows, one entry per condition)
NEED, SLACK, OFFSET, REQUIRED = 0, 1, 2, 3
"""What sums of leaves must reach; how far they can be from the library's scores; d, and what C s - d must reach."""
# ---- PricedPerson.cost, PricedPerson.value: the first index
FREE, MUST = 0, 1
"""As it is; and where the feature has to change, though its cell may stay."""

# ---- LeafTable.tree (int64 rows): one entry per tree that is still open, and condition
CONDITION, WORD, TREE_OF, LISTED = 0, 1, 2, 3
"""The condition it adds to; where its words of bits begin; the tree it is; how many leaves it has, dropped ones too."""
# ---- LeafTable.lost_at: the first index
BELOW, ABOVE = 0, 1
"""Leaves that are lost when a cell is dropped from below, and from above. Of choices there is only the first."""

# ---- LeafTable.number
BEYOND, BASE, GUARD = 0, 1, 2
"""Of what is priced: the bound; what it is without crossings and leaves; what is given away for rounding."""

# ---- State.number, State.count
BEST, LEFT_OVER = 0, 1
"""The cost of the best point; the least bound of a box that could not be split any more."""
HEIGHT, NODES = 0, 1


class Forest(NamedTuple):
    """A question: the same for all people."""

    norm: int
    choice: Bytes
    """(feature): has it options?"""
    counts: Bytes
    """(feature): does it count that it changes?"""
    start: Ints
    node: Places
    sets: Words
    """(set, word): the cells of a choice that go left."""
    roots: Places
    first_leaf: Ints
    """(tree): how many leaves the trees before it have."""
    rank: Places
    """(condition, leaf): its place among all leaves, tree by tree, from the best for the condition to the worst."""
    value: Floats
    """(condition, leaf): what a leaf adds to C s - d."""
    limit_at: Ints
    """(leaf): where its limits begin; they are merged, one per feature."""
    dead: Bytes
    """(leaf): no row reaches it."""
    limit: Places
    limit_set: Words
    raw: Floats
    """(leaf, output), or (leaf, 1): the library's own values."""
    adds_to: Places
    summing: Floats
    coefficients: Floats
    demand: Floats
    pairs: Ints
    ruled: bool
    """Are there rules that only a look at the row can judge?"""


class PricedPerson(NamedTuple):
    """One person: what each cell costs and the value that it is entered at; the cell and the kinds of change."""

    cost: Floats
    value: Floats
    own: Ints
    """(feature): the cell that the factual is in."""
    stays: Bytes
    """(feature): may it stay as it is?"""
    most: int
    """How many features may change."""
    halt: Ints
    """One number, not 0 as soon as time is up (`solvers.search.deadline`): no better point is looked for."""


class CellRules(NamedTuple):
    """Rules as clauses for one person: in every row, one inequality of each holds (constant + sum of terms >= 0)."""

    clause_at: Ints
    """(clause): where its inequalities begin."""
    term_at: Ints
    """(inequality): where its terms begin, one per feature."""
    feature: Ints
    weight_at: Ints
    """(term): where the weights of the columns of its feature begin."""
    weight: Floats
    constant: Floats
    """With what rounding may take from the sum."""
    largest_at: Ints
    """(term): where the cells of its feature begin."""
    largest: Floats
    """The largest that the term is in each."""


class LeafTable(NamedTuple):
    """The trees as far as one person's ball reaches them: leaves as bits, best first, and what each cell costs them."""

    tree: Ints
    leaf: Places
    """(bit): the leaf it stands for."""
    gives: Floats
    """(bit): what that leaf adds to the tree's condition."""
    bit_of: Places
    """(condition, leaf): the inverse."""
    lost_at: Ints
    """(2, cell): where the leaves begin that ask for no cell beyond this one."""
    lost_word: Places
    lost_bit: Words
    lost_limit: Places
    """Of choices: the limit that the leaf has; it is lost if no other cell of it is left."""
    user_at: Ints
    """(feature): where the trees that use it begin."""
    user: Places
    settled: Floats
    """(condition): what the trees add of which one leaf is left."""
    alive: Words
    home: Places
    """(feature): the cell that prices are counted from."""
    reduced: Floats
    """(2, cell): what shares leave of its cost; and the least of that in all cells outward. Empty if not priced."""
    number: Floats
    """The numbers of what is priced."""


class Stack(NamedTuple):
    """Open boxes, the last one on top: cells left of each feature, nearest cells, leaves left, leaves of the point."""

    least: Places
    most: Places
    left: Words
    """(box, feature * word): the cells left of a choice."""
    near: Places
    must: Bytes
    alive: Words
    at: Places
    """(box, tree): the bit of the leaf that the nearest point falls into."""
    other: Places
    """Beside networks: the cells of the nearest row that they accept. First UNKNOWN where a box has lost it, and
    NOT_ASKED where networks are not asked about boxes."""
    bound: Floats


class State(NamedTuple):
    """What is known so far, and buffers."""

    best: Places
    """The cells of the best point, then for each feature whether it must change."""
    number: Floats
    count: Ints
    weight: Floats
    """(2, cell): how much the leaves gain on either side of it; empty between nodes."""
    touched: Ints
    sums: Floats
    """(2, condition): of the best leaves, and of the nearest point."""
    preferred: Ints
    """(feature): of each choice the limit that is preferred most."""
    leaves: Places
    """(tree): of a point."""
    scores: Floats
    """(output): of a point."""


@intrinsic
def lowest_bit(typing_context, word):
    """The place of the lowest bit that is set."""

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _lowest_bit(word):
    bits = int(word)
    return (bits & -bits).bit_length() - 1


lowest_bit.py_func = _lowest_bit  # until it is compiled
