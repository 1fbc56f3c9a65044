"""What people hand over, read at the door: a list of things, a label, a file's name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.errors import FileError, RowError
from ifonly.printing import shown
from ifonly.schema.values import plain


def items(value: Any) -> tuple[Any, ...] | None:
    """The things in a list, an array, a set or a generator; None where it is none: a text, a mapping, a number."""
    return tuple(value) if is_listed(value) else None


def is_listed(value: Any) -> bool:
    """Does it hold things, one after another? Not a text, a mapping or a number."""
    if isinstance(value, str | bytes | Mapping | type) or not isinstance(value, Iterable):
        return False
    return not (isinstance(value, np.ndarray) and value.ndim == 0)


def is_label(value: Any) -> bool:
    """Can this name a class or a group? Texts, booleans and finite numbers can (and be written to any file)."""
    value = plain(value)
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def path_of(value: Any) -> Path:
    """The path that a text or a path names."""
    try:
        path = Path(value)
        if value == "" or b"\0" in os.fsencode(path):
            raise ValueError
    except (
        TypeError,
        ValueError,
    ):  # no text, or one that no file can be called by (an empty one, a lone surrogate, a zero)
        raise FileError(f"A file is named by a text or a path; {shown(value)} cannot name one.") from None
    return path


def one_row(given: Any, number: int | None = None) -> Any:
    """One row in whatever holds one (a frame or an array of one row, a Series, a tensor, a record) as a mapping or a
    sequence; anything else as it is."""
    if hasattr(given, "columns"):  # a frame of pandas or polars
        if len(given) != 1:
            raise RowError(
                f"This is a table of {len(given)} rows, not a row: use explain_many, or take one row out of it.",
                row=number,
            )
        return {str(name): given[name].to_list()[0] for name in given.columns}
    if hasattr(given, "to_dict"):  # a Series
        return given.to_dict()
    if hasattr(given, "detach") and hasattr(given, "cpu"):  # a tensor
        return given.detach().cpu().numpy()
    names = getattr(getattr(given, "dtype", None), "names", None)
    if names and getattr(given, "ndim", None) == 0:  # a record of a structured array
        return {name: given[name] for name in names}
    return given._asdict() if hasattr(given, "_asdict") else given
