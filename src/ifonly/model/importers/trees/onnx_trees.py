"""ONNX-ML: a TreeEnsembleClassifier or TreeEnsembleRegressor that reads the input of the graph.

The original is the graph up to the trees, run by onnxruntime (or ONNX's reference evaluator), with the last sigmoid or
softmax taken off. How a runtime adds up the leaves is its own matter, so the sum has no order. Converters write
thresholds and leaves as float32, also where the library that grew the trees has float64: what is imported here is what
the file says.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.onnx_operations import FLOATS, attributes
from ifonly.model.kind import Precision
from ifonly.model.trees import Ensemble, LibraryTree, Summation

Floats = NDArray[np.float64]
DOMAIN = "ai.onnx.ml"
BEFORE = ("Identity", "Cast")
"""What may stand between the input and the trees."""
MODES = {
    "BRANCH_LEQ": (False, False),
    "BRANCH_LT": (True, False),
    "BRANCH_GT": (False, True),
    "BRANCH_GTE": (True, True),
}
"""For each comparison: is it strict as a `<`, and does its 'true' mean right?"""


@dataclass(frozen=True)
class OnnxTrees:
    """The trees of a graph: what they are, and the graph that ends with them, without the last activation, and with
    the labels instead of the scores."""

    ensemble: Ensemble
    classes: tuple[Any, ...]
    activation: Literal["NONE", "LOGISTIC", "SOFTMAX"]
    whole: bytes
    bare: bytes
    labels: bytes
    second: bool
    """One score, of the second of two classes; the graph gives two columns."""


def read_onnx_trees(proto: Any) -> OnnxTrees | None:
    """The trees of an ONNX model; None where it has none."""
    nodes = [node for node in proto.graph.node if node.domain == DOMAIN and node.op_type.startswith("TreeEnsemble")]
    if not nodes:
        return None
    if len(nodes) > 1 or nodes[0].op_type == "TreeEnsemble":
        raise UnsupportedModel(
            f"The ONNX model has {len(nodes)} tree ensembles, the first a {nodes[0].op_type}; supported is one "
            f"TreeEnsembleClassifier or TreeEnsembleRegressor.",
            operation=nodes[0].op_type,
        )
    return _Onnx(proto, nodes[0]).read()


class _Onnx:
    """One node of trees in its graph."""

    def __init__(self, proto: Any, node: Any) -> None:
        self.proto, self.node, self.given = proto, node, attributes(node)
        self.decides = node.op_type == "TreeEnsembleClassifier"
        self.leaf = "class" if self.decides else "target"
        self.kind: Precision = self._input_kind()

    def read(self) -> OnnxTrees:
        activation = self.given.get("post_transform", b"NONE").decode()
        if activation not in ("NONE", "LOGISTIC", "SOFTMAX") or (activation != "NONE" and not self.decides):
            raise self._refused(f"ends with {activation}")
        if self.given.get("aggregate_function", b"SUM") not in (b"SUM", b"AVERAGE"):
            raise self._refused("takes the least or the largest of its leaves, not their sum")
        classes = self._classes()
        outputs = len(classes) if self.decides else int(self.given["n_targets"])
        trees, weighed = self._trees(outputs)
        start = np.zeros(outputs)
        base = self._numbers("base_values")
        start[: len(base)] = base
        single = self.decides and weighed == [0] and outputs == 2  # weights of the first only mean the second
        second = single and (activation == "LOGISTIC" or self._some_negative())
        if second:
            trees, start = [_only(tree) for tree in trees], start[:1]
        elif single:  # the probability of the second, and what is left for the first
            trees, start = [_both(tree) for tree in trees], np.array([1.0 - start[0], start[0]])
        average = self.given.get("aggregate_function", b"SUM") == b"AVERAGE"
        summation = Summation(
            start=start,
            shift=np.zeros(len(start)),
            divisor=float(len(trees)) if average else 1.0,
            precision=self.kind,
            ordered=False,
        )
        ensemble = Ensemble.of(trees, columns=self._columns(), summation=summation, compared_in=self.kind)
        whole, bare = self._ending_here(), self._ending_here("NONE")
        return OnnxTrees(ensemble, classes, activation, whole, bare, self._labels() if self.decides else b"", second)

    # ------------------------------------------------------------------ the node

    def _refused(self, why: str) -> UnsupportedModel:
        return UnsupportedModel(f"The {self.node.op_type} of the ONNX model {why}.", operation=self.node.op_type)

    def _numbers(self, name: str) -> NDArray[Any]:
        tensor = self.given.get(f"{name}_as_tensor")
        return np.asarray(self.given.get(name, []) if tensor is None else onnx.numpy_helper.to_array(tensor))

    def _classes(self) -> tuple[Any, ...]:
        if not self.decides:
            return ()
        text = self.given.get("classlabels_strings") or self.given.get("classlabels_int64s") or []
        return tuple(name.decode("utf-8") if isinstance(name, bytes) else int(name) for name in text)

    def _columns(self) -> int:
        shape = _only_input(self.proto.graph).type.tensor_type.shape.dim
        used = int(self._numbers("nodes_featureids").max(initial=0)) + 1
        return max(used, int(shape[1].dim_value) if len(shape) > 1 else 0)

    def _some_negative(self) -> bool:
        return bool((self._numbers(f"{self.leaf}_weights") < 0.0).any())

    def _input_kind(self) -> Precision:
        """The precision in which the trees get their numbers; only casts may stand before them."""
        made = {output: node for node in self.proto.graph.node for output in node.output}
        given = _only_input(self.proto.graph)
        elem, name, casts = given.type.tensor_type.elem_type, self.node.input[0], []
        while name != given.name:
            node = made.get(name)
            if node is None or node.domain not in ("", "ai.onnx") or node.op_type not in BEFORE:
                what = "a constant" if node is None else node.op_type
                raise self._refused(f"reads what {what} makes of the input; only the input itself is supported")
            casts += [attributes(node)["to"]] if node.op_type == "Cast" else []
            name = node.input[0]
        for kind in (elem, *casts):
            if kind not in FLOATS:
                raise self._refused(f"reads {onnx.TensorProto.DataType.Name(kind)} numbers, not FLOAT or DOUBLE")
        float32 = "float32" in {FLOATS[kind] for kind in (elem, *casts)}
        return "float32" if float32 else "float64"

    # ------------------------------------------------------------------ the trees

    def _trees(self, outputs: int) -> tuple[list[LibraryTree], list[int]]:
        """The trees, leaves with one value per output; and the outputs that have weights at all."""
        owner, number = self._numbers("nodes_treeids"), self._numbers("nodes_nodeids")
        place = {(int(t), int(n)): i for i, (t, n) in enumerate(zip(owner, number, strict=True))}
        values = np.zeros((len(owner), outputs))
        ids = self._numbers(f"{self.leaf}_ids").astype(np.intp)
        rows = zip(
            *(self._numbers(f"{self.leaf}_{key}") for key in ("treeids", "nodeids", "ids", "weights")), strict=True
        )
        for tree, node, output, weight in rows:
            values[place[int(tree), int(node)], int(output)] += float(weight)
        trees = [self._tree(np.flatnonzero(owner == t), place, values) for t in np.unique(owner)]
        return trees, np.unique(ids).tolist()

    def _tree(self, own: NDArray[np.intp], place: dict[tuple[int, int], int], values: Floats) -> LibraryTree:
        """A true comparison goes to the true node: left, but for > and >=, where it is right."""
        modes = [mode.decode() for mode in np.asarray(self.given["nodes_modes"], dtype=object)[own]]
        for mode in modes:
            if mode != "LEAF" and mode not in MODES:
                raise self._refused(f"splits by {mode}; supported are {', '.join(MODES)}")
        leaf = np.array([mode == "LEAF" for mode in modes])
        strict, turned = (
            np.array([not end and MODES[mode][k] for mode, end in zip(modes, leaf, strict=True)]) for k in (0, 1)
        )
        kind = np.dtype(self.kind).type
        given = self._numbers("nodes_values")[own].astype(kind)
        local = {int(i): k for k, i in enumerate(own)}
        tree = int(self._numbers("nodes_treeids")[own[0]])
        true, false = (
            self._children(f"nodes_{side}nodeids", own, tree, place, local, leaf) for side in ("true", "false")
        )
        tracks = self._numbers("nodes_missing_value_tracks_true")
        missing = tracks[own].astype(bool) if len(tracks) else np.zeros(len(own), dtype=bool)
        root = int(np.setdiff1d(np.arange(len(own)), np.concatenate([true[~leaf], false[~leaf]]))[0])
        order = np.concatenate([[root], np.delete(np.arange(len(own)), root)])  # a tree's root comes first
        back = np.argsort(order)
        left, right = np.where(turned, false, true), np.where(turned, true, false)
        return LibraryTree(
            column=np.where(leaf, -1, self._numbers("nodes_featureids")[own])[order],
            threshold=np.where(strict, np.nextafter(given, kind(-np.inf)), given).astype(np.float64)[order],
            left=back[left][order],
            right=back[right][order],
            missing_left=(missing != turned)[order],
            value=values[own][order],
        )

    # size: what a list of nodes needs to become one of children
    def _children(self, key: str, own: Any, tree: int, place: Any, local: Any, leaf: Any) -> NDArray[np.intp]:
        ids = self._numbers(key)[own]
        return np.array([k if leaf[k] else local[place[tree, int(ids[k])]] for k in range(len(own))], dtype=np.intp)

    # ------------------------------------------------------------------ the original

    def _labels(self) -> bytes:
        """The graph up to the labels that the trees decide for."""
        shorter = onnx.load_model_from_string(self._ending_here())
        kind = onnx.TensorProto.STRING if self.given.get("classlabels_strings") else onnx.TensorProto.INT64
        del shorter.graph.output[:]
        shorter.graph.output.append(onnx.helper.make_tensor_value_info(self.node.output[0], kind, ["rows"]))
        return bytes(shorter.SerializeToString())

    def _ending_here(self, activation: str | None = None) -> bytes:
        """The graph up to the scores of the trees."""
        shorter = copy.deepcopy(self.proto)
        place = next(i for i, node in enumerate(self.proto.graph.node) if node == self.node)
        del shorter.graph.node[place + 1 :]
        node = shorter.graph.node[place]
        for attribute in node.attribute:
            if attribute.name == "post_transform" and activation is not None:
                attribute.s = activation.encode()
        del shorter.graph.output[:]
        kind = onnx.TensorProto.FLOAT
        shorter.graph.output.append(onnx.helper.make_tensor_value_info(node.output[-1], kind, None))
        return bytes(shorter.SerializeToString())


def _only(tree: LibraryTree) -> LibraryTree:
    """The first column of the leaves."""
    return replace(tree, value=np.asarray(tree.value)[:, :1])


def _both(tree: LibraryTree) -> LibraryTree:
    """The probability of the second class, and what is taken off that of the first."""
    own = np.asarray(tree.value)[:, 0]
    return replace(tree, value=np.stack([-own, own], axis=1))


def _only_input(graph: Any) -> Any:
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [given for given in graph.input if given.name not in stored]
    if len(inputs) != 1:
        raise ModelError(f"The ONNX model has {len(inputs)} inputs; only one table of columns is supported.")
    return inputs[0]
