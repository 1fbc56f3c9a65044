"""The desk behind uvicorn, on one socket, until it is told to end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ifonly.desk.app import Desk, Manners, log
from ifonly.desk.pool import Pool
from ifonly.desk.shelf import Shelf
from ifonly.desk.terms import HEADER_BYTES, HEADER_SECONDS, Terms
from ifonly.errors import MissingExtra, QuestionError

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the desk stands, and how many work there."""

    host: str = "127.0.0.1"
    port: int = 8000
    quick: int = 1
    slow: int = 1
    manners: Manners = field(default_factory=Manners)


def serve(shelf: Shelf, terms: Terms, place: Address, announce: Callable[[str], None] = log) -> None:
    """Serve until SIGTERM or Ctrl-C: then nobody new is let in, and who is inside is answered."""
    uvicorn = needed_uvicorn()
    pool = Pool(shelf, terms, quick=place.quick, slow=place.slow, log=log)
    config = configured(Desk(shelf, terms, pool, place.manners), terms)
    with _socket(place) as listening:
        host, port = listening.getsockname()[:2]
        announce(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when it has ended
            signal.signal(number, lambda *_: None)
        uvicorn.Server(config).run(sockets=[listening])


def configured(desk: Desk, terms: Terms) -> Any:
    """How uvicorn is told to serve: nothing of what is asked in its log, an end to all patience."""
    return needed_uvicorn().Config(
        desk, http=_protocol(), ws="none", lifespan="on", interface="asgi3", log_level="error", access_log=False,
        log_config=None, server_header=False, proxy_headers=False, limit_concurrency=terms.connections,
        backlog=BACKLOG, timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=int(terms.seconds) + 3,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )  # fmt: skip


def needed_uvicorn() -> Any:
    """uvicorn, or a sentence that says how to get it."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("uvicorn", extra="serve", needed_for="The desk") from None
    return uvicorn


def _socket(place: Address) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise QuestionError(f"Cannot listen on {place.host}:{place.port}: {why}; choose another with --port.") from None


def _protocol() -> type[asyncio.Protocol]:
    """HTTP as uvicorn speaks it, with an end to the patience for heads of requests that never come."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):  # type: ignore[misc, unused-ignore]
        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self._waiting is None:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

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

    return Patient
