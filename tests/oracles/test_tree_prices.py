"""Priced boxes of cells against every cell: bounds hold, parts begin with the bound of their box, halves make it up."""

from __future__ import annotations

import itertools
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from random_problems import Rng
from random_trees import _tree, random_tree_problem

from ifonly.model import Model
from ifonly.model.trees import Ensemble, Summation, Trees
from ifonly.problem import ClassTarget, Distance, Question
from ifonly.results import Limits
from ifonly.schema import Categorical, Real, Schema
from ifonly.solvers.search import Search
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.trees.forest_search import ForestSearch
from ifonly.solvers.search.trees.kernels.branching import PART, SELDOM, where_to_split
from ifonly.solvers.search.trees.kernels.layout import BEST, FREE
from ifonly.solvers.search.trees.open_boxes import Box, OpenBox, everything, halves, no_shares


def search_of(rng: Rng, norm: str, *, options: int = 0) -> ForestSearch:
    """The search of a person to whom most rows are out of reach, not begun; with a choice if it has options."""
    features: list = [Real(f"x{i}", 0.0, 1.0) for i in range(4)]
    if options:
        features.append(Categorical("c", [f"o{i}" for i in range(options)]))
    schema = Schema(features)
    points = schema.sample(1, rng)
    trees = [_tree(rng, schema, points, False, 1, 0) for _ in range(14)]
    ensemble = Ensemble.of(trees, columns=len(schema), summation=Summation(start=np.zeros(1), shift=np.zeros(1)))
    sets = np.zeros((len(ensemble.sets), options), dtype=bool)
    sets[:, : ensemble.sets.shape[1]] = ensemble.sets[:, :options]
    scores = Trees(replace(ensemble, sets=sets), schema).ensemble.scores(schema.sample(300, rng))[:, 0]
    shifted = Summation(start=np.zeros(1), shift=np.array([-float(np.quantile(scores, 0.95))]))
    function = Trees(replace(ensemble, sets=sets, summation=shifted), schema)
    model = Model(function=function, schema=schema, original=function.ensemble.scores, classes=("no", "yes"))
    question = Question(model=model, target=ClassTarget("yes"), distance=Distance(norm))
    solver = Search(table_rows=0).prepare(question)
    people, limits = solver.costs.domains(points), Limits(nodes=1)
    search = ForestSearch(
        solver.packed, solver.packed.forest, people, 0, limits, ProgressReporter(0, None), threading.Event()
    )
    search.claim()
    search.boxes, search.limits = [], Limits()
    return search


def rows_of(search: ForestSearch) -> tuple[np.ndarray, np.ndarray]:
    """Every row of cells, and what the favourable ones cost; infinity for all others."""
    forest, person, question = search.forest, search.person, search.packed.question
    cells = np.array(list(itertools.product(*(range(count) for count in np.diff(forest.start)))))
    at = forest.start[:-1] + cells
    cost, (c, d) = person.cost[FREE, at].sum(axis=1), question.conditions
    scores = question.model.exact_scores(person.value[FREE, at])
    good = (scores @ c.T - d >= question.target.margin + question.error).all(axis=1)
    return cells, np.where(good, cost, math.inf)


def inside(box: Box, cells: np.ndarray, choice: np.ndarray) -> np.ndarray:
    least, most, left, _ = box
    held = ((cells >= least) & (cells <= most)).all(axis=1)
    for g in np.flatnonzero(choice):
        held &= (left[g, cells[:, g] >> 6] >> (cells[:, g] & 63).astype(np.uint64)) & np.uint64(1) != 0
    return held


def copied(box: Box) -> Box:
    least, most, left, must = box
    return least.copy(), most.copy(), left.copy(), must.copy()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_parts_begin_with_the_bound_of_their_box_and_no_row_costs_less(norm: str) -> None:
    """Down to small boxes, split at random and where prices tell; with one round, parts are as good as their box."""
    parts = risen = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 3])
        search = search_of(rng, norm)
        cells, cost = rows_of(search)
        nearest, choice = float(cost.min()), search.forest.choice
        if not 0.0 < nearest < math.inf:
            continue
        search.state.number[BEST] = cutoff = 1.2 * nearest
        waiting = [(OpenBox(everything(search.forest), no_shares(search.forest), 60), 0.0)]
        for _ in range(25):
            if not waiting:
                break
            part, least = waiting.pop(int(rng.integers(len(waiting))))
            held = cost[inside(part.box, cells, choice)].min(initial=math.inf)
            opened = search.opened(OpenBox(copied(part.box), part.shares, part.rounds), 0.0)
            if opened is None:
                assert held >= cutoff * (1.0 - 1e-9)
                continue
            assert opened.bound <= held * (1.0 + 1e-9)
            parts += 1
            if part.rounds == 1:
                assert opened.bound >= least * (1.0 - 1e-9) - 1e-12
                risen += opened.bound > least * (1.0 + 1e-6)
            split = opened.split
            if rng.random() < 0.5:
                wide = np.flatnonzero(part.box[1] > part.box[0])
                if not len(wide):
                    continue
                g = int(rng.choice(wide))
                split = g, int(rng.integers(part.box[0][g] + 1, part.box[1][g] + 1))
            if split[0] < 0:
                continue
            rounds = 1 if rng.random() < 0.5 else 20
            both = halves(search.forest, part.box, split)
            waiting += [(OpenBox(half, opened.shares, rounds), opened.bound) for half in both]
    assert parts > 60 and risen > 10


def test_halves_make_up_the_box() -> None:
    for seed in range(8):
        rng = np.random.default_rng([seed, 4])
        search = search_of(rng, "l1", options=5)
        forest, (cells, _) = search.forest, rows_of(search)
        box = everything(forest)
        for g in np.flatnonzero(np.diff(forest.start) > 1).tolist():
            split = g, int(rng.integers(1, forest.start[g + 1] - forest.start[g]))
            one, other = (inside(half, cells, forest.choice) for half in halves(forest, box, split))
            assert (one | other).all() and not (one & other).any() and one.any() and other.any()


@njit
def _split_of(forest, person, ball, near, rate):
    return where_to_split(forest, person, ball, near, rate)


def split_reference(search: ForestSearch, box: Box, near: np.ndarray, rate: np.ndarray) -> tuple[float, dict]:
    """The best score, and the score of every split that the rates give a reason for."""
    forest, cost, scores = search.forest, search.person.cost[FREE], {}
    for g in range(len(near)):
        first, own = forest.start[g], cost[forest.start[g] + near[g]]
        if forest.choice[g]:
            for k in range(forest.start[g + 1] - first):
                often = rate[first + k]
                if k != near[g] and often >= SELDOM and (box[2][g, 0] >> np.uint64(k)) & np.uint64(1):
                    scores[g, k] = often * (cost[first + k] - own) * (1.0 - min(often, 1.0 - SELDOM))
            continue
        for up in (True, False):
            way = np.arange(near[g] + 1, box[1][g] + 1) if up else np.arange(near[g] - 1, box[0][g] - 1, -1)
            if not len(way) or rate[first + way[0]] < SELDOM:
                continue
            often, price = rate[first + way[0]], cost[first + way] - own
            known = np.maximum.accumulate(np.where(price < math.inf, price, 0.0))
            expected = float(np.diff(known, prepend=0.0) @ rate[first + way])
            enough = np.append(np.flatnonzero(price >= PART * expected / often), len(way) - 1)
            k = way[enough[0]]
            scores[g, int(k if up else k + 1)] = expected * (1.0 - min(often, 1.0 - SELDOM))
    return max(scores.values(), default=0.0), scores


@pytest.mark.long
def test_a_box_is_split_at_the_dearest_move_that_is_made_in_part() -> None:
    """Against plain numpy, with random rates; without any, where most cells are left."""
    several = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        search = search_of(rng, "l1", options=4)
        forest, box = search.forest, everything(search.forest)
        near = search.person.own.astype(np.int32)
        rate = np.where(rng.random(int(forest.start[-1])) < 0.3, 0.0, rng.random(int(forest.start[-1])))
        best, scores = split_reference(search, box, near, rate)
        found = _split_of(forest, search.person, box[:3], near, rate)
        assert scores[found] == pytest.approx(best)
        several += len(scores) > 1
        g, cell = _split_of(forest, search.person, box[:3], near, np.zeros_like(rate))
        assert forest.start[g + 1] - forest.start[g] == np.diff(forest.start).max()
        assert cell != near[g] if forest.choice[g] else 0 < cell < forest.start[g + 1] - forest.start[g]
    assert several > 20


def test_questions_of_every_kind_are_priced() -> None:
    """Choices, steps, several conditions, maxima: bounds of everything, with few rounds and none of them, hold."""
    priced = 0
    for seed in range(300, 340):
        question, points = random_tree_problem(seed)
        solver = Search(table_rows=0).prepare(question)
        if solver.packed.forest.ruled:
            continue
        (claim,) = solver.solve(points[:1], Limits())
        if claim.point is None or claim.lower == 0.0:
            continue
        people = solver.costs.domains(points[:1])
        search = ForestSearch(
            solver.packed,
            solver.packed.forest,
            people,
            0,
            Limits(nodes=1),
            ProgressReporter(0, None),
            threading.Event(),
        )
        search.claim()
        search.boxes, search.limits = [], Limits()
        search.state.number[BEST] = 2.0 * solver.packed.cost(claim.lower)
        for rounds in (1, 5, 50):
            opened = search.opened(OpenBox(everything(search.forest), no_shares(search.forest), rounds), 0.0)
            assert opened is not None
            assert opened.bound <= solver.packed.cost(claim.lower) * (1.0 + 1e-9)
            priced += 1
    assert priced > 20
