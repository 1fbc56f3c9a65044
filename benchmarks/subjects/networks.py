"""Networks trained as in the published experiments: scikit-learn's MLPClassifier, its defaults, one seed, one thread.

`norm`: on inputs scaled to [0, 1] by the bounds of the schema, the scaling then being folded into the first layer, so
that the network reads original units. `raw`: on the encoded columns as they are. The same machine gives the same
weights; another BLAS may round differently and end elsewhere, so the CSV files name each network's fingerprint.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.subjects.data import Data, load
from benchmarks.terminal import bar
from ifonly.datasets.dataset import SEED
from ifonly.model import Model, Network, load_network, network_model, save_network
from ifonly.schema import Numeric, Schema

CLASSES = (0, 1)


@dataclass(frozen=True, slots=True)
class Spec:
    """Which network: data set, hidden layers, variant."""

    dataset: str
    hidden: tuple[int, ...]
    variant: str = "norm"

    @property
    def arch(self) -> str:
        """`2x10`: two hidden layers of ten."""
        assert len(set(self.hidden)) == 1
        return f"{len(self.hidden)}x{self.hidden[0]}"

    @property
    def file(self) -> str:
        return f"{self.dataset}_{self.arch}_{self.variant}.npz"


def arch(text: str) -> tuple[int, ...]:
    """The hidden layers of `depth x width`."""
    depth, width = map(int, text.split("x"))
    return (width,) * depth


def model(spec: Spec, cache: Path) -> Model:
    """The network, from the cache or trained now."""
    path = cache / spec.file
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        save_network(train(load(spec.dataset), spec.hidden, spec.variant), path, classes=CLASSES)
    network, classes = load_network(path)
    return network_model(network, load(spec.dataset).schema, classes=classes)


def train_missing(specs: tuple[Spec, ...], cache: Path, console: Console) -> None:
    """Train all networks that are not in the cache."""
    missing = [spec for spec in specs if not (cache / spec.file).exists()]
    if not missing:
        return
    with bar(console) as progress:
        task = progress.add_task("training", total=len(missing))
        for spec in missing:
            progress.update(task, description=f"training {spec.dataset} {spec.arch} {spec.variant}")
            model(spec, cache)
            progress.advance(task)


def train(data: Data, hidden: tuple[int, ...], variant: str) -> Network:
    """The network over encoded columns, in the order of the schema and in original units."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    scale, shift = _scaling(data.schema) if variant == "norm" else (1.0, 0.0)
    order = _training_order(data.schema)
    inputs = (data.schema.encode(data.points[data.train]) * scale + shift)[:, order]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the defaults stop after 200 epochs, as published
        fitted = MLPClassifier(hidden_layer_sizes=hidden, random_state=SEED).fit(inputs, data.labels[data.train])
    weights = [w.T for w in fitted.coefs_]
    weights[0] = weights[0][:, np.argsort(order)]
    network = Network.of(list(zip(weights, fitted.intercepts_, strict=True)))
    return network if variant == "raw" else network.after(np.diag(scale), np.asarray(shift))


def _training_order(schema: Schema) -> NDArray[np.intp]:
    """Single columns first, then the groups, as in the published experiments: initial weights depend on the order."""
    groups = schema.feature_columns
    return np.concatenate([g for g in groups if len(g) == 1] + [g for g in groups if len(g) > 1])


def _scaling(schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale and shift of each encoded column: numbers to [0, 1], bits as they are."""
    scale, shift = np.ones(len(schema.columns)), np.zeros(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Numeric):
            scale[columns] = 1.0 / feature.width
            shift[columns] = -feature.lower / feature.width
    return scale, shift


def denied(model: Model, data: Data, most: int | None = None) -> NDArray[np.intp]:
    """The first distinct test rows that the model decides against, as row numbers of the data set."""
    scores = model.scores(data.points[data.test])
    rows = data.test[model.decide(scores) == 0]
    _, first = np.unique(data.points[rows], axis=0, return_index=True)
    return rows[np.sort(first)][:most]
