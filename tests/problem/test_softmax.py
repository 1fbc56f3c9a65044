"""A probability of one of three or more classes: planes that are necessary, rows that are sure, and every ending."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Diversity,
    Explainer,
    Limits,
    Nearest,
    Network,
    NoneExists,
    ProbabilityTarget,
    Query,
    Unknown,
    Within,
    certify,
    check,
)
from ifonly.errors import QuestionError
from ifonly.methods import Enumerate, MipObj
from ifonly.model import Model, network_model
from ifonly.problem.softmax import first_weights, log_odds, planes, weights_at
from ifonly.results import StoppedBy
from ifonly.schema import Integer, Real, Schema

RNG = np.random.default_rng(0)
SCHEMA = Schema([Real("x", -3.0, 3.0), Real("y", -3.0, 3.0), Integer("n", 0, 9)])
ANN = {"x": 0.0, "y": 0.5, "n": 3}
LAYERS = [
    (RNG.normal(size=(7, 3)) / [1.0, 1.0, 3.0], RNG.normal(size=7)),
    (RNG.normal(size=(4, 7)), RNG.normal(size=4)),
]
MODEL = network_model(Network.of(LAYERS), SCHEMA, classes=("a", "b", "c", "d")).as_log_odds()


def reached(model: Model, row: Any, label: str) -> float:
    assert model.probabilities is not None
    given = model.probabilities(np.array([model.schema.read(dict(row))]))
    return float(given[0, model.classes.index(label)])


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_whole_and_planes_necessary(seed: int) -> None:
    """Whatever the weights: a row that has the log-odds meets the plane; one that misses it misses its tangent."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        classes = int(rng.integers(3, 7))
        scores, others = rng.normal(size=(2, 40, classes)) * rng.choice([0.1, 1.0, 30.0])
        index, threshold = int(rng.integers(classes)), float(rng.normal() * 3.0)
        weights = (*first_weights(classes), *(weights_at(other, index) for other in others[:5]))
        assert all(sum(map(Fraction, w)) == 1 and min(w) >= 0.0 for w in weights)
        score_margin = log_odds(scores, index) - threshold
        c, d = planes(weights, index, threshold)
        assert ((scores @ c.T - d).min(axis=1) >= np.minimum(score_margin, 0.0))[score_margin >= 0.0].all()
        assert (scores @ c.T - d >= score_margin[:, None]).all()
        for row, short in zip(scores, score_margin, strict=True):
            c, d = planes((weights_at(row, index),), index, threshold)
            assert math.isclose(float((c @ row - d)[0]), short, abs_tol=1e-8)


@pytest.mark.parametrize("method", [None, MipObj()])
@pytest.mark.parametrize("least", [0.3, 0.4, 0.5])
def test_real_numbers_just_reach_it(method: Any, least: float) -> None:
    explainer = Explainer(MODEL) if method is None else Explainer(MODEL).using(method)
    answer = explainer.explain(ANN, target=ProbabilityTarget("d", at_least=least))
    if answer.already:
        return
    assert isinstance(answer, Nearest), (answer, answer.note)
    assert least <= reached(MODEL, answer.counterfactual, "d") < least + 1e-5 or answer.changes[-1].feature == "n"
    assert answer.stop is None and answer.subject == "the probability of d"


def test_nothing_nearer_on_a_fine_grid() -> None:
    target = ProbabilityTarget("d", at_least=0.4)
    answer = Explainer(MODEL).explain(ANN, target=target, constraints=["n is fixed"])
    x, y = np.meshgrid(np.linspace(-3, 3, 601), np.linspace(-3, 3, 601))
    rows = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, 3.0)])
    assert MODEL.probabilities is not None
    good = rows[MODEL.probabilities(rows)[:, 3] >= 0.4]
    far = (np.abs(good - [0.0, 0.5, 3.0]) / [6.0, 6.0, 9.0]).sum(axis=1).min() / 3.0
    assert answer.lower <= far <= answer.upper + 0.02


def test_none_exists_and_limits_end_between_bounds() -> None:
    explainer = Explainer(MODEL)
    assert isinstance(explainer.explain(ANN, target=ProbabilityTarget("a", at_least=1 - 1e-12)), NoneExists)
    target = ProbabilityTarget("d", at_least=0.4)
    whole = explainer.explain(ANN, target=target)
    kinds = set()
    for nodes in range(1, whole.nodes + 1, 3):
        cut = explainer.explain(ANN, target=target, limits=Limits(nodes=nodes))
        kinds.add(type(cut))
        assert cut.lower <= whole.upper and cut.upper >= whole.lower
        if isinstance(cut, Within | Unknown):
            assert cut.stop is not None and cut.stop.by is StoppedBy.NODES and cut.stop.amount == nodes
    assert {Unknown, Within} <= kinds


def test_the_models_own_report_has_the_last_word() -> None:
    """A model that reports less than its scores say: by a hair, it is asked for a hair more; by much, it is believed."""
    assert MODEL.probabilities is not None
    given = MODEL.probabilities
    target = ProbabilityTarget("d", at_least=0.4)
    plainly = Explainer(MODEL).explain(ANN, target=target)
    shy = Explainer(replace(MODEL, probabilities=lambda points: given(points) - 3e-7)).explain(ANN, target=target)
    assert shy.counterfactual is not None and reached(MODEL, shy.counterfactual, "d") >= 0.4 + 3e-7
    assert shy.upper >= plainly.upper - 1e-9 and shy.upper - shy.lower < 1e-5
    modest = Explainer(replace(MODEL, probabilities=lambda points: given(points) - 0.2)).explain(ANN, target=target)
    assert isinstance(modest, Unknown) and modest.lower == 0.0
    assert modest.stop is not None and modest.stop.by is StoppedBy.REFUSED


def test_rules_diverse_sets_and_the_fewest_changes() -> None:
    explainer, target = Explainer(MODEL), ProbabilityTarget("d", at_least=0.3)
    near = explainer.explain(ANN, target=target)
    ruled = explainer.explain(ANN, target=target, constraints=["x <= y"])
    assert ruled.upper >= near.upper - 1e-9
    assert ruled.counterfactual is not None and ruled.counterfactual["x"] <= ruled.counterfactual["y"]
    few = explainer.explain(ANN, Query(target=target, fewest_first=True))
    assert len(few.changes) <= len(near.changes)
    several = explainer.explain_diverse(ANN, Diversity(2), target=target)
    assert len(several) == 2
    assert all(reached(MODEL, one.counterfactual, "d") >= 0.3 for one in several)


def test_many_people_are_answered_as_one_by_one() -> None:
    explainer, target = Explainer(MODEL), ProbabilityTarget("d", at_least=0.3)
    rows = [MODEL.schema.row(point) for point in MODEL.schema.sample(6, np.random.default_rng(1))]
    heard: list[Any] = []
    many = explainer.using(threads=2, listen=heard.append).explain_many(rows, target=target)
    alone = [explainer.explain(row, target=target) for row in rows]
    assert [one.counterfactual for one in many] == [one.counterfactual for one in alone]
    assert [one.lower for one in many] == [one.lower for one in alone]
    assert heard[-1].finished == len(rows)


def test_a_query_as_data() -> None:
    query = Query(target=ProbabilityTarget("d", at_least=0.3))
    assert Query.from_dict(query.to_dict()) == query
    with pytest.raises(QuestionError, match="'probability_of' has no entry 'at_most'"):
        Query.from_dict({**query.to_dict(), "target": {"probability_of": "d", "at_most": 0.3}})


def test_what_is_refused() -> None:
    target = ProbabilityTarget("d", at_least=0.9)
    with pytest.raises(QuestionError, match=r"reports no probabilities.*model.as_log_odds\(\)"):
        Explainer(network_model(Network.of(LAYERS), SCHEMA, classes=tuple("abcd"))).explain(ANN, target=target)


def test_it_is_certified() -> None:
    target = ProbabilityTarget("d", at_least=0.4)
    answer, proven = Explainer(MODEL).explain(ANN, target=target), check(certify(Explainer(MODEL), ANN, target=target))
    assert proven.valid and math.isclose(proven.lower, answer.lower, abs_tol=1e-6)


def test_the_enumerator_takes_it() -> None:
    schema = Schema([Integer("x", -3, 3), Integer("y", -3, 3), Integer("n", 0, 9)])
    model = network_model(Network.of(LAYERS), schema, classes=("a", "b", "c", "d")).as_log_odds()
    person, target = {"x": 0, "y": 1, "n": 3}, ProbabilityTarget("d", at_least=0.4)
    one, other = (
        Explainer(model).explain(person, target=target),
        Explainer(model).using(Enumerate()).explain(person, target=target),
    )
    assert isinstance(one, Nearest) and isinstance(other, Nearest) and math.isclose(one.upper, other.upper)
