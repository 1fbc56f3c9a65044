"""The shipped data sets as the command line shows them: named decisions, and the rows that the network never saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ifonly import datasets
from ifonly.cli.tables import Table
from ifonly.datasets import Dataset
from ifonly.model import Model, network_model
from ifonly.schema import Binary


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetWords:
    """The wording of a data set: its two decisions, which of them people ask about, what they cannot change."""

    classes: tuple[str, str]
    outcomes: tuple[tuple[str, str], tuple[str, str]]
    """Each decision as a clause, in English and in German."""
    unfavourable: int
    fixed: tuple[str, ...]


YES_OR_NO = {"isMale": "male", "isMarried": "married", "HasHistoryOfOverduePayments": "history of overdue payments"}
"""Of Credit: what is 0 or 1 in the data, as people say it."""
CREDIT_GROUPS = {
    "The applicant": ("isMale", "isMarried", "AgeGroup", "EducationLevel"),
    "Bills and payments": ("MaxBillAmountOverLast6Months", "MaxPaymentAmountOverLast6Months",
                           "MostRecentBillAmount", "MostRecentPaymentAmount"),
    "Overdue": ("TotalOverdueCounts", "TotalMonthsOverdue", "HasHistoryOfOverduePayments"),
    "Budget": tuple(f"MonthsWith{what}OverLast6Months" for what in ("ZeroBalance", "LowSpending", "HighSpending")),
}  # fmt: skip

CREDIT_GERMAN = {
    "Credit applications": "Kreditanträge",
    "deny": "Ablehnung",
    "approve": "Bewilligung",
    "First applicant": "erster Antrag",
    "Second applicant": "zweiter Antrag",
    "Third applicant": "dritter Antrag",
    "The applicant": "Die Person",
    "Bills and payments": "Rechnungen und Zahlungen",
    "Overdue": "Verzug",
    "Budget": "Ausgaben",
}

WORDS = {
    "adult": DatasetWords(
        classes=("at most 50K", "above 50K"),
        outcomes=(
            ("the predicted income would have been at most 50K", "wäre ein Einkommen bis 50K vorhergesagt worden"),
            ("the predicted income would have been above 50K", "wäre ein Einkommen über 50K vorhergesagt worden"),
        ),
        unfavourable=0,
        fixed=("Sex", "Age", "NativeCountry"),
    ),
    "compas": DatasetWords(
        classes=("low risk", "high risk"),
        outcomes=(
            ("the risk would have been rated low", "wäre das Risiko als niedrig eingestuft worden"),
            ("the risk would have been rated high", "wäre das Risiko als hoch eingestuft worden"),
        ),
        unfavourable=1,
        fixed=("Race", "Sex", "AgeGroup"),
    ),
    "credit": DatasetWords(
        classes=("deny", "approve"),
        outcomes=(
            ("the application would have been denied", "wäre der Antrag abgelehnt worden"),
            ("the application would have been approved", "wäre der Antrag bewilligt worden"),
        ),
        unfavourable=0,
        fixed=("isMale", "isMarried", "AgeGroup"),
    ),
}


def network(name: str, *, rules: bool = True) -> Model:
    """The shipped network, with its decisions named."""
    model, words = datasets.network(name, rules=rules), WORDS.get(name)
    if words is None:
        return model
    clauses = ({"en": english, "de": german} for english, german in words.outcomes)
    return replace(model, classes=words.classes, outcomes=dict(zip(words.classes, clauses, strict=True)))


def friendly_credit(*, rules: bool = True) -> tuple[Model, list[dict[str, Any]]]:
    """The network for Credit and the rows of its test split, with features and answers as people say them."""
    shipped, rows = network("credit", rules=rules), test_table(datasets.load("credit")).rows
    german = {name: shipped.schema[name].translations for name in YES_OR_NO}
    yes_or_no = (Binary(name, (False, True), label=said, translations=german[name]) for name, said in YES_OR_NO.items())
    schema = shipped.schema.replace(*yes_or_no)
    model = replace(network_model(shipped.network, schema, classes=shipped.classes), outcomes=shipped.outcomes)
    return model.as_log_odds(), [{**row, **{name: bool(row[name]) for name in YES_OR_NO}} for row in rows]


def test_table(dataset: Dataset) -> Table:
    """The rows of the test split, in its order."""
    return _table(dataset, dataset.split()[1].tolist())


def test_columns(dataset: Dataset) -> dict[str, list[Any]]:
    """The same as columns."""
    return {name: column[dataset.split()[1]].tolist() for name, column in dataset.columns.items()}


def train_table(dataset: Dataset) -> Table:
    """The rows that the network was trained on."""
    return _table(dataset, dataset.split()[0].tolist())


def _table(dataset: Dataset, rows: list[int]) -> Table:
    columns = {name: column[rows].tolist() for name, column in dataset.columns.items()}
    names = tuple(columns)
    return Table(names, [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)])
