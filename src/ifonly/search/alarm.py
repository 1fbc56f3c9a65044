"""The clock inside a node: at a given time a flag goes up that the kernels look at.

Between slices of nodes the clock is read by `worker`. One node of a large network can take seconds, and the kernels
cannot read a clock; they run without Python's lock, so another thread can raise a flag for them.
"""

from __future__ import annotations

import threading
from types import TracebackType

from ifonly.search.kernels.layout import HALT, Scratch

_SET: set[Alarm] = set()
"""Those of the searches under way."""


def ring_all() -> None:
    """From another thread, which then also interrupts: searches under way end at once, as if their time were up."""
    for alarm in tuple(_SET):
        alarm.ring()


class Alarm:
    """While it is set, the search with these buffers ends after so many seconds; None: not at all."""

    def __init__(self, scratch: Scratch, seconds: float | None) -> None:
        self._flag, self._seconds = scratch.I[HALT], seconds
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Alarm:
        self._flag[0] = 0
        _SET.add(self)
        if self._seconds is not None and self._seconds <= 0.0:
            self.ring()
        elif self._seconds is not None:
            self._timer = threading.Timer(min(self._seconds, threading.TIMEOUT_MAX), self.ring)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # or it might ring for the next person
        _SET.discard(self)
        self._flag[0] = 0

    @property
    def rung(self) -> bool:
        return bool(self._flag[0])

    def ring(self) -> None:
        self._flag[0] = 1
