"""The search that probes ReLUs from its first node on, whatever the features: against the enumerator, and itself.

Finite spaces: 1,000 questions without rules and 1,000 with rules, and 300 over grids with rules. Networks with smooth activations
are in `test_smooth`.
"""

from collections import Counter

import pytest
from comparison import answers, disagreements
from random_problems import random_problem
from random_rules import random_ruled_problem

from ifonly.methods import Enumerate
from ifonly.solvers.search import Search

CHUNK = 50
SEEDS = 1000
GRIDS = 300
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


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, GRIDS, CHUNK))
def test_probing_agrees_with_the_enumerator_over_grids(first):
    """Real numbers in steps, people off their grids, and rules about both."""
    wrong = []
    for seed in range(first, first + CHUNK):
        question, points = random_ruled_problem(seed, finite=True, steps=True)
        found = disagreements(answers(question, points, PROBING), answers(question, points, Enumerate()))
        wrong += [f"random_ruled_problem({seed}, finite=True, steps=True), {sentence}" for sentence in found]
    assert not wrong, "\n".join(wrong)


def test_all_kinds_are_among_the_questions():
    """Every distance with every kind of target and constraint, at least ten times among the first 600."""
    counts = Counter()
    for seed in range(300):
        for make in (random_problem, random_ruled_problem):
            question, _ = make(seed, finite=True)
            distance, conditions = question.distance, len(question.conditions[1])
            norm = distance.norm if isinstance(distance.norm, str) else "mixture"
            found = {
                "one condition": conditions == 1,
                "several conditions": conditions > 1,
                "rules": bool(question.rules),
                "constraints of features": bool(question.by_feature),
                "costs by direction": bool(distance.up or distance.down),
                "weights": bool(distance.weights),
            }
            counts.update((str(norm), kind) for kind, there in found.items() if there)
    assert len({norm for norm, _ in counts}) == 5
    assert min(counts.values()) >= 10, counts
    assert len(counts) == 5 * 6
