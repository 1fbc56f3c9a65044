"""Answers that are robust to rounding: rows that the model accepts under every rounding, and bounds on all others.

With E for what the deployed model can lose of a score, a row is robust when its exact score is at least margin + E: the
model accepts it in whatever order it adds up, alone or in a batch. Two ways to the nearest one:

    either way   where E is far below the margin over the whole schema (float64): bounds are proven against margin - E,
                 rows reach margin + E, and the two meet. No row accepted under some rounding is nearer.
    robustly     otherwise: bounds and rows are about margin + E, where E is what can be lost at the row itself, which
                 is far less than anywhere in the schema. It is guessed at the person, and checked at the row found.
                 Rows that only some rounding accepts are then bounded by another search, against
                 margin - E over the ball of the answer.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.problem.question import GUESS, GUESSES, ROOM
from ifonly.results import Limits, Stop, StoppedBy
from ifonly.solvers.search.batch import Floats, PackedQuestion, SearchBatch
from ifonly.solvers.search.error_bounds import Boxes, Errors, balls, encoded_boxes, errors_within, robust_errors
from ifonly.solvers.search.kernels.layout import LOW
from ifonly.solvers.search.rounding_analysis import RoundingAnalysis
from ifonly.solvers.search.worker import Budget
from ifonly.tolerances import Tolerances

NEARBY = 16.0
"""What can be lost over the ball, at most, in units of what can be lost at the row: then rows that only some rounding
accepts are bounded by default."""
FAR_LESS = 1e-3
"""What the search itself may lose of a score, in units of what the model can lose in the ball, for it not to matter."""
ANY_ROUNDING_NODES = 50
"""Nodes for that bound, where it was not asked for, beside as many as the row took."""


class RobustSearch:
    """Searches of one question for rows that are robust to rounding."""

    def __init__(self, packed: PackedQuestion, errors: Errors, tolerances: Tolerances, *, any_rounding: bool) -> None:
        self.packed, self.lowered, self.errors, self.tolerances, self.any_rounding = (
            packed, packed.lowered, errors, tolerances, any_rounding)  # fmt: skip
        self.most = self.lowered.question.most_error
        self.curved = self.lowered.bends is not None
        """Scores that saturate may be robust by less than a search allows for: then it searches again, with less."""

    @cached_property
    def analysis(self) -> RoundingAnalysis:
        return RoundingAnalysis(self.lowered.question.model)

    def either_way(self, batch: SearchBatch, budget: Budget) -> bool:
        """The nearest row of everyone, with bounds that hold for rows that some rounding accepts; False where E is not
        far below the margin."""
        rounding_bound = self.lowered.question.rounding_bound
        if rounding_bound is None:
            return False
        batch.rounding_bound[:] = rounding_bound
        budget.on(self.packed, batch, np.full(len(batch), math.inf))
        batch.lower_any_rounding[:] = self.packed.distance(batch.lower)
        return True

    def search(self, batch: SearchBatch, everyone: list[int], budget: Budget) -> None:
        """The nearest row of these people; a bound on rows that some rounding accepts, where it is cheap or asked
        for."""
        self._robustly(batch, everyone, budget)
        without = [i for i in everyone if batch.lower[i] == math.inf and i not in batch.stops]
        self._rule_out(batch, without, budget.quietly())
        self._bound_any_rounding(batch, everyone, budget.quietly())

    # ------------------------------------------------------------------ robust rows

    def _robustly(self, batch: SearchBatch, members: list[int], budget: Budget) -> None:
        """The nearest robust row of each of these people."""
        question = self.lowered.question
        reach = batch.best[:, -1] * (1.0 + 1e-6)  # a more robust row may be known there
        batch.best[members], batch.lower[members] = math.inf, 0.0
        factual = batch.allowed.factual[members]
        batch.rounding_bound[members] = question.first_rounding_bound(factual, self.analysis.at(factual))
        least = np.zeros_like(batch.own)
        least[members], batch.own[members] = self._first_losses(factual)
        for _ in range(GUESSES):
            members = self.affordable(batch, members, budget.limits)
            if not members:
                return
            part = self.part(batch, members, self.errors)
            budget.on(self.packed, part, reach[members])
            budget = budget.quietly()
            self._close(part, budget)
            points, found = self.packed.points(part)
            actual = self._errors_at(batch, members, part, points)
            # what was proven of less holds of more
            needed = np.where(found, np.maximum(part.rounding_bound, actual), part.rounding_bound)
            score_margins = question.score_margins(points, quick=True)[0]
            if (found & ~(score_margins >= needed[:, None]).all(axis=1)).any():
                score_margins = question.score_margins(points)[0]
            not_robust = found & (score_margins < needed[:, None]).any(axis=1)
            missed = ~found & np.isfinite(part.lower) & (part.own > least[members]).any(axis=1) & self.curved
            part.best[not_robust] = math.inf  # whatever comes next, it is no answer
            for k, i in enumerate(members):
                batch.add_spent(i, part, k)
                batch.take(i, part, k)
            batch.rounding_bound[members] = needed
            if not (again := [k for k in np.flatnonzero(not_robust | missed).tolist() if k not in part.stops]):
                return
            more = np.maximum(part.rounding_bound, np.minimum(GUESS * actual, self.most))
            with np.errstate(over="ignore"):  # of rows that are far below the margin, and not searched for again
                own = part.own + GUESS * np.maximum(part.rounding_bound[:, None] - score_margins, 0.0)
            own = np.where(missed[:, None], least[members], own)
            members = [members[k] for k in again]
            batch.rounding_bound[members] = np.where(missed, part.rounding_bound, more)[again]
            batch.own[members] = own[again]

    def _first_losses(self, factual: Floats) -> tuple[Floats, Floats]:
        """What the search itself may lose of each condition: at least, and as it is guessed at each person's own row.

        The guess is a share of the score, as long as float64 loses less than that on any row; only otherwise is it
        worked out what it loses on this one.
        """
        score_margins, own = self.lowered.question.score_margins(factual, quick=not self.curved)
        if not self.curved and not (GUESS * own <= ROOM * np.abs(score_margins)).all():
            score_margins, own = self.lowered.question.score_margins(factual)
        return GUESS * own, np.maximum(GUESS * own, ROOM * np.abs(score_margins))

    def _errors_at(self, batch: SearchBatch, members: list[int], part: SearchBatch, points: Floats) -> Floats:
        """What the deployed model can lose at the rows found, and, for a bound on rows that some rounding accepts, in
        the balls around the people: by one analysis of both."""
        question = self.lowered.question
        encoded = question.schema.encode(points)
        if self.packed.records:
            return question.largest_of(self.analysis.over(encoded, encoded))
        lower, upper = encoded_boxes(self.lowered, self._balls(batch, members, part.best[:, -1])[0])
        both = self.analysis.over(np.concatenate([encoded, lower]), np.concatenate([encoded, upper]))
        for i, error in zip(members, both[len(points) :], strict=True):
            batch.ball_error[i] = error
        return question.largest_of(both[: len(points)])

    def _close(self, batch: SearchBatch, budget: Budget) -> None:
        """Search once more, over the ball of the row found, where the search's own rounding left a gap.

        It is bounded by the size of the numbers that can occur: much smaller inside the ball than in the whole space.
        """
        members = [i for i in self.unsettled(batch) if math.isfinite(batch.best[i, -1])]
        members = self.affordable(batch, members, budget.limits)
        if not members:
            return
        boxes, reach = self._balls(batch, members, batch.best[members, -1])
        part = self.part(batch, members, errors_within(self.lowered, boxes))
        budget.on(self.packed, part, self._costs(reach))
        for k, i in enumerate(members):
            batch.add_spent(i, part, k)
            if part.best[k, -1] <= batch.best[i, -1] * (1.0 + 1e-9) and k not in part.stops:
                batch.take(i, part, k)

    # ------------------------------------------------------------------ rows that some rounding accepts

    def bound_without_row(self, batch: SearchBatch, budget: Budget) -> None:
        """People for whom no row was found, though no limit was hit: their bound becomes one on all rows that some
        rounding may accept."""
        empty = [i for i, cost in enumerate(batch.best[:, -1].tolist()) if cost == math.inf]
        members = [i for i in empty if batch.lower[i] < math.inf and i not in batch.stops]
        if not members:
            return
        robust = batch.lower[members]
        self._rule_out(batch, [i for i in members if math.isnan(batch.lower_any_rounding[i])], budget.quietly())
        known = [(i, low) for i, low in zip(members, robust.tolist(), strict=True) if i not in batch.stops]
        for i, low in known:
            batch.lower[i] = min(low, float(self._costs(batch.lower_any_rounding[i : i + 1])[0]))

    def _rule_out(self, batch: SearchBatch, members: list[int], budget: Budget) -> None:
        """Of those without a row that every rounding accepts: from which distance on may some rounding accept one?"""
        batch.lower[members] = 0.0
        members = self.affordable(batch, members, budget.limits)
        if not members:
            return
        part = self.part(batch, members, self.errors, -np.full(len(members), self.most))
        budget.on(self.packed, part, np.full(len(members), math.inf))
        for k, i in enumerate(members):
            batch.add_spent(i, part, k)
            batch.lower[i] = part.lower[k]
            batch.lower_any_rounding[i] = self.packed.distance(part.lower[k : k + 1])[0]
            if k in part.records and part.lower[k] == math.inf:  # else the proof that no row is robust is worth more
                batch.records[i] = part.records[k]

    def _bound_any_rounding(self, batch: SearchBatch, members: list[int], budget: Budget) -> None:
        """A lower bound on the distance of rows that some rounding accepts."""
        members = [i for i in members if math.isfinite(batch.best[i, -1]) and i not in batch.stops]
        batch.lower_any_rounding[[i for i in members if batch.best[i, -1] == 0.0]] = 0.0
        members = [i for i in members if batch.best[i, -1] > 0.0 and not self.packed.records]
        if not members:
            return
        errors, lost, reach = self._errors_in_balls(batch, members)
        near = np.flatnonzero(self.any_rounding | (lost <= NEARBY * batch.rounding_bound[members]))
        if not len(near):
            return
        if len(near) < len(members):
            members, reach, lost = [members[k] for k in near], reach[near], lost[near]
            errors = errors if errors is self.errors else Errors(*(each[near] for each in errors))
        part = self.part(batch, members, errors, -lost)
        if not self.any_rounding:
            budget = budget.within(_a_little(part, batch.nodes[members], budget.limits))
        budget.on(self.packed, part, self._costs(reach))
        upper, lower_any_rounding = (
            self.packed.distance(batch.best[members, -1]),
            self.packed.distance(part.lower),
        )
        batch.lower_any_rounding[members] = np.minimum(lower_any_rounding, upper)
        batch.nodes[members] += part.nodes
        batch.seconds[members] += part.seconds

    def _errors_in_balls(self, batch: SearchBatch, members: list[int]) -> tuple[Errors, Floats, Floats]:
        """What rounding can do in the balls of the rows found: to the search, to the deployed model; and their radii.

        What the search loses anywhere will do, where that is far below what the model can lose in the ball.
        """
        question, count = self.lowered.question, self.lowered.need.size
        boxes, reach = self._balls(batch, members, batch.best[members, -1])
        known = [batch.ball_error[i] for i in members if i in batch.ball_error]
        model_error = np.array(known) if len(known) == len(members) else None
        if model_error is not None:
            lost = (question.caution * (model_error @ np.abs(question.conditions[0]).T)).max(axis=1)
            if (self.errors.slack[:, -count:].max() <= FAR_LESS * lost).all():
                return self.errors, lost, reach
        errors = errors_within(self.lowered, boxes, model_error)
        return errors, (self.lowered.need - errors.need[:, LOW, :count]).max(axis=1), reach

    # ------------------------------------------------------------------ people once more

    def part(
        self, batch: SearchBatch, members: list[int], errors: Errors, rounding_bound: Floats | None = None
    ) -> SearchBatch:
        """Some people once more, who have spent what they have; for rows that are robust, or that reach
        `rounding_bound`."""
        above = batch.rounding_bound[members] if rounding_bound is None else rounding_bound
        allowed, same = batch.allowed.part(members), batch if len(members) == len(batch) else None
        part = self.packed.batch(allowed, robust_errors(self.lowered, errors, above, batch.own[members]), same)
        part.spent_nodes[:] = batch.nodes[members] + batch.spent_nodes[members]
        part.spent_seconds[:] = batch.seconds[members] + batch.spent_seconds[members]
        part.rounding_bound[:], part.own[:] = batch.rounding_bound[members], batch.own[members]
        return part

    def affordable(self, batch: SearchBatch, members: list[int], limits: Limits) -> list[int]:
        """Those who have nodes left to spend; the others are stopped."""
        if limits.nodes is None:
            return members
        for i in members:
            if batch.nodes[i] + batch.spent_nodes[i] >= limits.nodes:
                batch.stops.setdefault(i, Stop(StoppedBy.NODES, limits.nodes))
        return [i for i in members if i not in batch.stops]

    def unsettled(self, batch: SearchBatch) -> list[int]:
        """Those whose bounds are farther apart than asked for, though no limit was hit."""
        lower, upper = self.packed.distance(batch.lower), self.packed.distance(batch.best[:, -1])
        return [i for i in self.tolerances.unsettled(lower, upper) if i not in batch.stops]

    def _balls(self, batch: SearchBatch, members: list[int], costs: Floats) -> tuple[Boxes, Floats]:
        """The ball of each person's row, which costs so much, and the balls' radii."""
        reach = self.packed.distance(costs) * (1.0 + 1e-6)
        everyone, key = len(members) == len(batch), reach.tobytes()
        if everyone and batch.balls is not None and batch.balls[0] == key:
            return batch.balls[1], reach
        boxes = balls(self.lowered, batch.allowed.part(members), reach)
        if everyone:
            batch.balls = key, boxes
        return boxes, reach

    def _costs(self, distances: Floats) -> Floats:
        return distances**2 if self.packed.squared else distances


def _a_little(part: SearchBatch, nodes: NDArray[np.int64], limits: Limits) -> Limits:
    """Limits by which each may spend only twice the nodes of their row and a few more."""
    more = 2 * nodes + ANY_ROUNDING_NODES
    if limits.nodes is not None:
        more = np.minimum(more, np.maximum(limits.nodes - part.spent_nodes, 1))
    part.spent_nodes[:] = more.max() - more
    return replace(limits, nodes=int(more.max()))
