"""A Dask cluster. The task is scattered to its workers once; Dask gives what a lost worker had to another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ifonly.errors import IfonlyError, MissingExtra, QuestionError
from ifonly.population.chunks import Chunk
from ifonly.population.engines.protocol import Lost, packed
from ifonly.population.worker import ChunkResult, Task
from ifonly.printing import shown

AHEAD = 2
"""Chunks per thread that the cluster has at a time."""


@dataclass(frozen=True)
class Dask:
    """The Dask cluster whose scheduler is at `address`; without one, a cluster on this machine."""

    address: str | None = None

    @property
    def words(self) -> str:
        return f"Dask at {self.address}" if self.address else "Dask on this machine"

    @contextmanager
    def begin(self, task: Task) -> Iterator[_Client]:
        try:
            import distributed
        except ImportError:
            raise MissingExtra("distributed", extra="dask", needed_for="The engine 'dask'") from None
        packed(task)
        try:
            made: Any = distributed.Client
            client = made(self.address) if self.address else made(dashboard_address=None)
        except Exception as error:  # of a connection, in whatever words
            raise QuestionError(f"Dask cannot be reached: {shown(str(error), 200)}") from None
        with client:
            yield _Client(client, task)


class _Client:
    """A pool of Dask's workers."""

    def __init__(self, client: Any, task: Task) -> None:
        import distributed

        made: Any = distributed.as_completed
        self._client = client
        self._task = client.scatter(task, broadcast=True, hash=False)
        self._done: Any = made()
        self._tickets: dict[str, int] = {}

    @property
    def room(self) -> bool:
        return len(self._tickets) < AHEAD * max(sum(self._client.nthreads().values()), 1)

    def submit(self, ticket: int, chunk: Chunk) -> None:
        future = self._client.submit(_work, self._task, chunk, pure=False)
        self._tickets[future.key] = ticket
        self._done.add(future)

    def next(self) -> tuple[int, ChunkResult | Lost]:
        future = next(self._done)
        ticket = self._tickets.pop(future.key)
        error = future.exception()
        if error is not None:
            return ticket, Lost(f"its worker was lost ({type(error).__name__})")
        outcome = future.result()
        if isinstance(outcome, Exception):
            raise outcome
        return ticket, outcome


def _work(task: Task, chunk: Chunk) -> Any:
    """In a worker of the cluster: answer a chunk."""
    try:
        return task(chunk)
    except IfonlyError as error:
        return error
