"""torch modules and ONNX graphs with slopes, bounds, maxima and branches become networks that give the same scores."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ifonly import Model, Real, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel

torch = pytest.importorskip("torch", reason="torch is optional, and has no wheel for every platform")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

Agree = Callable[[Model], None]
COLUMNS = 13


class Of(nn.Module):
    """A module whose forward is a function of its layers `a` (13 to 6), `b` (6 to 6), `c` (6 to 1) and the row."""

    def __init__(self, forward: Callable[[Any, Any], Any], *, last: int = 6, **children: Any) -> None:
        super().__init__()
        self.function = forward
        self.a, self.b, self.c = nn.Linear(COLUMNS, 6), nn.Linear(6, 6), nn.Linear(last, 1)
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


def stack(*bends: Any) -> Any:
    """Linear layers with these between."""
    layers: list[Any] = [nn.Linear(COLUMNS, 6)]
    for bend in bends:
        layers += [bend, nn.Linear(6, 6)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(6, 1))


def normalised(width: int) -> Any:
    norm = nn.BatchNorm1d(width)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    norm.weight.data.normal_()
    norm.bias.data.normal_()
    return norm


def prelu(*slopes: float) -> Any:
    module = nn.PReLU(len(slopes))
    module.weight.data = torch.tensor(slopes)
    return module


class Block(nn.Module):
    """A residual block, with batch normalisation after the activation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two, self.norm = nn.Linear(width, width), nn.Linear(width, width), normalised(width)

    def forward(self, x: Any) -> Any:
        return x + self.two(self.norm(functional.leaky_relu(self.one(x), 0.2)))


def wide_and_deep(m: Any, x: Any) -> Any:
    return m.c(torch.relu(m.b(torch.relu(m.a(x))))) + m.wide(x[:, :4])


def dense(m: Any, x: Any) -> Any:
    h = torch.relu(m.a(x))
    h = torch.cat([h, x[:, :3], functional.relu6(m.b(h))], dim=1)
    return m.c(h)


def in_place(m: Any, x: Any) -> Any:
    h = m.a(x)
    left = h.clamp(min=0.0)
    left += h
    return m.c(left.abs())


def maxout(m: Any, x: Any) -> Any:
    return m.c(m.wide(x).view(x.size(0), 6, 3).max(dim=2).values)


def pooling(m: Any, x: Any) -> Any:
    h = functional.max_pool1d(m.a(x).unsqueeze(1), 3, stride=2, padding=1).squeeze(1)
    return m.c(torch.cat([h, functional.max_pool1d(m.a(x), 2, ceil_mode=True)], dim=1))


def both_ways(m: Any, x: Any) -> Any:
    one, two = m.a(x).chunk(2, dim=1)
    h = torch.stack([one, two, one - two], dim=-1)
    return m.c(torch.cat([h.amax(-1), h.min(2)[0], torch.clamp(one, max=two)], dim=1))


def centred(m: Any, x: Any) -> Any:
    h = m.a(x)
    h = h - h.mean(dim=1, keepdim=True)
    return m.c(torch.maximum(h, h.sum(1, keepdim=True))) - abs(h).amax(1, keepdim=True)


MODULES: dict[str, Callable[[], Any]] = {
    "leaky relu": lambda: stack(nn.LeakyReLU(0.1), nn.LeakyReLU()),
    "leaky relu, steep": lambda: stack(nn.LeakyReLU(2.5), nn.LeakyReLU(-0.5)),
    "prelu": lambda: stack(nn.PReLU(), prelu(0.0, 1.0, -1.0, 0.3, 2.0, -0.7)),
    "rrelu": lambda: stack(nn.RReLU()),
    "relu6": lambda: stack(nn.ReLU6(), nn.ReLU6()),
    "hardtanh": lambda: stack(nn.Hardtanh(), nn.Hardtanh(-0.3, 2.1)),
    "hardsigmoid": lambda: stack(nn.Hardsigmoid()),
    "threshold": lambda: stack(nn.Threshold(-0.7, -0.7)),
    "softshrink": lambda: stack(nn.Softshrink(0.3)),
    "batch norm": lambda: nn.Sequential(normalised(COLUMNS), stack(normalised(6)), normalised(1)),
    "batch norm after": lambda: stack(nn.Sequential(nn.LeakyReLU(), normalised(6)), nn.Sequential(nn.ReLU(), normalised(6))),
    "residual": lambda: nn.Sequential(nn.Linear(COLUMNS, 6), Block(6), nn.ReLU(), Block(6), nn.Linear(6, 1)),
    "residual, not activated": lambda: nn.Sequential(Block(COLUMNS), Block(COLUMNS), nn.Linear(COLUMNS, 3)),
    "skip from the input": lambda: Of(lambda m, x: m.c(torch.relu(m.b(torch.relu(m.a(x)))) + m.a(x))),
    "wide and deep": lambda: Of(wide_and_deep, wide=nn.Linear(4, 1)),
    "dense": lambda: Of(dense, last=15),
    "in place": lambda: Of(in_place),
    "maximum": lambda: Of(lambda m, x: m.c(torch.maximum(m.a(x), m.b(torch.relu(m.a(x)))))),
    "minimum": lambda: Of(lambda m, x: m.c(torch.min(torch.relu(m.a(x)), torch.full((6,), 0.7)).abs())),
    "clip": lambda: Of(lambda m, x: m.c(torch.clamp(m.a(x), min=0.1).clip(max=0.9) - 0.1).clamp_max(0.05)),
    "maxout": lambda: Of(maxout, wide=nn.Linear(COLUMNS, 18)),
    "pooling": lambda: Of(pooling),
    "pooling module": lambda: nn.Sequential(stack(nn.MaxPool1d(1)), nn.Identity()),
    "unflatten": lambda: nn.Sequential(nn.Linear(COLUMNS, 12), nn.Unflatten(1, (6, 2)), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(6, 1)),
    "both ways": lambda: Of(both_ways, last=9),
    "centred": lambda: Of(centred),
    "sigmoid at the end": lambda: nn.Sequential(stack(nn.LeakyReLU()), nn.Sigmoid()),
}  # fmt: skip


@pytest.mark.long(keep=13)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES)
def test_modules(make: Any, dtype: str, schema: Schema, agree: Agree) -> None:
    torch.manual_seed(0)
    model = import_model(make().to(getattr(torch, dtype)), schema)
    agree(model)
    assert model.precision == dtype


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "threshold": (lambda: stack(nn.Threshold(0.5, 0.0)), "operation Threshold .* jumps from 0 to 0.5"),
    "hardshrink": (lambda: stack(nn.Hardshrink()), "operation Hardshrink .* is not supported"),
    "hardswish": (lambda: stack(nn.Hardswish()), "operation Hardswish .* is not supported"),
    "max of all": (lambda: Of(lambda m, x: x.max()), "operation max .* compares rows .* say dim=1"),
    "max of rows": (lambda: Of(lambda m, x: x.max(0)[0]), "operation max .* mixes rows"),
    "argmax": (lambda: Of(lambda m, x: m.c(m.a(x)) + x.argmax(1)), "operation argmax .* is not supported"),
    "several": (lambda: Of(lambda m, x: x.amax((0, 1))), "operation amax .* reduces several dimensions"),
    "indices": (lambda: stack(nn.MaxPool1d(2, return_indices=True)), "operation MaxPool1d .* returns indices"),
    "table": (
        lambda: Of(lambda m, x: m.b(x.view(-1, 13, 1))),
        "operation Linear .* is not a product of one row of values and constants",
    ),
    "table returned": (lambda: Of(lambda m, x: x.unsqueeze(1)), "must return one tensor of scores"),
    "shape": (lambda: Of(lambda m, x: x.view(-1, 5, 3)), "operation view .* changes the shape"),
    "rows split": (lambda: Of(lambda m, x: x.chunk(2)[0]), "operation chunk .* splits rows"),
    "two dimensions": (lambda: stack(nn.MaxPool2d(2)), "operation MaxPool2d .* is not supported"),
    "where": (lambda: Of(lambda m, x: torch.where(x > 0, x, 2 * x)), "operation gt .* is not supported"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(make: Any, message: str, schema: Schema) -> None:
    with pytest.raises(UnsupportedModel, match=message) as caught:
        import_model(make(), schema)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_widths_that_do_not_fit(schema: Schema) -> None:
    with pytest.raises(ModelError, match="'add' adds 6 values to 4"):
        import_model(Of(lambda m, x: m.c(m.a(x) + x[:, :4])), schema)
    with pytest.raises(ModelError, match="'maximum' compares 6 values with 4"):
        import_model(Of(lambda m, x: m.c(torch.maximum(m.a(x), x[:, :4]))), schema)


def test_windows_that_do_not_fit(schema: Schema) -> None:
    for pool in (nn.MaxPool1d(10**9), nn.MaxPool1d(2, stride=0), nn.MaxPool1d(2, padding=10**9)):
        with pytest.raises(ModelError, match="'1' pools 6 values in windows of .* no such windows fit"):
            import_model(stack(pool), schema)


# ---------------------------------------------------------------------- ONNX


class Graph:
    """An ONNX graph, value by value; numbers are made up where a shape is asked for."""

    def __init__(self, dtype: str, opset: int = 17) -> None:
        self.dtype, self.opset, self.rng = dtype, opset, np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.stored: list[Any] = []

    def constant(self, value: Any, dtype: str | None = None) -> str:
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.array(value).astype(dtype or self.dtype), name))
        return name

    def whole(self, *value: int) -> str:
        return self.constant(value, "int64")

    def op(self, operation: str, *inputs: str, outputs: int = 1, **given: Any) -> Any:
        names = [f"t{len(self.nodes)}_{k}" for k in range(outputs)]
        again = sum(node.op_type == operation for node in self.nodes)  # onnxruntime wants each name once
        name = f"{operation.lower()}_node{again or ''}"
        self.nodes.append(helper.make_node(operation, inputs, names, name=name, **given))
        return names[0] if outputs == 1 else names

    def gemm(self, x: str, inputs: int, outputs: int) -> Any:
        weight = self.constant(self.rng.normal(size=(inputs, outputs)))
        return self.op("Gemm", x, weight, self.constant(self.rng.normal(size=outputs)))

    def model(self, output: str) -> Any:
        rank = 3 if self.nodes[-1].op_type in ("AveragePool", "MatMul") else 2
        kind = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}[self.dtype]
        shown = [
            helper.make_tensor_value_info(name, kind, shape)
            for name, shape in (("x", ["N", COLUMNS]), (output, ["N", "K", "L"][:rank]))
        ]
        graph = helper.make_graph(self.nodes, "test", shown[:1], shown[1:], self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def bent(operation: str, **given: Any) -> Callable[[Graph], str]:
    return lambda g: g.gemm(g.op(operation, g.gemm("x", COLUMNS, 5), **given), 5, 1)


def onnx_prelu(g: Graph) -> Any:
    slopes = g.constant([0.5, -1.0, 0.0, 0.01, 3.0])
    return g.gemm(g.op("PRelu", g.op("PRelu", g.gemm("x", COLUMNS, 5), slopes), g.constant([0.2])), 5, 1)


def onnx_clip(g: Graph) -> Any:
    h = g.op("Clip", g.gemm("x", COLUMNS, 5), g.constant(-0.4), g.constant(6.0))
    return g.gemm(g.op("Clip", g.op("Clip", h, g.constant(0.0)), "", g.constant(2.5)), 5, 1)


def onnx_extremes(g: Graph) -> Any:
    a, b = g.gemm("x", COLUMNS, 5), g.op("Relu", g.gemm("x", COLUMNS, 5))
    h = g.op("Max", a, b, g.constant([0.1, 0.2, 0.3, 0.4, 0.5]))
    return g.gemm(g.op("Min", h, g.op("Neg", a), g.op("Add", b, a)), 5, 2)


def onnx_residual(g: Graph) -> Any:
    h = g.op("LeakyRelu", g.gemm("x", COLUMNS, COLUMNS), alpha=0.3)
    h = g.op("Sub", g.op("Sum", h, "x", g.gemm(h, COLUMNS, COLUMNS)), h)
    return g.gemm(g.op("Concat", g.op("Relu", h), "x", axis=1), 2 * COLUMNS, 3)


def onnx_pool(g: Graph) -> Any:
    h = g.op("Reshape", g.gemm("x", COLUMNS, 12), g.whole(0, 2, 6))
    h = g.op("MaxPool", h, kernel_shape=[3], strides=[2], pads=[1, 1])
    return g.op("ReduceMin", g.op("Flatten", h), axes=[1], keepdims=1)


def onnx_global_pool(g: Graph) -> Any:
    h = g.op("Unsqueeze", g.gemm("x", COLUMNS, 6), g.whole(1))
    return g.op("Squeeze", g.op("GlobalMaxPool", h), g.whole(2))


def onnx_columns(g: Graph) -> Any:
    one, two = g.op("Split", g.gemm("x", COLUMNS, 6), g.whole(4, 2), outputs=2, axis=1)
    three = g.op("Slice", "x", g.whole(1), g.whole(5), g.whole(1))
    four = g.op("Gather", "x", g.whole(3, 3, 0, 7), axis=1)
    h = g.op("Add", g.op("Mul", g.op("Max", one, three), g.constant(0.5)), four)
    mean = g.op("ReduceMean", h, axes=[1])
    return g.op("Sub", g.op("ReduceMax", two, axes=[-1]), g.op("Abs", mean))


def onnx_batch_norm(g: Graph) -> Any:
    numbers = [g.constant(g.rng.normal(size=COLUMNS)) for _ in range(3)]
    h = g.op("BatchNormalization", "x", *numbers, g.constant(g.rng.uniform(0.5, 2.0, COLUMNS)))
    return g.gemm(g.op("LeakyRelu", h), COLUMNS, 2)


GRAPHS: dict[str, Callable[[Graph], Any]] = {
    "leaky": bent("LeakyRelu", alpha=0.1),
    "leaky, unsaid": bent("LeakyRelu"),
    "prelu": onnx_prelu,
    "abs": bent("Abs"),
    "clip": onnx_clip,
    "hard sigmoid": bent("HardSigmoid"),
    "thresholded": bent("ThresholdedRelu", alpha=0.0),
    "shrink": bent("Shrink", bias=0.5, lambd=0.5),
    "extremes": onnx_extremes,
    "residual": onnx_residual,
    "pool": onnx_pool,
    "global pool": onnx_global_pool,
    "columns": onnx_columns,
    "batch norm": onnx_batch_norm,
}


OF_DOUBLES = {
    "HardSigmoid": "onnxruntime, which would run .*, refuses it: .*HardSigmoid",
    "ThresholdedRelu": "onnxruntime, which would run .*, refuses it: .*ThresholdedRelu",
    "Shrink": "disagree by",  # onnxruntime shrinks doubles in float32
}
"""What onnxruntime cannot do with doubles: such files are imported only where it is not installed."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_graphs(make: Any, dtype: str, schema: Schema, agree: Agree, without_onnxruntime: Callable[[], None]) -> None:
    if make is onnx_global_pool and dtype == "float64":
        pytest.skip("onnxruntime has no GlobalMaxPool of doubles, and onnx's own evaluator loses a dimension of it")
    g = Graph(dtype)
    proto = g.model(make(g))
    if dtype == "float64" and (refusal := OF_DOUBLES.get(proto.graph.node[1].op_type)):
        with pytest.raises(ModelError, match=refusal):
            import_model(proto, schema)
        without_onnxruntime()
    model = import_model(proto, schema)
    agree(model)
    assert model.precision == dtype


def test_older_files(schema: Schema, agree: Agree) -> None:
    """Bounds, axes and sizes as attributes."""
    g = Graph("float32", opset=10)
    h = g.op("Clip", g.gemm("x", COLUMNS, 4), min=-0.5)
    h = g.op("Squeeze", g.op("Unsqueeze", h, axes=[1]), axes=[1])
    one, two = g.op("Split", h, outputs=2, axis=1, split=[2, 2])
    agree(import_model(g.model(g.op("ReduceSum", g.op("Max", one, two), axes=[1])), schema))


ONNX_REFUSED: dict[str, tuple[Callable[[Graph], Any], str]] = {
    "jump": (bent("ThresholdedRelu"), "operation ThresholdedRelu .* jumps at its threshold"),
    "shrink": (bent("Shrink", bias=0.0, lambd=0.5), "operation Shrink .* jumps at its threshold"),
    "hard swish": (bent("HardSwish"), "operation HardSwish .* is not supported"),
    "slopes": (lambda g: g.op("PRelu", "x", "x"), "operation PRelu .* slopes that depend on the row"),
    "rows": (lambda g: g.op("ReduceMax", "x", axes=[0]), "operation ReduceMax .* mixes rows"),
    "all": (lambda g: g.op("ReduceMax", "x"), "operation ReduceMax .* reduces several dimensions"),
    "sliced rows": (
        lambda g: g.op("Slice", "x", g.whole(0), g.whole(1), g.whole(0)), "operation Slice .* selects rows",
    ),
    "gathered rows": (lambda g: g.op("Gather", "x", g.whole(0), axis=0), "operation Gather .* selects rows"),
    "linear of a table": (
        lambda g: g.op("MatMul", g.op("Unsqueeze", "x", g.whole(1)), g.constant(np.ones((COLUMNS, 1)))),
        "operation MatMul .* is not a product of one row of values and constants",
    ),
    "average": (
        lambda g: g.op("AveragePool", g.op("Unsqueeze", "x", g.whole(1)), kernel_shape=[2]), "operation AveragePool",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), ONNX_REFUSED.values(), ids=ONNX_REFUSED)
def test_refused_graphs(make: Any, message: str, schema: Schema) -> None:
    g = Graph("float32")
    with pytest.raises(UnsupportedModel, match=message) as caught:
        import_model(g.model(make(g)), schema)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_a_module_and_its_export_are_the_same_function(schema: Schema, tmp_path: Any) -> None:
    torch.manual_seed(0)
    g = Graph("float32")
    module = nn.Sequential(nn.Linear(COLUMNS, 6), nn.LeakyReLU(0.25), nn.Linear(6, 6), nn.Hardtanh(), nn.Linear(6, 1))
    weights = [(layer.weight.detach().numpy().T, layer.bias.detach().numpy()) for layer in module[::2]]
    h = "x"
    for k, (weight, bias) in enumerate(weights):
        h = g.op("Gemm", h, g.constant(weight), g.constant(bias))
        h = (
            [g.op("LeakyRelu", h, alpha=0.25), "", h][k]
            if k != 1
            else g.op("Clip", h, g.constant(-1.0), g.constant(1.0))
        )
    proto = g.model(h)
    onnx.save(proto, tmp_path / "m.onnx")
    assert import_model(proto, schema).network == import_model(module, schema).network


def test_constants_that_float32_rounds_are_counted() -> None:
    """x + 0.1 is 0 in float32, where x is minus that float32; in real arithmetic it is not."""
    own = float(np.float32(-0.1))
    schema = Schema([Real("x", own, 1.0)])
    model = import_model(Of(lambda m, x: x + 0.1), schema, regression=True)
    point = np.array([[own]])
    off = abs(Fraction(float(model.scores(point)[0, 0])) - (Fraction(own) + Fraction(0.1)))
    assert 0 < off <= Fraction(float(model.error_at(point)[0, 0])) < Fraction(1, 10**8)
