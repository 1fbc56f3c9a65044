"""The exact search for tree ensembles at work: packed once per question, then person by person on any number of
threads. Everything of importance happens in the kernels; between their slices the clock, the memory and the keyboard
are looked at.
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
from ifonly.model.trees import Trees
from ifonly.problem import Question
from ifonly.problem.lowering import costs_of
from ifonly.proof import Claim, Limits, Listener
from ifonly.search.herald import Herald
from ifonly.search.trees.cells import Cells
from ifonly.search.trees.forest_search import ForestSearch, PackedForest
from ifonly.search.trees.pack import by_luck, pack_forest
from ifonly.search.trees.ruled import RuledBoxes
from ifonly.search.trees.shared import shared_trees
from ifonly.search.trees.warm import TREE_KERNELS
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]

PLAIN_STEPS = 300_000
"""From the roots to all leaves of a forest: with more of them, preparing takes plain Python many seconds, and the
compiled kernels are waited for."""


class ForestSolver:
    """The search for trees, ready for one question; `shared`: what it has in common with those of other questions."""

    def __init__(self, question: Question, tolerances: Tolerances, *, kernels: Kernels = TREE_KERNELS) -> None:
        trees = question.model.function
        assert isinstance(trees, Trees)
        self.costs, depth = costs_of(question), trees.ensemble.depth
        kernels.prepare()
        if not kernels.compiled and len(trees.ensemble.values) * depth > PLAIN_STEPS:
            kernels.wait()
        shared = shared_trees(trees, kernels.now)
        cells, forest = Cells(self.costs, shared.cells), pack_forest(trees, self.costs, shared)
        rules = RuledBoxes(question, cells, tolerances) if forest.ruled else None
        self.asked = PackedForest(question, cells, forest, depth, by_luck(forest, question), rules, kernels)
        self.shared = shared.parts
        self.buffer_bytes = 0 if rules is None else rules.solver.buffer_bytes

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        people, herald, stop, asked = (
            self.costs.domains(points),
            Herald(len(points), listen),
            threading.Event(),
            self.asked,
        )

        asked.kernels.prepare()
        begun = time.perf_counter()

        def claim(i: int) -> Claim:
            asked.kernels.look(begun, math.inf if limits.seconds is None else time.perf_counter() + limits.seconds)
            done = ForestSearch(asked, asked.forest, people, i, limits, herald, stop).claim()
            if asked.by_luck is not None and done.lower == math.inf and done.stop is None:  # could luck make a row?
                search = ForestSearch(asked, asked.by_luck, people, i, limits, herald, stop, done.nodes, done.seconds)
                lucky = search.claim()
                done = replace(done, lower=lucky.lower, stop=lucky.stop, nodes=lucky.nodes, seconds=lucky.seconds)
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


__all__ = ["TREE_KERNELS", "ForestSolver"]
