"""Causal models as plain data: their equations, and the cost of holding. Safe to load: nothing in a file is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ifonly.causes.equations import Equation, LinearEquation, ModelEquation, TableEquation
from ifonly.errors import FileError, IfonlyError, ModelError
from ifonly.model import Network
from ifonly.model.layers import layers_of
from ifonly.model.smooth import Activation, SmoothNetwork
from ifonly.model.smooth.activations import SideBySide
from ifonly.model.trees.files import trees_from_dict, trees_to_dict
from ifonly.printing import json_text, shown
from ifonly.schema import Schema
from ifonly.schema.arguments import real_number
from ifonly.schema.io import read_json, write_whole

if TYPE_CHECKING:
    from ifonly.causes.causal_model import CausalModel

FORMAT, VERSION = "ifonly-causes", 1


def causes_to_dict(causes: CausalModel) -> dict[str, Any]:
    """The equations as plain data; of fitted ones the network, or the trees."""
    equations = {name: _to_dict(causes, name, one) for name, one in causes.equations.items()}
    return {"format": FORMAT, "version": VERSION, "equations": equations, "holding": causes.holding}


def _to_dict(causes: CausalModel, name: str, equation: Equation) -> dict[str, Any]:
    if not isinstance(equation, ModelEquation):
        return equation.to_dict()
    compiled, schema = causes.compiled[causes.schema.index(name)], causes.schema
    model = equation.imported(schema, schema[name])
    parents = list(equation.parents)
    if compiled.trees is not None:
        trees = trees_to_dict(model)
        written = {key: one.tolist() if isinstance(one, np.ndarray) else one for key, one in trees.items()}
        return {"kind": "trees", "parents": parents, "trees": written}
    pairs, activations = layers_of(compiled.network)
    layers = [{"weight": weight.tolist(), "bias": bias.tolist()} for weight, bias in pairs]
    if isinstance(compiled.network, Network):
        return {"kind": "network", "parents": parents, "layers": layers}
    return {"kind": "smooth", "parents": parents, "layers": layers, "activations": [_curves(a) for a in activations]}


def _curves(activation: Activation | SideBySide) -> list[list[Any]]:
    """Of a layer: each activation with its alpha, and how many neurons in a row have it; 0: all."""
    parts = activation.parts if isinstance(activation, SideBySide) else ((activation, 0),)
    return [[one.name, one.alpha, count] for one, count in parts]


def causes_from_dict(cls: type[CausalModel], data: Any, schema: Schema) -> CausalModel:
    if not isinstance(schema, Schema):
        raise ModelError(f"Say what a row is with a Schema; got {shown(schema)}.")
    head = [data.get(name) for name in ("format", "version")] if isinstance(data, Mapping) else []
    if not isinstance(data, Mapping) or [type(one) for one in head] != [str, int] or head != [FORMAT, VERSION]:
        raise ModelError(f'Causes are a JSON object with "format": "{FORMAT}", "version": {VERSION}; this is not one.')
    unknown = set(data) - {"format", "version", "equations", "holding"}
    equations = data.get("equations")
    if unknown or not isinstance(equations, Mapping):
        wrong = f"the entry {shown(min(map(str, unknown)))}" if unknown else "no equations"
        raise ModelError(f"Causes have equations and a cost of holding; these have {wrong}.")
    read = {}
    for name, one in equations.items():
        try:
            read[name] = _from_dict(one, schema)
        except IfonlyError as error:
            raise ModelError(f"The equation of {shown(name)}: {error}") from None
    return cls(schema, read, **({"holding": data["holding"]} if "holding" in data else {}))


_ENTRIES = {
    "linear": ("weights", "intercept"),
    "table": ("parents", "values"),
    "network": ("parents", "layers"),
    "smooth": ("parents", "layers", "activations"),
    "trees": ("parents", "trees"),
}


def _from_dict(data: Any, schema: Schema) -> Equation:
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in _ENTRIES or set(data) != {"kind", *_ENTRIES[kind]}:
        listed = "; ".join(f'"{name}" with {" and ".join(entries)}' for name, entries in _ENTRIES.items())
        raise ModelError(f"An equation is an object of a kind: {listed}; got {shown(data)}.")
    if kind == "linear":
        weights = data["weights"]
        if not isinstance(weights, Mapping):
            raise ModelError(f"Weights are given by feature; got {shown(weights)}.")
        return LinearEquation(
            {n: _pairs(w) if isinstance(w, list) else w for n, w in weights.items()}, data["intercept"]
        )
    if kind == "table":
        return TableEquation(data["parents"], _pairs(data["values"]))
    if kind == "trees":
        equation = ModelEquation(data["parents"], data["trees"])  # which checks the names
        return replace(equation, model=trees_from_dict(data["trees"], equation.own_schema(schema)))
    layers = data["layers"]
    if not isinstance(layers, list) or not all(
        isinstance(one, Mapping) and set(one) == {"weight", "bias"} for one in layers
    ):
        raise ModelError(f"A network is a list of layers with weight and bias; got {shown(layers)}.")
    network = Network.of([(one["weight"], one["bias"]) for one in layers])
    if kind == "network":
        return ModelEquation(data["parents"], network)
    curves = [_read_curves(one, size) for one, size in zip(_list(data["activations"]), network.hidden, strict=False)]
    return ModelEquation(data["parents"], SmoothNetwork(network, curves))


def _list(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise ModelError(f"Activations are a list, an entry per layer but the last; got {shown(values)}.")
    return values


def _read_curves(data: Any, size: int) -> Activation | SideBySide:
    """The activations of a layer of so many neurons."""
    parts = []
    for one in _list(data):
        if not isinstance(one, list) or len(one) != 3:
            raise ModelError(f"Activations of a layer are a list of [name, alpha, count]; got {shown(one)}.")
        name, alpha, count = one
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= size:
            raise ModelError(f"So many neurons in a row have an activation: a whole number; got {shown(count)}.")
        alpha = real_number(alpha, "The alpha of an activation is a finite number; it is")
        parts.append((Activation(name, alpha), count or size))
    if sum(count for _, count in parts) != size:
        raise ModelError(f"The activations of a layer of {size} neurons are of so many neurons; got {shown(data)}.")
    return parts[0][0] if len(parts) == 1 else SideBySide(tuple(parts))


def _pairs(values: Any) -> dict[Any, Any]:
    """A mapping that was written as pairs, since JSON has texts for keys only."""
    good = isinstance(values, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in values)
    if not good:
        raise ModelError(f"Values are a list of pairs [of, value]; got {shown(values)}.")
    found = {}
    for of, value in values:
        key = tuple(of) if isinstance(of, list) else of
        try:
            found[key] = value
        except TypeError:
            raise ModelError(f"Values are given for options and numbers; got {shown(of)}.") from None
    return found


def save_causes(causes: CausalModel, path: str | Path) -> None:
    write_whole(path, (json_text(causes_to_dict(causes), indent=1) + "\n").encode("utf-8"))


def load_causes(cls: type[CausalModel], path: str | Path, schema: Schema) -> CausalModel:
    data = read_json(path, "file of causes")
    try:
        return causes_from_dict(cls, data, schema)
    except IfonlyError as error:
        raise FileError(f"In '{path}': {error}") from None
