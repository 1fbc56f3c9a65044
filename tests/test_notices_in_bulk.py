"""Notices of many people: records, pages, a printout, a mail merge; resumed runs and damaged records."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ifonly import Explainer, Integer, Network, Query, Schema
from ifonly.engines import Processes
from ifonly.errors import IfonlyError
from ifonly.model import network_model
from ifonly.notices import (
    Letter,
    NoticeRequest,
    ReasonCodes,
    ReasonGroup,
    notice,
    notices_to,
    write_mail_merge,
    write_pages,
    write_printout,
)
from ifonly.notices.bulk import NoticeRecords

SCHEMA = Schema([Integer("income", 0, 9), Integer("debt", 0, 9)])
EXPLAINER = Explainer(network_model(Network.of([([[1.0, -1.0]], [-2.5])]), SCHEMA, classes=("no", "yes")))
CODES = ReasonCodes((ReasonGroup(code="1", text="=Debt", features=("debt",)),))
REQUEST = NoticeRequest(explainer=EXPLAINER, codes=CODES, query=Query(target="yes"), letter=Letter(form="gdpr"))
PEOPLE = [
    {"income": 3, "debt": 1, "ID": "=1+1", "person": "Ann\nRoad 1"},
    {"income": 9, "debt": 0, "ID": "b", "person": "Bob"},
    {"income": 99, "debt": 0, "ID": "c", "person": "Cid"},
    {"income": 0, "debt": 9, "ID": "d", "person": ""},
]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_everybody_who_needs_one_has_the_notice_that_notice_gives(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    run = notices_to(path, PEOPLE, REQUEST, keep=["ID", "person"])
    assert run.counts["nearest"] == 3 and run.counts["error"] == 1
    found = records(path)
    assert [one["annex"] is not None for one in found] == [True, False, False, True]
    assert [one["ID"] for one in found] == ["=1+1", "b", "c", "d"]
    alone = notice(EXPLAINER, {"income": 3, "debt": 1}, replace(REQUEST.letter, fields={"person": "Ann\nRoad 1", "reference": "ID: =1+1"}),
                   codes=CODES, query=REQUEST.query)  # fmt: skip

    def without_times(annex: dict[str, Any]) -> str:
        return re.sub(r'"seconds": [^,}]*', "", json.dumps(annex))

    assert without_times(found[0]["annex"]) == without_times(alone.annex())


def test_pages_a_printout_and_a_mail_merge(tmp_path: Path) -> None:
    path, pages = tmp_path / "n.jsonl", tmp_path / "pages"
    notices_to(path, PEOPLE, REQUEST, keep=["ID", "person"])
    assert write_pages(path, pages, "c-1") == 2
    assert sorted(one.name for one in pages.iterdir()) == [
        "notice-000000.html", "notice-000000.json", "notice-000003.html", "notice-000003.json"]  # fmt: skip
    page = (pages / "notice-000000.html").read_text(encoding="utf-8")
    assert "Ann<br>Road 1" in page and "Information about an automated decision" in page
    assert hashlib.sha256((pages / "notice-000000.json").read_bytes()).hexdigest() in page
    assert write_printout(path, tmp_path / "all.html") == 2
    assert (tmp_path / "all.html").read_text(encoding="utf-8").count("<article") == 2
    assert write_mail_merge(path, tmp_path / "merge.csv") == 2
    with (tmp_path / "merge.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert first["row"] == "0" and first["ID"] == "'=1+1" and first["page"] == "notice-000000.html"
    assert first["reason_2_code"] == "" and "No smaller change of this alone" in first["reason_2_proof"]
    assert first["reason_1_code"] == "1" and first["reason_1"] == "'=Debt" and first["decision"] == "The decision: no."
    assert first["way_1"].startswith("If ") and first["reason_4"] == "" and second["row"] == "3"


def test_a_run_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, table, own = tmp_path / "n.jsonl", [PEOPLE[0]] * 12, NoticeRecords.__call__

    def interrupted(self: NoticeRecords, rows: Any, first: int) -> Any:
        if first >= 4:
            raise KeyboardInterrupt
        return own(self, rows, first)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(NoticeRecords, "__call__", interrupted)
        notices_to(path, table, REQUEST)
    with pytest.raises(IfonlyError, match="unfinished run with 4 rows"):
        notices_to(path, table, REQUEST)
    with pytest.raises(IfonlyError, match="the question is not the one"):
        notices_to(path, table, replace(REQUEST, letter=Letter(form="c-1")), existing="resume")
    assert notices_to(path, table, REQUEST, existing="resume").rows == 12
    assert [one["row"] for one in records(path)] == list(range(12))
    assert notices_to(path, table, REQUEST).already


@pytest.mark.long
def test_processes_give_the_same(tmp_path: Path) -> None:
    table = [{name: one[name] for name in ("income", "debt")} for one in PEOPLE]
    notices_to(tmp_path / "a.jsonl", table, REQUEST)
    notices_to(tmp_path / "b.jsonl", table, REQUEST, engine=Processes(1))
    told = [
        [one["annex"] and one["annex"]["statements"] for one in records(tmp_path / name)]
        for name in ("a.jsonl", "b.jsonl")
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "n.csv"}, "are written to a .jsonl file"),
        ({"request": "c-1"}, "NoticeRequest"),
        ({"request": NoticeRequest(explainer=EXPLAINER)}, "Say which decision is the favourable one"),
        ({"keep": "ID"}, "a list of names"),
        ({"keep": ["annex"]}, "There is no column|cannot be kept"),
        ({"engine": 3}, "An engine is an object"),
    ],
)
def test_wrong_runs(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"path": "n.jsonl", "table": PEOPLE, "request": REQUEST, **given}
    with pytest.raises(IfonlyError, match=message):
        notices_to(**{**call, "path": tmp_path / call["path"]})


def test_damaged_records_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    notices_to(path, PEOPLE[:1], REQUEST)
    (whole,) = records(path)
    for damage in (
        "[]", "{", "\x00", json.dumps({**whole, "annex": 3}), json.dumps({**whole, "row": "../x"}),
        *(json.dumps({**whole, "annex": {**whole["annex"], name: 3}}) for name in ("statements", "keeps", "version")),
        *(json.dumps({**whole, "annex": {k: v for k, v in whole["annex"].items() if k != name}}) for name in
          ("reasons", "data", "fields", "proven", "model", "certificate")),
    ):  # fmt: skip
        path.write_text(damage + "\n", encoding="utf-8")
        for write in (write_pages, write_printout, write_mail_merge):
            with pytest.raises(IfonlyError, match="line 1, is no record of a notice"):
                write(path, tmp_path / "out")
    path.write_text(json.dumps({**whole, "annex": {**whole["annex"], "form": "c-9"}}), encoding="utf-8")
    with pytest.raises(IfonlyError, match="The forms of a notice are"):
        write_pages(path, tmp_path / "out")
    path.write_text(json.dumps({**whole, "annex": None}), encoding="utf-8")
    with pytest.raises(IfonlyError, match="Nobody in"):
        write_printout(path, tmp_path / "all.html")
    with pytest.raises(IfonlyError, match="Cannot read the notices"):
        write_mail_merge(tmp_path / "gone.jsonl", tmp_path / "merge.csv")
