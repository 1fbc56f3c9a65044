"""Processes that fail to start: requests are refused at once, health says so, and the service is back when they start again.

What a process does is told by a file, so each request is sent and answered while the outage certainly lasts.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import failing_workers
from ifonly.service import ModelRegistry, ServiceLimits, events, pool
from ifonly.service.app import AccessPolicy, Service
from ifonly.service.handler import Reply
from ifonly.service.pool import LONGEST_PAUSE_SECONDS, Pool, WorkerProcess

Client = httpx.AsyncClient


class Outage:
    """A pool of failing workers behind the application, in this process."""

    def __init__(self, registry: ModelRegistry, phase: Path, quick: int = 1) -> None:
        self.phase, self.said = phase, list[str]()
        self.pool = Pool(registry, ServiceLimits(), quick=quick, slow=1, log=self.said.append)
        self.desk = Service(registry, ServiceLimits(), self.pool, AccessPolicy())

    def now(self, phase: str) -> None:
        new = self.phase.with_suffix(".new")
        new.write_text(phase)
        new.rename(self.phase)

    async def failures(self, count: int = 1) -> None:
        """Until so many processes of each lane have failed: health is about the first lane without a process."""
        await self.until(
            lambda: all(sum(f"the {lane.name} lane" in line for line in self.said) >= count for lane in self.pool.lanes)
        )

    @staticmethod
    async def until(done: Callable[[], Any]) -> None:
        while not done():
            await asyncio.sleep(0.01)

    def run(self, test: Callable[[Client], Awaitable[None]], phase: str) -> None:
        async def go() -> None:
            self.now(phase)
            await self.pool.start()
            try:
                async with Client(transport=httpx.ASGITransport(self.desk), base_url="http://localhost") as client:
                    await asyncio.wait_for(test(client), 120)  # for a hang; nothing is measured
            finally:
                await self.pool.stop()

        asyncio.run(go())


@pytest.fixture
def outage(registry, tmp_path, monkeypatch) -> Outage:
    monkeypatch.setenv(failing_workers.PHASE, str(tmp_path / "phase"))
    monkeypatch.setattr(pool, "work", failing_workers.work)
    monkeypatch.setattr(pool, "FIRST_PAUSE_SECONDS", 0.01)
    return Outage(registry, tmp_path / "phase")


def refused(told: httpx.Response, *words: str) -> None:
    assert told.status_code == 503 and int(told.headers["retry-after"]) >= 1
    assert all(word in told.json()["error"] for word in words), told.text


RULE = {"text": "AgeGroup is fixed"}


@pytest.mark.long
def test_after_any_number_of_early_ends_it_is_well_again(outage) -> None:
    async def test(client: Client) -> None:
        for count in (3, 6):
            await outage.failures(count)
            for path in ("/v1/rule", "/v1/explain", "/v1/explain/stream", "/v1/certify"):
                refused(await client.post(path, json=RULE), "No process can answer", "SIGKILL", "ask again in")
            for path in ("/healthz", "/readyz"):
                refused(await client.get(path), "SIGKILL")
            assert (await client.get("/livez")).status_code == 200
            metrics = (await client.get("/metrics")).text
            assert "ifonly_service_ready 0\n" in metrics and 'ifonly_service_processes{lane="quick"} 0\n' in metrics
        outage.now("work")
        await outage.until(lambda: outage.pool.unavailable() is None)
        assert (await client.get("/healthz")).status_code == (await client.get("/readyz")).status_code == 200
        assert (await client.post("/v1/rule", json=RULE)).status_code == 200
        assert "ifonly_service_ready 1\n" in (await client.get("/metrics")).text

    outage.run(test, "die")


def test_an_error_in_a_stream_has_a_status_and_says_when_to_ask_again() -> None:
    event = events._error(Reply(status=503, body=b'{"error": "Later.", "where": null}', retry=5)).decode()
    name, data = event.strip().split("\n")
    assert name == "event: error"
    found = json.loads(data.removeprefix("data: "))
    assert found == {"error": "Later.", "where": None, "status": 503, "retry_after": 5}


@pytest.mark.long
def test_whoever_waits_when_a_process_fails_is_told_at_once(outage) -> None:
    async def test(client: Client) -> None:
        asked = [asyncio.create_task(client.post("/v1/rule", json=RULE)) for _ in range(5)]
        await outage.until(lambda: len(outage.pool.quick.waiting) == 5)
        refused(await client.get("/readyz"), "starting")
        outage.now("die")
        for one in asked:
            refused(await one, "SIGKILL")
        assert not outage.pool.quick.waiting
        outage.now("work")
        await outage.until(lambda: outage.pool.unavailable() is None)
        assert (await client.post("/v1/rule", json=RULE)).status_code == 200

    outage.run(test, "hold")


@pytest.mark.long
def test_nobody_waits_for_ever_for_processes_that_start(outage, monkeypatch) -> None:
    monkeypatch.setattr(pool, "WAIT_SECONDS", 0.0)

    async def test(client: Client) -> None:
        refused(await client.post("/v1/rule", json=RULE), "starting", "ask again in 5 s")
        assert not outage.pool.quick.waiting and not outage.said
        monkeypatch.setattr(pool, "WAIT_SECONDS", 1e9)
        asked = asyncio.create_task(client.post("/v1/rule", json=RULE))
        await outage.until(lambda: outage.pool.quick.waiting)
        outage.now("work")
        assert (await asked).status_code == 200  # it waits where there is time for that

    outage.run(test, "hold")


@pytest.mark.long
def test_a_process_that_is_ready_and_ends_is_no_recovery(outage) -> None:
    async def test(client: Client) -> None:
        await outage.failures(3)
        pauses = [line.rsplit("starts in ", 1)[1] for line in outage.said if "quick" in line]
        assert pauses[:3] == ["0.01 s", "0.02 s", "0.04 s"]  # it goes on backing off
        outage.now("work")
        await outage.until(lambda: outage.pool.unavailable() is None)
        assert (await client.post("/v1/rule", json=RULE)).status_code == 200

    outage.run(test, "ready")


@pytest.mark.long
def test_the_reason_is_logged_without_what_it_quotes(outage, capfd) -> None:
    async def test(client: Client) -> None:
        await outage.failures()
        refused(await client.get("/healthz"), "exit code 1")
        outage.now("hold")

    outage.run(test, "raise")
    said = capfd.readouterr().err
    assert "ValueError at failing_workers.py" in said and "Geheimnis" not in said + "".join(outage.said)


def test_pauses_double_up_to_a_limit_per_place(registry, monkeypatch) -> None:
    later: list[tuple[int, float]] = []
    monkeypatch.setattr(Pool, "_start_later", lambda self, lane, failures=0, pause=0.0: later.append((failures, pause)))
    one = Pool(registry, ServiceLimits(), quick=8, slow=1, log=lambda line: None)
    for _ in range(8):  # all of the first round end at once: that is one failure of each place
        one._start_failed(WorkerProcess(one.quick), "ended")
    assert later == [(1, 1.0)] * 8
    later.clear()
    for failures in range(2000):
        one._start_failed(WorkerProcess(one.quick, failures), "ended")
    assert [pause for _, pause in later[:6]] == [1, 2, 4, 8, 16, 30]
    assert {pause for _, pause in later[5:]} == {LONGEST_PAUSE_SECONDS} and later[-1][0] == 2000


def test_a_process_that_dies_while_it_answers_is_replaced_at_once(registry, monkeypatch) -> None:
    later: list[tuple[int, float]] = []
    monkeypatch.setattr(Pool, "_start_later", lambda self, lane, failures=0, pause=0.0: later.append((failures, pause)))

    async def run() -> None:
        one = Pool(registry, ServiceLimits(), quick=1, slow=1, log=lambda line: None)
        worker = WorkerProcess(one.quick, failures=3)
        one.quick.workers.append(worker)
        worker.ready = True
        jobs = [one.submit("/v1/rule", b"{}") for _ in range(3)]
        worker.connection_lost(None)
        assert jobs[0].reply.result().status == 503 and jobs[0].reply.result().retry == 1
        assert list(one.quick.waiting) == jobs[1:]  # they wait for the next
        assert later == [(0, 0.0)]
        await one.stop()
        assert [job.reply.result().retry for job in jobs[1:]] == [5, 5]  # and are told when there is none
        assert one.submit("/v1/rule", b"{}").reply.result().status == 503  # nor does anybody begin to wait

    asyncio.run(run())


@pytest.mark.long
def test_closing_in_an_outage_leaves_nothing_behind(outage) -> None:
    async def test(client: Client) -> None:
        await outage.until(lambda: outage.said)

    pids: list[int] = []
    spawn = pool.spawn

    def counted(*given: Any) -> Any:
        process = spawn(*given)
        pids.append(process.pid or 0)
        return process

    pool.spawn = counted
    try:
        outage.run(test, "die")
    finally:
        pool.spawn = spawn
    assert pids and not outage.pool._starting
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
