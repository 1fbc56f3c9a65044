"""The search for tree ensembles against every row, and against every value at which anything changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparison import LIMITS, answers, disagreements
from random_trees import nearest_by_cells, random_tree_problem

from ifonly.problem import Question
from ifonly.results import Claim, check_witnesses
from ifonly.solvers.search import Enumerate, Search
from ifonly.solvers.search.trees import forest_search

SEARCH = Search(table_rows=0)


def wrong(question: Question, factual: np.ndarray, claim: Claim) -> str:
    """What is wrong with a claim; empty when nothing is."""
    nearest = nearest_by_cells(question, factual)
    if nearest is None:
        return ""
    if claim.stop is not None:
        return f"stopped by {claim.stop}"
    if claim.point is None:
        lower_any_rounding = nearest_by_cells(question, factual, any_rounding_forest=True)
        assert lower_any_rounding is not None
        right = nearest == math.inf and (
            claim.lower == math.inf if lower_any_rounding == math.inf else claim.lower <= lower_any_rounding
        )
        return "" if right else f"nothing found, lower {claim.lower}, nearest {nearest}, by luck {lower_any_rounding}"
    witnesses = check_witnesses(question, factual[None, :], claim.point[None, :])
    if witnesses.rejected:
        return witnesses.rejected[0]
    (distance,) = witnesses.distances.tolist()
    meets = claim.lower <= nearest * (1 + 1e-9) and claim.lower >= nearest * (1 - 1e-9)
    return "" if meets and math.isclose(distance, nearest) else f"{claim.lower}, {distance}, {nearest}"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("block", range(6))
def test_finds_the_nearest_of_all_cells(block: int) -> None:
    for seed in range(25 * block, 25 * (block + 1)):
        question, points = random_tree_problem(seed)
        for factual, claim in zip(points, SEARCH.prepare(question).solve(points, LIMITS), strict=True):
            assert not wrong(question, factual, claim), f"seed {seed}"


@pytest.mark.parametrize("block", range(4))
def test_agrees_with_the_enumerator_under_rules(block: int) -> None:
    for seed in range(10 * block, 10 * (block + 1)):
        question, points = random_tree_problem(seed, finite=True, ruled=True)
        ours, theirs = answers(question, points, SEARCH), answers(question, points, Enumerate())
        assert not list(disagreements(ours, theirs)), f"seed {seed}"


@pytest.mark.long
@pytest.mark.parametrize("block", range(3))
def test_prices_change_no_answer(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With prices from the second node on, and boxes that are split or handed over after a few, nearest rows are the
    same.
    """
    few = {"PLAIN_NODES": 1, "PRICED_NODES": 1 + block, "HANDED_NODES": 4, "FIRST_ROUNDS": 20, "ROUNDS": 8}
    for name, value in few.items():
        monkeypatch.setattr(forest_search, name, value)
    split = []
    halves = forest_search.halves
    monkeypatch.setattr(forest_search, "halves", lambda *asked: split.append(1) or halves(*asked))
    for seed in range(200 + 40 * block, 200 + 40 * (block + 1)):
        question, points = random_tree_problem(seed)
        for factual, claim in zip(points, SEARCH.prepare(question).solve(points, LIMITS), strict=True):
            assert not wrong(question, factual, claim), f"seed {seed}"
    assert len(split) > 5
    for seed in range(10 * block, 10 * (block + 1)):
        question, points = random_tree_problem(seed, finite=True, ruled=True)
        ours, theirs = answers(question, points, SEARCH), answers(question, points, Enumerate())
        assert not list(disagreements(ours, theirs)), f"seed {seed}"


def test_the_questions_are_not_all_alike() -> None:
    """Rows are found and not found, at distance 0 and beyond; conditions are one or several."""
    kinds = set()
    for seed in range(60):
        question, points = random_tree_problem(seed)
        nearest = nearest_by_cells(question, points[0])
        kinds.add((len(question.conditions[1]) > 1, nearest == 0.0, nearest == math.inf))
    assert len(kinds) == 6
