"""Bounds of elementary functions, exactly: every function gives one from below and one from above, in units of 2^-256.

    log z = n log 2 + 2 atanh((m - 1) / (m + 1)),  z = 2^n m,  1 <= m < 2;    atanh t = t + t^3 / 3 + t^5 / 5 + ...
    pi = 16 atan(1/5) - 4 atan(1/239);    atan t = t - t^3 / 3 + t^5 / 5 - ...
    G(a) = integral of the normal density from 0 to a = (a + a^3 / 3 + a^5 / 15 + ...) / (exp(a^2 / 2) sqrt(2 pi))

A series of positive terms is cut where each further term is less than half of the one before; what is left out is then
less than twice the next term.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from .reading import Refusal
from .softmax import BITS, FARTHEST, exp_bounds

UNIT = 1 << BITS

Ends = tuple[int, int]
"""From below and from above."""


def units(value: int, grid: int) -> Ends:
    """A number of units of 2^-grid."""
    if grid <= BITS:
        return value << BITS - grid, value << BITS - grid
    return value >> grid - BITS, -(-value >> grid - BITS)


def times(one: Ends, other: Ends) -> Ends:
    """The product of two numbers."""
    ends = [a * b for a in one for b in other]
    return min(ends) >> BITS, -(-max(ends) >> BITS)


def _down(a: int, b: int) -> int:
    return a * b >> BITS


def _up(a: int, b: int) -> int:
    return -(-a * b >> BITS)


def exp(power: Ends) -> Ends:
    """exp of a number; of one beyond 128 there is no bound from above, so it is refused."""
    if power[1] > FARTHEST << BITS:
        raise Refusal(f"an activation leads to exp of more than {FARTHEST}")
    return _exp_of(power[0])[0], _exp_of(power[1])[1]


def _exp_of(power: int) -> Ends:
    low, high = exp_bounds(Fraction(min(abs(power), FARTHEST << BITS), UNIT))
    if power >= 0:
        return low, high
    return (0 if power < -(FARTHEST << BITS) else UNIT * UNIT // high), -(-UNIT * UNIT // low)


def exp_of_minus(size: int, grid: int) -> Ends:
    """exp(-size) for a size of at least 0, in units of 2^-grid."""
    far = FARTHEST << grid
    low, high = exp_bounds(Fraction(min(size, far), 1 << grid))
    return (0 if size > far else UNIT * UNIT // high), -(-UNIT * UNIT // low)


def log_of_one_and(w: Ends) -> Ends:
    """log(1 + w) for 0 <= w <= 1: 2 atanh(w / (2 + w))."""
    low, high = max(w[0], 0), min(w[1], UNIT)
    least = 2 * _atanh((low << BITS) // (2 * UNIT + low))[0]
    return least, 2 * _atanh(-(-(high << BITS) // (2 * UNIT + high)))[1]


def log(z: int, grid: int) -> Ends:
    """log of a number above 0, in units of 2^-grid."""
    power = z.bit_length() - 1
    top = (z - (1 << power)) << BITS
    bottom = z + (1 << power)
    least, most = 2 * _atanh(top // bottom)[0], 2 * _atanh(-(-top // bottom))[1]
    whole = power - grid
    low, high = _log_of_two()
    return least + whole * (low if whole > 0 else high), most + whole * (high if whole > 0 else low)


@lru_cache(maxsize=1)
def _log_of_two() -> Ends:
    return 2 * _atanh(UNIT // 3)[0], 2 * _atanh(-(-UNIT // 3))[1]


def _atanh(t: int) -> Ends:
    """atanh of t, at most 1/3 or so: each term is less than a quarter of the one before."""
    low, high, least, most, k = 0, 0, t, t, 1
    while most > 1:
        low, high = low + least // k, high - (-most // k)
        least, most, k = _down(_down(least, t), t), _up(_up(most, t), t), k + 2
    return low, high + 2 * most


@lru_cache(maxsize=1)
def root_of_two_pi() -> Ends:
    """The square root of 2 pi."""
    first, second = _atan(5), _atan(239)
    low, high = 16 * first[0] - 4 * second[1], 16 * first[1] - 4 * second[0]
    return math.isqrt(2 * low << BITS), math.isqrt(2 * high << BITS) + 1


def _atan(n: int) -> Ends:
    """atan(1 / n): the terms fall and alternate, and each is rounded by less than 1."""
    total, term, k = 0, UNIT // n, 0
    while term:
        total += -(term // (2 * k + 1)) if k & 1 else term // (2 * k + 1)
        term, k = term // (n * n), k + 1
    return total - 2 * k - 2, total + 2 * k + 2


def normal(size: int, grid: int) -> tuple[Ends, Ends]:
    """Of a = size 2^-grid from 0 to 12: the integral G of the normal density from 0 to a, and the density at a."""
    a = units(size, grid)
    square = (a[0] * a[0] >> BITS, -(-a[1] * a[1] >> BITS))
    below = (a[0] * a[0] >> BITS + 1, -(-a[1] * a[1] >> BITS + 1))  # a^2 / 2
    root = root_of_two_pi()
    bottom = (_exp_of(below[0])[0] * root[0] >> BITS, -(-_exp_of(below[1])[1] * root[1] >> BITS))
    low, high, least, most, k = 0, 0, *a, 3
    while most > 1 or 2 * square[1] > k << BITS:
        low, high = low + least, high + most
        least, most, k = _down(least, square[0]) // k, -(-_up(most, square[1]) // k), k + 2
    high += 2 * most + 2
    integral = (low << BITS) // bottom[1], -((-high << BITS) // bottom[0])
    return integral, (UNIT * UNIT // bottom[1], -(-UNIT * UNIT // bottom[0]))
