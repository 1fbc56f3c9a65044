"""Linear bounds of an activation on an interval: for every l <= z <= u,  s z + t <= a(z) <= S z + T.

With b = a for the upper line and b = -a for the lower one, a slope m is chosen first, then the least shift for which
m z + t is proven to be above b:

    where b is convex    its largest distance from a line is at an end
    where b is concave   b is below its tangent at any point e, so the largest distance is that of the tangent, at an
                         end; at e where the slope of b is m, or at the end where b falls away from the line, that is b

so a badly chosen slope costs tightness and never the proof. Slopes are those of a tangent where b is concave at the
point of reference; where b is convex beside that, of one that reaches over the end there (`_touching`); else of the
chord. The shift is `PAD` units of rounding larger than it is computed, for all that went into it.
"""

from __future__ import annotations

import math

from numba import njit

from ifonly.solvers.search.kernels.layout import INNER
from ifonly.solvers.search.smooth.kernels.layout import (
    GELU,
    GELU_TANH,
    POWER,
    RELU,
    SIGMOID,
    SILU,
    SOFTPLUS,
    TANH,
)

INNER_FACTOR, CUBIC_FACTOR = math.sqrt(2.0 / math.pi), 0.044715
HALF_ROOT, NORMAL = math.sqrt(0.5), 1.0 / math.sqrt(2.0 * math.pi)
GELU_TURN, GELU_TANH_TURN, SILU_TURN = math.sqrt(2.0), 1.4185040087908284, 2.3993572805154677
NARROW = 1e-7
"""An interval that is shorter than this, relative to where it is, has the slope of its middle."""
HALVINGS = 14
SLOPE_HALVINGS = 16
STEEP = 1e6
"""A slope that is far beyond those of all activations."""
PAD = 64.0 * 2.0**-53
STEEPEST = 1.2
"""No activation has a slope beyond."""


@njit(**INNER)
def _sigmoid(z):
    small = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else small) / (1.0 + small)


@njit(**INNER)
def _power(exponent, z):
    """A power of z, scaled: see `model.smooth.activations`."""
    if exponent > 1.0:
        return min(max(z, 0.0), 1.0) ** exponent / exponent + max(z - 1.0, 0.0)
    logarithm = math.log(max(z, 1.0))
    grown = logarithm if exponent == 0.0 else math.expm1(exponent * logarithm) / exponent
    return -(grown + min(z - 1.0, 0.0))


@njit(**INNER)
def value(code, alpha, z):
    """The activation of z."""
    if code == RELU:
        return max(z, 0.0)
    if code == TANH:
        return math.tanh(z)
    if code == SIGMOID:
        return _sigmoid(z)
    if code == SOFTPLUS:
        return max(z, 0.0) + math.log1p(math.exp(-abs(z)))
    if code == GELU:
        return 0.5 * z * math.erfc(-z * HALF_ROOT)
    if code == GELU_TANH:
        return z * _sigmoid(2.0 * INNER_FACTOR * z * (1.0 + CUBIC_FACTOR * z * z))
    if code == SILU:
        return z * _sigmoid(z)
    if code == POWER:
        return _power(alpha, z)
    return z if z > 0.0 else alpha * math.expm1(z)


@njit(**INNER)
def slope(code, alpha, z):
    """Its derivative at z."""
    if code == RELU:
        return 1.0 if z > 0.0 else 0.0
    if code == TANH:
        small = math.exp(-2.0 * abs(z))
        return 4.0 * small / ((1.0 + small) * (1.0 + small))
    if code == SIGMOID:
        small = math.exp(-abs(z))
        return small / ((1.0 + small) * (1.0 + small))
    if code == SOFTPLUS:
        return _sigmoid(z)
    if code == GELU:
        return 0.5 * math.erfc(-z * HALF_ROOT) + z * NORMAL * math.exp(-0.5 * z * z)
    if code == GELU_TANH:
        part = _sigmoid(2.0 * INNER_FACTOR * z * (1.0 + CUBIC_FACTOR * z * z))
        return part + 2.0 * z * INNER_FACTOR * (1.0 + 3.0 * CUBIC_FACTOR * z * z) * part * (1.0 - part)
    if code == SILU:
        part = _sigmoid(z)
        return part + z * part * (1.0 - part)
    if code == POWER:
        return -(max(z, 1.0) ** (alpha - 1.0)) if alpha < 1.0 else min(max(z, 0.0), 1.0) ** (alpha - 1.0)
    return 1.0 if z > 0.0 else alpha * math.exp(z)


@njit(**INNER)
def _turn(code):
    """The activation is concave or convex on either side of +-turn, and convex in between."""
    if code in (TANH, SIGMOID):
        return 0.0
    if code == GELU:
        return GELU_TURN
    if code == GELU_TANH:
        return GELU_TANH_TURN
    if code == SILU:
        return SILU_TURN
    return math.inf


@njit(**INNER)
def _concave(code, sign, low, high):
    """Where sign * a is concave and a tangent may be taken, if it is on one stretch of [low, high] only; else
    nothing."""
    turn = _turn(code)
    if turn == 0.0:
        return (0.0, math.inf) if sign > 0.0 else (-math.inf, 0.0)
    if sign < 0.0:
        return -turn, turn
    if high > turn and low >= -turn:
        return turn, math.inf
    if low < -turn and high <= turn:
        return -math.inf, -turn
    return math.inf, -math.inf


@njit(**INNER)
def _touching(code, alpha, sign, end, near, far):
    """The point nearest to `near`, up to `far`, whose tangent is not below sign * a at the end; NaN if there is
    none."""
    there = sign * value(code, alpha, end)
    good, bad = far, near
    if sign * (value(code, alpha, good) + slope(code, alpha, good) * (end - good)) < there:
        return math.nan
    for _ in range(HALVINGS):
        middle = 0.5 * (good + bad)
        if sign * (value(code, alpha, middle) + slope(code, alpha, middle) * (end - middle)) >= there:
            good = middle
        else:
            bad = middle
    return good


@njit(**INNER)
def _best_slope(code, alpha, sign, low, high, reference):
    """A slope for a line above sign * a, and the point where it is that of the tangent."""
    if high - low <= NARROW * (1.0 + abs(low) + abs(high)):
        middle = 0.5 * (low + high)
        return sign * slope(code, alpha, middle), middle
    first, last = _concave(code, sign, low, high)
    start, end = max(low, first), min(high, last)
    if start < end:
        from_left, from_right = start, end
        if low < first:
            from_left = _touching(code, alpha, sign, low, start, end)
        if high > last:
            from_right = _touching(code, alpha, sign, high, end, start)
        if from_left <= from_right:
            point = min(max(reference, from_left), from_right)
            return sign * slope(code, alpha, point), point
    return sign * (value(code, alpha, high) - value(code, alpha, low)) / (high - low), 0.5 * (low + high)


@njit(**INNER)
def _above_concave(code, alpha, sign, m, point, low, high):
    """At most this much is sign * a above m z on [low, high], where it is concave."""
    if sign * slope(code, alpha, low) <= m:
        return sign * value(code, alpha, low) - m * low
    if sign * slope(code, alpha, high) >= m:
        return sign * value(code, alpha, high) - m * high
    at = min(max(point, low), high)
    there, steep = sign * value(code, alpha, at), sign * slope(code, alpha, at)
    return max(there + steep * (low - at) - m * low, there + steep * (high - at) - m * high)


@njit(**INNER)
def _most_above_concave(code, alpha, sign, m, low, high):
    """At most this much is sign * a above m z on [low, high], where it is concave: by the tangents at both ends of a
    short interval in which the slope is m."""
    left, right = low, high
    if sign * slope(code, alpha, left) <= m:
        return sign * value(code, alpha, left) - m * left
    if sign * slope(code, alpha, right) >= m:
        return sign * value(code, alpha, right) - m * right
    for _ in range(SLOPE_HALVINGS):
        middle = 0.5 * (left + right)
        if sign * slope(code, alpha, middle) >= m:
            left = middle
        else:
            right = middle
    from_left = sign * value(code, alpha, left) - m * left + (sign * slope(code, alpha, left) - m) * (right - left)
    from_right = sign * value(code, alpha, right) - m * right + (m - sign * slope(code, alpha, right)) * (right - left)
    return min(from_left, from_right)


@njit(**INNER)
def largest_above(code, alpha, sign, m, low, high):
    """The least shift, or next to nothing more, with which a line of slope m is above sign * a on [low, high]."""
    return _shift(code, alpha, sign, m, math.nan, low, high)


@njit(**INNER)
def bend(code, alpha, low, high):
    """About how far the activation is from a line on [low, high]."""
    left, middle, right = slope(code, alpha, low), slope(code, alpha, 0.5 * (low + high)), slope(code, alpha, high)
    return 0.125 * (high - low) * (max(left, middle, right) - min(left, middle, right))


@njit(**INNER)
def _shift(code, alpha, sign, m, point, low, high):
    """The shift of a line of slope m that is above sign * a on [low, high]; the tangent where it is concave is that of
    the point, or (NaN) of where the slope is m."""
    turn = _turn(code)
    most = -math.inf
    for piece in range(3):
        first = low if piece == 0 else max(low, -turn if piece == 1 else turn)
        last = high if piece == 2 else min(high, turn if piece == 1 else -turn)
        if first > last:
            continue
        convex = piece == 1 or (turn == 0.0 and piece == 0)
        if convex == (sign > 0.0):
            ends = max(sign * value(code, alpha, first) - m * first, sign * value(code, alpha, last) - m * last)
            most = max(most, ends)
        elif math.isnan(point):
            most = max(most, _most_above_concave(code, alpha, sign, m, first, last))
        else:
            most = max(most, _above_concave(code, alpha, sign, m, point, first, last))
    size = abs(value(code, alpha, low)) + abs(value(code, alpha, high))
    return most + PAD * (size + abs(m) * max(abs(low), abs(high)) + 2.0 * (high - low)) + 1e-300


@njit(**INNER)
def line(code, alpha, sign, low, high, reference):
    """Slope and shift of a line above sign * a on [low, high], close to it at the reference."""
    if code == RELU:
        if low >= 0.0:
            return sign, 0.0
        if high <= 0.0:
            return 0.0, 0.0
        if sign > 0.0:
            return high / (high - low), -low * (high / (high - low))
        return (-1.0, 0.0) if reference > 0.0 else (0.0, 0.0)
    m, point = _best_slope(code, alpha, sign, low, high, reference)
    return m, _shift(code, alpha, sign, m, point, low, high)


@njit(**INNER)
def size(code, alpha, low, high):
    """The largest absolute value on [low, high], or a little more."""
    most = max(abs(value(code, alpha, low)), abs(value(code, alpha, high)))
    return max(most, 0.3) if code in (GELU, GELU_TANH, SILU) else most
