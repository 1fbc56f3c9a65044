"""`desk`: many clients at once at the recourse desk, on loopback; with a hard question beside them; its memory.

The desk runs as its users run it, `ifonly serve`, in processes of its own. The clients are one process with a socket
each, which write a request, read the answer, look whether it is one, and write the next. The library called directly,
on one thread of this process, is asked about the same people.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.subjects.data import load
from benchmarks.subjects.networks import denied
from benchmarks.suites.population import children, held
from benchmarks.terminal import ROOT, console, results_option
from ifonly import Explainer, datasets
from ifonly.model import Network, save_network
from ifonly.schema import save_schema
from ifonly.worker_processes import cores

HARD = (100,) * 5
"""The hidden layers of a network with random weights: it has learned nothing, and so nothing is easy to rule out."""
SECONDS_OF_HARD = 600.0
"""More than a run takes: the desk stops it only when the run is over."""
PEOPLE = 500


@dataclass
class Load:
    """What clients have seen: seconds of each answer, and what was no answer."""

    took: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    begun: float = 0.0
    ended: float = 0.0

    def row(self) -> dict[str, Any]:
        return {
            "answers": len(self.took),
            "failed": len(self.failed),
            "rate": round(len(self.took) / max(self.ended - self.begun, 1e-9)),
            "p50_ms": round(1e3 * float(np.percentile(self.took, 50)), 2),
            "p99_ms": round(1e3 * float(np.percentile(self.took, 99)), 2),
        }


class Client(asyncio.Protocol):
    """One connection that asks for as long as it may."""

    def __init__(self, load: Load, requests: list[bytes], first: int, until: float) -> None:
        self.load, self.requests, self.next, self.until = load, requests, first, until
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.came, self.sent = bytearray(), 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        self.sent = time.perf_counter()
        if self.sent >= self.until:
            self.transport.close()
            return
        self.transport.write(self.requests[self.next % len(self.requests)])
        self.next += 1

    def data_received(self, data: bytes) -> None:
        self.came += data
        head = self.came.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.came.index(b"content-length: ") + 16
        size = head + 4 + int(self.came[at : self.came.index(b"\r", at)])
        if len(self.came) < size:
            return
        if self.came.startswith(b"HTTP/1.1 200") and b'"status": "nearest"' in self.came:
            self.load.took.append(time.perf_counter() - self.sent)
        else:
            self.load.failed.append(self.came[:200].decode("latin-1"))
        del self.came[:size]
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None or self.came:
            self.load.failed.append(f"the connection was lost: {error}")
        if not self.over.done():
            self.over.set_result(None)


async def clients(port: int, requests: list[bytes], count: int, seconds: float) -> Load:
    """So many connections at once, for so long."""
    load = Load(begun=time.perf_counter())
    until, loop = load.begun + seconds, asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda k=k: Client(load, requests, 7 * k, until), "127.0.0.1", port)  # type: ignore[misc]
        for k in range(count)
    ]
    await asyncio.gather(*(client.over for _, client in made))
    load.ended = time.perf_counter()
    return load


def request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    )
    return "\r\n".join([*head, "", ""]).encode("ascii") + content


@contextlib.contextmanager
def desk(folder: Path, workers: int) -> Iterator[tuple[int, int]]:
    """A desk with both networks: its port and its process."""
    words = [sys.executable, "-m", "ifonly", "serve", "--port", "0", "--workers", str(workers)]
    for name in ("adult", "hard"):
        words += ["--model", f"{name}={folder / name}.npz", "--schema", f"{name}={folder / 'adult.schema.json'}"]
    words += ["--seconds", str(SECONDS_OF_HARD)]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}) as process:
        try:
            assert process.stderr is not None
            port = int(process.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
            for _ in range(600):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
                    break
                time.sleep(0.1)
            yield port, process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


async def beside_hard(port: int, requests: list[bytes], hard: bytes, count: int, seconds: float) -> tuple[Load, bool]:
    """The same load while one hard question is being answered; was it, all the time?"""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(hard)
    await asyncio.sleep(1.0)
    load = await clients(port, requests, count, seconds)
    still = asyncio.create_task(reader.read(1))
    await asyncio.sleep(0.1)
    busy = not still.done()
    still.cancel()
    writer.close()
    return load, busy


def directly(rows: list[Any], seconds: float) -> Load:
    """The library, asked about the same people one after the other."""
    explainer, load = Explainer(datasets.network("adult", rules=False)), Load()
    for row in rows:
        explainer.explain(row)
    load.begun = time.perf_counter()
    while time.perf_counter() < load.begun + seconds:
        since = time.perf_counter()
        explainer.explain(rows[len(load.took) % len(rows)])
        load.took.append(time.perf_counter() - since)
    load.ended = time.perf_counter()
    return load


def memory(process: int) -> dict[str, float]:
    """MiB of the front and of all processes that answer."""
    return {"front": round(held(process), 1), "workers": round(sum(map(held, children(process))), 1)}


def hard_network(data: Any) -> Network:
    """Random weights; everybody in the data is denied."""
    random, points = np.random.default_rng(0), data.points()
    columns = data.schema.encode(points)
    scale = np.diag(1.0 / np.maximum(np.abs(columns).max(axis=0), 1.0))
    sizes = (columns.shape[1], *HARD, 1)
    layers = [(random.normal(0.0, np.sqrt(2.0 / m), (n, m)), random.normal(0.0, 0.1, n)) for m, n in pairwise(sizes)]
    weights, bias = layers[-1]
    highest = Network.of(layers).after(scale, np.zeros(len(scale))).scores(columns[:3000]).max()
    return Network.of([*layers[:-1], (weights, bias - highest)]).after(scale, np.zeros(len(scale)))


def prepared(folder: Path) -> list[dict[str, Any]]:
    """The networks as files; the people whom Adult's network denies."""
    folder.mkdir(parents=True, exist_ok=True)
    shipped, whole = datasets.network("adult", rules=False), datasets.load("adult", rules=False)
    save_network(shipped.network, folder / "adult.npz", classes=shipped.classes)
    save_network(hard_network(whole), folder / "hard.npz", classes=shipped.classes)
    save_schema(shipped.schema, folder / "adult.schema.json")
    return [whole.row(int(i)) for i in denied(shipped, load("adult"), PEOPLE)]


@click.command("desk")
@click.option("--clients", "count", type=click.IntRange(1), default=200, show_default=True, help="Clients at once.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Of each load.")
@click.option("--requests", type=int, default=100_000, show_default=True, help="Over which memory is looked at.")
@click.option("--workers", type=click.IntRange(1), default=cores(), help="Processes that answer.")
@results_option
def command(count: int, seconds: float, requests: int, workers: int, results: Path) -> None:
    """The recourse desk under load: failed requests, rate, p50 and p99, beside a hard question, memory."""
    folder = results / "desk"
    rows = prepared(folder)
    asked = [request("/v1/explain", {"model": "adult", "row": row}) for row in rows]
    hard = request("/v1/explain", {"model": "hard", "row": rows[0]})
    told: dict[str, Any] = {"library": directly(rows, min(seconds, 10.0)).row()}
    with desk(folder, workers) as (port, process):
        asyncio.run(clients(port, asked, count, 2.0))
        first = memory(process)
        alone = asyncio.run(clients(port, asked, count, seconds))
        told["desk"] = alone.row()
        with_hard, busy = asyncio.run(beside_hard(port, asked, hard, count, seconds))
        told["beside a hard one"] = with_hard.row()
        done = len(alone.took) + len(with_hard.took)
        while done < requests:
            more = asyncio.run(clients(port, asked, count, 5.0))
            done += max(len(more.took), 1)
        last = memory(process)
    sheet = Table("", *told["desk"])
    for name, row in told.items():
        sheet.add_row(name, *map(str, row.values()))
    console().print(sheet)
    ratio = told["beside a hard one"]["p99_ms"] / told["desk"]["p99_ms"]
    console().print(
        f"p99 beside a hard question: {ratio:.2f} times (it was {'' if busy else 'NOT '}at work throughout)."
    )
    console().print(f"Memory over {done:,} requests, MiB: {first} to {last}.")
    for failed in (alone.failed + with_hard.failed)[:5]:
        console().print(failed)
    about = {"requests": done, "clients": count, "seconds": seconds, "workers": workers, "cores": cores()}
    with (folder / "desk.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**told, "ratio": ratio, "busy": busy, "first": first, "last": last, **about}) + "\n")
