"""The records of `python -m benchmarks why`: what is there is not asked again, what a shorter limit left open is."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sklearn")

from benchmarks.suites.why.command import _column
from benchmarks.suites.why.records import Records


def test_records_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "results" / "why.jsonl"
    kept = Records(path)
    assert list(kept.missing("credit", "reason", 4, 60.0)) == [0, 1, 2, 3]
    for row, status in ((0, "sufficient"), (2, "smallest")):
        kept.add("credit", "reason", row, open=status != "smallest", limit=60.0, status=status, features=["a"] * (row + 1),
                 milliseconds=10.0 * row, searches=5, nodes=7)  # fmt: skip
    again = Records(path)
    assert list(again.missing("credit", "reason", 4, 60.0)) == [1, 3]
    assert list(again.missing("credit", "reason", 4, 120.0)) == [1, 3, 0], "who is not known at all comes first"
    again.add("credit", "reason", 0, open=False, limit=120.0, status="smallest", features=["a"], milliseconds=4.0,
              searches=5, nodes=7)  # fmt: skip
    assert [one["status"] for one in Records(path).of("credit", "reason", 4)] == ["smallest", "smallest"]


def test_the_table_counts_proofs_rows_and_what_is_open(tmp_path: Path) -> None:
    kept = Records(tmp_path / "why.jsonl")
    for row, verdict in enumerate((True, False, False, None)):
        kept.add("credit", "shap", row, open=verdict is None, limit=60.0, by="shap", features=["a"], four=verdict,
                 many=False)  # fmt: skip
    column = _column(kept, "credit", 4)
    assert column["the four largest suffice"] == "1 do, 2 do not, 1 open"
    assert column["as many as our reason has suffice"] == "0 do, 4 do not, 0 open"
