"""The oracle itself: the MIP against the enumerator on finite questions, Gurobi against HiGHS on mixed ones."""

import pytest
from comparison import answers, disagreements
from random_problems import random_problem

from benchmarks.asking.yardstick import BigM, available
from ifonly.methods import Enumerate

BACKENDS = [backend for backend in ("gurobi", "highs") if available(backend)]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("ball", [False, True], ids=["box", "ball"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_mip_agrees_with_the_enumerator(first, backend, ball):
    count = 50 if backend == "gurobi" and not ball else 10
    for seed in range(first, first + count):
        question, points = random_problem(seed, finite=True)
        mip = answers(question, points, BigM(backend=backend, ball=ball))
        found = list(disagreements(answers(question, points, Enumerate()), mip, mip=True))
        assert not found, f"random_problem({seed}, finite=True): {found}"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_two_solvers_agree_on_mixed_questions(first):
    for seed in range(first, first + 20):
        question, points = random_problem(seed)
        one, other = (answers(question, points, BigM(backend=backend, refine=True)) for backend in ("gurobi", "highs"))
        found = list(disagreements(one, other, mip=True)) + list(disagreements(other, one, mip=True))
        assert not found, f"random_problem({seed}): {found}"
