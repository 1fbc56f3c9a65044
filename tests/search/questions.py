"""Questions that are made for a purpose: hard ones whose answer is known, and ones that sit on the edge of float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model import Model, Network, network_model
from ifonly.problem import ClassTarget, Distance, Question
from ifonly.schema import Categorical, Real, Schema

Floats = NDArray[np.float64]


def tents(count: int) -> Model:
    """score = sum |x_i| - count / 2 on [-1, 1]^count: from 0, all 2^count corners are as good, and all must be ruled out.

    The nearest point from 0 has |x_i| = 1/2 everywhere, at distance 1/4 in l1, l2 and (up to 1/count) linf.
    """
    schema = Schema([Real(f"x{i}", -1, 1) for i in range(count)])
    both = np.concatenate([np.eye(count), -np.eye(count)])
    return network_model(Network.of([(both, np.zeros(2 * count)), (np.ones((1, 2 * count)), [-0.5 * count])]), schema)


TENTS_OPTIMUM = 0.25


def hard_question(norm: Any = "l2", count: int = 14) -> Question:
    """Minutes of work (under l1 only without probing), and an answer that is known: `TENTS_OPTIMUM` from 0, under l1 and
    l2."""
    return Question(model=tents(count), target=ClassTarget(1, margin=0.0), distance=Distance(norm))


def hard_people(count: int, features: int = 14) -> Floats:
    """Distinct people for whom the hard question is hard."""
    people = np.random.default_rng(0).uniform(-1e-3, 1e-3, (count, features))
    people[0] = 0.0
    return people


def beside_the_boundary(seed: int, away: float) -> tuple[Model, Floats]:
    """A network on raw inputs (0 to 1000) and a denied point at a distance of about `away` from where the decision changes."""
    rng = np.random.default_rng(seed)
    widths = (6, 10, 10, 1)
    layers = [
        (rng.normal(size=(b, a)) * math.sqrt(2.0 / a), rng.normal(size=b))
        for a, b in zip(widths[:-1], widths[1:], strict=True)
    ]
    layers[0] = (layers[0][0], layers[0][1] - layers[0][0].sum(axis=1) * 500.0)
    network = Network.of(layers)
    points = rng.uniform(0.0, 1000.0, (500, 6))
    scores = network.scores(points)[:, 0]
    start, bad, good = points[scores.argmin()], points[scores.argmin()], points[scores.argmax()]
    assert scores.min() < 0.0 < scores.max()
    for _ in range(100):
        middle = 0.5 * (bad + good)
        if network.scores(middle)[0] < 0.0:
            bad = middle
        else:
            good = middle
    back = (start - bad) / np.linalg.norm(start - bad)
    return network_model(network, Schema([Real(f"x{i}", 0, 1000) for i in range(6)])), bad + 1000.0 * away * back


def many_classes(seed: int, *, hidden: bool = False) -> tuple[Model, Floats]:
    """A model of three to five classes, linear or with one small hidden layer, and a point.

    The nearest row of another class often lies where two or more conditions bind at once.
    """
    rng = np.random.default_rng([seed, 5] if hidden else seed)
    if not hidden:
        features, classes = int(rng.integers(2, 8)), int(rng.integers(3, 6))
        schema = Schema([Real(f"x{i}", 0, float(rng.choice([1.0, 1.0, 100.0]))) for i in range(features)])
        weight = rng.normal(size=(classes, features)) / np.array([feature.width for feature in schema])
        return network_model(Network.of([(weight, 0.3 * rng.normal(size=classes))]), schema), schema.sample(1, rng)[0]
    features, classes, neurons = int(rng.integers(2, 7)), int(rng.integers(3, 5)), int(rng.integers(2, 9))
    reals = [Real(f"x{i}", 0, float(rng.choice([1.0, 1.0, 100.0]))) for i in range(features)]
    schema = Schema([*reals, Categorical("c", ["a", "b", "c"])])
    first = 2.0 * rng.normal(size=(neurons, len(schema.columns)))
    first[:, :features] /= np.array([feature.width for feature in reals])
    layers = [(first, 0.5 * rng.normal(size=neurons))]
    layers.append((rng.normal(size=(classes, neurons)), 0.3 * rng.normal(size=classes)))
    return network_model(Network.of(layers), schema), schema.sample(1, rng)[0]
