"""Certificates of why there is no row: what is blamed rules it out, each of it is needed, and what would help."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from certificate.by_enumeration import untruth
from certificate.javascript import agree_on
from ifonly import Binary, Explainer, Integer, Network, NoneExists, Query, Schema, check, datasets
from ifonly.certifying import certify_none
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import MipObj

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "oracles")]

from test_reasons import busy  # noqa: E402

RULES = (
    "at most 1 change", "MostRecentPaymentAmount changes by at most 1000", "MaxPaymentAmountOverLast6Months is fixed",
    "MaxBillAmountOverLast6Months is fixed", "MonthsWithZeroBalanceOverLast6Months is fixed", "EducationLevel is fixed",
    "isMale is fixed",
)  # fmt: skip


def test_the_reasons_of_a_person() -> None:
    data = datasets.load("credit")
    explainer = Explainer(datasets.network("credit"), classes=["deny", "approve"])
    person, query = data.row(int(data.split()[1][0])), Query(constraints=RULES)
    answer = explainer.explain(person, query)
    assert isinstance(answer, NoneExists) and answer.reasons is not None
    first, *others = [check(one) for one in certify_none(explainer, person, query)]
    assert first.valid and first.lower == float("inf") and len(first.rules) == 4  # one of them two definitions
    assert all(one.valid and one.upper is not None for one in others)
    distances = [one.distance for one in answer.reasons.relaxations]
    assert [one.upper for one in others[: len(distances)]] == pytest.approx(distances)
    alone = {one.dropped for one in answer.reasons.relaxations}
    assert len(others) == len(distances) + sum((name,) not in alone for name in answer.reasons.blame)


def test_random_ones(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    made = []
    for seed in range(60):
        question, row, constraints = busy(seed, finite=True)
        explainer = Explainer(question.model)
        query = Query(target=question.target, distance=question.distance, constraints=constraints)
        answer = explainer.explain(row, query)
        if not isinstance(answer, NoneExists) or answer.reasons is None or answer.reasons.note:
            continue
        first, *others = certify_none(explainer, row, query)
        assert check(first).lower == float("inf") and not untruth(first.data), seed
        assert len(first.data["question"]["constraints"]) == len(answer.reasons.blame)
        for one in others:
            checked = check(one)
            assert checked.valid and checked.upper is not None and not untruth(one.data), seed
        seen["none"] += 1
        seen["others"] += len(others)
        made += [first, *others]
    assert seen["none"] > 4 and seen["others"] > 4
    assert set(agree_on(made[:40], tmp_path)) == {"VALID"}


def test_definitions_are_not_blamed() -> None:
    """Without the definition, the flag would count as a change, and fewer constraints would allow less."""
    schema = Schema([Integer("count", 0, 3), Binary("flag"), Integer("other", 0, 3)])
    model = Network.of([([[-1.0, -3.0, 0.0]], [0.5])])  # decides for 1 where count is 0 and the flag is not set
    explainer = Explainer(model, schema=schema)
    person = {"count": 2, "flag": True, "other": 1}
    rules = ("flag follows from count > 0", "at most 1 change", "if count = 0 then other = 3", "other <= 2")
    answer = explainer.explain(person, Query(constraints=rules))
    assert isinstance(answer, NoneExists) and answer.reasons is not None
    assert "flag follows from count > 0" not in answer.reasons.blame and answer.reasons.minimal
    certificates = [check(one) for one in certify_none(explainer, person, Query(constraints=rules))]
    assert certificates[0].lower == float("inf") and all(one.upper is not None for one in certificates[1:])


def test_what_has_no_such_certificate() -> None:
    explainer = Explainer(datasets.network("compas"))
    person = datasets.load("compas").row(0)
    with pytest.raises(UnsupportedQuestion, match="the answer is 'nearest'"):
        certify_none(explainer, person)
    with pytest.raises(UnsupportedQuestion, match="proven by the search"):
        certify_none(explainer.using(MipObj()), person)
