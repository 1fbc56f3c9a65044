"""Independent verification of a returned row: is it really a counterfactual?

It shares nothing with the methods. It reads the schema (types, bounds, exactly), the constraints' own `allows`, the
distance's own definition and the user's own models; never the lowered form that the methods search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import ProbabilityTarget, Question

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witnesses:
    """The verdicts on rows, by columns. A row that is neither invalid nor refused is a counterfactual."""

    distances: Floats
    scores: Floats
    invalid: Mapping[int, str] = field(default_factory=dict)
    """By number: the type, the bound or the constraint that a row breaks."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """By number: rows that the user's model does not decide as asked."""

    @property
    def rejected(self) -> dict[int, str]:
        """Why each row that is no counterfactual is none, by number."""
        return {**self.invalid, **self.refused}


def check_witnesses(question: Question, factuals: Floats, points: Floats) -> Witnesses:
    """Check many rows with one call of the user's model, which sees only rows of the schema."""
    invalid = _not_allowed(question, factuals, points)
    if not invalid:
        scores, met = _evaluated(question, points)
    else:
        scores, met = np.full((len(points), question.model.outputs), np.nan), np.ones(len(points), dtype=np.bool_)
        valid = [i for i in range(len(points)) if i not in invalid]
        if valid:
            scores[valid], met[valid] = _evaluated(question, points[valid])
    whose = "one of the models does" if question.others else "the model does"
    refused = {
        i: f"{whose} not decide as asked (scores {scores[i].tolist()})"
        for i in ([] if met.all() else np.flatnonzero(~met).tolist())
    }
    distances = question.measure.between(factuals, points)
    return Witnesses(distances=distances, scores=scores, invalid=invalid, refused=refused)


def _evaluated(question: Question, points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The model's own scores of rows, and which of them it decides as asked."""
    scores = question.model.scores(points)
    met = question.target.met(question.model, scores)
    if isinstance(question.target, ProbabilityTarget):
        met = met & question.target.reported(question.model, points)
    for other in question.others:
        met = met & other.accepts(question.schema, points)
    return scores, met


def _not_allowed(question: Question, factuals: Floats, points: Floats) -> dict[int, str]:
    """Why rows cannot be answers, whatever the model decides, by number."""
    admitted, invalid = question.schema.admits(points, factuals), {}
    if not admitted.all():
        invalid = {
            i: f"the row {points[i].tolist()} is not a row of the schema" for i in np.flatnonzero(~admitted).tolist()
        }
    for constraint in question.by_feature:
        g = question.schema.index(constraint.feature)
        feature = question.schema.features[g]
        for i, (before, after) in enumerate(zip(factuals[:, g].tolist(), points[:, g].tolist(), strict=True)):
            if i not in invalid and not constraint.allows(feature, before, after):
                invalid[i] = f"the row breaks the constraint: {constraint.describe()}"
    if question.rules:
        for i in np.flatnonzero(~question.keeps_rules(factuals, points)).tolist():
            broken = None if i in invalid else question.broken_rule(factuals[i], points[i])
            if broken is not None:
                invalid[i] = f"the row breaks the rule: {broken.describe()}"
    return invalid
