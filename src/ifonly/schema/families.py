"""Dummy variables: groups of 0/1 columns that encode one categorical feature, as `get_dummies` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.schema.features import Categorical, Choice
from ifonly.schema.values import Value

SEPARATORS = "_=:."
FEW = 50
"""Rows below which columns of which at most one is 1 may be so by chance."""


@dataclass(frozen=True, slots=True)
class Family:
    """Columns that are one feature, and whether one option has no column (`drop_first`)."""

    name: str
    columns: tuple[str, ...]
    without_first: bool

    @property
    def options(self) -> tuple[str, ...]:
        own = tuple(column[len(self.name) + 1 :] for column in self.columns)
        return (_unused("other", own), *own) if self.without_first else own

    def feature(self) -> Categorical:
        encoding = "dummy" if self.without_first else "onehot"
        return Categorical(self.name, self.options, encoding, columns=self.columns)  # type: ignore[arg-type]

    def why(self) -> str:
        """The evidence, in words."""
        listed = ", ".join(f"'{column}'" for column in self.columns[:3]) + (", ..." if len(self.columns) > 3 else "")
        if not self.without_first:
            return f"of the columns {listed} exactly one is 1 in every row: one feature, one-hot"
        first = self.options[0]
        return (
            f"of the columns {listed} at most one is 1 in every row: one feature without a column for its first "
            f"option, called '{first}' here"
        )


def families(columns: Mapping[str, Sequence[Any]]) -> list[Family]:
    """The dummies in a table, by the beginnings that the names of their columns share."""
    found: list[Family] = []
    bits = {name: block for name, column in columns.items() if (block := _bits(column)) is not None}
    taken: set[str] = set()
    starts = sorted({name[:at] for name in bits for at in range(1, len(name)) if name[at] in SEPARATORS}, key=len)
    for exactly in (True, False):
        for start in starts:
            family = _family(start, [name for name in bits if name not in taken], bits, exactly=exactly)
            if family is not None and start not in columns:
                found.append(family)
                taken |= set(family.columns)
    return found


def _family(start: str, names: list[str], bits: Mapping[str, NDArray[np.float64]], *, exactly: bool) -> Family | None:
    """The columns that start so, if they are one feature; under the longest beginning that all of them share."""
    mine = [name for name in names if name.startswith(start) and len(name) > len(start) + 1
            and name[len(start)] in SEPARATORS]  # fmt: skip
    if len(mine) < 2 or any(not bits[name].any() for name in mine):
        return None
    total = np.sum([bits[name] for name in mine], axis=0)
    if exactly:
        return Family(_longest(start, mine), tuple(mine), False) if (total == 1.0).all() else None
    many = len(total) >= FEW and (total <= 1.0).all()
    return Family(_longest(start, mine), tuple(mine), True) if many else None


def _longest(start: str, names: list[str]) -> str:
    shared = min(names, key=len)
    for at in range(len(shared) - 2, len(start), -1):
        if shared[at] in SEPARATORS and all(name.startswith(shared[: at + 1]) and len(name) > at + 1 for name in names):
            return shared[:at]
    return start


def _bits(column: Sequence[Any]) -> NDArray[np.float64] | None:
    """A column of 0 and 1, or of booleans."""
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    if not values or not all(isinstance(value, bool | int | float) and value in (0, 1) for value in values):
        return None
    return np.array(values, dtype=np.float64)


def _unused(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _unused(f"{name}_", taken)


def from_dummies(feature: Choice, columns: Mapping[str, Sequence[Any]]) -> list[Value] | None:
    """The options that the feature's encoded columns stand for, one per row; None where the columns are not there.

    Where they stand for none, the text that says so, which is no option either: reading it gives the error.
    """
    names = feature.column_names
    if feature.encoding == "code" or any(name not in columns for name in names):
        return None
    known = {tuple(code): option for code, option in zip(feature.codes.tolist(), feature.options, strict=True)}
    listed = [columns[name].tolist() if hasattr(columns[name], "tolist") else columns[name] for name in names]  # type: ignore[attr-defined]
    return [_option(known, names, row) for row in zip(*listed, strict=False)]


def _option(known: Mapping[tuple[float, ...], Value], names: Sequence[str], row: Sequence[Any]) -> Value:
    try:
        return known[tuple(float(value) for value in row)]
    except (KeyError, TypeError, ValueError):
        return ", ".join(f"{name} = {value}" for name, value in zip(names, row, strict=True))[:200]
