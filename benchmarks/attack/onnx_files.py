"""ONNX files with ensembles of trees, built with `onnx.helper`, and what onnxruntime says of the whole file.

A tree is plain data: ["leaf", [[output, weight], ...]] or ["split", column, threshold, true branch, false branch].
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.attack.decisions import Decision, ahead
from benchmarks.attack.space import Feature, Row

Tree = list[Any]
ML = "ai.onnx.ml"
OPSETS = {"": 17, ML: 3}


def tree(chance: random.Random, features: Sequence[Feature], outputs: int, depth: int, *, all_weights: bool) -> Tree:
    """Splits at whole numbers and halves; leaves with a weight for each output, or only for some."""
    if depth and chance.random() < 0.85:
        at = chance.randrange(len(features))
        threshold = chance.randint(features[at]["lower"], features[at]["upper"]) + chance.choice([0.0, 0.5, -0.5])
        branches = [tree(chance, features, outputs, depth - 1, all_weights=all_weights) for _ in range(2)]
        return ["split", at, threshold, *branches]
    told = range(outputs) if all_weights else chance.sample(range(outputs), chance.randint(1, outputs))
    return ["leaf", [[output, chance.choice([-1.0, -0.5, 0.25, 0.5, 1.0, 2.0])] for output in sorted(told)]]


def ensemble(trees: Sequence[Tree], outputs: Sequence[str], **more: Any) -> Any:
    """The node: a classifier where `classlabels_...` is among the attributes, else a regressor."""
    from onnx import helper

    decides = any(name.startswith("classlabels") for name in more)
    leaf = "class" if decides else "target"
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    nodes: dict[str, list[Any]] = {name: [] for name in names}
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for number, top in enumerate(trees):
        _add(top, number, nodes, leaves)
    given = {f"nodes_{name}": listed for name, listed in nodes.items()}
    given |= {f"{leaf}_{name}": listed for name, listed in leaves.items()}
    made = {"post_transform": "NONE", **given, **more}
    kind = "TreeEnsembleClassifier" if decides else "TreeEnsembleRegressor"
    return helper.make_node(kind, ["x"], list(outputs), domain=ML, **made)


def _add(top: Tree, number: int, nodes: dict[str, list[Any]], leaves: dict[str, list[Any]]) -> int:
    own = sum(owner == number for owner in nodes["treeids"])
    split = top[0] == "split"
    row = [
        number,
        own,
        top[1] if split else 0,
        float(top[2]) if split else 0.0,
        "BRANCH_LEQ" if split else "LEAF",
        0,
        0,
    ]
    for name, value in zip(nodes, row, strict=True):
        nodes[name].append(value)
    at = len(nodes["nodeids"]) - 1
    if split:
        nodes["truenodeids"][at] = _add(top[3], number, nodes, leaves)
        nodes["falsenodeids"][at] = _add(top[4], number, nodes, leaves)
    else:
        for output, weight in top[1]:
            for name, value in zip(leaves, (number, own, output, weight), strict=True):
                leaves[name].append(value)
    return own


def model(nodes: Sequence[Any], columns: int, outputs: dict[str, Any], constants: dict[str, float]) -> Any:
    """The whole file: one table of float32 numbers; an output is the number of its columns, or the type of labels."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        list(nodes), "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", columns])],
        [helper.make_tensor_value_info(name, getattr(TensorProto, what), ["n"]) if isinstance(what, str) else
         helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", what]) for name, what in outputs.items()],
        [numpy_helper.from_array(np.array(c, dtype=np.float32), name) for name, c in constants.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in OPSETS.items()])
    made.ir_version = 8
    return made


def ends_in_sigmoid(graph: Any) -> bool:
    """Is the last output a probability by its last operation?"""
    made = {name: node for node in graph.node for name in node.output}
    node = made.get(graph.output[-1].name)
    while node is not None and node.op_type == "Identity":
        node = made.get(node.input[0])
    return node is not None and node.op_type == "Sigmoid"


class Runtime:
    """The whole file in onnxruntime. It decides by the labels of the file, else by its scores."""

    def __init__(self, proto: Any) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        self.session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.input = self.session.get_inputs()[0].name
        self.threshold = 0.5 if ends_in_sigmoid(proto.graph) else 0.0

    def outputs(self, rows: Sequence[Row]) -> tuple[list[Any] | None, Any]:
        """Labels, if the file has any, and scores."""
        import numpy as np

        made = [np.asarray(o) for o in self.session.run(None, {self.input: np.array(rows, dtype=np.float32)})]
        labels = next((o for o in made if o.dtype.kind in "iuOU"), None)
        scores = next((o for o in made if o.dtype.kind == "f"), None)
        told = (
            None if labels is None else [label.item() if hasattr(label, "item") else label for label in labels.ravel()]
        )
        return told, None if scores is None else scores.reshape(len(rows), -1).astype(float)

    def decide(self, rows: list[Row]) -> list[Decision]:
        """Two classes by the sign of a score, or one half of a probability; several by label, or by the largest."""
        labels, scores = self.outputs(rows)
        if scores is None:
            return [(label, 1.0) for label in labels or ()]
        score_margins = [abs(s[0] - self.threshold) if len(s) == 1 else ahead(s) for s in scores.tolist()]
        if labels is None:
            labels = [int(s[0] > self.threshold) if len(s) == 1 else s.index(max(s)) for s in scores.tolist()]
        return list(zip(labels, score_margins, strict=True))

    def decide_above(self, least: float, rows: list[Row]) -> list[Decision]:
        """A regression: does the prediction reach so much?"""
        _, scores = self.outputs(rows)
        return [(s[0] >= least, abs(s[0] - least)) for s in scores.tolist()]
