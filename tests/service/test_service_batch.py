"""A batch is answered line by line as single requests are; a bad line is an error line; limits and disconnects hold."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest

from ifonly.service import ServiceLimits, batch
from ifonly.service.access import AccessPolicy
from ifonly.service.app import BATCH_PATH, Service
from ifonly.service.handler import Reply, error_reply
from ifonly.service.pool import Job, too_many
from services import Inline, Visitor, metric

NDJSON = {"content-type": "application/x-ndjson"}


def body(*requests: Any) -> bytes:
    return b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in requests)


def answers(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in answer.items() if key not in ("line", "status", "seconds")}
    if "answer" in kept:
        kept["answer"] = {key: value for key, value in kept["answer"].items() if key != "seconds"}
    return kept


def desk(registry, pool: Any, **limits: Any) -> Visitor:
    return Visitor(Service(registry, ServiceLimits(**limits), pool, AccessPolicy()))  # type: ignore[arg-type]


def test_every_line_is_answered_as_a_request_of_its_own(visit, people) -> None:
    asked = [{"row": people[3]}, {"row": people[4], "query": {"constraints": ["AgeGroup is fixed"]}, "language": "de"},
             {"row": people[5], "model": "ruled"}, {"row": {"AgeGroup": 7}}, {"row": people[3], "model": "none"}]  # fmt: skip
    given = answers(visit("POST", BATCH_PATH, content=body(*asked, b"{no json", b"", b"[1]"), headers=NDJSON))
    assert [one["line"] for one in given] == [1, 2, 3, 4, 5, 6, 8]  # a blank line is none, but it counts
    assert [one["status"] for one in given] == [200, 200, 200, 422, 404, 400, 422]
    for request, answer in zip(asked, given, strict=False):
        alone = visit.post("/v1/explain", request)
        assert alone.status_code == answer["status"] and without_times(alone.json()) == without_times(answer)
    assert given[3]["where"].startswith("row") and "error" in given[5]


def test_what_is_no_batch_is_refused(visit, registry, inline, people) -> None:
    line = body({"row": people[3]})
    assert visit("POST", BATCH_PATH, content=line, headers={"content-type": "application/json"}).status_code == 415
    assert "this body is empty" in visit("POST", BATCH_PATH, content=b"\n \n", headers=NDJSON).json()["error"]
    few = desk(registry, inline, batch_lines=2, body_bytes=len(line) + 10, batch_bytes=3 * len(line))
    assert few("POST", BATCH_PATH, content=body(line, line, line), headers=NDJSON).status_code == 413
    assert few("POST", BATCH_PATH, content=b" " * 4 * len(line), headers=NDJSON).status_code == 413
    long = {"row": people[3], "language": "de" * 50}
    assert [one["status"] for one in answers(few("POST", BATCH_PATH, content=body(long, line), headers=NDJSON))] == [413, 200]  # fmt: skip


class Slow(Inline):
    """A pool whose replies are given later, the last first; and that is full at times."""

    def __init__(self, handler: Any, *, refusals: int = 0, seconds: float = 0.0) -> None:
        super().__init__(handler)
        self.refusals, self.seconds, self.most, self.open, self.cancelled = refusals, seconds, 0, set[int](), 0

    def submit(self, path: str, body: bytes, on_event: Any = None) -> Job:
        self.asked.append(path)
        loop, number = asyncio.get_running_loop(), len(self.asked)
        reply: asyncio.Future[Reply] = loop.create_future()
        if self.refusals:
            self.refusals -= 1
            reply.set_result(error_reply(too_many(1)))
        else:
            self.open.add(number)
            self.most = max(self.most, len(self.open))
            loop.call_later(self.seconds if number % 2 else 0.0, self._finish, number, reply, path, body)
        return Job(number, path, body, reply, on_event)

    def _finish(self, number: int, reply: asyncio.Future[Reply], path: str, body: bytes) -> None:
        self.open.discard(number)
        if not reply.done():
            reply.set_result(self.handler.reply(path, body))  # type: ignore[arg-type]

    def cancel(self, job: Job) -> None:
        if not job.reply.done():
            job.reply.cancel()
            self.cancelled += 1


def test_lines_are_in_order_a_few_are_under_way_and_one_waits_while_a_queue_is_full(registry, handler, people, monkeypatch) -> None:  # fmt: skip
    monkeypatch.setattr(batch, "PAUSE_SECONDS", 0.001)
    pool = Slow(handler, refusals=3, seconds=0.05)
    asked = [{"row": people[k], "language": language} for k in (3, 4, 5) for language in ("en", "xx")]
    given = answers(desk(registry, pool)("POST", BATCH_PATH, content=body(*asked), headers=NDJSON))
    assert [(one["line"], one["status"]) for one in given] == [
        (1, 200),
        (2, 422),
        (3, 200),
        (4, 422),
        (5, 200),
        (6, 422),
    ]
    assert pool.most == batch.LEAST_AHEAD and len(pool.asked) == 3 + len(asked)


def test_a_batch_that_takes_too_long_says_so_in_the_lines_that_are_left(registry, handler, people) -> None:
    pool = Slow(handler, seconds=60.0)
    given = answers(desk(registry, pool, batch_seconds=0.05)(
        "POST", BATCH_PATH, content=body(*[{"row": people[3]}] * 3), headers=NDJSON))  # fmt: skip
    assert [one["status"] for one in given] == [503, 200, 503] or [one["status"] for one in given] == [503] * 3
    assert "A batch has 0.05 s here" in given[0]["error"] and pool.cancelled


def test_batches_at_a_time(registry, handler, people) -> None:
    made = desk(registry, Slow(handler, seconds=0.2), batches=1)

    async def both() -> list[int]:
        transport = httpx.ASGITransport(made.desk)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            asked = [client.post(BATCH_PATH, content=body({"row": people[3]}), headers=NDJSON) for _ in range(2)]
            return sorted(one.status_code for one in await asyncio.gather(*asked))

    assert asyncio.run(both()) == [200, 429]
    assert answers(made("POST", BATCH_PATH, content=body({"row": people[3]}), headers=NDJSON))


@pytest.mark.long
def test_over_the_wire_answers_come_as_they_are_found_and_a_client_that_leaves_stops_the_rest(served, people) -> None:
    row = people[3]
    hard = {"row": row, "model": "hard", "seconds": 60}
    with (
        httpx.Client(base_url=served.address, timeout=120) as client,
        client.stream("POST", BATCH_PATH, content=body({"row": row}, hard, hard), headers=NDJSON) as response,
    ):
        first = json.loads(next(response.iter_lines()))  # long before the hard ones are done
        assert first["line"] == 1 and first["status"] == 200
    served.wait(lambda: metric(served, "clients_left_total") >= 1, 60)
    until = time.monotonic() + 60
    while time.monotonic() < until and _at_work(served):
        time.sleep(0.1)
    assert not _at_work(served)


def _at_work(served: Any) -> float:
    lines = httpx.get(served.address + "/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(("ifonly_service_at_work{", "ifonly_service_waiting{")))  # fmt: skip
