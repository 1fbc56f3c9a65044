"""The labels of ONNX tree ensembles: what onnxruntime decides for is what is imported, or the file is refused.

The oracle is onnxruntime itself, on the file as it is, on every row of a small schema.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from ifonly import Explainer, Integer, NoneExists, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel

runtime = pytest.importorskip("onnxruntime")
SCHEMA = Schema([Integer("a", 0, 3), Integer("b", 0, 2)])
ROWS = np.array(list(itertools.product(range(4), range(3))), dtype=np.float64)
Stump = tuple[int, float, list[dict[int, float]]]
"""A column, a threshold, and the weights of the classes at the left and at the right leaf."""
KEYS = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")


def ensemble(stumps: list[Stump], names: list[Any], post: str = "NONE", base: list[float] | None = None) -> Any:
    given: dict[str, list[Any]] = {f"nodes_{key}": [] for key in KEYS}
    weights: dict[str, list[Any]] = {f"class_{key}": [] for key in ("treeids", "nodeids", "ids", "weights")}
    for t, (column, threshold, leaves) in enumerate(stumps):
        nodes = [
            (t, 0, column, threshold, "BRANCH_LEQ", 1, 2),
            (t, 1, 0, 0.0, "LEAF", 0, 0),
            (t, 2, 0, 0.0, "LEAF", 0, 0),
        ]
        for node in nodes:
            for key, value in zip(given, node, strict=True):
                given[key].append(value)
        for side, leaf in enumerate(leaves):
            for k, weight in leaf.items():
                for key, value in zip(weights, (t, 1 + side, k, weight), strict=True):
                    weights[key].append(value)
    texts = isinstance(names[0], str)
    more = {"classlabels_strings" if texts else "classlabels_int64s": names, "post_transform": post}
    more |= {} if base is None else {"base_values": base}
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **given, **weights, **more
    )
    kind = TensorProto.STRING if texts else TensorProto.INT64
    outputs = [
        helper.make_tensor_value_info("label", kind, [None]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, len(names)]),
    ]
    table = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [table], outputs), opset_imports=opsets, ir_version=8)


def labels_of(proto: Any) -> list[Any]:
    """What the file says of every row."""
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(["label"], {"x": ROWS.astype(np.float32)})[0].tolist())


def random_stumps(rng: np.random.Generator, classes: list[int]) -> list[Stump]:
    positive, present = rng.random() < 0.3, rng.choice([0.4, 0.8, 1.0])

    def leaf() -> dict[int, float]:
        found = {k: float(np.round(rng.normal() * 0.7, 1)) for k in classes if rng.random() < present}
        return {k: abs(w) if positive else w for k, w in found.items()}

    count = int(rng.integers(1, 5))
    stumps = [(int(rng.integers(2)), float(rng.integers(3)), [leaf(), leaf()]) for _ in range(count)]
    return [*stumps, (0, 1.0, [{classes[-1]: 0.5}, {}])]  # a file has at least one weight


def random_file(rng: np.random.Generator) -> tuple[Any, list[Any]]:
    count = int(rng.integers(2, 5))
    weighed = [list(range(count)), [0], [1]][int(rng.integers(3 if count == 2 else 1))]
    stumps = random_stumps(rng, weighed)
    if count == 2 and weighed == [0, 1] and rng.random() < 0.5:
        stumps = [(c, t, [{0: -leaf[1], 1: leaf[1]} if 1 in leaf else {} for leaf in sides]) for c, t, sides in stumps]
    names = [["n", "y", "z", "w"], [0, 1, 2, 3], [5, 3, 9, 1]][int(rng.integers(3))][:count]
    size = [0, 0, 1, count][int(rng.integers(4))]
    base = [float(value) for value in np.round(rng.normal(size=size) * 0.5, 1)] if size else None
    return ensemble(stumps, names, ["NONE", "LOGISTIC", "SOFTMAX"][int(rng.integers(3))], base), names


@pytest.mark.long
def test_labels_are_those_of_the_runtime_or_the_file_is_refused() -> None:
    """Of 600 random files at least 150 are imported; each decides as its labels do, on every row."""
    imported = 0
    for seed in range(600):
        proto, names = random_file(np.random.default_rng(seed))
        try:
            model = import_model(proto, SCHEMA)
        except ModelError:
            continue
        imported += 1
        labels, ours = labels_of(proto), model.exact_scores(ROWS)
        best = np.sort(np.column_stack([ours, np.zeros(len(ours))]) if model.outputs == 1 else ours, axis=1)
        sure = best[:, -1] - best[:, -2] > 1e-5
        assert [names[k] for k in model.decide(model.scores(ROWS))] == labels, seed
        decided = [names[k] for k in model.decide(ours)]
        assert [d for d, s in zip(decided, sure, strict=True) if s] == [
            x for x, s in zip(labels, sure, strict=True) if s
        ]
    assert imported >= 150


def test_a_leaf_without_a_weight_for_a_class() -> None:
    """The scores say class 'c' (0 is the largest), the label is 'a': onnxruntime passes by a class without a weight."""
    stumps: list[Stump] = [(0, 1.0, [{0: -1.0, 1: -2.0}, {0: -3.0, 1: -2.0, 2: 1.0}])]
    proto = ensemble(stumps, ["a", "b", "c"])
    assert labels_of(proto)[0] == "a"
    with pytest.raises(UnsupportedModel, match="leaves without a weight for the class 'c', which onnxruntime"):
        import_model(proto, SCHEMA)
    written = [(0, 1.0, [{0: -1.0, 1: -2.0, 2: 0.0}, stumps[0][2][1]])]
    based = ensemble(stumps, ["a", "b", "c"], base=[0.0, 0.0, 0.0])
    for same in (ensemble(written, ["a", "b", "c"]), based):
        model = import_model(same, SCHEMA)
        assert [model.classes[k] for k in model.decide(model.scores(ROWS))] == labels_of(same)
        assert not isinstance(Explainer(model).explain({"a": 3, "b": 0}, target="c"), NoneExists)


def test_positive_weights_and_a_sigmoid_decide_at_one_half_of_the_sum() -> None:
    """The probability of the second class is 0.57 on all rows, and the label is the first."""
    proto = ensemble([(0, 1.0, [{0: 0.3}, {0: 0.3}])], [0, 1], "LOGISTIC")
    assert set(labels_of(proto)) == {0}
    with pytest.raises(UnsupportedModel, match="label does not follow from its scores"):
        import_model(proto, SCHEMA)


def test_weights_of_both_classes_make_the_labels_0_and_1() -> None:
    stumps: list[Stump] = [(0, 1.0, [{0: -1.0, 1: 1.0}, {0: 2.0, 1: -2.0}])]
    assert set(labels_of(ensemble(stumps, [7, 8], "LOGISTIC"))) == {0, 1}
    with pytest.raises(UnsupportedModel, match="label does not follow from its scores"):
        import_model(ensemble(stumps, [7, 8], "LOGISTIC"), SCHEMA)
    model = import_model(ensemble(stumps, ["no", "yes"], "LOGISTIC"), SCHEMA)  # as CatBoost writes two classes
    assert model.outputs == 1 and model.probabilities is not None
    assert [model.classes[k] for k in model.decide(model.scores(ROWS))] == labels_of(ensemble(stumps, ["no", "yes"]))


def test_what_onnxruntime_refuses_is_refused_with_its_reason(without_onnxruntime: Callable[[], None]) -> None:
    """One base value for three classes: onnxruntime does not load it, the reference evaluator has an answer."""
    stumps: list[Stump] = [(0, 1.0, [{0: 0.5, 1: 0.2, 2: 0.3}, {0: 0.1, 1: 0.2, 2: 0.7}])]
    proto = ensemble(stumps, [0, 1, 2], base=[0.25])
    with pytest.raises(Exception, match="base_values"):
        labels_of(proto)
    with pytest.raises(ModelError, match="onnxruntime, which would run the ONNX model, refuses it: .*base_values"):
        import_model(proto, SCHEMA)
    without_onnxruntime()
    with pytest.raises(ModelError):
        import_model(proto, SCHEMA)
    assert import_model(ensemble(stumps, [0, 1, 2]), SCHEMA).classes == (0, 1, 2)
