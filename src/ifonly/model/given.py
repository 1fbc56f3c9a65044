"""A model from what the user gives: a model, a network, a file, or a fitted estimator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ifonly.errors import ModelError
from ifonly.model.model import Model, network_model
from ifonly.model.network import Network
from ifonly.printing import shown
from ifonly.schema import Schema
from ifonly.schema.editing import unlabelled


def as_model(model: Any, schema: Any, classes: tuple[Any, ...] = ()) -> Model:
    """The model, imported under the schema if need be."""
    if schema is not None and not isinstance(schema, Schema):
        frame = hasattr(schema, "columns") and hasattr(schema, "dtypes")
        hint = "; a table becomes one with Schema.infer(frame)" if frame else ""
        raise ModelError(f"Say what a row is with a Schema{hint}; got {shown(schema)}.")
    if isinstance(model, Model):
        if schema is not None and unlabelled(schema) != unlabelled(model.schema):
            raise ModelError("This model already has a schema of its own; leave out schema=..., or import it anew.")
        model = model if schema is None else replace(model, schema=schema)  # with its labels and units
        return replace(model, classes=classes) if classes else model
    if schema is None:
        raise ModelError("Say what a row is with schema=...; Schema.infer(frame) proposes one.")
    if isinstance(model, Network):
        return network_model(model, schema, classes=classes)
    from ifonly.model.importers import import_model

    return import_model(Path(model) if isinstance(model, str) else model, schema, classes=classes)
