"""What counts as a row when the model rounds: sure ones, and what luck could do.

With E for what the deployed model can lose of a score, a row is sure when its exact score is at least margin + E: the
model accepts it in whatever order it adds up, alone or in a batch. Two ways to the nearest one:

    either way   where E is far below the margin over the whole schema (float64): bounds are proven against margin - E,
                 rows reach margin + E, and the two meet. Nothing nearer is accepted, lucky or not.
    surely       otherwise: bounds and rows are about margin + E, where E is what can be lost at the row itself, which
                 is far less than anywhere in the schema. It is guessed at the person, and checked at the row found.
                 What luck could do is then another search, against margin - E over the ball of the answer.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.question import GUESS, GUESSES, ROOM, rounded_up
from ifonly.proof import Limits, Stop, StoppedBy
from ifonly.search.batch import Floats, PackedQuestion, SearchBatch
from ifonly.search.kernels.layout import LOW
from ifonly.search.pack import Errors, errors_within, surely
from ifonly.search.worker import Spending
from ifonly.tolerances import Tolerances

NEARBY = 16.0
"""What can be lost over the ball, at most, in units of what can be lost at the row: then luck is looked at unasked."""
LUCK_NODES = 50
"""Of luck that nobody asked about: nodes, beside as many as the row took."""


class SureSearch:
    """Searches of one question, each of people who want to be sure."""

    def __init__(self, asked: PackedQuestion, errors: Errors, tolerances: Tolerances, *, luck: bool) -> None:
        self.asked, self.lowered, self.errors, self.tolerances, self.luck = (
            asked, asked.lowered, errors, tolerances, luck)  # fmt: skip
        self.most = float(rounded_up(self.lowered.question.largest_error))
        self.curved = self.lowered.bends is not None
        """Scores that saturate may be sure by less than a search had for room: then it looks once more, with less."""

    def search(self, batch: SearchBatch, spending: Spending) -> None:
        """The nearest row of everyone; what luck could do, where that is quickly said or was asked for."""
        everyone = list(range(len(batch)))
        blur = self.lowered.question.blur
        if blur is not None:
            batch.blur[:] = blur
            spending.on(self.asked, batch, np.full(len(batch), math.inf))
            batch.lucky[:] = self.asked.distance(batch.lower)
            everyone = self.unsettled(batch)
            if not everyone:
                return
            spending = spending.quietly()
        self._surely(batch, everyone, spending)
        self._rule_out(batch, everyone, spending.quietly())
        self._by_luck(batch, everyone, spending.quietly())

    # ------------------------------------------------------------------ sure rows

    def _surely(self, batch: SearchBatch, members: list[int], spending: Spending) -> None:
        """The nearest sure row of each of these people."""
        question = self.lowered.question
        reach = batch.best[:, -1] * (1.0 + 1e-6)  # a row that is sure of more may be known there
        batch.best[members], batch.lower[members] = math.inf, 0.0
        factual = batch.allowed.factual[members]
        batch.blur[members] = question.first_blur(factual)
        lead, own = question.lead(factual)
        least = np.zeros(len(batch))
        least[members] = GUESS * own
        batch.own[members] = np.maximum(least[members], ROOM * np.abs(lead))
        for _ in range(GUESSES):
            members = self.affordable(batch, members, spending.limits)
            if not members:
                return
            part = self.part(batch, members, self.errors)
            spending.on(self.asked, part, reach[members])
            spending = spending.quietly()
            self._close(part, spending)
            points, found = self.asked.points(part)
            actual, lead = question.error_at(points), question.lead(points)[0]
            needed = np.where(found, np.maximum(part.blur, actual), part.blur)  # what was proven of less holds of more
            unsure = found & (lead < needed)
            missed = ~found & np.isfinite(part.lower) & (part.own > least[members]) & self.curved
            part.best[unsure] = math.inf  # whatever comes next, it is no answer
            for k, i in enumerate(members):
                batch.add_spent(i, part, k)
                batch.take(i, part, k)
            batch.blur[members] = needed
            again = [k for k in np.flatnonzero(unsure | missed).tolist() if k not in part.stops]
            more = np.maximum(part.blur, np.minimum(GUESS * actual, self.most))
            own = np.where(missed, least[members], part.own + GUESS * np.maximum(part.blur - lead, 0.0))
            members = [members[k] for k in again]
            batch.blur[members] = np.where(missed, part.blur, more)[again]
            batch.own[members] = own[again]

    def _close(self, batch: SearchBatch, spending: Spending) -> None:
        """Search once more, over the ball of the row found, where the search's own rounding left a gap.

        It is bounded by the size of the numbers that can occur: much smaller inside the ball than in the whole space.
        """
        members = [i for i in self.unsettled(batch) if math.isfinite(batch.best[i, -1])]
        members = self.affordable(batch, members, spending.limits)
        if not members:
            return
        people, reach = batch.allowed.part(members), self.asked.distance(batch.best[members, -1]) * (1.0 + 1e-6)
        errors = errors_within(self.lowered, people, reach)
        part = self.part(batch, members, errors)
        spending.on(self.asked, part, self._costs(reach))
        for k, i in enumerate(members):
            batch.add_spent(i, part, k)
            if part.best[k, -1] <= batch.best[i, -1] * (1.0 + 1e-9) and k not in part.stops:
                batch.take(i, part, k)

    # ------------------------------------------------------------------ luck

    def _rule_out(self, batch: SearchBatch, members: list[int], spending: Spending) -> None:
        """Of those for whom no row is sure: is there none that could be accepted by luck either?"""
        members = [i for i in members if batch.lower[i] == math.inf and i not in batch.stops]
        batch.lower[members] = 0.0
        members = self.affordable(batch, members, spending.limits)
        if not members:
            return
        part = self.part(batch, members, self.errors, -np.full(len(members), self.most))
        spending.on(self.asked, part, np.full(len(members), math.inf))
        for k, i in enumerate(members):
            batch.add_spent(i, part, k)
            batch.lower[i] = part.lower[k]
            batch.lucky[i] = self.asked.distance(part.lower[k : k + 1])[0]
            if k in part.records:
                batch.records[i] = part.records[k]

    def _by_luck(self, batch: SearchBatch, members: list[int], spending: Spending) -> None:
        """How near a row could be that is accepted by luck."""
        members = [i for i in members if math.isfinite(batch.best[i, -1]) and i not in batch.stops]
        batch.lucky[[i for i in members if batch.best[i, -1] == 0.0]] = 0.0
        members = [i for i in members if batch.best[i, -1] > 0.0 and not self.asked.records]
        if not members:
            return
        people, reach = batch.allowed.part(members), self.asked.distance(batch.best[members, -1]) * (1.0 + 1e-6)
        errors = errors_within(self.lowered, people, reach)
        lost = (self.lowered.need - errors.need[:, LOW, : self.lowered.need.size]).max(axis=1)
        near = np.flatnonzero(self.luck | (lost <= NEARBY * batch.blur[members]))
        if not len(near):
            return
        members, reach, lost = [members[k] for k in near], reach[near], lost[near]
        part = self.part(batch, members, Errors(*(each[near] for each in errors)), -lost)
        if not self.luck:
            spending = spending.within(_a_little(part, batch.nodes[members], spending.limits))
        spending.on(self.asked, part, self._costs(reach))
        upper, lucky = self.asked.distance(batch.best[members, -1]), self.asked.distance(part.lower)
        batch.lucky[members] = np.minimum(lucky, upper)
        batch.nodes[members] += part.nodes
        batch.seconds[members] += part.seconds

    # ------------------------------------------------------------------ people once more

    def part(self, batch: SearchBatch, members: list[int], errors: Errors, blur: Floats | None = None) -> SearchBatch:
        """Some people once more, who have spent what they have, and want rows that are sure (or that reach `blur`)."""
        above = batch.blur[members] if blur is None else blur
        part = self.asked.batch(batch.allowed.part(members), surely(self.lowered, errors, above, batch.own[members]))
        part.spent_nodes[:] = batch.nodes[members] + batch.spent_nodes[members]
        part.spent_seconds[:] = batch.seconds[members] + batch.spent_seconds[members]
        part.blur[:], part.own[:] = batch.blur[members], batch.own[members]
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
        lower, upper = self.asked.distance(batch.lower), self.asked.distance(batch.best[:, -1])
        return [i for i in self.tolerances.unsettled(lower, upper) if i not in batch.stops]

    def _costs(self, distances: Floats) -> Floats:
        return distances**2 if self.asked.squared else distances


def _a_little(part: SearchBatch, nodes: NDArray[np.int64], limits: Limits) -> Limits:
    """Limits by which each may spend only twice the nodes of their row and a few more."""
    more = 2 * nodes + LUCK_NODES
    if limits.nodes is not None:
        more = np.minimum(more, np.maximum(limits.nodes - part.spent_nodes, 1))
    part.spent_nodes[:] = more.max() - more
    return replace(limits, nodes=int(more.max()))
