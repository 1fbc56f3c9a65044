"""Networks with smooth activations: imported from three libraries, and what these may lose of a value."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch import nn
from torch.nn import functional

from ifonly import Explainer, certify, check, import_model
from ifonly.errors import ModelError, UnsupportedModel, UnsupportedQuestion
from ifonly.methods import Enumerate, MipExp, MipObj, MipSat, Search
from ifonly.model import Model, Network, save_network
from ifonly.model.smooth import Activation, SmoothNetwork
from ifonly.model.smooth.activations import LIBRARY_UNITS
from ifonly.schema import Binary, Categorical, Integer, Real, Schema

SCHEMA = Schema([Real("x", -3.0, 5.0), Integer("n", 0, 9), Categorical("c", ("p", "q", "r")), Binary("b")])
COLUMNS = len(SCHEMA.columns)
MODULES: dict[str, Callable[[], nn.Module]] = {
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "softplus": nn.Softplus,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
    "elu": lambda: nn.ELU(0.5),
}
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda mp, z: mp.tanh(z),
    "sigmoid": lambda mp, z: 1 / (1 + mp.exp(-z)),
    "softplus": lambda mp, z: max(z, 0) + mp.log1p(mp.exp(-abs(z))),
    "gelu": lambda mp, z: z * mp.ncdf(z),
    "gelu_tanh": lambda mp, z: z / (1 + mp.exp(-2 * mp.sqrt(2 / mp.pi) * (z + mp.mpf("0.044715") * z**3))),
    "silu": lambda mp, z: z / (1 + mp.exp(-z)),
    "elu": lambda mp, z: z if z > 0 else mp.expm1(z) / 2,
}
every_activation = pytest.mark.parametrize("name", MODULES)
both_precisions = pytest.mark.parametrize("dtype", ["float32", "float64"])


def points(count: int = 300) -> np.ndarray:
    return SCHEMA.sample(count, np.random.default_rng(4))


def chain(*activations: nn.Module, outputs: int = 1, dtype: str = "float32") -> nn.Sequential:
    torch.manual_seed(3)
    steps: list[nn.Module] = []
    widths = [COLUMNS, *(6 + i for i in range(len(activations))), outputs]
    for i, activation in enumerate(activations):
        steps += [nn.Linear(widths[i], widths[i + 1]), activation]
    return nn.Sequential(*steps, nn.Linear(widths[-2], outputs)).to(getattr(torch, dtype))


def sound(model: Model) -> None:
    """The original is nowhere farther from the function than the bound; what the function itself loses is in both."""
    rows = points()
    off = np.abs(model.scores(rows) - model.exact_scores(rows))
    own = model.function.error(*[SCHEMA.encode(rows)] * 2, "float64", np.ones(COLUMNS, dtype=bool))
    assert (off <= model.error_at(rows) + own).all()
    assert (model.error_at(rows) <= model.error * (1.0 + 1e-9)).all() and np.isfinite(model.error).all()


@every_activation
@both_precisions
def test_torch(name: str, dtype: str) -> None:
    model = import_model(chain(MODULES[name](), MODULES[name](), dtype=dtype), SCHEMA)
    assert isinstance(model.function, SmoothNetwork)
    assert [a.name for a in model.function.activations] == [name, name]
    assert model.precision == dtype and model.deviation < (1e-6 if dtype == "float32" else 1e-14)
    sound(model)


def test_torch_in_other_words() -> None:
    """Functions and methods, a chain mixed with ReLU, a sigmoid inside and one at the end, scaled softplus."""

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList([nn.Linear(COLUMNS if i == 0 else 5, 5) for i in range(8)])
            self.last = nn.Linear(5, 1)

        def forward(self, x: Any) -> Any:
            says = (
                torch.tanh, lambda z: z.tanh(), torch.sigmoid, functional.silu, lambda z: functional.gelu(z, approximate="tanh"),
                lambda z: functional.elu(z, 0.5), lambda z: functional.softplus(z, beta=2.0), torch.relu,
            )  # fmt: skip
            for part, say in zip(self.parts, says, strict=True):
                x = say(part(x))
            return torch.sigmoid(self.last(x))

    torch.manual_seed(1)
    model = import_model(Words(), SCHEMA)
    assert isinstance(model.function, SmoothNetwork)
    names = [a.name for a in model.function.activations]
    assert names == ["tanh", "tanh", "sigmoid", "silu", "gelu_tanh", "elu", "softplus", "relu"]
    assert model.function.name == "a network with tanh and sigmoid and silu and gelu_tanh and elu and softplus inside"
    sound(model)


def test_softplus_of_torch_is_a_line_beyond_its_threshold() -> None:
    """In float64 that is more than rounding, and E says so only where it may happen."""
    line = import_model(chain(nn.Softplus(threshold=4.0), dtype="float64"), SCHEMA)
    assert 1e-4 < line.deviation <= line.error[0]
    rows = points(300)
    assert (np.abs(line.exact_scores(rows) - line.scores(rows)) <= line.error_at(rows)).all()
    model = import_model(chain(nn.Softplus(), dtype="float64"), SCHEMA)
    assert model.error[0] < 1e-8


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_sklearn(activation: str, classes: int) -> None:
    rows = points(80)
    fitted = MLPClassifier((5, 4), activation=activation, solver="lbfgs", max_iter=8, tol=1.0, random_state=0)
    model = import_model(fitted.fit(SCHEMA.encode(rows), np.arange(80) % classes), SCHEMA)
    assert isinstance(model.function, SmoothNetwork) and model.outputs == (1 if classes == 2 else 3)
    sound(model)


def test_sklearn_regression() -> None:
    rows = points(80)
    fitted = MLPRegressor(
        hidden_layer_sizes=(5,), activation="tanh", solver="lbfgs", max_iter=8, tol=1.0, random_state=0
    )
    model = import_model(fitted.fit(SCHEMA.encode(rows), rows[:, 0]), SCHEMA)
    assert isinstance(model.function, SmoothNetwork) and not model.classes
    sound(model)


def graph(nodes: list[Any], dtype: str) -> Any:
    rng, kind = np.random.default_rng(2), TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    stored = [
        numpy_helper.from_array(rng.normal(size=shape).astype(dtype), name)
        for name, shape in (("w", (COLUMNS, 4)), ("v", (4,)), ("u", (4, 1)))
    ]
    made = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "v"], ["z"]), *nodes, helper.make_node("MatMul", ["h", "u"], ["y"])],
        "smooth",
        [helper.make_tensor_value_info("x", kind, ["N", COLUMNS])],
        [helper.make_tensor_value_info("y", kind, ["N", 1])],
        stored,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


NODES: dict[str, list[Any]] = {
    "tanh": [helper.make_node("Tanh", ["z"], ["h"])],
    "sigmoid": [helper.make_node("Sigmoid", ["z"], ["h"])],
    "softplus": [helper.make_node("Softplus", ["z"], ["h"])],
    "gelu": [helper.make_node("Gelu", ["z"], ["h"])],
    "gelu_tanh": [helper.make_node("Gelu", ["z"], ["h"], approximate="tanh")],
    "silu": [helper.make_node("Sigmoid", ["z"], ["s"]), helper.make_node("Mul", ["z", "s"], ["h"])],
    "elu": [helper.make_node("Elu", ["z"], ["h"], alpha=0.5)],
}


@every_activation
def test_onnx(name: str) -> None:
    model = import_model(graph(NODES[name], "float32"), SCHEMA)
    assert isinstance(model.function, SmoothNetwork) and [a.name for a in model.function.activations] == [name]
    sound(model)
    assert Explainer(model).explain(SCHEMA.row(points()[0])).status in ("nearest", "none exists")


@pytest.mark.parametrize(("activation", "name"), [("logistic", "sigmoid"), ("tanh", "tanh")])
@pytest.mark.parametrize("classes", [2, 3])
def test_onnx_as_skl2onnx_writes_it(activation: str, name: str, classes: int) -> None:
    """With probabilities at the end, which for two classes follow a sigmoid as well."""
    export = pytest.importorskip("skl2onnx")
    rows = SCHEMA.encode(points())
    fitted = MLPClassifier((5,), activation=activation, solver="lbfgs", max_iter=8, tol=1.0, random_state=0)
    fitted.fit(rows, np.floor((rows[:, 0] + 3.0) / 8.01 * classes).astype(int))
    model = import_model(export.to_onnx(fitted, rows[:1].astype(np.float32)), SCHEMA)
    assert isinstance(model.function, SmoothNetwork) and [a.name for a in model.function.activations] == [name]
    assert model.probabilities is not None
    sound(model)


def test_a_sigmoid_inside_that_looks_like_the_end() -> None:
    """Both probabilities beside one another are two values, and nothing may follow them."""
    nodes = [
        helper.make_node("Slice", ["z", "zero", "one", "one"], ["first"]),
        helper.make_node("Sigmoid", ["first"], ["p"]),
        helper.make_node("Sub", ["unit", "p"], ["q"]),
        helper.make_node("Concat", ["q", "p", "q", "p"], ["h"], axis=1),
    ]
    model = graph(nodes, "float32")
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(np.array([0]), "zero"),
            numpy_helper.from_array(np.array([1]), "one"),
            numpy_helper.from_array(np.float32([1.0]), "unit"),
        ]
    )
    with pytest.raises(UnsupportedModel, match="sigmoid or softmax, which may only come last"):
        import_model(model, SCHEMA)
    del nodes[-1]
    nodes += [
        helper.make_node("Concat", ["q", "p"], ["both"], axis=1),
        helper.make_node("Mul", ["both", "unit"], ["h"]),
    ]
    twice = graph(nodes, "float32")
    twice.graph.initializer.extend(model.graph.initializer[3:])
    with pytest.raises(UnsupportedModel, match="sigmoid or softmax, which may only come last"):
        import_model(twice, SCHEMA)


def test_a_product_of_two_sigmoids_is_no_silu() -> None:
    nodes = [helper.make_node("Sigmoid", ["z"], ["s"]), helper.make_node("Mul", ["s", "s"], ["h"])]
    with pytest.raises(UnsupportedModel, match="multiplies two values of the row"):
        import_model(graph(nodes, "float32"), SCHEMA)


@every_activation
@both_precisions
def test_libraries_round_far_less_than_is_allowed_for(name: str, dtype: str) -> None:
    """A third of the allowance, by exact arithmetic, for single values and for many at once."""
    mp = pytest.importorskip("mpmath")
    unit = 2.0**-24 if dtype == "float32" else 2.0**-53
    rng = np.random.default_rng(8)
    z = np.concatenate([rng.normal(0.0, s, 60) for s in (1e-3, 0.3, 3.0, 30.0)] + [np.linspace(-19.9, 19.9, 61)])
    z = z.astype(np.float32).astype(np.float64)
    z = z[z < 20.0] if name == "softplus" else z
    with mp.workprec(120):
        exact = [EXACT[name](mp, mp.mpf(v)) for v in z.tolist()]
        run = MODULES[name]()
        given = [run(torch.tensor(z, dtype=getattr(torch, dtype))).numpy()]
        given.append(np.array([run(torch.tensor([v], dtype=getattr(torch, dtype))).item() for v in z.tolist()]))
        if dtype == "float32":
            session = onnx_alone(name)
            given.append(session(z.astype(np.float32)))
        else:
            given.append(Activation(name, alpha=0.5 if name == "elu" else 1.0)(z))  # type: ignore[arg-type]
        for values in given:
            off = np.array([float(abs(mp.mpf(float(a)) - b)) for a, b in zip(values, exact, strict=True)])
            assert (off <= LIBRARY_UNITS / 3.0 * unit * (1.0 + np.abs(z))).all()


def onnx_alone(name: str) -> Callable[[np.ndarray], np.ndarray]:
    runtime = pytest.importorskip("onnxruntime")
    made = helper.make_graph(
        NODES[name], "one",
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, ["N"])],
    )  # fmt: skip
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(proto)
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda z: session.run(None, {"z": z})[0]


def small() -> SmoothNetwork:
    linear = Network.of([(np.eye(2, COLUMNS), np.zeros(2)), (np.ones((1, 2)), [0.1])])
    return SmoothNetwork(linear, [Activation("tanh")])


def test_it_is_a_kind() -> None:
    one, other = small(), SmoothNetwork(small().linear, [Activation("silu")])
    assert one == small() and one != other and hash(one) == hash(pickle.loads(pickle.dumps(one)))
    rows = SCHEMA.encode(points(50))
    assert one.steady_scores(rows) == pytest.approx(one.scores(rows), rel=1e-15)
    assert len(set(one.steady_scores(np.repeat(rows[:1], 37, axis=0)).ravel().tolist())) == 1
    assert one.scores(rows[0]) == pytest.approx(math.tanh(rows[0, 0]) + math.tanh(rows[0, 1]) + 0.1)


def test_what_it_is_not_made_of() -> None:
    with pytest.raises(ModelError, match="A network of 2 layers has 1 activations; got 0"):
        SmoothNetwork(small().linear, [])
    with pytest.raises(ModelError, match="made of a Network and activations"):
        SmoothNetwork(small().linear, ["tanh"])  # type: ignore[list-item]
    with pytest.raises(ModelError, match="An activation is one of relu, tanh, .*; got 'cube'"):
        Activation("cube")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="holds a piecewise-linear network"):
        save_network(small(), "model.npz")  # type: ignore[arg-type]


def test_methods_that_need_a_piecewise_linear_network_name_one_that_does_not() -> None:
    explainer, row = Explainer(import_model(chain(nn.Tanh()), SCHEMA)), SCHEMA.row(points()[0])
    for method in (MipObj(), MipExp(), MipSat()):
        with pytest.raises(UnsupportedQuestion, match=r"network with tanh inside; use search or enumerate\."):
            explainer.using(method).explain(row)
    assert check(certify(Explainer(import_model(chain(nn.SiLU()), SCHEMA)), row)).valid


def test_small_spaces_are_tabulated_as_for_other_models() -> None:
    schema = Schema([Integer("n", 0, 9), Categorical("c", ("p", "q", "r"))])
    torch.manual_seed(0)
    model = import_model(nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 1)), schema)
    for row in ([0, "p"], [9, "r"]):
        target = 1 - int(model.decide(model.scores(schema.read(row)[None, :]))[0])
        found = [
            Explainer(model).using(m).explain(row, target=target) for m in (Search(), Search(table_rows=0), Enumerate())
        ]
        assert len({(a.status, round(a.upper, 9)) for a in found}) == 1
