"""Tables and outputs at URLs: the records are those of a path; nothing half-written is ever there; runs are resumed."""

from __future__ import annotations

import csv
import json

import pytest

from ifonly import Explainer, Integer, Network, Query, Real, Schema
from ifonly.errors import FileError
from ifonly.model import network_model
from ifonly.population import Output
from ifonly.population.remote import STAGING, is_url, local_place
from ifonly.schema import Categorical

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (extra `fsspec`)")

SCHEMA = Schema([Integer("age", 18, 90), Real("debt", 0, 100, step=0.01), Categorical("town", ["Ulm", "Köln"])])
EXPLAINER = Explainer(
    network_model(Network.of([([[1.0, -1.0, 0.0, 5.0]], [-30.0])]), SCHEMA, classes=("no", "yes")),
    constraints=["age is fixed"],
)
ROWS = [{"id": f"C-{i}", "age": 20 + i, "debt": 3.0 * i, "town": "Ulm"} for i in range(12)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv(STAGING, str(tmp_path / "staging"))
    system = fsspec.filesystem("memory")
    system.store.clear()
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(ROWS)
    system.put_file(str(tmp_path / "people.csv"), "/bank/people.csv")
    return system


def records(content: bytes) -> list[dict[str, str]]:
    kept = csv.DictReader(content.decode().splitlines())
    return [{key: value for key, value in row.items() if key != "seconds"} for row in kept]


def names(store) -> set[str]:
    return {one.removeprefix("/bank/") for one in store.find("/bank")}


def test_what_is_a_url() -> None:
    assert all(map(is_url, ("s3://a/b.csv", "memory://a", "file:///a", "simplecache::s3://a")))
    assert not any(map(is_url, ("a.csv", "/a/b", "C:\\a.csv", "C://a.csv", "a/b://c", 3)))


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_file_at_a_url_is_the_file_of_a_path(store, tmp_path, ending) -> None:
    written = EXPLAINER.explain_to(f"memory://bank/answers{ending}", "memory://bank/people.csv", "yes", keep=["id"])
    EXPLAINER.explain_to(tmp_path / f"answers{ending}", tmp_path / "people.csv", Query(target="yes"), keep=["id"])
    assert written.path == f"memory://bank/answers{ending}" and written.rows == len(ROWS)
    assert names(store) == {"people.csv", f"answers{ending}", f"answers{ending}.manifest.json"}
    content = store.cat_file(f"/bank/answers{ending}")
    if ending == ".csv":
        assert records(content) == records((tmp_path / "answers.csv").read_bytes())
    assert not any((tmp_path / "staging" / "runs").iterdir())  # nothing is left here
    again = EXPLAINER.explain_to(f"memory://bank/answers{ending}", "memory://bank/people.csv", "yes", keep=["id"])
    assert again.already and store.cat_file(f"/bank/answers{ending}") == content
    with pytest.raises(FileError, match="holds a finished run, and the question is not the one"):
        EXPLAINER.explain_to(
            f"memory://bank/answers{ending}",
            "memory://bank/people.csv",
            Query(constraints=["debt is fixed"]),
            keep=["id"],
        )
    assert store.cat_file(f"/bank/answers{ending}") == content


def test_a_folder_of_parts_is_replaced_as_a_whole(store) -> None:
    store.pipe_file("/bank/answers.csv/part-000000000099.csv", b"of an older run")
    with pytest.raises(FileError, match="The folder 'memory://bank/answers.csv' is not empty"):
        EXPLAINER.explain_to("memory://bank/answers.csv/", "memory://bank/people.csv")
    store.rm("/bank/answers.csv", recursive=True)
    EXPLAINER.explain_to("memory://bank/answers.csv/", "memory://bank/people.csv")
    there = {"people.csv", "answers.csv/_manifest.json", "answers.csv/part-000000000000.csv"}
    assert names(store) == there
    manifest = json.loads(store.cat_file("/bank/answers.csv/_manifest.json"))
    assert manifest["state"] == "finished" and len(manifest["parts"]) == 1
    EXPLAINER.explain_to("memory://bank/answers.csv/", ROWS, existing="replace")
    assert names(store) == there


def test_several_files_and_folders_that_are_columns(store) -> None:
    content = store.cat_file("/bank/people.csv")
    for month in (1, 2):
        store.pipe_file(f"/bank/in/month={month}/p.csv", content)
    for table in ("memory://bank/in", "memory://bank/in/*/p.csv"):
        written = EXPLAINER.explain_to("memory://bank/all.csv", table, keep=["month", "id"], existing="replace")
        assert written.rows == 2 * len(ROWS)
        months = [row["month"] for row in records(store.cat_file("/bank/all.csv"))]
        assert months == ["1"] * len(ROWS) + ["2"] * len(ROWS)


def test_an_upload_that_fails_is_resumed(store, monkeypatch) -> None:
    def fails(*_) -> None:
        raise ConnectionError("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "put_file", fails)
        with pytest.raises(FileError, match="the store is away; all rows are answered and kept on this machine"):
            EXPLAINER.explain_to("memory://bank/a.csv", "memory://bank/people.csv")
    assert names(store) == {"people.csv"}
    assert local_place("memory://bank/a.csv").path.exists()
    written = EXPLAINER.explain_to("memory://bank/a.csv", "memory://bank/people.csv", existing="resume")
    assert written.already and names(store) == {"people.csv", "a.csv", "a.csv.manifest.json"}


def test_what_somebody_else_writes_meanwhile_stays(store) -> None:
    def rows():
        yield from ROWS
        store.pipe_file("/bank/a.csv", b"theirs")

    with pytest.raises(FileError, match="was changed by somebody else since the run began"):
        EXPLAINER.explain_to("memory://bank/a.csv", rows())
    assert store.cat_file("/bank/a.csv") == b"theirs"


def test_a_file_url_is_a_path(tmp_path, store) -> None:
    written = EXPLAINER.explain_to(f"file://{tmp_path}/a.csv", f"file://{tmp_path}/people.csv")
    assert written.rows == len(ROWS) and (tmp_path / "a.csv").exists() and (tmp_path / "a.csv.manifest.json").exists()


def test_what_cannot_be_opened_is_said() -> None:
    with pytest.raises(FileError, match="Cannot open 'nosuch://a/b.csv'"):
        EXPLAINER.explain_to("nosuch://a/b.csv", ROWS)
    with pytest.raises(FileError, match="Cannot read the table 'memory://bank/none.csv'"):
        EXPLAINER.explain_to("a.csv", "memory://bank/none.csv")


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_changes_as_columns(tmp_path, ending) -> None:
    EXPLAINER.explain_to(
        Output(tmp_path / f"a{ending}", flat_changes=True), [*ROWS, {"id": "x", "age": "?"}], keep=["id"]
    )
    if ending == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(tmp_path / "a.parquet")
        assert [str(table.schema.field(f"{name} (after)").type) for name in SCHEMA.names] == [
            "int64",
            "double",
            "string",
        ]
        rows = table.to_pylist()
    elif ending == ".jsonl":
        rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    else:
        with (tmp_path / "a.csv").open() as file:
            rows = [{key: value or None for key, value in row.items()} for row in csv.DictReader(file)]
        for row in rows:
            row["debt (after)"] = row["debt (after)"] and float(row["debt (after)"])
    assert rows[-1]["status"] == "error" and rows[-1]["town (after)"] is None
    for row in rows[:-1]:
        changes = row["changes"] if ending == ".jsonl" else json.loads(row["changes"])
        told = {change["feature"]: change["to"] for change in changes}
        assert {name: row[f"{name} (after)"] for name in SCHEMA.names} == {
            name: told.get(name) for name in SCHEMA.names
        }
    assert any(row["town (after)"] for row in rows) or any(row["debt (after)"] is not None for row in rows)
