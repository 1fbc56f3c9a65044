"""Already decided as asked: what the user's own model says of a row as it is; and what notes say of what is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ifonly import (
    ClassTarget,
    Explainer,
    Integer,
    Limits,
    Nearest,
    Network,
    NoneExists,
    OneOfTarget,
    OtherTarget,
    ProbabilityTarget,
    Real,
    Schema,
    ScoreTarget,
    Stop,
    StoppedBy,
    TopTarget,
    Unknown,
    Within,
    audit,
    check,
)
from ifonly.certifying.certificates import certify
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.model import Model, network_model
from ifonly.population import flip_sets
from ifonly.problem.diversity import Diversity
from ifonly.report import text
from ifonly.report.summary import summary
from ifonly.solvers.search.enumerate import Enumerate
from ifonly.tolerances import Tolerances

AGE = Schema((Integer("age", 18, 90), Integer("debt", 0, 100)))
BY_DEBT = Network.of([([[0.0, -1.0]], [10.5])])
"""Approves debts up to 10, by 10.5 - debt."""


def explainer(**more: Any) -> Explainer:
    return Explainer(BY_DEBT, schema=AGE, classes=["deny", "approve"], **more)


def barely(score: float, precision: Any = "float32") -> Explainer:
    """A model that approves everybody whose x is 1, by this score."""
    schema = Schema((Real("x", 0, 1), Real("y", 0, 1000)))
    network = Network.of([([[1.0, 1.0], [0.0, 1.0]], [0.0, 0.0]), ([[1.0, -1.0]], [score - 1.0])])
    return Explainer(network_model(network, schema, classes=("deny", "approve"), precision=precision))


@pytest.mark.parametrize("score", [6.5e-6, 1e-6, 9e-7, 1e-9])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_nobody_whom_the_model_approves_is_told_to_change(score: float, precision: Any) -> None:
    """E is 1e-3 here in float32: no row is surely beyond the margin, and yet the model has decided."""
    mine = barely(score, precision)
    row = {"x": 1, "y": 0}
    answer = mine.explain(row, target="approve")
    assert isinstance(answer, Nearest)
    assert (answer.already, answer.changes, answer.lower, answer.upper, answer.method) == (True, (), 0.0, 0.0, "model")
    assert str(answer) == "The decision is already as asked (approve); nothing needs to change."
    group = audit(mine.explain_many([row], target="approve")).everybody
    assert (group.unneeded, group.needing) == (1, 0)


def test_a_margin_that_is_a_wish_is_asked_of_everybody() -> None:
    row = {"age": 30, "debt": 9}  # a score of 1.5
    assert explainer().explain(row, target=ClassTarget("approve", margin=1.5)).already
    answer = explainer().explain(row, target=ClassTarget("approve", margin=2.0))
    assert [str(change) for change in answer.changes] == ["debt: 9 -> 8"]
    assert not explainer().explain(row, target=OneOfTarget(["approve"], margin=2.0)).already


def test_rules_are_about_changes() -> None:
    rules = ["age >= 40", "at most 1 change"]
    for row, target in (({"age": 30, "debt": 3}, "approve"), ({"age": 30, "debt": 90}, "deny")):
        for method in (None, Enumerate()):
            answer = explainer().using(method).explain(row, target=target, constraints=rules)
            assert isinstance(answer, Nearest) and answer.already and answer.breaks == ("age >= 40",)
            end = "nothing needs to change, though as it is the row breaks: age >= 40."
            assert str(answer) == f"The decision is already as asked ({target}); {end}"
            assert (answer.to_dict()["already"], answer.to_dict()["breaks"]) == (True, ["age >= 40"])
            assert "age >= 40" in text(answer)
    people = [{"age": 30, "debt": 3}, {"age": 30, "debt": 12}, {"age": 50, "debt": 3}, {"age": 50, "debt": 12}]
    answers = explainer().explain_many(people, target="approve", constraints=rules)
    group = audit(answers).everybody
    assert (group.unneeded, group.recourse, group.without) == (2, 1, 1)
    assert summary(answers)["unchanged"] == 2
    assert [flip.features for flip in flip_sets(answers)] == [("debt",)]


@pytest.mark.parametrize(
    ("target", "has"),
    [
        (None, False),
        ("approve", True),
        ("deny", False),
        (OtherTarget(), False),
        (OneOfTarget(["approve"]), True),
        (TopTarget("approve", 1), True),
        (ScoreTarget(at_least=1.5), True),
        (ScoreTarget(at_least=1.4, at_most=1.5), True),
        (ScoreTarget(at_least=1.6), False),
        (ProbabilityTarget("approve", at_least=0.8), True),
        (ProbabilityTarget("approve", at_least=0.9), False),
    ],
)
def test_every_target_says_who_has_it(target: Any, has: bool) -> None:
    model = Explainer(BY_DEBT, schema=AGE, classes=["deny", "approve"]).model.as_log_odds()
    answer = Explainer(model).explain({"age": 30, "debt": 9}, target=target)
    assert answer.already == has
    assert (answer.method == "model") == has


def test_a_wrong_question_is_refused_even_of_those_who_need_nothing() -> None:
    with pytest.raises(QuestionError, match="'height'"):
        explainer().explain({"age": 30, "debt": 3}, target="approve", constraints=["height is fixed"])


def test_diverse_sets_begin_with_the_row_as_it_is() -> None:
    told = explainer().explain_diverse({"age": 30, "debt": 3}, 3, target="approve", constraints=["age >= 40"])
    assert [answer.already for answer in told] == [True, False, False]
    assert told[0].breaks == ("age >= 40",)
    assert all(answer.counterfactual["age"] >= 40 for answer in told[1:] if answer.counterfactual)
    assert told.proven
    ways = explainer().explain_diverse({"age": 30, "debt": 3}, Diversity(3, differ="features"), target="approve")
    assert len(ways) == 1 and ways[0].already and isinstance(ways.ended, NoneExists)


def test_certificates_do_not_mislead_those_who_need_nothing() -> None:
    row = {"age": 30, "debt": 3}
    assert check(certify(explainer(), row, target="approve")).upper == 0.0
    with pytest.raises(UnsupportedQuestion, match="decided as asked already.*breaks 'age >= 40'"):
        certify(explainer(constraints=["age >= 40"]), row, target="approve")
    with pytest.raises(UnsupportedQuestion, match="decided as asked already.*margin of 1e-06"):
        certify(barely(1e-9, "float64"), {"x": 1, "y": 0}, target="approve")


def test_progress_counts_those_who_need_nothing() -> None:
    heard: list[Any] = []
    people = [{"age": 30, "debt": debt} for debt in (3, 3, 50, 60, 70, 4)]
    explainer().using(listen=heard.append).explain_many(people, target="approve")
    assert (heard[-1].finished, heard[-1].people) == (5, 5)
    heard.clear()
    explainer().using(listen=heard.append).explain_many(people[:2], target="approve")
    assert (heard[-1].finished, heard[-1].people) == (1, 1)


# ---------------------------------------------------------------------- notes


def test_a_note_names_what_rounding_can_do() -> None:
    answer = barely(-1e-7).explain({"x": 0, "y": 500}, target="approve")
    assert isinstance(answer, Unknown)
    assert answer.note.startswith("the scores of the rows left are within 0.0")
    assert answer.note.endswith(
        "where rounding in float32 may decide either way; to tell them apart, import the model in float64"
    )


def test_a_note_never_asks_for_a_margin_of_nothing() -> None:
    """The model says no to everybody; the network that was imported does not."""
    schema = Schema((Integer("n", 0, 9),))
    network = Network.of([([[1.0]], [-4.5])])
    stubborn = Model(
        function=network, schema=schema, original=lambda points: -np.ones((len(points), 1)), classes=(0, 1)
    )
    answer = Explainer(stubborn).explain({"n": 0}, target=ClassTarget(1, margin=0.0))
    assert isinstance(answer, Unknown) and answer.lower == 0.0
    asked_for = float(answer.note.rsplit("ask for a larger margin, such as ", 1)[1])
    assert asked_for > 0.0


def test_limits_are_named_with_their_number() -> None:
    answer = explainer().using(Enumerate()).explain({"age": 30, "debt": 90}, limits=Limits(nodes=1))
    assert answer.note in ("", "node limit of 1")
    assert Limits(seconds=2).reached(seconds=2.5) == Stop(StoppedBy.SECONDS, 2)
    assert Stop(StoppedBy.SECONDS, 2).words() == "time limit of 2 s"
    assert Limits().reached(seconds=1e9, nodes=10**9) is None


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_gap_of_a_large_distance_is_relative(norm: str) -> None:
    """5e6 has no digits left for an absolute gap of 1e-6 where the answer sits within rounding of the margin."""
    tolerances = Tolerances(gap=1e-6, relative_gap=1e-3)
    assert tolerances.allowed(0.5) == 1e-6
    assert tolerances.allowed(5e6) == pytest.approx(5.0)
    assert tolerances.allowed(1e-9) == pytest.approx(1e-12)
    from ifonly import Distance

    schema = Schema((Real("x", 0, 1e7), Real("y", 0, 1e7)))
    network = Network.of([([[1.0, 0.7], [0.3, -1.1]], [0.1, 0.2]), ([[1.0, 0.5]], [-5e6 / 3])])
    far = Distance(norm, scales={"x": 1e-2, "y": 1e-2})
    answer = Explainer(replace(network_model(network, schema))).explain({"x": 0, "y": 0}, target=1, distance=far)
    assert isinstance(answer, Nearest) and not isinstance(answer, Within)
    assert answer.upper > 1e6


def test_labels_that_look_alike_are_one_group() -> None:
    answers = explainer().explain_many([{"age": 30, "debt": debt} for debt in range(6)], target="approve")

    def groups(labels: list[Any]) -> list[tuple[str, int]]:
        return [(group.name, group.people) for group in audit(answers, by=labels).groups]

    assert groups([1, "1", True, 1.0, np.int64(1), np.bool_(True)]) == [("1", 6)]
    assert groups([0, False, "0", "a", None, 2]) == [("0", 3), ("2", 1), ("a", 1), ("missing", 1)]
    assert groups(["01", "1", "01", "1", "2", "2"]) == [("01", 2), ("1", 2), ("2", 2)]
    assert groups([True, False] * 3) == [("False", 3), ("True", 3)]
