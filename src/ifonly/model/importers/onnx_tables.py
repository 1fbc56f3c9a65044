"""ONNX's operators for tables, on columns that are functions of the schema's row (see `columns`).

Encoders are functions of one column each. The first operator that is not in this list gets the table as a flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.column_flow import flow_of, looked_up
from ifonly.model.importers.column_kinds import Column, Line, Options
from ifonly.model.importers.columns import Columns, option_array
from ifonly.model.importers.onnx_operations import OnnxCall
from ifonly.model.importers.shaped import Shaped, in_shape
from ifonly.model.network import MAX_WIDTH
from ifonly.schema import Integer

ML = "ai.onnx.ml."
ALL_ROWS = 2**31 - 1
"""The end of a slice that ends nowhere, at least."""
ENCODERS = ("OneHotEncoder", "LabelEncoder", "Imputer")
"""Operators that are functions of a column, not of numbers: a graph that has one is read as a table."""


@dataclass(frozen=True)
class OnnxTable:
    """Columns, before they are mixed."""

    columns: tuple[Column, ...]
    arithmetic: Columns
    numbers: bool = True
    """They hold floating-point numbers, and not whole ones or texts."""
    flat: bool = False
    """Of shape (rows,): one column."""

    @property
    def width(self) -> int:
        return len(self.columns)

    def of(self, columns: Sequence[Column], *, numbers: bool | None = None, flat: bool = False) -> OnnxTable:
        if len(columns) > MAX_WIDTH:
            raise ModelError(
                f"The ONNX model makes a table of {len(columns):,} columns; at most {MAX_WIDTH:,} are read."
            )
        return OnnxTable(tuple(columns), self.arithmetic, self.numbers if numbers is None else numbers, flat)

    def flow(self, call: OnnxCall, encoded: Flow) -> Flow:
        """The same as values of a network, whose input is `encoded`."""
        if not self.numbers and not call.operation.startswith(ML):
            raise call.refuse("computes with whole numbers or texts; a Cast to floating-point numbers must come before")
        return flow_of(self.columns, self.arithmetic, encoded, call.name)


def _join(call: OnnxCall, *tables: Any) -> Any:
    if call.attributes.get("axis", 1) not in (1, -1):
        raise call.refuse("joins rows")
    return tables[0].of([column for table in tables for column in table.columns])


def _pick(call: OnnxCall, table: OnnxTable, places: Any) -> Any:
    if call.operation == "Gather" and call.attributes.get("axis", 0) not in (1, -1):
        raise call.refuse("selects rows")
    return table.of([table.columns[int(j)] for j in np.ravel(places)], flat=np.ndim(places) == 0)


def _slice(call: OnnxCall, table: OnnxTable, *arguments: Any) -> Any:
    names = ("starts", "ends", "axes", "steps")
    parts = [call.listed(name, arguments[i] if i < len(arguments) else None) for i, name in enumerate(names)]
    first, last, axes, step = parts
    if axes == [0] and first == [0] and last[0] >= ALL_ROWS and step in ([], [1], None):
        return table  # x[:], as scripted modules write it
    if axes not in ([1], [-1]) or table.flat:
        raise call.refuse("selects rows")
    return table.of(table.columns[slice(first[0], last[0], step[0] if step else None)])


def _squeeze(call: OnnxCall, table: OnnxTable, axes: Any = None) -> Any:
    if table.width != 1 or table.flat or call.listed("axes", axes) not in ([1], [-1]):
        raise call.refuse("removes a dimension that may hold rows")
    return table.of(table.columns, flat=True)


def _unsqueeze(call: OnnxCall, table: OnnxTable, axes: Any = None) -> Any:
    if not table.flat or call.listed("axes", axes) not in ([1], [-1]):
        raise call.refuse("adds a dimension to columns that are not computed with yet")
    return table.of(table.columns)


def _add(call: OnnxCall, table: OnnxTable, other: Any) -> Any:
    """Offsets that are added to whole numbers before a look-up in one table for all."""
    shifts = np.broadcast_to(np.ravel(np.float64(other)), (table.width,)).tolist()
    columns = [
        Options(options.feature, table.arithmetic.numbers(options, call.name) + shift)
        for options, shift in zip((_options(call, table, column) for column in table.columns), shifts, strict=True)
    ]
    return table.of(columns, flat=table.flat)


def embedded(call: OnnxCall, weight: Any, table: OnnxTable, encoded: Flow) -> Flow | Shaped:
    """Gather(weight, indices) along axis 0: the row of the weights whose number each column is."""
    if call.attributes.get("axis", 0) != 0 or np.ndim(weight) != 2 or table.numbers:
        raise call.refuse("looks up what are no whole numbers, or not along axis 0 of a matrix")
    rows = np.asarray(weight, dtype=np.float64)
    found = [one for column in table.columns for one in looked_up(column, rows, table.arithmetic, call.name)]
    flow = flow_of(found, table.arithmetic, encoded, call.name)
    return flow if table.flat else in_shape(flow, (table.width, rows.shape[1]))


def looks_up(node: Any, stored: set[str]) -> bool:
    """Is it a look-up of rows of stored weights?"""
    return node.op_type == "Gather" and not node.domain and node.input[0] in stored and node.input[1] not in stored


def _same(call: OnnxCall, table: OnnxTable, *others: Any) -> OnnxTable:
    return table


def _reshape(call: OnnxCall, table: OnnxTable, shape: Any) -> Any:
    sizes = np.ravel(shape).tolist()
    if len(sizes) != 2 or sizes[0] not in (0, -1) or sizes[1] not in (-1, table.width):
        raise call.refuse(f"changes the shape of the table to {sizes}")
    return table


def _cast(call: OnnxCall, table: OnnxTable) -> OnnxTable:
    to = call.attributes["to"]
    if to in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
        return table.of(table.columns, numbers=True, flat=table.flat)
    if to not in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
        raise call.refuse(f"makes {onnx.TensorProto.DataType.Name(to)} of a column")
    for column in table.columns:
        whole = isinstance(column, Line) and _is_whole(column, table.arithmetic)
        if isinstance(column, Options) and column.values.dtype.kind in "biuf":
            numbers = column.values.astype(np.float64)
            whole = bool((numbers == np.round(numbers)).all())
        if not whole:
            raise call.refuse(f"rounds {table.arithmetic.describe(column)} to whole numbers")
    return table.of(table.columns, numbers=False, flat=table.flat)


def _is_whole(line: Line, arithmetic: Columns) -> bool:
    """Is the line an integer feature itself?"""
    used = np.flatnonzero(line.weight).tolist()
    owners = [g for g, own in enumerate(arithmetic.schema.feature_columns) if set(own.tolist()) & set(used)]
    return (
        len(used) == 1
        and line.weight[used[0]] == 1.0
        and line.shift == 0.0
        and isinstance(arithmetic.schema.features[owners[0]], Integer)
    )


def _scaler(call: OnnxCall, table: OnnxTable) -> OnnxTable:
    offset, scale = (np.ravel(np.float64(call.attributes.get(key, default))) for key, default in SCALER)
    offset, scale = (np.broadcast_to(part, (table.width,)).tolist() for part in (offset, scale))
    return table.of(
        [
            table.arithmetic.scaled(column, s, -o * s, where=call.name)
            for column, o, s in zip(table.columns, offset, scale, strict=True)
        ],
        numbers=True,
    )


SCALER = (("offset", 0.0), ("scale", 1.0))


def _imputer(call: OnnxCall, table: OnnxTable) -> OnnxTable:
    """Rows of the schema have no NaN. Another number that is taken for missing must be none that they reach."""
    replaced = float(call.attributes.get("replaced_value_float", call.attributes.get("replaced_value_int64", 0.0)))
    for column in table.columns if not np.isnan(replaced) else ():
        if isinstance(column, Options):
            reached = replaced in table.arithmetic.numbers(column, call.name)
        else:
            least, most = table.arithmetic.interval(table.arithmetic.line(column, call.name))
            reached = least <= replaced <= most
        if reached:
            raise call.refuse(
                f"takes {replaced:g}, which {table.arithmetic.describe(column)} reaches, for a missing number, "
                f"which is not linear"
            )
    return table


def _options(call: OnnxCall, table: OnnxTable, column: Column) -> Options:
    if not isinstance(column, Options):
        raise UnsupportedModel(
            f"The operation {call.operation} ('{call.name}') of the ONNX model takes "
            f"{table.arithmetic.describe(column)} for a category, but it is a number in the schema; declare it as "
            f"Categorical or Ordinal.",
            operation=call.operation,
        )
    return column


def _listed(call: OnnxCall, *names: str) -> list[Any] | None:
    for name in names:
        found = call.attributes.get(name)
        if found is not None and len(found):
            return [value.decode("utf-8") if isinstance(value, bytes) else value for value in found]
    return None


def _one_hot(call: OnnxCall, table: OnnxTable) -> OnnxTable:
    """One column per category: 1 where the option is that category."""
    known = _listed(call, "cats_strings", "cats_int64s") or []
    encoded: list[Column] = []
    for column in table.columns:
        options = _options(call, table, column)
        values = options.values.tolist()
        table.arithmetic.check_known(options, known, who=f"'{call.name}' (OneHotEncoder)")
        unknown = [value for value in values if value not in known]
        if unknown and not call.attributes.get("zeros", 1):
            raise call.refuse(f"does not know the option {unknown[0]!r} of {table.arithmetic.describe(column)}")
        encoded += [Options(options.feature, np.array([float(value == one) for value in values])) for one in known]
    return table.of(encoded, numbers=True)


def _label(call: OnnxCall, table: OnnxTable) -> OnnxTable:
    """The number of a category."""
    kinds = ("strings", "int64s", "floats")
    keys = _listed(call, *(f"keys_{kind}" for kind in kinds))
    values = _listed(call, *(f"values_{kind}" for kind in kinds))
    if keys is None or values is None:
        raise call.refuse("maps tensors, or nothing")
    default = next(
        (call.attributes[f"default_{kind[:-1]}"] for kind in kinds if f"default_{kind[:-1]}" in call.attributes), None
    )
    default = default.decode("utf-8") if isinstance(default, bytes) else default
    mapped = dict(zip(keys, values, strict=True))
    encoded: list[Column] = []
    for column in table.columns:
        options = _options(call, table, column)
        table.arithmetic.check_known(options, keys, who=f"'{call.name}' (LabelEncoder)")
        own = [mapped.get(value, default) for value in options.values.tolist()]
        if None in own:
            unknown = options.values.tolist()[own.index(None)]
            raise call.refuse(f"does not know the option {unknown!r} of {table.arithmetic.describe(column)}")
        encoded.append(Options(options.feature, option_array(own)))
    return table.of(encoded, numbers=all(isinstance(value, float) for value in values))


TABLES: dict[str, Callable[..., Any]] = {
    "Concat": _join,
    "Gather": _pick,
    f"{ML}ArrayFeatureExtractor": _pick,
    f"{ML}FeatureVectorizer": _join,
    "Identity": _same,
    "Dropout": _same,
    "Flatten": _same,
    "Reshape": _reshape,
    "Add": _add,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Cast": _cast,
    f"{ML}Scaler": _scaler,
    f"{ML}Imputer": _imputer,
    f"{ML}OneHotEncoder": _one_hot,
    f"{ML}LabelEncoder": _label,
}
"""What keeps columns apart."""


def takes_tables(operation: str, inputs: Sequence[Any]) -> bool:
    """Can the operation be done column by column?"""
    if operation == "Add" and isinstance(inputs[0], OnnxTable) and not inputs[0].numbers:
        return isinstance(inputs[1], np.ndarray)
    joins = operation in ("Concat", f"{ML}FeatureVectorizer")
    rest = inputs if joins else inputs[:1]
    return operation in TABLES and operation != "Add" and all(isinstance(value, OnnxTable) for value in rest)
