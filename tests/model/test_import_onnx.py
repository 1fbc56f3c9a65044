"""ONNX models become networks that give the same scores; files are data, and are read as such."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ifonly import Model, Schema, import_model, load_model
from ifonly.errors import FileError, ModelError, UnsupportedModel
from ifonly.model.importers import onnx as importer

Agree = Callable[[Model], None]
COLUMNS = 13


class Graph:
    """A small ONNX model, written node by node; constants are made up where a shape is asked for."""

    def __init__(self, dtype: str = "float32", *, opset: int = 17) -> None:
        self.dtype, self.opset = dtype, opset
        self.rng = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.stored: list[Any] = []
        self.last = "x"

    def constant(self, *shape: int, dtype: str | None = None, value: Any = None) -> str:
        array = self.rng.normal(size=shape) if value is None else np.array(value)
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(array.astype(dtype or self.dtype), name))
        return name

    def then(self, operation: str, *others: str, first: bool = True, **given: Any) -> Graph:
        output = f"t{len(self.nodes)}"
        inputs = [self.last, *others] if first else [*others, self.last]
        again = sum(node.op_type == operation for node in self.nodes)  # onnxruntime wants each name once
        name = f"{operation.lower()}_node{again or ''}"
        self.nodes.append(helper.make_node(operation, inputs, [output], name=name, **given))
        self.last = output
        return self

    def model(self) -> Any:
        kind = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}[self.dtype]
        graph = helper.make_graph(
            self.nodes,
            "test",
            [helper.make_tensor_value_info("x", kind, ["N", COLUMNS])],
            [
                helper.make_tensor_value_info(
                    self.last, kind, ["N"] if self.nodes[-1].op_type == "Squeeze" else ["N", "K"]
                )
            ],
            self.stored,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def gemm(g: Graph, inputs: int, outputs: int) -> Graph:
    return g.then("Gemm", g.constant(inputs, outputs), g.constant(outputs))


def perceptron(g: Graph) -> Graph:
    return gemm(gemm(g, COLUMNS, 6).then("Relu"), 6, 1)


def attributes_of_gemm(g: Graph) -> Graph:
    g.then("Gemm", g.constant(6, COLUMNS), g.constant(1, 6), transB=1, alpha=0.5, beta=2.0).then("Relu")
    return g.then("Gemm", g.constant(3, 6), transB=1)


DIVISORS = {"float32": 3.0, "float64": 4.0}
"""onnxruntime multiplies a product by 1 / 3 in float32, also in a graph of doubles; 1 / 4 is the same in both."""


def arithmetic(g: Graph) -> Graph:
    g.then("Sub", g.constant(COLUMNS)).then("Div", g.constant(value=DIVISORS[g.dtype]))
    g.then("MatMul", g.constant(COLUMNS, 5)).then("Add", g.constant(5), first=False)
    g.then("Relu").then("Mul", g.constant(5), first=False).then("Neg").then("Sub", g.constant(value=1.0), first=False)
    return g.then("MatMul", g.constant(5, 2)).then("Add", g.constant(1, 2))


def shapes(g: Graph) -> Graph:
    g.then("Flatten").then("Reshape", g.constant(value=[0, -1], dtype="int64")).then("Identity")
    gemm(g, COLUMNS, 4).then("Relu").then("Reshape", g.constant(value=[-1, 4], dtype="int64"))
    return gemm(g, 4, 1).then("Squeeze", g.constant(value=[1], dtype="int64"))


def batch_normalization(g: Graph) -> Graph:
    gemm(g, COLUMNS, 5)
    variance = g.constant(value=g.rng.uniform(0.5, 2, 5))
    g.then("BatchNormalization", g.constant(5), g.constant(5), g.constant(5), variance, epsilon=1e-3)
    return gemm(g.then("Relu").then("Dropout"), 5, 1)


def branches(g: Graph) -> Graph:
    gemm(g, COLUMNS, 3)
    left = g.last
    g.last = "x"
    gemm(g, COLUMNS, 3).then("Concat", left, axis=1)
    joined = g.last
    g.last = "x"
    gemm(g, COLUMNS, 6).then("Add", joined)
    return gemm(g.then("Relu"), 6, 2)


def computed_weights(g: Graph) -> Graph:
    weight = g.constant(6, COLUMNS)
    g.nodes.append(helper.make_node("Transpose", [weight], ["turned"], perm=[1, 0]))
    value = numpy_helper.from_array(np.array(2.0, dtype=g.dtype))
    g.nodes.append(helper.make_node("Constant", [], ["two"], value=value))
    return gemm(g.then("MatMul", "turned").then("Mul", "two").then("Relu"), 6, 1)


GRAPHS: dict[str, tuple[Callable[[Graph], Graph], int]] = {
    "perceptron": (perceptron, 1),
    "gemm": (attributes_of_gemm, 3),
    "arithmetic": (arithmetic, 2),
    "shapes": (shapes, 1),
    "batch normalization": (batch_normalization, 1),
    "branches": (branches, 2),
    "computed weights": (computed_weights, 1),
    "sigmoid": (lambda g: perceptron(g).then("Sigmoid"), 1),
    "softmax": (lambda g: gemm(g, COLUMNS, 3).then("Softmax", axis=1).then("Identity"), 3),
    "log softmax": (lambda g: gemm(g, COLUMNS, 3).then("LogSoftmax"), 3),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("make", "outputs"), GRAPHS.values(), ids=GRAPHS)
def test_graphs(make: Any, outputs: int, dtype: str, schema: Schema, agree: Agree, tmp_path: Path) -> None:
    proto = make(Graph(dtype)).model()
    model = import_model(proto, schema)
    agree(model)
    assert model.precision == dtype and model.network.outputs == outputs
    onnx.save(proto, tmp_path / "model.onnx")
    loaded = load_model(tmp_path / "model.onnx", schema)
    assert loaded.network == model.network and loaded.deviation == model.deviation
    points = schema.sample(10, np.random.default_rng(0))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).scores(points), model.scores(points))


def test_a_cast_to_double_and_back(schema: Schema, agree: Agree) -> None:
    g = Graph()
    gemm(g, COLUMNS, 4).then("Cast", to=TensorProto.DOUBLE).then("Relu")
    g.then("MatMul", g.constant(4, 1, dtype="float64")).then("Cast", to=TensorProto.FLOAT)
    model = import_model(g.model(), schema)
    assert model.precision == "float32"
    agree(model)


def test_doubles_that_the_runtime_rounds_to_floats_are_refused(schema: Schema) -> None:
    g = Graph("float64")
    g.then("Div", g.constant(value=3.0)).then("MatMul", g.constant(COLUMNS, 1))
    with pytest.raises(ModelError, match="disagree by"):
        import_model(g.model(), schema)


def test_regression_is_said_not_guessed(schema: Schema) -> None:
    assert import_model(perceptron(Graph()).model(), schema, regression=True).classes == ()


def test_weights_beside_the_model_are_read(schema: Schema, agree: Agree, tmp_path: Path) -> None:
    proto = perceptron(Graph()).model()
    expected = import_model(proto, schema).network
    onnx.save(proto, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").exists()
    model = load_model(tmp_path / "model.onnx", schema)
    agree(model)
    assert model.network == expected


@pytest.mark.parametrize("place", ["../weights.bin", "/etc/hostname", "sub/../../weights.bin"])
def test_weights_elsewhere_are_not(place: str, schema: Schema, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(4 * COLUMNS * 6))
    proto = perceptron(Graph()).model()
    onnx.save(proto, folder / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    stored = onnx.load(folder / "model.onnx", load_external_data=False)
    stored.graph.initializer[0].external_data[0].value = place
    (folder / "model.onnx").write_bytes(stored.SerializeToString())
    with pytest.raises(FileError, match="outside the folder of the model"):
        load_model(folder / "model.onnx", schema)


def test_a_link_out_of_the_folder_is_not_followed(schema: Schema, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    proto = perceptron(Graph()).model()
    onnx.save(proto, folder / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (folder / "weights.bin").rename(tmp_path / "weights.bin")
    (folder / "weights.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(FileError, match="outside the folder of the model"):
        load_model(folder / "model.onnx", schema)


def test_damaged_files(schema: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    whole = perceptron(Graph()).model().SerializeToString()
    for content in (b"", b"not an onnx file", whole[: len(whole) // 2], whole[:-1], b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises((FileError, ModelError), match=r"is not an ONNX file, or is damaged|is not valid"):
            load_model(path, schema)
    path.write_bytes(whole)
    monkeypatch.setattr(importer, "MAX_BYTES", 100)
    with pytest.raises(FileError, match="larger than"):
        load_model(path, schema)
    with pytest.raises(FileError, match="No such file"):
        load_model(tmp_path / "none.onnx", schema)


REFUSED: dict[str, tuple[Callable[[Graph], Graph], str]] = {
    "Erf": (lambda g: gemm(gemm(g, COLUMNS, 4).then("Erf"), 4, 1), r"operation Erf \('erf_node'\).*not supported"),
    "Softmax inside": (
        lambda g: gemm(gemm(g, COLUMNS, 4).then("Softmax"), 4, 1),
        r"operation Gemm .* follows a sigmoid or softmax",
    ),
    "Mul": (lambda g: g.then("Mul", "x"), r"operation Mul \('mul_node'\).*multiplies two values of the row"),
    "Div": (lambda g: g.then("Div", g.constant(value=1.0), first=False), r"operation Div .*divides by a value"),
    "Reshape": (
        lambda g: g.then("Reshape", g.constant(value=[-1, 2], dtype="int64")),
        r"operation Reshape .* changes the shape of the table to \[-1, 2\]",
    ),
    "Squeeze": (lambda g: g.then("Squeeze"), "operation Squeeze .* removes a dimension"),
    "Softmax": (lambda g: gemm(g, COLUMNS, 3).then("Softmax", axis=0), "operation Softmax .* compares rows"),
    "several labels": (lambda g: gemm(g, COLUMNS, 3).then("Sigmoid"), "Sigmoid gives 3 labels at once"),
    "one label": (lambda g: gemm(g, COLUMNS, 1).then("Softmax"), "Softmax over one output is always 1"),
    "table": (
        lambda g: g.then("Unsqueeze", g.constant(value=[1], dtype="int64")),
        "gives each row a table of values",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_operations(make: Any, message: str, schema: Schema) -> None:
    with pytest.raises(UnsupportedModel, match=message) as caught:
        import_model(make(Graph()).model(), schema)
    assert caught.value.operation and "\n" not in str(caught.value)


def test_other_refusals(schema: Schema) -> None:
    with pytest.raises(UnsupportedModel, match="'x' of the ONNX model holds FLOAT16 numbers"):
        import_model(perceptron(Graph("float16")).model(), schema)
    proto = perceptron(Graph()).model()
    proto.graph.output.append(helper.make_tensor_value_info("t0", TensorProto.FLOAT, ["N", 6]))
    with pytest.raises(UnsupportedModel, match=r"has 2 outputs that may be scores \(t2, t0\); say which with output="):
        import_model(proto, schema)
    proto = perceptron(Graph()).model()
    proto.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 1]))
    with pytest.raises(UnsupportedModel, match="'x' of the ONNX model is one of several and holds 13 columns"):
        import_model(proto, schema)
    proto = perceptron(Graph()).model()
    proto.graph.node[1].op_type = "Rely"
    with pytest.raises(ModelError, match="is not valid.*Rely"):
        import_model(proto, schema)
    proto = perceptron(Graph()).model()
    proto.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(np.full((COLUMNS, 6), np.nan, dtype=np.float32), proto.graph.initializer[0].name)
    )
    with pytest.raises(ModelError, match="'gemm_node' has NaN or infinite weights"):
        import_model(proto, schema)
    proto = gemm(Graph(), COLUMNS, 2).then("Dropout").model()
    proto.graph.node[1].output.append("mask")
    proto.graph.node.append(helper.make_node("Identity", ["mask"], ["also"], name="look"))
    proto.graph.output.append(helper.make_tensor_value_info("also", TensorProto.BOOL, ["N", 2]))
    with pytest.raises(UnsupportedModel, match=r"operation Identity \('look'\) of the ONNX model reads 'mask'"):
        import_model(proto, schema, output="also")
    small = Schema(schema.features[:2])
    with pytest.raises(ModelError, match="takes 13 columns, but the schema encodes to 4: 'income'"):
        import_model(perceptron(Graph()).model(), small)
    with pytest.raises(UnsupportedModel, match="Sigmoid is not piecewise linear, so its output cannot be a prediction"):
        import_model(perceptron(Graph()).then("Sigmoid").model(), schema, regression=True)
