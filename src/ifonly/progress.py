"""Progress bar on a terminal or in a notebook, fed by the events of a search.

    with progress(len(rows)) as listen:
        answers = explainer.using(listen=listen).explain_many(rows)

It appears one at a time, and only when the work lasts longer than `delay` seconds.
On a terminal it is drawn with rich, which is imported when the bar appears; in a notebook it is a line of the cell's
output, which needs no widgets. An explainer without a listener has one by itself (`on_terminal`).
"""

from __future__ import annotations

import math
import sys
import threading
import time
from importlib import import_module
from types import TracebackType
from typing import Any, TextIO

from ifonly.html.fragments import words
from ifonly.html.notebook import in_notebook
from ifonly.results import Progress

DELAY_SECONDS = 1.0
DEFAULT_DELAY_SECONDS = 2.0
"""The delay of a bar that was not asked for."""
REDRAW_SECONDS = 0.1
"""Of a bar in a notebook."""

_ON_SCREEN = threading.Lock()
"""Held by the bar that is shown: there is one at a time."""


def progress(people: int | None = None, *, stream: TextIO | None = None, delay: float = DELAY_SECONDS) -> ProgressBar:
    """A context manager that gives a listener. `people` is the total; without it, that of the events is used."""
    return ProgressBar(people, stream=stream, delay=delay)


def on_terminal(*, lazy: bool) -> ProgressBar | None:
    """The bar of a call without a listener, on a terminal or in a notebook; `lazy`: nothing starts before an event."""
    stream = sys.stderr
    if stream is None or not (stream.isatty() or in_notebook()):
        return None
    return ProgressBar(None, stream=stream, delay=DEFAULT_DELAY_SECONDS, lazy=lazy)


class ProgressBar:
    """A listener: call it with each event. `settle(n)`: n people are done, and later events count on from there."""

    def __init__(self, people: int | None, *, stream: TextIO | None, delay: float, lazy: bool = False) -> None:
        self._people = people
        self._stream = stream if stream is not None else sys.stderr
        self._delay, self._lazy = delay, lazy
        self._settled = 0
        self._finished = 0
        self._state = ""
        self._bar: Any = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> ProgressBar:
        if not self._lazy:
            self._start_timer()
        return self

    def _start_timer(self) -> None:
        if self._timer is None and (self._stream.isatty() or in_notebook()):
            self._timer = threading.Timer(self._delay, self._show)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()
                _ON_SCREEN.release()

    def __call__(self, event: Progress) -> None:
        with self._lock:
            if self._lazy and event.finished < event.people:  # the last event needs no bar
                self._start_timer()
            if event.counts:  # a stream, whose number of rows may be an estimate, or unknown
                self._people = event.people if event.people > event.finished else None
            elif self._people is None:
                self._people = event.people
            self._finished = max(self._finished, self._settled + event.finished)
            self._state = _state(event)
            self._draw()

    def settle(self, count: int) -> None:
        with self._lock:
            self._settled = self._finished = count
            self._draw()

    @property
    def finished(self) -> int:
        return self._finished

    def _draw(self) -> None:
        if self._bar is not None:
            self._bar.update(0, completed=self._finished, total=self._people, state=self._state)

    def _show(self) -> None:
        with self._lock:
            if self._closed or not _ON_SCREEN.acquire(blocking=False):
                return
            self._bar = _CellBar(self._delay) if in_notebook() else _terminal_bar(self._stream)
            self._bar.add_task("", total=self._people, completed=self._finished, state=self._state)
            self._bar.start()


def _terminal_bar(stream: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), TextColumn("{task.fields[state]}", style="dim"),
        console=Console(file=stream), transient=True,
    )  # fmt: skip


class _CellBar:
    """A bar in the output of a notebook's cell, with the interface of rich's; its last text stays."""

    def __init__(self, spent: float) -> None:
        self._started, self._drawn = time.perf_counter() - spent, -math.inf
        self._shown: tuple[int, int | None, str] = (0, None, "")
        self._handle: Any = None

    def add_task(self, description: str, *, total: int | None, completed: int, state: str) -> None:
        self._shown = (completed, total, state)

    def start(self) -> None:
        display = import_module("IPython.display").display
        self._handle = display(self._drawing(), raw=True, display_id=True)

    def update(self, task: int, *, completed: int, total: int | None, state: str) -> None:
        self._shown = (completed, total, state)
        if time.perf_counter() - self._drawn >= REDRAW_SECONDS:
            self._drawn = time.perf_counter()
            self._handle.update(self._drawing(), raw=True)

    def stop(self) -> None:
        completed, total, _ = self._shown
        self._shown = (completed, total, "")
        self._handle.update(self._drawing(over=True), raw=True)

    def _drawing(self, *, over: bool = False) -> dict[str, str]:
        completed, total, state = self._shown
        spent = time.perf_counter() - self._started
        of = "" if total is None else f"/{total:,}"
        left = f", about {_clock(spent * (total - completed) / completed)} left" if completed and total else ""
        text = f"{completed:,}{of} in {_clock(spent)}{'' if over else left}{f', {state}' if state else ''}"
        scale = "" if total is None else f' value="{completed}" max="{max(total, 1)}"'
        bar = f'<progress{scale} style="vertical-align: middle; width: 16em"></progress> '
        line = f'<span style="font-variant-numeric: tabular-nums">explained {words(text)}</span>'
        return {"text/plain": f"explained {text}", "text/html": ("" if over else bar) + line}


def _clock(seconds: float) -> str:
    """A duration as a clock shows it."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _state(event: Progress) -> str:
    """The bounds of the present search; of a run, its rate and the counts of what is not proven nearest."""
    if event.counts:
        others = [f"{count:,} {status}" for status, count in event.counts.items() if count and status != "nearest"]
        return ", ".join([f"{event.rate:,.0f} rows/s", *others])
    if not event.nodes and not event.lower and math.isinf(event.upper):
        return ""
    upper = f"{event.upper:.3g}" if math.isfinite(event.upper) else "?"
    return f"{event.nodes:,} nodes, between {event.lower:.3g} and {upper}"
