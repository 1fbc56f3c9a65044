"""Reason codes and principal reasons: what is read, what is refused, what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ifonly import Explainer, Integer, Limits, Network, Schema
from ifonly.errors import IfonlyError
from ifonly.model import network_model
from ifonly.notices import ReasonCodes, ReasonGroup, principal_reasons

SCHEMA = Schema([Integer("income", 0, 9), Integer("debt", 0, 9), Integer("age", 18, 60), Integer("years", 0, 9)],
                rules=["debt <= income + 5", "income only goes up"])  # fmt: skip
EXPLAINER = Explainer(network_model(Network.of([([[1.0, -1.0, 0.0, 0.1]], [-2.5])]), SCHEMA, classes=("no", "yes")))
ANN = {"income": 2, "debt": 1, "age": 30, "years": 0}
CODES = ReasonCodes((ReasonGroup(code="1", text="Debt", features=("debt",)),
                     ReasonGroup(code="2", text={"en": "Income", "de": "Einkommen"}, features=("income", "years"))))  # fmt: skip


def test_groups_are_ranked_by_the_least_change_that_is_enough() -> None:
    told = principal_reasons(EXPLAINER, ANN, CODES)
    assert [one.group.code for one in told.reasons] == ["2", "1"] and told.ranked
    assert told.reasons[0].verdict == "alone" and told.reasons[0].distance == pytest.approx(2 / 36)
    assert told.reasons[1].verdict == "never" and told.reasons[1].part, "never enough alone, but part of what decides"
    assert [(one.group.code, one.group.features, one.verdict) for one in told.others] == [("", ("age",), "never")]
    annex = told.to_dict()
    assert json.loads(json.dumps(annex, allow_nan=False)) == annex
    assert annex["model"] == EXPLAINER.model.function.fingerprint
    assert CODES.groups[1].words("de") == "Einkommen" and CODES.groups[0].words("de") == "Debt"


def test_an_order_that_a_limit_left_open_is_not_called_proven() -> None:
    network = Network.of([([[1.0, -1.0, 0.0, 0.1]], [-2.6])])
    asked_first = Explainer(network_model(network, SCHEMA, classes=("no", "yes")))  # the limit ends its preparation
    told = principal_reasons(asked_first, ANN, CODES, limits=Limits(seconds=1e-9))
    assert not told.ranked and {one.verdict for one in told.others} <= {"open"}


def test_codes_are_files(tmp_path: Path) -> None:
    path = tmp_path / "codes.json"
    path.write_text(json.dumps(CODES.to_dict()))
    assert ReasonCodes.load(path) == CODES


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reasons": 3}, "must be a list"),
        ({"reasons": [{"code": "1"}]}, "features"),
        ({"reasons": [{"features": []}]}, "names its features in a list"),
        ({"reasons": [{"features": ["debt"], "code": 3}]}, "The code of a reason is a text"),
        ({"reasons": [{"features": ["debt"], "text": {"fr": "dette"}}]}, "a text for each of en, de"),
        ({"reasons": [{"features": ["debt"]}, {"features": ["debt"]}]}, "in two groups of reasons"),
        ({"reasons": [{"features": ["dept"]}]}, "did you mean 'debt'"),
    ],
)
def test_wrong_codes(given: Any, message: str) -> None:
    with pytest.raises(IfonlyError, match=message):
        principal_reasons(EXPLAINER, ANN, ReasonCodes.from_dict(given))


@pytest.mark.parametrize(
    ("given", "message"),
    [({"most": 0}, "whole number >= 1"), ({"codes": {"1": "x"}}, "ReasonCodes.load"), ({"target": "no"}, "already")],
)
def test_wrong_questions(given: Any, message: str) -> None:
    with pytest.raises(IfonlyError, match=message):
        principal_reasons(EXPLAINER, ANN, **given)
