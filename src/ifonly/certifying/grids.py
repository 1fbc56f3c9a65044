"""How fine the numbers and the costs of a certificate must be counted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.statement import MAX_BITS
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import (
    Constraint,
    MaxDelta,
    Question,
    Range,
    Steps,
)
from ifonly.schema import Numeric, Schema

GRID_BITS = 80
COST_BITS = 96
RELATIVE_BITS = 64
"""Of the smallest rate, in the cost grid."""


def grids(question: Question, point: NDArray[np.float64]) -> tuple[int, int]:
    """How fine numbers and costs must be counted: numbers exactly, costs to about 2^-64 of the smallest rate."""
    schema, distance = question.schema, question.distance
    ends = [v for f in schema.features if isinstance(f, Numeric) for v in (f.lower, f.upper)]
    ends += [v for c in question.constraints if isinstance(c, Range) for v in (c.lower, c.upper) if math.isfinite(v)]
    finest = max(Fraction(v).denominator.bit_length() - 1 for v in [*ends, *point.tolist(), 1.0])
    finest = max([finest, *(_fineness(schema, c, float(point[schema.index(c.feature)])) for c in question.by_feature),
                  _cut_fineness(question),
                  *(_grid_fineness(grid.value(1) - grid.value(0)) for grid in schema.grids.values())])  # fmt: skip
    least_factor = np.minimum(*distance.direction_vectors(schema))
    rate = distance.weight_vector(schema) / distance.scale_vector(schema) * max(distance.rate, 2.0**-20) * least_factor
    least = float(np.log2(rate.min() / len(schema))) * (2.0 if distance.name == "l2" else 1.0)
    cost = max(COST_BITS, RELATIVE_BITS + math.ceil(-least))
    if max(finest, cost) > MAX_BITS:
        raise UnsupportedQuestion("The numbers of this question are too small or too far apart for a certificate.")
    return max(GRID_BITS, finest), cost


def _fineness(schema: Schema, constraint: Constraint, before: float) -> int:
    """Bits behind the point of the numbers that a constraint leads to."""
    if isinstance(constraint, Steps):
        return _grid_fineness(constraint.step)
    if not isinstance(constraint, MaxDelta):
        return 0
    ends = constraint._ends(schema[constraint.feature], before)
    return max((Fraction(v).denominator.bit_length() - 1 for v in ends if math.isfinite(v)), default=0)


def _cut_fineness(question: Question) -> int:
    """Bits behind the point of the thresholds of trees, as far as that is worth counting."""
    models = (question.model, *(one.model(question.schema) for one in question.others))
    found = [trees for model in models if (trees := model.function.as_trees()) is not None]
    fine = (Fraction(t).denominator.bit_length() - 1 for trees in found for cuts in trees.cuts for t in cuts.tolist())
    return max((bits for bits in fine if bits <= 200), default=0)


def _grid_fineness(step: float) -> int:
    """No value on a grid of this step is nearer to 0 than a thousandth of it, unless it is 0 or rounding says so."""
    return 64 - math.frexp(step)[1]
