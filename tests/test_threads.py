"""Several threads: the same answers in the same order, progress told once, and an end when someone says stop."""

import math
import threading
import time

import numpy as np
import pytest

from ifonly import Explainer, datasets
from ifonly.answering import answerer
from ifonly.answering.threads import run_chunks
from ifonly.results import Progress
from ifonly.schema.tables import user_columns


@pytest.fixture(scope="module")
def table():
    model = datasets.network("adult", rules=False)
    points = datasets.load("adult", rules=False).points()[:1500]
    denied = points[model.scores(points)[:, 0] < 0][:700]
    return model, user_columns(model.schema, np.concatenate([denied, denied[:50]]))


def _plain(answers):
    """All but the time and the model's own scores, whose last bits depend on how many rows it is asked about."""
    left_out = ("seconds", "score_before", "score_after")
    return [{k: v for k, v in answer.to_dict().items() if k not in left_out} for answer in answers]


def test_threads_change_nothing(table):
    model, columns = table
    one = Explainer(model).explain_many(columns)
    heard = []
    many = Explainer(model, threads=3).using(listen=heard.append).explain_many(columns)
    assert _plain(one) == _plain(many)
    assert [answer.row for answer in many] == list(range(len(many)))
    finished = [event.finished for event in heard]
    assert finished == sorted(finished) and finished[-1] == heard[-1].people


def test_an_interruption_stops_every_thread(table):
    model, columns = table

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        Explainer(model, threads=2).using(listen=stop).explain_many(columns)
    assert time.perf_counter() - begun < 300


def test_a_failure_in_one_chunk_ends_the_others():
    started = []

    def task(chunk, heard):
        started.append(chunk)
        if chunk == 0:
            return  # on the calling thread, before the others
        if chunk == 1:
            raise ValueError("no")
        for i in range(1000):
            heard(Progress(finished=i, people=1000))
            time.sleep(0.01)

    with pytest.raises(ValueError, match="no"):
        run_chunks(task, list(range(50)), [1000] * 50, 2, None)
    assert len(started) < 10


def answered_by(share: float, monkeypatch: pytest.MonkeyPatch, table) -> tuple[list, set[int]]:
    """The answers on two threads, and the threads that answered, where searching must take this share of the time."""
    model, columns = table
    monkeypatch.setattr(answerer, "SEARCH_SHARE", share)
    used, own = set(), answerer.Answerer._robustly
    monkeypatch.setattr(
        answerer.Answerer, "_robustly", lambda self, *a: used.add(threading.get_ident()) or own(self, *a)
    )
    return Explainer(model, threads=2).explain_many(columns), used


def test_threads_are_used_where_searching_takes_most_of_the_time(table, monkeypatch: pytest.MonkeyPatch):
    expected = _plain(Explainer(table[0]).explain_many(table[1]))
    with monkeypatch.context() as patched:
        answers, used = answered_by(0.0, patched, table)
        assert _plain(answers) == expected and len(used) > 1
    with monkeypatch.context() as patched:
        answers, used = answered_by(math.inf, patched, table)
        assert _plain(answers) == expected and used == {threading.get_ident()}


def test_the_first_chunk_decides():
    judged = []
    result = run_chunks(
        lambda chunk, _: chunk, [7, 8, 9], [1, 1, 1], 2, None, lambda first, seconds: judged.append((first, seconds))
    )
    assert result == [7, 8, 9]
    ((first, seconds),) = judged
    assert first == 7 and 0.0 <= seconds < 300.0
    assert run_chunks(lambda chunk, _: chunk, [], [], 2, None) == []
