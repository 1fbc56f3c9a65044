"""Tables in, tables out: every format, every bad row named."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import Binary, Categorical, Integer, Real, Schema
from ifonly.errors import RowError
from ifonly.schema import read_points, to_frame

SCHEMA = Schema(
    [Integer("age", 18, 90), Categorical("job", ["none", "clerk", None]), Real("income", 0, 1e6), Binary("b", (0, 1))]
)
COLUMNS = {"age": [20, 30, 40], "job": ["none", "clerk", "none"], "income": [1.5, 0.0, 3.0], "b": [0, 1, 1]}
POINTS = [[20.0, 0.0, 1.5, 0.0], [30.0, 1.0, 0.0, 1.0], [40.0, 0.0, 3.0, 1.0]]
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


def test_every_format_gives_the_same_points() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(COLUMNS)
    for table in (
        COLUMNS,
        {name: np.array(column) for name, column in COLUMNS.items()},
        {name: tuple(column) for name, column in COLUMNS.items()},
        ROWS,
        tuple(ROWS),
        [list(row.values()) for row in ROWS],
        np.array([list(row.values()) for row in ROWS], dtype=object),
        frame,
        frame.astype({"job": "category", "age": "Int64", "b": "boolean"}),
        frame.astype(str),
        frame[["income", "job", "b", "age"]].assign(label=1).set_index([pandas.Index([7, 8, 9])]),
        [row for _, row in frame.iterrows()],
        polars.DataFrame(COLUMNS),
        polars.DataFrame(COLUMNS).with_columns(polars.col("job").cast(polars.Categorical)),
    ):
        assert read_points(SCHEMA, table).tolist() == POINTS


def test_numbers_without_names_are_read_in_order() -> None:
    schema = Schema([Integer("n", 0, 9), Real("x", 0, 1), Binary("b", (0, 1))])
    table = np.array([[1.0, 0.5, 0.0], [2.0, 0.25, 1.0]])
    assert read_points(schema, table).tolist() == table.tolist()
    assert read_points(schema, table.astype(np.float32)).tolist() == table.tolist()


def test_missing_may_be_an_option() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**COLUMNS, "job": ["none", None, np.nan]})
    assert read_points(SCHEMA, frame)[:, 1].tolist() == [0.0, 2.0, 2.0]
    numbers = Schema([Categorical("code", [1, 2, None])])
    assert read_points(numbers, pandas.DataFrame({"code": [1, None, 2]})).tolist() == [[0.0], [2.0], [1.0]]


def test_the_first_bad_row_is_named() -> None:
    with pytest.raises(RowError, match=r"'age' must be an integer in \[18, 90\]; row 1 has 17\."):
        read_points(SCHEMA, {**COLUMNS, "age": [20, 17, 16]})


def test_mixed_types_are_not_turned_into_text() -> None:
    errors: list[RowError | None] = []
    read_points(SCHEMA, {**COLUMNS, "age": [20, "x", 40], "job": ["none", 3, "clerk"]}, errors=errors)
    assert [e and e.value for e in errors] == [None, "x", None]
    with pytest.raises(RowError, match="row 1 has 3"):
        read_points(SCHEMA, {**COLUMNS, "job": ["none", 3, "clerk"]})


@pytest.mark.parametrize("as_rows", [False, True])
def test_errors_are_collected_by_row(as_rows: bool) -> None:
    columns = {**COLUMNS, "age": [20, 17, 40], "income": [1.5, np.nan, -3.0]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    errors: list[RowError | None] = []
    points = read_points(SCHEMA, [list(row.values()) for row in rows] if as_rows else columns, errors=errors)
    assert points[0].tolist() == POINTS[0]
    assert np.isnan(points[1:]).all()
    assert [None if e is None else (e.feature, e.row) for e in errors] == [None, ("age", 1), ("income", 2)]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (5, "must be a data frame, a dict of columns or a list of rows; got int"),
        ("abc", "got str"),
        ({"age": [1]}, "'job' is not a column of the table; it has age"),
        ({**COLUMNS, "b": [0]}, "'b' has 1 values, but column 'age' has 3"),
        (ROWS[0], "'age' of the table must be a list of values; it is 20 .*use explain"),
        ({**COLUMNS, "job": "none"}, "'job' of the table must be a list of values"),
        (np.zeros(4), "must have two dimensions; this one has 1"),
        (np.zeros((2, 3)), "must have 4 values"),
        ([ROWS[0], {"age": 3}], "'job' is not in row 1; it has age"),
    ],
)
def test_what_is_no_table(table: object, words: str) -> None:
    with pytest.raises(RowError, match=words):
        read_points(SCHEMA, table)


def test_columns_that_occur_twice_or_hold_dates() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COLUMNS)
    with pytest.raises(RowError, match="more than one column 'age'"):
        read_points(SCHEMA, pandas.concat([frame, frame[["age"]]], axis=1))
    with pytest.raises(RowError, match="'age' must be an integer.*row 0 has '2020"):
        read_points(SCHEMA, frame.assign(age=pandas.to_datetime(["2020-01-01"] * 3)))


def test_an_empty_table_has_no_points() -> None:
    assert read_points(SCHEMA, []).shape == (0, 4)
    assert read_points(SCHEMA, {name: [] for name in COLUMNS}, errors=[]).shape == (0, 4)


def test_points_as_a_frame_keep_the_users_types() -> None:
    pytest.importorskip("pandas")
    frame = to_frame(SCHEMA, np.array(POINTS))
    assert frame.to_dict("list") == COLUMNS
    assert read_points(SCHEMA, frame).tolist() == POINTS


def test_a_column_of_texts_is_read_as_each_text_alone() -> None:
    schema = Schema([Real("a", 0, 10, missing=True)])
    for text in ("3", " 4.5 ", "nan", "-nan", "+nan", "1_0", "inf", "11", "x"):
        errors: list[RowError | None] = []
        (found, _), alone = read_points(schema, {"a": [text, "1"]}, errors=errors)[:, 0], None
        try:
            alone = schema.read({"a": text})[0]
        except RowError:
            assert errors[0] is not None, text
        else:
            assert errors[0] is None and (found == alone or (found != found and alone != alone)), text
