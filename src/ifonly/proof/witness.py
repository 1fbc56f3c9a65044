"""The witness check: is the returned row really a counterfactual?

It shares nothing with the methods. It reads the schema (types, bounds, exactly), the constraints' own `allows`, the
distance's own definition and the user's own model; never the lowered form that the methods search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import ProbabilityTarget, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The verdict on one row. `refusal` is empty when the row is a counterfactual."""

    refusal: str
    deciding: bool
    """The refusal is the model's decision (and not a type, bound or constraint)."""
    distance: float
    scores: NDArray[np.float64]


def check_witnesses(question: Question, factuals: NDArray[np.float64], points: NDArray[np.float64]) -> list[Witness]:
    """Check many rows with one call of the user's model, which sees only rows of the schema."""
    wrong = _not_allowed(question, factuals, points)
    if not any(wrong):
        scores, met = _asked(question, points)
    else:
        scores, met = np.full((len(points), question.model.outputs), np.nan), np.zeros(len(points), dtype=bool)
        fine = [i for i, refusal in enumerate(wrong) if not refusal]
        if fine:
            scores[fine], met[fine] = _asked(question, points[fine])
    distances = question.measure.between(factuals, points).tolist()
    result = []
    for i, (refusal, good, distance) in enumerate(zip(wrong, met.tolist(), distances, strict=True)):
        deciding = not refusal and not good
        if deciding:
            refusal = f"the model does not decide as asked (scores {scores[i].tolist()})"
        result.append(Witness(refusal=refusal, deciding=deciding, distance=distance, scores=scores[i]))
    return result


def _asked(question: Question, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The model's own scores of rows, and which of them it decides as asked."""
    scores = question.model.scores(points)
    met = question.target.met(question.model, scores)
    if isinstance(question.target, ProbabilityTarget):
        met = met & question.target.reported(question.model, points)
    return scores, met


def _not_allowed(question: Question, factuals: NDArray[np.float64], points: NDArray[np.float64]) -> list[str]:
    """For each row why it cannot be an answer, whatever the model says of it; empty when it can."""
    refusals = [
        "" if good else f"the row {point.tolist()} is not a row of the schema"
        for good, point in zip(question.schema.admits(points, factuals).tolist(), points, strict=True)
    ]
    for constraint in question.by_feature:
        g = question.schema.index(constraint.feature)
        feature = question.schema.features[g]
        for i, (before, after) in enumerate(zip(factuals[:, g].tolist(), points[:, g].tolist(), strict=True)):
            if not refusals[i] and not constraint.allows(feature, before, after):
                refusals[i] = f"the row breaks the constraint: {constraint.describe()}"
    if question.rules:
        for i, (before, after) in enumerate(zip(factuals, points, strict=True)):
            broken = None if refusals[i] else question.broken_rule(before, after)
            if broken is not None:
                refusals[i] = f"the row breaks the rule: {broken.describe()}"
    return refusals
