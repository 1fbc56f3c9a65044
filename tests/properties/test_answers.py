"""What must hold of the answers themselves, whatever was asked."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifonly import Answer, Explainer, Nearest, NoneExists, Schema
from ifonly.methods import Enumerate
from ifonly.model import network_model
from ifonly.problem import Constraint, Question
from ifonly.results import check_witnesses
from properties.strategies import constraints, generator, questions, seeds


def answers_of(question: Question, points: np.ndarray, *, extra: tuple[Constraint, ...] = ()) -> list[Answer]:
    explainer = Explainer(question.model)
    rows = [question.schema.row(point) for point in points]
    rules = (*question.constraints, *extra)
    return list(
        explainer.using(Enumerate()).explain_many(
            rows, target=question.target, distance=question.distance, constraints=rules
        )
    )


@pytest.mark.long
@given(questions(finite=True, most=4), seeds)
def test_answers_are_proven_checked_and_plain_data(question: Question, seed: int) -> None:
    points = question.schema.sample(4, generator(seed))
    for answer, point in zip(answers_of(question, points), points, strict=True):
        assert isinstance(answer, Nearest | NoneExists)
        assert pickle.loads(pickle.dumps(answer)).to_dict() == answer.to_dict()
        plain = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
        assert plain["status"] == answer.status
        assert str(answer).endswith((".", ".)"))  # a sentence, or two of which the second is in parentheses
        if answer.counterfactual is None:
            continue
        found = question.schema.read(answer.counterfactual)
        witnesses = check_witnesses(question, point[None, :], found[None, :])
        assert bool(witnesses.invalid) == bool(answer.breaks)  # an unchanged row may break constraints
        assert answer.already or not (witnesses.invalid or witnesses.refused)
        assert witnesses.distances.tolist() == [answer.upper]
        assert {c.feature for c in answer.changes} == {
            name for name, a, b in zip(question.schema.names, point, found, strict=True) if a != b
        }


@given(st.data(), questions(finite=True, most=4), seeds)
def test_more_constraints_are_never_nearer(data: st.DataObject, question: Question, seed: int) -> None:
    points = question.schema.sample(4, generator(seed))
    extra = data.draw(constraints(data.draw(st.sampled_from(question.schema.features))))
    free, bound = answers_of(question, points), answers_of(question, points, extra=(extra,))
    assert all(a.upper <= b.upper for a, b in zip(free, bound, strict=True))


@settings(max_examples=30)
@given(questions(finite=True, most=4), seeds)
def test_permuting_features_changes_nothing(question: Question, seed: int) -> None:
    schema, rng = question.schema, generator(seed)
    order = rng.permutation(len(schema))
    permuted = Schema([schema.features[i] for i in order], schema.columns)
    other = replace(question, model=network_model(question.model.network, permuted))
    points = schema.sample(4, rng)
    for a, b in zip(answers_of(question, points), answers_of(other, points[:, order]), strict=True):
        assert type(a) is type(b)
        assert np.isclose(a.upper, b.upper, rtol=1e-12, atol=0.0) or a.upper == b.upper


@settings(max_examples=30)
@given(questions(finite=True, most=4), seeds)
def test_who_is_asked_with_whom_changes_nothing(question: Question, seed: int) -> None:
    points = question.schema.sample(5, generator(seed))
    together = answers_of(question, points)
    alone = [answers_of(question, point[None, :])[0] for point in points]
    for a, b in zip(together, alone, strict=True):
        assert (a.counterfactual, a.upper, a.lower) == (b.counterfactual, b.upper, b.lower)
