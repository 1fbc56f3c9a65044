"""What people hand over, read at the door: a list of things, a label, a file's name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.errors import FileError
from ifonly.printing import shown
from ifonly.schema.features import plain


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
        if b"\0" in os.fsencode(path):
            raise ValueError
    except (TypeError, ValueError):  # no text, or one that no file can be called by (a lone surrogate, a zero)
        raise FileError(f"A file is named by a text or a path; {shown(value)} cannot name one.") from None
    return path
