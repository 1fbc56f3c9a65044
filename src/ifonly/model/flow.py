"""Symbolic value of a model's graph: the importers apply operations to it, and get a ReLU network and its error bound.

A flow has two forms of its value: an affine map of units of the network (`blocks.Expression`), and the node of the
model's own operation graph (`operations.BuiltOperation`), along which rounding errors are bounded.

Linear maps, scalings, sums and selections change only the affine map, so that scaling, encoding, batch normalisation
and linear layers in a row are multiplied together. Piecewise-linear operations become units, relu(affine map):

    relu(x)                                  one unit
    x where x > 0, else a x                  (1 - a) relu(x) + a x       LeakyReLU, PReLU, Abs (a = -1)
    x within [l, u]                          l + relu(x - l) - relu(x - u)
    max(x, y)                                y + relu(x - y)

where an x or y without a relu passes the layer in units that are always on (see `blocks`), or, where its bounds are
too far for that, as relu(x) - relu(-x). A smooth activation becomes units of its own kind, beside which other values
pass in ReLUs. Flows are immutable, and any two may be added, joined or compared: the one that is less deep is passed on
to the depth of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

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
    LeakyReLU,
    Majorant,
    Maximum,
    Operation,
    PiecewiseLinear,
    RoundedInput,
    Shift,
    Smooth,
    Total,
    operation_graph,
    underflow_counts,
)
from ifonly.model.smooth import RELU, Activation, SmoothNetwork
from ifonly.model.smooth.activations import SideBySide

Floats = NDArray[np.float64]
MAX_LIFT = 2.0**24
"""The largest lift of a value that passes a layer: with more added, float64 would drop too many of its digits."""


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """A value of the graph: its node (`built`) and its affine map of units (`expression`)."""

    built: BuiltOperation
    expression: Expression
    _deeper: list[Flow] = field(default_factory=list, repr=False)
    """Cache of `deepened`."""

    @classmethod
    def of(cls, width: int, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf) -> Flow:
        """The input row, with its bounds under the schema, which only graphs with branches need."""
        built = BuiltOperation(RoundedInput())
        least, most = (np.array(np.broadcast_to(end, (width,)), dtype=np.float64) for end in (lower, upper))
        return cls(built, Expression.of(UnitBlock(built, None, least, most)))

    @property
    def width(self) -> int:
        return self.expression.width

    @property
    def depth(self) -> int:
        """Number of hidden layers before it."""
        return self.expression.depth

    # ------------------------------------------------------------------ affine steps

    def linear(
        self, weight: ArrayLike, bias: ArrayLike | None = None, *, name: str, sizes: Majorant | None = None
    ) -> Flow:
        """weight @ value + bias, weight of shape (outputs, inputs). `sizes` is for a product of several steps."""
        matrix = checked(weight, name)
        shift = np.zeros(len(matrix)) if bias is None else _broadcast(checked(bias, name), len(matrix), name)
        if matrix.ndim != 2 or matrix.shape[1] != self.width:
            raise ModelError(
                f"'{name}' takes {matrix.shape[-1]} values, but gets {self.width}"
                + (
                    "; does the schema encode to the columns that the model was trained with?"
                    if not self.depth
                    else "."
                )
            )
        self._check_size(len(matrix), name)
        return Flow(
            BuiltOperation(AffineOperation(matrix, shift, sizes), (self.built,)),
            self.expression.mapped(matrix, shift, sizes),
        )

    def scale(
        self, factor: ArrayLike = 1.0, shift: ArrayLike = 0.0, *, name: str, size_shift: ArrayLike | None = None
    ) -> Flow:
        """factor * value + shift, entry by entry. `size_shift` bounds the terms that the shift is the sum of."""
        added_up = np.abs(shift if size_shift is None else size_shift)
        parts = [np.ravel(checked(part, name)) for part in (factor, shift, added_up)]
        for part in parts:
            if part.size not in (1, self.width):
                raise ModelError(f"'{name}' combines {self.width} values with {part.size} numbers.")
        diagonal, added, size = (np.array(np.broadcast_to(part, (self.width,))) for part in parts)
        if size_shift is None and (np.abs(diagonal) == 1.0).all():  # only a constant is added
            return Flow(self._shift(diagonal, added), self.expression.mapped(diagonal, added))
        most = max(np.abs(diagonal).max(), size.max())
        sizes = Majorant(np.abs(diagonal), size, 4, underflow_counts(np.abs(diagonal)), float(most))
        built = BuiltOperation(AffineOperation(diagonal, added, sizes), (self.built,))
        return Flow(built, self.expression.mapped(diagonal, added, sizes))

    def _shift(self, sign: Floats, added: Floats) -> BuiltOperation:
        """Runtimes fuse a product and the constant that is added to it, in any order of summation."""
        match self.built.operation:
            case AffineOperation(weight=weight, bias=bias, sizes=None) if (
                weight.ndim == 2 and not bias.any() and (sign == 1.0).all()
            ):
                return BuiltOperation(AffineOperation(weight, added), self.built.sources)
        return BuiltOperation(Shift(sign, added), (self.built,))

    def select(self, columns: Sequence[int], *, name: str) -> Flow:
        """Some of the values, in this order."""
        if not len(columns):
            raise ModelError(f"'{name}' selects no values at all.")
        self._check_size(len(columns), name)
        built = BuiltOperation(Gather((np.asarray(columns, dtype=np.intp),)), (self.built,))
        return Flow(built, self.expression.selected(columns))

    def plus(self, other: Flow, *, name: str, sign: float = 1.0) -> Flow:
        """The sum of two flows, or with sign=-1.0 their difference."""
        if self.width != other.width:
            raise ModelError(f"'{name}' adds {self.width} values to {other.width}.")
        one, two = _at_one_depth([self, other], name)
        return Flow(BuiltOperation(Total(sign), (one.built, two.built)), one.expression.plus(two.expression, sign))

    def joined(self, others: Sequence[Flow], *, name: str) -> Flow:
        """Flows beside one another."""
        flows = _at_one_depth([self, *others], name)
        built = BuiltOperation(Gather((None,) * len(flows)), tuple(flow.built for flow in flows))
        return Flow(built, Expression.stacked([flow.expression for flow in flows]))

    # ------------------------------------------------------------------ nonlinear operations

    def relu(self) -> Flow:
        if self.expression.is_block and self.depth and self.expression.parts[0][0].activation == RELU:
            return self
        ones = np.ones(self.width)
        return self._units(LeakyReLU(np.zeros(self.width), (ones,), plain=True), [(self.expression, ones)])

    def smooth(self, activation: Activation) -> Flow:
        """The activation of each value."""
        if activation == RELU:
            return self.relu()
        self._check_size(self.width, activation.name)
        self._check_depth()
        units = self.expression
        built = BuiltOperation(
            Smooth(activation), (self.built,), *((units.fold(), units.unit_operations()) if units.terms else (None, ()))
        )
        with np.errstate(invalid="ignore", over="ignore"):
            ends = activation.values(*units.interval())
        low, high = (np.where(np.isnan(end), side, end) for end, side in zip(ends, (-np.inf, np.inf), strict=True))
        block = UnitBlock(built, units, low, high, self.depth + 1, activation=activation)
        return Flow(built, Expression.of(block))

    def activated(self, activation: Activation | SideBySide, *, name: str) -> Flow:
        """The activation of each value, where they differ that of each group."""
        if isinstance(activation, Activation):
            return self.smooth(activation)
        flows, at = [], 0
        for one, count in activation.parts:
            flows.append(self.select(list(range(at, at + count)), name=name).smooth(one))
            at += count
        return flows[0].joined(flows[1:], name=name) if len(flows) > 1 else flows[0]

    def leaky_relu(self, below: ArrayLike, *, name: str) -> Flow:
        """value where it is > 0, else below * value."""
        slope = _broadcast(np.ravel(checked(below, name)), self.width, name)
        if not slope.any():
            return self.relu()
        groups, shift = _pass_through(self.expression)
        if len(groups) == 1:
            groups = [(self.expression, 1.0 - slope), (groups[0][0], slope)]
        else:
            groups = [(self.expression, np.ones(self.width)), (groups[1][0], -slope)]
        operation = LeakyReLU(slope, tuple(np.abs(factor) for _, factor in groups))
        return self._units(operation, groups, shift * slope)

    def clip(self, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf, *, name: str) -> Flow:
        """value, but at least `lower` and at most `upper`."""
        least, most = (_broadcast(_bound(end, name), self.width, name) for end in (lower, upper))
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
        one, two = _at_one_depth([self, other], name)
        groups, shift = _pass_through(two.expression)
        first = one.expression.plus(two.expression, -1.0), np.ones(self.width)
        return one._units(Maximum(), [first, *groups], shift, also=two)

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

    def piecewise_linear(self, knots: Floats, values: Floats, *, name: str, error: ArrayLike = 0.0) -> Flow:
        """Functions of the one value, from the first knot to the last, linear between knots: `values` is what each is
        at each knot, shape (knots, functions). `error` bounds what the model's own arithmetic does to each."""
        table = checked(values, name)
        if len(knots) < 2:
            return self.linear(np.zeros((table.shape[1], self.width)), table[0], name=name)
        bends = _bends(checked(knots, name), table)
        self._check_size(len(knots), name)
        check_size(bends.shape, name)
        self._check_depth()
        units = self.expression.mapped(np.ones((len(knots) - 1, 1)), -knots[:-1])
        off = np.array(np.broadcast_to(error, (table.shape[1],)), dtype=np.float64)
        operation = PiecewiseLinear(knots, table, bends, off)
        built = BuiltOperation(operation, (self.built,), units.fold(), units.unit_operations())
        low, high = (np.maximum(end, 0.0) for end in units.interval())
        block = UnitBlock(built, units, low, high, self.depth + 1)
        value = Expression.of(block).mapped(bends, table[0])
        return Flow(built, Expression(value.parts, value.bias, value.size_bias, 2, value.underflows))

    def _units(
        self, operation: Operation, groups: Sequence[tuple[Expression, Floats]], shift: Floats | None = None,
        also: Flow | None = None,
    ) -> Flow:  # fmt: skip
        """Units relu(expression) of one depth, in groups; the value is their sum, each times its factor, plus the
        shift."""
        self._check_size(self.width * len(groups), "relu")
        if len(groups) > 1 or shift is not None:
            check_size((self.width, self.width * len(groups)), "relu")
        self._check_depth()
        units = Expression.stacked([expression for expression, _ in groups])
        exact = units.terms == 0 and isinstance(operation, LeakyReLU) and operation.plain
        sources = (self.built,) if also is None else (self.built, also.built)
        built = BuiltOperation(operation, sources, *((None, ()) if exact else (units.fold(), units.unit_operations())))
        low, high = (np.maximum(end, 0.0) for end in units.interval())
        value = Expression.of(UnitBlock(built, units, low, high, self.depth + 1))
        if len(groups) > 1 or shift is not None:
            weight = np.hstack([np.diag(factor) for _, factor in groups])
            value = value.mapped(weight, np.zeros(self.width) if shift is None else shift)
            value = Expression(value.parts, value.bias, value.size_bias, 2, value.underflows)
        return Flow(built, value)

    def deepened(self) -> Flow:
        """The same value as an affine map of units one layer deeper, which pass it on: units of its own, or copies of
        the units that it reads, whichever are fewer."""
        if not self._deeper:
            groups, shift = _pass_through(self.expression)
            far = max(block.lift.max() for block, _, _ in self.expression.parts) > MAX_LIFT
            if far or self.expression.inputs > self.width * len(groups):
                shares = tuple(np.abs(factor) for _, factor in groups)
                self._deeper.append(self._units(LeakyReLU(np.ones(self.width), shares), groups, shift))
            else:
                self._deeper.append(Flow(self.built, self.expression.deepened()))
        return self._deeper[0]

    def _check_size(self, width: int, name: str) -> None:
        check_size((width, self.expression.inputs), name)

    def _check_depth(self) -> None:
        if self.depth >= MAX_LAYERS:
            raise ModelError(f"A network has between 1 and {MAX_LAYERS} layers; this model has more.")

    def to_network(self) -> Network | SmoothNetwork:
        """The network of which this is the output, with the operation graph of the model."""
        self._check_size(self.width, "the output")
        network = network_of(self.expression)
        if not self.expression.terms:
            return network.deployed_as(operation_graph(self.built, None, ()))
        return network.deployed_as(
            operation_graph(self.built, self.expression.fold(), self.expression.unit_operations())
        )


def _at_one_depth(flows: Sequence[Flow], name: str) -> list[Flow]:
    """The same values, all at the depth of the deepest."""
    depth = max(flow.depth for flow in flows)
    level = []
    for shallow in flows:
        flow = shallow
        while flow.depth < depth:
            flow = flow.deepened()
        level.append(flow)
    check_size((sum(flow.width for flow in flows), max(flow.expression.inputs for flow in level)), name)
    return level


def _pass_through(expression: Expression) -> tuple[list[tuple[Expression, Floats]], Floats]:
    """Units that pass a value through a layer: the sum of relu(expression) times factor, plus a shift."""
    ones, lift = np.ones(expression.width), lift_of(*expression.interval())
    if lift.max() <= MAX_LIFT:
        return [(expression.shifted(lift), ones)], -lift
    return [(expression, ones), (expression.negated(), -ones)], np.zeros(expression.width)


def _bends(knots: Floats, values: Floats) -> Floats:
    """(function, knot): how much the slope changes at each knot but the last, each rounded once."""
    if (np.diff(knots) <= 0.0).any():
        raise ModelError("The knots of a piecewise-linear function must grow.")
    at = [Fraction(knot) for knot in knots.tolist()]
    result = np.empty((values.shape[1], len(at) - 1))
    for i, column in enumerate(values.T.tolist()):
        exact = [Fraction(value) for value in column]
        before = Fraction(0)
        for k in range(len(at) - 1):
            slope = (exact[k + 1] - exact[k]) / (at[k + 1] - at[k])
            result[i, k], before = float(slope - before), slope
    return result


def _bound(end: ArrayLike, name: str) -> Floats:
    """Bounds, of which all or none are finite."""
    numbers = np.ravel(np.asarray(end, dtype=np.float64))
    finite = np.isfinite(numbers)
    if np.isnan(numbers).any() or (finite.any() and not finite.all()):
        raise ModelError(f"'{name}' has bounds that are NaN, or infinite for some of the values only.")
    return numbers


def _broadcast(numbers: Floats, width: int, name: str) -> Floats:
    if numbers.size not in (1, width) or numbers.ndim > 1:
        raise ModelError(f"'{name}' adds {numbers.size} numbers to {width} values.")
    return np.array(np.broadcast_to(numbers, (width,)))


def checked(numbers: ArrayLike, name: str) -> Floats:
    """Weights as float64; a ModelError with the operation's name where some are NaN or infinite."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ModelError(f"'{name}' has NaN or infinite weights; the model is damaged.")
    return array
