"""Processes of this machine. Each is sent the task once and then chunks, one ahead of the one that it works on.

A process that ends costs its own chunk: another is started in its place. Workers end with us, however we end: a thread
in each of them waits for our end of the pipe to close.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ifonly.errors import IfonlyError, QuestionError
from ifonly.population.chunks import Chunk
from ifonly.population.engines.seam import Lost, checked_count, packed
from ifonly.population.engines.spawning import how_it_ended, listen, settle, spawned
from ifonly.population.work import Done, Task
from ifonly.printing import shown

AHEAD = 2
"""Chunks that one worker has: the one it works on, and the next."""
MOST_STILLBORN = 3
"""Workers in a row that ended before they began."""
READY = -1


@dataclass(frozen=True)
class Processes:
    """So many processes of this machine; as many as there are cores where nothing is said."""

    count: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", checked_count(self.count, "processes"))

    @property
    def workers(self) -> int:
        return self.count or cores()

    @property
    def words(self) -> str:
        return f"{self.workers} process{'' if self.workers == 1 else 'es'}"

    @contextmanager
    def begin(self, task: Task) -> Iterator[_Workers]:
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # the script runs anew in a worker
            raise QuestionError(MAIN)
        pool = _Workers(packed(task), self.workers)
        try:
            yield pool
        finally:
            pool.end()


MAIN = 'Processes start by importing the script that began them: put the call under `if __name__ == "__main__":`.'


def cores() -> int:
    """The cores that we may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """A process, our end of its pipe, and the chunks that it has."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        self.process = spawned(_work, theirs)
        theirs.close()
        self.has: deque[int] = deque()
        self.ready = False

    def send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # it is gone: `next` finds that out
            self.pipe.send_bytes(message)

    def submit(self, ticket: int, message: bytes) -> None:
        self.has.append(ticket)
        self.send(message)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _Workers:
    """A pool of processes."""

    def __init__(self, task: bytes, count: int) -> None:
        self._task = task
        self._workers = [_Worker() for _ in range(count)]
        for worker in self._workers:  # all of them are on their way before the first has to listen
            worker.send(task)
        self._lost: deque[tuple[int, Lost]] = deque()
        self._stillborn = 0

    @property
    def room(self) -> bool:
        return any(len(worker.has) < AHEAD for worker in self._workers)

    def submit(self, ticket: int, chunk: Chunk) -> None:
        try:
            message = pickle.dumps((ticket, chunk), protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            words = f"the row cannot be sent to another process ({type(error).__name__}: {shown(str(error), 120)})"
            self._lost.append((ticket, Lost(words)))
            return
        min(self._workers, key=lambda worker: len(worker.has)).submit(ticket, message)

    def next(self) -> tuple[int, Done | Lost]:
        while True:
            if self._lost:
                return self._lost.popleft()
            for pipe in wait([worker.pipe for worker in self._workers]):
                worker = next(one for one in self._workers if one.pipe is pipe)
                try:
                    ticket, outcome = pickle.loads(worker.pipe.recv_bytes())
                except (EOFError, OSError):
                    self._bury(worker)
                    break
                if isinstance(outcome, Exception):
                    raise outcome
                if ticket == READY:
                    worker.ready, self._stillborn = True, 0
                    continue
                worker.has.remove(ticket)
                return ticket, outcome

    def _bury(self, worker: _Worker) -> None:
        """A worker is gone: its chunks are lost, and another begins in its place."""
        how = how_it_ended(worker.process)
        for k, ticket in enumerate(worker.has):
            self._lost.append((ticket, Lost(f"the process that worked on it ended {how}", worker.ready and k == 0)))
        worker.end()
        if not worker.ready:
            self._stillborn += 1
            if self._stillborn >= MOST_STILLBORN:
                raise QuestionError(f"A worker process ended before it began ({how}). {MAIN}")
        another = self._workers[self._workers.index(worker)] = _Worker()
        another.send(self._task)

    def end(self) -> None:
        for worker in self._workers:
            worker.end()


# ---------------------------------------------------------------------- in the worker


def _work(pipe: Connection) -> None:
    """Answer what comes through the pipe until it is closed. Ctrl-C is for the one who began us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(pipe, messages.put), daemon=True).start()
    try:
        task: Any = pickle.loads(messages.get())
    except Exception as error:
        why = QuestionError(f"The model cannot be read in another process ({type(error).__name__}: {error}).")
        pipe.send_bytes(pickle.dumps((READY, why)))
        return
    settle()
    pipe.send_bytes(pickle.dumps((READY, None)))
    while True:
        ticket, chunk = pickle.loads(messages.get())
        try:
            outcome: Any = task(chunk)
        except IfonlyError as error:
            outcome = error
        pipe.send_bytes(pickle.dumps((ticket, outcome), protocol=pickle.HIGHEST_PROTOCOL))
