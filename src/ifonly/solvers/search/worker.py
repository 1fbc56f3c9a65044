"""Worker threads: each searches in slices of nodes, and checks time, memory and progress between them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import SizedCache
from ifonly.results import Limits, Stop, StoppedBy
from ifonly.solvers.search.batch import Floats, PackedQuestion, SearchBatch
from ifonly.solvers.search.deadline import Deadline
from ifonly.solvers.search.kernels.layout import (
    BEST,
    DONE,
    HALT,
    MEMORY,
    NEVER,
    NODES,
    PROBING,
    SIZE,
    USED,
    Scratch,
    Tree,
    TriangleBuffers,
)
from ifonly.solvers.search.kernels.walk import LARGE_NETWORK
from ifonly.solvers.search.pack import enlarged, first_log, most_steps, new_relaxation, new_scratch, new_tree
from ifonly.solvers.search.progress import ProgressReporter, proven
from ifonly.solvers.search.record import read_log

PEOPLE_A_CALL = 64
FIRST_SLICE_NODES = 256
FIRST_SLICE_WEIGHTS = 2_000_000
"""The first slice of a person's search: this many nodes, or nodes times weights, whichever is less."""
SLICE_SECONDS = 0.1
FIRST_POOL = 512
MOST_SPARE, SPARE_BYTES, ALL_SPARE_BYTES = 8, 2**24, 2**27
"""Buffers that are kept for the next call: of so many threads, and, but for the first one's, of so many bytes; and of
all sizes together."""
SLOW_NODE = 100_000
"""Products for one node from which on the clock must run inside it (about 0.2 ms)."""
PLAIN_SLICE = 2
PLAIN_NODE = 1_000_000
"""Products for one node from which on it takes plain Python half a second: then the compiled kernels are waited for."""


Buffers: TypeAlias = tuple[Scratch, TriangleBuffers, Tree]


class SpareBuffers:
    """Buffers that no thread is using, of one size, whatever question they were made for."""

    def __init__(self, first: Buffers) -> None:
        self.buffers = deque([first])
        scratch, relaxation, tree = first
        one = _bytes((*scratch, *relaxation, *tree))
        self.most = max(1, min(MOST_SPARE, SPARE_BYTES // one))
        self.nbytes = one * self.most

    def keep(self, buffers: Buffers) -> None:
        """For the next call."""
        if len(self.buffers) < self.most:
            self.buffers.append(buffers)


SPARE: SizedCache[SpareBuffers] = SizedCache(ALL_SPARE_BYTES, lambda spare: spare.nbytes)
"""By what the sizes of their arrays depend on."""


def _bytes(arrays: Iterable[NDArray[Any]]) -> int:
    return sum(part.nbytes for part in arrays)


class Worker:
    """One thread with its buffers, which answers stretches of people."""

    def __init__(
        self,
        packed: PackedQuestion,
        batch: SearchBatch,
        radius: Floats,
        limits: Limits,
        reporter: ProgressReporter,
    ) -> None:
        self.packed, self.batch, self.radius, self.limits, self.reporter = (
            packed,
            batch,
            radius,
            limits,
            reporter,
        )
        self.kernels, self.stopped = packed.kernels, False
        # while the pool doubles, the old one and the new one are both there; records get half of the memory
        most = (limits.memory_bytes or 2**62) * 2 // (6 if packed.records else 3)
        self.most_nodes = max(16, most // packed.node_bytes)
        self.first_log = first_log(packed.pack, packed.probing) if packed.records else 0
        self.most_log = max(self.first_log, most // 8) if packed.records else 0
        self.large = packed.lowered.bends is None and packed.pack.weights.size >= LARGE_NETWORK
        self.products = packed.products
        self.begun = time.perf_counter()
        self.first_pool = min(FIRST_POOL, self.most_nodes)
        self.spare = SPARE.get_or_make(packed.sizes, lambda: SpareBuffers(self._new_buffers()))
        self.scratch, self.relaxation, self.tree = self._buffers()

    def _buffers(self) -> Buffers:
        """Those that an earlier call has left, or new ones. Each thread has its own."""
        try:
            scratch, relaxation, tree = self.spare.buffers.pop()
        except IndexError:
            return self._new_buffers()
        return scratch, relaxation, tree if tree.num.shape[1] == self.first_pool else self._new_tree()

    def _new_buffers(self) -> Buffers:
        packed = self.packed
        return (
            new_scratch(packed.pack, records=packed.records, rows=packed.rows),
            new_relaxation(packed.pack, packed.probing, packed.lines),
            self._new_tree(),
        )

    def _new_tree(self) -> Tree:
        packed = self.packed
        steps = most_steps(packed.pack, packed.probing) if packed.records else 0
        return new_tree(packed.pack, self.first_pool, log=self.first_log, steps=steps)

    def work(self, waiting: deque[tuple[int, int]]) -> None:
        """Answer stretches of people, which several threads draw from one queue."""
        while waiting and not self.stopped:
            try:
                i, last = waiting.popleft()
            except IndexError:  # another thread was faster
                break
            while i < last and not self.stopped:
                i = self._stretch(i, last)
        if self.tree.num.shape[1] == self.first_pool and len(self.tree.log) <= self.first_log:
            self.spare.keep((self.scratch, self.relaxation, self.tree))

    @property
    def first_slice(self) -> int:
        if not self.kernels.compiled:
            return PLAIN_SLICE
        return max(1, min(FIRST_SLICE_NODES, FIRST_SLICE_WEIGHTS // self.packed.pack.weights.size))

    def _call(self, first: int, last: int, nodes: int, resume: bool) -> tuple[int, int]:
        batch, search_people = self.batch, self.kernels.now.search_people
        # a relaxation takes plain Python a second and more
        self.relaxation.G[0, SIZE, PROBING] = self.packed.probing if self.kernels.compiled else NEVER
        reached, code = search_people(
            self.packed.searched, batch.people, self.radius, first, last, nodes, resume, self.scratch,
            self.relaxation, self.tree, batch.lower, batch.best, batch.nodes,
        )  # fmt: skip
        return int(reached), int(code)

    def _left(self, i: int) -> float:
        """The seconds that person i has, before anything is done here."""
        seconds = self.limits.seconds
        return math.inf if seconds is None else seconds - float(self.batch.spent_seconds[i])

    def _stretch(self, first: int, last: int) -> int:
        """Answer people from `first` on, in one call as far as it goes; returns whom to go on with."""
        batch, begun = self.batch, time.perf_counter()
        left = self._left(first)
        self.kernels.look(self.begun, begun + left)
        plain = not self.kernels.compiled
        slow = self.products >= SLOW_NODE or self.packed.probing != NEVER or plain
        inside = left < math.inf and slow  # the clock runs in a node
        alone = self.packed.records or self.large or inside or plain or batch.spent_nodes[first] > 0
        last = first + 1 if alone else min(last, first + PEOPLE_A_CALL)
        with Deadline(self.scratch.I[HALT], left if inside else None) as deadline:
            if self.kernels.compiled or self.products < PLAIN_NODE or self._wait(begun + left):
                if self.large:
                    self._look(first, begun)
                last = self._search(first, last, begun, deadline)
            else:
                batch.seconds[first] = time.perf_counter() - begun
                batch.stops[first] = Stop(StoppedBy.SECONDS, self.limits.seconds)
        self.reporter.done(last - first)
        return last

    def _wait(self, until: float) -> bool:
        """Wait for the compiled kernels. False when time is up; plain Python goes on where no process compiles them."""
        return self.kernels.wait(until) or time.perf_counter() < until

    def _search(self, first: int, last: int, begun: float, deadline: Deadline) -> int:
        batch, slice_nodes = self.batch, self.first_slice
        if self.limits.nodes is not None:
            slice_nodes = min(slice_nodes, self.limits.nodes - int(batch.spent_nodes[first]))
        reached, code = self._call(first, last, slice_nodes, self.large)
        spent = time.perf_counter() - begun
        share = batch.nodes[first:reached] + 1.0  # seconds are shared out by nodes
        unfinished = float(self.tree.count[NODES]) + 1.0 if reached < last else 0.0
        each = spent / (float(share.sum()) + unfinished)
        batch.seconds[first:reached] = each * share
        if reached < last:
            self._finish(reached, code, each * unfinished, deadline)
            reached += 1
        if deadline.expired and math.isfinite(batch.lower[first]):
            batch.stops[first] = Stop(StoppedBy.SECONDS, self.limits.seconds)
        if self.packed.records:
            batch.records[first] = read_log(self.tree, self.packed.pack)
        return reached

    def _look(self, i: int, begun: float) -> None:
        """Look for some row before the first node of a large network, which takes long, and say what was found."""
        self._call(i, i + 1, 0, False)
        best = float(self.packed.distance(self.tree.number[BEST : BEST + 1])[0])
        self.reporter.report(0.0, best, 0, time.perf_counter() - begun, float(self.radius[i]))

    def _finish(self, i: int, code: int, spent: float, deadline: Deadline) -> None:
        """Go on with one person in slices of about a tenth of a second, until done or a limit is hit."""
        batch, limits = self.batch, self.limits
        begun = time.perf_counter() - spent
        left, slice_nodes, reported, lasted, did = (
            self._left(i),
            self.first_slice,
            0.0,
            spent,
            int(self.tree.count[NODES]),
        )
        while code != DONE:
            seconds, nodes = time.perf_counter() - begun, int(self.tree.count[NODES])
            stopped = self._stopped(
                math.inf if deadline.expired else seconds - left, nodes + int(batch.spent_nodes[i]), code
            )
            if stopped:
                batch.stops[i] = stopped
                batch.lower[i] = proven(self.tree)
                batch.best[i, :-1], batch.best[i, -1] = self.tree.best, self.tree.number[BEST]
                batch.nodes[i] = nodes
                break
            if code == MEMORY:
                self._grow()
            if seconds - reported >= 2 * SLICE_SECONDS:
                self.reporter.under_way(self.tree, self.packed.squared, seconds)
                reported = seconds
            target_seconds = min(SLICE_SECONDS, left - seconds)
            slice_nodes = max(2, min(int(did / max(lasted, 1e-6) * target_seconds), 4 * slice_nodes))
            if limits.nodes is not None:
                slice_nodes = min(slice_nodes, max(limits.nodes - nodes - int(batch.spent_nodes[i]), 1))
            self.kernels.look(self.begun, begun + left)
            since = time.perf_counter()
            _, code = self._call(i, i + 1, slice_nodes, True)
            lasted, did = time.perf_counter() - since, int(self.tree.count[NODES]) - nodes
        batch.seconds[i] = time.perf_counter() - begun

    def _stopped(self, beyond: float, nodes: int, code: int) -> Stop | None:
        """What ends this person's search now, if anything does; `beyond`: by how much time is up."""
        if self.limits.seconds is not None and beyond >= 0.0:
            return Stop(StoppedBy.SECONDS, self.limits.seconds)
        if reached := self.limits.reached(nodes=nodes):
            return reached
        if code == MEMORY and self._capacity() == (self.tree.num.shape[1], len(self.tree.log)):
            return self.limits.memory
        return Stop(StoppedBy.INTERRUPTED) if self.stopped else None

    def _capacity(self) -> tuple[int, int]:
        """Twice as much of what is full, nodes or else records, as far as the memory goes."""
        capacity, log = self.tree.num.shape[1], len(self.tree.log)
        if self.tree.count[USED] + 1 >= capacity:
            return min(2 * capacity, self.most_nodes), log
        return capacity, min(2 * log, self.most_log)

    def _grow(self) -> None:
        self.tree = enlarged(self.tree, self.packed.pack, *self._capacity())


@dataclass(frozen=True)
class Budget:
    """What a search may spend, on how many threads, and where it reports progress."""

    limits: Limits
    threads: int
    reporter: ProgressReporter

    def quietly(self) -> Budget:
        return Budget(self.limits, self.threads, ProgressReporter(0, None))

    def within(self, limits: Limits) -> Budget:
        return Budget(limits, self.threads, self.reporter)

    def on(self, packed: PackedQuestion, batch: SearchBatch, radius: Floats) -> None:
        """Search for everyone in the batch, each within their radius (a cost; 0 is none to begin with)."""
        threads, count, radius = self.threads, len(batch), np.where(radius > 0.0, radius, math.inf)
        size = PEOPLE_A_CALL if threads == 1 else max(1, min(PEOPLE_A_CALL, math.ceil(count / (4 * threads))))
        waiting = deque((first, min(first + size, count)) for first in range(0, count, size))
        if threads == 1 or count <= size:
            Worker(packed, batch, radius, self.limits, self.reporter).work(waiting)
            return
        workers = [Worker(packed, batch, radius, self.limits, self.reporter) for _ in range(threads)]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            futures = [pool.submit(worker.work, waiting) for worker in workers]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                for worker in workers:
                    worker.stopped = True
            for future in futures:
                future.result()
