"""Preparation ahead of the first question: nothing is left to prepare, and answers are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Categorical,
    Explainer,
    Integer,
    Limits,
    Network,
    OneOfTarget,
    OtherTarget,
    ProbabilityTarget,
    Query,
    Real,
    Schema,
    datasets,
    import_model,
)
from ifonly.answering.prepared_methods import PreparedMethods
from ifonly.compiling import Kernels
from ifonly.errors import IfonlyError, QuestionError
from ifonly.methods import MipObj
from ifonly.model import network_model

SCHEMA = Schema([Real("a", 0, 1), Real("b", 0, 1), Integer("n", 0, 9), Categorical("c", ["p", "q", "r"])])
ANN = {"a": 0.1, "b": 0.2, "n": 2, "c": "p"}


def _network(outputs: int) -> Network:
    rng = np.random.default_rng(outputs)
    return Network.of(
        [(rng.normal(size=(6, 6)), rng.normal(size=6)), (rng.normal(size=(outputs, 6)), np.zeros(outputs))]
    )


TWO = network_model(_network(1), SCHEMA).as_log_odds()
THREE = replace(network_model(_network(3), SCHEMA, classes=("x", "y", "z")), probabilities=lambda points: np.zeros(1))


def _forest() -> Any:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    rows = SCHEMA.encode(SCHEMA.sample(200, rng))
    fitted = ensemble.RandomForestClassifier(5, max_depth=3, random_state=0).fit(rows, rows[:, 0] + rows[:, 1] > 1.0)
    return import_model(fitted, SCHEMA)


@pytest.fixture
def prepared(monkeypatch) -> list[Any]:
    """The targets for which a method is prepared, one after the other."""
    found: list[Any] = []
    whole = PreparedMethods._prepare

    def counting(self: Any, question: Any, *rest: Any) -> Any:
        found.append(question.target)
        return whole(self, question, *rest)

    monkeypatch.setattr(PreparedMethods, "_prepare", counting)
    return found


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"target": 1},
        {"distance": "l2", "constraints": ["a is fixed"]},
        {"constraints": ["if n >= 3 then a <= 0.5"]},
        {"constraints": ["at most 2 changes"]},
        {"target": ProbabilityTarget(0, at_least=0.6)},
        {"query": Query(fewest_first=True)},
    ],
    ids=str,
)
def test_the_first_question_prepares_nothing(prepared, asked) -> None:
    explainer = Explainer(TWO).using(reasons=False).prepare(**asked)  # reasons are questions of their own
    ahead = len(prepared)
    assert ahead == len(set(prepared)) > 0
    answers = [explainer.explain(row, **asked) for row in (ANN, {**ANN, "a": 0.9, "c": "r"}, {**ANN, "n": 9})]
    later = [] if "query" in asked else prepared[ahead:]  # how few changes there are is not known before
    assert not later
    same = [Explainer(TWO).explain(row, **asked) for row in (ANN, {**ANN, "a": 0.9, "c": "r"}, {**ANN, "n": 9})]
    assert [(one.status, one.upper, one.lower) for one in answers] == [
        (one.status, one.upper, one.lower) for one in same
    ]


def test_people_of_each_decision_have_a_question(prepared) -> None:
    Explainer(TWO).prepare()
    assert [target.label for target in prepared] == [1, 0]
    prepared.clear()
    explainer = Explainer(THREE).prepare(target=OtherTarget())
    assert {target.label for target in prepared} == {"x", "y", "z"}
    prepared.clear()
    assert explainer.explain(ANN, target=OneOfTarget(["x", "y"])).status
    assert not prepared


@pytest.mark.parametrize("name", ["compas", "credit", "adult"])
def test_under_the_rules_of_the_data(prepared, name) -> None:
    explainer = Explainer(datasets.network(name)).prepare()
    ahead, data = len(prepared), datasets.load(name)
    for i in range(10):
        assert explainer.explain(data.row(i), limits=Limits(nodes=2_000)).upper >= 0.0
    assert len(prepared) == ahead


def test_trees_are_prepared(prepared) -> None:
    explainer = Explainer(_forest()).prepare(constraints=["a + b <= 1.5"])
    ahead = len(prepared)
    assert explainer.explain(ANN, constraints=["a + b <= 1.5"]).status in ("nearest", "none exists")
    assert len(prepared) == ahead


def test_other_methods_are_prepared(prepared) -> None:
    explainer = Explainer(TWO).using(MipObj()).prepare()
    ahead = len(prepared)
    explainer.explain(ANN)
    assert ahead == len(prepared) == 2


def test_the_model_is_called_with_rows_of_the_schema() -> None:
    seen: list[Any] = []

    def original(points: Any) -> Any:
        seen.append(points.copy())
        return TWO.original(points)

    Explainer(replace(TWO, original=original)).prepare()
    assert 1 <= len(seen) <= 4
    assert all(SCHEMA.row(points[0])["c"] in "pqr" and SCHEMA.admits(points, points).all() for points in seen)


@pytest.mark.parametrize("wait", [True, False])
def test_only_who_waits_waits_for_the_compiler(monkeypatch, wait) -> None:
    waited: list[str] = []
    monkeypatch.setattr(Kernels, "wait", lambda self, until=0.0: waited.append(self.where) or True)
    explainer = Explainer(TWO).prepare(wait=wait)
    assert (waited == ["ifonly.solvers.search.compiled:KERNELS"] * 2) == wait and bool(waited) == wait
    assert explainer.explain(ANN).status


def test_what_takes_too_much_memory_is_left_to_the_answer() -> None:
    explainer = Explainer(TWO).using(limits=Limits(memory_bytes=1)).prepare()
    assert explainer.explain(ANN).status == "unknown"


def test_refusals_are_those_of_the_question() -> None:
    for explainer, asked in (
        (Explainer(THREE), {}),
        (Explainer(TWO), {"target": 7}),
    ):
        with pytest.raises(IfonlyError) as ahead:
            explainer.prepare(**asked)
        with pytest.raises(IfonlyError) as asking:
            explainer.explain(ANN, **asked)
        assert str(ahead.value) == str(asking.value)
    with pytest.raises(QuestionError, match="wait"):
        Explainer(TWO).prepare(wait="long")
