"""How far a deployed model can be from real arithmetic on its weights.

Standard forward error analysis, step by step along the model's own operations (`recipe`). A dot product of n terms,
summed in any order in precision u, is off by at most gamma_n * sum |w_j||h_j| with gamma_n = n u / (1 - n u), and by
what underflow takes. With magnitudes m bounded by interval arithmetic over a box of rows, and e_j how far the values
that a step takes can be from the exact ones, the step itself loses

    d = gamma_{n+2} (|W| (m + e) + |b|) + 2 t l (1 + sum_j (m + e)_j)        Stage
    d = u (m + e)                                                            Shift
    d = gamma_1 (m_1 + e_1 + m_2 + e_2)                                      Total
    d = gamma_3 |below| (m + e)                                              Bend, where below is not 0, 1 or -1
    d = |bound - the bound in this precision|                                Clip
    d = what the library's own function may lose                             Smooth

and nothing where values are only selected (Gather, Larger). It makes of the errors that come in what its slopes make of
them: |W| e, both, at most the larger. e_0 is what the row itself loses when it is rounded to the model's precision:
nothing where every value of a column is a number of that precision, as 0 and 1 are.

The bound at the end adds up what each step loses, times what the rest of the model makes of it: |J_i| d_i, where J_i
is the derivative of the scores by the step's values, as an interval over the box. A ReLU that is on (or off) for exact
and for computed values alike passes the error on as it is (or not at all), any other one passes on a share of it
between 0 and 1; the slopes of the other bends likewise, the two sides of a Larger share one whole, and a smooth curve
is between its least and its largest slope over the values that it takes, exact and computed alike. Signs are kept
in J, so this is far below |W_L| ... |W_{i+1}| d_i in deep networks, above all at a single row, where nearly every ReLU
is on or off.

t is the least normal number. A machine may lose as much whenever a result is below it, and, if it flushes what it
reads, of every weight and every value that is: so l_i = 2 n + 3 + sum_j |W_ij| counts the operations of a neuron
and the weights that its inputs are multiplied with (`losses`). Where a number inside the model may be beyond
the largest of its precision, the bound is infinite.

"Exact" is the network. Where its layers are products of several steps (scaling, encoding, two linear layers in a row),
the roundings of the importer, which multiplied them in float64, are added at the units that read them (`Fold`).
`FOLDS` roundings more are allowed for everywhere, for runtimes that fuse operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.model.error_propagation import carried_on
from ifonly.model.kind import Precision
from ifonly.model.operations import (
    AffineOperation,
    Clip,
    Floats,
    Fold,
    Gather,
    Larger,
    LeakyReLU,
    Lifted,
    OperationGraph,
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
FOLDS = 8
Box: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The least and the largest value of each column; one row per box."""


def losses(size: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many least normal numbers an affine map with these absolute weights can lose of each output by underflow, in
    units of 1 + sum |x|: one per operation, and what flushing a weight or an input may do to their product."""
    return np.asarray(2.0 * size.shape[1] + 3.0 + size.sum(axis=1) if size.ndim == 2 else 5.0 + size)


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


def recipe_error(recipe: OperationGraph, box: Box, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
    """A rigorous bound on |deployed score - real score| for the rows of each box, arrays of shape (boxes, columns).

    `exact`: columns of which every value is a number of the precision.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        forward = _Forward(box, precision, exact)
        for step in recipe.steps:
            forward.take(step)
        if recipe.fold is not None:
            forward.lose(forward.folded(recipe.fold, recipe.units)[2])
        carried = carried_on(recipe, [value[2] for value in forward.values], forward.lost, forward.slopes)
        error = np.fmin(forward.values[-1][2], carried)
        bounded = np.isfinite(error) & (forward.largest < LARGEST[precision])
        return np.asarray(np.where(bounded, error * (1.0 + 1e-9), np.inf))


Value: TypeAlias = tuple[Floats, Floats, Floats]
"""The least and the largest that a step's exact values can be, and how far the computed ones can be from them."""


class _Forward:
    """Intervals and errors on the way through a model, and what each step lost, for the way back."""

    def __init__(self, box: Box, precision: Precision, exact: NDArray[np.bool_]) -> None:
        self.unit, self.least = UNIT[precision], LEAST[precision] + LEAST["float64"]  # the importer's own underflow
        size = np.maximum(np.abs(box[0]), np.abs(box[1]))
        self.largest = size.max(axis=1, keepdims=True)
        self._given = *box, _read(*box, size, precision, exact)
        self._precision = precision
        self.values: list[Value] = []
        self.units: list[Box] = []
        """Intervals of the network's units at each step; empty arrays where it has none."""
        self.lost: list[Floats | None] = []
        """What each step lost of its own; None for nothing."""
        self.slopes: list[Box | None] = []
        """Of each step that bends, the least and the largest slope."""

    def take(self, step: Step) -> None:
        """One step more."""
        sources, slopes = [self.values[k] for k in step.sources], None
        lost: Floats | None
        units: Box = (np.zeros((len(self.largest), 0)),) * 2
        match step.operation:
            case RoundedInput():
                value, units = self._given, self._given[:2]
                lost = value[2]
            case AffineOperation() as stage:
                value, lost = self._stage(stage, *sources[0])
            case Shift() as shift:
                value, lost = self._shift(shift, *sources[0])
            case Total(sign=sign):
                value, lost = self._total(sources[0], sources[1], sign)
            case Gather(columns=columns):
                picked = [
                    s if c is None else tuple(part[:, c] for part in s) for s, c in zip(sources, columns, strict=True)
                ]
                value = tuple(np.concatenate(parts, axis=1) for parts in zip(*picked, strict=True))  # type: ignore[assignment]
                lost = None
            case Lifted(lift=lift):
                low, high = (end + lift for end in self.units[step.sources[0]])
                units = low - 1e-15 * np.abs(low), high + 1e-15 * np.abs(high)
                value, lost = (low, high, np.zeros_like(low)), None  # nobody takes it
            case LeakyReLU() | Clip() | Larger() | Smooth():
                value, lost, units, slopes = self._bent(step, sources)
        self.values.append(value)
        self.units.append(units)
        self.lost.append(lost)
        self.slopes.append(slopes)

    def lose(self, more: Floats) -> None:
        """The last step lost more than was said of it."""
        low, high, error = self.values[-1]
        before = self.lost[-1]
        self.values[-1], self.lost[-1] = (low, high, error + more), more if before is None else before + more

    # ------------------------------------------------------------------ affine operations

    def _stage(self, stage: AffineOperation, lower: Floats, upper: Floats, error: Floats) -> tuple[Value, Floats]:
        weight, taken = np.abs(stage.weight), np.maximum(np.abs(lower), np.abs(upper))
        size, sizes = taken + error, stage.sizes
        if sizes is None:
            terms = (size > 0.0).sum(axis=1, keepdims=True) + 2.0 + FOLDS  # adding a zero is exact
            work, lost = _times(size, weight) + np.abs(stage.bias), losses(weight)
        else:
            terms = sizes.terms + 2.0 + FOLDS
            work, lost = _times(size, sizes.weight) + sizes.bias, sizes.lost
            self._reach(sizes.peak * (1.0 + size.sum(axis=1, keepdims=True)))
        self._reach(work)
        all_sizes = 1.0 + (size.sum(axis=1, keepdims=True) if weight.ndim == 2 else size)
        rounding = _gamma(terms, self.unit) * work + 2.0 * self.least * lost * all_sizes
        centre = _times(0.5 * (lower + upper), stage.weight) + stage.bias
        radius = _times(0.5 * (upper - lower), weight) + 1e-12 * work + LEAST["float64"] * lost * all_sizes
        return (centre - radius, centre + radius, _times(error, weight) + rounding), rounding

    def _shift(self, shift: Shift, lower: Floats, upper: Floats, error: Floats) -> tuple[Value, Floats]:
        ends = lower * shift.sign + shift.bias, upper * shift.sign + shift.bias
        size = np.maximum(np.abs(ends[0]), np.abs(ends[1])) + error
        written = self._written(shift.bias)
        rounding = self.unit * (1.0 + 1e-9) * (size + written) + written + 3.0 * self.least
        rounding = np.where(shift.bias == 0.0, 0.0, rounding)  # nothing is added
        self._reach(size)
        slack = np.where(shift.bias == 0.0, 0.0, 1e-12 * (size + np.abs(shift.bias)))
        return (np.minimum(*ends) - slack, np.maximum(*ends) + slack, error + rounding), rounding

    def _total(self, one: Value, other: Value, sign: float) -> tuple[Value, Floats]:
        ends = (other[0], other[1]) if sign > 0.0 else (-other[1], -other[0])
        sizes = [np.maximum(np.abs(low), np.abs(high)) + error for low, high, error in (one, other)]
        size = sizes[0] + sizes[1]
        rounding = _gamma(1.0 + FOLDS, self.unit) * size + 4.0 * self.least
        self._reach(size)
        slack = 1e-15 * size
        return (one[0] + ends[0] - slack, one[1] + ends[1] + slack, one[2] + other[2] + rounding), rounding

    # ------------------------------------------------------------------ bends

    def _bent(self, step: Step, sources: list[Value]) -> tuple[Value, Floats | None, Box, Box]:
        """A step with units of the network: its value, what it lost, its units, and its slopes."""
        operation, width = step.operation, sources[0][0].shape[1]
        if isinstance(operation, Smooth):
            value, lost, slopes = self._smooth(operation, step, *sources[0])
            return value, lost, value[:2], slopes
        if step.fold is None:
            value, slopes = _relu(*sources[0])
            return value, None, value[:2], slopes
        low, high, folded = self.folded(step.fold, step.units)
        units = np.maximum(low, 0.0), np.maximum(high, 0.0)
        groups = [folded[:, k : k + width] for k in range(0, folded.shape[1], width)]
        match operation:
            case LeakyReLU(shares=shares):
                lost = _added(share * group for share, group in zip(shares, groups, strict=True))
                source = sources[0]
                if not operation.plain:
                    value, lost, slopes = self._bend(operation, *source, lost)
                else:  # the units are the value: what is known of them is known of it
                    low, high = np.fmax(low, source[0] - lost), np.fmin(high, source[1] + lost)
                    value, slopes = _relu(low, high, source[2] + lost)
                    lost = slopes[1] * lost
            case Clip():
                value, lost, slopes = self._clip(operation, *sources[0], _added(groups))
            case _:
                between = low[:, :width] - groups[0], high[:, :width] + groups[0]
                value, lost, slopes = self._larger(sources[0], sources[1], between, _added(groups))
        return value, lost, units, slopes

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
        lost = steepest * folded + smooth.curve.lost(self.unit, *taken) + self.least
        return (*smooth.curve.values(low, high), steepest * error + lost), lost, slopes

    def _bend(
        self, bend: LeakyReLU, low: Floats, high: Floats, error: Floats, folded: Floats
    ) -> tuple[Value, Floats, Box]:
        below, around = np.broadcast_to(bend.below, low.shape), error + folded
        on, off = low - around >= 0.0, high + around <= 0.0
        slopes = tuple(np.where(on, 1.0, np.where(off, below, f(below, 1.0))) for f in (np.minimum, np.maximum))
        size = np.maximum(-low, 0.0) + around
        multiplied = ~on & ~np.isin(below, (-1.0, 0.0, 1.0))
        rounding = _gamma(3.0, self.unit) * np.abs(below) * size + 2.0 * self.least * (2.0 + np.abs(below) + size)
        rounding += UNIT["float64"] * (1.0 + np.abs(below)) * (np.maximum(np.abs(low), np.abs(high)) + around)
        silent = (slopes[0] == 0.0) & (slopes[1] == 0.0)  # an exact zero in any arithmetic
        lost = np.where(silent, 0.0, folded + np.where(multiplied, rounding, 0.0))
        steepest = np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))
        self._reach(np.abs(below) * size)
        ends = [np.where(end > 0.0, end, below * end) for end in (low, high, np.clip(0.0, low, high))]
        slack = folded + np.where(multiplied, 1e-15 * np.abs(below) * size, 0.0)
        value = np.minimum.reduce(ends) - slack, np.maximum.reduce(ends) + slack, steepest * error + lost
        return value, lost, slopes  # type: ignore[return-value]

    def _clip(self, clip: Clip, low: Floats, high: Floats, error: Floats, folded: Floats) -> tuple[Value, Floats, Box]:
        inside = (low - error >= clip.lower) & (high + error <= clip.upper)
        outside = (high + error <= clip.lower) | (low - error >= clip.upper)
        written = np.maximum(*(self._written(np.where(np.isfinite(end), end, 0.0)) for end in (clip.lower, clip.upper)))
        lost = folded + np.where(inside, 0.0, written + self.least)
        slopes = np.where(inside, 1.0, 0.0), np.where(outside, 0.0, 1.0)
        ends = (np.clip(end, clip.lower, clip.upper) for end in (low, high))
        lower, upper = (end + side * folded for end, side in zip(ends, (-1.0, 1.0), strict=True))
        return (lower, upper, slopes[1] * error + lost), lost, slopes

    def _larger(self, one: Value, other: Value, between: Box, folded: Floats) -> tuple[Value, Floats, Box]:
        """The slope is that of the first; the second has the rest of 1."""
        error = one[2] + other[2] + folded
        low, high = np.fmax(one[0] - other[1], between[0]), np.fmin(one[1] - other[0], between[1])
        first, second = low - error >= 0.0, high + error <= 0.0
        slopes = np.where(first, 1.0, 0.0), np.where(second, 0.0, 1.0)
        lost = folded + self.least
        most = np.where(first, one[2], np.where(second, other[2], np.maximum(one[2], other[2])))
        ends = np.maximum(one[0], other[0]) - folded, np.maximum(one[1], other[1]) + folded
        return (*ends, most + lost), lost, slopes

    def folded(self, fold: Fold, steps: tuple[int, ...]) -> Value:
        """The least and largest values of an affine map of units, and what the importer lost of it."""
        centre, radius, work = fold.bias, np.zeros_like(fold.bias), fold.size_bias
        all_sizes, terms = np.ones(1), float(fold.terms)
        for weight, size, k in zip(fold.weights, fold.sizes, steps, strict=True):
            low, high = self.units[k]
            taken = np.maximum(np.abs(low), np.abs(high))
            centre = centre + _times(0.5 * (low + high), weight)
            radius = radius + _times(0.5 * (high - low), np.abs(weight))
            work = work + _times(taken, size)
            all_sizes = all_sizes + taken.sum(axis=1, keepdims=True)
            terms += low.shape[1]
        below = LEAST["float64"] * fold.lost * all_sizes
        lost = _gamma(terms, UNIT["float64"]) * work + 2.0 * below if fold.terms else np.zeros_like(work)
        radius = radius + 1e-12 * work + below
        return centre - radius, centre + radius, lost

    def _written(self, numbers: Floats) -> Floats:
        """What constants lose when they are written in the precision of the model."""
        if self._precision == "float64":
            return np.zeros_like(numbers)
        return np.asarray(np.abs(numbers.astype(np.float32).astype(np.float64) - numbers))

    def _reach(self, size: Floats) -> None:
        self.largest = np.maximum(self.largest, size.max(axis=1, keepdims=True) * (1.0 + 1e-9))


def _added(parts: Iterable[Floats]) -> Floats:
    first, *others = parts
    for other in others:
        first = first + other
    return first


def _relu(low: Floats, high: Floats, error: Floats) -> tuple[Value, Box]:
    """Its value, and slopes that are 0, 1, or anything between."""
    on, off = low - error >= 0.0, high + error <= 0.0
    value = np.maximum(low, 0.0), np.maximum(high, 0.0), np.where(off, 0.0, error)  # off: a zero in any arithmetic
    return value, (on.astype(np.float64), 1.0 - off.astype(np.float64))


def _read(
    lower: NDArray[np.float64], upper: NDArray[np.float64], size: NDArray[np.float64], precision: Precision,
    exact: NDArray[np.bool_],
) -> NDArray[np.float64]:  # fmt: skip
    """What a row loses when it is rounded to the precision: of one value that is known, of any in an interval."""
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
