"""The probability of one of several classes: a curve, and tangent planes around it, with exact bounds of exp.

    s_i - log sum_{j != i} exp(s_j) - t - margin >= 0,    t = log(p / (1 - p))

With c_j = s_i - s_j - t - margin that is  sum_j exp(-c_j) <= 1.  And for any weights w_j >= 0 of sum 1, every such row
has  s_i - sum_j w_j s_j - H - t - margin >= 0  where  H <= -sum_j w_j log w_j.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .reading import CheckBudget, Refusal, listed, number, whole

PARTS = 1 << 40
"""Weights are multiples of 2^-40."""
MAX_PLANES = 1_000
BITS, HALVINGS, TERMS = 256, 16, 24
FARTHEST = 128
"""exp(-this) and less is counted as exp(-this)."""

ScoreRows = list[tuple[dict[int, int], float | Fraction]]


def exp_bounds(y: Fraction) -> tuple[int, int]:
    """exp(y) from below and above, in units of 2^-BITS, for 0 <= y <= FARTHEST: a Taylor series of y 2^-HALVINGS, whose
    terms beyond the last are together less than the last, squared again and again.
    """
    one = 1 << BITS
    least = (y.numerator << BITS) // y.denominator
    small, large = least >> HALVINGS, -(-(least + 1) >> HALVINGS)
    low = high = low_term = high_term = one
    for k in range(1, TERMS):
        low_term = (low_term * small >> BITS) // k
        high_term = -((-high_term * large >> BITS) // k)
        low, high = low + low_term, high + high_term
    high += high_term + 1
    for _ in range(HALVINGS):
        low, high = low * low >> BITS, -(-high * high >> BITS)
    return low, high


def has_probability(differences: list[Fraction]) -> bool:
    """Is  sum exp(-c) <= 1  for sure?"""
    total = 0
    for c in differences:
        if c < 0:
            return False
        low, _ = exp_bounds(min(c, Fraction(FARTHEST)))
        total += -(-(1 << 2 * BITS) // low)
    return total <= 1 << BITS


def plane_rows(index: int, outputs: int, wanted: tuple[float, float], planes: Any, meter: CheckBudget) -> ScoreRows:
    """Conditions of all rows that have the probability: one per other class, then one per plane, times 2^40.

    `wanted`: the log-odds and the margin. A plane is a list of [parts, bound] per other class: the weight in units of
    2^-40, and a number that is at most minus its logarithm.
    """
    least, margin = wanted
    others = [j for j in range(outputs) if j != index]
    rows: ScoreRows = [({index: 1, j: -1}, least) for j in others]
    given = listed(planes, "the planes")
    if len(given) > MAX_PLANES:
        raise Refusal(f"there are more than {MAX_PLANES} planes")
    for plane in given:
        coefficients, entropy = {index: PARTS}, Fraction(0)
        for j, pair in zip(others, listed(plane, "a plane", len(others)), strict=True):
            meter.keep(256)
            parts, bound = listed(pair, "a weight of a plane", 2)
            parts, bound = whole(parts, "a weight of a plane", 0, PARTS), number(bound, "a bound of a plane")
            if not 0.0 <= bound <= FARTHEST or (parts and exp_bounds(Fraction(bound))[1] * parts > PARTS << BITS):
                raise Refusal("a bound of a plane is more than minus the logarithm of its weight")
            coefficients[j] = -parts
            entropy += parts * Fraction(bound)
        if -sum(coefficients.values()) + PARTS != PARTS:
            raise Refusal("the weights of a plane must have the sum 1")
        rows.append((coefficients, PARTS * Fraction(least) + entropy + (PARTS - 1) * Fraction(margin)))
    return rows
