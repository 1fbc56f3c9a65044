"""Thirty awkward things that people hand over. The words of each row say what it came to before, and the test what now.

Most of them came from trying the library as a new user would: with frames, notebooks, spreadsheets and sentences.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from ifonly import Answer, Binary, Categorical, Explainer, Integer, Network, Real, Schema
from ifonly.diagnostics import cost_by_changes
from ifonly.errors import IfonlyError, QuestionError, RowError, RuleError, SchemaError
from ifonly.model import Affine, network_model
from ifonly.problem.rules import read_constraint
from ifonly.schema import infer

pandas = pytest.importorskip("pandas")

SCHEMA = Schema(
    [Integer("Hours per week", 0, 80), Real("Income", 0, 1000), Categorical("Job", ["none", "civil servant"])]
)
LABELLED = SCHEMA.labelled({"Hours per week": "hours of work", "Job": "job"})
PERSON = {"Hours per week": 10, "Income": 100.0, "Job": "none"}
EXPLAINER = Explainer(
    network_model(Network([Affine([[1.0, 0.1, -2.0, 2.0]], [-50.0])]), SCHEMA, classes=("deny", "approve"))
)
FRAME = pandas.DataFrame([PERSON] * 3, index=["a", "b", "c"])


def error(kind: type[IfonlyError], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match=words):
        call()


def rule(text: str) -> object:
    return read_constraint(text, SCHEMA)


def only(table: dict[str, list[object]]) -> object:
    return infer(table)[0].features[0]


def labelled(labels: dict[str, str]) -> Answer:
    return Explainer(EXPLAINER.model, schema=SCHEMA.labelled(labels)).explain(PERSON)


def pictured(labels: dict[str, str]) -> list[str]:
    pytest.importorskip("matplotlib")
    return [text.get_text() for text in labelled(labels).plot().get_yticklabels()]


CASES: dict[str, Callable[[], object]] = {
    "the index was dropped": lambda: EXPLAINER.explain_many(FRAME).to_frame().index.tolist() == ["a", "b", "c"],
    "cells held dicts": lambda: (
        not any(isinstance(v, dict | list) for v in EXPLAINER.explain_many(FRAME).to_frame().to_numpy().ravel())
    ),
    "a slice lost the index": lambda: EXPLAINER.explain_many(FRAME)[1:].to_frame().index.tolist() == ["b", "c"],
    "a frame of one row was refused": lambda: EXPLAINER.explain(FRAME.iloc[[1]]).factual == PERSON,
    "a Series was read": lambda: EXPLAINER.explain(FRAME.iloc[1]).factual == PERSON,
    "a frame of three rows was refused without their number": lambda: error(
        RowError, "a table of 3 rows, not a row", lambda: EXPLAINER.explain(FRAME)
    ),
    "a record of a structured array was refused": lambda: (
        SCHEMA.read(np.array([(10, 100.0, "none")], dtype=[(n, "U9" if n == "Job" else float) for n in PERSON])[0])
        is not None
    ),
    "a person was told an l1 distance": lambda: "distance" not in EXPLAINER.explain(PERSON).sentence(),
    "an answer showed as a dataclass in a notebook": lambda: "<table>" in EXPLAINER.explain(PERSON)._repr_html_(),
    "a name of several words needed quotes": lambda: rule("Hours per week <= 40") == rule("'Hours per week' <= 40"),
    "so did an option": lambda: rule("Job = civil servant") == rule("Job = 'civil servant'"),
    "a label in a rule was no name": lambda: (
        read_constraint("hours of work <= 40 or 'job' = none", LABELLED) == read_constraint("'Hours per week' <= 40 or Job = none", LABELLED)
    ),
    "a label for a name was answered with all names": lambda: error(
        SchemaError, "did you mean 'Hours per week'", lambda: LABELLED.index("hours of work")
    ),
    "a label that two features have is none": lambda: error(
        RuleError, "There is no feature 'pay slip'", lambda: read_constraint("'pay slip' <= 4", SCHEMA.labelled({"Income": "pay slip", "Hours per week": "pay slip"}))
    ),
    "nor is one that is an option": lambda: error(
        RuleError, "There is no feature 'civil servant'", lambda: read_constraint("civil servant <= 4", SCHEMA.labelled({"Income": "civil servant"}))
    ),
    "3,000 was a puzzling error": lambda: rule("Income >= 1,000") == rule("Income >= 1000"),
    "between was no word": lambda: rule("Income between 10 and 20") == rule("Income in [10, 20]"),
    "a range that runs backwards was a rule that nobody meets": lambda: error(
        RuleError, r"runs backwards; write \[18, 65\]", lambda: rule("Income in [65, 18]")
    ),
    "a misspelt name of several words pointed elsewhere": lambda: error(
        RuleError, "did you mean 'Hours per week'", lambda: rule("Hours per wek <= 40")
    ),
    "a date was a category": lambda: error(
        SchemaError, "dates; give the days since", lambda: infer({"day": ["2020-01-01", "2020-02-01", "2020-03-01"]})
    ),
    "a parsed date was whole numbers": lambda: error(
        SchemaError, "dates", lambda: infer({"day": pandas.date_range("2020-01-01", periods=30)})
    ),
    "an identifier was a number": lambda: error(
        SchemaError, "an identifier", lambda: infer({"Customer ID": list(range(7, 700, 7))})
    ),
    "a zip code was a number": lambda: isinstance(only({"zip": [10115, 10117, 10119] * 9}), Categorical),
    "an amount in text was a category": lambda: only({"bill": ["$1,002.84", "$5", "$7"]}) == Real("bill", 5, 1002.84, step=0.01, unit="$"),
    "and its rows could not be read": lambda: Real("bill", 0, 2000).read("$1,002.84") == 1002.84,
    "nein came after ja": lambda: only({"paid": ["ja", "nein", "ja"]}) == Binary("paid", ("nein", "ja")),
    "dummies were features of their own": lambda: (
        only({"Job_a": [1, 0, 0], "Job_b": [0, 1, 0], "Job_c": [0, 0, 1]}).name == "Job"  # type: ignore[attr-defined]
    ),
    "a row of dummies was refused": lambda: (
        Schema([Categorical("Job", ["a", "b"], columns=["Job_a", "Job_b"])]).read({"Job_a": 0, "Job_b": 1}).tolist() == [1.0]
    ),
    "two jobs at once were a person": lambda: error(
        RowError, "Job_b = 1", lambda: Schema([Categorical("Job", ["a", "b"], columns=["Job_a", "Job_b"])]).read({"Job_a": 1, "Job_b": 1})
    ),
    "only the first wrong column was told": lambda: error(
        SchemaError, "2 columns", lambda: infer({"x": [None], "y": [[1]], "z": [1]})
    ),
    "labels in another schema were another schema": lambda: (
        Explainer(EXPLAINER.model, schema=SCHEMA.labelled({"Income": "income"})).explain(PERSON).words == {"Income": ("income", "")}
    ),
    "a language that is not there": lambda: error(
        QuestionError, "en, de", lambda: EXPLAINER.explain(PERSON).sentence("tlh")
    ),
    "an answer with words could not be read back": lambda: (
        (answer := Explainer(EXPLAINER.model, schema=SCHEMA.labelled({}, {"Income": "€"})).explain(PERSON))
        == Answer.from_dict(json.loads(answer.to_json()))
    ),
    "a picture of nothing was an empty one": lambda: error(
        QuestionError, "nothing to draw: nothing changes", lambda: EXPLAINER.explain(PERSON, target="deny").plot()
    ),
    "a $ in a label was a formula": lambda: pictured({"Income": "$ an hour $"}) == [r"\$ an hour \$"],
    "a label on a page was part of it": lambda: (
        "<script" not in labelled({"Income": "<script>"}).to_html() and "&lt;script&gt;" in labelled({"Income": "<script>"}).to_html()
    ),
    "a page was written anywhere": lambda: error(
        IfonlyError, "nowhere", lambda: EXPLAINER.explain(PERSON).to_html("/nowhere/at/all.html")
    ),
    "two changes where one is too few": lambda: (
        cost_by_changes(EXPLAINER, PERSON, constraints=["Hours per week <= 30", "Income <= 200"])._repr_html_().count("none exists") > 0
    ),
    "a schema could not be changed": lambda: SCHEMA.replace(Real("Income", 0, 5)).drop("Job").rename({"Income": "Pay"}).names
    == ("Hours per week", "Pay"),
}  # fmt: skip


@pytest.mark.parametrize("before", CASES)
def test_awkward_inputs(before: str) -> None:
    assert CASES[before]() in (None, True)


def test_there_are_thirty() -> None:
    assert len(CASES) >= 30
