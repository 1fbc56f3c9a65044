"""Batches: a body with one request per line (NDJSON), answered by a stream with one line per request, in their order.

Each line is a job of its own, tried in the quick lane first, as any request is. A batch has few of them under way at a
time, so that others are not kept waiting; one that finds a queue full waits.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ifonly.service.events import Receive, Send
from ifonly.service.handler import Reply, error_reply
from ifonly.service.limits import ServiceLimits
from ifonly.service.pool import CLOSING, Job
from ifonly.service.requests import UNPROCESSABLE, HTTPError

Line = tuple[int, bytes]
"""The number of a line, from 1, and its text."""
NDJSON = "application/x-ndjson"
LINE_PATH = "/v1/explain"
"""What each line is a request to."""
FULL = 429
PAUSE_SECONDS = 0.2
"""Before a line is submitted again that found a queue full."""
LEAST_AHEAD = 2
"""Lines under way in a service with one slow worker."""


class Jobs(Protocol):
    """The part of a `Pool` that a batch needs."""

    def submit(self, path: str, body: bytes) -> Job: ...

    def cancel(self, job: Job) -> None: ...


def batch_lines(body: bytes, limits: ServiceLimits) -> list[Line]:
    """The lines of a body that are not blank."""
    lines = [(number, text.strip()) for number, text in enumerate(body.split(b"\n"), 1) if text.strip()]
    if not lines:
        raise HTTPError(UNPROCESSABLE, 'A batch has a request per line, such as {"row": {...}}; this body is empty.')
    if len(lines) > limits.batch_lines:
        raise HTTPError(413, f"A batch has at most {limits.batch_lines:,} lines here; this one has {len(lines):,}.")
    return lines


class BatchStream:
    """The lines of one batch and their replies. `ahead`: how many are under way at a time; `count` is called with each
    reply."""

    def __init__(
        self, lines: Sequence[Line], jobs: Jobs, limits: ServiceLimits, *, ahead: int, count: Callable[[Reply], None]
    ) -> None:
        self._lines, self._jobs, self._limits, self._count = lines, jobs, limits, count
        self._ahead = max(LEAST_AHEAD, ahead)
        self._deadline = asyncio.get_running_loop().time() + limits.batch_seconds

    async def run(self, receive: Receive, send: Send) -> None:
        """Send a line per request, in order; ConnectionError: the client is gone."""
        disconnect: asyncio.Future[Any] = asyncio.ensure_future(receive())
        rest = iter(self._lines)
        under_way = deque(self._start(line) for line in itertools.islice(rest, self._ahead))
        try:
            while under_way:
                number, task = under_way[0]
                await asyncio.wait([task, disconnect], return_when=asyncio.FIRST_COMPLETED)
                if disconnect.done():
                    raise ConnectionError
                await send(_part(number, task.result()))
                under_way.popleft()
                under_way.extend(self._start(line) for line in itertools.islice(rest, 1))
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            await send({**_part(under_way[0][0] if under_way else 0, error_reply(CLOSING)), "more_body": False})
            raise
        finally:
            disconnect.cancel()
            for _, task in under_way:
                task.cancel()

    def _start(self, line: Line) -> tuple[int, asyncio.Task[Reply]]:
        number, text = line
        return number, asyncio.create_task(self._reply(text))

    async def _reply(self, text: bytes) -> Reply:
        """The reply to a line; one that finds a queue full is submitted again until the batch's time is over."""
        if len(text) > self._limits.body_bytes:
            return error_reply(HTTPError(413, f"A line has at most {self._limits.body_bytes:,} bytes here."))
        now = asyncio.get_running_loop().time
        while (seconds := self._deadline - now()) > 0:
            job = self._jobs.submit(LINE_PATH, text)
            try:
                await asyncio.wait([job.reply], timeout=seconds)
                if not job.reply.done():
                    break
                reply = job.reply.result()
            finally:
                self._jobs.cancel(job)  # no effect on a job that is done
            if reply.status != FULL:
                self._count(reply)
                return reply
            await asyncio.sleep(PAUSE_SECONDS)
        late = f"A batch has {self._limits.batch_seconds:g} s here; send this line and those after it again."
        return error_reply(HTTPError(503, late, retry=1))


def _part(number: int, reply: Reply) -> dict[str, Any]:
    """The line of a reply: the entries of its body after the number of the line and the status."""
    assert reply.body[:1] == b"{"
    line = b'{"line": %d, "status": %d, %b\n' % (number, reply.status, reply.body[1:])
    return {"type": "http.response.body", "body": line, "more_body": True}
