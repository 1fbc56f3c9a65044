"""What questions about one model share: it is made once, and is what each would have made."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ifonly import ClassTarget, Distance, Explainer, Fixed, Rule, datasets
from ifonly.problem import Question, lower
from ifonly.problem.elimination import eliminated
from ifonly.problem.lowered_network import _lowered_network
from ifonly.solvers.search import worker


def _question(name: str = "adult", **changed: Any) -> Question:
    explainer = Explainer(datasets.network(name))
    asked = {"target": ClassTarget(1), "constraints": explainer.constraints_for(()), **changed}
    return Question(model=explainer.model, **asked)


def test_a_network_is_lowered_once_for_all_distances_and_constraints_on_single_features() -> None:
    question = _question()
    first = lower(question, simplify=True).network
    kept = question.constraints
    for other in (
        replace(question, distance=Distance("l2")),
        replace(question, constraints=(*kept, Fixed("Age"))),
    ):
        assert lower(other, simplify=True).network is first
    for other in (
        replace(question, target=ClassTarget(0)),
        replace(question, constraints=(*kept, Rule("Age <= 50 or HoursPerWeek <= 40"))),
    ):
        assert lower(other, simplify=True).network is not first
    assert lower(question).network is not first


@pytest.mark.parametrize("label", [0, 1])
def test_the_kept_network_is_the_one_that_would_be_made(label: int) -> None:
    question = _question(target=ClassTarget(label))
    kept, anew = lower(question, simplify=True).network, _lowered_network(question, True, kept=False)
    for one, other in zip(kept.layers, anew.layers, strict=True):
        assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1])
    assert np.array_equal(kept.required, anew.required) and np.array_equal(kept.unroll, anew.unroll)


def test_an_elimination_and_a_reduced_model_are_made_once() -> None:
    question = _question("credit")
    found = [
        eliminated(one) for one in (question, replace(question, constraints=(*question.constraints, Fixed("isMale"))))
    ]
    (first, one), (second, other) = (pair for pair in found if pair is not None)
    assert one.hosts is other.hosts and first.model is second.model and first.distance is second.distance
    assert one is not other and len(second.constraints) == len(first.constraints) + 1
    assert eliminated(replace(question, distance=Distance("linf")))[0].distance != first.distance  # type: ignore[index]


def test_a_derived_feature_with_a_constraint_of_its_own_is_not_eliminated() -> None:
    question = _question()
    found = eliminated(question)
    assert found is not None
    (derived, *_) = sorted(question.derived - set(found[0].schema.names))
    held = eliminated(replace(question, constraints=(*question.constraints, Fixed(derived))))
    assert held is None or derived in held[0].schema.names


def test_what_is_kept_does_not_travel() -> None:
    question = _question()
    eliminated(question)
    assert question.model.__dict__["_reduced_models"] and hash(question.schema)
    model = pickle.loads(pickle.dumps(question.model))
    assert "_reduced_models" not in vars(model) and "_hash" not in vars(model.schema)
    assert hash(model.schema) == hash(question.schema) and model.schema == question.schema


def test_questions_of_one_size_share_the_buffers_of_threads() -> None:
    explainer, row = Explainer(datasets.network("adult", rules=False)), datasets.load("adult", rules=False).row(0)
    explainer.explain(row)
    before = {id(spare): len(spare.value.buffers) for spare in worker.SPARE._entries.values()}
    explainer.explain(row, constraints=["Age is fixed"])
    assert {id(spare): len(spare.value.buffers) for spare in worker.SPARE._entries.values()} == before
    assert all(spare.value.nbytes > 0 for spare in worker.SPARE._entries.values())
