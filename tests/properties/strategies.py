"""Random schemas, networks and questions for hypothesis."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from ifonly import (
    Allowed,
    Binary,
    Categorical,
    ClassTarget,
    Distance,
    Fixed,
    Integer,
    Network,
    OnlyDown,
    OnlyUp,
    Ordinal,
    Range,
    Real,
    Schema,
)
from ifonly.model import network_model
from ifonly.problem import Constraint, Question
from ifonly.schema import Choice, Feature, Numeric

OPTIONS = ("a", "b", "c", "d", "e", 1, 2.5, True, None)
seeds = st.integers(0, 2**32 - 1)


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def features(draw: st.DrawFn, name: str, *, finite: bool = False) -> Feature:
    kind = draw(st.sampled_from(["integer", "binary", "ordinal", "categorical"] + ([] if finite else ["real"])))
    if kind == "real":
        low = draw(st.sampled_from([-3.0, 0.0, 0.1, 1000.0]))
        return Real(name, low, low + draw(st.sampled_from([0.0, 0.5, 7.0, 1e4])))
    if kind == "integer":
        low, step = draw(st.integers(-5, 5)), draw(st.sampled_from([1, 1, 2, 3]))
        return Integer(name, low, low + draw(st.integers(0, 4 if finite else 30)), step)
    if kind == "binary":
        return Binary(name, draw(st.sampled_from([(0, 1), (False, True), ("no", "yes"), (1, 0)])))
    options = draw(st.permutations(OPTIONS))[: draw(st.integers(1, 4))]
    options = list(dict.fromkeys(options))  # True and 1 are one value
    if kind == "ordinal":
        return Ordinal(name, options, draw(st.sampled_from(["thermometer", "onehot", "code"])))
    return Categorical(name, options, draw(st.sampled_from(["onehot", "code"])))


@st.composite
def schemas(draw: st.DrawFn, *, finite: bool = False, most: int = 6) -> Schema:
    """Up to `most` features, whose columns stand in any order, groups interleaved."""
    count = draw(st.integers(1, most))
    made = tuple(draw(features(f"f{i}", finite=finite)) for i in range(count))
    return Schema(made, draw(st.permutations(Schema(made).columns)))


@st.composite
def distances(draw: st.DrawFn, schema: Schema) -> Distance:
    norm: Any = draw(st.sampled_from(["l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7}, {"l1": 2.0, "l0": 0.01}]))
    positive = st.sampled_from([0.25, 1.0, 3.0])
    weights = {name: draw(positive) for name in schema.names if draw(st.booleans())}
    scales = {f.name: draw(positive) for f in schema if isinstance(f, Numeric) and draw(st.booleans())}
    return Distance(norm, weights, scales)


@st.composite
def constraints(draw: st.DrawFn, feature: Feature) -> Constraint:
    kinds: list[type[Any]] = [Fixed]
    if isinstance(feature, Numeric):
        kinds += [OnlyUp, OnlyDown, Range]
    if isinstance(feature, Choice):
        kinds += [Allowed, *([OnlyUp, OnlyDown] if feature.ordered else [])]
    kind = draw(st.sampled_from(kinds))
    if kind is Range:
        ends = sorted(draw(st.tuples(*[st.floats(feature.lower - 1, feature.upper + 1)] * 2)))
        return Range(feature.name, *ends)
    if kind is Allowed:
        chosen = draw(st.lists(st.sampled_from(feature.options), min_size=1, unique_by=str))
        return Allowed(feature.name, chosen)
    made: Constraint = kind(feature.name)
    return made


def random_network(rng: np.random.Generator, inputs: int, hidden: tuple[int, ...], outputs: int) -> Network:
    sizes = (inputs, *hidden, outputs)
    layers = [(rng.normal(size=(b, a)) / np.sqrt(a), rng.normal(size=b) / 2) for a, b in itertools.pairwise(sizes)]
    return Network.of(layers)


@st.composite
def questions(draw: st.DrawFn, *, finite: bool = False, most: int = 6) -> Question:
    schema = draw(schemas(finite=finite, most=most))
    rng = generator(draw(seeds))
    outputs = draw(st.sampled_from([1, 1, 3]))
    network = random_network(rng, len(schema.columns), draw(st.sampled_from([(), (5,), (4, 3)])), outputs)
    model = network_model(network, schema)
    target = ClassTarget(draw(st.integers(0, max(1, outputs - 1))))
    chosen = draw(st.lists(st.sampled_from(schema.features), max_size=2, unique=True))
    made = tuple(draw(constraints(feature)) for feature in chosen)
    return Question(model=model, target=target, distance=draw(distances(schema)), constraints=made)


def values_of(feature: Feature, rng: np.random.Generator) -> NDArray[np.float64]:
    """Every value of a finite feature; ends and random values of a real one."""
    if isinstance(feature, Choice):
        return np.arange(len(feature.options), dtype=float)
    if isinstance(feature, Integer):
        return feature.lower + feature.step * np.arange(feature.steps + 1.0)
    return np.concatenate(([feature.lower, feature.upper], rng.uniform(feature.lower, feature.upper, 20)))
