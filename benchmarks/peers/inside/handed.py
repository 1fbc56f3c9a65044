"""What a peer is given: a network as plain weights, what the features are, and rows to learn from.

A point holds one number per feature: the number itself, or which option. The network reads the numbers and, for
features with options, one column per option (one-hot), in the order of the features:  h = relu(W h + b),  the last
layer without relu; the decision is 1 where the score is positive. A forest reads other columns: `table` has a row of
these for each number or option.
"""

import json
from pathlib import Path

import numpy as np


class Handed:
    """A network, its features and training rows, as the parent process wrote them."""

    def __init__(self, folder):
        self.folder = folder = Path(folder)
        said = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        self.features, self.seed, self.budget = said["features"], said["seed"], said["budget"]
        self.checkout = said.get("checkout", "")
        with np.load(folder / "task.npz") as arrays:
            self.train, self.labels = arrays["train"], arrays["labels"]
            self.table = arrays["columns"] if "columns" in arrays.files else None
            count = sum(name.startswith("W") for name in arrays.files)
            self.layers = [(arrays[f"W{i}"], arrays[f"b{i}"]) for i in range(count)]
        self._fitted = None
        self.names = [feature["name"] for feature in self.features]
        self.numeric = [g for g, feature in enumerate(self.features) if feature["kind"] in ("real", "integer")]
        self.choices = [g for g in range(len(self.features)) if g not in self.numeric]
        sizes = [feature.get("options", 1) for feature in self.features]
        ends = np.cumsum(sizes)
        self.columns = [list(range(end - size, end)) for end, size in zip(ends, sizes, strict=True)]

    def model(self):
        """The forest or the XGBoost model that was handed over, if one was."""
        boosted = self.folder / "model.json"
        if boosted.exists():
            from xgboost import XGBClassifier

            model = XGBClassifier()
            model.load_model(boosted)
            return model
        import joblib

        return joblib.load(self.folder / "model.joblib")

    def one_hot(self, points):
        """Points as the network's columns."""
        points = np.asarray(points, dtype=np.float64)
        blocks = []
        for g, feature in enumerate(self.features):
            column = points[:, g : g + 1]
            blocks.append(column if g in self.numeric else (column == np.arange(feature["options"])).astype(float))
        return np.hstack(blocks)

    def points(self, columns):
        """Points of one-hot columns: the option is the largest of its columns."""
        columns = np.asarray(columns, dtype=np.float64)
        parts = [
            columns[:, at[0]] if g in self.numeric else columns[:, at].argmax(axis=1)
            for g, at in enumerate(self.columns)
        ]
        return np.stack(parts, axis=1)

    def decided(self, points):
        """What the network or the forest decides of points."""
        if self.table is None:
            return (self.scores(self.one_hot(points)) > 0.0).astype(int)
        if self._fitted is None:
            self._fitted = self.model()
        return self._fitted.predict(self.one_hot(points) @ self.table)

    def scores(self, columns):
        """The network's score of one-hot columns."""
        hidden = np.asarray(columns, dtype=np.float64)
        for weight, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weight.T + bias, 0.0)
        weight, bias = self.layers[-1]
        return (hidden @ weight.T + bias)[:, 0]

    def probabilities(self, columns):
        """Of class 0 and class 1, by the logistic function."""
        one = 1.0 / (1.0 + np.exp(-np.clip(self.scores(columns), -500.0, 500.0)))
        return np.stack([1.0 - one, one], axis=1)

    def scaling(self):
        """Lower end and width of each one-hot column: of numbers, the feature's; of options, 0 and 1."""
        lower, width = np.zeros(self.columns[-1][-1] + 1), np.ones(self.columns[-1][-1] + 1)
        for g in self.numeric:
            (at,) = self.columns[g]
            lower[at] = self.features[g]["lower"]
            width[at] = (self.features[g]["upper"] - lower[at]) or 1.0
        return lower, width

    def frame(self, points):
        """A pandas table: numbers (whole ones as integers), options as strings."""
        import pandas as pd

        points = np.asarray(points)
        table = {}
        for g, feature in enumerate(self.features):
            column = points[:, g]
            if feature["kind"] == "real":
                table[feature["name"]] = column.astype(np.float64)
            elif feature["kind"] == "integer":
                table[feature["name"]] = np.round(column).astype(np.int64)
            else:
                table[feature["name"]] = [str(int(v)) for v in column]
        return pd.DataFrame(table)

    def from_frame(self, frame):
        """The points of such a table."""
        return np.stack([frame[name].astype(float).to_numpy() for name in self.names], axis=1)
