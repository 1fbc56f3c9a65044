"""Real numbers with steps: the search agrees with the enumerator on 500 questions, and with as many under rules."""

import numpy as np
import pytest
from comparison import answers, disagreements
from random_problems import random_problem
from random_rules import random_ruled_problem

from ifonly import Binary, ClassTarget, Distance, Network, Real, Schema
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import Enumerate, MipObj
from ifonly.model import network_model
from ifonly.problem import Question
from ifonly.results import show
from ifonly.schema.decimals import written
from ifonly.solvers.search import Search

CHUNK = 50
SEEDS = 500


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("problem", [random_problem, random_ruled_problem], ids=["plain", "ruled"])
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_search_agrees_with_the_enumerator_on_grids(first, problem):
    wrong, off_grid = [], 0
    for seed in range(first, first + CHUNK):
        question, points = problem(seed, finite=True, steps=True)
        search = answers(question, points, Search())
        found = disagreements(search, answers(question, points, Enumerate()))
        wrong += [f"{problem.__name__}({seed}, finite=True, steps=True), {sentence}" for sentence in found]
        off_grid += sum(int((grid.nearest_to(points[:, g]) != points[:, g]).sum())
                        for g, grid in question.schema.grids.items())  # fmt: skip
    assert not wrong, "\n".join(wrong)
    assert off_grid > 10  # people whose own values are between the steps


@pytest.mark.long
def test_no_answer_has_more_digits_than_its_grid_needs():
    changed = 0
    for seed in range(SEEDS):
        question, points = random_problem(seed, finite=True, steps=True)
        for answer in answers(question, points, Search()):
            for change in answer.changes:
                grid = question.schema.grids.get(question.schema.index(change.feature))
                if grid is None:
                    continue
                changed += 1
                exact = grid.first + grid.nearest(change.after) * grid.by
                assert change.after == exact / grid.parts
                if 10_000 % grid.parts == 0:  # a decimal: exactly as it is written
                    assert written(change.after) * grid.parts == exact
                    needed = next(decimals for decimals in range(5) if 10**decimals % grid.parts == 0)
                    assert len(show(change.after).partition(".")[2]) <= needed
                assert show(change.after) in str(answer)
    assert changed > 300


def test_a_program_counts_steps_or_says_why_not():
    solved = refused = 0
    for seed in range(40):
        question, points = random_problem(seed, finite=True, steps=True)
        enumerated = answers(question, points, Enumerate())
        try:
            programmed = answers(question, points, MipObj())
        except UnsupportedQuestion as refusal:
            assert "needs values on the grid" in str(refusal) and "use the method 'search'" in str(refusal)
            refused += 1
            continue
        assert not list(disagreements(enumerated, programmed, mip=True)), seed
        solved += bool(question.schema.grids)
    assert solved > 5 and refused > 5


def test_far_from_zero_bounds_count_the_rounding_of_the_numbers():
    schema = Schema([Real("a", 1e9, 1e9 + 0.3, step="0.01"), Real("b", -1e8, -1e8 + 4, step="1/3"), Binary("c")])
    for seed in range(30):
        rng = np.random.default_rng(seed)
        weight = rng.normal(size=(4, 3)) * np.array([10.0, 1.0, 1.0])
        bias = rng.normal(size=4) - weight @ np.array([1e9 + 0.15, -1e8 + 2.0, 0.0])
        network = Network.of([(weight, bias), (rng.normal(size=(1, 4)), np.array([-0.3]))])
        points = schema.sample(3, rng)
        points[0, 0] = 1e9 + 0.123  # between two cents
        question = Question(model=network_model(network, schema), target=ClassTarget(1), distance=Distance("l2"))
        for ours, theirs in zip(
            answers(question, points, Search()), answers(question, points, Enumerate()), strict=True
        ):
            assert ours.lower <= theirs.upper and theirs.lower <= ours.upper
            assert ours.upper <= theirs.upper + 1e-6 or ours.stop is not None
