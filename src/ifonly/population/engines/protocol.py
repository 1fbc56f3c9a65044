"""The seam between the run and whoever answers chunks."""

from __future__ import annotations

import pickle
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ifonly.errors import QuestionError
from ifonly.population.chunks import Chunk
from ifonly.population.worker import ChunkResult, Task
from ifonly.printing import shown


@dataclass(frozen=True, slots=True)
class Lost:
    """The process that worked on the chunk is gone; `why` says how it ended."""

    why: str


class WorkerPool(Protocol):
    """Workers, ready for one task."""

    @property
    def room(self) -> bool:
        """Is another chunk wanted?"""

    def submit(self, ticket: int, chunk: Chunk) -> None:
        """Hand a chunk over. Its ticket comes back with it."""

    def next(self) -> tuple[int, ChunkResult | Lost]:
        """The next chunk that is done or lost, waited for."""


class Engine(Protocol):
    """A way of answering chunks."""

    @property
    def words(self) -> str:
        """What it is called."""

    def begin(self, task: Task) -> AbstractContextManager[WorkerPool]:
        """Start workers; they end with the context."""


def packed(task: Task) -> bytes:
    """The task as bytes, or a sentence."""
    try:
        return pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # pickle, and whatever a model's own __reduce__ raises
        raise QuestionError(
            f"This model cannot be sent to other processes ({type(error).__name__}: {shown(str(error), 120)}); "
            f"answer in this one (processes=1), or load the model from a file."
        ) from None


def checked_count(count: Any, what: str) -> int | None:
    """A number of workers, or None."""
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise QuestionError(f"The number of {what} must be a whole number >= 1; it is {shown(count)}.")
    return count
