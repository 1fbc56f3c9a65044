"""ONNX's operations by their own names, each as an operation of the flow (`flow_operations`); a second, shorter table
for what is computed from constants alone. Those that select columns or change shapes are in `onnx_shapes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from ifonly.model.flow import Flow
from ifonly.model.importers import flow_operations as flows
from ifonly.model.importers.flow_operations import Final, OperationCall
from ifonly.model.smooth import Activation

FLOATS = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64"}
FLOAT_OF = {kind: elem for elem, kind in FLOATS.items()}
Array = NDArray[Any]
DEFAULT_EPSILON, DEFAULT_LEAKY_SLOPE, DEFAULT_HARD_SLOPE = (float(np.float32(v)) for v in (1e-5, 0.01, 0.2))
"""Attributes that a node leaves out: they are float32, also in models that compute in float64."""
SILU = "SiLU"
GELU_TANH_ERROR = 1e-7
"""onnxruntime computes the tanh form of GELU with constants in float32, also in float64."""


@dataclass(frozen=True)
class OnnxFinal(Final):
    """A last sigmoid or softmax of an ONNX graph; `source` is the tensor with the logits."""

    inside: bool = False
    """The activation is part of a classifier's node, and `source` is what that returns."""
    second: bool = False
    """The flow is the second of two columns of `source`, the first of which is its opposite."""
    both: bool = False
    """The value is the probabilities of both classes, of which the flow has the second."""
    each_alone: bool = False
    """Each class has a sigmoid of its own: the largest decides, but its log-odds is not the score."""

    @property
    def columns(self) -> int:
        """Number of columns of the value itself."""
        return 2 if self.second or self.both else self.width

    @property
    def is_plain_sigmoid(self) -> bool:
        return self.activation == "sigmoid" and not (self.inside or self.second or self.both)


@dataclass(frozen=True)
class OnnxCall(OperationCall):
    """A node: its attributes, and the names of its first input and of its last output."""

    framework: ClassVar[str] = "ONNX model"

    attributes: dict[str, Any]
    source: str
    result: str = ""

    def listed(self, name: str, tensor: Any) -> list[Any]:
        """Whole numbers that are an attribute in older versions of an operation, an input in newer ones."""
        return list(np.ravel(self.attributes.get(name, []) if tensor is None else tensor).tolist())


def tensors(graph: Any) -> list[Any]:
    """The constants of a graph."""
    constants = [a.t for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.TENSOR]
    return [*graph.initializer, *constants]


def first_float(graph: Any) -> str:
    """The precision that the weights of a graph, or else its inputs, are in."""
    kinds = [tensor.data_type for tensor in tensors(graph)]
    kinds += [given.type.tensor_type.elem_type for given in graph.input]
    return next((FLOATS[kind] for kind in kinds if kind in FLOATS), "float32")


def attributes(node: Any) -> dict[str, Any]:
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


# ---------------------------------------------------------------------- with values of the row


def _gemm(call: OnnxCall, a: Any, b: Any, c: Any = None) -> Flow:
    if call.attributes.get("transA", 0) or isinstance(b, Flow) or isinstance(c, Flow):
        return flows.matmul(call, None, b)
    weight = call.attributes.get("alpha", 1.0) * np.float64(b.T if call.attributes.get("transB", 0) else b)
    bias = None if c is None else call.attributes.get("beta", 1.0) * np.ravel(np.float64(c))
    return flows.matmul(call, a, weight, bias)


def _matmul(call: OnnxCall, a: Any, b: Any) -> Flow:
    return flows.matmul(call, a, b if isinstance(b, Flow) else np.reshape(b, (len(b), -1)))


def _softplus(call: OnnxCall, x: Flow) -> Flow:
    return flows.softplus(call, x, threshold=math.inf)


def _elu(call: OnnxCall, x: Flow) -> Flow:
    return flows.elu(call, x, call.attributes.get("alpha", 1.0))


def _gelu(call: OnnxCall, x: Flow) -> Flow:
    if call.attributes.get("approximate", b"none") in (b"tanh", "tanh"):
        return x.smooth(Activation("gelu_tanh", off=GELU_TANH_ERROR))
    return x.smooth(Activation("gelu"))


def silu_of(operation: str, inputs: Sequence[Any]) -> Flow | None:
    """The z of z * sigmoid(z), as SiLU is exported."""
    if operation != "Mul" or len(inputs) != 2:
        return None
    pairs = (inputs, inputs[::-1])
    return next((b for a, b in pairs if isinstance(a, OnnxFinal) and a.is_plain_sigmoid and a.flow is b), None)


def _batch_normalization(call: OnnxCall, x: Flow, factor: Array, shift: Array, mean: Array, variance: Array) -> Flow:
    if call.attributes.get("training_mode", 0):
        raise call.refuse("normalises by the other rows of a batch (training mode)")
    deviation = np.sqrt(np.float64(variance) + call.attributes.get("epsilon", DEFAULT_EPSILON))
    return flows.batch_normalization(call, x, mean=mean, deviation=deviation, factor=factor, shift=shift)


def _concat(call: OnnxCall, *parts: Any) -> Flow:
    return flows.concatenate(call, parts, call.attributes["axis"])


def _dropout(call: OnnxCall, x: Any, ratio: Any = None, training: Any = None) -> Any:
    if training is not None and bool(np.ravel(training)[0]):
        raise call.refuse("drops values (training mode)")
    return x


def _sigmoid(call: OnnxCall, x: Flow) -> OnnxFinal:
    return _final(flows.last_sigmoid(call, x, call.source))


def _softmax(call: OnnxCall, x: Flow) -> OnnxFinal:
    return _final(flows.last_softmax(call, x, call.source, call.attributes.get("axis", -1)))


def _final(final: Final) -> OnnxFinal:
    return OnnxFinal(final.flow, final.source, final.activation, final.operation)


def _leaky_relu(call: OnnxCall, x: Flow) -> Flow:
    return flows.leaky_relu(call, x, call.attributes.get("alpha", DEFAULT_LEAKY_SLOPE))


def _clip(call: OnnxCall, x: Flow, least: Any = None, most: Any = None) -> Flow:
    if isinstance(least, Flow) or isinstance(most, Flow):
        raise call.refuse("has bounds that depend on the row")
    lower = call.attributes.get("min", -np.inf) if least is None else np.ravel(np.float64(least))
    upper = call.attributes.get("max", np.inf) if most is None else np.ravel(np.float64(most))
    limit = float(np.finfo(np.float32).max)  # what older files say for no bound
    lower, upper = (np.where(np.abs(end) >= limit, np.sign(end) * np.inf, end) for end in (lower, upper))
    return flows.clip(call, x, lower, upper)


def _hard_sigmoid(call: OnnxCall, x: Flow) -> Flow:
    alpha, beta = call.attributes.get("alpha", DEFAULT_HARD_SLOPE), call.attributes.get("beta", 0.5)
    return x.scale(alpha, beta, name=call.name).clip(0.0, 1.0, name=call.name)


def _thresholded_relu(call: OnnxCall, x: Flow) -> Flow:
    if call.attributes.get("alpha", 1.0) != 0.0:
        raise call.refuse("jumps at its threshold; only a continuous one is supported")
    return x.relu()


def _shrink(call: OnnxCall, x: Flow) -> Flow:
    bias, edge = call.attributes.get("bias", 0.0), call.attributes.get("lambd", 0.5)
    if bias != edge:
        raise call.refuse("jumps at its threshold; only a continuous one (bias = lambd) is supported")
    return flows.soft_shrink(call, x, edge)


AFTER_FINAL = ("Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Cast")
"""Those that may follow a last sigmoid or softmax."""

HANDLERS: dict[str, Callable[..., Any]] = {
    SILU: flows.smooth("silu"),
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": flows.relu,
    "Tanh": flows.smooth("tanh"),
    "Softplus": _softplus,
    "Elu": _elu,
    "Gelu": _gelu,
    "LeakyRelu": _leaky_relu,
    "PRelu": flows.leaky_relu,
    "Abs": flows.absolute,
    "Clip": _clip,
    "HardSigmoid": _hard_sigmoid,
    "ThresholdedRelu": _thresholded_relu,
    "Shrink": _shrink,
    "Add": flows.total,
    "Sum": flows.total,
    "Sub": flows.subtract,
    "Mul": flows.multiply,
    "Div": flows.divide,
    "Neg": flows.negate,
    "Max": flows.maximum,
    "Min": flows.minimum,
    "BatchNormalization": _batch_normalization,
    "Concat": _concat,
    "Identity": flows.identity,
    "Cast": flows.identity,
    "Dropout": _dropout,
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
}


# ---------------------------------------------------------------------- with constants alone


def _constant(call: OnnxCall) -> Array:
    if "value" in call.attributes:
        return numpy_helper.to_array(call.attributes["value"])
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if name in call.attributes:
            return np.array(call.attributes[name], dtype=dtype)
    raise call.refuse("holds something other than numbers")


def _transpose(call: OnnxCall, x: Array) -> Array:
    return np.transpose(x, call.attributes.get("perm"))


def _cast(call: OnnxCall, x: Array) -> Array:
    return x.astype(onnx.helper.tensor_dtype_to_np_dtype(call.attributes["to"]))


def _constant_reshape(call: OnnxCall, x: Array, shape: Array) -> Array:
    return np.reshape(x, np.ravel(shape).tolist())


def _constant_squeeze(call: OnnxCall, x: Array, axes: Any = None) -> Array:
    listed = call.attributes.get("axes") if axes is None else np.ravel(axes).tolist()
    return np.squeeze(x, None if listed is None else tuple(listed))


def _unsqueeze(call: OnnxCall, x: Array, axes: Any = None) -> Array:
    return np.expand_dims(x, tuple(call.attributes.get("axes", ()) if axes is None else np.ravel(axes).tolist()))


CONSTANT: dict[str, Callable[..., Any]] = {
    "Constant": _constant,
    "Identity": flows.identity,
    "Transpose": _transpose,
    "Cast": _cast,
    "Reshape": _constant_reshape,
    "Squeeze": _constant_squeeze,
    "Unsqueeze": _unsqueeze,
}
