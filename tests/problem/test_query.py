"""The query as one value: its plain data is read back equal, and every wrong entry gets a sentence that names it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from ifonly.errors import QuestionError
from ifonly.problem import (
    Actionable,
    Allowed,
    ClassTarget,
    Distance,
    Fixed,
    MaxChanges,
    MaxDelta,
    OneOfTarget,
    OnlyDown,
    OnlyUp,
    OnlyWith,
    OtherTarget,
    ProbabilityTarget,
    Range,
    Rule,
    ScoreTarget,
    Steps,
    TopTarget,
    Unconstrained,
)
from ifonly.problem.query import Query
from ifonly.problem.target import AheadTarget

NAMES = ["Age", "Hours per week", "Größe", "a'b", "x\\y"]
LABELS: list[Any] = ["approve", "deny", 0, 1, 2.5, True, "1"]


def number(rng: Random) -> float:
    return rng.choice([0.1, 1 / 3, 57.0, 1e9, 2.0**-40, 5.27, rng.random() * 100])


def a_target(rng: Random) -> Any:
    margin, label = rng.choice([0.0, 1e-6, number(rng)]), rng.choice(LABELS)
    return rng.choice(
        [
            lambda: None,
            lambda: ClassTarget(label, margin),
            lambda: ScoreTarget(at_least=number(rng), margin=margin),
            lambda: ScoreTarget(at_most=-number(rng), output=rng.randrange(3), margin=margin),
            lambda: ScoreTarget(at_least=-1.0, at_most=1e10, margin=margin),
            lambda: ProbabilityTarget(label, at_least=rng.choice([0.5, 0.7, 0.999]), margin=margin),
            lambda: OneOfTarget(tuple(rng.sample(LABELS, 2)), margin),
            lambda: OtherTarget(margin),
            lambda: TopTarget(label, rng.randrange(1, 4), margin),
            lambda: AheadTarget(label, ("other", "third"), margin),
        ]
    )()


def a_distance(rng: Random) -> Distance:
    def table() -> dict[str, float]:
        return {name: number(rng) for name in rng.sample(NAMES, rng.randrange(3))}

    moves = {"Job": {("a", "b"): number(rng), (None, 1): number(rng)}} if rng.random() < 0.3 else {}
    norm = rng.choice(["l0", "l1", "l2", "linf", {"l0": 0.2, "l1": 0.8}])
    up, down = (table(), table()) if rng.random() < 0.3 else ({}, {})
    return Distance(norm, weights=table(), scales=table(), up=up, down=down, transitions=moves)


def a_constraint(rng: Random) -> Any:
    name, other = rng.sample(NAMES, 2)
    return rng.choice(
        [
            lambda: Fixed(name),
            lambda: OnlyUp(name),
            lambda: OnlyDown(name),
            lambda: Unconstrained(name),
            lambda: Range(name, number(rng)),
            lambda: Range(name, upper=number(rng)),
            lambda: Range(name, -number(rng), number(rng)),
            lambda: Range(name),
            lambda: Allowed(name, rng.sample(LABELS, 3)),
            lambda: MaxDelta(name, by=number(rng)),
            lambda: MaxDelta(name, share=number(rng)),
            lambda: Steps(name, number(rng)),
            lambda: MaxChanges(rng.randrange(5)),
            lambda: OnlyWith(name, other),
            lambda: Actionable((name, other)),
            lambda: Rule("if Age >= 18 then Job != none"),
            lambda: "Age is fixed",
        ]
    )()


def a_query(rng: Random) -> Query:
    return Query(
        target=a_target(rng),
        distance=a_distance(rng),
        constraints=[a_constraint(rng) for _ in range(rng.randrange(5))],
        fewest_first=rng.random() < 0.5,
    )


def test_a_thousand_queries_are_read_back_equal() -> None:
    for seed in range(1000):
        query = a_query(Random(seed))
        text = query.to_json()
        again = Query.from_dict(json.loads(text))
        assert again == query, text
        assert again.to_json() == text


def test_the_short_forms() -> None:
    assert Query.from_dict({}) == Query()
    short = Query.from_dict({"target": "approve", "distance": "l2", "constraints": ["Age is fixed"]})
    assert short == Query(target="approve", distance="l2", constraints=["Age is fixed"])
    assert short.target == ClassTarget("approve")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "A query must be an object"),
        ({"tarjet": "approve"}, "A query has no entry 'tarjet'; its entries are target, distance"),
        ({"target": ["a", "b"]}, '"one_of"'),
        ({"target": {}}, "A target has one of the entries"),
        ({"target": {"class": "a", "margine": 1}}, "no entry 'margine'"),
        ({"target": {"class": "a", "margin": "wide"}}, "margin must be a number >= 0; it is 'wide'"),
        ({"target": {"probability_of": "a"}}, "needs the entry 'at_least'"),
        ({"target": {"one_of": "ab"}}, "must be a list of classes"),
        ({"target": {"other": False}}, "says true"),
        ({"target": {"class": "a", "among_highest": 0}}, "0"),
        ({"target": {"at_least": "high"}}, "must be a finite number"),
        ({"distance": 3}, "The distance must be an object"),
        ({"distance": {}}, "needs the entry 'norm'"),
        ({"distance": {"norm": "l3"}}, "no distance 'l3'"),
        ({"distance": {"norm": "l1", "weights": {"Age": -1}}}, "weight of 'Age' must be a positive number"),
        ({"distance": {"norm": "l1", "transitions": {"Job": [["a", "b"]]}}}, "lists of [before, after, change]"),
        ({"constraints": "Age is fixed"}, "must be a list"),
        ({"constraints": [3]}, "A constraint is a sentence"),
        ({"constraints": [{"kind": "fixd", "feature": "Age"}]}, "no kind of constraint 'fixd'"),
        ({"constraints": [{"kind": "fixed"}]}, "needs the entry 'feature'"),
        ({"constraints": [{"kind": "fixed", "feature": ["Age", "Sex"]}]}, "must be text"),
        ({"constraints": [{"kind": "fixed", "feature": "Age", "to": 3}]}, "no entry 'to'"),
        ({"constraints": [{"kind": "range", "feature": "Age", "lower": "x"}]}, "must be given by numbers"),
        ({"constraints": [{"kind": "max_changes", "most": -1}]}, "whole number >= 0"),
        ({"fewest_first": 1}, "'fewest_first' is True or False"),
    ],
)
def test_wrong_entries_are_named(data: Any, said: str) -> None:
    with pytest.raises(QuestionError) as error:
        Query.from_dict(data)
    assert said in str(error.value)
