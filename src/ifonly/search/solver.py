"""The exact search at work: the question is packed once, then any number of people are answered on any number of
threads.

Everything of importance happens in the kernels; `worker` watches the clock, the memory and the keyboard between their
slices, `batch` holds the numbers and turns them into claims, `herald` tells how far it is. Answers do not depend on the
number of threads: each person is searched alone.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import numpy as np

from ifonly.problem import Lowered, People
from ifonly.problem.edges import rounder
from ifonly.proof import Claim, Limits, Listener, Stop, StoppedBy
from ifonly.search.batch import Floats, PackedQuestion, SearchBatch
from ifonly.search.herald import Herald
from ifonly.search.kernels import search as kernel
from ifonly.search.kernels.candidates import SPECK
from ifonly.search.kernels.layout import HIGH, LOW
from ifonly.search.pack import errors_everywhere, errors_within
from ifonly.search.table import FavourableTable
from ifonly.search.warm import load_kernels
from ifonly.search.worker import PEOPLE_A_CALL, Ranges, Worker
from ifonly.tolerances import Tolerances

PEOPLE_BYTES = 1 << 25
"""What the arrays of the people that are packed at a time may take together."""


class SearchSolver:
    """The search, ready for one question."""

    def __init__(
        self, *, lowered: Lowered, tolerances: Tolerances, table: FavourableTable | None, records: bool
    ) -> None:
        self.lowered = lowered
        self.tolerances = tolerances
        self.table = table
        self.asked = PackedQuestion.of(lowered, tolerances, records=records)
        self.errors = errors_everywhere(lowered)
        load_kernels()

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        herald = Herald(len(points), listen)
        claims: list[Claim] = []
        size = max(4 * PEOPLE_A_CALL * threads, PEOPLE_BYTES // self._person_bytes)
        for first in range(0, len(points), size):  # what is kept per person is kept for so many at a time
            claims += self._solve(points[first : first + size], limits, threads, herald)
        herald.all_done()
        return claims

    def _solve(self, points: Floats, limits: Limits, threads: int, herald: Herald) -> list[Claim]:
        return self.among(self.lowered.domains(points), limits, threads, herald)

    def among(self, people: People, limits: Limits, threads: int, herald: Herald) -> list[Claim]:
        """The answers of people who may change so much."""
        batch = self.asked.batch(people, self.errors)
        if self.table is not None:
            self._scan(batch)
            herald.done(len(batch))
        else:
            self._search(batch, np.full(len(batch), math.inf), limits, threads, herald)
            self._sharpen(batch, limits, threads)
            self._look_at_edges(batch, limits, threads)
        return self.asked.claims(batch)

    @property
    def _person_bytes(self) -> int:
        """About what the arrays of one person take."""
        lowered = self.lowered
        neurons = sum(len(bias) for _, bias in lowered.layers)
        return 8 * (4 * neurons + 8 * lowered.features + 3 * lowered.width + 64)

    # ------------------------------------------------------------------ ways through

    def _scan(self, batch: SearchBatch) -> None:
        assert self.table is not None
        begun = time.perf_counter()
        if self.table.judged:
            self._scan_judged(batch, self.table)
            batch.seconds[:] = (time.perf_counter() - begun) / len(batch)
            return
        kernel.scan_table(
            self.asked.pack, batch.people, self.table.points, self.asked.unit, self.table.surely, batch.allowed.factual,
            batch.lower,
            batch.best, batch.nodes,
        )  # fmt: skip
        batch.seconds[:] = (time.perf_counter() - begun) / len(batch)

    def _scan_judged(self, batch: SearchBatch, table: FavourableTable) -> None:
        """The same where every row is judged by the rules themselves."""
        question = self.lowered.question
        for i, factual in enumerate(batch.allowed.factual):
            lower, point = table.nearest(question, factual)
            batch.lower[i] = self.asked.cost(lower)
            batch.nodes[i] = len(table.points)
            if point is not None:
                self.asked.put(batch, i, factual, point)

    def _search(self, batch: SearchBatch, radius: Floats, limits: Limits, threads: int, herald: Herald) -> None:
        size = PEOPLE_A_CALL if threads == 1 else max(1, min(PEOPLE_A_CALL, math.ceil(len(batch) / (4 * threads))))
        ranges = Ranges(len(batch), size)
        if threads == 1 or len(batch) <= size:
            Worker(self.asked, batch, radius, limits, herald).work(ranges)
            return
        workers = [Worker(self.asked, batch, radius, limits, herald) for _ in range(threads)]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            futures = [pool.submit(worker.work, ranges) for worker in workers]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                for worker in workers:
                    worker.stop.set()
            for future in futures:
                future.result()

    def _unsettled(self, batch: SearchBatch) -> list[int]:
        """Those whose bounds are farther apart than asked for, though no limit was hit."""
        bounds = zip(self.asked.distance(batch.lower).tolist(), self.asked.distance(batch.best[:, -1]).tolist(),
                     strict=True)  # fmt: skip
        return [
            i for i, (lower, upper) in enumerate(bounds)
            if math.isfinite(lower) and i not in batch.stops
            and not (math.isfinite(upper) and self.tolerances.close(lower, upper))
        ]  # fmt: skip

    def _sharpen(self, batch: SearchBatch, limits: Limits, threads: int) -> None:
        """Search once more, over the ball of the answer, where rounding over the whole schema left a gap.

        Errors are bounded by the size of the numbers that can occur: much smaller inside the ball than in the whole
        space.
        """
        upper = self.asked.distance(batch.best[:, -1])
        again = [i for i in self._unsettled(batch) if math.isfinite(upper[i])]
        if limits.nodes is not None:
            for i in again:
                if batch.nodes[i] >= limits.nodes:
                    batch.stops[i] = Stop(StoppedBy.NODES, limits.nodes)
            again = [i for i in again if i not in batch.stops]
        if not again:
            return
        reach = upper[again] * (1.0 + 1e-6)
        people = batch.allowed.part(again)
        part = self.asked.batch(people, errors_within(self.lowered, people, reach))
        part.spent_nodes[:], part.spent_seconds[:] = batch.nodes[again], batch.seconds[again]
        self._search(part, reach**2 if self.asked.squared else reach, limits, threads, Herald(0, None))
        for k, i in enumerate(again):
            batch.add_spent(i, part, k)
            if part.best[k, -1] <= batch.best[i, -1] * (1.0 + 1e-9) and k not in part.stops:
                batch.lower[i], batch.best[i] = part.lower[k], part.best[k]
                if k in part.records:
                    batch.records[i] = part.records[k]

    def _look_at_edges(self, batch: SearchBatch, limits: Limits, threads: int) -> None:
        """Rows on the very edge of a rule about real numbers, which floating point can neither return nor rule out:
        search once more among them, and let the rule itself judge what is found.
        """
        if self.lowered.required_whole.all():
            return
        again = [i for i in self._unsettled(batch) if limits.nodes is None or batch.nodes[i] < limits.nodes]
        if not again:
            return
        people = batch.allowed.part(again)
        part = self.asked.batch(people, self.errors)
        low, high = part.people.start[:, :, self.lowered.required_neurons].transpose(1, 0, 2)
        floor = part.people.need[:, :, -len(self.lowered.required) :]
        floor[:, LOW] -= SPECK * (high - low)
        floor[:, HIGH] = np.minimum(floor[:, HIGH], floor[:, LOW])
        part.spent_nodes[:], part.spent_seconds[:] = batch.nodes[again], batch.seconds[again]
        self._search(part, np.full(len(again), math.inf), limits, threads, Herald(0, None))
        points, found = self.asked.points(part)
        for k, i in enumerate(again):
            batch.add_spent(i, part, k)
            if not found[k]:
                continue
            for point in rounder(self.lowered, people.factual[k], people.lower[k], people.upper[k], points[k]):
                cost = self._judged(people.factual[k], point)
                if cost < batch.best[i, -1]:
                    self.asked.put(batch, i, people.factual[k], point)

    def _judged(self, factual: Floats, point: Floats) -> float:
        """What a point costs; infinity when it breaks a rule, or when the model might not decide as asked."""
        question = self.lowered.question
        c, d = question.conditions
        scores = question.model.exact_scores(point[None, :]) @ c.T - d
        sure = (scores >= question.target.margin + 2.0 * question.error).all()
        if not sure or question.allows(factual, point) is not None:
            return math.inf
        distance = float(question.measure.between(factual, point))
        return self.asked.cost(distance)
