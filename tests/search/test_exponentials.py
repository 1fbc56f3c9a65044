"""The exponential of `model.importers.gaussians`, E(z) = ELU(z) + 1: its lines are bounds, and a sum of it is at least 1
exactly when the sum of exponentials is; in rational numbers, from below and from above."""

from __future__ import annotations

from fractions import Fraction

from harness import compiled
from hypothesis import given
from hypothesis import strategies as st

from ifonly.certificate.check.series import UNIT
from ifonly.certificate.check.softmax import exp_bounds
from ifonly.solvers.search.smooth.kernels import curves
from ifonly.solvers.search.smooth.kernels.layout import ELU, POWER

arguments = st.floats(-100.0, 20.0)
shares = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6)


def exponential(z: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of exp(z)."""
    low, high = (Fraction(end, UNIT) for end in exp_bounds(abs(z)))
    return (low, high) if z >= 0 else (1 / high, 1 / low)


def grown(z: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of E(z)."""
    return (1 + z, 1 + z) if z > 0 else exponential(z)


@given(arguments, arguments, st.floats(0.0, 1.0), shares)
def test_lines_bound_the_exponential(one: float, other: float, near: float, inside: list[float]) -> None:
    low, high = sorted((one, other))
    line, reference = compiled(curves.line), min(max(low + near * (high - low), low), high)
    upper, lower = (line(ELU, 1.0, sign, low, high, reference) for sign in (1.0, -1.0))
    for share in (0.0, 1.0, *inside):
        z = Fraction(min(max(low + share * (high - low), low), high))
        least, most = grown(z)
        assert Fraction(upper[0]) * z + Fraction(upper[1]) + 1 >= least  # which is below most by 2^-250 or so
        assert 1 - Fraction(lower[0]) * z - Fraction(lower[1]) <= most


@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.floats(0.0, 1.0), shares)
def test_lines_bound_a_square_of_either_sign(one: float, other: float, near: float, inside: list[float]) -> None:
    """z^2 = 2 P(z) + 2 P(-z), P the power of exponent 2."""
    low, high = sorted((one, other))
    line, reference = compiled(curves.line), min(max(low + near * (high - low), low), high)
    for sign in (1.0, -1.0):
        above = line(POWER, 2.0, sign, low, high, reference)
        below = line(POWER, 2.0, sign, -high, -low, -reference)
        for share in (0.0, 1.0, *inside):
            z = Fraction(min(max(low + share * (high - low), low), high))
            bound = Fraction(above[0]) * z + Fraction(above[1]) - Fraction(below[0]) * z + Fraction(below[1])
            assert 2 * bound >= Fraction(sign) * z * z


@given(st.lists(st.floats(-60.0, 60.0), min_size=1, max_size=5))
def test_a_sum_of_exponentials_is_compared_with_one(powers: list[float]) -> None:
    taken = [Fraction(z) for z in powers]
    theirs = [sum(ends) for ends in zip(*map(exponential, taken), strict=True)]
    ours = [sum(ends) for ends in zip(*map(grown, taken), strict=True)]
    if theirs[0] >= 1:
        assert ours[1] >= 1
    if theirs[1] < 1:
        assert ours[1] < 1
