"""Recourse under causes: the cases of the literature, what constraints mean, what is held, limits, and refusals."""

from __future__ import annotations

import itertools
import json
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from ifonly import (
    Accepted,
    Binary,
    CausalModel,
    Distance,
    Explainer,
    Fixed,
    Integer,
    Limits,
    MaxChanges,
    Model,
    Network,
    Range,
    Real,
    Rule,
    Schema,
    import_model,
)
from ifonly.answering.recourse import MOST_ACTED
from ifonly.causes import LinearEquation, ModelEquation
from ifonly.causes.causal_model import HOLDING
from ifonly.errors import IfonlyError, QuestionError, RowError, UnsupportedQuestion
from ifonly.model import network_model
from ifonly.model.smooth import Activation, SmoothNetwork
from ifonly.plausibility import Near
from ifonly.problem.action_models import action_model
from ifonly.problem.actions import ActionSpace
from ifonly.results import Recourse, Stop, StoppedBy
from ifonly.solvers.search.batch import SearchBatch
from ifonly.solvers.search.worker import Budget

SCHEMA = Schema([Real("salary", 0, 200_000), Real("balance", -50_000, 100_000)])
ALICE = {"salary": 75_000, "balance": 25_000}
CAUSES = CausalModel(SCHEMA, {"balance": LinearEquation({"salary": 0.3})})
RELATIVE = Distance("l1", scales={"salary": 75_000.0, "balance": 25_000.0})
MORTGAGE = network_model(
    Network.of([([[1.0, 5.0]], [-225_000.0])]), SCHEMA, classes=("denied", "approved"), precision="float64"
)


def explainer(model: Model = MORTGAGE) -> Explainer:
    return Explainer(model)


def test_the_mortgage() -> None:
    """By 10,000 a year more, from which 3,000 of balance follow: cheaper than 5,000 more of balance alone."""
    told = explainer().recourse(ALICE, CAUSES, distance=RELATIVE)
    assert told.status == "nearest" and told.cost == pytest.approx(10_000 / 75_000 / 2, rel=1e-6)
    assert [one.feature for one in told.actions] == ["salary"] and told.actions[0].value == pytest.approx(85_000)
    (follows,) = told.follows
    assert follows.feature == "balance" and follows.after == pytest.approx(28_000) and follows.follows
    nearest = explainer().explain(ALICE, distance=RELATIVE)
    assert nearest.upper == pytest.approx(0.1, rel=1e-6), "the nearest row: 5,000 more of balance"
    assert "Then balance is 28,000" in str(told) and "no cheaper action does it (proven" in str(told)
    assert told.sentence().startswith("If salary had been 85,000")
    assert "(and with that balance 28,000" in told.sentence()
    assert told.sentence().endswith("No cheaper action would have been enough.") and told.sentence() in told.to_html()
    assert Recourse.from_dict(json.loads(told.to_json())) == told
    assert told.row == CAUSES.after(ALICE, {"salary": told.actions[0].value})


def test_acting_on_a_feature_with_causes_costs_its_fee() -> None:
    fixed = [Fixed("salary")]
    dear, cheap = (CAUSES.with_holding(fee) for fee in (0.5, 0.0))
    costs = [
        explainer().recourse(ALICE, one, distance=RELATIVE, constraints=fixed).cost for one in (cheap, CAUSES, dear)
    ]
    assert np.allclose(np.diff(costs), [HOLDING / 2, (0.5 - HOLDING) / 2])
    assert costs[0] == pytest.approx(0.1, rel=1e-6)


def test_holding_is_an_action_that_exists() -> None:
    """The model likes salary and not balance: the best is to hold balance, which a nudge by nothing would do for free
    where holding is none; with a fee the optimum exists."""
    model = network_model(Network.of([([[1.0, -2.0]], [-30_000.0])]), SCHEMA, classes=("denied", "approved"))
    told = explainer(model).recourse(ALICE, CAUSES, distance=RELATIVE)
    held = {one.feature: one.held for one in told.actions}
    assert held == {"salary": False, "balance": True} and not told.follows
    assert "the present value has to be held against its causes: balance." in told.sentence()
    assert "gegen seine Ursachen gehalten werden: balance." in told.to_html(language="de")
    assert told.cost == pytest.approx((5_000 / 75_000 + HOLDING) / 2, rel=1e-6)
    assert "Set salary to 80,000" in str(told) and "instead of 75,000, and hold balance at" in str(told)
    assert "hold balance at 25,000 against its causes" in str(told)
    assert Recourse.from_dict(told.to_dict()) == told
    follow = explainer(model).recourse(ALICE, CAUSES.with_holding(5.0), distance=RELATIVE)
    assert [one.feature for one in follow.actions] == ["salary"] and follow.cost == pytest.approx(
        12_500 / 75_000 / 2, rel=1e-6
    )


def test_what_cannot_be_acted_on_may_follow_and_ranges_are_about_what_follows() -> None:
    fixed = explainer().recourse(ALICE, CAUSES, constraints=["balance is fixed"])
    assert [one.feature for one in fixed.actions] == ["salary"] and fixed.follows
    ranged = explainer().recourse(ALICE, CAUSES, constraints=["balance is fixed", Range("balance", upper=27_000)])
    assert ranged.status == "none exists" and ranged.answer.reasons is not None
    assert any("balance may be above 27,000" in one.words for one in ranged.answer.reasons.relaxations)
    ruled = explainer().recourse(ALICE, CAUSES, constraints=[Rule("balance <= 27000"), Fixed("balance")])
    assert ruled.status == "none exists"
    at_most = explainer().recourse(ALICE, CAUSES, constraints=["salary changes by at most 5000", MaxChanges(1)])
    assert len(at_most.actions) == 1 and at_most.actions[0].feature == "balance"
    none = explainer().recourse(ALICE, CAUSES, constraints=[MaxChanges(0)])
    assert none.status == "none exists"


def test_another_model_accepts_what_follows() -> None:
    thrifty = network_model(Network.of([([[0.0, 1.0]], [-29_000.0])]), SCHEMA, classes=("no", "yes"))
    told = explainer().recourse(
        ALICE,
        CAUSES,
        distance=RELATIVE,
        constraints=[Accepted(by=thrifty, target="yes", name="thrift"), "balance is fixed"],
    )
    assert told.row["balance"] > 29_000 and told.status == "nearest"


def test_someone_who_is_approved_already_does_nothing() -> None:
    told = explainer().recourse({"salary": 120_000, "balance": 40_000}, CAUSES, target="approved")
    assert told.cost == 0.0 and not told.actions and told.answer.already


def test_a_smooth_network() -> None:
    linear = Network.of([([[2e-5, 0.0], [0.0, 5e-5]], [-2.0, -1.2]), ([[1.0, 1.0]], [0.2])])
    function = SmoothNetwork(linear, [Activation("tanh")])
    model = replace(MORTGAGE, function=function, original=lambda p: function.scores(SCHEMA.encode(p)))
    told = explainer(model).recourse(ALICE, CAUSES, target="approved", distance=RELATIVE)
    assert told.status == "nearest" and told.actions


def forest() -> Model:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(0, 200_000, 200), rng.uniform(0, 50_000, 200)])
    return import_model(
        RandomForestClassifier(5, max_depth=3, random_state=0).fit(rows, rows[:, 0] + 5 * rows[:, 1] > 225_000), SCHEMA
    )


def test_a_forest_reads_what_follows() -> None:
    """A balance that follows over a threshold of the forest is as good as one that is put there."""
    told = explainer(forest()).recourse(ALICE, CAUSES, target=True, constraints=["balance is fixed"])
    assert told.status == "nearest" and [one.feature for one in told.actions] == ["salary"] and told.follows
    assert told.row == CAUSES.after(ALICE, {"salary": told.actions[0].value})
    nearest = explainer(forest()).explain(ALICE, target=True, constraints=["balance is fixed"])
    assert nearest.upper > told.cost or nearest.status == "none exists"
    beside = Accepted(by=MORTGAGE, target="approved", name="bank")
    both = explainer(forest()).recourse(ALICE, CAUSES, target=True, constraints=["balance is fixed", beside])
    assert both.status == "nearest" and both.cost >= told.cost
    assert MORTGAGE.decide(MORTGAGE.scores(SCHEMA.read(dict(both.row))[None, :]))[0] == 1


def test_a_search_that_is_stopped_says_what_is_left() -> None:
    told = Explainer(MORTGAGE).using(limits=Limits(nodes=1), reasons=False).recourse(ALICE, CAUSES, distance=RELATIVE)
    assert told.status in ("within", "unknown", "nearest") and told.lower <= told.cost
    assert str(told) and Recourse.from_dict(told.to_dict()) == told


def test_the_time_limit_is_for_all_searches_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that stands still, but for searches under causes, each of which takes all the time that it has."""
    clock, searched, on = [0.0], [], Budget.on

    def spend_all(budget: Budget, packed: Any, batch: SearchBatch, radius: Any) -> None:
        on(budget, packed, batch, radius)
        if batch.allowed.factual.shape[1] > len(SCHEMA):  # no search for the nearest row that ignores causes
            assert budget.limits.seconds is not None
            searched.append(batch)
            batch.seconds[:] = budget.limits.seconds - batch.spent_seconds
            batch.stops[0], batch.lower[:] = Stop(StoppedBy.SECONDS, budget.limits.seconds), 0.0
            clock[0] += float(batch.seconds[0])

    slow = explainer().using(reasons=False, limits=Limits(seconds=60))
    slow.recourse(ALICE, CAUSES, distance=RELATIVE)  # questions are prepared, kernels are loaded
    monkeypatch.setattr(Budget, "on", spend_all)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    told = slow.recourse(ALICE, CAUSES, distance=RELATIVE)
    assert len(searched) == 1 and clock[0] == 60.0
    assert told.status == "within" and told.lower < told.cost
    assert told.answer.stop == Stop(StoppedBy.SECONDS, 60)


# ---------------------------------------------------------------------- the function of actions


@pytest.mark.parametrize("seed", range(6))
def test_the_network_of_actions_is_the_model_after_the_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema([Real("a", -1, 1), Binary("b"), Real("c", -9, 9), Integer("d", -9, 9), Real("e", -99, 99)])
    hidden = Network.of([(rng.normal(size=(3, 2)), rng.normal(size=3)), (rng.normal(size=(1, 3)), [0.1])])
    causes = CausalModel(schema, {"c": LinearEquation({"a": 2.0, "b": -1.0}), "d": LinearEquation({"c": 0.7}),
                                  "e": ModelEquation(["c", "d"], hidden)})  # fmt: skip
    model = network_model(
        Network.of([(rng.normal(size=(4, 5)), rng.normal(size=4)), (rng.normal(size=(1, 4)), [0.0])]), schema
    )
    acted = frozenset({2}) if seed % 2 else frozenset()
    space = ActionSpace(causes, acted)
    made = action_model(model, space)
    points = np.column_stack([rng.uniform(-1, 1, 40), rng.integers(0, 2, 40), rng.uniform(-3, 3, 40),
                              rng.integers(-3, 4, 40), rng.uniform(-5, 5, 40)])  # fmt: skip
    actions = space.actions(points)
    assert (space.rows(actions) == points).all(), "who does nothing stays the same, to the last bit"
    actions[:, 0], actions[:, 1] = rng.uniform(-1, 1, 40), rng.integers(0, 2, 40)
    rows, inside = space.followed(actions)
    actions[:, 3] = rows[:, 3]
    assert inside.all()
    error = made.function.error(
        *[space.schema.encode(actions)] * 2, "float64", np.zeros(len(space.schema.columns), bool)
    )
    gap = np.abs(made.function.scores(space.schema.encode(actions)) - model.scores(rows))
    assert (gap <= error).all() and error.max() < 1e-6


# ---------------------------------------------------------------------- refusals

MANY = Schema([Real("x", 0, 1), *(Real(f"y{k}", 0, 1) for k in range(MOST_ACTED + 1))])


REFUSED: dict[str, tuple[Any, type[IfonlyError], str]] = {
    "no causes": (lambda: explainer().recourse(ALICE, {"balance": "salary"}), QuestionError, "with a CausalModel; got"),  # type: ignore[arg-type]
    "another schema": (lambda: explainer().recourse(ALICE, CausalModel(MANY, {})), QuestionError, "rows of another schema"),
    "a condition": (lambda: explainer().recourse(ALICE, CAUSES, constraints=[Near.of(SCHEMA, [ALICE], at_most=1.0)]), UnsupportedQuestion, "met in one of several ways"),
    "a definition and an equation": (lambda: Explainer(network_model(Network.of([([[1.0, 1.0]], [-3.0])]), Schema([Integer("a", 0, 4), Integer("b", 0, 9)]))).recourse(
        {"a": 1, "b": 1}, CausalModel(Schema([Integer("a", 0, 4), Integer("b", 0, 9)]), {"b": LinearEquation({"a": 1.0})}), constraints=["b follows from a"]), QuestionError, "'b' has both a definition"),
    "too many": (lambda: Explainer(network_model(Network.of([(np.ones((1, len(MANY))), [-20.0])]), MANY)).recourse(
        dict.fromkeys(MANY.names, 0.1), CausalModel(MANY, {name: LinearEquation({"x": 0.1}) for name in MANY.names[1:]})), UnsupportedQuestion, "at most 10 are tried: fix some of them"),
    "a row": (lambda: explainer().recourse({"salary": 1}, CAUSES), RowError, "balance"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value)


def test_with_a_missing_number_nothing_follows() -> None:
    schema = Schema([Real("salary", 0, 200_000), Real("balance", 0, 1e5), Real("age", 0, 99, missing=True)])
    causes = CausalModel(schema, {"balance": LinearEquation({"salary": 0.3})})
    with pytest.raises(RowError, match="complete rows only"):
        causes.read({**ALICE, "age": math.nan})


@pytest.mark.parametrize("seed", range(6))
def test_each_of_several_actions_leaves_out_something_of_the_earlier_ones(seed: int) -> None:
    """Against asking once per choice of what is left out."""
    rng = np.random.default_rng(seed)
    schema = Schema([Real(f"x{g}", -2.0, 3.0) for g in range(4)])
    equations = {"x2": LinearEquation({"x0": 0.6, "x1": -0.4}), "x3": LinearEquation({"x2": 0.5})}
    causes = CausalModel(schema, equations, holding=0.02)
    model = Network.of([(rng.normal(size=(4, 4)), rng.normal(size=4)), (rng.normal(size=(1, 4)), [-1.5])])
    explainer = Explainer(model, schema=schema, classes=["no", "yes"]).using(reasons=False)
    person = {name: float(v) for name, v in zip(schema.names, np.round(rng.uniform(-1, 1, 4), 2), strict=True)}
    told = explainer.diverse_recourse(person, causes, 4, target="yes")
    assert told.proven and [one.cost for one in told] == sorted(one.cost for one in told)
    earlier: list[set[str]] = []
    for one in [*told, *([told.ended] if told.ended else [])]:
        least = math.inf
        for left in itertools.product(*earlier):
            rules = [f"{name} is fixed" for name in sorted(set(left))]
            least = min(least, explainer.recourse(person, causes, target="yes", constraints=rules).cost)
        assert one.cost == pytest.approx(least, rel=1e-6)
        earlier.append({action.feature for action in one.actions})
    assert (
        told.to_dict()["proven"]
        and str(told).startswith(("1. Set", "1. Hold", "1. The decision is already", "No"))
        and len(told) == len(list(told))
    )
