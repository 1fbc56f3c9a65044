"""Inputs of a Keras model: one table of the schema's encoded columns, or several by name (a list or a dictionary)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.column_tables import ColumnTable
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.named_inputs import NamedInput, proposal
from ifonly.model.model import describe_columns
from ifonly.model.rounding import column_box
from ifonly.schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KerasInputs:
    """What each input of a model holds, in its order; none for one table of all encoded columns."""

    schema: Schema
    entries: tuple[NamedInput, ...] = ()

    def arguments(self, model: Any, points: Floats) -> Any:
        """What the model is called with, for many points."""
        encoded = np.atleast_2d(self.schema.encode(points))
        if not self.entries:
            return encoded.astype(str(model.inputs[0].dtype))
        arrays = [one.values(self.schema, points, encoded) for one in self.entries]
        given = [
            np.ascontiguousarray(values[:, 0] if one.flat else values).astype(str(tensor.dtype))
            for one, values, tensor in zip(self.entries, arrays, model.inputs, strict=True)
        ]
        struct = getattr(getattr(model, "_functional", None) or model, "_inputs_struct", None)
        if isinstance(struct, dict):
            return dict(zip([tensor.name for tensor in model.inputs], given, strict=True))
        return given if len(given) > 1 else given[0]

    def tables(self, *, looks_up: bool) -> list[Any]:
        """The value of each input: columns, or the encoded columns as they are."""
        arithmetic = Columns(self.schema)
        encoded = Flow.of(len(self.schema.columns), *column_box(self.schema))
        if self.entries:
            return [ColumnTable(one.table(arithmetic), arithmetic, encoded, one.flat) for one in self.entries]
        columns = tuple(arithmetic.encoded(j) for j in range(len(self.schema.columns)))
        return [ColumnTable(columns, arithmetic, encoded) if looks_up else encoded]


def keras_inputs(graph: Any, schema: Schema, named: dict[str, Any]) -> KerasInputs:
    """The inputs of a functional model, held against the schema."""
    tensors = list(graph.inputs)
    names = [str(tensor.name) for tensor in tensors]
    wrong = [name for name in named if name not in names]
    if wrong:
        raise ModelError(f"The model has no input '{wrong[0]}'; its inputs are {', '.join(map(repr, names[:6]))}.")
    if len(tensors) == 1 and not named:
        shape = tensors[0].shape
        if len(shape) != 2 or shape[1] != len(schema.columns):
            raise ModelError(f"The Keras model takes rows of shape {tuple(shape[1:])}, but {describe_columns(schema)}.")
        return KerasInputs(schema)
    unknown = [name for name in names if name not in named and name not in schema.names]
    if unknown:
        raise UnsupportedModel(
            f"The Keras model takes the inputs {', '.join(map(repr, names[:6]))}, of which {unknown[0]!r} is no "
            f"feature of the schema; say which features each one holds: {proposal(unknown, schema)}.",
            operation=unknown[0],
        )
    return KerasInputs(schema, tuple(_entry(tensor, named, schema) for tensor in tensors))


def _entry(tensor: Any, named: dict[str, Any], schema: Schema) -> NamedInput:
    name, shape = str(tensor.name), tuple(tensor.shape[1:])
    held = named.get(name, name)
    one = NamedInput.of(name, (held,) if isinstance(held, str) and shape else held, schema)
    if str(tensor.dtype) == "string":
        raise UnsupportedModel(
            f"The input '{name}' of the Keras model takes text; look options up before the model and give it their "
            f"numbers (dtype='int32').",
            operation="string input",
        )
    if shape not in ((), (len(one.features),)) or (not shape and len(one.features) > 1):
        raise ModelError(
            f"The input '{name}' of the Keras model takes rows of shape {shape}, but is to hold "
            f"{len(one.features)} feature(s)."
        )
    return one


def is_embedding(layer: Any) -> bool:
    return type(layer) is keras.layers.Embedding
