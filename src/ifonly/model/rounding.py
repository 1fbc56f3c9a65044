"""How far a deployed model can be from real arithmetic on its weights.

Standard forward error analysis: a dot product of n terms, summed in any order in precision u, is off by at most
gamma_n * sum |w_j||h_j| with gamma_n = n u / (1 - n u). Layer by layer, with magnitudes bounded over the schema's box:

    e_0 = u |x|                                         (the row itself, rounded to the model's precision)
    e_i = |W_i| e_{i-1} + gamma_{n+2} (|W_i| (m_{i-1} + e_{i-1}) + |b_i|)

ReLU does not enlarge an error. The result bounds |deployed - real| for every row of the schema. Where a layer of the
network stands for several steps of the model (scaling, encoding, two linear layers in a row), |W_i| and |b_i| in the
second term are those of its `Majorant`, and n counts the roundings of all its steps; to them come those of the importer,
which multiplied the steps in float64. `FOLDS` roundings more are allowed for everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ifonly.model.model import Model
from ifonly.schema import Numeric, Schema

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
FOLDS = 8


def column_magnitudes(schema: Schema) -> NDArray[np.float64]:
    """The largest absolute value of each encoded column."""
    magnitude = np.ones(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Numeric):
            magnitude[columns] = max(abs(feature.lower), abs(feature.upper))
        else:
            magnitude[columns] = np.abs(feature.codes).max(axis=0)
    return magnitude


def rounding_error(model: Model) -> NDArray[np.float64]:
    """A rigorous bound on |deployed score - real score| for every row of the schema, one number an output."""
    return score_error(model, column_magnitudes(model.schema)[None, :])[0]


def score_error(model: Model, magnitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for rows whose encoded columns are no larger than `magnitude`, of shape (boxes, columns): a row a box."""
    unit = UNIT[model.precision]
    error = unit * magnitude
    layers = model.network.layers
    for layer, majorant in zip(layers, model.majorants or [None] * len(layers), strict=True):
        weight, bias, terms = np.abs(layer.weight), np.abs(layer.bias), layer.weight.shape[1]
        size = work = (magnitude + error) @ weight.T + bias
        folding = 0.0
        if majorant is not None:
            terms = max(terms, majorant.terms)
            work = np.maximum(size, (magnitude + error) @ majorant.weight.T + majorant.bias)
            folding = _gamma(terms, UNIT["float64"])
        gamma = _gamma(terms + 2 + FOLDS, unit) + folding
        error = error @ weight.T + gamma * work
        magnitude = size
    return error * (1.0 + 1e-9)


def _gamma(terms: int, unit: float) -> float:
    return terms * unit / (1.0 - terms * unit)
