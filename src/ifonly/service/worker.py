"""The worker process of the service: reads requests from a socket, answers them with a `Handler`, writes replies.

Two things interrupt a request: its client has disconnected, or it has taken too long. In the second case a quick worker
passes the request on to the slow lane, and a slow worker gives up. Both are exceptions that a signal handler raises in
the middle of the work, as Ctrl-C does; a compiled search is stopped by its own flag. A worker that does not stop even
then is killed by its `Pool`.
"""

from __future__ import annotations

import _thread
import os
import pickle
import queue
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ifonly.service.handler import Handler, Reply, error_reply
from ifonly.service.limits import QUICK_SECONDS, ServiceLimits
from ifonly.service.registry import ModelRegistry
from ifonly.service.requests import HTTPError
from ifonly.solvers.search.deadline import expire_all
from ifonly.worker_processes import freeze_heap, read_messages

HEADER = struct.Struct("!I")
"""The length of a message, which goes before it."""
NICENESS = 15
"""Of slow workers: all others come first."""
MAX_ATTEMPTS = 3
"""In the quick lane, where the machine was too busy to let the worker run: that is no sign of a hard request."""
ALARM_SECONDS = 0.5
"""Between two signals of the time-out, should the first come while it cannot be raised."""
COMPILING_SECONDS = 10
"""The Retry-After of a request that has to wait for the compiler, which goes on meanwhile."""
READY = 0
"""The job id of a worker's first message."""
BUG = "Something went wrong here that should not; it was written down without what you asked."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """The first message to a worker."""

    registry: ModelRegistry
    limits: ServiceLimits
    slow: bool


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """A job for a worker; with an empty path: cancel the job of this id."""

    job_id: int
    path: str = ""
    body: bytes = b""
    stream: bool = False


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """What a worker sends about a job: the reply, None where there was too little time, or JSON of an event before."""

    job_id: int
    content: Reply | bytes | None


class _Cancelled(BaseException):
    """The client has disconnected."""


class _TimedOut(BaseException):
    """The request has taken too long."""


def framed(message: Any) -> bytes:
    """A message, pickled, with its length before it."""
    return framed_bytes(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))


def framed_bytes(content: bytes) -> bytes:
    return HEADER.pack(len(content)) + content


class _Connection:
    """The worker's end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def recv_bytes(self) -> bytes:
        return self._receive(*HEADER.unpack(self._receive(HEADER.size)))

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            some = self._end.recv(min(count - len(received), 1 << 20))
            if not some:
                raise EOFError
            received += some
        return bytes(received)

    def send(self, message: WorkerReply) -> None:
        self._end.sendall(framed(message))


def work(end: socket.socket) -> None:
    """The main function of a worker: answer requests until the other end is closed. A traceback would quote rows, so
    none is printed."""
    try:
        _WorkerLoop(_Connection(end)).run()
    except Exception as error:
        sys.stderr.write(f"ifonly desk: a process cannot work: {error_location(error)}\n")
        sys.exit(1)


class _WorkerLoop:
    """The loop of a worker. `current` is the id of the job that may be interrupted now."""

    def __init__(self, connection: _Connection) -> None:
        self.connection, self.waiting = connection, queue.SimpleQueue[Any]()
        self.cancelled: set[int] = set()
        self.current: int | None = None
        signal.signal(signal.SIGINT, self._on_interrupt)  # Ctrl-C itself is for the parent process
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, self._on_alarm)
        threading.Thread(target=read_messages, args=(connection, self._message_received), daemon=True).start()

    def _message_received(self, content: bytes) -> None:
        """Called in the thread that reads the socket."""
        message = pickle.loads(content)
        if isinstance(message, WorkerRequest) and not message.path:
            self.cancelled.add(message.job_id)
            if self.current == message.job_id:
                _thread.interrupt_main()
                expire_all()
        else:
            self.waiting.put(message)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.current in self.cancelled:
            raise _Cancelled

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self.current is not None:
            raise _TimedOut

    def run(self) -> None:
        config: WorkerConfig = self.waiting.get()
        handler = Handler(config.registry, config.limits, slow=config.slow)
        handler.warm_up()
        freeze_heap()
        if config.slow and hasattr(os, "nice"):  # not before: on a busy machine it would take minutes to start
            os.nice(NICENESS)
        self.connection.send(WorkerReply(READY, None))
        while True:
            request: WorkerRequest = self.waiting.get()
            handler.load_compiled_kernels()
            self.connection.send(WorkerReply(request.job_id, self._answer(handler, request)))
            if self.waiting.empty():
                self.cancelled.clear()  # cancellations that came too late

    def _answer(self, handler: Handler, request: WorkerRequest) -> Reply | None:
        """The reply; None for a request that goes to the slow lane, or that was cancelled."""
        for _ in range(MAX_ATTEMPTS):
            started = time.process_time()
            reply = self._attempt(handler, request)
            used = time.process_time() - started
            if reply is not None or handler.slow or request.job_id in self.cancelled or used > 0.5 * QUICK_SECONDS:
                return reply
        return None

    def _attempt(self, handler: Handler, request: WorkerRequest) -> Reply | None:
        on_event = (lambda event: self._send_event(request, event)) if request.stream and handler.slow else None
        try:
            _set_alarm(handler.hard_seconds)
            self.current = request.job_id
            try:
                if request.job_id in self.cancelled:
                    return None
                return handler.reply(request.path, request.body, on_event)
            finally:
                self.current = None
        except _Cancelled:
            return None
        except _TimedOut:
            return _timeout_reply(handler) if handler.slow else None
        except (Exception, RecursionError, MemoryError) as error:
            return Reply(status=500, body=error_reply(HTTPError(500, BUG)).body, bug=error_location(error))
        finally:
            self.current = None
            _set_alarm(0.0)

    def _send_event(self, request: WorkerRequest, event: bytes) -> None:
        """Nothing may interrupt the sending: half a message would be left in the socket."""
        self.current = None
        self.connection.send(WorkerReply(request.job_id, event))
        self.current = request.job_id
        if request.job_id in self.cancelled:
            raise _Cancelled


def _timeout_reply(handler: Handler) -> Reply:
    late = f"This could not be done within {handler.limits.seconds:g} s"
    if handler.being_compiled:
        message = f"{late}, since code is being compiled for this machine; ask again in {COMPILING_SECONDS} s."
        return error_reply(HTTPError(503, message, retry=COMPILING_SECONDS))
    return error_reply(HTTPError(503, f"{late}; ask for less at a time."))


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds, ALARM_SECONDS)


def error_location(error: BaseException) -> str:
    """The type of an error and where it was raised: never its message, which may quote a row."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames[-3:]))  # noqa: PTH119
    return f"{type(error).__name__} at {where}"
