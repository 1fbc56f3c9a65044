"""Processes of this machine. Each is sent the task once and then chunks, one ahead of the one that it works on.

A process that ends costs the chunk that it worked on: another is started in its place, at once if it had become ready,
and after a pause if it had not (no memory, no room for another process: that may pass). Workers that end early, one
after the other, without any chunk being answered, end the run. Workers end with us, however we end: a thread in each of
them waits for our end of the pipe to close.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
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

from ifonly.errors import IfonlyError, QuestionError
from ifonly.population.chunks import Chunk
from ifonly.population.engines.protocol import Lost, checked_count, packed
from ifonly.population.engines.spawning import how_it_ended, listen, settle, spawned
from ifonly.population.worker import ChunkResult, Task
from ifonly.printing import shown

AHEAD = 2
"""Chunks that one worker has: the one it works on, and the next."""
EARLY_DEATHS = 8
"""Of each worker, in a row: how often it may end before it is ready, while no chunk is answered."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before a worker is started again that ended before it was ready; twice as long each time."""
READY = -1
NO_MAIN = 78
"""The exit code of a worker that runs the script anew that began it."""


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

    def check_main(self) -> None:
        """End here, quietly, where this is a worker that runs the script anew that began it: it is told what to do."""
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise SystemExit(NO_MAIN)

    @contextmanager
    def begin(self, task: Task) -> Iterator[_Workers]:
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
    """A process, our end of its pipe, and the chunks that it has, with the messages that brought them."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        try:
            self.process = spawned(_work, theirs)
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()
        self.has: dict[int, bytes] = {}
        self.ready = False
        self.last_words = ""

    def send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # it is gone: `next` finds that out
            self.pipe.send_bytes(message)

    def submit(self, ticket: int, message: bytes) -> None:
        self.has[ticket] = message
        self.send(message)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _Workers:
    """A pool of processes."""

    def __init__(self, task: bytes, count: int) -> None:
        self._task, self._count = task, count
        self._workers: list[_Worker] = []
        self._starts = [0.0] * count
        """When those that are lacking are started, by the monotonic clock."""
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._lost: deque[tuple[int, Lost]] = deque()
        self._early = 0
        """Workers that ended before they were ready since a chunk was answered."""
        try:
            self._start()
        except BaseException:
            self.end()
            raise

    @property
    def room(self) -> bool:
        held = sum(len(worker.has) for worker in self._workers)
        return held + len(self._waiting) < AHEAD * self._count

    def submit(self, ticket: int, chunk: Chunk) -> None:
        try:
            message = pickle.dumps((ticket, chunk), protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            words = f"the row cannot be sent to another process ({type(error).__name__}: {shown(str(error), 120)})"
            self._lost.append((ticket, Lost(words)))
            return
        self._waiting.append((ticket, message))
        self._deal()

    def _deal(self) -> None:
        """Give out what waits, the idlest worker first."""
        while self._waiting and self._workers:
            worker = min(self._workers, key=lambda one: len(one.has))
            if len(worker.has) >= AHEAD:
                return
            worker.submit(*self._waiting.popleft())

    def next(self) -> tuple[int, ChunkResult | Lost]:
        while True:
            if self._lost:
                return self._lost.popleft()
            self._start()
            self._deal()
            by_pipe = {worker.pipe: worker for worker in self._workers}
            pause = None if not self._starts else max(min(self._starts) - time.monotonic(), 0.0)
            if not by_pipe:
                time.sleep(pause or 0.0)
                continue
            for pipe in wait(list(by_pipe), pause):
                told = self._hear(by_pipe[pipe])  # type: ignore[index]
                if told is not None:
                    return told

    def _hear(self, worker: _Worker) -> tuple[int, ChunkResult] | None:
        """What a worker says: a chunk that is done, if it is one."""
        message = None
        with contextlib.suppress(EOFError, OSError):
            message = worker.pipe.recv_bytes()
        if message is None:
            self._bury(worker)
            return None
        ticket, outcome = pickle.loads(message)
        if isinstance(outcome, Exception):
            raise outcome
        if ticket == READY:
            worker.ready, worker.last_words = not outcome, outcome
            return None
        del worker.has[ticket]
        self._early = 0
        return ticket, outcome

    def _start(self) -> None:
        """Start the workers whose time has come; all of them are on their way before the first has to listen."""
        now = time.monotonic()
        due = sum(at <= now for at in self._starts)
        self._starts = [at for at in self._starts if at > now]
        begun: list[_Worker] = []
        for _ in range(due):
            try:
                begun.append(_Worker())
            except OSError as error:  # no memory, no process or no file left to have: perhaps later
                self._again(f"could not be started: {error.strerror or error}")
        self._workers += begun
        for worker in begun:
            worker.send(self._task)

    def _bury(self, worker: _Worker) -> None:
        """A worker is gone: the chunk that it worked on is lost, the others wait for another in its place."""
        how = how_it_ended(worker.process)
        self._workers.remove(worker)
        left = list(worker.has.items())
        if worker.ready:
            for ticket, _ in left[:1]:
                self._lost.append((ticket, Lost(f"the process that worked on it ended {how}")))
            left = left[1:]
        self._waiting.extendleft(reversed(left))
        worker.end()
        if worker.ready:
            self._starts.append(0.0)
        elif worker.process.exitcode == NO_MAIN:
            raise QuestionError(MAIN)
        else:
            self._again(f"ended {how}" + (f" ({worker.last_words})" if worker.last_words else ""))

    def _again(self, how: str) -> None:
        """Start another worker, after a pause, in the place of one that never was ready; or give up."""
        self._early += 1
        if self._early >= EARLY_DEATHS * self._count:
            raise QuestionError(
                f"No worker process becomes ready: {self._early} in a row did not, and the last one {how}; look at the "
                f'memory that is free and at what workers print, then go on with --resume (existing="resume").'
            )
        pause = min(FIRST_PAUSE * 2 ** (self._early // self._count), LONGEST_PAUSE)
        self._starts.append(time.monotonic() + pause)

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
    except (MemoryError, OSError) as error:  # may pass: whoever began us tries again
        pipe.send_bytes(pickle.dumps((READY, f"{type(error).__name__}: {shown(str(error), 120)}")))
        return
    except Exception as error:
        why = QuestionError(f"The model cannot be read in another process ({type(error).__name__}: {error}).")
        pipe.send_bytes(pickle.dumps((READY, why)))
        return
    settle()
    pipe.send_bytes(pickle.dumps((READY, "")))
    while True:
        ticket, chunk = pickle.loads(messages.get())
        try:
            outcome: Any = task(chunk)
        except IfonlyError as error:
            outcome = error
        pipe.send_bytes(pickle.dumps((ticket, outcome), protocol=pickle.HIGHEST_PROTOCOL))
