"""Why there is no recourse, checked by other methods: the blamed constraints rule it out, none of them can be left out,
and each relaxation is what it says."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from random_problems import _constraint, random_problem
from test_random_rules import SCHEMA, sentence

from ifonly import ClassTarget, Explainer, Nearest, Network, NoneExists, Real
from ifonly.methods import Enumerate, MipObj
from ifonly.model import network_model
from ifonly.problem import MaxChanges, Question
from ifonly.problem.rules import read_constraint

SEEDS = 400
MIXED = 60
MOST_SUBSETS = 12
"""Questions with more constraints than this are checked without trying all pairs."""


def busy(seed: int, *, finite: bool) -> tuple[Question, Any, list[Any]]:
    """A random question, one person, and many constraints."""
    question, points = random_problem(seed, finite=finite)
    rng = np.random.default_rng([seed, 77])
    constraints = [_constraint(rng, f) for f in question.schema for _ in range(int(rng.choice([0, 1, 1, 2])))]
    if finite and rng.random() < 0.3:
        constraints.append(MaxChanges(int(rng.integers(0, 3))))
    return question, question.schema.row(points[0]), list(dict.fromkeys(constraints))


def runner(question: Question, row: Any, method: Any) -> Any:
    explainer = Explainer(question.model)

    def ask(constraints: Any) -> Any:
        return explainer.using(method, reasons=False).explain(row, target=question.target, distance=question.distance, constraints=constraints)  # fmt: skip

    return ask


def check_reasons(seed: int, question: Question, row: Any, constraints: list[Any], method: Any, judge: Any) -> str:
    """The kind of reason that was found; every claim in it is asked again of the judge."""
    answer = (
        Explainer(question.model)
        .using(method)
        .explain(row, target=question.target, distance=question.distance, constraints=constraints)
    )
    if not isinstance(answer, NoneExists):
        return "recourse"
    reasons, ask = answer.reasons, runner(question, row, judge)
    assert reasons is not None
    if reasons.note:
        assert "of the margin, where rounding in float64 may decide either way" in reasons.note, (
            f"{seed}: {reasons.note}"
        )  # no method can tell
        return "open"
    named = {c.describe(): c for c in constraints}
    blame = [named[words] for words in reasons.blame]
    assert reasons.minimal
    assert isinstance(ask(blame), NoneExists), seed
    if not blame:
        assert not reasons.relaxations
        return "never"
    for c in blame:
        assert ask([other for other in blame if other is not c]).counterfactual is not None, (seed, c)
    sizes = {len(r.dropped) for r in reasons.relaxations}
    assert len(sizes) == 1, seed
    assert [r.distance for r in reasons.relaxations] == sorted(r.distance for r in reasons.relaxations)
    for relaxation in reasons.relaxations:
        kept = [c for c in constraints if c.describe() not in relaxation.dropped]
        again = ask(kept)
        assert relaxation.proven == isinstance(again, Nearest) or not judge_is_exact(judge)
        assert relaxation.lower <= again.upper + 1e-6
        assert again.upper == pytest.approx(relaxation.distance, abs=1e-6), (seed, relaxation)
        for dropped in relaxation.dropped:  # none of them alone is too many
            assert isinstance(ask([*kept, named[dropped]]), NoneExists), (seed, relaxation)
    size = sizes.pop()
    if judge_is_exact(judge) and len(constraints) <= MOST_SUBSETS:
        every = [{c.describe() for c in some} for k in range(1, min(size, 2) + 1)
                 for some in combinations(constraints, k)
                 if not isinstance(ask([c for c in constraints if c not in some]), NoneExists)]  # fmt: skip
        told = [set(r.dropped) for r in reasons.relaxations]
        assert size > 2 or sorted(map(sorted, every)) == sorted(map(sorted, told)), seed
        assert size <= 2 or not every, seed
    return {1: "one", 2: "pair"}.get(size, "more")


def judge_is_exact(judge: Any) -> bool:
    return isinstance(judge, Enumerate)


@pytest.mark.long
def test_reasons_against_the_enumerator() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(SEEDS):
        question, row, constraints = busy(seed, finite=True)
        if not any(isinstance(feature, Real) for feature in question.schema):
            kinds[check_reasons(seed, question, row, constraints, None, Enumerate())] += 1
    assert min(kinds[kind] for kind in ("recourse", "never", "one", "pair", "more")) >= 3, kinds


@pytest.mark.long
def test_reasons_of_the_search_against_the_mip() -> None:
    kinds: Counter[str] = Counter()
    judge = MipObj(backend="highs")
    for seed in range(MIXED):
        question, row, constraints = busy(seed, finite=False)
        kinds[check_reasons(seed, question, row, constraints, None, judge)] += 1
    assert kinds["one"] >= 3 and kinds["recourse"] >= 3, kinds


@pytest.mark.long
def test_reasons_with_rules_in_words() -> None:
    kinds: Counter[str] = Counter()
    rng = np.random.default_rng(0)
    for trial in range(40):
        layers = [(rng.normal(size=(6, len(SCHEMA.columns))), rng.normal(size=6)), (rng.normal(size=(1, 6)), [0.0])]
        model = network_model(Network.of(layers), SCHEMA)
        point = SCHEMA.sample(1, rng)[0]
        resolved = 1 - int(model.decide(model.scores(point[None, :]))[0])
        texts = [sentence(rng) for _ in range(int(rng.integers(2, 7)))]
        texts = [text for text in texts if "steps of 3" not in text]  # two kinds of steps at once are refused
        constraints = list({c.describe(): c for c in (read_constraint(text, SCHEMA) for text in texts)}.values())
        question = Question(model=model, target=ClassTarget(resolved), constraints=constraints)
        kinds[check_reasons(trial, question, SCHEMA.row(point), constraints, None, Enumerate())] += 1
    assert kinds["one"] >= 5 and kinds["pair"] >= 1 and kinds["recourse"] >= 3, kinds


def test_a_relaxation_is_the_nearest_row_without_the_constraint() -> None:
    """The same by hand, in the user's own words."""
    from ifonly import Fixed, Integer, Range, Schema

    schema = Schema([Integer("age", 18, 80), Integer("income", 0, 100), Integer("debt", 0, 50)])
    network = Network.of([([[0.0, 1.0, -1.0]], [-40.5])])  # approved iff income - debt >= 41
    explainer = Explainer(network, schema=schema, classes=["denied", "approved"])
    row = {"age": 30, "income": 20, "debt": 10}
    answer = explainer.explain(row, constraints=[Fixed("age"), Range("income", upper=40), Fixed("debt")])
    assert isinstance(answer, NoneExists)
    assert answer.reasons is not None
    assert answer.reasons.blame == ("income <= 40",)
    (only,) = answer.reasons.relaxations
    assert only.dropped == ("income <= 40",)
    assert only.distance == pytest.approx(31 / 100 / 3)
    assert str(answer) == (
        "No allowed change turns the decision into approved: income <= 40 rules it out (proven). Possible if income may be "
        "above 40: then distance 0.103333 (income: 20 -> 51)."
    )
    both = explainer.explain(row, constraints=["income <= 45", "debt is fixed", "age is fixed"])
    assert isinstance(both, NoneExists)
    assert both.reasons is not None
    assert both.reasons.blame == ("income <= 45", "debt is fixed")
    assert [r.words for r in both.reasons.relaxations] == ["income may be above 45", "debt may change"]
    assert "income <= 45 and debt is fixed together rule it out (proven). Possible if" in str(both)
    assert str(both).endswith(", and in 1 other way.")
    assert isinstance(explainer.explain(row), Nearest)
