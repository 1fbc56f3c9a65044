"""Answers that could exist: rules of the schema between features, derived features, and people whose data breaks them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ifonly import Answer, Binary, Derived, Explainer, Integer, Network, NoneExists, Ordinal, Real, Schema, datasets
from ifonly.answering import prepared_methods
from ifonly.cli.app import app
from ifonly.cli.serve import demonstration
from ifonly.errors import QuestionError
from ifonly.methods import Search
from ifonly.mining import ObservedRows, invariants
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules import Rule, read_constraint
from ifonly.results.html import answer_document

PEOPLE = 40


def denied(name: str, count: int) -> tuple[datasets.Dataset, dict[str, np.ndarray]]:
    data, model = datasets.load(name), datasets.network(name)
    rows = np.flatnonzero(model.decide(model.scores(data.points())) == 0)[:count]
    return data, {feature: column[rows] for feature, column in data.columns.items()}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["adult", "compas", "credit"])
def test_no_answer_breaks_what_all_rows_obey(name: str) -> None:
    data, people = denied(name, PEOPLE)
    answers = Explainer(datasets.network(name)).explain_many(people)
    points = np.array([data.schema.read(answer.counterfactual) for answer in answers])
    for one in invariants(data.columns, datasets.load(name, rules=False).schema):
        for text in one.rules:
            assert rows_allowed(Rule(text), data.schema, points, points).all(), text


@pytest.mark.parametrize("name", ["adult", "credit"])
def test_eliminated_and_ruled_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question without derived features has the distances of the question with their rules."""
    _, people = denied(name, 12)
    reduced = Explainer(datasets.network(name)).explain_many(people)
    monkeypatch.setattr(prepared_methods, "eliminated", lambda question: None)
    ruled = Explainer(datasets.network(name)).explain_many(people)
    assert [a.status for a in reduced] == [b.status for b in ruled]
    assert np.allclose([a.upper for a in reduced], [b.upper for b in ruled], rtol=2e-6, atol=0.0)


# a network that says yes to much of `income`, which must be at least `spending`; `group` follows from `age`
SCHEMA = Schema(
    [
        Integer("age", 18, 80),
        Ordinal("group", ["young", "middle", "old"]),
        Real("income", 0, 100),
        Real("spending", 0, 100),
        Binary("saver"),
    ],
    rules=[
        "group follows from if age < 30 then young else if age < 60 then middle else old",
        "income >= spending",
        "saver follows from age >= 40",
    ],
)
NETWORK = Network.of([([[0.0, 0.0, 6.0, 1.0, 0.1, -0.2, 3.0]], [-8.0])])
"""Columns: age, group (a thermometer of three), income, spending, saver."""
PERSON = {"age": 25, "group": "young", "income": 20.0, "spending": 10.0, "saver": False}


def test_what_follows_is_told_apart() -> None:
    answer = Explainer(NETWORK, schema=SCHEMA, classes=["no", "yes"]).explain(
        PERSON, constraints=["income is fixed", "spending is fixed"]
    )
    own, derived = {c.feature for c in answer.own_changes}, {c.feature for c in answer.derived_changes}
    assert own == {"age"} and derived <= {"group", "saver"} and derived
    assert "(and with it " in str(answer) and "(and with that " in answer.sentence()
    assert "(und damit " in answer.sentence("de")
    assert "(folgt daraus)" in answer_document(answer, "de") and "(follows)" in answer_document(answer, "en")
    assert Answer.from_dict(answer.to_dict()) == answer
    assert answer.upper == pytest.approx(abs(answer.counterfactual["age"] - 25) / 62 / 5, rel=1e-9)


def test_what_the_own_row_breaks_is_told_and_not_asked() -> None:
    explainer = Explainer(NETWORK, schema=SCHEMA, classes=["no", "yes"])
    person = {**PERSON, "spending": 30.0}
    answer = explainer.explain(person)
    assert answer.breaks == ("income >= spending",)
    assert "As it is, the row breaks: income >= spending" in str(answer)
    assert "income >= spending" not in answer.constraints
    several = explainer.explain_many([PERSON, person, PERSON])
    assert [one.breaks for one in several] == [(), ("income >= spending",), ()]
    assert several[1].upper == answer.upper


def test_facts_are_blamed_and_never_dropped() -> None:
    explainer = Explainer(NETWORK, schema=SCHEMA, classes=["no", "yes"])
    answer = explainer.explain(PERSON, constraints=["income <= 20", "spending >= 15", "age <= 25", "spending <= 20.5"])
    if isinstance(answer, NoneExists):
        assert not any("income >= spending" in one.dropped for one in answer.reasons.relaxations)
    stuck = explainer.explain(PERSON, constraints=["age is fixed", "income is fixed", "spending is fixed"])
    assert isinstance(stuck, NoneExists)
    assert stuck.reasons.relaxations
    facts = {rule.describe() for rule in (read_constraint(text, SCHEMA) for text in SCHEMA.rules)}
    assert not facts & {words for one in stuck.reasons.relaxations for words in one.dropped}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (["age follows from spending", "spending follows from age"], "without a step"),
        (["group follows from if saver then old else young", "saver follows from group = old"], "circle"),
        (["saver follows from age > 30", "saver follows from age > 40"], "derived twice"),
        (["age follows from age + 1"], "cannot be defined by itself"),
        (["age follows from 300 + [saver]"], "outside the range of age"),
        (["age follows from 40"], "names no other feature"),
        (["saver follows from income * spending > 3"], "multiplies features only by numbers"),
        (["group follows from if age < 30 then young"], "comes 'else'"),
        (["group follows from if age < 30 then juvenile else old"], "no option juvenile"),
        (["age follows from saver"], "has options, not numbers"),
        (["age follows from income * spending"], "needs one with at most 200 values"),
        (["saver follows fro age > 3"], "comes 'from' and its definition"),
    ],
)
def test_wrong_definitions(rules: list[str], words: str) -> None:
    schema = Schema(SCHEMA.features, rules=rules)
    with pytest.raises(QuestionError, match=words):
        Explainer(NETWORK, schema=schema).explain(PERSON)


def test_contradictory_rules_are_named() -> None:
    schema = Schema(SCHEMA.features, rules=["income >= spending + 1", "spending >= income"])
    answer = Explainer(NETWORK, schema=schema, classes=["no", "yes"]).explain({**PERSON, "income": 10.0})
    assert answer.breaks == ("income >= spending + 1",)  # told, and answered under the rest
    possible = Explainer(NETWORK, schema=Schema(SCHEMA.features), classes=["no", "yes"])
    none = possible.explain(PERSON, constraints=list(schema.rules))
    assert isinstance(none, NoneExists)
    assert set(none.reasons.blame) == set(schema.rules)


def test_definitions_are_data() -> None:
    one = Derived("saver", "age >= 40")
    assert one.describe() == "saver follows from age >= 40"
    assert read_constraint(one.describe(), SCHEMA) == one
    with pytest.raises(QuestionError, match="has a name and a definition"):
        Derived("saver", 3)


def test_many_rows_are_judged_as_single_ones() -> None:
    rng = np.random.default_rng(0)
    texts = [
        "income >= spending", "age >= 40 or saver", "not (group = old and income < 50)", "income + spending <= 60.5",
        "age in (20, 30, 40)", "if group >= middle then age >= 30 else spending <= income / 2", "income - 0.1 * age = 18",
    ]  # fmt: skip
    points = np.column_stack(
        [rng.integers(18, 80, 400), rng.integers(0, 3, 400), np.round(rng.random(400) * 100, 1),
         np.round(rng.random(400) * 100, 1), rng.integers(0, 2, 400)]
    ).astype(float)  # fmt: skip
    points[:50, 3] = points[:50, 2]
    points[50:60, 2:4] = [30.2, 30.3]  # whose sum is 60.5 in decimals
    for text in texts:
        rule = Rule(text)
        formula = rule.formula(SCHEMA)
        assert formula is not None
        each = rows_allowed(rule, SCHEMA, points, points).tolist()
        assert each == [rule.allows_row(SCHEMA, point, point) for point in points], text
        assert len(set(each)) == 2 or text.startswith("income - 0.1")


def test_the_search_is_asked_about_free_features_only() -> None:
    explainer = Explainer(NETWORK, schema=SCHEMA, classes=["no", "yes"]).using(Search())
    question, _ = explainer.question(PERSON)
    assert question.derived == {"group", "saver"}
    assert question.distance.weights["group"] == pytest.approx(1e-12)


@pytest.mark.long
def test_commands(tmp_path: Path) -> None:
    data = datasets.load("credit", rules=False)
    table = tmp_path / "people.csv"
    names = list(data.columns)
    lines = [",".join(names), *(",".join(str(data.row(i)[name]) for name in names) for i in range(2000))]
    table.write_text("\n".join(lines), encoding="utf-8")
    run = CliRunner().invoke
    held = run(app, ["explain", "--dataset", "credit", "--row", "0", "--observed", str(table)])
    free = run(app, ["explain", "--dataset", "credit", "--row", "0", "--without-rules", "--observed", str(table)])
    assert held.exit_code == free.exit_code == 0
    assert "It breaks what all rows obey" in free.output and "It breaks what all rows obey" not in held.output
    several = run(app, ["explain", "--dataset", "credit", "--first", "5", "--without-rules", "--observed", str(table)])
    assert " of 5 answers break what all rows of" in several.output
    proven = run(app, ["certify", "--dataset", "credit", "--row", "0", "--output", str(tmp_path / "a.cert")])
    assert proven.exit_code == 0 and "VALID" in proven.output


@pytest.mark.long
def test_the_demonstration_is_possible_and_certified() -> None:
    (demo,) = demonstration()
    assert demo.certificates and demonstration(rules=False)[0].certificates
    rows = ObservedRows(datasets.load("credit").columns, datasets.load("credit").schema)
    answers = [demo.explainer.explain(row) for row in demo.people.values()]
    flags = ("isMale", "isMarried", "HasHistoryOfOverduePayments")
    plain = [{**a.counterfactual, **{name: int(a.counterfactual[name]) for name in flags}} for a in answers]
    points = np.array([rows.schema.read(row) for row in plain])
    assert all(rows_allowed(rule, rows.schema, points, points).all() for rule in rows.rules)


def test_sets_of_answers_treat_facts_alike() -> None:
    explainer = Explainer(NETWORK, schema=SCHEMA, classes=["no", "yes"])
    person = {**PERSON, "spending": 30.0}
    several = explainer.explain_diverse(person, 2)
    assert [one.breaks for one in several] == [("income >= spending",)] * len(several)
    assert several[0].upper == explainer.explain(person).upper
    alone = Schema(SCHEMA.features, rules=["age in (20, 25, 50)"])  # about one feature: no fact
    held = Explainer(NETWORK, schema=alone, classes=["no", "yes"]).explain({**PERSON, "age": 30})
    assert not held.breaks and held.counterfactual["age"] in (20, 25, 50)


RULES = (
    "if age < 30 then spending <= 60",
    "rooms = 2 or income >= 40",
    "if rooms >= 3 then age >= 25",
    "not (rooms = 0 and spending > 50)",
    "spending + 10 * rooms <= 90",
    "if group = old then income <= 80",
    "age only goes up",
    "rooms changes by at most 2",
    "at most 3 changes",
    "age in [20, 70]",
)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_random_questions_with_and_without_elimination(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features = [*SCHEMA.features, Integer("rooms", 0, 5)]
    derived = [rule for rule in SCHEMA.rules if "follows" in rule]
    for seed in range(8):
        rng = np.random.default_rng(seed)
        flag = derived[1] if seed % 2 else "saver follows from rooms > 2"
        held = [derived[0], flag, *rng.choice(RULES, 3, replace=False).tolist()]
        schema = Schema(features, rules=held)
        scale = 1.0 / np.array([60, 1, 1, 1, 100, 100, 1, 5])
        network = Network.of([
            (rng.normal(size=(6, 8)) * scale, rng.normal(size=6)), (rng.normal(size=(1, 6)), rng.normal(size=1) - 0.5),
        ])  # fmt: skip
        age = rng.integers(18, 81, 6)
        people = [
            {"age": int(a), "group": "young" if a < 30 else "middle" if a < 60 else "old", "income": float(i) + 20.0,
             "spending": float(i), "saver": bool(a >= 40), "rooms": int(r)}
            for a, i, r in zip(age, np.round(rng.random(6) * 50, 2), rng.integers(0, 6, 6), strict=True)
        ]  # fmt: skip
        reduced = Explainer(network, schema=schema).explain_many(people, distance=norm)
        with monkeypatch.context() as patched:
            patched.setattr(prepared_methods, "eliminated", lambda question: None)
            ruled = Explainer(network, schema=schema).explain_many(people, distance=norm)
        assert [a.status for a in reduced] == [b.status for b in ruled], seed
        far = [(a.upper, b.upper) for a, b in zip(reduced, ruled, strict=True)]
        assert all(a == b or abs(a - b) <= 3e-6 * b for a, b in far), (seed, far)


@pytest.mark.parametrize(
    ("definition", "words"),
    [("a * b * c * d", "more than 1000 cases"), (" else ".join(f"if a = {i} then {i}" for i in range(60)) + " else 0", "at most 40")],
)  # fmt: skip
def test_definitions_are_bounded(definition: str, words: str) -> None:
    schema = Schema([*(Integer(name, 0, 150) for name in "abcd"), Integer("y", 0, 10**6)])
    with pytest.raises(QuestionError, match=words):
        read_constraint(f"y follows from {definition}", schema)


@pytest.mark.long
def test_an_explainer_with_data_says_how_usual_answers_are() -> None:
    data = datasets.load("credit", rules=False)
    explainer = Explainer(datasets.network("credit", rules=False)).using(data=data.columns)
    answer = explainer.explain(data.row(51))
    assert answer.usual is not None and not answer.usual.possible
    assert str(answer).endswith(str(answer.usual)) and "breaks what all rows obey" in str(answer)
    assert Answer.from_dict(answer.to_dict()) == answer
    people = [data.row(i) for i in range(20)]
    answers = explainer.explain_many(people, target=1)
    assert answers.impossible == ObservedRows(data.columns, data.schema).impossible(answers) > 0
    assert explainer.audit(people, target=1).impossible == answers.impossible
    held = Explainer(datasets.network("credit")).using(data=data.columns).explain_many(people, target=1)
    assert held.impossible == 0 and all(one.usual is not None for one in held)
    assert Explainer(datasets.network("credit")).explain(data.row(51)).usual is None
