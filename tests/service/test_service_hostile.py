"""A desk among hostile clients: whatever they send or leave undone, a sentence within the limits. IFONLY_HOSTILE sets how many."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from itertools import islice
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile_bodies import RULES, certificates, questions
from ifonly.errors import QuestionError
from ifonly.service import ServiceLimits, pool, server
from ifonly.service.app import AccessPolicy, Service
from ifonly.service.requests import MIN_SECONDS, read_query_request
from schema_bodies import drawn
from services import Inline, Served, Visitor, listening, talk

MANY = int(os.environ.get("IFONLY_HOSTILE", "150"))
JSON = {"content-type": "application/json"}
RULE = b"POST /v1/rule HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def told(answer: httpx.Response) -> None:
    """Answered, or refused by one sentence of a bounded length."""
    assert answer.status_code < 500, answer.text
    if answer.status_code != 200:
        sentence = answer.json()["error"]
        assert sentence and "\n" not in sentence and len(answer.content) < 4000
        assert not {"\x1b", "\u202e"} & set(answer.text)


# ---------------------------------------------------------------------- bodies


@pytest.mark.long
def test_every_place_with_every_strange_value(visit: Visitor, people) -> None:
    every = sum(1 for _ in questions(people[3]))
    for path, body in islice(questions(people[3]), 0, None, max(1, every // MANY)):
        told(visit("POST", path, content=body, headers=JSON))


def test_rules_that_explode_are_read_or_refused(visit: Visitor) -> None:
    for text in RULES:
        told(visit.post("/v1/rule", {"text": text}))


def test_what_is_no_option_is_refused_in_transitions(visit: Visitor, people) -> None:
    query = {"distance": {"norm": "l1", "transitions": {"AgeGroup": [[[], {}, 1]]}}}
    answer = visit.post("/v1/explain", {"row": people[3], "query": query})
    assert answer.status_code == 422 and "from option to option" in answer.json()["error"]


def test_what_is_equal_to_a_number_is_no_number_also_after_the_number(visit: Visitor, people) -> None:
    for output, status in ((0, 200), (False, 422), (0.0, 200)):  # what is prepared for 0 is kept
        query = {"target": {"at_most": 0.0, "output": output}}
        assert visit.post("/v1/explain", {"row": people[3], "query": query}).status_code == status


@pytest.mark.long
def test_certificates_that_are_bombs_or_forged(visit: Visitor, people) -> None:
    good = visit.post("/v1/certify", {"row": people[3]}).content
    all_of_them = list(certificates(good))
    for body in all_of_them[:: max(1, 6 * 150 // MANY)]:
        answer = visit("POST", "/v1/check", content=body, headers={"content-type": "application/octet-stream"})
        told(answer)
        assert answer.status_code == 422 or answer.json()["verdict"] != "VALID"


def test_whoever_asks_for_no_time_has_a_little(registry, people) -> None:
    for seconds in (5e-324, 1e-9, 1e-3):
        assert (
            read_query_request({"row": people[3], "seconds": seconds}, registry, ServiceLimits()).seconds == MIN_SECONDS
        )
    assert (
        read_query_request({"row": people[3], "seconds": 10**400}, registry, ServiceLimits()).seconds
        == ServiceLimits().seconds
    )


# ---------------------------------------------------------------------- drawn from the description


@pytest.mark.long
def test_what_the_description_allows_is_answered_as_it_says(registry, handler) -> None:
    visit = Visitor(Service(registry, ServiceLimits(seconds=1.0), Inline(handler), AccessPolicy()))  # type: ignore[arg-type]
    api = visit("GET", "/openapi.json").json()
    others = ("/v1/check", "/v1/explain/batch")
    posts = {path: one["post"] for path, one in api["paths"].items() if "post" in one and path not in others}
    shapes = api["components"]["schemas"]
    bodies = {path: drawn(one["requestBody"]["content"]["application/json"]["schema"], shapes) for path, one in posts.items()}  # fmt: skip
    asked = st.sampled_from(list(posts)).flatmap(lambda path: st.tuples(st.just(path), bodies[path]))

    @settings(
        max_examples=MANY // 2, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(asked)
    def ask(one: tuple[str, Any]) -> None:
        path, body = one
        answer = visit("POST", path, content=json.dumps(body).encode(), headers=JSON)
        told(answer)
        assert str(answer.status_code) in posts[path]["responses"]
        (kind, shape), = posts[path]["responses"][str(answer.status_code)]["content"].items()  # fmt: skip
        assert answer.headers["content-type"].startswith(kind)
        if kind == "application/json":
            whole = {**shape["schema"], "components": api["components"]}
            jsonschema.Draft202012Validator(whole).validate(answer.json())

    ask()


# ---------------------------------------------------------------------- over a socket


def test_over_the_wire(registry, inline, monkeypatch, caplog) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.2)
    limits = ServiceLimits(connections=3)
    with listening(Service(registry, limits, inline, AccessPolicy()), limits) as port:
        both = RULE + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        assert b" 400 " in talk(port, both) and b"not both" in talk(port, both)  # and it is closed
        for wrong in (b"GET\r\n\r\n", RULE + b"Transfer-Encoding: gzip\r\n\r\n", RULE + b"Content-Length: 1_0\r\n\r\n"):
            came = talk(port, wrong)
            assert came.startswith(b"HTTP/1.1 400 ") and b'{"error": "This is no request' in came and b"nosniff" in came
        late = talk(port, RULE.replace(b"json", b"x") + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n")
        assert late.startswith(b"HTTP/1.1 415 ") and late.count(b"HTTP/1.1") == 1  # what follows an answer gets none
        with socket.socket() as line:  # an answer that nobody reads
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(("127.0.0.1", port))
            line.settimeout(120)
            with pytest.raises(ConnectionError):
                while True:
                    line.sendall(b"GET /page/desk.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
    assert not caplog.records


def test_one_connection_too_many(registry, inline) -> None:
    limits = ServiceLimits(connections=3)
    with (
        listening(Service(registry, limits, inline, AccessPolicy()), limits) as port,
        contextlib.ExitStack() as inside,
    ):
        for _ in range(3):
            inside.enter_context(socket.create_connection(("127.0.0.1", port)))
        came = talk(port, b"")
        assert came.startswith(b"HTTP/1.1 429 ") and b"retry-after: 1\r\n" in came and b"ask again" in came


def test_an_answer_does_not_wait_to_be_confirmed(registry, inline) -> None:
    desk = Service(registry, ServiceLimits(), inline, AccessPolicy())
    with listening(desk, ServiceLimits()) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        took = [client.get("/healthz").elapsed.total_seconds() for _ in range(60)]
    assert min(took[20:]) < 0.03  # of a kept connection; it was 0.04 each time


def test_there_are_no_more_connections_than_files(monkeypatch, capfd) -> None:
    resource = pytest.importorskip("resource", reason="no limit of open files here")
    limits = [1024, 4096]
    monkeypatch.setattr(resource, "getrlimit", lambda which: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda which, both: limits.__setitem__(0, both[0]))
    assert server.possible_connections(2000) == 2000 and limits[0] == 3564 and capfd.readouterr().err == ""
    limits[:] = [256, 256]
    assert server.possible_connections(2000) == 109 and "109 connections" in capfd.readouterr().err


def test_a_key_that_no_header_can_carry_is_refused() -> None:
    for key in (" k", "k\n", "schl\xfcssel", "a\x00b"):
        with pytest.raises(QuestionError, match="no space at its ends"):
            AccessPolicy(key=key)


def test_a_port_is_a_number(visit: Visitor) -> None:
    for name in ("localhost:evil.example", "127.0.0.1:x", "localhost:80:80", ":80"):
        assert visit("GET", "/v1/models", headers={"host": name}).status_code == 421


# ---------------------------------------------------------------------- closing


@pytest.mark.parametrize("path", ["/v1/explain", "/v1/explain/stream"])
def test_whoever_is_cut_off_is_told_so(registry, path) -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def run() -> None:
        messages = [{"type": "http.request", "body": b"{}"}]

        async def receive() -> dict[str, Any]:
            return messages.pop() if messages else await asyncio.get_running_loop().create_future()

        nobody = pool.Pool(registry, ServiceLimits(), quick=1, slow=1, log=print)  # not begun: everyone waits
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"",
                 "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")]}  # fmt: skip
        task = asyncio.create_task(Service(registry, ServiceLimits(), nobody, AccessPolicy())(scope, receive, send))
        await asyncio.sleep(0.4)
        task.cancel()
        await task

    asyncio.run(run())
    assert sent[0]["status"] == (503 if path == "/v1/explain" else 200)
    assert b"The desk is closing" in sent[-1]["body"] and not sent[-1].get("more_body")


@pytest.mark.long
def test_a_second_ctrl_c_ends_it_at_once() -> None:
    desk = Served("--demo")
    try:
        with socket.create_connection(("127.0.0.1", desk.port)) as line:
            line.sendall(RULE + b"Content-Length: 100\r\n\r\n{")  # whose rest never comes
            time.sleep(0.2)
            for _ in range(2):
                desk.process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            _, said = desk.process.communicate(timeout=5)
    finally:
        desk.process.kill()
    logged = [line for line in said.splitlines() if not line.startswith("Compiling the ")]  # on a fresh machine
    assert desk.process.returncode == 0 and logged == []


def test_a_process_that_cannot_be_begun_is_begun_later(registry, monkeypatch) -> None:
    tries, said = [], []

    async def start(worker: pool.WorkerProcess, config: bytes) -> None:
        tries.append(worker)
        if len(tries) == 1:
            raise OSError(24, "Too many open files")

    monkeypatch.setattr(pool.WorkerProcess, "start", start)
    monkeypatch.setattr(pool, "FIRST_PAUSE_SECONDS", 0.01)

    async def run() -> None:
        one = pool.Pool(registry, ServiceLimits(), quick=1, slow=1, log=said.append)
        await one.start()
        assert "Too many open files" in one.unavailable().message
        while len(tries) < 3:
            await asyncio.sleep(0.01)
        assert [len(lane.workers) for lane in one.lanes] == [1, 1]
        await one.stop()

    asyncio.run(run())
    assert len(tries) == 3 and len(said) == 1
    assert said[0].startswith("a process of the quick lane could not be started (Too many open files)")
