"""Reshaped values of a row: more than one axis, for pooling and reductions.

A flow is a row of values. A model may reshape it (`view(-1, 8, 3)`, `unsqueeze(1)`), pool or reduce along an axis, and
flatten it again. A `Shaped` is a flow and its shape; operations that are not listed here do not take it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.blocks import check_size
from ifonly.model.flow import Flow

Reduction: TypeAlias = Literal["max", "min", "sum", "mean"]


@dataclass(frozen=True)
class Shaped:
    """The values of each row, in this shape."""

    flow: Flow
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        return self.flow.width


class Refusing(Protocol):
    """An operation of a framework, which can refuse how it is used."""

    def refuse(self, why: str) -> UnsupportedModel: ...


def axis_of_row(call: Refusing, value: Flow | Shaped, axis: int, *, added: int = 0) -> int:
    """Which axis of the row's values an axis of the whole tensor is; `added` counts axes that are about to be added."""
    dims = 1 + len(flow_and_shape(value)[1]) + added
    own = (axis + dims if axis < 0 else axis) - 1
    if not 0 <= own < dims - 1:
        raise call.refuse("mixes rows with one another")
    return own


def in_shape(flow: Flow, shape: Sequence[int]) -> Flow | Shaped:
    return flow if len(shape) <= 1 else Shaped(flow, tuple(shape))


def flow_and_shape(value: Flow | Shaped) -> tuple[Flow, tuple[int, ...]]:
    return (value.flow, value.shape) if isinstance(value, Shaped) else (value, (value.width,))


def reshaped(value: Flow | Shaped, sizes: Sequence[int]) -> Flow | Shaped | None:
    """In another shape, in which one size may be -1; None where the values do not fill it."""
    flow, _ = flow_and_shape(value)
    known = math.prod(size for size in sizes if size != -1)
    if list(sizes).count(-1) > 1 or known <= 0 or any(size < -1 for size in sizes):
        return None
    filled = [flow.width // known if size == -1 else int(size) for size in sizes]
    return in_shape(flow, filled) if math.prod(filled) == flow.width else None


def with_one(value: Flow | Shaped, axis: int) -> Flow | Shaped | None:
    """With a dimension of one more, before this axis of the row's values."""
    flow, shape = flow_and_shape(value)
    return in_shape(flow, (*shape[:axis], 1, *shape[axis:])) if 0 <= axis <= len(shape) else None


def without_one(value: Flow | Shaped, axis: int) -> Flow | Shaped | None:
    """Without this axis of the row's values, which must be of one."""
    flow, shape = flow_and_shape(value)
    if not 0 <= axis < len(shape) or shape[axis] != 1:
        return None
    return in_shape(flow, shape[:axis] + shape[axis + 1 :])


def reduced(value: Flow | Shaped, axis: int, how: Reduction, *, keep: bool, name: str) -> Flow | Shaped:
    """The largest, the least, the sum or the mean of the values along one axis of the row's values."""
    flow, shape = flow_and_shape(value)
    windows = np.moveaxis(np.arange(flow.width).reshape(shape), axis, -1).reshape(-1, shape[axis])
    left = [size if i != axis else 1 for i, size in enumerate(shape) if keep or i != axis]
    return in_shape(_taken(flow, windows.tolist(), how, name), left)


def _taken(flow: Flow, windows: list[list[int]], how: Reduction, name: str) -> Flow:
    match how:
        case "max":
            return flow.window_maximum(windows, name=name)
        case "min":
            return flow.scale(-1.0, name=name).window_maximum(windows, name=name).scale(-1.0, name=name)
        case "sum" | "mean":
            weight = np.zeros((len(windows), flow.width))
            for row, window in zip(weight, windows, strict=True):
                row[window] = 1.0
            total = flow.linear(weight, name=name)
            return total if how == "sum" else total.scale(1.0 / len(windows[0]), name=name)


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """How windows lie along the last axis of the row's values."""

    size: int
    stride: int
    before: int = 0
    after: int = 0
    dilation: int = 1
    ceil: bool = False

    def windows(self, length: int, name: str) -> list[NDArray[np.intp]]:
        """The indices in each window; padding is left out."""
        padding = max(self.before, self.after)
        if min(self.size, self.stride, self.dilation) < 1 or not 0 <= padding < self.size <= length + 2 * padding:
            raise ModelError(
                f"'{name}' pools {length} values in windows of {self.size}, {self.stride} apart, with {padding} beside "
                f"them; no such windows fit."
            )
        check_size((self.size, 1 + (length + 2 * padding) // self.stride), name)
        reach = self.dilation * (self.size - 1) + 1
        steps = (length + self.before + self.after - reach) / self.stride
        count = (math.ceil(steps) if self.ceil else math.floor(steps)) + 1
        if self.ceil and (count - 1) * self.stride >= length + self.before:  # a window must begin inside
            count -= 1
        starts = np.arange(max(0, count)) * self.stride - self.before
        seen = starts[:, None] + self.dilation * np.arange(self.size)
        return [places[(places >= 0) & (places < length)] for places in seen]


def pooled(value: Flow | Shaped, pool: Pooling, *, name: str) -> Flow | Shaped:
    """The largest value of each window along the last axis."""
    flow, shape = flow_and_shape(value)
    places = pool.windows(shape[-1], name)
    lines = np.arange(flow.width).reshape(-1, shape[-1])
    check_size((len(lines) * max(1, len(places)), pool.size), name)
    windows = [line[seen].tolist() for line in lines for seen in places]
    return in_shape(flow.window_maximum(windows, name=name), (*shape[:-1], len(places)))


def of_one_width(one: Flow, other: Flow, *, name: str) -> tuple[Flow, Flow]:
    """Two flows, of which one that has a single value is repeated for all values of the other."""
    width = max(one.width, other.width)
    return tuple(  # type: ignore[return-value]
        flow.select([0] * width, name=name) if flow.width == 1 < width else flow for flow in (one, other)
    )
