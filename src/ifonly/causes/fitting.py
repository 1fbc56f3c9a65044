"""Equations learned from a table: least squares, a small network or a few boosted trees; and how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ifonly.causes.equations import Equation, LinearEquation, ModelEquation
from ifonly.causes.graphs import graph_of
from ifonly.errors import MissingExtra, ModelError
from ifonly.model.layers import layers_of, network_of_layers
from ifonly.printing import shown
from ifonly.schema import Choice, Schema, read_points

if TYPE_CHECKING:
    from ifonly.causes.causal_model import CausalModel

Floats = NDArray[np.float64]

KINDS = ("linear", "network", "smooth", "boosted")
LEAST_ROWS = 10
HELD_OUT = 5
"""Every so many rows, one is kept to judge the fit; the equation is fitted to all of them afterwards."""
NEURONS = 8
BOOSTED = {"max_iter": 20, "max_leaf_nodes": 4, "max_bins": 24, "learning_rate": 0.2, "early_stopping": False}
"""Few leaves over few bins: what is exact has to be searched."""


def fitted(cls: type[CausalModel], graph: Any, table: Any, schema: Any, equations: Any) -> CausalModel:
    """The causal model, with `fits`."""
    from ifonly.causes.causal_model import EquationFit

    if not isinstance(schema, Schema):
        raise ModelError(f"Say what a row is with a Schema; got {shown(schema)}.")
    if not isinstance(equations, str) or equations not in KINDS:
        raise ModelError(f"Equations are fitted as {', '.join(KINDS[:-1])} or {KINDS[-1]}; got {shown(equations)}.")
    causes, points = graph_of(graph, schema), read_points(schema, table)
    points = points[~np.isnan(points).any(axis=1)]
    if len(points) < LEAST_ROWS:
        raise ModelError(f"Equations are fitted to at least {LEAST_ROWS} complete rows; there are {len(points)}.")
    held = np.arange(len(points)) % HELD_OUT == 0
    found: dict[str, Equation] = {}
    fits = []
    for name, parents in causes.items():
        g = schema.index(name)
        tried = _equation(schema, parents, points[~held], g, equations).compiled(schema, schema[name])
        rest = points[held, g] - tried.values(points[held])
        spread = float(points[held, g].var())
        r2 = 1.0 - float((rest**2).mean()) / spread if spread else 0.0
        fits.append(EquationFit(name, parents, equations, r2, float(rest.std()), len(points)))
        found[name] = _equation(schema, parents, points, g, equations)
    return cls(schema, found, fits=tuple(fits))


def _equation(schema: Schema, parents: Sequence[str], points: Floats, g: int, kind: str) -> Equation:
    places = [schema.index(name) for name in parents]
    if kind == "linear":
        return _linear(schema, places, points, g)
    own = Schema([schema[name] for name in parents])
    rows, target = own.encode(points[:, places]), points[:, g]
    if kind == "boosted":
        return ModelEquation(parents, _boosted(rows, target))
    return ModelEquation(parents, _network(own, rows, target, "tanh" if kind == "smooth" else "relu"))


def _linear(schema: Schema, places: Sequence[int], points: Floats, g: int) -> LinearEquation:
    """Least squares; of options, the solution of least norm."""
    columns, centre = [], []
    for p in places:
        feature = schema.features[p]
        own = points[:, [p]]
        block = own if not isinstance(feature, Choice) else (own == np.arange(len(feature.options))).astype(np.float64)
        columns.append(block - block.mean(axis=0))
        centre.append(block.mean(axis=0))
    matrix, middle = np.concatenate(columns, axis=1), np.concatenate(centre)
    size = np.where(matrix.std(axis=0) > 0.0, matrix.std(axis=0), 1.0)
    target = points[:, g]
    solution = np.linalg.lstsq(matrix / size, target - target.mean(), rcond=1e-9)[0] / size
    weights: dict[str, Any] = {}
    at = 0
    for p in places:
        feature = schema.features[p]
        if isinstance(feature, Choice):
            values = solution[at : at + len(feature.options)].tolist()
            weights[feature.name] = dict(zip(feature.options, values, strict=True))
            at += len(values)
        else:
            weights[feature.name] = float(solution[at])
            at += 1
    return LinearEquation(weights, float(target.mean() - middle @ solution))


def _boosted(rows: Floats, target: Floats) -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
    except ImportError:
        raise MissingExtra("scikit-learn", extra="sklearn", needed_for="Fitting boosted trees") from None
    return HistGradientBoostingRegressor(**BOOSTED, random_state=0).fit(rows, target)


def _network(own: Schema, rows: Floats, target: Floats, activation: str) -> Any:
    try:
        from sklearn.neural_network import MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise MissingExtra("scikit-learn", extra="sklearn", needed_for="Fitting networks") from None
    scale = float(target.std()) or 1.0
    network = MLPRegressor(
        hidden_layer_sizes=(NEURONS,), activation=activation, alpha=1e-3, max_iter=2000, solver="lbfgs", random_state=0
    )
    pipeline = make_pipeline(StandardScaler(), network).fit(rows, (target - target.mean()) / scale)
    return _rescaled(pipeline, own, float(target.mean()), scale)


def _rescaled(pipeline: Any, own: Schema, middle: float, scale: float) -> Any:
    """The network of the pipeline, in the units of the feature."""
    from ifonly.model.importers import import_model

    function = import_model(pipeline, own, regression=True).function
    network = function.as_network() or function.as_smooth_network()
    assert network is not None
    layers, activations = layers_of(network)
    weight, bias = layers[-1]
    return network_of_layers([*layers[:-1], (scale * weight, scale * bias + middle)], activations)
