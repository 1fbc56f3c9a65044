"""torch's piecewise-linear operations beside ReLU: slopes, bounds, maxima, and the shapes that lead to them."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ifonly.model.flow import Flow
from ifonly.model.importers.shaped import (
    Pooling,
    Reduction,
    Shaped,
    axis_of_row,
    flow_and_shape,
    in_shape,
    of_one_width,
    pooled,
    reduced,
    reshaped,
    with_one,
    without_one,
)
from ifonly.model.importers.torch_call import ROWS, TorchCall, Value, flat

# ---------------------------------------------------------------------- slopes and bounds


def _leaky_relu(call: TorchCall, input: Flow, negative_slope: float = 0.01, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    return input.bend(call.number(negative_slope), name=call.name)


def _leaky_relu_module(call: TorchCall, module: nn.LeakyReLU, flow: Flow) -> Flow:
    return _leaky_relu(call, flow, module.negative_slope)


def _rrelu_module(call: TorchCall, module: nn.RReLU, flow: Flow) -> Flow:
    return _leaky_relu(call, flow, (module.lower + module.upper) / 2)


def _prelu(call: TorchCall, input: Flow, weight: Any) -> Flow:  # noqa: A002 torch's own name
    return input.bend(call.number(weight), name=call.name)


def _prelu_module(call: TorchCall, module: nn.PReLU, flow: Flow) -> Flow:
    return _prelu(call, flow, module.weight)


def _absolute(call: TorchCall, flow: Flow) -> Flow:
    return flow.bend(-1.0, name=call.name)


def _clamp(call: TorchCall, flow: Flow, min: Any = None, max: Any = None) -> Flow:  # noqa: A002 torch's own names
    """First `min`, then `max`, as torch does it; either may be a value of the row."""
    if not isinstance(min, Flow) and not isinstance(max, Flow):
        least, most = (-np.inf if min is None else call.number(min), np.inf if max is None else call.number(max))
        return flow.clip(least, most, name=call.name)
    flow = flow if min is None else _maximum(call, flow, min)
    return flow if max is None else _minimum(call, flow, max)


def _clamp_min(call: TorchCall, flow: Flow, min: Any) -> Flow:  # noqa: A002 torch's own name
    return _clamp(call, flow, min)


def _clamp_max(call: TorchCall, flow: Flow, max: Any) -> Flow:  # noqa: A002 torch's own name
    return _clamp(call, flow, None, max)


def _hardtanh(call: TorchCall, input: Flow, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    return _clamp(call, input, min_val, max_val)


def _hardtanh_module(call: TorchCall, module: nn.Hardtanh, flow: Flow) -> Flow:
    return _clamp(call, flow, module.min_val, module.max_val)


def _relu6(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    return _clamp(call, input, 0.0, 6.0)


def _hardsigmoid(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    lifted = input.scale(1.0, 3.0, name=call.name).clip(0.0, 6.0, name=call.name)
    return lifted.scale(1.0 / 6.0, name=call.name)


def _hardsigmoid_module(call: TorchCall, module: nn.Hardsigmoid, flow: Flow) -> Flow:
    return _hardsigmoid(call, flow)


def _threshold(call: TorchCall, input: Flow, threshold: float, value: float, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    if threshold != value:
        raise call.refuse(f"jumps from {value:g} to {threshold:g} at its threshold; only a continuous one is supported")
    return _clamp(call, input, threshold)


def _threshold_module(call: TorchCall, module: nn.Threshold, flow: Flow) -> Flow:
    return _threshold(call, flow, module.threshold, module.value)


def _softshrink(call: TorchCall, input: Flow, lambd: float = 0.5) -> Flow:  # noqa: A002 torch's own name
    return input.plus(_clamp(call, input, -lambd, lambd), name=call.name, sign=-1.0)


def _softshrink_module(call: TorchCall, module: nn.Softshrink, flow: Flow) -> Flow:
    return _softshrink(call, flow, module.lambd)


# ---------------------------------------------------------------------- maxima


def _maximum(call: TorchCall, a: Any, b: Any) -> Flow:
    return _of_two(call, a, b, larger=True)


def _minimum(call: TorchCall, a: Any, b: Any) -> Flow:
    return _of_two(call, a, b, larger=False)


def _of_two(call: TorchCall, a: Any, b: Any, *, larger: bool) -> Flow:
    """The larger, or the smaller, of two values of the row, or of one and a number."""
    if isinstance(a, Flow) and isinstance(b, Flow):
        one, other = of_one_width(a, b, name=call.name)
        return one.larger(other, name=call.name) if larger else one.smaller(other, name=call.name)
    flow, bound = (a, b) if isinstance(a, Flow) else (b, a)
    end = call.number(bound)
    return flow.clip(lower=end, name=call.name) if larger else flow.clip(upper=end, name=call.name)


class Extremes(tuple[Any, ...]):
    """What max and min along a dimension return: values, and indices, which are not supported."""

    __slots__ = ()

    @property
    def values(self) -> Any:
        return self[0]


def _extreme(how: Reduction, of_two: Callable[..., Flow]) -> Callable[..., Any]:
    def handle(call: TorchCall, value: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        second = dim if other is None else other
        if isinstance(second, Flow | torch.Tensor):
            return of_two(call, value, second)
        if dim is None:
            raise call.refuse("compares rows with one another; say dim=1")
        return Extremes((_reduced(call, value, dim, how, keep=keepdim), None))

    return handle


def _reduction(how: Reduction) -> Callable[..., Any]:
    def handle(call: TorchCall, value: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return _reduced(call, value, dim, how, keep=keepdim)

    return handle


def _reduced(call: TorchCall, value: Flow | Shaped, dim: Any, how: Reduction, *, keep: bool) -> Flow | Shaped:
    listed = list(dim) if isinstance(dim, tuple | list) else [dim]
    if len(listed) != 1 or not isinstance(listed[0], int):
        raise call.refuse("mixes rows with one another, or reduces several dimensions; say dim=1")
    return reduced(value, axis_of_row(call, value, listed[0]), how, keep=keep, name=call.name)


def _max_pool_module(call: TorchCall, module: nn.MaxPool1d, value: Any) -> Any:
    given = module.kernel_size, module.stride, module.padding, module.dilation
    return _max_pool(call, value, *given, module.ceil_mode, module.return_indices)


def _max_pool(
    call: TorchCall, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,  # noqa: A002 torch's own name
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    size, step, pad, spread = (
        int(flat([part])[0])
        for part in (kernel_size, kernel_size if stride in (None, [], ()) else stride, padding, dilation)
    )
    if return_indices:
        raise call.refuse("returns indices")
    pool = Pooling(size=size, stride=step, before=pad, after=pad, dilation=spread, ceil=ceil_mode)
    return pooled(input, pool, name=call.name)


# ---------------------------------------------------------------------- shapes


def _reshape(call: TorchCall, value: Value, *shape: Any) -> Value:
    """To (rows, ...), or, for one value per row, to anything that keeps the rows."""
    sizes = flat(shape)
    if not isinstance(value, Flow | Shaped):
        width = value.flow.width
        if (width == 1 and len(sizes) <= 2) or (len(sizes) == 2 and sizes[0] in (ROWS, -1) and sizes[1] in (-1, width)):
            return value
        raise call.refuse("changes the shape of the table")
    if value.width == 1 and len(sizes) <= 2:
        return flow_and_shape(value)[0]
    rest = sizes[1:]
    counted = bool(rest) and all(isinstance(size, int) for size in rest)
    kept = counted and (sizes[0] is ROWS or (sizes[0] == -1 and (-1 not in rest or rest == [-1])))
    result = reshaped(value, rest) if kept else None
    if result is None:
        raise call.refuse("changes the shape of the table")
    return result


def _unflatten_module(call: TorchCall, module: nn.Unflatten, value: Flow) -> Any:
    return _unflatten(call, value, module.dim, module.unflattened_size)


def _unflatten(call: TorchCall, value: Flow, dim: Any, sizes: Any) -> Any:
    result = reshaped(value, [int(size) for size in sizes]) if dim in (1, -1) and isinstance(value, Flow) else None
    if result is None:
        raise call.refuse("changes the shape of the table")
    return result


def _flatten_module(call: TorchCall, module: nn.Flatten, value: Value) -> Value:
    return _flatten(call, value, module.start_dim, module.end_dim)


def _flatten(call: TorchCall, value: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if isinstance(value, Shaped):
        if start_dim == 1 and end_dim in (-1, len(value.shape)):
            return value.flow
        raise call.refuse("changes the shape of the table")
    width = value.width if isinstance(value, Flow) else value.flow.width
    if start_dim not in (1, -1) and width != 1:
        raise call.refuse("mixes rows with one another")
    return value


def _unsqueeze(call: TorchCall, value: Any, dim: int) -> Any:
    return with_one(value, axis_of_row(call, value, dim, room=1))


def _squeeze(call: TorchCall, value: Value, dim: int | None = None) -> Value:
    if isinstance(value, Shaped):
        result = without_one(value, axis_of_row(call, value, dim)) if isinstance(dim, int) else None
        if result is None:
            raise call.refuse("removes a dimension that may hold rows, or is not of one")
        return result
    width = value.width if isinstance(value, Flow) else value.flow.width
    if width != 1 and dim not in (1, -1):
        raise call.refuse("removes a dimension that may hold rows")
    return value


def _stack(call: TorchCall, tensors: Sequence[Flow], dim: int = 0) -> Any:
    """Rows of the same width beside one another, along a dimension of their own."""
    axis = axis_of_row(call, tensors[0], dim, room=1)
    joined = tensors[0].joined(tensors[1:], name=call.name) if len(tensors) > 1 else tensors[0]
    width = tensors[0].width
    if any(tensor.width != width for tensor in tensors):
        raise call.refuse("stacks rows of different widths")
    if axis == 0:
        return in_shape(joined, (len(tensors), width))
    order = np.arange(joined.width).reshape(len(tensors), width).T.ravel()
    return in_shape(joined.pick(order.tolist(), name=call.name), (width, len(tensors)))


def _split(call: TorchCall, flow: Flow, split_size_or_sections: Any, dim: int = 0) -> tuple[Flow, ...]:
    given = split_size_or_sections
    if dim not in (1, -1):
        raise call.refuse("splits rows")
    ends = np.cumsum(given)[:-1] if isinstance(given, list | tuple) else np.arange(given, flow.width, given)
    return tuple(flow.pick(part.tolist(), name=call.name) for part in np.split(np.arange(flow.width), ends))


def _chunk(call: TorchCall, flow: Flow, chunks: int, dim: int = 0) -> tuple[Flow, ...]:
    return _split(call, flow, -(-flow.width // chunks), dim)


SHAPES: tuple[Callable[..., Any], ...] = (_reshape, _flatten, _flatten_module, _squeeze)
"""Those that may follow a sigmoid or softmax."""

_max, _min = _extreme("max", _maximum), _extreme("min", _minimum)

MODULES: dict[type, Callable[..., Any]] = {
    nn.LeakyReLU: _leaky_relu_module,
    nn.PReLU: _prelu_module,
    nn.RReLU: _rrelu_module,
    nn.ReLU6: _hardtanh_module,
    nn.Hardtanh: _hardtanh_module,
    nn.Hardsigmoid: _hardsigmoid_module,
    nn.Threshold: _threshold_module,
    nn.Softshrink: _softshrink_module,
    nn.MaxPool1d: _max_pool_module,
    nn.Flatten: _flatten_module,
    nn.Unflatten: _unflatten_module,
}

FUNCTIONS: dict[Any, Callable[..., Any]] = {
    nn.functional.leaky_relu: _leaky_relu,
    nn.functional.prelu: _prelu,
    nn.functional.relu6: _relu6,
    nn.functional.hardtanh: _hardtanh,
    nn.functional.hardsigmoid: _hardsigmoid,
    nn.functional.threshold: _threshold,
    nn.functional.softshrink: _softshrink,
    nn.functional.max_pool1d: _max_pool,
    torch.max_pool1d: _max_pool,
    torch.prelu: _prelu,
    torch.threshold: _threshold,
    torch.clamp: _clamp,
    torch.clip: _clamp,
    torch.clamp_min: _clamp_min,
    torch.clamp_max: _clamp_max,
    torch.abs: _absolute,
    torch.absolute: _absolute,
    operator.abs: _absolute,
    builtins.abs: _absolute,
    torch.maximum: _maximum,
    torch.minimum: _minimum,
    torch.max: _max,
    torch.min: _min,
    torch.amax: _reduction("max"),
    torch.amin: _reduction("min"),
    torch.sum: _reduction("sum"),
    torch.mean: _reduction("mean"),
    torch.reshape: _reshape,
    torch.flatten: _flatten,
    torch.squeeze: _squeeze,
    torch.unsqueeze: _unsqueeze,
    torch.unflatten: _unflatten,
    torch.stack: _stack,
    torch.split: _split,
    torch.chunk: _chunk,
}

METHODS: dict[str, Callable[..., Any]] = {
    "clamp": _clamp,
    "clip": _clamp,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "abs": _absolute,
    "absolute": _absolute,
    "maximum": _maximum,
    "minimum": _minimum,
    "max": _max,
    "min": _min,
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "view": _reshape,
    "reshape": _reshape,
    "flatten": _flatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "unflatten": _unflatten,
    "split": _split,
    "chunk": _chunk,
}
