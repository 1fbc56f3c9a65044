"""A folded network's first layer is the exact product, rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ifonly import Network, Real, Schema
from ifonly.model.folded import Folded


def test_the_first_layer_is_rounded_once() -> None:
    rng = np.random.default_rng(0)
    schema = Schema([Real(f"x{i}", -5, 5) for i in range(6)])
    different = 0
    for least in [-3] * 30 + [-320] * 30:  # down to numbers below the least normal one
        first = rng.normal(size=(8, 6)) * 10.0 ** rng.integers(least, 3, size=(8, 6))
        weight = rng.choice([0.0, 1.0, -3.0, 0.1, 1e-20, 7.0], size=(6, 4))
        weight[:, 0] = np.eye(6)[2]  # a column as it is
        weight[:, 1] = 0.0
        network = Network.of([(first, rng.normal(size=8)), (rng.normal(size=(1, 8)), np.zeros(1))])
        folded = Folded(network, weight, schema).folded.layers[0].weight
        exact = [
            [float(sum((Fraction(w) * Fraction(v) for w, v in zip(row, column, strict=True)), Fraction(0)))
             for column in weight.T.tolist()] for row in first.tolist()
        ]  # fmt: skip
        assert folded.tolist() == exact
        different += int((first @ weight != folded).sum())
    assert different > 100, "products of float64 are rounded more often"
