"""Train the small networks that ship with the data sets, and say how good they are.

    python tools/train_networks.py            # train, report, and compare with what ships
    python tools/train_networks.py --accept   # and write the networks and their facts in the manifest

Two hidden layers of ten, trained by scikit-learn's defaults on inputs scaled to [0, 1] by the bounds of the schema; the
scaling is then folded into the first layer, so that the network reads encoded columns in original units. One thread
and one seed: the same machine gives the same weights; another BLAS may round differently and end elsewhere.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from ifonly import datasets
from ifonly.datasets.dataset import SEED
from ifonly.model import Network, save_network
from ifonly.schema import Numeric, Schema

DATA = Path(__file__).resolve().parents[1] / "src" / "ifonly" / "datasets" / "data"
MANIFEST = DATA / "manifest.json"
HIDDEN = (10, 10)


def training_order(schema: Schema) -> NDArray[np.intp]:
    """Single columns first, then the groups, as in the published experiments: initial weights depend on the order."""
    groups = schema.feature_columns
    return np.concatenate([g for g in groups if len(g) == 1] + [g for g in groups if len(g) > 1])


def scaling(schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale and shift of each encoded column: numbers to [0, 1], bits as they are."""
    scale, shift = np.ones(len(schema.columns)), np.zeros(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Numeric):
            scale[columns] = 1.0 / feature.width
            shift[columns] = -feature.lower / feature.width
    return scale, shift


def train(data: datasets.Dataset) -> Network:
    """The network over encoded columns, in the order of the schema and in original units."""
    rows, _ = data.split()
    scale, shift = scaling(data.schema)
    order = training_order(data.schema)
    inputs = (data.encoded()[rows] * scale + shift)[:, order]
    with threadpool_limits(1):
        fitted = MLPClassifier(hidden_layer_sizes=HIDDEN, random_state=SEED).fit(inputs, data.labels[rows])
    weights = [w.T for w in fitted.coefs_]
    weights[0] = weights[0][:, np.argsort(order)]
    return Network.of(list(zip(weights, fitted.intercepts_, strict=True))).after(np.diag(scale), shift)


def accuracy(network: Network, data: datasets.Dataset, rows: NDArray[np.intp]) -> float:
    decided = network.scores(data.encoded()[rows])[:, 0] > 0.0
    return float(np.mean(decided == (data.labels[rows] == 1)))


def facts(network: Network, data: datasets.Dataset) -> dict[str, Any]:
    train_rows, test_rows = data.split()
    return {
        "network_fingerprint": network.fingerprint,
        "train_accuracy": round(accuracy(network, data, train_rows), 4),
        "test_accuracy": round(accuracy(network, data, test_rows), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the shipped networks.")
    parser.add_argument("--accept", action="store_true", help="write the networks and record them in the manifest")
    options = parser.parse_args()
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    same = True
    for name in datasets.names():
        data = datasets.load(name, rules=False)
        network = train(data)
        found = facts(network, data)
        print(
            f"{name}: accuracy {found['train_accuracy']:.2%} on training rows, {found['test_accuracy']:.2%} on test "
            f"rows, {found['network_fingerprint']}"
        )
        same = same and manifest[name].get("network_fingerprint") == found["network_fingerprint"]
        if options.accept:
            save_network(network, DATA / f"{name}_2x10.npz", classes=(0, 1))
            manifest[name].update(found)
    if options.accept:
        MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        print("The networks are written.")
    elif same:
        print("These are the networks that ship.")
    else:
        raise SystemExit("These are not the networks that ship; to replace those, run again with --accept.")


if __name__ == "__main__":
    main()
