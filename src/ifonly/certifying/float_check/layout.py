"""Memory layout of the floating-point check, and how its kernels are compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.compiling import fingerprint

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

FAST = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
ALLOCATING = {**FAST, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INNER = {**ALLOCATING, "_nrt": False}
"""For kernels that only kernels call. Those that allocate nothing need not count references to arrays."""
ONCE = INNER
"""For kernels with a single caller: LLVM inlines them there (`link_time`)."""
OUTER = FAST
"""For kernels that Python calls (`with_cache`). They must close over `SOURCES`: numba looks only at the file of what it
caches.
"""
SOURCES = fingerprint(__file__)

ADDITIVE, SQUARED, MAXIMUM = 0, 1, 2
SPLIT, EMPTY, CLOSED, OPEN = 0, 1, 2, 3
"""What became of a node: split, nothing left in it, closed by rows, or not decided here."""
RELATIVE = 1e-12
"""More than rounding does to costs and lengths."""
TIE = 1e-9
"""Nearer to a tie than this, which of two slopes the checker takes is not decided here."""
DOUBT = 8.0
"""Slacks: how far bounds may be from the checker's, when it comes to ties. Far from zero a slack is no small thing."""
FOR_ROWS = 100.0
"""Slacks of hidden neurons that a row has."""
NEAR = 1000.0
"""How many times nearer than what is left open a tie may be before its box is called doubtful."""
SPARED = 1e-3
"""Of what is narrow for a decision, what a row should have to spare: nothing follows from it."""
LEAST = 1e-290
"""Multipliers that are smaller, or larger than its inverse, are doubtful."""
FARTHEST = 1e6
"""How much more than usual a difference may count for."""
MOST_ROWS, MOST_HINTS = 48, 24
REFINED = 4
"""Rounds of rows with the slopes of the present solution."""
ANSWERS = 40
"""Of a region to multipliers, at most."""

# rows of ProofQuestion.index, ProofQuestion.price, Work.F, Work.R, Work.I
CHOICE, START, SIZES, WEIGHT_AT, BIAS_AT, LITERALS = 0, 1, 2, 3, 4, 5
INDEX_ROWS = 6
RATE, JUMP, STEP = 0, 1, 2
UP, DOWN, ITEM_RATE, ITEM_JUMP, MOVED = 0, 1, 2, 3, 4
COST, PLANE, Y, Y_LOW, PIECE_COST, PIECE_GAIN, PIECE_REACH = 5, 6, 7, 8, 9, 10, 11
ZC, V, W, ACT, RULE, BASE, SIZE, PATTERN = 12, 13, 14, 15, 16, 17, 18, 19
FORCED, ROW_SLACK, NARROW = 20, 21, 22
FLOAT_ROWS = 23
CONSTANT, SLACK, SCALE, SHARE, MULTIPLIER, TRIAL, SPARE = 0, 1, 2, 3, 4, 5, 6
MULTIPLIER_ROWS = 7
FIRST, IS_CHOICE, PIECE_TO, PIECE_FROM, PIECE_DONE, COLUMN = 0, 1, 2, 3, 4, 5
INT_ROWS = 6
HEAD = 8
"""Numbers at the start of a record; see `ifonly.solvers.search.record`."""


class ProofQuestion(NamedTuple):
    """A question and a person, in natural units; the last layer holds the conditions."""

    norm: int
    layers: int
    index: Ints
    price: Floats
    """(3, feature): cost of a unit of change (l2: of a squared one), cost of any change, step of integers."""
    weights: Floats
    biases: Floats
    first: Floats
    """(neuron of layer 0, column)."""
    z: Floats
    cost: Floats
    """(column): costs of options."""
    option: Ints
    slack: Floats
    """(neuron, conditions last): what is added to every bound."""
    narrow: Floats
    """(neuron, conditions last): what is decided by less than this is doubtful. It does not hang on the slack."""
    radius: float


class Work(NamedTuple):
    """Buffers, and the boxes on the way from the root to the present node."""

    F: Floats
    I: Ints
    Wc: Floats
    bounds: Floats
    """(2, hidden neuron): bounds in the region, lower and upper."""
    low: Floats
    high: Floats
    mask: Bytes
    side: Bytes
    A: Floats
    """(row, compact column): planes."""
    R: Floats
    """(7, row): constant, slack, scale, largest scaled coefficient, multiplier, the multiplier under trial, and what
    the row should have to spare."""
    about: Ints
    """(3, row): layer, neuron, sign."""
    bits: Bytes
    """(row, hidden neuron): slopes."""
    doubtful: Bytes
    """(1): something about the present node was decided by a narrow margin; exact arithmetic should look at it."""
    tableau: Floats
    names: Ints
    """(2, line or column): the variables of the tableau: rows, then answers."""
    answers: Floats
    """(answer, compact column)."""


def new_buffers(width: int) -> tuple[Floats, Ints]:
    """Work.F and Work.I for so many columns."""
    return np.zeros((FLOAT_ROWS, width)), np.zeros((INT_ROWS, width + 1), dtype=np.int64)
