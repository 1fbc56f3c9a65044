"""Data sets with a split into train and test, all with one interface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly import datasets
from ifonly.datasets.dataset import SEED
from ifonly.schema import Numeric, Real, Schema, read_points

PAPER = ("compas", "credit", "adult")
CANCER = "cancer"
NAMES = {"compas": "COMPAS", "credit": "Credit", "adult": "Adult", CANCER: "breast cancer"}
"""As they are written for people."""
TEST_SHARE = 0.3


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """Points, labels (1 is the decision that people want), and row numbers for training and testing."""

    name: str
    schema: Schema
    points: NDArray[np.float64]
    labels: NDArray[np.int64]
    train: NDArray[np.intp]
    test: NDArray[np.intp]

    def table(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """Rows in people's own values, as a dict of columns."""
        points = self.points[rows]
        return {
            feature.name: points[:, g] if isinstance(feature, Numeric) else [feature.value(v) for v in points[:, g]]
            for g, feature in enumerate(self.schema.features)
        }


@cache
def load(name: str) -> Data:
    """COMPAS, Credit, Adult with the split of the published experiments, or scikit-learn's breast cancer (30 reals).

    `cancer10`: its first ten features.
    """
    if name.startswith(CANCER):
        return _cancer(name, int(name.removeprefix(CANCER) or 30))
    data = datasets.load(name, rules=False)
    train, test = data.split()
    return Data(
        name=name,
        schema=data.schema,
        points=read_points(data.schema, data.columns),
        labels=data.labels,
        train=train,
        test=test,
    )


def _cancer(name: str, inputs: int) -> Data:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    points = np.asarray(bunch.data, dtype=np.float64)[:, :inputs]
    features = [
        Real(str(title), float(column.min()), float(column.max()))
        for title, column in zip(bunch.feature_names[:inputs], points.T, strict=True)
    ]
    order = np.random.RandomState(SEED).permutation(len(points))
    test = int(TEST_SHARE * len(points))
    return Data(
        name=name,
        schema=Schema(features),
        points=points,
        labels=np.asarray(bunch.target, dtype=np.int64),
        train=order[test:],
        test=order[:test],
    )
