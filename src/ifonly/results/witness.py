"""The witness check: is the returned row really a counterfactual?

It shares nothing with the methods. It reads the schema (types, bounds, exactly), the constraints' own `allows`, the
distance's own definition and the user's own model; never the lowered form that the methods search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import ProbabilityTarget, Question
from ifonly.results.columns import ByColumns, taken

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The verdict on one row. `refusal` is empty when the row is a counterfactual."""

    refusal: str
    deciding: bool
    """The refusal is the model's decision (and not a type, bound or constraint)."""
    distance: float
    scores: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witnesses(ByColumns[Witness]):
    """The verdicts on many rows, by columns."""

    distances: Floats
    scores: Floats
    refusals: Mapping[int, str] = field(default_factory=dict)
    """By number; the others are counterfactuals."""
    deciding: frozenset[int] = frozenset()
    """Those that the model's decision refuses."""

    def __len__(self) -> int:
        return len(self.distances)

    def one(self, i: int) -> Witness:
        return Witness(
            refusal=self.refusals.get(i, ""),
            deciding=i in self.deciding,
            distance=float(self.distances[i]),
            scores=self.scores[i],
        )

    def take(self, members: Sequence[int]) -> Witnesses:
        """The verdicts on these rows, in this order."""
        return Witnesses(
            distances=self.distances[list(members)],
            scores=self.scores[list(members)],
            refusals=taken(self.refusals, members),
            deciding=frozenset(k for k, i in enumerate(members) if i in self.deciding)
            if self.deciding
            else frozenset(),
        )


def check_witnesses(question: Question, factuals: Floats, points: Floats) -> Witnesses:
    """Check many rows with one call of the user's model, which sees only rows of the schema."""
    refusals = _not_allowed(question, factuals, points)
    if not refusals:
        scores, met = _asked(question, points)
    else:
        scores, met = np.full((len(points), question.model.outputs), np.nan), np.ones(len(points), dtype=np.bool_)
        fine = [i for i in range(len(points)) if i not in refusals]
        if fine:
            scores[fine], met[fine] = _asked(question, points[fine])
    distances, deciding = question.measure.between(factuals, points), frozenset[int]()
    if not met.all():
        deciding = frozenset(np.flatnonzero(~met).tolist())
        refusals |= {i: f"the model does not decide as asked (scores {scores[i].tolist()})" for i in deciding}
    return Witnesses(distances=distances, scores=scores, refusals=refusals, deciding=deciding)


def _asked(question: Question, points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The model's own scores of rows, and which of them it decides as asked."""
    scores = question.model.scores(points)
    met = question.target.met(question.model, scores)
    if isinstance(question.target, ProbabilityTarget):
        met = met & question.target.reported(question.model, points)
    return scores, met


def _not_allowed(question: Question, factuals: Floats, points: Floats) -> dict[int, str]:
    """Of the rows that cannot be answers, whatever the model says of them: why."""
    admitted, refusals = question.schema.admits(points, factuals), {}
    if not admitted.all():
        refusals = {
            i: f"the row {points[i].tolist()} is not a row of the schema" for i in np.flatnonzero(~admitted).tolist()
        }
    for constraint in question.by_feature:
        g = question.schema.index(constraint.feature)
        feature = question.schema.features[g]
        for i, (before, after) in enumerate(zip(factuals[:, g].tolist(), points[:, g].tolist(), strict=True)):
            if i not in refusals and not constraint.allows(feature, before, after):
                refusals[i] = f"the row breaks the constraint: {constraint.describe()}"
    if question.rules:
        for i, (before, after) in enumerate(zip(factuals, points, strict=True)):
            broken = None if i in refusals else question.broken_rule(before, after)
            if broken is not None:
                refusals[i] = f"the row breaks the rule: {broken.describe()}"
    return refusals
