"""Rows, points and columns are three views of one thing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given

from ifonly import Schema
from ifonly.errors import RowError
from ifonly.schema import Choice, read_points, schema_from_json, schema_to_json
from ifonly.schema.tables import user_columns
from properties.strategies import generator, schemas, seeds


@given(schemas(), seeds)
def test_encode_then_decode_with_interleaved_columns(schema: Schema, seed: int) -> None:
    points = schema.sample(20, generator(seed))
    encoded = schema.encode(points)
    assert encoded.shape == (20, len(schema.columns))
    assert np.array_equal(schema.decode(encoded), points)
    assert np.array_equal(schema.encode(points[0]), encoded[0])
    assert np.array_equal(schema.decode(encoded[0]), points[0])


@given(schemas(), seeds)
def test_the_columns_say_what_they_hold(schema: Schema, seed: int) -> None:
    point = schema.sample(1, generator(seed))[0]
    encoded = dict(zip(schema.columns, schema.encode(point), strict=True))
    for feature, number in zip(schema.features, point, strict=True):
        if not isinstance(feature, Choice) or feature.encoding == "code":
            assert encoded[feature.name] == number
        elif feature.encoding == "onehot":
            ones = [name for name in feature.column_names if encoded[name]]
            assert ones == [feature.column_names[int(number)]]
        else:
            assert [encoded[name] for name in feature.column_names] == [
                i <= number for i in range(len(feature.options))
            ]


@given(schemas(), seeds)
def test_a_wrong_code_is_refused(schema: Schema, seed: int) -> None:
    encoded = schema.encode(schema.sample(1, generator(seed)))
    for value in (-7e9, 0.37519, np.nan, np.inf):
        broken = encoded.copy()
        broken[0, seed % encoded.shape[1]] = value
        try:
            decoded = schema.decode(broken)
        except RowError as error:
            assert "row 0" in str(error)
        else:  # a real feature may hold almost any number
            assert np.array_equal(schema.encode(decoded), broken)


@given(schemas(), seeds)
def test_values_survive_the_way_to_points_and_back(schema: Schema, seed: int) -> None:
    points = schema.sample(8, generator(seed))
    rows = [schema.row(point) for point in points]
    assert np.array_equal([schema.read(row) for row in rows], points)
    assert np.array_equal([schema.read(list(row.values())) for row in rows], points)
    assert np.array_equal(read_points(schema, rows), points)
    assert np.array_equal(read_points(schema, user_columns(schema, points)), points)
    assert schema.admits(points).all()


@given(schemas(), seeds)
def test_frames_are_read_like_rows(schema: Schema, seed: int) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    points = schema.sample(8, generator(seed))
    columns = user_columns(schema, points)
    assert np.array_equal(read_points(schema, pandas.DataFrame(columns, dtype=object)), points)
    if all(len({type(value) for value in column}) == 1 for column in columns.values()):  # polars mixes no types
        assert np.array_equal(read_points(schema, pandas.DataFrame(columns)), points)
        assert np.array_equal(read_points(schema, polars.DataFrame(columns)), points)


@given(schemas())
def test_json_keeps_everything(schema: Schema) -> None:
    again = schema_from_json(json.loads(json.dumps(schema_to_json(schema))))
    assert again == schema
    assert [type(o) for f in again if isinstance(f, Choice) for o in f.options] == [
        type(o) for f in schema if isinstance(f, Choice) for o in f.options
    ]
