"""What a row is, once more: domains, encoded columns and values, in plain loops, from a schema as plain data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

Feature = dict[str, Any]
Row = tuple[Any, ...]
"""Values in the order of the features, as the user writes them."""


def options(feature: Feature) -> list[Any] | None:
    """The options of a feature, None of a number."""
    match feature["kind"]:
        case "binary":
            return list(feature.get("values", [False, True]))
        case "ordinal":
            return list(feature["levels"])
        case "categorical":
            return list(feature["categories"])
        case _:
            return None


def is_number(feature: Feature) -> bool:
    return feature["kind"] in ("integer", "real")


def ordered(feature: Feature) -> bool:
    return feature["kind"] != "categorical"


def values(feature: Feature) -> Sequence[Any] | None:
    """Everything that the feature can be; None of a real number with room."""
    if feature["kind"] == "integer":
        return range(feature["lower"], feature["upper"] + 1, feature.get("step", 1))
    if feature["kind"] == "real":
        if feature.get("step") is not None:
            return grid(feature)
        return [float(feature["lower"])] if feature["lower"] == feature["upper"] else None
    return options(feature)


def grid(feature: Feature) -> list[float]:
    """The values of a real number with a step: the floats nearest to lower, lower + step, ..., upper."""
    low, high, step = decimal(feature["lower"]), decimal(feature["upper"]), Fraction(str(feature["step"]))
    return [float(low + k * step) for k in range(int((high - low) / step) + 1)]


def belongs(feature: Feature, value: Any) -> bool:
    """Is this a value of the feature, of the right type?"""
    if value is None and is_number(feature):
        return bool(feature.get("missing"))
    if feature["kind"] == "integer":
        return type(value) is int and value in range(feature["lower"], feature["upper"] + 1, feature.get("step", 1))
    if feature["kind"] == "real":
        on = feature.get("step") is None or value in grid(feature)
        return isinstance(value, float) and feature["lower"] <= value <= feature["upper"] and on
    return any(type(value) is type(option) and value == option for option in options(feature) or ())


def index(feature: Feature, value: Any) -> int:
    """Which option it is; True and 1 are the same here, "1" and 1 are not."""
    found: int = (options(feature) or []).index(value)
    return found


def columns(feature: Feature, value: Any) -> list[float]:
    """The encoded columns of a value."""
    if is_number(feature):
        return [float(value)]
    at, count = index(feature, value), len(options(feature) or ())
    how = "code" if feature["kind"] == "binary" else feature.get("encoding")
    how = how or ("thermometer" if feature["kind"] == "ordinal" else "onehot")
    if how == "code":
        return [float(at)]
    if how == "onehot":
        return [1.0 if i == at else 0.0 for i in range(count)]
    return [1.0 if i <= at else 0.0 for i in range(count)]


def width(feature: Feature) -> int:
    """How many encoded columns."""
    first = values(feature)
    return len(columns(feature, first[0] if first else feature["lower"]))


def encode(features: Sequence[Feature], row: Row) -> list[float]:
    return [x for feature, value in zip(features, row, strict=True) for x in columns(feature, value)]


def decoded(features: Sequence[Feature], point: Sequence[float]) -> Row:
    """The row of a point (a number, or the index of an option, per feature)."""
    row: list[Any] = []
    for feature, x in zip(features, point, strict=True):
        named = options(feature)
        row.append(named[int(x)] if named is not None else int(x) if feature["kind"] == "integer" else float(x))
    return tuple(row)


def decimal(value: Any) -> Fraction:
    """A number as people read it: the shortest decimal that a float stands for."""
    return Fraction(value) if isinstance(value, int) else Fraction(Decimal(repr(value)))


def rows(domains: Sequence[Sequence[Any]]) -> Iterator[Row]:
    return itertools.product(*domains)


def count(domains: Sequence[Sequence[Any]]) -> int:
    total = 1
    for domain in domains:
        total *= len(domain)
    return total
