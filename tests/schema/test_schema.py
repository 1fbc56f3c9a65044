"""Schemas: order, names, rows, encoded columns."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import Binary, Categorical, Integer, Ordinal, Real, Schema
from ifonly.errors import RowError, SchemaError

LOAN = Schema(
    [
        Integer("age", 18, 90),
        Categorical("job", ["none", "clerk", "nurse"]),
        Ordinal("rating", ["low", "mid", "high"]),
        Binary("owner"),
        Real("income", 0, 1e6),
    ],
    columns=[
        "income",
        "rating>=low",
        "job=none",
        "job=nurse",
        "rating>=mid",
        "owner",
        "job=clerk",
        "rating>=high",
        "age",
    ],
)
ANN = {"age": 31, "job": "nurse", "rating": "mid", "owner": True, "income": 52000.0}


def test_a_row_in_three_views() -> None:
    point = LOAN.read(ANN)
    assert point.tolist() == [31.0, 2.0, 1.0, 1.0, 52000.0]
    assert LOAN.encode(point).tolist() == [52000.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 31.0]
    assert LOAN.row(point) == ANN


def test_rows_of_many_kinds() -> None:
    pandas = pytest.importorskip("pandas")
    expected = LOAN.read(ANN).tolist()
    assert LOAN.read({**ANN, "label": 1}).tolist() == expected  # more columns than features are fine
    assert LOAN.read(list(ANN.values())).tolist() == expected
    assert LOAN.read(tuple(ANN.values())).tolist() == expected
    assert LOAN.read(np.array(list(ANN.values()), dtype=object)).tolist() == expected
    assert LOAN.read(np.array([list(ANN.values())], dtype=object)).tolist() == expected
    assert LOAN.read(pandas.Series(ANN)).tolist() == expected
    assert LOAN.read(pandas.DataFrame([ANN]).iloc[0]).tolist() == expected


def test_a_frame_is_not_a_row() -> None:
    pandas = pytest.importorskip("pandas")
    assert LOAN.read(pandas.DataFrame([ANN])).tolist() == LOAN.read(ANN).tolist()  # unless it has one
    with pytest.raises(RowError, match="This is a table of 2 rows, not a row: use explain_many"):
        LOAN.read(pandas.DataFrame([ANN, ANN]))


@pytest.mark.parametrize("row", ["abc", 5, None, {1, 2}, np.zeros((5, 1)), [1, 2]])
def test_what_is_no_row(row: object) -> None:
    with pytest.raises(RowError, match=r"row must (be a mapping|have 5 values)"):
        LOAN.read(row)


def test_a_lacking_feature_is_named_with_the_row() -> None:
    with pytest.raises(RowError, match=r"'job' is not in row 4; it has age, income\."):
        LOAN.read({"age": 20, "income": 3}, number=4)


def test_an_unknown_name_is_answered_with_the_likely_one() -> None:
    with pytest.raises(SchemaError, match=r"^There is no feature 'incom'; did you mean 'income'\?$"):
        LOAN["incom"]
    with pytest.raises(
        SchemaError, match=r"^There is no feature 'zzz'; the features are age, job, rating, owner, income\.$"
    ):
        LOAN["zzz"]


@pytest.mark.parametrize(
    ("features", "columns", "words"),
    [
        ([], (), "at least one feature"),
        (None, (), "made from a list of features"),
        ("abc", (), "made from a list of features"),
        ([Real("a", 0, 1), "b"], (), "features such as Real or Categorical; got 'b'"),
        ([Real("a", 0, 1), Real("a", 0, 2)], (), "'a' is listed twice"),
        ([Real("a", 0, 1), Real("b", 0, 2)], ("a",), r"missing: \['b'\]\.$"),
        ([Real("a", 0, 1)], ("a", "b"), r"unknown or repeated: \['b'\]\.$"),
        ([Real("a", 0, 1), Real("b", 0, 1)], ("a", "a"), r"repeated: \['a'\]; missing: \['b'\]\.$"),
        ([Real("a", 0, 1)], "a", "must be a list of column names; got 'a'"),
        ([Real("a", 0, 1)], [1], "must be a list of column names"),
        ([Categorical("a", ["b"]), Real("a=b", 0, 1)], (), "both be called 'a=b'"),
        ([Categorical("a", [None, "missing"])], (), "both be called 'a=missing'"),
    ],
)
def test_a_contradictory_schema_is_refused(features: object, columns: object, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema(features, columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("rules", ["x >= 1", [1]])
def test_rules_are_a_list_of_texts(rules: object) -> None:
    with pytest.raises(SchemaError, match="must be a list of texts; got"):
        Schema([Real("x", 0, 1)], rules=rules)  # type: ignore[arg-type]


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("wrong", [-1.0, 0.5, 1e9, np.nan, np.inf])
def test_admits_is_exact(position: int, wrong: float) -> None:
    point = LOAN.read(ANN)
    assert LOAN.admits(point[None, :]).tolist() == [True]
    point[position] = wrong
    assert LOAN.admits(point[None, :]).tolist() == [position == 4 and wrong == 0.5]


def test_encoded_rows_that_mean_nothing_are_refused() -> None:
    encoded = LOAN.encode(np.array([LOAN.read(ANN)] * 3))
    encoded[2, 2] = 1.0  # job is both none and nurse
    with pytest.raises(
        RowError, match=r"'job': the encoded columns of row 2 are no option's code: \[1\.0, 0\.0, 1\.0\]"
    ):
        LOAN.decode(encoded)
    with pytest.raises(RowError, match="must have 9 columns; got 4"):
        LOAN.decode(encoded[:, :4])


def test_samples_are_rows_and_cover_the_features() -> None:
    points = LOAN.sample(500, np.random.default_rng(0))
    assert LOAN.admits(points).all()
    assert [len(np.unique(points[:, i])) for i in (1, 2, 3)] == [3, 3, 2]


def test_a_schema_can_be_compared_hashed_and_walked() -> None:
    assert Schema(LOAN.features, LOAN.columns) == LOAN
    assert hash(Schema(LOAN.features, LOAN.columns)) == hash(LOAN)
    assert Schema(LOAN.features) != LOAN
    assert [feature.name for feature in LOAN] == list(LOAN.names)
    assert len(LOAN) == 5
