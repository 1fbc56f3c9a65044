"""The exact search for tree ensembles at work: packed once per question, then person by person on any number of
threads. Everything of importance happens in the kernels; between their slices the clock, the memory and the keyboard
are looked at.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.compiling import Kernels
from ifonly.model import Model
from ifonly.model.trees import Ensemble, LibraryTree, Summation, Trees
from ifonly.problem import ClassTarget, Question
from ifonly.problem.lowering import costs_of
from ifonly.proof import Claim, Limits, Listener
from ifonly.schema import Integer, Schema
from ifonly.search.herald import Herald
from ifonly.search.trees.cells import Cells
from ifonly.search.trees.forest_search import NOWHERE, ForestSearch, PackedForest
from ifonly.search.trees.kernels.greedy import some_point
from ifonly.search.trees.kernels.layout import BEST, SOURCES
from ifonly.search.trees.kernels.prices import share
from ifonly.search.trees.kernels.search import advance, begin
from ifonly.search.trees.kernels.table import build
from ifonly.search.trees.pack import by_luck, pack_forest
from ifonly.search.trees.ruled import RuledBoxes
from ifonly.search.trees.shared import shared_trees
from ifonly.tolerances import DEFAULT, Tolerances

Floats = NDArray[np.float64]


class ForestSolver:
    """The search for trees, ready for one question; `shared`: what it has in common with those of other questions."""

    def __init__(self, question: Question, tolerances: Tolerances, *, load: bool = True) -> None:
        trees = question.model.function
        assert isinstance(trees, Trees)
        self.costs = costs_of(question)
        shared = shared_trees(trees)
        cells, forest = Cells(self.costs, shared.cells), pack_forest(trees, self.costs, shared)
        if load:
            TREE_KERNELS.load()
        rules = RuledBoxes(question, cells, tolerances) if forest.ruled else None
        depth, lucky = trees.ensemble.depth, by_luck(forest, question)
        self.asked = PackedForest(question, cells, forest, depth, lucky, rules)
        self.shared = shared.parts
        self.buffer_bytes = 0 if rules is None else rules.solver.buffer_bytes

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        people, herald, stop, asked = (
            self.costs.domains(points),
            Herald(len(points), listen),
            threading.Event(),
            self.asked,
        )

        def claim(i: int) -> Claim:
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


def _functions() -> tuple[Mapping[str, Any], int]:
    return {"some_point": some_point, "build": build, "share": share, "begin": begin, "advance": advance}, SOURCES


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
    forest = solver.asked.forest
    search = ForestSearch(solver.asked, forest, people, 0, Limits(nodes=1), quiet, threading.Event())
    search.claim()
    search.state.number[BEST] = 2.0
    opened = search.opened(search.everything(), 0.0, 1)
    assert opened is not None
    advance(forest, opened[0], search.person, opened[1], search.state, 1, NOWHERE)


TREE_KERNELS = Kernels("ifonly.search.trees.solver:TREE_KERNELS", "the search for trees", _functions, _try_out)
"""Compiled before the first question to trees: plain Python would take too long for most of them."""
