"""Cutting planes (outer approximation) for the probability of one of three or more classes (`problem.softmax`).

    relaxation  the nearest row that meets the tangent planes so far. Every row with the probability meets them, so its
                distance is a lower bound; if the row has the probability, robust to rounding, it is the nearest
    cut         otherwise add the tangent at that row, which excludes it
    repair      the nearest row that is beyond the planes by a small margin: where the margin is more than the error of
                the planes, it has the probability, and its distance is an upper bound

The planes converge as Newton's method does, and the two distances meet after a few searches. What a limit leaves open
ends between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from ifonly.answering.branching import Spent
from ifonly.answering.values import CheckedResult, Floats, uncounted
from ifonly.errors import Contradiction
from ifonly.problem import ProbabilityTarget, Question
from ifonly.problem.softmax import SLACK, PlanesRecord, Weights, first_weights, log_odds, weights_at
from ifonly.problem.target import TangentTarget, class_index
from ifonly.results import Claim, Limits, Listener, Progress, Stop, StoppedBy
from ifonly.results.deployed import covering_margin
from ifonly.results.witness import check_witnesses
from ifonly.tolerances import Tolerances

NearestBeyond: TypeAlias = Callable[[TangentTarget, Floats, Limits, Listener | None], Sequence[CheckedResult]]
"""The nearest row of each of these people beyond the planes, within these limits."""

NEAR = 1e-3
"""Log-odds: a row whose shortfall is no more than this is repaired in every round, not only in the first."""
LEAST = 8.0 * SLACK
"""Log-odds: the least margin of a repair."""
REPAIRS = 6
HARDER = 16.0
"""The factor on the margin of a repair that was too little."""
ROUNDS = 200


class JudgedRow(NamedTuple):
    """A row found beyond some planes: by how much its exact log-odds exceeds the margin, and whether the user's own
    model accepts it."""

    found: CheckedResult
    score_margin: float
    accepted: bool


@dataclass(frozen=True)
class ProbabilityQuestion:
    """A question about a probability that is not linear in the scores."""

    question: Question
    tolerances: Tolerances

    @property
    def target(self) -> ProbabilityTarget:
        assert isinstance(self.question.target, ProbabilityTarget)
        return self.question.target

    @cached_property
    def index(self) -> int:
        return class_index(self.question.model, self.target.label)

    @cached_property
    def first(self) -> TangentTarget:
        """The planes of everybody's first search."""
        return self.planes(first_weights(self.question.model.outputs))

    def planes(self, weights: tuple[Weights, ...], more: float = 0.0) -> TangentTarget:
        return self.target.tangents(self.question.model, weights, more)

    def judged(self, point: Floats, found: CheckedResult) -> JudgedRow:
        """The row's score margin in real arithmetic, and the verdict of the user's own model."""
        assert found.point is not None
        row = found.point[None, :]
        scores, error = self.question.model.sharp_scores(row)
        c, _ = self.question.conditions
        own = float((error @ np.abs(c).T).max())
        score_margin = float(log_odds(scores, self.index)[0]) - self.target.threshold - self.target.margin - own
        return JudgedRow(found, score_margin, not check_witnesses(self.question, point[None, :], row).rejected)

    def tangent(self, found: CheckedResult) -> Weights:
        """The weights of the tangent at the row found."""
        assert found.point is not None
        return weights_at(self.question.model.sharp_scores(found.point[None, :])[0][0], self.index)


def nearest_within(
    curve: ProbabilityQuestion, solve: NearestBeyond, points: Floats, limits: Limits, listen: Listener | None = None
) -> list[CheckedResult]:
    """The nearest row of each person: one search with the first planes for all, then one person at a time."""
    result = []
    for point, first in zip(points, solve(curve.first, points, limits, uncounted(listen)), strict=True):
        result.append(_Planes(curve, solve, point, limits).nearest(first))
        if listen is not None:
            listen(Progress(finished=len(result), people=len(points)))
    return result


class _Planes:
    """One person's search: the planes so far, the bounds that are proven, the best row."""

    def __init__(self, curve: ProbabilityQuestion, solve: NearestBeyond, point: Floats, limits: Limits) -> None:
        self.curve, self.solve, self.point, self.limits = curve, solve, point, limits
        self.weights = curve.first.weights
        self.lower, self.lower_any_rounding, self.rounding_bound = 0.0, 0.0, 0.0
        self.rows: list[JudgedRow] = []
        self.refused = False

    def nearest(self, found: CheckedResult) -> CheckedResult:
        """What is known in the end, from what was found with the first planes."""
        self.spent = Spent(self.limits, found.claim.seconds)
        for _ in range(ROUNDS):
            self.spent.count(found)
            self._prove(found)
            if found.point is None:
                return self._ended(found)
            one = self._judge(found)
            stop = self._limit(found.claim)
            if self._done or one is self._best:
                return self._result(found, stop or found.claim.stop)
            stop = stop or self.spent.stop or (None if self._cut(found) else Stop(StoppedBy.CLOSE))
            if (self._best is None or self._shortfall(one) <= NEAR) and not self.spent.stop:
                self._repair(max(2.0 * self._shortfall(one), LEAST))
            if self._done or (self.refused and self._best is None) or stop is not None:
                return self._result(found, stop)
            (found,) = self.solve(self.curve.planes(self.weights), self.point[None, :], self.spent.left, None)
        return self._result(found, Stop(StoppedBy.STEPS, ROUNDS))

    def _prove(self, found: CheckedResult) -> None:
        """The bounds of the last search, which has most planes, unless a limit cut it short. They are about rows whose
        score exceeds the margin by its rounding bound."""
        claim = found.claim
        if self._limit(claim) is None or claim.lower > self.lower:
            self.lower, self.rounding_bound = claim.lower, claim.rounding_bound
        self.lower_any_rounding = max(self.lower_any_rounding, claim.lower_any_rounding or 0.0)

    # ------------------------------------------------------------------ rows

    @property
    def _best(self) -> JudgedRow | None:
        """The nearest row that is accepted under any rounding."""
        robust = [one for one in self.rows if one.accepted and self._shortfall(one) <= 0.0]
        return min(robust, key=lambda one: one.found.upper, default=None)

    @property
    def _done(self) -> bool:
        best = self._best
        return best is not None and self.curve.tolerances.close(self.lower, best.found.upper)

    def _judge(self, found: CheckedResult) -> JudgedRow:
        self.rows.append(self.curve.judged(self.point, found))
        return self.rows[-1]

    def _shortfall(self, one: JudgedRow) -> float:
        """By how much the score of a row is too low for it to be accepted under any rounding."""
        return max(self.rounding_bound, one.found.claim.rounding_bound) - one.score_margin

    def _cut(self, found: CheckedResult) -> bool:
        """Add the tangent at the row; whether it is a new one."""
        tangent = self.curve.tangent(found)
        new = tangent not in self.weights
        self.weights = (*self.weights, tangent) if new else self.weights
        return new

    def _repair(self, more: float) -> None:
        """A row that has the probability, by margins beyond the planes that grow until one has."""
        for _ in range(REPAIRS):
            planes = self.curve.planes(self.weights, more)
            (found,) = self.solve(planes, self.point[None, :], self.spent.left, None)
            self.spent.count(found)
            if found.point is None:
                return
            one = self._judge(found)
            self._cut(found)
            shortfall = self._shortfall(one)
            self.refused = shortfall <= 0.0 and not one.accepted
            if (one.accepted and shortfall <= 0.0) or self.spent.stop:
                return
            more = more + 2.0 * shortfall if shortfall > 0.0 else HARDER * more

    # ------------------------------------------------------------------ endings

    def _limit(self, claim: Claim) -> Stop | None:
        """The limit that cut a question short, if one did: the whole one, not what was left of it."""
        stop = claim.stop
        if stop is None or not stop.is_limit:
            return None
        whole = {StoppedBy.SECONDS: self.limits.seconds, StoppedBy.NODES: self.limits.nodes}
        return replace(stop, amount=whole.get(stop.by, stop.amount))

    def _ended(self, found: CheckedResult) -> CheckedResult:
        """No row is beyond the planes, or none was found."""
        stop = self._limit(found.claim) or found.claim.stop
        if self._best is None:
            lower = 0.0 if stop is not None and stop.by is StoppedBy.REFUSED else self.lower
            return CheckedResult(self._counted(replace(found.claim, lower=lower, stop=stop, record=self._record)))
        if found.none_exists:
            raise Contradiction(
                f"Method '{found.claim.method}' claims that no row has the log-odds, but one at a distance of "
                f"{self._best.found.upper!r} has."
            )
        return self._result(found, stop)

    def _result(self, found: CheckedResult, stop: Stop | None) -> CheckedResult:
        best = self._best
        if best is None:
            lower = self.lower
            if self.refused:
                lower, stop = 0.0, Stop(StoppedBy.REFUSED, covering_margin(self.curve.question))
            return CheckedResult(
                self._counted(replace(found.claim, point=None, lower=lower, stop=stop, record=self._record))
            )
        lower = min(self.lower, best.found.upper)
        claim = replace(
            best.found.claim,
            lower=lower,
            lower_any_rounding=min(self.lower_any_rounding, lower) if self.lower_any_rounding > 0.0 else None,
            rounding_bound=max(self.rounding_bound, best.found.claim.rounding_bound),
            stop=None if self._done else stop,
            record=self._record,
        )
        return CheckedResult(self._counted(claim), best.found.upper, best.found.scores)

    @property
    def _record(self) -> PlanesRecord:
        return PlanesRecord(self.weights)

    def _counted(self, claim: Claim) -> Claim:
        return replace(claim, nodes=self.spent.nodes, seconds=self.spent.seconds)
