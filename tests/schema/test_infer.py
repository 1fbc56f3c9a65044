"""Inference proposes, and says why."""

from __future__ import annotations

import datetime

import pytest

from ifonly import Binary, Categorical, Integer, Ordinal, Real, Schema
from ifonly.errors import SchemaError
from ifonly.schema import infer

TABLE = {
    "age": [20, 31, 45],
    "income": [1.5, 2.0, 9.25],
    "owner": [True, False, True],
    "sex": ["m", "f", "f"],
    "job": ["clerk", "nurse", None],
    "constant": [3, 3, 3],
    "whole": [1.0, 2.0, 5.0],
}


def test_kinds_and_reasons() -> None:
    schema, guesses = infer(TABLE)
    assert schema == Schema.infer(TABLE)
    assert schema.features == (
        Integer("age", 20, 45),
        Real("income", 1.5, 9.25),
        Binary("owner", (False, True)),
        Binary("sex", ("f", "m")),
        Categorical("job", ("clerk", "nurse", None)),
        Integer("constant", 3, 3),
        Integer("whole", 1, 5),
    )
    assert [g.feature for g in guesses] == list(TABLE)
    why = {g.feature: g.why for g in guesses}
    assert why["age"] == "whole numbers; bounds 20 and 45 are the data's"
    assert why["sex"] == "two values: 'f' (0) and 'm' (1)"
    assert "missing (1 rows) is a category too" in why["job"]


def test_missing_numbers_are_announced() -> None:
    _, (guess,) = infer({"x": [1.5, None, 3.0, 4.0]})
    assert "missing in 1 rows, which a model must be able to take" in guess.why


def test_frames_and_rows() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    expected = Schema.infer(TABLE)
    assert Schema.infer(pandas.DataFrame(TABLE)) == expected
    assert Schema.infer(polars.DataFrame(TABLE)) == expected
    assert Schema.infer(rows) == expected


def test_an_order_that_the_frame_declares_is_kept() -> None:
    pandas = pytest.importorskip("pandas")
    sizes = pandas.Categorical(["S", "L", "S"], categories=["S", "M", "L"], ordered=True)
    assert Schema.infer(pandas.DataFrame({"size": sizes})).features == (Ordinal("size", ("S", "M", "L")),)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "no columns"),
        ({"x": [None, None]}, "'x' has no values"),
        ({"x": [1.0, float("inf"), 2.0]}, "'x' has infinite values"),
        ({"x": [10**400, 1, 2]}, "'x' has infinite values"),
        ({"id": [f"a{i}" for i in range(1001)]}, "'id' has 1001 different texts"),
        ({"x": [[1], [2]]}, "'x' holds values that are neither"),
        ({"day": [datetime.date(2020, 1, d) for d in (1, 2, 3)]}, "'day': option .* must be a string"),
    ],
)
def test_what_cannot_be_inferred(table: object, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        infer(table)
