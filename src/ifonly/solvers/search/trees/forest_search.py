"""Best-first search over priced boxes for one person, each searched depth first by the kernels for a while.

Easy questions are over before anything is priced. Where they are not, the box of everything is priced
(`kernels/prices.py`) and searched again. A box that this does not finish is split in two where its prices tell
(`kernels/branching.py`), the parts are priced from its shares on, and the one with the least bound is searched next.
So the least bound of what is open is a bound at any moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.resources import LimitReached, limited
from ifonly.results import Claim, Stop
from ifonly.solvers.search.deadline import Deadline
from ifonly.solvers.search.trees.kernels.layout import (
    ADDITIVE,
    BEST,
    BEYOND,
    DONE,
    FREE,
    GUARD,
    HEIGHT,
    LEFT_OVER,
    LOOK,
    LOST,
    MEMORY,
    NODES,
    NOT_ASKED,
    SLICE,
    UNKNOWN,
    Stack,
)
from ifonly.solvers.search.trees.kernels.prices import Priced
from ifonly.solvers.search.trees.kernels.shares import Shares
from ifonly.solvers.search.trees.open_boxes import OpenBox, OpenedBox, cells_around, everything, halves, no_shares
from ifonly.solvers.search.trees.pack import enlarged, new_stack, new_state
from ifonly.solvers.search.trees.person_search import TreeSearch
from ifonly.solvers.search.trees.rules import elsewhere, holds_other

Floats = NDArray[np.float64]

FIRST_SLICE, FIRST_PLAIN_SLICE = 200_000, 400
"""Trees times nodes of the first slice: a few milliseconds."""
SLICE_SECONDS = 0.02
FIRST_BOXES = 64
NOWHERE = np.zeros(0, dtype=np.int32)
NOT_PRICED = Priced(np.zeros(0), np.zeros(0, dtype=np.uint8), np.zeros((2, 0)), np.zeros(3))
PLAIN_NODES = 2000
"""After so many, prices are worth their while."""
AROUND_NODES = 200
"""Where the rules refuse the first row, rows near it are looked for in so many, for each of a few boxes."""
AROUND_TIMES = (2.0, 8.0)
"""Of the cost of the first row: what rows may cost that are looked for then."""
UNLIMITED = 2**62
PRICED_NODES = 1000
"""After so many, a priced box is split."""
HANDED_NODES = 300
"""After so many, the open boxes of a priced box are handed over, where they know more than prices do."""
FIRST_ROUNDS, ROUNDS = 300, 60
"""Of pricing: everything, and a box with the shares of a larger one."""
REPORT_SECONDS = 0.2


@dataclass
class ForestSearch(TreeSearch):
    """One person's search over boxes, of which the kernels have one at a time on their stack."""

    report_at: float = REPORT_SECONDS
    """When to report progress next."""
    boxes: list[tuple[float, int, OpenBox]] = field(default_factory=list)
    """Open boxes beside the stack, as a heap: what their rows cost at least, a number, the box."""
    added: int = 0
    other: NDArray[np.int32] = field(default_factory=lambda: NOWHERE)
    """Under rules: the cells of a row that the box on top is split at."""

    def claim(self) -> Claim:
        self.begun = time.perf_counter() - self.spent_seconds
        self.state = new_state(self.forest)
        self.state.count[NODES] = self.spent_nodes
        packed, people = self.packed, self.people
        try:
            with limited(self._seconds_left(), self.limits.memory_bytes):
                self.person = packed.cells.person(people, self.i, packed.kernels.now)
                self.rules = packed.clauses.of_person(packed.cells, people, self.i, packed.kernels.now)
        except LimitReached as reached:
            return self._claim(0.0, self.limits.stop(reached))
        if stopped := self._stopped(self.spent_seconds, self.spent_nodes):  # some row is worth a little more
            return self._claim(0.0, stopped)
        if self.cutoff < math.inf and packed.rules is not None and packed.rules.follow is not None:
            self.state.number[BEST] = self.cutoff  # of a row near trees alone, what follows is elsewhere
            return self._search()
        features = len(self.forest.choice)
        with Deadline(self.person.halt, self._seconds_left()):
            cost = self.packed.kernels.now.some_point(
                self.forest, self.person, self.packed.depth, self.state.best[:features], self.state.leaves,
                self.state.scores,
            )  # fmt: skip
        if cost < 0.0:
            return self._claim(math.inf, None)
        self.state.number[BEST] = min(cost, self.cutoff)
        if packed.rules is not None and cost < self.cutoff:
            point = packed.rules.completed(self._point())
            if not (packed.rules.admits(people.factual[self.i], point) and self._registered(point, math.inf)):
                self.state.number[BEST] = self.cutoff
                if self.cutoff == math.inf and (claim := self._looked_around(self.state.best[:features].copy(), cost)):
                    return claim
        return self._search()

    def _looked_around(self, cells: NDArray[np.int32], cost: float) -> Claim | None:
        """Look for a row that the rules admit where those that cost something are in these cells, or that costs not
        much more; the claim if a limit is reached. What is found is a cutoff; nothing is proven of what is not."""
        forest, state = self.forest, self.state
        near = cells_around(forest, self.person, cells)
        for box, below in ((near, math.inf), *((everything(forest), times * cost) for times in AROUND_TIMES)):
            state.number[BEST] = below
            opened = self.opened(OpenBox(box, no_shares(forest), 0), 0.0)
            if opened is None:
                continue
            self.table, self.stack = opened.table, opened.stack
            claim = self._advance(AROUND_NODES, None)
            self.residual = state.number[LEFT_OVER] = math.inf
            state.count[HEIGHT] = 0
            if claim is not None:
                lower = 0.0 if self._one_rounding else None
                return replace(claim, point=self.found, lower=0.0, lower_any_rounding=lower)
            if self.found is not None:
                return None
        state.number[BEST] = self.cutoff
        return None

    def _search(self) -> Claim:
        """Boxes from the least bound on: first everything, without prices; if that takes long, once more with them,
        and then in parts.
        """
        forest, state, nodes = self.forest, self.state, UNLIMITED if self.packed.any_row else PLAIN_NODES
        if self._enough:
            return self._claim(0.0, None)
        self._add(0.0, OpenBox(everything(forest), no_shares(forest), 0))
        while self.boxes and self.boxes[0][0] < float(state.number[BEST]):
            bound, _, part = heappop(self.boxes)
            if part.rounds and (stopped := self._looked_up(bound)):
                return self._claim(bound, stopped)
            opened = self.opened(part, bound)
            if opened is None:
                continue
            self.table, self.stack = opened.table, opened.stack
            waiting = (len(self.boxes) + 1) * (_bytes(part.box) + _bytes(opened.shares))
            if self._beyond(_bytes(self.table) + _bytes(self.stack) + waiting):
                return self._claim(bound, self.limits.memory)
            if claim := self._advance(nodes, opened.shares if part.rounds and self._keeps_boxes else None):
                return claim
            if part.rounds == 0 and state.count[HEIGHT]:
                self._add(bound, OpenBox(everything(forest), no_shares(forest), FIRST_ROUNDS))
                nodes = HANDED_NODES if self._keeps_boxes else PRICED_NODES
            elif state.count[HEIGHT]:
                for half in halves(forest, part.box, opened.split):
                    self._add(opened.bound, OpenBox(half, opened.shares, ROUNDS))
        return self._claim(float(state.number[BEST]), None)

    @property
    def _enough(self) -> bool:
        """Is there a row, and is any as good as the nearest?"""
        return self.packed.any_row and bool(self.state.number[BEST] < self.cutoff)

    @property
    def _keeps_boxes(self) -> bool:
        """Do open boxes know more than prices do? So they do of rules, of which features must change, and of maxima."""
        forest = self.forest
        changes = len(forest.pairs) > 0 or self.person.most < len(forest.choice)
        return forest.ruled or changes or forest.norm != ADDITIVE

    def _add(self, bound: float, part: OpenBox) -> None:
        self.added += 1
        heappush(self.boxes, (bound, self.added, part))

    def _looked_up(self, lower: float) -> Stop | None:
        """Between two boxes: report progress; the limit that is reached."""
        seconds = time.perf_counter() - self.begun
        if seconds >= self.report_at:
            self._report(lower, seconds)
        return self._stopped(seconds, int(self.state.count[NODES]))

    def opened(self, part: OpenBox, bound: float) -> OpenedBox | None:
        """The box as far as the cutoff goes, priced; None where nothing is nearer, or where others come first."""
        forest, person, cutoff, depth = self.forest, self.person, float(self.state.number[BEST]), self.packed.depth
        kernel, box, shares, split = self.packed.kernels.now, part.box, part.shares, (-1, -1)
        near, ball = np.zeros(len(forest.choice), dtype=np.int32), box[:3]
        total = kernel.reach(forest, person, cutoff, near, ball)
        if total == math.inf:
            return None
        table = kernel.build(forest, person, ball, near, total, cutoff, depth, NOT_PRICED)
        if part.rounds:
            additive = forest.norm == ADDITIVE
            limit, base = (min(cutoff, self._farthest()), total) if additive else (0.0, 0.0)
            with Deadline(person.halt, self._seconds_left()):
                priced, shares, split = kernel.share(
                    forest, person, table, ball, near, base, limit, shares, part.rounds
                )
            beyond = float(priced.number[BEYOND] - 2.0 * priced.number[GUARD])
            if beyond > limit or (additive and beyond == limit):
                return None
            bound = max(bound, beyond) if additive else bound
            if part.split is None and self.boxes and bound > self.boxes[0][0]:
                self._add(bound, OpenBox(box, shares, 1, split))
                return None
            table = kernel.build(forest, person, ball, near, total, cutoff, depth, priced)
        stack = new_stack(forest, table, FIRST_BOXES)
        kernel.begin(forest, table, person, box, max(bound, total), stack, self.state)
        if self.packed.rules is not None and self.packed.rules.networks is not None:
            stack.other[0, 0] = UNKNOWN
        return OpenedBox(max(bound, total), table, stack, shares, part.split or split)

    def _farthest(self) -> float:
        """More than any row costs."""
        cost = np.where(np.isfinite(self.person.cost[FREE]), self.person.cost[FREE], 0.0)
        return float(np.maximum.reduceat(cost, self.forest.start[:-1]).sum()) * (1.0 + 1e-9) + 1e-9

    def _hand_over(self, shares: Shares) -> None:
        """The lower half of the open boxes, which are the larger ones, for later."""
        stack, height, features = self.stack, int(self.state.count[HEIGHT]), len(self.forest.choice)
        gone = (height + 1) // 2
        for s in range(gone):
            left = stack.left[s].reshape(features, -1)
            box = stack.least[s].copy(), stack.most[s].copy(), left.copy(), stack.must[s].copy()
            self._add(float(stack.bound[s]), OpenBox(box, shares, ROUNDS))
        for part in stack:
            part[: height - gone] = part[gone:height].copy()
        self.state.count[HEIGHT] = height - gone

    def _advance(self, most: int, shares: Shares | None) -> Claim | None:
        """Search the boxes on the stack, for so many nodes; with shares, they are then handed over with these, half of
        them at a time. None if no limit is in the way.
        """
        count, kernels = self.state.count, self.packed.kernels
        nodes = max(1, (FIRST_SLICE if kernels.compiled else FIRST_PLAIN_SLICE) // self.table.tree.shape[1])
        end = int(count[NODES]) + most
        while True:
            nodes = min(nodes, max(end - int(count[NODES]), 1))
            if self.limits.nodes is not None:
                nodes = max(1, min(nodes, self.limits.nodes - int(count[NODES])))
            code = kernels.now.advance(
                self.forest, self.table, self.person, self.stack, self.state, nodes, self.other, self.rules
            )
            if code == DONE:
                return None
            if self._enough:
                return self._claim(0.0, None)
            if code != MEMORY:
                self.other = NOWHERE
            if code in (LOOK, LOST) and self._looked(self.stack, code) and not self._must_stop():
                continue
            seconds = time.perf_counter() - self.begun
            if claim := self._interrupted(code, seconds):
                return claim
            if int(count[NODES]) >= end and code == SLICE and kernels.compiled:  # prices are not for plain Python
                if shares is None:
                    return None
                self._hand_over(shares)
                end = int(count[NODES]) + most // 2
            left = math.inf if self.limits.seconds is None else self.limits.seconds - seconds
            nodes = max(1, int(int(count[NODES]) / seconds * min(SLICE_SECONDS, left)))
            kernels.look(self.begun, self.begun + seconds + left)

    def _interrupted(self, code: int, seconds: float) -> Claim | None:
        """Between two slices: grow the stack, report progress; the claim if a limit is reached."""
        state = self.state
        best, looked, stopped = float(state.number[BEST]), int(state.count[NODES]), None
        lower = min([best, *self.stack.bound[: state.count[HEIGHT]].tolist(), *(box[0] for box in self.boxes[:1])])
        stopped = self._stopped(seconds, looked)
        if stopped is None and code == MEMORY:
            if self._beyond(_bytes(self.table) + 3 * _bytes(self.stack)):  # the old boxes and twice as many
                stopped = self.limits.memory
            else:
                self.stack = enlarged(self.stack)
        if stopped is not None or code in (LOOK, LOST):
            return self._claim(lower, stopped or self.stopped)
        if seconds >= self.report_at:
            self._report(lower, seconds)
        return None

    def _report(self, lower: float, seconds: float) -> None:
        best, distance = float(self.state.number[BEST]), self.packed.distance
        self.reporter.report(distance(lower), distance(best), int(self.state.count[NODES]), seconds)
        self.report_at = seconds + REPORT_SECONDS

    def _looked(self, stack: Stack, code: int) -> bool:
        """Judge the nearest point of the box on top by the rules (LOOK), or else find the nearest row of the box that
        they admit; the box is then closed, or split between the two. False if a limit was reached on the way.
        """
        rules, s = self.packed.rules, int(self.state.count[HEIGHT]) - 1
        assert rules is not None
        if code == LOOK:
            if self._registered_nearest(stack, s):
                return self._closed()
            if holds_other(self.forest, stack, s) and (stack.other[s] != stack.near[s]).any():
                self.other = stack.other[s].copy()  # the nearest row of a larger box is that of this one
                return True
        below = self.packed.distance(float(self.state.number[BEST]))
        box = stack.least[s], stack.most[s], stack.left[s].reshape(len(self.forest.choice), -1)
        claim = self._nearest_in(rules.inside(self.people.part([self.i]), box), below)
        self.other_nodes += claim.nodes
        if claim.stop is not None:
            self.stopped = claim.stop
            return False
        stack.bound[s] = max(stack.bound[s], self.packed.cost(claim.lower))
        cut_off = claim.point is None and below < math.inf and claim.lower < math.inf
        if cut_off and self.packed.tolerances.close(claim.lower, below):
            return self._closed(float(stack.bound[s]))  # nothing is nearer than the best row
        found = claim.point is not None and self._registered_from_networks(claim.point, float(stack.bound[s]))
        if found or claim.lower == math.inf:
            return self._closed()
        cells = None if claim.point is None else self.packed.cells.of_point(claim.point)
        if rules.networks is not None:
            stack.other[s] = NOT_ASKED if cells is None else cells
        if code == LOST:
            if not holds_other(self.forest, stack, s):  # what follows from causes may lead out of a box
                stack.other[s] = NOT_ASKED
            return True
        self.other = elsewhere(self.forest, stack, s) if cells is None else cells
        if not len(self.other) or (self.other == stack.near[s]).all():  # on an edge: nothing to split the box at
            self.other = NOWHERE
            return self._closed(float(stack.bound[s]))
        return True

    def _registered_nearest(self, stack: Stack, s: int) -> bool:
        """Is the nearest point of the box a row that is admitted and decided as asked? Then it may be the best."""
        rules, bound = self.packed.rules, float(stack.bound[s])
        assert rules is not None
        near = rules.completed(self.person.value[stack.must[s], self.forest.start[:-1] + stack.near[s]])
        if not rules.admits(self.people.factual[self.i], near):
            return False
        if rules.follow is not None:
            return self._registered(near, bound)
        self._improved(near, bound)  # the kernel has added up its leaves
        return True

    def _closed(self, residual: float = math.inf) -> bool:
        """The box on top is done with; `residual`: what its rows cost at least, if some may be left."""
        self.residual = min(self.residual, residual)
        self.state.count[HEIGHT] -= 1
        return True

    def _must_stop(self) -> bool:
        """Is there a box left, and no time for it?"""
        looked = int(self.state.count[NODES])
        return bool(self.state.count[HEIGHT]) and self._stopped(time.perf_counter() - self.begun, looked) is not None


def _bytes(arrays: Iterable[NDArray[Any]]) -> int:
    return sum(part.nbytes for part in arrays)
