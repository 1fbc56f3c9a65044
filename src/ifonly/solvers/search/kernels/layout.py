"""Memory layout of the kernels: the rows of their arrays, by name.

A kernel that takes fifty arrays compiles fifty times slower than one that takes five, and every array in a tuple is
copied at every call, so buffers of one shape share a two-dimensional array and are named by their row: `F[UP, k]` is
how far item k can go up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.compiling import fingerprint

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_FAST = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}, "_nrt": False}
"""Sums may be reassociated and fused (the error bounds hold for any order); NaN and infinity keep their meaning.
Kernels allocate nothing, and so need not count references to arrays, which took a third of their time.
"""
INNER = {**_FAST, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For kernels that only kernels call. They are not cached: a cached caller holds its callees."""
ONCE = INNER
"""For kernels with a single caller: LLVM inlines them there (`link_time`)."""
OUTER = _FAST
"""For kernels that Python calls (`with_cache`). They must close over `SOURCES`: numba looks only at the file of what it
caches.

A plain int or bool that is written where an INNER kernel is called is compiled for, value by value; `np.int64(2)` is
not.
"""

SOURCES = fingerprint(__file__)

ADDITIVE, SQUARED, MAXIMUM = 0, 1, 2
"""How costs become a distance: their sum, the root of their sum, their maximum."""
REAL, INTEGER, CHOICE = 0, 1, 2
"""Kinds of feature. Numbers are searched as changes from the factual: reals in their own unit, integers (and reals that
have a grid) in steps. Where the factual is off its grid, changes are 0 and
offset + k for whole k, where 0 < offset < 1 (its grid offset).
"""
RULE = 3
"""What a rule's neuron has as its side."""
NEVER, BY_RULE, ALWAYS = 0, 1, 2
"""When the ReLUs of a node are probed."""
DONE, SLICE, MEMORY = 0, 1, 2
"""Why the search returned: finished, the slice of nodes is used up, the pool of nodes is full."""

# ---- Pack.index (int64 rows)
KIND, START, SIZES, WEIGHT_AT, BIAS_AT = 0, 1, 2, 3, 4
RULE_LAYER, RULE_PLACE = 5, 6
"""Where the hidden neurons are that stand for rules. Their pre-activations must be >= 0, and nothing follows from them.
"""
PARTNERED, PARTNER = 7, 8
"""A feature, and the one without which it does not change."""
UNCOUNTED = 9
"""Not 0: that the feature changes does not count."""
READS_FROM, READS_TO, GROUP = 10, 11, 12
"""Of each neuron, outputs last: which part of the layer below it reads, and its group: neurons and conditions that are
connected by weights above the first layer, as those of one model of several are (`groups`). RULE_GROUP: no condition
depends on it."""
RULE_GROUP, ALL_GROUPS = np.int64(-1), np.int64(-2)
TOUCHES = 13
"""From here on one row per rule: does it look at the feature?"""
# ---- Pack.price (float64 rows, one entry per feature)
RATE, JUMP, RATE_DOWN = 0, 1, 2
# ---- PackedPerson.need (float64 rows, one entry per condition)
LOW, HIGH, AIM = 0, 1, 2
HOLDS = 2
"""For rules, whose entries follow those of the conditions, in the place of AIM: 1 if the factual meets the rule. Then
every point that leaves the rule's features alone does, too."""

# ---- Scratch.F (float64 rows): per item of the node
UP, DOWN, ITEM_RATE, ITEM_JUMP, OFFSET, GAIN, RATIO, TAKE, TAKE_BEST, SCORE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
BASE, X = 10, 11
"""Per feature: the node's cheapest corner, and the point under consideration."""
COLUMN_COST, PLANE, PLANE_BEST, Y = 12, 13, 14, 15
"""Per compact column."""
NU, NU_BEST, ALPHA, PATTERN, ACT, V, OUT, ZC = 16, 17, 18, 19, 20, 21, 22, 23
"""Per neuron: coefficient in the last plane, in the binding one, lower slopes, activity, pre-activations, and buffers.
"""
ITEM_DOWN, ITEM_GRID_OFFSET = 24, 25
"""Per item: the rate of going down (ITEM_RATE is that of going up); the grid offset of an integer whose own value is in
the box, and 0 where changes from the base are whole."""
LOSS = 26
"""Per neuron: what rounding can do to its pre-activation as a combination of the layer below, in the node. At the end
of the row: what it can do to the last plane, to a sum of 1 (0: the row is not filled), and what underflow can take."""
PLANE_LOSS, UNIT_LOSS, LOST = -1, -2, -3
OMEGA, PI = 27, 28
"""Per neuron, and per condition: the multipliers of the last relaxation that was bounded."""
ADDED = PLANE_BEST
"""Per column, in the buffers of `vertices`: what their rows add to a plane."""
CONDITION_BOUND = 29
"""Per condition of several groups: the bound of its plane when it was last made in the node."""
GAIN_UP, GAIN_DOWN, RATIO_UP, RATIO_DOWN = 30, 31, 32, 33
"""Per compact column: what a linear function gains at most where its coefficient is 1, or -1, and its best ratio of
gain to cost."""
FLOAT_ROWS = 34

# ---- Scratch.I (int64 rows)
FEATURE, FIRST, ITEM_KIND, TAKEN, COLUMN = 0, 1, 2, 3, 4
HALT = 5
"""In its first place, set from outside: anything but 0 ends the search of a person, in the middle of a node if need be.
What a node has skipped then leaves its bounds wider, never wrong.
"""
BOUNDED_GROUP = 6
"""By group: 1 if its neurons were bounded in this node; else they have the bounds of its parent."""
INT_ROWS = 7

# ---- Scratch.LF (float64 rows) and Scratch.LI (int64 rows): the linear program
REACH, REDUCED, UPPER, VALUE, ROW, BASIC_VALUE = 0, 1, 2, 3, 4, 5
CONSTANT, MULTIPLIER, RHS, STEP, GRADIENT, ROBUST_SHIFT = 6, 7, 8, 9, 10, 11
PROGRAM_FLOATS = 12
LP_COLUMN, LP_ITEM, NONBASIC, AT_UPPER, BASIC, IS_PLANE, ROW_KIND = 0, 1, 2, 3, 4, 5, 6
PROGRAM_INTS = 7

# ---- TriangleBuffers.F (level, float64 row) and TriangleBuffers.G (level, int64 row)
BETA, PRICE, RAY, SLANT, RATIOS, PIVOT_ROW, SCALE, BREAK = 0, 1, 2, 3, 4, 5, 6, 7
BREAKS = 10
"""Most breakpoints of a cost: rows from BREAK on; the slopes between them from SLOPE on."""
SLOPE = BREAK + BREAKS
GAPS = SLOPE + BREAKS
RELAXATION_FLOATS = GAPS + 1
PIECE, POSITION, WHERE, LAST, SIZE, NEURON, SLOT, ORDER = 0, 1, 3, 5, 6, 7, 8, 9
"""BASIC and NONBASIC have the places that they have in LI. NEURON and SLOT, at level 0 only: the neuron of each ReLU of
the program, and back (-1: none)."""
ROW_COUNT, COLUMNS, PROBING = 0, 1, 3
"""Of SIZE; at RAY: the variable of the row that shows that there is no solution, or -1. PROBING, at level 0: when ReLUs
are probed, NEVER, BY_RULE or ALWAYS."""
RELAXATION_INTS = 10
NODE_LEVEL, SIDE_LEVEL, RAISED_LEVEL = np.int64(0), np.int64(1), np.int64(2)
LEVELS = 3
"""Programs: of the node, of one side of a ReLU, and of the node with more asked for."""

# ---- Tree.number, Tree.count, Tree.num (rows), Tree.idx (rows)
LOWER, RADIUS, BEST, RESIDUAL, INHERITED = 0, 1, 2, 3, 4
"""INHERITED is the bound that the present node has from its parent."""
HEAP_SIZE, USED, NODES, PHASES, LOGGED, ROWS, STEPS, MOST_STEPS = 0, 1, 2, 3, 4, 5, 6, 7
"""With records, STEPS are the multipliers that the present node has logged, at most MOST_STEPS."""
COUNTS = 8
HEAD = 8
"""Numbers at the start of a node's record in Tree.log."""
BOUND, SPLIT_VALUE = 0, 1
SPLIT, HEAP, FREE, NAME, PARENT = 0, 1, 2, 3, 4
# ---- Tree.side
UNSPLIT_SIDE, ACTIVE, INACTIVE = 0, 1, 2
"""A ReLU that was not split on the way to a node, or the side that the node is on. (RULE, above: no ReLU at all.)"""
# ---- the second place of Tree.box, Tree.z, PackedPerson.box, PackedPerson.start
LEAST, MOST = 0, 1
GRID_OFFSET = 2
"""The third row of PackedPerson.box."""
# ---- what a row of Tree.log is about, beside a condition (>= 0) and a split ReLU (-1 - h)
CONDITIONS, BOUNDED, PROBED = -999_998, -999_999, -1_000_000
"""Multipliers of several conditions, which belong to the next row; of a node's bound; PROBED - 2 h for the active side
of neuron h, one less for the other."""


class Pack(NamedTuple):
    """A question, the same for all people."""

    norm: int
    layers: int
    gap: float
    relative_gap: float
    index: Ints  # hides tuple.index, which is not used
    price: Floats
    weights: Floats
    biases: Floats
    first: Floats
    """The first layer over unrolled columns."""
    rules: int
    pairs: int
    groups: int


class PackedPerson(NamedTuple):
    """One person: first layer at the factual, box of changes and grid offsets, allowed options, costs, own options."""

    z: Floats
    box: Floats
    mask: Bytes
    cost: Floats
    option: Ints
    slack: Floats
    """What is added to every computed bound, one number per neuron (outputs last)."""
    need: Floats
    start: Floats
    """(2, hidden neuron): bounds of the pre-activations to start from."""
    most: int
    """How many features may change."""
    lost: float
    """What underflow can take of any plane."""


class PackedPeople(NamedTuple):
    """Many people: the fields of `PackedPerson` with one more dimension in front."""

    z: Floats
    box: Floats
    mask: Bytes
    cost: Floats
    option: Ints
    slack: Floats
    need: Floats
    start: Floats
    most: Ints
    lost: Floats


class Scratch(NamedTuple):
    """Buffers of one thread."""

    F: Floats
    I: Ints
    Wc: Floats
    LF: Floats
    LI: Ints
    T: Floats
    A: Floats
    B: Bytes
    """(row, neuron): the slopes that made each row; empty when no records are kept."""


class TriangleBuffers(NamedTuple):
    """Buffers of one thread for the programs of `relaxation`; empty where none is used. Not fields of `Scratch`: more
    arrays in every call make the search of small networks slower."""

    T: Floats
    """(level, row, column): tableaus."""
    F: Floats
    G: Ints
    E: Floats
    """Two layers of neurons over the program's columns, with the constant behind."""
    items: Floats
    kinds: Ints
    columns: Floats
    """F, I and Wc of a node with numbers in one direction (`vertices`)."""
    upper: Floats
    """(above or below, neuron, column): linear functions above and below each ReLU, with the constant and what its
    terms add up to behind."""


class TriangleProgram(NamedTuple):
    """A relaxation: variables are columns, the distance of linf, a and n of each neuron, two chords and the vertices of
    each, conditions and rules, groups of options, and for linf two rows of each column."""

    width: int
    neurons: int
    rows_at: int
    extra: int
    """How many conditions and rules there are."""
    variables: int
    unit: float
    """What costs are measured in; 0 where there is no program."""
    vertices: bool
    """Are there rows of vertices?"""


class OpenNode(NamedTuple):
    """One node of a tree, as views of its arrays."""

    lo: Floats
    hi: Floats
    mask: Bytes
    zl: Floats
    zu: Floats
    side: Bytes
    counted: Bytes


class Cut(NamedTuple):
    """A node that was cut to the ball and written in compact columns, which are in the scratch."""

    items: int
    width: int
    base_cost: float
    ceiling: float
    """No point that matters costs more."""


class Tree(NamedTuple):
    """Nodes (a pool of boxes with their ReLU bounds), the heap of open ones, the best point and the counters."""

    box: Floats
    """(node, 2, feature): lower and upper ends of the changes."""
    mask: Bytes
    z: Floats
    """(node, 2, neuron): lower and upper bounds of the pre-activations."""
    side: Bytes
    """(node, neuron): ReLUs that were split on the way: UNSPLIT_SIDE, ACTIVE or INACTIVE; RULE stands for a rule."""
    counted: Bytes
    """(node, feature): features that were split on changing at all, and here count as changed."""
    num: Floats
    idx: Ints
    """SPLIT is the feature to split next, -2 - h for hidden neuron h (a ReLU at 0), or features + g to split on whether
    feature g changes at all."""
    best: Floats
    number: Floats
    count: Ints  # hides tuple.count
    log: Floats
    """Records of closed and split nodes, for proofs; empty where none are kept."""
