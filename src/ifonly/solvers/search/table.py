"""Lookup table for small finite spaces: every favourable row, tabulated once, then scanned for each person."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question
from ifonly.resources import check_limits
from ifonly.schema import Choice, Integer, Schema

CHUNK = 1 << 12
MOST_RAISED = 2.0
"""A table may raise the rounding bound by this factor, to tell apart what is above it from what is below."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FavourableTable:
    """Points that the deployed model accepts under some rounding, and which of them under every one (`robust`).

    The scores are computed here, off by e. Some rounding: score >= margin - E - e with E for the whole schema. Any:
    score >= margin + `rounding_bound` + e, where `rounding_bound` is the question's own, or else the largest E of those
    that are in doubt.
    """

    points: Floats
    robust: NDArray[np.bool_]
    rounding_bound: float
    judged: bool
    """Every row must be judged by the constraints themselves: rules, or steps from the person's own value."""

    def nearest(self, question: Question, factual: Floats) -> tuple[float, Floats | None]:
        """The distance of the nearest row that is allowed and may be favourable, and the nearest robust one."""
        if not len(self.points):
            return math.inf, None
        distances = question.measure.between(factual, self.points)
        lower = math.inf
        for t in np.argsort(distances, kind="stable").tolist():
            if question.allows(factual, self.points[t]) is None:
                lower = min(lower, float(distances[t]))
                if self.robust[t]:
                    return lower, self.points[t]
        return lower, None


def favourable_rows(question: Question, *, most: int, judged: bool = False) -> FavourableTable | None:
    """The table, or None when the space is infinite, has more than `most` rows, or has too many scores too near to one
    another for float64 to tell which rows are robust; a search can then leave open what it cannot tell."""
    counts = row_counts(question.schema)
    if counts is None or math.prod(counts) > most:
        return None
    c, d = question.conditions
    kept, score_margins, rounding_bound = [], [], question.rounding_bound or 0.0
    for points in rows_in_chunks(question.schema, counts):
        check_limits()
        score_margin = question.model.exact_scores(points) @ c.T - d - question.margins
        could = (score_margin >= -question.computed_error).all(axis=1)
        kept.append(points[could])
        score_margins.append(score_margin[could])
        doubtful = points[could & (score_margin <= question.computed_error).any(axis=1)]
        if question.rounding_bound is None and len(doubtful):
            rounding_bound = max(rounding_bound, float(question.error_at(doubtful).max()))
    worst, own = np.concatenate(score_margins).min(axis=1, initial=math.inf), float(question.own_error.max(initial=0.0))
    raised = _apart(rounding_bound, worst, own)
    if raised > MOST_RAISED * max(rounding_bound, own):
        return None
    rounding_bound = raised
    return FavourableTable(
        np.ascontiguousarray(np.concatenate(kept)), np.asarray(worst >= rounding_bound + own), rounding_bound, judged
    )


def _apart(rounding_bound: float, score_margins: Floats, own: float) -> float:
    """The rounding bound, or a little more, so that no score margin is nearer to it than its own error: then every row
    is above it under every rounding, or below."""
    for score_margin in np.sort(score_margins[score_margins > rounding_bound - own]).tolist():
        if score_margin >= rounding_bound + own:
            break
        rounding_bound = (score_margin + own) * (1.0 + 1e-9)
    return rounding_bound


def row_counts(schema: Schema) -> list[int] | None:
    """How many values each feature has; None when one is a real number."""
    counts = []
    for feature in schema.features:
        if isinstance(feature, Choice):
            counts.append(len(feature.options))
        elif isinstance(feature, Integer):
            counts.append(feature.steps + 1)
        else:
            return None
    return counts


def rows_in_chunks(schema: Schema, counts: list[int]) -> Iterator[Floats]:
    """All rows, the last feature fastest. Values are made as they are needed: an integer may have very many."""
    lower = np.array([f.lower if isinstance(f, Integer) else 0.0 for f in schema.features])
    step = np.array([f.step if isinstance(f, Integer) else 1.0 for f in schema.features])
    total = math.prod(counts)
    for first in range(0, total, CHUNK):
        places = np.unravel_index(np.arange(first, min(first + CHUNK, total)), counts)
        yield lower + step * np.stack(places, axis=1)
