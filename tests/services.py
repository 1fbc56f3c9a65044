"""Desks to test: the application with a handler in the place of the processes, and real servers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import httpx
import numpy as np

from ifonly import Network, Schema
from ifonly.model.rounding import column_box
from ifonly.service import ServiceLimits, server
from ifonly.service.app import Service
from ifonly.service.handler import Handler, error_reply
from ifonly.service.pool import Job, too_many
from ifonly.service.requests import HTTPError


class Inline:
    """Answers as processes would, here and at once. `full`: nobody else may wait."""

    def __init__(self, handler: Handler) -> None:
        self.handler, self.ready, self.full, self.lanes = handler, True, False, ()
        self.asked: list[str] = []
        self.fails: Exception | None = None

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def submit(self, path: str, body: bytes, on_event: Callable[[bytes], None] | None = None) -> Job:
        if self.fails is not None:
            raise self.fails
        self.asked.append(path)
        reply = asyncio.get_running_loop().create_future()
        reply.set_result(error_reply(too_many(1)) if self.full else self.handler.reply(path, body, on_event))
        return Job(len(self.asked), path, body, reply, on_event)

    def cancel(self, job: Job) -> None: ...

    def unavailable(self) -> HTTPError | None:
        return None if self.ready else HTTPError(503, "The processes that answer are starting.", retry=5)


class Visitor:
    """Asks an application that runs in this process."""

    def __init__(self, desk: Service) -> None:
        self.desk = desk

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.desk, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **more)

        return asyncio.run(ask())

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self("POST", path, json=body, **more)


class Served:
    """A real server, its address and its process."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ifonly", "serve", "--port", "0", "--workers", "1", "--slow-workers", "1", *words],
            stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
        )  # fmt: skip
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "The desk is at" in line, line + self.process.stderr.read()
        self.address = line.split("at ")[1].split(" ")[0].rstrip("/")
        self.port = int(self.address.rsplit(":", 1)[1])
        try:
            self.wait(lambda: httpx.get(self.address + "/readyz").status_code == 200)
        except BaseException:
            self.end()
            raise

    @staticmethod
    def wait(done: Callable[[], bool], seconds: float = 300.0) -> None:  # a hang is a failure
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until, "it does not come about"
            time.sleep(0.05)

    def end(self) -> tuple[int, str]:
        """The exit code after SIGTERM, and all that was logged."""
        assert self.process.stderr is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            _, said = self.process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, said


def hard_network(schema: Schema) -> Network:
    """Random weights, five layers of a hundred, and hardly a row that it approves: nothing is easy to rule out."""
    random = np.random.default_rng(0)
    sizes = (len(schema.columns), 100, 100, 100, 100, 100, 1)
    layers = [(random.normal(0.0, np.sqrt(2.0 / m), (n, m)), random.normal(0.0, 0.1, n)) for m, n in pairwise(sizes)]
    lower, upper = column_box(schema)
    scale = np.diag(1.0 / np.maximum(np.abs(upper), 1.0))
    points = lower + random.random((2000, len(lower))) * (upper - lower)
    weights, bias = layers[-1]
    highest = Network.of(layers).after(scale, np.zeros(len(scale))).scores(points).max()
    return Network.of([*layers[:-1], (weights, bias - highest)]).after(scale, np.zeros(len(scale)))


def metric(server: Served, name: str) -> float:
    """A number of the server's metrics."""
    text = httpx.get(server.address + "/metrics").text
    return float(next(line for line in text.splitlines() if line.startswith(f"ifonly_service_{name} ")).split()[1])


@contextmanager
def listening(desk: Service, limits: ServiceLimits) -> Iterator[int]:
    """The port of an application behind the real server."""
    import uvicorn

    running = uvicorn.Server(server.uvicorn_config(desk, limits))
    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        while not running.started:
            time.sleep(0.01)
        yield door.getsockname()[1]
        running.should_exit = True
        thread.join(10)


def talk(port: int, *sent: bytes) -> bytes:
    """Everything that comes back until the other end closes; what is sent later is sent after the first answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(sent[0])
        came = b""
        for more in sent[1:]:
            came += line.recv(1 << 16)
            line.sendall(more)
        while some := line.recv(1 << 16):
            came += some
    return came
