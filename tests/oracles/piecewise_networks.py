"""Small random networks with one kind of operation each, as torch modules and as ONNX graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

WIDTH = 4


class Random(nn.Module):
    """Linear layers in, between, beside and out; `kind` says what is done with them."""

    def __init__(self, kind: str, columns: int, rng: Any, outputs: int = 1) -> None:
        super().__init__()
        self.kind, self.low = kind, bool(rng.random() < 0.5)
        self.first, self.second = nn.Linear(columns, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.beside, self.wide = nn.Linear(columns, WIDTH), nn.Linear(columns, outputs)
        self.last, self.longer = nn.Linear(WIDTH, outputs), nn.Linear(2 * WIDTH, outputs)
        self.slopes = nn.Parameter(torch.from_numpy(rng.choice([-0.5, 0.0, 0.01, 0.25, 1.0, 1.5], WIDTH)).float())
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in (columns, WIDTH, WIDTH))
        for parameter in self.parameters():
            parameter.data = torch.from_numpy(rng.normal(size=parameter.shape) * 0.7).float()
        for norm in self.norms:
            norm.running_mean.copy_(torch.from_numpy(rng.normal(size=norm.num_features)))
            norm.running_var.copy_(torch.from_numpy(rng.uniform(0.3, 3.0, norm.num_features)))
        self.eval()

    def forward(self, x: Any) -> Any:
        return MODULES[self.kind](self, x)


def _between(bend: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda m, x: m.last(bend(m, m.second(bend(m, m.first(x)))))


def _pooled(m: Any, x: Any) -> Any:
    h = functional.max_pool1d(m.first(x), 2, stride=1, padding=1)[:, :WIDTH]
    return m.last(torch.relu(m.second(h)))


def _maxout(m: Any, x: Any) -> Any:
    h = torch.cat([m.first(x), m.beside(x)], dim=1).view(-1, WIDTH, 2).amax(2)
    return m.last(torch.max(m.second(h).unsqueeze(1), dim=1)[0].abs())


def _residual(m: Any, x: Any) -> Any:
    h = torch.relu(m.first(x))
    h = h + m.second(torch.relu(m.second(h)))
    return m.last(torch.relu(h) + m.beside(x))


MODULES: dict[str, Callable[[Any, Any], Any]] = {
    "leaky relu": _between(lambda m, h: functional.leaky_relu(h, 0.1)),
    "prelu": _between(lambda m, h: functional.prelu(h, m.slopes)),
    "relu6": _between(lambda m, h: functional.relu6(h)),
    "hardtanh": _between(lambda m, h: functional.hardtanh(h, -0.4, 0.7)),
    "clamp": _between(lambda m, h: h.clamp(min=-0.3) if m.low else h.clamp(max=0.6)),
    "hardsigmoid": _between(lambda m, h: functional.hardsigmoid(3 * h)),
    "abs": _between(lambda m, h: h.abs() - 0.5),
    "softshrink": _between(lambda m, h: functional.softshrink(h, 0.25)),
    "maximum": lambda m, x: m.last(torch.maximum(m.second(torch.relu(m.first(x))), m.beside(x))),
    "minimum": lambda m, x: m.last(torch.minimum(m.second(torch.minimum(m.first(x), m.beside(x))), m.first(x))),
    "max pool": _pooled,
    "maxout": _maxout,
    "residual": _residual,
    "concatenation": lambda m, x: m.longer(torch.cat([m.beside(x), torch.relu(m.second(torch.relu(m.first(x))))], 1)),
    "wide and deep": lambda m, x: m.wide(x) - m.last(torch.relu(m.second(torch.relu(m.first(x))))),
    "batch norm": lambda m, x: m.last(m.norms[2](torch.relu(m.second(m.norms[1](torch.relu(m.first(m.norms[0](x)))))))),
}


# ---------------------------------------------------------------------- the same kinds as ONNX graphs


class OnnxGraph:
    """A graph over random numbers, value by value."""

    def __init__(self, columns: int, rng: Any) -> None:
        self.columns, self.rng = columns, rng
        self.nodes: list[Any] = []
        self.stored: list[Any] = []

    def constant(self, value: Any, dtype: str = "float32") -> str:
        self.stored.append(numpy_helper.from_array(np.array(value).astype(dtype), f"c{len(self.stored)}"))
        return f"c{len(self.stored) - 1}"

    def __call__(self, operation: str, *inputs: str, **given: Any) -> str:
        self.nodes.append(helper.make_node(operation, inputs, [f"t{len(self.nodes)}"], **given))
        return f"t{len(self.nodes) - 1}"

    def linear(self, x: str, outputs: int = WIDTH, inputs: int = WIDTH) -> str:
        numbers = 0.7 * self.rng.normal(size=(inputs, outputs)), 0.7 * self.rng.normal(size=outputs)
        return self("Gemm", x, *(self.constant(part) for part in numbers))

    def first(self) -> str:
        return self.linear("x", inputs=self.columns)

    def model(self, output: str) -> Any:
        shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                 for name, shape in (("x", ["N", self.columns]), (output, ["N", 1]))]  # fmt: skip
        graph = helper.make_graph(self.nodes, "random", shown[:1], shown[1:], self.stored)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(proto)
        return proto


def _bent(bend: Callable[[OnnxGraph, str], str]) -> Callable[[OnnxGraph], str]:
    return lambda g: g.linear(bend(g, g.linear(bend(g, g.first()))), 1)


def _onnx_pool(g: OnnxGraph) -> str:
    h = g("Unsqueeze", g.first(), g.constant([1], "int64"))
    h = g("Flatten", g("MaxPool", h, kernel_shape=[2], strides=[1]))
    return g.linear(g("Abs", g.linear(h, inputs=WIDTH - 1)), 1)


def _onnx_residual(g: OnnxGraph) -> str:
    h = g("Relu", g.first())
    h = g("Add", h, g.linear(g("LeakyRelu", g.linear(h), alpha=0.3)))
    return g.linear(g("Sub", g("Relu", h), g.first()), 1)


def _onnx_norm(g: OnnxGraph) -> str:
    def norm(x: str, width: int) -> str:
        numbers = [g.rng.normal(size=width) for _ in range(3)] + [g.rng.uniform(0.3, 3.0, width)]
        return g("BatchNormalization", x, *(g.constant(part) for part in numbers))

    return g.linear(norm(g("Relu", norm(g.linear(norm("x", g.columns), inputs=g.columns), WIDTH)), WIDTH), 1)


GRAPHS: dict[str, Callable[[OnnxGraph], str]] = {
    "LeakyRelu": _bent(lambda g, h: g("LeakyRelu", h, alpha=0.2)),
    "PRelu": _bent(lambda g, h: g("PRelu", h, g.constant(g.rng.choice([-0.5, 0.0, 0.1, 1.0, 1.5], WIDTH)))),
    "Clip": _bent(lambda g, h: g("Clip", h, g.constant(-0.3), g.constant(0.8))),
    "Abs": _bent(lambda g, h: g("Sub", g("Abs", h), g.constant(0.4))),
    "HardSigmoid": _bent(lambda g, h: g("HardSigmoid", h)),
    "Shrink": _bent(lambda g, h: g("Shrink", h, bias=0.25, lambd=0.25)),
    "Max": lambda g: g.linear(g("Max", g.linear(g("Relu", g.first())), g.first(), g.constant(np.full(WIDTH, -0.2))), 1),
    "Min": lambda g: g.linear(g("Min", g.linear(g("Neg", g("Relu", g.first()))), g.first()), 1),
    "MaxPool": _onnx_pool,
    "ReduceMax": lambda g: g("ReduceMax", g("Mul", g.linear(g("Relu", g.first())), g.constant(0.5)), axes=[1]),
    "Add": _onnx_residual,
    "Concat": lambda g: g.linear(
        g("Concat", g("Relu", g.linear(g("Relu", g.first()))), g.first(), axis=1), 1, 2 * WIDTH
    ),
    "BatchNormalization": _onnx_norm,
}
