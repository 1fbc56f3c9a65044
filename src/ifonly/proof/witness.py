"""The witness check: is the returned row really a counterfactual?

It shares nothing with the methods. It reads the schema (types, bounds, exactly), the constraints' own `allows`, the
distance's own definition and the user's own model; never the lowered form that the methods search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The verdict on one row. `refusal` is empty when the row is a counterfactual."""

    refusal: str
    deciding: bool
    """The refusal is the model's decision (and not a type, bound or constraint)."""
    distance: float
    scores: NDArray[np.float64]


def check_witnesses(
    question: Question, factuals: NDArray[np.float64], points: NDArray[np.float64]
) -> list[Witness]:
    """Check many rows with one call of the user's model."""
    scores = question.model.scores(points)
    met = question.target.met(question.model, scores)
    admitted = question.schema.admits(points)
    distances = question.distance.between(question.schema, factuals, points)
    result = []
    for i, (factual, point) in enumerate(zip(factuals, points, strict=True)):
        refusal, deciding = "", False
        if not admitted[i]:
            refusal = f"the row {point.tolist()} is not a row of the schema"
        elif (broken := question.allows(factual, point)) is not None:
            refusal = f"the row breaks the constraint: {broken.describe()}"
        elif not met[i]:
            refusal, deciding = f"the model does not decide as asked (scores {scores[i].tolist()})", True
        result.append(Witness(refusal=refusal, deciding=deciding, distance=float(distances[i]), scores=scores[i]))
    return result
