"""The search that probes ReLUs from its first node on, whatever the features: against the enumerator, and itself."""

import pytest
from comparison import answers, disagreements
from random_problems import random_problem
from random_rules import random_ruled_problem

from ifonly.methods import Enumerate
from ifonly.solvers.search import Search

CHUNK = 50
SEEDS = 1000
PROBING = Search(table_rows=0, probing="always")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_probing_agrees_with_the_enumerator(first):
    wrong = []
    for seed in range(first, first + CHUNK):
        question, points = random_problem(seed, finite=True)
        found = disagreements(answers(question, points, PROBING), answers(question, points, Enumerate()))
        wrong += [f"random_problem({seed}, finite=True), {sentence}" for sentence in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_probing_agrees_with_the_enumerator_under_rules(first):
    wrong = []
    for seed in range(first, first + CHUNK):
        question, points = random_ruled_problem(seed, finite=True)
        found = disagreements(answers(question, points, PROBING), answers(question, points, Enumerate()))
        wrong += [f"random_ruled_problem({seed}, finite=True), {sentence}" for sentence in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_probing_agrees_with_the_search_that_does_not(first):
    """Real and mixed features, which cannot be enumerated."""
    wrong = []
    for seed in range(first, first + CHUNK):
        question, points = random_problem(seed)
        plain = answers(question, points, Search(table_rows=0, probing="never"))
        found = disagreements(answers(question, points, PROBING), plain)
        wrong += [f"random_problem({seed}), {sentence}" for sentence in found]
    assert not wrong, "\n".join(wrong)
