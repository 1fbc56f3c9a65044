"""torch's operations by their own names, each as an operation of the flow (`flow_operations`).

A handler takes a `TorchCall` and the operation's own arguments, where the values that depend on the row are flows.
Tables at the end say which function, tensor method or module has which handler; a module passes the attributes that are
named beside it, in the order in which the function takes them.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from ifonly.model.flow import Flow
from ifonly.model.importers import flow_operations as flows
from ifonly.model.importers import torch_activations as activations
from ifonly.model.importers.flow_operations import Value
from ifonly.model.importers.shaped import Pooling, Reduction, Shaped, pooled
from ifonly.model.importers.torch_call import ROWS, TorchCall, constant, flat, number

Handler: TypeAlias = Callable[..., Any]


# ---------------------------------------------------------------------- arithmetic


def _linear(call: TorchCall, input: Flow, weight: Any, bias: Any = None) -> Flow:
    return flows.matmul(call, input, number(weight).T, None if bias is None else number(bias))


def _matmul(call: TorchCall, flow: Flow, weight: Any) -> Flow:
    return flows.matmul(call, flow, constant(weight))


def _addmm(call: TorchCall, bias: Any, flow: Flow, weight: Any, *, beta: float = 1, alpha: float = 1) -> Flow:
    return flows.matmul(call, flow, alpha * number(weight), beta * np.ravel(number(bias)))


def _add(call: TorchCall, a: Any, b: Any, *, alpha: float = 1) -> Flow:
    return flows.add(call, constant(a), constant(b), alpha=alpha)


def _subtract(call: TorchCall, a: Any, b: Any, *, alpha: float = 1) -> Flow:
    return flows.subtract(call, constant(a), constant(b), alpha=alpha)


def _multiply(call: TorchCall, a: Any, b: Any) -> Flow:
    return flows.multiply(call, constant(a), constant(b))


def _divide(call: TorchCall, a: Any, b: Any) -> Flow:
    return flows.divide(call, a, constant(b))


def _batch_norm(call: TorchCall, flow: Flow, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Flow:
    if mean is None or variance is None:
        raise call.refuse("normalises by the other rows of a batch (it has no running statistics)")
    factor, shift = 1.0 if weight is None else number(weight), 0.0 if bias is None else number(bias)
    deviation = np.sqrt(number(variance) + eps)
    return flows.batch_normalization(call, flow, mean=number(mean), deviation=deviation, factor=factor, shift=shift)


def _concatenate(call: TorchCall, tensors: Sequence[Flow], dim: int = 0) -> Flow:
    return flows.concatenate(call, tensors, dim)


# ---------------------------------------------------------------------- maxima and reductions


def _maximum(call: TorchCall, a: Any, b: Any) -> Flow:
    return flows.maximum(call, call.bound(a), call.bound(b))


def _minimum(call: TorchCall, a: Any, b: Any) -> Flow:
    return flows.minimum(call, call.bound(a), call.bound(b))


class Extremes(tuple[Any, ...]):
    """What max and min along a dimension return: values, and indices, which are not supported."""

    __slots__ = ()

    @property
    def values(self) -> Any:
        return self[0]


def _extreme(how: Reduction, of_two: Handler) -> Handler:
    def handle(call: TorchCall, value: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        second = dim if other is None else other
        if isinstance(second, Flow | torch.Tensor):
            return of_two(call, value, second)
        if dim is None:
            raise call.refuse("compares rows with one another; say dim=1")
        return Extremes((flows.reduce(call, value, flat([dim]), how, keep=keepdim), None))

    return handle


def _reduction(how: Reduction) -> Handler:
    def handle(call: TorchCall, value: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return flows.reduce(call, value, flat([dim]), how, keep=keepdim)

    return handle


def _max_pool(
    call: TorchCall, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
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


# ---------------------------------------------------------------------- columns and shapes


def _getitem(call: TorchCall, value: Any, index: Any) -> Any:
    """x[:, i], x[:, a:b], x[:, [i, j]]; one of several values that an operation gave."""
    if isinstance(value, tuple) and isinstance(index, int):
        return value[index]
    if not isinstance(index, tuple) or len(index) != 2 or index[0] not in (slice(None), Ellipsis):
        raise call.refuse("selects rows")
    return flows.select(call, value, index[1])


def _size(call: TorchCall, value: Value, dim: int | None = None) -> Any:
    sizes = (ROWS, *(value.shape if isinstance(value, Shaped) else (value.width,)))
    return sizes if dim is None else sizes[dim]


def _attribute(call: TorchCall, value: Value, name: str) -> Any:
    if isinstance(value, Extremes) and name == "values":
        return value.values
    if name != "shape":
        raise call.refuse(f"reads the attribute '{name}'")
    return _size(call, value)


def _reshape(call: TorchCall, value: Value, *shape: Any) -> Value:
    sizes = flat(shape)
    return flows.reshape(call, value, "same" if sizes[0] is ROWS else sizes[0], sizes[1:])


def _unflatten(call: TorchCall, value: Flow, dim: Any, sizes: Any) -> Any:
    if dim not in (1, -1) or not isinstance(value, Flow):
        raise call.refuse("changes the shape of the table")
    return flows.reshape(call, value, "same", [int(size) for size in sizes])


def _flatten(call: TorchCall, value: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    return flows.flatten(call, value, start_dim, end_dim)


def _unsqueeze(call: TorchCall, value: Any, dim: int) -> Any:
    return flows.unsqueeze(call, value, [dim])


def _float(call: TorchCall, value: Value) -> Value:
    if call.precision != "float32":
        raise call.refuse("rounds to float32 inside a model that computes in float64; leave .float() out")
    return value


def _squeeze(call: TorchCall, value: Value, dim: Any = None) -> Value:
    return flows.squeeze(call, value, [dim] if isinstance(dim, int) else [])


def _stack(call: TorchCall, tensors: Sequence[Flow], dim: int = 0) -> Any:
    if call.rank == 2 and dim in (1, -1) and all(isinstance(one, Flow) and one.width == 1 for one in tensors):
        return flows.concatenate(call, tensors, 1)  # columns of shape (rows,)
    return flows.stack(call, tensors, dim)


def _split(call: TorchCall, flow: Flow, split_size_or_sections: Any, dim: int = 0) -> tuple[Flow, ...]:
    sizes = split_size_or_sections
    if not isinstance(sizes, list | tuple):
        sizes = [min(sizes, flow.width - start) for start in range(0, flow.width, sizes)]
    return flows.split(call, flow, sizes, dim)


def _chunk(call: TorchCall, flow: Flow, chunks: int, dim: int = 0) -> tuple[Flow, ...]:
    return _split(call, flow, -(-flow.width // chunks), dim)


# ---------------------------------------------------------------------- tables

_max, _min = _extreme("max", _maximum), _extreme("min", _minimum)

AFTER_FINAL: tuple[Handler, ...] = (flows.identity, _float, _size, _attribute, _reshape, _flatten, _squeeze)
"""Those that may follow a last sigmoid or softmax."""

MODULES: dict[type, tuple[Any, ...]] = {
    nn.Linear: (_linear, "weight", "bias"),
    nn.BatchNorm1d: (_batch_norm, "running_mean", "running_var", "weight", "bias", "eps"),
    nn.ReLU: (activations.relu,),
    nn.Tanh: (activations.tanh,),
    nn.SiLU: (activations.silu,),
    nn.GELU: (activations.gelu, "approximate"),
    nn.ELU: (activations.elu, "alpha"),
    nn.Softplus: (activations.softplus, "beta", "threshold"),
    nn.LeakyReLU: (activations.leaky_relu, "negative_slope"),
    nn.PReLU: (activations.prelu, "weight"),
    nn.RReLU: (activations.rrelu, "lower", "upper"),
    nn.ReLU6: (activations.hardtanh, "min_val", "max_val"),
    nn.Hardtanh: (activations.hardtanh, "min_val", "max_val"),
    nn.Hardsigmoid: (activations.hardsigmoid,),
    nn.Threshold: (activations.threshold, "threshold", "value"),
    nn.Softshrink: (activations.softshrink, "lambd"),
    nn.MaxPool1d: (_max_pool, "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"),
    nn.Flatten: (_flatten, "start_dim", "end_dim"),
    nn.Unflatten: (_unflatten, "dim", "unflattened_size"),
    nn.Dropout: (flows.identity,),
    nn.AlphaDropout: (flows.identity,),
    nn.Identity: (flows.identity,),
    nn.Sigmoid: (activations.sigmoid,),
    nn.Softmax: (activations.softmax, "dim"),
    nn.LogSoftmax: (activations.softmax, "dim"),
}

_BOTH: dict[str, Handler] = {
    "relu": activations.relu,
    "tanh": activations.tanh,
    "sigmoid": activations.sigmoid,
    "softmax": activations.softmax,
    "log_softmax": activations.softmax,
    "matmul": _matmul,
    "mm": _matmul,
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "neg": flows.negate,
    "clamp": activations.clamp,
    "clip": activations.clamp,
    "clamp_min": activations.clamp,
    "clamp_max": activations.clamp_max,
    "abs": flows.absolute,
    "absolute": flows.absolute,
    "maximum": _maximum,
    "minimum": _minimum,
    "max": _max,
    "min": _min,
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "reshape": _reshape,
    "flatten": _flatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "unflatten": _unflatten,
    "split": _split,
    "chunk": _chunk,
}
"""Functions of torch that are also methods of a tensor."""

METHODS: dict[str, Handler] = {
    **_BOTH,
    "size": _size,
    "view": _reshape,
    "contiguous": flows.identity,
    "detach": flows.identity,
    "clone": flows.identity,
    "float": _float,
}

FUNCTIONS: dict[Any, Handler] = {
    **{getattr(torch, name): handler for name, handler in _BOTH.items()},
    nn.functional.linear: _linear,
    nn.functional.relu: activations.relu,
    nn.functional.tanh: activations.tanh,
    nn.functional.silu: activations.silu,
    nn.functional.gelu: activations.gelu,
    nn.functional.elu: activations.elu,
    nn.functional.softplus: activations.softplus,
    nn.functional.leaky_relu: activations.leaky_relu,
    nn.functional.prelu: activations.prelu,
    nn.functional.relu6: activations.relu6,
    nn.functional.hardtanh: activations.hardtanh,
    nn.functional.hardsigmoid: activations.hardsigmoid,
    nn.functional.threshold: activations.threshold,
    nn.functional.softshrink: activations.softshrink,
    nn.functional.max_pool1d: _max_pool,
    nn.functional.dropout: activations.dropout,
    nn.functional.sigmoid: activations.sigmoid,
    nn.functional.softmax: activations.softmax,
    nn.functional.log_softmax: activations.softmax,
    torch.max_pool1d: _max_pool,
    torch.prelu: activations.prelu,
    torch.threshold: activations.threshold,
    torch.addmm: _addmm,
    torch.cat: _concatenate,
    torch.concat: _concatenate,
    torch.stack: _stack,
    torch.subtract: _subtract,
    torch.multiply: _multiply,
    torch.divide: _divide,
    torch.negative: flows.negate,
    operator.add: _add,
    operator.iadd: _add,
    operator.sub: _subtract,
    operator.isub: _subtract,
    operator.mul: _multiply,
    operator.imul: _multiply,
    operator.truediv: _divide,
    operator.neg: flows.negate,
    operator.matmul: _matmul,
    operator.abs: flows.absolute,
    operator.getitem: _getitem,
    builtins.abs: flows.absolute,
    builtins.getattr: _attribute,
}
