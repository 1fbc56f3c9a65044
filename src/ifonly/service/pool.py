"""Supervised worker processes in two lanes (queues), a quick and a slow one.

    quick   every request, for a tenth of a second of search
    slow    those that need longer, with all of their time, in processes of low priority

So one hard request delays the others by a tenth of a second, once. A worker that ends is replaced: the request that it
worked on fails, the requests queued behind it go to other workers. Queues are bounded; the job of a client that has
disconnected is cancelled.

A worker has failed to start if it ends without having replied to anything and without a job. It is started again after
a pause (exponential back-off). As long as a lane has no worker after such a failure, its requests are refused at once
(503, Retry-After); while workers start, requests wait a bounded time.
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

from ifonly.service.handler import Reply, error_reply
from ifonly.service.limits import GRACE_SECONDS, PLAIN_SECONDS, ServiceLimits
from ifonly.service.registry import ModelRegistry
from ifonly.service.requests import HTTPError
from ifonly.service.worker import (
    HEADER,
    MAX_ATTEMPTS,
    READY,
    WorkerConfig,
    WorkerReply,
    WorkerRequest,
    framed,
    framed_bytes,
    work,
)
from ifonly.worker_processes import JOBS_PER_WORKER, backoff, exit_reason, pickled, spawn

WATCH_SECONDS = 0.25
"""Between two checks whether a worker is stuck."""
STUCK_SECONDS = 3.0
"""So long after its own time-out, a worker is killed."""
CANCEL_SECONDS = 10.0
"""So long after its job was cancelled, too."""
EXIT_SECONDS = 1.0
"""How long a worker whose socket is closed may take to exit."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
"""Before a worker that failed to start is started again: `backoff` from the first to the longest."""
START_SECONDS = 5
"""About what a worker takes to be ready: the Retry-After of requests that come before."""
WAIT_SECONDS = 10.0
"""How long a request waits in a lane that has no worker yet."""
CLOSING = HTTPError(503, "The desk is closing; ask again in a moment.", retry=START_SECONDS)


def too_many(seconds: int) -> HTTPError:
    """A queue is full; `seconds`: the Retry-After."""
    return HTTPError(429, f"Too many are waiting; ask again in {seconds} s.", retry=seconds)


@dataclass(eq=False, slots=True)
class Job:
    """A request that waits in a lane or that a worker works on. `on_event` is called with JSON about the search."""

    id: int
    path: str
    body: bytes
    reply: asyncio.Future[Reply]
    on_event: Callable[[bytes], None] | None = None
    worker: WorkerProcess | None = None
    queued_at: float = 0.0
    deadline: float = 0.0
    """When its worker counts as stuck."""


class WorkerProcess(asyncio.Protocol):
    """A worker process, and our end of its socket. It works on the first of its jobs. `failures`: how many processes in
    a row have failed to start in its place."""

    def __init__(self, lane: Lane, failures: int = 0) -> None:
        self.lane, self.failures = lane, failures
        self.jobs, self.ready, self.has_replied, self.closed = deque[Job](), False, False, False
        self.process: SpawnProcess | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()

    async def start(self, config: bytes) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = spawn(work, theirs)
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

    def assign(self, job: Job) -> None:
        job.worker = self
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self._set_deadline(job)
        self.write(framed(WorkerRequest(job.id, job.path, job.body, job.on_event is not None)))

    def _set_deadline(self, job: Job) -> None:
        job.deadline = time.monotonic() + self.lane.seconds + STUCK_SECONDS

    def data_received(self, data: bytes) -> None:
        self._received += data
        at, received = 0, self._received
        while len(received) - at >= HEADER.size:
            (size,) = HEADER.unpack_from(received, at)
            if len(received) - at - HEADER.size < size:
                break
            message: WorkerReply = pickle.loads(memoryview(received)[at + HEADER.size : at + HEADER.size + size])
            at += HEADER.size + size
            self._message_received(message)
        del received[:at]

    def _message_received(self, message: WorkerReply) -> None:
        if message.job_id == READY:
            self.ready = True
            self.lane.pool.worker_ready(self.lane)
            return
        job = self.jobs[0]
        assert job.id == message.job_id
        if isinstance(message.content, bytes):
            if job.on_event is not None and not job.reply.done():
                job.on_event(message.content)
            return
        self.jobs.popleft()
        self.has_replied = True
        if self.jobs:
            self._set_deadline(self.jobs[0])
        self.lane.pool.job_finished(self.lane, job, message.content)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed:
            self.closed = True
            self.lane.pool.worker_lost(self)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def exit_reason(self) -> str:
        """How the process ended, whose end of the socket is closed; one that does not end is killed."""
        if self.process is None:
            return ""
        self.process.join(EXIT_SECONDS)
        self.kill()
        return exit_reason(self.process)

    def stop(self) -> None:
        self.closed = True
        self.kill()
        if self._transport is not None:
            self._transport.close()


@dataclass(eq=False)
class Lane:
    """A bounded queue of jobs, and its workers; `seconds` is what a worker may take for one job."""

    name: str
    pool: Pool
    count: int
    max_waiting: int
    seconds: float
    config: bytes
    workers: list[WorkerProcess] = field(default_factory=list)
    waiting: deque[Job] = field(default_factory=deque)
    lost: int = 0
    failure: str = ""
    """How the last worker ended that failed to start; empty once one is ready."""
    restarts_at: float = 0.0
    """When another is started, after such a failure."""

    def dispatch(self) -> None:
        """Give waiting jobs to workers, the least loaded worker first."""
        while self.waiting:
            free = [one for one in self.workers if one.ready and not one.closed and len(one.jobs) < JOBS_PER_WORKER]
            if not free:
                return
            job = self.waiting.popleft()
            if not job.reply.done():
                min(free, key=lambda worker: len(worker.jobs)).assign(job)

    @property
    def ready(self) -> bool:
        return any(worker.ready for worker in self.workers)

    def unavailable(self) -> HTTPError:
        """Why no worker is ready, and when to ask again."""
        if not self.failure:
            message = f"The processes that answer are starting; ask again in {START_SECONDS} s."
            return HTTPError(503, message, retry=START_SECONDS)
        seconds = max(0, math.ceil(self.restarts_at - time.monotonic())) + START_SECONDS
        return HTTPError(
            503, f"No process can answer: the last one {self.failure}; ask again in {seconds} s.", retry=seconds
        )

    def refuse(self, before: float = math.inf) -> None:
        """No worker is ready: refuse the jobs that have waited since before a time."""
        reply, waiting = error_reply(self.unavailable()), list(self.waiting)
        self.waiting = deque(job for job in waiting if job.queued_at >= before)
        for job in waiting:
            if job.queued_at < before and not job.reply.done():
                job.reply.set_result(reply)


class Pool:
    """The lanes and workers of a service. `log` is called with a line about each worker that ends by itself."""

    def __init__(
        self, registry: ModelRegistry, limits: ServiceLimits, *, quick: int, slow: int, log: Callable[[str], None]
    ) -> None:
        self.limits, self._log, self._last_id = limits, log, READY
        slow_seconds, quick_seconds = limits.seconds + GRACE_SECONDS, MAX_ATTEMPTS * 2.0 * PLAIN_SECONDS
        quick_config, slow_config = (_pickled_config(registry, limits, slow=slow) for slow in (False, True))
        self.quick = Lane("quick", self, quick, limits.waiting, quick_seconds, quick_config)
        self.slow = Lane("slow", self, slow, limits.waiting_long, slow_seconds, slow_config)
        self.lanes = (self.quick, self.slow)
        self._watching: asyncio.Task[None] | None = None
        self._starting: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def start(self) -> None:
        """Start all workers; they are ready later."""
        for lane in self.lanes:
            for _ in range(lane.count):
                await self._start_worker(lane)
        self._watching = asyncio.create_task(self._watch())

    async def _start_worker(self, lane: Lane, failures: int = 0, pause: float = 0.0) -> None:
        await asyncio.sleep(pause)
        worker = WorkerProcess(lane, failures)
        lane.workers.append(worker)
        try:
            await worker.start(lane.config)
        except Exception as error:  # no process or file descriptor is left: that may pass
            if not worker.closed:
                lane.workers.remove(worker)
                worker.stop()
                why = getattr(error, "strerror", None) or type(error).__name__
                self._start_failed(worker, f"could not be started ({why})")

    def _start_failed(self, worker: WorkerProcess, how: str) -> None:
        """A worker failed to start: try again after a pause. Where it was the only one, no request waits for that."""
        lane = worker.lane
        pause = backoff(worker.failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._log(f"a process of the {lane.name} lane {how} before it answered anything; another starts in {pause:g} s")
        lane.failure, lane.restarts_at = how, time.monotonic() + pause
        if not lane.ready:
            lane.refuse()
        self._start_later(lane, worker.failures + 1, pause)

    def _start_later(self, lane: Lane, failures: int = 0, pause: float = 0.0) -> None:
        task = asyncio.get_running_loop().create_task(self._start_worker(lane, failures, pause))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def unavailable(self) -> HTTPError | None:
        """Why requests cannot be answered, if so: some of them need a worker of each lane."""
        if self._stopped:
            return CLOSING
        return next((lane.unavailable() for lane in self.lanes if not lane.ready), None)

    # ------------------------------------------------------------------ jobs

    def submit(self, path: str, body: bytes, on_event: Callable[[bytes], None] | None = None) -> Job:
        """A job for a request, in the quick lane."""
        self._last_id += 1
        job = Job(self._last_id, path, body, asyncio.get_running_loop().create_future(), on_event)
        self._queue(self.quick, job)
        return job

    def _queue(self, lane: Lane, job: Job) -> None:
        """The job waits in a lane, or is refused at once."""
        if self._stopped:
            job.reply.set_result(error_reply(CLOSING))
        elif lane.failure and not lane.ready:
            job.reply.set_result(error_reply(lane.unavailable()))
        elif len(lane.waiting) >= lane.max_waiting:
            seconds = 1 if lane is self.quick else max(1, round(self.limits.seconds))
            job.reply.set_result(error_reply(too_many(seconds)))
        else:
            job.queued_at = time.monotonic()
            lane.waiting.append(job)
            lane.dispatch()

    def cancel(self, job: Job) -> None:
        """The client has disconnected. A job that is done stays as it is."""
        if job.reply.done():
            return
        job.reply.cancel()
        if job.worker is not None and not job.worker.closed:
            job.worker.write(framed(WorkerRequest(job.id)))
            if job is job.worker.jobs[0]:
                job.deadline = min(job.deadline, time.monotonic() + CANCEL_SECONDS)
        else:
            for lane in self.lanes:
                with contextlib.suppress(ValueError):
                    lane.waiting.remove(job)

    def job_finished(self, lane: Lane, job: Job, reply: Reply | None) -> None:
        """A worker is done with a job: it has a reply, or goes to the slow lane."""
        job.worker = None
        if not job.reply.done():
            if reply is not None:
                job.reply.set_result(reply)
            else:
                self._queue(self.slow, job)
        lane.dispatch()

    def worker_ready(self, lane: Lane) -> None:
        lane.failure = ""
        lane.dispatch()

    def worker_lost(self, worker: WorkerProcess) -> None:
        """A worker has ended: its job fails, the jobs behind it wait again, and another is started in its place."""
        lane = worker.lane
        lane.workers.remove(worker)
        jobs, how = list(worker.jobs), f"ended {worker.exit_reason()}"
        worker.stop()
        lane.lost += 1
        for job in reversed(jobs):
            job.worker = None
            if job is not jobs[0]:
                lane.waiting.appendleft(job)
            elif not job.reply.done():
                message = "The process that worked on this ended; ask again, or ask for less at a time."
                job.reply.set_result(error_reply(HTTPError(503, message, retry=1)))
        if self._stopped:
            return
        if worker.has_replied or jobs:
            self._log(f"a process of the {lane.name} lane {how}")
            self._start_later(lane)
        else:
            self._start_failed(worker, how)
        lane.dispatch()

    async def _watch(self) -> None:
        """Kill workers that are stuck, and refuse jobs that have waited too long for a worker to be ready."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = time.monotonic()
            for lane in self.lanes:
                for worker in lane.workers:
                    if worker.jobs and now > worker.jobs[0].deadline:
                        worker.kill()  # `worker_lost` is called then
                if lane.waiting and not lane.ready:
                    lane.refuse(now - WAIT_SECONDS)

    async def stop(self) -> None:
        """End all workers; jobs that are not done are refused."""
        self._stopped = True
        for task in (*self._starting, *(() if self._watching is None else (self._watching,))):
            task.cancel()
        for lane in self.lanes:
            jobs = [*lane.waiting, *(job for worker in lane.workers for job in worker.jobs)]
            lane.waiting.clear()
            for job in jobs:
                if not job.reply.done():
                    job.reply.set_result(error_reply(CLOSING))
            for worker in list(lane.workers):
                worker.stop()
                if worker.process is not None:
                    worker.process.join(STUCK_SECONDS)
            lane.workers.clear()

    def kill_workers(self) -> None:
        """Let no worker outlive a service that had no time to `stop`."""
        for lane in self.lanes:
            for worker in lane.workers:
                worker.kill()


def _pickled_config(registry: ModelRegistry, limits: ServiceLimits, *, slow: bool) -> bytes:
    config = WorkerConfig(registry=registry, limits=limits, slow=slow)
    return framed_bytes(pickled(config, "load the model from a file"))
