"""ONNX-ML tree ensembles: the imported function is what onnxruntime computes, also at every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

from ifonly import ProbabilityTarget, import_model
from ifonly.errors import IfonlyError, ModelError, UnsupportedModel
from model.forests import SCHEMA, everywhere, points_and_labels


def nodes_of(trees: list[Any], mode: str = "BRANCH_LEQ") -> dict[str, list[Any]]:
    """The splits of scikit-learn's trees as a converter writes them."""
    rows: dict[str, list[Any]] = {
        key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    for t, tree in enumerate(trees):
        for n in range(tree.node_count):
            leaf = tree.children_left[n] < 0
            sides = (0, 0) if leaf else (int(tree.children_left[n]), int(tree.children_right[n]))
            true, false = sides if mode in ("BRANCH_LEQ", "BRANCH_LT") else sides[::-1]
            split = (0, 0.0) if leaf else (int(tree.feature[n]), float(tree.threshold[n]))
            for key, value in zip(rows, (t, n, *split, "LEAF" if leaf else mode, true, false), strict=True):
                rows[key].append(value)
    return {f"nodes_{key}": values for key, values in rows.items()}


def weights_of(trees: list[Any], value_of: Any, outputs: list[int], kind: str) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for t, tree in enumerate(trees):
        for n in np.flatnonzero(tree.children_left < 0).tolist():
            for k in outputs:
                for key, value in zip(rows, (t, n, k, float(value_of(t, tree, n, k))), strict=True):
                    rows[key].append(value)
    return {f"{kind}_{key}": values for key, values in rows.items()}


def model_of(operation: str, attributes: dict[str, Any]) -> Any:
    outputs = ["label", "scores"] if operation == "TreeEnsembleClassifier" else ["scores"]
    node = helper.make_node(operation, ["x"], outputs, domain="ai.onnx.ml", **attributes)
    infos = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", "k"])]
    if len(outputs) == 2:
        infos.insert(0, helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, len(SCHEMA.columns)])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "trees", [given], infos), opset_imports=opsets, ir_version=8)


def forest(classes: int, *, both: bool = False, mode: str = "BRANCH_LEQ") -> tuple[Any, Any]:
    points, labels = points_and_labels(classes=classes)
    fitted = RandomForestClassifier(12, max_depth=5, random_state=0).fit(SCHEMA.encode(points), labels)
    trees = [tree.tree_ for tree in fitted.estimators_]
    second = classes == 2 and not both  # then weights of the first mean the second
    given = [0] if second else list(range(classes))
    weights = weights_of(trees, lambda t, tree, n, k: tree.value[n, 0, 1 if second else k] / 12, given, "class")
    more = {"classlabels_int64s": list(range(classes)), "post_transform": "NONE"}
    return model_of("TreeEnsembleClassifier", {**nodes_of(trees, mode), **weights, **more}), fitted


def boosted(classes: int) -> Any:
    points, labels = points_and_labels(classes=classes)
    fitted = GradientBoostingClassifier(n_estimators=12, random_state=0).fit(SCHEMA.encode(points), labels)
    trees = [tree.tree_ for stage in fitted.estimators_ for tree in stage]
    width = fitted.estimators_.shape[1]
    parts = [
        weights_of(
            trees,
            lambda t, tree, n, k: 0.1 * tree.value[n, 0, 0] if width == 1 or t % width == k else 0.0,
            [0] if width == 1 else list(range(classes)),
            "class",
        )
    ]
    base = fitted._raw_predict_init(np.zeros((1, len(SCHEMA.columns))))[0].tolist()
    more = {
        "classlabels_int64s": list(range(classes)),
        "base_values": base,
        "post_transform": "LOGISTIC" if width == 1 else "SOFTMAX",
    }
    return model_of("TreeEnsembleClassifier", {**nodes_of(trees), **parts[0], **more})


def run(proto: Any, rows: Any) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": SCHEMA.encode(rows).astype(np.float32)})


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"])
@pytest.mark.parametrize("classes", [2, 3])
def test_forests(classes: int, mode: str) -> None:
    proto, _ = forest(classes, mode=mode)
    model = import_model(proto, SCHEMA)
    rows = everywhere(model)
    labels, scores = run(proto, rows)
    assert np.abs(model.exact_scores(rows) - scores).max() <= model.error.max() < 1e-4
    assert np.array_equal(model.decide(model.scores(rows)), labels)
    assert model.scores_are == "probabilities"
    ProbabilityTarget(1, at_least=0.7).check(model)


@pytest.mark.parametrize("classes", [2, 3])
def test_boosting(classes: int) -> None:
    proto = boosted(classes)
    model = import_model(proto, SCHEMA)
    rows = everywhere(model)
    labels, probabilities = run(proto, rows)
    assert np.array_equal(model.decide(model.scores(rows)), labels)
    if classes == 2:
        assert np.abs(1 / (1 + np.exp(-model.exact_scores(rows)[:, 0])) - probabilities[:, 1]).max() < 1e-6
        assert model.probabilities is not None
    else:
        raised = np.exp(model.exact_scores(rows))
        assert np.abs(raised / raised.sum(axis=1, keepdims=True) - probabilities).max() < 1e-6


def test_regression_by_average() -> None:
    points, _ = points_and_labels()
    fitted = RandomForestRegressor(12, max_depth=5, random_state=0).fit(SCHEMA.encode(points), points[:, 0])
    trees = [tree.tree_ for tree in fitted.estimators_]
    weights = weights_of(trees, lambda t, tree, n, k: tree.value[n, 0, 0], [0], "target")
    more = {"n_targets": 1, "aggregate_function": "AVERAGE", "post_transform": "NONE"}
    proto = model_of("TreeEnsembleRegressor", {**nodes_of(trees), **weights, **more})
    model = import_model(proto, SCHEMA)
    rows = everywhere(model)
    assert np.abs(model.exact_scores(rows) - run(proto, rows)[0]).max() <= model.error.max() < 1e-4
    assert not model.is_classifier


def test_what_a_converter_rounds_is_read_as_the_file_says() -> None:
    """The thresholds of the forest are float64, those of the file float32: they part some rows otherwise."""
    proto, fitted = forest(2)
    stored = {a.name: helper.get_attribute_value(a) for a in proto.graph.node[0].attribute}["nodes_values"]
    own = np.concatenate([tree.tree_.threshold[tree.tree_.children_left >= 0] for tree in fitted.estimators_])
    kept = np.array([value for value in stored if value != 0.0])
    assert (kept != own[own != 0.0]).any() and import_model(proto, SCHEMA).deviation < 1e-5


def changed(proto: Any, name: str, value: Any) -> Any:
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    node = copy.graph.node[0]
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])
    return copy


def test_refusals_and_damage() -> None:
    proto, _ = forest(2)
    given = {a.name: helper.get_attribute_value(a) for a in proto.graph.node[0].attribute}
    modes = [b"BRANCH_EQ" if mode != b"LEAF" else mode for mode in given["nodes_modes"]]
    with pytest.raises(UnsupportedModel, match="splits by BRANCH_EQ"):
        import_model(changed(proto, "nodes_modes", modes), SCHEMA)
    with pytest.raises(ModelError, match="give weights to one of them only"):
        import_model(forest(2, both=True)[0], SCHEMA)
    with pytest.raises(UnsupportedModel, match="ends with PROBIT"):
        import_model(changed(proto, "post_transform", "PROBIT"), SCHEMA)
    for name in ("nodes_truenodeids", "nodes_falsenodeids", "nodes_nodeids", "nodes_featureids", "class_nodeids"):
        with pytest.raises(IfonlyError):
            import_model(changed(proto, name, [9999] * len(given[name])), SCHEMA)
        with pytest.raises(IfonlyError):
            import_model(changed(proto, name, list(given[name])[:-1]), SCHEMA)
