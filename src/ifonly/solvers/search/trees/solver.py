"""Branch-and-bound solver for tree ensembles: packed once per question, then person by person on any number of threads.

The work is done in the kernels; time, memory and interrupts are checked between their slices.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.compiling import Kernels
from ifonly.problem import Question
from ifonly.problem.costs import costs_of
from ifonly.results import Claim, Limits, Listener
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.trees.cells import Cells
from ifonly.solvers.search.trees.compiled import TREE_KERNELS
from ifonly.solvers.search.trees.first_row import FirstRow, takes
from ifonly.solvers.search.trees.forest_search import ForestSearch
from ifonly.solvers.search.trees.pack import SummedTrees, any_rounding_forest, pack_forest
from ifonly.solvers.search.trees.packed_forest import PackedForest
from ifonly.solvers.search.trees.rules import RuledBoxes
from ifonly.solvers.search.trees.shared import shared_trees
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]

PLAIN_STEPS = 300_000
"""From the roots to all leaves of a forest: with more of them, preparing takes plain Python many seconds, and the
compiled kernels are waited for."""

ALL_OF_IT = 1.0 - 2.0**-19
"""Where an answer may be farther than the nearest by so much of its distance, the first row that is found will do."""


ALMOST = 1.0 - 1e-9
"""Rows that are nearer by less than this are no nearer, whatever order a distance is added up in."""


class ForestSolver:
    """The search for trees, ready for one question; `shared`: what it has in common with those of other questions.

    `networks`: the same question to networks, which must accept the row as well. `any_rounding`: always bound the
    distance of rows that some rounding accepts.
    """

    def __init__(
        self,
        question: Question,
        tolerances: Tolerances,
        *,
        networks: Question | None = None,
        any_rounding: bool = False,
        kernels: Kernels = TREE_KERNELS,
    ) -> None:
        self.tolerances, self.any_rounding = tolerances, any_rounding and networks is None
        summed = SummedTrees.of(question.model.function)
        trees = summed.trees
        self.costs, depth = costs_of(question), trees.ensemble.depth
        kernels.prepare()
        if not kernels.compiled and len(trees.ensemble.values) * depth > PLAIN_STEPS:
            kernels.wait_within_limits()
        shared = shared_trees(trees, kernels.now)
        cells, forest = Cells(self.costs, shared.cells), pack_forest(summed, self.costs, shared)
        if networks is not None:
            forest = forest._replace(ruled=True)
        rules = RuledBoxes(question, networks, cells, tolerances) if forest.ruled else None
        self.packed = PackedForest(
            question, cells, forest, depth, any_rounding_forest(forest, question), rules, kernels,
            tolerances, any_row=tolerances.relative_gap > ALL_OF_IT,
        )  # fmt: skip
        self.shared = shared.parts

    def begin(self, points: Floats, *, wait: bool) -> bool:
        """Do what is done in the first search only, and say so, if that is not to be in plain Python."""
        if self.packed.kernels.compiled:
            self.solve(points, Limits(nodes=1))
        return self.packed.kernels.compiled

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        packed, people = self.packed, self.costs.domains(points)
        reporter, stop = ProgressReporter(len(points), listen), threading.Event()
        packed.kernels.prepare()
        begun = time.perf_counter()

        def claim(i: int) -> Claim:
            packed.kernels.look(begun, math.inf if limits.seconds is None else time.perf_counter() + limits.seconds)
            if takes(packed, self.costs.most_changes):
                done = FirstRow(packed, people, i, limits, reporter, stop).claim()
                reporter.done(1)
                return done
            done = ForestSearch(packed, packed.forest, people, i, limits, reporter, stop).claim()
            weaker = packed.any_rounding_forest
            none = done.lower == math.inf
            asked = weaker is not None and done.stop is None and (none or self.any_rounding)
            if weaker is not None and asked:  # does some rounding accept a row, or a nearer one?
                spent = (done.nodes, done.seconds)
                again = ForestSearch(packed, weaker, people, i, limits, reporter, stop, *spent).claim()
                done = replace(done, nodes=again.nodes, seconds=again.seconds)
                done = replace(done, lower=again.lower, stop=again.stop) if none else done
                if self.any_rounding:
                    done = replace(done, lower_any_rounding=min(again.lower, done.lower))
            reporter.done(1)
            return done

        claims = self._all(claim, len(points), threads, stop)
        reporter.all_done()
        return claims

    def nothing_below(self, point: Floats, distance: float, limits: Limits) -> tuple[float, int, float] | None:
        """See `SearchSolver.nothing_below`."""
        claim = self.nearest_below(point, distance, limits)
        known = claim.stop is None and claim.point is None
        closed = known and (claim.lower == math.inf or self.tolerances.close(claim.lower, distance))
        return (claim.lower, claim.nodes, claim.seconds) if closed else None

    def nearest_below(self, point: Floats, distance: float, limits: Limits) -> Claim:
        """See `SearchSolver.nearest_below`."""
        packed, people = self.packed, self.costs.domains(np.array(point[None, :], dtype=np.float64))
        packed.kernels.prepare()
        reporter, cutoff = ProgressReporter(0, None), packed.cost(distance * ALMOST)
        search = ForestSearch(packed, packed.forest, people, 0, limits, reporter, threading.Event(), cutoff=cutoff)
        claim = search.claim()
        return replace(claim, lower=min(claim.lower, distance)) if claim.stop is not None else claim

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


__all__ = ["TREE_KERNELS", "ForestSolver"]
