"""`ifonly recourse`: actions and what follows, on the page, as JSON, as HTML, and what is refused."""

from __future__ import annotations

import json

import pytest

from ifonly import CausalModel, datasets
from ifonly.causes import LinearEquation
from ifonly.cli import codes
from ifonly.results import Recourse

CREDIT = ("recourse", "--dataset", "credit", "--without-rules")


@pytest.fixture
def causes(tmp_path):
    schema = datasets.load("credit").schema
    equations = {"MostRecentPaymentAmount": LinearEquation({"MaxPaymentAmountOverLast6Months": 0.5})}
    path = tmp_path / "causes.json"
    CausalModel(schema, equations).save(path)
    return path


def test_recourse_on_the_page_and_as_json(run, causes, tmp_path):
    words = (*CREDIT, "--causes", causes, "--row", 51)
    result = run(*words)
    assert result.exit_code == codes.PROVEN
    told = " ".join(result.stdout.split())
    assert "no cheaper action does it (proven, l1 cost" in told
    assert "No cheaper action would have been enough." in told and "No smaller allowed change" not in told
    assert "Kein geringerer Aufwand hätte genügt." in " ".join(run(*words, "--language", "de").stdout.split())
    page = tmp_path / "advice.html"
    (told,) = json.loads(run(*words, "--holding", 5, "--json", "--html", page).stdout)["recourse"]
    dear = Recourse.from_dict(told)
    assert dear.answer.row == 51 and dear.actions and dear.status == "nearest" and "<html" in page.read_text()


def test_limits_have_an_exit_code(run, causes):
    assert run(*CREDIT, "--causes", causes, "--row", 51, "--node-limit", 1).exit_code == codes.LIMIT


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing option '--causes'"),
        (("--causes", "gone.json"), "Cannot read the file of causes 'gone.json'"),
        (("--causes", "CAUSES", "--holding", "-1"), "The cost of holding a feature is a number from 0 to 1e6"),
        (("--causes", "CAUSES", "--fix", "Salery"), "There is no feature 'Salery'"),
    ],
)
def test_refused(run, causes, words, message):
    result = run(*CREDIT, "--row", 51, *(causes if word == "CAUSES" else word for word in words))
    assert result.exit_code == codes.WRONG_INPUT and message in result.stderr


def test_a_page_is_about_one_person(run, causes, tmp_path):
    refused = run(*CREDIT, "--causes", causes, "--first", 2, "--html", tmp_path / "advice.html")
    assert "about one person" in refused.stderr
