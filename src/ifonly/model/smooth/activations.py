"""Smooth activation functions: values and derivatives, their ranges over intervals, and the error of libraries.

Each is convex or concave between its inflection points (*turns*), where its second derivative changes sign:

    convex, then concave             tanh, sigmoid                   one turn, at 0
    convex everywhere                softplus, ELU (alpha <= 1), ReLU, power
    concave, convex, concave         GELU (both forms), SiLU         two turns, at -p and p

These are all the turns that there are, since up to positive factors the second derivatives are

    tanh, sigmoid   -z                                          softplus, ELU   1
    GELU            2 - z^2
    SiLU            2 - z tanh(z / 2)
    GELU by tanh    (1 + 2 w) / (1 + w)^2 - c z tanh(q)         w = 3 k z^2,  q = c (z + k z^3)

and of each of the last three, even in z, the first term falls (or stays) and the second grows with |z|.

`power` of exponent p is a power or logarithm of one number, scaled so that it is convex and no slope is beyond 1:

    p < 1    -(z^p - 1) / p from 1 on (-log z for p = 0), and 1 - z below
    p > 1    z^p / p between 0 and 1, 0 below, and 1 / p + z - 1 above

So its slope is monotone between turns, and the slopes over an interval are between those at its ends and at the turns
inside. GELU and SiLU have one minimum, the others grow.

Libraries do not round exactly. On thousands of values numpy, scipy, torch and onnxruntime, in float32 and in float64,
are off by at most 3 u (1 + |z|), u the unit of the precision (`tests/model/test_smooth.py` measures it anew):
`LIBRARY_UNITS` allows for five times as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.printing import shown

Floats = NDArray[np.float64]
Name: TypeAlias = Literal["relu", "tanh", "sigmoid", "softplus", "gelu", "gelu_tanh", "silu", "elu", "power"]
NAMES: tuple[Name, ...] = ("relu", "tanh", "sigmoid", "softplus", "gelu", "gelu_tanh", "silu", "elu", "power")
"""In the order of their codes in the kernels."""
TURN: dict[str, float] = {
    "tanh": 0.0, "sigmoid": 0.0, "gelu": math.sqrt(2.0), "gelu_tanh": 1.4185040087908284, "silu": 2.3993572805154677,
}  # fmt: skip
LEAST: dict[str, tuple[float, float]] = {
    "gelu": (-0.7517915246935645, -0.16997120747990367),
    "gelu_tanh": (-0.7524614220710163, -0.17004075057125405),
    "silu": (-1.2784645427610738, -0.27846454276107380),
}
"""Where the least value is, and what it is."""
INNER_FACTOR, CUBIC_FACTOR = math.sqrt(2.0 / math.pi), 0.044715
"""Of the GELU that is computed by tanh."""
LIBRARY_UNITS = 16.0
STEEPEST = 1.2
"""No activation has a slope beyond."""
OUTWARD = 1e-12
"""Error of the values and slopes computed here in float64, with a safety factor."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A smooth activation. `alpha` is that of ELU, or the exponent of a power; `off` is the approximation error of the
    deployed function by its definition, for arguments from `off_from` on (torch's softplus is z itself there)."""

    name: Name
    alpha: float = 1.0
    off: float = 0.0
    off_from: float = -math.inf

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in NAMES:
            raise ModelError(f"An activation is one of {', '.join(NAMES)}; got {shown(self.name)}.")
        if self.name == "power":
            if not math.isfinite(self.alpha) or self.alpha == 1.0:
                raise ModelError(f"The exponent of a power is a number other than 1; got {shown(self.alpha)}.")
        elif not 0.0 <= self.alpha <= 1.0:
            raise UnsupportedModel(
                f"ELU with alpha={self.alpha:g} has a kink where it bends down; only alpha from 0 to 1 is supported.",
                operation="elu",
            )

    @property
    def code(self) -> int:
        return NAMES.index(self.name)

    @property
    def falls(self) -> bool:
        """Does it fall anywhere?"""
        return self.name in LEAST or (self.name == "power" and self.alpha < 1.0)

    def __call__(self, z: Floats) -> Floats:
        match self.name:
            case "relu":
                return np.maximum(z, 0.0)
            case "tanh":
                return np.tanh(z)
            case "sigmoid":
                return _sigmoid(z)
            case "softplus":
                return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))
            case "gelu":
                return z * _normal(z)
            case "gelu_tanh":
                return z * _sigmoid(2.0 * _inner(z))
            case "silu":
                return z * _sigmoid(z)
            case "elu":
                return np.where(z > 0.0, z, self.alpha * np.expm1(np.minimum(z, 0.0)))
            case "power":
                return _power(self.alpha, z)

    def slope(self, z: Floats) -> Floats:
        """The derivative."""
        match self.name:
            case "relu":
                return np.where(z > 0.0, 1.0, 0.0)
            case "tanh":
                small = np.exp(-2.0 * np.abs(z))
                return 4.0 * small / (1.0 + small) ** 2
            case "sigmoid":
                small = np.exp(-np.abs(z))
                return small / (1.0 + small) ** 2
            case "softplus":
                return _sigmoid(z)
            case "gelu":
                return _normal(z) + z * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
            case "gelu_tanh":
                part = _sigmoid(2.0 * _inner(z))
                return part + 2.0 * z * INNER_FACTOR * (1.0 + 3.0 * CUBIC_FACTOR * z * z) * part * (1.0 - part)
            case "silu":
                part = _sigmoid(z)
                return part + z * part * (1.0 - part)
            case "elu":
                return np.where(z > 0.0, 1.0, self.alpha * np.exp(np.minimum(z, 0.0)))
            case "power" if self.alpha < 1.0:
                return -(np.maximum(z, 1.0) ** (self.alpha - 1.0))
            case "power":
                return np.clip(z, 0.0, 1.0) ** (self.alpha - 1.0)

    def slopes(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """The least and the largest slope over intervals, outward."""
        ends = self.slope(lower), self.slope(upper)
        least, most = np.minimum(*ends), np.maximum(*ends)
        turn = TURN.get(self.name)
        for at in () if turn is None else (-turn, turn):
            inside, there = (lower <= at) & (at <= upper), self.slope(np.array(at))
            least, most = (
                np.where(inside, np.minimum(least, there), least),
                np.where(inside, np.maximum(most, there), most),
            )
        return least - OUTWARD, most + OUTWARD

    def values(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """The least and the largest value over intervals, outward."""
        ends = self(lower), self(upper)
        least, most = np.minimum(*ends), np.maximum(*ends)
        if self.name in LEAST:
            at, there = LEAST[self.name]
            least = np.where((lower <= at) & (at <= upper), np.minimum(least, there), least)
        slack = OUTWARD * (1.0 + np.maximum(np.abs(least), np.abs(most)))
        return least - slack, most + slack

    def library_error(self, unit: float, lower: Floats, upper: Floats) -> Floats:
        """Error bound of a library's own function, for arguments in the intervals, in a precision."""
        size = np.maximum(np.abs(lower), np.abs(upper))
        if self.name == "relu":
            return np.zeros_like(size)
        if self.name == "power":
            size = (1.0 + np.abs(self.values(lower, upper)).max(axis=0)) * (1.0 + abs(self.alpha))
        error = LIBRARY_UNITS * unit * (1.0 + size) + np.where(upper >= self.off_from, self.off, 0.0)
        return np.where(np.isfinite(size), error, np.inf)


RELU = Activation("relu")


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Activations of the neurons of one layer that differ: each with how many neurons in a row have it."""

    parts: tuple[tuple[Activation, int], ...]

    @classmethod
    def of(cls, layers: Sequence[tuple[Activation | SideBySide, int]]) -> SideBySide:
        """Those of layers, each with how many neurons it has."""
        alone = [one.parts if isinstance(one, SideBySide) else ((one, count),) for one, count in layers]
        return cls(tuple(part for parts in alone for part in parts))

    @property
    def name(self) -> str:
        """Of all but ReLUs."""
        return " and ".join(dict.fromkeys(one.name for one, _ in self.parts if one.name != "relu")) or "relu"

    @property
    def code(self) -> NDArray[np.int64]:
        """Of each neuron."""
        return np.repeat([one.code for one, _ in self.parts], [count for _, count in self.parts])

    @property
    def alpha(self) -> Floats:
        """Of each neuron."""
        return np.repeat([one.alpha for one, _ in self.parts], [count for _, count in self.parts])

    def __call__(self, z: Floats) -> Floats:
        return np.concatenate([one(group) for one, group in self._groups(z)], axis=-1)

    def _groups(self, *ends: Floats) -> list[tuple[Any, ...]]:
        """Each activation with its neurons of arrays."""
        places = np.cumsum([count for _, count in self.parts])[:-1]
        return list(zip([one for one, _ in self.parts], *(np.split(z, places, axis=-1) for z in ends), strict=True))

    def slopes(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """See `Activation.slopes`."""
        least, most = zip(*(one.slopes(low, high) for one, low, high in self._groups(lower, upper)), strict=True)
        return np.concatenate(least, axis=-1), np.concatenate(most, axis=-1)

    def values(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """See `Activation.values`."""
        least, most = zip(*(one.values(low, high) for one, low, high in self._groups(lower, upper)), strict=True)
        return np.concatenate(least, axis=-1), np.concatenate(most, axis=-1)

    def library_error(self, unit: float, lower: Floats, upper: Floats) -> Floats:
        """See `Activation.library_error`."""
        errors = [one.library_error(unit, low, high) for one, low, high in self._groups(lower, upper)]
        return np.concatenate(errors, axis=-1)


_ERFC = np.frompyfunc(math.erfc, 1, 1)


def _sigmoid(z: Floats) -> Floats:
    small = np.exp(-np.abs(z))
    return np.where(z >= 0.0, 1.0, small) / (1.0 + small)


def _power(exponent: float, z: Floats) -> Floats:
    if exponent > 1.0:
        return np.clip(z, 0.0, 1.0) ** exponent / exponent + np.maximum(z - 1.0, 0.0)
    logarithm = np.log(np.maximum(z, 1.0))
    grown = logarithm if exponent == 0.0 else np.expm1(exponent * logarithm) / exponent
    return -(grown + np.minimum(z - 1.0, 0.0))


def _inner(z: Floats) -> Floats:
    return INNER_FACTOR * z * (1.0 + CUBIC_FACTOR * z * z)


def _normal(z: Floats) -> Floats:
    """The distribution function of the normal distribution."""
    return 0.5 * np.asarray(_ERFC(-math.sqrt(0.5) * z), dtype=np.float64)
