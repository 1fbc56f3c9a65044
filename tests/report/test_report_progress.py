"""The progress bar: only where somebody looks, only when it lasts, and always closed at the end."""

from __future__ import annotations

import io
import math
import sys
import threading
import time
import types
from typing import Any

import numpy as np
import pytest
import rich.progress  # noqa: F401  not while the clock runs

from ifonly import Explainer, Limits, Network, Real, Schema, datasets
from ifonly import progress as waiting
from ifonly.model import network_model
from ifonly.report import progress
from ifonly.results import Progress
from ifonly.solvers.search.deadline import expire_all


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_kind(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def wait_for(stream: io.StringIO, words: str) -> None:
    until = time.monotonic() + 300
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


# ---------------------------------------------------------------------------------------------- where nobody listens


class EndsTheSearch(Terminal):
    """A terminal on which a search is seen, and ended: nobody waits for the rest of it."""

    def write(self, text: str) -> int:
        if " nodes, between " in text:
            expire_all()
        return super().write(text)


def hard() -> tuple[Explainer, Any]:
    """Minutes of work: from 0, all corners are as good, and all must be ruled out."""
    count = 14
    schema = Schema([Real(f"x{i}", -1, 1) for i in range(count)])
    both = np.concatenate([np.eye(count), -np.eye(count)])
    network = Network.of([(both, np.zeros(2 * count)), (np.ones((1, 2 * count)), [-0.5 * count])])
    return Explainer(network_model(network, schema)), schema.row(np.zeros(count))


def test_an_explainer_on_a_terminal_shows_how_far_it_is(monkeypatch):
    explainer, row = hard()
    stream = EndsTheSearch()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(waiting, "DEFAULT_DELAY_SECONDS", 0.1)
    explainer.explain(row, distance="l2", limits=Limits(seconds=300.0))
    assert "explaining" in stream.getvalue() and " nodes, between " in stream.getvalue()
    assert not waiting._ON_SCREEN.locked()
    seen = len(stream.getvalue())
    explainer.using(listen=lambda event: None).explain(row, distance="l2", limits=Limits(seconds=0.5))
    assert len(stream.getvalue()) == seen  # somebody else listens


def test_an_explainer_elsewhere_is_quiet(monkeypatch):
    explainer, row = hard()
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(waiting, "DEFAULT_DELAY_SECONDS", 0.0)
    explainer.explain(row, distance="l2", limits=Limits(seconds=0.5))
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    explainer.explain(row, distance="l2", limits=Limits(seconds=0.3))
    assert stream.getvalue() == ""


def test_a_quick_answer_starts_no_thread(monkeypatch):
    started = []
    monkeypatch.setattr(waiting.threading, "Timer", lambda *arguments: started.append(arguments))
    monkeypatch.setattr(sys, "stderr", Terminal())
    data, explainer = datasets.load("credit", rules=False), Explainer(datasets.network("credit", rules=False))
    explainer.explain(data.row(51))
    assert started == []


def test_one_bar_at_a_time():
    first, second = Terminal(), Terminal()
    with progress(5, stream=first, delay=0.0):
        wait_for(first, "explaining")
        with progress(5, stream=second, delay=0.0):
            time.sleep(0.2)
    assert second.getvalue() == ""
    with progress(5, stream=second, delay=0.0):
        wait_for(second, "explaining")


# ---------------------------------------------------------------------------------------------- in a notebook


class Cell:
    """What a notebook's cell shows, and IPython as far as a bar knows it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kernel: object) -> None:
        self.shown: list[dict[str, str]] = []
        module, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        module.get_ipython = lambda: types.SimpleNamespace(kernel=kernel)  # type: ignore[attr-defined]
        display.display = self.display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, drawing: dict[str, str], *, raw: bool, display_id: bool) -> Cell:
        assert raw and display_id
        self.shown.append(drawing)
        return self

    def update(self, drawing: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(drawing)
        if " nodes, between " in drawing["text/plain"]:
            expire_all()  # a search that is seen is ended


def test_a_cell_shows_how_far_it_is_and_what_it_took(monkeypatch):
    cell = Cell(monkeypatch, kernel=object())
    monkeypatch.setattr(waiting, "REDRAW_SECONDS", 0.0)
    with progress(4, stream=io.StringIO(), delay=0.0) as bar:
        for _ in range(30_000):
            if cell.shown:
                break
            time.sleep(0.01)
        bar(Progress(finished=1, people=4, nodes=1000, lower=0.25, upper=0.5))
        bar(Progress(finished=4, people=4))
    assert [drawing["text/plain"].split(" in ")[0] for drawing in cell.shown] == [
        "explained 0/4", "explained 1/4", "explained 4/4", "explained 4/4",
    ]  # fmt: skip
    assert "left, 1,000 nodes, between 0.25 and 0.5" in cell.shown[1]["text/plain"]
    assert '<progress value="1" max="4"' in cell.shown[1]["text/html"]
    assert "<progress" not in cell.shown[-1]["text/html"] and "left" not in cell.shown[-1]["text/plain"]
    assert not waiting._ON_SCREEN.locked()


def test_an_explainer_in_a_notebook_shows_it_by_itself(monkeypatch):
    explainer, row = hard()
    cell = Cell(monkeypatch, kernel=object())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(waiting, "DEFAULT_DELAY_SECONDS", 0.1)
    explainer.explain(row, distance="l2", limits=Limits(seconds=300.0))
    assert any(" nodes, between " in drawing["text/plain"] for drawing in cell.shown)


def test_ipython_without_a_notebook_is_no_notebook(monkeypatch):
    cell = Cell(monkeypatch, kernel=None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert waiting.on_terminal(lazy=False) is None and cell.shown == []
