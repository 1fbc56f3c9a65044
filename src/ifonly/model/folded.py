"""A network of fewer columns: the model of rows whose other columns are linear functions of those."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.kind import Floats, Kind, Precision
from ifonly.model.network import Affine, Network
from ifonly.model.rounding import column_box, exact_columns
from ifonly.model.smooth import SmoothNetwork
from ifonly.schema import Schema

PASSES = 2.0
"""Forward passes of the folded network by whose rounding it may differ from the model: its own, and that of folding."""


@dataclass(frozen=True, eq=False)
class Folded(Kind):
    """`inner`, a network or a smooth network of rows of `schema`, as a function of x with rows = weight @ x."""

    inner: Kind
    weight: Floats
    schema: Schema

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def inputs(self) -> int:
        return int(self.weight.shape[1])

    @property
    def outputs(self) -> int:
        return self.inner.outputs

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(b"ifonly-folded-1" + self.inner.fingerprint.encode())
        digest.update(self.weight.astype("<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def folded(self) -> Network | SmoothNetwork:
        """The first layer times the weight: exactly, rounded once."""
        smooth = self.inner.as_smooth_network()
        network = smooth.linear if smooth is not None else self.inner.as_network()
        assert network is not None
        first = network.layers[0]
        product = np.zeros((len(first.bias), self.inputs))
        for column in range(self.inputs):
            places = np.flatnonzero(self.weight[:, column])
            if len(places) == 1 and self.weight[places[0], column] == 1.0:  # a column of the model as it is
                product[:, column] = first.weight[:, places[0]]
                continue
            product[:, column] = _exact_product(first.weight[:, places], self.weight[places, column])
        layers = Network((Affine(product, first.bias), *network.layers[1:]))
        return layers if smooth is None else SmoothNetwork(layers, smooth.activations)

    def scores(self, x: Floats) -> Floats:
        return self.folded.scores(x)

    def steady_scores(self, x: Floats) -> Floats:
        return self.folded.steady_scores(x)

    def decide(self, scores: Floats) -> NDArray[np.intp]:
        return self.inner.decide(scores)

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """What the deployed model's arithmetic may do on the rows of the box, and what that of the folded one may."""
        least, largest = column_box(self.schema)
        positive, negative = np.maximum(self.weight, 0.0).T, np.minimum(self.weight, 0.0).T
        low = np.clip(lower @ positive + upper @ negative, least, largest)
        high = np.clip(upper @ positive + lower @ negative, least, largest)
        deployed = self.inner.error(low, high, precision, exact_columns(self.schema, precision))
        return deployed + PASSES * self.folded.error(lower, upper, "float64", np.ones(self.inputs, dtype=np.bool_))

    @property
    def search(self) -> str:
        return self.folded.search

    def as_network(self) -> Network | None:
        return self.folded.as_network()

    def as_smooth_network(self) -> SmoothNetwork | None:
        return self.folded.as_smooth_network()

    def without_constants(self, value: Floats) -> Kind:
        return self.folded.without_constants(value)


def _exact_product(rows: Floats, values: Floats) -> Floats:
    """rows @ values, each sum rounded once."""
    whole, bottom = _in_whole(rows)
    others, under = _in_whole(values)
    return np.asarray((whole @ others) / (bottom * under), dtype=np.float64)


def _in_whole(values: Floats) -> tuple[NDArray[np.object_], int]:
    """Numbers as whole numbers over one denominator."""
    ratios = [value.as_integer_ratio() for value in values.ravel().tolist()]
    bottom = max((one for _, one in ratios), default=1)  # all are powers of two
    return np.array([top * (bottom // one) for top, one in ratios], dtype=object).reshape(values.shape), bottom
