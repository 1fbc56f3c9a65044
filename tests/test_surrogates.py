"""Models that can only be called: a returned row is accepted by the model itself, and nothing is called proven."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ifonly import Answer, Categorical, Integer, Real, Schema, Unknown, Within
from ifonly.errors import ModelError, QuestionError
from ifonly.surrogates import BlackBox, SurrogateAnswer

SCHEMA = Schema([Integer("age", 18, 80), Real("income", 0, 9000), Categorical("job", ["clerk", "cook", "driver"])])
RNG = np.random.default_rng(7)
TABLE = [SCHEMA.row(point) for point in SCHEMA.sample(400, RNG)]
POOR = {"age": 30, "income": 1000.0, "job": "cook"}


def curved(rows: list[dict[str, Any]]) -> list[str]:
    """No piecewise-linear function: a circle around a wealthy clerk of fifty, and drivers above a parabola."""

    def one(row: dict[str, Any]) -> bool:
        age, income = (row["age"] - 50) / 30, (row["income"] - 5000) / 4000
        if row["job"] == "driver":
            return income > 0.8 * age * age
        return age * age + income * income < (0.6 if row["job"] == "clerk" else 0.35)

    return ["yes" if one(row) else "no" for row in rows]


@pytest.fixture(scope="module")
def box() -> BlackBox:
    return BlackBox(curved, TABLE, schema=SCHEMA, draws=1500)


def test_the_model_itself_accepts_what_is_returned_and_constraints_hold(box: BlackBox) -> None:
    answers = [box.explain(row, target="yes", constraints=["age only goes up"]) for row in TABLE[:4]]
    refused = [row for row, decided in zip(TABLE[:4], curved(TABLE[:4]), strict=True) if decided == "no"]
    assert len(refused) >= 2
    for row, answer in zip(TABLE[:4], answers, strict=True):
        assert answer.counterfactual is not None
        assert curved([dict(answer.counterfactual)]) == ["yes"]
        assert answer.counterfactual["age"] >= row["age"]
        assert (answer.distance == 0.0) == (curved([row]) == ["yes"])
        assert answer.status == "accepted"


def test_nothing_is_called_proven(box: BlackBox) -> None:
    answer = box.explain(POOR)
    assert isinstance(answer, SurrogateAnswer)
    assert isinstance(answer.answer, Within)
    assert answer.answer.lower == 0.0
    assert answer.distance > 0.0
    words = f"{answer} {answer.sentence()} {answer.sentence('de')} {answer.to_dict()}"
    assert "nearest" not in words.lower()
    assert "proven" not in words.lower()
    assert "may" in answer.sentence()
    assert Answer.from_dict(answer.answer.to_dict()) is not None


def test_rows_and_comparisons_are_counted() -> None:
    asked = list[int]()

    def counting(rows: list[dict[str, Any]]) -> list[str]:
        asked.append(len(rows))
        return curved(rows)

    box = BlackBox(counting, TABLE, schema=SCHEMA, draws=1000)
    assert box.asked == sum(asked) == 1000 + 80
    answer = box.explain(POOR)
    assert box.asked == sum(asked) == 1080 + answer.asked
    assert answer.fidelity.of == 80
    assert 0.5 < answer.fidelity.share <= 1.0


@pytest.mark.long
def test_the_same_seed_gives_the_same_answer(box: BlackBox) -> None:
    again = BlackBox(curved, TABLE, schema=SCHEMA, draws=1500)
    assert again.explain(POOR).to_dict() == box.explain(POOR).to_dict()


def test_where_the_model_refuses_every_row_none_is_found() -> None:
    """A model that accepts real rows and refuses all others, as no surrogate can know."""
    known = {tuple(row.values()): curved([row])[0] for row in TABLE}
    box = BlackBox(
        lambda rows: [known.get(tuple(row.values()), "no") for row in rows], TABLE, schema=SCHEMA, draws=400, rounds=2
    )
    answer = box.explain(POOR)
    assert answer.status == "not found"
    assert isinstance(answer.answer, Unknown)
    assert answer.counterfactual is None
    assert answer.to_dict()["distance"] is None
    assert "there may be one" in str(answer)
    assert answer.refused <= 2


def test_impossible_constraints_find_none(box: BlackBox) -> None:
    answer = box.explain(POOR, constraints=["age is fixed", "income is fixed", "job is fixed"])
    assert answer.status == "not found"
    assert answer.refused == 0


@pytest.mark.parametrize(
    ("predict", "words"),
    [
        (object(), "Give a function from a list of rows to their classes"),
        (lambda rows: ["yes"], "one class per row: for 80 rows it returned 1"),
        (lambda rows: 3, "one class per row: for 80 rows it returned 3"),
        (lambda rows: ["yes"] * len(rows), "one class, 'yes'"),
        (lambda rows: [None] * len(rows), "A class must be a text, a whole number or a truth value"),
    ],
)
def test_functions_that_are_no_models(predict: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        BlackBox(predict, TABLE, schema=SCHEMA, draws=100)


def test_wrong_questions(box: BlackBox) -> None:
    with pytest.raises(QuestionError, match="one of its classes, target=no, yes; got 'maybe'"):
        box.explain(POOR, target="maybe")
    with pytest.raises(ModelError, match="at least 10 different rows; this one has 3"):
        BlackBox(curved, TABLE[:3], schema=SCHEMA)
    with pytest.raises(QuestionError, match="The number of rounds is a whole number from 1; it is 0"):
        BlackBox(curved, TABLE, schema=SCHEMA, rounds=0)
    with pytest.raises(ModelError, match="with a Schema"):
        BlackBox(curved, TABLE, schema=3)  # type: ignore[arg-type]
