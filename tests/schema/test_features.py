"""What each kind of feature accepts, and what it says when it does not."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from ifonly import Binary, Categorical, Integer, Ordinal, Real
from ifonly.errors import RowError, SchemaError
from ifonly.schema import Feature


@pytest.mark.parametrize(
    ("feature", "value", "point", "back"),
    [
        (Real("x", 0, 10), 3, 3.0, 3.0),
        (Real("x", 0, 10), "2.5", 2.5, 2.5),
        (Real("x", 0, 10), Decimal("2.5"), 2.5, 2.5),
        (Real("x", 0, 10), np.float32(0.5), 0.5, 0.5),
        (Real("x", 0, 10), True, 1.0, 1.0),
        (Integer("n", 0, 10), 7.0, 7.0, 7),
        (Integer("n", 0, 10), "7", 7.0, 7),
        (Integer("n", 1, 10, 3), np.int8(7), 7.0, 7),
        (Integer("n", 0, 10), 7.0000000001, 7.0, 7),  # within the grid's tolerance
        (Binary("b", ("no", "yes")), "yes", 1.0, "yes"),
        (Binary("b"), 1, 1.0, True),
        (Binary("b", (0, 1)), "1", 1.0, 1),
        (Binary("b"), "true", 1.0, True),
        (Ordinal("o", ["low", "mid", "high"]), "mid", 1.0, "mid"),
        (Categorical("c", [1, "1"]), "1", 1.0, "1"),
        (Categorical("c", ["x", None]), math.nan, 1.0, None),
        (Categorical("c", ["x", None]), None, 1.0, None),
        (Categorical("c", [2.5, 3.5]), np.float64(3.5), 1.0, 3.5),
    ],
)
def test_reading_and_giving_back(feature: Feature, value: object, point: float, back: object) -> None:
    assert feature.read(value) == point
    assert feature.value(point) == back
    assert type(feature.value(point)) is type(back)


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Real("x", 0, 10), 10.000001),
        (Real("x", 0, 10), "ten"),
        (Real("x", 0, 10), "1_0"),
        (Real("x", 0, 10), [1]),
        (Real("x", 0, 10), 1j),
        (Real("x", 0, 10), math.inf),
        (Real("x", 0, 10), 10**400),
        (Integer("x", 0, 10), 2.5),
        (Integer("x", 0, 10), -1),
        (Integer("x", 0, 10), 1e308),
        (Integer("x", 1, 10, 3), 5),
        (Binary("x", ("no", "yes")), True),
        (Ordinal("x", ["low", "high"]), "Low"),
        (Categorical("x", ["a", "b"]), ["a"]),
        (Categorical("x", ["1"]), 1),
    ],
)
def test_a_wrong_value_is_named_with_its_row(feature: Feature, value: object) -> None:
    with pytest.raises(RowError) as caught:
        feature.read(value, row=12)
    message = str(caught.value)
    assert "'x'" in message
    assert "row 12" in message
    assert feature.describe() in message
    assert (caught.value.feature, caught.value.row) == ("x", 12)


@pytest.mark.parametrize("feature", [Real("x", 0, 1), Integer("x", 0, 1), Binary("x"), Categorical("x", ["a"])])
def test_missing_values_are_refused_with_the_remedy(feature: Feature) -> None:
    with pytest.raises(RowError, match=r"'x' has no value in row 3; fill it in.*missing"):
        feature.read(None, row=3)


def test_pandas_markers_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    feature = Categorical("c", ["x", None])
    assert feature.read(pandas.NA) == feature.read(pandas.NaT) == 1.0


def test_the_sentence_about_a_wrong_number() -> None:
    with pytest.raises(RowError, match=r"^Feature 'Age' must be an integer in \[17, 90\]; row 12 has 16\.5\.$"):
        Integer("Age", 17, 90).read(16.5, row=12)
    with pytest.raises(RowError, match=r"^Feature 'Share' must be a number in \[0\.1, 0\.3\]; the row has 0\.5\.$"):
        Real("Share", 0.1, 0.3).read(0.5)


def test_integers_end_on_their_grid() -> None:
    feature = Integer("n", 1, 12, 4)
    assert (feature.upper, feature.steps) == (9.0, 2)
    assert [feature.snap(n) for n in (1.0, 5.0, 9.0, 12.0)] == [1.0, 5.0, 9.0, None]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Real("", 0, 1), "name"),
        (lambda: Real("x", 1, 0), "'x': lower bound 1 is above upper bound 0"),
        (lambda: Real("x", math.nan, 0), "'x': 'lower' must be a finite number"),
        (lambda: Real("x", -1.7e308, 1.7e308), "'x': its range is too wide"),
        (lambda: Integer("x", 0.5, 3), "'x': 'lower' of an integer feature must be whole"),
        (lambda: Integer("x", 0, 3, 0), "'x': step must be a whole number"),
        (lambda: Integer("x", 0, 3, math.inf), "'x': step must be a whole number"),
        (lambda: Integer("x", 0, 2**60), "2\\^52"),
        (lambda: Binary("x", (1, 2, 3)), "'x': a binary feature has two values; got 3"),
        (lambda: Binary("x", (1, True)), "'x': option True is listed twice"),
        (lambda: Ordinal("x", []), "'x' needs at least 1"),
        (lambda: Ordinal("x", "abc"), "'x': its options must be a list"),
        (lambda: Ordinal("x", ["a"], "one-hot"), "'x': encoding must be one of thermometer, onehot, dummy, code"),
        (lambda: Categorical("x", ["a", "a"]), "'x': option 'a' is listed twice"),
        (lambda: Categorical("x", [(1, 2)]), "'x': option \\(1, 2\\) must be"),
        (lambda: Categorical("x", [math.inf]), "'x': option inf must be finite"),
        (lambda: Categorical("x", ["a"], "thermometer"), "'x': encoding must be one of onehot, dummy, code"),
    ],
)
def test_a_contradictory_feature_is_refused(make: object, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        make()  # type: ignore[operator]
