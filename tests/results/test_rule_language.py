"""Rules in German, for German pages."""

import pytest

from ifonly import Explainer, datasets
from ifonly.results.rule_language import rule_in

SENTENCES = [
    ("Age is fixed", "„Alter“ bleibt, wie es ist"),
    ("'Age' only goes up", "„Alter“ darf nur steigen"),
    ("Debt only goes down", "„Debt“ darf nur sinken"),
    ("Age in [18, 65]", "„Alter“ von 18 bis 65"),
    ("Job in (clerk, nurse)", "„Job“ ist eines von: clerk, nurse"),
    ("Age >= 18", "„Alter“ mindestens 18"),
    ("Age changes by at most 5", "„Alter“ ändert sich um höchstens 5"),
    ("only Age, Debt may change", "nur „Alter, Debt“ darf sich ändern"),
    ("Age may change", "„Alter“ darf sich ändern"),
    ("at most two changes", "höchstens zwei Änderungen"),
    ("at most 1 change", "höchstens eine Änderung"),
    ("if Job = none then Age <= 60", "wenn „Job“ ist none, dann „Alter“ höchstens 60"),
    ("2 * Age + Debt <= 100", "2 * Age + Debt <= 100"),
]


@pytest.mark.parametrize(("rule", "german"), SENTENCES)
def test_a_rule_in_german(rule, german):
    assert rule_in("de", rule, lambda name: {"Age": "Alter"}.get(name, name)) == german
    assert rule_in("en", rule) == rule


def test_pages_tell_rules_in_their_language():
    explainer = Explainer(datasets.network("compas"), classes=["low risk", "high risk"])
    fixed = [f"{name} is fixed" for name in ("PriorsCount", "AgeGroup", "Sex", "Race")]
    answer = explainer.explain(datasets.load("compas").row(1), constraints=fixed)
    page, sentence = answer.to_html(language="de"), answer.sentence("de")
    assert "is fixed" not in page and "bleibt, wie es ist" in page
    assert "is fixed" not in sentence and "bleibt, wie es ist" in sentence
    assert "is fixed" in answer.sentence("en")


def test_a_rule_of_an_unknown_model_says_so():
    explainer = Explainer(datasets.network("compas"))
    with pytest.raises(ValueError, match="No model called 'fraud check' is known here: name its file with --also"):
        explainer.explain(datasets.load("compas").row(1), constraints=["fraud check accepts"])
