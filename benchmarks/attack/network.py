"""What the network says: exactly, and as a deployed model that rounds would."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.attack.space import Feature, Row, decoded, encode

Layers = Sequence[dict[str, Any]]
"""[{"w": [[...], ...], "b": [...]}, ...]"""


class Exact:
    """The network in exact arithmetic on its stored weights: integers, times a power of two per layer."""

    def __init__(self, layers: Layers) -> None:
        self.layers = []
        for layer in layers:
            w = [[Fraction(x) for x in row] for row in layer["w"]]
            b = [Fraction(x) for x in layer["b"]]
            bits = max(x.denominator.bit_length() - 1 for row in [*w, b] for x in row)
            self.layers.append(([[int(x * 2**bits) for x in row] for row in w], [int(x * 2**bits) for x in b], bits))

    def __call__(self, x: Sequence[Any]) -> list[Fraction]:
        numbers = [Fraction(value) for value in x]
        scale = max(v.denominator.bit_length() - 1 for v in numbers)
        h = [int(v * 2**scale) for v in numbers]
        for k, (w, b, bits) in enumerate(self.layers):
            z = [
                sum(a * v for a, v in zip(row, h, strict=True) if a and v) + (c << scale)
                for row, c in zip(w, b, strict=True)
            ]
            h = z if k == len(self.layers) - 1 else [max(v, 0) for v in z]
            scale += bits
        return [Fraction(v, 2**scale) for v in h]


def exact(layers: Layers, x: Sequence[Any]) -> list[Fraction]:
    return Exact(layers)(x)


@lru_cache(maxsize=256)
def order(seed: int, many: int) -> tuple[int, ...]:
    """In which order the terms of a sum are added."""
    return tuple(random.Random(seed).sample(range(many), many))


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
                z = []
                first, *rest = order(self.order * 1000 + k, len(h) + 1)
                for weights, bias in zip(layer["w"], layer["b"], strict=True):
                    terms = [kind(w) * v for w, v in zip(weights, h, strict=True)] + [kind(bias)]
                    total = terms[first]
                    for at in rest:
                        total = total + terms[at]
                    z.append(total)
                h = z if k == len(self.layers) - 1 else [max(v, kind(0.0)) for v in z]
        return [float(v) for v in h]
