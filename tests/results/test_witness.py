"""The witness check refuses each kind of wrong row, and says which kind."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import (
    Allowed,
    Binary,
    Categorical,
    ClassTarget,
    Fixed,
    Integer,
    Network,
    OnlyDown,
    OnlyUp,
    Ordinal,
    Range,
    Real,
)
from ifonly import Schema as RowSchema
from ifonly.model import Model, network_model
from ifonly.problem import Constraint, Distance, Question
from ifonly.results import check_witnesses

SCHEMA = RowSchema(
    [
        Integer("n", 0, 20, 2),
        Real("x", 0, 1),
        Binary("b", (0, 1)),
        Ordinal("o", ["low", "mid", "high"], "code"),
        Categorical("c", ["p", "q", "r"], "code"),
    ]
)
MODEL = network_model(Network.of([([[1.0, 0.0, 0.0, 0.0, 0.0]], [-9.0])]), SCHEMA)  # class 1 iff n > 9
BEFORE = np.array([4.0, 0.5, 0.0, 1.0, 0.0])
GOOD = np.array([10.0, 0.5, 0.0, 1.0, 0.0])


def check(point: np.ndarray, *constraints: Constraint, model: Model = MODEL):  # type: ignore[no-untyped-def]
    question = Question(model=model, target=ClassTarget(1), distance=Distance("l1"), constraints=constraints)
    return check_witnesses(question, BEFORE[None, :], point[None, :])


def changed(**values: float) -> np.ndarray:
    point = GOOD.copy()
    for name, value in values.items():
        point[SCHEMA.index(name)] = value
    return point


def test_a_counterfactual_passes() -> None:
    witness = check(GOOD, Fixed("x"), OnlyUp("n"), Range("n", 3, 12), OnlyDown("o"), Allowed("c", ["p", "q"]))
    assert not witness.rejected
    assert witness.distances.tolist() == pytest.approx([6 / 20 / 5])
    assert witness.scores.tolist() == [[1.0]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 22.0},
        {"n": -2.0},
        {"n": 11.0},
        {"n": 10.0 + 1e-12},
        {"n": np.nan},
        {"x": 1.0 + 1e-15},
        {"x": -1e-300},
        {"x": np.inf},
        {"b": 2.0},
        {"b": 0.5},
        {"o": 3.0},
        {"o": -1.0},
        {"c": 1.0000001},
        {"c": np.nan},
    ],
    ids=str,
)
def test_what_is_no_row_of_the_schema_is_refused(wrong: dict[str, float]) -> None:
    witness = check(changed(**wrong))
    assert "is not a row of the schema" in witness.invalid[0]
    assert not witness.refused


@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"x": 0.75}, Fixed("x")),
        ({"o": 0.0}, OnlyUp("o")),
        ({"o": 2.0}, OnlyDown("o")),
        ({}, OnlyDown("n")),
        ({}, Range("n", 0, 9)),
        ({}, Range("n", 11, 20)),
        ({"c": 2.0}, Allowed("c", ["p", "q"])),
    ],
    ids=str,
)
def test_a_broken_constraint_is_named(wrong: dict[str, float], constraint: Constraint) -> None:
    witness = check(changed(**wrong), constraint)
    assert witness.invalid[0] == f"the row breaks the constraint: {constraint.describe()}"
    assert not witness.refused
    assert not check(changed(**wrong)).rejected  # without the constraint it would do


@pytest.mark.parametrize("score", [-1.0, 0.0, 1e-9, np.nan])
def test_the_users_own_model_has_the_last_word(score: float) -> None:
    model = Model(
        function=MODEL.network,
        schema=SCHEMA,
        original=lambda points: np.full((len(points), 1), score),
        classes=(0, 1),
    )
    witness = check(GOOD, model=model)
    assert witness.refused[0].startswith("the model does not decide as asked")
    assert not witness.invalid


def test_the_users_model_never_sees_what_is_no_row() -> None:
    seen = []

    def original(points: np.ndarray) -> np.ndarray:
        seen.extend(points.tolist())
        return np.ones((len(points), 1))

    model = Model(function=MODEL.network, schema=SCHEMA, original=original, classes=(0, 1))
    question = Question(model=model, target=ClassTarget(1))
    points = np.array([changed(n=11.0), GOOD, changed(c=np.nan)])
    witnesses = check_witnesses(question, np.array([BEFORE] * 3), points)
    assert sorted(witnesses.invalid) == [0, 2] and not witnesses.refused
    assert seen == [GOOD.tolist()]
