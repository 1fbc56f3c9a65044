"""A probability of one of three or more classes against every row of a finite schema, judged by the model's own report.

IFONLY_SOFTMAX=200 asks so many questions of each kind; the suite asks a few.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_problems import random_problem

from ifonly import Explainer, Model, Nearest, Network, NoneExists, ProbabilityTarget, import_model
from ifonly.methods import MipObj, Search
from ifonly.model import network_model
from ifonly.problem import Question, Range
from ifonly.schema import Integer, Schema

COUNT = int(os.environ.get("IFONLY_SOFTMAX", "0"))
RoundedInput = tuple[Model, Callable[[np.ndarray], np.ndarray]]


def every_row(question: Question, factual: np.ndarray) -> np.ndarray:
    """All rows; real numbers stay as they are, or are where a constraint wants them."""
    schema = question.schema
    ends = {c.feature: (c.lower, c.upper) for c in question.constraints if isinstance(c, Range)}
    values: list[Any] = []
    for feature, now in zip(schema.features, factual.tolist(), strict=True):
        if isinstance(feature, Integer):
            values.append([feature.lower + k * feature.step for k in range(feature.steps + 1)])
        else:
            values.append(
                range(len(feature.options)) if hasattr(feature, "options") else {now, *ends.get(feature.name, ())}
            )
    return np.array(list(itertools.product(*values)), dtype=np.float64)


def random_network(rng: np.random.Generator, schema: Schema) -> RoundedInput:
    classes, hidden = int(rng.integers(3, 5)), int(rng.integers(1, 7))
    spread = np.maximum(np.abs(schema.encode(schema.sample(50, rng))).max(axis=0), 1.0)
    layers = [
        (rng.normal(size=(hidden, len(spread))) / spread, rng.normal(size=hidden)),
        (rng.normal(size=(classes, hidden)) * rng.choice([1.0, 3.0]), rng.normal(size=classes)),
    ]
    network = Network.of(layers)

    def own(points: np.ndarray) -> np.ndarray:
        (a, b), (c, d) = layers
        logits = np.maximum(schema.encode(points) @ a.T + b, 0.0) @ c.T + d
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    return network_model(network, schema).as_log_odds(), own


def fitted(made: Callable[[int], Any]) -> Callable[[np.random.Generator, Schema], RoundedInput]:
    def given(rng: np.random.Generator, schema: Schema) -> RoundedInput:
        points = schema.sample(120, rng)
        x = schema.encode(points)
        direction = rng.normal(size=(x.shape[1], 3)) / np.maximum(np.abs(x).max(axis=0), 1.0)[:, None]
        labels = (x @ direction + rng.normal(size=3)).argmax(axis=1)
        labels[:3] = [0, 1, 2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = made(int(rng.integers(1000))).fit(x, labels)
        return import_model(estimator, schema), lambda p: np.asarray(estimator.predict_proba(schema.encode(p)))

    return given


def mlp(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((5,), max_iter=40, learning_rate_init=0.03, random_state=seed)


def logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=50)


def xgboost(seed: int) -> Any:
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=4, max_depth=3, random_state=seed, n_jobs=1)


def lightgbm(seed: int) -> Any:
    made = pytest.importorskip("lightgbm").LGBMClassifier
    return made(n_estimators=4, num_leaves=5, min_child_samples=5, random_state=seed, n_jobs=1, verbose=-1)


def boosting(seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=seed)


KINDS: dict[str, tuple[Callable[[np.random.Generator, Schema], RoundedInput], Any, int]] = {
    "network": (random_network, Search(), 40),
    "network by MIP": (random_network, MipObj(), 8),
    "MLPClassifier": (fitted(mlp), Search(), 12),
    "LogisticRegression": (fitted(logistic), Search(), 6),
    "XGBoost": (fitted(xgboost), Search(), 10),
    "LightGBM": (fitted(lightgbm), Search(), 6),
    "GradientBoosting": (fitted(boosting), Search(), 4),
}


def asked(seed: int, kind: str) -> str:
    """How the question of a seed ended; an empty text where rounding would decide the oracle itself."""
    base, points = random_problem(seed, finite=True)
    rng = np.random.default_rng([seed, 31])
    made, method, _ = KINDS[kind]
    model, own = made(rng, base.schema)
    factual = points[0]
    rows = every_row(base, factual)
    k = int(rng.integers(len(model.classes)))
    given = own(rows)[:, k]
    ranked = np.unique(given)
    place = int(rng.integers(1, len(ranked))) if len(ranked) > 1 else 0
    least = float(rng.choice([0.4, 0.5, 0.9, ranked[place], 0.5 * (ranked[place] + ranked[place - 1])]))
    if not 1e-4 < least < 0.9999:  # a probability has no digits left beyond
        return ""
    target = ProbabilityTarget(model.classes[k], at_least=least, margin=float(rng.choice([0.0, 1e-6, 0.1])))
    allowed = base.schema.admits(rows, np.broadcast_to(factual, rows.shape))
    allowed &= [base.allows(factual, row) is None for row in rows]
    with np.errstate(divide="ignore"):  # probabilities that are rounded to 0 or 1
        score_margin = np.log(given) - np.log1p(-given) - math.log(least / (1.0 - least)) - target.margin
    rounding_bound = 1e-9 if model.precision == "float64" else 1e-5
    if (allowed & (np.abs(score_margin) < rounding_bound)).any():
        return ""
    far = np.array([base.distance.between(base.schema, factual, row) for row in rows])
    nearest = far[allowed & (score_margin > 0.0)].min(initial=math.inf)
    explainer = Explainer(model).using(method, reasons=False)
    answer = explainer.explain(
        base.schema.row(factual), target=target, distance=base.distance, constraints=base.constraints
    )
    if answer.already:
        assert own(factual[None, :])[0, k] >= least
        return "already"
    if nearest == math.inf:
        assert isinstance(answer, NoneExists), (seed, answer)
        return "none"
    assert isinstance(answer, Nearest), (seed, answer, answer.note, nearest)
    assert answer.lower <= nearest * (1.0 + 1e-9) + 1e-12, (seed, answer.lower, nearest)
    assert abs(answer.upper - nearest) <= 1e-6 * nearest, (seed, answer.upper, nearest)
    assert own(np.array([base.schema.read(dict(answer.counterfactual or {}))]))[0, k] >= least
    return "nearest"


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("kind", list(KINDS))
def test_agrees_with_every_row(kind: str) -> None:
    ends = [asked(seed, kind) for seed in range(COUNT or KINDS[kind][2])]
    assert "nearest" in ends, ends
    if COUNT:
        print(kind, {end: ends.count(end) for end in set(ends)})
