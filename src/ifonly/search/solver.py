"""The exact search at work: the question is packed once, then any number of people are answered on any number of threads.

Everything of importance happens in the kernels; this module watches the clock, the memory and the keyboard between their
slices, and turns numbers into claims. Answers do not depend on the number of threads: each person is searched alone.
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered
from ifonly.proof import Claim, Limits, Listener, Progress
from ifonly.search.kernels import batch, tree as kernel
from ifonly.search.kernels.closed_forms import SQUARED
from ifonly.search.pack import grown, new_scratch, new_tree, node_bytes, pack_question, units
from ifonly.search.table import Table
from ifonly.tolerances import Tolerances

PEOPLE_A_CALL = 64
FIRST_SLICE_NODES = 256
SLICE_SECONDS = 0.1
FIRST_POOL = 512


@dataclass
class _Batch:
    """The people of one call, in the kernels' units, and their results."""

    z: NDArray[np.float64]
    factual: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    upper_bound: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    mask: NDArray[np.uint8]
    cost: NDArray[np.float64]
    option: NDArray[np.int64]
    lower: NDArray[np.float64]
    best: NDArray[np.float64]
    nodes: NDArray[np.int64]
    seconds: NDArray[np.float64]
    limit: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.z)

    def person(self, i: int) -> kernel.Person:
        return kernel.Person(self.z[i], self.lo[i], self.hi[i], self.mask[i], self.cost[i], self.option[i])


class SearchSolver:
    """The search, ready for one question."""

    def __init__(self, *, lowered: Lowered, tolerances: Tolerances, table: Table | None) -> None:
        self.lowered = lowered
        self.table = table
        self.pack = pack_question(lowered, tolerances)
        self.unit = units(lowered)

    def solve(
        self, points: NDArray[np.float64], limits: Limits, *, threads: int = 1, listen: Listener | None = None
    ) -> list[Claim]:
        people = self._batch(points)
        if self.table is not None:
            self._scan(people)
        elif threads == 1 or len(people) == 1:
            _Worker(self, people, limits, _Herald(len(people), listen)).work(iter([(0, len(people))]))
        else:
            self._solve_threaded(people, limits, threads, _Herald(len(people), listen))
        if listen is not None:
            listen(Progress(finished=len(people), people=len(people)))
        return self._claims(people)

    # ------------------------------------------------------------------ in and out of the kernels' units

    def _batch(self, points: NDArray[np.float64]) -> _Batch:
        lowered, count = self.lowered, len(points)
        people = lowered.domains(points)
        weight, bias = lowered.layers[0]
        numeric = lowered.numeric
        integer = numeric & (lowered.step > 0)
        lo = np.where(numeric, (people.lower - points) / self.unit, 0.0)
        hi = np.where(numeric, (people.upper - points) / self.unit, 0.0)
        return _Batch(
            z=np.ascontiguousarray(lowered.unrolled(points) @ weight.T + bias),
            factual=points,
            lower_bound=people.lower,
            upper_bound=people.upper,
            lo=np.where(integer, np.round(lo), lo),
            hi=np.where(integer, np.round(hi), hi),
            mask=people.allowed.astype(np.uint8),
            cost=people.cost,
            option=np.where(numeric, 0.0, points).astype(np.int64),
            lower=np.zeros(count),
            best=np.full((count, len(numeric) + 1), math.inf),
            nodes=np.zeros(count, dtype=np.int64),
            seconds=np.zeros(count),
        )

    def _claims(self, people: _Batch) -> list[Claim]:
        numeric = self.lowered.numeric
        found = np.isfinite(people.best[:, -1])
        change = np.where(found[:, None], people.best[:, :-1], 0.0)
        moved = np.where(change != 0.0, people.factual + change * self.unit, people.factual)
        moved = np.clip(moved, people.lower_bound, people.upper_bound)
        points = np.where(numeric, moved, change)
        lower = np.sqrt(people.lower) if self.pack.norm == SQUARED else people.lower
        lower = np.maximum(lower * (1.0 - 1e-12), 0.0)
        rows = zip(points, found.tolist(), lower.tolist(), people.nodes.tolist(), people.seconds.tolist(), strict=True)
        return [
            Claim(point=point if good else None, lower=low, method="search", limit=people.limit.get(i, ""), nodes=nodes,
                  seconds=seconds)
            for i, (point, good, low, nodes, seconds) in enumerate(rows)
        ]  # fmt: skip

    # ------------------------------------------------------------------ ways through

    def _scan(self, people: _Batch) -> None:
        assert self.table is not None
        p, begun = self.pack, time.perf_counter()
        batch.scan_table(p.norm, p.kind, p.start, p.rate, p.jump, self.table.points, self.unit, self.table.surely,
                         people.factual, people.lo, people.hi, people.mask, people.cost, people.lower, people.best,
                         people.nodes)  # fmt: skip
        people.seconds[:] = (time.perf_counter() - begun) / len(people)

    def _solve_threaded(self, people: _Batch, limits: Limits, threads: int, herald: _Herald) -> None:
        size = max(1, min(PEOPLE_A_CALL, math.ceil(len(people) / (4 * threads))))
        ranges = iter([(i, min(i + size, len(people))) for i in range(0, len(people), size)])
        work = _Locked(ranges)
        with ThreadPoolExecutor(max_workers=threads) as pool:
            workers = [_Worker(self, people, limits, herald) for _ in range(threads)]
            futures = [pool.submit(worker.work, work) for worker in workers]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                for worker in workers:
                    worker.stop.set()
                raise


class _Locked:
    """An iterator that several threads may draw from."""

    def __init__(self, items: object) -> None:
        self._items, self._lock = items, threading.Lock()

    def __iter__(self) -> _Locked:
        return self

    def __next__(self) -> tuple[int, int]:
        with self._lock:
            return next(self._items)  # type: ignore[call-overload, no-any-return]


class _Herald:
    """Counts finished people and passes progress on, one event at a time."""

    def __init__(self, people: int, listen: Listener | None) -> None:
        self.people, self.finished, self._listen, self._lock = people, 0, listen, threading.Lock()

    def done(self, count: int) -> None:
        with self._lock:
            self.finished += count
            if self._listen is not None:
                self._listen(Progress(finished=self.finished, people=self.people))

    def under_way(self, tree: kernel.Tree, squared: bool, seconds: float) -> None:
        if self._listen is None:
            return
        low, radius, best = (float(v) for v in tree.number[:3])
        if tree.count[kernel.HEAP] > 0:
            low = max(low, min(float(tree.bound[tree.heap[0]]), float(tree.number[kernel.RESIDUAL])))
        if squared:
            low, radius, best = math.sqrt(low), math.sqrt(radius), math.sqrt(best)
        with self._lock:
            self._listen(
                Progress(finished=self.finished, people=self.people, radius=radius, nodes=int(tree.count[kernel.NODES]),
                         lower=low, upper=best, seconds=seconds)
            )  # fmt: skip


class _Worker:
    """One thread's buffers and its way through the people."""

    def __init__(self, solver: SearchSolver, people: _Batch, limits: Limits, herald: _Herald) -> None:
        self.solver, self.people, self.limits, self.herald = solver, people, limits, herald
        self.stop = threading.Event()
        self.scratch = new_scratch(solver.pack)
        self.most_nodes = max(16, (limits.memory_bytes or 2**62) // node_bytes(solver.pack))
        self.tree = new_tree(solver.pack, min(FIRST_POOL, self.most_nodes))

    def work(self, ranges: object) -> None:
        people = self.people
        for first, last in ranges:  # type: ignore[attr-defined]
            i = first
            while i < last and not self.stop.is_set():
                end = min(last, i + PEOPLE_A_CALL)
                begun = time.perf_counter()
                slice_nodes = min(FIRST_SLICE_NODES, self.limits.nodes or FIRST_SLICE_NODES)
                reached, code = batch.search_people(
                    self.solver.pack, people.z, people.lo, people.hi, people.mask, people.cost, people.option, math.inf,
                    i, end, slice_nodes, self.scratch, self.tree, people.lower, people.best, people.nodes,
                )  # fmt: skip
                spent = time.perf_counter() - begun
                share = people.nodes[i:reached].astype(np.float64) + 1.0
                unfinished = float(self.tree.count[kernel.NODES]) + 1.0 if reached < end else 0.0
                people.seconds[i:reached] = spent * share / (share.sum() + unfinished)
                if reached < end:
                    self._finish(reached, code, spent * unfinished / (share.sum() + unfinished))
                    reached += 1
                self.herald.done(reached - i)
                i = reached

    def _finish(self, i: int, code: int, spent: float) -> None:
        """Go on with one person in slices of about a tenth of a second, until done or a limit is hit."""
        people, limits, pack = self.people, self.limits, self.solver.pack
        begun = time.perf_counter() - spent
        person = people.person(i)
        slice_nodes = FIRST_SLICE_NODES
        told = 0.0
        while code != kernel.DONE:
            seconds = time.perf_counter() - begun
            nodes = int(self.tree.count[kernel.NODES])
            if limits.seconds is not None and seconds >= limits.seconds:
                people.limit[i] = f"time limit of {limits.seconds:g} s"
            elif limits.nodes is not None and nodes >= limits.nodes:
                people.limit[i] = f"node limit of {limits.nodes}"
            elif code == kernel.MEMORY and len(self.tree.bound) >= self.most_nodes:
                people.limit[i] = f"memory limit of {(limits.memory_bytes or 0) / 2**20:.0f} MiB"
            elif self.stop.is_set():
                people.limit[i] = "interrupted"
            if i in people.limit:
                break
            if code == kernel.MEMORY:
                self.tree = grown(self.tree, pack, min(2 * len(self.tree.bound), self.most_nodes))
            if seconds - told >= 0.2:
                self.herald.under_way(self.tree, pack.norm == SQUARED, seconds)
                told = seconds
            wanted = SLICE_SECONDS
            if limits.seconds is not None:
                wanted = min(wanted, max(limits.seconds - seconds, 0.001))
            slice_nodes = max(2, min(int((nodes + 1) / max(seconds, 1e-6) * wanted), 4 * slice_nodes))
            if limits.nodes is not None:
                slice_nodes = min(slice_nodes, max(limits.nodes - nodes, 1))
            code = kernel.run(pack, person, self.scratch, self.tree, slice_nodes)
        if i in people.limit:
            self._settle_lower()
        batch.finish_person(self.tree, i, people.lower, people.best, people.nodes)
        people.seconds[i] = time.perf_counter() - begun

    def _settle_lower(self) -> None:
        """The proven lower bound of a search that was cut short: the least bound of an open or unresolved node."""
        tree = self.tree
        number = tree.number
        bounds = [float(number[kernel.RADIUS]), float(number[kernel.RESIDUAL]), float(number[kernel.BEST])]
        if tree.count[kernel.HEAP] > 0:
            bounds.append(float(tree.bound[tree.heap[0]]))
        number[kernel.LOWER] = max(float(number[kernel.LOWER]), min(bounds))
