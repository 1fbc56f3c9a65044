"""ONNX files with several inputs on the command line."""

from __future__ import annotations

import pytest

from ifonly import Integer, Schema
from ifonly.cli import codes


@pytest.fixture
def files(tmp_path):
    onnx = pytest.importorskip("onnx")
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    weights = [numpy_helper.from_array(np.array([[1.0], [-2.0], [0.5]], dtype=np.float32), "w")]
    nodes = [helper.make_node("Concat", ["a", "b"], ["x"], axis=1), helper.make_node("MatMul", ["x", "w"], ["y"])]
    sizes = {"a": 2, "b": 1}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n]) for name, n in sizes.items()]
    output = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])]
    graph = helper.make_graph(nodes, "g", inputs, output, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    Schema([Integer("age", 0, 9), Integer("debt", 0, 9), Integer("years", 0, 9)]).save(tmp_path / "s.json")
    (tmp_path / "rows.csv").write_text("age,debt,years\n1,4,2\n", encoding="utf-8")
    return ["explain", "--model", tmp_path / "m.onnx", "--schema", tmp_path / "s.json", "--rows", tmp_path / "rows.csv"]


def test_inputs_are_named(run, files):
    result = run(*files, "--input", "a=age,debt", "--input", "b=years,")
    assert result.exit_code == codes.PROVEN, result.stderr
    assert "debt" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--input a=FEATURE,FEATURE"),
        (["--input", "a"], "--input is written as NAME=FEATURE,FEATURE"),
        (["--input", "a=age,debt,years"], "has 2 columns, and 3 are named; name one for each"),
        (["--input", "a=age", "--input", "a=debt"], "--input says twice what 'a' holds"),
        (["--input", "a=age,town"], "'town', which is neither a feature nor a column"),
        (["--input", "a=age,debt", "--model", "net.npz"], "--input is about the inputs of an .onnx file"),
    ],
)
def test_refused(run, files, words, message):
    result = run(*files, *words)
    assert result.exit_code == codes.WRONG_INPUT
    assert message in result.stderr
