"""Bounds hold every sampled row of box and budget, for every bound method; one point gives the forward pass."""

from dataclasses import replace

import numpy as np
import pytest
from inside import outside, rows_within
from small import person, question

from cases import load
from ifonly import ClassTarget, Distance
from ifonly.problem import Question, lower
from ifonly.solvers.common.backends.protocol import Form
from ifonly.solvers.common.bounds import BOUNDS, neuron_bounds, safe_bound
from ifonly.solvers.common.distances import cut_to, farthest
from ifonly.solvers.common.inputs import Person

NORMS = ["l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7}]


@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("share", [0.01, 0.2, 1.0])
def test_bounds_hold_every_sampled_row_of_the_budget(norm, share):
    lowered = lower(question(norm))
    someone = person(lowered)
    budget = share * farthest(lowered, someone)
    cut = cut_to(lowered, someone, budget)
    points = rows_within(lowered, someone, cut, budget, 2_000, np.random.default_rng(7))
    assert len(points) == 2_000
    for how in BOUNDS:
        bounds = neuron_bounds(lowered, cut, budget, how)
        assert outside(lowered, bounds, points) == 0


def test_bounds_that_do_not_hold_are_noticed():
    lowered = lower(question())
    someone = person(lowered)
    points = rows_within(lowered, someone, someone, 1.0, 1_000, np.random.default_rng(7))
    for how in BOUNDS:
        bounds = neuron_bounds(lowered, someone, None, how)
        middle = tuple(0.5 * (low + up) for low, up in zip(bounds.lower, bounds.upper, strict=True))
        assert outside(lowered, replace(bounds, upper=middle), points) > 0


@pytest.mark.parametrize("dataset", ["compas", "credit", "adult"])
def test_ten_thousand_rows_of_each_network_and_the_order_of_the_bounds(dataset):
    model, points, _ = load(dataset)
    lowered = lower(Question(model=model, target=ClassTarget(1, 0.0), distance=Distance("l1")))
    someone = Person.of(lowered.domains(points[:1]), 0)
    budget = 0.1
    cut = cut_to(lowered, someone, budget)
    rows = rows_within(lowered, someone, cut, budget, 10_000, np.random.default_rng(1))
    assert len(rows) == 10_000
    every = [neuron_bounds(lowered, cut, budget, how) for how in ("linear", "backward", "interval")]
    for bounds in every:
        assert outside(lowered, bounds, rows) == 0
    widths = [float((bounds.upper[-1] - bounds.lower[-1]).sum()) for bounds in every]
    assert widths[0] < widths[1] < widths[2]
    assert every[0].unstable_count <= every[1].unstable_count <= every[2].unstable_count


@pytest.mark.parametrize("how", BOUNDS)
def test_over_one_point_they_are_the_forward_pass(how):
    lowered = lower(question())
    someone = person(lowered)
    fixed = Person(
        factual=someone.factual,
        lower=someone.factual,
        upper=someone.factual,
        allowed=np.repeat(lowered.numeric, np.diff(lowered.start)) | (lowered.unrolled(someone.factual) == 1.0),
        cost=someone.cost,
    )
    bounds = neuron_bounds(lowered, fixed, None, how)
    score = lowered.question.model.scores(someone.factual[None, :])[0]
    assert bounds.lower[-1] == pytest.approx(score, abs=1e-9) and bounds.upper[-1] == pytest.approx(score, abs=1e-9)


def test_any_multipliers_give_a_bound():
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows, inside = rng.normal(size=(5, 4)), rng.uniform(-1.0, 1.0, 4)
        form = Form(
            cost=np.zeros(4),
            square=np.zeros(4),
            rows=rows,
            limit=rows @ inside + rng.random(5),
            lower=-np.ones(4),
            upper=np.ones(4),
            integer=np.zeros(4, dtype=bool),
        )
        objective = rng.normal(size=4)
        assert (safe_bound(form, objective, 3.0 * rng.random((3, 5))) <= objective @ inside).all()
