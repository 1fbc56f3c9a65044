"""Small tables and fitted trees for the tests of tree ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ifonly import Binary, Categorical, Integer, Model, Ordinal, Real, Schema
from ifonly.model.trees import Trees
from ifonly.model.trees.edges import edge_points

SCHEMA = Schema(
    [
        Real("rate", -3.0, 3.0),
        Integer("age", 0, 60, 3),
        Categorical("town", ["x", "y", "z"]),
        Binary("owner"),
        Ordinal("level", [1, 2, 3]),
        Real("debt", 0.0, 1e6),
    ]
)


def points_and_labels(count: int = 400, classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    """Rows whose numbers repeat, so that thresholds fall on data; labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    points = SCHEMA.sample(count, rng)
    points[:, 0] = np.round(points[:, 0], 1)
    points[:, 5] = np.round(points[:, 5], -4)
    signal = points[:, 0] + points[:, 1] / 20 + 1.5 * (points[:, 2] == 1) - points[:, 3] + points[:, 5] / 4e5
    signal += rng.normal(0, 0.5, count)
    return points, np.searchsorted(np.quantile(signal, np.arange(1, classes) / classes), signal)


def everywhere(model: Model, seed: int = 7) -> Any:
    """Random points, and points at every split and one step to either side."""
    assert isinstance(model.function, Trees)
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [model.schema.sample(500, rng), edge_points(model.function.ensemble, model.schema, seed=seed)]
    )
