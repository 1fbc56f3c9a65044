"""The desk as an ASGI application. It only receives, keeps out, passes on and sends: what is asked is read by a clerk.

Bodies have readers of their own, with sentences of their own, and there are a dozen fixed paths: a framework would add
a second definition of every body, and half a millisecond to each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from ifonly.errors import QuestionError
from ifonly.printing import json_text, printable, shown
from ifonly.service.events import Receive, Send, Stream
from ifonly.service.handler import JSON, PAGE, Reply, refusal
from ifonly.service.limits import BODY_SECONDS, ServiceLimits
from ifonly.service.metrics import KIND, Metrics
from ifonly.service.openapi import PROBES, description
from ifonly.service.pool import CLOSING, Job, Pool, too_many
from ifonly.service.registry import ModelRegistry
from ifonly.service.requests import HTTPError
from ifonly.service.static_files import page_files
from ifonly.service.worker import BUG, placed

Headers = list[tuple[bytes, bytes]]

WATCH_SECONDS = 0.25
"""Whoever waits longer is watched: should the client leave, the work stops."""
MOST_QUERY_STRING = 1000

SAFE: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
]
NOTHING = "default-src 'none'; frame-ancestors 'none'"
REPORT = f"{NOTHING}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
OF_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
ASKED = ("/v1/explain", "/v1/diverse", "/v1/predict", "/v1/rule", "/v1/certify", "/v1/check", "/v1/report")
"""Paths that a clerk answers with one reply."""
STREAM = "/v1/explain/stream"
CHECK = "/v1/check"
KINDS = {CHECK: (b"application/json", b"application/octet-stream")}
"""What a body may be, where it may be something else than JSON. None of these can be sent by a form of another site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """Who may ask: with which key, under which names of this machine."""

    key: str = ""
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.key.isascii() or not self.key.isprintable() or self.key != self.key.strip():
            raise QuestionError("A key has letters, digits and signs of ASCII, and no space at its ends.")

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """A page of another site that has renamed itself to our address (DNS rebinding) comes under its own name."""
        name = headers.get(b"host", b"").decode("latin-1").lower()
        before, _, port = name.rpartition(":")
        bare = before if before and not port.strip("0123456789") else name
        if bare == "localhost" or bare.rstrip(".") in self.hosts or "*" in self.hosts:
            return
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(bare.strip("[]"))
            return
        raise HTTPError(421, f"This desk is not called {shown(name)}; start it with --allow-host to give it that name.")

    def check_key(self, headers: Mapping[bytes, bytes]) -> None:
        if not self.key:
            return
        given = headers.get(b"authorization", b"")
        wanted = b"Bearer " + self.key.encode("utf-8")
        if not hmac.compare_digest(given, wanted):
            raise HTTPError(401, "This desk needs a key: send the header 'Authorization: Bearer KEY'.")


@dataclass(slots=True)
class Request:
    """One request on its way through."""

    scope: dict[str, Any]
    receive: Receive
    send: Send
    path: str
    headers: dict[bytes, bytes]
    status: int = 0
    held: int = 0
    more: Headers = field(default_factory=list)

    async def answer(self, status: int, body: bytes, kind: str, policy: str = NOTHING) -> None:
        self.status = status
        headers = [
            (b"content-type", kind.encode("latin-1")),
            (b"content-length", b"%d" % len(body)),
            (b"content-security-policy", policy.encode("latin-1")),
            *SAFE,
            *self.more,
        ]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else body})


def log(line: str) -> None:
    """For whoever runs the desk; never anything that somebody sent."""
    sys.stderr.write(f"ifonly desk: {line}\n")
    sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class Route:
    """What answers a path, and to which methods. `public`: also without the key, so it tells nothing of models or of
    what is asked."""

    methods: tuple[str, ...]
    serve: Callable[[Request], Awaitable[None]]
    public: bool = False


class Service:
    """Call it as ASGI servers do. `pool` answers; everything else is made before the first request."""

    def __init__(self, registry: ModelRegistry, terms: ServiceLimits, pool: Pool, access: AccessPolicy) -> None:
        from ifonly import __version__

        self.terms, self.pool, self.access, self.metrics = terms, pool, access, Metrics()
        self._held = 0
        self._schemas = {registered.name: _json(registered.told(terms)) for registered in registry}
        self._first = next(iter(self._schemas))
        self._files = page_files()
        self._fixed = {
            "/v1/models": _json(registry.told(__version__)),
            "/openapi.json": _json(description(registry, terms, __version__, keyed=bool(access.key))),
            "/livez": b'{"status": "alive"}',
        }
        read = ("GET", "HEAD")
        self.routes = {
            **{path: Route(("POST",), self._asked) for path in (*ASKED, STREAM)},
            "/v1/models": Route(read, self._told),
            "/v1/schema": Route(read, self._schema),
            "/openapi.json": Route(read, self._told),
            "/metrics": Route(read, self._counts),
            "/livez": Route(read, self._told, public=True),
            "/healthz": Route(read, self._health, public=True),
            "/readyz": Route(read, self._health, public=True),
            **{path: Route(read, self._page, public=True) for path in self._files},
        }

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            with contextlib.suppress(asyncio.CancelledError):  # no time is given to end
                await self._live(receive, send)
        elif scope["type"] == "http":
            await self._visited(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.pool.begin()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.pool.end()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _visited(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        request = Request(scope, receive, send, scope["path"], dict(scope["headers"]))
        try:
            await self._serve(request)
        except HTTPError as refused:
            await self._refuse(request, refused)
        except ClientDisconnected:
            self.metrics.left += 1
            request.status = 499
        except asyncio.CancelledError:  # the desk closes, and waits no longer; a stream has said so by itself
            if not request.status:
                await self._refuse(request, CLOSING)
        except Exception as error:
            self._note(placed(error))
            if not request.status:
                await self._refuse(request, HTTPError(500, BUG))
        finally:
            self._held -= request.held
            self.metrics.count(self._known(request.path), request.status, time.perf_counter() - begun)

    def _note(self, bug: str) -> None:
        self.metrics.bugs += 1
        log(f"an error that should not happen: {bug}")

    async def _refuse(self, request: Request, refused: HTTPError) -> None:
        if refused.status == 401:
            request.more.append((b"www-authenticate", b"Bearer"))
        if refused.status in (400, 408, 413):  # the rest of the body is not read
            request.more.append((b"connection", b"close"))
        await self._replied(request, refusal(refused))

    def _known(self, path: str) -> str:
        if path.startswith("/page/"):
            return "/page"
        return path if path in self.routes else "other"

    # ------------------------------------------------------------------ paths

    async def _serve(self, request: Request) -> None:
        path, route = request.path, self.routes.get(request.path)
        if (
            b"transfer-encoding" in request.headers and b"content-length" in request.headers
        ):  # which is it? Proxies differ
            raise HTTPError(400, "Send the length of the body, or the body in chunks, not both.")
        if path not in PROBES:
            self.access.check_host(request.headers)
        if route is None or not route.public:
            self.access.check_key(request.headers)
        if route is None:
            raise HTTPError(
                404, f"There is nothing at {shown(printable(path, 100))}; /openapi.json says what there is."
            )
        if request.scope["method"] not in route.methods:
            request.more.append((b"allow", ", ".join(route.methods).encode("latin-1")))
            raise HTTPError(405, f"{path} takes {' and '.join(route.methods)}.")
        await route.serve(request)

    async def _told(self, request: Request) -> None:
        await request.answer(200, self._fixed[request.path], JSON)

    async def _page(self, request: Request) -> None:
        content, kind = self._files[request.path]
        await request.answer(200, content, kind, OF_PAGE)

    async def _counts(self, request: Request) -> None:
        await request.answer(200, self.metrics.text(self.pool).encode("utf-8"), KIND)

    async def _health(self, request: Request) -> None:
        """Can questions be answered?"""
        unavailable = self.pool.unavailable()
        if unavailable is None:
            await request.answer(200, b'{"status": "ready"}', JSON)
        else:
            await self._refuse(request, unavailable)

    async def _schema(self, request: Request) -> None:
        text = request.scope["query_string"][:MOST_QUERY_STRING].decode("latin-1")
        given = dict(parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="replace"))
        name = given.get("model", self._first)
        if name not in self._schemas:
            known = ", ".join(list(self._schemas)[:20])
            raise HTTPError(404, f"There is no model {shown(name)}; the models are: {known}.", "model")
        await request.answer(200, self._schemas[name], JSON)

    # ------------------------------------------------------------------ questions

    async def _asked(self, request: Request) -> None:
        """Pass a question on to a clerk, and the reply back."""
        self._check_kind(request)
        body = await self._body(request)
        stream = Stream() if request.path == STREAM else None
        job: Job | None = None
        try:
            job = self.pool.ask(request.path, body, None if stream is None else stream.tell)
            await asyncio.wait([job.reply], timeout=WATCH_SECONDS)
            if stream is None or (job.reply.done() and job.reply.result().status != 200):
                await self._replied(request, await self._reply(request, job))
            else:  # what is wrong with a question is known by now: what is left is to wait
                await self._streamed(request, job, stream)
        finally:
            if job is not None:
                self.pool.leave(job)  # nothing, where it is done

    async def _reply(self, request: Request, job: Job) -> Reply:
        """The reply of a job, unless the client leaves before."""
        if not job.reply.done():
            leaving: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
            both: list[asyncio.Future[Any]] = [job.reply, leaving]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                leaving.cancel()
            if not job.reply.done():
                raise ClientDisconnected
        return job.reply.result()

    async def _replied(self, request: Request, reply: Reply) -> None:
        self._counted(reply)
        if reply.retry:
            request.more.append((b"retry-after", b"%d" % reply.retry))
        if reply.filename:
            request.more.append((b"content-disposition", f'attachment; filename="{reply.filename}"'.encode("latin-1")))
        await request.answer(reply.status, reply.body, reply.kind, REPORT if reply.kind == PAGE else NOTHING)

    async def _streamed(self, request: Request, job: Job, stream: Stream) -> None:
        request.status = 200
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"),
                   (b"content-security-policy", NOTHING.encode("latin-1")), *SAFE]  # fmt: skip
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            self._counted(await stream.run(job, request.receive, request.send))
        except ConnectionError:
            raise ClientDisconnected from None

    def _counted(self, reply: Reply) -> None:
        if reply.ending:
            self.metrics.endings[reply.ending] += 1
        if reply.bug:
            self._note(reply.bug)

    def _check_kind(self, request: Request) -> None:
        kind = request.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        allowed = KINDS.get(request.path, (b"application/json",))
        if kind not in allowed:
            wanted = " or ".join(one.decode() for one in allowed)
            raise HTTPError(415, f"Send the body as {wanted}; got {shown(kind.decode('latin-1'))}.")
        if request.headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise HTTPError(415, "Send the body as it is, without a content encoding.")

    async def _body(self, request: Request) -> bytes:
        """The body, read in pieces: not too large, not too slow, and not too much of all bodies together."""
        most = self.terms.certificate_bytes if request.path == CHECK else self.terms.body_bytes
        too_large = HTTPError(413, f"A body has at most {most:,} bytes here.")
        with contextlib.suppress(ValueError):
            if int(request.headers.get(b"content-length", b"0")[:20]) > most:
                raise too_large
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    pieces.append(message.get("body", b""))
                    request.held += len(pieces[-1])
                    self._held += len(pieces[-1])
                    if request.held > most:
                        raise too_large
                    if self._held > self.terms.held_bytes:
                        raise too_many(1)
                    if not message.get("more_body"):
                        return b"".join(pieces)
        except TimeoutError:
            raise HTTPError(408, f"The body did not arrive within {BODY_SECONDS:g} s.") from None


class ClientDisconnected(Exception):
    """The connection was closed before the answer."""


def _json(data: Any) -> bytes:
    return json_text(data).encode("utf-8")
