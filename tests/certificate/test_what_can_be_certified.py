"""The table "What can be certified" of docs/certificate.md: each row is tried, and VALID or refused as the table says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ifonly
from ifonly import (
    Accepted,
    AcceptedBySome,
    Actionable,
    Allowed,
    Binary,
    Categorical,
    CausalModel,
    Derived,
    Distance,
    Explainer,
    Fixed,
    Imputable,
    Integer,
    MaxChanges,
    MaxDelta,
    Network,
    OneOfTarget,
    OnlyDown,
    OnlyUp,
    OnlyWith,
    Ordinal,
    OtherTarget,
    ProbabilityTarget,
    Query,
    Range,
    Real,
    RobustToTrees,
    RobustToWeights,
    Rule,
    Schema,
    Scorecard,
    ScoreTarget,
    Steps,
    TopTarget,
    Unconstrained,
    certify,
    check,
)
from ifonly.causes import LinearEquation, ModelEquation, TableEquation
from ifonly.certifying import certify_diverse, certify_filled, certify_none, certify_reason, certify_recourse
from ifonly.errors import IfonlyError
from ifonly.methods import MipObj
from ifonly.model import network_model
from ifonly.model.smooth import SmoothNetwork
from ifonly.model.smooth.activations import Activation
from ifonly.plausibility import LocalOutlierFactor, Mahalanobis, Near, pairs, reconstructed, support

PAGE = Path(__file__).parents[2] / "docs" / "certificate.md"
SCHEMA = Schema([
    Integer("Age", 18, 40),
    Real("Income", 0, 100),
    Real("Debt", 0, 50, step=0.5),
    Ordinal("Rating", ["low", "mid", "high"], encoding="dummy"),
    Categorical("Job", ["clerk", "nurse", "cook"]),
    Binary("Owner"),
])  # fmt: skip
PERSON = {"Age": 25, "Income": 20.0, "Debt": 10.0, "Rating": "low", "Job": "clerk", "Owner": False}
LAYERS = [
    ([[0.02, 0.05, -0.04, 0.3, 0.2, 0.0, 0.4, -0.1, 0.5], [-0.1, 0.02, 0.01, 0.0, 0.1, 0.3, 0.0, 0.0, -0.2]], [-2.0, 0.5]),
    ([[1.0, -0.6]], [-0.9]),
]  # fmt: skip


@cache
def rows() -> Any:
    return SCHEMA.sample(150, np.random.default_rng(0))


def table() -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(SCHEMA.names, zip(*(SCHEMA.row(p).values() for p in rows()), strict=True), strict=True)}  # fmt: skip


@cache
def network(classes: int = 2) -> Any:
    layers = [(np.array(w), np.array(b)) for w, b in LAYERS]
    if classes > 2:
        layers[1] = (np.array([[1.0, -0.6], [0.2, 0.4], [-0.5, 0.1]]), np.array([-0.9, 0.3, 0.4]))
    names = ("no", "yes") if classes == 2 else ("no", "maybe", "yes")
    return network_model(Network.of(layers), SCHEMA, classes=names)


@cache
def forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    labels = np.where(network().scores(rows())[:, 0] > 0.3, "yes", "no")
    fitted = RandomForestClassifier(7, max_depth=3, random_state=0).fit(SCHEMA.encode(rows()), labels)
    return ifonly.import_model(fitted, SCHEMA)


def gaussians() -> list[Any]:
    from sklearn.mixture import GaussianMixture
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    encoded, labels = SCHEMA.encode(rows()), np.where(network().scores(rows())[:, 0] > 0.3, "yes", "no")
    fitted = [GaussianNB(var_smoothing=0.1).fit(encoded, labels), SVC(gamma=1e-3).fit(encoded[:40], labels[:40])]
    mixture = GaussianMixture(1, reg_covar=0.1, random_state=0).fit(encoded)
    usual = Accepted(by=mixture, target=ScoreTarget(at_least=float(np.quantile(mixture.score_samples(encoded), 0.02))))
    return [*(asked(model=ifonly.import_model(one, SCHEMA)) for one in fitted), asked(usual)]


def smooth(name: str) -> Any:
    network = Network.of([(np.array(w), np.array(b)) for w, b in LAYERS])
    return network_model(SmoothNetwork(network, [Activation(name)]), SCHEMA, classes=("no", "yes"))  # type: ignore[arg-type]


def powers() -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PowerTransformer

    labels = np.where(network().scores(rows())[:, 0] > 0.3, "yes", "no")
    bent = ColumnTransformer([("powers", PowerTransformer(), [0, 1])], remainder="passthrough")
    fitted = make_pipeline(bent, LogisticRegression(max_iter=10_000)).fit(SCHEMA.encode(rows()), labels)
    return asked(model=ifonly.import_model(fitted, SCHEMA))


def asked(*constraints: Any, model: Any = None, **query: Any) -> Any:
    explainer = Explainer(model or network())
    return certify(explainer, PERSON, Query(constraints=constraints, **{"target": "yes", **query}))


def missing_case(*constraints: Any, make: Any = certify) -> Any:
    import pandas as pd
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    people = pd.DataFrame({"Income": np.arange(60.0), "Debt": np.arange(60.0)[::-1] / 2.0})
    fitted = make_pipeline(SimpleImputer(), LogisticRegression()).fit(
        people, np.where(people["Income"] > 30, "yes", "no")
    )
    schema = Schema([Real("Income", 0, 60), Real("Debt", 0, 30, missing=True)])
    return make(Explainer(fitted, schema=schema), {"Income": 10.0, "Debt": None}, Query(constraints=constraints))


def recourse(equation: Any, **query: Any) -> Any:
    causes = CausalModel(SCHEMA, {"Income": equation})
    return certify_recourse(Explainer(network()), PERSON, causes, target="yes", **query)


def mixed() -> Any:
    from sklearn.ensemble import VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    schema = Schema([replace(f, step=1) if isinstance(f, Real) else f for f in SCHEMA.features])
    labels = np.where(network().scores(rows())[:, 0] > 0.3, "yes", "no")
    members = [
        ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
        ("line", LogisticRegression(max_iter=10_000)),
    ]
    fitted = VotingClassifier(members, voting="soft").fit(SCHEMA.encode(rows()), labels)
    return asked(model=ifonly.import_model(fitted, schema))


def regressor(*, hidden: bool) -> Any:
    layers = [([[0.5], [-0.5]], [0.0, 12.0]), ([[1.0, 0.4]], [0.0])] if hidden else [([[0.5]], [0.0])]
    return ModelEquation(["Age"], Network.of(layers))


def tree() -> Any:
    from sklearn.tree import DecisionTreeRegressor

    ages = np.arange(18.0, 41.0)[:, None]
    return ModelEquation(["Age"], DecisionTreeRegressor(max_depth=2, random_state=0).fit(ages, np.sqrt(ages[:, 0])))


def other(**more: Any) -> Any:
    lines = Network.of([(np.array([[0.0, 1.0, -1.0, 0, 0, 0, 0, 0, 0]]), np.array([-12.0]))])
    return Accepted(by=network_model(lines, SCHEMA, classes=("bad", "fine")), target="fine", name="check", **more)


def scorecard() -> Any:
    points = {"cutoff": 20, "base": 0, "classes": ["no", "yes"], "features": {
        "Age": [{"below": 30, "points": 5}, {"points": 12}], "Owner": [{"is": True, "points": 10}, {"points": 0}],
    }}  # fmt: skip
    return ifonly.import_model(Scorecard.from_dict(points), SCHEMA)


TRIED: dict[str, Callable[[], Any]] = {
    "what may change: fixed, only up, only down": lambda: asked(Fixed("Owner"), OnlyUp("Age"), OnlyDown("Debt")),
    "where a feature ends: ranges, options": lambda: asked(Range("Income", 0, 90), Allowed("Job", ["clerk", "cook"])),
    "changes by at most; in steps": lambda: asked(MaxDelta("Age", by=9), MaxDelta("Income", share=2.0), Steps("Income", 2)),
    "only these may change; free": lambda: asked(Actionable(["Age", "Income", "Job"]), Unconstrained("Age")),
    "at most k changes; partners": lambda: asked(MaxChanges(3), OnlyWith("Job", "Owner")),
    "rules between features": lambda: asked(Rule("if Age >= 30 then Owner or Income >= 30"), "Income >= 2 * Debt"),
    "derived features": lambda: asked(Derived("Owner", "Age >= 30")),
    "accepted by other models; by some of them": lambda: (
        asked(other()),
        asked(AcceptedBySome(1, of=[other(), Accepted(by=forest(), target="yes", name="forest")])),
    ),
    "options, ranges and pairs that occur in data": lambda: asked(*support(SCHEMA, table()), *pairs(SCHEMA, table())),
    "an autoencoder's error": lambda: [
        asked(reconstructed(
            network_model(Network.of([(0.9 * np.eye(9), np.zeros(9))] * depth), SCHEMA, regression=True), SCHEMA,
            at_most=20.0, norm=norm,
        ))
        for depth in (1, 2, 3) for norm in ("l1", "linf")
    ],
    "near a row of data": lambda: asked(Near.of(SCHEMA, table(), 0.2)),
    "a local outlier factor": lambda: asked(LocalOutlierFactor.of(SCHEMA, table())),
    "correlated changes within a cost": lambda: asked(Mahalanobis.of(SCHEMA, table()).within(20.0)),
    "robust to weights": lambda: asked(RobustToWeights(0.0001)),
    "robust to lost trees": lambda: asked(
        RobustToTrees(1, of=Accepted(by=forest(), target="yes")), model=forest(), target="yes"
    ),
    "norms: l0, l1, l2, linf, mixtures": lambda: [
        asked(distance=norm) for norm in ("l0", "l1", "l2", "linf", {"l0": 0.2, "l1": 0.8})
    ],
    "weights, scales, costs by direction and transition": lambda: asked(distance=Distance(
        "l1", weights={"Age": 2.0}, scales={"Income": 50.0}, up={"Age": 3.0}, transitions={"Job": {("clerk", "cook"): 0.3}}
    )),
    "a class; a score": lambda: (asked(), asked(target=ScoreTarget(at_least=0.5, at_most=2.0))),
    "a probability": lambda: (
        asked(target=ProbabilityTarget("yes", at_least=0.6), model=network().as_log_odds()),
        asked(target=ProbabilityTarget("yes", at_least=0.5), model=network(3).as_log_odds()),
    ),
    "one of several classes; any other; among the highest": lambda: [
        asked(target=target, model=network(3))
        for target in (OneOfTarget(["yes", "maybe"]), OtherTarget(), TopTarget("yes", 2))
    ],
    "networks of ReLUs, linear models, scorecards": lambda: asked(model=scorecard()),
    "trees, forests, boosted trees": lambda: asked(model=forest()),
    "networks with tanh or sigmoid": lambda: (asked(model=smooth("tanh")), asked(model=smooth("sigmoid"))),
    "networks with other smooth activations, powers, logarithms": lambda: [
        *(asked(model=smooth(name)) for name in ("softplus", "gelu", "gelu_tanh", "silu", "elu")), powers(),
    ],
    "Gaussian classifiers, Gaussian mixtures, machines with RBF kernels": gaussians,
    "sums of trees and networks": mixed,
    "the nearest row; that there is none": lambda: (asked(), asked("only Owner may change")),
    "why there is none": lambda: certify_none(
        Explainer(network()), PERSON, Query(target="yes", constraints=["only Owner, Age may change", "Age <= 28"])
    ),
    "the fewest changes first": lambda: asked(fewest_first=True),
    "diverse sets": lambda: certify_diverse(
        Explainer(network()), PERSON, ifonly.Diversity(2, differ="features"), Query(target="yes")
    ),
    "sufficient reasons": lambda: certify_reason(Explainer(network()), PERSON),
    "recourse: linear equations, tables, trees, networks of ReLUs": lambda: [
        recourse(equation) for equation in (
            LinearEquation({"Age": 0.7, "Owner": {False: 0, True: 5}}), regressor(hidden=False), tree(),
            regressor(hidden=True),
            TableEquation(["Job"], {"clerk": 1, "nurse": 5, "cook": 2}),
        )
    ],
    "recourse: equations that are smooth networks": lambda: recourse(
        ModelEquation(["Age"], SmoothNetwork(Network.of([([[0.1]], [-3.0]), ([[5.0]], [0.0])]), [Activation("tanh")]))
    ),
    "a number that stays missing": missing_case,
    "a missing number that may be filled in": lambda: list(
        missing_case(Imputable("Debt", 0.1), make=certify_filled).values()
    ),
    "an answer of another solver": lambda: certify(Explainer(network()).using(MipObj()), PERSON, target="yes"),
}  # fmt: skip


def stated() -> dict[str, str]:
    """The rows of the table: what, and yes, or why not."""
    text = PAGE.read_text(encoding="utf-8").split("## What can be certified")[1].split("\n## ")[0]
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, flags=re.MULTILINE)
    return {what: answer for what, answer in found if set(what) != {"-"} and what != "what"}


def test_the_table_has_what_is_tried() -> None:
    assert list(stated()) == list(TRIED)


@pytest.mark.parametrize("what", TRIED)
def test_it_is_as_the_table_says(what: str) -> None:
    answer = stated()[what]
    if answer.startswith("no"):
        with pytest.raises(IfonlyError) as error:
            TRIED[what]()
        assert re.search(r"[Cc]ertificate|here it stays missing", str(error.value)), error.value
        return
    made = TRIED[what]()
    for certificate in made if isinstance(made, list | tuple) else [made]:
        expected = "VALID EXCEPT FOR THE SOLVER'S BOUND" if "another solver" in what else "VALID"
        assert check(certificate).verdict == expected
