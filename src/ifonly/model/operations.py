"""What a deployed model computes, operation by operation, in the order of the model itself.

A recipe is a list of steps; each step is an operation on the values of earlier ones. It says nothing of how the network
that stands for the model was made, and has one use: to bound what the model's own arithmetic can lose (`rounding`).

    Given      the encoded row
    Stage      weight @ x + bias, a sum of products in any order
    Shift      +-x + bias, rounded once
    Gather     columns of several values beside one another
    Total      x + y or x - y, rounded once
    Bend       x where x > 0, else below * x: ReLU (0), LeakyReLU and PReLU, Abs (-1); and x itself (1)
    Clip       x, but at least `lower` and at most `upper`
    Larger     the larger of x and y
    Smooth     a curve of x: tanh and the like
    Lifted     no operation of the model at all: units that the network passes on

The network has *units*, relu(affine map of other units), where the model has a Bend, a Clip or a Larger; where it has a
Smooth, they are that curve of the affine map. These affine maps were multiplied in float64 by the importer; the `Fold`
of the step has them, with the sizes that the rounding of these products follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Majorant:
    """What one affine map could at most add up to inside the model, where it stands for several steps of it.

    `weight` and `bias` are at least the absolute values, and `terms` counts the roundings. Two numbers are in units of
    1 + sum |x|, for inputs x: `lost` least normal numbers may be lost of each output by underflow, and no value on the
    way is larger than `peak`.
    """

    weight: Floats
    bias: Floats
    terms: int
    lost: Floats
    peak: float


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """The affine map of a step's units, as the network has it: sum_k weight_k @ units_k + bias.

    A weight of one dimension is a diagonal. `terms` roundings follow the sizes; none where the weights are the model's
    own. `lost` is as in `Majorant`.
    """

    weights: tuple[Floats, ...]
    sizes: tuple[Floats, ...]
    bias: Floats
    size_bias: Floats
    terms: int
    lost: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RoundedInput:
    """The encoded row, rounded to the precision of the model."""


@dataclass(frozen=True, slots=True, eq=False)
class AffineOperation:
    """weight @ x + bias. A weight of one dimension is a diagonal; `sizes` where the model adds up more than that."""

    weight: Floats
    bias: Floats
    sizes: Majorant | None = None


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
class Larger:
    """The larger of two sources; one group of units, relu(first - second)."""


class SmoothCurve(Protocol):
    """A smooth activation, as `ifonly.model.smooth.Activation` has it."""

    def slopes(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]: ...

    def values(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]: ...

    def lost(self, unit: float, lower: Floats, upper: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class Smooth:
    """A curve of each value; its units are its values."""

    curve: SmoothCurve


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """Units of the source, each with a constant added."""

    lift: Floats


Operation: TypeAlias = (
    RoundedInput | AffineOperation | Shift | Gather | Total | LeakyReLU | Clip | Larger | Smooth | Lifted
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
    """A step while a model is read: it knows the ones before it."""

    operation: Operation
    sources: tuple[BuiltOperation, ...] = ()
    fold: Fold | None = None
    units: tuple[BuiltOperation, ...] = ()


def recipe_of(last: BuiltOperation, fold: Fold | None, units: Sequence[BuiltOperation]) -> OperationGraph:
    """The steps that a value is made of, each after those that it needs."""
    order: list[BuiltOperation] = []
    place: dict[BuiltOperation, int] = {}
    todo: list[tuple[BuiltOperation, bool]] = [(made, False) for made in (*units, last)]
    while todo:
        made, ready = todo.pop()
        if made in place:
            continue
        if ready:
            place[made] = len(order)
            order.append(made)
            continue
        todo.append((made, True))
        todo += [(needed, False) for needed in (*made.sources, *made.units) if needed not in place]
    steps = tuple(
        Step(m.operation, tuple(place[s] for s in m.sources), m.fold, tuple(place[u] for u in m.units)) for m in order
    )
    if order[-1] is not last:  # units that only the last layer reads
        steps = (*steps, Step(Gather((None,)), (place[last],)))
    return OperationGraph(steps, fold, tuple(place[u] for u in units))


def recipe_of_layers(
    layers: Sequence[tuple[Floats, Floats]], curves: Sequence[SmoothCurve | None] = ()
) -> OperationGraph:
    """A network as its own model: layer after layer, and between them ReLU, or these curves where not None."""
    steps = [Step(RoundedInput())]
    for k, (weight, bias) in enumerate(layers):
        steps.append(Step(AffineOperation(weight, bias), (len(steps) - 1,)))
        if k < len(layers) - 1:
            curve = curves[k] if curves else None
            bend = LeakyReLU(np.zeros(len(bias)), (), plain=True) if curve is None else Smooth(curve)
            steps.append(Step(bend, (len(steps) - 1,)))
    return OperationGraph(tuple(steps))
