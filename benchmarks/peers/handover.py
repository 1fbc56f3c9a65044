"""What a peer is given, written to a folder: see `inside/handed.py` for the form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects.data import Data
from ifonly.datasets.dataset import SEED
from ifonly.model import Model, Network
from ifonly.schema import Numeric, Schema


def write(folder: Path, model: Model, data: Data, budget: float, *, checkout: Path | None = None) -> None:
    """Weights over numbers and one-hot options, what the features are, and the training rows with their labels.

    `checkout`: where the peer's own repository is, if it is on no index.
    """
    write_features(folder, data.schema, budget, checkout)
    arrays = {"train": data.points[data.train], "labels": data.labels[data.train]} | weights(model, data.schema)
    np.savez(folder / "task.npz", **arrays)  # type: ignore[arg-type]


def write_features(folder: Path, schema: Schema, budget: float, checkout: Path | None = None) -> None:
    """What the features are, and how many seconds a row may take."""
    features = []
    for feature in schema.features:
        entry: dict[str, object] = {"name": feature.name, "kind": feature.kind}
        entry |= (
            {"lower": feature.lower, "upper": feature.upper}
            if isinstance(feature, Numeric)
            else {"options": len(feature.options)}
        )
        features.append(entry)
    said = {"features": features, "seed": SEED, "budget": budget, "checkout": str(checkout or "")}
    (folder / "task.json").write_text(json.dumps(said), encoding="utf-8")


def weights(model: Model, schema: Schema) -> dict[str, NDArray[np.float64]]:
    """The layers over numbers and one-hot options."""
    layers = enumerate(one_hot_network(model.network, schema).layers)
    return {name: array for i, layer in layers for name, array in ((f"W{i}", layer.weight), (f"b{i}", layer.bias))}


def one_hot_network(network: Network, schema: Schema) -> Network:
    """The same function, read from numbers and one-hot options instead of the schema's own columns."""
    table = columns_of_options(schema)
    return network.after(table.T, np.zeros(len(schema.columns)))


def columns_of_options(schema: Schema) -> NDArray[np.float64]:
    """One row per number or option: the encoded columns that it stands for."""
    rows = []
    least = [f.lower if isinstance(f, Numeric) else 0.0 for f in schema.features]
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Numeric):
            row = np.zeros(len(schema.columns))
            row[columns] = 1.0
            rows.append(row)
            continue
        points = np.tile(least, (len(feature.options), 1))
        points[:, schema.index(feature.name)] = np.arange(len(feature.options))
        encoded = schema.encode(points)
        for line in encoded:
            row = np.zeros(len(schema.columns))
            row[columns] = line[columns]
            rows.append(row)
    return np.array(rows)
