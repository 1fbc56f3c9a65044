"""Graphs of flows: whatever is bent, compared, added and joined at whatever depth, the network is the same function, and
no machine that computes the graph is farther off than the bound."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ifonly.errors import ModelError
from ifonly.model import Model, Network
from ifonly.model.flow import Flow
from ifonly.model.rounding import column_box
from ifonly.schema import Binary, Integer, Real, Schema

SCHEMA = Schema((Real("x", -3, 5), Integer("n", 0, 90), Binary("b"), Real("y", 0.001, 0.002)))
WIDTH = len(SCHEMA.columns)
COUNT = int(os.environ.get("IFONLY_GRAPHS", "60"))
STEPS = ("linear", "scale", "shift", "relu", "leaky", "abs", "clip", "floor", "ceiling", "pick", "plus", "minus", "join",
         "max", "min", "pool")  # fmt: skip


class Machine:
    """Computes on rows in one precision, or exactly (with fractions), what a flow is told beside it."""

    def __init__(self, dtype: Any, rng: Any) -> None:
        self.dtype, self.rng = dtype, rng

    def numbers(self, *shape: int) -> Any:
        """Of float32, so that each machine has the same ones."""
        size = self.rng.choice([1.0, 1.0, 0.03, 40.0])
        return (size * self.rng.normal(size=shape)).astype(np.float32).astype(np.float64)

    def own(self, numbers: Any) -> Any:
        array = np.asarray(numbers)
        if self.dtype is object:
            return np.array([Fraction(float(v)) for v in array.ravel()], dtype=object).reshape(array.shape)
        return array.astype(self.dtype)


def imported_trees(seed: int, dtype: Any, rows: Any) -> tuple[Flow, Any]:
    """A random graph as a flow, and its values of rows by a machine: the same graph for each."""
    rng = np.random.default_rng(seed)
    machine = Machine(dtype, rng)
    own, numbers = machine.own, machine.numbers
    box = column_box(SCHEMA) if rng.random() < 0.8 else ()
    pool: list[tuple[Flow, Any]] = [(Flow.of(WIDTH, *box), own(rows))]

    def linear(flow: Flow, value: Any, width: int) -> tuple[Flow, Any]:
        weight, bias = numbers(width, flow.width), numbers(width)
        return flow.linear(weight, bias, name="l"), value.dot(own(weight).T) + own(bias)

    for _ in range(int(rng.integers(2, 9))):
        flow, value = pool[int(rng.integers(max(0, len(pool) - 3), len(pool)))]
        other, second = pool[int(rng.integers(len(pool)))]
        if other.width != flow.width:
            other, second = linear(other, second, flow.width)
        factor, zero = numbers(flow.width), own(0.0)
        match rng.choice(STEPS):
            case "linear":
                made = linear(flow, value, int(rng.integers(1, 6)))
            case "scale":
                shift = numbers(flow.width)
                made = flow.scale(factor, shift, name="s"), value * own(factor) + own(shift)
            case "shift":
                made = flow.scale(1.0, factor, name="s"), value + own(factor)
            case "relu":
                made = flow.relu(), np.maximum(value, zero)
            case "leaky":
                made = flow.leaky_relu(factor, name="b"), np.where(value > 0, value, value * own(factor))
            case "abs":
                made = flow.leaky_relu(-1.0, name="b"), np.abs(value)
            case "clip":
                ends = np.sort(numbers(2))
                made = flow.clip(*ends, name="c"), np.minimum(np.maximum(value, own(ends[0])), own(ends[1]))
            case "floor":
                made = flow.clip(lower=factor, name="c"), np.maximum(value, own(factor))
            case "ceiling":
                made = flow.clip(upper=factor, name="c"), np.minimum(value, own(factor))
            case "pick":
                chosen = rng.integers(0, flow.width, rng.integers(1, 5)).tolist()
                made = flow.select(chosen, name="p"), value[:, chosen]
            case "plus":
                made = flow.plus(other, name="+"), value + second
            case "minus":
                made = flow.plus(other, name="-", sign=-1.0), value - second
            case "join":
                made = flow.joined([other], name="j"), np.concatenate([value, second], axis=1)
                if made[0].width > 6:
                    made = made[0].select(range(6), name="p"), made[1][:, :6]
            case "max":
                made = flow.maximum(other, name="m"), np.maximum(value, second)
            case "min":
                made = flow.minimum(other, name="m"), np.minimum(value, second)
            case _:
                windows = [rng.integers(0, flow.width, rng.integers(1, 5)).tolist() for _ in range(2)]
                made = (
                    flow.window_maximum(windows, name="w"),
                    np.stack([value[:, w].max(axis=1) for w in windows], axis=1),
                )
        pool.append(made)
    return linear(*pool[-1], 2) if rng.random() < 0.7 else pool[-1]


def exactly(network: Network, row: Any) -> list[Fraction]:
    h = [Fraction(float(v)) for v in row]
    for k, layer in enumerate(network.layers):
        z = [sum((Fraction(w) * v for w, v in zip(r, h, strict=True) if w), Fraction(b))
             for r, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)]  # fmt: skip
        h = [max(v, Fraction(0)) for v in z] if k < len(network.layers) - 1 else z
    return h


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_no_graph_is_farther_off_than_the_bound(precision: Any) -> None:
    for seed in range(COUNT):
        points = SCHEMA.sample(6, np.random.default_rng(seed))
        rows = SCHEMA.encode(points)
        flow, deployed = imported_trees(seed, np.dtype(precision), rows)
        network = flow.to_network()
        model = Model(function=network, schema=SCHEMA, original=lambda p: p, precision=precision)
        bounds, everywhere = model.error_at(points), model.error
        for i, row in enumerate(rows):
            real = exactly(network, row)
            for k, value in enumerate(real):
                off = abs(Fraction(float(deployed[i, k])) - value)
                assert off <= Fraction(bounds[i, k]) <= Fraction((1.0 + 1e-9) * everywhere[k]), (
                    f"grown({seed}), row {i}, output {k}"
                )


def test_the_network_is_the_graph_in_exact_arithmetic() -> None:
    """Up to the importer's own products in float64."""
    for seed in range(COUNT):
        points = SCHEMA.sample(3, np.random.default_rng(seed))
        rows = SCHEMA.encode(points)
        flow, exact = imported_trees(seed, object, rows)
        network = flow.to_network()
        bound = Model(function=network, schema=SCHEMA, original=lambda p: p).error_at(points)
        for i, row in enumerate(rows):
            for k, value in enumerate(exactly(network, row)):
                assert abs(exact[i, k] - value) <= Fraction(bound[i, k]), f"grown({seed}), row {i}, output {k}"


def test_exact_weights_make_exact_networks() -> None:
    """Whole numbers and halves: the network is the graph to the last bit."""
    start = Flow.of(2, [-4.0, 0.0], [4.0, 9.0])
    bent = start.linear([[1.0, -2.0], [3.0, 1.0]], [0.5, -1.0], name="l").leaky_relu([0.25, -1.0], name="b")
    flow = bent.maximum(start, name="m").clip(-2.0, 8.0, name="c").plus(start, name="+")
    rows = np.array([[x, y] for x in np.arange(-4.0, 4.5, 0.5) for y in np.arange(0.0, 9.5, 0.5)])
    z = rows @ np.array([[1.0, 3.0], [-2.0, 1.0]]) + [0.5, -1.0]
    value = np.clip(np.maximum(np.where(z > 0, z, z * [0.25, -1.0]), rows), -2.0, 8.0) + rows
    assert np.array_equal(flow.to_network().scores(rows), value)


def test_what_passes_a_layer_by_is_never_in_doubt() -> None:
    """One unit that bends for each LeakyReLU; the one beside it is on, whatever the row."""
    start = Flow.of(WIDTH, *column_box(SCHEMA))
    rng = np.random.default_rng(0)
    flow = start.linear(rng.normal(size=(5, WIDTH)), name="l").leaky_relu(0.01, name="b")
    network = flow.plus(flow.linear(rng.normal(size=(5, 5)), name="l").relu(), name="+").to_network()
    assert network.hidden == (10, 10)
    h = SCHEMA.encode(SCHEMA.sample(2000, rng))
    on = []
    for layer in network.layers[:-1]:
        z = h @ layer.weight.T + layer.bias
        on += (z > 0.0).all(axis=0).tolist()
        h = np.maximum(z, 0.0)
    assert sum(on) >= 10


def test_wide_values_pass_by_in_the_units_they_are_made_of() -> None:
    start = Flow.of(WIDTH, *column_box(SCHEMA))
    deep = start.linear(np.ones((3, WIDTH)), name="l").relu().linear(np.ones((3, 3)), name="l").relu()
    wide = deep.linear(np.ones((1, 3)), name="l").plus(start.linear(np.ones((1, WIDTH)), name="l"), name="+")
    assert wide.to_network().hidden == (4, 4)  # one number beside the three, not four columns
    skipped = deep.joined([start.select([1, 2], name="p")], name="j")
    assert skipped.to_network().hidden == (5, 5)


def test_misfits_are_named() -> None:
    start = Flow.of(3)
    with pytest.raises(ModelError, match="'m' compares 3 values with 2"):
        start.maximum(start.select([0, 1], name="p"), name="m")
    with pytest.raises(ModelError, match="'c' keeps values above 2 and below 1, which none can be"):
        start.clip(2.0, 1.0, name="c")
    with pytest.raises(ModelError, match="'c' has bounds that are NaN"):
        start.clip([0.0, np.inf, 1.0], name="c")
    with pytest.raises(ModelError, match="'w' takes the largest of no values"):
        start.window_maximum([], name="w")
    for asked in (
        lambda f: f.leaky_relu(0.1, name="b"),
        lambda f: f.joined([f], name="j"),
        lambda f: f.maximum(f, name="m"),
    ):
        with pytest.raises(ModelError, match="more than the 100000 values or 200000000 weights"):
            asked(Flow.of(60_000).relu())  # no memory is taken for it
    deep = start
    with pytest.raises(ModelError, match="A network has between 1 and 1000 layers; this model has more"):
        for _ in range(1001):
            deep = deep.scale(1.0, 1.0, name="s").relu()
