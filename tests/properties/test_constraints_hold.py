"""No constraint is ever ignored: 500 people per kind, and every answer judged by a definition written here.

A kind counts only if it bites: asked freely, some of the same people get an answer that breaks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ifonly import Binary, Categorical, Explainer, Integer, Nearest, Network, NoneExists, Ordinal, Real, Schema
from ifonly.model import network_model

PEOPLE = 500
LEVELS = ["HS", "Bachelors", "Masters", "PhD"]
SCHEMA = Schema(
    [
        Integer("Age", 18, 65),
        Integer("Years", 0, 40, 2),
        Real("Income", 0, 100),
        Real("Bill", 0, 100),
        Categorical("Job", ["none", "clerk", "nurse"]),
        Ordinal("Education", LEVELS),
        Binary("Owner"),
    ]
)
Row = dict[str, Any]


def changed(old: Row, new: Row) -> set[str]:
    return {name for name in old if old[name] != new[name]}


def level(row: Row) -> int:
    return LEVELS.index(row["Education"])


KINDS: list[tuple[str, Callable[[Row, Row], bool]]] = [
    ("Income is fixed", lambda old, new: new["Income"] == old["Income"]),
    ("Age only goes up", lambda old, new: new["Age"] >= old["Age"]),
    ("Education only goes down", lambda old, new: level(new) <= level(old)),
    ("Income in [20, 45.5]", lambda old, new: 20 <= new["Income"] <= 45.5),
    ("Job in (clerk, nurse)", lambda old, new: new["Job"] != "none"),
    ("Age changes by at most 3", lambda old, new: abs(new["Age"] - old["Age"]) <= 3),
    ("Income changes by at most 10 %", lambda old, new: abs(new["Income"] - old["Income"]) <= 0.1 * old["Income"] + 1e-12),
    ("Education changes by at most 1", lambda old, new: abs(level(new) - level(old)) <= 1),
    ("Years changes in steps of 6", lambda old, new: (new["Years"] - old["Years"]) % 6 == 0),
    ("Income changes in steps of 2.5", lambda old, new: abs((new["Income"] - old["Income"]) / 2.5 % 1 - 0.5) > 0.4999999),
    ("at most 1 change", lambda old, new: len(changed(old, new)) <= 1),
    ("Income changes only with Years", lambda old, new: "Income" not in changed(old, new) or "Years" in changed(old, new)),
    ("Age >= 18 + Years", lambda old, new: new["Age"] >= 18 + new["Years"]),
    ("Income >= 0.5 * Bill + 3", lambda old, new: new["Income"] >= 0.5 * new["Bill"] + 3),
    ("if Education >= Bachelors then Age >= 30", lambda old, new: level(new) < 1 or new["Age"] >= 30),
    ("not (Job = none and Income > 10)", lambda old, new: new["Job"] != "none" or new["Income"] <= 10),
    ("[Job = none] + [Education = HS] + [Owner] = 1",
     lambda old, new: (new["Job"] == "none") + (new["Education"] == "HS") + new["Owner"] == 1),
    ("Age not in (40, 41, 42) or Income >= 50", lambda old, new: not 40 <= new["Age"] <= 42 or new["Income"] >= 50),
]  # fmt: skip


@pytest.fixture(scope="module")
def asked() -> tuple[Explainer, list[Row], list[Row | None]]:
    """A network that looks at everything, people on its wrong side, and their answers when nothing is forbidden."""
    rng = np.random.default_rng(30)
    spread = np.array([0.03, 0.04, 0.02, 0.02, *[1.0] * 8])
    layers = [
        (rng.normal(size=(5, 12)) * spread, rng.normal(size=5)),
        (rng.normal(size=(5, 5)), rng.normal(size=5)),
        (rng.normal(size=(1, 5)), np.zeros(1)),
    ]
    network = Network.of(layers)
    points = SCHEMA.sample(4 * PEOPLE, rng)
    scores = network_model(network, SCHEMA, classes=("no", "yes")).scores(points)[:, 0]
    layers[-1] = (layers[-1][0], np.array([-np.quantile(scores, 0.7)]))
    model = network_model(Network.of(layers), SCHEMA, classes=("no", "yes"))
    denied = points[model.decide(model.scores(points)) == 0][:PEOPLE]
    rows = [SCHEMA.row(point) for point in denied]
    explainer = Explainer(model)
    return explainer, rows, [answer.counterfactual for answer in explainer.explain_many(rows)]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(("text", "judge"), KINDS, ids=[text for text, _ in KINDS])
def test_it_holds(text: str, judge: Callable[[Row, Row], bool], asked: Any) -> None:
    explainer, rows, freely = asked
    broken = sum(new is not None and not judge(old, new) for old, new in zip(rows, freely, strict=True))
    assert len(rows) == PEOPLE and broken >= 10, broken
    answers = explainer.explain_many(rows, constraints=[text])
    nearer = 0
    for old, free, answer in zip(rows, freely, answers, strict=True):
        assert isinstance(answer, Nearest | NoneExists), answer
        if answer.counterfactual is not None:
            assert judge(old, answer.counterfactual), (old, answer.counterfactual)
            assert explainer.model.decide(explainer.model.scores(SCHEMA.read(answer.counterfactual)[None]))[0] == 1
        if free is not None and judge(old, free):  # what was allowed anyway stays the answer
            nearer += 1
            assert answer.counterfactual is not None
    assert nearer >= 10, nearer
