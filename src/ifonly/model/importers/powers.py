"""Powers and logarithms of one number, as sums that networks take for any number (`model.smooth`).

    offset + sum_k scale_k T(Z_k; p_k),    Z_k = max(factor_k x + shift_k, floor_k) > 0
    T(Z; p) = (Z^p - 1) / p,   log Z for p = 0

np.log1p is T(1 + x; 0), np.sqrt 1 + T(x; 1/2) / 2, Box-Cox is T itself, and Yeo-Johnson, of numbers on both sides of 0,

    T(max(1 + x, 1); p) - T(max(1 - x, 1); 2 - p)

and a square, of numbers on both sides, 2 T(max(x, 0); 2) + 2 T(max(-x, 0); 2) + 2.

A root is as steep as one likes near 0. Whole numbers that begin there are linear up to the second one (`ramp`), which
is exact at all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ifonly.model.flow import Flow
from ifonly.model.smooth import Activation
from ifonly.schema import Integer, Numeric

STEEP = 1e-9
"""Least ratio of the ends of an interval over which a power below 1 is taken: a root from 0 is infinitely steep."""
MOST_POWER = 8.0
UNITS = 16.0 * 2.0**-53
"""What libraries lose of Z^p by cancellation, where they subtract 1 and divide by p."""


@dataclass(frozen=True, slots=True)
class Power:
    """scale T(max(factor x + shift, floor); power); `floor` is None where it makes no difference."""

    power: float
    scale: float
    factor: float
    shift: float
    floor: float | None = None

    def ends(self, lower: float, upper: float) -> tuple[float, float]:
        """The least and the largest Z over an interval of x."""
        low, high = sorted((self.factor * lower + self.shift, self.factor * upper + self.shift))
        return (low, high) if self.floor is None else (max(low, self.floor), max(high, self.floor))


@dataclass(frozen=True, slots=True)
class Powers:
    """offset + the sum of the terms, and of a function that is linear from each of `ramp` to the next (x, value)."""

    terms: tuple[Power, ...]
    offset: float = 0.0
    ramp: tuple[tuple[float, float], ...] = ()

    def scaled(self, factor: float, shift: float) -> Powers:
        """factor * value + shift."""
        return Powers(
            tuple(replace(one, scale=factor * one.scale) for one in self.terms),
            factor * self.offset + shift,
            tuple((x, factor * value) for x, value in self.ramp),
        )


def function_powers(name: str, factor: float, shift: float, feature: Numeric) -> Powers | None:
    """A function of numpy of factor x + shift; None where it is no such sum over the feature's interval."""
    ends = factor * feature.lower + shift, factor * feature.upper + shift
    if name == "square" and min(ends) < 0.0 < max(ends):
        sides = tuple(Power(2.0, 2.0, sign * factor, sign * shift, 0.0) for sign in (1.0, -1.0))
        return _possible(Powers(sides, 2.0), feature)
    sign = -1.0 if max(ends) <= 0.0 else 1.0
    forms: dict[str, tuple[float, float, float, float]] = {  # power, scale, what is added to x, offset
        "log": (0.0, 1.0, 0.0, 0.0),
        "log2": (0.0, 1.0 / math.log(2.0), 0.0, 0.0),
        "log10": (0.0, 1.0 / math.log(10.0), 0.0, 0.0),
        "log1p": (0.0, 1.0, 1.0, 0.0),
        "sqrt": (0.5, 0.5, 0.0, 1.0),
        "cbrt": (1.0 / 3.0, sign / 3.0, 0.0, sign),
        "square": (2.0, 2.0, 0.0, 1.0),
        "reciprocal": (-1.0, -sign, 0.0, sign),
    }
    if name not in forms:
        return None
    power, scale, added, offset = forms[name]
    sign = sign if name in ("cbrt", "square", "reciprocal") else 1.0
    return _possible(Powers((Power(power, scale, sign * factor, sign * shift + added),), offset), feature)


def box_cox(power: float, factor: float, shift: float, feature: Numeric) -> Powers | None:
    """T(factor x + shift; power)."""
    return _possible(Powers((Power(power, 1.0, factor, shift),)), feature)


def yeo_johnson(power: float, factor: float, shift: float, feature: Numeric) -> Powers | None:
    """Of factor x + shift, on either side of 0."""
    ends = factor * feature.lower + shift, factor * feature.upper + shift
    floor = None if min(ends) >= 0.0 or max(ends) <= 0.0 else 1.0
    above = Power(power, 1.0, factor, 1.0 + shift, floor)
    below = Power(2.0 - power, -1.0, -factor, 1.0 - shift, floor)
    terms = (above, below) if floor else (above,) if min(ends) >= 0.0 else (below,)
    return _possible(Powers(terms), feature)


def _possible(powers: Powers, feature: Numeric) -> Powers | None:
    """The sum where each term can be bounded, with a ramp where a root of whole numbers begins at 0."""
    terms, offset, ramp = [], powers.offset, powers.ramp
    for one in powers.terms:
        low, high = one.ends(feature.lower, feature.upper)
        if not (math.isfinite(one.power) and abs(one.power) <= MOST_POWER and high > 0.0):
            return None
        if low > STEEP * high or (one.power > 1.0 and low >= 0.0):
            terms.append(one)
            continue
        if not (isinstance(feature, Integer) and low == 0.0 < one.power < 1.0 and one.factor > 0.0 and not ramp):
            return None
        second = one.factor * (feature.lower + feature.step) + one.shift
        rise = one.scale * second**one.power / one.power
        ramp = ((feature.lower, 0.0), (feature.lower + feature.step, rise), (feature.upper, rise))
        offset -= rise
        terms.append(replace(one, floor=second))
    return Powers(tuple(terms), offset, ramp)


def flow_of_powers(powers: Powers, number: Flow, feature: Numeric, name: str) -> Flow:
    """The sum as values of a network; `number` is the flow of the feature's one column."""
    flows = [_term(one, number, one.ends(feature.lower, feature.upper), name) for one in powers.terms]
    if powers.ramp:
        knots, values = (np.array(part) for part in zip(*powers.ramp, strict=True))
        flows.append(number.piecewise_linear(knots, values[:, None], name=name))
    total = flows[0]
    for flow in flows[1:]:
        total = total.plus(flow, name=name)
    return total.scale(1.0, powers.offset, name=name)


def _term(one: Power, number: Flow, ends: tuple[float, float], name: str) -> Flow:
    """scale T(Z; p), by the activation of Z over its least value, or over its largest for a power above 1."""
    low, high = ends
    argument = number.scale(one.factor, one.shift, name=name)
    if one.floor is not None and not one.floor == 0.0 < one.power - 1.0:  # the activation is 0 below 0 by itself
        argument = argument.scale(1.0, -one.floor, name=name).relu().scale(1.0, one.floor, name=name)
    if one.power == 1.0:
        return argument.scale(one.scale, -one.scale, name=name)
    unit = high if one.power > 1.0 else low
    size = unit**one.power
    off = 0.0 if one.power == 0.0 else UNITS * (max(low**one.power, high**one.power) + 1.0) / (abs(one.power) * size)
    curve = argument.scale(1.0 / unit, name=name).smooth(Activation("power", one.power, off))
    if one.power > 1.0:
        return curve.scale(one.scale * size, -one.scale / one.power, name=name)
    start = math.log(unit) if one.power == 0.0 else math.expm1(one.power * math.log(unit)) / one.power
    return curve.scale(-one.scale * size, one.scale * start, name=name)
