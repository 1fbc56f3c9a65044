"""ONNX-ML tree ensembles: a TreeEnsembleClassifier or TreeEnsembleRegressor that reads the input of the graph.

A runtime may add up the leaves in any order, so the sum has none. Converters write thresholds and leaves as float32,
also where the library that trained the trees has float64: what is imported is what the file says.

The label of a TreeEnsembleClassifier follows rules of onnxruntime's own, found by experiment
(`tests/model/test_onnx_tree_labels.py`); m is the sum of a class's weights, and of its base value:

    three classes or more    the largest m among the classes that some leaf on the row's way has a weight for; base
                             values give every class one
    two, weights of one      m of that class > 0, or > 1/2 where no weight is negative
    two, weights of both     m of the second > 0, whatever the first has; whole numbers as labels become 0 and 1

Where this is not what the scores say, the file is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.onnx_graph import OnnxReader
from ifonly.model.importers.onnx_inputs import OnnxInputs
from ifonly.model.importers.onnx_ml import equal_flows
from ifonly.model.importers.onnx_operations import FLOATS, OnnxFinal, attributes
from ifonly.model.importers.onnx_outputs import ScoresOutput, needed_nodes, shortened
from ifonly.model.kind import Precision
from ifonly.model.trees import Ensemble, LibraryTree, Summation

Floats = NDArray[np.float64]
DOMAIN = "ai.onnx.ml"
BEFORE = ("Identity", "Cast")
"""Operations that are allowed between the input and the trees."""
MODES = {
    "BRANCH_LEQ": (False, False),
    "BRANCH_LT": (True, False),
    "BRANCH_GT": (False, True),
    "BRANCH_GTE": (True, True),
}
"""For each comparison: is it strict as a `<`, and does its 'true' mean right?"""


@dataclass(frozen=True)
class OnnxTrees:
    """The tree ensemble of a graph, and its node."""

    ensemble: Ensemble
    node: Any
    decides: bool
    activation: Literal["NONE", "LOGISTIC", "SOFTMAX"]
    second: bool
    """One score, of the second of two classes; the node gives two columns."""

    @property
    def scores(self) -> str:
        """The tensor of the scores."""
        return str(self.node.output[-1])

    def value(self) -> Flow | OnnxFinal:
        """The scores, for a reader of what follows them."""
        columns = Flow.of(2 if self.second else self.ensemble.outputs)
        operation = str(self.node.op_type)
        match self.activation:
            case "NONE":
                return columns
            case "LOGISTIC" if self.second:
                return OnnxFinal(Flow.of(1), self.scores, "sigmoid", operation, inside=True, second=True)
            case "LOGISTIC" | "SOFTMAX":
                alone = self.activation == "LOGISTIC"
                return OnnxFinal(columns, self.scores, "softmax", operation, inside=True, each_alone=alone)


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
        self.proto, self.node, self.attributes = proto, node, attributes(node)
        self.decides = node.op_type == "TreeEnsembleClassifier"
        self.leaf = "class" if self.decides else "target"
        self.kind: Precision = self._input_kind()

    def read(self) -> OnnxTrees:
        activation = self.attributes.get("post_transform", b"NONE").decode()
        if activation not in ("NONE", "LOGISTIC", "SOFTMAX") or (activation != "NONE" and not self.decides):
            raise self._refused(f"ends with {activation}")
        if self.attributes.get("aggregate_function", b"SUM") not in (b"SUM", b"AVERAGE"):
            raise self._refused("takes the least or the largest of its leaves, not their sum")
        outputs = len(self._classes()) if self.decides else int(self.attributes["n_targets"])
        trees, weighed = self._trees(outputs)
        start = np.zeros(outputs)
        base = self._numbers("base_values")
        start[: len(base)] = base
        second = False
        if self.decides and outputs == 2:
            trees, start, second = self._two_classes(trees, start, weighed, activation)
            activation = "NONE" if weighed == [0] and activation == "SOFTMAX" else activation  # it leaves those alone
        elif self.decides:
            self._check_scored(outputs)
        average = self.attributes.get("aggregate_function", b"SUM") == b"AVERAGE"
        summation = Summation(
            start=start,
            shift=np.zeros(len(start)),
            divisor=float(len(trees)) if average else 1.0,
            precision=self.kind,
            ordered=False,
        )
        ensemble = Ensemble.of(trees, columns=self._columns(), summation=summation, compared_in=self.kind)
        return OnnxTrees(ensemble, self.node, self.decides, activation, second)

    # ------------------------------------------------------------------ labels

    def _two_classes(
        self, trees: list[LibraryTree], start: Floats, weighed: list[int], activation: str
    ) -> tuple[list[LibraryTree], Floats, bool]:
        """The trees of two classes, and whether one score, of the second, is left of them."""
        names, base, negative = self._classes(), self._numbers("base_values"), self._some_negative()
        if weighed == [0] and len(base) < 2 and (not base.any() or self._scored(0)):
            if negative:
                return [_column(tree, 0) for tree in trees], start[:1], True
            if activation != "LOGISTIC":  # the probability of the second, and what is left for the first
                return [_both(tree) for tree in trees], np.array([1.0 - start[0], start[0]]), False
        if not len(base) and self._scored(1) and weighed == [1] and negative:
            return trees, start, False
        literal = all(isinstance(name, str) for name in names) or names == (0, 1)
        if not len(base) and self._scored(1) and weighed == [0, 1] and all(map(_opposite, trees)) and literal:
            both = activation == "SOFTMAX"
            return (trees, start, False) if both else ([_column(tree, 1) for tree in trees], start[1:], True)
        raise self._refused(
            "gives weights to two classes so that onnxruntime's label does not follow from its scores; for two "
            "classes, give weights to one of them only, the first, with at most one base value, and with LOGISTIC not "
            "all of them positive"
        )

    def _check_scored(self, outputs: int) -> None:
        """Is the label the class of the largest score? A class without a weight on a row's way is never decided for."""
        if len(self._numbers("base_values")) == outputs or all(self._scored(k) for k in range(outputs)):
            return
        if not self._some_negative() and self._some_positive():  # then the largest score is above 0
            return
        bare = next(k for k in range(outputs) if not self._scored(k))
        raise self._refused(
            f"has leaves without a weight for the class {self._classes()[bare]!r}, which onnxruntime then never "
            f"decides for, whatever the scores say; write every class's weight at every leaf, or a base value for "
            f"every class"
        )

    def _scored(self, output: int) -> bool:
        """Has every row a weight of this class: is there a tree of which every leaf has one?"""
        own = self._numbers("class_ids") == output
        return self._covered(own)

    def _some_positive(self) -> bool:
        return self._covered(self._numbers("class_weights") > 0.0)

    def _covered(self, weights: Any) -> bool:
        """Is there a tree with one of these weights at every leaf?"""
        tree, node = (self._numbers(f"class_{key}")[weights] for key in ("treeids", "nodeids"))
        has = set(zip(tree.tolist(), node.tolist(), strict=True))
        leaf = np.array([mode == b"LEAF" for mode in self.attributes["nodes_modes"]])
        bare = {
            int(t)
            for t, n in zip(self._numbers("nodes_treeids")[leaf], self._numbers("nodes_nodeids")[leaf], strict=True)
            if (int(t), int(n)) not in has
        }
        return bool(set(self._numbers("nodes_treeids").tolist()) - bare)

    # ------------------------------------------------------------------ the node

    def _refused(self, why: str) -> UnsupportedModel:
        return UnsupportedModel(f"The {self.node.op_type} of the ONNX model {why}.", operation=self.node.op_type)

    def _numbers(self, name: str) -> NDArray[Any]:
        tensor = self.attributes.get(f"{name}_as_tensor")
        return np.asarray(self.attributes.get(name, []) if tensor is None else onnx.numpy_helper.to_array(tensor))

    def _classes(self) -> tuple[Any, ...]:
        if not self.decides:
            return ()
        text = self.attributes.get("classlabels_strings") or self.attributes.get("classlabels_int64s") or []
        return tuple(name.decode("utf-8") if isinstance(name, bytes) else int(name) for name in text)

    def _columns(self) -> int:
        shape = _only_input(self.proto.graph).type.tensor_type.shape.dim
        used = int(self._numbers("nodes_featureids").max(initial=0)) + 1
        return max(used, int(shape[1].dim_value) if len(shape) > 1 else 0)

    def _some_negative(self) -> bool:
        return bool((self._numbers(f"{self.leaf}_weights") < 0.0).any())

    def _input_kind(self) -> Precision:
        """The precision in which the trees get their numbers; only casts may stand before them."""
        producers = {output: node for node in self.proto.graph.node for output in node.output}
        given = _only_input(self.proto.graph)
        elem, name, casts = given.type.tensor_type.elem_type, self.node.input[0], []
        while name != given.name:
            node = producers.get(name)
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
        modes = [mode.decode() for mode in np.asarray(self.attributes["nodes_modes"], dtype=object)[own]]
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


def _column(tree: LibraryTree, column: int) -> LibraryTree:
    """One column of the leaves."""
    return replace(tree, value=np.asarray(tree.value)[:, [column]])


def _opposite(tree: LibraryTree) -> bool:
    """Are the weights of two classes each other's opposite, at every leaf?"""
    return not np.asarray(tree.value).sum(axis=1).any()


def _both(tree: LibraryTree) -> LibraryTree:
    """The probability of the second class, and what is taken off that of the first."""
    own = np.asarray(tree.value)[:, 0]
    return replace(tree, value=np.stack([-own, own], axis=1))


# ---------------------------------------------------------------------- what follows the trees


def following(
    proto: Any, trees: OnnxTrees, ending: ScoresOutput, inputs: OnnxInputs
) -> tuple[Flow | OnnxFinal, list[Any]]:
    """The output of the graph after its trees: their scores, or a last activation of them. Anything else is refused.

    Also what its labels are decided by, if it declares some.
    """
    tensors = [ending.tensor, *([ending.decided_by] if ending.labels else [])]
    rest = shortened(proto, tensors)
    kept = [node for node in rest.graph.node if trees.scores not in node.output]
    used = {name for node in needed_nodes(proto.graph, trees.node.input) for name in node.output}
    kept = [node for node in kept if not used & set(node.output)]
    del rest.graph.node[:]
    rest.graph.node.extend(kept)
    begun = trees.value()
    reader = OnnxReader(rest.graph, inputs, {trees.scores: begun})
    value, *deciding = reader.read()
    own = begun.flow if isinstance(begun, OnnxFinal) else begun
    for node in kept:
        for produced in (reader.values.get(name) for name in node.output):
            flow = produced.flow if isinstance(produced, OnnxFinal) else produced
            again = isinstance(produced, OnnxFinal) and not produced.inside and trees.decides
            if isinstance(flow, Flow) and (again or not equal_flows(flow, own)):
                raise UnsupportedModel(
                    f"The operation {node.op_type} ('{node.name or node.output[0]}') of the ONNX model follows its "
                    f"trees and changes their scores, which is not supported; export the model so that the "
                    f"{trees.node.op_type} gives its scores.",
                    operation=str(node.op_type),
                )
    assert isinstance(value, Flow | OnnxFinal)
    return value, deciding


def _only_input(graph: Any) -> Any:
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [given for given in graph.input if given.name not in stored]
    if len(inputs) != 1:
        raise ModelError(f"The ONNX model has {len(inputs)} inputs; only one table of columns is supported.")
    return inputs[0]
