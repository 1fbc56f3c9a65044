"""Rows that every network within delta of the weights accepts, against all corners of the box of weights."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from random_weights import WeightProblem, corners, drawn, lowest_by_trying, random_weight_problem

from benchmarks.suites.robust.mce_r import least_of_two_layers
from ifonly import ClassTarget, Explainer, Nearest, NoneExists, RobustToWeights, ScoreTarget
from ifonly.methods import Enumerate, MipObj, Search
from ifonly.model.own_layers import own_layers
from ifonly.model.weight_box import WeightBox

SEEDS = int(os.environ.get("IFONLY_WEIGHT_SEEDS", "24"))
SAMPLES = int(os.environ.get("IFONLY_WEIGHT_SAMPLES", "200"))
TOLERANCE = 1e-6


def nearest_by_trying(problem: WeightProblem, factual: int, lowest: np.ndarray, margin: float) -> tuple[float, float]:
    """The distance of the nearest row that surely is above the margin, and of the nearest that may be."""
    explainer = Explainer(problem.model)
    question, _ = explainer.question(problem.model.schema.row(problem.points[factual]))
    before = np.repeat(problem.points[factual][None, :], len(problem.points), axis=0)
    distances = question.measure.between(before, problem.points)
    surely, maybe = lowest >= margin + 1e-9, lowest >= margin - 1e-9
    return min(distances[surely], default=math.inf), min(distances[maybe], default=math.inf)


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_one_hidden_layer_is_exact(seed: int) -> None:
    """The nearest row over all corners of the box, and none where there is none."""
    problem = random_weight_problem(seed, hidden=seed % 4 and 1)
    label = seed % 2
    lowest = lowest_by_trying(problem, 1.0 if label else -1.0)
    target, robust = ClassTarget(label), RobustToWeights(problem.delta, problem.relative)
    assert robust.accepted(problem.model, target).model(problem.model.schema).original(problem.points)[:, 0] == (
        pytest.approx(lowest, abs=1e-9)
    )
    people = np.random.default_rng(seed).choice(len(problem.points), 3)
    for method in (Search(table_rows=0), Enumerate(), MipObj())[: 3 if seed < 4 else 1]:
        explainer = Explainer(problem.model).using(method, reasons=False)
        for i in people.tolist():
            if lowest[i] >= 0.0:
                continue
            answer = explainer.explain(problem.model.schema.row(problem.points[i]), target=target, constraints=[robust])
            surely, maybe = nearest_by_trying(problem, i, lowest, target.margin)
            if surely != maybe:
                continue
            if surely == math.inf:
                assert isinstance(answer, NoneExists), (seed, i)
            else:
                assert isinstance(answer, Nearest), (seed, i)
                assert answer.upper == pytest.approx(surely, abs=TOLERANCE)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_none_of_many_networks_refuses(seed: int) -> None:
    """Of any depth: no network of the box refuses an answer, and what is called the lowest score never is above one."""
    problem = random_weight_problem(seed, hidden=1 + seed % 3, outputs=1 + seed % 3)
    model = problem.model
    label, encoded = model.classes[seed % 2], model.schema.encode(problem.points)
    robust = RobustToWeights(problem.delta, problem.relative)
    worst = robust.accepted(model, ClassTarget(label)).model(model.schema)
    accepted = worst.decide(worst.scores(problem.points)) == len(worst.classes) - 1
    kept = np.ones(len(encoded), dtype=np.bool_)
    for network in drawn(problem, SAMPLES, seed):
        kept &= model.decide(network.scores(encoded)) == model.classes.index(label)
    assert not (accepted & ~kept).any(), seed
    at = np.flatnonzero(~accepted)[:1]
    answer = Explainer(model).using(reasons=False).explain(
        model.schema.row(problem.points[at[0]]), target=label, constraints=[robust]
    ) if len(at) else None  # fmt: skip
    if answer is not None and answer.counterfactual is not None:
        row = model.schema.encode(model.schema.read(answer.counterfactual)[None, :])
        for network in drawn(problem, SAMPLES, seed + 1):
            assert model.decide(network.scores(row))[0] == model.classes.index(label), seed


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_how_far_the_weights_may_change(seed: int) -> None:
    problem = random_weight_problem(seed, hidden=seed % 4)
    model, rng = problem.model, np.random.default_rng(seed)
    point = problem.points[rng.integers(len(problem.points))]
    found = Explainer(model).robustness(model.schema.row(point), relative=problem.relative)
    label, encoded = model.decide(model.scores(point[None, :]))[0], model.schema.encode(point[None, :])
    assert found.lower <= found.upper
    assert found.exact or seed % 4 == 3 or found.upper == math.inf
    if found.exact and math.isfinite(found.upper):
        assert found.upper == pytest.approx(found.lower, rel=1e-3)
    for network in drawn(WeightProblem(model, found.lower * (1 - 1e-12), problem.relative, problem.points), SAMPLES):
        assert model.decide(network.scores(encoded))[0] == label
    if found.refusing is None:
        return
    h = encoded
    for k, (weight, bias) in enumerate(found.refusing):
        own = model.network.layers[k]
        for moved, before in ((weight, own.weight), (bias, own.bias)):
            reach = found.upper * (np.abs(before) if problem.relative else 1.0)
            assert (np.abs(moved - before) <= reach * (1 + 1e-12) + 1e-15).all()
        h = h @ weight.T + bias
        h = np.maximum(h, 0.0) if k + 1 < len(found.refusing) else h
    assert model.decide(h)[0] != label


def test_score_targets_keep_both_ends() -> None:
    """A range of scores has two conditions; both hold for every corner."""
    for seed in (0, 2, 4):
        problem = random_weight_problem(seed, hidden=1)
        model = problem.model
        encoded = model.schema.encode(problem.points)
        target = ScoreTarget(at_least=-0.5, at_most=1.5)
        robust = RobustToWeights(0.05).accepted(model, target)
        accepted = robust.accepts(model.schema, problem.points)
        low, high = np.full(len(encoded), math.inf), np.full(len(encoded), -math.inf)
        for network in corners(WeightProblem(model, 0.05, False, problem.points)):
            scores = network.scores(encoded)[:, 0]
            low, high = np.minimum(low, scores), np.maximum(high, scores)
        assert (accepted == ((low >= -0.5 + target.margin) & (high <= 1.5 - target.margin))).all(), seed


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_hidden_layers_are_exact(seed: int) -> None:
    """The nearest row by a mixed-integer program over the values of the first hidden layer, for every row."""
    problem = random_weight_problem(seed, hidden=2)
    model = problem.model
    box = WeightBox(own_layers(model), problem.delta, problem.relative)
    lowest = np.array([least_of_two_layers(box, model.schema.encode(point[None, :])) for point in problem.points])
    target, robust = ClassTarget(1), RobustToWeights(problem.delta, problem.relative)
    explainer = Explainer(model).using(reasons=False)
    for i in np.random.default_rng(seed).choice(len(problem.points), 3).tolist():
        surely, maybe = nearest_by_trying(problem, i, lowest, target.margin)
        answer = explainer.explain(model.schema.row(problem.points[i]), target=target, constraints=[robust])
        if surely != maybe or (lowest[i] > -1e-6 and answer.upper == 0.0):
            continue
        if surely == math.inf:
            assert isinstance(answer, NoneExists), (seed, i)
        else:
            assert isinstance(answer, Nearest), (seed, i)
            assert answer.upper == pytest.approx(surely, abs=TOLERANCE), (seed, i)
