"""The nearest row with a probability of one of three or more classes, by planes around it (`problem.softmax`).

    ask         for the nearest row that meets the planes known so far: every row with the probability does, so nothing
                with it is nearer. Has the row found the probability, surely? Then it is the nearest
    cut         else add the tangent at that row, which excludes it
    repair      ask for a hair more than the planes: a row beyond them by more than they are off has the probability.
                It is at most that hair farther than the nearest

The planes close in as Newton's method does, and the two distances meet after a few questions. What a limit leaves open
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
from ifonly.problem.softmax import SLACK, Weights, first_weights, log_odds, weights_at
from ifonly.problem.target import TangentTarget, class_index
from ifonly.results import Claim, Limits, Listener, Progress, Stop, StoppedBy
from ifonly.results.deployed import covering_margin
from ifonly.results.witness import check_witnesses
from ifonly.tolerances import Tolerances

QueryRequest: TypeAlias = Callable[[TangentTarget, Floats, Limits, Listener | None], Sequence[CheckedResult]]
"""The nearest row of each of these people beyond the planes, within these limits."""

NEAR = 1e-3
"""Log-odds: a row that lacks no more than this is repaired in every round, not only in the first."""
LEAST = 8.0 * SLACK
"""Log-odds: the least hair that is asked for."""
REPAIRS = 6
HARDER = 16.0
"""By how much more is asked for where a hair was too little."""
ROUNDS = 200


class JudgedRow(NamedTuple):
    """A row found beyond some planes: by how much its exact log-odds is beyond the margin, whether the model itself
    has it so."""

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
        """The planes that everyone begins with."""
        return self.planes(first_weights(self.question.model.outputs))

    def planes(self, weights: tuple[Weights, ...], more: float = 0.0) -> TangentTarget:
        return self.target.tangents(self.question.model, weights, more)

    def judged(self, point: Floats, found: CheckedResult) -> JudgedRow:
        """What a row is worth, in real arithmetic and by the model's own word."""
        assert found.claim.point is not None
        row = found.claim.point[None, :]
        scores, error = self.question.model.sharp_scores(row)
        c, _ = self.question.conditions
        own = float((error @ np.abs(c).T).max())
        score_margin = float(log_odds(scores, self.index)[0]) - self.target.threshold - self.target.margin - own
        return JudgedRow(found, score_margin, not check_witnesses(self.question, point[None, :], row)[0].refusal)

    def tangent(self, found: CheckedResult) -> Weights:
        """The weights of the tangent at the row found."""
        assert found.claim.point is not None
        return weights_at(self.question.model.sharp_scores(found.claim.point[None, :])[0][0], self.index)


def nearest_within(
    curve: ProbabilityQuestion, ask: QueryRequest, points: Floats, limits: Limits, with_progress: Listener | None = None
) -> list[CheckedResult]:
    """The nearest row of each person: all are asked with the first planes, then each on their own."""
    result = []
    for point, first in zip(points, ask(curve.first, points, limits, uncounted(with_progress)), strict=True):
        result.append(_Planes(curve, ask, point, limits).nearest(first))
        if with_progress is not None:
            with_progress(Progress(finished=len(result), people=len(points)))
    return result


class _Planes:
    """One person's search: planes so far, what is proven, the best row."""

    def __init__(self, curve: ProbabilityQuestion, ask: QueryRequest, point: Floats, limits: Limits) -> None:
        self.curve, self.ask, self.point, self.limits = curve, ask, point, limits
        self.weights = curve.first.weights
        self.lower, self.lower_any_rounding, self.rounding_bound = 0.0, 0.0, 0.0
        self.rows: list[JudgedRow] = []
        self.refused = False

    def nearest(self, found: CheckedResult) -> CheckedResult:
        """What is known in the end, from what was found with the first planes."""
        self.spent = Spent(self.limits, found.claim.seconds)
        for _ in range(ROUNDS):
            self._spend(found)
            self._prove(found)
            if found.witness is None:
                return self._ended(found)
            one = self._judge(found)
            stop = self._limit(found.claim)
            if self._done or one is self._best:
                return self._told(found, stop or found.claim.stop)
            stop = stop or self.spent.stop or (None if self._cut(found) else Stop(StoppedBy.CLOSE))
            if (self._best is None or self._lack(one) <= NEAR) and not self.spent.stop:
                self._repair(max(2.0 * self._lack(one), LEAST))
            if self._done or (self.refused and self._best is None) or stop is not None:
                return self._told(found, stop)
            (found,) = self.ask(self.curve.planes(self.weights), self.point[None, :], self.spent.left, None)
        return self._told(found, Stop(StoppedBy.STEPS, ROUNDS))

    def _prove(self, found: CheckedResult) -> None:
        """What is proven: by the last question, which has most planes, unless a limit cut it short. Its bound is about
        rows that are beyond the margin by its blur."""
        claim = found.claim
        if self._limit(claim) is None or claim.lower > self.lower:
            self.lower, self.rounding_bound = claim.lower, claim.rounding_bound
        self.lower_any_rounding = max(self.lower_any_rounding, claim.lower_any_rounding or 0.0)

    # ------------------------------------------------------------------ rows

    @property
    def _best(self) -> JudgedRow | None:
        """The nearest row that is sure, also of what is proven."""
        sure = [one for one in self.rows if one.accepted and self._lack(one) <= 0.0]
        return min(sure, key=lambda one: one.found.upper, default=None)

    @property
    def _done(self) -> bool:
        best = self._best
        return best is not None and self.curve.tolerances.close(self.lower, best.found.upper)

    def _judge(self, found: CheckedResult) -> JudgedRow:
        self.rows.append(self.curve.judged(self.point, found))
        return self.rows[-1]

    def _lack(self, one: JudgedRow) -> float:
        """What a row lacks to be sure."""
        return max(self.rounding_bound, one.found.claim.rounding_bound) - one.score_margin

    def _cut(self, found: CheckedResult) -> bool:
        """Add the tangent at the row; whether it is a new one."""
        tangent = self.curve.tangent(found)
        new = tangent not in self.weights
        self.weights = (*self.weights, tangent) if new else self.weights
        return new

    def _repair(self, more: float) -> None:
        """A row that has the probability, by asking for a hair more until one has."""
        for _ in range(REPAIRS):
            planes = self.curve.planes(self.weights, more)
            (found,) = self.ask(planes, self.point[None, :], self.spent.left, None)
            self._spend(found)
            if found.witness is None:
                return
            one = self._judge(found)
            self._cut(found)
            lack = self._lack(one)
            self.refused = lack <= 0.0 and not one.accepted
            if (one.accepted and lack <= 0.0) or self.spent.stop:
                return
            more = more + 2.0 * lack if lack > 0.0 else HARDER * more

    # ------------------------------------------------------------------ endings

    def _spend(self, found: CheckedResult) -> None:
        self.spent.nodes, self.spent.prepared_query = (
            self.spent.nodes + found.claim.nodes,
            self.spent.prepared_query + 1,
        )

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
            return CheckedResult(self._counted(replace(found.claim, lower=lower, stop=stop, record=None)), None)
        if found.none_exists:
            raise Contradiction(
                f"Method '{found.claim.method}' claims that no row has the log-odds, but one at a distance of "
                f"{self._best.found.upper!r} has."
            )
        return self._told(found, stop)

    def _told(self, found: CheckedResult, stop: Stop | None) -> CheckedResult:
        best = self._best
        if best is None:
            lower = self.lower
            if self.refused:
                lower, stop = 0.0, Stop(StoppedBy.REFUSED, covering_margin(self.curve.question))
            return CheckedResult(
                self._counted(replace(found.claim, point=None, lower=lower, stop=stop, record=None)), None
            )
        lower = min(self.lower, best.found.upper)
        claim = replace(
            best.found.claim,
            lower=lower,
            lower_any_rounding=min(self.lower_any_rounding, lower) if self.lower_any_rounding > 0.0 else None,
            rounding_bound=max(self.rounding_bound, best.found.claim.rounding_bound),
            stop=None if self._done else stop,
            record=None,
        )
        return CheckedResult(self._counted(claim), best.found.witness)

    def _counted(self, claim: Claim) -> Claim:
        return replace(claim, nodes=self.spent.nodes, seconds=self.spent.seconds)
