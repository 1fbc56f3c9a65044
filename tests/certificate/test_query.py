"""A certificate's question is a query again: asked once more, it has the same answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ifonly import Certificate, Explainer, Fixed, ProbabilityTarget, Query, ScoreTarget, certify, datasets
from ifonly.certifying import certified_query
from ifonly.errors import FileError


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "query",
    [
        Query(distance="l1", constraints=[Fixed("isMale"), "TotalMonthsOverdue only goes down"]),
        Query(distance={"l0": 0.2, "l1": 0.8}),
        Query(target=ScoreTarget(at_least=0.5), distance="linf"),
        Query(target=ProbabilityTarget("approve", at_least=0.6), distance="l2"),
    ],
)
def test_the_question_of_a_certificate_is_read_back(query: Query) -> None:
    model = datasets.network("credit", rules=False).as_log_odds()
    explainer = Explainer(model, classes=["deny", "approve"])
    row = datasets.load("credit", rules=False).row(0)
    certificate = certify(explainer, row, query)
    again, person = certified_query(certificate)
    assert person == explainer.schema.row(explainer.schema.read(row))
    assert Query.from_dict(json.loads(again.to_json())) == again
    first, second = explainer.explain(row, query), explainer.explain(person, again)
    assert (first.status, first.lower) == (second.status, pytest.approx(second.lower, rel=1e-6))
    assert first.upper == pytest.approx(second.upper, rel=1e-6)


def test_the_file_of_a_certificate_will_do(tmp_path: Path) -> None:
    explainer = Explainer(datasets.network("credit", rules=False))
    certificate = certify(explainer, datasets.load("credit", rules=False).row(0))
    certificate.save(tmp_path / "a.cert")
    for given in (certificate, tmp_path / "a.cert", str(tmp_path / "a.cert")):
        assert certified_query(given) == certified_query(certificate)
    with pytest.raises(FileError, match=r"Cannot read '.*b\.cert'"):
        certified_query(str(tmp_path / "b.cert"))
    for data in ({}, {"question": None}, {"question": {**certificate.data["question"], "model": [1]}}):
        with pytest.raises(FileError, match="The question of this certificate cannot be read"):
            certified_query(Certificate(data))
