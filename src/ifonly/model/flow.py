"""A value on its way through a model: how the importers build a network step by step.

A flow knows two things of its value: what the network makes of it, an affine map of units (`blocks.Expression`), and
how the model itself computes it (`recipe.BuiltOperation`), for the bound on what rounding does there.

Linear maps, scalings, sums and selections change only the affine map, so that scaling, encoding, batch normalisation
and linear layers in a row are multiplied together. What bends becomes units, relu(affine map):

    relu(x)                                  one unit
    x where x > 0, else a x                  (1 - a) relu(x) + a x       LeakyReLU, PReLU, Abs (a = -1)
    x within [l, u]                          l + relu(x - l) - relu(x - u)
    max(x, y)                                y + relu(x - y)

where an x or y that stands alone passes the layer by in units that are always on (see `blocks`), or, where its bounds
are too far for that, as relu(x) - relu(-x). A smooth activation becomes units of its own kind, in layers that nothing
passes by. Flows are immutable, and any two may be added, joined or compared: the one
that is less deep is passed on to the depth of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ifonly.errors import ModelError
from ifonly.model.blocks import Expression, UnitBlock, check_size, lift_of, network_of
from ifonly.model.network import MAX_LAYERS, Network
from ifonly.model.operations import (
    AffineOperation,
    BuiltOperation,
    Clip,
    Gather,
    Larger,
    LeakyReLU,
    Majorant,
    Operation,
    RoundedInput,
    Shift,
    Smooth,
    Total,
    recipe_of,
)
from ifonly.model.rounding import losses
from ifonly.model.smooth import RELU, Activation, SmoothNetwork

Floats = NDArray[np.float64]
FARTHEST = 2.0**24
"""The largest lift: a value passes a layer by with so much added, and float64 keeps what is left of its digits."""


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    made: BuiltOperation
    expression: Expression
    _kept: list[Flow] = field(default_factory=list, repr=False)
    """The same value one depth higher, once somebody asked for it."""

    @classmethod
    def of(cls, width: int, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf) -> Flow:
        """The input itself, and its bounds on rows of the schema, which only graphs with branches need."""
        made = BuiltOperation(RoundedInput())
        least, most = (np.array(np.broadcast_to(end, (width,)), dtype=np.float64) for end in (lower, upper))
        return cls(made, Expression.of(UnitBlock(made, None, least, most)))

    @property
    def width(self) -> int:
        return self.expression.width

    @property
    def depth(self) -> int:
        """How many layers of ReLUs there are before it."""
        return self.expression.depth

    # ------------------------------------------------------------------ affine steps

    def linear(
        self, weight: ArrayLike, bias: ArrayLike | None = None, *, name: str, sizes: Majorant | None = None
    ) -> Flow:
        """weight @ value + bias, weight of shape (outputs, inputs). `sizes` is for a step made of several itself."""
        matrix = checked(weight, name)
        shift = np.zeros(len(matrix)) if bias is None else _spread(checked(bias, name), len(matrix), name)
        if matrix.ndim != 2 or matrix.shape[1] != self.width:
            raise ModelError(
                f"'{name}' takes {matrix.shape[-1]} values, but gets {self.width}"
                + (
                    "; does the schema encode to the columns that the model was trained with?"
                    if not self.depth
                    else "."
                )
            )
        self._afford(len(matrix), name)
        return Flow(
            BuiltOperation(AffineOperation(matrix, shift, sizes), (self.made,)),
            self.expression.mapped(matrix, shift, sizes),
        )

    def scale(
        self, factor: ArrayLike = 1.0, shift: ArrayLike = 0.0, *, name: str, size_shift: ArrayLike | None = None
    ) -> Flow:
        """factor * value + shift, entry by entry. `size_shift` bounds what is added up for it."""
        added_up = np.abs(shift if size_shift is None else size_shift)
        parts = [np.ravel(checked(part, name)) for part in (factor, shift, added_up)]
        for part in parts:
            if part.size not in (1, self.width):
                raise ModelError(f"'{name}' combines {self.width} values with {part.size} numbers.")
        diagonal, added, size = (np.array(np.broadcast_to(part, (self.width,))) for part in parts)
        if size_shift is None and (np.abs(diagonal) == 1.0).all():  # a constant is added, and nothing else
            return Flow(self._shift(diagonal, added), self.expression.mapped(diagonal, added))
        most = max(np.abs(diagonal).max(), size.max())
        sizes = Majorant(np.abs(diagonal), size, 4, losses(np.abs(diagonal)), float(most))
        made = BuiltOperation(AffineOperation(diagonal, added, sizes), (self.made,))
        return Flow(made, self.expression.mapped(diagonal, added, sizes))

    def _shift(self, sign: Floats, added: Floats) -> BuiltOperation:
        """Runtimes make one operation of a product and the constant that is added to it: in any order."""
        match self.made.operation:
            case AffineOperation(weight=weight, bias=bias, sizes=None) if (
                weight.ndim == 2 and not bias.any() and (sign == 1.0).all()
            ):
                return BuiltOperation(AffineOperation(weight, added), self.made.sources)
        return BuiltOperation(Shift(sign, added), (self.made,))

    def select(self, columns: Sequence[int], *, name: str) -> Flow:
        """Some of the values, in this order."""
        if not len(columns):
            raise ModelError(f"'{name}' selects no values at all.")
        self._afford(len(columns), name)
        made = BuiltOperation(Gather((np.asarray(columns, dtype=np.intp),)), (self.made,))
        return Flow(made, self.expression.picked(columns))

    def plus(self, other: Flow, *, name: str, sign: float = 1.0) -> Flow:
        """The sum of two flows, or with sign=-1.0 their difference."""
        if self.width != other.width:
            raise ModelError(f"'{name}' adds {self.width} values to {other.width}.")
        one, two = _level([self, other], name)
        return Flow(BuiltOperation(Total(sign), (one.made, two.made)), one.expression.plus(two.expression, sign))

    def joined(self, others: Sequence[Flow], *, name: str) -> Flow:
        """Flows beside one another."""
        flows = _level([self, *others], name)
        made = BuiltOperation(Gather((None,) * len(flows)), tuple(flow.made for flow in flows))
        return Flow(made, Expression.stacked([flow.expression for flow in flows]))

    # ------------------------------------------------------------------ what bends

    def relu(self) -> Flow:
        if self.expression.is_block and self.depth and self.expression.parts[0][0].activation == RELU:
            return self
        ones = np.ones(self.width)
        return self._units(LeakyReLU(np.zeros(self.width), (ones,), plain=True), [(self.expression, ones)])

    def smooth(self, activation: Activation) -> Flow:
        """The activation of each value."""
        if activation == RELU:
            return self.relu()
        self._afford(self.width, activation.name)
        self._check_depth()
        units = self.expression
        made = BuiltOperation(
            Smooth(activation), (self.made,), *((units.fold(), units.makers()) if units.terms else (None, ()))
        )
        with np.errstate(invalid="ignore", over="ignore"):
            ends = activation.values(*units.interval())
        low, high = (np.where(np.isnan(end), side, end) for end, side in zip(ends, (-np.inf, np.inf), strict=True))
        block = UnitBlock(made, units, low, high, self.depth + 1, activation=activation)
        return Flow(made, Expression.of(block))

    def leaky_relu(self, below: ArrayLike, *, name: str) -> Flow:
        """value where it is > 0, else below * value."""
        slope = _spread(np.ravel(checked(below, name)), self.width, name)
        if not slope.any():
            return self.relu()
        groups, shift = _passing(self.expression)
        if len(groups) == 1:
            groups = [(self.expression, 1.0 - slope), (groups[0][0], slope)]
        else:
            groups = [(self.expression, np.ones(self.width)), (groups[1][0], -slope)]
        bend = LeakyReLU(slope, tuple(np.abs(factor) for _, factor in groups))
        return self._units(bend, groups, shift * slope)

    def clip(self, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf, *, name: str) -> Flow:
        """value, but at least `lower` and at most `upper`."""
        least, most = (_spread(_bound(end, name), self.width, name) for end in (lower, upper))
        if (least > most).any():
            raise ModelError(
                f"'{name}' keeps values above {least.max():g} and below {most.min():g}, which none can be."
            )
        ones, groups, shift = np.ones(self.width), [], np.zeros(self.width)
        if np.isfinite(least).all():
            groups, shift = [(self.expression.shifted(-least), ones)], least
        if np.isfinite(most).all() and groups:
            groups.append((self.expression.shifted(-most), -ones))
        elif np.isfinite(most).all():
            groups, shift = [(self.expression.negated().shifted(most), -ones)], most
        if not groups:
            return self
        return self._units(Clip(least, most, len(groups)), groups, shift)

    def maximum(self, other: Flow, *, name: str) -> Flow:
        """The larger of two flows, value by value."""
        if self.width != other.width:
            raise ModelError(f"'{name}' compares {self.width} values with {other.width}.")
        one, two = _level([self, other], name)
        groups, shift = _passing(two.expression)
        first = one.expression.plus(two.expression, -1.0), np.ones(self.width)
        return one._units(Larger(), [first, *groups], shift, also=two)

    def minimum(self, other: Flow, *, name: str) -> Flow:
        """The smaller of two flows, value by value."""
        turned = [flow.scale(-1.0, name=name) for flow in (self, other)]
        return turned[0].maximum(turned[1], name=name).scale(-1.0, name=name)

    def window_maximum(self, windows: Sequence[Sequence[int]], *, name: str) -> Flow:
        """Of each window of columns the largest value: in pairs, half of them at a time."""
        if not len(windows) or not all(len(window) for window in windows):
            raise ModelError(f"'{name}' takes the largest of no values at all.")
        most = max(len(window) for window in windows)
        columns = np.array([[*window, *[window[0]] * (most - len(window))] for window in windows], dtype=np.intp)
        flow = self
        while columns.shape[1] > 1:
            half, odd = divmod(columns.shape[1], 2)
            ends = [columns[:, :half].ravel().tolist(), columns[:, half : 2 * half].ravel().tolist()]
            pairs = flow.select(ends[0], name=name).maximum(flow.select(ends[1], name=name), name=name)
            numbered = np.arange(pairs.width, dtype=np.intp).reshape(-1, half)
            if odd:
                rest = flow.select(columns[:, -1].tolist(), name=name)
                numbered = np.column_stack([numbered, pairs.width + np.arange(len(columns))])
                pairs = pairs.joined([rest], name=name)
            flow, columns = pairs, numbered
        return flow.select(columns[:, 0].tolist(), name=name)

    def _units(
        self, operation: Operation, groups: Sequence[tuple[Expression, Floats]], shift: Floats | None = None,
        also: Flow | None = None,
    ) -> Flow:  # fmt: skip
        """Units relu(expression) of one depth, in groups; the value is their sum, each times its factor, plus the
        shift."""
        self._afford(self.width * len(groups), "relu")
        if len(groups) > 1 or shift is not None:
            check_size((self.width, self.width * len(groups)), "relu")
        self._check_depth()
        units = Expression.stacked([expression for expression, _ in groups])
        exact = units.terms == 0 and isinstance(operation, LeakyReLU) and operation.plain
        sources = (self.made,) if also is None else (self.made, also.made)
        made = BuiltOperation(operation, sources, *((None, ()) if exact else (units.fold(), units.makers())))
        low, high = (np.maximum(end, 0.0) for end in units.interval())
        value = Expression.of(UnitBlock(made, units, low, high, self.depth + 1))
        if len(groups) > 1 or shift is not None:
            weight = np.hstack([np.diag(factor) for _, factor in groups])
            value = value.mapped(weight, np.zeros(self.width) if shift is None else shift)
            value = Expression(value.parts, value.bias, value.size_bias, 2, value.lost)
        return Flow(made, value)

    def raised(self) -> Flow:
        """The same value, read one depth higher: passed on in units of its own, or in those that it is made of, if they
        are fewer."""
        if not self._kept:
            groups, shift = _passing(self.expression)
            far = max(block.lift.max() for block, _, _ in self.expression.parts) > FARTHEST
            if far or self.expression.inputs > self.width * len(groups):
                shares = tuple(np.abs(factor) for _, factor in groups)
                self._kept.append(self._units(LeakyReLU(np.ones(self.width), shares), groups, shift))
            else:
                self._kept.append(Flow(self.made, self.expression.raised()))
        return self._kept[0]

    def _afford(self, width: int, name: str) -> None:
        check_size((width, self.expression.inputs), name)

    def _check_depth(self) -> None:
        if self.depth >= MAX_LAYERS:
            raise ModelError(f"A network has between 1 and {MAX_LAYERS} layers; this model has more.")

    def to_network(self) -> Network | SmoothNetwork:
        """The network, which knows how the model itself computes it."""
        self._afford(self.width, "the output")
        network = network_of(self.expression)
        if not self.expression.terms:
            return network.deployed_as(recipe_of(self.made, None, ()))
        return network.deployed_as(recipe_of(self.made, self.expression.fold(), self.expression.makers()))


def _level(flows: Sequence[Flow], name: str) -> list[Flow]:
    """The same values, all read at the depth of the deepest."""
    depth = max(flow.depth for flow in flows)
    leveled = []
    for given in flows:
        flow = given
        while flow.depth < depth:
            flow = flow.raised()
        leveled.append(flow)
    check_size((sum(flow.width for flow in flows), max(flow.expression.inputs for flow in leveled)), name)
    return leveled


def _passing(expression: Expression) -> tuple[list[tuple[Expression, Floats]], Floats]:
    """Units by which a value passes a layer: the sum of relu(expression) times factor, plus a shift."""
    ones, lift = np.ones(expression.width), lift_of(*expression.interval())
    if lift.max() <= FARTHEST:
        return [(expression.shifted(lift), ones)], -lift
    return [(expression, ones), (expression.negated(), -ones)], np.zeros(expression.width)


def _bound(end: ArrayLike, name: str) -> Floats:
    """Bounds, of which all or none are finite."""
    numbers = np.ravel(np.asarray(end, dtype=np.float64))
    finite = np.isfinite(numbers)
    if np.isnan(numbers).any() or (finite.any() and not finite.all()):
        raise ModelError(f"'{name}' has bounds that are NaN, or infinite for some of the values only.")
    return numbers


def _spread(numbers: Floats, width: int, name: str) -> Floats:
    if numbers.size not in (1, width) or numbers.ndim > 1:
        raise ModelError(f"'{name}' adds {numbers.size} numbers to {width} values.")
    return np.array(np.broadcast_to(numbers, (width,)))


def checked(numbers: ArrayLike, name: str) -> Floats:
    """Numbers of the model as float64, or a ModelError that names where the NaN is."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ModelError(f"'{name}' has NaN or infinite weights; the model is damaged.")
    return array
