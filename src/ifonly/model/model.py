"""A model: the user's own decision, the network that stands for it, and how far apart the two can be.

The *network* is what the methods reason about. The *original* has the last word: every answer is evaluated with it.
Scores are real numbers: for classifiers of two classes one score, positive for the second class (the log-odds where
the model speaks in probabilities); for K > 2 classes one score each, the largest wins; for regression the prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.network import Network
from ifonly.schema import Schema

Scores: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Precision: TypeAlias = Literal["float64", "float32"]


@dataclass(frozen=True, kw_only=True)
class Model:
    """`original` maps points (n, features) to scores (n, outputs), by the user's own code."""

    network: Network
    schema: Schema
    original: Scores
    classes: tuple[Any, ...] = ()
    kind: str = "network"
    precision: Precision = "float64"
    deviation: float = 0.0

    def __post_init__(self) -> None:
        if self.network.inputs != len(self.schema.columns):
            raise ModelError(
                f"The model takes {self.network.inputs} columns, but the schema encodes to {len(self.schema.columns)}: "
                f"{', '.join(self.schema.columns[:6])}, ..."
            )
        if self.classes and len(self.classes) != max(2, self.network.outputs):
            raise ModelError(
                f"The model has {self.network.outputs} output(s), but {len(self.classes)} class names were given."
            )

    @property
    def is_classifier(self) -> bool:
        return bool(self.classes)

    def scores(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of many points by the user's own model, shape (n, outputs), float64."""
        scores = np.asarray(self.original(np.atleast_2d(points)), dtype=np.float64)
        return scores.reshape(len(np.atleast_2d(points)), self.network.outputs)

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """The class index of each row of scores: second class iff the one score is > 0, else the largest, first on ties."""
        if self.network.outputs == 1:
            return (scores[:, 0] > 0.0).astype(np.intp)
        return scores.argmax(axis=1)


def network_model(
    network: Network, schema: Schema, *, classes: tuple[Any, ...] = (), precision: Precision = "float64"
) -> Model:
    """A model whose original is the network's own forward pass. Without class names, classes 0, 1, ... are assumed."""
    names = classes or tuple(range(max(2, network.outputs)))
    return Model(
        network=network,
        schema=schema,
        original=lambda points: network.scores(schema.encode(points)),
        classes=names,
        precision=precision,
    )
