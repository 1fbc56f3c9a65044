"""Bounds on many boxes at once, for one person: below which distance none of their rows is decided as asked.

A union of balls (rows of data, and what is near them) has one alternative per ball, each a search of its own. The box
around a ball says less than the ball, but many boxes are searched in one call of the method that is prepared already,
and only as far as matters: most balls are settled by that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.answering.checked_solver import CheckedSolver
from ifonly.answering.values import Floats, ResolvedTarget, SearchSettings
from ifonly.problem import Query
from ifonly.problem.boxes import FeatureBoxes
from ifonly.results import Limits

TRIED = 16
"""Rows that are accepted, of which the nearest that the constraints allow is taken."""


class PreparedBoxBounds:
    """What is known of boxes in a query of one person."""

    def __init__(
        self, solver: CheckedSolver, resolved: ResolvedTarget, point: Floats, query: Query, settings: SearchSettings
    ) -> None:
        self._solver, self._resolved, self._point, self._query, self._settings = (
            solver, resolved, point, query, settings)  # fmt: skip

    def bounds(
        self, constraints: Sequence[Sequence[Any]], below: float, limits: Limits
    ) -> tuple[Sequence[float], int] | None:
        """Of each set of constraints, a distance (at most `below`) that no row under them is nearer than; and the nodes
        that it took. None where the method cannot tell."""
        boxes = FeatureBoxes.of(self._solver.model.schema, constraints)
        settings = replace(self._settings, limits=limits, listen=None)
        found = self._solver.bounds_in_boxes(self._resolved, self._point, self._query, boxes, below, settings)
        return None if found is None else (found[0].tolist(), found[1])

    def nothing_below(
        self, constraints: tuple[Any, ...], distance: float, limits: Limits
    ) -> tuple[float, int, float] | None:
        """See `CheckedSolver.nothing_below`; under further constraints."""
        query = replace(self._query, constraints=(*self._query.constraints, *constraints))
        settings = replace(self._settings, limits=limits, listen=None)
        return self._solver.nothing_below(self._resolved, self._point, query, distance, settings)

    def nearest_of(self, rows: Floats) -> float:
        """How far the nearest of these rows is that is decided as asked and allowed; infinity if none is found."""
        if len(self._resolved.alternatives) > 1:
            return math.inf
        question = self._solver.question(self._resolved.alternatives[0], self._query)
        accepted = rows[(question.score_margins(rows, quick=True)[0] >= 0.0).all(axis=1)]
        away = question.measure.between(self._point, accepted)
        for i in np.argsort(away)[:TRIED].tolist():
            if question.allows(self._point, accepted[i]) is None:
                return float(away[i])
        return math.inf
