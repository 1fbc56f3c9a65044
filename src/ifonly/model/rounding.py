"""Rounding error bounds: forward error analysis of a deployed model along its own operation graph.

A dot product of n terms, summed in any order in precision u, is off by at most gamma_n * sum |w_j||h_j| with
gamma_n = n u / (1 - n u), and by underflow. With magnitudes m bounded by interval arithmetic over a box of rows, and
e_j the error bound of the values that an operation takes, its local error is

    d = gamma_{n+2} (|W| (m + e) + |b|) + 2 t l (1 + sum_j (m + e)_j)        AffineOperation
    d = u (m + e)                                                            Shift
    d = gamma_1 (m_1 + e_1 + m_2 + e_2)                                      Total
    d = gamma_3 |below| (m + e)                                              LeakyReLU, where below is not 0, 1 or -1
    d = |bound - the bound in this precision|                                Clip
    d = the error of the library's own function                              Smooth, PiecewiseLinear

and 0 where values are only selected (Gather, Maximum). The errors of its sources are multiplied by its slopes: |W| e,
their sum, at most the larger. e_0 is the error of rounding the row to the model's precision: 0 where every value of a
column is a number of that precision, as 0 and 1 are.

The bound is the sum of |J_i| d_i over all operations i, where J_i is the derivative of the scores by the values of
operation i, as an interval over the box (`error_propagation`). A ReLU that is on (or off) for exact and for computed
values alike passes the error on as it is (or not at all); any other has a slope between 0 and 1. The slopes of the
other piecewise-linear operations likewise; the two slopes of a Maximum add up to 1; a smooth curve is between its least
and its largest slope over its exact and computed arguments. Signs are kept in J, so this is far below
|W_L| ... |W_{i+1}| d_i in deep networks, above all at a single row, where nearly every ReLU is on or off.

t is the least normal number. Underflow may cost as much whenever a result is below it, and, on machines that flush
their operands, of every weight and every value that is: so l_i = 2 n + 3 + sum_j |W_ij| counts the operations of a
neuron and the weights that its inputs are multiplied with (`underflow_counts`). Where a number inside the model may be
beyond the largest of its precision, the bound is infinite.

"Exact" is the network. Where its layers are products of several operations (scaling, encoding, two linear layers in a
row), the roundings of the importer, which multiplied them in float64, are added at the units that read them (`Fold`).
`FUSED` roundings more are allowed for everywhere, for runtimes that fuse operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.model.error_propagation import propagated_errors
from ifonly.model.kind import Precision
from ifonly.model.operations import (
    AffineOperation,
    Clip,
    Floats,
    Fold,
    Gather,
    LeakyReLU,
    Lifted,
    Maximum,
    OperationGraph,
    PiecewiseLinear,
    RoundedInput,
    Shift,
    Smooth,
    Step,
    Total,
)
from ifonly.model.products import rows_times
from ifonly.schema import Choice, Integer, Numeric, Schema

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
LEAST = {"float64": 2.0**-1022, "float32": 2.0**-126}
LARGEST = {"float64": float(np.finfo(np.float64).max), "float32": float(np.finfo(np.float32).max)}
FUSED = 8
Box: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The least and the largest value of each column; one row per box."""


def column_box(schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and largest value of each encoded column."""
    lower, upper = np.zeros(len(schema.columns)), np.ones(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Numeric):
            lower[columns], upper[columns] = feature.lower, feature.upper
        else:
            lower[columns], upper[columns] = feature.codes.min(axis=0), feature.codes.max(axis=0)
    return lower, upper


def constant_columns(schema: Schema) -> NDArray[np.float64]:
    """Of each encoded column that is the same in every row (an ordinal's first, for instance) its value; 0
    otherwise."""
    value = np.zeros(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Choice):
            value[columns] = np.where((feature.codes == feature.codes[0]).all(axis=0), feature.codes[0], 0.0)
    return value


def exact_columns(schema: Schema, precision: Precision) -> NDArray[np.bool_]:
    """The encoded columns of which every value that a row of the schema can have is a number of the precision."""
    if precision == "float64":
        return np.ones(len(schema.columns), dtype=np.bool_)
    exact = np.zeros(len(schema.columns), dtype=np.bool_)
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Choice):
            exact[columns] = (feature.codes.astype(np.float32) == feature.codes).all(axis=0)
        elif isinstance(feature, Integer):
            whole = float(feature.lower).is_integer() and float(feature.step).is_integer()
            exact[columns] = whole and max(abs(feature.lower), abs(feature.upper)) <= 1.0 / UNIT[precision]
    return exact


def rounding_error_bound(
    operations: OperationGraph, box: Box, precision: Precision, exact: NDArray[np.bool_]
) -> Floats:
    """A rigorous bound on |deployed score - real score| for the rows of each box, arrays of shape (boxes, columns).

    `exact`: columns of which every value is a number of the precision.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        forward = _Forward(box, precision, exact)
        for step in operations.steps:
            forward.add_step(step)
        if operations.fold is not None:
            forward.add_error(forward.folded(operations.fold, operations.units)[2])
        propagated = propagated_errors(
            operations, [value[2] for value in forward.values], forward.local_errors, forward.slopes
        )
        error = np.fmin(forward.values[-1][2], propagated)
        bounded = np.isfinite(error) & (forward.largest < forward.most)
        return np.asarray(np.where(bounded, error * (1.0 + 1e-9), np.inf))


Value: TypeAlias = tuple[Floats, Floats, Floats]
"""The least and the largest exact values of a step, and the error bound of the computed ones."""


class _Forward:
    """Forward pass of interval arithmetic: values and error bounds of each step, and its local error and slopes."""

    def __init__(self, box: Box, precision: Precision, exact: NDArray[np.bool_]) -> None:
        self.unit, self.least, self.most = precision_constants(precision)
        size = np.maximum(np.abs(box[0]), np.abs(box[1]))
        self.largest = size.max(axis=1, keepdims=True)
        self._input = *box, read_errors(*box, size, precision, exact)
        self._precision = precision
        self.values: list[Value] = []
        self.units: list[Box] = []
        """Intervals of the network's units at each step; empty arrays where it has none."""
        self.local_errors: list[Floats | None] = []
        """The local error of each step; None for 0."""
        self.slopes: list[Box | None] = []
        """Of each nonlinear step, the least and the largest slope."""

    def add_step(self, step: Step) -> None:
        """Bound the values of one more step."""
        sources, slopes = [self.values[k] for k in step.sources], None
        local_error: Floats | None
        units: Box = (np.zeros((len(self.largest), 0)),) * 2
        match step.operation:
            case RoundedInput():
                value, units = self._input, self._input[:2]
                local_error = value[2]
            case AffineOperation() as affine:
                value, local_error = self._affine(affine, *sources[0])
            case Shift() as shift:
                value, local_error = self._shift(shift, *sources[0])
            case Total(sign=sign):
                value, local_error = self._total(sources[0], sources[1], sign)
            case Gather(columns=columns):
                selected = [
                    s if c is None else tuple(part[:, c] for part in s) for s, c in zip(sources, columns, strict=True)
                ]
                value = tuple(np.concatenate(parts, axis=1) for parts in zip(*selected, strict=True))  # type: ignore[assignment]
                local_error = None
            case Lifted(lift=lift):
                low, high = (end + lift for end in self.units[step.sources[0]])
                units = low - 1e-15 * np.abs(low), high + 1e-15 * np.abs(high)
                value, local_error = (low, high, np.zeros_like(low)), None  # no step takes it
            case LeakyReLU() | Clip() | Maximum() | Smooth() | PiecewiseLinear():
                value, local_error, units, slopes = self._nonlinear(step, sources)
        self.values.append(value)
        self.units.append(units)
        self.local_errors.append(local_error)
        self.slopes.append(slopes)

    def add_error(self, more: Floats) -> None:
        """More local error of the last step."""
        low, high, error = self.values[-1]
        before = self.local_errors[-1]
        self.values[-1], self.local_errors[-1] = (low, high, error + more), more if before is None else before + more

    # ------------------------------------------------------------------ affine operations

    def _affine(self, affine: AffineOperation, lower: Floats, upper: Floats, error: Floats) -> tuple[Value, Floats]:
        sizes, absolute = affine.sizes, affine.absolute
        size = np.maximum(np.abs(lower), np.abs(upper)) + error
        total = size.sum(axis=1, keepdims=True)
        if sizes is None:
            terms = (size > 0.0).sum(axis=1, keepdims=True) + (2.0 + FUSED)  # adding a zero is exact
        else:
            terms = sizes.terms + 2.0 + FUSED
            self._record_size(sizes.peak * (1.0 + total))
        work = _times(size, absolute if sizes is None else sizes.weight) + affine.work_bias
        self._record_size(work)
        below = affine.underflows * (1.0 + (total if affine.weight.ndim == 2 else size))
        rounding = _gamma(terms, self.unit) * work + 2.0 * self.least * below
        both = _times(np.concatenate([0.5 * (upper - lower), error]), absolute)
        centre = _times(0.5 * (lower + upper), affine.weight) + affine.bias
        radius = both[: len(error)] + 1e-12 * work + LEAST["float64"] * below
        return (centre - radius, centre + radius, both[len(error) :] + rounding), rounding

    def _shift(self, shift: Shift, lower: Floats, upper: Floats, error: Floats) -> tuple[Value, Floats]:
        ends = lower * shift.sign + shift.bias, upper * shift.sign + shift.bias
        size = np.maximum(np.abs(ends[0]), np.abs(ends[1])) + error
        constant_error = constant_errors(shift.bias, self._precision)
        rounding = self.unit * (1.0 + 1e-9) * (size + constant_error) + constant_error + 3.0 * self.least
        rounding = np.where(shift.bias == 0.0, 0.0, rounding)  # nothing is added
        self._record_size(size)
        slack = np.where(shift.bias == 0.0, 0.0, 1e-12 * (size + np.abs(shift.bias)))
        return (np.minimum(*ends) - slack, np.maximum(*ends) + slack, error + rounding), rounding

    def _total(self, one: Value, other: Value, sign: float) -> tuple[Value, Floats]:
        ends = (other[0], other[1]) if sign > 0.0 else (-other[1], -other[0])
        sizes = [np.maximum(np.abs(low), np.abs(high)) + error for low, high, error in (one, other)]
        size = sizes[0] + sizes[1]
        rounding = _gamma(1.0 + FUSED, self.unit) * size + 4.0 * self.least
        self._record_size(size)
        slack = 1e-15 * size
        return (one[0] + ends[0] - slack, one[1] + ends[1] + slack, one[2] + other[2] + rounding), rounding

    # ------------------------------------------------------------------ nonlinear operations

    def _nonlinear(self, step: Step, sources: list[Value]) -> tuple[Value, Floats | None, Box, Box]:
        """A step with units of the network: its value, its local error, its units, and its slopes."""
        operation, width = step.operation, sources[0][0].shape[1]
        if isinstance(operation, Smooth):
            value, local_error, slopes = self._smooth(operation, step, *sources[0])
            return value, local_error, value[:2], slopes
        if isinstance(operation, PiecewiseLinear):
            return self._piecewise_linear(operation, step, *sources[0])
        if step.fold is None:
            value, slopes = _relu(*sources[0])
            return value, None, value[:2], slopes
        low, high, folded = self.folded(step.fold, step.units)
        units = np.maximum(low, 0.0), np.maximum(high, 0.0)
        groups = [folded[:, k : k + width] for k in range(0, folded.shape[1], width)]
        match operation:
            case LeakyReLU(shares=shares):
                local_error = _sum(share * group for share, group in zip(shares, groups, strict=True))
                source = sources[0]
                if not operation.plain:
                    value, local_error, slopes = self._leaky_relu(operation, *source, local_error)
                else:  # the units are the value: what is known of them is known of it
                    low, high = np.fmax(low, source[0] - local_error), np.fmin(high, source[1] + local_error)
                    value, slopes = _relu(low, high, source[2] + local_error)
                    local_error = slopes[1] * local_error
            case Clip():
                value, local_error, slopes = self._clip(operation, *sources[0], _sum(groups))
            case _:
                between = low[:, :width] - groups[0], high[:, :width] + groups[0]
                value, local_error, slopes = self._maximum(sources[0], sources[1], between, _sum(groups))
        return value, local_error, units, slopes

    def _smooth(
        self, smooth: Smooth, step: Step, low: Floats, high: Floats, error: Floats
    ) -> tuple[Value, Floats, Box]:
        """The curve is taken of the affine map that the network has, which the model's own may miss by `folded`."""
        folded = np.zeros_like(error)
        if step.fold is not None:
            least, most, folded = self.folded(step.fold, step.units)
            low, high = np.fmax(least, low - folded), np.fmin(most, high + folded)
        taken = low - error - folded, high + error + folded
        slopes = smooth.curve.slopes(*taken)
        steepest = np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))
        local_error = steepest * folded + smooth.curve.library_error(self.unit, *taken) + self.least
        return (*smooth.curve.values(low, high), steepest * error + local_error), local_error, slopes

    def _piecewise_linear(
        self, bent: PiecewiseLinear, step: Step, low: Floats, high: Floats, error: Floats
    ) -> tuple[Value, Floats, Box, Box]:
        """Every unit takes the x that the network has, which the model's own may miss by `folded`."""
        assert step.fold is not None
        least, most, folded = self.folded(step.fold, step.units)
        around = error + folded.max(axis=1, keepdims=True)
        slopes = bent.slopes((low - around)[:, 0], (high + around)[:, 0])
        steepest = np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))
        local_error = rows_times(folded, np.abs(bent.bends)) + bent.error + self.least
        value = (*bent.range(low[:, 0], high[:, 0]), steepest * error + local_error)
        return value, local_error, (np.maximum(least, 0.0), np.maximum(most, 0.0)), slopes

    def _leaky_relu(
        self, leaky: LeakyReLU, low: Floats, high: Floats, error: Floats, folded: Floats
    ) -> tuple[Value, Floats, Box]:
        below, around = np.broadcast_to(leaky.below, low.shape), error + folded
        on, off = low - around >= 0.0, high + around <= 0.0
        slopes = tuple(np.where(on, 1.0, np.where(off, below, f(below, 1.0))) for f in (np.minimum, np.maximum))
        size = np.maximum(-low, 0.0) + around
        multiplied = ~on & ~np.isin(below, (-1.0, 0.0, 1.0))
        rounding = _gamma(3.0, self.unit) * np.abs(below) * size + 2.0 * self.least * (2.0 + np.abs(below) + size)
        rounding += UNIT["float64"] * (1.0 + np.abs(below)) * (np.maximum(np.abs(low), np.abs(high)) + around)
        silent = (slopes[0] == 0.0) & (slopes[1] == 0.0)  # an exact zero in any arithmetic
        local_error = np.where(silent, 0.0, folded + np.where(multiplied, rounding, 0.0))
        steepest = np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))
        self._record_size(np.abs(below) * size)
        ends = [np.where(end > 0.0, end, below * end) for end in (low, high, np.clip(0.0, low, high))]
        slack = folded + np.where(multiplied, 1e-15 * np.abs(below) * size, 0.0)
        value = np.minimum.reduce(ends) - slack, np.maximum.reduce(ends) + slack, steepest * error + local_error
        return value, local_error, slopes  # type: ignore[return-value]

    def _clip(self, clip: Clip, low: Floats, high: Floats, error: Floats, folded: Floats) -> tuple[Value, Floats, Box]:
        inside = (low - error >= clip.lower) & (high + error <= clip.upper)
        outside = (high + error <= clip.lower) | (low - error >= clip.upper)
        constant_error = np.maximum(
            *(
                constant_errors(np.where(np.isfinite(end), end, 0.0), self._precision)
                for end in (clip.lower, clip.upper)
            )
        )
        local_error = folded + np.where(inside, 0.0, constant_error + self.least)
        slopes = np.where(inside, 1.0, 0.0), np.where(outside, 0.0, 1.0)
        ends = (np.clip(end, clip.lower, clip.upper) for end in (low, high))
        lower, upper = (end + side * folded for end, side in zip(ends, (-1.0, 1.0), strict=True))
        return (lower, upper, slopes[1] * error + local_error), local_error, slopes

    def _maximum(self, one: Value, other: Value, between: Box, folded: Floats) -> tuple[Value, Floats, Box]:
        """The slope is that of the first; the second has the rest of 1."""
        error = one[2] + other[2] + folded
        low, high = np.fmax(one[0] - other[1], between[0]), np.fmin(one[1] - other[0], between[1])
        first, second = low - error >= 0.0, high + error <= 0.0
        slopes = np.where(first, 1.0, 0.0), np.where(second, 0.0, 1.0)
        local_error = folded + self.least
        most = np.where(first, one[2], np.where(second, other[2], np.maximum(one[2], other[2])))
        ends = np.maximum(one[0], other[0]) - folded, np.maximum(one[1], other[1]) + folded
        return (*ends, most + local_error), local_error, slopes

    def folded(self, fold: Fold, steps: tuple[int, ...]) -> Value:
        """The least and largest values of an affine map of units, and the importer's rounding error in it."""
        centre, radius, work = fold.bias, np.zeros_like(fold.bias), fold.size_bias
        all_sizes, terms = np.ones(1), float(fold.terms)
        for weight, absolute, size, k in zip(fold.weights, fold.absolute, fold.sizes, steps, strict=True):
            low, high = self.units[k]
            taken = np.maximum(np.abs(low), np.abs(high))
            centre = centre + _times(0.5 * (low + high), weight)
            radius = radius + _times(0.5 * (high - low), absolute)
            work = work + _times(taken, size)
            all_sizes = all_sizes + taken.sum(axis=1, keepdims=True)
            terms += low.shape[1]
        below = LEAST["float64"] * fold.underflows * all_sizes
        local_error = _gamma(terms, UNIT["float64"]) * work + 2.0 * below if fold.terms else np.zeros_like(work)
        radius = radius + 1e-12 * work + below
        return centre - radius, centre + radius, local_error

    def _record_size(self, size: Floats) -> None:
        self.largest = np.maximum(self.largest, size.max(axis=1, keepdims=True) * (1.0 + 1e-9))


def precision_constants(precision: Precision) -> tuple[float, float, float]:
    """The unit roundoff, what one underflow costs (the importer's own included), and the largest number."""
    return UNIT[precision], LEAST[precision] + LEAST["float64"], LARGEST[precision]


def constant_errors(numbers: Floats, precision: Precision) -> Floats:
    """The error of rounding constants to the precision of the model."""
    if precision == "float64":
        return np.zeros_like(numbers)
    return np.asarray(np.abs(numbers.astype(np.float32).astype(np.float64) - numbers))


def _sum(parts: Iterable[Floats]) -> Floats:
    first, *others = parts
    for other in others:
        first = first + other
    return first


def _relu(low: Floats, high: Floats, error: Floats) -> tuple[Value, Box]:
    """Its value, and slopes that are 0, 1, or anything between."""
    on, off = low - error >= 0.0, high + error <= 0.0
    value = np.maximum(low, 0.0), np.maximum(high, 0.0), np.where(off, 0.0, error)  # off: a zero in any arithmetic
    return value, (on.astype(np.float64), 1.0 - off.astype(np.float64))


def read_errors(
    lower: NDArray[np.float64], upper: NDArray[np.float64], size: NDArray[np.float64], precision: Precision,
    exact: NDArray[np.bool_],
) -> NDArray[np.float64]:  # fmt: skip
    """The error of rounding a row to the precision: of one value that is known, of any in an interval."""
    if precision == "float64":
        known = any_value = np.zeros_like(size)
    else:
        known = np.abs(lower.astype(np.float32).astype(np.float64) - lower)
        any_value = np.where(exact, 0.0, UNIT[precision] * size)
    least = LEAST[precision]
    flushed = np.where((size > 0.0) & (lower < least) & (upper > -least), least, 0.0)
    return np.where(lower == upper, known, any_value) + flushed


def _times(values: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    return values * weight if weight.ndim == 1 else rows_times(values, weight)


def _gamma(terms: Any, unit: float) -> Any:
    return terms * unit / (1.0 - terms * unit)
