"""The distance of docs/distances.md, in rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from benchmarks.attack.space import Feature, Row, index, is_number, options

Spec = Mapping[str, Any]
"""{"norm": "l1" or {"l0": a, "l1": b}, "weights", "scales", "up", "down": by name, "transitions": [[f, a, b, cost]]}"""


def scale(feature: Feature, spec: Spec) -> Fraction:
    """What a change of one unit is divided by."""
    if is_number(feature):
        given = spec.get("scales", {}).get(feature["name"])
        if given is not None:
            return Fraction(given)
        upper = feature["upper"]
        if feature["kind"] == "integer":
            step = feature.get("step", 1)
            upper = feature["lower"] + (feature["upper"] - feature["lower"]) // step * step
        return (Fraction(upper) - Fraction(feature["lower"])) or Fraction(1)
    return Fraction(len(options(feature) or ())) if feature["kind"] == "ordinal" else Fraction(1)


def change(feature: Feature, before: Any, after: Any, spec: Spec, *, symmetric: bool = False) -> Fraction:
    """delta of one feature, unweighted."""
    if is_number(feature):
        moved = Fraction(after) - Fraction(before)
    else:
        moved = Fraction(index(feature, after) - index(feature, before))
    if moved == 0:
        return Fraction(0)
    if not symmetric:
        for name, a, b, cost in spec.get("transitions", ()):
            if name == feature["name"] and a == before and b == after:
                return Fraction(cost)
    size = Fraction(1) if feature["kind"] in ("binary", "categorical") else abs(moved) / scale(feature, spec)
    if symmetric:
        return size
    return size * Fraction(spec.get("up" if moved > 0 else "down", {}).get(feature["name"], 1))


def measure(features: Sequence[Feature], before: Row, after: Row, spec: Spec, *, symmetric: bool = False) -> Fraction:
    """The distance, exactly; of l2 its square."""
    deltas = {
        feature["name"]: change(feature, a, b, spec, symmetric=symmetric)
        for feature, a, b in zip(features, before, after, strict=True)
        if a != b
    }
    return combined(deltas, len(features), spec)


def combined(deltas: Mapping[str, Fraction], count: int, spec: Spec) -> Fraction:
    """The distance of a row of so many features from the deltas of those that changed; of l2 its square."""
    norm = spec["norm"]
    shares = norm if isinstance(norm, Mapping) else {norm: 1.0}
    total = Fraction(0)
    for name, delta in deltas.items():
        weight = Fraction(spec.get("weights", {}).get(name, 1))
        if norm == "l2":
            total += (weight * delta) ** 2
        elif norm == "linf":
            total = max(total, weight * delta)
        else:
            total += weight * (Fraction(shares.get("l0", 0)) + Fraction(shares.get("l1", 0)) * delta)
    return total / count


def shown(size: Fraction, spec: Spec) -> float:
    """As a float, the root taken for l2; infinity where no float is so large."""
    try:
        return math.sqrt(size) if spec["norm"] == "l2" else float(size)
    except OverflowError:
        return math.inf


def between(features: Sequence[Feature], before: Row, after: Row, spec: Spec) -> float:
    return shown(measure(features, before, after, spec), spec)
