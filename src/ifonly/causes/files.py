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
from ifonly.model.trees.files import trees_from_dict, trees_to_dict
from ifonly.printing import json_text, shown
from ifonly.schema import Schema
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
    if model.function.as_network() is None:
        trees = trees_to_dict(model)
        written = {key: one.tolist() if isinstance(one, np.ndarray) else one for key, one in trees.items()}
        return {"kind": "trees", "parents": list(equation.parents), "trees": written}
    layers = [{"weight": one.weight.tolist(), "bias": one.bias.tolist()} for one in compiled.network.layers]
    return {"kind": "network", "parents": list(equation.parents), "layers": layers}


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
    return ModelEquation(data["parents"], Network.of([(one["weight"], one["bias"]) for one in layers]))


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
