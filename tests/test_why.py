"""Sufficient reasons: hitting sets against all sets, limits, missing numbers, targets, words, and reading back."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from ifonly import (
    Binary,
    Categorical,
    Explainer,
    Fixed,
    Integer,
    Limits,
    Neighbourhood,
    Network,
    OtherTarget,
    Query,
    Real,
    Schema,
    ScoreTarget,
    Sufficiency,
    datasets,
)
from ifonly.answering.hitting_sets import bits, least_hitting_set, minimal_sets, weight_of
from ifonly.answering.implied_features import ImpliedFeatures
from ifonly.errors import IfonlyError, QuestionError
from ifonly.methods import Enumerate, MipObj, Search
from ifonly.model import network_model
from ifonly.problem.constraints import Domains
from ifonly.problem.holding import Held, holding
from ifonly.problem.rules import facts_of
from ifonly.results import SufficientReasons
from ifonly.results.from_dict import change_from_dict

SCHEMA = Schema([Integer("income", 0, 9), Integer("debt", 0, 9), Integer("age", 18, 60), Binary("owner")],
                rules=["debt <= income + 5", "age only goes up"])  # fmt: skip
NETWORK = Network.of([([[1.0, -1.0, 0.0, 0.0]], [-2.5])])
"""Approved where income - debt >= 3."""
CLASSES = ("denied", "approved")
ANN = {"income": 2, "debt": 1, "age": 30, "owner": False}


def explainer() -> Explainer:
    return Explainer(network_model(NETWORK, SCHEMA, classes=CLASSES))


@pytest.mark.parametrize("seed", range(30))
def test_least_hitting_sets_against_all_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    sets = [int(rng.integers(1, 1 << n)) for _ in range(int(rng.integers(0, 9)))]
    excluded = [int(rng.integers(1, 1 << n)) for _ in range(int(rng.integers(0, 4)))]
    weights = [int(w) for w in rng.integers(1, 5, n)]
    good = [h for h in range(1 << n) if all(h & s for s in sets) and not any(h & e == e for e in excluded)]
    found = least_hitting_set(sets, weights, excluded)
    if not good:
        assert found is None
        return
    assert found in good
    assert weight_of(found, weights) == min(weight_of(h, weights) for h in good)
    assert all(any(s & m == m for m in minimal_sets(sets)) for s in sets)
    assert sum(1 << i for i in bits(found)) == found


def test_what_decides_alone() -> None:
    told = explainer().why(ANN, several=None)
    assert told.status == "smallest" and told.features == ("income", "debt")[:1] == ("income",)
    assert told.complete and told.necessary == ("income",)
    assert told.irrelevant == ("debt", "age", "owner")
    assert told.facts == ("debt <= income + 5",), "how somebody may change is no fact about the world"
    (needed,) = told.reasons[0].needed
    assert needed.feature == "income" and {change.feature for change in needed.changes} == {"income"}
    assert (told.decision, told.target, told.at_least, told.stop) == ("denied", "approved", 1, None)


def test_two_features_and_their_neighbourhoods() -> None:
    ben = {**ANN, "income": 6, "debt": 5}
    assert explainer().why(ben).features == ("income", "debt")
    near = explainer().why(ben, within=["debt changes by at most 1"])
    assert near.features == ("income",) and near.within == ("debt changes by at most 1",)
    assert explainer().why(ben, within="debt changes by at most 1").features == ("income",)
    assert explainer().why(ben, within=Neighbourhood(radius=1 / 40, distance="l1")).features == ()
    assert explainer().why(ben, within=1 / 40).sentence().startswith("Whatever your data were, the decision would be")


def test_rows_of_the_schema_alone_count() -> None:
    """An income of 2 decides it only since nobody owes more than income + 5; without the rule too, of course. A rule
    that the row itself breaks is no fact about it."""
    told = explainer().why({**ANN, "income": 1, "debt": 9})
    assert told.breaks == ("debt <= income + 5",) and told.facts == ()
    assert told.features in (("income",), ("debt",)) and told.status == "smallest"
    ruled = Schema(SCHEMA.features, rules=["income <= 2 + debt"])  # nobody can be approved
    assert Explainer(network_model(NETWORK, ruled, classes=CLASSES)).why(ANN).features == ()


def test_constraints_on_changes_do_not_narrow_what_others_are() -> None:
    fixed = Explainer(network_model(NETWORK, SCHEMA, classes=CLASSES), constraints=["income is fixed"])
    assert fixed.why(ANN).features == ("income",)


def test_preferences() -> None:
    """Approved where two of three are."""
    schema = Schema([Binary("a"), Binary("b"), Binary("c")])
    model = network_model(Network.of([([[1.0, 1.0, 1.0]], [-1.5])]), schema)
    row = {"a": False, "b": False, "c": False}
    ask = Explainer(model).why
    assert len(ask(row).features) == 2
    assert "c" in ask(row, Sufficiency(prefer=["c"])).features
    assert ask(row, Sufficiency(prefer=["b", "c"])).features == ("b", "c")
    heavy = ask(row, Sufficiency(prefer={"a": 2.0, "b": 0.5}))
    assert heavy.features == ("b", "c") and heavy.at_least is None and "no set of less weight does" in str(heavy)
    both = ask(row, Sufficiency(prefer=["c"], several=2)).reasons
    assert {one.features for one in both} == {("a", "c"), ("b", "c")}
    every = ask(row, several=None)
    assert [one.status for one in every.reasons] == ["smallest", "minimal", "minimal"] and not every.irrelevant


def test_several_classes_and_scores() -> None:
    schema = Schema([Integer("x", 0, 5), Integer("y", 0, 4)])
    model = network_model(Network.of([(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), [0.0, 0.0, 2.5])]), schema)
    row = {"x": 5, "y": 0}
    assert Explainer(model).why(row).features == ("x",)
    assert Explainer(model).why(row, target=2).features == ("x",)
    assert [one.features for one in Explainer(model).why(row, target=1, several=None).reasons] == [("x",), ("y",)]
    tied = Explainer(model).why({"x": 4, "y": 0})  # y = 4 ties: the first class, but some rounding may see the second
    assert tied.status == "unknown" and tied.stop is not None
    with pytest.raises(QuestionError, match="decided as asked already"):
        Explainer(model).why(row, target=0)
    regression = network_model(Network.of([([[1.0, 0.0]], [0.0])]), schema, regression=True)
    told = Explainer(regression).why(row, target=ScoreTarget(at_most=3.0))
    assert told.features == ("x",) and told.decision is None
    assert "the score would not be at most 3" in told.sentence()
    with pytest.raises(QuestionError, match="regression"):
        Explainer(regression).why(row)


def test_a_margin_that_is_asked_for_counts() -> None:
    from ifonly import ClassTarget

    ask = explainer().why
    assert ask({**ANN, "income": 5}, target=ClassTarget("approved", 2.0)).status == "smallest"
    with pytest.raises(QuestionError, match="already"):
        ask({**ANN, "income": 7}, target="approved")


def test_what_is_within_rounding_is_left_open() -> None:
    """The row itself is on the threshold: rounding decides, and nothing is proven under every rounding."""
    schema = Schema([Real("x", 0.0, 1.0), Real("y", 0.0, 1.0)])
    model = network_model(Network.of([([[0.1, 0.3]], [-0.4 + 1e-17])]), schema)
    told = Explainer(model).why({"x": 1.0, "y": 1.0})
    assert told.status == "unknown" and told.reasons == () and not told.necessary
    assert told.stop is not None
    assert told.sentence() == "Which of your data alone decide this was not found out."


def test_other_methods_give_the_same_reasons() -> None:
    row = {**ANN, "income": 6, "debt": 5}
    for method in (Enumerate(), MipObj(backend="highs")):
        assert explainer().using(method).why(row).features == ("income", "debt")


def test_limits_are_told() -> None:
    credit = Explainer(datasets.network("credit"), classes=["deny", "approve"])
    row = datasets.load("credit").row(51)
    told = credit.why(row, limits=Limits(seconds=1e-6))
    assert told.status == "unknown" and told.stop is not None and told.stop.amount == 1e-6
    few = credit.why(row, limits=Limits(nodes=20))
    assert few.status in ("sufficient", "minimal", "unknown") and few.note == "node limit of 20"
    assert few.at_least is not None and few.at_least <= 5


def test_missing_numbers_stay_missing() -> None:
    schema = Schema([Integer("x", 0, 3, missing=True), Binary("y")])
    model = network_model(Network.of([([[1.0, 1.0]], [-0.5])]), schema)
    without = network_model(Network.of([([[0.0, 1.0]], [-0.5])]), schema.with_missing(["x"]))
    ask = Explainer(replace(model, for_schema=lambda own: without)).why
    told = ask({"x": None, "y": False})
    assert told.features == ("y",) and told.missing == ("x",) and told.factual["x"] is None
    assert "What is missing stays missing: x." in told.sentence()
    assert SufficientReasons.from_dict(told.to_dict()) == told


def test_in_words_and_read_back() -> None:
    told = Explainer(datasets.network("compas"), classes=["low risk", "high risk"]).why(datasets.load("compas").row(1))
    assert told.sentence(subject="the assessment") == (
        "Your age group (<25) and your sex (Male) alone decide this: whatever your other data were, the assessment would "
        "be high risk. No smaller set of your data decides it alone."
    )
    assert told.sentence("de", subject="die Einstufung").startswith(
        "Allein „Altersgruppe“ (unter 25) und „Geschlecht“ (männlich)"
    )
    page = told.to_html(language="de")
    assert "Was dahinter steht: Es ist bewiesen" in page and "männlich" in page
    assert "smallest" in told._repr_html_() and repr(told) == "<SufficientReasons: smallest, AgeGroup, Sex>"
    assert SufficientReasons.from_dict(told.to_dict()) == told
    for name, wrong in (("status", "minimal"), ("reasons", 3), ("complete", 1), ("row", -1), ("facts", "x")):
        with pytest.raises(QuestionError):
            SufficientReasons.from_dict({**told.to_dict(), name: wrong})
    with pytest.raises(QuestionError, match="A reason is smallest, minimal, sufficient"):
        reason = {**told.to_dict()["reasons"][0], "status": "unknown"}
        SufficientReasons.from_dict({**told.to_dict(), "reasons": [reason]})


def test_every_needed_feature_comes_with_a_row_that_the_model_decides_otherwise() -> None:
    data, network = datasets.load("credit"), datasets.network("credit")
    ask = Explainer(network, classes=["deny", "approve"])
    for i in (0, 51):
        told = ask.why(data.row(i))
        for one in told.reasons[0].needed:
            other = dict(told.factual)
            other |= {c.feature: change_from_dict(c.to_dict()).after for c in one.changes}
            held = [name for name in told.features if name != one.feature]
            assert all(other[name] == told.factual[name] for name in held)
            answer = ask.explain(other, target="deny")
            assert answer.decision_before != told.decision


def test_held_features_are_fixed_while_they_are_held() -> None:
    feature, held = Categorical("job", ["a", "b", "c"]), Held("job")
    assert held.allows(feature, 0.0, 1.0)
    before = np.array([1.0])
    for names, left in ((["job"], [[False, True, False]]), (["age"], [[True] * 3])):
        with holding(names):
            domains = Domains(np.zeros(1), np.zeros(1), np.ones((1, 3), dtype=bool))
            held.restrict(feature, before, domains)
            assert domains.allowed.tolist() == left
            assert held.allows(feature, 0.0, 1.0) == ("job" not in names)
    assert not held.now


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"several": 0}, "a whole number from 1 to 10,000, or None for all; it is 0"),
        ({"within": -1.0}, "The radius of a neighbourhood"),
        ({"within": ["wages >= 3"]}, "There is no feature 'wages'"),
        ({"prefer": "income"}, "Name the preferred features in a list"),
        ({"prefer": ["wages"]}, "There is no feature 'wages'"),
        ({"prefer": {"income": 0.0}}, "The weight of 'income' must be between 1e-6 and 1e6"),
        ({"prefer": {"income": "x"}}, "A weight is a number for the name of a feature"),
        ({"target": "maybe"}, "no class 'maybe'"),
    ],
)
def test_wrong_questions(given: dict[str, object], message: str) -> None:
    with pytest.raises(IfonlyError, match=message):
        explainer().why(ANN, Sufficiency(**given))


def test_every_pair_of_small_models_agrees_with_the_nearest_answer() -> None:
    """Duality: the features that the nearest answer changes meet every reason."""
    ask = explainer()
    for income, debt in itertools.product(range(0, 10, 3), range(0, 10, 3)):
        row = {**ANN, "income": income, "debt": debt}
        told, answer = ask.why(row, several=None), ask.explain(row, constraints=["age is free"])
        moved = {change.feature for change in answer.own_changes}
        assert all(moved & set(reason.features) for reason in told.reasons)


def test_what_held_features_imply_is_held_with_them() -> None:
    schema = Schema([Integer("count", 0, 5), Integer("months", 0, 9), Integer("age", 18, 60), Real("x", 0, 1)],
                    rules=["if count = 0 then months = 0", "months >= count", "if months = 0 then age <= 18"])  # fmt: skip
    rules, names = facts_of(schema), ("count", "months", "age", "x")
    point = schema.read({"count": 0, "months": 0, "age": 18, "x": 0.5})
    implied = ImpliedFeatures(schema, rules, point, [schema.index(name) for name in names])
    assert implied.closure(0b0001) == 0b0111 and implied.closure(0b0010) == 0b0111
    assert implied.closure(0b0100) == 0b0100 and implied.closure(0b1000) == 0b1000
    other = ImpliedFeatures(schema, rules, schema.read({"count": 1, "months": 2, "age": 30, "x": 0.5}), [0, 1, 2, 3])
    assert other.closure(0b0001) == 0b0001, "months may be anything from 1 on"


def test_a_forest_is_asked_for_any_row_and_no_nearest_one() -> None:
    rng = np.random.default_rng(3)
    schema = Schema([Integer(name, 0, 20) for name in "abcd"])
    rows = rng.integers(0, 21, size=(300, 4)).astype(float)
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(
        rows, (rows[:, 0] + rows[:, 1] > 20).astype(int)
    )
    explainer = Explainer(forest, schema=schema)
    solver = explainer._answerer.any_row.solver
    question, point = explainer.question(rows[0], Query(target=OtherTarget(0.0)))
    prepared = Search().prepare(question, solver.tolerances)
    (claim,) = prepared.solve(point[None, :], Limits())
    nearest = explainer.explain(rows[0], target=OtherTarget(0.0))
    assert claim.point is not None and claim.lower <= nearest.lower and claim.stop is None
    assert explainer.model.decide(explainer.model.scores(claim.point[None, :]))[0] == explainer.model.classes.index(
        nearest.decision_after
    )
    fixed = [Fixed(name) for name in "abcd"]
    question, point = explainer.question(rows[0], Query(target=OtherTarget(0.0), constraints=fixed))
    (claim,) = Search().prepare(question, solver.tolerances).solve(point[None, :], Limits())
    assert claim.point is None and claim.lower == np.inf
