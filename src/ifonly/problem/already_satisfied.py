"""Who has what is asked for already: what the user's own model says of a row as it is.

The decision itself counts: the class, the threshold of the score, the probability that the model reports. The default
margin keeps a *change* clear of rounding, so a margin up to that is not asked of a row that stays as it is. A larger
one is a wish ("by at least 2"), and is asked of every row. Rules are about changes, too: a row that stays may break
them, and the answer names those that it does.
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
    """Which of these rows have what the target asks, by the model's own scores of them. `now`: the class they have."""
    wish = target.margin > MARGIN
    if isinstance(target, OpenTarget):
        has = target.agrees(model, scores, now)
        if wish:
            has = has & np.any([way.met(model, scores) for way in target.alternatives(model, now)], axis=0)
        return has
    if isinstance(target, ProbabilityTarget):
        has = target.reported(model, points)
        return has & target.met(model, scores) if wish else has
    return target.met(model, scores, None if wish else 0.0)


def broken_by(schema: Schema, point: NDArray[np.float64], constraints: Iterable[Any]) -> tuple[str, ...]:
    """The constraints that a row breaks as it stands, in words."""
    broken = []
    for constraint in constraints:
        if is_row_rule(constraint):
            holds = constraint.allows_row(schema, point, point)
        else:
            g = schema.index(constraint.feature)
            holds = constraint.allows(schema.features[g], float(point[g]), float(point[g]))
        if not holds:
            broken.append(constraint.describe())
    return tuple(broken)
