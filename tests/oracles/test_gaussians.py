"""Gaussian classifiers, Gaussian mixtures and machines with RBF kernels, against every row of finite spaces, which
scikit-learn's own `predict` and `score_samples` judge: alone, and beside a network of ReLUs.

`IFONLY_GAUSSIAN_SEEDS` asks more questions than the suite does.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC, OneClassSVM

from ifonly import (
    Accepted,
    Categorical,
    Distance,
    Explainer,
    Integer,
    Nearest,
    Network,
    NoneExists,
    Ordinal,
    Schema,
    ScoreTarget,
)
from ifonly.methods import Search
from ifonly.model import Model, network_model
from ifonly.model.importers import import_model
from ifonly.model.importers.gaussian_models import import_density

SEEDS = int(os.environ.get("IFONLY_GAUSSIAN_SEEDS", "4"))
PEOPLE = 3
NORMS = ("l1", "l2", "linf", "l0")
METHODS = (Search(table_rows=0), Search(table_rows=0, probing="always"), Search())
Floats = np.ndarray
MAKE: dict[str, Callable[[int], Any]] = {
    **{
        f"mixture {covariance}": lambda k, covariance=covariance: GaussianMixture(
            1 + k % 3, covariance_type=covariance, random_state=k, reg_covar=1e-2
        )
        for covariance in ("full", "tied", "diag", "spherical")
    },
    "one-class": lambda k: OneClassSVM(nu=0.2, gamma=(0.05, "scale")[k % 2]),
    "svc": lambda k: SVC(C=(1.0, 10.0)[k % 2]),
    "nu-svc": lambda k: NuSVC(nu=0.3),
    "quadratic": lambda k: QuadraticDiscriminantAnalysis(reg_param=0.05),
    "naive bayes": lambda k: GaussianNB(),
}
SEVERAL = ("quadratic", "naive bayes")


@dataclass(frozen=True)
class Case:
    """A fitted object, what of it counts as accepted, and a network beside it."""

    schema: Schema
    points: Floats
    fitted: Any
    model: Model
    target: Any
    accepted: Floats
    network: Model
    named: Accepted


def case(kind: str, seed: int) -> Case:
    rng = np.random.default_rng([seed, sorted(MAKE).index(kind)])
    schema = random_schema(rng)
    points = np.array(list(itertools.product(*(range(f.steps + 1) if isinstance(f, Integer) else range(len(f.options))
                                               for f in schema.features))), dtype=np.float64)  # fmt: skip
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Integer):
            points[:, g] += feature.lower
    rows = schema.encode(points)
    weight = np.exp(-0.5 * ((rows - rows[rng.integers(len(rows))]) ** 2 / (0.5 + rows.var(axis=0))).sum(axis=1))
    data = rows[rng.choice(len(rows), 60, p=(weight + 0.02) / (weight + 0.02).sum())]
    estimator = MAKE[kind](seed)
    fitted = make_pipeline(StandardScaler(), estimator) if rng.random() < 0.5 else estimator
    score = data @ rng.normal(size=data.shape[1]) / (1.0 + data.std(axis=0)).sum()
    classes = 3 if kind in SEVERAL and seed % 2 else 2
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    fitted.fit(data, labels)
    network = network_model(Network.of([(rng.normal(size=(4, rows.shape[1])), rng.normal(size=4)),
                                        (rng.normal(size=(1, 4)), rng.normal(size=1))]), schema)  # fmt: skip
    if kind.startswith("mixture"):
        threshold = float(np.quantile(fitted.score_samples(data), 0.3)) - 1e-5
        accepted = fitted.score_samples(rows) >= threshold
        named = Accepted(by=fitted, target=ScoreTarget(at_least=threshold, margin=0.0), name=kind)
        return Case(schema, points, fitted, import_density(fitted, schema, threshold), 1, accepted, network, named)
    model = import_model(fitted, schema)
    wanted = model.classes[int(rng.integers(len(model.classes)))]
    named = Accepted(by=fitted, target=wanted, name=kind)
    return Case(schema, points, fitted, model, wanted, fitted.predict(rows) == wanted, network, named)


def random_schema(rng: np.random.Generator) -> Schema:
    features: list[Any] = []
    for i in range(int(rng.integers(1, 4))):
        lower = int(rng.integers(-20, 20))
        features.append(Integer(f"i{i}", lower, lower + int(rng.integers(3, 10))))
    features.append(Categorical("c", ["x", "y", "z"][: int(rng.integers(2, 4))]))
    if rng.random() < 0.5:
        features.append(Ordinal("o", ["low", "middle", "high"]))
    return Schema(features)


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a network"])
def test_the_nearest_row_by_trying_every_row(kind: str, beside: bool) -> None:
    asked = 0
    for seed in range(SEEDS):
        made, rng = case(kind, seed), np.random.default_rng([seed, 7])
        explained, target = (made.network, made.network.classes[1]) if beside else (made.model, made.target)
        good = made.accepted & (made.network.scores(made.points)[:, 0] > 1e-6) if beside else made.accepted
        distance = Distance(NORMS[seed % 4])
        explainer = Explainer(explained).using(METHODS[seed % 3], reasons=False)
        constraints = [made.named] if beside else []
        for i in rng.choice(np.flatnonzero(~good), min(PEOPLE, int((~good).sum())), replace=False).tolist():
            asked += 1
            person = made.points[i]
            answer = explainer.explain(
                made.schema.row(person), target=target, distance=distance, constraints=constraints
            )
            said = f"{kind}, seed {seed}, row {i}: {answer}"
            if not good.any():
                assert isinstance(answer, NoneExists), said
                continue
            assert isinstance(answer, Nearest), said
            least = float(distance.between(made.schema, person, made.points[good]).min())
            assert answer.upper == pytest.approx(least, abs=1e-9), said
            assert answer.lower <= least + 1e-12, said
    assert asked >= SEEDS
