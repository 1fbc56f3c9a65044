"""Validation of arguments: numbers, lists, labels, single rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ifonly.errors import QuestionError, RowError
from ifonly.files import path_of as path_of
from ifonly.printing import shown
from ifonly.schema.values import plain


def items(value: Any) -> tuple[Any, ...] | None:
    """The items of a list, an array, a set or a generator; None for a text, a mapping, a number."""
    return tuple(value) if is_listed(value) else None


def is_listed(value: Any) -> bool:
    """Whether it is an iterable of items; not a text, a mapping or a number."""
    if isinstance(value, str | bytes | Mapping | type) or not isinstance(value, Iterable):
        return False
    return not (isinstance(value, np.ndarray) and value.ndim == 0)


def is_label(value: Any) -> bool:
    """Whether it can name a class or a group: texts, booleans and finite numbers can."""
    value = plain(value)
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def real_number(value: Any, words: str, good: Callable[[float], bool] = math.isfinite) -> float:
    """The number, no truth value, for which `good` holds; else an error, which is `words` and the value."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not good(number):
        raise QuestionError(f"{words} {shown(number)}.")
    return float(number)


def whole_number(value: Any, words: str, least: int = 0) -> int:
    """The whole number, which is at least so much; else an error, which is `words` and the value."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise QuestionError(f"{words} {shown(number)}.")
    return number


def true_or_false(value: Any, name: str) -> bool:
    """The truth value of an argument of this name; else an error."""
    if not isinstance(value, bool | np.bool_):
        raise QuestionError(f"'{name}' is True or False; got {shown(value)}.")
    return bool(value)


def one_row(row: Any, number: int | None = None) -> Any:
    """One row in whatever holds one (a frame or an array of one row, a Series, a tensor, a record) as a mapping or a
    sequence; anything else as it is."""
    if hasattr(row, "columns"):  # a frame of pandas or polars
        if len(row) != 1:
            raise RowError(
                f"This is a table of {len(row)} rows, not a row: use explain_many, or take one row out of it.",
                row=number,
            )
        return {str(name): row[name].to_list()[0] for name in row.columns}
    if hasattr(row, "to_dict"):  # a Series
        return row.to_dict()
    if hasattr(row, "detach") and hasattr(row, "cpu"):  # a tensor
        return row.detach().cpu().numpy()
    names = getattr(getattr(row, "dtype", None), "names", None)
    if names and getattr(row, "ndim", None) == 0:  # a record of a structured array
        return {name: row[name] for name in names}
    return row._asdict() if hasattr(row, "_asdict") else row
