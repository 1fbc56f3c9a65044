"""Flows: whatever steps a model is made of, the network gives the same values, and its rounding bound holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifonly.errors import ModelError
from ifonly.model import Model, Network, check_agreement, network_model
from ifonly.model.agreement import comparison_rows
from ifonly.model.flow import Flow
from ifonly.schema import Binary, Categorical, Integer, Real, Schema

SCHEMA = Schema((Real("x", -3, 5), Integer("n", 0, 90), Binary("b"), Categorical("c", ("u", "v", "w"))))
WIDTH = len(SCHEMA.columns)
STEPS = ("linear", "scale", "relu", "pick", "plus", "joined")


def imported_trees(seed: int, names: list[str], dtype: Any, rows: Any) -> tuple[Flow, Any]:
    """A random flow, and the same steps done one by one on rows in the given precision."""
    rng = np.random.default_rng(seed)
    flow, value = Flow.of(WIDTH), rows.astype(dtype)

    def numbers(*shape: int) -> Any:
        return rng.normal(size=shape).astype(dtype)

    for name in [*names, "linear"]:
        match name:
            case "linear":
                weight, bias = numbers(rng.integers(1, 7), flow.width), numbers(1)[0]
                flow, value = flow.linear(weight, bias, name="l"), value @ weight.T + bias
            case "scale":
                factor, shift = numbers(flow.width), numbers(flow.width)
                flow, value = flow.scale(factor, shift, name="s"), value * factor + shift
            case "relu":
                flow, value = flow.relu(), np.maximum(value, 0)
            case "pick":
                chosen = rng.integers(0, flow.width, rng.integers(1, 6)).tolist()
                flow, value = flow.select(chosen, name="p"), value[:, chosen]
            case "plus":
                weight = numbers(flow.width, flow.width)
                flow, value = flow.plus(flow.linear(weight, name="l"), name="+"), value + value @ weight.T
            case "joined":
                factor = numbers(1)[0]
                flow = flow.joined([flow.scale(factor, name="s")], name="j")
                value = np.concatenate([value, value * factor], axis=1)
                if flow.width > 12:
                    flow, value = flow.select(range(12), name="p"), value[:, :12]
    return flow, value


@given(st.integers(0, 10**6), st.lists(st.sampled_from(STEPS), max_size=8), st.sampled_from(["float32", "float64"]))
def test_any_steps_give_the_same_values_up_to_the_bound(seed: int, names: list[str], precision: Any) -> None:
    points = comparison_rows(SCHEMA, 50, seed)
    flow, value = imported_trees(seed, names, np.dtype(precision), SCHEMA.encode(points))
    network = flow.to_network()
    assert len(network.layers) == 1 + flow.depth
    model = Model(function=network, schema=SCHEMA, original=lambda p: value, precision=precision)
    worst = np.abs(value.astype(np.float64) - network.scores(SCHEMA.encode(points))).max(axis=0)
    assert (worst <= model.error).all()


def test_cancelling_steps_need_the_majorant() -> None:
    """1e8 x - 1e8 x = 0 in the network; the model that computes it step by step in float32 is far from that."""
    flow = Flow.of(1).linear([[1.0], [1.0]], [0.3, 0.0], name="a").scale([1e8, -1e8], name="b")
    network = flow.linear([[1.0, 1.0]], name="c").to_network()
    schema = Schema((Real("x", 0, 10),))
    model = Model(function=network, schema=schema, original=lambda p: p, precision="float32")
    x = np.linspace(0, 10, 1000, dtype=np.float32)
    deployed = (x + np.float32(0.3)) * np.float32(1e8) + x * np.float32(-1e8)
    worst = np.abs(deployed.astype(np.float64) - 0.3e8).max()
    without = Network.of([(layer.weight, layer.bias) for layer in network.layers])
    blind = Model(function=without, schema=schema, original=lambda p: p, precision="float32")
    assert model.error[0] >= worst > blind.error[0]


def test_misfits_are_named() -> None:
    start = Flow.of(3)
    with pytest.raises(ModelError, match="'add' adds 3 values to 2"):
        start.plus(start.select([0, 1], name="p"), name="add")
    with pytest.raises(ModelError, match="'s' combines 3 values with 2 numbers"):
        start.scale([1.0, 2.0], name="s")
    with pytest.raises(ModelError, match="'p' selects no values"):
        start.select([], name="p")
    with pytest.raises(ModelError, match="'s' has NaN or infinite weights"):
        start.scale(np.inf, name="s")


def test_relu_twice_is_relu_once() -> None:
    network = Flow.of(2).linear([[1.0, 2.0]], name="a").relu().relu().linear([[1.0]], name="b").to_network()
    assert network.hidden == (1,)


# ---------------------------------------------------------------------- models and agreement

NETWORK = Network.of([(np.arange(12.0).reshape(2, 6), [0.5, -1.0]), ([[1.0, -1.0]], [0.0])])


def test_rows_of_comparison_reach_every_corner() -> None:
    schema = Schema((*SCHEMA.features, Categorical("many", tuple(range(1500)))))
    points = comparison_rows(schema, 1000, seed=0)
    assert schema.admits(points).all() and len(points) == 1500
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Real | Integer):
            assert points[:, i].min() == feature.lower and points[:, i].max() == feature.upper
        else:
            assert set(points[:, i]) == set(range(len(feature.options)))


def test_disagreement_is_an_error_with_a_row() -> None:
    model = network_model(NETWORK, SCHEMA)
    off = Model(function=NETWORK, schema=SCHEMA, original=lambda p: model.original(p) + 0.25, classes=(0, 1))
    with pytest.raises(ModelError, match=r"disagree by 0\.25 \(allowed: .*on the row \{'x': .*column order"):
        check_agreement(off)
    slightly = Model(
        function=NETWORK, schema=SCHEMA, original=lambda p: model.original(p) * (1 + 1e-13), classes=(0, 1)
    )
    assert 0.0 < check_agreement(slightly).deviation < 1e-10


def test_one_rare_option_is_enough_to_disagree() -> None:
    """Uniform rows would miss one option of 2,000 in a third of all imports."""
    schema = Schema((Categorical("c", tuple(range(2000))),))
    network = Network.of([(np.zeros((1, 2000)), [1.0])])
    wrong = Model(function=network, schema=schema, original=lambda p: 1.0 + (p == 1234.0), classes=(0, 1))
    with pytest.raises(ModelError, match=r"\{'c': 1234\}"):
        check_agreement(wrong)


def test_models_are_checked() -> None:
    assert network_model(NETWORK, SCHEMA).classes == (0, 1)
    assert network_model(NETWORK, SCHEMA, regression=True).classes == ()
    assert network_model(NETWORK, SCHEMA, classes=(np.str_("a"), np.int64(1))).classes == ("a", 1)
    with pytest.raises(ModelError, match="takes 6 columns, but the schema encodes to 1: 'x'"):
        network_model(NETWORK, Schema((Real("x", 0, 1),)))
    with pytest.raises(ModelError, match="computes in float64 or in float32; got 'float16'"):
        network_model(NETWORK, SCHEMA, precision="float16")  # type: ignore[arg-type]
