"""Certificates of questions that rounding is hard on; and what is written is checked before it is given out."""

from __future__ import annotations

import pytest

import ifonly
from certificate.far_problems import far_problem
from ifonly import Limits, Tolerances, check
from ifonly.certifying import leaves
from ifonly.certifying.certify import certify_question

TOLERANCES = Tolerances()


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_what_is_written_is_valid(first):
    written = 0
    for seed in range(first, first + 20):
        question, point = far_problem(seed)
        checked = check(certify_question(question, point, TOLERANCES, Limits(seconds=20.0)))
        assert checked.valid, (seed, checked.failure)
        written += 1
    assert written == 20


def test_leaves_that_do_not_hold_are_closed_anew(monkeypatch):
    """A floating point that closes too much writes no invalid certificate: what it closed is closed in exact arithmetic."""
    seen = []

    def noted(certificate):
        seen.append(check(certificate))
        return seen[-1]

    monkeypatch.setattr("ifonly.certifying.certify.check", noted)
    for seed in range(60):
        question, point = far_problem(seed)
        with monkeypatch.context() as patch:
            patch.setattr(leaves, "SLACK", -0.05)
            try:
                certificate = certify_question(question, point, TOLERANCES, Limits(seconds=20.0))
            except ifonly.UnsupportedQuestion as error:
                assert "could not be proven" in str(error)
                continue
            assert check(certificate).valid
    assert any(not checked.valid for checked in seen)
