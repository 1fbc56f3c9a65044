"""Exhaustive enumeration: every row of a finite space, in chunks, pruned by distance. Exact, slow, simple.

It reads the question's own definitions (distance, constraints, target), not the lowered form, so that it can serve
as the oracle of everything else. With E for what the deployed model can lose of a score at the row itself and e for
what the score computed here may be off by, a row is accepted under any rounding when score >= margin + E + e,
and possibly accepted when score >= margin - E - e. The two differ only on rows that sit on the margin to the last bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Allowed, Constraint, Fixed, OnlyDown, OnlyUp, Question, Range
from ifonly.results import Claim, Limits, Listener, Progress, Stop
from ifonly.schema import Choice, Feature, Integer, Numeric, Real
from ifonly.schema.decimals import Grid
from ifonly.tolerances import DEFAULT, Tolerances

CHUNK = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerate:
    """Look at every row. Refuses spaces with more than `most_rows` rows, and free real features."""

    most_rows: int = 20_000_000
    name: str = "enumerate"

    def refuses(self, question: Question) -> str:
        """Nothing: any kind of model has scores of every row; how many rows there are depends on the person."""
        return ""

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> Enumeration:
        return Enumeration(question, self.most_rows)


@dataclass(frozen=True)
class Enumeration:
    """The enumerator, ready for one question."""

    question: Question
    most_rows: int

    def solve(
        self, points: NDArray[np.float64], limits: Limits, *, threads: int = 1, listen: Listener | None = None
    ) -> list[Claim]:
        claims: list[Claim] = []
        begun = time.perf_counter()
        for point in points:
            claims.append(self._solve(point, limits))
            if listen is not None:
                listen(Progress(finished=len(claims), people=len(points), seconds=time.perf_counter() - begun))
        return claims

    def values_of(self, feature: Feature, before: float) -> NDArray[np.float64]:
        """Every value that the feature may take for this person. They are counted before they are listed."""
        mine = [c for c in self.question.by_feature if c.feature == feature.name]
        if isinstance(feature, Choice):
            values = np.arange(float(len(feature.options)))
        else:
            lower, upper = self._ends(feature, before, mine)
            if isinstance(feature, Integer):
                values = self._integers(feature, lower, upper)
            elif isinstance(feature, Real) and feature.grid is not None:
                values = self._on_grid(feature.name, feature.grid, before, lower, upper)
            else:
                values = self._real_values(feature, lower, upper)
        return values if not mine else np.array([v for v in values.tolist() if self._allows(mine, feature, before, v)])

    @staticmethod
    def _allows(constraints: list[Constraint], feature: Feature, before: float, value: float) -> bool:
        return all(constraint.allows(feature, before, value) for constraint in constraints)

    def _integers(self, feature: Integer, lower: float, upper: float) -> NDArray[np.float64]:
        """The integer's values from lower to upper, or one more at either end."""
        first = max(math.floor((lower - feature.lower) / feature.step), 0)
        last = min(math.ceil((upper - feature.lower) / feature.step), feature.steps)
        self._count(feature.name, last - first + 1)
        values = feature.lower + feature.step * np.arange(first, last + 1, dtype=np.float64)
        return np.asarray(values[(values >= lower) & (values <= upper)], dtype=np.float64)

    def _on_grid(self, name: str, grid: Grid, before: float, lower: float, upper: float) -> NDArray[np.float64]:
        """The values of a real number's grid from lower to upper, and the person's own if that is among them."""
        first, last = grid.between(lower, upper)
        self._count(name, last - first + 1)
        values = grid.values(np.arange(first, last + 1))
        return np.union1d(values, [before]) if lower <= before <= upper else values

    def _count(self, name: str, values: int) -> None:
        if values > self.most_rows:
            raise UnsupportedQuestion(
                f"The enumerator may look at {self.most_rows:,} rows, but '{name}' alone has {values:,} values; "
                f"use another method."
            )

    @staticmethod
    def _ends(feature: Numeric, before: float, constraints: list[Constraint]) -> tuple[float, float]:
        """The ends that the plain constraints leave a number."""
        lower, upper = feature.lower, feature.upper
        for constraint in constraints:
            match constraint:
                case Fixed():
                    lower, upper = max(lower, before), min(upper, before)
                case OnlyUp():
                    lower = max(lower, before)
                case OnlyDown():
                    upper = min(upper, before)
                case Range():
                    lower, upper = max(lower, constraint.lower), min(upper, constraint.upper)
                case Allowed():
                    raise AssertionError("Allowed is for features with options")
        return lower, upper

    @staticmethod
    def _real_values(feature: Numeric, lower: float, upper: float) -> NDArray[np.float64]:
        """The one value (or none) that the constraints leave a real feature; an interval is refused."""
        if lower < upper:
            raise UnsupportedQuestion(
                f"The enumerator needs a finite space, but '{feature.name}' is a real number that may change; "
                f"fix it, give it a step, or use another method."
            )
        return np.array([lower] if lower == upper else [])

    def _chunks(self, factual: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        values: list[NDArray[np.float64]] = []
        for feature, before in zip(self.question.schema.features, factual.tolist(), strict=True):
            values.append(self.values_of(feature, before))
            rows = math.prod(len(v) for v in values)
            if rows > self.most_rows:
                raise UnsupportedQuestion(
                    f"The space has {rows:,} rows or more; the enumerator may look at {self.most_rows:,}; "
                    f"fix some features, or use another method."
                )
        counts = [len(v) for v in values]
        for first in range(0, rows, CHUNK):
            places = np.unravel_index(np.arange(first, min(first + CHUNK, rows)), counts)
            yield np.stack([v[k] for v, k in zip(values, places, strict=True)], axis=1)

    def _solve(self, factual: NDArray[np.float64], limits: Limits) -> Claim:
        question, begun = self.question, time.perf_counter()
        best, best_distance, nearest, looked = None, math.inf, math.inf, 0
        schema_conflicts: list[tuple[float, float]] = []
        stopped: Stop | None = None
        for rows in self._chunks(factual):
            stopped = limits.reached(seconds=time.perf_counter() - begun, nodes=looked)
            if stopped:
                break
            looked += len(rows)
            distance = question.measure.between(factual, rows)
            close = np.flatnonzero(distance < best_distance)
            if not len(close):
                continue
            if question.rules:
                close = close[[question.broken_rule(factual, row) is None for row in rows[close]]]
            if not len(close):
                continue
            possible, robust, most = accepted_by_all(question, rows[close])
            nearest = min(nearest, float(distance[close][possible].min(initial=math.inf)))
            open_ones = np.flatnonzero(possible & ~robust)
            schema_conflicts += zip(distance[close[open_ones]].tolist(), most[open_ones].tolist(), strict=True)
            if robust.any():
                first = close[robust][distance[close[robust]].argmin()]
                best, best_distance = rows[first], float(distance[first])
        rounding_bound, lower = (
            self.robust_of(best, best_distance, schema_conflicts) if best is not None else (0.0, nearest)
        )
        return Claim(
            point=best,
            lower=0.0 if stopped else lower,
            rounding_bound=rounding_bound,
            lower_any_rounding=None if stopped else min(nearest, best_distance),
            method="enumerate",
            stop=stopped,
            nodes=looked,
            seconds=time.perf_counter() - begun,
        )

    def robust_of(
        self, best: NDArray[np.float64], distance: float, schema_conflicts: list[tuple[float, float]]
    ) -> tuple[float, float]:
        """A number that the row is above the margin by, and no nearer row is, and the distance; where there is none,
        the distance of the first row that may be."""
        question = self.question
        rounding_bound = question.rounding_bound or float(question.error_at(best[None, :])[0])
        nearer = [(far, most) for far, most in schema_conflicts if far < distance and most >= rounding_bound]
        if not nearer:
            return rounding_bound, distance
        more = max(most for _, most in nearer) * (1.0 + 1e-9)
        if more <= float(question.score_margin(best[None, :])[0][0]):
            return more, distance
        return rounding_bound, min(far for far, _ in nearer)


def robustly_accepted(question: Question, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows the deployed model accepts under any rounding; of several models, all of them."""
    return accepted_by_all(question, rows)[1]


def accepted_by_all(
    question: Question, rows: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """`_accepted` by each of several models; `most` on the common scale of their conditions."""
    if len(question.members) == 1:
        return _accepted(question, rows)
    possible, robust, most = np.ones(len(rows), bool), np.ones(len(rows), bool), np.zeros(len(rows))
    for member in question.members:
        could, surely, _ = _accepted(member, rows)
        possible, robust = possible & could, robust & surely
    if len(doubtful := np.flatnonzero(possible & ~robust)):
        least, own_error = question.score_margin(rows[doubtful])
        most[doubtful] = least + 2.0 * own_error
    return possible, robust, most


def _accepted(
    question: Question, rows: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Which rows the deployed model accepts under some rounding, and which under any; and by how much a row is above
    the margin at most, of those where that is in doubt. Only those near the margin need a close look."""
    c, d = question.conditions
    scores = question.model.exact_scores(rows)
    score_margin = scores @ c.T - d - question.margins
    possible = np.asarray((score_margin >= -question.computed_error).all(axis=1))
    robust = np.asarray((score_margin >= question.computed_error + (question.rounding_bound or 0.0)).all(axis=1))
    doubtful, most = np.flatnonzero(possible & ~robust), np.zeros(len(rows))
    if len(doubtful):
        least, own = question.score_margin(rows[doubtful])
        error = question.error_at(rows[doubtful])
        possible[doubtful] = least + 2.0 * own >= -error
        robust[doubtful] = least >= (question.rounding_bound or error)
        most[doubtful] = least + 2.0 * own
    decided = question.target.met(question.model, scores)  # where nothing is lost by rounding, a tie is what it is
    robust &= decided
    if not question.computed_error.any():
        possible &= decided
    return possible, robust, most
