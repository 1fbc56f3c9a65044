"""The engine of this process: no worker is started, nothing is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ifonly.population.chunks import Chunk
from ifonly.population.worker import ChunkResult, Task


@dataclass(frozen=True)
class InProcess:
    """This process alone. A row that ends it ends the run, which can be resumed."""

    description = "this process"

    @contextmanager
    def begin(self, task: Task) -> Iterator[_InProcessPool]:
        yield _InProcessPool(task)


class _InProcessPool:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._waiting: deque[tuple[int, Chunk]] = deque()

    @property
    def has_capacity(self) -> bool:
        return not self._waiting

    def submit(self, ticket: int, chunk: Chunk) -> None:
        self._waiting.append((ticket, chunk))

    def next(self) -> tuple[int, ChunkResult]:
        ticket, chunk = self._waiting.popleft()
        return ticket, self._task(chunk)
