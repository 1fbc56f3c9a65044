"""Random networks over finite spaces, and all networks at the corners of a box around their weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ifonly import Categorical, Integer, Model, Network, Schema
from ifonly.model import network_model

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WeightProblem:
    """A model, how far its weights may change, and every row of its schema."""

    model: Model
    delta: float
    relative: bool
    points: Floats


def random_weight_problem(seed: int, *, hidden: int, outputs: int = 1) -> WeightProblem:
    rng = np.random.default_rng([seed, hidden, outputs])
    ends = [sorted(rng.choice(np.arange(-4, 5), 2, replace=False).tolist()) for _ in range(2)]
    schema = Schema([Integer("A", *ends[0]), Integer("B", *ends[1]), Categorical("C", ["x", "y"])][: 2 + seed % 2])
    sizes = [len(schema.columns), *[int(rng.integers(1, 3)) for _ in range(hidden)], outputs]
    layers = [(rng.normal(size=(b, a)), 0.5 * rng.normal(size=b)) for a, b in zip(sizes, sizes[1:], strict=False)]
    values = [range(len(f.options)) if isinstance(f, Categorical) else range(int(f.lower), int(f.upper) + 1)
              for f in schema.features]  # fmt: skip
    points = np.array(list(product(*values)), dtype=np.float64)
    delta = float(rng.choice([0.01, 0.05, 0.2]))
    return WeightProblem(network_model(Network.of(layers), schema), delta, seed % 3 == 0, points)


def moved(layers: list[tuple[Floats, Floats]], share: Floats, delta: float, relative: bool) -> list[tuple[Floats, Floats]]:  # fmt: skip
    """The layers with each weight and bias moved by these shares of the most that it may."""
    result, place = [], 0
    for layer in layers:
        parts = []
        for part in layer:
            own = share[place : place + part.size].reshape(part.shape)
            parts.append(part + own * delta * (np.abs(part) if relative else 1.0))
            place += part.size
        result.append((parts[0], parts[1]))
    return result


def corners(problem: WeightProblem) -> Iterator[Network]:
    """Every network at a corner of the box."""
    layers = [(layer.weight, layer.bias) for layer in problem.model.network.layers]
    count = sum(part.size for layer in layers for part in layer)
    for share in product((-1.0, 1.0), repeat=count):
        yield Network.of(moved(layers, np.array(share), problem.delta, problem.relative))


def drawn(problem: WeightProblem, many: int, seed: int = 0) -> Iterator[Network]:
    """Networks of the box: some inside, some at its corners."""
    rng = np.random.default_rng(seed)
    layers = [(layer.weight, layer.bias) for layer in problem.model.network.layers]
    count = sum(part.size for layer in layers for part in layer)
    for k in range(many):
        share = rng.choice([-1.0, 1.0], count) if k % 2 else rng.uniform(-1.0, 1.0, count)
        yield Network.of(moved(layers, share, problem.delta, problem.relative))


def lowest_by_trying(problem: WeightProblem, sign: float) -> Floats:
    """The lowest signed score of each row over all corners. With one hidden layer it is the lowest of the whole box:
    there a score rises or falls with each single weight throughout."""
    encoded = problem.model.schema.encode(problem.points)
    lowest = np.full(len(encoded), math.inf)
    for network in corners(problem):
        lowest = np.minimum(lowest, sign * network.scores(encoded)[:, 0])
    return lowest
