"""Processes that answer, and the two lanes in which requests wait for them.

    quick   every request, for a tenth of a second of search
    slow    those that need longer, with all of their time, in processes of low priority

So one hard request costs the others a tenth of a second, once. A process that ends is replaced: the request that it
worked on fails, those behind it are dealt out again. Requests wait in bounded queues; whoever leaves is forgotten.

A process that ends before it has answered anything, and not while it worked on a request, has failed to start. Its
place is filled again after a pause that doubles from failure to failure (exponential back-off). As long as a lane has
no process after such a failure, requests are refused at once (503, Retry-After); while processes start, they wait a
bounded time.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import pickle
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from typing import Any

from ifonly.errors import QuestionError
from ifonly.population.engines.spawning import how_it_ended, spawned
from ifonly.printing import shown
from ifonly.service.handler import Reply, refusal
from ifonly.service.limits import GRACE_SECONDS, PLAIN_SECONDS, ServiceLimits
from ifonly.service.registry import ModelRegistry
from ifonly.service.requests import HTTPError
from ifonly.service.worker import HEAD, MOST_TRIES, READY, WorkerConfig, WorkerReply, WorkerRequest, framed, work

AHEAD = 2
"""Requests that a process has: the one it works on, and the next."""
LOOK_SECONDS = 0.25
"""How often somebody looks whether a process is stuck."""
STUCK_SECONDS = 3.0
"""So long after its own clock has rung, a process is ended."""
LEFT_SECONDS = 10.0
"""So long after it was told that nobody waits, it is ended, too."""
END_SECONDS = 1.0
"""How long a process whose socket is closed may take to end by itself."""
PAUSE_SECONDS = 1.0
"""Before a process is started in the place of the first that failed to start; then twice as long, and so on."""
LONGEST_PAUSE_SECONDS = 30.0
START_SECONDS = 5
"""About what a process takes until it is ready: when to ask again."""
WAIT_SECONDS = 10.0
"""How long a request waits in a lane that has no process yet."""
CLOSING = HTTPError(503, "The desk is closing; ask again in a moment.", retry=START_SECONDS)


def too_many(seconds: int) -> HTTPError:
    """No room for another request; `seconds`: when to ask again."""
    return HTTPError(429, f"Too many are waiting; ask again in {seconds} s.", retry=seconds)


@dataclass(eq=False, slots=True)
class Job:
    """A request that waits or is worked on. `tell` hears JSON about a search under way."""

    ticket: int
    path: str
    body: bytes
    reply: asyncio.Future[Reply]
    tell: Callable[[bytes], None] | None = None
    worker: WorkerProcess | None = None
    queued: float = 0.0
    begun: float = 0.0
    ends: float = 0.0
    """When its process counts as stuck."""


class WorkerProcess(asyncio.Protocol):
    """A process, and our end of its socket. The first of its jobs is the one that it works on; `failures` is how many
    processes in a row have failed to start in its place."""

    def __init__(self, lane: Lane, failures: int = 0) -> None:
        self.lane, self.failures = lane, failures
        self.jobs, self.ready, self.answered, self.gone = deque[Job](), False, False, False
        self.process: SpawnProcess | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._came = bytearray()

    async def begin(self, config: bytes) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = spawned(work, theirs)
            except BaseException:
                ours.close()
                raise
        loop = asyncio.get_running_loop()
        unix = getattr(socket, "AF_UNIX", None)
        connect: Any = loop.create_unix_connection if ours.family == unix else loop.create_connection
        await connect(lambda: self, sock=ours)
        self.write(config)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def write(self, message: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(message)

    def give(self, job: Job) -> None:
        job.worker = self
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self._start(job)
        self.write(framed(WorkerRequest(job.ticket, job.path, job.body, job.tell is not None)))

    def _start(self, job: Job) -> None:
        job.begun = time.monotonic()
        job.ends = job.begun + self.lane.seconds + STUCK_SECONDS

    def data_received(self, data: bytes) -> None:
        self._came += data
        at, came = 0, self._came
        while len(came) - at >= HEAD.size:
            (size,) = HEAD.unpack_from(came, at)
            if len(came) - at - HEAD.size < size:
                break
            word: WorkerReply = pickle.loads(memoryview(came)[at + HEAD.size : at + HEAD.size + size])
            at += HEAD.size + size
            self._hear(word)
        del came[:at]

    def _hear(self, word: WorkerReply) -> None:
        if word.ticket == READY:
            self.ready = True
            self.lane.pool.changed(self.lane)
            return
        job = self.jobs[0]
        assert job.ticket == word.ticket
        if isinstance(word.said, bytes):
            if job.tell is not None and not job.reply.done():
                job.tell(word.said)
            return
        self.jobs.popleft()
        self.answered = True
        if self.jobs:
            self._start(self.jobs[0])
        self.lane.pool.back(self.lane, job, word.said)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.gone:
            self.gone = True
            self.lane.pool.lost(self)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def ended(self) -> str:
        """How the process ended, whose end of the socket is closed; one that does not is killed."""
        if self.process is None:
            return ""
        self.process.join(END_SECONDS)
        self.kill()
        return how_it_ended(self.process)

    def end(self) -> None:
        self.gone = True
        self.kill()
        if self._transport is not None:
            self._transport.close()


@dataclass(eq=False)
class Lane:
    """Processes of one kind, and who waits for them; `seconds` is what one of their jobs may take."""

    name: str
    pool: Pool
    count: int
    most: int
    seconds: float
    config: bytes
    workers: list[WorkerProcess] = field(default_factory=list)
    waiting: deque[Job] = field(default_factory=deque)
    lost: int = 0
    failure: str = ""
    """What became of the last process that failed to start; empty once one is ready."""
    starts: float = 0.0
    """When another is started, after such a failure."""

    def deal(self) -> None:
        """Give out what waits, the idlest process first."""
        while self.waiting:
            ready = [worker for worker in self.workers if worker.ready and not worker.gone and len(worker.jobs) < AHEAD]
            if not ready:
                return
            job = self.waiting.popleft()
            if not job.reply.done():
                min(ready, key=lambda worker: len(worker.jobs)).give(job)

    @property
    def ready(self) -> bool:
        return any(worker.ready for worker in self.workers)

    def unavailable(self) -> HTTPError:
        """Why no process is there, and when to ask again."""
        if not self.failure:
            sentence = f"The processes that answer are starting; ask again in {START_SECONDS} s."
            return HTTPError(503, sentence, retry=START_SECONDS)
        seconds = max(0, math.ceil(self.starts - time.monotonic())) + START_SECONDS
        return HTTPError(
            503, f"No process can answer: the last one {self.failure}; ask again in {seconds} s.", retry=seconds
        )

    def refuse(self, until: float = math.inf) -> None:
        """No process is there: answer those who have waited since before `until`."""
        reply, waiting = refusal(self.unavailable()), list(self.waiting)
        self.waiting = deque(job for job in waiting if job.queued >= until)
        for job in waiting:
            if job.queued < until and not job.reply.done():
                job.reply.set_result(reply)


class Pool:
    """The processes of a desk. `log` is told of what ends without being told to."""

    def __init__(
        self, registry: ModelRegistry, terms: ServiceLimits, *, quick: int, slow: int, log: Callable[[str], None]
    ) -> None:
        self.terms, self._log, self._tickets = terms, log, READY
        limit, tries = terms.seconds + GRACE_SECONDS, MOST_TRIES * 2.0 * PLAIN_SECONDS
        self.quick = Lane("quick", self, quick, terms.waiting, tries, _packed(registry, terms, slow=False))
        self.slow = Lane("slow", self, slow, terms.waiting_long, limit, _packed(registry, terms, slow=True))
        self.lanes = (self.quick, self.slow)
        self._looking: asyncio.Task[None] | None = None
        self._starting: set[asyncio.Task[None]] = set()
        self._ended = False

    async def begin(self) -> None:
        """Start all processes; they are ready later."""
        for lane in self.lanes:
            for _ in range(lane.count):
                await self._start(lane)
        self._looking = asyncio.create_task(self._look())

    async def _start(self, lane: Lane, failures: int = 0, pause: float = 0.0) -> None:
        """Start a process, after a pause."""
        await asyncio.sleep(pause)
        worker = WorkerProcess(lane, failures)
        lane.workers.append(worker)
        try:
            await worker.begin(lane.config)
        except Exception as error:  # no room for another file or process: perhaps later
            if not worker.gone:
                lane.workers.remove(worker)
                worker.end()
                self._failed(
                    worker, f"could not be started ({getattr(error, 'strerror', None) or type(error).__name__})"
                )

    def _failed(self, worker: WorkerProcess, how: str) -> None:
        """A process failed to start: try again after a pause; where there is no other, nobody waits for that."""
        lane, failures = worker.lane, worker.failures + 1
        pause = min(PAUSE_SECONDS * 2.0 ** min(worker.failures, 60), LONGEST_PAUSE_SECONDS)
        self._log(f"a process of the {lane.name} lane {how} before it answered anything; another starts in {pause:g} s")
        lane.failure, lane.starts = how, time.monotonic() + pause
        if not lane.ready:
            lane.refuse()
        self._start_later(lane, failures, pause)

    def _start_later(self, lane: Lane, failures: int = 0, pause: float = 0.0) -> None:
        task = asyncio.get_running_loop().create_task(self._start(lane, failures, pause))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def unavailable(self) -> HTTPError | None:
        """Why questions cannot be answered, if so: some of them need a process of each lane."""
        if self._ended:
            return CLOSING
        return next((lane.unavailable() for lane in self.lanes if not lane.ready), None)

    # ------------------------------------------------------------------ jobs

    def ask(self, path: str, body: bytes, tell: Callable[[bytes], None] | None = None) -> Job:
        """A job for a request, in the quick lane."""
        self._tickets += 1
        job = Job(self._tickets, path, body, asyncio.get_running_loop().create_future(), tell)
        self._queue(self.quick, job)
        return job

    def _queue(self, lane: Lane, job: Job) -> None:
        """The job waits in a lane, or is refused at once."""
        if self._ended:
            job.reply.set_result(refusal(CLOSING))
        elif lane.failure and not lane.ready:
            job.reply.set_result(refusal(lane.unavailable()))
        elif len(lane.waiting) >= lane.most:
            seconds = 1 if lane is self.quick else max(1, round(self.terms.seconds))
            job.reply.set_result(refusal(too_many(seconds)))
        else:
            job.queued = time.monotonic()
            lane.waiting.append(job)
            lane.deal()

    def leave(self, job: Job) -> None:
        """Nobody waits for this any more."""
        if job.reply.done():
            return
        job.reply.cancel()
        if job.worker is not None and not job.worker.gone:
            job.worker.write(framed(WorkerRequest(job.ticket)))
            if job is job.worker.jobs[0]:
                job.ends = min(job.ends, time.monotonic() + LEFT_SECONDS)
        else:
            for lane in self.lanes:
                with contextlib.suppress(ValueError):
                    lane.waiting.remove(job)

    def back(self, lane: Lane, job: Job, reply: Reply | None) -> None:
        """A process is done with a job: it is answered, or goes to the slow lane."""
        job.worker = None
        if not job.reply.done():
            if reply is not None:
                job.reply.set_result(reply)
            else:
                self._queue(self.slow, job)
        lane.deal()

    def changed(self, lane: Lane) -> None:
        """A process is ready."""
        lane.failure = ""
        lane.deal()

    def lost(self, worker: WorkerProcess) -> None:
        """A process is gone: its job fails, those behind it wait again, and another begins in its place."""
        lane = worker.lane
        lane.workers.remove(worker)
        jobs, how = list(worker.jobs), f"ended {worker.ended()}"
        worker.end()
        lane.lost += 1
        for job in reversed(jobs):
            job.worker = None
            if job is not jobs[0]:
                lane.waiting.appendleft(job)
            elif not job.reply.done():
                sentence = "The process that worked on this ended; ask again, or ask for less at a time."
                job.reply.set_result(refusal(HTTPError(503, sentence, retry=1)))
        if self._ended:
            return
        if worker.answered or jobs:
            self._log(f"a process of the {lane.name} lane {how}")
            self._start_later(lane)
        else:
            self._failed(worker, how)
        lane.deal()

    async def _look(self) -> None:
        """End processes that are stuck, and the waiting for processes that do not come."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            for lane in self.lanes:
                for worker in lane.workers:
                    if worker.jobs and now > worker.jobs[0].ends:
                        worker.kill()  # `lost` hears of it
                if lane.waiting and not lane.ready:
                    lane.refuse(now - WAIT_SECONDS)

    async def end(self) -> None:
        """End all processes; whoever still waits is told so."""
        self._ended = True
        for task in (*self._starting, *(() if self._looking is None else (self._looking,))):
            task.cancel()
        for lane in self.lanes:
            jobs = [*lane.waiting, *(job for worker in lane.workers for job in worker.jobs)]
            lane.waiting.clear()
            for job in jobs:
                if not job.reply.done():
                    job.reply.set_result(refusal(CLOSING))
            for worker in list(lane.workers):
                worker.end()
                if worker.process is not None:
                    worker.process.join(STUCK_SECONDS)
            lane.workers.clear()

    def abandon(self) -> None:
        """Let no process outlive a desk that was not given the time to end."""
        for lane in self.lanes:
            for worker in lane.workers:
                worker.kill()


def _packed(registry: ModelRegistry, terms: ServiceLimits, *, slow: bool) -> bytes:
    try:
        return framed(WorkerConfig(registry=registry, terms=terms, slow=slow))
    except Exception as error:  # pickle, and whatever a model's own __reduce__ raises
        raise QuestionError(
            f"A model cannot be sent to other processes ({type(error).__name__}: {shown(str(error), 120)}); load it "
            f"from a file."
        ) from None
