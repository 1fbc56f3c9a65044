"""Server-sent events: the bounds of a search as they improve, then the answer."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ifonly.service.handler import Reply, refusal
from ifonly.service.pool import CLOSING, Job

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

QUIET_SECONDS = 5.0
"""After so long without an event, a comment says that we are still there."""
MOST_EVENTS = 100
"""Bounds that wait for a slow client: older ones are forgotten."""


class Stream:
    """The events of one search."""

    def __init__(self) -> None:
        self._bounds: deque[bytes] = deque(maxlen=MOST_EVENTS)
        self._news = asyncio.Event()

    def tell(self, bounds: bytes) -> None:
        self._bounds.append(bounds)
        self._news.set()

    async def run(self, job: Job, receive: Receive, send: Send) -> Reply:
        """Send events until the job is done, and the reply as the last of them; ConnectionError: the client is gone."""
        leaving: asyncio.Future[Any] = asyncio.ensure_future(receive())
        leaving.add_done_callback(lambda _: self._news.set())
        job.reply.add_done_callback(lambda _: self._news.set())
        try:
            while not job.reply.done():
                if leaving.done():
                    raise ConnectionError
                self._news.clear()
                if self._bounds:
                    await send(_part(self._taken()))
                elif not await self._heard():
                    await send(_part(b":\n\n"))
            reply = job.reply.result()
            last = _event("answer", reply.body) if reply.status == 200 else _error(reply)
            await send(_part(self._taken() + last, more=False))
            return reply
        except asyncio.CancelledError:
            await send(_part(_error(refusal(CLOSING)), more=False))
            raise
        finally:
            leaving.cancel()

    async def _heard(self) -> bool:
        """Has anything happened within a while?"""
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _taken(self) -> bytes:
        taken = b"".join(_event("bounds", bounds) for bounds in self._bounds)
        self._bounds.clear()
        return taken


def _error(reply: Reply) -> bytes:
    """The error of a reply, with what its head would have said: the status, and when to come again."""
    return _event(
        "error", json.dumps(json.loads(reply.body) | {"status": reply.status, "retry_after": reply.retry}).encode()
    )


def _part(content: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


def _event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), data)
