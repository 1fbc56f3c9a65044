"""Runs the service with uvicorn: time-outs for slow clients, limits on headers and connections."""

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
from ifonly.service.access import CSP_NONE, SECURITY_HEADERS, AccessPolicy
from ifonly.service.app import Service, log
from ifonly.service.handler import error_reply
from ifonly.service.limits import HEADER_BYTES, HEADER_SECONDS, READ_SECONDS, ServiceLimits
from ifonly.service.pool import Pool
from ifonly.service.registry import ModelRegistry
from ifonly.service.requests import HTTPError

BACKLOG_SHARE = 4
"""For every so many connections one more may wait to be accepted; refused ones stay open for a moment."""
OWN_FILES = 64
"""File descriptors for everything but connections."""
KEEP_ALIVE_SECONDS = 15
HEADER_END = re.compile(rb"\n\r?\n")
"""As h11 finds the end of a request's header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the service listens, with how many workers, and who has access."""

    host: str = "127.0.0.1"
    port: int = 8000
    quick: int = 1
    slow: int = 1
    access: AccessPolicy = field(default_factory=AccessPolicy)


def serve(
    registry: ModelRegistry, limits: ServiceLimits, config: ServerConfig, announce: Callable[[str], None] = log
) -> None:
    """Serve until SIGTERM or Ctrl-C: then accept no more connections, and answer the requests that are open."""
    uvicorn = needed_uvicorn()
    limits = replace(limits, connections=possible_connections(limits.connections))
    pool = Pool(registry, limits, quick=config.quick, slow=config.slow, log=log)
    settings = uvicorn_config(Service(registry, limits, pool, config.access), limits)
    with _socket(config) as listening:
        host, port = listening.getsockname()[:2]
        announce(f"http://{f'[{host}]' if ':' in host else host}:{port}{config.access.root_path}/")
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when it has ended
            signal.signal(number, lambda *_: None)
        try:
            uvicorn.Server(settings).run(sockets=[listening])
        finally:
            pool.kill_workers()


def uvicorn_config(service: Service, limits: ServiceLimits) -> Any:
    """The settings of uvicorn: no log of requests, time-outs everywhere."""
    return needed_uvicorn().Config(
        service, http=_protocol(limits.connections), ws="none", lifespan="on", interface="asgi3", log_level="error",
        access_log=False, log_config=None, server_header=False, proxy_headers=False,
        backlog=max(1, limits.connections // BACKLOG_SHARE), timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(limits.seconds) + 3,
    )  # fmt: skip


def needed_uvicorn() -> Any:
    """uvicorn, or an error that says how to install it."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("uvicorn", extra="serve", needed_for="The desk") from None
    return uvicorn


def possible_connections(connections: int) -> int:
    """The number of connections, at most what the limit of open files allows, which is raised if possible."""
    try:
        import resource
    except ImportError:  # no such limit
        return connections
    needed, (soft, hard) = (
        connections * (BACKLOG_SHARE + 3) // BACKLOG_SHARE + OWN_FILES,
        resource.getrlimit(resource.RLIMIT_NOFILE),
    )
    if 0 <= soft < needed:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard < 0 else min(needed, hard), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    possible = (
        connections if soft < 0 else max(1, min(connections, (soft - OWN_FILES) * BACKLOG_SHARE // (BACKLOG_SHARE + 3)))
    )
    if possible < connections:
        log(f"at most {possible:,} connections: no more than {soft:,} files may be open (ulimit -n)")
    return possible


def _socket(config: ServerConfig) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        return socket.create_server((config.host, config.port), family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise QuestionError(
            f"Cannot listen on {config.host}:{config.port}: {why}; choose another with --port."
        ) from None


def _set_no_delay(transport: Any) -> None:
    """TCP_NODELAY: without it, a response waits up to 40 ms for the acknowledgement of its header. asyncio sets it only
    where the socket says that it is TCP, which one of `create_server` does not."""
    with contextlib.suppress(OSError):
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _raw_response(reason: str, error: HTTPError, *more: tuple[bytes, bytes]) -> bytes:
    """The bytes of a response to a request that was not read."""
    reply = error_reply(error)
    headers = [(b"content-type", reply.content_type.encode()), (b"content-length", b"%d" % len(reply.body)),
               (b"content-security-policy", CSP_NONE.encode()), (b"connection", b"close"),
               *SECURITY_HEADERS, *more]  # fmt: skip
    head = b"".join(b"%b: %b\r\n" % pair for pair in headers)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (error.status, reason.encode(), head, reply.body)


BAD_REQUEST = _raw_response("Bad Request", HTTPError(400, "This is no request of HTTP/1.1."))
HEADER_TOO_LARGE = _raw_response("Request Header Fields Too Large",
                 HTTPError(431, f"The head of a request has at most {HEADER_BYTES:,} bytes here."))  # fmt: skip
TOO_MANY_CONNECTIONS = _raw_response(
    "Too Many Requests", HTTPError(429, "Too many are connected; ask again in 1 s."), (b"retry-after", b"1")
)


class _IdleTimeouts(asyncio.Protocol):
    """Time-outs for headers that do not arrive and for responses that are not read; a limit on connections."""

    max_connections: int
    new_connection: Callable[[], Any]
    loop: Any
    transport: Any
    conn: Any
    cycle: Any
    connections: Any
    _header_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.conn = self.new_connection()
        _set_no_delay(transport)
        if len(self.connections) > self.max_connections:
            transport.write(TOO_MANY_CONNECTIONS)
            transport.close()
        else:
            self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_header_timer()
        elif self._header_timer is None:
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Replaces uvicorn's own response."""
        from h11 import IDLE, SEND_RESPONSE

        if self.conn.our_state in (IDLE, SEND_RESPONSE):  # no response has started
            too_long = getattr(sys.exception(), "error_status_hint", 400) == 431
            self.transport.write(HEADER_TOO_LARGE if too_long else BAD_REQUEST)
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_timer = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_read_timer()
        super().resume_writing()

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self._header_timeout)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _header_timeout(self) -> None:
        self._header_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def _protocol(max_connections: int) -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol with time-outs, and a limit on headers."""
    from h11 import IDLE, SERVER, Connection, RemoteProtocolError
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class BoundedConnection(Connection):
        """Limits every header: h11 itself limits only one that is incomplete after a read."""

        def next_event(self) -> Any:
            if self.their_state is IDLE:
                received, _ = self.trailing_data
                if len(received) > HEADER_BYTES and not HEADER_END.search(received, 0, HEADER_BYTES):
                    raise RemoteProtocolError("the header is too long", error_status_hint=431)
            return super().next_event()

    connection = staticmethod(lambda: BoundedConnection(SERVER, HEADER_BYTES))
    return type(
        "TimeoutProtocol",
        (_IdleTimeouts, H11Protocol),
        {"max_connections": max_connections, "new_connection": connection},
    )
