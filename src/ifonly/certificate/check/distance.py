"""The distance of a certificate, read: norm, weights, scales, and costs by direction and by transition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .reading import (
    CheckBudget,
    Refusal,
    entries,
    listed,
    number,
    ticking,
    whole,
)
from .schema import StatedChoice, StatedSchema

ADDITIVE, SQUARED, MAXIMUM = "additive", "squared", "maximum"
NORMS = {"l0": ADDITIVE, "l1": ADDITIVE, "l0+l1": ADDITIVE, "l2": SQUARED, "linf": MAXIMUM}


@dataclass(frozen=True, slots=True)
class Directions:
    """Costs by direction and by transition: what the change of a feature is multiplied by, or is."""

    up: tuple[Fraction, ...]
    down: tuple[Fraction, ...]
    transitions: dict[tuple[int, int, int], Fraction]

    def times(self, g: int, change: Fraction | int) -> Fraction:
        return self.up[g] if change > 0 else self.down[g]

    def option_change(self, g: int, kind: str, before: int, after: int, scale: Fraction) -> Fraction:
        """The change from one option to another; scale is the number of levels of an ordinal, else 1."""
        if before == after:
            return Fraction(0)
        if (g, before, after) in self.transitions:
            return self.transitions[g, before, after]
        moved = abs(after - before) if kind == "ordinal" else 1
        return self.times(g, after - before) * moved / scale


def read_distance(
    value: Any, schema: StatedSchema, meter: CheckBudget
) -> tuple[str, Fraction, Fraction, tuple[Fraction, ...], tuple[Fraction, ...], Directions]:
    """The norm's name, jump, rate, weights, scales, and costs by direction."""
    keys = ("weights", "scales", "up", "down")
    distance = entries(value, "the distance", "norm", "jump", "rate", "transitions", *keys)
    name = distance["norm"]
    if not isinstance(name, str) or name not in NORMS:
        raise Refusal(f"there is no norm {str(name)[:60]!r}")
    jump, rate = (Fraction(number(distance[key], f"the distance's {key}")) for key in ("jump", "rate"))
    pure = (Fraction(name == "l0"), Fraction(name != "l0"))
    if not (jump > 0 and rate > 0 if name == "l0+l1" else (jump, rate) == pure):
        raise Refusal(f"the shares of l0 and the rest do not fit the norm {name}")
    weights, scales, up, down = (
        tuple(_positive(value, key) for value in ticking(listed(distance[key], key, len(schema)), meter))
        for key in keys
    )
    return name, jump, rate, weights, scales, Directions(up, down, _transitions(distance["transitions"], schema, meter))


def _transitions(value: Any, schema: StatedSchema, meter: CheckBudget) -> dict[tuple[int, int, int], Fraction]:
    """[feature, option before, option after, change] of each."""
    result: dict[tuple[int, int, int], Fraction] = {}
    for one in ticking(listed(value, "the transitions"), meter):
        g, before, after, change = listed(one, "a transition", 4)
        g = whole(g, "the feature of a transition", 0, len(schema) - 1)
        feature = schema.features[g]
        most = len(feature.options) - 1 if isinstance(feature, StatedChoice) else -1
        ends = tuple(whole(end, "an option of a transition", 0, most) for end in (before, after))
        if (g, *ends) in result:
            raise Refusal("a transition is listed twice")
        result[g, ends[0], ends[1]] = _positive(change, "a transition")
    return result


def _positive(value: Any, what: str) -> Fraction:
    read = number(value, what)
    if read <= 0.0:
        raise Refusal(f"the {what} must be positive; one is {read!r}")
    return Fraction(read)


def rates_of(
    counted: tuple[str, Fraction], pairs: Sequence[tuple[Fraction, Fraction]], times: tuple[Fraction, ...],
    cost_grid: int, meter: CheckBudget,
) -> tuple[int, ...]:  # fmt: skip
    """Of each feature: what a unit of change in one direction costs (l2: a squared one), rounded down. `counted`: the
    norm and its share of the changes; `pairs`: weights and scales."""
    (norm, rate), rates = counted, []
    for (weight, scale), factor in zip(pairs, times, strict=True):
        meter.tick()
        slope = rate * weight * factor / scale
        rates.append(floor_of(slope * slope if norm == SQUARED else slope, len(pairs), cost_grid))
    return tuple(rates)


def floor_of(value: Fraction, n: int, bits: int) -> int:
    """value / n in units of 2^-bits, rounded down."""
    return (value.numerator << bits) // (value.denominator * n)
