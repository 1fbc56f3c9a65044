"""Processes that answer, and the two lanes in which requests wait for them.

    quick   every request, for a tenth of a second of search
    slow    those that need longer, with all of their time, in processes of low priority

So one hard request costs the others a tenth of a second, once. A process that ends is replaced: the request that it
worked on fails, those behind it are dealt out again. Requests wait in bounded queues; whoever leaves is forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.context import SpawnProcess
from typing import Any

from ifonly.desk.bodies import Declined
from ifonly.desk.clerk import Reply, refusal
from ifonly.desk.shelf import Shelf
from ifonly.desk.terms import GRACE_SECONDS, PLAIN_SECONDS, Terms
from ifonly.desk.worker import HEAD, MOST_TRIES, READY, Back, Duty, Errand, framed, work
from ifonly.errors import QuestionError
from ifonly.population.engines.spawning import how_it_ended, spawned
from ifonly.printing import shown

AHEAD = 2
"""Requests that a process has: the one it works on, and the next."""
LOOK_SECONDS = 0.25
"""How often somebody looks whether a process is stuck."""
STUCK_SECONDS = 3.0
"""So long after its own clock has rung, a process is ended."""
LEFT_SECONDS = 10.0
"""So long after it was told that nobody waits, it is ended, too."""
MOST_STILLBORN = 3
"""Processes in a row that ended before they began."""
REST_SECONDS = 1.0
"""Before another is begun in the place of one that never began."""
CLOSING = Declined(503, "The desk is closing; ask again in a moment.")


class Full(Exception):
    """No room in a lane; `seconds`: when to come again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    @property
    def reply(self) -> Reply:
        declined = Declined(429, f"Too many are waiting; ask again in {self.seconds} s.")
        return replace(refusal(declined), retry=self.seconds)


@dataclass(eq=False, slots=True)
class Job:
    """A request that waits or is worked on. `tell` hears JSON about a search under way."""

    ticket: int
    path: str
    body: bytes
    reply: asyncio.Future[Reply]
    tell: Callable[[bytes], None] | None = None
    hand: Hand | None = None
    begun: float = 0.0
    ends: float = 0.0
    """When its process counts as stuck."""


class Hand(asyncio.Protocol):
    """A process, and our end of its socket. The first of its jobs is the one that it works on."""

    def __init__(self, lane: Lane) -> None:
        self.lane, self.jobs, self.ready, self.gone = lane, deque[Job](), False, False
        self.process: SpawnProcess | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._came = bytearray()

    async def begin(self, duty: bytes) -> None:
        ours, theirs = socket.socketpair()
        self.process = spawned(work, theirs)
        theirs.close()
        loop = asyncio.get_running_loop()
        unix = getattr(socket, "AF_UNIX", None)
        connect: Any = loop.create_unix_connection if ours.family == unix else loop.create_connection
        await connect(lambda: self, sock=ours)
        self.write(duty)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def write(self, message: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(message)

    def give(self, job: Job) -> None:
        job.hand = self
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self._start(job)
        self.write(framed(Errand(job.ticket, job.path, job.body, job.tell is not None)))

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
            word: Back = pickle.loads(memoryview(came)[at + HEAD.size : at + HEAD.size + size])
            at += HEAD.size + size
            self._hear(word)
        del came[:at]

    def _hear(self, word: Back) -> None:
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
    duty: bytes
    hands: list[Hand] = field(default_factory=list)
    waiting: deque[Job] = field(default_factory=deque)
    stillborn: int = 0
    lost: int = 0

    def deal(self) -> None:
        """Give out what waits, the idlest process first."""
        while self.waiting:
            ready = [hand for hand in self.hands if hand.ready and not hand.gone and len(hand.jobs) < AHEAD]
            if not ready:
                return
            job = self.waiting.popleft()
            if not job.reply.done():
                min(ready, key=lambda hand: len(hand.jobs)).give(job)

    @property
    def broken(self) -> bool:
        return self.stillborn >= MOST_STILLBORN


class Pool:
    """The processes of a desk. `log` is told of what ends without being told to."""

    def __init__(self, shelf: Shelf, terms: Terms, *, quick: int, slow: int, log: Callable[[str], None]) -> None:
        self.terms, self._log, self._tickets = terms, log, READY
        limit, tries = terms.seconds + GRACE_SECONDS, MOST_TRIES * 2.0 * PLAIN_SECONDS
        self.quick = Lane("quick", self, quick, terms.waiting, tries, _packed(shelf, terms, slow=False))
        self.slow = Lane("slow", self, slow, terms.waiting_long, limit, _packed(shelf, terms, slow=True))
        self.lanes = (self.quick, self.slow)
        self._looking: asyncio.Task[None] | None = None
        self._starting: set[asyncio.Task[None]] = set()
        self._ended = False

    async def begin(self) -> None:
        """Start all processes; they are ready later."""
        for lane in self.lanes:
            for _ in range(lane.count):
                await self._another(lane)
        self._looking = asyncio.create_task(self._look())

    async def _another(self, lane: Lane, rest: float = 0.0) -> None:
        await asyncio.sleep(rest)
        if not self._ended:
            hand = Hand(lane)
            lane.hands.append(hand)
            try:
                await hand.begin(lane.duty)
            except OSError as error:  # no room for another file or process: perhaps later
                self._log(f"a process of the {lane.name} lane cannot be begun: {error.strerror}")
                lane.hands.remove(hand)
                hand.end()
                self._begin(lane, REST_SECONDS)

    def _begin(self, lane: Lane, rest: float) -> None:
        """Another process, after a rest."""
        task = asyncio.get_running_loop().create_task(self._another(lane, rest))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    @property
    def ready(self) -> bool:
        """Is there somebody in each lane?"""
        return not self._ended and all(any(hand.ready for hand in lane.hands) for lane in self.lanes)

    @property
    def broken(self) -> bool:
        return any(lane.broken for lane in self.lanes)

    # ------------------------------------------------------------------ jobs

    def ask(self, path: str, body: bytes, tell: Callable[[bytes], None] | None = None) -> Job:
        """A job for a request, in the quick lane."""
        self._tickets += 1
        job = Job(self._tickets, path, body, asyncio.get_running_loop().create_future(), tell)
        self._queue(self.quick, job)
        return job

    def _queue(self, lane: Lane, job: Job) -> None:
        if len(lane.waiting) >= lane.most:
            raise Full(1 if lane is self.quick else max(1, round(self.terms.seconds)))
        lane.waiting.append(job)
        lane.deal()

    def leave(self, job: Job) -> None:
        """Nobody waits for this any more."""
        if job.reply.done():
            return
        job.reply.cancel()
        if job.hand is not None and not job.hand.gone:
            job.hand.write(framed(Errand(job.ticket)))
            if job is job.hand.jobs[0]:
                job.ends = min(job.ends, time.monotonic() + LEFT_SECONDS)
        else:
            for lane in self.lanes:
                with contextlib.suppress(ValueError):
                    lane.waiting.remove(job)

    def back(self, lane: Lane, job: Job, reply: Reply | None) -> None:
        """A process is done with a job: it is answered, or goes to the slow lane."""
        job.hand = None
        if not job.reply.done():
            if reply is not None:
                job.reply.set_result(reply)
            else:
                try:
                    self._queue(self.slow, job)
                except Full as full:
                    job.reply.set_result(full.reply)
        lane.deal()

    def changed(self, lane: Lane) -> None:
        """A process has begun."""
        lane.stillborn = 0
        lane.deal()

    def lost(self, hand: Hand) -> None:
        """A process is gone: its job fails, those behind it wait again, and another begins in its place."""
        lane = hand.lane
        lane.hands.remove(hand)
        jobs, how = list(hand.jobs), "" if hand.process is None else how_it_ended(hand.process)
        hand.end()
        lane.lost += 1
        for job in reversed(jobs):
            job.hand = None
            if job is not jobs[0]:
                lane.waiting.appendleft(job)
            elif not job.reply.done():
                sentence = "The process that worked on this ended; ask again, or ask for less at a time."
                job.reply.set_result(refusal(Declined(503, sentence)))
        if self._ended:
            return
        self._log(f"a process of the {lane.name} lane ended {how}")
        lane.stillborn += not hand.ready
        if lane.broken:
            self._log(f"{MOST_STILLBORN} processes of the {lane.name} lane ended before they began; no more are begun")
            return
        self._begin(lane, 0.0 if hand.ready else REST_SECONDS)
        lane.deal()

    async def _look(self) -> None:
        """End processes that are stuck."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            for lane in self.lanes:
                for hand in lane.hands:
                    if hand.jobs and now > hand.jobs[0].ends:
                        hand.kill()  # `lost` hears of it

    async def end(self) -> None:
        """End all processes; whoever still waits is told so."""
        self._ended = True
        if self._looking is not None:
            self._looking.cancel()
        for lane in self.lanes:
            jobs = [*lane.waiting, *(job for hand in lane.hands for job in hand.jobs)]
            lane.waiting.clear()
            for job in jobs:
                if not job.reply.done():
                    job.reply.set_result(refusal(CLOSING))
            for hand in list(lane.hands):
                hand.end()
                if hand.process is not None:
                    hand.process.join(STUCK_SECONDS)
            lane.hands.clear()

    def abandon(self) -> None:
        """Let no process outlive a desk that was not given the time to end."""
        for lane in self.lanes:
            for hand in lane.hands:
                hand.kill()


def _packed(shelf: Shelf, terms: Terms, *, slow: bool) -> bytes:
    try:
        return framed(Duty(shelf=shelf, terms=terms, slow=slow))
    except Exception as error:  # pickle, and whatever a model's own __reduce__ raises
        raise QuestionError(
            f"A model cannot be sent to other processes ({type(error).__name__}: {shown(str(error), 120)}); load it "
            f"from a file."
        ) from None
