"""`ifonly notice`: the page, the annex, templates, and what is refused."""

from __future__ import annotations

import json

import pytest

from ifonly.cli import codes

ONE = ("notice", "--dataset", "compas", "--row", 1)


def test_a_page_and_its_annex(run, tmp_path):
    page, annex, words = tmp_path / "n.html", tmp_path / "n.json", tmp_path / "codes.json"
    words.write_text(json.dumps({"reasons": [{"code": "7", "text": "Priors", "features": ["PriorsCount"]}]}))
    fields = tmp_path / "fields.json"
    fields.write_text(json.dumps({"controller": "Court", "date": "never"}))
    result = run(*ONE, "--form", "gdpr", "--codes", words, "--fields", fields, "--field", "date=1 May", "--html", page,
                 "--annex", annex)  # fmt: skip
    assert result.exit_code == codes.PROVEN, result.stderr
    assert "To be filled in: person, purpose" in result.stderr and "R1" in result.stdout
    assert "Court" in page.read_text() and "1 May" in page.read_text()
    told = json.loads(annex.read_text())
    assert told["form"] == "gdpr" and told["statements"][0]["mark"] == "D"
    assert {**json.loads(run(*ONE, "--json").stdout), "form": ""}.keys() == told.keys()
    assert "is there already" in run(*ONE, "--html", page).stderr


def test_the_shipped_template_is_a_template(run, tmp_path):
    own = tmp_path / "own.html"
    own.write_text(run("notice", "--example", "--form", "ai-act", "--language", "de").stdout)
    page = tmp_path / "n.html"
    assert (
        run(*ONE, "--form", "ai-act", "--language", "de", "--template", own, "--html", page).exit_code == codes.PROVEN
    )
    assert "Seine Rolle bei der Entscheidung" in page.read_text()


def test_limits_have_an_exit_code(run):
    assert run(*ONE, "--time-limit", 1e-6).exit_code == codes.LIMIT


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--form", "c-5"], "The forms of a notice are"),
        (["--field", "creditor"], "--field is written as NAME=TEXT"),
        (["--field", "creditr=Bank"], "The form c-1 has no field 'creditr'; its fields are creditor, applicant"),
        (["--form", "gdpr", "--field", "creditor=Bank"], "The form gdpr has no field 'creditor'"),
        (["--field", "applicant={Name"], "has a brace without a name or without its partner: '{Name'"),
        (["--field", "applicant={}"], "has a brace without a name or without its partner: '{}'"),
        (["--field", "applicant={Name}"], "--field asks for the column 'Name', which the row does not have"),
        (["--keep", "Name"], "--keep names 'Name', which the row does not have"),
        (["--codes", "gone.json"], "Cannot read the reason codes"),
        (["--template", "gone.html", "--html", "n.html"], "Cannot read the template"),
        (["--annex", "n.txt"], "An annex is written as .json"),
        (["--method", "search,enumerate"], "A notice is made by one method"),
        (["--row", "2"], "A notice is about one person"),
        (["--target", "low risk"], "decided as asked already"),
        (["--certificate", "gone.cert"], "Cannot read 'gone.cert'"),
    ],
)
def test_refused(run, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*ONE, *words)
    assert result.exit_code == codes.WRONG_INPUT
    assert message in result.stderr


def test_many_people(run, compas, tmp_path):
    output, pages, merge, printout = (tmp_path / name for name in ("n.jsonl", "pages", "merge.csv", "all.html"))
    words = ("notice", "--dataset", "compas", "--first", 6, "--target", "low risk", "--output", output, "--pages", pages,
             "--mail-merge", merge, "--printout", printout)  # fmt: skip
    result = run(*words)
    assert result.exit_code == codes.PROVEN, result.stderr
    count = len(list(pages.glob("*.html")))
    assert 0 < count < 6 and f"{pages}: {count} notices" in result.stdout
    assert printout.read_text().count("<article") == count == merge.read_text().count("notice-")
    assert "is there already" in run(*words).stderr
    again = json.loads(run(*words, "--resume", "--json").stdout)
    assert again["already"] and again["written"][str(merge)] == count


def test_fields_of_each_person_and_a_mail_merge_for_excel(run, compas, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table, printout, merge = tmp_path / "people.csv", tmp_path / "all.html", tmp_path / "merge.xlsx"
    run("datasets", "export", "compas", tmp_path)
    head, *rows = (tmp_path / "compas.csv").read_text(encoding="utf-8").splitlines()
    people = [f"{row},Käthe Groß {i},Weg {i}" for i, row in enumerate(rows[:6])]
    table.write_text("\n".join([f"{head},Name,Street", *people]), encoding="utf-8")
    result = run("notice", "--dataset", "compas", "--rows", table, "--target", "low risk", "--output", tmp_path / "n.jsonl",
                 "--field", "applicant={Name}\\n{Street} {none}", "--keep", "none", "--printout", printout)  # fmt: skip
    assert result.exit_code == codes.WRONG_INPUT and "'none'" in result.stderr
    result = run("notice", "--dataset", "compas", "--rows", table, "--target", "low risk", "--output", tmp_path / "n.jsonl",
                 "--field", "applicant={Name}\\n{Street}", "--printout", printout, "--mail-merge", merge)  # fmt: skip
    assert result.exit_code == codes.PROVEN, result.stderr
    sheet = openpyxl.load_workbook(merge).active
    columns = {cell.value: j for j, cell in enumerate(next(sheet.iter_rows()))}
    names = [row[columns["Name"]].value for row in sheet.iter_rows(min_row=2)]
    assert names and names == [f"Käthe Groß {row[columns['row']].value}" for row in sheet.iter_rows(min_row=2)]
    text = printout.read_text(encoding="utf-8")
    assert all(f"{name}<br>Weg {name[-1]}" in text for name in names) and "Name: Käthe" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pages", "p"], "say where they go with --output FILE.jsonl"),
        (["--output", "n.csv"], "are written to a .jsonl file"),
        (["--output", "n.jsonl", "--html", "n.html"], "--html is about one person"),
        (["--output", "n.jsonl", "--row", "1"], "--row is about one person"),
        (["--output", "n.jsonl", "--mail-merge", "m.txt"], "A mail merge is written as .csv"),
    ],
)
def test_refused_of_many(run, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("notice", "--dataset", "compas", "--first", 2, "--target", "low risk", *words)
    assert result.exit_code == codes.WRONG_INPUT
    assert message in result.stderr
