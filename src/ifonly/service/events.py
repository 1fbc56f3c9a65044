"""Server-sent events: the bounds of a search as they improve, then the reply."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ifonly.service.handler import Reply, error_reply
from ifonly.service.pool import CLOSING, Job

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

HEARTBEAT_SECONDS = 5.0
"""After so long without an event, a comment keeps the connection alive."""
MAX_EVENTS = 100
"""Events that wait for a slow client; the oldest are dropped."""


class EventStream:
    """The events of one search."""

    def __init__(self) -> None:
        self._bounds: deque[bytes] = deque(maxlen=MAX_EVENTS)
        self._changed = asyncio.Event()

    def add(self, bounds: bytes) -> None:
        self._bounds.append(bounds)
        self._changed.set()

    async def run(self, job: Job, receive: Receive, send: Send) -> Reply:
        """Send events until the job is done, and its reply as the last event; ConnectionError: the client is gone."""
        disconnect: asyncio.Future[Any] = asyncio.ensure_future(receive())
        disconnect.add_done_callback(lambda _: self._changed.set())
        job.reply.add_done_callback(lambda _: self._changed.set())
        try:
            while not job.reply.done():
                if disconnect.done():
                    raise ConnectionError
                self._changed.clear()
                if self._bounds:
                    await send(_body_part(self._take_events()))
                elif not await self._wait():
                    await send(_body_part(b":\n\n"))
            reply = job.reply.result()
            last = _event("answer", reply.body) if reply.status == 200 else _error(reply)
            await send(_body_part(self._take_events() + last, more=False))
            return reply
        except asyncio.CancelledError:
            await send(_body_part(_error(error_reply(CLOSING)), more=False))
            raise
        finally:
            disconnect.cancel()

    async def _wait(self) -> bool:
        """Wait for a change; False after a while without one."""
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _take_events(self) -> bytes:
        events = b"".join(_event("bounds", bounds) for bounds in self._bounds)
        self._bounds.clear()
        return events


def _error(reply: Reply) -> bytes:
    """The error of a reply, with what its head would have said: the status, and when to come again."""
    return _event(
        "error", json.dumps(json.loads(reply.body) | {"status": reply.status, "retry_after": reply.retry}).encode()
    )


def _body_part(content: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


def _event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), data)
