"""Rounding error bounds of the deployed model for single calls: compiled for plain networks, `model.rounding` for all.

Of a small network, the analysis in numpy takes some hundred operations on arrays of ten numbers, more than the search
itself. A chain of affine operations, shifts and ReLUs is packed once and analysed by a kernel; other models, boxes with
numbers that are too large, and everything until the kernel is compiled are left to the model's own analysis. The two
differ by rounding only, for which both have room.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.compiling import Kernels
from ifonly.model import Model, Network
from ifonly.model.kind import Precision
from ifonly.model.operations import AffineOperation, Fold, LeakyReLU, RoundedInput, Shift, Step
from ifonly.model.rounding import constant_errors, precision_constants, read_errors
from ifonly.solvers.search.rounding_kernel import layout as at

Floats = NDArray[np.float64]
MOST_WEIGHTS = 1 << 14
"""Of a network that is analysed by the kernel; a library of linear algebra is faster with more."""
MOST_OUTPUTS = 8
"""Scores that it goes back from, one by one."""


def _functions() -> tuple[Mapping[str, Any], int]:
    from ifonly.solvers.search.rounding_kernel import kernel

    return {"chain_errors": kernel.chain_errors}, at.SOURCES


def _try_out(kernel: Any) -> None:
    """No box is analysed: the arguments have the types of all calls."""
    steps, none, flat = np.zeros((1, at.STEP_COLUMNS), dtype=np.int64), np.zeros(0), np.zeros((0, 1))
    kernel.chain_errors(steps, none, none, flat, flat, flat, np.zeros((1, 1, 1)), flat, flat)


ROUNDING_KERNEL = Kernels(
    "ifonly.solvers.search.rounding_analysis:ROUNDING_KERNEL", "the analysis of rounding", _functions, _try_out
)


class RoundingAnalysis:
    """The error bounds of one model's scores over boxes of encoded rows."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.chain = packed_chain(model)
        self.constants = np.array(precision_constants(model.precision))
        if self.chain is not None:
            ROUNDING_KERNEL.prepare()

    def at(self, points: Floats) -> Floats:
        """The same at single points, shape (points, outputs)."""
        encoded = self.model.schema.encode(points)
        return self.over(encoded, encoded)

    def over(self, lower: Floats, upper: Floats) -> Floats:
        """Arrays of shape (boxes, columns) to (boxes, outputs)."""
        if self.chain is not None:
            if not ROUNDING_KERNEL.compiled:
                ROUNDING_KERNEL.look(time.perf_counter())  # never waits: the model's own analysis does as well
            if ROUNDING_KERNEL.compiled and (errors := self._compiled(*self.chain, lower, upper)) is not None:
                return errors
        return self.model.error_over(lower, upper)

    def _compiled(self, steps: NDArray[np.int64], numbers: Floats, lower: Floats, upper: Floats) -> Floats | None:
        width, size = int(steps[:, at.WIDTH].max()), np.maximum(np.abs(lower), np.abs(upper))
        with np.errstate(over="ignore", invalid="ignore"):
            read = read_errors(lower, upper, size, self.model.precision, self.model.exact)
        values, work = np.zeros((len(steps), at.VALUE_ROWS, width)), np.empty((at.WORK_ROWS, width))
        errors = np.empty((len(lower), int(steps[-1, at.WIDTH])))
        taken = ROUNDING_KERNEL.now.chain_errors(
            steps, numbers, self.constants, lower, upper, read, values, work, errors
        )
        return errors if taken else None


def packed_chain(model: Model) -> tuple[NDArray[np.int64], Floats] | None:
    """The operations of a small network, where each takes the values of the one before it; None for others."""
    if not isinstance(model.function, Network):
        return None
    graph = model.function.operation_graph
    if graph.steps[-1].fold is not None or not isinstance(graph.steps[-1].operation, AffineOperation):
        return None
    packer = _Packer(model.precision, model.function.inputs)
    for k, step in enumerate(graph.steps):
        if not packer.add(step, k):
            return None
    if graph.fold is not None and not packer.add_fold(graph.fold, graph.units):
        return None
    if packer.count > MOST_WEIGHTS or packer.steps[-1][at.WIDTH] > MOST_OUTPUTS:
        return None
    return np.array(packer.steps, dtype=np.int64), np.concatenate(packer.parts)


class _Packer:
    """Steps as integers, and their numbers one after the other."""

    def __init__(self, precision: Precision, inputs: int) -> None:
        self.precision, self.inputs = precision, inputs
        self.steps: list[list[int]] = []
        self.parts: list[Floats] = [np.zeros(0)]
        self.count = 0

    def add(self, step: Step, k: int) -> bool:
        """Can the kernel take this step?"""
        if step.sources != ((k - 1,) if k else ()):
            return False
        row = [-1] * at.STEP_COLUMNS
        self.steps.append(row)
        match step.operation:
            case RoundedInput():
                row[at.OPERATION], row[at.WIDTH] = at.INPUT, self.inputs
                return k == 0
            case AffineOperation() as affine:
                return self._affine(affine, row) and step.fold is None
            case Shift(sign=sign, bias=bias):
                width = self.steps[k - 1][at.WIDTH]
                row[at.OPERATION], row[at.WIDTH] = at.SHIFT, width
                row[at.WEIGHT], row[at.BIAS] = self._put(sign, width), self._put(bias, width)
                row[at.SIZE] = self._put(constant_errors(bias, self.precision), width)
                return step.fold is None
            case LeakyReLU(plain=True, shares=shares):
                row[at.OPERATION], row[at.WIDTH] = at.RELU, self.steps[k - 1][at.WIDTH]
                if step.fold is None:
                    return True
                row[at.SHARE] = self._put(shares[0], row[at.WIDTH])
                return len(shares) == 1 and self.add_fold(step.fold, step.units)
            case _:
                return False

    def _affine(self, affine: AffineOperation, row: list[int]) -> bool:
        weight, sizes = affine.weight, affine.sizes
        size = affine.absolute if sizes is None else sizes.weight
        if size.shape != weight.shape:
            return False
        width = len(weight)
        row[at.OPERATION], row[at.WIDTH] = at.DENSE if weight.ndim == 2 else at.DIAGONAL, width
        row[at.WEIGHT], row[at.SIZE] = self._put(weight), self._put(size)
        row[at.BIAS], row[at.WORK_BIAS] = self._put(affine.bias, width), self._put(affine.work_bias, width)
        row[at.UNDERFLOWS] = self._put(affine.underflows, width)
        if sizes is not None:
            row[at.TERMS], row[at.PEAK] = sizes.terms, self._put(np.array([sizes.peak]))
        return True

    def add_fold(self, fold: Fold, units: tuple[int, ...]) -> bool:
        """Can the kernel take this fold of the last step, over the units of one step?"""
        row = self.steps[-1]
        shape = row[at.WIDTH], self.steps[units[0]][at.WIDTH] if units else 0
        with_units = units and self.steps[units[0]][at.OPERATION] in (at.INPUT, at.RELU)
        if len(units) != 1 or not with_units or fold.weights[0].shape != shape or fold.sizes[0].shape != shape:
            return False
        row[at.FOLD], row[at.UNITS], row[at.FOLD_TERMS] = self._put(fold.weights[0]), units[0], fold.terms
        row[at.FOLD_SIZE], row[at.FOLD_BIAS] = self._put(fold.sizes[0]), self._put(fold.bias, shape[0])
        row[at.FOLD_SIZE_BIAS] = self._put(fold.size_bias, shape[0])
        row[at.FOLD_UNDERFLOWS] = self._put(fold.underflows, shape[0])
        return True

    def _put(self, numbers: Floats, width: int | None = None) -> int:
        """Where these numbers begin."""
        part = np.empty(numbers.size if width is None else width)
        part[:] = np.ravel(numbers)
        self.parts.append(part)
        self.count += len(part)
        return self.count - len(part)
