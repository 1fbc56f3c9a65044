"""The clock inside a node: each alarm rings when it is due, for its own search, and never after it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from ifonly.solvers.search import deadline as deadline
from ifonly.solvers.search.deadline import Deadline, expire_all

HANG = 300.0
"""Seconds after which waiting is in vain, however busy the machine is."""


def flag() -> Any:
    return np.zeros(2, dtype=np.int64)


def rings_within(one: Deadline, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not one.expired and time.monotonic() < until:
        time.sleep(0.002)
    return one.expired


def test_it_rings_when_it_is_due_and_not_before() -> None:
    begun = time.monotonic()
    with Deadline(flag(), 0.15) as one:
        assert not one.expired
        assert rings_within(one, HANG)
        assert time.monotonic() - begun >= 0.15
    assert not one.expired


def test_the_earlier_one_rings_first_though_it_is_set_later() -> None:
    with Deadline(flag(), HANG) as late, Deadline(flag(), 0.1) as soon, Deadline(flag(), None) as never:
        assert rings_within(soon, HANG)
        assert not late.expired and not never.expired


def test_it_does_not_ring_for_the_next_person() -> None:
    same = flag()
    for _ in range(200):
        with Deadline(same, 0.01):
            pass
    with Deadline(same, HANG) as one:
        assert not rings_within(one, 0.1)


def test_one_thread_serves_all_and_ends_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def clocks() -> int:
        return sum(thread.name == "ifonly-clock" for thread in threading.enumerate())

    monkeypatch.setattr(deadline, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(deadline, "_CLOCK", deadline._Clock())
    before = clocks()
    with Deadline(flag(), 0.05) as one, Deadline(flag(), 0.1) as other:
        assert clocks() == before + 1
        assert rings_within(one, HANG) and rings_within(other, HANG)
    until = time.monotonic() + HANG
    while clocks() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert clocks() == before
    with Deadline(flag(), 0.01) as again:
        assert rings_within(again, HANG)


def test_all_can_be_rung_at_once() -> None:
    with Deadline(flag(), HANG) as one, Deadline(flag(), None) as other:
        expire_all()
        assert one.expired and other.expired


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_has_a_clock_of_its_own() -> None:
    with Deadline(flag(), 30.0):
        child = os.fork()
        if child == 0:  # pragma: no cover
            with Deadline(flag(), 0.05) as one:
                os._exit(0 if rings_within(one, HANG) else 1)
        assert os.waitpid(child, 0)[1] == 0
