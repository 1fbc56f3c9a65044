"""E bounds what a deployed model can be off by: hostile weights, any order of summation, with and without flushing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ifonly.errors import ModelError, UnsupportedQuestion
from ifonly.explainer import Explainer
from ifonly.model import Model, Network, network_model
from ifonly.model.flow import Flow
from ifonly.problem import ClassTarget, Question
from ifonly.problem.lowering import lower
from ifonly.results import Nearest
from ifonly.schema import Integer, Real, Schema
from ifonly.solvers.search.enumerate import Enumerate
from ifonly.solvers.search.error_bounds import errors_everywhere

MAGNITUDES = {
    "float32": (0.0, 1e-45, 1e-40, 1e-38, 1e-30, 1e-20, 1e-8, 1.0, 1e8, 1e20, 1e30, 1e37),
    "float64": (0.0, 5e-324, 1e-310, 1e-308, 1e-250, 1e-160, 1.0, 1e100, 1e200, 1e300),
}
RANGES = ((0, 1), (0, 5), (-1e-30, 1e-30), (-3e-38, 2e-38), (0, 1e-45), (0, 1e8), (-1e-310, 1e-310))


class Arithmetic:
    """A machine of this precision that adds in a random order; one that flushes knows no subnormal numbers at all."""

    def __init__(self, precision: str, rng: Any, flushes: bool) -> None:
        self.type, self.rng, self.flushes = np.dtype(precision).type, rng, flushes

    def rounded(self, value: Any) -> Any:
        value = self.type(value)
        return self.type(0.0) if self.flushes and abs(value) < np.finfo(self.type).tiny else value

    def total(self, terms: list[Any]) -> Any:
        while len(terms) > 1:
            i, j = self.rng.choice(len(terms), 2, replace=False)
            both = self.rounded(terms[i] + terms[j])
            terms = [both, *(t for k, t in enumerate(terms) if k not in (i, j))]
        return terms[0]

    def affine(self, weight: Any, bias: Any, h: list[Any]) -> list[Any]:
        read = [self.rounded(v) for v in h]
        return [
            self.total([self.rounded(b), *(self.rounded(self.rounded(w) * v) for w, v in zip(row, read, strict=True))])
            for row, b in zip(weight, bias, strict=True)
        ]


def exactly(layers: Any, x: Any) -> list[Fraction]:
    h = [Fraction(float(v)) for v in x]
    for k, (weight, bias) in enumerate(layers):
        h = [
            sum((Fraction(float(w)) * v for w, v in zip(row, h, strict=True)), Fraction(float(b)))
            for row, b in zip(weight, bias, strict=True)
        ]
        if k < len(layers) - 1:
            h = [max(v, Fraction(0)) for v in h]
    return h


def hostile(rng: Any, precision: str, *shape: int) -> Any:
    kinds = rng.choice(MAGNITUDES[precision], size=rng.integers(1, 4))
    return (rng.choice(kinds, size=shape) * rng.normal(size=shape)).astype(precision)


def within(deployed: list[Any], exact: list[Fraction], error: Any) -> None:
    for ours, real, bound in zip(deployed, exact, error, strict=True):
        assert np.isfinite(ours) or bound == np.inf
        assert bound == np.inf or abs(Fraction(float(ours)) - real) <= Fraction(float(bound))


@pytest.mark.long(keep=1)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_no_deployed_model_is_farther_off_than_the_bound(precision: Any, flushes: bool) -> None:
    rng = np.random.default_rng(7)
    for _ in range(250):
        ends = [RANGES[k] for k in rng.integers(0, len(RANGES), rng.integers(1, 4))]
        schema = Schema(tuple(Real(f"x{i}", *end) for i, end in enumerate(ends)))
        sizes = [len(ends), *rng.integers(1, 4, rng.integers(0, 3)).tolist(), 1]
        layers = [(hostile(rng, precision, b, a), hostile(rng, precision, b)) for a, b in zip(sizes, sizes[1:])]  # noqa: B905
        model = network_model(Network.of(layers), schema, precision=precision)
        error, machine = model.error, Arithmetic(precision, rng, flushes)
        for _ in range(4):
            x = [float(rng.choice([*end, rng.uniform(*end)])) for end in ends]
            h: list[Any] = [machine.type(v) for v in x]
            for k, (weight, bias) in enumerate(layers):
                h = machine.affine(weight, bias, h)
                h = [max(v, machine.type(0.0)) for v in h] if k < len(layers) - 1 else h
            within(h, exactly(layers, x), error)
            within(h, exactly(layers, x), model.error_at(np.array([x]))[0])


@pytest.mark.long(keep=1)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_steps_that_an_importer_multiplied_are_counted_one_by_one(precision: Any, flushes: bool) -> None:
    """A scaling by 1e-30 and one by 1e30 cancel in the network, but not in the model that does one after the other."""
    rng = np.random.default_rng(8)
    for _ in range(250):
        ends = [RANGES[k] for k in rng.integers(0, len(RANGES), rng.integers(1, 4))]
        schema = Schema(tuple(Real(f"x{i}", *end) for i, end in enumerate(ends)))
        width = len(ends)
        steps = [(hostile(rng, precision, width, width), hostile(rng, precision, width)) for _ in range(3)]
        steps.append((hostile(rng, precision, 1, width), hostile(rng, precision, 1)))
        flow = Flow.of(width)
        for weight, bias in steps:
            flow = flow.linear(weight, bias, name="step")
        try:
            network = flow.to_network()
        except ModelError:  # the product of the steps is beyond float64
            continue
        model = Model(function=network, schema=schema, original=lambda p: p, classes=(0, 1), precision=precision)
        error, machine = model.error, Arithmetic(precision, rng, flushes)
        x = [float(rng.choice([*end, rng.uniform(*end)])) for end in ends]
        h: list[Any] = [machine.type(v) for v in x]
        for weight, bias in steps:
            h = machine.affine(weight, bias, h)
        exact = exactly([(layer.weight, layer.bias) for layer in network.layers], x)
        within(h, exact, error)
        within(h, exact, model.error_at(np.array([x]))[0])


@pytest.mark.long(keep=1)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_shift_and_a_scaling_before_a_network_are_counted_as_they_are_computed(precision: Any, flushes: bool) -> None:
    """(x - mean) / std, then layers: over the schema, and at the row itself."""
    rng = np.random.default_rng(9)
    sharper = 0
    for _ in range(250):
        ends = [RANGES[k] for k in rng.integers(0, len(RANGES), rng.integers(1, 4))]
        schema = Schema(tuple(Real(f"x{i}", *end) for i, end in enumerate(ends)))
        width, inner = len(ends), int(rng.integers(1, 4))
        mean, factor = hostile(rng, precision, width), hostile(rng, precision, width)
        first = hostile(rng, precision, inner, width), hostile(rng, precision, inner)
        last = hostile(rng, precision, 1, inner), hostile(rng, precision, 1)
        flow = Flow.of(width).scale(1.0, -mean.astype(float), name="centre").scale(factor.astype(float), name="scale")
        try:
            network = flow.linear(*first, name="first").relu().linear(*last, name="last").to_network()
        except ModelError:
            continue
        model = Model(function=network, schema=schema, original=lambda p: p, classes=(0, 1), precision=precision)
        machine = Arithmetic(precision, rng, flushes)
        x = [float(rng.choice([*end, rng.uniform(*end)])) for end in ends]
        h: list[Any] = [machine.rounded(machine.rounded(v) - machine.rounded(m)) for v, m in zip(x, mean, strict=True)]
        h = [machine.rounded(v * machine.rounded(f)) for v, f in zip(h, factor, strict=True)]
        h = machine.affine(*last, [max(v, machine.type(0.0)) for v in machine.affine(*first, h)])
        exact = exactly([(layer.weight, layer.bias) for layer in network.layers], x)
        at_row = model.error_at(np.array([x]))[0]
        within(h, exact, model.error)
        within(h, exact, at_row)
        sharper += bool((at_row < 0.5 * model.error).any())
    assert sharper > 5


def test_what_is_lost_below_the_least_normal_number_is_no_proof() -> None:
    """In float32 1e-30 * 1e-30 is 0, so the deployed model decides class 0 where real arithmetic says 1."""
    network = Network.of([([[1e-30]], [0.0]), ([[1e-30]], [0.0])])
    schema = Schema((Real("x", 0.5, 1),))

    def deployed(points: Any) -> Any:
        h = points.astype(np.float32)
        for layer in network.layers:
            h = np.maximum(h @ layer.weight.T.astype(np.float32), 0) + layer.bias.astype(np.float32)
        return h.astype(np.float64)

    model = Model(function=network, schema=schema, original=deployed, classes=(0, 1), precision="float32")
    answer = Explainer(model).explain({"x": 0.75}, target=ClassTarget(0, margin=0.0))
    assert isinstance(answer, Nearest)
    assert answer.changes == ()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_model_that_may_overflow_is_refused_in_a_sentence(precision: Any) -> None:
    large = 1e30 if precision == "float32" else 1e200
    network = Network.of([([[large]], [0.0]), ([[large]], [0.0]), ([[1.0 / large]], [-1.0])])
    schema = Schema((Integer("n", 0, 9),))
    model = network_model(network, schema, precision=precision)
    assert model.error == np.inf
    for method in (None, Enumerate()):
        with pytest.raises(UnsupportedQuestion, match=f"overflow {precision}.*narrow the schema's bounds"):
            Explainer(model).using(method).explain({"n": 0}, target=1)


def test_the_searchs_own_slack_counts_underflow() -> None:
    network = Network.of([(np.full((2, 2), 1e-200), np.zeros(2)), (np.full((1, 2), 1e-200), np.zeros(1))])
    model = network_model(network, Schema((Real("x", 0, 1), Real("y", 0, 1))))
    errors = errors_everywhere(lower(Question(model=model, target=ClassTarget(1, margin=0.0))))
    assert (errors.slack[:, -1] >= np.finfo(np.float64).tiny).all()
    assert (errors.need[:, 0, 0] <= -np.finfo(np.float64).tiny).all()
