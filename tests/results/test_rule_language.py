"""Rules in German, for German pages."""

import pytest

from ifonly import Explainer, Integer, Network, Schema, datasets
from ifonly.model import network_model
from ifonly.results.plain_language import plain_language
from ifonly.results.rule_language import Naming, rule_in

SENTENCES = [
    ("Age is fixed", "„Alter“ bleibt, wie es ist"),
    ("'Age' only goes up", "„Alter“ darf nur steigen"),
    ("Debt only goes down", "„Debt“ darf nur sinken"),
    ("Age in [18, 65]", "„Alter“ von 18 bis 65"),
    ("Job in (clerk, nurse)", "„Job“ ist eines von: clerk, nurse"),
    ("Age >= 18", "„Alter“ mindestens 18"),
    ("Age changes by at most 5", "„Alter“ ändert sich um höchstens 5"),
    ("Debt changes only with Age", "„Debt“ ändert sich nur zusammen mit „Alter“"),
    ("Age may be filled in", "„Alter“ darf ergänzt werden"),
    ("Age may be filled in at 0.5", "„Alter“ darf ergänzt werden, was als 0.5 zählt"),
    ("only Age, Debt may change", "nur „Alter, Debt“ darf sich ändern"),
    ("Age may change", "„Alter“ darf sich ändern"),
    ("at most two changes", "höchstens zwei Änderungen"),
    ("at most 1 change", "höchstens eine Änderung"),
    ("if Job = none then Age <= 60", "wenn gilt: „Job“ ist none, dann gilt: „Alter“ höchstens 60"),
    ("2 * Age + Debt <= 100", "2 * „Alter“ + Debt <= 100"),
]


@pytest.mark.parametrize(("rule", "german"), SENTENCES)
def test_a_rule_in_german(rule, german):
    assert rule_in(rule, Naming("de", {"Age": ("Alter", "")})) == german
    assert rule_in(rule, Naming("en")) == rule


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


@pytest.mark.parametrize(("rule", "german"), [
    ("Age >= Seniority", "„Alter“ mindestens „Jahre im Beruf“"),
    ("Age > 3", "„Alter“ mehr als 3"),
    ("Age follows from Seniority > 0", "„Alter“ ergibt sich aus: „Jahre im Beruf“ mehr als 0"),
    ("Age + Seniority <= 90", "„Alter“ + „Jahre im Beruf“ zusammen höchstens 90"),
    ("if Age = 0 then Seniority = 0", "wenn gilt: „Alter“ ist 0, dann gilt: „Jahre im Beruf“ ist 0"),
    ("Age * 2 + Seniority <= 90", "„Alter“ * 2 + „Jahre im Beruf“ <= 90"),
])  # fmt: skip
def test_rules_between_features(rule: str, german: str) -> None:
    labels = {"Age": "Alter", "Seniority": "Jahre im Beruf"}
    assert rule_in(rule, Naming("de", {name: (label, "") for name, label in labels.items()})) == german


def test_a_rule_that_the_data_break_is_said_with_labels() -> None:
    schema = Schema([Integer("a", 0, 9, label="payments"), Integer("b", 0, 9, label="bills")], rules=["a >= b"])
    model = network_model(Network.of([([[1.0, 0.0]], [-4.5])]), schema, classes=("no", "yes"))
    answer = Explainer(model).explain({"a": 1, "b": 3})
    assert answer.breaks == ("a >= b",)
    assert plain_language(answer).endswith("The data as they are break: payments >= bills.")
    assert plain_language(answer, "de").endswith("Die jetzigen Angaben verstoßen gegen: „payments“ mindestens „bills“.")
