"""Diverse sets against a loop over all rows: every answer is the nearest that differs from the earlier ones.

Which of several equally near rows comes first is the method's choice, and decides what comes after it. So the loop
does not make a set of its own: it looks, answer by answer, for a nearer row given the answers before.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from random_problems import random_problem

from ifonly import DiverseAnswers, Diversity, Explainer, Limits, NoneExists
from ifonly.methods import Enumerate, MipObj, Search
from ifonly.problem import Distance, Question
from ifonly.results import Method
from ifonly.schema import Integer, Real

Floats = NDArray[np.float64]
TOLERANCE = 1e-6
LIMITS = Limits(seconds=600.0)


def all_rows(question: Question, before: Floats) -> Floats:
    """Every row that the constraints allow."""
    values = []
    for g, feature in enumerate(question.schema.features):
        if isinstance(feature, Real):
            ends = [c for c in question.constraints if c.feature == feature.name and hasattr(c, "lower")]
            own = [before[g], *(c.lower for c in ends), feature.lower, feature.upper]
        elif isinstance(feature, Integer):
            own = [feature.lower + feature.step * k for k in range(feature.steps + 1)]
        else:
            own = list(range(len(feature.options)))
        mine = [c for c in question.constraints if c.feature == feature.name]
        values.append(sorted({float(v) for v in own if all(c.allows(feature, before[g], float(v)) for c in mine)}))
    rows = np.array(list(itertools.product(*values)), dtype=np.float64).reshape(-1, len(values))
    return rows[question.schema.admits(rows)] if len(rows) else rows


def favourable(question: Question, rows: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are surely above the margin by the blur, and which could be, given the rounding of scores."""
    if not len(rows):
        return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
    c, d = question.conditions
    scores = question.model.network.scores(question.schema.encode(rows)) @ c.T - d - question.target.margin
    slack = 2.0 * np.abs(c) @ question.model.error
    assert question.rounding_bound is not None
    return (scores >= question.rounding_bound + slack).all(axis=1), (scores >= question.rounding_bound - slack).all(
        axis=1
    )


def differs(question: Question, diversity: Diversity, before: Floats, rows: Floats, other: Floats) -> NDArray[np.bool_]:
    """The definition, written again."""
    measured = diversity.measured(question.distance)
    if diversity.differ == "distance":
        return np.asarray(measured.between(question.schema, other, rows)) >= diversity.apart
    if diversity.differ == "features":
        return ((rows == before) & (other != before)).any(axis=1)
    reals = np.array([isinstance(f, Real) for f in question.schema.features])
    by = np.where(reals, diversity.apart * measured.scale_vector(question.schema), 0.0)
    moved = np.abs(rows - other)
    return (np.where(reals, moved >= by, moved > 0.0)).any(axis=1)


def wrong(question: Question, before: Floats, diversity: Diversity, told: DiverseAnswers) -> str:
    """What a loop over all rows finds wrong with a set; empty when nothing is."""
    rows = all_rows(question, before)
    robustly, could = favourable(question, rows)
    distance = question.distance.between(question.schema, before, rows) if len(rows) else np.zeros(0)
    left = np.ones(len(rows), dtype=bool)
    for i, answer in enumerate((*told, *([told.ended] if told.ended else []))):
        nearest = float(distance[left & robustly].min(initial=math.inf))
        possible = float(distance[left & could].min(initial=math.inf))
        said = f"answer {i}: {answer.status} [{answer.lower!r}, {answer.upper!r}] {answer.note}"
        if i == 0 and answer.already:  # the model's own word, whatever the margin and the constraints ask of changes
            if not replace(question.target, margin=0.0).met(question.model, question.model.scores(before[None, :]))[0]:
                return f"{said}, but the model does not decide so"
            left &= differs(question, diversity, before, rows, before)
            continue
        if answer.stop is not None and answer.stop.is_limit:
            return f"{said} does not end"
        if answer.lower > possible + TOLERANCE:
            return f"{said}, but a row at {possible!r} is left"
        if answer.upper > nearest + TOLERANCE and not (isinstance(answer, NoneExists) and math.isinf(nearest)):
            return f"{said}, but a row at {nearest!r} is nearer"
        if answer.counterfactual is None:
            if isinstance(answer, NoneExists) and (left & robustly).any():
                return f"{said}, but rows are left"
            continue
        point = question.schema.read(answer.counterfactual)
        here = (rows == point).all(axis=1)
        if not (here & left & could).any():
            return f"{said}: {point.tolist()} is not an allowed row that differs from the earlier ones"
        left &= differs(question, diversity, before, rows, point)
    if told.ended is None and len(told) != diversity.k:
        return f"{len(told)} answers instead of {diversity.k}, without a reason"
    return ""


def cases(seed: int) -> tuple[Question, Floats, list[Diversity]]:
    question, points = random_problem(seed, finite=True)
    rng = np.random.default_rng([seed, 7])
    if question.distance.norm == "l2":
        question = replace(question, distance=replace(question.distance, norm="l1"))
    reals = any(isinstance(f, Real) for f in question.schema.features)
    own = Distance("l1") if question.distance.jump and reals else None
    n = len(question.schema)
    apart = float(rng.choice([0.01, 0.1, 1.0 / n, 2.0 / n, 0.3]))
    return question, points[0], [
        Diversity(k=5, apart=apart, apart_distance=own),
        Diversity(k=5, differ="features"),
        Diversity(k=5, differ="values"),
    ]  # fmt: skip


def told(question: Question, before: Floats, diversity: Diversity, method: Method) -> DiverseAnswers:
    return (
        Explainer(question.model)
        .using(method, limits=LIMITS)
        .explain_diverse(
            question.schema.row(before),
            diversity,
            target=question.target,
            distance=question.distance,
            constraints=question.constraints,
        )
    )


@pytest.mark.long
@pytest.mark.parametrize("method", [Enumerate(), Search(), MipObj()], ids=lambda method: method.name)
def test_random_sets(method: Method) -> None:
    found, ended = 0, 0
    for seed in range({"enumerate": 25, "search": 40}.get(method.name, 15)):
        question, before, diversities = cases(seed)
        for diversity in diversities:
            answers = told(question, before, diversity, method)
            complaint = wrong(question, before, diversity, answers)
            assert not complaint, f"seed {seed}, {diversity}: {complaint}"
            found, ended = found + len(answers), ended + isinstance(answers.ended, NoneExists)
    assert found > 60
    assert ended > 10
