"""The checker's bounds of activations, against Decimal arithmetic of many digits, and the facts that its lines rest on."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from certificate.by_enumeration import _curve
from ifonly.certificate.check.activations import LEAST_AT, PLAIN, TURN_BITS, TURNS, C, Curve, K
from ifonly.certificate.check.lines import lines, values_on
from ifonly.certificate.check.logistic import value_bounds
from ifonly.certificate.check.series import UNIT
from ifonly.certificate.check.softmax import BITS

GRID = 80
CURVES = [*(Curve(name) for name in PLAIN), *(Curve("elu", Fraction(alpha)) for alpha in (1.0, 0.3, 0.0)),
          *(Curve("power", Fraction(p)) for p in (-1.7, 0.0, 0.4, 1.25, 2.0, 3.5))]  # fmt: skip
CLOSE = Fraction(1, 10**55)
"""What the decimals may be off by."""


def exactly(curve: Curve, z: int) -> Fraction:
    stated = {"elu": "alpha", "power": "exponent"}.get(curve.name)
    one = curve.name if stated is None else {"name": curve.name, stated: float(curve.alpha).hex()}
    return _curve(Fraction(z, 1 << GRID), one)


def numbers(rng: random.Random, count: int) -> list[int]:
    one = 1 << GRID
    special = [0, one, -one, 12 * one + 1, -13 * one, 129 * one, -130 * one, 1, -1]
    return special + [int(rng.gauss(0.0, 1.0) * 10.0 ** rng.uniform(-6.0, 1.0) * 2.0**GRID) for _ in range(count)]


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_values_are_within_their_bounds(curve: Curve) -> None:
    for z in numbers(random.Random(1), 40):
        low, high = (Fraction(end, UNIT) for end in curve.value(z, GRID))
        assert low - CLOSE <= exactly(curve, z) <= high + CLOSE, z
        assert high - low < Fraction(1, 1 << 100)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_slopes_are_within_their_bounds(curve: Curve) -> None:
    """A difference quotient over a tiny step, of whose error the second derivative is at most 4 here."""
    step = 1 << GRID - 60
    for z in numbers(random.Random(2), 20):
        low, high = (Fraction(end, UNIT) for end in curve.slope(z, GRID))
        quotient = (exactly(curve, z + step) - exactly(curve, z)) * (1 << 60)
        if curve.name != "power" or abs(z) > 1 << GRID - 4:
            room = Fraction(1, 10**9) if curve.name == "power" else Fraction(1, 1 << 57)
            kink = curve.name == "elu" and z in (0, -1)
            assert kink or low - room <= quotient <= high + room, z


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_lines_are_above_and_below(curve: Curve) -> None:
    rng = random.Random(3)
    for low, high in (sorted(rng.sample(numbers(rng, 12), 2)) for _ in range(25)):
        (above, shift), (below, lift) = lines(curve, low, high, GRID)
        least, most = values_on(curve, low, high, GRID)
        gaps = []
        for k in range(25):
            z = low + (high - low) * k // 24
            value = exactly(curve, z) * (1 << GRID)
            up, down = (Fraction(slope * z + s, 1 << 44) for slope, s in ((above, shift), (below, lift)))
            assert down - 1 <= value <= up + 1, (low, high, z)
            assert least - CLOSE <= value <= most + CLOSE
            gaps.append((up - value, value - down))
        wide = Fraction(high - low, 50) + 2  # both touch the curve, at least nearly
        assert min(one for one, _ in gaps) < wide and min(other for _, other in gaps) < wide


@pytest.mark.parametrize("name", TURNS)
def test_the_turns_are_where_they_are_said_to_be(name: str) -> None:
    """What has the sign of the second derivative is surely above 0 on one side, and below on the other."""
    inner, outer = (_bend(name, Fraction(TURNS[name] + k, 1 << TURN_BITS)) for k in (0, 1))
    assert inner[0] > 0 > outer[1]


def _bend(name: str, z: Fraction) -> tuple[Fraction, Fraction]:
    if name == "gelu":
        return 2 - z * z, 2 - z * z
    w, c, k = Fraction(0), Fraction(C), Fraction(K)
    if name == "gelu_tanh":
        w = 3 * k * z * z
    y = z if name == "silu" else 2 * c * (z + k * z**3)
    shares = value_bounds(y.numerator, y.denominator.bit_length() - 1)
    tangents = [2 * Fraction(end, 1 << BITS) - 1 for end in shares]  # tanh(y / 2)
    first, factor = (Fraction(2), z) if name == "silu" else ((1 + 2 * w) / (1 + w) ** 2, c * z)
    return first - factor * tangents[1], first - factor * tangents[0]


@pytest.mark.parametrize("name", TURNS)
def test_the_least_value_is_where_it_is_said_to_be(name: str) -> None:
    one, at = 1 << GRID, int(LEAST_AT[name] * 2.0**GRID)
    least, most = Curve(name).values(-3 * one, 3 * one, GRID)
    assert least <= Curve(name).value(at, GRID)[1] < most and Curve(name).value(at, GRID)[0] - least < UNIT >> 45
    assert Curve(name).values(at + one, 3 * one, GRID)[0] == Curve(name).value(at + one, GRID)[0]


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_on_a_grid_so_fine_that_a_slope_is_no_float(name: str) -> None:
    """The bounds of values jump by 2^-256 in there, which over 2^-2398 is more than floating point has."""
    grid = 2400
    turn = -(TURNS[name] + 1) << grid - TURN_BITS
    for low, high in ((turn - 1, turn + 3), (-turn - 3, -turn + 1)):
        (above, shift), (below, lift) = lines(Curve(name), low, high, grid)
        for z in range(low, high + 1):
            least, most = (end << grid + 44 - BITS for end in Curve(name).value(z, grid))
            assert above * z + shift >= least and below * z + lift <= most
