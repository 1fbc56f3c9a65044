"""One thread's way through the people: the kernels in slices; clock, memory and listener between them."""

from __future__ import annotations

import math
import time
from collections import deque

from ifonly.proof import Limits, Stop, StoppedBy
from ifonly.search.batch import Floats, PackedQuestion, SearchBatch
from ifonly.search.herald import Herald, proven
from ifonly.search.incumbent import some_row
from ifonly.search.kernels import search as kernel
from ifonly.search.kernels.layout import AIM, BEST, DONE, MEMORY, NODES, USED, Scratch, Tree
from ifonly.search.pack import grown, new_scratch, new_tree
from ifonly.search.record import read_log

PEOPLE_A_CALL = 64
FIRST_SLICE_NODES = 256
FIRST_SLICE_WEIGHTS = 2_000_000
"""The first slice of a person's search: this many nodes, or nodes times weights, whichever is less."""
SLICE_SECONDS = 0.1
FIRST_POOL = 512
FIRST_LOG = 1 << 16
MOST_SPARE = 8
"""Buffers that are kept for the next call."""
LARGE_NETWORK = 20_000
"""Weights from which on one node takes so long that some row is looked for before the first."""


class Worker:
    """One thread's buffers and its way through the people."""

    def __init__(
        self, asked: PackedQuestion, batch: SearchBatch, radius: Floats, limits: Limits, herald: Herald
    ) -> None:
        self.asked, self.batch, self.radius, self.limits, self.herald = asked, batch, radius, limits, herald
        self.stopped = False
        # while the pool doubles, the old one and the new one are both there; records get half of the memory
        most = (limits.memory_bytes or 2**62) * 2 // (6 if asked.records else 3)
        self.most_nodes = max(16, most // asked.node_bytes)
        self.most_log = max(FIRST_LOG, most // 8) if asked.records else 0
        self.large = asked.pack.weights.size >= LARGE_NETWORK
        self.first_slice = max(1, min(FIRST_SLICE_NODES, FIRST_SLICE_WEIGHTS // asked.pack.weights.size))
        self.first_pool = min(FIRST_POOL, self.most_nodes)
        self.scratch, self.tree = self._buffers()

    def _buffers(self) -> tuple[Scratch, Tree]:
        """Those that an earlier call has left, or new ones. Each thread has its own."""
        asked = self.asked
        try:
            scratch, tree = asked.spare.pop()
        except IndexError:
            scratch, tree = new_scratch(asked.pack, records=asked.records), None
        if tree is None or tree.num.shape[1] != self.first_pool:
            tree = new_tree(asked.pack, self.first_pool, log=FIRST_LOG if asked.records else 0)
        return scratch, tree

    def work(self, waiting: deque[tuple[int, int]]) -> None:
        """Answer stretches of people, which several threads draw from one queue."""
        while waiting and not self.stopped:
            try:
                i, last = waiting.popleft()
            except IndexError:  # another thread was faster
                break
            while i < last and not self.stopped:
                i = self._stretch(i, last)
        small = self.tree.num.shape[1] == self.first_pool and len(self.tree.log) <= FIRST_LOG
        if small and len(self.asked.spare) < MOST_SPARE:
            self.asked.spare.append((self.scratch, self.tree))

    def _call(self, first: int, last: int, nodes: int, resume: bool) -> tuple[int, int]:
        batch = self.batch
        reached, code = kernel.search_people(
            self.asked.pack, batch.people, self.radius, first, last, nodes, resume, self.scratch, self.tree,
            batch.lower,
            batch.best, batch.nodes,
        )  # fmt: skip
        return int(reached), int(code)

    def _stretch(self, first: int, last: int) -> int:
        """Answer people from `first` on, in one call as far as it goes; returns whom to go on with."""
        batch, begun = self.batch, time.perf_counter()
        alone = self.asked.records or batch.spent_nodes[first] > 0
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
        if self.asked.records:
            batch.records[first] = read_log(self.tree, self.asked.pack)
        self.herald.done(reached - first)
        return reached

    def _begin(self, i: int, begun: float) -> None:
        """Look for some row before the first node of a large network, which takes long, and say what was found."""
        asked, batch = self.asked, self.batch
        if not math.isfinite(self.radius[i]) and not asked.lowered.question.rules:
            until = math.inf if self.limits.seconds is None else begun + 0.5 * self.limits.seconds
            allowed, aim = batch.allowed.part([i]), batch.people.need[i, AIM]
            point = some_row(asked.lowered, allowed, aim, until)
            if point is not None:
                asked.put(batch, i, allowed.factual[0], point)
        best = float(asked.distance(batch.best[i : i + 1, -1])[0])
        self.herald.begun(float(self.radius[i]), best, time.perf_counter() - begun)

    def _finish(self, i: int, code: int, spent: float) -> None:
        """Go on with one person in slices of about a tenth of a second, until done or a limit is hit."""
        batch, limits = self.batch, self.limits
        begun = time.perf_counter() - spent
        slice_nodes, told = self.first_slice, 0.0
        while code != DONE:
            seconds, nodes = time.perf_counter() - begun, int(self.tree.count[NODES])
            stopped = self._stopped(seconds + batch.spent_seconds[i], nodes + int(batch.spent_nodes[i]), code)
            if stopped:
                batch.stops[i] = stopped
                batch.lower[i] = proven(self.tree)
                batch.best[i, :-1], batch.best[i, -1] = self.tree.best, self.tree.number[BEST]
                batch.nodes[i] = nodes
                break
            if code == MEMORY:
                self._grow()
            if seconds - told >= 2 * SLICE_SECONDS:
                self.herald.under_way(self.tree, self.asked.squared, seconds)
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
        return Stop(StoppedBy.INTERRUPTED) if self.stopped else None

    def _room(self) -> tuple[int, int]:
        """Twice as much of what is full, nodes or else records, as far as the memory goes."""
        capacity, log = self.tree.num.shape[1], len(self.tree.log)
        if self.tree.count[USED] + 1 >= capacity:
            return min(2 * capacity, self.most_nodes), log
        return capacity, min(2 * log, self.most_log)

    def _grow(self) -> None:
        self.tree = grown(self.tree, self.asked.pack, *self._room())
