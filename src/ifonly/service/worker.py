"""The process in which a clerk sits: requests come in through a socket, replies go out.

Two things interrupt it. Whoever asked has left: then it stops and goes on with the next. It has taken too long: then a
quick clerk passes the request on, and a slow one gives up. Both are exceptions raised in the middle of the work, as
Ctrl-C is; a search in the middle of a node is told by its own flag. Should even that not help, the process is ended
from outside.
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

from ifonly.population.engines.spawning import listen, settle
from ifonly.service.handler import Handler, Reply, refusal
from ifonly.service.limits import QUICK_SECONDS, ServiceLimits
from ifonly.service.registry import ModelRegistry
from ifonly.service.requests import HTTPError
from ifonly.solvers.search.deadline import expire_all

HEAD = struct.Struct("!I")
NICENESS = 15
"""Of slow clerks: everybody else comes first."""
MOST_TRIES = 3
"""In the quick lane, where the machine was too busy to let us work: that is no sign of a hard question."""
CHIME_SECONDS = 0.5
"""Between two rings of the clock, should the first come at a bad moment."""
COMPILING_SECONDS = 10
"""When to ask again what has to wait for the compiler, which goes on meanwhile."""
READY = 0
"""The ticket of the first message back."""
BUG = "Something went wrong here that should not; it was written down without what you asked."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """What a process is sent first."""

    registry: ModelRegistry
    terms: ServiceLimits
    slow: bool


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """A request on its way to a clerk; with an empty path: whoever sent the one with this ticket has left."""

    ticket: int
    path: str = ""
    body: bytes = b""
    stream: bool = False


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """What comes back for a ticket: a reply, None where there was too little time, or JSON to pass on meanwhile."""

    ticket: int
    said: Reply | bytes | None


class _Cancelled(BaseException):
    """Nobody waits for this any more."""


class _TimedOut(BaseException):
    """This takes too long."""


def framed(message: Any) -> bytes:
    """A message with its length before it."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEAD.pack(len(content)) + content


class _Connection:
    """Our end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def recv_bytes(self) -> bytes:
        return self._take(*HEAD.unpack(self._take(HEAD.size)))

    def _take(self, count: int) -> bytes:
        taken = bytearray()
        while len(taken) < count:
            some = self._end.recv(min(count - len(taken), 1 << 20))
            if not some:
                raise EOFError
            taken += some
        return bytes(taken)

    def send(self, word: WorkerReply) -> None:
        self._end.sendall(framed(word))


def work(end: socket.socket) -> None:
    """Answer what comes in until the other end is closed. A traceback would quote rows, so there is none."""
    try:
        _WorkerLoop(_Connection(end)).go_on()
    except Exception as error:
        sys.stderr.write(f"ifonly desk: a process cannot work: {placed(error)}\n")
        sys.exit(1)


class _WorkerLoop:
    """One clerk at work. `doing` is the ticket that may be interrupted now."""

    def __init__(self, line: _Connection) -> None:
        self.line, self.waiting = line, queue.SimpleQueue[Any]()
        self.left: set[int] = set()
        self.doing: int | None = None
        signal.signal(signal.SIGINT, self._called)  # Ctrl-C itself is for whoever began us
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, self._rung)
        threading.Thread(target=listen, args=(line, self._take), daemon=True).start()

    def _take(self, message: bytes) -> None:
        """In the listening thread."""
        what = pickle.loads(message)
        if isinstance(what, WorkerRequest) and not what.path:
            self.left.add(what.ticket)
            if self.doing == what.ticket:
                _thread.interrupt_main()
                expire_all()
        else:
            self.waiting.put(what)

    def _called(self, number: int, frame: FrameType | None) -> None:
        if self.doing in self.left:
            raise _Cancelled

    def _rung(self, number: int, frame: FrameType | None) -> None:
        if self.doing is not None:
            raise _TimedOut

    def go_on(self) -> None:
        config: WorkerConfig = self.waiting.get()
        handler = Handler(config.registry, config.terms, slow=config.slow)
        handler.compile_kernels()
        settle()
        if config.slow and hasattr(os, "nice"):  # not before: on a busy machine it would take minutes to begin
            os.nice(NICENESS)
        self.line.send(WorkerReply(READY, None))
        while True:
            request: WorkerRequest = self.waiting.get()
            handler.look_for_kernels()
            self.line.send(WorkerReply(request.ticket, self._done(handler, request)))
            if self.waiting.empty():
                self.left.clear()  # whoever was too late to be noticed

    def _done(self, handler: Handler, request: WorkerRequest) -> Reply | None:
        """The reply; None for a request that is to be tried elsewhere, or that nobody waits for."""
        for _ in range(MOST_TRIES):
            begun = time.process_time()
            reply = self._tried(handler, request)
            used = time.process_time() - begun
            if reply is not None or handler.slow or request.ticket in self.left or used > 0.5 * QUICK_SECONDS:
                return reply
        return None

    def _tried(self, handler: Handler, request: WorkerRequest) -> Reply | None:
        tell = (lambda told: self._tell(request, told)) if request.stream and handler.slow else None
        try:
            _set_clock(handler.hard_seconds)
            self.doing = request.ticket
            try:
                return None if request.ticket in self.left else handler.reply(request.path, request.body, tell)
            finally:
                self.doing = None
        except _Cancelled:
            return None
        except _TimedOut:
            return _late(handler) if handler.slow else None
        except (Exception, RecursionError, MemoryError) as error:
            return Reply(status=500, body=refusal(HTTPError(500, BUG)).body, bug=placed(error))
        finally:
            self.doing = None
            _set_clock(0.0)

    def _tell(self, request: WorkerRequest, told: bytes) -> None:
        """Half a message must not be sent: meanwhile nothing interrupts."""
        self.doing = None
        self.line.send(WorkerReply(request.ticket, told))
        self.doing = request.ticket
        if request.ticket in self.left:
            raise _Cancelled


def _late(handler: Handler) -> Reply:
    late = f"This could not be done within {handler.terms.seconds:g} s"
    if handler.being_compiled:
        sentence = f"{late}, since code is being compiled for this machine; ask again in {COMPILING_SECONDS} s."
        return refusal(HTTPError(503, sentence, retry=COMPILING_SECONDS))
    return refusal(HTTPError(503, f"{late}; ask for less at a time."))


def _set_clock(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds, CHIME_SECONDS)


def placed(error: BaseException) -> str:
    """The kind of an error and where it was raised: never its message, which may quote a row."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames[-3:]))  # noqa: PTH119
    return f"{type(error).__name__} at {where}"
