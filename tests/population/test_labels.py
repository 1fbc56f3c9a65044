"""Labels: what people are grouped by, as it comes."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pytest

from ifonly.errors import QuestionError
from ifonly.population import Grouping
from ifonly.population.labels import MOST_LABELS, Labels


def grouped(labels: list[Any], parts: int = 4) -> dict[str, int]:
    kept = Labels()
    for label in labels:
        kept.add(label)
    names, of = kept.groups(parts)
    return dict(zip(names, np.bincount(of, minlength=len(names)).tolist(), strict=True))


def test_words_numbers_and_what_is_missing() -> None:
    assert grouped(["b", "a", None, "b", math.nan]) == {"a": 1, "b": 2, "missing": 2}
    assert grouped([2, "1", True, "b", None, 0.5]) == {"0.5": 1, "1": 2, "2": 1, "b": 1, "missing": 1}
    assert grouped(["01", "1"]) == {"01": 1, "1": 1}
    assert grouped([True, False, True]) == {"False": 1, "True": 2}
    assert grouped([]) == {}
    assert list(grouped([10, 9, -1])) == ["-1", "9", "10"]


def test_numbers_with_many_values() -> None:
    assert grouped(list(range(100))) == {"0 to 24": 25, "25 to 49": 25, "50 to 74": 25, "75 to 99": 25}
    assert grouped([*range(100), None], parts=2) == {"0 to 49": 50, "50 to 99": 50, "missing": 1}
    assert grouped([np.float32(x) for x in range(10)], parts=5) == {f"{k} to {k + 1}": 2 for k in range(0, 10, 2)}
    assert len(grouped([*range(20), "other"])) == 21  # no quantiles beside words


def test_quantiles_hold_about_the_same() -> None:
    values = np.random.default_rng(0).normal(size=1001)
    counts = list(grouped(values.tolist(), parts=10).values())
    assert sum(counts) == 1001 and max(counts) - min(counts) <= 1


def test_dates_by_month() -> None:
    days = [datetime.date(2024, 3, 17), datetime.datetime(2024, 3, 1, 8), np.datetime64("2024-02-28")]
    assert grouped(days) == {"2024-02": 1, "2024-03": 2}
    assert grouped(["2024-03-17", "2024-03-18T10:00:00Z", "2023-12-31 23:59", None]) == {
        "2023-12": 1, "2024-03": 2, "missing": 1,
    }  # fmt: skip
    assert grouped(["2024-03-17", "unknown"]) == {"2024-03-17": 1, "unknown": 1}
    assert grouped([np.datetime64("NaT")]) == {"missing": 1}
    pandas = pytest.importorskip("pandas")
    assert grouped([pandas.Timestamp("2024-05-06"), pandas.NaT]) == {"2024-05": 1, "missing": 1}


def test_what_cannot_be_a_label() -> None:
    for wrong in (math.inf, [1], {"a": 1}, b"a", object()):
        with pytest.raises(QuestionError, match="A group is named by"):
            grouped([wrong])
    with pytest.raises(QuestionError, match="something that they have in common"):
        grouped([f"person {i}" for i in range(MOST_LABELS + 1)])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"least": 0}, "'least' of a grouping must be a whole number >= 1; got 0."),
        ({"least": True}, "'least'"),
        ({"parts": 1}, "from 2 to 100"),
        ({"seed": -1}, "'seed'"),
        ({"seed": "x"}, "'seed'"),
    ],
)
def test_groupings_that_make_no_sense(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(QuestionError, match=said):
        Grouping("Sex", **wrong)
