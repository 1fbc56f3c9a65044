"""Operations on flows: the one table that the readers of torch, ONNX and Keras graphs share.

A reader finds out which of these a framework's operation is, and turns its arguments into theirs. Values that depend on
the row are flows (`Shaped` where they have more than one axis); constants are float64 arrays, rounded as the framework
rounds them. Axes are those of the whole tensor, in which axis 0 holds the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.shaped import (
    Reduction,
    Shaped,
    axis_of_row,
    in_shape,
    of_one_width,
    reduced,
    reshaped,
    with_one,
    without_one,
)
from ifonly.model.smooth import Activation

Floats: TypeAlias = NDArray[np.float64]
Value: TypeAlias = Any  # a Flow, a Shaped, a Final, or a constant
FinalActivation: TypeAlias = Literal["sigmoid", "softmax"]
SOFTPLUS_THRESHOLD = 20.0
"""Above it torch takes z for softplus(z)."""


@dataclass(frozen=True)
class OperationCall:
    """An operation of a graph: its own name and that of its type, for messages."""

    framework: ClassVar[str] = "model"
    noun: ClassVar[str] = "operation"

    name: str
    operation: str

    def refuse(self, why: str) -> UnsupportedModel:
        return UnsupportedModel(
            f"The {self.noun} {self.operation} ('{self.name}') of the {self.framework} {why}.",
            operation=self.operation,
        )


@dataclass(frozen=True)
class Final:
    """A last sigmoid or softmax, which is taken off: `flow` has the logits, `source` is their place in the graph."""

    flow: Flow
    source: Any
    activation: FinalActivation
    operation: str

    @property
    def width(self) -> int:
        return self.flow.width

    @property
    def is_plain_sigmoid(self) -> bool:
        return self.activation == "sigmoid"


def as_inner(value: Value) -> Value:
    """A value that something follows: a sigmoid is then an activation like others."""
    if isinstance(value, Final) and value.is_plain_sigmoid:
        return value.flow.smooth(Activation("sigmoid"))
    return value


def last_sigmoid(call: OperationCall, value: Value, source: Any) -> Final:
    return Final(_one_row(call, value), source, "sigmoid", call.operation)


def last_softmax(call: OperationCall, value: Value, source: Any, axis: Any = -1) -> Final:
    if axis not in (1, -1, None):
        raise call.refuse("compares rows with one another")
    return Final(_one_row(call, value), source, "softmax", call.operation)


def _one_row(call: OperationCall, value: Value) -> Flow:
    if not isinstance(value, Flow):
        raise call.refuse("takes more than one row of values")
    return value


# ---------------------------------------------------------------------- arithmetic


def matmul(call: OperationCall, value: Value, weight: Any, bias: Floats | None = None) -> Flow:
    """value @ weight + bias, weight of shape (inputs, outputs)."""
    if not isinstance(value, Flow) or isinstance(weight, Flow) or isinstance(bias, Flow):
        raise call.refuse("is not a product of one row of values and constants to their right")
    return value.linear(weight.T, bias, name=call.name)


def add(call: OperationCall, a: Value, b: Value, *, alpha: float = 1.0) -> Flow:
    """a + alpha b."""
    if isinstance(a, Flow) and isinstance(b, Flow):
        one, other = of_one_width(a, b, name=call.name)
        if alpha in (1.0, -1.0):
            return one.plus(other, name=call.name, sign=float(alpha))
        return one.plus(other.scale(alpha, name=call.name), name=call.name)
    if isinstance(a, Flow):
        return a.scale(1.0, alpha * b, name=call.name)
    return b.scale(alpha, a, name=call.name)


def total(call: OperationCall, *terms: Value) -> Flow:
    """The sum: flows in order, then constants."""
    first, *others = sorted(terms, key=lambda term: not isinstance(term, Flow))
    for other in others:
        first = add(call, first, other)
    return first


def subtract(call: OperationCall, a: Value, b: Value, *, alpha: float = 1.0) -> Flow:
    return add(call, a, b, alpha=-alpha)


def negate(call: OperationCall, value: Flow) -> Flow:
    return value.scale(-1.0, name=call.name)


def multiply(call: OperationCall, a: Value, b: Value) -> Flow:
    if isinstance(a, Flow) and isinstance(b, Flow):
        raise call.refuse("multiplies two values of the row")
    return a.scale(b, name=call.name) if isinstance(a, Flow) else b.scale(a, name=call.name)


def divide(call: OperationCall, a: Value, b: Value) -> Flow:
    if isinstance(b, Flow):
        raise call.refuse("divides by a value of the row")
    with np.errstate(divide="ignore"):  # what is infinite is refused as that
        return a.scale(1.0 / np.float64(b), name=call.name)


def average(call: OperationCall, *terms: Flow) -> Flow:
    return total(call, *terms).scale(1.0 / len(terms), name=call.name)


def batch_normalization(
    call: OperationCall, value: Flow, *, mean: Floats, deviation: Floats, factor: Any, shift: Any
) -> Flow:
    """(value - mean) / deviation * factor + shift, by the statistics of the training."""
    if len(mean) != value.width:
        raise ModelError(f"'{call.name}' takes {len(mean)} values, but gets {value.width}.")
    scale = np.float64(factor) / deviation
    size = np.abs(mean * scale) + np.abs(shift)
    return value.scale(scale, shift - mean * scale, name=call.name, size_shift=size)


def concatenate(call: OperationCall, parts: Sequence[Value], axis: Any) -> Flow:
    if axis not in (1, -1) or not all(isinstance(part, Flow) for part in parts):
        raise call.refuse("joins rows, or joins them with constants")
    first, *others = parts
    return first.joined(others, name=call.name) if others else first


# ---------------------------------------------------------------------- activations


def relu(call: OperationCall, value: Flow) -> Flow:
    return value.relu()


def smooth(name: Literal["tanh", "silu", "gelu", "gelu_tanh"]) -> Callable[[OperationCall, Flow], Flow]:
    """The operation of a smooth activation without parameters."""

    def handle(call: OperationCall, value: Flow) -> Flow:
        return value.smooth(Activation(name))

    return handle


def elu(call: OperationCall, value: Flow, alpha: Any = 1.0) -> Flow:
    return value.smooth(Activation("elu", alpha=float(alpha)))


def softplus(call: OperationCall, value: Flow, beta: float = 1.0, threshold: float = SOFTPLUS_THRESHOLD) -> Flow:
    """log(1 + exp(beta z)) / beta, and from beta z > threshold on z itself."""
    if not beta > 0.0:
        raise call.refuse(f"has beta={beta:g}, which must be above 0")
    curve = Activation("softplus", off=math.log1p(math.exp(-threshold)), off_from=float(threshold))
    if beta == 1.0:
        return value.smooth(curve)
    return value.scale(beta, name=call.name).smooth(curve).scale(1.0 / beta, name=call.name)


def leaky_relu(call: OperationCall, value: Flow, slope: Any) -> Flow:
    if isinstance(slope, Flow):
        raise call.refuse("has slopes that depend on the row")
    return value.leaky_relu(slope, name=call.name)


def absolute(call: OperationCall, value: Flow) -> Flow:
    return value.leaky_relu(-1.0, name=call.name)


def clip(call: OperationCall, value: Flow, least: Value = None, most: Value = None) -> Flow:
    """At least `least`, then at most `most`; either may be a value of the row."""
    if not isinstance(least, Flow) and not isinstance(most, Flow):
        lower, upper = -np.inf if least is None else least, np.inf if most is None else most
        return value.clip(lower, upper, name=call.name)
    value = value if least is None else maximum(call, value, least)
    return value if most is None else minimum(call, value, most)


def hard_sigmoid(call: OperationCall, value: Flow) -> Flow:
    """min(max(z + 3, 0), 6) / 6."""
    clipped = value.scale(1.0, 3.0, name=call.name).clip(0.0, 6.0, name=call.name)
    return clipped.scale(1.0 / 6.0, name=call.name)


def soft_shrink(call: OperationCall, value: Flow, edge: Any) -> Flow:
    """z - min(max(z, -edge), edge)."""
    return value.plus(value.clip(-edge, edge, name=call.name), name=call.name, sign=-1.0)


# ---------------------------------------------------------------------- maxima and reductions


def maximum(call: OperationCall, *terms: Value) -> Flow:
    return _extreme(call, terms, largest=True)


def minimum(call: OperationCall, *terms: Value) -> Flow:
    return _extreme(call, terms, largest=False)


def _extreme(call: OperationCall, terms: Sequence[Value], *, largest: bool) -> Flow:
    first, *others = sorted(terms, key=lambda term: not isinstance(term, Flow))
    for term in others:
        if isinstance(term, Flow):
            one, other = of_one_width(first, term, name=call.name)
            first = (one.maximum if largest else one.minimum)(other, name=call.name)
        else:
            first = first.clip(**({"lower": term} if largest else {"upper": term}), name=call.name)
    return first


def reduce(
    call: OperationCall, value: Flow | Shaped, axes: Sequence[Any], how: Reduction, *, keep: bool
) -> Flow | Shaped:
    if len(axes) != 1 or not isinstance(axes[0], int):
        raise call.refuse("mixes rows with one another, or reduces several dimensions; reduce dimension 1 alone")
    return reduced(value, axis_of_row(call, value, axes[0]), how, keep=keep, name=call.name)


# ---------------------------------------------------------------------- columns and shapes


def select(call: OperationCall, value: Flow, columns: Any) -> Flow:
    """Columns by anything that indexes an array: a number, numbers, a slice."""
    chosen = np.atleast_1d(np.arange(value.width)[columns])
    return value.select(chosen.tolist(), name=call.name)


def split(call: OperationCall, value: Flow, sizes: Sequence[int], axis: Any) -> tuple[Flow, ...]:
    if axis not in (1, -1) or not len(sizes) or sum(sizes) != value.width:
        raise call.refuse("splits rows, or into parts of unknown sizes")
    parts = np.split(np.arange(value.width), np.cumsum(sizes)[:-1])
    return tuple(value.select(part.tolist(), name=call.name) for part in parts)


def stack(call: OperationCall, parts: Sequence[Flow], axis: int) -> Flow | Shaped:
    """Rows of the same width beside one another, along a dimension of their own."""
    own, width = axis_of_row(call, parts[0], axis, added=1), parts[0].width
    if any(part.width != width for part in parts):
        raise call.refuse("stacks rows of different widths")
    joined = concatenate(call, parts, 1)
    if own == 0:
        return in_shape(joined, (len(parts), width))
    order = np.arange(joined.width).reshape(len(parts), width).T.ravel()
    return in_shape(joined.select(order.tolist(), name=call.name), (width, len(parts)))


def reshape(call: OperationCall, value: Value, rows: Any, rest: Sequence[Any]) -> Value:
    """To shape (rows, *rest): `rows` is "same", or a number, which only one value per row allows; -1 is inferred."""
    if value.width == 1 and len(rest) <= 1:
        return value.flow if isinstance(value, Shaped) else value
    counted = bool(rest) and all(isinstance(size, int) for size in rest)
    kept = counted and (rows == "same" or (rows == -1 and (-1 not in rest or list(rest) == [-1])))
    if isinstance(value, Final):
        result: Value | None = value if kept and list(rest) in ([-1], [value.width]) else None
    else:
        result = reshaped(value, rest) if kept else None
    if result is None:
        raise call.refuse(f"changes the shape of the table to {[rows, *rest]}")
    return result


def flatten(call: OperationCall, value: Value, start: int = 1, end: int = -1) -> Value:
    if isinstance(value, Shaped):
        if start == 1 and end in (-1, len(value.shape)):
            return value.flow
        raise call.refuse("changes the shape of the table")
    if start not in (1, -1) and value.width != 1:
        raise call.refuse("mixes rows with one another")
    return value


def unsqueeze(call: OperationCall, value: Flow | Shaped, axes: Sequence[int]) -> Flow | Shaped:
    for axis in sorted(axis_of_row(call, value, axis, added=len(axes)) for axis in axes):
        longer = with_one(value, axis)
        if longer is None:
            raise call.refuse("adds dimensions that do not follow one another")
        value = longer
    return value


def squeeze(call: OperationCall, value: Value, axes: Sequence[int]) -> Value:
    if isinstance(value, Shaped):
        result: Flow | Shaped | None = value if len(axes) else None
        for axis in sorted((axis_of_row(call, value, axis) for axis in axes), reverse=True):
            result = None if result is None else without_one(result, axis)
        if result is None:
            raise call.refuse("removes a dimension that may hold rows, or is not of one")
        return result
    if value.width != 1 and not (axes and all(axis in (1, -1) for axis in axes)):
        raise call.refuse("removes a dimension that may hold rows")
    return value


def identity(call: OperationCall, value: Value, *others: Any, **options: Any) -> Value:
    return value
