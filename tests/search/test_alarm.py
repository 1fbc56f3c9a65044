"""The clock inside a node: each alarm rings when it is due, for its own search, and never after it."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from ifonly.search import alarm
from ifonly.search.alarm import Alarm, ring_all


def flag() -> np.ndarray:
    return np.zeros(2, dtype=np.int64)


def rings_within(one: Alarm, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not one.rung and time.monotonic() < until:
        time.sleep(0.002)
    return one.rung


def test_it_rings_when_it_is_due_and_not_before() -> None:
    begun = time.monotonic()
    with Alarm(flag(), 0.15) as one:
        assert not one.rung
        assert rings_within(one, 5.0)
        assert time.monotonic() - begun >= 0.15
    assert not one.rung


def test_the_earlier_one_rings_first_though_it_is_set_later() -> None:
    with Alarm(flag(), 30.0) as late, Alarm(flag(), 0.1) as soon, Alarm(flag(), None) as never:
        assert rings_within(soon, 5.0)
        assert not late.rung and not never.rung


def test_it_does_not_ring_for_the_next_person() -> None:
    same = flag()
    for _ in range(200):
        with Alarm(same, 0.01):
            pass
    with Alarm(same, 30.0) as one:
        assert not rings_within(one, 0.1)


def test_one_thread_serves_all_and_ends_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def clocks() -> int:
        return sum(thread.name == "ifonly-clock" for thread in threading.enumerate())

    monkeypatch.setattr(alarm, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(alarm, "_CLOCK", alarm._Clock())
    before = clocks()
    with Alarm(flag(), 0.05) as one, Alarm(flag(), 0.1) as other:
        assert clocks() == before + 1
        assert rings_within(one, 5.0) and rings_within(other, 5.0)
    until = time.monotonic() + 5.0
    while clocks() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert clocks() == before
    with Alarm(flag(), 0.01) as again:
        assert rings_within(again, 5.0)


def test_all_can_be_rung_at_once() -> None:
    with Alarm(flag(), 30.0) as one, Alarm(flag(), None) as other:
        ring_all()
        assert one.rung and other.rung


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_has_a_clock_of_its_own() -> None:
    with Alarm(flag(), 30.0):
        child = os.fork()
        if child == 0:  # pragma: no cover
            with Alarm(flag(), 0.05) as one:
                os._exit(0 if rings_within(one, 5.0) else 1)
        assert os.waitpid(child, 0)[1] == 0
