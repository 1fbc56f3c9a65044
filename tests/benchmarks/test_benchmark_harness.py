"""The harness: every row is a record, records are not asked twice, summaries count them all."""

import csv
import math

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.asking import records
from benchmarks.asking.records import Record
from benchmarks.showing import summaries
from ifonly import Stop, StoppedBy, datasets
from ifonly.model import save_network


@pytest.fixture
def folders(tmp_path):
    cache, results = tmp_path / "cache", tmp_path / "results"
    cache.mkdir()
    save_network(datasets.network("compas", rules=False).network, cache / "compas_2x10_norm.npz", classes=(0, 1))
    return cache, results


def search(folders, *options):
    where = ["--cache", str(folders[0]), "--results", str(folders[1])]
    asked = ["search", "--quick", "--only", "speed", "--datasets", "compas", "--norms", "l1", *options, *where]
    result = CliRunner().invoke(main, asked, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return records.read(folders[1] / "quick" / "speed.csv")


def test_rows_are_recorded_once_and_a_run_can_be_resumed(folders):
    first = search(folders, "--methods", "enumerate", "--rows", "3")
    assert [(r.row, r.status, r.valid) for r in first] == [(i, "nearest", True) for i in range(3)]
    assert sum(r.seconds for r in first) == pytest.approx(first[0].batch_seconds)
    more = search(folders, "--methods", "enumerate", "--rows", "5")
    assert more[:3] == first and [r.row for r in more[3:]] == [3, 4]
    assert len(search(folders, "--methods", "enumerate", "--rows", "2", "--fresh")) == 2


def test_an_unknown_method_is_named(folders):
    result = CliRunner().invoke(main, ["search", "--methods", "magic"])
    assert result.exit_code == 2 and "no method 'magic'" in result.output


def record(method, row, seconds, upper, status="nearest", note="", stopped_by=""):
    return Record(suite="speed", dataset="adult", arch="2x10", variant="norm", norm="l1", row=row, method=method,
                  way="many", status=status, lower=upper, upper=upper, valid=True, seconds=seconds, nodes=1,
                  note=note, stopped_by=stopped_by)  # fmt: skip


def test_ratios_are_of_medians_and_differences_are_counted():
    ours = [record("ifonly", i, 0.001, 0.5) for i in range(3)]
    theirs = [
        record("gurobi", 0, 0.1, 0.5),
        record("gurobi", 1, 0.2, 0.6),
        record("gurobi", 2, 60.0, 0.7, "within", "time limit", "seconds"),
    ]
    (sheet,) = summaries.summary("speed", ours + theirs)
    assert sheet.rows[1][2:5] == ["gurobi", "3", "2/3"]
    assert sheet.rows[1][5:] == ["200 ms", "20.1 s", "60 s", "-", "200x", "1", "2"]
    assert "geometric mean 200x" in sheet.notes[0]
    assert sheet.markdown().count("\n| ") == 4


def test_records_survive_the_file(tmp_path):
    path = tmp_path / "records.csv"
    wanted = [record("ifonly", 0, 0.1, math.inf, "unknown", 'a "note", with commas')]
    records.append(path, wanted)
    assert records.read(path) == wanted


def test_records_without_the_column_say_what_stopped_them_in_a_note(tmp_path):
    path = tmp_path / "records.csv"
    notes = ["time limit of 60 s", "the solver met numerical trouble", "", "the scores are within 1e-9 of the margin"]
    records.append(path, [record("gurobi", i, 0.1, math.inf, "unknown", note) for i, note in enumerate(notes)])
    with path.open(newline="", encoding="utf-8") as file:
        lines = [{k: v for k, v in line.items() if k != "stopped_by"} for line in csv.DictReader(file)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    old = records.read(path)
    assert [one.stopped_by for one in old] == ["seconds", "trouble", "", ""]
    assert [one.stopped for one in old] == [True, True, False, False]


def test_what_stopped_a_search_is_a_word() -> None:
    late = Stop(StoppedBy.SECONDS, 1.0)
    assert records.stopped_by(None) == ""
    assert records.stopped_by(late) == records.stopped_by(Stop(StoppedBy.FEWER, 3, cause=late)) == "seconds"
    assert [records.is_limit(word) for word in ("", "seconds", "nodes", "trouble", "rounding")] == [
        False,
        True,
        True,
        False,
        False,
    ]
