"""A pool of worker processes on this machine. Each is sent the task once and then chunks, one ahead of its current one.

A worker that ends costs the chunk that it worked on. Another is started in its place: at once if it had become ready,
after a pause (exponential back-off) if it had not, since a lack of memory or processes may pass. The run ends where
workers end early, one after the other, while no chunk is answered.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ifonly.errors import QuestionError
from ifonly.population.chunks import Chunk
from ifonly.population.engines.protocol import Lost, answer_chunk, checked_count, pickled_task, raised
from ifonly.population.worker import ChunkResult, Task
from ifonly.printing import shown
from ifonly.worker_processes import JOBS_PER_WORKER, backoff, cores, exit_reason, freeze_heap, read_messages, spawn

MAX_EARLY_EXITS = 8
"""Of each worker, in a row: how often it may end before it is ready, while no chunk is answered."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before a worker is started again that ended before it was ready: `backoff` from the first to the longest."""
READY = -1
"""The ticket of a worker's first message."""
NO_MAIN = 78
"""The exit code of a worker that runs the caller's script anew, because the script has no main guard."""


@dataclass(frozen=True)
class Processes:
    """`count` worker processes of this machine; by default one per core."""

    count: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", checked_count(self.count, "processes"))

    @property
    def workers(self) -> int:
        return self.count or cores()

    @property
    def description(self) -> str:
        return f"{self.workers} process{'' if self.workers == 1 else 'es'}"

    def check_main(self) -> None:
        """End this process quietly if it is a worker that runs the caller's script anew; the parent says what to do."""
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise SystemExit(NO_MAIN)

    @contextmanager
    def begin(self, task: Task) -> Iterator[_ProcessPool]:
        pool = _ProcessPool(pickled_task(task), self.workers)
        try:
            yield pool
        finally:
            pool.stop()


NEEDS_MAIN_GUARD = (
    'Processes start by importing the script that started them: put the call under `if __name__ == "__main__":`.'
)


class _Worker:
    """A process, our end of its pipe, and the pickled chunks that it has, by ticket."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        try:
            self.process = spawn(_work, theirs)
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()
        self.chunks: dict[int, bytes] = {}
        self.ready = False
        self.start_error = ""

    def send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended: `next` finds that out
            self.pipe.send_bytes(message)

    def submit(self, ticket: int, message: bytes) -> None:
        self.chunks[ticket] = message
        self.send(message)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _ProcessPool:
    """The `WorkerPool` of worker processes."""

    def __init__(self, task: bytes, count: int) -> None:
        self._task, self._count = task, count
        self._workers: list[_Worker] = []
        self._starts = [0.0] * count
        """When the missing workers are to be started, by the monotonic clock."""
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._lost: deque[tuple[int, Lost]] = deque()
        self._early_exits = 0
        """Workers that ended before they were ready, since the last chunk that was answered."""
        try:
            self._start_workers()
        except BaseException:
            self.stop()
            raise

    @property
    def has_capacity(self) -> bool:
        assigned = sum(len(worker.chunks) for worker in self._workers)
        return assigned + len(self._waiting) < JOBS_PER_WORKER * self._count

    def submit(self, ticket: int, chunk: Chunk) -> None:
        try:
            message = pickle.dumps((ticket, chunk), protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            why = f"the row cannot be sent to another process ({type(error).__name__}: {shown(str(error), 120)})"
            self._lost.append((ticket, Lost(why)))
            return
        self._waiting.append((ticket, message))
        self._dispatch()

    def _dispatch(self) -> None:
        """Give waiting chunks to workers, the least loaded worker first."""
        while self._waiting and self._workers:
            worker = min(self._workers, key=lambda one: len(one.chunks))
            if len(worker.chunks) >= JOBS_PER_WORKER:
                return
            worker.submit(*self._waiting.popleft())

    def next(self) -> tuple[int, ChunkResult | Lost]:
        while True:
            if self._lost:
                return self._lost.popleft()
            self._start_workers()
            self._dispatch()
            by_pipe = {worker.pipe: worker for worker in self._workers}
            pause = None if not self._starts else max(min(self._starts) - time.monotonic(), 0.0)
            if not by_pipe:
                time.sleep(pause or 0.0)
                continue
            for pipe in wait(list(by_pipe), pause):
                result = self._receive(by_pipe[pipe])  # type: ignore[index]
                if result is not None:
                    return result

    def _receive(self, worker: _Worker) -> tuple[int, ChunkResult] | None:
        """Read a worker's next message: the result of a chunk, if it is one."""
        message = None
        with contextlib.suppress(EOFError, OSError):
            message = worker.pipe.recv_bytes()
        if message is None:
            self._replace(worker)
            return None
        ticket, outcome = pickle.loads(message)
        raised(outcome)
        if ticket == READY:
            worker.ready, worker.start_error = not outcome, outcome
            return None
        del worker.chunks[ticket]
        self._early_exits = 0
        return ticket, outcome

    def _start_workers(self) -> None:
        """Start the workers that are due: all of them, before the task is sent to the first."""
        now = time.monotonic()
        due = sum(at <= now for at in self._starts)
        self._starts = [at for at in self._starts if at > now]
        started: list[_Worker] = []
        for _ in range(due):
            try:
                started.append(_Worker())
            except OSError as error:  # no memory, process or file descriptor is left: that may pass
                self._restart_later(f"could not be started: {error.strerror or error}")
        self._workers += started
        for worker in started:
            worker.send(self._task)

    def _replace(self, worker: _Worker) -> None:
        """A worker has ended: the chunk that it worked on is lost, its others wait for another worker."""
        how = exit_reason(worker.process)
        self._workers.remove(worker)
        chunks = list(worker.chunks.items())
        if worker.ready:
            for ticket, _ in chunks[:1]:
                self._lost.append((ticket, Lost(f"the process that worked on it ended {how}")))
            chunks = chunks[1:]
        self._waiting.extendleft(reversed(chunks))
        worker.stop()
        if worker.ready:
            self._starts.append(0.0)
        elif worker.process.exitcode == NO_MAIN:
            raise QuestionError(NEEDS_MAIN_GUARD)
        else:
            self._restart_later(f"ended {how}" + (f" ({worker.start_error})" if worker.start_error else ""))

    def _restart_later(self, how: str) -> None:
        """Start another worker after a pause, in the place of one that never was ready; or give up."""
        self._early_exits += 1
        if self._early_exits >= MAX_EARLY_EXITS * self._count:
            raise QuestionError(
                f"No worker process becomes ready: {self._early_exits} in a row did not, and the last one {how}; look "
                f'at the memory that is free and at what workers print, then go on with --resume (existing="resume").'
            )
        pause = backoff(self._early_exits // self._count, FIRST_PAUSE, LONGEST_PAUSE)
        self._starts.append(time.monotonic() + pause)

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


# ---------------------------------------------------------------------- in the worker


def _work(pipe: Connection) -> None:
    """The worker's main loop: answer chunks until the pipe is closed. Ctrl-C is for the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=read_messages, args=(pipe, messages.put), daemon=True).start()
    try:
        task: Any = pickle.loads(messages.get())
    except (MemoryError, OSError) as error:  # may pass: the parent tries again
        pipe.send_bytes(pickle.dumps((READY, f"{type(error).__name__}: {shown(str(error), 120)}")))
        return
    except Exception as error:
        why = QuestionError(f"The model cannot be read in another process ({type(error).__name__}: {error}).")
        pipe.send_bytes(pickle.dumps((READY, why)))
        return
    freeze_heap()
    pipe.send_bytes(pickle.dumps((READY, "")))
    while True:
        ticket, chunk = pickle.loads(messages.get())
        pipe.send_bytes(pickle.dumps((ticket, answer_chunk(task, chunk)), protocol=pickle.HIGHEST_PROTOCOL))
