"""Bounds on many boxes at once: each is the distance of the nearest row in its box, up to the distance that matters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ifonly import Allowed, Explainer, Limits, Range, datasets
from ifonly.answering.box_bounds import PreparedBoxBounds
from ifonly.answering.values import SearchSettings
from ifonly.problem import Query
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.rules import merged
from ifonly.schema import Choice, Numeric, Schema
from ifonly.solvers.search import Search

COUNT = 12


def random_boxes(schema: Schema, points: Any, rng: np.random.Generator) -> list[list[Any]]:
    """Around rows of the data, of which some features are left free."""
    result = []
    for point in points[rng.choice(len(points), COUNT)]:
        box: list[Any] = []
        for g, feature in enumerate(schema.features):
            if rng.random() < 0.3:
                continue
            if isinstance(feature, Numeric):
                width = 0.4 * rng.random() * (feature.upper - feature.lower)
                box.append(Range(feature.name, float(point[g]) - width, float(point[g]) + width))
            elif isinstance(feature, Choice):
                some = rng.random(len(feature.options)) < 0.6
                some[int(point[g])] = True
                box.append(
                    Allowed(feature.name, [one for one, here in zip(feature.options, some, strict=True) if here])
                )
        result.append(box)
    return result


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["credit", "adult"])  # credit: with derived features, which are eliminated
def test_the_bounds_are_the_distances_of_the_nearest_rows(name: str) -> None:
    data, model = datasets.load(name), datasets.network(name)
    explainer, rng, found = Explainer(model).using(reasons=False), np.random.default_rng(3), 0
    points, schema = data.points(), model.schema
    for i in data.split()[1][:3].tolist():
        if model.decide(model.scores(points[i : i + 1]))[0] != 0:
            continue
        runner = explainer._answerer.runner
        query = Query(target=model.classes[1], constraints=merged(schema, (), ()))
        settings = SearchSettings(method=Search(), limits=Limits(seconds=60))
        resolved = runner.resolved(query.target, 0)
        bounds = PreparedBoxBounds(runner.solver, resolved, points[i], query, settings)
        boxes = random_boxes(schema, points, rng)
        below = 2.0 * explainer.explain(data.row(i), target=model.classes[1]).upper
        known = bounds.bounds(boxes, below, Limits(seconds=60))
        assert known is not None
        for box, bound in zip(boxes, known[0], strict=True):
            answer = explainer.explain(data.row(i), target=model.classes[1], constraints=box)
            assert bound <= answer.upper + 1e-9
            assert bound == pytest.approx(min(answer.upper, below), rel=1e-5)
            found += answer.upper < below
    assert found


def test_a_box_holds_what_its_constraints_allow() -> None:
    schema = datasets.load("credit").schema
    rng = np.random.default_rng(0)
    rows, box = schema.sample(200, rng), random_boxes(schema, schema.sample(50, rng), rng)[0]
    boxes = FeatureBoxes.of(schema, [box, []])
    inside = np.array([[boxes.holding(g, value) for g, value in enumerate(row.tolist())] for row in rows]).all(axis=1)
    allowed = [
        all(one.allows(schema[one.feature], math.nan, float(row[schema.index(one.feature)])) for one in box)
        for row in rows
    ]
    assert len(boxes) == 2
    assert (inside[:, 0] == allowed).all()
    assert inside[:, 1].all()
