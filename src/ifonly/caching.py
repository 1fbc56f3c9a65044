"""What the interpreter makes us care about: properties cached without a lock, forks, the search for garbage.

A fork copies one thread and every lock as it stands: a lock that another thread holds is never released in the child.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  registered at forks before us: see ForkGate
import gc
import logging  # noqa: F401  likewise
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801  a drop-in for functools.cached_property, which has a lock before Python 3.12
        """Computed at the first look. Two threads at once may both compute it; the values are the same."""

        def __init__(self, func: Any) -> None:
            self.func, self.name, self.__doc__ = func, func.__name__, func.__doc__

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.func(instance)
            return value


MOST_SECONDS = 300.0
"""A fork does not wait longer than this: compiling a set of kernels takes about a minute."""


class ForkGate:
    """Any number of threads may be inside, and a fork waits until none is (but for the thread that forks).

    What is inside imports modules, compiles kernels and fills caches: half done, none of it is of use to a child.

    What others registered for forks later than this is done before it, so they would hold their locks while we wait:
    hence the two modules that are imported above, and an end to the waiting.
    """

    def __init__(self) -> None:
        self._inside: dict[int, int] = {}
        self._renew()
        if hasattr(os, "register_at_fork"):  # there are no forks on Windows
            os.register_at_fork(before=self._close, after_in_parent=self._open, after_in_child=self._renew)

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            self._changed.notify_all()

    def _close(self) -> None:
        self._changed.acquire()
        until = time.monotonic() + MOST_SECONDS
        while self._inside.keys() - {threading.get_ident()} and time.monotonic() < until:
            self._changed.wait(1.0)

    def _open(self) -> None:
        self._changed.release()

    def _renew(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        me = threading.get_ident()
        self._inside = {me: self._inside[me]} if me in self._inside else {}


@contextmanager
def nothing_to_collect() -> Iterator[None]:
    """While many objects are made and none is dropped, Python looks for garbage in vain, and looks at all it has."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


PREPARING = ForkGate()
"""Around the first time of everything: a fork waits for it."""

__all__ = ["PREPARING", "ForkGate", "cached_property", "nothing_to_collect"]
