"""Equations compiled for a schema: networks over unrolled columns of the causes.

A number is one column, a feature with k options k columns of 0 and 1. Levels and the two values of a binary feature are
numbered from 0. Trees are linear functions of a column per region of their causes (`tree_equations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.causes.tree_equations import TreeRegions
from ifonly.model import Model, Network
from ifonly.model.layers import affine, interval, layers_of
from ifonly.model.smooth import RELU, SmoothNetwork
from ifonly.model.smooth.activations import STEEPEST
from ifonly.schema import Choice, Feature, Numeric, Schema

Floats = NDArray[np.float64]

KEPT_VALUES = 256
"""Of single points, of each equation."""


@dataclass(frozen=True, eq=False)
class CompiledEquation:
    """An equation over the features at `places` of a schema. `codes` maps their unrolled columns to the columns that
    the network reads; `original` is the user's own regression, of points of these features."""

    places: NDArray[np.intp]
    network: Network | SmoothNetwork
    codes: Floats
    options: tuple[int, ...]
    """Of each cause, how many options; 0 for a number."""
    original: Model | None = None
    trees: TreeRegions | None = None
    error: float = 0.0
    """Of a smooth network: how far the value that is computed may be from it on rows of the schema."""

    def values(self, points: Floats) -> Floats:
        """The value of the equation for each point of the whole schema."""
        own = points[:, self.places]
        if len(own) > 1:
            return self._values(own)
        known, key = self._known, own.tobytes()
        value = known.get(key)
        if value is None:  # of one person's causes, most sets of actions ask for the same
            value = self._values(own)
            if len(known) >= KEPT_VALUES:
                known.clear()
            known[key] = value
        return value.copy()

    def _values(self, own: Floats) -> Floats:
        if self.original is not None:
            return np.asarray(self.original.scores(own)[:, 0])
        return np.asarray(self.network.steady_scores(self.unrolled(own) @ self.codes.T)[:, 0])

    @cached_property
    def _known(self) -> dict[bytes, Floats]:
        """Values of single points."""
        return {}

    def unrolled(self, own: Floats) -> Floats:
        """Points of the causes as unrolled columns; of trees, as a column per region."""
        if self.trees is None:
            pairs = list(zip(self.options, own.T, strict=True))
        else:
            sizes = [len(one.values) for one in self.trees.partitions]
            pairs = list(zip(sizes, self.trees.regions(own).T, strict=True))
        columns = [one[:, None] if not count else one[:, None] == np.arange(count) for count, one in pairs]
        return np.concatenate(columns, axis=1).astype(np.float64)

    @cached_property
    def slopes(self) -> Floats | None:
        """Where the value is linear in the unrolled columns, what one of each adds."""
        layers, _ = layers_of(self.network)
        return None if self.trees is not None or len(layers) > 1 else np.asarray((layers[0][0] @ self.codes)[0])

    @cached_property
    def gains(self) -> Floats:
        """By how much a change of each unrolled column changes the value, at most."""
        size = np.abs(self.codes)
        layers, activations = layers_of(self.network)
        for (weight, _), activation in zip(layers, [*activations, RELU], strict=True):
            size = np.abs(weight) @ size
            size = size if activation == RELU else STEEPEST * size
        return np.asarray(size[0])

    def interval(self, lower: Floats, upper: Floats) -> tuple[float, float]:
        """Bounds of the value where the unrolled columns are between these."""
        if self.trees is not None:
            return self.trees.interval(self.options, lower, upper)
        box = affine(self.codes, np.zeros(len(self.codes)), lower, upper)
        low, high = interval(self.network, *box)
        return float(low[0]), float(high[0])


def compiled(
    schema: Schema,
    parents: Sequence[str],
    network: Network | SmoothNetwork,
    codes: Floats | None = None,
    original: Model | None = None,
) -> CompiledEquation:
    features = [schema[name] for name in parents]
    options = tuple(len(feature.options) if isinstance(feature, Choice) else 0 for feature in features)
    places = np.array([schema.index(name) for name in parents], dtype=np.intp)
    own = np.eye(sum(count or 1 for count in options)) if codes is None else codes
    return CompiledEquation(places, network, own, options, original)


def codes_of(features: Sequence[Feature]) -> Floats:
    """From unrolled columns to the encoded ones, feature after feature."""
    blocks = [np.ones((1, 1)) if isinstance(f, Numeric) else np.asarray(f.codes).T for f in features]
    matrix = np.zeros((sum(len(block) for block in blocks), sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        matrix[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return matrix
