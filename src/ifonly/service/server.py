"""The desk behind uvicorn, on one socket, until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ifonly.errors import MissingExtra, QuestionError
from ifonly.service.app import NOTHING, SAFE, AccessPolicy, Service, log
from ifonly.service.handler import refusal
from ifonly.service.limits import HEADER_BYTES, HEADER_SECONDS, READ_SECONDS, ServiceLimits
from ifonly.service.pool import Pool
from ifonly.service.registry import ModelRegistry
from ifonly.service.requests import HTTPError

DOOR = 4
"""Of so many connections one more may wait at the door, and until they are sent away three times as many are open."""
OWN_FILES = 64
"""Files that are open besides."""
KEEP_ALIVE_SECONDS = 15
HEAD_ENDS = re.compile(rb"\n\r?\n")
"""As h11 finds the end of a head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the desk stands, and how many work there."""

    host: str = "127.0.0.1"
    port: int = 8000
    quick: int = 1
    slow: int = 1
    access: AccessPolicy = field(default_factory=AccessPolicy)


def serve(registry: ModelRegistry, terms: ServiceLimits, place: Address, announce: Callable[[str], None] = log) -> None:
    """Serve until SIGTERM or Ctrl-C: then nobody new is let in, and who is inside is answered."""
    uvicorn = needed_uvicorn()
    terms = replace(terms, connections=room_for(terms.connections))
    pool = Pool(registry, terms, quick=place.quick, slow=place.slow, log=log)
    config = configured(Service(registry, terms, pool, place.access), terms)
    with _socket(place) as listening:
        host, port = listening.getsockname()[:2]
        announce(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when it has ended
            signal.signal(number, lambda *_: None)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            pool.abandon()


def configured(desk: Service, terms: ServiceLimits) -> Any:
    """How uvicorn is told to serve: nothing of what is asked in its log, an end to all patience."""
    return needed_uvicorn().Config(
        desk, http=_protocol(terms.connections), ws="none", lifespan="on", interface="asgi3", log_level="error",
        access_log=False, log_config=None, server_header=False, proxy_headers=False,
        backlog=max(1, terms.connections // DOOR), timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(terms.seconds) + 3,
    )  # fmt: skip


def needed_uvicorn() -> Any:
    """uvicorn, or a sentence that says how to get it."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("uvicorn", extra="serve", needed_for="The desk") from None
    return uvicorn


def room_for(connections: int) -> int:
    """So many connections, or as many as there can be open files; where there may be more of these, there are."""
    try:
        import resource
    except ImportError:  # no such limit
        return connections
    needed, (soft, hard) = connections * (DOOR + 3) // DOOR + OWN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < needed:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard < 0 else min(needed, hard), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = connections if soft < 0 else max(1, min(connections, (soft - OWN_FILES) * DOOR // (DOOR + 3)))
    if room < connections:
        log(f"there is room for {room:,} connections: no more than {soft:,} files may be open (ulimit -n)")
    return room


def _socket(place: Address) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise QuestionError(f"Cannot listen on {place.host}:{place.port}: {why}; choose another with --port.") from None


def _send_at_once(transport: Any) -> None:
    """Otherwise an answer waits up to 40 ms for the client to confirm its head. asyncio does this by itself, but only
    where the socket says that it is TCP, which one of `create_server` does not."""
    with contextlib.suppress(OSError):
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _told(line: str, refused: HTTPError, *more: tuple[bytes, bytes]) -> bytes:
    """An answer to somebody whose request was not read."""
    reply = refusal(refused)
    headers = [(b"content-type", reply.kind.encode()), (b"content-length", b"%d" % len(reply.body)),
               (b"content-security-policy", NOTHING.encode()), (b"connection", b"close"), *SAFE, *more]  # fmt: skip
    head = b"".join(b"%b: %b\r\n" % pair for pair in headers)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (refused.status, line.encode(), head, reply.body)


NO_HTTP = _told("Bad Request", HTTPError(400, "This is no request of HTTP/1.1."))
TOO_LONG = _told("Request Header Fields Too Large",
                 HTTPError(431, f"The head of a request has at most {HEADER_BYTES:,} bytes here."))  # fmt: skip
CROWDED = _told(
    "Too Many Requests", HTTPError(429, "Too many are connected; ask again in 1 s."), (b"retry-after", b"1")
)


class _IdleTimeouts(asyncio.Protocol):
    """An end to the patience for heads of requests that never come, and for answers that nobody reads; room for at most
    `most` clients."""

    most: int
    new_connection: Callable[[], Any]
    loop: Any
    transport: Any
    conn: Any
    cycle: Any
    connections: Any
    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.conn = self.new_connection()
        _send_at_once(transport)
        if len(self.connections) > self.most:
            transport.write(CROWDED)
            transport.close()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._read()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """In the place of uvicorn's own."""
        from h11 import IDLE, SEND_RESPONSE

        if self.conn.our_state in (IDLE, SEND_RESPONSE):  # nothing of an answer is on its way
            too_long = getattr(sys.exception(), "error_status_hint", 400) == 431
            self.transport.write(TOO_LONG if too_long else NO_HTTP)
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._read()
        super().resume_writing()

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def _protocol(most: int) -> type[asyncio.Protocol]:
    """HTTP as uvicorn speaks it, with patience that ends, and a limit for heads."""
    from h11 import IDLE, SERVER, Connection, RemoteProtocolError
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Bounded(Connection):
        """Counts the bytes of every head: h11 itself counts only those of a head that is incomplete after a read."""

        def next_event(self) -> Any:
            if self.their_state is IDLE:
                received, _ = self.trailing_data
                if len(received) > HEADER_BYTES and not HEAD_ENDS.search(received, 0, HEADER_BYTES):
                    raise RemoteProtocolError("the head is too long", error_status_hint=431)
            return super().next_event()

    connection = staticmethod(lambda: Bounded(SERVER, HEADER_BYTES))
    return type("Patient", (_IdleTimeouts, H11Protocol), {"most": most, "new_connection": connection})
