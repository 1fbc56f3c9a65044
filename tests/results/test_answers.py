"""Answers are plain data, and each kind has its sentence."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import pytest

from ifonly import Answers, Failed, Nearest, NoneExists, Reasons, Unknown, Within
from ifonly.results import Change, Claim, Relaxation, Stop, StoppedBy, show

COMMON: dict[str, Any] = {
    "row": 3,
    "factual": {"age": 30, "job": None, "income": 1234.5},
    "target": "approved",
    "distance_name": "l1",
    "decision_before": "denied",
    "score_before": -0.5,
    "method": "enumerate",
    "seconds": 0.25,
    "nodes": 7,
}
FOUND: dict[str, Any] = {
    "counterfactual": {"age": 31, "job": "nurse", "income": 1234.5},
    "changes": (Change("age", 30, 31), Change("job", None, "nurse")),
    "decision_after": "approved",
    "score_after": 0.5,
}
NEAREST = Nearest(lower=0.25, upper=0.25, **FOUND, **COMMON)
WITHIN = Within(lower=0.125, upper=0.25, stop=Stop(StoppedBy.SECONDS, 1.0), **FOUND, **COMMON)
NONE = NoneExists(lower=math.inf, **COMMON)
UNKNOWN = Unknown(lower=0.125, stop=Stop(StoppedBy.SECONDS, 1.0), **COMMON)
FAILED = Failed(row=4, factual={}, target="", distance_name="", lower=0.0, error="Feature 'age' is missing.")
ALL = Answers([NEAREST, WITHIN, NONE, UNKNOWN, FAILED], seconds=1.5)


def test_sentences() -> None:
    change = "If age had been 31 instead of 30 and job had been nurse instead of missing"
    changed = f"{change}, the decision would have changed to approved"
    assert str(NEAREST) == f"{changed}; no smaller allowed change does it (proven, l1 distance 0.25)."
    assert str(WITHIN) == (
        f"{changed} (distance 0.25); a smaller change was not ruled out (time limit of 1 s), "
        f"but none within 0.125 exists (proven)."
    )
    assert str(NONE) == "No allowed change turns the decision into approved (proven)."
    assert str(UNKNOWN) == (
        "No change that turns the decision into approved was found (time limit of 1 s); none exists within distance 0.125 (proven)."
    )
    assert str(FAILED) == "This row could not be answered: Feature 'age' is missing."


def test_amounts_have_separators_and_names_do_not() -> None:
    changes = (Change("payment", 300, 1240, counted=True), Change("zip", 94110, 94117), Change("rate", 0.1, 12345.25))
    answer = Nearest(lower=0.25, upper=0.25, **{**FOUND, "changes": changes}, **COMMON)
    assert str(answer) == (
        "If payment had been 1,240 instead of 300, zip had been 94117 instead of 94110 and rate had been 12,345.25 "
        "instead of 0.1, the decision would have changed to approved; no smaller allowed change does it (proven, l1 distance 0.25)."
    )
    assert str(changes[0]) == "payment: 300 -> 1,240"
    assert Change("flag", False, True, counted=True).shown(True) == "True"


def test_no_digit_that_decides_is_lost() -> None:
    """What the sentence says, typed in again, is the very number that flips the decision."""
    for value in (1 / 3, 1071.029270808483, 123456789.123, 5e-324, -0.1, 2.0**60):
        assert float(show(value).replace(",", "")) == value


@pytest.mark.parametrize(
    ("subject", "state", "after", "words"),
    [
        ("the score", "at least 2", None, "the score would have been at least 2;"),
        ("the probability of yes", "at least 70 %", "yes", "the probability of yes would have been at least 70 %;"),
        ("the decision", "one of a, b", "b", "the decision would have changed to b (one of a, b);"),
        ("the decision", "anything but c", "b", "the decision would have changed to b (anything but c);"),
        ("c", "among the 2 highest", "b", "c would have been among the 2 highest;"),
    ],
)
def test_other_targets_in_words(subject: str, state: str, after: Any, words: str) -> None:
    told: dict[str, Any] = {**COMMON, "target": "x", "subject": subject, "state": state}
    answer = Nearest(lower=0.25, upper=0.25, **{**FOUND, "decision_after": after}, **told)
    assert words in str(answer)
    decision = subject == "the decision"
    makes = f"turns {subject} into {state}" if decision else f"makes {subject} {state}"
    assert str(NoneExists(lower=math.inf, **told)) == f"No allowed change {makes} (proven)."
    there = Nearest(lower=0.0, upper=0.0, counterfactual=COMMON["factual"], **told)
    start = subject.replace("the ", "The ")
    reached = f"already as asked ({state})" if decision else f"{state} already"
    assert str(there) == f"{start} is {reached}; nothing needs to change."


EASE = Relaxation(dropped=("age is fixed",), words="age may change", distance=0.03, lower=0.03, proven=True,
                  changes=(Change("age", 30, 31, counted=True),))  # fmt: skip


def test_reasons_in_words() -> None:
    def told(*blame: str, **more: Any) -> str:
        reasons = Reasons(**{"blame": blame, "minimal": True, "relaxations": (), **more})
        return str(NoneExists(lower=math.inf, reasons=reasons, **COMMON))

    no = "No allowed change turns the decision into approved"
    assert told() == "No row at all turns the decision into approved, whatever may change (proven)."
    assert told("age is fixed") == f"{no}: age is fixed rules it out (proven)."
    assert told("age is fixed", "job is fixed", relaxations=(EASE,)) == (
        f"{no}: age is fixed and job is fixed together rule it out (proven). "
        f"Possible if age may change: then distance 0.03 (age: 30 -> 31)."
    )
    loose = replace(EASE, proven=False, lower=0.01)
    assert told("age is fixed", relaxations=(loose, EASE, EASE), note="this and that") == (
        f"{no}: age is fixed rules it out (proven). Possible if age may change: then distance at most 0.03 "
        f"(age: 30 -> 31), and in 2 other ways. Not proven: this and that."
    )


def test_reasons_are_plain_data() -> None:
    reasons = Reasons(blame=("age is fixed",), minimal=True, relaxations=(EASE,), note="")
    answer = NoneExists(lower=math.inf, reasons=reasons, **COMMON)
    data = json.loads(answer.to_json())
    assert data["reasons"] == {
        "blame": ["age is fixed"],
        "minimal": True,
        "relaxations": [
            {
                "dropped": ["age is fixed"],
                "words": "age may change",
                "distance": 0.03,
                "lower_bound": 0.03,
                "proven": True,
                "changes": [{"feature": "age", "from": 30, "to": 31}],
            }
        ],
        "note": "",
    }
    assert NONE.to_dict()["reasons"] is None
    assert pickle.loads(pickle.dumps(answer)).reasons == reasons


def test_a_decision_that_is_already_there() -> None:
    answer = Nearest(lower=0.0, upper=0.0, counterfactual=COMMON["factual"], **COMMON)
    assert str(answer) == "The decision is already as asked (approved); nothing needs to change."


def test_the_record_of_an_answer() -> None:
    assert NEAREST.to_dict() == {
        "row": 3,
        "status": "nearest",
        "target": "approved",
        "distance": 0.25,
        "distance_name": "l1",
        "lower_bound": 0.25,
        "changes": [
            {"feature": "age", "from": 30, "to": 31},
            {"feature": "job", "from": None, "to": "nurse"},
        ],
        "factual": {"age": 30, "job": None, "income": 1234.5},
        "counterfactual": {"age": 31, "job": "nurse", "income": 1234.5},
        "decision_before": "denied",
        "decision_after": "approved",
        "score_before": -0.5,
        "score_after": 0.5,
        "method": "enumerate",
        "seconds": 0.25,
        "nodes": 7,
        "note": "",
        "stop": None,
        "rounding_bound": 0.0,
        "lower_any_rounding": None,
        "precision": "float64",
        "subject": "the decision",
        "state": "",
        "already": False,
        "breaks": [],
    }


@pytest.mark.parametrize("answer", list(ALL), ids=lambda answer: answer.status)
def test_plain_data(answer: Any) -> None:
    plain = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert json.loads(answer.to_json()) == plain
    assert pickle.loads(pickle.dumps(answer)).to_dict() == answer.to_dict()
    with pytest.raises(AttributeError):
        answer.upper = 0.0


def test_many() -> None:
    assert ALL.counts() == {"nearest": 1, "none exists": 1, "within": 1, "unknown": 1, "error": 1}
    assert repr(ALL) == "<Answers: 1 nearest, 1 none exists, 1 within, 1 unknown, 1 error>"
    assert repr(Answers([])) == "<Answers: none>"
    assert list(ALL[1:3]) == [WITHIN, NONE]
    assert ALL[0] is NEAREST
    assert [a.status for a in pickle.loads(pickle.dumps(ALL))] == [a.status for a in ALL]
    assert [d["status"] for d in ALL.to_dicts()] == ["nearest", "within", "none exists", "unknown", "error"]


def test_as_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = ALL.to_frame()
    assert frame["status"].tolist() == [answer.status for answer in ALL]
    assert list(frame.columns)[:4] == ["row", "status", "target", "distance"]
    assert frame["distance"].isna().tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "missing"),
        (True, "True"),
        (3, "3"),
        (1234.5, "1,234.5"),
        (1 / 3, "0.3333333333333333"),
        (1250.0, "1,250"),
        ("a", "a"),
    ],
)
def test_values_as_people_write_them(value: Any, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize("lower", [-1e-9, math.nan])
def test_a_bound_that_is_none_is_a_bug(lower: float) -> None:
    with pytest.raises(ValueError, match="is a bug"):
        Claim(point=None, lower=lower, method="x")
