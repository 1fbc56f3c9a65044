"""Distances are distances, and the lowered form says the same as the definitions."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ifonly import Schema
from ifonly.problem import Norm, Question, lower
from ifonly.schema import Choice
from properties.strategies import constraints, distances, generator, questions, schemas, seeds, values_of


@given(st.data(), schemas(), seeds)
def test_axioms(data: st.DataObject, schema: Schema, seed: int) -> None:
    distance = data.draw(distances(schema))
    x, y, z = schema.sample(3, generator(seed))
    between = distance.between
    assert between(schema, x, x) == 0.0
    assert (between(schema, x, y) > 0.0) == bool((x != y).any())
    assert math.isclose(between(schema, x, y), between(schema, y, x), rel_tol=1e-14)
    assert between(schema, x, z) <= (between(schema, x, y) + between(schema, y, z)) * (1 + 1e-12)


@given(st.data(), schemas(), seeds)
def test_one_and_many_agree(data: st.DataObject, schema: Schema, seed: int) -> None:
    distance = data.draw(distances(schema))
    points = schema.sample(5, generator(seed))
    many = distance.between(schema, points[0], points)
    assert [distance.between(schema, points[0], point) for point in points] == many.tolist()
    assert distance.between(schema, points, points[::-1]).tolist() == [
        distance.between(schema, a, b) for a, b in zip(points, points[::-1], strict=True)
    ]


@given(questions(), seeds)
def test_lowered_layers_are_the_network(question: Question, seed: int) -> None:
    lowered = lower(question)
    points = question.schema.sample(10, generator(seed))
    h = lowered.unrolled(points)
    assert np.array_equal(h @ lowered.unroll.T, question.schema.encode(points))
    for weight, bias in lowered.layers[:-1]:
        h = np.maximum(h @ weight.T + bias, 0.0)
    weight, bias = lowered.layers[-1]
    c, d = question.conditions
    expected = question.model.network.scores(question.schema.encode(points)) @ c.T - d
    assert np.allclose(h @ weight.T + bias, expected, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(expected).max()))


@given(questions(), seeds)
def test_lowered_costs_are_the_distance(question: Question, seed: int) -> None:
    lowered = lower(question)
    points = question.schema.sample(12, generator(seed))
    factual, rows = points[0], points
    people = lowered.domains(points[:1])
    squared = lowered.norm is Norm.L2
    costs = np.zeros_like(rows)
    for g, feature in enumerate(question.schema.features):
        change = np.abs(rows[:, g] - factual[g])
        if isinstance(feature, Choice):
            start = int(lowered.start[g])
            costs[:, g] = people.cost[0, start + rows[:, g].astype(int)]
            table = lowered.option_cost[g]
            assert np.array_equal(costs[:, g], table[int(factual[g]), rows[:, g].astype(int)])
        else:
            imported_trees = lowered.rate[g] * change
            costs[:, g] = imported_trees**2 if squared else lowered.jump[g] * (change > 0) + imported_trees
    match lowered.norm:
        case Norm.L2:
            total = np.sqrt(costs.sum(axis=1))
        case Norm.LINF:
            total = costs.max(axis=1)
        case Norm.L0 | Norm.L1:
            total = costs.sum(axis=1)
    assert np.allclose(total, question.distance.between(question.schema, factual, rows), rtol=1e-12, atol=1e-15)


@given(st.data(), schemas(), seeds)
def test_restrict_agrees_with_allows(data: st.DataObject, schema: Schema, seed: int) -> None:
    """Narrowed domains hold exactly the values that the constraint's own judgement allows."""
    rng = generator(seed)
    feature = schema.features[seed % len(schema)]
    constraint = data.draw(constraints(feature))
    question = _question(schema, constraint)
    lowered, points = lower(question), schema.sample(4, rng)
    people, g = lowered.domains(points), schema.index(feature.name)
    for i, before in enumerate(points[:, g]):
        for after in [*values_of(feature, rng), before]:
            if isinstance(feature, Choice):
                inside = people.allowed[i, int(lowered.start[g]) + int(after)]
            else:
                inside = people.lower[i, g] <= after <= people.upper[i, g]
                assert people.allowed[i, int(lowered.start[g])] == (people.lower[i, g] <= people.upper[i, g])
            assert bool(inside) == constraint.allows(feature, float(before), float(after))


def _question(schema: Schema, *rules: object) -> Question:
    from ifonly import ClassTarget
    from ifonly.model import network_model
    from properties.strategies import random_network

    network = random_network(generator(0), len(schema.columns), (3,), 1)
    return Question(model=network_model(network, schema), target=ClassTarget(1), constraints=rules)  # type: ignore[arg-type]
