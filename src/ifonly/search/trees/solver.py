"""The exact search for tree ensembles at work: packed once per question, then person by person on any number of
threads. Everything of importance happens in the kernels; between their slices the clock, the memory and the keyboard
are looked at.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.compiling import Kernels
from ifonly.model import Model
from ifonly.model.trees import Ensemble, LibraryTree, Summation, Trees
from ifonly.problem import ClassTarget, Question
from ifonly.problem.lowering import People, costs_of
from ifonly.proof import Claim, Limits, Listener, Stop, StoppedBy
from ifonly.schema import Integer, Schema
from ifonly.search.herald import Herald
from ifonly.search.trees.cells import Cells
from ifonly.search.trees.kernels.greedy import some_point
from ifonly.search.trees.kernels.layout import (
    ASKED,
    BEST,
    DONE,
    HEIGHT,
    LEFT_OVER,
    LOOK,
    MEMORY,
    NODES,
    SOURCES,
    Forest,
    LeafTable,
    PricedPerson,
    Stack,
    State,
)
from ifonly.search.trees.kernels.search import advance, begin
from ifonly.search.trees.kernels.table import build, reach
from ifonly.search.trees.pack import by_luck, grown, new_stack, new_state, pack_forest
from ifonly.search.trees.ruled import RuledBoxes
from ifonly.tolerances import DEFAULT, Tolerances

Floats = NDArray[np.float64]

FIRST_SLICE = 200_000
"""Trees times nodes of the first slice: a few milliseconds."""
SLICE_SECONDS = 0.02
FIRST_BOXES = 64
NOWHERE = np.zeros(0, dtype=np.int32)
TELL_SECONDS = 0.2
BELOW = 1.0 - 1e-11
"""Costs are added up in float64; a bound on the distance is taken a little below the cost that is proven."""


class ForestSolver:
    """The search for trees, ready for one question."""

    def __init__(self, question: Question, tolerances: Tolerances, *, load: bool = True) -> None:
        assert isinstance(question.model.function, Trees)
        self.question, self.costs = question, costs_of(question)
        self.cells = Cells.of(question.model.function, self.costs)
        self.forest = pack_forest(question.model.function, self.costs, self.cells)
        self.depth = question.model.function.ensemble.depth
        self.by_luck = by_luck(self.forest, question)
        if load:
            TREE_KERNELS.load()
        self.rules = RuledBoxes(question, self.cells, tolerances) if self.forest.ruled else None

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        people = self.costs.domains(points)
        herald = Herald(len(points), listen)
        stop = threading.Event()

        def claim(i: int) -> Claim:
            done = _Search(self, self.forest, people, i, limits, herald, stop).claim()
            if self.by_luck is not None and done.lower == math.inf and done.stop is None:  # could luck make a row?
                lucky = _Search(self, self.by_luck, people, i, limits, herald, stop).claim()
                done = replace(done, lower=lucky.lower, stop=lucky.stop, nodes=done.nodes + lucky.nodes)
            herald.done(1)
            return done

        claims = self._all(claim, len(points), threads, stop)
        herald.all_done()
        return claims

    @staticmethod
    def _all(claim: Callable[[int], Claim], people: int, threads: int, stop: threading.Event) -> list[Claim]:
        if threads == 1 or people < 2:
            return [claim(i) for i in range(people)]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            futures = [pool.submit(claim, i) for i in range(people)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                stop.set()
            return [future.result() for future in futures]

    def distance(self, cost: float) -> float:
        return math.sqrt(cost) if self.cells.squared else cost

    def cost(self, distance: float) -> float:
        return distance**2 if self.cells.squared else distance


def _functions() -> tuple[Mapping[str, Any], int]:
    return {"some_point": some_point, "build": build, "begin": begin, "advance": advance}, SOURCES


def _try_out(kernel: Any) -> None:
    """Ask about one number and one tree."""
    number = Schema([Integer("x", 0, 1)])
    tree = LibraryTree(
        column=[0, -1, -1], threshold=[0.0] * 3, left=[1, 1, 2], right=[2, 1, 2], value=[0.0] * 3, adds_to=0
    )
    trees = Trees(Ensemble.of([tree], columns=1, summation=Summation.plain(1)), number)
    model = Model(function=trees, schema=number, original=trees.ensemble.scores, classes=(0, 1))
    solver = ForestSolver(Question(model=model, target=ClassTarget(1)), DEFAULT, load=False)
    people, quiet = solver.costs.domains(np.zeros((1, 1))), Herald(0, None)
    search = _Search(solver, solver.forest, people, 0, Limits(nodes=1), quiet, threading.Event())
    search.claim()
    opened = search.opened(math.inf)
    assert opened is not None
    advance(solver.forest, opened[0], search.person, opened[1], search.state, 1, NOWHERE)


TREE_KERNELS = Kernels("ifonly.search.trees.solver:TREE_KERNELS", "the search for trees", _functions, _try_out)
"""Compiled before the first question to trees: plain Python would take too long for most of them."""


@dataclass
class _Search:
    """One person's search."""

    solver: ForestSolver
    forest: Forest
    people: People
    i: int
    limits: Limits
    herald: Herald
    stop: threading.Event
    found: Floats | None = None
    """Under rules: the best row so far, which they have judged."""
    residual: float = math.inf
    """The least bound of a box that was closed without meeting it."""
    stopped: Stop | None = None
    other: NDArray[np.int32] = field(default_factory=lambda: NOWHERE)
    """Under rules: the cells of a row that the box on top is split at."""

    def claim(self) -> Claim:
        self.begun, solver = time.perf_counter(), self.solver
        self.person: PricedPerson = solver.cells.person(self.people, self.i)
        self.state: State = new_state(self.forest)
        features = len(self.forest.choice)
        cost = some_point(
            self.forest, self.person, solver.depth, self.state.best[:features], self.state.leaves, self.state.scores
        )
        if cost < 0.0:
            return self._told(math.inf, None)
        self.state.number[BEST] = cost
        if self.forest.ruled and math.isfinite(cost):
            self._offer(self._point(), math.inf)
        return self._search()

    def _search(self) -> Claim:
        cutoff = float(self.state.number[BEST])
        opened = self.opened(cutoff)
        if opened is None:
            return self._told(cutoff, None)
        table, stack = opened
        if self._beyond(_bytes(table) + _bytes(stack)):
            return self._told(float(stack.bound[0]), self.limits.memory)
        return self._advance(table, stack, table.tree.shape[1])

    def opened(self, cutoff: float) -> tuple[LeafTable, Stack] | None:
        """The ball of the cutoff as a box; None where nothing is nearer."""
        forest, person = self.forest, self.person
        near, least, most = (np.zeros(len(forest.choice), dtype=np.int32) for _ in range(3))
        left = np.zeros((len(forest.choice), forest.sets.shape[1]), dtype=np.uint64)
        total = reach(forest, person, cutoff, near, least, most, left)
        if total == math.inf:
            return None
        ball = (least, most, left)
        table = build(forest, person, ball, near, total, cutoff, self.solver.depth)
        stack = new_stack(forest, table, FIRST_BOXES)
        begin(forest, table, ball, near, total, stack, self.state)
        return table, stack

    def _advance(self, table: LeafTable, stack: Stack, trees: int) -> Claim:
        state, told = self.state, TELL_SECONDS
        nodes = max(1, FIRST_SLICE // trees)
        while True:
            if self.limits.nodes is not None:
                nodes = max(1, min(nodes, self.limits.nodes - int(state.count[NODES])))
            code = advance(self.forest, table, self.person, stack, state, nodes, self.other)
            if code == DONE:
                return self._told(float(state.number[BEST]), None)
            if code != MEMORY:
                self.other = NOWHERE
            if code == LOOK and self._looked(stack) and not self._must_stop():
                continue
            seconds, looked = time.perf_counter() - self.begun, int(state.count[NODES])
            lower = min(float(state.number[BEST]), float(stack.bound[: state.count[HEIGHT]].min()))
            stopped = self._stopped(seconds, looked)
            if stopped is None and code == MEMORY:
                if self._beyond(_bytes(table) + 3 * _bytes(stack)):  # the old boxes and twice as many
                    stopped = self.limits.memory
                else:
                    stack = grown(stack)
            if stopped is not None or code == LOOK:
                return self._told(lower, stopped or self.stopped)
            if seconds >= told:
                distance = self.solver.distance
                self.herald.tell(distance(lower), distance(float(state.number[BEST])), looked, seconds)
                told = seconds + TELL_SECONDS
            left = math.inf if self.limits.seconds is None else self.limits.seconds - seconds
            nodes = max(1, int(looked / seconds * min(SLICE_SECONDS, left)))

    def _looked(self, stack: Stack) -> bool:
        """Judge the nearest point of the box on top by the rules, or else find the nearest row of the box that they
        admit; the box is then closed, or split between the two. False if a limit was reached on the way.
        """
        state, s, features = self.state, int(self.state.count[HEIGHT]) - 1, len(self.forest.choice)
        near = self.person.value[stack.must[s], self.forest.start[:-1] + stack.near[s]]
        question, factual = self.solver.question, self.people.factual[self.i]
        if question.allows(factual, near) is None:
            self._offer(near, float(stack.bound[s]))
            state.count[HEIGHT] -= 1
            return True
        assert self.solver.rules is not None
        box = stack.least[s], stack.most[s], stack.left[s].reshape(features, -1)
        claim = self.solver.rules.nearest(self.people.part([self.i]), box, self._rest())
        if claim.stop is not None:
            self.stopped = claim.stop
            return False
        stack.bound[s] = max(stack.bound[s], self.solver.cost(claim.lower))
        if claim.point is None or self._offer(claim.point, float(stack.bound[s])):
            if claim.point is None and claim.lower < math.inf:
                self.residual = min(self.residual, float(stack.bound[s]))
            state.count[HEIGHT] -= 1
        else:
            self.other = self.solver.cells.of_point(claim.point)
            if (self.other == stack.near[s]).all():  # on the edge of a rule: there is nothing to split the box at
                self.residual = min(self.residual, float(stack.bound[s]))
                self.other = NOWHERE
                state.count[HEIGHT] -= 1
        return True

    def _must_stop(self) -> bool:
        """Is there a box left, and no time for it?"""
        looked = int(self.state.count[NODES])
        return bool(self.state.count[HEIGHT]) and self._stopped(time.perf_counter() - self.begun, looked) is not None

    def _offer(self, point: Floats, bound: float) -> bool:
        """Is the point admitted and decided as asked? Then it is the best one, if it is; nothing of its box is nearer
        than `bound`.
        """
        question, factual = self.solver.question, self.people.factual[self.i]
        c, d = question.conditions
        sure = (question.model.exact_scores(point[None, :]) @ c.T - d >= self.forest.demand[ASKED]).all()
        if not sure or question.allows(factual, point) is not None:
            if self.found is None:
                self.state.number[BEST] = math.inf
            return False
        cost = self.solver.cost(float(question.measure.between(factual, point)))
        if self.found is None or cost < self.state.number[BEST]:
            self.state.number[BEST], self.found = cost, point
        self.residual = min(self.residual, bound)
        return True

    def _rest(self) -> Limits:
        """What is left of the limits."""
        seconds = self.limits.seconds
        if seconds is None:
            return self.limits
        return replace(self.limits, seconds=max(seconds - (time.perf_counter() - self.begun), 1e-3))

    def _stopped(self, seconds: float, nodes: int) -> Stop | None:
        if reached := self.limits.reached(seconds=seconds, nodes=nodes):
            return reached
        return Stop(StoppedBy.INTERRUPTED) if self.stop.is_set() else None

    def _beyond(self, taken: int) -> bool:
        return self.limits.memory_bytes is not None and taken > self.limits.memory_bytes

    def _told(self, lower: float, stop: Stop | None) -> Claim:
        """The claim: no row costs less than `lower`."""
        lower = min(lower, self.residual, float(self.state.number[LEFT_OVER]))
        return Claim(
            point=self._point() if math.isfinite(self.state.number[BEST]) and lower < math.inf else None,
            lower=self.solver.distance(lower) * BELOW,
            method="search",
            stop=stop,
            nodes=int(self.state.count[NODES]),
            seconds=time.perf_counter() - self.begun,
            blur=float(self.solver.question.largest_error),
            lucky=self.solver.distance(lower) * BELOW if self.solver.by_luck is None else None,
        )

    def _point(self) -> Floats:
        if self.found is not None:
            return self.found
        features = len(self.forest.choice)
        cells, must = self.state.best[:features], self.state.best[features:]
        return np.asarray(self.person.value[must, self.forest.start[:-1] + cells])


def _bytes(arrays: LeafTable | Stack) -> int:
    return sum(part.nbytes for part in arrays)
