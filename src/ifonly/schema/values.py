"""Plain values: missing markers, equality of options, steps, and numbers as text."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ifonly.errors import SchemaError
from ifonly.printing import shown
from ifonly.schema.decimals import rounded, written
from ifonly.schema.number_text import plain_number, two_readings

Value: TypeAlias = str | bool | int | float | None
NO_VALUE = ("", "na", "n/a", "nan", "null", "none")
"""Texts that stand for a missing number in a table."""


def is_missing(value: Any) -> bool:
    """None, NaN, and the missing markers of pandas and polars."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def plain(value: Any) -> Any:
    """A numpy scalar as the Python value it stands for; a whole number beyond float64 as infinity, which
    callers refuse; anything else unchanged."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return value


def same_value(a: Any, b: Any) -> bool:
    """Equality of option values: True is 1, but "1" is not; missing equals missing."""
    if is_missing(a) or is_missing(b):
        return is_missing(a) and is_missing(b)
    return isinstance(a, str) == isinstance(b, str) and bool(a == b)


def text_means(text: str, option: Any) -> bool:
    """Does a text, as files have it, stand for this option, which is not a text?"""
    if isinstance(option, bool):
        return text.strip().lower() in (("true", "1") if option else ("false", "0"))
    return plain_number(text) == float(option)


def show_number(number: float) -> str:
    """The shortest text that reads back as the same number, without a useless '.0'."""
    return repr(number).removesuffix(".0")


_STEP = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18}|/[0-9]{1,18})?")


def read_step(name: str, step: Any) -> Fraction:
    """A step as the exact number that was written."""
    given = plain(step)
    given = str(given) if isinstance(given, Decimal) else given
    if isinstance(given, str) and (readings := two_readings(given)):
        raise SchemaError(f"Feature '{name}': the step '{given.strip()}' may be {readings}; write it as one of these.")
    exact: Fraction | None = None
    if isinstance(given, str) and _STEP.fullmatch(given.strip()) and not given.strip().endswith("/0"):
        exact = Fraction(given.strip())
    elif isinstance(given, Fraction) or (isinstance(given, int) and not isinstance(given, bool)):
        exact = Fraction(given)
    elif isinstance(given, float) and math.isfinite(given):
        exact = written(given)
    if exact is None or exact <= 0 or not sys.float_info.min <= rounded(exact) < math.inf:
        raise SchemaError(
            f"Feature '{name}': step must be a number > 0, such as 0.01, 500 or \"1/12\"; it is {shown(step)}."
        )
    return exact


def show_step(step: Fraction) -> str:
    """A step as it is written: 0.01, 500, 1/12."""
    return show_number(float(step)) if written(float(step)) == step else str(step)
