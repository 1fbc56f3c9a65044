"""What stands after, before or beside the trees of an ONNX graph: read exactly, or refused by the operation's name.

The oracle is onnxruntime on the whole file, with the outputs that it declares, on every row of a small schema.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Integer, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel

runtime = pytest.importorskip("onnxruntime")
export = pytest.importorskip("skl2onnx")
SCHEMA = Schema([Integer("a", 0, 4), Integer("b", -2, 2), Integer("c", 0, 3)])
ROWS = np.array(list(itertools.product(range(5), range(-2, 3), range(4))), dtype=np.float64)
LABELS = (ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2] > 2).astype(int)
FLOAT, INT, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
ML = "ai.onnx.ml"
node = helper.make_node


def exported(model: Any, **options: Any) -> Any:
    from skl2onnx.common.data_types import FloatTensorType

    given = {"options": options} if hasattr(model, "predict_proba") else {}
    return export.convert_sklearn(model, initial_types=[("X", FloatTensorType([None, 3]))], **given)


def tree(classes: int = 2) -> Any:
    labels = LABELS if classes == 2 else LABELS + (ROWS[:, 2] > 2)
    return exported(DecisionTreeClassifier(max_depth=4, random_state=0).fit(ROWS, labels), zipmap=False)


def info(name: str, kind: int) -> Any:
    return helper.make_tensor_value_info(name, kind, [None, None] if kind == FLOAT else [None])


def extended(proto: Any, nodes: list[Any], outputs: dict[str, int], **stored: Any) -> Any:
    """The model with these operations after it, and these outputs."""
    longer = onnx.ModelProto()
    longer.CopyFrom(proto)
    for opset in longer.opset_import:
        opset.version = 3 if opset.domain == ML else opset.version
    longer.graph.node.extend(nodes)
    longer.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items())
    del longer.graph.output[:]
    longer.graph.output.extend(info(name, kind) for name, kind in outputs.items())
    return longer


def run(proto: Any) -> dict[str, Any]:
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": ROWS.astype(np.float32)}), strict=True))


def follows(proto: Any, label: str, **more: Any) -> Any:
    """The imported model, which decides as the label of the file does on every row."""
    model = import_model(proto, SCHEMA, **more)
    given = np.ravel(run(proto)[label]).tolist()
    for scores in (model.scores(ROWS), model.exact_scores(ROWS)):
        assert [model.classes[k] for k in model.decide(scores)] == given
    return model


@pytest.mark.parametrize("zipmap", [False, True])
def test_a_linear_model_over_the_trees_is_refused(zipmap: bool) -> None:
    """The tree of a StackingClassifier is not its decision."""
    stacking = StackingClassifier([("tree", DecisionTreeClassifier(max_depth=2))], LogisticRegression(C=0.01))
    with pytest.raises(UnsupportedModel, match=r"ArrayFeatureExtractor \('.*'\) .* follows its trees and changes"):
        import_model(exported(stacking.fit(ROWS, LABELS), zipmap=zipmap), SCHEMA)


P, L = {"probabilities": FLOAT}, {"label": INT, "p": FLOAT}
REFUSED: dict[str, tuple[list[Any], dict[str, int], dict[str, Any], str]] = {
    "negated": ([node("Neg", ["probabilities"], ["p"])], L, {}, r"Neg \('p'\).* follows its trees and changes"),
    "one minus": ([node("Sub", ["one", "probabilities"], ["p"])], L, {"one": np.float32(1)}, r"Sub \('p'\)"),
    "scaled": ([node("Mul", ["probabilities", "w"], ["p"])], L, {"w": np.float32([1, 3])}, r"Mul \('p'\)"),
    "columns": ([node("Gather", ["probabilities", "w"], ["p"], axis=1)], L, {"w": np.int64([1, 0])}, r"Gather \('p'\)"),
    "softmax": ([node("Softmax", ["probabilities"], ["p"])], L, {}, r"Softmax \('p'\)"),
    "rounded": ([node("Round", ["probabilities"], ["p"])], L, {}, "Round .* is not supported"),
    "beside": ([node("Concat", ["probabilities", "X"], ["p"], axis=1)], L, {}, "Concat .* reads 'X'"),
    "added": (
        [node("ReduceSum", ["X", "w"], ["s"], keepdims=1), node("Add", ["probabilities", "s"], ["p"])], L,
        {"w": np.int64([1])}, "ReduceSum .* reads 'X'",
    ),
    "label as a number": (
        [node("Cast", ["label"], ["f"], to=FLOAT), node("LinearRegressor", ["f"], ["p"], domain=ML, coefficients=[1.0])],
        {"p": FLOAT}, {}, "'p' of the ONNX model is a label",
    ),
    "another label": (
        [node("Sub", ["w", "label"], ["other"])], {"other": INT, **P}, {"w": np.int64(1)}, "'other' .* the operation Sub",
    ),
    "the least": (
        [node("Neg", ["probabilities"], ["n"]), node("ArgMax", ["n"], ["k"], axis=1, keepdims=0)], {"k": INT, **P}, {},
        r"Neg \('n'\).* follows its trees",
    ),
    "over rows": ([node("ArgMax", ["probabilities"], ["k"], axis=0, keepdims=0)], {"k": INT, **P}, {}, "an ArgMax over rows"),
    "two names": (
        [node("LabelEncoder", ["label"], ["k"], domain=ML, keys_int64s=[0, 1], values_strings=["no", "no"])],
        {"k": TEXT, **P}, {}, "a LabelEncoder that does not name every class otherwise",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_not_understood_is_refused_by_name(name: str) -> None:
    nodes, outputs, stored, message = REFUSED[name]
    with pytest.raises(ModelError, match=message):
        import_model(extended(tree(), nodes, outputs, **stored), SCHEMA)


def test_probabilities_by_other_names_than_the_labels_are_refused() -> None:
    zipped = exported(DecisionTreeClassifier(max_depth=4, random_state=0).fit(ROWS, LABELS), zipmap=True)
    attribute = next(one for one in zipped.graph.node if one.op_type == "ZipMap").attribute[0]
    attribute.ints[:] = [1, 0]
    with pytest.raises(ModelError, match=r"calls its classes \[1, 0\] in the output .*, but \[0, 1\] in the labels"):
        import_model(zipped, SCHEMA)


def test_two_ensembles_are_refused() -> None:
    proto = tree()
    again = onnx.NodeProto()
    again.CopyFrom(proto.graph.node[0])
    again.name, again.output[:] = "again", ["label2", "p2"]
    longer = extended(proto, [again, node("Add", ["probabilities", "p2"], ["sum"])], {"sum": FLOAT})
    with pytest.raises(UnsupportedModel, match="has 2 tree ensembles"):
        import_model(longer, SCHEMA)


def test_what_converters_write_is_read() -> None:
    plain = follows(tree(), "label")
    assert plain.scores_are == "probabilities"
    nodes = [node("Identity", ["label"], ["l"]), node("Cast", ["l"], ["decided"], to=INT),
             node("Identity", ["probabilities"], ["q"]), node("Mul", ["q", "one"], ["p"])]  # fmt: skip
    follows(extended(tree(), nodes, {"decided": INT, "p": FLOAT}, one=np.float32([1])), "decided")
    zipped = exported(DecisionTreeClassifier(max_depth=4, random_state=0).fit(ROWS, LABELS), zipmap=True)
    assert np.array_equal(follows(zipped, "output_label").scores(ROWS), plain.scores(ROWS))
    names = [node("LabelEncoder", ["label"], ["k"], domain=ML, keys_int64s=[0, 1], values_strings=["no", "yes"])]
    assert follows(extended(tree(), names, {"k": TEXT, **P}), "k").classes == ("no", "yes")
    largest = [node("ArgMax", ["probabilities"], ["m"], axis=1, keepdims=0), node("Gather", ["names", "m"], ["k"])]
    assert follows(extended(tree(3), largest, {"k": INT, **P}, names=np.int64([5, 7, 9])), "k").classes == (5, 7, 9)


def test_a_sigmoid_after_a_regressor() -> None:
    fitted = DecisionTreeRegressor(max_depth=4, random_state=0).fit(ROWS, 4.0 * LABELS - 2.0 + 0.1 * ROWS[:, 1])
    nodes = [node("Sigmoid", ["variable"], ["p"]), node("Sub", ["one", "p"], ["q"]),
             node("Concat", ["q", "p"], ["both"], axis=1), node("ArgMax", ["both"], ["k"], axis=1, keepdims=0)]  # fmt: skip
    model = follows(extended(exported(fitted), nodes, {"k": INT, "both": FLOAT}, one=np.float32([1])), "k")
    assert model.outputs == 1 and model.probabilities is not None and model.classes == (0, 1)
    assert np.allclose(model.probabilities(ROWS)[:, 1], 1 / (1 + np.exp(-fitted.predict(ROWS))), atol=1e-6)
    assert import_model(exported(fitted), SCHEMA).classes == ()
    with pytest.raises(UnsupportedModel, match="Sigmoid is not piecewise linear, so its output cannot be a prediction"):
        import_model(extended(exported(fitted), nodes[:1], {"p": FLOAT}), SCHEMA, regression=True)


@pytest.mark.parametrize("zipmap", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_exports_of_skl2onnx(classes: int, zipmap: bool) -> None:
    labels = np.array(["no", "yes", "maybe"])[LABELS if classes == 2 else LABELS + (ROWS[:, 2] > 2)]
    for model in (
        RandomForestClassifier(7, max_depth=4, random_state=0),
        GradientBoostingClassifier(n_estimators=7, random_state=0),
    ):
        proto = exported(model.fit(ROWS, labels), zipmap=zipmap)
        follows(proto, "output_label" if zipmap else "label")


def test_an_export_that_onnxruntime_refuses(without_onnxruntime: Callable[[], None]) -> None:
    """Boosting of three classes without a start: skl2onnx writes one base value, which onnxruntime does not load."""
    boosting = GradientBoostingClassifier(n_estimators=3, init="zero").fit(ROWS, LABELS + (ROWS[:, 2] > 2))
    with pytest.raises(ModelError, match="onnxruntime, which would run the ONNX model, refuses it"):
        import_model(exported(boosting, zipmap=False), SCHEMA)


def test_four_columns_are_no_probabilities_of_two_classes() -> None:
    """1 - p, beside p, where p has the columns of both classes already."""
    given = {"coefficients": [-1.0, 0.5, 0.0, 1.0, -0.5, 0.0], "intercepts": [0.5, -0.5], "classlabels_ints": [0, 1]}
    nodes = [node("LinearClassifier", ["X"], ["label", "p"], domain=ML, post_transform="LOGISTIC", **given),
             node("Sub", ["one", "p"], ["q"]), node("Concat", ["q", "p"], ["four"], axis=1)]  # fmt: skip
    table = helper.make_tensor_value_info("X", FLOAT, [None, 3])
    outputs = [info("four", FLOAT)]
    graph = helper.make_graph(nodes, "g", [table], outputs, [numpy_helper.from_array(np.float32([1]), "one")])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid(ML, 3)]
    with pytest.raises(UnsupportedModel, match=r"Sub .* follows a sigmoid or softmax, which may only come last"):
        import_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), SCHEMA)
