"""CSV injection: texts that a spreadsheet would take for formulas, in every kind of file that is written."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ifonly import Categorical, Explainer, Integer, Network, Query, Schema
from ifonly.cli.app import app
from ifonly.engines import Processes
from ifonly.errors import IfonlyError
from ifonly.model import network_model, save_network
from ifonly.population import Output
from ifonly.population.formats import formula_escaped, formula_unescaped
from ifonly.population.output_paths import place_of
from ifonly.population.reading import read_answers

EVIL = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1", "#N/A", "'=1", "''", "a\x07b"]
HARMLESS = ["-5", "+3.2", "-1e5", "+49301234", "x=1", "", "'quoted'", "a-b", "12"]
SCHEMA = Schema((Categorical("=job", ("=1+1", "+b", "@c", "#N/A")), Integer("-size", -5, 5)))
IDENTITY = "=HYPERLINK(1)"
SIGNS = ("=", "+", "-", "@", "\t", "\r", "\uff1d")


def model() -> Any:
    weight = np.array([[0.5, -0.5, 1.0, -1.0, 1.0]])
    return network_model(Network.of([(weight, np.array([-0.25]))]), SCHEMA, classes=("=no", "+yes"))


def rows() -> list[dict[str, Any]]:
    jobs = SCHEMA.features[0].categories  # type: ignore[union-attr]
    return [{"=job": jobs[i % 4], "-size": -5 + i % 8, IDENTITY: text} for i, text in enumerate(EVIL + HARMLESS)]


def cells(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    return head, lines


def looks_like_a_formula(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.startswith(SIGNS)
    return False


# ---------------------------------------------------------------------- csv


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("engine", [None, Processes(1)])
@pytest.mark.parametrize("folder", [False, True])
def test_csv_with_and_without(tmp_path, folder, engine):
    """Without the option, cells are what the table says; with it, no cell and no name is a formula, and nothing is lost."""
    explainer = Explainer(model())
    name = "answers.csv/" if folder else "answers.csv"
    for escape in (False, True):
        place = tmp_path / str(escape)
        place.mkdir()
        explainer.explain_to(Output(f"{place}/{name}", escape_formulas=escape), rows(), keep=[IDENTITY], engine=engine)
        file = place / "answers.csv" / "part-000000000000.csv" if folder else place / "answers.csv"
        head, lines = cells(file)
        found = [looks_like_a_formula(cell) for line in [head, *lines] for cell in line]
        assert any(found) is not escape
        told = [answer.factual[IDENTITY] for answer in read_answers(place / "answers.csv", Query())]
        shown = [
            text.replace("\t", "\\t").replace("\r", "\\r").replace("\x07", "\\x07") or None for text in EVIL + HARMLESS
        ]
        assert told == shown
        numbers = [line[head.index("'" * escape + IDENTITY)] for line in lines][len(EVIL) :]
        assert numbers == HARMLESS


@given(st.text(alphabet=st.sampled_from("=+-@'\t\r\uff1d a1.e"), max_size=8))
def test_nothing_is_lost(text):
    cell = formula_escaped(text)
    assert formula_unescaped(cell) == text
    assert not looks_like_a_formula(cell)


def test_a_run_goes_on_as_it_began(tmp_path):
    explainer = Explainer(model())
    explainer.explain_to(tmp_path / "answers.csv", rows())
    with pytest.raises(IfonlyError, match="the way in which formulas are written is not the one"):
        explainer.explain_to(Output(tmp_path / "answers.csv", escape_formulas=True), rows(), existing="resume")
    manifest = json.loads(place_of(tmp_path / "answers.csv").manifest.read_text(encoding="utf-8"))
    assert manifest["escape_formulas"] is False


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Output("answers.jsonl", escape_formulas=True), "does not end in .csv"),
    (lambda: Output("answers.csv", escape_formulas="yes"), "is True or False"),  # type: ignore[arg-type]
    (lambda: Output(3, escape_formulas=True), "cannot name one"),  # type: ignore[arg-type]
])  # fmt: skip
def test_what_is_no_csv_output(make, words):
    with pytest.raises(IfonlyError, match=words):
        make()


# ---------------------------------------------------------------------- commands


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    from ifonly.schema import save_schema

    save_schema(SCHEMA, tmp_path / "schema.json")
    save_network(model().network, tmp_path / "net.npz")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    asked = ["--model", "net.npz", "--schema", "schema.json", "--rows", "rows.jsonl", "--classes", "=no,+yes"]
    return [str(tmp_path / word) if (tmp_path / word).exists() else word for word in asked]


def ran(*words: Any) -> Any:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


STREAM = ["explain"]
WHOLE = ["explain", "--method", "search,enumerate"]
DIVERSE = ["diverse", "-k", "2"]


@pytest.mark.parametrize("command", [STREAM, WHOLE, DIVERSE], ids=["stream", "methods", "diverse"])
def test_the_option(files, tmp_path, command):
    output = tmp_path / "answers.csv"
    keep = ["--keep", IDENTITY] if command is STREAM else []
    result = ran(*command, *files, *keep, "--output", output, "--escape-formulas")
    assert result.exit_code == 0, result.stderr
    head, lines = cells(output)
    assert lines and not any(looks_like_a_formula(cell) for line in [head, *lines] for cell in line)
    if keep:
        assert f"'{IDENTITY}" in head
    for wrong in ([], ["--output", tmp_path / "answers.jsonl"], ["--output", tmp_path / "answers.xlsx"]):
        refused = ran(*command, *files, *wrong, "--escape-formulas")
        assert refused.exit_code == 2 and "--escape-formulas is about csv files" in refused.stderr


@pytest.mark.parametrize("command", [STREAM, WHOLE, DIVERSE], ids=["stream", "methods", "diverse"])
def test_an_excel_file_has_no_formula(files, tmp_path, command):
    openpyxl = pytest.importorskip("openpyxl")
    output = tmp_path / "answers.xlsx"
    assert ran(*command, *files, "--output", output).exit_code == 0
    head, *lines = openpyxl.load_workbook(output).active.iter_rows()
    names = [cell.value for cell in head]
    assert {cell.data_type for line in [head, *lines] for cell in line} <= {"s", "inlineStr", "n", "b"}
    jobs, sizes = names.index("=job (before)"), names.index("-size (before)")
    assert {line[jobs].value for line in lines} == {"=1+1", "+b", "@c", "#N/A"}
    assert all(line[jobs].quotePrefix is (line[jobs].value != "#N/A") for line in lines)
    assert all(isinstance(line[sizes].value, int) for line in lines) and head[sizes].quotePrefix


def test_an_excel_file_holds_any_text(tmp_path):
    """Also what openpyxl refuses: control characters."""
    openpyxl = pytest.importorskip("openpyxl")
    from ifonly.cli import tables

    tables.write_sheet(tmp_path / "a.xlsx", {"\x00name": ["\x07", None, True, 1, 0.5]})
    found = [line[0].value for line in openpyxl.load_workbook(tmp_path / "a.xlsx").active.iter_rows()]
    assert found == ["\\x00name", "\\x07", None, True, 1, 0.5]


def test_an_excel_file_that_is_too_large(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    from ifonly.cli import tables

    monkeypatch.setattr(tables, "MOST_SHEET_ROWS", 3)
    with pytest.raises(IfonlyError, match="has no room for 3 rows"):
        tables.write_sheet(tmp_path / "a.xlsx", {"a": [1, 2, 3]})


def test_an_audit_as_csv(files, tmp_path):
    output = tmp_path / "audit.csv"
    asked = ["--target", "+yes", "--by", "=job", "--no-why", "--output", output]
    assert ran("audit", *files, *asked).exit_code == 0
    head, lines = cells(output)
    assert not any(looks_like_a_formula(cell) for line in [head, *lines] for cell in line)
    assert {"'=1+1", "'+b", "'@c", "#N/A"} <= {line[1] for line in lines}
