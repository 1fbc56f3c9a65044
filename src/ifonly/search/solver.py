"""The exact search at work: the question is packed once, then any number of people are answered on any number of
threads.

Everything of importance happens in the kernels; this module watches the clock, the memory and the keyboard between
their slices, and turns numbers into claims. Answers do not depend on the number of threads: each person is searched
alone.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered
from ifonly.problem import People as Allowed
from ifonly.problem.edges import rounder
from ifonly.proof import Claim, Limits, Listener, Progress, Stop, StoppedBy
from ifonly.search.incumbent import some_row
from ifonly.search.kernels import search as kernel
from ifonly.search.kernels.candidates import SPECK
from ifonly.search.kernels.layout import (
    AIM,
    BEST,
    BOUND,
    DONE,
    HEAP,
    HEAP_SIZE,
    HIGH,
    LOW,
    LOWER,
    MEMORY,
    NODES,
    RADIUS,
    RESIDUAL,
    SQUARED,
    USED,
    PackedPeople,
    Tree,
)
from ifonly.search.pack import (
    Errors,
    errors_everywhere,
    errors_within,
    grown,
    new_scratch,
    new_tree,
    node_bytes,
    pack_people,
    pack_question,
    units,
)
from ifonly.search.record import Record, read_log
from ifonly.search.table import FavourableTable
from ifonly.search.warm import load_kernels
from ifonly.tolerances import Tolerances

PEOPLE_A_CALL = 64
FIRST_SLICE_NODES = 256
FIRST_SLICE_WEIGHTS = 2_000_000
"""The first slice of a person's search: this many nodes, or nodes times weights, whichever is less."""
SLICE_SECONDS = 0.1
END = 1e-15
"""Relative to the size of a domain: what a change may miss its end by."""
FIRST_POOL = 512
FIRST_LOG = 1 << 16
PEOPLE_BYTES = 1 << 25
"""What the arrays of the people that are packed at a time may take together."""
LARGE_NETWORK = 20_000
"""Weights from which on one node takes so long that some row is looked for before the first."""

Floats = NDArray[np.float64]


@dataclass
class _Batch:
    """The people of one call, and their results in the kernels' units."""

    allowed: Allowed
    people: PackedPeople
    lower: Floats
    best: Floats
    """The best point of each person, then its cost."""
    nodes: NDArray[np.int64]
    seconds: Floats
    spent_nodes: NDArray[np.int64]
    spent_seconds: Floats
    """What an earlier pass took of each person's limits."""
    stops: dict[int, Stop] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)


class SearchSolver:
    """The search, ready for one question."""

    def __init__(
        self, *, lowered: Lowered, tolerances: Tolerances, table: FavourableTable | None, records: bool
    ) -> None:
        self.lowered = lowered
        self.tolerances = tolerances
        self.table = table
        self.records = records
        self.pack = pack_question(lowered, tolerances)
        self.unit = units(lowered)
        self.errors = errors_everywhere(lowered)
        load_kernels()

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        herald = _Herald(len(points), listen)
        claims: list[Claim] = []
        size = max(4 * PEOPLE_A_CALL * threads, PEOPLE_BYTES // self._person_bytes)
        for first in range(0, len(points), size):  # what is kept per person is kept for so many at a time
            claims += self._solve(points[first : first + size], limits, threads, herald)
        herald.all_done()
        return claims

    def _solve(self, points: Floats, limits: Limits, threads: int, herald: _Herald) -> list[Claim]:
        batch = self._batch(self.lowered.domains(points), self.errors)
        if self.table is not None:
            self._scan(batch)
            herald.done(len(batch))
        else:
            self._search(batch, np.full(len(points), math.inf), limits, threads, herald)
            self._sharpen(batch, limits, threads)
            self._look_at_edges(batch, limits, threads)
        return self._claims(batch)

    @property
    def _person_bytes(self) -> int:
        """About what the arrays of one person take."""
        lowered = self.lowered
        neurons = sum(len(bias) for _, bias in lowered.layers)
        return 8 * (4 * neurons + 8 * lowered.features + 3 * lowered.width + 64)

    # ------------------------------------------------------------------ in and out of the kernels' units

    def _batch(self, allowed: Allowed, errors: Errors) -> _Batch:
        count = len(allowed)
        return _Batch(
            allowed=allowed,
            people=pack_people(self.lowered, allowed, errors),
            lower=np.zeros(count),
            best=np.full((count, self.lowered.features + 1), math.inf),
            nodes=np.zeros(count, dtype=np.int64),
            seconds=np.zeros(count),
            spent_nodes=np.zeros(count, dtype=np.int64),
            spent_seconds=np.zeros(count),
        )

    def _distance(self, cost: Floats) -> Floats:
        return np.sqrt(cost) if self.pack.norm == SQUARED else cost

    def _points(self, batch: _Batch) -> tuple[Floats, NDArray[np.bool_]]:
        """The rows found, in the question's own units, and whether there is one."""
        allowed = batch.allowed
        found = np.isfinite(batch.best[:, -1])
        change = np.where(found[:, None], batch.best[:, :-1], 0.0)
        moved = np.where(change != 0.0, allowed.factual + change * self.unit, allowed.factual)
        low, high = batch.people.box[:, 0], batch.people.box[:, 1]
        ends = END * np.maximum(np.abs(low), np.abs(high))  # an end of the domain is that end, to the last bit
        moved = np.where((change != 0.0) & (change >= high - ends), allowed.upper, moved)
        moved = np.where((change != 0.0) & (change <= low + ends), allowed.lower, moved)
        points = np.where(self.lowered.numeric, np.clip(moved, allowed.lower, allowed.upper), change)
        return self.lowered.on_steps(allowed.factual, points), found

    def _claims(self, batch: _Batch) -> list[Claim]:
        points, found = self._points(batch)
        lower = np.maximum(self._distance(batch.lower) * (1.0 - 1e-12), 0.0)
        rows = zip(points, found.tolist(), lower.tolist(), batch.nodes.tolist(), batch.seconds.tolist(), strict=True)
        return [
            Claim(
                point=point if good else None,
                lower=low,
                method="search",
                stop=batch.stops.get(i),
                nodes=nodes,
                seconds=seconds,
                record=batch.records.get(i),
            )
            for i, (point, good, low, nodes, seconds) in enumerate(rows)
        ]

    # ------------------------------------------------------------------ ways through

    def _scan(self, batch: _Batch) -> None:
        assert self.table is not None
        begun = time.perf_counter()
        if self.table.judged:
            self._scan_judged(batch, self.table)
            batch.seconds[:] = (time.perf_counter() - begun) / len(batch)
            return
        kernel.scan_table(
            self.pack, batch.people, self.table.points, self.unit, self.table.surely, batch.allowed.factual,
            batch.lower,
            batch.best, batch.nodes,
        )  # fmt: skip
        batch.seconds[:] = (time.perf_counter() - begun) / len(batch)

    def _scan_judged(self, batch: _Batch, table: FavourableTable) -> None:
        """The same where every row is judged by the rules themselves."""
        question = self.lowered.question
        for i, factual in enumerate(batch.allowed.factual):
            lower, point = table.nearest(question, factual)
            batch.lower[i] = lower**2 if self.pack.norm == SQUARED else lower
            batch.nodes[i] = len(table.points)
            if point is not None:
                self._put(batch, i, factual, point)

    def _put(self, batch: _Batch, i: int, factual: Floats, point: Floats) -> None:
        """Make a row the best one of person i."""
        distance = float(self.lowered.question.distance.between(self.lowered.question.schema, factual, point))
        batch.best[i, :-1] = np.where(self.lowered.numeric, (point - factual) / self.unit, point)
        batch.best[i, -1] = distance**2 if self.pack.norm == SQUARED else distance

    def _search(self, batch: _Batch, radius: Floats, limits: Limits, threads: int, herald: _Herald) -> None:
        size = PEOPLE_A_CALL if threads == 1 else max(1, min(PEOPLE_A_CALL, math.ceil(len(batch) / (4 * threads))))
        ranges = _Ranges(len(batch), size)
        if threads == 1 or len(batch) <= size:
            _Worker(self, batch, radius, limits, herald).work(ranges)
            return
        workers = [_Worker(self, batch, radius, limits, herald) for _ in range(threads)]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            futures = [pool.submit(worker.work, ranges) for worker in workers]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                for worker in workers:
                    worker.stop.set()
            for future in futures:
                future.result()

    def _unsettled(self, batch: _Batch) -> list[int]:
        """Those whose bounds are farther apart than asked for, though no limit was hit."""
        upper = self._distance(batch.best[:, -1])
        with np.errstate(invalid="ignore"):
            gap = upper - self._distance(batch.lower)
        settled = np.isfinite(upper) & (gap <= [self.tolerances.allowed(far) for far in upper.tolist()])
        return [i for i in np.flatnonzero(~settled & np.isfinite(batch.lower)).tolist() if i not in batch.stops]

    def _sharpen(self, batch: _Batch, limits: Limits, threads: int) -> None:
        """Search once more, over the ball of the answer, where rounding over the whole schema left a gap.

        Errors are bounded by the size of the numbers that can occur: much smaller inside the ball than in the whole
        space.
        """
        upper = self._distance(batch.best[:, -1])
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
        part = self._batch(people, errors_within(self.lowered, people, reach))
        part.spent_nodes[:], part.spent_seconds[:] = batch.nodes[again], batch.seconds[again]
        self._search(part, reach**2 if self.pack.norm == SQUARED else reach, limits, threads, _Herald(0, None))
        for k, i in enumerate(again):
            batch.nodes[i] += part.nodes[k]
            batch.seconds[i] += part.seconds[k]
            if k in part.stops:
                batch.stops[i] = part.stops[k]
            if part.best[k, -1] <= batch.best[i, -1] * (1.0 + 1e-9) and k not in part.stops:
                batch.lower[i], batch.best[i] = part.lower[k], part.best[k]
                if k in part.records:
                    batch.records[i] = part.records[k]

    def _look_at_edges(self, batch: _Batch, limits: Limits, threads: int) -> None:
        """Rows on the very edge of a rule about real numbers, which floating point can neither return nor rule out:
        search once more among them, and let the rule itself judge what is found.
        """
        if self.lowered.required_whole.all():
            return
        again = [i for i in self._unsettled(batch) if limits.nodes is None or batch.nodes[i] < limits.nodes]
        if not again:
            return
        people = batch.allowed.part(again)
        part = self._batch(people, self.errors)
        low, high = part.people.start[:, :, self.lowered.required_neurons].transpose(1, 0, 2)
        floor = part.people.need[:, :, -len(self.lowered.required) :]
        floor[:, LOW] -= SPECK * (high - low)
        floor[:, HIGH] = np.minimum(floor[:, HIGH], floor[:, LOW])
        part.spent_nodes[:], part.spent_seconds[:] = batch.nodes[again], batch.seconds[again]
        self._search(part, np.full(len(again), math.inf), limits, threads, _Herald(0, None))
        points, found = self._points(part)
        for k, i in enumerate(again):
            batch.nodes[i] += part.nodes[k]
            batch.seconds[i] += part.seconds[k]
            if k in part.stops:
                batch.stops[i] = part.stops[k]
            if not found[k]:
                continue
            for point in rounder(self.lowered, people.factual[k], people.lower[k], people.upper[k], points[k]):
                cost = self._judged(people.factual[k], point)
                if cost < batch.best[i, -1]:
                    change = (point - people.factual[k]) / self.unit
                    batch.best[i, :-1] = np.where(self.lowered.numeric, change, point)
                    batch.best[i, -1] = cost

    def _judged(self, factual: Floats, point: Floats) -> float:
        """What a point costs; infinity when it breaks a rule, or when the model might not decide as asked."""
        question = self.lowered.question
        c, d = question.conditions
        scores = question.model.network.scores(question.schema.encode(point[None, :])) @ c.T - d
        sure = (scores >= question.target.margin + 2.0 * question.error).all()
        if not sure or question.allows(factual, point) is not None:
            return math.inf
        distance = float(question.distance.between(question.schema, factual, point))
        return distance**2 if self.pack.norm == SQUARED else distance


class _Ranges(Iterator[tuple[int, int]]):
    """Stretches of people, to be drawn by several threads."""

    def __init__(self, people: int, size: int) -> None:
        self._people, self._size, self._next, self._lock = people, size, 0, threading.Lock()

    def __next__(self) -> tuple[int, int]:
        with self._lock:
            first = self._next
            if first >= self._people:
                raise StopIteration
            self._next = min(first + self._size, self._people)
            return first, self._next


class _Herald:
    """Counts finished people and passes progress on, one event at a time."""

    def __init__(self, people: int, listen: Listener | None) -> None:
        self.people, self.finished, self._listen, self._lock = people, 0, listen, threading.Lock()

    def done(self, count: int) -> None:
        with self._lock:
            self.finished += count
            if self._listen is not None and self.finished < self.people:
                self._listen(Progress(finished=self.finished, people=self.people))

    def all_done(self) -> None:
        if self._listen is not None:
            self._listen(Progress(finished=self.people, people=self.people))

    def begun(self, radius: float, best: float, seconds: float) -> None:
        if self._listen is not None:
            with self._lock:
                told = Progress(finished=self.finished, people=self.people, radius=radius, upper=best, seconds=seconds)
                self._listen(told)

    def under_way(self, tree: Tree, squared: bool, seconds: float) -> None:
        if self._listen is None:
            return
        numbers = [_proven(tree), float(tree.number[RADIUS]), float(tree.number[BEST])]
        low, radius, best = (math.sqrt(v) for v in numbers) if squared else numbers
        with self._lock:
            self._listen(
                Progress(
                    finished=self.finished,
                    people=self.people,
                    radius=radius,
                    nodes=int(tree.count[NODES]),
                    lower=low,
                    upper=best,
                    seconds=seconds,
                )
            )


def _proven(tree: Tree) -> float:
    """The proven lower bound (cost) of a search under way: the least bound of an open or unresolved node."""
    bounds = [float(tree.number[place]) for place in (RADIUS, RESIDUAL, BEST)]
    if tree.count[HEAP_SIZE] > 0:
        bounds.append(float(tree.num[BOUND, tree.idx[HEAP, 0]]))
    return max(float(tree.number[LOWER]), min(bounds))


class _Worker:
    """One thread's buffers and its way through the people."""

    def __init__(self, solver: SearchSolver, batch: _Batch, radius: Floats, limits: Limits, herald: _Herald) -> None:
        self.solver, self.batch, self.radius, self.limits, self.herald = solver, batch, radius, limits, herald
        self.stop = threading.Event()
        self.scratch = new_scratch(solver.pack, records=solver.records)
        # while the pool doubles, the old one and the new one are both there; records get half of the memory
        most = (limits.memory_bytes or 2**62) * 2 // (6 if solver.records else 3)
        self.most_nodes = max(16, most // node_bytes(solver.pack))
        self.most_log = max(FIRST_LOG, most // 8) if solver.records else 0
        self.large = solver.pack.weights.size >= LARGE_NETWORK
        self.first_slice = max(1, min(FIRST_SLICE_NODES, FIRST_SLICE_WEIGHTS // solver.pack.weights.size))
        self.tree = new_tree(solver.pack, min(FIRST_POOL, self.most_nodes), log=FIRST_LOG if solver.records else 0)

    def work(self, ranges: _Ranges) -> None:
        for first, last in ranges:
            i = first
            while i < last and not self.stop.is_set():
                i = self._stretch(i, last)

    def _call(self, first: int, last: int, nodes: int, resume: bool) -> tuple[int, int]:
        batch = self.batch
        reached, code = kernel.search_people(
            self.solver.pack, batch.people, self.radius, first, last, nodes, resume, self.scratch, self.tree,
            batch.lower,
            batch.best, batch.nodes,
        )  # fmt: skip
        return int(reached), int(code)

    def _stretch(self, first: int, last: int) -> int:
        """Answer people from `first` on, in one call as far as it goes; returns whom to go on with."""
        batch, begun = self.batch, time.perf_counter()
        alone = self.solver.records or batch.spent_nodes[first] > 0
        last = first + 1 if alone else min(last, first + PEOPLE_A_CALL)
        slice_nodes = self.first_slice
        if self.large:
            last = first + 1
            self._begin(first, begun)
        if self.limits.nodes is not None:
            slice_nodes = min(slice_nodes, self.limits.nodes - int(batch.spent_nodes[first]))
        reached, code = self._call(first, last, slice_nodes, False)
        spent = time.perf_counter() - begun
        share = batch.nodes[first:reached] + 1.0  # seconds are shared out by nodes
        unfinished = float(self.tree.count[NODES]) + 1.0 if reached < last else 0.0
        batch.seconds[first:reached] = spent * share / (share.sum() + unfinished)
        if reached < last:
            self._finish(reached, code, spent * unfinished / (share.sum() + unfinished))
            reached += 1
        if self.solver.records:
            batch.records[first] = read_log(self.tree, self.solver.pack)
        self.herald.done(reached - first)
        return reached

    def _begin(self, i: int, begun: float) -> None:
        """Look for some row before the first node of a large network, which takes long, and say what was found."""
        solver, batch = self.solver, self.batch
        if not math.isfinite(self.radius[i]) and not solver.lowered.question.rules:
            until = math.inf if self.limits.seconds is None else begun + 0.5 * self.limits.seconds
            allowed, aim = batch.allowed.part([i]), batch.people.need[i, AIM]
            point = some_row(solver.lowered, allowed, aim, until)
            if point is not None:
                solver._put(batch, i, allowed.factual[0], point)
        best = float(solver._distance(batch.best[i : i + 1, -1])[0])
        self.herald.begun(float(self.radius[i]), best, time.perf_counter() - begun)

    def _finish(self, i: int, code: int, spent: float) -> None:
        """Go on with one person in slices of about a tenth of a second, until done or a limit is hit."""
        batch, limits, pack = self.batch, self.limits, self.solver.pack
        begun = time.perf_counter() - spent
        slice_nodes, told = self.first_slice, 0.0
        while code != DONE:
            seconds, nodes = time.perf_counter() - begun, int(self.tree.count[NODES])
            stopped = self._stopped(seconds + batch.spent_seconds[i], nodes + int(batch.spent_nodes[i]), code)
            if stopped:
                batch.stops[i] = stopped
                batch.lower[i] = _proven(self.tree)
                batch.best[i, :-1], batch.best[i, -1] = self.tree.best, self.tree.number[BEST]
                batch.nodes[i] = nodes
                break
            if code == MEMORY:
                self._grow()
            if seconds - told >= 2 * SLICE_SECONDS:
                self.herald.under_way(self.tree, pack.norm == SQUARED, seconds)
                told = seconds
            wanted = SLICE_SECONDS
            if limits.seconds is not None:
                wanted = min(wanted, limits.seconds - seconds - float(batch.spent_seconds[i]))
            slice_nodes = max(2, min(int((nodes + 1) / max(seconds, 1e-6) * wanted), 4 * slice_nodes))
            if limits.nodes is not None:
                slice_nodes = min(slice_nodes, max(limits.nodes - nodes - int(batch.spent_nodes[i]), 1))
            _, code = self._call(i, i + 1, slice_nodes, True)
        batch.seconds[i] = time.perf_counter() - begun

    def _stopped(self, seconds: float, nodes: int, code: int) -> Stop | None:
        """What ends this person's search now, if anything does."""
        if reached := self.limits.reached(seconds=seconds, nodes=nodes):
            return reached
        if code == MEMORY and self._room() == (self.tree.num.shape[1], len(self.tree.log)):
            return self.limits.memory
        return Stop(StoppedBy.INTERRUPTED) if self.stop.is_set() else None

    def _room(self) -> tuple[int, int]:
        """Twice as much of what is full, nodes or else records, as far as the memory goes."""
        capacity, log = self.tree.num.shape[1], len(self.tree.log)
        if self.tree.count[USED] + 1 >= capacity:
            return min(2 * capacity, self.most_nodes), log
        return capacity, min(2 * log, self.most_log)

    def _grow(self) -> None:
        self.tree = grown(self.tree, self.solver.pack, *self._room())
