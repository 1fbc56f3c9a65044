"""A table that changes during a run or an audit: noticed, said, not called finished; answers are to the original rows only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ifonly import Explainer, datasets
from ifonly.cli.app import app
from ifonly.engines import Processes
from ifonly.errors import FileError, IfonlyError
from ifonly.population import checksums as verified
from ifonly.population import output as parts
from ifonly.population import run, sources
from ifonly.population.output import manifest_of
from ifonly.population.output_paths import place_of
from ifonly.schema.tables import user_columns
from population.streaming import records, same
from population.test_streams import as_rows, in_file

COUNT = 400
DATA = datasets.load("credit", rules=False)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(datasets.network("credit", rules=False), classes=["deny", "approve"])


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    columns = user_columns(DATA.schema, DATA.points()[:COUNT])
    return as_rows({**columns, "Customer ID": [f"c{i:04d}" for i in range(COUNT)]})


@pytest.fixture(scope="module")
def meant(explainer, rows, tmp_path_factory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("meant") / "answers.jsonl"
    explainer.explain_to(path, rows, keep=["Customer ID"])
    return records(path)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 64 rows, each a part of its own; files are compared 4,096 bytes at a time."""
    monkeypatch.setattr(parts, "MOST_ROWS", 64)
    monkeypatch.setattr(sources, "ROWS", 64)
    monkeypatch.setattr(run, "FIRST_ROWS", 64)
    monkeypatch.setattr(run, "CHUNK_SECONDS", 1e9)
    monkeypatch.setattr(run, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr(verified, "BLOCK_BYTES", 4096)


def truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def appended(path: Path) -> None:
    content = path.read_bytes()
    with path.open("ab") as file:
        file.write(content[-300:])


def edited(path: Path) -> None:
    """One bit of a late row, in place: neither the size nor the number of rows differs."""
    content = path.read_bytes()
    at = content.rfind(b"c0390") if path.suffix != ".parquet" else len(content) // 2
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([content[at] ^ 1]))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes()[:-100])
    other.replace(path)


CHANGES: dict[str, Callable[[Path], None]] = {
    "truncated": truncated, "appended": appended, "edited": edited, "replaced": replaced,
}  # fmt: skip


def at_the_second_part(output: Path, change: Callable[[], None]) -> Any:
    """A listener that changes something once, when a part is written for good."""
    changed: list[bool] = []

    def listen(event: Any) -> None:
        if not changed and (manifest_of(place_of(output)) or {"rows": 0})["rows"]:
            changed.append(True)
            change()

    return listen


def check_ended_and_goes_on(explainer: Explainer, output: Path, table: Path, original: bytes, meant: Any) -> None:
    """The run says so and is not finished; with the original in place again it is, with the records of the original."""
    assert not output.exists()
    found = manifest_of(place_of(output))
    assert found is not None and found["state"] == "running" and 0 < found["rows"] <= COUNT
    table.write_bytes(original)
    with pytest.raises(FileError, match="unfinished run"):
        explainer.explain_to(output, table, keep=["Customer ID"])
    assert explainer.explain_to(output, table, keep=["Customer ID"], existing="resume").rows == COUNT
    assert same(records(output), meant)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_table_that_changes_ends_the_run(explainer, rows, meant, tmp_path, kind, change):
    table, output = tmp_path / f"people.{kind}", tmp_path / "answers.jsonl"
    in_file(rows, table)
    original = table.read_bytes()
    listening = explainer.using(listen=at_the_second_part(output, lambda: CHANGES[change](table)))
    with pytest.raises(FileError, match=r"people\.\w+' has changed .* --resume"):
        listening.explain_to(output, table, keep=["Customer ID"])
    assert table.read_bytes() != original
    with pytest.raises(IfonlyError, match="the table is not the one|is not a parquet file, or is damaged"):
        explainer.explain_to(output, table, keep=["Customer ID"], existing="resume")
    check_ended_and_goes_on(explainer, output, table, original, meant)


@pytest.mark.long
@pytest.mark.parametrize("change", ["truncated", "appended"])
def test_also_with_processes(explainer, rows, meant, tmp_path, change):
    table, output = tmp_path / "people.csv", tmp_path / "answers.jsonl"
    in_file(rows, table)
    original = table.read_bytes()
    listening = explainer.using(listen=at_the_second_part(output, lambda: CHANGES[change](table)))
    with pytest.raises(FileError, match="has changed"):
        listening.explain_to(output, table, keep=["Customer ID"], engine=Processes(1))
    check_ended_and_goes_on(explainer, output, table, original, meant)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("named", ["folder", "pattern"])
def test_one_of_many_files_in_named_folders(explainer, rows, meant, tmp_path, named):
    """A file that was not yet opened is another one when its turn comes."""
    output, tables = tmp_path / "answers.jsonl", []
    for month, some in enumerate((rows[:200], rows[200:])):
        tables.append(tmp_path / "people" / f"month={month}" / "part.csv")
        tables[-1].parent.mkdir(parents=True)
        in_file(some, tables[-1])
    source = tmp_path / "people" if named == "folder" else f"{tmp_path}/people/*/part.csv"
    original = tables[1].read_bytes()
    listening = explainer.using(listen=at_the_second_part(output, lambda: truncated(tables[1])))
    with pytest.raises(FileError, match=r"month=1/part\.csv' has changed"):
        listening.explain_to(output, source, keep=["Customer ID"])
    tables[1].write_bytes(original)
    assert explainer.explain_to(output, source, keep=["Customer ID"], existing="resume").rows == COUNT
    assert same(records(output), meant)


@pytest.mark.long
def test_changed_and_changed_back(explainer, rows, meant, tmp_path):
    """What is read while the table is another one is never answered, even if the original is back in the end."""
    table, output = tmp_path / "people.csv", tmp_path / "answers.jsonl"
    in_file(rows, table)
    original = table.read_bytes()
    calls: list[int] = []

    def listen(event: Any) -> None:
        calls.append(event.finished)
        if len(calls) == 3:
            table.write_bytes(original.replace(b"c03", b"x03"))
        elif len(calls) == 6:
            table.write_bytes(original)

    with pytest.raises(FileError, match="has changed"):
        explainer.using(listen=listen).explain_to(output, table, keep=["Customer ID"])
    table.write_bytes(original)
    assert explainer.explain_to(output, table, keep=["Customer ID"], existing="resume").rows == COUNT
    assert same(records(output), meant)


def test_a_table_that_is_only_touched_or_replaced_by_a_copy(explainer, rows, meant, tmp_path):
    table, output = tmp_path / "people.csv", tmp_path / "answers.jsonl"
    in_file(rows, table)

    def copied() -> None:
        (tmp_path / "copy").write_bytes(table.read_bytes())
        (tmp_path / "copy").replace(table)

    explainer.using(listen=at_the_second_part(output, copied)).explain_to(output, table, keep=["Customer ID"])
    assert same(records(output), meant)


def test_the_command_says_so(rows, tmp_path, monkeypatch):
    """Code 2 and a sentence, where it was 0 and fewer rows."""
    table, output = tmp_path / "people.csv", tmp_path / "answers.jsonl"
    in_file(rows, table)
    add = parts.Parts.add

    def adding(self: Any, *given: Any) -> None:
        add(self, *given)
        if self.rows == 64:
            truncated(table)

    monkeypatch.setattr(parts.Parts, "add", adding)
    words = ["explain", "--dataset", "credit", "--rows", str(table), "--output", str(output)]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2 and "has changed" in ran.stderr and not output.exists()
    assert json.loads(place_of(output).manifest.read_text(encoding="utf-8"))["state"] == "running"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_audit_of_a_table_that_changes(rows, tmp_path, monkeypatch, kind):
    """Its page would show the checksum of another table."""
    from ifonly.cli import audit_rows as people

    table = tmp_path / f"people.{kind}"
    in_file(rows, table)
    counted = people.AuditedPeople._counted

    def counting(self: Any, *given: Any) -> Any:
        if self.counts.total() == 10:
            truncated(table)
        return counted(self, *given)

    monkeypatch.setattr(people, "ROWS", 64)
    monkeypatch.setattr(people.AuditedPeople, "_counted", counting)
    words = ["audit", "--dataset", "credit", "--rows", str(table), "--no-why", "--output", str(tmp_path / "audit.json")]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2 and "has changed" in ran.stderr, ran.output
    assert not (tmp_path / "audit.json").exists()


@pytest.mark.long
def test_an_audit_of_answers_that_change(rows, tmp_path, monkeypatch):
    from ifonly.cli import audit_rows as people

    table, output = tmp_path / "people.csv", tmp_path / "answers.csv"
    in_file(rows, table)
    asked = ["--dataset", "credit", "--target", "approve"]
    assert CliRunner().invoke(app, ["explain", *asked, "--rows", str(table), "--output", str(output)]).exit_code == 0
    counted = people.AuditedPeople._counted

    def counting(self: Any, *given: Any) -> Any:
        if self.counts.total() == 10:
            content = output.read_bytes()
            output.write_bytes(content.replace(b"nearest", b"Nearest", 1))
        return counted(self, *given)

    monkeypatch.setattr(people.AuditedPeople, "_counted", counting)
    ran = CliRunner().invoke(app, ["audit", *asked, "--rows", str(table), "--answers", str(output), "--no-why"])
    assert ran.exit_code == 2 and "not what the run has written" in ran.stderr, ran.output
