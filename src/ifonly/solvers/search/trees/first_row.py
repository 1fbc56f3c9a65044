"""The search for any row of one person that trees decide as asked, or the proof that there is none.

How near rows are is not looked at. Trees are lists of regions (`kernels/regions.py`), of which several are merged into
one where the search takes long; boxes are closed by sums of best regions and by the clauses of rules
(`kernels/maximum.py`). Where the best regions of a box have a part in common, all rows there have the same score, and a
row that the rules admit is looked for.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.costs import People
from ifonly.resources import LimitReached, check_limits, limited
from ifonly.results import Claim, Limits, Stop, StoppedBy
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.trees.clauses import NO_CLAUSES
from ifonly.solvers.search.trees.forest_search import SLICE_SECONDS
from ifonly.solvers.search.trees.kernels.layout import (
    DONE,
    FREE,
    LOOK,
    MEMORY,
    NEED,
    NODES,
    REQUIRED,
    SLACK,
    SLICE,
    Forest,
    PricedPerson,
)
from ifonly.solvers.search.trees.kernels.maximum import Clauses, RegionBoxes, SplitBuffers
from ifonly.solvers.search.trees.kernels.regions import CellDomain, Regions
from ifonly.solvers.search.trees.packed_forest import PackedForest
from ifonly.solvers.search.trees.region_lists import domain_of, merged_lists

Floats = NDArray[np.float64]

MERGINGS = ((300, 256), (20_000, 2048))
"""After so many nodes, lists are merged into such of at most so many regions."""
UNLIMITED = 2**62
FIRST_SLICE = 200
SETS = 32
"""Sets of options of one feature that a box is split by."""
BOXES = 256
ADDED_UP = 4.0 * 2.0**-52
"""For each tree: how far sums of regions, which are changed one by one, can be from the sum, relative to all."""
REPORT_SECONDS = 0.2


def takes(packed: PackedForest, most_changes: int) -> bool:
    """Can any row be looked for so? There is one condition, no rule about which features change, no network, and no
    choice has more cells than a word has bits. (In plain Python, the search for the nearest is quicker.)
    """
    forest, rules = packed.forest, packed.rules
    plain = not len(forest.pairs) and most_changes >= len(forest.choice) and (rules is None or rules.networks is None)
    return packed.any_row and packed.kernels.compiled and plain and len(forest.value) == forest.sets.shape[1] == 1


@dataclass
class FirstRow:
    """One person's search."""

    packed: PackedForest
    people: People
    i: int
    limits: Limits
    reporter: ProgressReporter
    stop: threading.Event
    nodes: int = 0
    doubtful: bool = False
    """Is there a region that only some rounding accepts, or of which the rules left open whether it has a row?"""
    found: Floats | None = None
    stopped: Stop | None = None
    report_at: float = REPORT_SECONDS
    cells: list[NDArray[np.int64]] = field(default_factory=list)
    """Of each feature, the cells of the forest that rows can be in."""
    regions: Regions = field(init=False)
    need: float = field(init=False)
    """What the sum of regions must reach."""

    def claim(self) -> Claim:
        self.begun = time.perf_counter()
        self.kernel: Any = self.packed.kernels.now
        self.forest: Forest = self.packed.any_rounding_forest or self.packed.forest
        try:
            with limited(self._seconds_left(), self.limits.memory_bytes):
                self.person: PricedPerson = self.packed.cells.person(self.people, self.i, self.kernel)
                if not self._prepared():
                    return self._claim(math.inf)
        except LimitReached as reached:
            self.stopped = self.limits.stop(reached)
            return self._claim(0.0)
        for nodes, most in (*MERGINGS, (UNLIMITED, 0)):
            if self._searched(self.nodes + nodes):
                break
            self.regions, everywhere = merged_lists(self.kernel, self.domain.choice, self.regions, most)
            self.need -= everywhere
        some = self.found is not None or self.doubtful or self.stopped is not None
        return self._claim(0.0 if some else math.inf)

    def _prepared(self) -> bool:
        """The regions of all trees, and what their sum must reach; False if no row is left."""
        forest, start = self.forest, self.forest.start
        free = np.isfinite(self.person.cost[FREE])
        self.cells = [np.flatnonzero(free[start[g] : start[g + 1]]) for g in range(len(forest.choice))]
        if not all(map(len, self.cells)):
            return False
        check_limits(len(forest.dead) * (12 + 16 * len(forest.choice)))
        self.domain: CellDomain = domain_of(forest, self.cells)
        self.regions = self.kernel.list_regions(forest, self.domain, np.argsort(forest.rank[0]))
        if (np.diff(self.regions.at) == 0).any():
            return False
        size = np.maximum.reduceat(np.abs(self.regions.value), self.regions.at[:-1]).sum()
        self.need = float(forest.demand[NEED, 0] - forest.demand[SLACK, 0])
        self.need -= ADDED_UP * len(forest.roots) * (float(size) + abs(self.need))
        self.clauses: Clauses = NO_CLAUSES
        if self.packed.rules is not None:
            self.clauses = self.packed.clauses.in_cells(self.packed.rules, self.people.part([self.i]), self.cells)
        return True

    def _searched(self, end: int) -> bool:
        """Search until so many nodes have been; True if it is over."""
        boxes, work, code, nodes = self._boxes(), self._work(), SLICE, FIRST_SLICE
        arguments = self.domain.choice, self.regions, self.clauses
        self.kernel.begin_boxes(*arguments, boxes, work, self.need)
        while True:
            before, begun = int(work.count[NODES]), time.perf_counter()
            nodes = max(1, min(nodes, end - self.nodes, self._nodes_left()))
            code = self.kernel.look_for_row(*arguments, boxes, work, self.need, nodes, code == LOOK)
            self.nodes += int(work.count[NODES]) - before
            if code == DONE or (code == LOOK and self._looked(work)) or self._must_stop(boxes):
                return True
            if code == MEMORY:
                boxes = RegionBoxes(*(np.concatenate([part, np.zeros_like(part)]) for part in boxes))
            elif code == SLICE:
                if self.nodes >= end:
                    return False
                nodes = int(nodes * SLICE_SECONDS / max(time.perf_counter() - begun, 1e-6))

    def _boxes(self) -> RegionBoxes:
        """Room for boxes; the first is everything."""
        features, lists = len(self.domain.choice), len(self.regions.at) - 1
        boxes = RegionBoxes(
            least=np.zeros((BOXES, features), dtype=np.int32), most=np.zeros((BOXES, features), dtype=np.int32),
            left=np.zeros((BOXES, features), dtype=np.uint64), best=np.zeros((BOXES, lists), dtype=np.int32),
            bound=np.zeros(BOXES),
        )  # fmt: skip
        boxes.most[0], boxes.left[0] = self.domain.count - 1, self.domain.left
        return boxes

    def _work(self) -> SplitBuffers:
        features, cells = len(self.domain.choice), int(self.domain.count.max())
        return SplitBuffers(
            lost=np.zeros((2, features, cells + 2)), sets=np.zeros((features, SETS), dtype=np.uint64),
            worth=np.zeros((features, SETS)), least=np.zeros(features, dtype=np.int32),
            most=np.zeros(features, dtype=np.int32), left=np.zeros(features, dtype=np.uint64),
            count=np.zeros(2, dtype=np.int64),
        )  # fmt: skip

    def _looked(self, work: SplitBuffers) -> bool:
        """Look for a row in the region, all of whose rows have one score; True if there is one, or time is up."""
        near, box = self._region(work)
        point = np.asarray(self.person.value[FREE, self.forest.start[:-1] + near])
        rules, factual = self.packed.rules, self.people.factual[self.i]
        if rules is not None and not rules.admits(factual, point):
            if not self._reaches(point, self.forest):
                return False
            claim = rules.nearest(rules.inside(self.people.part([self.i]), box), math.inf, self._rest())
            self.nodes, self.stopped = self.nodes + claim.nodes, claim.stop
            if claim.point is None:
                self.doubtful |= claim.lower < math.inf
                return claim.stop is not None
            point = claim.point
        if self._reaches(point, self.packed.forest) and self.packed.question.allows(factual, point) is None:
            self.found = point
            return True
        self.doubtful |= self._reaches(point, self.forest)
        return False

    def _region(self, work: SplitBuffers) -> tuple[NDArray[np.int32], tuple[Any, Any, Any]]:
        """The nearest cells of a region, and the region as a box of cells of the forest."""
        near, least, most = (np.zeros(len(self.cells), dtype=np.int32) for _ in range(3))
        for g, some in enumerate(self.cells):
            if self.forest.choice[g]:
                inside = some[[int(work.left[g]) >> k & 1 == 1 for k in some.tolist()]]
            else:
                inside = some[work.least[g] : work.most[g] + 1]
            cost = self.person.cost[FREE, self.forest.start[g] + inside]
            near[g], least[g], most[g] = inside[int(cost.argmin())], inside[0], inside[-1]
        return near, (least, most, work.left[:, None].copy())

    def _reaches(self, point: Floats, forest: Forest) -> bool:
        """Does the library's own score reach what this forest asks for?"""
        question = self.packed.question
        c, d = question.conditions
        return bool((question.model.exact_scores(point[None, :]) @ c.T - d >= forest.demand[REQUIRED]).all())

    def _must_stop(self, boxes: RegionBoxes) -> bool:
        """Between two slices: report progress; True if a limit is reached."""
        seconds = time.perf_counter() - self.begun
        if seconds >= self.report_at:
            self.reporter.report(0.0, math.inf, self.nodes, seconds)
            self.report_at = seconds + REPORT_SECONDS
        self.stopped = self.stopped or self.limits.reached(seconds=seconds, nodes=self.nodes)
        if self.limits.memory_bytes is not None and _bytes(self.regions) + 3 * _bytes(boxes) > self.limits.memory_bytes:
            self.stopped = self.stopped or self.limits.memory
        if self.stop.is_set():
            self.stopped = self.stopped or Stop(StoppedBy.INTERRUPTED)
        return self.stopped is not None

    def _nodes_left(self) -> int:
        return UNLIMITED if self.limits.nodes is None else self.limits.nodes - self.nodes

    def _seconds_left(self) -> float | None:
        seconds = self.limits.seconds
        return None if seconds is None else seconds - (time.perf_counter() - self.begun)

    def _rest(self) -> Limits:
        left = self._seconds_left()
        return self.limits if left is None else replace(self.limits, seconds=max(left, 1e-3))

    def _claim(self, lower: float) -> Claim:
        """The claim: nothing, or that no row is accepted under any rounding."""
        return Claim(
            point=self.found,
            lower=lower,
            method="search",
            stop=self.stopped,
            nodes=self.nodes,
            seconds=time.perf_counter() - self.begun,
            rounding_bound=float(self.packed.question.largest_error),
            lower_any_rounding=lower,
        )


def _bytes(arrays: Iterable[NDArray[Any]]) -> int:
    return sum(part.nbytes for part in arrays)
