"""At least so far from another row: a clause whose literals are the distance on each choice of sides.

On one side of the other row's value p, the share of a number in the distance is a line, rate * (x - p) or
rate * (p - x), and elsewhere that line is less than the share. So the distance reaches a threshold exactly where, for
some choice of sides, the sum of the lines does. All of it is about decimals.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

from ...printing import quoted
from .reading import CheckBudget, Refusal, entries, listed, number
from .rules import RuleLiteral
from .schema import StatedChoice, StatedInteger, StatedSchema, decimal, read_point

MAX_SIDES = 10
"""Numbers that may be on either side of the other row's."""


def apart_literals(schema: StatedSchema, value: Any, meter: CheckBudget) -> list[RuleLiteral]:
    """{"kind": "apart", ...}: one literal per choice of sides."""
    keys = ("kind", "point", "at_least", "jump", "rate", "weights", "scales")
    given = entries(value, "a rule about another row", *keys)
    point = read_point(schema, given["point"], "the row to be apart from")
    least, jump, rate = (number(given[key], f"the {key} of a rule about another row") for key in keys[2:5])
    if not least > 0.0 or jump < 0.0 or rate < 0.0 or jump == rate == 0.0:
        raise Refusal("a rule about another row has a positive distance, and shares of l0 and l1")
    weights, scales = (listed(given[key], f"the {key} of a rule about another row", len(schema)) for key in keys[5:])
    sizes = zip(weights, scales, strict=True)
    lines: list[tuple[int, Fraction, tuple[int, ...]]] = []
    options: list[tuple[int, list[Fraction]]] = []
    for g, (feature, (weight, scale)) in enumerate(zip(schema.features, sizes, strict=True)):
        meter.tick()
        share = _positive(weight) / len(schema)
        if isinstance(feature, StatedChoice):
            options.append((g, _option_shares(feature, int(point[g]), scale, share, (decimal(jump), decimal(rate)))))
            continue
        ends = decimal(float(feature.lower)), decimal(float(feature.upper))
        if jump and ends[0] < ends[1]:
            raise Refusal(f"{quoted(feature.name)} cannot count by how often it differs from another row's")
        slope = decimal(rate) * share / (_positive(scale) if scale is not None else ends[1] - ends[0] or Fraction(1))
        p = decimal(point[g])
        sides = (1,) if p <= ends[0] else (-1,) if p >= ends[1] else (1, -1)
        lines.append((g, slope, sides if slope else (1,)))
    if sum(len(sides) > 1 for *_, sides in lines) > MAX_SIDES:
        raise Refusal(f"more than {MAX_SIDES} numbers may be on either side of another row's")
    meter.keep(64 * (len(schema) + 4) << sum(len(sides) > 1 for *_, sides in lines))
    middle = (Fraction(least) + Fraction(math.nextafter(least, -math.inf))) / 2
    return _literals(schema, point, lines, options, middle, meter)


def _option_shares(
    feature: StatedChoice, own: int, scale: Any, share: Fraction, distance: tuple[Fraction, Fraction]
) -> list[Fraction]:
    """What each option of a choice adds."""
    if scale is not None:
        raise Refusal(f"{quoted(feature.name)} has no scale in a rule about another row")
    jump, rate = distance
    levels = feature.kind == "ordinal"
    moved = [
        Fraction(abs(o - own), len(feature.options)) if levels else Fraction(1) for o in range(len(feature.options))
    ]
    return [share * (jump + rate * size) if o != own else Fraction(0) for o, size in enumerate(moved)]


def _literals(
    schema: StatedSchema, point: tuple[float, ...], lines: list[tuple[int, Fraction, tuple[int, ...]]],
    options: list[tuple[int, list[Fraction]]], least: Fraction, meter: CheckBudget,
) -> list[RuleLiteral]:  # fmt: skip
    """Whole numbers, by a common denominator."""
    starts = {g: slope * decimal(point[g]) for g, slope, _ in lines}
    parts = [least, *starts.values(), *(slope for _, slope, _ in lines), *(v for _, own in options for v in own)]
    over = math.lcm(*(part.denominator for part in parts))
    exact = all(isinstance(schema.features[g], StatedInteger) for g, *_ in lines)
    choices = tuple((g, tuple(int(v * over) for v in own)) for g, own in options)
    places = [g for g, *_ in lines]
    slopes, begins = [int(slope * over) for _, slope, _ in lines], [int(starts[g] * over) for g in places]
    first, result = -int(least * over), []
    for signs in product(*(sides for *_, sides in lines)):
        meter.keep(sum(map(int.bit_length, slopes)))
        numbers = tuple((g, sign * slope) for g, sign, slope in zip(places, signs, slopes, strict=True))
        constant = first - sum(sign * start for sign, start in zip(signs, begins, strict=True))
        result.append(RuleLiteral(numbers, choices, constant, exact))
    return result


def _positive(value: Any) -> Fraction:
    read = number(value, "a weight or scale of a rule about another row")
    if read <= 0.0:
        raise Refusal("the weights and scales of a rule about another row are positive")
    return decimal(read)
