"""Reconstruction error of an autoencoder, as one network of the row: how far what it returns is from what it was given.

    linf    each |y_k - x_k| <= t: two conditions per column, on the last layer
    l1      t - sum_k |y_k - x_k|: one more layer, relu(y_k - x_k) and relu(x_k - y_k)

The columns x are passed on through the hidden layers beside the autoencoder's own neurons, lifted above 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.kind import Floats, Kind, Precision
from ifonly.model.model import Model
from ifonly.model.network import Network
from ifonly.model.rounding import column_box

ReconstructionNorm: TypeAlias = Literal["l1", "linf"]
Layer = tuple[Floats, Floats]
FAR, NEAR = "badly reconstructed", "well reconstructed"


@dataclass(frozen=True, eq=False)
class Reconstruction(Kind):
    """l1: how much the error is below `at_most`. linf: of each column and either sign what it is above that, and 0."""

    autoencoder: Kind
    at_most: float
    norm: ReconstructionNorm
    rows: tuple[Floats, Floats]
    """The least and the largest encoded columns of the schema."""

    @property
    def name(self) -> str:
        return "the reconstruction error of an autoencoder"

    @property
    def inputs(self) -> int:
        return self.autoencoder.inputs

    @property
    def outputs(self) -> int:
        return 1 if self.norm == "l1" else 2 * self.inputs + 1

    @property
    def within(self) -> tuple[Floats, Floats] | None:
        return self.rows

    @property
    def fingerprint(self) -> str:
        return self._network.fingerprint

    def scores(self, x: Floats) -> Floats:
        return self._network.scores(x)

    def steady_scores(self, x: Floats) -> Floats:
        return self._network.steady_scores(x)

    def of_outputs(self, x: Floats, y: Floats) -> Floats:
        """The scores of rows x that an autoencoder maps to y."""
        if self.norm == "l1":
            return self.at_most - np.abs(y - x).sum(axis=1, keepdims=True)
        return np.hstack([y - x - self.at_most, x - y - self.at_most, np.zeros((len(x), 1))])

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """That of the autoencoder, and of this network in both precisions: the difference is taken in float64."""
        everything = np.ones_like(exact)
        mine = sum(self._network.error(lower, upper, one, everything) for one in {precision, "float64"})
        theirs = self.autoencoder.error(lower, upper, precision, exact)
        if self.norm == "l1":
            return np.asarray(mine + theirs.sum(axis=1, keepdims=True))
        return np.asarray(mine + np.hstack([theirs, theirs, np.zeros((len(theirs), 1))]))

    def statement(self) -> dict[str, Any]:
        """The stored weights of the autoencoder, and what is asked of its error."""
        network = self.autoencoder.as_network()
        assert network is not None
        return {**network.statement(), "error": {"norm": self.norm, "at_most": (self.at_most + 0.0).hex()}}

    def as_network(self) -> Network:
        return self._network

    @cached_property
    def _network(self) -> Network:
        *hidden, difference = self._differences
        size, t = self.inputs, self.at_most
        weight, bias = difference
        both = np.vstack([weight, -weight]), np.concatenate([bias, -bias])
        if self.norm == "l1":
            last = -np.ones((1, 2 * size)), np.array([t])
            return replace(Network.of([*hidden, both, last]), within=self.rows)
        last = np.vstack([both[0], np.zeros((1, both[0].shape[1]))]), np.append(both[1] - t, 0.0)
        return replace(Network.of([*hidden, last]), within=self.rows)

    @property
    def _differences(self) -> list[Layer]:
        """The layers of y - x."""
        network = self.autoencoder.as_network()
        assert network is not None
        layers, size, least = [(layer.weight, layer.bias) for layer in network.layers], self.inputs, self.rows[0]
        if len(layers) == 1:
            return [(layers[0][0] - np.eye(size), layers[0][1])]
        first, *middle, last = layers
        result = [(np.vstack([first[0], np.eye(size)]), np.concatenate([first[1], -least]))]
        for weight, bias in middle:
            block = np.zeros((len(bias) + size, weight.shape[1] + size))
            block[: len(bias), : weight.shape[1]], block[len(bias) :, weight.shape[1] :] = weight, np.eye(size)
            result.append((block, np.concatenate([bias, np.zeros(size)])))
        return [*result, (np.hstack([last[0], -np.eye(size)]), last[1] - least)]


@dataclass(frozen=True, eq=False)
class ReconstructionScores:
    """The same by the user's own autoencoder."""

    function: Reconstruction
    model: Model

    def __call__(self, points: Floats) -> Floats:
        return self.function.of_outputs(self.model.schema.encode(points), self.model.scores(points))


def reconstruction_model(model: Model, at_most: float, norm: ReconstructionNorm) -> Model:
    """The model that accepts rows whose reconstruction error is at most this."""
    columns = len(model.schema.columns)
    if model.classes:
        raise ModelError("An autoencoder returns numbers, not classes; import it with regression=True.")
    if model.outputs != columns:
        raise ModelError(
            f"An autoencoder returns as many values as it takes: rows of the schema have {columns} columns, but it "
            f"returns {model.outputs}."
        )
    if model.function.as_network() is None:
        raise UnsupportedModel(
            f"The reconstruction error is exact for piecewise-linear networks (ReLU and the like); this model is "
            f"{model.function.name}.",
            operation=model.function.name,
        )
    function = Reconstruction(model.function, at_most, norm, column_box(model.schema))
    classes = (FAR, NEAR) if norm == "l1" else (*(f"{FAR}: {k}" for k in range(2 * columns)), NEAR)
    return Model(
        function=function,
        schema=model.schema,
        original=ReconstructionScores(function, model),
        classes=classes,
        source=model.source,
        precision=model.precision,
        accepted=NEAR,
    )
