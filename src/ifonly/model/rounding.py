"""How far a deployed model can be from real arithmetic on its weights.

Standard forward error analysis: a dot product of n terms, summed in any order in precision u, is off by at most
gamma_n * sum |w_j||h_j| with gamma_n = n u / (1 - n u), and by what underflow takes. Stage by stage (a linear map, a
scaling, a shift), with magnitudes m bounded by interval arithmetic over a box of rows, what a stage itself loses is

    d_i = gamma_{n+2} (|W_i| (m_{i-1} + e_{i-1}) + |b_i|) + 2 t l_i (1 + sum_j (m_{i-1} + e_{i-1})_j)
    d_i = u (m_i + e_{i-1})                             where the stage only adds a constant

and e_i = |W_i| e_{i-1} + d_i is how far its value can be from the exact one. ReLU does not enlarge an error. e_0 is
what the row itself loses when it is rounded to the model's precision: nothing where every value of a column is a number
of that precision, as 0 and 1 are.

The bound at the end adds up what each stage loses, times what the rest of the model makes of it: |J_i| d_i, where J_i
is the derivative of the scores by the stage's values, as an interval over the box. A ReLU that is on (or off) for exact
and for computed values alike passes the error on as it is (or not at all), any other one passes on a share of it
between 0 and 1. Signs are kept in J, so this is far below |W_L| ... |W_{i+1}| d_i in deep networks, above all at a
single row, where nearly every ReLU is on or off.

t is the least normal number. A machine may lose as much whenever a result is below it, and, if it flushes what it
reads, of every weight and every value that is: so l_i = 2 n + 3 + sum_j |W_ij| counts the operations of a neuron
and the weights that its inputs are multiplied with (`losses`). Where a number inside the model may be beyond
the largest of its precision, the bound is infinite.

A smooth activation after a stage is between two slopes over the values that it takes, exact and computed alike, which
stand in J as an interval; what the library's own function may lose of its value is a further stage.

Where a layer of the network stands for several stages of the model (scaling, encoding, two linear layers in a row), its
`Majorant` has them, and the roundings of the importer, which multiplied the stages in float64, are added. `FOLDS`
roundings more are allowed for everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.model.kind import Precision
from ifonly.schema import Choice, Integer, Numeric, Schema

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
LEAST = {"float64": 2.0**-1022, "float32": 2.0**-126}
LARGEST = {"float64": float(np.finfo(np.float64).max), "float32": float(np.finfo(np.float32).max)}
FOLDS = 8
Box: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The least and the largest value of each column; one row per box."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One affine step of a model, as the model computes it: weight @ x + bias.

    A weight of one dimension is a diagonal. Rounding follows `size_weight` and `size_bias`, which are at least the
    absolute values, `terms` times; where they are None, the stage only adds `bias`, and rounds its result once.
    """

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    size_weight: NDArray[np.float64] | None
    size_bias: NDArray[np.float64] | None
    terms: int


@dataclass(frozen=True, slots=True, eq=False)
class Majorant:
    """What one layer of the network could at most add up to inside the model that it stands for.

    A layer may be the product of several steps of the model (scaling, encoding, batch normalisation, two linear layers
    in a row). The model computes the steps one by one, and its rounding follows their absolute values multiplied step
    by step, |A_k| ... |A_1|, which is more than |A_k ... A_1| when entries cancel. `terms` counts the roundings.

    Two numbers are in units of 1 + sum |x|, for inputs x of the layer: `lost` least normal numbers may be lost of each
    output by underflow, and no value on the way is larger than `peak`.
    """

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    terms: int
    lost: NDArray[np.float64]
    peak: float
    stages: tuple[Stage, ...] = ()
    """The steps, in order; none where only their sizes are known."""


class Layer(Protocol):
    """An affine layer; `majorant` where it stands for several steps of the model."""

    @property
    def weight(self) -> NDArray[np.float64]: ...

    @property
    def bias(self) -> NDArray[np.float64]: ...

    @property
    def majorant(self) -> Majorant | None: ...


class Bend(Protocol):
    """A smooth activation, as `ifonly.model.smooth.Activation` has it."""

    def slopes(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def values(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def lost(self, unit: float, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]: ...


def losses(size: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many least normal numbers an affine map with these absolute weights can lose of each output by underflow, in
    units of 1 + sum |x|: one per operation, and what flushing a weight or an input may do to their product."""
    return np.asarray(2.0 * size.shape[1] + 3.0 + size.sum(axis=1))


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


def layered_error(
    layers: Sequence[Layer],
    box: Box,
    precision: Precision,
    exact: NDArray[np.bool_],
    bends: Sequence[Bend | None] = (),
) -> NDArray[np.float64]:
    """A rigorous bound on |deployed score - real score| for the rows of each box, arrays of shape (boxes, columns).

    `exact`: columns of which every value is a number of the precision. `bends`: what follows each layer but the last;
    None, or none at all, for ReLU.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        forward = _Forward(box, precision, exact)
        for i, layer in enumerate(layers):
            forward.through(layer)
            if i < len(layers) - 1:
                forward.activate(bends[i] if bends else None)
        error = np.fmin(forward.error, forward.carried_on())
        bounded = np.isfinite(error) & (forward.largest < LARGEST[precision])
        return np.where(bounded, error * (1.0 + 1e-9), np.inf)


class _Forward:
    """Intervals and errors on the way through a model, and what each stage lost, for the way back."""

    def __init__(self, box: Box, precision: Precision, exact: NDArray[np.bool_]) -> None:
        self.lower, self.upper = box
        self.unit, self.least = UNIT[precision], LEAST[precision] + LEAST["float64"]  # the importer's own underflow
        size = np.maximum(np.abs(self.lower), np.abs(self.upper))
        self.error = _read(self.lower, self.upper, size, precision, exact)
        self.largest = size.max(axis=1, keepdims=True)
        self._stages: list[tuple[NDArray[np.float64] | None, NDArray[np.float64]]] = [(None, self.error)]
        """Of each stage the weight, and what it lost."""
        self._shares: dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
        """Of each stage before a ReLU, which are on and which are off."""
        self._slopes: dict[int, Box] = {}
        """Of each stage before a smooth activation, its least and largest slopes."""

    def through(self, layer: Layer) -> None:
        weight, majorant = np.abs(layer.weight), layer.majorant
        taken = np.maximum(np.abs(self.lower), np.abs(self.upper))
        size, before = taken + self.error, (self.lower, self.upper)
        work = taken @ weight.T + np.abs(layer.bias)
        all_sizes, lost, folding = 1.0 + size.sum(axis=1, keepdims=True), losses(weight), 0.0
        if majorant is None:
            terms = (size > 0.0).sum(axis=1, keepdims=True) + 2.0 + FOLDS  # adding a zero is exact
            self._stage(layer.weight, self.error @ weight.T, _gamma(terms, self.unit) * (work + self.error @ weight.T))
        else:
            whole = Stage(layer.weight, layer.bias, majorant.weight, majorant.bias, majorant.terms)
            for stage in majorant.stages or (whole,):
                self._through(stage)
            work = np.maximum(work, taken @ majorant.weight.T + majorant.bias)
            folding = _gamma(majorant.terms + layer.weight.shape[1], UNIT["float64"])
            lost = np.maximum(lost, majorant.lost)
            self.largest = np.maximum(self.largest, majorant.peak * all_sizes)
        self._lose(folding * work + 2.0 * self.least * lost * all_sizes)
        self.largest = np.maximum(self.largest, (work + self.error).max(axis=1, keepdims=True) * (1.0 + 1e-9))
        centre = (0.5 * (before[0] + before[1])) @ layer.weight.T + layer.bias
        radius = (0.5 * (before[1] - before[0])) @ weight.T + 1e-12 * work + LEAST["float64"] * lost  # in float64
        self.lower, self.upper = centre - radius, centre + radius

    def _through(self, stage: Stage) -> None:
        """One stage of several."""
        taken, weight = np.maximum(np.abs(self.lower), np.abs(self.upper)), np.abs(stage.weight)
        carried = _times(self.error, weight)
        centre = _times(0.5 * (self.lower + self.upper), stage.weight) + stage.bias
        radius = _times(0.5 * (self.upper - self.lower), weight)
        if stage.size_weight is None or stage.size_bias is None:
            rounding = self.unit * (1.0 + 1e-9) * (np.abs(centre) + radius + carried) + self.least
            rounding = np.where(stage.bias == 0.0, 0.0, rounding)  # nothing is added
            work = taken + np.abs(stage.bias)
        else:
            work = _times(taken + self.error, stage.size_weight) + stage.size_bias
            rounding = _gamma(stage.terms + 2.0 + FOLDS, self.unit) * work
        radius = radius + 1e-12 * work
        self.lower, self.upper = centre - radius, centre + radius
        self._stage(stage.weight, carried, rounding)

    def _stage(self, weight: NDArray[np.float64], carried: NDArray[np.float64], lost: NDArray[np.float64]) -> None:
        self.error = carried + lost
        self._stages.append((weight, lost))

    def _lose(self, more: NDArray[np.float64]) -> None:
        """The last stage lost more than was said of it."""
        weight, lost = self._stages[-1]
        self._stages[-1] = (weight, lost + more)
        self.error = self.error + more

    def activate(self, bend: Bend | None) -> None:
        """The activation after a layer."""
        if bend is None:
            self._relu()
            return
        taken = self.lower - self.error, self.upper + self.error
        slopes = bend.slopes(*taken)
        self._slopes[len(self._stages) - 1] = slopes
        lost = bend.lost(self.unit, *taken) + self.least
        self._stage(np.ones(lost.shape[1]), np.maximum(np.abs(slopes[0]), np.abs(slopes[1])) * self.error, lost)
        self.lower, self.upper = bend.values(self.lower, self.upper)

    def _relu(self) -> None:
        off, on = self.upper + self.error <= 0.0, self.lower - self.error >= 0.0
        self._shares[len(self._stages) - 1] = (on, off)
        self.error = np.where(off, 0.0, self.error)  # an exact zero in any arithmetic
        self.lower, self.upper = np.maximum(self.lower, 0.0), np.maximum(self.upper, 0.0)

    def carried_on(self) -> NDArray[np.float64]:
        """What all stages lost, times what the rest of the model makes of it."""
        outputs = self.error.shape[1]
        centre = np.broadcast_to(np.eye(outputs), (len(self.error), outputs, outputs))
        radius = np.zeros_like(centre)
        total = np.zeros_like(self.error)
        for k in range(len(self._stages) - 1, -1, -1):
            weight, lost = self._stages[k]
            if k in self._shares:
                on, off = (share[:, None, :] for share in self._shares[k])
                low, high = np.minimum(centre - radius, 0.0), np.maximum(centre + radius, 0.0)
                centre = np.where(on, centre, np.where(off, 0.0, 0.5 * (low + high)))
                radius = np.where(on, radius, np.where(off, 0.0, 0.5 * (high - low)))
            if k in self._slopes:
                ends = [(centre + way * radius) * slope[:, None, :] for way in (-1.0, 1.0) for slope in self._slopes[k]]
                low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
                centre, radius = 0.5 * (low + high), 0.5 * (high - low) + 1e-15 * np.maximum(np.abs(low), np.abs(high))
            reach = np.abs(centre) + radius
            total = total + np.einsum("bow,bw->bo", reach, np.where(reach.any(axis=1), lost, 0.0))
            if weight is not None:
                size = np.abs(weight)
                radius = _back(radius, size) + 4.0 * len(size) * UNIT["float64"] * _back(np.abs(centre), size)
                centre = _back(centre, weight)
        return total * (1.0 + 1e-9)


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
    return values * weight if weight.ndim == 1 else values @ weight.T


def _back(rows: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows * weight if weight.ndim == 1 else rows @ weight


def _gamma(terms: Any, unit: float) -> Any:
    return terms * unit / (1.0 - terms * unit)
