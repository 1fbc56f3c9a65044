"""A handler at work: when a request is tried again, passed on, given up."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ifonly.service.handler import Reply
from ifonly.service.limits import QUICK_SECONDS, ServiceLimits
from ifonly.service.worker import MAX_ATTEMPTS, WorkerRequest, _WorkerLoop

DONE = Reply(status=200, body=b"{}")


class ScriptedHandler:
    """Answers by what it is told to do, one after the other."""

    def __init__(self, *does: Any, slow: bool = False, hard: float = 5.0) -> None:
        self.does, self.slow, self.hard_seconds, self.limits = list(does), slow, hard, ServiceLimits(seconds=0.5)
        self.being_compiled = False

    def reply(self, path: str, body: bytes, tell: Any) -> Reply | None:
        done = self.does.pop(0)
        return done(tell) if callable(done) else done


class Line:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, word: Any) -> None:
        self.sent.append(word)


@pytest.fixture
def loop(monkeypatch) -> Iterator[_WorkerLoop]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    monkeypatch.setattr("ifonly.service.worker.read_messages", lambda *given: None)
    yield _WorkerLoop(Line())  # type: ignore[arg-type]
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def work(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_on_a_busy_machine_a_request_is_tried_again(loop) -> None:
    assert (
        loop._answer(ScriptedHandler(None, DONE), WorkerRequest(1, "/")) is DONE
    )  # no time was used: it was not let to work
    never = ScriptedHandler(*[None] * 9)
    assert loop._answer(never, WorkerRequest(1, "/")) is None and len(never.does) == 9 - MAX_ATTEMPTS


def test_a_hard_request_is_passed_on_at_once(loop) -> None:
    handler = ScriptedHandler(lambda tell: work(0.6 * QUICK_SECONDS), DONE)
    assert loop._answer(handler, WorkerRequest(1, "/")) is None and len(handler.does) == 1


def test_what_takes_too_long_is_passed_on_or_given_up(loop) -> None:
    again = [lambda tell: work(5.0)] * MAX_ATTEMPTS
    assert loop._answer(ScriptedHandler(*again, hard=0.1), WorkerRequest(1, "/")) is None
    given_up = loop._answer(ScriptedHandler(*again, hard=0.1, slow=True), WorkerRequest(1, "/"))
    assert given_up is not None and given_up.status == 503 and b"0.5 s" in given_up.body
    assert loop.current is None


def test_whoever_has_left_is_not_worked_for(loop) -> None:
    loop.cancelled.add(1)
    handler = ScriptedHandler(DONE)
    assert loop._answer(handler, WorkerRequest(1, "/")) is None and handler.does == [DONE]

    def leaving(tell: Any) -> Reply:
        loop.cancelled.add(2)  # as the listening thread does
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")

    assert loop._answer(ScriptedHandler(leaving), WorkerRequest(2, "/")) is None
    assert (
        loop._answer(ScriptedHandler(lambda tell: signal.raise_signal(signal.SIGINT) or DONE), WorkerRequest(3, "/"))
        is DONE
    )


def test_an_event_is_sent_whole(loop) -> None:
    def telling(tell: Any) -> Reply:
        tell(b"{}")
        loop.cancelled.add(1)
        tell(b"{}")
        raise AssertionError("it went on")

    assert loop._answer(ScriptedHandler(telling, slow=True), WorkerRequest(1, "/", stream=True)) is None
    assert len(loop.connection.sent) == 2


def test_an_error_tells_its_kind_and_place_only(loop) -> None:
    def failing(tell: Any) -> Reply:
        raise KeyError("Geheimnis")

    told = loop._answer(ScriptedHandler(failing), WorkerRequest(1, "/"))
    assert told is not None and told.status == 500 and b"Geheimnis" not in told.body
    assert told.bug.startswith("KeyError at test_service_worker.py:") and "Geheimnis" not in told.bug
