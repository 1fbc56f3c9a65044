"""Conversion of tables to points and back: pandas and polars frames, dicts of columns, lists of rows, arrays.

A table becomes a dict of columns once; each column is then read in one pass, with a fast path for clean numeric
arrays and for option columns (one look-up per distinct value).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import MissingExtra, RowError
from ifonly.printing import shown, some_of
from ifonly.schema.families import from_dummies
from ifonly.schema.features import Choice, Feature, Integer, Numeric, Real
from ifonly.schema.schema import Schema


def frame_columns(table: Any) -> dict[str, Any]:
    """A table as a dict of columns (name to sequence), without copying where that is possible."""
    if isinstance(table, Mapping):
        columns = {_column_name(name): column for name, column in table.items()}
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # pandas and polars
        columns = {_column_name(name): table[name] for name in table.columns}
    elif isinstance(table, Sequence) and len(table) and all(isinstance(row, Mapping) for row in table):
        return {_column_name(name): [row.get(name) for row in table] for name in table[0]}
    else:
        raise RowError(
            f"A table must be a data frame, a dict of columns or a list of rows; got {type(table).__name__}."
        )
    for name, column in columns.items():
        if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
            raise RowError(
                f"Column '{name}' of the table must be a list of values; it is {shown(column)} "
                f"(for one row, use explain).",
                feature=name,
            )
        if getattr(column, "ndim", 1) != 1:
            raise RowError(f"The table has more than one column '{name}'; rename or drop one.", feature=name)
    return columns


def index_of(table: Any) -> Any:
    """The labels of a pandas frame's rows; None where a table has none."""
    index = getattr(table, "index", None)
    return index if hasattr(table, "columns") and hasattr(index, "get_level_values") else None


def _column_name(name: Any) -> str:
    if not isinstance(name, str | int | float | tuple):
        raise RowError(f"A column of a table is named by a text; got {shown(name)}.")
    return name if isinstance(name, str) else shown(name)


def read_points(
    schema: Schema, table: Any, *, errors: list[RowError | None] | None = None, first: int = 0
) -> NDArray[np.float64]:
    """The points of all rows of a table, in order; `first` is the number that complaints give the first row.

    Without `errors` the first bad row raises. With an (empty) list `errors`, one entry per row is appended: None, or
    the error of that row, whose point is then NaN.
    """
    if isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] == len(schema):
        table = dict(zip(schema.names, table.T, strict=True))
    elif isinstance(table, np.ndarray) or (isinstance(table, Sequence) and not isinstance(table, str | bytes)):
        return _read_rows(schema, table, errors, first)
    columns = _needed_columns(schema, table)
    count = len(columns[0])
    points = np.empty((count, len(schema)))
    found: list[RowError | None] = [None] * count
    for i, (feature, column) in enumerate(zip(schema.features, columns, strict=True)):
        points[:, i] = _read_column(feature, column, found if errors is not None else None, first)
    if errors is not None:
        errors.extend(found)
        points[np.array([error is not None for error in found], dtype=bool)] = np.nan
    return points


def _needed_columns(schema: Schema, table: Any) -> list[Any]:
    """The columns of the schema's features, all of one length."""
    columns = frame_columns(table)
    for name, feature in zip(schema.names, schema.features, strict=True):
        if name not in columns and isinstance(feature, Choice):
            coded = from_dummies(feature, columns)
            columns |= {} if coded is None else {name: coded}
        if name not in columns:
            message = f"Feature '{name}' is not a column of the table; it has {some_of(list(columns))}."
            raise RowError(message, feature=name)
        if len(columns[name]) != len(columns[schema.names[0]]):
            message = (
                f"Column '{name}' has {len(columns[name])} values, but column '{schema.names[0]}' has "
                f"{len(columns[schema.names[0]])}; all columns of a table must have the same length."
            )
            raise RowError(message, feature=name)
    return [columns[name] for name in schema.names]


def check_two_dimensions(rows: Any) -> None:
    if isinstance(rows, np.ndarray) and rows.ndim != 2:
        raise RowError(
            f"An array of rows must have two dimensions; this one has {rows.ndim} (for one row, use explain)."
        )


def _read_rows(schema: Schema, rows: Any, errors: list[RowError | None] | None, first: int) -> NDArray[np.float64]:
    check_two_dimensions(rows)
    names = set(schema.names)
    if len(rows) and all(isinstance(row, dict) and row.keys() >= names for row in rows):
        columns = {name: [row[name] for row in rows] for name in schema.names}
        return read_points(schema, columns, errors=errors, first=first)
    points = np.full((len(rows), len(schema)), np.nan)
    for r, row in enumerate(rows):
        try:
            points[r] = schema.read(row, number=first + r)
        except RowError as error:
            if errors is None:
                raise
            errors.append(error)
        else:
            if errors is not None:
                errors.append(None)
    return points


def _read_column(feature: Feature, column: Any, found: list[RowError | None] | None, first: int) -> NDArray[np.float64]:
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    if isinstance(feature, Numeric):
        array = (
            np.asarray(column)
            if not isinstance(column, Sequence) or _all_numbers(column)
            else _written(feature, column)
        )
        if array is not None and array.dtype.kind in "iuf":
            numbers = array.astype(np.float64)
            fits = feature.fits(numbers)
            if (fits | np.isnan(numbers) if feature.missing else fits).all():
                return numbers
    if isinstance(column, np.ndarray) and column.dtype.kind in "mMcV":  # tolist would turn dates into plain integers
        values = [str(value) for value in column]
    else:
        values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return _read_values(feature, values, found, first)


_THREE_DECIMALS = re.compile(r"\.\d{3}(?!\d)")


def _all_numbers(column: Sequence[Any]) -> bool:
    return all(type(value) is float or type(value) is int for value in column)


def _written(feature: Numeric, column: Sequence[Any]) -> NDArray[np.float64] | None:
    """Numbers as texts, each as Python writes one; "1_0", "-nan" and "10.000" are left to the feature."""
    if set(map(type, column)) != {str}:
        return None
    whole = "\n".join(column)
    if "_" in whole or (isinstance(feature, Integer) and _THREE_DECIMALS.search(whole)):
        return None
    try:
        numbers = np.array(list(map(float, column)))
    except ValueError:
        return None
    return None if np.isnan(numbers).any() else numbers


def _read_values(
    feature: Feature, values: list[Any], found: list[RowError | None] | None, first: int
) -> NDArray[np.float64]:
    try:  # one look-up per distinct value, unless one of them is wrong or cannot be looked up
        known = {value: feature.read(value) for value in dict.fromkeys(values)}
        return np.array([known[value] for value in values], dtype=np.float64)
    except (RowError, TypeError):
        pass
    numbers = np.full(len(values), np.nan)
    for r, value in enumerate(values):
        try:
            numbers[r] = feature.read(value, row=first + r)
        except RowError as error:
            if found is None:
                raise
            found[r] = found[r] or error
    return numbers


def to_frame(schema: Schema, points: NDArray[np.float64]) -> Any:
    """Points as a pandas DataFrame in the user's own values."""
    return import_pandas().DataFrame(user_columns(schema, np.atleast_2d(points)))


def import_pandas(needed_for: str = "A DataFrame", *, extra: str = "pandas") -> Any:
    """The module pandas, or a MissingExtra error."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas", extra=extra, needed_for=needed_for) from None
    return pandas


def user_columns(schema: Schema, points: NDArray[np.float64]) -> dict[str, list[Any]]:
    """Points as columns of the user's own values."""
    return {f.name: _user_column(f, points[:, i]) for i, f in enumerate(schema.features)}


def _user_column(feature: Feature, column: NDArray[np.float64]) -> list[Any]:
    if isinstance(feature, Numeric) and feature.missing and np.isnan(column).any():
        return [feature.value(number) for number in column.tolist()]
    if isinstance(feature, Real):
        return column.tolist()
    whole = np.rint(column).astype(np.int64).tolist()
    if isinstance(feature, Integer):
        return whole
    return list(map(feature.options.__getitem__, whole))
