"""Small random questions in which everything is random: schema, network, factual, constraints, distance, direction.

One seed, one problem, on every machine. Many are nasty on purpose: neurons that are dead or doubled, weights that are
zero or whole numbers (so that rows tie, and hit the margin exactly), factuals that break the constraints, empty
domains, targets that are met already or by no row at all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ifonly.model import Network, network_model
from ifonly.problem import (
    Allowed,
    ClassTarget,
    Constraint,
    Distance,
    Fixed,
    OnlyDown,
    OnlyUp,
    Question,
    Range,
    ScoreTarget,
    Target,
)
from ifonly.schema import Binary, Categorical, Feature, Integer, Ordinal, Real, Schema

Rng = np.random.Generator
Floats = NDArray[np.float64]

MOST_ROWS = 20_000
"""Finite problems have at most this many rows."""

MARGINS = (0.0, 1e-6, 0.1)


def random_problem(seed: int, *, finite: bool = False, steps: bool = False) -> tuple[Question, Floats]:
    """A question and one to three factuals. `finite`: real features are fixed, at most `MOST_ROWS` rows. `steps`: what
    would be integers are real numbers with a step, and factuals may be off their grid.
    """
    rng = np.random.default_rng([seed, finite, 2] if steps else [seed, finite])
    schema = _schema(rng, finite)
    schema = _in_steps(rng, schema) if steps else schema
    style = _Style.draw(rng)
    points = schema.sample(int(rng.integers(1, 4)), rng)
    if steps:
        points = _off_grid(rng, schema, points)
    if rng.random() < 0.1:  # at the end of everything
        points[0] = [f.lower if isinstance(f, Real | Integer) else 0.0 for f in schema.features]
    network = _network(rng, schema, style)
    for _ in range(5):  # constant networks are asked about too, but not often
        if np.ptp(network.scores(schema.encode(schema.sample(50, rng))), axis=0).any() or rng.random() < 0.1:
            break
        network = _network(rng, schema, style)
    target, network = _target(rng, schema, network, points[0], style.whole)
    question = Question(
        model=network_model(network, schema),
        target=target,
        distance=_distance(rng, schema),
        constraints=_constraints(rng, schema, finite),
    )
    return question, points


# ---------------------------------------------------------------------- schemas


def _schema(rng: Rng, finite: bool) -> Schema:
    features: list[Feature] = []
    rows = 1
    for i in range(1 + int(rng.binomial(6, 0.6))):
        feature = _feature(rng, f"f{i}", reals=0.1 if finite else 0.4)
        size = feature.steps + 1 if isinstance(feature, Integer) else len(getattr(feature, "options", "x"))
        if finite and rows * size > MOST_ROWS:
            continue
        rows *= size
        features.append(feature)
    schema = Schema(features or [Binary("f0")])
    if rng.random() < 0.4:  # the model reads its columns in another order
        schema = Schema(schema.features, [schema.columns[i] for i in rng.permutation(len(schema.columns))])
    return schema


def _in_steps(rng: Rng, schema: Schema) -> Schema:
    """The schema with real numbers in steps for its integers: cents, twelfths, hundreds."""
    features: list[Feature] = []
    for feature in schema.features:
        if isinstance(feature, Integer) and feature.steps:
            step = Fraction(rng.choice(["0.01", "0.1", "0.25", "0.3", "5", "500", "1/3", "1/12", "0.0001"]))
            first = int(rng.choice([0, 0, 1, -3, 1234]))
            ends = float(first * step), float((first + feature.steps) * step)
            features.append(Real(feature.name, *ends, step))
        else:
            features.append(feature)
    return Schema(features, schema.columns)


def _off_grid(rng: Rng, schema: Schema, points: Floats) -> Floats:
    """Some people's own values between the steps, as people write them."""
    for g, grid in schema.grids.items():
        for i in np.flatnonzero(rng.random(len(points)) < 0.4).tolist():
            between = grid.value(int(rng.integers(0, grid.steps))) + float(grid.step) * float(rng.uniform(0.01, 0.99))
            points[i, g] = float(f"{between:.{rng.integers(6, 9)}g}")
            points[i, g] = schema.features[g].read(min(max(points[i, g], grid.value(0)), grid.value(grid.steps)))
    return points


def _feature(rng: Rng, name: str, reals: float) -> Feature:
    shares = reals, *((1.0 - reals) * np.array([0.4, 0.2, 0.2, 0.2]))
    match rng.choice(["real", "integer", "binary", "ordinal", "categorical"], p=shares):
        case "real":
            lower = float(rng.choice([0.0, -1.0, -3.5, 17.0, rng.normal()]))
            return Real(name, lower, lower + float(rng.choice([1.0, 1.0, 10.0, 1234.5, rng.uniform(0.01, 3.0)])))
        case "integer":
            lower = int(rng.integers(-5, 6))
            steps = int(rng.choice([0, 1, 2, 5, 9, 30], p=[0.04, 0.16, 0.2, 0.3, 0.2, 0.1]))
            step = int(rng.choice([1, 1, 1, 2, 5]))
            return Integer(name, lower, lower + steps * step + int(rng.integers(0, step)), step)
        case "binary":
            return Binary(name)
        case "ordinal":
            levels = [f"level {i}" for i in range(int(rng.integers(1, 6)))]
            return Ordinal(name, levels, str(rng.choice(["thermometer", "onehot", "code"])))
        case _:
            categories = [f"option {i}" for i in range(int(rng.integers(1, 6)))]
            return Categorical(name, categories, str(rng.choice(["onehot", "onehot", "code"])))


# ---------------------------------------------------------------------- networks


@dataclass(frozen=True)
class _Style:
    """How weights are drawn. `whole`: small whole numbers, so that sums are exact and ties happen."""

    whole: bool
    zeros: float
    doubled: bool
    dead: bool
    steep: float

    @classmethod
    def draw(cls, rng: Rng) -> _Style:
        return cls(
            whole=bool(rng.random() < 0.3),
            zeros=float(rng.choice([0.0, 0.0, 0.0, 0.2, 0.6])),
            doubled=bool(rng.random() < 0.2),
            dead=bool(rng.random() < 0.2),
            steep=float(rng.choice([0.3, 1.0, 1.0, 5.0])),
        )


def _network(rng: Rng, schema: Schema, style: _Style) -> Network:
    hidden = rng.integers(1, 9, int(rng.choice([0, 1, 2, 3], p=[0.1, 0.3, 0.4, 0.2]))).tolist()
    outputs = 3 if rng.random() < 0.15 else 1
    widths = [len(schema.columns), *hidden, outputs]
    layers = [_layer(rng, style, a, b) for a, b in itertools.pairwise(widths)]
    weight, bias = layers[0]
    if not style.whole or rng.random() < 0.5:  # numbers of any size count about as much as the options do
        scale, shift = _standardised(schema)
        if style.whole:
            scale = 2.0 ** np.round(np.log2(scale))  # powers of two keep the sums exact
            shift = np.zeros_like(shift)
        layers[0] = (weight * scale, bias + weight @ shift)
    return Network.of(layers)


def _layer(rng: Rng, style: _Style, inputs: int, outputs: int) -> tuple[Floats, Floats]:
    if style.whole:
        weight = rng.integers(-3, 4, (outputs, inputs)).astype(np.float64)
        bias = rng.integers(-4, 5, outputs).astype(np.float64)
    else:
        weight = style.steep * rng.normal(size=(outputs, inputs)) * math.sqrt(2.0 / max(inputs, 1))
        bias = 0.5 * style.steep * rng.normal(size=outputs)
    weight[rng.random(weight.shape) < style.zeros] = 0.0
    if style.doubled and outputs > 1:
        weight[-1], bias[-1] = weight[0], bias[0]
    if style.dead and outputs > 1:
        weight[1], bias[1] = -np.abs(weight[1]), -np.abs(bias[1]) - 100.0
    return weight, bias


def _standardised(schema: Schema) -> tuple[Floats, Floats]:
    """Scale and shift that take numbers to [-1, 1] and leave options as they are."""
    scale, shift = np.ones(len(schema.columns)), np.zeros(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Real | Integer):
            width = feature.width or 1.0
            scale[columns] = 2.0 / width
            shift[columns] = -(feature.lower + feature.upper) / width
    return scale, shift


# ---------------------------------------------------------------------- targets


def _target(rng: Rng, schema: Schema, network: Network, factual: Floats, whole: bool) -> tuple[Target, Network]:
    """A target, and the network with its last bias moved so that the target is usually neither free nor impossible."""
    margin = float(rng.choice(MARGINS))
    scores = network.scores(schema.encode(schema.sample(400, rng)))
    now = network.scores(schema.encode(factual))
    if network.outputs > 1:
        if rng.random() < 0.3:
            return _score_target(rng, scores[:, 1], margin, output=1), network
        resolved = int(rng.integers(0, 3)) if rng.random() < 0.1 else int((now.argmax() + rng.integers(1, 3)) % 3)
        return ClassTarget(resolved, margin), network
    if rng.random() < 0.15:
        return _score_target(rng, scores[:, 0], margin, output=0), network
    how = rng.random()
    exact = how < 0.15
    if exact:  # some row sits exactly on the margin
        shift = float(scores[rng.integers(len(scores)), 0])
    elif how < 0.9:
        shift = float(np.quantile(np.unique(scores), rng.choice([0.05, 0.2, 0.5, 0.8, 0.95])))
        shift = float(np.round(shift)) if whole else shift
    else:
        shift = 0.0
    up = bool(now[0] < shift) if rng.random() < 0.85 else bool(rng.random() < 0.5)
    shift += (-margin if up else margin) if exact else 0.0
    *first, last = [(layer.weight, layer.bias) for layer in network.layers]
    return ClassTarget(int(up), margin), Network.of([*first, (last[0], last[1] - shift)])


def _score_target(rng: Rng, scores: Floats, margin: float, output: int) -> ScoreTarget:
    low, high = np.sort(np.quantile(scores, rng.random(2))).tolist()
    match int(rng.integers(0, 4)):
        case 0:
            return ScoreTarget(at_least=high, margin=margin, output=output)
        case 1:
            return ScoreTarget(at_most=low, margin=margin, output=output)
        case _:
            margin = margin if high - low >= 2.5 * margin else 0.0
            return ScoreTarget(at_least=low, at_most=high, margin=margin, output=output)


# ---------------------------------------------------------------------- distances and constraints


def _distance(rng: Rng, schema: Schema) -> Distance:
    norms: list[Callable[[], str | dict[str, float]]] = [
        lambda: "l0", lambda: "l1", lambda: "l2", lambda: "linf",
        lambda: {"l0": float(rng.uniform(0.05, 1.0)), "l1": float(rng.uniform(0.05, 1.0))},
    ]  # fmt: skip
    norm = norms[int(rng.choice(5, p=[0.2, 0.3, 0.2, 0.15, 0.15]))]()
    weights = {f.name: float(rng.choice([0.25, 2.0, rng.uniform(0.2, 4.0)])) for f in schema if rng.random() < 0.2}
    scales = {f.name: float(rng.uniform(0.3, 3.0)) * (f.width or 1.0)
              for f in schema if isinstance(f, Real | Integer) and rng.random() < 0.2}  # fmt: skip
    return Distance(norm, weights, scales)


def _constraints(rng: Rng, schema: Schema, finite: bool) -> tuple[Constraint, ...]:
    constraints: list[Constraint] = []
    busy = 0.0 if rng.random() < 0.3 else 0.2
    for feature in schema:
        if finite and isinstance(feature, Real) and feature.grid is None:
            constraints.append(_one_value(rng, feature))
        while rng.random() < busy:
            constraints.append(_constraint(rng, feature))
    return tuple(constraints)


def _one_value(rng: Rng, feature: Real) -> Constraint:
    """What leaves a real feature no freedom: its own value, or another."""
    if rng.random() < 0.8:
        return Fixed(feature.name)
    value = feature.lower + feature.width * float(rng.choice([0.0, 0.5, 1.0]))
    return Range(feature.name, value, value)


def _constraint(rng: Rng, feature: Feature) -> Constraint:
    kinds = ["fixed", "values", "values"]
    kinds += ["up", "down", "up", "down"] if not isinstance(feature, Categorical) else []
    kind = rng.choice(kinds)
    if kind == "fixed":
        return Fixed(feature.name)
    if kind == "up":
        return OnlyUp(feature.name)
    if kind == "down":
        return OnlyDown(feature.name)
    if isinstance(feature, Real | Integer):
        low, high = np.sort(feature.lower + feature.width * rng.uniform(-0.1, 1.1, 2)).tolist()
        return Range(feature.name, low, high) if rng.random() < 0.7 else Range(feature.name, lower=low)
    options = list(feature.options)
    count = int(rng.integers(1, len(options) + 1))
    return Allowed(feature.name, [options[i] for i in sorted(rng.choice(len(options), count, replace=False).tolist())])
