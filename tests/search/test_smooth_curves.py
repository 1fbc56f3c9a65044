"""The lines around smooth activations: never crossed, close, and drawn between the right turns."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from harness import compiled

from ifonly.model.smooth import Activation
from ifonly.model.smooth.activations import CUBIC_FACTOR, INNER_FACTOR, NAMES, TURN
from ifonly.solvers.search.smooth.kernels import curves

SINGLE = [name for name in NAMES if name != "power"]
POWERS = [Activation("power", alpha=p) for p in (-2.0, 0.0, 0.01, 0.5, 0.98, 2.0, 2.7)]
KINDS = [Activation(name) for name in SINGLE] + [Activation("elu", alpha=0.3), *POWERS]
IDS = [f"{a.name} {a.alpha:g}" for a in KINDS]
every_kind = pytest.mark.parametrize("activation", KINDS, ids=IDS)


def intervals(seed: int, count: int) -> np.ndarray:
    """Low, high and a reference in between: wide and narrow, near the turns and far from them, also single points."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(0.0, rng.choice([0.3, 2.0, 5.0, 60.0], count))
    middle += rng.choice([0.0, 0.0, math.sqrt(2.0), -math.sqrt(2.0), 2.399357, -2.399357], count)
    half = 10.0 ** rng.uniform(-9.0, 1.8, count) * (rng.random(count) < 0.97)
    low, high = middle - half, middle + half
    return np.stack([low, high, low + (high - low) * rng.random(count)], axis=1)


def samples(low: float, high: float) -> np.ndarray:
    """Points of the interval, its ends, and those near the turns, where lines are nearest."""
    inside = np.concatenate([np.linspace(low, high, 300), *(np.array([t, -t]) for t in TURN.values())])
    return np.clip(inside, low, high)


@pytest.mark.long(keep=2)
@every_kind
def test_no_line_is_crossed(activation: Activation) -> None:
    """Strictly: the lines have room for all rounding, also that of this test."""
    line = compiled(curves.line)
    for low, high, at in intervals(1, 700).tolist():
        z = samples(low, high)
        value = activation(z)
        steep, shift = line(activation.code, activation.alpha, 1.0, low, high, at)
        assert (steep * z + shift >= value - (0.0 if activation.name != "relu" else 1e-14 * np.abs(z).max())).all()
        steep, shift = line(activation.code, activation.alpha, -1.0, low, high, at)
        assert (-steep * z - shift <= value).all(), (low, high, at)
        assert abs(steep) <= curves.STEEPEST


@pytest.mark.parametrize("activation", POWERS, ids=lambda a: f"{a.alpha:g}")
def test_lines_around_powers_of_large_numbers(activation: Activation) -> None:
    """Incomes over their least value: up to a billion, against exact values."""
    line, rng = compiled(curves.line), np.random.default_rng(5)
    with mpmath.workdps(40):
        for low, high in np.sort(10.0 ** rng.uniform(0.0, 9.0, (60, 2)), axis=1).tolist():
            up = line(activation.code, activation.alpha, 1.0, low, high, low + (high - low) * rng.random())
            down = line(activation.code, activation.alpha, -1.0, low, high, low + (high - low) * rng.random())
            for z in np.clip(10.0 ** rng.uniform(np.log10(low), np.log10(high), 40), low, high).tolist():
                exact = exact_power(activation.alpha, mpmath.mpf(z))
                assert mpmath.mpf(up[0]) * z + up[1] >= exact >= -(mpmath.mpf(down[0]) * z + down[1])
                assert abs(activation(np.array([z]))[0] - exact) <= 1e-14 * (1 + abs(exact)) * (
                    1 + abs(activation.alpha)
                )


def exact_power(exponent: float, z: Any) -> Any:
    """By definition, in many digits."""
    if exponent > 1.0:
        return z**exponent / exponent if z <= 1 else 1 / mpmath.mpf(exponent) + z - 1
    if z < 1:
        return 1 - z
    return -mpmath.log(z) if exponent == 0.0 else -(z**exponent - 1) / mpmath.mpf(exponent)


@every_kind
def test_the_shift_of_any_slope_is_the_least(activation: Activation) -> None:
    """`largest_above`, for slopes of tangents, beyond them, and the other way: no line is crossed, and none is farther
    than what 300 samples can tell."""
    largest = compiled(curves.largest_above)
    rng = np.random.default_rng(3)
    for low, high, at in intervals(3, 300).tolist():
        z, width = samples(low, high), high - low
        steep = float(rng.choice([1.0, 1.0, 1.0, -1.0, 0.0, 3.0])) * compiled(curves.slope)(
            activation.code, activation.alpha, at
        )
        for sign in (1.0, -1.0):
            above = sign * activation(z) - sign * steep * z
            shift = largest(activation.code, activation.alpha, sign, sign * steep, low, high)
            assert shift >= above.max() - 1e-14 * np.abs(z).max() * (activation.name == "relu")
            near = 1e-9 + 1e-12 * np.abs(above).max() + 3.0 * (width / 299) ** 2
            near += width / 299 * (activation.name in ("relu", "elu")) * (1.0 + abs(steep))
            assert shift <= above.max() + near, (low, high, steep, sign)


@every_kind
def test_lines_close_in_as_intervals_shrink(activation: Activation) -> None:
    """The distance is at most what curvature allows, (high - low)^2 times half the largest second derivative; ReLU and
    ELU have a kink, where it falls only as fast as the interval."""
    line = compiled(curves.line)
    for low, high, at in intervals(2, 300).tolist():
        if activation.name in ("relu", "elu") and low < 0.0 < high:
            continue
        z, width = samples(low, high), high - low
        up, down = (line(activation.code, activation.alpha, sign, low, high, at) for sign in (1.0, -1.0))
        apart = (up[0] + down[0]) * z + up[1] + down[1]
        assert apart.max() <= 1.2 * width * width + 1e-13 * (1.0 + np.abs(z).max())


@every_kind
def test_the_kernels_have_the_same_functions(activation: Activation) -> None:
    value, slope = compiled(curves.value), compiled(curves.slope)
    for z in np.concatenate([np.linspace(-50.0, 50.0, 401), [0.0, 1e-9, -1e-9, 700.0, -700.0]]).tolist():
        of = np.array([z])
        assert value(activation.code, activation.alpha, z) == pytest.approx(activation(of)[0], rel=1e-14, abs=1e-15)
        assert slope(activation.code, activation.alpha, z) == pytest.approx(
            activation.slope(of)[0], rel=1e-13, abs=1e-15
        )


@every_kind
def test_slopes_and_values_over_intervals(activation: Activation) -> None:
    for low, high, _ in intervals(3, 300).tolist():
        z, ends = samples(low, high), (np.array([low]), np.array([high]))
        for of, (least, most) in (
            (activation(z), activation.values(*ends)),
            (activation.slope(z), activation.slopes(*ends)),
        ):
            assert least[0] <= of.min() and of.max() <= most[0]


@every_kind
def test_slopes_are_derivatives(activation: Activation) -> None:
    z = np.linspace(-8.0, 8.0, 160) + 0.013
    difference = (activation(z + 1e-5) - activation(z - 1e-5)) / 2e-5
    assert activation.slope(z) == pytest.approx(difference, abs=1e-8)


def bends(name: str, z: np.ndarray) -> np.ndarray:
    """The sign of the second derivative, up to a positive factor: of these forms it is proven that they change sign
    where they do and nowhere else (`ifonly.model.smooth.activations`)."""
    match name:
        case "tanh" | "sigmoid":
            return -z
        case "gelu":
            return 2.0 - z * z
        case "silu":
            return 2.0 - z * np.tanh(0.5 * z)
        case "gelu_tanh":
            growth = 1.0 + 3.0 * CUBIC_FACTOR * z * z
            inner = INNER_FACTOR * z * (1.0 + CUBIC_FACTOR * z * z)
            return (2.0 * growth - 1.0) / growth**2 - INNER_FACTOR * z * np.tanh(inner)
        case _:
            return np.ones_like(z)


@pytest.mark.parametrize("name", [name for name in SINGLE if name != "relu"])
def test_the_turns_are_where_the_second_derivative_changes_sign(name: str) -> None:
    z = np.linspace(-7.9, 8.0, 1590) + 1e-3  # off 0, where ELU bends
    second = np.gradient(Activation(name).slope(z), z)
    clear = np.abs(second) > 1e-4
    assert (np.sign(second)[clear] == np.sign(bends(name, z))[clear]).all()
    if TURN.get(name, 0.0):
        at = np.array([TURN[name] * (1 - 1e-14), TURN[name] * (1 + 1e-14)])
        assert bends(name, at)[0] > 0.0 > bends(name, at)[1]
