"""Memory layout of the compiled rounding analysis: a chain of operations as integers and numbers."""

from __future__ import annotations

from ifonly.compiling import fingerprint

FAST = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}, "_nrt": False}
INNER = {**FAST, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
SOURCES = fingerprint(__file__)

INPUT, DENSE, DIAGONAL, SHIFT, RELU = 0, 1, 2, 3, 4
"""Operations. Each takes the values of the step before it."""

# ---- columns of `steps` (int64), one row per step
OPERATION, WIDTH, WEIGHT, SIZE, BIAS, WORK_BIAS, UNDERFLOWS, TERMS, PEAK = range(9)
"""Where in `numbers` each part of an affine operation begins. TERMS and PEAK: of a majorant, -1 where there is none.
Of a Shift, WEIGHT has its signs and SIZE the error of its constants."""
FOLD, UNITS, FOLD_SIZE, FOLD_BIAS, FOLD_SIZE_BIAS, FOLD_UNDERFLOWS, FOLD_TERMS, SHARE = range(9, 17)
"""The same of the step's fold, over the units of one earlier step; FOLD is -1 where there is none, SHARE only of a
ReLU."""
STEP_COLUMNS = 17

# ---- rows of `values[step]`
LOW, HIGH, ERROR, LOCAL, ON, OFF, UNIT_LOW, UNIT_HIGH = range(8)
"""Exact values, the error bound of computed ones, the local error; of a ReLU: is it on or off; units of the network."""
VALUE_ROWS = 8

# ---- `constants`
UNIT, UNDERFLOW, LARGEST = 0, 1, 2
"""Of the precision: the unit roundoff, what one underflow costs, the largest number."""

# ---- rows of `work`
SIZES, FOLD_LOW, FOLD_HIGH, FOLD_ERROR, CENTRE, RADIUS, NEXT_CENTRE, NEXT_RADIUS = range(8)
WORK_ROWS = 8
