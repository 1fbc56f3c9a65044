"""`python -m benchmarks measure` runs commands that exist, with options that exist, and says which of them failed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.suites import measure
from benchmarks.terminal import ROOT


@pytest.mark.parametrize("part", measure.PARTS, ids=lambda part: part.name)
def test_every_part_is_a_command_with_these_options(part: measure.Part) -> None:
    name, *words = shlex.split(part.arguments)
    command = main.commands[name]
    command.make_context(name, words)  # raises for an option that the command does not have


def test_every_command_that_a_document_quotes_is_measured() -> None:
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    quoted = {name for page in pages for name in re.findall(r"python -m benchmarks ([a-z-]+)", page)}
    parts = {part.arguments.split()[0] for part in measure.PARTS}
    assert len(quoted) > 20
    assert quoted - {"measure"} <= parts


def test_campaigns_run_only_where_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(" ".join(words[3:]))
        return subprocess.CompletedProcess(words, returncode=0)

    monkeypatch.setattr(measure.records, "commit", lambda: "c0ffee")
    monkeypatch.setattr(measure.subprocess, "run", run)
    monkeypatch.setattr(measure, "_await_idle", lambda load, patience: 0.0)
    for options in ([], ["--campaigns"]):
        assert CliRunner().invoke(main, ["measure", "--results", str(tmp_path), *options]).exit_code == 0
    assert asked[: len(measure.SITTING)] == [" ".join(shlex.split(part.arguments)) for part in measure.SITTING]
    assert asked[len(measure.SITTING)] == "publish"
    assert len(asked) == len(measure.PARTS)


def test_a_part_that_was_measured_at_this_commit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(words[3:])
        return subprocess.CompletedProcess(words, returncode=1 if "rules" in words else 0)

    monkeypatch.setattr(measure.records, "commit", lambda: "c0ffee")
    monkeypatch.setattr(measure.subprocess, "run", run)
    monkeypatch.setattr(measure, "_await_idle", lambda load, patience: 0.0)
    options = ["measure", "--results", str(tmp_path), "--only", "rules", "--only", "possible"]
    first = CliRunner().invoke(main, options)
    assert first.exit_code == 1 and "rules" in first.output
    second = CliRunner().invoke(main, options)
    assert "possible: measured at c0ffee already" in second.output
    assert asked == [["possible"], ["rules"], ["rules"]]
    runs = [json.loads(line) for line in (tmp_path / "measure" / "runs.jsonl").read_text().splitlines()]
    assert [run["exit_code"] for run in runs] == [0, 1, 1]
