"""Rules as people read them, in English and in German."""

import pytest

from ifonly import Explainer, Integer, Network, Schema, datasets
from ifonly.answering.reasons import relaxed
from ifonly.model import network_model
from ifonly.problem import Allowed, Fixed, MaxChanges, OnlyDown, OnlyUp, OnlyWith, Range
from ifonly.problem.constraints import MaxDelta, Steps
from ifonly.problem.rules import Rule
from ifonly.results.plain_language import plain_language
from ifonly.results.rule_language import Naming, rule_in

SENTENCES = [
    ("Age is fixed", "„Alter“ bleibt, wie es ist"),
    ("'Age' only goes up", "„Alter“ darf nur steigen"),
    ("Debt only goes down", "„Debt“ darf nur sinken"),
    ("Age in [18, 65]", "„Alter“ liegt im Bereich von 18 bis 65"),
    ("Job in (clerk, nurse)", "„Job“ ist eines von: clerk, nurse"),
    ("Job in (clerk)", "„Job“ ist clerk"),
    ("Job not in (clerk)", "„Job“ ist nicht clerk"),
    ("Age >= 18", "„Alter“ ist mindestens 18"),
    ("Age changes by at most 5", "„Alter“ ändert sich um höchstens 5"),
    ("Debt changes only with Age", "„Debt“ ändert sich nur zusammen mit „Alter“"),
    ("Age may be filled in", "„Alter“ darf ergänzt werden"),
    ("Age may be filled in at 0.5", "„Alter“ darf ergänzt werden, was als 0,5 zählt"),
    ("only Age, Debt may change", "nur „Alter“, „Debt“ darf sich ändern"),
    ("Age may change", "„Alter“ darf sich ändern"),
    ("at most two changes", "höchstens zwei Änderungen"),
    ("at most 1 change", "höchstens eine Änderung"),
    ("if Job = none then Age <= 60", "wenn gilt: „Job“ ist none, dann gilt: „Alter“ ist höchstens 60"),
    ("2 * Age + Debt <= 100", "2 * „Alter“ + Debt <= 100"),
]

RELAXED = [
    (Fixed("Age"), "„Alter“ darf sich ändern", "“age” may change"),
    (OnlyUp("Age"), "„Alter“ darf auch sinken", "“age” may also go down"),
    (OnlyDown("Debt"), "„Schulden“ darf auch steigen", "“debt” may also go up"),
    (Range("Debt", upper=4000), "„Schulden“ darf über 4.000 € liegen", "“debt” may be above €4,000"),
    (Range("Debt", lower=0.5), "„Schulden“ darf unter 0,50 € liegen", "“debt” may be below €0.50"),
    (
        Range("Debt", lower=1000, upper=2500),
        "„Schulden“ darf außerhalb von 1.000 € bis 2.500 € liegen",
        "“debt” may be outside €1,000 to €2,500",
    ),
    (
        Allowed("Job", ["clerk", "nurse"]),
        "„Beruf“ darf etwas anderes sein als Büro, Pflege",
        "“job” may be other than clerk, nurse",
    ),
    (
        MaxDelta("Debt", by=1500),
        "„Schulden“ darf sich um mehr als 1.500 € ändern",
        "“debt” may change by more than €1,500",
    ),
    (MaxDelta("Age", share=0.07), "„Alter“ darf sich um mehr als 7 % ändern", "“age” may change by more than 7 %"),
    (Steps("Age", 5), "„Alter“ darf sich um beliebige Beträge ändern", "“age” may change by any amount"),
    (MaxChanges(1), "mehr als eine Änderung ist erlaubt", "more than 1 may change"),
    (MaxChanges(2), "mehr als 2 Änderungen sind erlaubt", "more than 2 may change"),
    (OnlyWith("Age", "Debt"), "„Alter“ darf sich ohne „Schulden“ ändern", "“age” may change without “debt”"),
    (
        Rule("Age >= 2 * Debt"),
        "diese Regel entfällt: „Alter“ ist mindestens 2 * „Schulden“",
        "this rule is dropped: “age” is at least 2 * “debt”",
    ),
    (
        Rule("Age >= Debt"),
        "diese Regel entfällt: „Alter“ ist mindestens „Schulden“",
        "this rule is dropped: “age” is at least “debt”",
    ),
]


@pytest.mark.parametrize(("constraint", "german", "english"), RELAXED)
def test_what_would_help_is_said_in_the_language(constraint, german, english):
    """No English word is left in a German sentence about a constraint that is dropped, and amounts have their units."""
    options = {"Job": {"de": {"options": {"clerk": "Büro", "nurse": "Pflege"}}}}
    de = Naming("de", {"Age": ("Alter", ""), "Debt": ("Schulden", "€"), "Job": ("Beruf", "")}, options)
    en = Naming("en", {"Age": ("age", ""), "Debt": ("debt", "€"), "Job": ("job", "")})
    assert rule_in(relaxed(constraint), de) == german
    assert rule_in(relaxed(constraint), en) == english
    both = f"{relaxed(Fixed('Age'))} and {relaxed(constraint)}"
    if "'" not in both:
        assert rule_in(both, de) == f"„Alter“ darf sich ändern und {german}"


@pytest.mark.parametrize(("rule", "german"), SENTENCES)
def test_a_rule_in_german(rule, german):
    assert rule_in(rule, Naming("de", {"Age": ("Alter", "")})) == german


ENGLISH = [
    ("Age is fixed", "“age” is fixed"),
    ("Age in [18, 65]", "“age” is from 18 to 65"),
    ("Job in (clerk, nurse)", "Job is one of clerk, nurse"),
    ("Job not in (clerk, nurse)", "Job is none of clerk, nurse"),
    ("Debt >= 1000", "“monthly debt” is at least €1,000"),
    ("Debt < 0.5", "“monthly debt” is less than €0.50"),
    ("Debt <= Age", "“monthly debt” is at most “age”"),
    ("Debt changes in steps of 5", "“monthly debt” changes in steps of 5"),
    ("if Job = none then Age <= 60", "if Job is none, then “age” is at most 60"),
    ("if Job = none or Age > 70 then Debt = 0", "if Job is none or “age” is more than 70, then “monthly debt” is €0"),
    ("Debt + Bills <= 100", "“monthly debt” + Bills is at most €100"),
    ("Debt follows from Bills > 0", "“monthly debt” follows from: Bills is more than 0"),
    (
        "Job follows from if Age <= 17 then none else if Age = 18 then clerk else nurse",
        "Job follows from: if “age” is at most 17, then none, otherwise if “age” is 18, then clerk, otherwise nurse",
    ),
    ("not (Age = 3)", "not (“age” = 3)"),
    ("2 * Age + Debt <= 100", "2 * “age” + “monthly debt” <= 100"),
    ("at most two changes", "at most two changes"),
    ("only Age may change", "only “age” may change"),
]


@pytest.mark.parametrize(("rule", "said"), ENGLISH)
def test_a_rule_in_english(rule, said):
    assert rule_in(rule, Naming("en", {"Age": ("age", ""), "Debt": ("monthly debt", "€")})) == said


def test_units_and_decimal_marks_are_those_of_the_language():
    names = Naming("de", {"Debt": ("Schulden", "€")}, {"Job": {"de": {"options": {"nurse": "Pflege"}}}})
    assert rule_in("Debt >= 1000.5", names) == "„Schulden“ ist mindestens 1.000,50 €"
    cases = "Job follows from if Debt <= 0.5 then nurse else other"
    assert rule_in(cases, names) == (
        "„Job“ ergibt sich aus: wenn gilt: „Schulden“ ist höchstens 0,50 €, dann gilt: Pflege, sonst: other"
    )


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
    ("Age >= Seniority", "„Alter“ ist mindestens „Jahre im Beruf“"),
    ("Age > 3", "„Alter“ ist größer als 3"),
    ("Age follows from Seniority > 0", "„Alter“ ergibt sich aus: „Jahre im Beruf“ ist größer als 0"),
    ("Age + Seniority <= 90", "„Alter“ + „Jahre im Beruf“ sind zusammen höchstens 90"),
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
    assert plain_language(answer).endswith("The data as they are break: “payments” is at least “bills”.")
    assert plain_language(answer, "de").endswith(
        "Die jetzigen Angaben verstoßen gegen: „payments“ ist mindestens „bills“."
    )
