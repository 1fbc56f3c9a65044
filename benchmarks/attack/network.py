"""What the network says: exactly, and as a deployed model that rounds would."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.attack.space import Feature, Row, decoded, encode

Layers = Sequence[dict[str, Any]]
"""[{"w": [[...], ...], "b": [...]}, ...]"""


def exact(layers: Layers, x: Sequence[float]) -> list[Fraction]:
    """The scores in rational arithmetic on the stored weights."""
    h = [Fraction(value) for value in x]
    for k, layer in enumerate(layers):
        z = [
            sum((Fraction(w) * v for w, v in zip(row, h, strict=True) if w and v), Fraction(b))
            for row, b in zip(layer["w"], layer["b"], strict=True)
        ]
        h = z if k == len(layers) - 1 else [max(v, Fraction(0)) for v in z]
    return h


@dataclass(frozen=True)
class Deployed:
    """The user's own model: one row after another, sums in an order of its own, in float64 or in float32.

    `order` is a seed; rows are points (a number per feature, options by index), as an original is given them.
    """

    features: Sequence[Feature]
    layers: Layers
    precision: str = "float64"
    order: int = 0

    def __call__(self, points: Any) -> Any:
        rows = [decoded(self.features, point) for point in np.atleast_2d(points).tolist()]
        return np.array([self.scores(row) for row in rows], dtype=np.float64)

    def scores(self, row: Row) -> list[float]:
        kind: Any = np.float32 if self.precision == "float32" else float
        with np.errstate(all="ignore"):
            h = [kind(value) for value in encode(self.features, row)]
            for k, layer in enumerate(self.layers):
                chance = random.Random(self.order * 1000 + k)
                z = []
                for weights, bias in zip(layer["w"], layer["b"], strict=True):
                    terms = [kind(w) * v for w, v in zip(weights, h, strict=True)] + [kind(bias)]
                    chance.shuffle(terms)
                    total = terms[0]
                    for term in terms[1:]:
                        total = total + term
                    z.append(total)
                h = z if k == len(self.layers) - 1 else [max(v, kind(0.0)) for v in z]
        return [float(v) for v in h]
