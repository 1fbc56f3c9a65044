"""What the person is told: labels, units, languages; never a distance."""

import json

import numpy as np
import pytest

import ifonly
from ifonly import Answer, Explainer, Network, Schema, datasets
from ifonly.errors import ModelError, QuestionError
from ifonly.model import Affine, network_model
from ifonly.report import text
from ifonly.results import amount


def banker(**words):
    """A model of two features: approve when income - 10 * overdue reaches 5,000."""
    schema = Schema(
        [
            ifonly.Integer("inc", 0, 10_000, **words.get("inc", {})),
            ifonly.Integer("late", 0, 20, **words.get("late", {})),
        ]
    )
    network = Network([Affine(np.array([[1.0, -10.0]]), np.array([-5000.0]))])
    return Explainer(network_model(network, schema, classes=("denied", "approved")))


def test_a_person_hears_labels_and_units_and_no_distance():
    asked = banker(inc={"label": "monthly income", "unit": "€"}).explain({"inc": 4999, "late": 0}, distance="l1")
    assert asked.sentence(subject="the application") == (
        "If your monthly income had been €5,001 instead of €4,999, the application would have been approved. "
        "No smaller allowed change would have been enough."
    )
    assert asked.sentence("de", subject="der Antrag") == (
        "Wäre „monthly income“ 5.001 € statt 4.999 € gewesen, hätte der Antrag das Ergebnis „approved“ gehabt. "
        "Keine kleinere erlaubte Änderung hätte genügt."
    )
    assert "l1 distance" in str(asked) and "distance" not in asked.sentence()
    assert "monthly income" in text(asked) and "€5,001" in text(asked)


def test_the_outcome_is_the_clause_that_was_stated():
    approve = {"en": "the application would have been approved", "de": "wäre der Antrag bewilligt worden"}
    stated = Explainer(banker().model, classes={"deny": "the application would have been denied", "approve": approve})
    answer = stated.explain({"inc": 4999, "late": 0})
    assert answer.sentence().startswith(
        "If inc had been 5,001 instead of 4,999, the application would have been approved."
    )
    assert answer.sentence("de").startswith("Wäre „inc“ 5.001 statt 4.999 gewesen, wäre der Antrag bewilligt worden.")
    other = stated.explain({"inc": 5001, "late": 0})
    assert "the application would have been denied" in other.sentence()
    assert "hätte die Entscheidung „deny“ gelautet" in other.sentence("de")
    assert "the decision would have changed to approve;" in str(answer)
    back = Answer.from_dict(json.loads(answer.to_json()))
    assert back == answer and back.sentence("de") == answer.sentence("de")
    for wrong in (3, {"en": 5}, ["en"]):
        with pytest.raises(QuestionError, match="outcome"):
            Answer.from_dict({**answer.to_dict(), "outcome": wrong})
    with pytest.raises(ModelError, match="The outcome of a class is a clause"):
        Explainer(banker().model, classes={"deny": 3, "approve": "yes"})
    assert (
        banker()
        .explain({"inc": 4999, "late": 0})
        .sentence()
        .startswith("If inc had been 5,001 instead of 4,999, the decision would have changed to approved.")
    )


def test_answers_with_words_are_read_back_equal():
    answer = banker(inc={"label": "income"}, late={"unit": "months"}).explain({"inc": 100, "late": 3})
    assert answer.words == {"inc": ("income", ""), "late": ("", "months")}
    back = Answer.from_dict(json.loads(answer.to_json()))
    assert back == answer and back.sentence() == answer.sentence()
    without = banker().explain({"inc": 100, "late": 3})
    assert "words" not in without.to_dict()
    for wrong in (3, {"inc": "income"}, {"inc": ["income"]}, {"inc": ["income", 5]}):
        with pytest.raises(QuestionError, match="words"):
            Answer.from_dict({**answer.to_dict(), "words": wrong})


def test_labels_decide_nothing():
    model = datasets.network("compas", rules=False)
    labelled = model.schema.labelled({"PriorsCount": "number of earlier convictions"})
    row = datasets.load("compas", rules=False).row(3)
    plain, worded = Explainer(model).explain(row), Explainer(model, schema=labelled).explain(row)
    assert worded.counterfactual == plain.counterfactual and worded.upper == plain.upper
    assert "your number of earlier convictions had been 7 instead of 0" in worded.sentence()


@pytest.mark.parametrize(
    ("value", "unit", "language", "text"),
    [
        (1234, "", "en", "1,234"),
        (-1234.5, "€", "en", "-€1,234.50"),
        (-1234.5, "€", "de", "-1.234,50 €"),
        (57.0, "%", "en", "57%"),
        (57.5, "%", "de", "57,5\N{NO-BREAK SPACE}%"),
        (3, "months", "en", "3 months"),
        (True, "", "de", "ja"),
        (None, "€", "de", "keine Angabe"),
        ("1,5", "", "de", "1,5"),
    ],
)
def test_numbers_as_people_write_them(value, unit, language, text):
    assert amount(value, unit, language) == text


def test_every_ending_has_its_words():
    explainer, row = banker(), {"inc": 100, "late": 3}
    none = explainer.explain(row, constraints=["inc is fixed"])
    assert none.sentence().startswith("No allowed change turns the decision into approved. What stands in the way: ")
    assert "It becomes possible if inc may change" in none.sentence()
    assert none.sentence("de").startswith(
        "Keine erlaubte Änderung führt dazu, dass die Entscheidung „approved“ lautet. Im Weg steht: "
    )
    already = explainer.explain({"inc": 9000, "late": 0}, target="approved")
    assert already.sentence() == "The decision is already as asked (approved); nothing needs to change."
    bad = explainer.explain_many([{"inc": "x", "late": 0}])[0]
    assert bad.sentence().startswith("This could not be answered: Feature 'inc' must be")
    limits = ifonly.Limits(nodes=1)
    hard = Explainer(datasets.network("credit", rules=False)).explain(
        datasets.load("credit", rules=False).row(0), limits=limits
    )
    assert hard.status in ("within", "unknown") and "found" in hard.sentence()


def test_text_from_outside_stays_text():
    schema = Schema([ifonly.Integer("n", 0, 9, label="\N{SNOWMAN}<b>{x}")])
    explainer = Explainer(
        network_model(Network([Affine(np.array([[1.0]]), np.array([-5.0]))]), schema, classes=("{no}", "\x1b[1myes"))
    )
    said = explainer.explain({"n": 1}).sentence()
    assert "<b>{x}" in said and "\x1b" not in said


@pytest.mark.parametrize(("language", "subject"), [("fr", ""), (3, ""), ("en", 5)])
def test_wrong_words(language, subject):
    with pytest.raises(QuestionError):
        banker().explain({"inc": 1, "late": 1}).sentence(language, subject=subject)


def test_money_has_two_decimals_or_none():
    said = [amount(value, "€") for value in (7.3, 7.0, 7.35, 7.355, -0.5, 1234567.8)]
    assert said == ["€7.30", "€7", "€7.35", "€7.355", "-€0.50", "€1,234,567.80"]
    assert amount(7.3, "€", "de") == "7,30 €" and amount(7.3, "m") == "7.3 m" and amount(7.3) == "7.3"
