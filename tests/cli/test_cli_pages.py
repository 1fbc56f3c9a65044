"""Pages, sheets, other languages, and rows that come in by the standard input."""

import pytest

from ifonly import datasets
from ifonly.cli import codes

CREDIT = ("explain", "--dataset", "credit")


def test_a_page_for_one_and_for_many(run, tmp_path):
    page = tmp_path / "one.html"
    done = run(*CREDIT, "--row", 0, "--html", page, "--language", "de", "--subject", "der Antrag")
    assert done.exit_code == codes.PROVEN and f"Written to {page}." in done.stderr
    assert "Keine kleinere erlaubte Änderung hätte genügt" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert 'lang="de"' in text and "der Antrag" in text
    refused = run(*CREDIT, "--row", 0, "--html", page)
    assert refused.exit_code == codes.WRONG_INPUT and "to write over it, add --force" in refused.stderr
    assert run(*CREDIT, "--first", 3, "--html", page, "--force").exit_code == codes.PROVEN
    assert page.read_text(encoding="utf-8").count("<section>") == 3
    assert "A page is written as .html or .htm" in run(*CREDIT, "--row", 0, "--html", tmp_path / "a.pdf").stderr


@pytest.mark.long
def test_alternatives_on_a_page(run, tmp_path):
    page = tmp_path / "set.html"
    assert run("diverse", "--dataset", "credit", "--row", 0, "-k", 2, "--html", page).exit_code == codes.PROVEN
    assert "2 ways to another decision" in page.read_text(encoding="utf-8")
    assert "about one person" in run("diverse", "--dataset", "credit", "--first", 2, "--html", page, "--force").stderr


def test_a_sheet(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    sheet = tmp_path / "answers.xlsx"
    assert run(*CREDIT, "--first", 4, "--output", sheet).exit_code == codes.PROVEN
    read = pandas.read_excel(sheet)
    assert read["status"].tolist() == ["nearest"] * 4 and "TotalMonthsOverdue (after)" in read.columns
    assert "is there already" in run(*CREDIT, "--first", 4, "--output", sheet).stderr


@pytest.mark.long
@pytest.mark.parametrize("separator", [";", "tab", ","])
def test_rows_that_come_in(run, tmp_path, separator):
    data = datasets.load("credit", rules=False)
    cells = {"tab": "\t"}.get(separator, separator)
    rows = [data.row(i) for i in (3, 5)]
    lines = [cells.join(rows[0]), *(cells.join(map(str, row.values())) for row in rows)]
    text = "\n".join(lines) + "\n"
    words = (*CREDIT, "--sep", separator, "--json")
    came = run(*words, "--rows", "-", given=text)
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    read = run(*words, "--rows", path)
    assert came.exit_code == read.exit_code == codes.PROVEN

    def told(result):
        import json

        return [(a["factual"], a["counterfactual"]) for a in json.loads(result.stdout)["answers"]]

    assert told(came) == told(read) and [f for f, _ in told(came)] == rows


def test_what_does_not_go_together(run, tmp_path):
    assert "say which with --rows" in run(*CREDIT, "--sep", ";").stderr
    assert "one character" in run(*CREDIT, "--rows", tmp_path / "x.csv", "--sep", ";;").stderr
    assert "Cannot read the table" in run(*CREDIT, "--rows", tmp_path / "x.csv", "--sep", ";").stderr
    two = run(*CREDIT, "--row", 0, "--method", "search,enumerate", "--html", tmp_path / "x.html")
    assert "A page is about the answers of one method" in two.stderr
