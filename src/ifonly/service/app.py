"""The ASGI application: routing, access policy, request bodies, responses. A `Handler` in a worker process answers.

No web framework: there are a dozen fixed paths, bodies are read by the library's own readers, and limits, lanes and
headers are ours in any case. Starlette would replace some sixty lines, and take a third more CPU time per request.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from ifonly.printing import printable, shown
from ifonly.service.access import CSP_NONE, CSP_REPORT, SECURITY_HEADERS, AccessPolicy, Headers
from ifonly.service.batch import NDJSON, BatchStream, batch_lines
from ifonly.service.events import EventStream, Receive, Send
from ifonly.service.handler import HTML, JSON, Reply, error_reply, json_bytes
from ifonly.service.limits import BATCH_BODY_SECONDS, BODY_SECONDS, ServiceLimits
from ifonly.service.metrics import CONTENT_TYPE, Metrics
from ifonly.service.openapi import MODEL_PATHS, PLAIN, POST_PATHS, PROBES, openapi
from ifonly.service.pool import CLOSING, Job, Pool, too_many
from ifonly.service.registry import ModelRegistry
from ifonly.service.request_schemas import request_schemas
from ifonly.service.requests import HTTPError, unknown_model
from ifonly.service.static_files import page_files
from ifonly.service.worker import BUG, error_location

WATCH_SECONDS = 0.25
"""A request that takes longer is watched for a disconnect of its client, which cancels the job."""
MAX_QUERY_STRING = 1000
BATCH_RETRY_SECONDS = 10
"""The Retry-After of a batch while others are under way."""

STREAM_PATH = "/v1/explain/stream"
CHECK_PATH = "/v1/check"
BATCH_PATH = "/v1/explain/batch"
CONTENT_TYPES = {
    CHECK_PATH: (b"application/json", b"application/octet-stream"),
    BATCH_PATH: (NDJSON.encode("ascii"), b"application/jsonl"),
}
"""Where a body may be something else than JSON. No form of another site can send any of these."""


@dataclass(slots=True)
class Request:
    """A request, and the response to it. `status` is 0 until the response has started."""

    scope: dict[str, Any]
    receive: Receive
    send: Send
    path: str
    headers: dict[bytes, bytes]
    status: int = 0
    body_bytes: int = 0
    response_headers: Headers = field(default_factory=list)
    security_headers: Headers = field(default_factory=lambda: SECURITY_HEADERS)

    async def start(self, status: int, content_type: str, csp: str = CSP_NONE) -> None:
        """Send the status and the headers."""
        self.status = status
        headers = [
            (b"content-type", content_type.encode("latin-1")),
            (b"content-security-policy", csp.encode("latin-1")),
            *self.security_headers,
            *self.response_headers,
        ]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def respond(self, status: int, body: bytes, content_type: str, csp: str = CSP_NONE) -> None:
        self.response_headers.append((b"content-length", b"%d" % len(body)))
        await self.start(status, content_type, csp)
        await self.send({"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else body})


class ClientDisconnected(Exception):
    """The connection was closed before the response."""


def log(line: str) -> None:
    """For the operator; never anything that a client has sent."""
    sys.stderr.write(f"ifonly desk: {line}\n")
    sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class Route:
    """The endpoint of a path, and its methods. `public`: also without the key, so it reveals nothing of models or of
    requests."""

    methods: tuple[str, ...]
    endpoint: Callable[[Request], Awaitable[None]]
    public: bool = False


class Service:
    """The ASGI application. `pool` answers; everything else is prepared before the first request."""

    def __init__(self, registry: ModelRegistry, limits: ServiceLimits, pool: Pool, access: AccessPolicy) -> None:
        from ifonly import __version__

        self.limits, self.pool, self.access, self.metrics = limits, pool, access, Metrics()
        self._body_bytes = self._batches = 0
        described = {registered.name: registered.to_dict(limits) for registered in registry}
        self._by_model = {
            path: {name: json_bytes(document) for name, document in documents.items()}
            for path, documents in zip(MODEL_PATHS, (described, request_schemas(registry, limits)), strict=True)
        }
        self._files = page_files()
        self._documents = {
            "/v1/models": json_bytes(registry.to_dict(__version__)),
            "/openapi.json": json_bytes(openapi(registry, limits, __version__, access)),
            "/livez": b'{"status": "alive"}',
        }
        get = ("GET", "HEAD")
        self.routes = {
            **{path: Route(("POST",), self._job) for path in (*POST_PATHS, CHECK_PATH)},
            BATCH_PATH: Route(("POST",), self._batch),
            "/v1/models": Route(get, self._document),
            **{path: Route(get, self._model_document) for path in MODEL_PATHS},
            "/openapi.json": Route(get, self._document),
            "/metrics": Route(get, self._metrics),
            "/livez": Route(get, self._document, public=True),
            "/healthz": Route(get, self._health, public=True),
            "/readyz": Route(get, self._health, public=True),
            **{path: Route(get, self._page, public=True) for path in self._files},
        }

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            with contextlib.suppress(asyncio.CancelledError):  # no time is given to end
                await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.pool.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.pool.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        path = self.access.local_path(scope["path"])
        request = Request(scope, receive, send, path, dict(scope["headers"]))
        try:
            await self._dispatch(request)
        except HTTPError as error:
            await self._send_error(request, error)
        except ClientDisconnected:
            self.metrics.disconnects += 1
            request.status = 499
        except asyncio.CancelledError:  # the service is closing; a stream has said so by itself
            if not request.status:
                await self._send_error(request, CLOSING)
        except Exception as error:
            self._log_bug(error_location(error))
            if not request.status:
                await self._send_error(request, HTTPError(500, BUG))
        finally:
            self._body_bytes -= request.body_bytes
            self.metrics.count(self._metrics_path(request.path), request.status, time.perf_counter() - started)

    def _log_bug(self, bug: str) -> None:
        self.metrics.bugs += 1
        log(f"an error that should not happen: {bug}")

    async def _send_error(self, request: Request, error: HTTPError) -> None:
        if error.status == 401:
            request.response_headers.append((b"www-authenticate", b"Bearer"))
        if error.status in (400, 408, 413):  # the rest of the body is not read
            request.response_headers.append((b"connection", b"close"))
        await self._send_reply(request, error_reply(error))

    def _metrics_path(self, path: str) -> str:
        if path.startswith("/page/"):
            return "/page"
        return path if path in self.routes else "other"

    async def _dispatch(self, request: Request) -> None:
        path, route = request.path, self.routes.get(request.path)
        if b"transfer-encoding" in request.headers and b"content-length" in request.headers:  # request smuggling
            raise HTTPError(400, "Send the length of the body, or the body in chunks, not both.")
        if path not in PROBES:
            self.access.check_host(request.headers)
        if route is None or not route.public:
            self.access.check_key(request.headers)
        if not path:  # the prefix without a slash: the page's relative links need it
            request.response_headers.append((b"location", f"{self.access.root_path}/".encode("latin-1")))
            await request.respond(308, b"", PLAIN)
            return
        if route is None:
            raise HTTPError(
                404, f"There is nothing at {shown(printable(path, 100))}; /openapi.json says what there is."
            )
        if request.scope["method"] not in route.methods:
            request.response_headers.append((b"allow", ", ".join(route.methods).encode("latin-1")))
            raise HTTPError(405, f"{path} takes {' and '.join(route.methods)}.")
        await route.endpoint(request)

    # ------------------------------------------------------------------ endpoints that this process answers

    async def _document(self, request: Request) -> None:
        await request.respond(200, self._documents[request.path], JSON)

    async def _page(self, request: Request) -> None:
        content, content_type = self._files[request.path]
        request.security_headers = self.access.page_headers
        await request.respond(200, content, content_type, self.access.page_csp)

    async def _metrics(self, request: Request) -> None:
        await request.respond(200, self.metrics.text(self.pool).encode("utf-8"), CONTENT_TYPE)

    async def _health(self, request: Request) -> None:
        unavailable = self.pool.unavailable()
        if unavailable is None:
            await request.respond(200, b'{"status": "ready"}', JSON)
        else:
            await self._send_error(request, unavailable)

    async def _model_document(self, request: Request) -> None:
        text = request.scope["query_string"][:MAX_QUERY_STRING].decode("latin-1")
        given = dict(parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="replace"))
        documents = self._by_model[request.path]
        name = given.get("model", next(iter(documents)))
        if name not in documents:
            raise unknown_model(name, tuple(documents))
        await request.respond(200, documents[name], JSON)

    # ------------------------------------------------------------------ endpoints that a worker answers

    async def _job(self, request: Request) -> None:
        """Submit the body as a job, and send its reply or its events."""
        self._check_content_type(request)
        body = await self._read_body(request)
        stream = EventStream() if request.path == STREAM_PATH else None
        job: Job | None = None
        try:
            job = self.pool.submit(request.path, body, None if stream is None else stream.add)
            await asyncio.wait([job.reply], timeout=WATCH_SECONDS)
            if stream is None or (job.reply.done() and job.reply.result().status != 200):
                await self._send_reply(request, await self._reply(request, job))
            else:  # an error in the body would have been found by now: what is left is the search
                await self._send_stream(request, job, stream)
        finally:
            if job is not None:
                self.pool.cancel(job)  # no effect on a job that is done

    async def _reply(self, request: Request, job: Job) -> Reply:
        """The reply to a job, unless the client disconnects before."""
        if not job.reply.done():
            disconnect: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
            both: list[asyncio.Future[Any]] = [job.reply, disconnect]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                disconnect.cancel()
            if not job.reply.done():
                raise ClientDisconnected
        return job.reply.result()

    async def _send_reply(self, request: Request, reply: Reply) -> None:
        self._count_reply(reply)
        if reply.retry:
            request.response_headers.append((b"retry-after", b"%d" % reply.retry))
        if reply.filename:
            disposition = f'attachment; filename="{reply.filename}"'.encode("latin-1")
            request.response_headers.append((b"content-disposition", disposition))
        csp = CSP_REPORT if reply.content_type == HTML else CSP_NONE
        await request.respond(reply.status, reply.body, reply.content_type, csp)

    async def _send_stream(self, request: Request, job: Job, stream: EventStream) -> None:
        await request.start(200, "text/event-stream; charset=utf-8")
        try:
            self._count_reply(await stream.run(job, request.receive, request.send))
        except ConnectionError:
            raise ClientDisconnected from None

    async def _batch(self, request: Request) -> None:
        """Submit the lines of the body as jobs, and send their replies as a stream."""
        self._check_content_type(request)
        if self._batches >= self.limits.batches:
            raise too_many(BATCH_RETRY_SECONDS)
        self._batches += 1
        try:
            lines = batch_lines(await self._read_body(request), self.limits)
            ahead = max((lane.count for lane in self.pool.lanes if lane.name == "slow"), default=1)
            batch = BatchStream(lines, self.pool, self.limits, ahead=ahead, count=self._count_reply)
            await request.start(200, NDJSON)
            try:
                await batch.run(request.receive, request.send)
            except ConnectionError:
                raise ClientDisconnected from None
        finally:
            self._batches -= 1

    def _count_reply(self, reply: Reply) -> None:
        if reply.outcome:
            self.metrics.outcomes[reply.outcome] += 1
        if reply.bug:
            self._log_bug(reply.bug)

    def _check_content_type(self, request: Request) -> None:
        content_type = request.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        allowed = CONTENT_TYPES.get(request.path, (b"application/json",))
        if content_type not in allowed:
            names = " or ".join(one.decode() for one in allowed)
            raise HTTPError(415, f"Send the body as {names}; got {shown(content_type.decode('latin-1'))}.")
        if request.headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise HTTPError(415, "Send the body as it is, without a content encoding.")

    async def _read_body(self, request: Request) -> bytes:
        """The body, read in pieces, with limits on its size, its time, and the bytes of all bodies together."""
        own = {CHECK_PATH: self.limits.certificate_bytes, BATCH_PATH: self.limits.batch_bytes}
        most = own.get(request.path, self.limits.body_bytes)
        seconds = BATCH_BODY_SECONDS if request.path == BATCH_PATH else BODY_SECONDS
        too_large = HTTPError(413, f"A body has at most {most:,} bytes here.")
        with contextlib.suppress(ValueError):
            if int(request.headers.get(b"content-length", b"0")[:20]) > most:
                raise too_large
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    pieces.append(message.get("body", b""))
                    request.body_bytes += len(pieces[-1])
                    self._body_bytes += len(pieces[-1])
                    if request.body_bytes > most:
                        raise too_large
                    if self._body_bytes > self.limits.held_bytes:
                        raise too_many(1)
                    if not message.get("more_body"):
                        return b"".join(pieces)
        except TimeoutError:
            raise HTTPError(408, f"The body did not arrive within {seconds:g} s.") from None
