"""Deadlines inside compiled code: at a given time a flag is set that the kernels look at.

Between slices of nodes the clock is read by `worker`. One node of a large network can take seconds, and the kernels
cannot read a clock; they run without Python's lock, so another thread can set a flag for them. It is one thread for
all searches, since to start one takes longer than most of them.
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

IDLE_SECONDS = 10.0
"""The timer thread ends after so long without a deadline."""

_SET: set[Deadline] = set()
"""Deadlines of the searches under way."""


def expire_all() -> None:
    """End all searches under way at once, as if their time were up; called from a thread that then interrupts them."""
    for deadline in tuple(_SET):
        deadline.expire()


class _Clock:
    """Timer thread: expires deadlines when they are due; started with the first one."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):  # there are no forks on Windows
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """A child has a copy of the lock, in whatever state, and no thread."""
        self._changed = threading.Condition(threading.Lock())
        self._due: dict[Deadline, float] = {}
        self._thread: threading.Thread | None = None
        self._wakes = 0.0

    def set(self, deadline: Deadline, seconds: float) -> None:
        due = time.monotonic() + seconds
        with self._changed:
            self._due[deadline] = due
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ifonly-clock", daemon=True)
                self._thread.start()
            elif due < self._wakes:
                self._changed.notify()

    def unset(self, deadline: Deadline) -> None:
        """It does not expire any more."""
        with self._changed:
            self._due.pop(deadline, None)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for deadline in [deadline for deadline, due in self._due.items() if due <= now]:
                    del self._due[deadline]
                    deadline.expire()
                self._wakes = min(self._due.values(), default=now + IDLE_SECONDS)
                woken = self._changed.wait(min(self._wakes - now, threading.TIMEOUT_MAX))
                if not woken and not self._due:
                    self._thread = None
                    return


_CLOCK = _Clock()


class Deadline:
    """While it is set, the kernels that look at this flag end after so many seconds; None: not at all."""

    def __init__(self, flag: NDArray[Any], seconds: float | None) -> None:
        self._flag, self._seconds = flag, seconds

    def __enter__(self) -> Deadline:
        self._flag[0] = 0
        _SET.add(self)
        if self._seconds is not None and self._seconds <= 0.0:
            self.expire()
        elif self._seconds is not None:
            _CLOCK.set(self, self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._seconds is not None:
            _CLOCK.unset(self)  # or it might expire for the next person
        _SET.discard(self)
        self._flag[0] = 0

    @property
    def expired(self) -> bool:
        return bool(self._flag[0])

    def expire(self) -> None:
        self._flag[0] = 1
