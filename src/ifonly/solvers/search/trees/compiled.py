"""Compiled kernels of the branch and bound for trees; plain Python until they are compiled."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from ifonly.compiling import Kernels


def _functions() -> tuple[Mapping[str, Any], int]:
    from ifonly.solvers.search.trees.kernels import (
        greedy,
        limits,
        maximum,
        prices,
        pricing,
        regions,
        rules,
        search,
        table,
    )
    from ifonly.solvers.search.trees.kernels.layout import SOURCES

    return {
        "parents_of": limits.parents_of,
        "leaf_limits": limits.leaf_limits,
        "price_cells": pricing.price_cells,
        "fill_terms": rules.fill_terms,
        "narrow_values": rules.narrow_values,
        "some_point": greedy.some_point,
        "reach": table.reach,
        "build": table.build,
        "share": prices.share,
        "begin": search.begin,
        "advance": search.advance,
        "sums_at": search.sums_at,
        "list_regions": regions.list_regions,
        "merge_lists": regions.merge_lists,
        "begin_boxes": maximum.begin_boxes,
        "look_for_row": maximum.look_for_row,
    }, SOURCES


def _try_out(kernel: Any) -> None:
    """Ask about one number and one tree."""
    from ifonly.model import Model
    from ifonly.model.trees import Ensemble, LibraryTree, Summation, Trees
    from ifonly.problem import ClassTarget, Question
    from ifonly.results import Limits
    from ifonly.schema import Integer, Schema
    from ifonly.solvers.search.progress import ProgressReporter
    from ifonly.solvers.search.trees.first_row import FirstRow
    from ifonly.solvers.search.trees.forest_search import NOWHERE, ForestSearch
    from ifonly.solvers.search.trees.kernels.layout import BEST
    from ifonly.solvers.search.trees.open_boxes import OpenBox, everything, no_shares
    from ifonly.solvers.search.trees.solver import ForestSolver
    from ifonly.tolerances import DEFAULT

    number = Schema([Integer("x", 0, 1)])
    tree = LibraryTree(
        column=[0, -1, -1], threshold=[0.0] * 3, left=[1, 1, 2], right=[2, 1, 2], value=[0.0] * 3, adds_to=0
    )
    trees = Trees(Ensemble.of([tree], columns=1, summation=Summation.plain(1)), number)
    model = Model(function=trees, schema=number, original=trees.ensemble.scores, classes=(0, 1))
    ready: Any = SimpleNamespace(now=kernel, compiled=True, prepare=lambda: None, look=lambda *_: None)
    solver = ForestSolver(Question(model=model, target=ClassTarget(1)), DEFAULT, kernels=ready)
    people, quiet = solver.costs.domains(np.zeros((1, 1))), ProgressReporter(0, None)
    forest = solver.packed.forest
    search = ForestSearch(solver.packed, forest, people, 0, Limits(nodes=1), quiet, threading.Event())
    search.claim()
    search.state.number[BEST] = 2.0
    opened = search.opened(OpenBox(everything(forest), no_shares(forest), 1), 0.0)
    assert opened is not None
    kernel.advance(forest, opened.table, search.person, opened.stack, search.state, 1, NOWHERE, search.rules)
    kernel.sums_at(forest, opened.stack.near[0], np.zeros(len(forest.value)))
    _try_out_rules(kernel, solver, people)
    first = FirstRow(solver.packed, people, 0, Limits(nodes=1), quiet, threading.Event())
    first.claim()
    kernel.merge_lists(first.domain.choice, first.regions, first.regions, 4)


def _try_out_rules(kernel: Any, solver: Any, people: Any) -> None:
    from ifonly.solvers.search.trees.clauses import NO_RULES

    cells = solver.packed.cells.shared
    factual, lower, upper, allowed = (part[0] for part in (people.factual, people.lower, people.upper, people.allowed))
    columns, step = solver.costs.start, np.zeros(1)
    ends = np.stack([lower, upper])
    kernel.fill_terms(NO_RULES, factual, ends, allowed, step, cells.choice, cells.start, columns, cells.table)
    lower, upper, allowed = lower.copy(), upper.copy(), allowed.copy()
    kernel.narrow_values(NO_RULES, NO_RULES.constant, factual, step, cells.choice, columns, lower, upper, allowed)


def _vectorised() -> Mapping[Any, Any]:
    from ifonly.solvers.search.trees.vectorised import VECTORISED

    return VECTORISED


TREE_KERNELS = Kernels(
    "ifonly.solvers.search.trees.compiled:TREE_KERNELS", "the search for trees", _functions, _try_out, _vectorised
)
