"""Branch-and-bound solver: the question is packed once, then people are answered on any number of threads.

The work is done in the kernels; `worker` checks time, memory and interrupts between their slices, `rounding` decides
what counts as a row, `batch` holds the numbers and makes claims of them, `progress` reports.
Answers do not depend on the number of threads: each person is searched alone.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from ifonly.caching import cached_property
from ifonly.problem import Lowered, People
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.parts import END_ROOM
from ifonly.problem.rule_edges import rounder
from ifonly.results import Claim, Claims, Limits, Listener
from ifonly.solvers.search.batch import Floats, PackedQuestion, SearchBatch
from ifonly.solvers.search.compiled import KERNELS
from ifonly.solvers.search.error_bounds import errors_everywhere
from ifonly.solvers.search.kernels.candidates import SPECK
from ifonly.solvers.search.kernels.layout import HIGH, LOW, PackedPeople
from ifonly.solvers.search.pack import Probing
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.rounding import RobustSearch
from ifonly.solvers.search.rounding_analysis import ROUNDING_KERNEL
from ifonly.solvers.search.table import FavourableTable
from ifonly.solvers.search.worker import PEOPLE_A_CALL, Budget
from ifonly.tolerances import Tolerances

PEOPLE_BYTES = 1 << 25
"""What the arrays of the people that are packed at a time may take together."""
FIRST_NODES = 1
"""Of a search that is only begun."""
PLAIN_PEOPLE = 16
"""Who are looked up in a table at a time in plain Python."""


class SearchSolver:
    """The search, ready for one question."""

    def __init__(
        self,
        *,
        lowered: Lowered,
        tolerances: Tolerances,
        table: FavourableTable | None,
        records: bool = False,
        any_rounding: bool = False,
        probing: Probing = "by rule",
    ) -> None:
        self.lowered = lowered
        self.tolerances = tolerances
        self.table = table
        self.packed = PackedQuestion.of(lowered, tolerances, records=records, probing=probing)
        self.errors = errors_everywhere(lowered)
        self.robust_search = RobustSearch(self.packed, self.errors, tolerances, any_rounding=any_rounding)
        self.has_edges = not lowered.required_whole.all()
        self.shared = (lowered.network,) if lowered.network.kept else ()
        """What others keep as well."""
        self.shared_bytes = lowered.network.size if lowered.network.kept else 0
        """Of the network, which counts all the same: it stays when the model has let go of it."""
        self.begun = False

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> Claims:
        kernels = self.packed.kernels if self.table is None else KERNELS
        kernels.prepare()  # not before: what it takes is no part of anybody's time
        points = np.array(points, dtype=np.float64, order="C")  # whatever it was, kernels are compiled for that
        budget = Budget(limits, threads, ProgressReporter(len(points), listen))
        size = max(4 * PEOPLE_A_CALL * threads, PEOPLE_BYTES // self._person_bytes)  # for whom it is kept at a time
        stretches = (points[first : first + size] for first in range(0, max(len(points), 1), size))
        claims = [self._solve(some, budget) for some in stretches]
        budget.reporter.all_done()
        return Claims.joined(claims)

    def begin(self, points: Floats, *, wait: bool) -> bool:
        """Do what is done in the first search only, and say so, if that is not to be in plain Python. `wait`: until all
        kernels that it needs are compiled."""
        chain = self.table is None and self.lowered.question.rounding_bound is None
        if chain and self.robust_search.analysis.chain is not None and wait:
            ROUNDING_KERNEL.wait()
        if self.packed.kernels.compiled and not self.begun:
            self.solve(points, Limits(nodes=FIRST_NODES))
            self.begun = True
        return self.packed.kernels.compiled

    def _solve(self, points: Floats, budget: Budget) -> Claims:
        return self.among(self.lowered.domains(points), budget)

    def among(self, people: People, budget: Budget) -> Claims:
        """The answers of people who may change so much."""
        batch = self.packed.batch(people, self.errors)
        if self.table is not None:
            self._scan(batch, self.table)
            if self.packed.records:
                self._record(batch, budget.quietly())
            budget.reporter.done(len(batch))
        else:
            self._search(batch, budget)
            self._finish(batch, budget)
        return self.packed.claims(batch)

    def _search(self, batch: SearchBatch, budget: Budget) -> None:
        """Everyone's nearest row. What keeps bounds apart is more often the edge of a rule than rounding of the model,
        so rows on edges are looked for before another search."""
        everyone = list(range(len(batch)))
        if self.robust_search.either_way(batch, budget):
            budget = budget.quietly()
            if self.has_edges:
                self._look_at_edges(batch, budget)
            everyone = self.robust_search.unsettled(batch)
        if everyone:
            self.robust_search.search(batch, everyone, budget)

    def _finish(self, batch: SearchBatch, budget: Budget) -> None:
        """What is left to do once everyone was searched for: edges of rules, and bounds where no row was found."""
        if self.has_edges:
            self._put_on_ends(batch, budget.quietly())
            self._look_at_edges(batch, budget.quietly())
        self.robust_search.bound_without_row(batch, budget)

    def nothing_below(self, point: Floats, distance: float, limits: Limits) -> tuple[float, int, float] | None:
        """Where nothing is nearer than this distance by more than the gap: a bound, the nodes and the seconds that it
        took to prove it. None where a row is found, or where it is not proven. Such a search begins with the cutoff
        that others end with, and returns no row that had to be checked."""
        if self.table is not None or self.packed.records:
            return None
        self.packed.kernels.prepare()
        return self.ruled_out(
            self.lowered.domains(np.array(point[None, :], dtype=np.float64, order="C")), distance, limits
        )

    def ruled_out(self, people: People, distance: float, limits: Limits) -> tuple[float, int, float] | None:
        """The same of one person who may change so much."""
        batch = self._cut_off(people, distance, limits)
        return self._nothing_found(batch, distance)

    def nearest_below(self, point: Floats, distance: float, limits: Limits) -> Claim | None:
        """The nearest row, if one is nearer than this distance; else a bound, up to it. None where that is not asked
        of a search."""
        if self.table is not None or self.packed.records:
            return None
        self.packed.kernels.prepare()
        people = self.lowered.domains(np.array(point[None, :], dtype=np.float64, order="C"))
        return self.nearest_of(people, distance, limits)

    def nearest_of(self, people: People, distance: float, limits: Limits) -> Claim:
        """The same of one person who may change so much."""
        batch = self._cut_off(people, distance, limits)
        if known := self._nothing_found(batch, distance):
            return Claim(point=None, lower=known[0], method="search", nodes=known[1], seconds=known[2])
        bound, nodes, seconds = self.lowered.question.rounding_bound, int(batch.nodes[0]), float(batch.seconds[0])
        found = batch.best[0, -1] < self.packed.cost(distance)
        if batch.stops and not (found and bound is not None):
            lower = min(float(self.packed.claims(batch).lower[0]), distance)
            stop = batch.stops[0]
            return Claim(point=None, lower=lower, method="search", nodes=nodes, seconds=seconds, stop=stop)
        if bound is None or not found or self.robust_search.unsettled(batch):
            left = limits.after(seconds, nodes)
            claim = self.among(people, Budget(left, 1, ProgressReporter(0, None))).counting(seconds, limits)[0]
            return replace(claim, nodes=claim.nodes + nodes)
        batch.rounding_bound[:] = bound  # the row reaches that, whatever is rounded: no other search is needed
        batch.lower_any_rounding[:] = self.packed.distance(batch.lower)
        self._finish(batch, Budget(limits, 1, ProgressReporter(0, None)))
        return self.packed.claims(batch)[0]

    def bounds_in_boxes(
        self, point: Floats, boxes: FeatureBoxes, distance: float, limits: Limits
    ) -> tuple[Floats, int]:
        """Of each box a distance below which it has no row, up to the one given; and the nodes that it took."""
        self.packed.kernels.prepare()
        batch = self._cut_off(self.lowered.domains_in(point, boxes), distance, limits)
        return np.minimum(self.packed.claims(batch).lower, distance), int(batch.nodes.sum())

    def _cut_off(self, people: People, distance: float, limits: Limits) -> SearchBatch:
        """People, searched for rows nearer than a distance only."""
        batch = self.packed.batch(people, self.errors)
        batch.best[:, :-1] = np.where(self.lowered.numeric, 0.0, people.factual)
        batch.best[:, -1] = self.packed.cost(distance)
        Budget(limits, 1, ProgressReporter(0, None)).on(self.packed, batch, np.full(len(batch), math.inf))
        return batch

    def _nothing_found(self, batch: SearchBatch, distance: float) -> tuple[float, int, float] | None:
        """The bound, the nodes and the seconds, where it is proven that nothing is nearer by more than the gap."""
        lower, found = float(self.packed.claims(batch).lower[0]), batch.best[0, -1] != self.packed.cost(distance)
        closed = not batch.stops and not found and self.tolerances.close(lower, distance)
        return (lower, int(batch.nodes[0]), float(batch.seconds[0])) if closed else None

    @cached_property
    def _person_bytes(self) -> int:
        """About what the arrays of one person take."""
        lowered = self.lowered
        neurons = sum(len(bias) for _, bias in lowered.layers)
        return 8 * (4 * neurons + 8 * lowered.features + 3 * lowered.width + 64)

    # ------------------------------------------------------------------ ways through

    def _scan(self, batch: SearchBatch, table: FavourableTable) -> None:
        begun = time.perf_counter()
        batch.rounding_bound[:] = table.rounding_bound
        if table.judged:
            self._scan_judged(batch, table)
        else:
            self._scan_all(batch, table, begun)
        batch.lower_any_rounding[:] = self.packed.distance(batch.lower)
        batch.lower[:] = np.maximum(batch.lower, np.where(np.isfinite(batch.best[:, -1]), batch.best[:, -1], 0.0))
        batch.seconds[:] = (time.perf_counter() - begun) / len(batch)

    def _scan_all(self, batch: SearchBatch, table: FavourableTable, begun: float) -> None:
        """By the kernel, a few people at a time where it is plain Python."""
        first = 0
        while first < len(batch):
            KERNELS.look(begun)
            few = slice(first, len(batch) if KERNELS.compiled else first + PLAIN_PEOPLE)
            people = PackedPeople._make(part[few] for part in batch.people)
            KERNELS.now.scan_table(
                self.packed.pack, people, table.points, self.packed.unit, table.robust,
                batch.allowed.factual[few], batch.lower[few], batch.best[few], batch.nodes[few],
            )  # fmt: skip
            first = few.stop

    def _scan_judged(self, batch: SearchBatch, table: FavourableTable) -> None:
        """The same where every row is judged by the rules themselves."""
        question = self.lowered.question
        for i, factual in enumerate(batch.allowed.factual):
            lower, point = table.nearest(question, factual)
            batch.lower[i] = self.packed.cost(lower)
            batch.nodes[i] = len(table.points)
            if point is not None:
                self.packed.put(batch, i, factual, point)

    def _record(self, batch: SearchBatch, budget: Budget) -> None:
        """The search tree that proves of each person what the table says; its nodes are those that count."""
        everyone = list(range(len(batch)))
        batch.nodes[:] = 0
        part = self.robust_search.part(batch, everyone, self.errors)
        part.best[:] = batch.best
        budget.on(self.packed, part, np.full(len(batch), math.inf))
        for i in everyone:
            batch.add_spent(i, part, i)
        batch.records.update(part.records)

    def _put_on_ends(self, batch: SearchBatch, budget: Budget) -> None:
        """Rows beside the end of a range that a rule demands (`END_ROOM`): searched for once more on the end itself.

        What was proven holds of more rows than the rule admits, so it is kept.
        """
        points, found = self.packed.points(batch)
        question, everyone = self.lowered.question, batch.allowed
        some = np.flatnonzero(found)
        kept = question.keeps_rules(everyone.factual[some], points[some])
        beside = [
            i for i, fine in zip(some.tolist(), kept.tolist(), strict=True)
            if not fine or (question.by_feature and question.allows(everyone.factual[i], points[i]) is not None)
        ]  # fmt: skip
        if not beside:
            return
        batch.best[beside, -1] = math.inf
        people, (least, most) = everyone.part(beside), question.schema.grid[:2]
        beside_end = np.where(self.lowered.numeric, 4.0 * END_ROOM * (most - least), -1.0)
        upper = np.where(points[beside] - least <= beside_end, np.minimum(people.upper, least), people.upper)
        lower = np.where(most - points[beside] <= beside_end, np.maximum(people.lower, most), people.lower)
        part = self.packed.batch(replace(people, lower=lower, upper=upper), self.errors)
        part.spent_nodes[:] = batch.nodes[beside] + batch.spent_nodes[beside]
        part.spent_seconds[:] = batch.seconds[beside] + batch.spent_seconds[beside]
        self._search(part, budget)
        points, found = self.packed.points(part)
        for k, i in enumerate(beside):
            batch.add_spent(i, part, k)
            batch.rounding_bound[i] = max(batch.rounding_bound[i], part.rounding_bound[k])
            if found[k] and question.allows(people.factual[k], points[k]) is None:
                self.packed.put(batch, i, people.factual[k], points[k])

    def _look_at_edges(self, batch: SearchBatch, budget: Budget) -> None:
        """Rows on the very edge of a rule about real numbers, which floating point can neither return nor rule out:
        search once more among them, and let the rule itself judge what is found.
        """
        again = self.robust_search.affordable(batch, self.robust_search.unsettled(batch), budget.limits)
        if not again:
            return
        batch.own[again] = np.maximum(batch.own[again], self.errors.slack[0, -self.lowered.need.size :].max())
        part = self.robust_search.part(batch, again, self.errors)
        people = part.allowed
        low, high = part.people.start[:, :, self.lowered.required_neurons].transpose(1, 0, 2)
        floor = part.people.need[:, :, -len(self.lowered.required) :]
        floor[:, LOW] -= SPECK * (high - low)
        floor[:, HIGH] = np.minimum(floor[:, HIGH], floor[:, LOW])
        part.best[:] = batch.best[again]  # only what is nearer is looked for
        budget.on(self.packed, part, np.full(len(again), math.inf))
        points, found = self.packed.points(part)
        for k, i in enumerate(again):
            batch.add_spent(i, part, k)
            if not found[k]:
                continue
            for point in rounder(self.lowered, people.factual[k], people.lower[k], people.upper[k], points[k]):
                cost = self._judged(people.factual[k], point, batch.rounding_bound[i])
                if cost < batch.best[i, -1]:
                    self.packed.put(batch, i, people.factual[k], point)

    def _judged(self, factual: Floats, point: Floats, rounding_bound: float) -> float:
        """What a point costs; infinity when it breaks a rule, or when some rounding of the model might refuse it."""
        question = self.lowered.question
        row = point[None, :]
        robust = question.score_margin(row)[0][0] >= rounding_bound >= question.error_at(row)[0]
        if not robust or question.allows(factual, point) is not None:
            return math.inf
        distance = float(question.measure.between(factual, point))
        return self.packed.cost(distance)
