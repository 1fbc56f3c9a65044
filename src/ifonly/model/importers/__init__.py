"""Importers: a framework's model as an ifonly Model. Frameworks are recognised without importing them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ifonly.errors import ModelError
from ifonly.model.files import load_network
from ifonly.model.model import Model, network_model
from ifonly.schema import Schema


def import_model(model: Any, schema: Schema, *, classes: tuple[Any, ...] = ()) -> Model:
    """The model as an ifonly Model, checked against the original on random rows."""
    if isinstance(model, str | Path):
        return load_model(model, schema, classes=classes)
    raise ModelError(f"A model of type {type(model).__module__}.{type(model).__name__} cannot be imported.")


def load_model(path: str | Path, schema: Schema, *, classes: tuple[Any, ...] = ()) -> Model:
    """A model file (ifonly .npz or .json, ONNX) as an ifonly Model."""
    network, names = load_network(path)
    return network_model(network, schema, classes=classes or names)
