"""Inputs of an ONNX graph: one table of the schema's columns, or one input per column, and the arrays for them.

    one input of as many columns as the schema encodes to    the encoded columns, in order
    one input of as many columns as there are features       the features in the user's own values, in order
    several inputs of one column each                        by name: a feature's own values, or an encoded column
    inputs that the user says the features of                these, as numbers (`named_inputs`)

Integers and booleans are passed as such where the schema has no other values there; texts are options. A graph with a
fixed batch size is run in batches of that size, the last one padded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.column_kinds import Column
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.named_inputs import NamedInput, proposal
from ifonly.model.model import describe_columns
from ifonly.printing import shown, some_of
from ifonly.schema import Choice, Integer, Numeric, Schema

TYPES = onnx.TensorProto
TEXT = "object"
MOST_ROWS = 2**16
"""A fixed number of rows beyond this is refused: a few bytes of a file could ask for any."""
KINDS = {
    TYPES.FLOAT: "float32",
    TYPES.DOUBLE: "float64",
    TYPES.INT64: "int64",
    TYPES.INT32: "int32",
    TYPES.INT16: "int16",
    TYPES.INT8: "int8",
    TYPES.UINT8: "uint8",
    TYPES.BOOL: "bool",
    TYPES.STRING: TEXT,
}


@dataclass(frozen=True)
class Input:
    """One input of a graph: the encoded columns that it holds, or the features in their own values."""

    name: str
    kind: str
    columns: tuple[int, ...] = ()
    features: tuple[int, ...] = ()
    flat: bool = False
    """It has one dimension: a number per row."""
    named: NamedInput | None = None
    """What the user said that it holds."""

    def values(self, schema: Schema, points: NDArray[np.float64], encoded: NDArray[np.float64]) -> NDArray[Any]:
        if self.named is not None:
            table = self.named.values(schema, points, encoded).astype(self.kind)
        elif not self.features:
            table = encoded[:, self.columns].astype(self.kind)
        else:
            own = [_own_values(schema, g, points[:, g], self.kind) for g in self.features]
            table = np.stack(own, axis=1)
        return table[:, 0] if self.flat else table


def _own_values(schema: Schema, g: int, column: NDArray[np.float64], kind: str) -> NDArray[Any]:
    feature = schema.features[g]
    if not isinstance(feature, Choice):
        return column.astype(kind)
    options = np.empty(len(feature.options), dtype=object)
    options[:] = list(feature.options)
    return options.astype(kind)[column.astype(np.intp)]


@dataclass(frozen=True)
class OnnxInputs:
    """All inputs of a graph; `batch` is the number of rows that it takes, 0 for any."""

    schema: Schema
    entries: tuple[Input, ...]
    batch: int = 0

    @property
    def plain(self) -> bool:
        """Is it one table of the encoded columns?"""
        first = self.entries[0]
        return len(self.entries) == 1 and not first.features and not first.flat and first.named is None

    def feeds(self, points: NDArray[np.float64]) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """The feeds of the graph, batch by batch, each with its number of real rows."""
        encoded = np.atleast_2d(self.schema.encode(points))
        tables = {one.name: one.values(self.schema, points, encoded) for one in self.entries}
        size = self.batch or len(points)
        for first in range(0, len(points), max(size, 1)):
            part = {name: table[first : first + size] for name, table in tables.items()}
            rows = min(size, len(points) - first)
            if rows < size:
                part = {
                    name: np.concatenate([table, np.repeat(table[-1:], size - rows, axis=0)])
                    for name, table in part.items()
                }
            yield rows, part

    def columns(self, arithmetic: Columns) -> dict[str, list[Column]]:
        """The inputs as functions of the schema's row."""
        return {
            one.name: list(one.named.table(arithmetic))
            if one.named is not None
            else [arithmetic.raw(g) for g in one.features] or [arithmetic.encoded(j) for j in one.columns]
            for one in self.entries
        }


def inputs_of(graph: Any, schema: Schema, named: dict[str, Any]) -> OnnxInputs:
    """The inputs of a graph, held against the schema; `named`: what the user said that they hold."""
    stored = {tensor.name for tensor in graph.initializer}
    given = [one for one in graph.input if one.name not in stored]
    if not given:
        raise ModelError("The ONNX model has no input.")
    if any(one.type.WhichOneof("value") != "tensor_type" for one in given):
        raise UnsupportedModel("The ONNX model has an input that is no tensor.", operation="input")
    wrong = [name for name in named if name not in [one.name for one in given]]
    if wrong:
        known = ", ".join(repr(one.name) for one in given[:6])
        raise ModelError(f"The ONNX model has no input '{wrong[0]}'; its inputs are {known}.")
    if len(given) == 1 and not named:
        inputs = [_table(given[0], schema)]
    else:
        inputs = [_said(one, named[one.name], schema) if one.name in named else _named(one, schema) for one in given]
    sizes = [one.type.tensor_type.shape.dim[0].dim_value for one in given if one.type.tensor_type.shape.dim]
    batch = max(sizes, default=0)
    if not 0 <= batch <= MOST_ROWS:
        raise ModelError(f"The ONNX model takes {batch} rows at a time; at most {MOST_ROWS:,} are given to it.")
    return OnnxInputs(schema, tuple(inputs), batch)


def _table(given: Any, schema: Schema) -> Input:
    """The only input: a table of the encoded columns, or of the features' own values."""
    kind, dims = _kind(given), given.type.tensor_type.shape.dim
    width = int(dims[1].dim_value) if len(dims) > 1 else 1 if len(dims) == 1 else 0
    if len(dims) > 2:
        raise UnsupportedModel(
            f"The input '{given.name}' of the ONNX model has {len(dims)} dimensions; a table of columns has two.",
            operation="input",
        )
    flat = len(dims) == 1
    if kind != TEXT and width in (0, len(schema.columns)):
        return _checked(Input(given.name, kind, columns=tuple(range(len(schema.columns))), flat=flat), schema)
    if width in (0, len(schema)):
        return _checked(Input(given.name, kind, features=tuple(range(len(schema))), flat=flat), schema)
    raise ModelError(f"The ONNX model takes {width} columns, but {describe_columns(schema)}.")


def _said(given: Any, held: str | tuple[str, ...], schema: Schema) -> Input:
    """One of several inputs, by what the user said that it holds."""
    kind, dims = _kind(given), given.type.tensor_type.shape.dim
    named = NamedInput.of(given.name, held, schema)
    width, count = int(dims[1].dim_value) if len(dims) > 1 else 1, len(named.features)
    if kind == TEXT or len(dims) > 2:
        raise ModelError(
            f"The input '{given.name}' of the ONNX model holds {kind} in {len(dims)} dimensions; features are given "
            f"as numbers in a table of columns."
        )
    if len(dims) > 1 and width not in (0, count):
        are = "is" if count == 1 else "are"
        raise ModelError(
            f"The input '{given.name}' of the ONNX model has {width} columns, and {count} {are} "
            f"named; name one for each: a feature (of its options, the code) or a column of the schema "
            f"({some_of(schema.columns)})."
        )
    if not kind.startswith("float") and not named.integers(schema):
        raise ModelError(
            f"The input '{given.name}' of the ONNX model holds {kind}, but not all features that were named are "
            f"choices or whole numbers."
        )
    return Input(given.name, kind, flat=len(dims) == 1, named=named)


def _named(given: Any, schema: Schema) -> Input:
    """One of several inputs: a column, by its name."""
    kind, dims = _kind(given), given.type.tensor_type.shape.dim
    width = int(dims[1].dim_value) if len(dims) > 1 else 1
    if width not in (0, 1) or len(dims) > 2:
        raise UnsupportedModel(
            f"The input '{given.name}' of the ONNX model is one of several and holds {width} columns, whose names are "
            f"nowhere said; say them: {proposal([given.name], schema)}; on the command line: "
            f"--input {given.name}=FEATURE,FEATURE.",
            operation="several inputs",
        )
    flat = len(dims) == 1
    for names, part in ((schema.names, "features"), (schema.columns, "columns")):
        known = {name.replace(" ", "_"): j for j, name in enumerate(names)}
        found = {name: j for j, name in enumerate(names)}.get(given.name, known.get(given.name))
        if found is not None:
            return _checked(replace(Input(given.name, kind, flat=flat), **{part: (found,)}), schema)  # type: ignore[arg-type]
    raise ModelError(
        f"The input '{given.name}' of the ONNX model is neither a feature nor a column of the schema; the features are "
        f"{some_of(schema.names)}. Say which it holds: {proposal([given.name], schema)}."
    )


def _kind(given: Any) -> str:
    elem = given.type.tensor_type.elem_type
    if elem not in KINDS:
        name = onnx.TensorProto.DataType.Name(elem)
        raise UnsupportedModel(
            f"'{given.name}' of the ONNX model holds {name} numbers; only FLOAT and DOUBLE, whole numbers, BOOL and "
            f"STRING are supported.",
            operation=name,
        )
    return KINDS[elem]


def _checked(one: Input, schema: Schema) -> Input:
    """The input, if all values of the schema there can be given as its kind."""
    owners = one.features or tuple(
        g for g, columns in enumerate(schema.feature_columns) if set(columns.tolist()) & set(one.columns)
    )
    for g in owners:
        feature = schema.features[g]
        if isinstance(feature, Numeric):
            why = _number_refused(feature, one.kind)
        else:
            assert isinstance(feature, Choice)
            values = list(feature.options) if one.features else feature.codes.ravel().tolist()
            why = next((f"has the option {shown(v)}" for v in values if not _fits(v, one.kind)), "")
        if why:
            kind = "texts" if one.kind == TEXT else one.kind
            raise ModelError(
                f"The input '{one.name}' of the ONNX model holds {kind}, but the feature '{feature.name}' {why}; "
                f"declare the feature as the model knows it, or export the model with another type of input."
            )
    return one


def _number_refused(feature: Numeric, kind: str) -> str:
    if kind == TEXT:
        return "is a number"
    if kind.startswith("float"):
        return ""
    if not isinstance(feature, Integer):
        return "is a real number"
    least, most = (0, 1) if kind == "bool" else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    return (
        "" if least <= feature.lower and feature.upper <= most else f"reaches from {feature.lower} to {feature.upper}"
    )


def _fits(value: Any, kind: str) -> bool:
    """Can the value of an option be given as this kind, as it is?"""
    if isinstance(value, str) or kind == TEXT:
        return isinstance(value, str) and kind == TEXT
    return isinstance(value, bool | int | float) and float(np.asarray(value).astype(kind)) == float(value)
