"""Fewer neurons, the same function to the last bit; and questions on the margin that end at once because of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ifonly import ClassTarget, Explainer, Integer, Network, Schema
from ifonly.problem.simplify import simplified


def exact(stack: Any, x: list[Fraction]) -> list[Fraction]:
    h = x
    for k, (weight, bias) in enumerate(stack):
        z = [sum((Fraction(w) * v for w, v in zip(row, h, strict=True)), Fraction(b))
             for row, b in zip(weight.tolist(), bias.tolist(), strict=True)]  # fmt: skip
        h = z if k == len(stack) - 1 else [max(v, Fraction(0)) for v in z]
    return h


def test_random_stacks_with_twins_and_dead_neurons_stay_what_they_are() -> None:
    narrower = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        sizes = [int(n) for n in rng.integers(1, 6, rng.integers(2, 5))]
        stack = []
        for inputs, outputs in zip(sizes, sizes[1:], strict=False):
            weight = rng.choice([0.0, 1.0, -2.0, 0.3, 1e-3, 7.0], (outputs, inputs)) * rng.choice([1.0, 1e-8, 1e8])
            bias = rng.choice([0.0, 1.0, -0.7], outputs)
            for _ in range(int(rng.integers(0, 3))):
                i, j = rng.integers(0, outputs, 2)
                factor = float(rng.choice([1.0, 0.25, 8.0]))
                weight[j], bias[j] = factor * weight[i], factor * bias[i]
            stack.append((weight, bias))
        fewer = simplified(stack)
        narrower += sum(len(b) for _, b in fewer) < sum(len(b) for _, b in stack)
        for _ in range(5):
            x = [Fraction(v) for v in (rng.normal(size=sizes[0]) * rng.choice([1.0, 100.0])).tolist()]
            assert exact(fewer, x) == exact(stack, x), seed
    assert narrower > 50


def test_neurons_that_cancel_do_not_keep_the_search_busy() -> None:
    schema = Schema([Integer("x0", 0, 10_000), Integer("x2", 0, 10_000)])
    network = Network.of([([[2.0, -3.0], [2.0, -3.0]], [2119.0, 2119.0]), ([[2.0, -2.0]], [0.0])])
    answer = Explainer(network, schema=schema).explain([7447, 1529], target=ClassTarget(1, 0.0))
    assert answer.nodes < 100
