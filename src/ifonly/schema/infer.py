"""Propose a schema for a table, and say what was guessed and why: a proposal to read, not a fact to trust."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ifonly.errors import SchemaError
from ifonly.printing import shown
from ifonly.schema.decimals import Grid, written
from ifonly.schema.features import (
    Binary,
    Categorical,
    Feature,
    Integer,
    Ordinal,
    Real,
    is_missing,
    plain,
    show_number,
    show_step,
)
from ifonly.schema.schema import Schema
from ifonly.schema.tables import frame_columns

MOST_CATEGORIES = 1000
MOST_DECIMALS = 4
"""A column whose numbers have no more than these moves in steps of its last decimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What was assumed of one feature."""

    feature: str
    guess: str
    why: str


def infer(table: Any) -> tuple[Schema, tuple[Guess, ...]]:
    """A schema for the table, with one guess per feature.

    Ordinals cannot be guessed (except from an ordered pandas column): edit the result.
    """
    columns = frame_columns(table)
    if not columns:
        raise SchemaError("The table has no columns to infer a schema from.")
    features: list[Feature] = []
    guesses: list[Guess] = []
    for name, column in columns.items():
        values = [plain(v) for v in (column.tolist() if hasattr(column, "tolist") else column)]
        feature, guess, why = _declared_order(name, column, values) or _infer_feature(name, values)
        features.append(feature)
        guesses.append(Guess(feature=name, guess=guess, why=why))
    return Schema(tuple(features)), tuple(guesses)


def _declared_order(name: str, column: Any, values: list[Any]) -> tuple[Feature, str, str] | None:
    if not getattr(getattr(column, "dtype", None), "ordered", False) or any(is_missing(v) for v in values):
        return None
    levels = column.dtype.categories.tolist()
    return Ordinal(name, levels), "ordinal", f"the column declares an order of {len(levels)} levels"


def _infer_feature(name: str, values: list[Any]) -> tuple[Feature, str, str]:
    present = [v for v in values if not is_missing(v)]
    missing = len(values) - len(present)
    if not present:
        raise SchemaError(f"Column '{name}' has no values; leave it out.")
    try:
        distinct = list(dict.fromkeys(present))
    except TypeError:
        raise SchemaError(f"Column '{name}' holds values that are neither text, numbers nor booleans.") from None
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in distinct)
    note = f"; missing in {missing} rows, which a model must be able to take" if missing else ""
    may = bool(missing)
    if len(distinct) == 2 and not missing:
        ordered = sorted(distinct, key=str) if any(isinstance(v, str) for v in distinct) else sorted(distinct)
        return (
            Binary(name, tuple(ordered)),
            "binary",
            f"two values: {shown(ordered[0])} (0) and {shown(ordered[1])} (1)",
        )
    if numeric:
        if any(abs(v) > sys.float_info.max for v in distinct):
            raise SchemaError(f"Column '{name}' has infinite values; remove them.")
        low, high = float(min(distinct)), float(max(distinct))
        if all(float(v).is_integer() for v in distinct) and max(abs(low), abs(high)) <= 2**52:
            why = f"whole numbers; bounds {_ends(low, high)} are the data's{note}"
            return Integer(name, low, high, missing=may), "integer", why
        step = _decimal_step(distinct)
        by = f"; step={show_step(step)} would keep answers to the data's decimals" if step else ""
        why = f"numbers; bounds {_ends(low, high)} are the data's{by}{note}"
        return Real(name, low, high, missing=may), "real", why
    if len(distinct) > MOST_CATEGORIES:
        raise SchemaError(
            f"Column '{name}' has {len(distinct)} different texts: an identifier rather than a feature? Leave it out."
        )
    options: list[Any] = sorted(distinct, key=lambda v: (str(type(v)), v))
    if missing:
        options.append(None)
    why = f"{len(distinct)} different values" + (f"; missing ({missing} rows) is a category too" if missing else "")
    return Categorical(name, tuple(options)), "categorical", why + "; declare it ordinal if it has an order"


def _decimal_step(numbers: list[Any]) -> Fraction | None:
    """The last decimal that the numbers have, if they have few; None where they have many, or are one number."""
    for decimals in range(1, MOST_DECIMALS + 1):
        if all(10**decimals % written(v).denominator == 0 for v in numbers):
            step = Fraction(1, 10**decimals)
            fine = Grid.of(float(min(numbers)), float(max(numbers)), step) is not None
            return step if fine and len(numbers) > 1 else None
    return None


def _ends(low: float, high: float) -> str:
    return f"{show_number(low)} and {show_number(high)}"
