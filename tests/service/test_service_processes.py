"""A real server: lanes, leaving, lost processes, closing. What is long is a question that a minute does not answer."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from ifonly import Explainer, datasets
from services import Served, metric

ROW = datasets.load("credit", rules=False).row(51)
SLOW = 'at_work{lane="slow"}'


def post(served: Served, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(served.address + path, json=body, timeout=300)


def ask_hard(served: Served, path: str = "/v1/explain") -> socket.socket:
    """A hard question whose answer nobody has read yet, and that is being worked on."""
    busy = metric(served, SLOW)
    body = json.dumps({"model": "hard", "row": ROW}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    line = socket.create_connection(("127.0.0.1", served.port))
    line.sendall(head.encode() + body)
    served.wait(lambda: metric(served, SLOW) > busy)
    return line


def workers(served: Served) -> list[tuple[int, int]]:
    """Processes that answer, by their priority."""
    own = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
    named = [(int(pid), Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in own]
    return sorted((os.getpriority(os.PRIO_PROCESS, pid), pid) for pid, words in named if b"spawn_main" in words)


@pytest.mark.long
def test_a_server_answers_as_the_library_does(served: Served) -> None:
    told = post(served, "/v1/explain", {"row": ROW}).json()
    answer = Explainer(datasets.network("credit", rules=False), classes=["deny", "approve"]).explain(ROW)
    assert told["exact"] == str(answer)
    assert httpx.get(served.address + "/v1/models").json()["models"][0] == {"name": "credit", "title": "Loans"}


def test_a_hard_question_keeps_nobody_waiting(served: Served) -> None:
    with ask_hard(served):  # there is one quick process, and one slow one
        for _ in range(20):
            assert post(served, "/v1/explain", {"row": ROW}).json()["answer"]["status"] == "nearest"
        assert metric(served, SLOW) == 1
    assert workers(served)[0][0] < workers(served)[-1][0]


def test_whoever_leaves_is_forgotten(served: Served) -> None:
    served.wait(lambda: metric(served, SLOW) == 0)
    left, lost = metric(served, "clients_left_total"), metric(served, 'processes_lost_total{lane="slow"}')
    ask_hard(served).close()
    served.wait(lambda: metric(served, SLOW) == 0)
    assert metric(served, "clients_left_total") == left + 1
    assert metric(served, 'processes_lost_total{lane="slow"}') == lost == 0  # it stopped by itself


@pytest.mark.long
def test_a_stream_tells_bounds_and_then_the_answer(served: Served) -> None:
    body, events = {"model": "hard", "row": ROW, "seconds": 4.0}, []  # time for bounds, on a busy machine too
    with httpx.stream("POST", served.address + "/v1/explain/stream", json=body, timeout=300) as told:
        assert told.headers["content-type"].startswith("text/event-stream")
        for line in told.iter_lines():
            if line.startswith("event: "):
                events.append([line[7:]])
            elif line.startswith("data: "):
                events[-1].append(json.loads(line[6:]))
    *bounds, (name, last) = events
    assert bounds and all(kind == "bounds" for kind, _ in bounds)
    assert name == "answer" and last["answer"]["status"] in ("within", "unknown")
    lowest = [told["lower"] for _, told in bounds]
    assert lowest == sorted(lowest) and lowest[-1] <= last["answer"]["lower_bound"] + 1e-9
    with httpx.stream("POST", served.address + "/v1/explain/stream", json={"row": {}}) as told:
        assert told.status_code == 422
    with httpx.stream("POST", served.address + "/v1/explain/stream", json={"row": ROW}) as told:
        assert b"event: answer" in told.read()


def test_whoever_leaves_a_stream_is_forgotten(served: Served) -> None:
    ask_hard(served, "/v1/explain/stream").close()
    served.wait(lambda: metric(served, SLOW) == 0)


@pytest.mark.long
def test_a_process_that_is_killed_is_replaced(served: Served) -> None:
    with ask_hard(served) as line:
        os.kill(workers(served)[-1][1], signal.SIGKILL)
        line.settimeout(300)
        told = b""
        while b"}" not in told:
            told += line.recv(1 << 16)
    assert told.startswith(b"HTTP/1.1 503") and b"ended; ask again" in told
    os.kill(workers(served)[0][1], signal.SIGSTOP)  # it hangs: whoever waits for it is told, and it is ended
    told = post(served, "/v1/explain", {"row": ROW})
    assert told.status_code == 503 and "ask again" in told.json()["error"]
    assert metric(served, 'processes_lost_total{lane="quick"}') == 1
    assert httpx.get(served.address + "/readyz").status_code == 503
    while (
        told := post(served, "/v1/explain", {"row": ROW})
    ).status_code == 503:  # the new one takes long on a busy machine
        assert "starting" in told.json()["error"] and told.headers["retry-after"] == "5"
    assert told.status_code == 200  # it waits for the new one
    served.wait(lambda: httpx.get(served.address + "/readyz").status_code == 200)


@pytest.mark.long
def test_a_demonstration_with_a_key_that_is_told_to_end() -> None:
    secret, key = "Geheimnis-4711", {"authorization": "Bearer open sesame"}
    server = Served("--demo", IFONLY_SERVICE_KEY="open sesame")
    try:
        assert httpx.get(server.address + "/v1/schema").status_code == 401
        schema = httpx.get(server.address + "/v1/schema", headers=key).json()
        assert len(schema["people"]) == 3
        row = schema["people"][0]["row"]
        for asked in (row, {secret: 1}, {**row, "AgeGroup": secret}):
            told = httpx.post(server.address + "/v1/explain", json={"row": asked}, headers=key, timeout=30)
        assert told.status_code == 422 and secret in told.text  # to the one who asked
        httpx.get(f"{server.address}/{secret}?row={secret}", headers=key)
        children = [pid for _, pid in workers(server)]
        with socket.create_connection(("127.0.0.1", server.port)) as line:  # half a request is no reason to stay
            line.sendall(b"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\n")
            code, said = server.end()
    finally:
        server.process.kill()
    logged = [line for line in said.splitlines() if not line.startswith("Compiling the ")]  # on a fresh machine
    assert code == 0 and logged == []  # nothing of what was asked, nor anything else
    assert not any(Path(f"/proc/{pid}/cmdline").exists() for pid in children)
