"""Powers and logarithms before linear models and perceptrons: against every row of finite spaces, and against sampled
rows of real ones, which the pipeline itself decides.

`IFONLY_POWER_SEEDS` asks more questions than the suite does.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, PowerTransformer, StandardScaler

from ifonly import Categorical, Distance, Explainer, Integer, Limits, Real, Schema, import_model
from ifonly.methods import Enumerate, Search
from ifonly.model.smooth import SmoothNetwork

SEEDS = int(os.environ.get("IFONLY_POWER_SEEDS", "24"))
GAP = 1.01e-6
"""How far an answer may be from the nearest row: the default gap."""
DISTANCES = (Distance("l1"), Distance("linf"), Distance("l2"), Distance("l0"), Distance({"l0": 0.3, "l1": 0.7}))


def function(rng: np.random.Generator, lower: float, kind: Any) -> Any:
    """A transformer of numbers that begin at `lower`; np.reciprocal of whole numbers is whole, and refused."""
    of = FunctionTransformer
    kinds: list[Any] = [
        PowerTransformer(),
        PowerTransformer(standardize=False),
        make_pipeline(StandardScaler(), PowerTransformer()),
    ]
    if lower >= 0.0:
        kinds += [
            of(np.log1p),
            of(np.square),
            make_pipeline(of(np.log1p), StandardScaler()),
            make_pipeline(MinMaxScaler((1, 3)), of(np.log2)),
        ]
    if lower > 0.0:
        kinds += [of(np.log10), of(np.sqrt), of(np.cbrt), PowerTransformer(method="box-cox")]
        kinds += [of(np.reciprocal)] if kind is Real else []
    elif lower == 0.0:
        kinds += [of(np.sqrt), of(np.cbrt)]
    return kinds[int(rng.integers(len(kinds)))]


def pipeline(seed: int, kind: Any) -> tuple[Any, Schema]:
    """A random pipeline and its schema: two numbers of many values, one of few, and a choice."""
    rng = np.random.default_rng([seed, 3])
    starts = rng.choice([0.0, 1.0, 5.0, -40.0] if kind is Integer else [1.0, 5.0, 0.25, -40.0], 2)
    most = 4200 if seed % 2 else 700  # a linear model of fewer values is searched as trees
    numbers = [kind("a", starts[0], starts[0] + most), kind("b", starts[1], starts[1] + 12)]
    schema = Schema([*numbers, Categorical("c", ["p", "q", "r"])])
    table = pd.DataFrame([schema.row(point) for point in schema.sample(250, rng)])
    merit = (
        rng.normal() * np.log(table.a - starts[0] + 1.0)
        + np.sqrt(np.abs(table.b)) * rng.normal()
        + 0.3 * (table.c == "q")
    )
    labels = (merit + 0.2 * rng.normal(size=len(table)) > merit.quantile(rng.uniform(0.2, 0.8))).astype(int)
    columns = ColumnTransformer(
        [
            ("a", function(rng, starts[0], kind), ["a"]),
            ("b", function(rng, starts[1], kind), ["b"]),
            ("c", OneHotEncoder(), ["c"]),
        ]
    )
    activation = str(rng.choice(["relu", "tanh"]))
    net = MLPClassifier((4,), activation=activation, solver="lbfgs", max_iter=40, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(columns, LogisticRegression() if seed % 2 else net).fit(table, labels), schema


SEARCHES = (Search(table_rows=0), Search(table_rows=0, probing="always"))


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("search", SEARCHES, ids=["by rule", "probing"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_agrees_with_the_enumerator(seed: int, search: Search) -> None:
    found, schema = pipeline(seed, Integer)
    model = import_model(found, schema)
    assert isinstance(model.function, SmoothNetwork)
    explainer = Explainer(model).using(search)
    for point in schema.sample(2, np.random.default_rng(seed)):
        row, distance = schema.row(point), DISTANCES[seed % len(DISTANCES)]
        answer = explainer.explain(row, distance=distance)
        other = explainer.using(Enumerate()).explain(row, distance=distance)
        assert answer.status == other.status
        if answer.status == "nearest":
            assert answer.lower <= other.distance + 1e-12 and answer.distance <= other.distance + GAP


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("search", SEARCHES, ids=["by rule", "probing"])
@pytest.mark.parametrize("seed", range(100, 100 + SEEDS))
def test_no_sampled_row_is_nearer(seed: int, search: Search) -> None:
    """Rows that the pipeline accepts are not nearer than what is proven of all of them."""
    found, schema = pipeline(seed, Real)
    model = import_model(found, schema)
    assert isinstance(model.function, SmoothNetwork)
    explainer, rng = Explainer(model).using(search), np.random.default_rng(seed)
    row = schema.row(schema.sample(1, rng)[0])
    distance = DISTANCES[seed % 3]
    answer = explainer.explain(row, distance=distance, limits=Limits(nodes=20_000))
    points = schema.sample(3000, rng)
    here = np.asarray(schema.read(row))
    points = np.vstack([points, here + (points - here) * rng.random((len(points), 1)) ** 2])
    points[:, 2] = np.where(rng.random(len(points)) < 0.5, np.round(points[:, 2]), here[2])
    if answer.counterfactual is not None:
        near = schema.read(answer.counterfactual)
        points = np.vstack([points, here + (near - here) * np.linspace(0.0, 1.0, 400)[:, None]])
        points[:, 2] = np.round(points[:, 2])
    decided = found.predict(pd.DataFrame([schema.row(point) for point in points]))
    accepted = points[decided != found.predict(pd.DataFrame([row]))]
    distances = distance.between(schema, here, accepted)
    assert (distances >= answer.lower_any_rounding - 1e-12).all() if len(accepted) else answer.status == "none exists"
