"""Random questions that rounding is hard on: features with one value, ranges far from zero, very few neurons.

Terms of a million cancel, distances are shares of a range of two or three, and most of the space is a single row: what
is closed by a hair in floating point must be closed in exact arithmetic too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ifonly.model import Network, network_model
from ifonly.problem import ClassTarget, Distance, Question
from ifonly.schema import Binary, Categorical, Feature, Integer, Real, Schema

FAR = (0, 3, 1_000, 1_000_000, 123_456_789)
NORMS = ("l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7})


def far_problem(seed: int) -> tuple[Question, NDArray[np.float64]]:
    """A question and a factual."""
    rng = np.random.default_rng([seed, 4])
    schema = Schema([_feature(rng, f"f{i}") for i in range(int(rng.integers(1, 7)))])
    sizes = [len(schema.columns), *rng.integers(1, 5, int(rng.integers(0, 4))).tolist(), 1]
    layers = [_layer(rng, a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    rows = schema.sample(40, rng)
    if rng.random() < 0.8:  # centred on a row: what is far from zero cancels, and ReLUs bend inside the space
        hidden = schema.encode(rows)
        for k, (weight, bias) in enumerate(layers):
            layers[k] = weight, bias - weight @ hidden[int(rng.integers(len(rows)))]
            hidden = np.maximum(hidden @ weight.T + layers[k][1], 0.0)
    scores = Network.of(layers).scores(schema.encode(rows))[:, 0]
    weight, bias = layers[-1]
    layers[-1] = weight, bias - float(rng.choice([scores[0], np.median(scores), scores.max(), 0.0]))
    question = Question(
        model=network_model(Network.of(layers), schema),
        target=ClassTarget(int(rng.integers(0, 2)), margin=float(rng.choice([0.0, 1e-6, 0.5]))),
        distance=_distance(rng, schema),
    )
    return question, rows[int(rng.integers(40))]


def _distance(rng: np.random.Generator, schema: Schema) -> Distance:
    norm = NORMS[int(rng.integers(len(NORMS)))]
    if rng.random() < 0.5:
        return Distance(norm)
    listed = rng.random(len(schema)) < 0.5
    weights = {n: float(10.0 ** rng.uniform(-6, 6)) for n, one in zip(schema.names, listed, strict=True) if one}
    scales = {f.name: float(10.0 ** rng.uniform(-6, 6)) for f in schema.features if isinstance(f, Integer | Real)}
    return Distance(norm, weights, scales if rng.random() < 0.5 else {})


def _feature(rng: np.random.Generator, name: str) -> Feature:
    low = int(rng.choice(FAR)) * int(rng.choice([-1, 1]))
    match rng.choice(["one", "integer", "real", "binary", "options"], p=[0.4, 0.3, 0.15, 0.05, 0.1]):
        case "one":
            return Integer(name, low, low) if rng.random() < 0.7 else Real(name, float(low), float(low) + 0.0)
        case "integer":
            step = int(rng.choice([1, 1, 1, 7, 1000]))
            return Integer(name, low, low + step * int(rng.choice([1, 2, 5, 30, 1_000_000])), step)
        case "real":
            return Real(name, float(low), low + float(rng.choice([1.0, 1e-3, 50.0])))
        case "binary":
            return Binary(name)
    return Categorical(name, [f"option {k}" for k in range(int(rng.integers(1, 4)))])


def _layer(rng: np.random.Generator, inputs: int, outputs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    weight = rng.normal(size=(outputs, inputs))
    if rng.random() < 0.4:
        weight = np.round(weight * 2.0)
    if rng.random() < 0.3:
        weight *= 10.0 ** rng.integers(-8, 9)
    weight[rng.random(weight.shape) < 0.2] = 0.0
    return weight, np.round(rng.normal(size=outputs) * 3.0, int(rng.integers(0, 4)))


def tie_problem(seed: int) -> tuple[Question, NDArray[np.float64]]:
    """A question and a factual: whole weights, and ReLUs that are exactly 0 at rows, many of them corners of the space."""
    rng = np.random.default_rng([seed, 9])
    schema = Schema([_small_feature(rng, f"f{i}") for i in range(int(rng.integers(2, 7)))])
    sizes = [len(schema.columns), *rng.integers(2, 7, int(rng.integers(1, 4))).tolist(), 1]
    rows = schema.sample(40, rng)
    hidden, layers = schema.encode(rows), []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        weight = rng.integers(-3, 4, (outputs, inputs)).astype(float)
        if rng.random() < 0.3:
            weight = rng.normal(size=(outputs, inputs))
        bias = rng.integers(-2, 3, outputs).astype(float) if rng.random() < 0.5 else np.zeros(outputs)
        for i in range(outputs):
            if rng.random() < 0.6:
                bias[i] = -weight[i] @ hidden[int(rng.integers(len(rows)))]
        layers.append((weight, bias))
        hidden = np.maximum(hidden @ weight.T + bias, 0.0)
    scores = Network.of(layers).scores(schema.encode(rows))[:, 0]
    weight, bias = layers[-1]
    layers[-1] = weight, bias - float(rng.choice([np.quantile(scores, 0.9), scores.max(), np.median(scores)]))
    question = Question(
        model=network_model(Network.of(layers), schema),
        target=ClassTarget(1, margin=float(rng.choice([0.0, 1e-6, 0.5]))),
        distance=Distance(str(rng.choice(["l0", "l1", "l2", "linf"]))),
    )
    return question, rows[int(np.argmin(scores))]


def _small_feature(rng: np.random.Generator, name: str) -> Feature:
    low = int(rng.choice([0, 0, 0, 3, 1_000_000]))
    match rng.choice(["one", "integer", "integer", "binary", "real", "options"]):
        case "one":
            return Integer(name, low, low)
        case "integer":
            return Integer(name, low, low + int(rng.choice([1, 2, 3, 5, 30])))
        case "binary":
            return Binary(name)
        case "real":
            return Real(name, float(low), low + float(rng.choice([1.0, 3.0])))
    return Categorical(name, ["a", "b", "c"])
