"""Questions with rules: search, MIP and enumerator agree. (`python -m benchmarks agreement rules` asks a thousand.)"""

from __future__ import annotations

import pytest
from comparison import answers, disagreements
from random_rules import random_ruled_problem

from ifonly import Enumerate, MipObjective, Search


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_finite_spaces(first: int) -> None:
    told = []
    for seed in range(first, first + 50):
        question, points = random_ruled_problem(seed, finite=True)
        ours, every = answers(question, points, Search()), answers(question, points, Enumerate())
        told += [f"seed {seed}, {said}" for said in disagreements(ours, every)]
        if seed % 5 == 0:
            told += [
                f"seed {seed}, {said}"
                for said in disagreements(every, answers(question, points, MipObjective()), mip=True)
            ]
    assert not told, "\n".join(told)


def test_a_false_infeasible_is_not_believed() -> None:
    """HiGHS 1.15, with presolve, calls the program of this question's first person infeasible."""
    question, points = random_ruled_problem(532, finite=True)
    told = list(
        disagreements(answers(question, points, Enumerate()), answers(question, points, MipObjective()), mip=True)
    )
    assert not told, "\n".join(told)


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_mixed_spaces(first: int) -> None:
    told = []
    for seed in range(first, first + 30):
        question, points = random_ruled_problem(seed)
        ours, theirs = answers(question, points, Search()), answers(question, points, MipObjective())
        told += [f"seed {seed}, {said}" for said in disagreements(ours, theirs, mip=True)]
    assert not told, "\n".join(told)
