"""Least-recently-used caches bounded by bytes; cached properties without a lock; forks and garbage collection.

A fork copies one thread and every lock as it stands: a lock that another thread holds is never released in the child.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  registered at forks before us: see ForkGate
import functools
import gc
import logging  # noqa: F401  likewise
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801  a drop-in for functools.cached_property, which has a lock before Python 3.12
        """Computed at the first access. Two threads at once may both compute it; the values are the same."""

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
def without_gc() -> Iterator[None]:
    """Garbage collection is off: while many objects are made and none is dropped, it only costs time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


RARE = 70
"""How many times as many objects are made before garbage is looked for."""


@contextmanager
def rare_gc() -> Iterator[None]:
    """Garbage collection is rare: where most objects that are made stay, or go without it, and some do not."""
    before = gc.get_threshold()
    gc.set_threshold(RARE * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


PREPARING = ForkGate()
"""Entered around imports, compilation and first calls: a fork waits for them."""

# ---------------------------------------------------------------------- caches

Kept = TypeVar("Kept")


class _Entry(Generic[Kept]):
    def __init__(self, value: Kept, size: Callable[[Kept], int]) -> None:
        self.value, self.used, self._size = value, 0, size

    @cached_property
    def nbytes(self) -> int:
        return self._size(self.value)


class SizedCache(Generic[Kept]):
    """Least-recently-used cache bounded by bytes, for several threads.

    `size` says what a value takes, once: when others are kept beside it. The last one added is kept whatever it takes,
    since it is in use. A copy, in another process or not, begins empty.
    """

    def __init__(self, most_bytes: int, size: Callable[[Kept], int]) -> None:
        self.most_bytes, self.size = most_bytes, size
        self._entries: dict[Hashable, _Entry[Kept]] = {}
        self._clock = count(1)
        self._lock = threading.RLock()  # taken only inside the gate, so no fork copies it locked

    def __reduce__(self) -> tuple[Any, ...]:
        return SizedCache, (self.most_bytes, self.size)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """The size of all entries."""
        return sum(entry.nbytes for entry in list(self._entries.values()))

    def get(self, key: Hashable) -> Kept | None:
        """The value of a key, if it is kept."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = next(self._clock)
        return entry.value

    def put(self, key: Hashable, value: Kept) -> None:
        """Keep a value, and drop the least recently used ones until all fits."""
        with PREPARING, self._lock:
            self._entries.pop(key, None)
            entry = _Entry(value, self.size)
            if self._entries:
                self._evict(entry.nbytes)
            entry.used = next(self._clock)
            self._entries[key] = entry

    def get_or_make(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """The value of a key, made at the first access. A value whose key cannot be hashed is not kept."""
        try:
            known = self.get(key)
        except TypeError:
            with PREPARING:
                return make()
        if known is None:
            with PREPARING, self._lock:
                known = self.get(key)
                if known is None:
                    known = make()
                    self.put(key, known)
        return known

    def _evict(self, nbytes: int) -> None:
        """Drop entries until so many more bytes fit."""
        left = self.nbytes + nbytes
        for key, entry in sorted(self._entries.items(), key=lambda one: one[1].used) if left > self.most_bytes else ():
            if left <= self.most_bytes:
                break
            left -= entry.nbytes
            del self._entries[key]


Function = TypeVar("Function", bound=Callable[..., Any])


def cached(most_bytes: int) -> Callable[[Function], Function]:
    """`functools.lru_cache` bounded by bytes, for functions of values by position."""

    def decorate(function: Function) -> Function:
        kept: SizedCache[Any] = SizedCache(most_bytes, bytes_of)

        @functools.wraps(function)
        def look(*arguments: Any) -> Any:
            return kept.get_or_make(arguments, lambda: (arguments, function(*arguments)))[1]

        return cast("Function", look)

    return decorate


_LEAVES = frozenset((int, float, str, bool, bytes, type(None), np.ndarray, np.float64))
"""Types of values that hold no others that count."""
_COLLECTIONS = (list, tuple, set, frozenset)


def bytes_of(value: Any, without: Iterable[Any] = ()) -> int:
    """About what a value takes with all that it holds: arrays, containers, objects of this package; each counted once,
    and nothing of what is listed in `without`.
    """
    seen, total, waiting = {id(one) for one in without}, 0, [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        while kind is np.ndarray and type(one.base) is np.ndarray:
            one = one.base
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one, 0)
        if kind in _LEAVES:  # most of what there is
            continue
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, _COLLECTIONS):
            waiting += one
        elif kind.__module__.startswith("ifonly"):
            waiting += vars(one).values() if hasattr(one, "__dict__") else ()
            waiting += [getattr(one, name) for name in getattr(one, "__slots__", ()) if hasattr(one, name)]
    return total


__all__ = ["PREPARING", "ForkGate", "SizedCache", "bytes_of", "cached", "cached_property", "rare_gc", "without_gc"]
