"""ONNX's operations, each as a step of the flow; a second, shorter list for what is computed from constants alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.shaped import of_one_width
from ifonly.model.smooth import Activation

FLOATS = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64"}
FLOAT_OF = {kind: elem for elem, kind in FLOATS.items()}
Array = NDArray[Any]
EPSILON = float(np.float32(1e-5))
"""Of a batch normalisation that names none: attributes are float32, also in models that compute in float64."""
SILU = "SiLU"
ROUGH = 1e-7
"""onnxruntime computes the tanh form of GELU with constants in float32, also in float64."""


@dataclass(frozen=True)
class OnnxFinal:
    """The value of an activation that may only stand at the end; `tensor` is what it was given."""

    flow: Flow
    tensor: str
    activation: Literal["sigmoid", "softmax"]
    operation: str
    inside: bool = False
    """The activation is part of a classifier's node, and `tensor` is what that gives."""
    second: bool = False
    """The flow is the second of two columns of `tensor`, the first of which is its opposite."""
    both: bool = False
    """The value is the probabilities of both classes, of which the flow has the second."""
    each_alone: bool = False
    """Each class has a sigmoid of its own: the largest decides, but its log-odds is not the score."""

    @property
    def width(self) -> int:
        return self.flow.width

    @property
    def columns(self) -> int:
        """How many columns the value itself has."""
        return 2 if self.second or self.both else self.width


@dataclass(frozen=True)
class OnnxCall:
    """Which node this is: its name, operation, attributes, and the names of its first input and of its last output."""

    name: str
    operation: str
    given: dict[str, Any]
    source: str
    result: str = ""

    def refuse(self, why: str) -> UnsupportedModel:
        return UnsupportedModel(
            f"The operation {self.operation} ('{self.name}') of the ONNX model {why}.", operation=self.operation
        )


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
    if not isinstance(a, Flow) or isinstance(b, Flow) or isinstance(c, Flow) or call.given.get("transA", 0):
        raise call.refuse("multiplies from the left, or two values of the row")
    weight = call.given.get("alpha", 1.0) * np.float64(b if call.given.get("transB", 0) else b.T)
    bias = None if c is None else call.given.get("beta", 1.0) * np.ravel(np.float64(c))
    return a.linear(weight, bias, name=call.name)


def _matmul(call: OnnxCall, a: Any, b: Any) -> Flow:
    if not isinstance(a, Flow) or isinstance(b, Flow):
        raise call.refuse("multiplies from the left, or two values of the row")
    return a.linear(np.reshape(b, (len(b), -1)).T, name=call.name)


def _relu(call: OnnxCall, x: Flow) -> Flow:
    return x.relu()


def _tanh(call: OnnxCall, x: Flow) -> Flow:
    return x.smooth(Activation("tanh"))


def _softplus(call: OnnxCall, x: Flow) -> Flow:
    return x.smooth(Activation("softplus"))


def _elu(call: OnnxCall, x: Flow) -> Flow:
    return x.smooth(Activation("elu", alpha=float(call.given.get("alpha", 1.0))))


def _gelu(call: OnnxCall, x: Flow) -> Flow:
    if call.given.get("approximate", b"none") in (b"tanh", "tanh"):
        return x.smooth(Activation("gelu_tanh", off=ROUGH))
    return x.smooth(Activation("gelu"))


def inside(value: Any) -> Any:
    """A value that something follows: a sigmoid is then an activation like others."""
    return value.flow.smooth(Activation("sigmoid")) if _is_sigmoid(value) else value


def _is_sigmoid(value: Any) -> bool:
    if not isinstance(value, OnnxFinal) or value.activation != "sigmoid":
        return False
    return not (value.inside or value.second or value.both)


def silu_of(operation: str, inputs: Sequence[Any]) -> Flow | None:
    """The z of z * sigmoid(z), as SiLU is exported."""
    if operation != "Mul" or len(inputs) != 2:
        return None
    return next((b for a, b in (inputs, inputs[::-1]) if _is_sigmoid(a) and a.flow is b), None)


def _silu(call: OnnxCall, x: Flow) -> Flow:
    return x.smooth(Activation("silu"))


def _add(call: OnnxCall, *terms: Any) -> Flow:
    flows = [term for term in terms if isinstance(term, Flow)]
    total = flows[0]
    for flow in flows[1:]:
        one, other = of_one_width(total, flow, name=call.name)
        total = one.plus(other, name=call.name)
    for term in terms:
        if not isinstance(term, Flow):
            total = total.scale(1.0, term, name=call.name)
    return total


def _subtract(call: OnnxCall, a: Any, b: Any) -> Flow:
    return _add(call, a, b.scale(-1.0, name=call.name) if isinstance(b, Flow) else -b)


def _multiply(call: OnnxCall, a: Any, b: Any) -> Flow:
    if isinstance(a, Flow) and isinstance(b, Flow):
        raise call.refuse("multiplies two values of the row")
    return a.scale(b, name=call.name) if isinstance(a, Flow) else b.scale(a, name=call.name)


def _divide(call: OnnxCall, a: Any, b: Any) -> Flow:
    if isinstance(b, Flow):
        raise call.refuse("divides by a value of the row")
    with np.errstate(divide="ignore"):
        return a.scale(1.0 / np.float64(b), name=call.name)


def _negative(call: OnnxCall, x: Flow) -> Flow:
    return x.scale(-1.0, name=call.name)


def _batch_normalization(call: OnnxCall, x: Flow, factor: Array, shift: Array, mean: Array, variance: Array) -> Flow:
    if call.given.get("training_mode", 0):
        raise call.refuse("normalises by the other rows of a batch (training mode)")
    if len(mean) != x.width:
        raise ModelError(f"'{call.name}' takes {len(mean)} values, but gets {x.width}.")
    scale = np.float64(factor) / np.sqrt(np.float64(variance) + call.given.get("epsilon", EPSILON))
    size = np.abs(mean * scale) + np.abs(shift)
    return x.scale(scale, shift - mean * scale, name=call.name, size_shift=size)


def _concat(call: OnnxCall, *parts: Any) -> Flow:
    if call.given["axis"] not in (1, -1) or not all(isinstance(part, Flow) for part in parts):
        raise call.refuse("joins rows, or joins them with constants")
    return parts[0].joined(parts[1:], name=call.name) if len(parts) > 1 else parts[0]


def _same(call: OnnxCall, x: Any, *others: Any) -> Any:
    return x


def _dropout(call: OnnxCall, x: Any, ratio: Any = None, training: Any = None) -> Any:
    if training is not None and bool(np.ravel(training)[0]):
        raise call.refuse("drops values (training mode)")
    return x


def _sigmoid(call: OnnxCall, x: Flow) -> OnnxFinal:
    return OnnxFinal(x, call.source, "sigmoid", call.operation)


def _softmax(call: OnnxCall, x: Flow) -> OnnxFinal:
    if call.given.get("axis", -1) not in (1, -1):
        raise call.refuse("compares rows with one another")
    return OnnxFinal(x, call.source, "softmax", call.operation)


HARMLESS = ("Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Cast")

HANDLERS: dict[str, Callable[..., Any]] = {
    SILU: _silu,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": _relu,
    "Tanh": _tanh,
    "Softplus": _softplus,
    "Elu": _elu,
    "Gelu": _gelu,
    "Add": _add,
    "Sum": _add,
    "Sub": _subtract,
    "Mul": _multiply,
    "Div": _divide,
    "Neg": _negative,
    "BatchNormalization": _batch_normalization,
    "Concat": _concat,
    "Identity": _same,
    "Cast": _same,
    "Dropout": _dropout,
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
}


# ---------------------------------------------------------------------- with constants alone


def _constant(call: OnnxCall) -> Array:
    if "value" in call.given:
        return numpy_helper.to_array(call.given["value"])
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if name in call.given:
            return np.array(call.given[name], dtype=dtype)
    raise call.refuse("holds something other than numbers")


def _transpose(call: OnnxCall, x: Array) -> Array:
    return np.transpose(x, call.given.get("perm"))


def _cast(call: OnnxCall, x: Array) -> Array:
    return x.astype(onnx.helper.tensor_dtype_to_np_dtype(call.given["to"]))


def _constant_reshape(call: OnnxCall, x: Array, shape: Array) -> Array:
    return np.reshape(x, np.ravel(shape).tolist())


def _constant_squeeze(call: OnnxCall, x: Array, axes: Any = None) -> Array:
    listed = call.given.get("axes") if axes is None else np.ravel(axes).tolist()
    return np.squeeze(x, None if listed is None else tuple(listed))


def _unsqueeze(call: OnnxCall, x: Array, axes: Any = None) -> Array:
    return np.expand_dims(x, tuple(call.given.get("axes", ()) if axes is None else np.ravel(axes).tolist()))


CONSTANT: dict[str, Callable[..., Any]] = {
    "Constant": _constant,
    "Identity": _same,
    "Transpose": _transpose,
    "Cast": _cast,
    "Reshape": _constant_reshape,
    "Squeeze": _constant_squeeze,
    "Unsqueeze": _unsqueeze,
}
