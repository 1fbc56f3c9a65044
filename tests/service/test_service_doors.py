"""What comes in from outside: keys, names, sizes, depth, slowness, nonsense. Each gets a sentence, and nothing leaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import socket
import time
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest

from ifonly.service import ServiceLimits, app, server
from ifonly.service.app import AccessPolicy, Service
from ifonly.service.pool import Pool
from services import Inline, Visitor, listening, talk

POSTS = (
    "/v1/explain",
    "/v1/explain/stream",
    "/v1/diverse",
    "/v1/predict",
    "/v1/rule",
    "/v1/certify",
    "/v1/check",
    "/v1/report",
    "/v1/notice",
    "/v1/why",
    "/v1/recourse",
)
RULE = b"POST /v1/rule HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SCRIPT = "<script>alert(1)</script>\x1b[31m\u202e"


def refused(told: httpx.Response, status: int, words: str = "") -> dict[str, Any]:
    assert told.status_code == status, told.text
    assert told.headers["content-type"] == "application/json"
    data = told.json()
    assert set(data) <= {"error", "where", "place"} and data["error"] and "\n" not in data["error"]
    assert words in data["error"]
    return data


# ---------------------------------------------------------------------- who may ask


def test_with_a_key_nothing_is_told_without_it(registry, inline) -> None:
    visit = Visitor(Service(registry, ServiceLimits(), inline, AccessPolicy(key="secret")))
    for given in (None, "Bearer wrong", "secret", "Bearer secret2", "bearer secret", "Bearer \xff"):
        headers = {} if given is None else {"authorization": given.encode("latin-1")}
        refused(visit("GET", "/v1/models", headers=headers), 401, "key")
        told = visit.post("/v1/explain", {}, headers=headers)
        assert told.headers["www-authenticate"] == "Bearer" and not inline.asked
    assert visit("GET", "/v1/models", headers={"authorization": "Bearer secret"}).status_code == 200
    assert visit("GET", "/healthz").status_code == visit("GET", "/readyz").status_code == 200


@pytest.mark.parametrize(
    "name", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::1"]
)
def test_a_site_that_has_taken_our_address_is_kept_out(visit, name) -> None:
    refused(visit("GET", "/v1/models", headers={"host": name}), 421, "not called")


@pytest.mark.parametrize(
    "name", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "[::1]", "192.168.1.2", "LOCALHOST"]
)
def test_under_its_own_names_the_desk_answers(visit, name) -> None:
    assert visit("GET", "/v1/models", headers={"host": name}).status_code == 200


def test_a_name_can_be_given(registry, inline) -> None:
    visit = Visitor(Service(registry, ServiceLimits(), inline, AccessPolicy(hosts=("desk.example",))))
    assert visit("GET", "/v1/models", headers={"host": "desk.example:443"}).status_code == 200
    refused(visit("GET", "/v1/models", headers={"host": "desk.example.evil"}), 421)


def test_answers_cannot_be_used_by_other_sites(visit, people) -> None:
    for told in (visit("GET", "/v1/models", headers={"origin": "http://evil.example"}), visit.post("/v1/predict", {"row": people[3]}),
                 visit("OPTIONS", "/v1/explain", headers={"origin": "http://evil.example"}), visit("GET", "/none")):  # fmt: skip
        assert not any(name.startswith("access-control") for name in told.headers)
        assert told.headers["x-content-type-options"] == "nosniff" and told.headers["cache-control"] == "no-store"
        assert told.headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in told.headers


# ---------------------------------------------------------------------- what may be asked


@pytest.mark.parametrize("path", ["/../etc/passwd", "/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd", "/page/", "/page/none.js",
                                  "/v1", "/v1/", "/v1/explain/", "//v1/explain", "/%00", "/V1/explain"])  # fmt: skip
def test_there_is_nothing_beside_the_paths(visit, path) -> None:
    refused(visit("GET", path), 404, "nothing at")


@pytest.mark.parametrize("path", POSTS)
def test_other_methods_and_types_are_refused(visit, inline, path) -> None:
    for method in ("GET", "PUT", "DELETE", "HEAD"):
        told = visit(method, path)
        assert told.status_code == 405 and told.headers["allow"] == "POST"
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"):
        refused(visit("POST", path, content=b"{}", headers={} if kind is None else {"content-type": kind}), 415)
    refused(
        visit("POST", path, content=b"{}", headers={"content-type": "application/json", "content-encoding": "gzip"}),
        415,
    )
    assert not inline.asked


@pytest.mark.parametrize("path", POSTS)
def test_a_body_that_is_too_large_is_not_read_to_its_end(registry, inline, path) -> None:
    visit = Visitor(Service(registry, ServiceLimits(body_bytes=1000, certificate_bytes=1000), inline, AccessPolicy()))
    headers = {"content-type": "application/json"}
    refused(visit("POST", path, content=b" " * 1001, headers=headers), 413, "1,000 bytes")
    taken = []

    async def endless() -> Any:
        while True:
            taken.append(1)
            yield b" " * 500

    refused(visit("POST", path, content=endless(), headers=headers), 413)  # in pieces, without a length
    assert len(taken) < 10 and not inline.asked


def test_all_bodies_together_are_bounded(registry, inline) -> None:
    desk = Service(registry, ServiceLimits(held_bytes=100), inline, AccessPolicy())
    told = Visitor(desk)("POST", "/v1/rule", content=b" " * 101, headers={"content-type": "application/json"})
    refused(told, 429)
    assert told.headers["retry-after"] == "1" and desk._body_bytes == 0


def test_a_slow_body_is_given_up(registry, inline, monkeypatch) -> None:
    monkeypatch.setattr(app, "BODY_SECONDS", 0.05)

    async def slow() -> Any:
        yield b"{"
        await asyncio.sleep(5)

    visit = Visitor(Service(registry, ServiceLimits(), inline, AccessPolicy()))
    refused(visit("POST", "/v1/rule", content=slow(), headers={"content-type": "application/json"}), 408)


NO_JSON = {
    "empty": b"", "text": b"hello", "cut": b'{"row": ', "nan": b'{"row": {"AgeGroup": NaN}}', "infinity": b'{"seconds": Infinity}',
    "huge number": b'{"seconds": 1e999}', "long number": b'{"seconds": ' + b"9" * 5000 + b"}", "bytes": b"\xff\xfe\x00",
    "deep": b"[" * 100_000, "deep and closed": b'{"row":' * 40 + b"1" + b"}" * 40, "deep list": b"[" * 40 + b"]" * 40,
}  # fmt: skip


@pytest.mark.parametrize("path", [path for path in POSTS if path != "/v1/check"])
@pytest.mark.parametrize("what", NO_JSON)
def test_what_is_no_json_is_refused(visit, path, what) -> None:
    refused(visit("POST", path, content=NO_JSON[what], headers={"content-type": "application/json"}), 400)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"format": "ifonly-certificate"}', b"\x78\x9c", os.urandom(200), b"{" * 5000, b"[]"]
)
def test_what_is_no_certificate_is_refused(visit, body) -> None:
    refused(visit("POST", "/v1/check", content=body, headers={"content-type": "application/octet-stream"}), 422)


WRONG: list[tuple[str, Any, str | None]] = [
    ("/v1/explain", [], None),
    ("/v1/explain", {}, None),
    ("/v1/explain", {"row": 1}, "row"),
    ("/v1/explain", {"row": [1] * 14}, "row"),
    ("/v1/explain", {"row": {}, "also": 1}, "also"),
    ("/v1/explain", {"row": {}, "model": "none"}, "model"),
    ("/v1/explain", {"row": {}, "model": ["credit"]}, "model"),
    ("/v1/explain", {"row": {}, "seconds": 0}, "seconds"),
    ("/v1/explain", {"row": {}, "seconds": "1"}, "seconds"),
    ("/v1/explain", {"row": {}, "seconds": True}, "seconds"),
    ("/v1/explain", {"row": {}, "language": "fr"}, "language"),
    ("/v1/explain", {"row": {}, "language": {}}, "language"),
    ("/v1/explain", {"row": {}, "path": 1}, "path"),
    ("/v1/explain", {"row": {}, "diversity": {"count": 2}}, "diversity"),
    ("/v1/explain", {"row": {}, "query": []}, "query"),
    ("/v1/explain", {"row": {}, "query": {"also": 1}}, "query"),
    ("/v1/explain", {"row": {}, "query": {"target": {"none": 1}}}, "query.target"),
    ("/v1/explain", {"row": {}, "query": {"distance": "l7"}}, "query.distance"),
    ("/v1/explain", {"row": {}, "query": {"constraints": {}}}, "query.constraints"),
    ("/v1/explain", {"row": {}, "query": {"constraints": ["AgeGroup is fixed", {"kind": "none"}]}}, "query.constraints[1]"),
    ("/v1/explain", {"row": {}, "query": {"constraints": ["x"] * 51}}, "query.constraints"),
    ("/v1/explain", {"row": {}, "query": {"constraints": ["x" * 1001]}}, "query.constraints[0]"),
    ("/v1/explain", {"row": {}, "query": {"constraints": [{"kind": "rule", "text": "x" * 1001}]}}, "query.constraints[0]"),
    ("/v1/diverse", {"row": {}}, None),
    ("/v1/diverse", {"row": {}, "diversity": 3}, "diversity"),
    ("/v1/diverse", {"row": {}, "diversity": {"count": 6}}, "diversity.count"),
    ("/v1/diverse", {"row": {}, "diversity": {"count": 0}}, "diversity"),
    ("/v1/diverse", {"row": {}, "diversity": {"count": 2, "differ": "x"}}, "diversity"),
    ("/v1/predict", {"row": {}}, "row.isMale"),
    ("/v1/rule", {"text": 1}, "text"),
    ("/v1/rule", {"text": "x" * 1001}, "text"),
    ("/v1/rule", {"text": ""}, "text"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "body", "where"), WRONG, ids=[f"{path[4:]}-{k}" for k, (path, _, _) in enumerate(WRONG)]
)
def test_what_is_wrong_is_named_with_its_place(visit, people, path, body, where) -> None:
    if isinstance(body, dict) and body.get("row") == {} and where != "row.isMale":
        body = {**body, "row": people[3]}
    told = visit.post(path, body)
    assert refused(told, 404 if where == "model" else 422)["where"] == where


@pytest.mark.parametrize(("query", "where"), [
    ({"constraints": ["AgeGroup is fixed", "AgeGroup gos up"]}, "query.constraints[1]"),
    ({"constraints": [{"kind": "fixed", "feature": "none"}]}, "query.constraints[0]"),
    ({"distance": {"norm": "l1", "weights": {"none": 1.0}}}, "query.distance"),
    ({"target": "none"}, "query.target"),
])  # fmt: skip
def test_what_the_library_refuses_is_found_in_the_body(visit, people, query, where) -> None:
    for path in ("/v1/explain", "/v1/certify", "/v1/report"):
        assert refused(visit.post(path, {"row": people[3], "query": query}), 422)["where"] == where
    wrong = {**people[3], "AgeGroup": "none"}
    assert refused(visit.post("/v1/explain", {"row": wrong}), 422)["where"] == "row.AgeGroup"


def test_text_from_outside_comes_back_as_text(visit, people) -> None:
    for path, body in (("/v1/explain", {"row": {SCRIPT: 1}}), ("/v1/rule", {"text": SCRIPT}), ("/v1/explain", {SCRIPT: 1}),
                       ("/v1/explain", {"row": {**people[3], "AgeGroup": SCRIPT}}), ("/v1/predict", {"row": {}, "model": SCRIPT})):  # fmt: skip
        told = visit.post(path, body)
        assert told.status_code in (404, 422) and "\x1b" not in told.text and "\u202e" not in told.text
        assert (
            told.headers["content-type"] == "application/json" and told.headers["x-content-type-options"] == "nosniff"
        )


# ---------------------------------------------------------------------- what goes wrong here


def test_an_error_of_ours_is_a_sentence_and_no_more(visit, inline, capfd) -> None:
    inline.fails = ValueError("Geheimnis-4711")
    told = visit.post("/v1/explain", {"row": {}})
    refused(told, 500, "should not")
    assert "Geheimnis" not in told.text and "Traceback" not in told.text
    said = capfd.readouterr().err
    assert "ValueError at services.py" in said and "Geheimnis" not in said
    assert visit.desk.metrics.bugs == 1


def test_a_full_queue_sends_people_away(visit, inline) -> None:
    inline.full = True
    told = visit.post("/v1/explain", {"row": {}})
    refused(told, 429, "ask again")
    assert int(told.headers["retry-after"]) >= 1


def test_before_it_is_ready_it_says_so(visit, inline) -> None:
    inline.ready = False
    for path in ("/readyz", "/healthz"):
        told = visit("GET", path)
        refused(told, 503, "starting")
        assert told.headers["retry-after"] == "5"
    assert visit("GET", "/livez").json() == {"status": "alive"}


def test_lanes_are_bounded_and_who_leaves_makes_room(registry) -> None:
    async def run() -> None:
        pool = Pool(
            registry, ServiceLimits(waiting=2, waiting_long=1), quick=1, slow=1, log=print
        )  # not begun: everyone waits
        jobs = [pool.submit("/v1/rule", b"{}") for _ in range(2)]
        assert pool.submit("/v1/rule", b"{}").reply.result().status == 429
        pool.cancel(jobs[0])
        jobs[0] = pool.submit("/v1/rule", b"{}")
        pool.quick.waiting.clear()
        for job in jobs:  # both need longer than the quick lane has
            pool.job_finished(pool.quick, job, None)
        assert list(pool.slow.waiting) == jobs[:1]
        assert (jobs[1].reply.result().status, jobs[1].reply.result().retry) == (429, 10)
        await pool.stop()
        assert jobs[0].reply.result().status == 503

    asyncio.run(run())


def test_metrics_are_what_prometheus_reads(visit, inline, people, registry) -> None:
    pool = Pool(registry, ServiceLimits(), quick=1, slow=1, log=print)
    inline.lanes = pool.lanes
    visit.post("/v1/explain", {"row": people[3]})
    visit.post("/v1/explain", {"row": {}})
    visit("GET", "/no/such/path")
    told = visit("GET", "/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    line = re.compile(
        r'^(# (HELP|TYPE) ifonly_service_\w+ .+|ifonly_service_\w+(\{(\w+="[^"\\]*",?)+\})? [0-9.e+-]+|)$'
    )
    assert all(line.match(each) for each in told.text.split("\n"))
    for wanted in ('requests_total{path="/v1/explain",status="200"} 1', 'requests_total{path="/v1/explain",status="422"} 1',
                   'requests_total{path="other",status="404"} 1', 'searches_total{ending="nearest"} 1',
                   'request_seconds_count{path="/v1/explain"} 2'):  # fmt: skip
        assert f"ifonly_service_{wanted}\n" in told.text


# ---------------------------------------------------------------------- over a socket


@pytest.fixture
def port(registry, handler, monkeypatch) -> Iterator[int]:
    """The application behind the real server, with one handler in this process."""
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    limits = ServiceLimits()
    with listening(Service(registry, limits, Inline(handler), AccessPolicy()), limits) as number:  # type: ignore[arg-type]
        yield number


def test_slow_and_endless_heads_are_given_up(port) -> None:
    begun = time.monotonic()
    assert talk(port, b"") == b""
    assert talk(port, b"GET /healthz HT") == b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:  # also after a request
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /heal")
        while line.recv(1 << 16):
            pass
    assert time.monotonic() - begun < 5
    assert b" 431 " in talk(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)


GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
LONG = {
    "one field": GET + b"X: " + b"x" * 20_000 + b"\r\n\r\n",
    "spaces, which are not part of the value": GET + b"X:" + b" " * 20_000 + b"x\r\n\r\n",
    "many fields": GET + b"".join(b"X-%d: 1\r\n" % k for k in range(2000)) + b"\r\n",
    "the target": b"GET /livez?" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "the second of two": GET + b"\r\n" + GET + b"X: " + b"x" * 20_000 + b"\r\n\r\n",
    "after a body": RULE + b"Content-Length: 2\r\n\r\n{}" + GET + b"X: " + b"x" * 20_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("pieces", [1, 2, 50])
@pytest.mark.parametrize("what", LONG)
def test_the_head_of_a_request_is_bounded_however_it_is_written(port, what, pieces) -> None:
    sent, size = LONG[what], len(LONG[what]) // pieces + 1
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        came = b""
        with contextlib.suppress(ConnectionError):  # it is closed before all of it is read
            for k in range(0, len(sent), size):
                line.sendall(sent[k : k + size])
            while some := line.recv(1 << 16):
                came += some
    answers = re.findall(rb"HTTP/1.1 (\d+) ", came)
    before = {"the second of two": [b"200"], "after a body": [b"422"]}.get(what, [])
    assert answers == [*before, b"431"] or (
        pieces > 1 and answers in ([], before)
    )  # a reset may take the last one along


def test_a_head_within_the_limit_is_read_also_with_a_large_body(port) -> None:
    line = GET + b"Connection: close\r\nX: "
    assert b" 200 " in talk(port, line + b"x" * (server.HEADER_BYTES - len(line) - 4) + b"\r\n\r\n")
    assert b" 431 " in talk(port, line + b"x" * (server.HEADER_BYTES - len(line) - 3) + b"\r\n\r\n")
    body = b'{"text": "' + b"x" * 100_000 + b'"}'
    assert b" 422 " in talk(port, RULE + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize("sent", [
    b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"POST /v1/rule HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/rule HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /v1/rule HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
])  # fmt: skip
def test_what_is_no_http_is_refused(port, sent) -> None:
    assert re.match(rb"HTTP/1.1 4\d\d ", talk(port, sent.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)))


def test_hostile_bodies_by_the_hundred(visit, people) -> None:
    """Whatever stands in a body: an answer, or a 4xx with a sentence. IFONLY_HOSTILE sets how many."""
    draw = random.Random(20261116)
    strange = [
        None,
        True,
        -1,
        0,
        1e308,
        10**30,
        "",
        SCRIPT,
        "\ud800",
        "a" * 5000,
        [],
        {},
        [[]],
        {"": {}},
        "AgeGroup is fixed",
        {"kind": "rule", "text": "1 <= 1"},
    ]
    whole = {"row": people[3], "query": {"target": "approve", "distance": {"norm": "l1", "weights": {"AgeGroup": 2.0}}, "constraints": [
             {"kind": "range", "feature": "TotalMonthsOverdue", "lower": 0, "upper": 4}, "AgeGroup only goes up"], "fewest_first": False},
             "seconds": 0.5, "language": "en", "path": True, "diversity": {"count": 2, "apart": 0.1, "differ": "values"}, "text": "AgeGroup is fixed"}  # fmt: skip
    paths = [path for path in POSTS if path not in ("/v1/check", "/v1/explain/stream")]
    for _ in range(int(os.environ.get("IFONLY_HOSTILE", "150"))):
        path, body = draw.choice(paths), json.loads(json.dumps(whole))
        for name in {"/v1/rule": ("row", "query", "seconds", "language", "path", "diversity"),
                     "/v1/predict": ("query", "seconds", "language", "path", "diversity", "text"), "/v1/diverse": ("text",),
                     "/v1/report": ("text",)}.get(path, ("diversity", "text")):  # fmt: skip
            del body[name]
        for _ in range(draw.randint(1, 2)):
            at = body
            while True:
                keys = list(at) if isinstance(at, dict) else list(range(len(at)))
                if not keys:
                    break
                key = draw.choice(keys)
                if isinstance(at[key], dict | list) and draw.random() < 0.7:
                    at = at[key]
                    continue
                at[key] = deepcopy(draw.choice(strange))
                break
        told = visit("POST", path, content=json.dumps(body).encode(), headers={"content-type": "application/json"})
        assert told.status_code < 500, (path, body, told.text)
        if told.status_code != 200:
            refused(told, told.status_code)
