"""The search against the enumerator on 1,000 finite questions and against the MIP on 1,000 mixed ones."""

import pytest
from comparison import answers, disagreements
from random_problems import random_problem

from benchmarks.asking.yardstick import BigM, available
from ifonly.methods import Enumerate
from ifonly.solvers.search import Search

CHUNK = 50
SEEDS = 1000


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("method", [Search(), Search(table_rows=0)], ids=["as it is", "without the table"])
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_search_agrees_with_the_enumerator(first, method):
    wrong = []
    for seed in range(first, first + CHUNK):
        question, points = random_problem(seed, finite=True)
        search = answers(question, points, method)
        found = disagreements(search, answers(question, points, Enumerate()))
        wrong += [f"random_problem({seed}, finite=True), {sentence}" for sentence in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_search_agrees_with_the_mip(first):
    wrong = []
    mip = BigM(backend="gurobi" if available("gurobi") else "highs", refine=True)
    for seed in range(first, first + CHUNK):
        question, points = random_problem(seed)
        search = answers(question, points, Search())
        found = disagreements(search, answers(question, points, mip), mip=True)
        wrong += [f"random_problem({seed}), {sentence}" for sentence in found]
    assert not wrong, "\n".join(wrong)
