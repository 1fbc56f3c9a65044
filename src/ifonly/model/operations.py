"""Operation graph of a deployed model: what it computes, operation by operation, in its own order.

Each step is an operation on the values of earlier steps. The graph says nothing of the network that was built from the
model; its one use is to bound the rounding error of the model's own arithmetic (`rounding`).

    RoundedInput      the encoded row
    AffineOperation   weight @ x + bias, a sum of products in any order
    Shift             +-x + bias, rounded once
    Gather            columns of several values beside one another
    Total             x + y or x - y, rounded once
    LeakyReLU         x where x > 0, else below * x: ReLU (0), LeakyReLU and PReLU, Abs (-1); and x itself (1)
    Clip              x, but at least `lower` and at most `upper`
    Maximum           the larger of x and y
    Smooth            a curve of x: tanh and the like
    PiecewiseLinear   several piecewise-linear functions of one x: looked up, or interpolated between knots
    Lifted            no operation of the model: units that the network passes on

The network has *units*, relu(affine map of other units), where the model has a LeakyReLU, a Clip or a Maximum; where it
has a Smooth, they are that curve of the affine map; where it has a PiecewiseLinear, relu(x - knot). These affine maps
were multiplied in float64 by the importer; the `Fold` of the step has them, with the sizes that the rounding of these
products follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KEPT_WEIGHTS = 1 << 16
"""Of a matrix whose absolute values are kept beside it."""


def underflow_counts(size: Floats) -> Floats:
    """How many least normal numbers underflow can cost each output of an affine map with these absolute weights, in
    units of 1 + sum |x|: one per operation, and what flushing a weight or an input does to their product."""
    return np.asarray(2.0 * size.shape[1] + 3.0 + size.sum(axis=1) if size.ndim == 2 else 5.0 + size)


def _kept_absolute(weight: Floats) -> Floats | None:
    """|weight|, which every analysis needs, where keeping it takes little."""
    return np.abs(weight) if weight.size <= KEPT_WEIGHTS else None


@dataclass(frozen=True, slots=True, eq=False)
class Majorant:
    """Bound on the magnitudes inside the model of an affine map that is the product of several of its steps.

    `weight` and `bias` are at least the absolute values, and `terms` counts the roundings. Two numbers are in units of
    1 + sum |x|, for inputs x: underflow costs each output at most `underflows` least normal numbers, and no
    intermediate value is larger than `peak`.
    """

    weight: Floats
    bias: Floats
    terms: int
    underflows: Floats
    peak: float


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """The affine map of a step's units, as the network has it: sum_k weight_k @ units_k + bias.

    A weight of one dimension is a diagonal. `terms` roundings follow the sizes; none where the weights are the model's
    own. `underflows` is as in `Majorant`.
    """

    weights: tuple[Floats, ...]
    sizes: tuple[Floats, ...]
    bias: Floats
    size_bias: Floats
    terms: int
    underflows: Floats
    _absolute: tuple[Floats | None, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_absolute", tuple(_kept_absolute(weight) for weight in self.weights))

    @property
    def absolute(self) -> list[Floats]:
        """|weight| of each."""
        kept = zip(self.weights, self._absolute, strict=True)
        return [np.abs(weight) if known is None else known for weight, known in kept]


@dataclass(frozen=True, slots=True, eq=False)
class RoundedInput:
    """The encoded row, rounded to the precision of the model."""


@dataclass(frozen=True, slots=True, eq=False)
class AffineOperation:
    """weight @ x + bias. A weight of one dimension is a diagonal; `sizes` where the model adds up more than that."""

    weight: Floats
    bias: Floats
    sizes: Majorant | None = None
    work_bias: Floats = field(init=False, repr=False)
    """What each output adds up beside its products, at most."""
    underflows: Floats = field(init=False, repr=False)
    _absolute: Floats | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = self.sizes
        own = underflow_counts(np.abs(self.weight)) if sizes is None else sizes.underflows
        object.__setattr__(self, "work_bias", np.abs(self.bias) if sizes is None else sizes.bias)
        object.__setattr__(self, "underflows", own)
        object.__setattr__(self, "_absolute", _kept_absolute(self.weight))

    @property
    def absolute(self) -> Floats:
        """|weight|."""
        return np.abs(self.weight) if self._absolute is None else self._absolute


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """sign * x + bias, with signs 1 and -1."""

    sign: Floats
    bias: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """Of each source these columns; None for all."""

    columns: tuple[NDArray[np.intp] | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """The first source plus (1) or minus (-1) the second."""

    sign: float


@dataclass(frozen=True, slots=True, eq=False)
class LeakyReLU:
    """x where x > 0, else below * x. Its units come in groups as wide as x; `shares` bounds what each is multiplied
    with. `plain`: it is relu(x), its only units are that, and the fold is exact."""

    below: Floats
    shares: tuple[Floats, ...]
    plain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """x within bounds, which may be infinite; a group of units for each side that has finite ones."""

    lower: Floats
    upper: Floats
    groups: int


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """The larger of two sources; one group of units, relu(first - second)."""


class SmoothCurve(Protocol):
    """A smooth activation, as `ifonly.model.smooth.Activation` has it."""

    def slopes(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]: ...

    def values(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]: ...

    def library_error(self, unit: float, lower: Floats, upper: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class Smooth:
    """A curve of each value; its units are its values."""

    curve: SmoothCurve


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseLinear:
    """Functions of one x from the first knot to the last, linear between knots, where they have these values.

    `error` bounds what the model's own arithmetic does to each. A unit relu(x - knot) per knot but the last.
    """

    knots: Floats
    values: Floats
    """(knot, function)"""
    bends: Floats
    """(function, unit): how much the slope changes at each knot, as the network has it."""
    error: Floats

    def pieces(self, lower: Floats, upper: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first and the last piece that intervals touch."""
        last = len(self.knots) - 2
        first = np.clip(np.searchsorted(self.knots, lower, side="left") - 1, 0, last)
        return first, np.clip(np.searchsorted(self.knots, upper, side="right") - 1, 0, last)

    def slopes(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """The least and the largest slope of each function over intervals, outward."""
        steps = np.diff(self.values, axis=0) / np.diff(self.knots)[:, None]
        least, most = _extremes(steps, *self.pieces(lower, upper))
        slack = 1e-12 * np.maximum(np.abs(least), np.abs(most))
        return least - slack, most + slack

    def range(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """The least and the largest value of each function over intervals, outward."""
        ends = [np.column_stack([np.interp(x, self.knots, f) for f in self.values.T]) for x in (lower, upper)]
        first, last = self.pieces(lower, upper)
        inner = _extremes(self.values, np.minimum(first + 1, last), last)
        inside = (last > first)[:, None]
        least, most = np.minimum(*ends), np.maximum(*ends)
        least = np.where(inside, np.minimum(least, inner[0]), least)
        most = np.where(inside, np.maximum(most, inner[1]), most)
        slack = 1e-12 * np.abs(self.values).max(axis=0)
        return least - slack, most + slack


def _extremes(table: Floats, first: NDArray[np.intp], last: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """The least and the largest of the rows from `first` to `last`, column by column."""
    least, most = np.minimum(table[first], table[last]), np.maximum(table[first], table[last])
    for i in np.flatnonzero(last - first > 1).tolist():
        part = table[first[i] : last[i] + 1]
        least[i], most[i] = part.min(axis=0), part.max(axis=0)
    return least, most


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """Units of the source, each with a constant added."""

    lift: Floats


Operation: TypeAlias = (
    RoundedInput
    | AffineOperation
    | Shift
    | Gather
    | Total
    | LeakyReLU
    | Clip
    | Maximum
    | Smooth
    | PiecewiseLinear
    | Lifted
)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operation, the steps whose values it takes, and the affine map of its units with the steps that have those."""

    operation: Operation
    sources: tuple[int, ...] = ()
    fold: Fold | None = None
    units: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class OperationGraph:
    """Steps in order; the last gives the scores. `fold` is the last layer of the network, over the units of steps."""

    steps: tuple[Step, ...]
    fold: Fold | None = None
    units: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BuiltOperation:
    """A node of the graph while a model is read: it refers to the nodes before it."""

    operation: Operation
    sources: tuple[BuiltOperation, ...] = ()
    fold: Fold | None = None
    units: tuple[BuiltOperation, ...] = ()


def operation_graph(last: BuiltOperation, fold: Fold | None, units: Sequence[BuiltOperation]) -> OperationGraph:
    """The steps that a value depends on, in topological order."""
    order: list[BuiltOperation] = []
    place: dict[BuiltOperation, int] = {}
    todo: list[tuple[BuiltOperation, bool]] = [(built, False) for built in (*units, last)]
    while todo:
        built, ready = todo.pop()
        if built in place:
            continue
        if ready:
            place[built] = len(order)
            order.append(built)
            continue
        todo.append((built, True))
        todo += [(needed, False) for needed in (*built.sources, *built.units) if needed not in place]
    steps = tuple(
        Step(m.operation, tuple(place[s] for s in m.sources), m.fold, tuple(place[u] for u in m.units)) for m in order
    )
    if order[-1] is not last:  # units that only the last layer reads
        steps = (*steps, Step(Gather((None,)), (place[last],)))
    return OperationGraph(steps, fold, tuple(place[u] for u in units))


def operations_of_layers(
    layers: Sequence[tuple[Floats, Floats]], curves: Sequence[SmoothCurve | None] = ()
) -> OperationGraph:
    """The graph of a network itself: layer after layer, and between them ReLU, or these curves where not None."""
    steps = [Step(RoundedInput())]
    for k, (weight, bias) in enumerate(layers):
        steps.append(Step(AffineOperation(weight, bias), (len(steps) - 1,)))
        if k < len(layers) - 1:
            curve = curves[k] if curves else None
            activation = LeakyReLU(np.zeros(len(bias)), (), plain=True) if curve is None else Smooth(curve)
            steps.append(Step(activation, (len(steps) - 1,)))
    return OperationGraph(tuple(steps))
