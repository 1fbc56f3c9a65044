"""Targets, constraints and questions: what they mean, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Allowed,
    Binary,
    Categorical,
    ClassTarget,
    Distance,
    Fixed,
    Integer,
    Limits,
    Network,
    OnlyDown,
    OnlyUp,
    Range,
    Real,
    Schema,
    ScoreTarget,
)
from ifonly.errors import IfonlyError
from ifonly.methods import Tolerances
from ifonly.model import network_model
from ifonly.problem import Question, lower

SCHEMA = Schema(
    [Integer("age", 20, 70, 5), Real("income", 0, 10), Categorical("job", ["a", "b", "c"]), Binary("owner")]
)
TWO = network_model(Network.of([(np.ones((1, 6)), [-3.0])]), SCHEMA, classes=("no", "yes"))
THREE = network_model(Network.of([(np.arange(18.0).reshape(3, 6), [0.0, 1.0, 2.0])]), SCHEMA, classes=("x", "y", "z"))


def test_conditions_of_a_class() -> None:
    c, d = ClassTarget("yes").conditions(TWO)
    assert (c.tolist(), d.tolist()) == ([[1.0]], [0.0])
    assert ClassTarget("no").conditions(TWO)[0].tolist() == [[-1.0]]
    assert ClassTarget("y").conditions(THREE)[0].tolist() == [[-1.0, 1.0, 0.0], [0.0, 1.0, -1.0]]


def test_the_decision_itself_must_be_as_asked() -> None:
    target = ClassTarget("yes", margin=0.0)
    assert target.met(TWO, np.array([[-1.0], [0.0], [1e-300]])).tolist() == [False, False, True]
    assert ClassTarget("no", margin=0.0).met(TWO, np.array([[0.0], [-1.0]])).tolist() == [True, True]
    tied = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert ClassTarget("y", margin=0.0).met(THREE, tied).tolist() == [False, True]  # on a tie the first class wins
    assert ClassTarget("y", margin=1.5).met(THREE, tied).tolist() == [False, False]


def test_conditions_of_a_score() -> None:
    c, d = ScoreTarget(at_least=1, at_most=2, output=2).conditions(THREE)
    assert c.tolist() == [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]
    assert d.tolist() == [1.0, -2.0]
    met = ScoreTarget(at_least=1, at_most=2, margin=0.25).met(TWO, np.array([[1.0], [1.25], [1.75], [1.8]]))
    assert met.tolist() == [False, True, True, False]
    assert ScoreTarget(at_least=1, at_most=2).describe() == "a score in [1, 2]"
    assert ScoreTarget(at_least=0.1).describe() == "a score of at least 0.1"
    assert ScoreTarget(at_most=0).describe() == "a score of at most 0"


def test_labels_may_come_from_a_command_line() -> None:
    model = network_model(TWO.network, SCHEMA)
    assert ClassTarget("1").conditions(model)[0].tolist() == [[1.0]]
    assert ClassTarget(np.int64(1)).to_dict() == {"class": 1, "margin": 1e-6}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ClassTarget("yes", margin=-1), "margin must be a number >= 0; it is -1"),
        (lambda: ClassTarget("yes", margin=math.inf), "margin must be a number >= 0; it is inf"),
        (lambda: ClassTarget("maybe").check(TWO), "no class 'maybe'; its classes are 'no', 'yes'"),
        (lambda: ClassTarget(0).check(network_model(TWO.network, SCHEMA, regression=True)), "regression.*ScoreTarget"),
        (lambda: ScoreTarget(), "needs at_least, at_most, or both"),
        (lambda: ScoreTarget(at_least="3"), "'at_least' is '3'"),
        (lambda: ScoreTarget(at_most=math.nan), "'at_most' is nan"),
        (lambda: ScoreTarget(at_least=3, at_most=2), "\\[3, 2\\] is empty; swap"),
        (lambda: ScoreTarget(at_least=1, at_most=1), "\\[1, 1\\] is narrower than twice the margin of 1e-06"),
        (lambda: ScoreTarget(at_least=1, output=1).check(TWO), "1 output.*no output 1"),
        (lambda: ScoreTarget(at_least=1, output=0.0).check(TWO), "no output 0.0"),
        (lambda: ScoreTarget(at_least=1, output=False), "no output False"),
        (lambda: Range("age", 5, 2), "\\[5, 2\\] of 'age' is empty; swap"),
        (lambda: Range("age", "5"), "range of 'age' must be given by numbers; got '5'"),
        (lambda: Range("job", 1, 2).check(SCHEMA), "'job' has options, not numbers: use Allowed"),
        (lambda: Allowed("age", [25]).check(SCHEMA), "'age' is a number: use Range"),
        (lambda: Allowed("job", "a"), "allowed values of 'job' must be a list; got 'a'"),
        (lambda: Allowed("job", []).check(SCHEMA), "'job' is empty"),
        (lambda: Allowed("job", ["a", "q"]).check(SCHEMA), "'job' must be one of: a, b, c; got 'q'"),
        (lambda: OnlyUp("job").check(SCHEMA), "'job' has categories without an order"),
        (lambda: OnlyDown("job").check(SCHEMA), "'job' has categories without an order"),
        (lambda: Fixed("jub").check(SCHEMA), "'jub'; did you mean 'job'"),
        (lambda: Limits(seconds=0), "limit 'seconds' must be a positive number; it is 0"),
        (lambda: Limits(nodes="many"), "limit 'nodes'.*'many'"),
        (lambda: Tolerances(gap=0), "Tolerance 'gap'.*it is 0"),
        (lambda: Question(model=TWO, target="yes"), "must be a ClassTarget or a ScoreTarget; got 'yes'"),
        (lambda: Question(model=TWO, target=ClassTarget("yes"), distance="l1"), "must be a Distance; got 'l1'"),
        (lambda: Question(model=TWO, target=ClassTarget("yes"), constraints=["age"]), "'age' is not a constraint"),
    ],
)
def test_what_is_no_question(make: Any, words: str) -> None:
    with pytest.raises(IfonlyError, match=words) as caught:
        make()
    assert isinstance(caught.value, ValueError)


def test_numpy_numbers_are_numbers() -> None:
    assert Range("age", np.int64(25), np.float32(40)) == Range("age", 25, 40)
    assert Allowed("job", np.array(["a", "b"])) == Allowed("job", ["a", "b"])
    assert ScoreTarget(at_least=np.int64(1), output=np.int64(0)) == ScoreTarget(at_least=1.0)


@pytest.mark.parametrize(
    ("rule", "age", "low", "high"),
    [
        (Range("age", 21, 44), 25, 25, 40),
        (Range("age", 5e-324, 1e300), 25, 20, 70),
        (Range("age", 21, 22), 25, 25, 20),  # empty: nothing of the grid lies there
        (Range("age", 100, 200), 25, 100, 70),
        (OnlyUp("age"), 25, 25, 70),
        (OnlyDown("age"), 25, 20, 25),
        (Fixed("age"), 25, 25, 25),
    ],
)
def test_domains_of_a_grid(rule: Any, age: float, low: float, high: float) -> None:
    lowered = lower(Question(model=TWO, target=ClassTarget("yes"), constraints=[rule]))
    people = lowered.domains(np.array([[age, 1.0, 0.0, 0.0]]))
    assert (people.lower[0, 0], people.upper[0, 0]) == (low, high)
    assert people.allowed[0, 0] == (low <= high)


def test_a_question_as_plain_data() -> None:
    question = Question(
        model=TWO, target=ClassTarget("yes"), distance=Distance("l2", {"age": 2}), constraints=[Range("age", 30, 40.5)]
    )
    assert question.describe() == {
        "distance": {"norm": "l2", "weights": {"age": 2.0}, "scales": {}},
        "target": {"class": "yes", "margin": 1e-6},
        "constraints": ["age in [30, 40.5]"],
        "model": TWO.network.fingerprint,
    }
    assert question.error.shape == (1,)
    assert question.more_careful(4.0).error == pytest.approx(4 * question.error)


def test_the_first_broken_constraint_is_named() -> None:
    rules = [Fixed("owner"), OnlyUp("age"), Allowed("job", ["a", "b"])]
    question = Question(model=TWO, target=ClassTarget("yes"), constraints=rules)
    before = np.array([25.0, 1.0, 0.0, 0.0])
    assert question.allows(before, np.array([30.0, 9.0, 1.0, 0.0])) is None
    assert question.allows(before, np.array([20.0, 9.0, 2.0, 0.0])) == OnlyUp("age")
