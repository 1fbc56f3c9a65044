"""torch's activations, each as an operation of the flow; their arguments have torch's own names."""

from __future__ import annotations

from typing import Any

from ifonly.model.flow import Flow
from ifonly.model.importers import flow_operations as flows
from ifonly.model.importers.flow_operations import Final, Value
from ifonly.model.importers.torch_call import TorchCall


def relu(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:
    return input.relu()


def tanh(call: TorchCall, input: Flow) -> Flow:
    return flows.smooth("tanh")(call, input)


def silu(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:
    return flows.smooth("silu")(call, input)


def gelu(call: TorchCall, input: Flow, approximate: str = "none") -> Flow:
    return flows.smooth("gelu_tanh" if approximate == "tanh" else "gelu")(call, input)


def elu(call: TorchCall, input: Flow, alpha: float = 1.0, inplace: bool = False) -> Flow:
    return flows.elu(call, input, alpha)


def softplus(call: TorchCall, input: Flow, beta: float = 1.0, threshold: float = 20.0) -> Flow:
    return flows.softplus(call, input, beta, threshold)


def leaky_relu(call: TorchCall, input: Flow, negative_slope: float = 0.01, inplace: bool = False) -> Flow:
    return flows.leaky_relu(call, input, call.number(negative_slope))


def rrelu(call: TorchCall, flow: Flow, lower: float, upper: float) -> Flow:
    return leaky_relu(call, flow, (lower + upper) / 2)


def prelu(call: TorchCall, input: Flow, weight: Any) -> Flow:
    return flows.leaky_relu(call, input, call.number(weight))


def clamp(call: TorchCall, flow: Flow, min: Any = None, max: Any = None) -> Flow:
    return flows.clip(call, flow, call.bound(min), call.bound(max))


def clamp_max(call: TorchCall, flow: Flow, max: Any) -> Flow:
    return clamp(call, flow, None, max)


def hardtanh(call: TorchCall, input: Flow, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Flow:
    return clamp(call, input, min_val, max_val)


def relu6(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:
    return clamp(call, input, 0.0, 6.0)


def hardsigmoid(call: TorchCall, input: Flow, inplace: bool = False) -> Flow:
    return flows.hard_sigmoid(call, input)


def threshold(call: TorchCall, input: Flow, threshold: float, value: float, inplace: bool = False) -> Flow:
    if threshold != value:
        raise call.refuse(f"jumps from {value:g} to {threshold:g} at its threshold; only a continuous one is supported")
    return clamp(call, input, threshold)


def softshrink(call: TorchCall, input: Flow, lambd: float = 0.5) -> Flow:
    return flows.soft_shrink(call, input, call.number(lambd))


def dropout(call: TorchCall, value: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    if training:
        raise call.refuse("drops values also in evaluation mode (training=True)")
    return value


def sigmoid(call: TorchCall, value: Flow) -> Final:
    return flows.last_sigmoid(call, value, call.source)


def softmax(call: TorchCall, value: Flow, dim: int | None = None, **kwargs: Any) -> Final:
    return flows.last_softmax(call, value, call.source, dim)
