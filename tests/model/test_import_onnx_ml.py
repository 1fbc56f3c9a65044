"""ONNX as converters write it: inputs by name and by type, endings with labels, and every refusal in its words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ifonly import Categorical, Explainer, Integer, ProbabilityTarget, Real, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel

ML = "ai.onnx.ml"
NUMBERS = Schema([Real("x", -1.0, 2.0), Real("y", 0.0, 1.0)])
WHOLE = Schema([Integer("x", -1, 2), Integer("y", 0, 1)])
PEOPLE = Schema([Real("pay", 0.0, 9.0), Categorical("job", ["cook", "pilot"]), Categorical("zone", [1, 2, 5])])
FLOAT, INT, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def model(
    nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, int], stored: dict[str, Any] | None = None
) -> Any:
    """A graph; an input is its type, or its type and its shape."""
    given = [(n, *(i if isinstance(i, tuple) else (i, [None, 1]))) for n, i in inputs.items()]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*one) for one in given],
        [helper.make_tensor_value_info(name, kind, [None, None]) for name, kind in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (stored or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def linear(x: str = "x", y: str = "y", **more: Any) -> Any:
    return helper.make_node("LinearRegressor", [x], [y], domain=ML, coefficients=[1.0, -2.0], intercepts=[0.5], **more)


def classifier(rows: int = 2, names: tuple[str, ...] = ("no", "yes"), **more: Any) -> Any:
    coefficients = np.array([[-1.0, 2.0], [1.0, -2.0], [0.5, 0.5]])[:rows].ravel().tolist()
    more = {"intercepts": [-0.5, 0.5, 0.0][:rows], "classlabels_strings": list(names), **more}
    return helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain=ML, coefficients=coefficients, **more)


TABLE = {"x": (FLOAT, [None, 2])}
BOTH = {"label": TEXT, "p": FLOAT}


def test_a_classifier_with_its_labels_and_probabilities() -> None:
    proto = model([classifier(post_transform="LOGISTIC")], TABLE, BOTH)
    imported = import_model(proto, NUMBERS)
    assert imported.classes == ("no", "yes") and imported.outputs == 1 and imported.probabilities is not None
    assert import_model(proto, NUMBERS, classes=("deny", "grant")).classes == ("deny", "grant")
    answer = Explainer(imported).explain({"x": 0.0, "y": 1.0}, target=ProbabilityTarget("yes", at_least=0.7))
    assert answer.counterfactual is not None
    copied = pickle.loads(pickle.dumps(imported))
    assert np.array_equal(copied.scores(np.zeros((1, 2))), imported.scores(np.zeros((1, 2))))


def test_three_classes_by_softmax_and_each_against_the_rest() -> None:
    names = ("a", "b", "c")
    by_softmax = import_model(model([classifier(3, names, post_transform="SOFTMAX")], TABLE, BOTH), NUMBERS)
    assert by_softmax.probabilities is not None and by_softmax.classes == names
    nodes = [
        classifier(3, names, post_transform="LOGISTIC"),
        helper.make_node("Normalizer", ["p"], ["q"], domain=ML, norm="L1"),
    ]
    alone = import_model(model(nodes, TABLE, {"label": TEXT, "q": FLOAT}), NUMBERS)
    assert alone.probabilities is None and alone.classes == names
    bare = import_model(model([classifier(3, names)], TABLE, BOTH), NUMBERS)
    points = NUMBERS.sample(50, np.random.default_rng(0))
    decided = [one.decide(one.scores(points)).tolist() for one in (by_softmax, alone, bare)]
    assert decided[0] == decided[1] == decided[2]


def test_sigmoids_that_are_divided_by_their_sum() -> None:
    """As skl2onnx writes a logistic regression in double."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Sigmoid", ["s"], ["g"]),
        helper.make_node("Abs", ["g"], ["a"]), helper.make_node("ReduceSum", ["a", "axis"], ["t"], keepdims=1),
        helper.make_node("Div", ["g", "t"], ["p"]),
    ]  # fmt: skip
    axis, opposite = np.array([1]), np.array([[-1.0, 1.0], [2.0, -2.0]], dtype=np.float32)
    two = import_model(model(nodes, TABLE, {"p": FLOAT}, {"w": opposite, "axis": axis}), NUMBERS)
    assert two.outputs == 1 and two.probabilities is not None
    three = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]], dtype=np.float32)
    alone = import_model(model(nodes, TABLE, {"p": FLOAT}, {"w": three, "axis": axis}), NUMBERS)
    assert alone.outputs == 3 and alone.probabilities is None
    nodes[-1] = helper.make_node("Div", ["s", "t"], ["p"])
    with pytest.raises(UnsupportedModel, match="follows a sigmoid or softmax, which may only come last"):
        import_model(model(nodes, TABLE, {"p": FLOAT}, {"w": opposite, "axis": axis}), NUMBERS)


def test_an_output_by_name() -> None:
    nodes = [linear(), helper.make_node("Neg", ["y"], ["z"])]
    proto = model(nodes, TABLE, {"y": FLOAT, "z": FLOAT})
    one, other = (import_model(proto, NUMBERS, output=name) for name in "yz")
    at = np.array([[1.0, 0.25]])
    assert one.scores(at)[0, 0] == 1.0 and other.scores(at)[0, 0] == -1.0 and not one.classes
    for name, message in {
        None: r"has 2 outputs that may be scores \(y, z\); say which with output=",
        "w": "has no output 'w'; its outputs are y, z",
    }.items():
        with pytest.raises(ModelError, match=message):
            import_model(proto, NUMBERS, output=name)
    with pytest.raises(UnsupportedModel, match="'label' of the ONNX model is a label.*choose p"):
        import_model(model([classifier()], TABLE, BOTH), NUMBERS, output="label")
    with pytest.raises(UnsupportedModel, match="is a label.*export the model with its scores"):
        import_model(model([classifier()], TABLE, {"label": TEXT}), NUMBERS)
    with pytest.raises(ModelError, match="'output' is the name of an output of an ONNX model; got 3"):
        import_model(proto, NUMBERS, output=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [INT, TensorProto.INT32, TensorProto.INT8, TensorProto.BOOL])
def test_whole_numbers_and_booleans(kind: int) -> None:
    schema = Schema([Integer("x", 0, 1), Integer("y", 0, 1)]) if kind == TensorProto.BOOL else WHOLE
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=FLOAT), linear("f")]
    if kind not in (INT, TensorProto.INT32):
        nodes[1] = helper.make_node("MatMul", ["f", "w"], ["y"])
    proto = model(nodes, {"x": (kind, [None, 2])}, {"y": FLOAT}, {"w": np.array([[1.0], [-2.0]], dtype=np.float32)})
    imported = import_model(proto, schema)
    points = schema.sample(20, np.random.default_rng(0))
    assert np.allclose(imported.scores(points), imported.exact_scores(points), atol=1e-5)


@pytest.mark.parametrize("batch", [1, 3, 1000, 4096])
def test_a_fixed_number_of_rows(batch: int) -> None:
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), linear("r")]
    proto = model(nodes, {"x": (FLOAT, [batch, 2])}, {"y": FLOAT}, {"s": np.array([batch, 2])})
    free = import_model(model([linear()], TABLE, {"y": FLOAT}), NUMBERS)
    points = NUMBERS.sample(7, np.random.default_rng(0))
    assert np.array_equal(import_model(proto, NUMBERS).scores(points), free.scores(points))


def test_one_input_per_column() -> None:
    nodes = [
        helper.make_node("OneHotEncoder", ["job"], ["j3"], domain=ML, cats_strings=["cook", "pilot"], zeros=1),
        helper.make_node("Reshape", ["j3", "s"], ["j"]),
        helper.make_node(
            "LabelEncoder", ["zone"], ["z"], domain=ML, keys_int64s=[1, 2, 5], values_floats=[0.5, 0.0, 3.0]
        ),
        helper.make_node("Scaler", ["pay"], ["p"], domain=ML, offset=[4.0], scale=[0.5]),
        helper.make_node("Concat", ["p", "j", "z"], ["all"], axis=1),
        helper.make_node("MatMul", ["all", "w"], ["y"]),
    ]
    weights = {"s": np.array([-1, 2]), "w": np.array([[1.0], [2.0], [-3.0], [1.0]], dtype=np.float32)}
    inputs = {"zone": (INT, [None, 1]), "job": (TEXT, [None, 1]), "pay": (FLOAT, [None, 1])}
    imported = import_model(model(nodes, inputs, {"y": FLOAT}, weights), PEOPLE, regression=True)
    at = np.array([PEOPLE.read({"pay": 6.0, "job": "pilot", "zone": 5})])
    assert imported.scores(at)[0, 0] == imported.exact_scores(at)[0, 0] == 1.0 - 3.0 + 3.0


ENCODED = Schema([Real("pay", 0.0, 9.0), Categorical("job", ["cook", "pilot"])])


def encoder(**given: Any) -> list[Any]:
    return [
        helper.make_node("OneHotEncoder", ["job"], ["j3"], domain=ML, **given),
        helper.make_node("Reshape", ["j3", "s"], ["j"]),
        helper.make_node("Concat", ["pay", "j"], ["all"], axis=1),
        helper.make_node("MatMul", ["all", "w"], ["y"]),
    ]


def by_name(nodes: list[Any], job: int = TEXT, pay: int = FLOAT, **stored: Any) -> Any:
    weights = {"s": np.array([-1, 2]), "w": np.ones((3, 1), dtype=np.float32), **stored}
    used = {name for node in nodes for name in node.input}
    return model(
        nodes, {"pay": pay, "job": job}, {"y": FLOAT}, {name: array for name, array in weights.items() if name in used}
    )


REFUSALS: dict[str, tuple[Any, Schema, str]] = {
    "normalizer": (
        model([helper.make_node("Normalizer", ["x"], ["n"], domain=ML, norm="L2"), linear("n")], TABLE, {"y": FLOAT}),
        NUMBERS, "Normalizer.*divides a row by its own length, which is not piecewise linear",
    ),
    "one score": (
        model([classifier(1, post_transform="LOGISTIC")], TABLE, BOTH), NUMBERS,
        "has 1 score for 2 classes; give each class its coefficients",
    ),
    "not opposite": (
        model([classifier(post_transform="LOGISTIC", intercepts=[1.0, 1.0])], TABLE, BOTH), NUMBERS,
        "two scores that are not opposite",
    ),
    "probit": (model([classifier(post_transform="PROBIT")], TABLE, BOTH), NUMBERS, "ends with PROBIT"),
    "regressor": (model([linear(post_transform="LOGISTIC")], TABLE, {"y": FLOAT}), NUMBERS, "ends with LOGISTIC"),
    "after the softmax": (
        model([helper.make_node("Softmax", ["x"], ["p"]), helper.make_node("Sub", ["p", "x"], ["y"])], TABLE, {"y": FLOAT}),
        NUMBERS, "follows a sigmoid or softmax, which may only come last",
    ),
    "real numbers as whole ones": (
        model([linear()], {"x": (INT, [None, 2])}, {"y": FLOAT}), NUMBERS,
        "input 'x' of the ONNX model holds int64, but the feature 'x' is a real number; declare the feature",
    ),
    "too large": (
        model([helper.make_node("Cast", ["x"], ["f"], to=FLOAT), linear("f")],
              {"x": (TensorProto.BOOL, [None, 2])}, {"y": FLOAT}),
        WHOLE, "holds bool, but the feature 'x' reaches from -1.0 to 2.0",
    ),
    "whole arithmetic": (
        model([helper.make_node("Add", ["x", "x"], ["d"]), linear("d")], {"x": (INT, [None, 2])}, {"y": FLOAT}), WHOLE,
        r"Add \('.*'\) of the ONNX model computes with whole numbers or texts; a Cast",
    ),
    "numbers as texts": (by_name(encoder(cats_strings=["1"]), pay=TEXT), ENCODED, "holds texts, but the feature 'pay' is a number"),
    "texts as numbers": (by_name(encoder(cats_int64s=[1, 2]), job=INT), ENCODED, "holds int64, but the feature 'job' has the option 'cook'"),
    "unknown input": (
        model([helper.make_node("Add", ["pay", "age"], ["y"])], {"pay": FLOAT, "age": FLOAT}, {"y": FLOAT}), ENCODED,
        "input 'age' of the ONNX model is neither a feature nor a column of the schema; the features are pay, job",
    ),
    "several columns": (
        model([helper.make_node("Concat", ["pay", "rest"], ["y"], axis=1)],
              {"pay": FLOAT, "rest": (FLOAT, [None, 2])}, {"y": FLOAT}),
        ENCODED, "input 'rest' of the ONNX model is one of several and holds 2 columns, whose names are nowhere said",
    ),
    "many rows": (
        model([linear()], {"x": (FLOAT, [2**20, 2])}, {"y": FLOAT}), NUMBERS, "takes 1048576 rows at a time; at most 65,536",
    ),
    "dimensions": (model([linear()], {"x": (FLOAT, [None, 1, 2])}, {"y": FLOAT}), NUMBERS, "has 3 dimensions; a table of columns has two"),
    "an option": (
        by_name(encoder(cats_strings=["cook", "nurse"], zeros=0)), ENCODED, "does not know the option 'pilot' of feature 'job'",
    ),
    "a number as a category": (
        by_name([
            helper.make_node("Cast", ["pay"], ["i"], to=INT), helper.make_node("Identity", ["i"], ["y"]),
        ]), ENCODED, "rounds feature 'pay' to whole numbers",
    ),
    "a category that is a number": (
        model([helper.make_node("OneHotEncoder", ["x"], ["o"], domain=ML, cats_int64s=[0, 1], zeros=1),
               helper.make_node("Flatten", ["o"], ["f"]), helper.make_node("ReduceSum", ["f"], ["y"])],
              {"x": (INT, [None, 2])}, {"y": FLOAT}),
        WHOLE, "takes feature 'x' for a category, but it is a number in the schema; declare it as Categorical",
    ),
    "a label": (
        by_name([
            helper.make_node("LabelEncoder", ["job"], ["c"], domain=ML, keys_strings=["cook"], values_floats=[1.0],
                             default_float=float("nan")),
            helper.make_node("Concat", ["pay", "c"], ["y"], axis=1),
        ]), ENCODED, "feature 'job' reaches 'y' without a value for its option 'pilot'",
    ),
    "imputer": (
        model([helper.make_node("Imputer", ["x"], ["i"], domain=ML, imputed_value_floats=[1.0, 1.0], replaced_value_float=0.5),
               linear("i")], TABLE, {"y": FLOAT}),
        NUMBERS, "takes 0.5, which feature 'x' reaches, for a missing number, which is not linear",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSALS))
def test_refusals(name: str) -> None:
    proto, schema, message = REFUSALS[name]
    with pytest.raises(ModelError, match=message):
        import_model(proto, schema, regression=name not in ("one score", "not opposite", "probit", "after the softmax"))


def test_labels_that_the_scores_do_not_give() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["s"]), helper.make_node("ArgMax", ["s"], ["k"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["c", "k"], ["label"], domain=ML),
    ]  # fmt: skip
    stored = {"w": np.array([[1.0, -1.0], [-2.0, 0.5]], dtype=np.float32), "c": np.array([7, 9])}
    proto = model(nodes, TABLE, {"label": INT, "s": FLOAT}, stored)
    assert import_model(proto, NUMBERS).classes == (7, 9)
    nodes[1] = helper.make_node("ArgMax", ["m"], ["k"], axis=1)
    nodes.insert(1, helper.make_node("Neg", ["s"], ["m"]))
    with pytest.raises(ModelError, match="decides for .* where its own scores"):
        import_model(model(nodes, TABLE, {"label": INT, "s": FLOAT}, stored), NUMBERS)


def test_the_reference_evaluator_takes_them_too(without_onnxruntime: Callable[[], None]) -> None:
    without_onnxruntime()
    imported = import_model(model([classifier(post_transform="LOGISTIC")], TABLE, BOTH), NUMBERS)
    assert imported.classes == ("no", "yes")
    assert onnx.reference is not None
