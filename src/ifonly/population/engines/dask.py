"""The engine of a Dask cluster. The task is scattered to the workers once; Dask moves the chunks of a lost worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ifonly.errors import MissingExtra, QuestionError
from ifonly.population.chunks import Chunk
from ifonly.population.engines.protocol import Lost, answer_chunk, pickled_task, raised
from ifonly.population.worker import ChunkResult, Task
from ifonly.printing import shown

CHUNKS_PER_THREAD = 2
"""Chunks per thread that the cluster has at a time."""


@dataclass(frozen=True)
class Dask:
    """The Dask cluster whose scheduler is at `address`; without one, a cluster on this machine."""

    address: str | None = None

    @property
    def description(self) -> str:
        return f"Dask at {self.address}" if self.address else "Dask on this machine"

    @contextmanager
    def begin(self, task: Task) -> Iterator[_DaskPool]:
        try:
            import distributed
        except ImportError:
            raise MissingExtra("distributed", extra="dask", needed_for="The engine 'dask'") from None
        pickled_task(task)
        try:
            connect: Any = distributed.Client
            client = connect(self.address) if self.address else connect(dashboard_address=None)
        except Exception as error:  # connection errors of many types
            raise QuestionError(f"Dask cannot be reached: {shown(str(error), 200)}") from None
        with client:
            yield _DaskPool(client, task)


class _DaskPool:
    """The `WorkerPool` of a Dask cluster."""

    def __init__(self, client: Any, task: Task) -> None:
        import distributed

        as_completed: Any = distributed.as_completed
        self._client = client
        self._task = client.scatter(task, broadcast=True, hash=False)
        self._done: Any = as_completed()
        self._tickets: dict[str, int] = {}

    @property
    def has_capacity(self) -> bool:
        return len(self._tickets) < CHUNKS_PER_THREAD * max(sum(self._client.nthreads().values()), 1)

    def submit(self, ticket: int, chunk: Chunk) -> None:
        future = self._client.submit(answer_chunk, self._task, chunk, pure=False)
        self._tickets[future.key] = ticket
        self._done.add(future)

    def next(self) -> tuple[int, ChunkResult | Lost]:
        future = next(self._done)
        ticket = self._tickets.pop(future.key)
        error = future.exception()
        if error is not None:
            return ticket, Lost(f"its worker was lost ({type(error).__name__})")
        return ticket, raised(future.result())
