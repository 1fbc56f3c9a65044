"""`ifonly why`: reasons on the page, as JSON, as HTML, and what is refused."""

from __future__ import annotations

import json

import pytest

from ifonly.cli import codes
from ifonly.results import SufficientReasons


def test_reasons_on_the_page_and_as_json(run, tmp_path):
    result = run("why", "--dataset", "compas", "--row", 1, "--all")
    assert result.exit_code == codes.PROVEN
    assert "alone decide this: whatever your other data were" in result.stdout
    assert "proven: there are no other minimal reasons" in result.stdout
    found = json.loads(run("why", "--dataset", "compas", "--first", 2, "-k", 2, "--json").stdout)["reasons"]
    assert [SufficientReasons.from_dict(one).row for one in found] == [0, 1]
    page = tmp_path / "why.html"
    assert run("why", "--dataset", "compas", "--row", 1, "--html", page, "--language", "de").exit_code == codes.PROVEN
    assert "Keine kleinere Auswahl Ihrer Angaben" in page.read_text()


def test_limits_and_wrong_rows_have_exit_codes(run, compas, tmp_path):
    assert run("why", "--dataset", "compas", "--row", 1, "--time-limit", 1e-6).exit_code == codes.LIMIT
    broken = tmp_path / "rows.csv"
    broken.write_text(compas.few.read_text().replace("Male", "Mole", 1))
    result = run("why", *compas.words(broken)[1:])
    assert result.exit_code == codes.ERROR_ROWS and "row " in result.stderr


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prefer", "Rase"], "There is no feature 'Rase'; did you mean 'Race'?"),
        (["--prefer", "Race", "--weight", "Sex", "2"], "give one of them"),
        (["--distance", "l1"], "say how far with --radius R"),
        (["--radius", "-1"], "The radius of a neighbourhood"),
        (["--within", "Race is"], "The rule ends too early"),
        (["--method", "search,enumerate"], "Reasons are found by one method"),
        (["-k", "0"], "The number of reasons must be a whole number"),
        (["--target", "low risk"], "decided as asked already"),
    ],
)
def test_refused(run, words, message):
    result = run("why", "--dataset", "compas", "--row", 1, *words)
    assert result.exit_code == codes.WRONG_INPUT
    assert message in result.stderr


def test_a_page_is_about_one_person(run, tmp_path):
    refused = run("why", "--dataset", "compas", "--first", 2, "--html", tmp_path / "why.html")
    assert "about one person" in refused.stderr
