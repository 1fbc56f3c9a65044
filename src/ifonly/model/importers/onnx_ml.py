"""ONNX as converters write it: scores beside labels, zipped probabilities, and the linear operators of ai.onnx.ml.

A classifier of skl2onnx gives a label and probabilities. The label follows from the scores, so it is not read: the
graph is shortened to the output that the scores come from. Labels name the classes, and are compared with what the
scores decide.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.onnx_operations import OnnxCall, OnnxFinal, attributes
from ifonly.model.importers.onnx_tables import ML, SCALER
from ifonly.printing import shown

DOMAIN = "ai.onnx.ml"
CLASSIFIERS = ("LinearClassifier", "TreeEnsembleClassifier", "SVMClassifier")


# ---------------------------------------------------------------------- which output


@dataclass(frozen=True)
class ScoresOutput:
    """The tensor that the scores come from, the graph's own names of the classes, and the output that holds labels."""

    tensor: str
    classes: tuple[Any, ...] = ()
    labels: str = ""
    regression: bool = False


def ending_of(graph: Any, output: str | None) -> ScoresOutput:
    """What a graph ends with; `output` names one of several outputs."""
    made = {name: node for node in graph.node for name in node.output if name}
    labels = _label_tensors(graph)
    outputs = [one.name for one in graph.output]
    scores = [name for name in outputs if name not in labels]
    if output is not None and output not in outputs:
        raise ModelError(f"The ONNX model has no output {shown(output)}; its outputs are {', '.join(outputs)}.")
    if output in labels or (not scores and output is None):
        raise UnsupportedModel(
            f"The output '{output or outputs[0]}' of the ONNX model is a label, which does not say how near a row is "
            f"to being decided otherwise; "
            + (f"choose {' or '.join(scores)}." if scores else "export the model with its scores or probabilities."),
            operation="label",
        )
    if output is None and len(scores) > 1:
        raise UnsupportedModel(
            f"The ONNX model has {len(scores)} outputs that may be scores ({', '.join(scores[:4])}); say which with "
            f"output=..., or export it with one table of scores (skl2onnx: options={{'zipmap': False}}).",
            operation="several outputs",
        )
    chosen = output or scores[0]
    node = made.get(chosen)
    tensor = node.input[0] if node is not None and node.op_type == "ZipMap" and node.domain == DOMAIN else chosen
    told = [name for name in outputs if name in labels]
    kinds = {one.op_type for one in graph.node if one.domain == DOMAIN}
    return ScoresOutput(tensor, _class_names(graph, made), told[0] if told else "", "LinearRegressor" in kinds)


def _label_tensors(graph: Any) -> set[str]:
    """The tensors that hold labels, or are made of them."""
    labels: set[str] = set()
    for node in graph.node:
        if node.domain == DOMAIN and node.op_type in CLASSIFIERS:
            labels.add(node.output[0])
        elif node.op_type == "ArgMax" or labels & set(node.input):
            labels |= set(node.output)
    return labels


def _class_names(graph: Any, made: dict[str, Any]) -> tuple[Any, ...]:
    """The classes as the graph itself names them; none where it does not."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        given = attributes(node) if node.domain == DOMAIN else {}
        for key in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
            if given.get(key):
                return tuple(v.decode("utf-8") if isinstance(v, bytes) else int(v) for v in given[key])
        if node.op_type == "ArrayFeatureExtractor" and node.input[0] in stored:
            by = made.get(node.input[1])
            if by is not None and by.op_type == "ArgMax":
                names = onnx.numpy_helper.to_array(stored[node.input[0]]).ravel().tolist()
                return tuple(v.decode("utf-8") if isinstance(v, bytes) else v for v in names)
    return ()


def shortened(proto: Any, tensor: str, kind: int | None = None) -> Any:
    """The model up to one tensor, as its only output."""
    shorter = copy.deepcopy(proto)
    needed, nodes = {tensor}, []
    for node in reversed(shorter.graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            nodes.append(copy.deepcopy(node))
    del shorter.graph.node[:]
    shorter.graph.node.extend(reversed(nodes))
    stored = [tensor for tensor in shorter.graph.initializer if tensor.name in needed]
    del shorter.graph.initializer[:]
    shorter.graph.initializer.extend(stored)
    own = {one.name: one.type.tensor_type.elem_type for one in proto.graph.output}
    del shorter.graph.output[:]
    elem = own.get(tensor) or kind or onnx.TensorProto.FLOAT
    shorter.graph.output.append(onnx.helper.make_tensor_value_info(tensor, elem, None))
    return shorter


def without_activation(proto: Any, tensor: str) -> Any:
    """The model up to the scores of the classifier that makes this tensor, before its sigmoid or softmax."""
    bare = shortened(proto, tensor)
    for node in bare.graph.node:
        for attribute in node.attribute:
            if tensor in node.output and attribute.name == "post_transform":
                attribute.s = b"NONE"
    return bare


def any_number_of_rows(proto: Any, batch: int) -> Any:
    """A graph for a fixed number of rows, with shapes that keep the rows, however many there are."""
    shapes = {node.input[1] for node in proto.graph.node if node.op_type == "Reshape" and len(node.input) > 1}
    for tensor in proto.graph.initializer:
        sizes = onnx.numpy_helper.to_array(tensor) if tensor.name in shapes else np.zeros(0)
        if len(sizes) == 2 and sizes[0] == batch:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.array([0, sizes[1]], dtype=np.int64), tensor.name))
    return proto


# ---------------------------------------------------------------------- linear operators


def _numbers(call: OnnxCall, name: str) -> NDArray[np.float64]:
    return np.ravel(np.float64(call.given.get(name, [])))


def _linear(call: OnnxCall, x: Flow) -> Flow:
    weight, bias = _numbers(call, "coefficients"), _numbers(call, "intercepts")
    if not weight.size or weight.size % x.width:
        raise ModelError(f"'{call.name}' has {weight.size} coefficients for {x.width} values.")
    return x.linear(weight.reshape(-1, x.width), bias if bias.size else None, name=call.name)


def _regressor(call: OnnxCall, x: Flow) -> Flow:
    if call.given.get("post_transform", b"NONE") != b"NONE":
        raise call.refuse(f"ends with {call.given['post_transform'].decode()}")
    return _linear(call, x)


def _classifier(call: OnnxCall, x: Flow) -> tuple[None, Flow | OnnxFinal]:
    """The scores of the classes; with two and a sigmoid, the log-odds of the second."""
    activation = call.given.get("post_transform", b"NONE").decode()
    names = call.given.get("classlabels_strings") or call.given.get("classlabels_ints") or []
    scores = _linear(call, x)
    if scores.width != len(names):
        raise call.refuse(f"has {scores.width} score for {len(names)} classes; give each class its coefficients")
    if activation == "NONE":
        return None, scores
    if activation not in ("LOGISTIC", "SOFTMAX"):
        raise call.refuse(f"ends with {activation}")
    if activation == "LOGISTIC" and scores.width == 2:
        if not _opposite(call, scores):
            raise call.refuse("has two scores that are not opposite, so their sigmoids are no probabilities")
        second = scores.pick([1], name=call.name)
        return None, OnnxFinal(second, call.result, "sigmoid", call.operation, inside=True, second=True)
    each_alone = activation == "LOGISTIC"
    return None, OnnxFinal(scores, call.result, "softmax", call.operation, inside=True, each_alone=each_alone)


def _opposite(call: OnnxCall, scores: Flow) -> bool:
    """Are two scores each other's opposite, on every row?"""
    first, second = (scores.pick([k], name=call.name) for k in (0, 1))
    total = first.plus(second, name=call.name).expression
    return not total.bias.any() and not any(weight.any() for _, weight, _ in total.parts)


def _scaler(call: OnnxCall, x: Flow) -> Flow:
    offset, scale = (np.ravel(np.float64(call.given.get(key, default))) for key, default in SCALER)
    return x.scale(1.0, -offset, name=call.name).scale(scale, name=call.name)


def _pick(call: OnnxCall, x: Flow, places: Any) -> Flow:
    return x.pick([int(j) for j in np.ravel(places)], name=call.name)


def _normalizer(call: OnnxCall, x: Any) -> Any:
    raise call.refuse("divides a row by its own length, which is not piecewise linear")


MACHINE_LEARNING: dict[str, Callable[..., Any]] = {
    f"{ML}LinearRegressor": _regressor,
    f"{ML}LinearClassifier": _classifier,
    f"{ML}Scaler": _scaler,
    f"{ML}ArrayFeatureExtractor": _pick,
    f"{ML}Normalizer": _normalizer,
}


# ---------------------------------------------------------------------- after the last activation


@dataclass(frozen=True)
class Complement:
    """1 minus the probability of the second class."""

    of: OnnxFinal


@dataclass(frozen=True)
class Sizes:
    """The absolute values of probabilities, or their sum."""

    of: OnnxFinal
    summed: bool = False


AfterFinal: TypeAlias = OnnxFinal | Complement | Sizes
LAST = "follows a sigmoid or softmax, which may only come last"


def _less(call: OnnxCall, one: Any, final: Any) -> Complement:
    if not isinstance(final, OnnxFinal) or final.width != 1 or np.size(one) != 1 or float(np.ravel(one)[0]) != 1.0:
        raise call.refuse(LAST)
    return Complement(final)


def _both(call: OnnxCall, *parts: Any) -> OnnxFinal:
    match parts:
        case (Complement(of=final), OnnxFinal() as other) if other is final:
            return replace(final, both=True)
    raise call.refuse(LAST)


def _sizes(call: OnnxCall, final: Any) -> Sizes:
    if not isinstance(final, OnnxFinal):
        raise call.refuse(LAST)
    return Sizes(final)


def _summed(call: OnnxCall, sizes: Any, axes: Any = None) -> Sizes:
    listed = np.ravel(call.given.get("axes", []) if axes is None else axes).tolist()
    if not isinstance(sizes, Sizes) or sizes.summed or listed not in ([1], [-1]) or not call.given.get("keepdims", 1):
        raise call.refuse(LAST)
    return replace(sizes, summed=True)


def _divided(call: OnnxCall, final: Any, sizes: Any) -> OnnxFinal:
    if not isinstance(sizes, Sizes) or not sizes.summed or sizes.of is not final:
        raise call.refuse(LAST)
    return _shares(call, final)


def _normalized(call: OnnxCall, final: Any) -> OnnxFinal:
    if not isinstance(final, OnnxFinal) or call.given.get("norm", b"MAX") != b"L1":
        raise call.refuse(LAST)
    return _shares(call, final)


def _shares(call: OnnxCall, final: OnnxFinal) -> OnnxFinal:
    """Divided by their sum: a softmax stays what it is. Sigmoids of opposite scores have a sum of 1; those of classes
    that stand alone keep their order."""
    if final.activation == "softmax":
        return replace(final)
    if final.width == 2 and _opposite(call, final.flow):
        return replace(final, flow=final.flow.pick([1], name=call.name), second=True)
    if final.width == 1:
        raise call.refuse(LAST)
    return replace(final, activation="softmax", each_alone=True)


AFTER: dict[str, Callable[..., Any]] = {
    "Sub": _less,
    "Concat": _both,
    "Abs": _sizes,
    "ReduceSum": _summed,
    "Div": _divided,
    f"{ML}Normalizer": _normalized,
}
"""What converters write after a sigmoid or softmax without changing what is decided."""
