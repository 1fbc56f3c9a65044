"""Certificates of questions that rounding is hard on; and of a floating point that cannot be trusted."""

from __future__ import annotations

import pytest

import ifonly
from certificate.far_problems import far_problem, tie_problem
from ifonly import Limits, check
from ifonly.certifying import leaves, prover
from ifonly.certifying.certifier import Certifier
from ifonly.methods import Tolerances

TOLERANCES = Tolerances()
LIMITS = Limits(seconds=600.0)
"""A hang is a failure."""
KNOWN = (96, 619, 691, 1856, 2153, 2522, 3126, 3281, 3448, 3757, 4343, 5141, 5619, 6143)
"""Ties whose certificates were once invalid: floating point took a ReLU to be off that the checker takes to be on."""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_what_is_written_is_valid(first):
    written = 0
    for seed in range(first, first + 20):
        question, point = far_problem(seed)
        checked = check(Certifier(question, TOLERANCES).proven(point, LIMITS))
        assert checked.valid, (seed, checked.failure)
        written += 1
    assert written == 20


@pytest.mark.long
@pytest.mark.parametrize("slack", [1e-13, 1e-9, 1e-5])
def test_a_larger_slack_closes_less_and_nothing_else(monkeypatch, slack):
    """What floating point closes does not hang on how small the slack is; and ties are where it would."""
    monkeypatch.setattr(leaves, "SLACK", slack)
    for seed in (*KNOWN, *range(60)):
        question, point = tie_problem(seed)
        checked = check(Certifier(question, TOLERANCES).proven(point, LIMITS))
        assert checked.valid, (seed, checked.failure)


def test_a_box_that_is_not_empty():
    """Over the whole ball a ReLU of the last hidden layer has the bounds [0, u] by intervals, so the checker looks for
    no better ones; floating point had -1e-11 in the place of the 0, found better ones, and called a box below empty.
    """
    question, point = tie_problem(13982)
    for verified in (False, None, True):
        assert check(Certifier(question, TOLERANCES, verified=verified).proven(point, LIMITS)).valid


@pytest.mark.long
@pytest.mark.parametrize("slack", [0.0, -1e-14])
def test_doubtful_leaves_are_verified(monkeypatch, slack):
    """A floating point that closes what is on the edge is caught, although only doubtful leaves are looked at."""
    monkeypatch.setattr(leaves, "SLACK", slack)
    monkeypatch.setattr(prover, "SMALL_TREE", 0)
    refused = 0
    for seed in (*KNOWN, 13982, *range(80, 100)):
        question, point = tie_problem(seed)
        believed, looked_at = (
            check(Certifier(question, TOLERANCES, verified=verified).proven(point, LIMITS))
            for verified in (False, None)
        )
        refused += not believed.valid
        assert looked_at.valid, (seed, looked_at.failure)
    assert refused > 0


@pytest.mark.long
def test_leaves_that_do_not_hold_are_closed_anew(monkeypatch):
    """A floating point that closes too much writes no false certificate, and a verified one is made anew."""
    refused = 0
    monkeypatch.setattr(leaves, "SLACK", -0.05)
    for seed in range(60):
        question, point = far_problem(seed)
        for verified in (False, True):
            try:
                certificate = Certifier(question, TOLERANCES, verified=verified).proven(point, LIMITS)
            except ifonly.UnsupportedQuestion as error:
                assert "could not be proven" in str(error)
                continue
            valid = check(certificate).valid
            refused += not valid
            assert valid or not verified
    assert refused > 0
