"""How far a deployed model can be from real arithmetic on its weights.

Standard forward error analysis: a dot product of n terms, summed in any order in precision u, is off by at most
gamma_n * sum |w_j||h_j| with gamma_n = n u / (1 - n u), and by what underflow takes. Layer by layer, with magnitudes m
bounded by interval arithmetic over a box of rows:

    e_0 = u |x| + t                                     (the row itself, rounded to the model's precision)
    e_i = |W_i| e_{i-1} + gamma_{n+2} (|W_i| (m_{i-1} + e_{i-1}) + |b_i|) + 2 t l_i (1 + sum_j (m_{i-1} + e_{i-1})_j)

ReLU does not enlarge an error. The result bounds |deployed - real| for every row of the box.

t is the least normal number. A machine may lose as much whenever a result is below it, and, if it flushes what it
reads, of every weight and every value that is: so l_i = 2 n + 3 + sum_j |W_ij| counts the operations of a neuron
and the weights that its inputs are multiplied with (`losses`). Where a number inside the model may be beyond
the largest of its precision, the bound is infinite.

Where a layer of the network stands for several steps of the model (scaling, encoding, two linear layers in a row),
|W_i|, |b_i|, l_i and the largest number are those of its `Majorant`, and n counts the roundings of all its steps; to
them come those of the importer, which multiplied the steps in float64. `FOLDS` roundings more are allowed for
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ifonly.model.kind import Precision
from ifonly.schema import Numeric, Schema

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
LEAST = {"float64": 2.0**-1022, "float32": 2.0**-126}
LARGEST = {"float64": float(np.finfo(np.float64).max), "float32": float(np.finfo(np.float32).max)}
FOLDS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Majorant:
    """What one layer of the network could at most add up to inside the model that it stands for.

    A layer may be the product of several steps of the model (scaling, encoding, batch normalisation, two linear layers
    in a row). The model computes the steps one by one, and its rounding follows their absolute values multiplied step
    by step, |A_k| ... |A_1|, which is more than |A_k ... A_1| when entries cancel. `terms` counts the roundings.

    Two numbers are in units of 1 + sum |x|, for inputs x of the layer: `lost` least normal numbers may be lost of each
    output by underflow, and no value on the way is larger than `peak`.
    """

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    terms: int
    lost: NDArray[np.float64]
    peak: float


class Layer(Protocol):
    """An affine layer; `majorant` where it stands for several steps of the model."""

    @property
    def weight(self) -> NDArray[np.float64]: ...

    @property
    def bias(self) -> NDArray[np.float64]: ...

    @property
    def majorant(self) -> Majorant | None: ...


def losses(size: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many least normal numbers an affine map with these absolute weights can lose of each output by underflow, in
    units of 1 + sum |x|: one per operation, and what flushing a weight or an input may do to their product."""
    return np.asarray(2.0 * size.shape[1] + 3.0 + size.sum(axis=1))


def column_box(schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and largest value of each encoded column."""
    lower, upper = np.zeros(len(schema.columns)), np.ones(len(schema.columns))
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Numeric):
            lower[columns], upper[columns] = feature.lower, feature.upper
        else:
            lower[columns], upper[columns] = feature.codes.min(axis=0), feature.codes.max(axis=0)
    return lower, upper


def layered_error(
    layers: Sequence[Layer], lower: NDArray[np.float64], upper: NDArray[np.float64], precision: Precision
) -> NDArray[np.float64]:
    """A rigorous bound on |deployed score - real score| for the rows of each box, arrays of shape (boxes, columns)."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        error, largest = _layered_error(layers, lower, upper, precision)
        bounded = np.isfinite(error) & (largest < LARGEST[precision])
        return np.where(bounded, error, np.inf)


def _layered_error(
    layers: Sequence[Layer], lower: NDArray[np.float64], upper: NDArray[np.float64], precision: Precision
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds, and the largest number inside the model; either may be NaN or infinite where float64 is too small."""
    unit, least = UNIT[precision], LEAST[precision] + LEAST["float64"]  # the importer's own underflow
    largest = np.maximum(np.abs(lower), np.abs(upper))
    error = np.where(largest > 0.0, unit * largest + least, 0.0)
    largest = largest.max(axis=1, keepdims=True)
    for layer in layers:
        weight, majorant = np.abs(layer.weight), layer.majorant
        size = np.maximum(np.abs(lower), np.abs(upper)) + error
        work = size @ weight.T + np.abs(layer.bias)
        terms = (size > 0.0).sum(axis=1, keepdims=True) + 2.0 + FOLDS  # adding a zero is exact
        folding, lost, all_sizes = 0.0, losses(weight), 1.0 + size.sum(axis=1, keepdims=True)
        if majorant is not None:
            terms = np.maximum(terms, majorant.terms + 2.0 + FOLDS)
            work = np.maximum(work, size @ majorant.weight.T + majorant.bias)
            folding = _gamma(majorant.terms + layer.weight.shape[1], UNIT["float64"])
            lost = np.maximum(lost, majorant.lost)
            largest = np.maximum(largest, majorant.peak * all_sizes)
        error = error @ weight.T + (_gamma(terms, unit) + folding) * work + 2.0 * least * lost * all_sizes
        largest = np.maximum(largest, (work + error).max(axis=1, keepdims=True) * (1.0 + 1e-9))
        centre = (0.5 * (lower + upper)) @ layer.weight.T + layer.bias
        radius = (0.5 * (upper - lower)) @ weight.T + 1e-12 * work + LEAST["float64"] * lost  # computed in float64
        if layer is not layers[-1]:  # a ReLU that is surely off gives an exact zero in any arithmetic
            error = np.where(centre + radius + error <= 0.0, 0.0, error)
        lower, upper = np.maximum(centre - radius, 0.0), np.maximum(centre + radius, 0.0)
    return error * (1.0 + 1e-9), largest


def _gamma(terms: Any, unit: float) -> Any:
    return terms * unit / (1.0 - terms * unit)
