"""The checker's own reader of schemas takes exactly what the library writes, and understands it in the same way."""

from __future__ import annotations

import copy
import json
import random

import pytest

from ifonly.certificate.check.reading import Refusal
from ifonly.certificate.check.schema import StatedChoice, read_schema
from ifonly.certificate.format import canonical
from ifonly.errors import IfonlyError
from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, Schema, schema_from_json, schema_to_json

FEATURES = [
    Real("a", 0.0, 4.0), Real("income", -1e16, 2.5, label="monthly income", unit="€"), Real("s", 0.0, 1.0, step=0.1),
    Real("t", 0.08333333333333333, 1.0, step="1/12"), Real("m", 0.0, 1.0, missing=True), Integer("b", 0, 9),
    Integer("c", -7, 8, 5), Binary("d"), Binary("e", ["no", "yes"]), Ordinal("f", [1, 2, 3.5]),
    Ordinal("g", ["l", "m", None], "dummy"), Categorical("h", ["x", True, 2, None, 1e22, 1e-7]),
    Categorical("i", ["x", "y"], "code"), Categorical("j", ["x", "y"], columns=["j_x", "j_y"]),
]  # fmt: skip
JUNK = [None, [], {}, "", "a", "1/12", "2/24", "0.1", 0, 1, -1, 10**30, 10**320, True, False, -0.0, 0.0, 1.0, 0.1, 1e-320,
        ["x", "x"], [1, True], ["x"], "x" * 201, "a\u202e", "thermometer", "dummy", "code", 1.5, {"kind": "real"}]  # fmt: skip
KEYS = ["label", "unit", "step", "missing", "columns", "rules", "encoding", "lower", "levels", "note", "version"]


def taken_by_the_library(data) -> Schema | None:
    try:
        schema = schema_from_json(data)
    except (IfonlyError, TypeError, ValueError, OverflowError):
        return None
    return schema if canonical(schema_to_json(schema)) == canonical(data) and not schema.rules else None


def altered(data, rng):
    place = data = copy.deepcopy(data)
    while True:
        key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.85:
            place = place[key]
            continue
        if rng.random() < 0.2 and isinstance(place, dict):
            place[rng.choice(KEYS)] = rng.choice(JUNK)
        elif rng.random() < 0.1:
            del place[key]
        else:
            place[key] = rng.choice(JUNK)
        return data


def agree(data) -> bool:
    """Both take it, or both refuse it; then they have the same features and columns."""
    data = json.loads(canonical(data))
    expected = taken_by_the_library(data)
    if expected is None:
        with pytest.raises(Refusal):
            read_schema(data)
        return False
    found = read_schema(data)
    assert found.columns == tuple(expected.columns)
    for own, feature, places, known in zip(
        found.features, expected.features, found.feature_columns, expected.feature_columns, strict=True
    ):
        assert (own.name, own.kind, places) == (feature.name, feature.kind, tuple(known.tolist()))
        if isinstance(own, StatedChoice):
            assert (own.options, own.encoding, own.ordered) == (feature.options, feature.encoding, feature.ordered)
        else:
            assert (own.lower, own.upper) == (feature.lower, feature.upper)
        if isinstance(feature, Real) and feature.grid is not None:
            values = [float(own.start + k * own.step) for k in range(own.steps + 1)]
            assert values == [feature.grid.value(k) for k in range(feature.grid.steps + 1)]
    return True


def test_every_kind_of_feature():
    assert agree(schema_to_json(Schema(FEATURES)))
    names = Schema(FEATURES).columns
    assert agree(schema_to_json(Schema(FEATURES, tuple(reversed(names)))))


@pytest.mark.long
def test_altered_schemas():
    rng = random.Random(3)
    taken = 0
    for _ in range(3_000):
        features = rng.sample(FEATURES, rng.randint(1, 4))
        columns = list(Schema(features).columns)
        rng.shuffle(columns)
        data = schema_to_json(Schema(features, columns if rng.random() < 0.3 else ()))
        for _ in range(rng.randint(1, 2)):
            data = altered(data, rng)
        taken += agree(data)
    assert taken > 40
