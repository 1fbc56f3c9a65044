"""Tables: pandas and polars frames, dicts of columns, lists of rows, arrays; to points and back.

A table becomes a dict of columns once; each column is then read in one pass, with a fast path for clean numeric
arrays and for option columns (one look-up per distinct value).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import MissingExtra, RowError
from ifonly.schema.features import Choice, Feature, Numeric
from ifonly.schema.schema import Schema


def frame_columns(table: Any) -> dict[str, Any]:
    """A table as a dict of columns (name to sequence), without copying where that is possible."""
    if isinstance(table, Mapping):
        return {str(name): column for name, column in table.items()}
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):  # pandas and polars
        return {str(name): table[name] for name in table.columns}
    raise RowError(f"A table must be a data frame, a dict of columns or a list of rows; got {type(table).__name__}.")


def read_points(
    schema: Schema, table: Any, *, errors: list[RowError | None] | None = None
) -> NDArray[np.float64]:
    """The points of all rows of a table, in order.

    Without `errors` the first bad row raises. With an (empty) list `errors`, one entry a row is appended: None, or the
    error of that row, whose point is then NaN.
    """
    if isinstance(table, np.ndarray) and table.ndim == 2 or isinstance(table, Sequence) and not isinstance(table, str):
        return _read_rows(schema, table, errors)
    columns = frame_columns(table)
    for name in schema.names:
        if name not in columns:
            raise RowError(
                f"Feature '{name}' is not a column of the table; it has {', '.join(list(columns)[:8])}"
                f"{', ...' if len(columns) > 8 else ''}.",
                feature=name,
            )
    count = len(columns[schema.names[0]])
    points = np.empty((count, len(schema)))
    found: list[RowError | None] = [None] * count
    for i, feature in enumerate(schema.features):
        points[:, i] = _read_column(feature, columns[feature.name], found if errors is not None else None)
    if errors is not None:
        errors.extend(found)
        points[[e is not None for e in found]] = np.nan
    return points


def _read_rows(schema: Schema, rows: Any, errors: list[RowError | None] | None) -> NDArray[np.float64]:
    points = np.full((len(rows), len(schema)), np.nan)
    for r, row in enumerate(rows):
        try:
            points[r] = schema.read(row, number=r)
        except RowError as error:
            if errors is None:
                raise
            errors.append(error)
        else:
            if errors is not None:
                errors.append(None)
    return points


def _read_column(feature: Feature, column: Any, found: list[RowError | None] | None) -> NDArray[np.float64]:
    array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if isinstance(feature, Numeric) and array.dtype.kind in "iuf":
        numbers = array.astype(np.float64)
        good = np.isfinite(numbers) & (numbers >= feature.lower) & (numbers <= feature.upper)
        if feature.kind == "integer":
            steps = np.round((numbers - feature.lower) / feature.step)
            good &= feature.lower + steps * feature.step == numbers
        if good.all():
            return numbers
    elif isinstance(feature, Choice) and array.dtype.kind in "iubOUT":
        known: dict[Any, float] = {}
        try:
            for value in dict.fromkeys(array.tolist()):
                known[value] = feature.read(value)
            return np.array([known[value] for value in array.tolist()], dtype=np.float64)
        except (RowError, TypeError, KeyError):
            pass  # the slow path below finds the row to name
    numbers = np.full(len(array), np.nan)
    for r, value in enumerate(array.tolist()):
        try:
            numbers[r] = feature.read(value, row=r)
        except RowError as error:
            if found is None:
                raise
            found[r] = found[r] or error
    return numbers


def to_frame(schema: Schema, points: NDArray[np.float64]) -> Any:
    """Points as a pandas DataFrame in the user's own values."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", extra="pandas", needed_for="A DataFrame") from None
    return pd.DataFrame({name: column for name, column in user_columns(schema, points).items()})


def user_columns(schema: Schema, points: NDArray[np.float64]) -> dict[str, list[Any]]:
    """Points as columns of the user's own values."""
    return {
        feature.name: [feature.value(v) for v in np.atleast_2d(points)[:, i].tolist()]
        for i, feature in enumerate(schema.features)
    }
