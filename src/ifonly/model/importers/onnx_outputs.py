"""The declared outputs of an ONNX graph: which one holds scores or probabilities, which one labels, and the classes.

A classifier gives a label and probabilities, zipped with the names of the classes or not. Scores are read from the
tensor behind the one; the other must be the largest of the same scores, renamed by operations of the list below. What
else a label may be made of is refused by name: an answer is about the label that the file declares.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.onnx_operations import attributes
from ifonly.printing import shown

DOMAIN = "ai.onnx.ml"
CLASSIFIERS = ("LinearClassifier", "TreeEnsembleClassifier", "SVMClassifier")
KEEPING = ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
"""What keeps labels as they are."""


@dataclass(frozen=True)
class ScoresOutput:
    """The outputs that a model is read by.

    `output` is the declared output of the scores, `tensor` the table behind it. `labels` is the declared output of
    labels, if there is one, and `decided_by` the tensor that it is the largest of. `zipped` names the columns of an
    output that is a list of dictionaries.
    """

    output: str
    tensor: str
    classes: tuple[Any, ...] = ()
    labels: str = ""
    decided_by: str = ""
    zipped: tuple[Any, ...] = ()
    regression: bool = False


def ending_of(graph: Any, output: str | None) -> ScoresOutput:
    """What a graph ends with; `output` names one of several outputs."""
    producers = {name: node for node in graph.node for name in node.output if name}
    chosen, labels = _chosen(graph, output)
    node, zipped, tensor = producers.get(chosen), (), chosen
    if node is not None and node.domain == DOMAIN and node.op_type == "ZipMap":
        zipped, tensor = _named(attributes(node)), node.input[0]
    sources = [_LabelPath(graph, producers, name).source() for name in labels]
    classes = sources[0][1] if sources else zipped or _class_names(graph, tensor)
    if sources and zipped and classes and zipped != classes:
        raise ModelError(
            f"The ONNX model calls its classes {shown(list(zipped))} in the output '{chosen}', but "
            f"{shown(list(classes))} in the labels '{labels[0]}'; export it with one list of names."
        )
    kinds = {one.op_type for one in graph.node if one.domain == DOMAIN}
    return ScoresOutput(
        chosen,
        tensor,
        classes or zipped,
        labels[0] if labels else "",
        sources[0][0] if sources else "",
        zipped,
        "LinearRegressor" in kinds,
    )


def _chosen(graph: Any, output: str | None) -> tuple[str, list[str]]:
    """The declared output that holds the scores, and those that hold labels."""
    labels, outputs = _label_tensors(graph), [one.name for one in graph.output]
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
    return output or scores[0], [name for name in outputs if name in labels]


def _label_tensors(graph: Any) -> set[str]:
    """The tensors that hold labels, or are made of them."""
    labels: set[str] = set()
    for node in graph.node:
        if node.domain == DOMAIN and node.op_type in CLASSIFIERS:
            labels.add(node.output[0])
        elif node.op_type == "ArgMax" or labels & set(node.input):
            labels |= set(node.output)
    return labels


def _named(found: dict[str, Any]) -> tuple[Any, ...]:
    """The classes that a node names."""
    for key in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
        if found.get(key):
            return tuple(v.decode("utf-8") if isinstance(v, bytes) else int(v) for v in found[key])
    return ()


def _class_names(graph: Any, tensor: str) -> tuple[Any, ...]:
    """The names that the last classifier before a tensor has for its classes."""
    for node in reversed(needed_nodes(graph, [tensor])):
        if node.domain == DOMAIN and node.op_type in CLASSIFIERS:
            return _named(attributes(node))
    return ()


@dataclass
class _LabelPath:
    """The way back from a declared label to what decides it."""

    graph: Any
    producers: dict[str, Any]
    output: str

    def source(self) -> tuple[str, tuple[Any, ...]]:
        """The tensor of scores whose largest is the label, and the labels in their order; none where numbers are."""
        name = self.output
        renaming: list[Any] = []
        while True:
            node = self.producers.get(name)
            if node is None:
                raise self._refused("an input", "input")
            if node.domain == DOMAIN and node.op_type in CLASSIFIERS and name == node.output[0]:
                return node.output[1], self._renamed(_named(attributes(node)), renaming)
            if node.op_type == "ArgMax":
                given = attributes(node)
                if given.get("axis", 0) not in (1, -1) or given.get("select_last_index", 0):
                    raise self._refused("an ArgMax over rows, or of the last of equals", "ArgMax")
                return node.input[0], self._renamed((), renaming)
            name = self._back(node)
            renaming.append(node)

    def _back(self, node: Any) -> str:
        """The input of a node that renames labels."""
        if node.op_type in (*KEEPING, "Cast", "LabelEncoder"):
            return str(node.input[0])
        if node.op_type in ("ArrayFeatureExtractor", "Gather") and self._stored(node.input[0]) is not None:
            return str(node.input[1])
        raise self._refused(f"the operation {node.op_type} ('{node.name or node.output[0]}')", node.op_type)

    def _refused(self, what: str, operation: str) -> UnsupportedModel:
        return UnsupportedModel(
            f"The label '{self.output}' of the ONNX model is made by {what}, which is not supported: a label must be "
            f"that of a classifier, or the ArgMax of the scores, with no more than other names for the classes.",
            operation=operation,
        )

    def _stored(self, name: str) -> Any:
        for tensor in self.graph.initializer:
            if tensor.name == name:
                return onnx.numpy_helper.to_array(tensor)
        return None

    def _renamed(self, names: tuple[Any, ...], renaming: Sequence[Any]) -> tuple[Any, ...]:
        for node in reversed(renaming):
            names = self._step(node, names)
        return names

    def _step(self, node: Any, names: tuple[Any, ...]) -> tuple[Any, ...]:
        """The names of the classes after one operation."""
        if node.op_type in KEEPING:
            return names
        if node.op_type == "Cast":
            to = attributes(node)["to"]
            if to in (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
                if all(isinstance(name, int) for name in names):
                    return names
            elif to == onnx.TensorProto.STRING and all(isinstance(name, str) for name in names) and names:
                return names
            raise self._refused("a Cast that changes the names of the classes", "Cast")
        if node.op_type == "LabelEncoder":
            return self._encoded(node, names)
        listed = [plain_name(v) for v in np.ravel(self._stored(node.input[0])).tolist()]
        places = names or tuple(range(len(listed)))
        if not all(isinstance(k, int) and 0 <= k < len(listed) for k in places):
            raise self._refused(f"the operation {node.op_type} of names that are no places", node.op_type)
        return tuple(listed[k] for k in places)

    def _encoded(self, node: Any, names: tuple[Any, ...]) -> tuple[Any, ...]:
        given, kinds = attributes(node), ("strings", "int64s", "floats")
        keys, values = (
            [plain_name(value) for kind in kinds for value in given.get(f"{part}_{kind}") or []]
            for part in ("keys", "values")
        )
        mapped = dict(zip(keys, values, strict=True))
        names = names or tuple(range(len(keys)))
        if any(name not in mapped for name in names) or len({mapped[name] for name in names}) < len(names):
            raise self._refused("a LabelEncoder that does not name every class otherwise", "LabelEncoder")
        return tuple(mapped[name] for name in names)


def plain_name(value: Any) -> Any:
    """A label as a file or a runtime gives it, as a value of Python; whole numbers as such."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return int(value) if isinstance(value, float) and value.is_integer() else value


# ---------------------------------------------------------------------- parts of a graph, to be read


def needed_nodes(graph: Any, tensors: Collection[str]) -> list[Any]:
    """The nodes that these tensors are computed by, in order."""
    needed, nodes = set(tensors), []
    for node in reversed(graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            nodes.append(node)
    return nodes[::-1]


def shortened(proto: Any, tensors: Sequence[str], kind: int | None = None) -> Any:
    """The model up to some tensors, as its only outputs."""
    shorter = copy.deepcopy(proto)
    nodes = [copy.deepcopy(node) for node in needed_nodes(shorter.graph, tensors)]
    needed = {*tensors, *(name for node in nodes for name in node.input)}
    del shorter.graph.node[:]
    shorter.graph.node.extend(nodes)
    stored = [tensor for tensor in shorter.graph.initializer if tensor.name in needed]
    del shorter.graph.initializer[:]
    shorter.graph.initializer.extend(stored)
    own = {one.name: one.type.tensor_type.elem_type for one in proto.graph.output}
    del shorter.graph.output[:]
    for tensor in tensors:
        elem = own.get(tensor) or kind or onnx.TensorProto.FLOAT
        shorter.graph.output.append(onnx.helper.make_tensor_value_info(tensor, elem, None))
    return shorter


def without_activation(proto: Any, tensor: str) -> Any:
    """The model up to the scores of the classifier that makes this tensor, before its sigmoid or softmax."""
    bare = shortened(proto, [tensor])
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
