"""Smooth activations in exact arithmetic: their values and slopes from both sides, and how they bend.

    softplus    log(1 + exp(z))                                    convex, slope s(z)
    elu         z from 0 on, alpha (exp(z) - 1) below              convex for 0 <= alpha <= 1
    power       p < 1: -(z^p - 1) / p from 1 on (p = 0: -log z), 1 - z below
                p > 1: z^p / p between 0 and 1, 0 below, z - 1 + 1 / p above           convex
    silu        z s(z)                                             concave, convex, concave
    gelu        z times the integral of the normal density up to z         as silu
    gelu_tanh   z s(2 c (z + k z^3)), c and k the float64 of C and K       as silu

with s(z) = 1 / (1 + exp(-z)). The last three have f(-z) = f(z) - z, fall up to a point below 0, grow from there, and
bend at two turns -p and p, of which `turn` says where they are. The logistic function has lines of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from . import logistic
from .series import UNIT, Ends, exp, exp_of_minus, log, log_of_one_and, normal, times, units
from .softmax import BITS, FARTHEST

C, K = 0.7978845608028654, 0.044715
FAR = 12
"""Of GELU: beyond this the normal density counts as that at this."""
TURN_BITS = 60
TURNS = {"gelu": 1630477228166597776, "gelu_tanh": 1635423776105965834, "silu": 2766270605941285588}
"""In units of 2^-60: the turn is between this and one more."""
LEAST_AT = {"gelu": -0.7517915246935645, "gelu_tanh": -0.7524614220710163, "silu": -1.2784645427610738}
"""Where the least value is, about."""
PLAIN = ("softplus", "gelu", "gelu_tanh", "silu")
LOGISTIC, IDENTITY = "sigmoid", "identity"


@dataclass(frozen=True, slots=True)
class Curve:
    """An activation of a neuron that is no ReLU. `alpha` is that of ELU, or the exponent of a power."""

    name: str
    alpha: Fraction = Fraction(1)

    @property
    def turn(self) -> int | None:
        """None: convex everywhere."""
        return TURNS.get(self.name)

    @property
    def may_be_negative(self) -> bool:
        return self.name not in (LOGISTIC, "softplus")

    def value(self, z: int, grid: int) -> Ends:
        """Of z, in units of 2^-grid: in units of 2^-256."""
        return _bounds(self, z, grid)[0]

    def slope(self, z: int, grid: int) -> Ends:
        return _bounds(self, z, grid)[1]

    def values(self, low: int, high: int, grid: int) -> Ends:
        """The least and the largest value on an interval, outward."""
        first, last = self.value(low, grid), self.value(high, grid)
        least, most = min(first[0], last[0]), max(first[1], last[1])
        if self.turn is not None and self.slope(low, grid)[0] < 0 < self.slope(high, grid)[1]:
            least = min(least, _least_value(self))
        return least, most

    def guess(self, z: float) -> tuple[float, float]:
        """Value and slope in floating point."""
        return GUESSES[self.name](z, float(self.alpha))


@lru_cache(maxsize=512)
def _bounds(curve: Curve, z: int, grid: int) -> tuple[Ends, Ends]:
    """Value and slope."""
    match curve.name:
        case "sigmoid":
            return logistic.value_bounds(z, grid), logistic.slope_bounds(z, grid)
        case "identity":
            return units(z, grid), (UNIT, UNIT)
        case "softplus":
            low, high = log_of_one_and(exp_of_minus(abs(z), grid))
            least, most = units(max(z, 0), grid)
            return (least + low, most + high), logistic.value_bounds(z, grid)
        case "elu":
            return _elu(curve.alpha, z, grid)
        case "power":
            return _power(curve.alpha, z, grid)
    value, slope = {"silu": _silu, "gelu": _gelu, "gelu_tanh": _gelu_tanh}[curve.name](abs(z), grid)
    if z >= 0:
        return value, slope
    low, high = units(-z, grid)
    return (value[0] - high, value[1] - low), (UNIT - slope[1], UNIT - slope[0])


def _elu(alpha: Fraction, z: int, grid: int) -> tuple[Ends, Ends]:
    if z >= 0:
        return units(z, grid), (UNIT, UNIT)
    low, high = _share(exp_of_minus(-z, grid), alpha)
    least, most = _share((UNIT, UNIT), alpha)
    return (low - most, high - least), (low, high)


def _share(ends: Ends, of: Fraction) -> Ends:
    """A multiple of a number."""
    products = [end * of.numerator for end in ends]
    return min(products) // of.denominator, -(-max(products) // of.denominator)


def _power(exponent: Fraction, z: int, grid: int) -> tuple[Ends, Ends]:
    """A power or a logarithm of a number, and its slope: convex, and straight outside."""
    one, (low, high) = 1 << grid, units(z, grid)
    if exponent < 1:
        if z <= one:
            return (UNIT - high, UNIT - low), (-UNIT, -UNIT)
        grown = log(z, grid)
        slope = exp(_share(grown, exponent - 1))
        if exponent:
            raised = exp(_share(grown, exponent))
            grown = _share((raised[0] - UNIT, raised[1] - UNIT), 1 / exponent)
        return (-grown[1], -grown[0]), (-slope[1], -slope[0])
    if z <= 0:
        return (0, 0), (0, 0)
    part = _share((UNIT, UNIT), 1 / exponent)
    if z >= one:
        return (low - UNIT + part[0], high - UNIT + part[1]), (UNIT, UNIT)
    grown = log(z, grid)
    return _share(exp(_share(grown, exponent)), 1 / exponent), exp(_share(grown, exponent - 1))


def _silu(a: int, grid: int) -> tuple[Ends, Ends]:
    """Of a >= 0: s + a s (1 - s) is its slope, and a (1 - s(a)) falls from 2 on."""
    part, size = logistic.value_bounds(a, grid), units(a, grid)
    rest = UNIT - part[1], UNIT - part[0]
    if a > FARTHEST << grid:
        return times(size, part), (part[0], UNIT + FARTHEST * rest[1])
    low, high = times(times(size, part), rest)
    return times(size, part), (part[0] + low, part[1] + high)


def _gelu(a: int, grid: int) -> tuple[Ends, Ends]:
    """Of a >= 0: 1/2 + G + a density is its slope. Beyond 12, a times the integral above a is less than the density,
    and a times the density falls."""
    size, half = units(a, grid), UNIT >> 1
    if a > FAR << grid:
        _, (_, most) = normal(FAR << grid, grid)
        return (size[0] - most, size[1]), (UNIT - most, UNIT + FAR * most)
    integral, density = normal(a, grid)
    low, high = times(size, density)
    up_to = half + integral[0], half + integral[1]
    return times(size, up_to), (up_to[0] + low, up_to[1] + high)


def _gelu_tanh(a: int, grid: int) -> tuple[Ends, Ends]:
    """Of a >= 0, with y = 2 c (a + k a^3): s(y) + a y' s (1 - s) is its slope, where a y' <= 3 y, and y (1 - s(y))
    falls from 2 on."""
    z, factor, cubic = Fraction(a, 1 << grid), 2 * Fraction(C), Fraction(K)
    y = factor * (z + cubic * z * z * z)
    fine = y.denominator.bit_length() - 1
    part, size = logistic.value_bounds(y.numerator, fine), units(a, grid)
    rest = UNIT - part[1], UNIT - part[0]
    if y > FARTHEST:
        return times(size, part), (part[0], UNIT + 3 * FARTHEST * rest[1])
    inner = factor * (z + 3 * cubic * z * z * z)
    ends = (inner.numerator << BITS) // inner.denominator
    low, high = times(times((ends, ends + 1), part), rest)
    return times(size, part), (part[0] + low, part[1] + high)


@lru_cache(maxsize=8)
def _least_value(curve: Curve) -> int:
    """At most the least value: between the turns, which are less than 3 away from 0, it is above each tangent."""
    at = int(LEAST_AT[curve.name] * 2.0**BITS)
    low, high = curve.slope(at, BITS)
    return curve.value(at, BITS)[0] - 6 * max(-low, high)


# ---------------------------------------------------------------------- in floating point: guesses


def _sigmoid(z: float) -> float:
    small = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else small) / (1.0 + small)


def _guess_softplus(z: float, _: float) -> tuple[float, float]:
    return max(z, 0.0) + math.log1p(math.exp(-abs(z))), _sigmoid(z)


def _guess_elu(z: float, alpha: float) -> tuple[float, float]:
    return (z, 1.0) if z >= 0.0 else (alpha * math.expm1(z), alpha * math.exp(z))


def _guess_power(z: float, exponent: float) -> tuple[float, float]:
    if exponent > 1.0:
        inside = min(max(z, 0.0), 1.0)
        return inside**exponent / exponent + max(z - 1.0, 0.0), inside ** (exponent - 1.0)
    if z <= 1.0:
        return 1.0 - z, -1.0
    grown = math.log(z) if exponent == 0.0 else (z**exponent - 1.0) / exponent
    return -grown, -(z ** (exponent - 1.0))


def _guess_silu(z: float, _: float) -> tuple[float, float]:
    part = _sigmoid(z)
    return z * part, part + z * part * (1.0 - part)


def _guess_gelu(z: float, _: float) -> tuple[float, float]:
    part = 0.5 * math.erfc(-math.sqrt(0.5) * z)
    return z * part, part + z * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def _guess_gelu_tanh(z: float, _: float) -> tuple[float, float]:
    square = K * z * z
    part = _sigmoid(2.0 * C * z * (1.0 + square))
    return z * part, part + 2.0 * z * C * (1.0 + 3.0 * square) * part * (1.0 - part)


GUESSES: dict[str, Callable[[float, float], tuple[float, float]]] = {
    "softplus": _guess_softplus, "elu": _guess_elu, "power": _guess_power,
    "silu": _guess_silu, "gelu": _guess_gelu, "gelu_tanh": _guess_gelu_tanh,
}  # fmt: skip
