"""The engine of a Ray cluster. The task is put into the object store once; each worker reads it from there once.

Ray itself retries the chunks of a lost worker or node; a chunk that is lost again and again comes back as `Lost`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ifonly.errors import MissingExtra, QuestionError
from ifonly.population.chunks import Chunk
from ifonly.population.engines.protocol import Lost, answer_chunk, checked_count, pickled_task, raised
from ifonly.population.worker import ChunkResult, Task
from ifonly.printing import shown

RETRIES = 3
CHUNKS_PER_CORE = 2
"""Chunks per core that the cluster has at a time."""

_TASKS: dict[str, Any] = {}
"""In a worker: the task of its present run, by the run's id."""


@dataclass(frozen=True)
class Ray:
    """The Ray cluster at `address` ("auto": the one that this machine belongs to); without one, Ray on this machine.

    `cores`: how many chunks are worked on at a time; by default all cores of the cluster.
    """

    address: str | None = None
    cores: int | None = None

    def __post_init__(self) -> None:
        checked_count(self.cores, "cores")

    @property
    def description(self) -> str:
        return f"Ray at {self.address}" if self.address else "Ray on this machine"

    @contextmanager
    def begin(self, task: Task) -> Iterator[_RayPool]:
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", extra="ray", needed_for="The engine 'ray'") from None
        body, started_here = pickled_task(task), not ray.is_initialized()
        if started_here:
            try:
                ray.init(
                    address=self.address, log_to_driver=False, include_dashboard=False if not self.address else None
                )
            except Exception as error:  # connection errors of many types
                raise QuestionError(f"Ray cannot be reached: {shown(str(error), 200)}") from None
        try:
            yield _RayPool(ray, body, self.cores)
        finally:
            if started_here:
                ray.shutdown()


class _RayPool:
    """The `WorkerPool` of a Ray cluster."""

    def __init__(self, ray: Any, task: bytes, cores: int | None) -> None:
        self._ray = ray
        self._cores = cores
        self._task = [ray.put(task)]  # in a list, so that it is fetched once per worker and not once per chunk
        self._run_id = uuid.uuid4().hex
        self._work = ray.remote(max_retries=RETRIES, num_cpus=1)(_work)
        self._waiting: dict[Any, int] = {}

    @property
    def has_capacity(self) -> bool:
        cores = self._cores or int(self._ray.cluster_resources().get("CPU", 1))
        return len(self._waiting) < CHUNKS_PER_CORE * max(cores, 1)

    def submit(self, ticket: int, chunk: Chunk) -> None:
        self._waiting[self._work.remote(self._run_id, self._task, chunk)] = ticket

    def next(self) -> tuple[int, ChunkResult | Lost]:
        (first,), _ = self._ray.wait(list(self._waiting), num_returns=1)
        ticket = self._waiting.pop(first)
        try:
            outcome = self._ray.get(first)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except self._ray.exceptions.RayError as error:
            return ticket, Lost(f"its worker was lost ({type(error).__name__})")
        return ticket, raised(outcome)


def _work(run: str, task: list[Any], chunk: Chunk) -> Any:
    """In a worker of the cluster: answer a chunk."""
    import pickle

    import ray

    if run not in _TASKS:
        _TASKS.clear()
        _TASKS[run] = pickle.loads(ray.get(task[0]))
    return answer_chunk(_TASKS[run], chunk)
