"""The enumerator against a plain loop over all 936 rows of COMPAS, and against another solver's optima.

The loop shares nothing with the package: it encodes, evaluates and measures with Python's own numbers.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import TypeAlias

import numpy as np
import pytest

from cases import DATA, NORMS, load
from ifonly import ClassTarget, Explainer, Fixed, Nearest, NoneExists, OnlyUp, Range
from ifonly.methods import Enumerate

Person: TypeAlias = tuple[int, int, int, int, int]  # age group, race, sex, priors, charge degree
SPACE: list[Person] = list(itertools.product(range(3), range(2), range(2), range(39), range(2)))
VARIANTS = ("raw", "norm")


@cache
def weights(variant: str) -> tuple[list[list[list[float]]], list[list[float]], list[float], list[float]]:
    with np.load(DATA / f"compas_2x10_{variant}.npz") as case:
        return (
            [case[f"W{i}"].tolist() for i in range(3)],
            [case[f"b{i}"].tolist() for i in range(3)],
            case["scale"].tolist(),
            case["shift"].tolist(),
        )


@cache
def plain_score(variant: str, person: Person) -> float:
    """The network on the columns race, sex, priors, charge and the three bits of the age group."""
    matrices, biases, scale, shift = weights(variant)
    age, race, sex, priors, charge = person
    x = [race, sex, priors, charge, 1, int(age >= 1), int(age >= 2)]
    h = [v * a + b for v, a, b in zip(x, scale, shift, strict=True)]
    for layer, (matrix, bias) in enumerate(zip(matrices, biases, strict=True)):
        z = [sum(h[i] * matrix[i][j] for i in range(len(h))) + bias[j] for j in range(len(bias))]
        h = [max(v, 0.0) for v in z] if layer < 2 else z
    return h[0]


def plain_distance(norm: str, a: Person, b: Person) -> float:
    moves = [abs(a[0] - b[0]) / 3, float(a[1] != b[1]), float(a[2] != b[2]), abs(a[3] - b[3]) / 38, float(a[4] != b[4])]
    return {
        "l0": sum(move > 0 for move in moves) / 5,
        "l1": sum(moves) / 5,
        "l2": math.sqrt(sum(move * move for move in moves) / 5),
        "linf": max(moves) / 5,
    }[norm]


def plain_nearest(variant: str, norm: str, person: Person, *, resolved: bool) -> float:
    good = [other for other in SPACE if (plain_score(variant, other) > 0) == resolved]
    return min((plain_distance(norm, person, other) for other in good), default=math.inf)


def as_person(point: np.ndarray) -> Person:
    age, race, sex, priors, charge = map(int, point)
    return age, race, sex, priors, charge


def test_the_space_has_936_points_and_none_on_the_boundary() -> None:
    assert len(SPACE) == 936
    assert min(abs(plain_score(variant, person)) for variant in VARIANTS for person in SPACE) > 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_network_is_the_one_that_the_loop_evaluates(variant: str) -> None:
    model, _, _ = load("compas", "2x10", variant)
    ours = model.scores(np.array(SPACE, dtype=float))[:, 0]
    assert np.allclose(ours, [plain_score(variant, person) for person in SPACE], rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_reference_optima(variant: str, norm: str) -> None:
    model, points, optima = load("compas", "2x10", variant)
    rows = [model.schema.row(point) for point in points[:30]]
    target = ClassTarget(1, margin=0.0)
    answers = Explainer(model).using(Enumerate()).explain_many(rows, target=target, distance=norm)
    assert all(isinstance(answer, Nearest) for answer in answers)
    assert np.abs([answer.upper for answer in answers] - optima[norm]).max() <= 1e-9


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_all_people_agree_with_the_loop(variant: str, norm: str) -> None:
    model, points, _ = load("compas", "2x10", variant)
    assert len(points) == 100
    rows = [model.schema.row(point) for point in points]
    answers = Explainer(model).using(Enumerate()).explain_many(rows, distance=norm)
    for answer, point in zip(answers, points, strict=True):
        assert isinstance(answer, Nearest)
        assert (answer.decision_before, answer.decision_after) == (0, 1)
        assert answer.upper == pytest.approx(plain_nearest(variant, norm, as_person(point), resolved=True), abs=1e-12)
        found = as_person(model.schema.read(answer.counterfactual))
        assert plain_score(variant, found) > 0
        assert plain_distance(norm, as_person(point), found) == pytest.approx(answer.upper, abs=1e-12)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_opposite_direction_agrees_with_the_loop(variant: str, norm: str) -> None:
    model, _, _ = load("compas", "2x10", variant)
    favourable = [person for person in SPACE if plain_score(variant, person) > 0][::4]
    assert len(favourable) > 50
    points = np.array(favourable, dtype=float)
    answers = (
        Explainer(model).using(Enumerate()).explain_many([model.schema.row(point) for point in points], distance=norm)
    )
    for answer, person in zip(answers, favourable, strict=True):
        assert isinstance(answer, Nearest)
        assert (answer.decision_before, answer.decision_after) == (1, 0)
        assert answer.upper == pytest.approx(plain_nearest(variant, norm, person, resolved=False), abs=1e-12)


@pytest.mark.parametrize("margin", [0.1, 0.5])
def test_the_margin_is_kept(margin: float) -> None:
    model, points, optima = load("compas", "2x10", "norm", margin=0.1)
    rows = [model.schema.row(point) for point in points[:30]]
    answers = Explainer(model).using(Enumerate()).explain_many(rows, target=ClassTarget(1, margin=margin))
    for i, answer in enumerate(answers):
        assert answer.score_after >= margin
        if margin == 0.1:
            assert answer.upper == pytest.approx(optima["l1"][i], abs=1e-9)


def test_constraints_agree_with_the_loop() -> None:
    model, points, _ = load("compas", "2x10", "norm")
    constraints = [Fixed("Race"), Fixed("Sex"), OnlyUp("AgeGroup"), Range("PriorsCount", 0, 6)]
    rows = [model.schema.row(point) for point in points]
    answers = Explainer(model).using(Enumerate()).explain_many(rows, constraints=constraints)
    kinds = set()
    for answer, point in zip(answers, points, strict=True):
        a = as_person(point)
        allowed = [b for b in SPACE if b[1:3] == a[1:3] and b[0] >= a[0] and b[3] <= 6 and plain_score("norm", b) > 0]
        best = min((plain_distance("l1", a, b) for b in allowed), default=math.inf)
        assert answer.upper == pytest.approx(best, abs=1e-12)
        assert isinstance(answer, Nearest if allowed else NoneExists)
        kinds.add(type(answer))
    assert kinds == {Nearest, NoneExists}  # the constraints bite for some, not for all
