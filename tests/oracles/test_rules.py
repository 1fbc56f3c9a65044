"""Questions with rules: search, MIP and enumerator agree. (`python -m benchmarks agreement rules` asks a thousand.)"""

from __future__ import annotations

from dataclasses import replace

import pytest
from comparison import answers, disagreements
from random_problems import random_problem
from random_rules import random_ruled_problem

from ifonly import Distance, Range
from ifonly.methods import Enumerate, MipObj, Search
from ifonly.problem.distance_rules import AtLeastFar


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_finite_spaces(first: int) -> None:
    told = []
    for seed in range(first, first + 50):
        question, points = random_ruled_problem(seed, finite=True)
        ours, every = answers(question, points, Search()), answers(question, points, Enumerate())
        told += [f"seed {seed}, {said}" for said in disagreements(ours, every)]
        if seed % 5 == 0:
            told += [
                f"seed {seed}, {said}" for said in disagreements(every, answers(question, points, MipObj()), mip=True)
            ]
    assert not told, "\n".join(told)


def test_a_false_infeasible_is_not_believed() -> None:
    """HiGHS 1.15, with presolve, calls the program of this question's first person infeasible."""
    question, points = random_ruled_problem(532, finite=True)
    told = list(disagreements(answers(question, points, Enumerate()), answers(question, points, MipObj()), mip=True))
    assert not told, "\n".join(told)


def test_a_hinge_at_the_persons_own_value() -> None:
    """|x - own value| has its corner where the person is: a split there leaves rows that are 0 whatever changes."""
    question, points = random_problem(24)
    own = AtLeastFar(point=tuple(points[0].tolist()), at_least=0.05, distance=Distance("l1"))
    boxed = replace(question, constraints=(*question.constraints, own, Range("f2", -3.0390491426662956, -1.9693687)))
    ours, theirs = answers(boxed, points[:1], Search()), answers(boxed, points[:1], MipObj())
    assert ours[0].status == theirs[0].status == "nearest"
    assert ours[0].upper == pytest.approx(theirs[0].upper, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 60, 30))
def test_mixed_spaces(first: int) -> None:
    told = []
    for seed in range(first, first + 30):
        question, points = random_ruled_problem(seed)
        ours, theirs = answers(question, points, Search()), answers(question, points, MipObj())
        told += [f"seed {seed}, {said}" for said in disagreements(ours, theirs, mip=True)]
    assert not told, "\n".join(told)
