"""Targets that are met already: the decision of the user's own model on the unchanged row.

The decision itself counts: the class, the threshold of the score, the probability that the model reports. The default
margin keeps a *change* clear of rounding, so a margin up to that is not required of an unchanged row. A larger one is
part of the target ("by at least 2"), and is required of every row. Constraints are about changes, too: an unchanged row
may break them, and the answer names those that it breaks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model import Model
from ifonly.problem.open_target import OpenTarget
from ifonly.problem.rule import is_row_rule
from ifonly.problem.target import MARGIN, ProbabilityTarget, Target
from ifonly.schema import Schema


def already_decided(
    target: Target | OpenTarget, model: Model, points: NDArray[np.float64], scores: NDArray[np.float64], now: int = 0
) -> NDArray[np.bool_]:
    """Which of these rows meet the target, by the model's own scores of them. `now`: their present class."""
    with_margin = target.margin > MARGIN
    if isinstance(target, OpenTarget):
        met = target.agrees(model, scores, now)
        if with_margin:
            met = met & np.any([plain.met(model, scores) for plain in target.alternatives(model, now)], axis=0)
        return met
    if isinstance(target, ProbabilityTarget):
        met = target.reported(model, points)
        return met & target.met(model, scores) if with_margin else met
    return target.met(model, scores, None if with_margin else 0.0)


def broken_by(schema: Schema, point: NDArray[np.float64], constraints: Iterable[Any]) -> tuple[str, ...]:
    """The constraints that an unchanged row breaks, in words."""
    broken = []
    for constraint in constraints:
        if not is_row_rule(constraint) and not hasattr(constraint, "feature"):  # a decision, which is met already
            continue
        if is_row_rule(constraint):
            holds = constraint.allows_row(schema, point, point)
        else:
            g = schema.index(constraint.feature)
            holds = constraint.allows(schema.features[g], float(point[g]), float(point[g]))
        if not holds:
            broken.append(constraint.describe())
    return tuple(broken)
