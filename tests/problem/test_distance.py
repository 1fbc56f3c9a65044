"""The distances of the paper on numbers worked out by hand, and what may be asked of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ifonly import Binary, Categorical, Distance, Integer, Ordinal, Real, Schema
from ifonly.errors import QuestionError, SchemaError
from ifonly.problem import scales_from_data

SCHEMA = Schema(
    [
        Integer("age", 20, 70),
        Real("income", 0, 1000),
        Ordinal("rating", ["low", "mid", "high", "top"]),
        Categorical("job", ["none", "clerk", "nurse"]),
        Binary("owner"),
    ]
)
BEFORE = np.array([30.0, 100.0, 0.0, 0.0, 0.0])
AFTER = np.array([35.0, 100.0, 2.0, 2.0, 0.0])  # age 5 of 50, rating two of four levels, another job: 0.1, 0.5, 1


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("l0", 3 / 5),
        ("l1", (0.1 + 0.5 + 1) / 5),
        ("l2", math.sqrt((0.1**2 + 0.5**2 + 1) / 5)),
        ("linf", 1 / 5),
        ({"l0": 0.5, "l1": 2.0}, 0.5 * 3 / 5 + 2.0 * 1.6 / 5),
    ],
)
def test_by_hand(norm: Any, expected: float) -> None:
    assert Distance(norm).between(SCHEMA, BEFORE, AFTER) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("l0", (3 + 1 + 1) / 5),
        ("l1", (3 * 0.5 + 0.5 + 1) / 5),
        ("l2", math.sqrt((1.5**2 + 0.5**2 + 1) / 5)),
        ("linf", 1.5 / 5),
    ],
)
def test_weights_and_scales_by_hand(norm: str, expected: float) -> None:
    distance = Distance(norm, weights={"age": 3}, scales={"age": 10})
    assert distance.between(SCHEMA, BEFORE, AFTER) == pytest.approx(expected, rel=1e-15)


def test_the_smallest_change_counts_as_one() -> None:
    after = BEFORE.copy()
    after[1] = np.nextafter(after[1], 1e9)
    assert Distance("l0").between(SCHEMA, BEFORE, after) == 1 / 5


def test_a_feature_with_one_value_costs_nothing() -> None:
    schema = Schema([Real("x", 3, 3), Real("y", 0, 1)])
    assert Distance().between(schema, np.array([3.0, 0.0]), np.array([3.0, 1.0])) == 0.5


def test_equal_distances_are_one_key() -> None:
    a, b = Distance({"l0": 1, "l1": 2}, {"age": 2}), Distance({"l1": 2.0, "l0": 1.0}, {"age": np.float32(2)})
    assert a == b
    assert hash(a) == hash(b)
    assert (a.name, Distance("l2").name) == ("1*l0 + 2*l1", "l2")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Distance("l3"), "no distance 'l3'; choose one of l0, l1, l2, linf"),
        (lambda: Distance(2), "l0, l1, l2, linf.*got 2"),
        (lambda: Distance({}), "Only l0 and l1 can be mixed; got nothing"),
        (lambda: Distance({"l1": 1, "l2": 1}), "Only l0 and l1 can be mixed; got l1, l2"),
        (lambda: Distance({"l1": 0.5}), "A mixture needs both l0 and l1"),
        (lambda: Distance({"l0": 0, "l1": 1}), "share of 'l0' must be a positive number; it is 0"),
        (lambda: Distance(weights={"age": -1}), "weight of 'age' must be a positive number; it is -1"),
        (lambda: Distance(weights={"age": "2"}), "weight of 'age'"),
        (lambda: Distance(weights=[1, 2]), "weight by name.*got \\[1, 2\\]"),
        (lambda: Distance(scales={"age": math.inf}), "scale of 'age'"),
    ],
)
def test_what_is_no_distance(make: Any, words: str) -> None:
    with pytest.raises(QuestionError, match=words):
        make()


def test_names_must_be_features() -> None:
    with pytest.raises(SchemaError, match="'aeg'; did you mean 'age'"):
        Distance(weights={"aeg": 1}).check(SCHEMA)
    with pytest.raises(QuestionError, match="'job' has options, not numbers: give it a weight"):
        Distance(scales={"job": 2}).check(SCHEMA)


def test_scales_from_data() -> None:
    schema = Schema([Integer("n", 0, 100), Real("flat", 0, 10), Real("mostly", 0, 1), Binary("b", (0, 1))])
    table = {"n": [1, 2, 3, 4, 100], "flat": [5.0] * 5, "mostly": [0.0, 0.0, 0.0, 0.0, 1.0], "b": [0, 1, 0, 1, 0]}
    assert scales_from_data(schema, table) == {"n": 1.0, "flat": 10.0, "mostly": 0.4}
    assert scales_from_data(schema, table, "iqr")["n"] == 2.0
    assert scales_from_data(schema, table, "std")["n"] == pytest.approx(np.std([1, 2, 3, 4, 100]))
    with pytest.raises(QuestionError, match="no scale 'mean'; choose mad, iqr or std"):
        scales_from_data(schema, table, "mean")
    with pytest.raises(QuestionError, match="without rows"):
        scales_from_data(schema, [])
