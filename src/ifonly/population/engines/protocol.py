"""The protocols of an engine and of its pool of workers, by which a run has its chunks answered."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ifonly.errors import IfonlyError
from ifonly.population.chunks import Chunk
from ifonly.population.worker import ChunkResult, Task
from ifonly.schema.arguments import whole_number
from ifonly.worker_processes import pickled


@dataclass(frozen=True, slots=True)
class Lost:
    """The result of a chunk whose worker ended; `why` says how."""

    why: str


class WorkerPool(Protocol):
    """Workers, ready for one task."""

    @property
    def has_capacity(self) -> bool:
        """Should another chunk be submitted before the next result is waited for?"""

    def submit(self, ticket: int, chunk: Chunk) -> None:
        """Queue a chunk. Its ticket, any number, comes back with its result."""

    def next(self) -> tuple[int, ChunkResult | Lost]:
        """Wait for the next result, of any chunk."""


class Engine(Protocol):
    """Where chunks are answered: this process, worker processes, a cluster."""

    @property
    def description(self) -> str:
        """What messages and manifests call it."""

    def begin(self, task: Task) -> AbstractContextManager[WorkerPool]:
        """Start the workers of a task; they end with the context."""


def pickled_task(task: Task) -> bytes:
    """The task as workers are sent it."""
    return pickled(task, "answer in this process (engine=InProcess(), the default), or load the model from a file")


def answer_chunk(task: Task, chunk: Chunk) -> Any:
    """In a worker: the result of a chunk, or the error of the query."""
    try:
        return task(chunk)
    except IfonlyError as error:
        return error


def raised(outcome: Any) -> Any:
    """In the parent: what `answer_chunk` returned, or its error raised."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def checked_count(count: Any, what: str) -> int | None:
    """A number of workers, or None."""
    return None if count is None else whole_number(count, f"The number of {what} must be a whole number >= 1; it is", 1)
