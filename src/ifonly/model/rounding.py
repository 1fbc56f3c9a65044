"""How far a deployed model can be from real arithmetic on its weights.

Standard forward error analysis: a dot product of n terms, summed in any order in precision u, is off by at most
gamma_n * sum |w_j||h_j| with gamma_n = n u / (1 - n u). Layer by layer, with magnitudes m bounded by interval
arithmetic over a box of rows:

    e_0 = u |x|                                         (the row itself, rounded to the model's precision)
    e_i = |W_i| e_{i-1} + gamma_{n+2} (|W_i| (m_{i-1} + e_{i-1}) + |b_i|)

ReLU does not enlarge an error. The result bounds |deployed - real| for every row of the box. Where a layer of the
network stands for several steps of the model (scaling, encoding, two linear layers in a row), |W_i| and |b_i| in
the second term are those of its `Majorant`, and n counts the roundings of all its steps; to them come those of the
importer, which multiplied the steps in float64. `FOLDS` roundings more are allowed for everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model.model import Model
from ifonly.schema import Numeric, Schema

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
FOLDS = 8


def column_box(schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and largest value of each encoded column."""
    lower, upper = np.zeros(len(schema.columns)), np.ones(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Numeric):
            lower[columns], upper[columns] = feature.lower, feature.upper
        else:
            lower[columns], upper[columns] = feature.codes.min(axis=0), feature.codes.max(axis=0)
    return lower, upper


def rounding_error(model: Model) -> NDArray[np.float64]:
    """A rigorous bound on |deployed score - real score| for every row of the schema, one number an output."""
    lower, upper = column_box(model.schema)
    return score_error(model, lower[None, :], upper[None, :])[0]


def score_error(model: Model, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for the rows of a box of encoded columns; many boxes at once, arrays of shape (boxes, columns)."""
    unit = UNIT[model.precision]
    error = unit * np.maximum(np.abs(lower), np.abs(upper))
    layers = model.network.layers
    for layer, majorant in zip(layers, model.majorants or [None] * len(layers), strict=True):
        weight = np.abs(layer.weight)
        size = np.maximum(np.abs(lower), np.abs(upper)) + error
        work = size @ weight.T + np.abs(layer.bias)
        terms = (size > 0.0).sum(axis=1, keepdims=True) + 2.0 + FOLDS  # adding a zero is exact
        folding = 0.0
        if majorant is not None:
            terms = np.maximum(terms, majorant.terms + 2.0 + FOLDS)
            work = np.maximum(work, size @ majorant.weight.T + majorant.bias)
            folding = _gamma(majorant.terms + layer.weight.shape[1], UNIT["float64"])
        error = error @ weight.T + (_gamma(terms, unit) + folding) * work
        centre = (0.5 * (lower + upper)) @ layer.weight.T + layer.bias
        radius = (0.5 * (upper - lower)) @ weight.T + 1e-12 * work  # the interval itself is computed in float64
        if layer is not layers[-1]:  # a ReLU that is surely off gives an exact zero in any arithmetic
            error = np.where(centre + radius + error <= 0.0, 0.0, error)
        lower, upper = np.maximum(centre - radius, 0.0), np.maximum(centre + radius, 0.0)
    return error * (1.0 + 1e-9)


def _gamma(terms: Any, unit: float) -> Any:
    return terms * unit / (1.0 - terms * unit)
