"""Resource limits (time, memory) during preparation: checked where preparing takes long.

Lowering, packing and tabulating happen far below the limits of a search. The caller that knows them sets them around
the call, `with limited(...)`, for the same thread; each step below calls `check_limits()`, with the size of a large
array before it is made. `LimitReached` never leaves the package: it becomes what stopped the search.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, TypeAlias

Resource: TypeAlias = Literal["seconds", "memory", "nodes"]


class _Limits(NamedTuple):
    until: float | None
    memory_bytes: int | None


_NOW: ContextVar[_Limits | None] = ContextVar("ifonly_limits", default=None)


class LimitReached(Exception):
    """A limit is reached while something is prepared, or while a proof is written."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(f"The limit on {resource} is reached.")
        self.resource: Resource = resource


@contextmanager
def limited(seconds: float | None, memory_bytes: int | None) -> Iterator[None]:
    """What is called inside may take so long from now on, and no array of it so many bytes. None means no limit."""
    token = _NOW.set(_Limits(None if seconds is None else time.perf_counter() + seconds, memory_bytes))
    try:
        yield
    finally:
        _NOW.reset(token)


def check_limits(memory_bytes: int = 0) -> None:
    """Raise `LimitReached` where time is up, or where so many bytes are too many."""
    now = _NOW.get()
    if now is None:
        return
    if now.until is not None and time.perf_counter() >= now.until:
        raise LimitReached("seconds")
    if now.memory_bytes is not None and memory_bytes > now.memory_bytes:
        raise LimitReached("memory")


def seconds_left() -> float | None:
    """Until time is up; None where there is no limit."""
    now = _NOW.get()
    return None if now is None or now.until is None else now.until - time.perf_counter()


__all__ = ["LimitReached", "Resource", "check_limits", "limited", "seconds_left"]
