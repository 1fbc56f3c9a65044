"""Bounds on what actions can do, for many sets at once: against random actions, and answers with and without them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from random_causes import causal_case, real_case

from ifonly import CausalModel, ClassTarget, Explainer, LinearEquation, Query, Real, datasets
from ifonly.answering import recourse
from ifonly.answering.action_bounds import ActionBounds, ReachableRows
from ifonly.causes.causal_model import value_ends
from ifonly.schema import Feature

TRIED = 400


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(150))
def test_no_action_within_the_amount_exceeds_the_bound(seed: int) -> None:
    case = real_case(seed, numbers=True) if seed % 3 == 2 else causal_case(seed + 4000, 6, kinds=4)
    rng, schema, target = np.random.default_rng(seed), case.schema, ClassTarget("yes")
    point, order = schema.read(case.person), case.causes.order
    query = Query(target=target, distance=case.distance)
    bounds = ActionBounds.of(case.model, target, case.causes, query)
    assert bounds is not None
    sets = [some for k in range(len(order) + 1) for some in combinations(order, k)][:32]
    acted = np.array([[g in some for g in range(len(schema))] for some in sets])
    amount = rng.choice([0.01, 0.05, 0.3, 2.0], size=len(sets))
    most, _ = ReachableRows(bounds, point, bounds.lowered.domains(point[None, :]), acted, amount).conditions()
    c, d = bounds.lowered.question.conditions
    for k in range(len(sets)):
        able = acted[k] | ~np.isin(np.arange(len(schema)), order)
        drawn = np.column_stack([_drawn(f, rng) for f in schema.features])
        share = rng.random((TRIED, 1)) ** 4 * bounds.lowered.numeric + (~bounds.lowered.numeric)
        real = bounds.lowered.numeric & (bounds.lowered.step == 0.0)
        drawn = np.where(real, point + share * (drawn - point), drawn)
        drawn = np.where(able & (rng.random((TRIED, len(schema))) < rng.random((TRIED, 1))), drawn, point)
        cheap = np.array([case.distance.between(schema, point, one) <= amount[k] for one in drawn])
        rows, inside = case.causes.followed(drawn[cheap], np.tile(acted[k], (cheap.sum(), 1)),
                                            np.tile(case.causes.noise(point[None, :]), (cheap.sum(), 1)))  # fmt: skip
        reached = case.model.scores(rows[inside.all(axis=1)]) @ c.T - d
        assert (reached <= most[k] + 1e-9).all()


def _drawn(feature: Feature, rng: np.random.Generator) -> NDArray[np.float64]:
    low, high = value_ends(feature)
    return rng.uniform(low, high, TRIED) if isinstance(feature, Real) else rng.integers(low, high + 1, TRIED)


def test_answers_are_the_same_without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of people whose rows have a feature that follows from a definition, too."""
    data, model = datasets.load("credit"), datasets.network("credit")
    causes = CausalModel(model.schema, {
        "MaxBillAmountOverLast6Months": LinearEquation({"EducationLevel": 300.0, "TotalOverdueCounts": 900.0}),
        "MostRecentBillAmount": LinearEquation({"MaxBillAmountOverLast6Months": 0.8}),
        "MaxPaymentAmountOverLast6Months": LinearEquation({"MaxBillAmountOverLast6Months": 0.2}),
    })  # fmt: skip
    explainer, points = Explainer(model).using(reasons=False), data.points()[:60]
    people = [model.schema.row(one) for one in points[model.decide(model.scores(points)) == 0][:6]]
    searched: list[object] = []
    on_set = recourse.RecourseAnswerer._on_set
    monkeypatch.setattr(recourse.RecourseAnswerer, "_on_set", lambda *a: searched.append(a) or on_set(*a))
    costs, searches = [], []
    for few in (recourse.FEW, 1000):
        monkeypatch.setattr(recourse, "FEW", few)
        searched.clear()
        told = [explainer.recourse(row, causes) for row in people]
        assert all(one.status == "nearest" for one in told)
        costs.append([one.cost for one in told])
        searches.append(len(searched))
    assert costs[0] == pytest.approx(costs[1], rel=1e-6) and searches[0] < searches[1]
