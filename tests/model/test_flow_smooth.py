"""Flows with smooth activations: the network is the same function, also where values pass a smooth layer by, and no
machine that computes the model is farther off than the bound."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ifonly import Explainer, import_model
from ifonly.errors import ModelError
from ifonly.methods import Enumerate
from ifonly.model import Model, Network
from ifonly.model.flow import Flow
from ifonly.model.rounding import column_box
from ifonly.model.smooth import RELU, Activation, SmoothNetwork
from ifonly.model.smooth.activations import SideBySide
from ifonly.schema import Binary, Integer, Real, Schema

mp = pytest.importorskip("mpmath")
SCHEMA = Schema((Real("x", -3, 5), Integer("n", 0, 9), Binary("b"), Real("y", 0.001, 0.002)))
WIDTH = len(SCHEMA.columns)
COUNT = int(os.environ.get("IFONLY_GRAPHS", "40"))
STEPS = (
    "linear",
    "scale",
    "shift",
    "relu",
    "leaky",
    "clip",
    "pick",
    "plus",
    "join",
    "skip",
    "table",
    "smooth",
    "smooth",
    "smooth",
)
EXACT: dict[str, Any] = {
    "relu": lambda z, alpha: max(z, mp.mpf(0)),
    "tanh": lambda z, alpha: mp.tanh(z),
    "sigmoid": lambda z, alpha: 1 / (1 + mp.exp(-z)),
    "softplus": lambda z, alpha: max(z, mp.mpf(0)) + mp.log1p(mp.exp(-abs(z))),
    "gelu": lambda z, alpha: z * mp.ncdf(z),
    "silu": lambda z, alpha: z / (1 + mp.exp(-z)),
    "elu": lambda z, alpha: z if z > 0 else mp.mpf(alpha) * mp.expm1(z),
}


def deployed_curve(activation: Activation, value: Any) -> Any:
    """By torch, in the precision of the value."""
    z = torch.from_numpy(np.ascontiguousarray(value))
    if activation.name == "elu":
        return nn.functional.elu(z, activation.alpha).numpy()
    functions = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": nn.functional.silu, "gelu": nn.functional.gelu}
    functions["softplus"] = lambda given: nn.functional.softplus(given, threshold=1e9)
    return functions[activation.name](z).numpy()


def imported_trees(seed: int, dtype: Any, rows: Any) -> tuple[Flow, Any]:
    """A random chain as a flow, and its values of rows in a precision."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> Any:
        return (rng.choice([1.0, 1.0, 0.03, 3.0]) * rng.normal(size=shape)).astype(np.float32).astype(np.float64)

    flow, value = Flow.of(WIDTH, *column_box(SCHEMA)), rows.astype(dtype)
    whole = (flow.select([1], name="n"), rows[:, 1].astype(np.intp))
    seen = [(flow, value)]
    for _ in range(int(rng.integers(2, 9))):
        seen.append((flow, value))
        factor = numbers(flow.width)
        own = factor.astype(dtype)
        match rng.choice(STEPS):
            case "linear":
                weight, bias = numbers(int(rng.integers(1, 6)), flow.width), numbers(1)
                flow, value = flow.linear(weight, bias, name="l"), value @ weight.astype(dtype).T + bias.astype(dtype)
            case "scale":
                flow, value = flow.scale(factor, factor, name="s"), value * own + own
            case "shift":
                flow, value = flow.scale(1.0, factor, name="s"), value + own
            case "relu":
                flow, value = flow.relu(), np.maximum(value, 0)
            case "leaky":
                flow, value = flow.leaky_relu(factor, name="b"), np.where(value > 0, value, value * own)
            case "clip":
                low, high = np.sort(numbers(2))
                flow, value = flow.clip(low, high, name="c"), np.clip(value, dtype.type(low), dtype.type(high))
            case "pick":
                chosen = rng.integers(0, flow.width, rng.integers(1, 5)).tolist()
                flow, value = flow.select(chosen, name="p"), value[:, chosen]
            case "plus":
                other = flow.scale(factor, name="s")
                flow, value = flow.plus(other, name="+"), value + value * own
            case "skip" if flow.width < 5:
                before, known = seen[int(rng.integers(len(seen)))]
                flow, value = flow.joined([before], name="j"), np.concatenate([value, known], axis=1)
            case "table" if flow.width < 5:  # an embedding of n
                table = numbers(10, 2)
                found = whole[0].piecewise_linear(np.arange(10.0), table, name="e")
                flow = flow.joined([found], name="j")
                value = np.concatenate([value, table[whole[1]].astype(dtype)], axis=1)
            case "join" if flow.width < 5:
                flow = flow.joined([flow.scale(factor, name="s")], name="j")
                value = np.concatenate([value, value * own], axis=1)
            case _:
                name = rng.choice([name for name in EXACT if name != "relu"])
                activation = Activation(name, alpha=0.5 if name == "elu" else 1.0)
                flow, value = flow.smooth(activation), deployed_curve(activation, value)
    return flow, value


def exactly(function: Network | SmoothNetwork, row: Any) -> list[Any]:
    linear = function.linear if isinstance(function, SmoothNetwork) else function
    activations = function.activations if isinstance(function, SmoothNetwork) else [RELU] * (len(linear.layers) - 1)
    h = [mp.mpf(float(v)) for v in row]
    for k, layer in enumerate(linear.layers):
        h = [mp.fdot(r, h) + b for r, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)]
        if k < len(activations):
            layer_activation = activations[k]
            each = (
                [one for one, count in layer_activation.parts for _ in range(count)]
                if isinstance(layer_activation, SideBySide)
                else [layer_activation] * len(h)
            )
            h = [EXACT[one.name](z, one.alpha) for one, z in zip(each, h, strict=True)]
    return h


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_no_chain_is_farther_off_than_the_bound(precision: Any) -> None:
    smooth = 0
    for seed in range(COUNT):
        points = SCHEMA.sample(3, np.random.default_rng(seed))
        rows = SCHEMA.encode(points)
        flow, deployed = imported_trees(seed, np.dtype(precision), rows)
        function = flow.to_network()
        smooth += isinstance(function, SmoothNetwork)
        model = Model(function=function, schema=SCHEMA, original=lambda p: p, precision=precision)
        bounds, everywhere = model.error_at(points), model.error
        assert (bounds <= (1.0 + 1e-9) * everywhere).all()
        with mp.workdps(50):
            for i, row in enumerate(rows):
                for k, value in enumerate(exactly(function, row)):
                    off = abs(mp.mpf(float(deployed[i, k])) - value)
                    assert off <= mp.mpf(bounds[i, k]), f"grown({seed}), row {i}, output {k}"
    assert smooth > COUNT / 2


def test_a_relu_of_a_curve_is_no_curve() -> None:
    flow = Flow.of(1).smooth(Activation("tanh")).relu()
    function = flow.to_network()
    assert isinstance(function, SmoothNetwork) and [a.name for a in function.activations] == ["tanh", "relu"]
    assert (function.scores(np.array([[-1.0], [1.0]]))[:, 0] == [0.0, np.tanh(1.0)]).all()


def test_what_a_leaky_layer_relies_on_is_kept_beside_curves() -> None:
    """Its units are on within the bounds of the schema only."""
    function = Flow.of(WIDTH, *column_box(SCHEMA)).leaky_relu(0.1, name="b").smooth(Activation("tanh")).to_network()
    wider = Schema((Real("x", -4, 5), *SCHEMA.features[1:]))
    Model(function=function, schema=SCHEMA, original=lambda p: p, classes=tuple("abcd"))
    with pytest.raises(ModelError, match="only where 'x' is in"):
        Model(function=function, schema=wider, original=lambda p: p, classes=tuple("abcd"))


def test_branches_with_the_same_curve_are_one_layer() -> None:
    rows = SCHEMA.encode(SCHEMA.sample(20, np.random.default_rng(1)))
    weights = np.random.default_rng(2).normal(size=(2, 3, WIDTH))
    start, tanh = Flow.of(WIDTH), Activation("tanh")
    one, other = (start.linear(weight, name="l").smooth(tanh) for weight in weights)
    for function, value in (
        (one.joined([other], name="j").to_network(), np.hstack([np.tanh(rows @ w.T) for w in weights])),
        (one.plus(other, name="+").to_network(), np.tanh(rows @ weights[0].T) + np.tanh(rows @ weights[1].T)),
    ):
        assert isinstance(function, SmoothNetwork) and function.activations == (tanh,)
        assert np.allclose(function.scores(rows), value, rtol=0.0, atol=1e-12)


def test_other_values_pass_a_curve_in_relus_beside_it() -> None:
    rows = SCHEMA.encode(SCHEMA.sample(20, np.random.default_rng(1)))
    weights = np.random.default_rng(2).normal(size=(2, 3, WIDTH))
    start, tanh = Flow.of(WIDTH, *column_box(SCHEMA)), Activation("tanh")
    one = start.linear(weights[0], name="l").smooth(tanh)
    first = np.tanh(rows @ weights[0].T)
    for beside, value in (
        (start.linear(weights[1], name="l").relu(), np.maximum(rows @ weights[1].T, 0.0)),
        (one.linear(np.eye(3), name="l").smooth(tanh), np.tanh(first)),
        (start.linear(weights[1], name="l").smooth(Activation("sigmoid")), 1 / (1 + np.exp(-rows @ weights[1].T))),
    ):
        function = one.joined([beside], name="j").to_network()
        assert isinstance(function, SmoothNetwork) and isinstance(function.activations[-1], SideBySide)
        assert np.allclose(function.scores(rows), np.hstack([first, value]), rtol=0.0, atol=1e-12)
    names = [SideBySide(((RELU, 2), (tanh, 1))), SideBySide(((RELU, 1), (tanh, 2)))]
    layers = Network.of([(weights[0], np.zeros(3)), (np.ones((1, 3)), np.zeros(1))])
    assert SmoothNetwork(layers, names[:1]).fingerprint != SmoothNetwork(layers, names[1:]).fingerprint


class Skips(nn.Module):
    """Over a tanh, or around a LeakyReLU that comes before it."""

    def __init__(self, *, over: bool) -> None:
        super().__init__()
        self.over, self.first, self.second, self.last = over, nn.Linear(WIDTH, 5), nn.Linear(5, 5), nn.Linear(5, 1)

    def forward(self, x: Any) -> Any:
        h = nn.functional.leaky_relu(self.first(x), 0.1)
        if self.over:
            return self.last(h + torch.tanh(self.second(h)))
        return self.last(torch.tanh(h + nn.functional.leaky_relu(self.second(h), 0.1)))


@pytest.mark.parametrize("over", [False, True])
def test_skip_connections(over: bool) -> None:
    torch.manual_seed(0)
    model = import_model(Skips(over=over), SCHEMA)
    assert isinstance(model.function, SmoothNetwork)
    assert [a.name for a in model.function.activations] == (["relu", "tanh"] if over else ["relu", "relu", "tanh"])
    assert model.deviation < 1e-5
    finite = Schema((Integer("x", -3, 5), Integer("n", 0, 9), Binary("b"), Integer("y", 0, 3)))
    explainer = Explainer(import_model(Skips(over=over), finite))
    for point in finite.sample(5, np.random.default_rng(0)):
        answers = [one.explain(finite.row(point)) for one in (explainer, explainer.using(Enumerate()))]
        assert answers[0].status == answers[1].status
        assert answers[0].distance == pytest.approx(answers[1].distance, abs=1e-9)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "gelu", "silu", "elu"])
def test_what_was_lost_before_a_curve_is_carried_through_it(name: str) -> None:
    """Large numbers cancel, which loses far more than the curve does."""
    schema, curve = Schema((Real("x", 0.5, 1.0),)), Activation(name)  # type: ignore[arg-type]
    weights = np.float64([[1e4], [1e4 * (1.0 - 2.0**-14)]]), np.float64([[1.0, -1.0]])
    model = Model(
        function=Flow.of(1).linear(weights[0], name="l").relu().linear(weights[1], name="l").smooth(curve).to_network(),
        schema=schema, original=lambda p: p, precision="float32",
    )  # fmt: skip
    points = schema.sample(200, np.random.default_rng(0))
    z = (points.astype(np.float32) @ weights[0].astype(np.float32).T) @ weights[1].astype(np.float32).T
    off = np.abs(deployed_curve(curve, z) - model.exact_scores(points))
    bounds = model.error_at(points)
    assert (off <= bounds).all()
    assert off.max() > 64.0 * curve.library_error(2.0**-24, z, z).max(), "the curve's own loss is not what counts"
    assert bounds.max() < 40.0 * off.max()
