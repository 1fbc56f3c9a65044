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

from ifonly.desk.bodies import Declined
from ifonly.desk.clerk import Clerk, Reply, refusal
from ifonly.desk.shelf import Shelf
from ifonly.desk.terms import QUICK_SECONDS, Terms
from ifonly.population.engines.spawning import listen, settle
from ifonly.search.alarm import ring_all

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
class Duty:
    """What a process is sent first."""

    shelf: Shelf
    terms: Terms
    slow: bool


@dataclass(frozen=True, slots=True)
class Errand:
    """A request on its way to a clerk; with an empty path: whoever sent the one with this ticket has left."""

    ticket: int
    path: str = ""
    body: bytes = b""
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Back:
    """What comes back for a ticket: a reply, None where there was too little time, or JSON to pass on meanwhile."""

    ticket: int
    said: Reply | bytes | None


class _Left(BaseException):
    """Nobody waits for this any more."""


class _Late(BaseException):
    """This takes too long."""


def framed(message: Any) -> bytes:
    """A message with its length before it."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEAD.pack(len(content)) + content


class _Line:
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

    def send(self, word: Back) -> None:
        self._end.sendall(framed(word))


def work(end: socket.socket) -> None:
    """Answer what comes in until the other end is closed. A traceback would quote rows, so there is none."""
    try:
        _Sitting(_Line(end)).go_on()
    except Exception as error:
        sys.stderr.write(f"ifonly desk: a process cannot work: {placed(error)}\n")
        sys.exit(1)


class _Sitting:
    """One clerk at work. `doing` is the ticket that may be interrupted now."""

    def __init__(self, line: _Line) -> None:
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
        if isinstance(what, Errand) and not what.path:
            self.left.add(what.ticket)
            if self.doing == what.ticket:
                _thread.interrupt_main()
                ring_all()
        else:
            self.waiting.put(what)

    def _called(self, number: int, frame: FrameType | None) -> None:
        if self.doing in self.left:
            raise _Left

    def _rung(self, number: int, frame: FrameType | None) -> None:
        if self.doing is not None:
            raise _Late

    def go_on(self) -> None:
        duty: Duty = self.waiting.get()
        clerk = Clerk(duty.shelf, duty.terms, slow=duty.slow)
        clerk.warm_up()
        settle()
        if duty.slow and hasattr(os, "nice"):  # not before: on a busy machine it would take minutes to begin
            os.nice(NICENESS)
        self.line.send(Back(READY, None))
        while True:
            errand: Errand = self.waiting.get()
            clerk.look_for_kernels()
            self.line.send(Back(errand.ticket, self._done(clerk, errand)))
            if self.waiting.empty():
                self.left.clear()  # whoever was too late to be noticed

    def _done(self, clerk: Clerk, errand: Errand) -> Reply | None:
        """The reply; None for a request that is to be tried elsewhere, or that nobody waits for."""
        for _ in range(MOST_TRIES):
            begun = time.process_time()
            reply = self._tried(clerk, errand)
            used = time.process_time() - begun
            if reply is not None or clerk.slow or errand.ticket in self.left or used > 0.5 * QUICK_SECONDS:
                return reply
        return None

    def _tried(self, clerk: Clerk, errand: Errand) -> Reply | None:
        tell = (lambda told: self._tell(errand, told)) if errand.stream and clerk.slow else None
        try:
            _set_clock(clerk.hard_seconds)
            self.doing = errand.ticket
            try:
                return None if errand.ticket in self.left else clerk.reply(errand.path, errand.body, tell)
            finally:
                self.doing = None
        except _Left:
            return None
        except _Late:
            return _late(clerk) if clerk.slow else None
        except (Exception, RecursionError, MemoryError) as error:
            return Reply(status=500, body=refusal(Declined(500, BUG)).body, bug=placed(error))
        finally:
            self.doing = None
            _set_clock(0.0)

    def _tell(self, errand: Errand, told: bytes) -> None:
        """Half a message must not be sent: meanwhile nothing interrupts."""
        self.doing = None
        self.line.send(Back(errand.ticket, told))
        self.doing = errand.ticket
        if errand.ticket in self.left:
            raise _Left


def _late(clerk: Clerk) -> Reply:
    late = f"This could not be done within {clerk.terms.seconds:g} s"
    if clerk.being_compiled:
        sentence = f"{late}, since code is being compiled for this machine; ask again in {COMPILING_SECONDS} s."
        return refusal(Declined(503, sentence, retry=COMPILING_SECONDS))
    return refusal(Declined(503, f"{late}; ask for less at a time."))


def _set_clock(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds, CHIME_SECONDS)


def placed(error: BaseException) -> str:
    """The kind of an error and where it was raised: never its message, which may quote a row."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames[-3:]))  # noqa: PTH119
    return f"{type(error).__name__} at {where}"
