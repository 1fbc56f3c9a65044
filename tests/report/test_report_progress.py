"""The progress bar: only on terminals, only when it lasts, and always gone at the end."""

from __future__ import annotations

import io
import math
import threading
import time

import pytest

from ifonly.proof import Progress
from ifonly.report import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_kind(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def wait_for(stream: io.StringIO, words: str) -> None:
    until = time.monotonic() + 10
    while words not in stream.getvalue() and time.monotonic() < until:
        time.sleep(0.01)
    assert words in stream.getvalue()


def test_it_appears_on_a_terminal_and_counts():
    stream = Terminal()
    with progress(50, stream=stream, delay=0.0) as bar:
        wait_for(stream, "explaining")
        bar(Progress(finished=3, people=10, nodes=1234, lower=0.25, upper=0.5))
        assert bar.finished == 3
        wait_for(stream, "3/50")
        wait_for(stream, "1,234 nodes, between 0.25 and 0.5")
        bar.settle(10)
        bar(Progress(finished=2, people=10, nodes=1, lower=0.1, upper=math.inf))
        assert bar.finished == 12
        wait_for(stream, "between 0.1 and ?")


def test_without_a_total_the_events_give_it():
    stream = Terminal()
    with progress(stream=stream, delay=0.0) as bar:
        bar(Progress(finished=1, people=7))
        wait_for(stream, "1/7")


def test_quick_work_shows_nothing():
    stream = Terminal()
    with progress(5, stream=stream, delay=60.0) as bar:
        bar(Progress(finished=5, people=5))
    assert stream.getvalue() == ""
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer) and not t.finished.is_set()]


def test_a_pipe_shows_nothing():
    stream = io.StringIO()
    with progress(5, stream=stream, delay=0.0) as bar:
        bar(Progress(finished=1, people=5))
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_an_error_passes_through():
    with pytest.raises(KeyboardInterrupt), progress(5, stream=Terminal(), delay=0.0):
        raise KeyboardInterrupt
