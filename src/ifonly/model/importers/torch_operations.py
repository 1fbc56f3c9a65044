"""torch's operations, each as a step of the flow: modules, functions and tensor methods by their own names.

A handler takes a `Call` (which operation this is, for messages) and the operation's own arguments, where the values
that depend on the row are flows. Tables at the end say which operation has which handler.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from ifonly.errors import ModelError
from ifonly.model.flow import Flow
from ifonly.model.importers import torch_piecewise as piecewise
from ifonly.model.importers.shaped import Shaped, of_one_width
from ifonly.model.importers.torch_call import ROWS, TorchCall, TorchFinal, Value, number
from ifonly.model.smooth import Activation


def _same(call: TorchCall, value: Value, *args: Any, **kwargs: Any) -> Value:
    return value


def _same_module(call: TorchCall, module: nn.Module, value: Value) -> Value:
    return value


def _dropout(call: TorchCall, value: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    if training:
        raise call.refuse("drops values also in evaluation mode (training=True)")
    return value


def _size(call: TorchCall, value: Value, dim: int | None = None) -> Any:
    sizes = (ROWS, *(value.shape if isinstance(value, Shaped) else (_width(value),)))
    return sizes if dim is None else sizes[dim]


def _attribute(call: TorchCall, value: Value, name: str) -> Any:
    if isinstance(value, piecewise.Extremes) and name == "values":
        return value.values
    if name != "shape":
        raise call.refuse(f"reads the attribute '{name}'")
    return _size(call, value)


def _width(value: Value) -> int:
    return value.flow.width if isinstance(value, TorchFinal) else value.width


def _linear_module(call: TorchCall, module: nn.Linear, flow: Flow) -> Flow:
    return _linear(call, flow, module.weight, module.bias)


def _linear(call: TorchCall, input: Flow, weight: Any, bias: Any = None) -> Flow:  # noqa: A002 torch's own name
    return input.linear(number(weight), None if bias is None else number(bias), name=call.name)


def _matmul(call: TorchCall, flow: Flow, weight: Any) -> Flow:
    if not isinstance(flow, Flow) or isinstance(weight, Flow):
        raise call.refuse("multiplies two values of the row, or from the left")
    return flow.linear(number(weight).T, name=call.name)


def _addmm(call: TorchCall, bias: Any, flow: Flow, weight: Any, *, beta: float = 1, alpha: float = 1) -> Flow:
    return flow.linear(alpha * number(weight).T, beta * np.ravel(number(bias)), name=call.name)


def _relu_module(call: TorchCall, module: nn.Module, flow: Flow) -> Flow:
    return flow.relu()


def _relu(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    return input.relu()


def _tanh_module(call: TorchCall, module: nn.Module, flow: Flow) -> Flow:
    return flow.smooth(Activation("tanh"))


def _tanh(call: TorchCall, input: Flow) -> Flow:  # noqa: A002 torch's own name
    return input.smooth(Activation("tanh"))


def _silu_module(call: TorchCall, module: nn.Module, flow: Flow) -> Flow:
    return flow.smooth(Activation("silu"))


def _silu(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    return input.smooth(Activation("silu"))


def _gelu_module(call: TorchCall, module: nn.GELU, flow: Flow) -> Flow:
    return _gelu(call, flow, approximate=module.approximate)


def _gelu(call: TorchCall, input: Flow, *, approximate: str = "none") -> Flow:  # noqa: A002 torch's own name
    return input.smooth(Activation("gelu_tanh" if approximate == "tanh" else "gelu"))


def _elu_module(call: TorchCall, module: nn.ELU, flow: Flow) -> Flow:
    return _elu(call, flow, module.alpha)


def _elu(call: TorchCall, input: Flow, alpha: float = 1.0, inplace: bool = False) -> Flow:  # noqa: A002 torch's own name
    return input.smooth(Activation("elu", alpha=float(alpha)))


def _softplus_module(call: TorchCall, module: nn.Softplus, flow: Flow) -> Flow:
    return _softplus(call, flow, module.beta, module.threshold)


def _softplus(call: TorchCall, input: Flow, beta: float = 1.0, threshold: float = 20.0) -> Flow:  # noqa: A002
    """log(1 + exp(beta z)) / beta, and from beta z > threshold on z itself."""
    if not beta > 0.0:
        raise call.refuse(f"has beta={beta:g}, which must be above 0")
    bent = Activation("softplus", off=math.log1p(math.exp(-threshold)), off_from=float(threshold))
    flow = input if beta == 1.0 else input.scale(beta, name=call.name)
    return flow.smooth(bent) if beta == 1.0 else flow.smooth(bent).scale(1.0 / beta, name=call.name)


def _batch_norm(call: TorchCall, module: nn.BatchNorm1d, flow: Flow) -> Flow:
    if module.running_mean is None or module.running_var is None:
        raise call.refuse("normalises by the other rows of a batch (it has no running statistics)")
    mean, deviation = number(module.running_mean), np.sqrt(number(module.running_var) + module.eps)
    factor = (number(module.weight) if module.affine else 1.0) / deviation
    shift = number(module.bias) if module.affine else np.zeros_like(mean)
    if len(mean) != flow.width:
        raise ModelError(f"'{call.name}' takes {len(mean)} values, but gets {flow.width}.")
    size = np.abs(mean * factor) + np.abs(shift)
    return flow.scale(factor, shift - mean * factor, name=call.name, size_shift=size)


def _add(call: TorchCall, a: Any, b: Any, *, alpha: float = 1) -> Flow:
    if isinstance(a, Flow) and isinstance(b, Flow):
        one, other = of_one_width(a, b, name=call.name)
        if alpha in (1, -1):
            return one.plus(other, name=call.name, sign=float(alpha))
        return one.plus(other.scale(alpha, name=call.name), name=call.name)
    if isinstance(a, Flow):
        return a.scale(1.0, alpha * number(b), name=call.name)
    return b.scale(alpha, number(a), name=call.name)


def _subtract(call: TorchCall, a: Any, b: Any, *, alpha: float = 1) -> Flow:
    return _add(call, a, b, alpha=-alpha)


def _negative(call: TorchCall, flow: Flow) -> Flow:
    return flow.scale(-1.0, name=call.name)


def _multiply(call: TorchCall, a: Any, b: Any) -> Flow:
    if isinstance(a, Flow) and isinstance(b, Flow):
        raise call.refuse("multiplies two values of the row")
    return a.scale(number(b), name=call.name) if isinstance(a, Flow) else b.scale(number(a), name=call.name)


def _divide(call: TorchCall, a: Any, b: Any) -> Flow:
    if isinstance(b, Flow):
        raise call.refuse("divides by a value of the row")
    return a.scale(1.0 / number(b), name=call.name)


def _concatenate(call: TorchCall, tensors: Sequence[Flow], dim: int = 0) -> Flow:
    if dim not in (1, -1) or not all(isinstance(tensor, Flow) for tensor in tensors):
        raise call.refuse("joins rows, or joins them with constants")
    return tensors[0].joined(tensors[1:], name=call.name) if len(tensors) > 1 else tensors[0]


def _select(call: TorchCall, flow: Any, index: Any) -> Any:
    """x[:, i], x[:, a:b], x[:, [i, j]]; one of several values that an operation gave."""
    if isinstance(flow, tuple) and isinstance(index, int):
        return flow[index]
    if not isinstance(index, tuple) or len(index) != 2 or index[0] not in (slice(None), Ellipsis):
        raise call.refuse("selects rows")
    chosen = np.atleast_1d(np.arange(flow.width)[index[1]])
    return flow.pick(chosen.tolist(), name=call.name)


def _sigmoid(call: TorchCall, value: Flow) -> TorchFinal:
    return TorchFinal(value, _argument(call), "sigmoid", call.operation)


def _sigmoid_module(call: TorchCall, module: nn.Module, value: Flow) -> TorchFinal:
    return TorchFinal(value, _argument(call), "sigmoid", call.operation)


def _softmax(call: TorchCall, value: Flow, dim: int | None = None, **kwargs: Any) -> TorchFinal:
    if dim not in (1, -1, None):
        raise call.refuse("compares rows with one another")
    return TorchFinal(value, _argument(call), "softmax", call.operation)


def _softmax_module(call: TorchCall, module: nn.Softmax, value: Flow) -> TorchFinal:
    return _softmax(call, value, module.dim)


def inside(value: Value) -> Value:
    """A value that something follows: a sigmoid is then an activation like others."""
    if isinstance(value, TorchFinal) and value.activation == "sigmoid":
        return value.flow.smooth(Activation("sigmoid"))
    return value


def _argument(call: TorchCall) -> fx.Node:
    return call.node.all_input_nodes[0]


HARMLESS: tuple[Callable[..., Any], ...] = (
    _same,
    _same_module,
    _size,
    _attribute,
    *piecewise.SHAPES,
)

MODULES: dict[type, Callable[..., Any]] = {
    **piecewise.MODULES,
    nn.Linear: _linear_module,
    nn.ReLU: _relu_module,
    nn.Tanh: _tanh_module,
    nn.SiLU: _silu_module,
    nn.GELU: _gelu_module,
    nn.ELU: _elu_module,
    nn.Softplus: _softplus_module,
    nn.BatchNorm1d: _batch_norm,
    nn.Dropout: _same_module,
    nn.AlphaDropout: _same_module,
    nn.Identity: _same_module,
    nn.Sigmoid: _sigmoid_module,
    nn.Softmax: _softmax_module,
    nn.LogSoftmax: _softmax_module,
}

FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **piecewise.FUNCTIONS,
    nn.functional.linear: _linear,
    nn.functional.relu: _relu,
    nn.functional.tanh: _tanh,
    nn.functional.silu: _silu,
    nn.functional.gelu: _gelu,
    nn.functional.elu: _elu,
    nn.functional.softplus: _softplus,
    nn.functional.dropout: _dropout,
    nn.functional.sigmoid: _sigmoid,
    nn.functional.softmax: _softmax,
    nn.functional.log_softmax: _softmax,
    torch.relu: _relu,
    torch.tanh: _tanh,
    torch.sigmoid: _sigmoid,
    torch.softmax: _softmax,
    torch.log_softmax: _softmax,
    torch.matmul: _matmul,
    torch.mm: _matmul,
    torch.addmm: _addmm,
    torch.cat: _concatenate,
    torch.concat: _concatenate,
    torch.add: _add,
    torch.sub: _subtract,
    torch.subtract: _subtract,
    torch.mul: _multiply,
    torch.multiply: _multiply,
    torch.div: _divide,
    torch.divide: _divide,
    torch.neg: _negative,
    torch.negative: _negative,
    operator.add: _add,
    operator.iadd: _add,
    operator.sub: _subtract,
    operator.isub: _subtract,
    operator.mul: _multiply,
    operator.imul: _multiply,
    operator.truediv: _divide,
    operator.neg: _negative,
    operator.matmul: _matmul,
    operator.getitem: _select,
    builtins.getattr: _attribute,
}

METHODS: dict[str, Callable[..., Any]] = {
    **piecewise.METHODS,
    "relu": _relu,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "size": _size,
    "matmul": _matmul,
    "mm": _matmul,
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "neg": _negative,
    "contiguous": _same,
    "detach": _same,
    "clone": _same,
}
