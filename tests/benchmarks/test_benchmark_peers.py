"""The race against other libraries: what they are given, how their rows are judged, and that a slow one is ended."""

import sys

import numpy as np
import pytest

from benchmarks.asking.case import Case, QueryRequest
from benchmarks.asking.records import Record
from benchmarks.peers import environments, handover, race, table, talk
from benchmarks.peers.inside.handed import Handed
from benchmarks.peers.talk import Peer, Said
from benchmarks.subjects.data import load
from benchmarks.subjects.networks import Spec, arch
from ifonly import datasets
from ifonly.model import save_network


@pytest.fixture
def case(tmp_path):
    save_network(datasets.network("adult", rules=False).network, tmp_path / "adult_2x10_norm.npz", classes=(0, 1))
    return Case.make("peers", Spec("adult", arch("2x10")), tmp_path, 3)


def test_the_network_that_is_handed_over_is_the_network(case, tmp_path):
    handover.write(tmp_path, case.model, case.data, 5.0)
    handed = Handed(tmp_path)
    points = load("adult").points[:200]
    columns = handed.one_hot(points)
    assert handed.scores(columns) == pytest.approx(case.model.scores(points)[:, 0], abs=1e-9)
    assert np.array_equal(handed.points(columns), points)
    assert handed.probabilities(columns)[:, 1] == pytest.approx(1 / (1 + np.exp(-case.model.scores(points)[:, 0])))


def test_rows_are_judged_as_they_came(case):
    person = case.data.points[case.rows[0]]
    nearest = case.data.schema.names.index("HoursPerWeek")
    half, far = person.copy(), case.data.points[case.data.labels == 1][0]
    half[nearest] += 0.5
    judged = race.judge(case, person, np.array([half, far, person]))
    assert judged.plausible.tolist() == [False, True, True]
    assert judged.distance[2] == 0.0 and not judged.valid[2]
    assert judged.distance[0] == pytest.approx(0.5 / 98 / 12)
    made = race.JudgedRow(np.array([0.1, 0.2, 0.3, 0.05]), *(np.array(b) for b in (
        [True, True, True, False], [False, True, True, True], [True, True, True, False])))  # fmt: skip
    assert made.best == 1


def test_what_came_of_a_row_is_a_record(case):
    how = QueryRequest(norm="l1", method="nice", way="one")
    peer = Peer(None, "nice", None)
    person = case.data.points[case.rows[0]]
    accepted = case.data.points[case.model.decide(case.model.scores(case.data.points)) == 1][0]
    good = race.record(case, how, 0, Said(points=[accepted.tolist()], seconds=2.0, cpu_seconds=1.0), peer, 1)
    assert (good.status, good.valid, good.plausible, good.seconds, good.cpu_seconds) == ("found", True, True, 2.0, 1.0)
    assert good.changed == (accepted != person).sum() and good.upper > 0
    same = race.record(case, how, 0, Said(points=[person.tolist()]), peer, 1)
    assert same.status == "found" and not same.valid
    late = race.record(case, how, 0, Said(error="time limit of 5 s", seconds=5.0), peer, 1)
    assert (late.status, late.stopped, late.valid) == ("limit", True, False)
    assert race.record(case, how, 0, Said(), peer, 1).status == "not found"
    assert race.record(case, how, 0, Said(error="ValueError: no"), peer, 1).status == "error"
    pair = race.record(case, how, 0, Said(points=[accepted.tolist(), person.tolist()]), peer, 2)
    assert (
        not pair.valid and pair.diversity == pytest.approx(good.upper) and pair.upper == pytest.approx(good.upper / 2)
    )


def test_a_peer_answers_and_a_slow_one_is_ended(case, tmp_path, monkeypatch):
    script = tmp_path / "fake.py"
    script.write_text(
        "import json, sys\n"
        "print(json.dumps({'versions': 'fake 1', 'seconds': 0.0, 'error': ''}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    while asked['k'] > 1: pass\n"
        "    said = {'points': [asked['point']], 'seconds': 0.1, 'cpu_seconds': 0.1, 'error': ''}\n"
        "    print(json.dumps(said), flush=True)\n"
    )
    monkeypatch.setattr(talk, "SCRIPT", script)
    monkeypatch.setattr(talk, "LOOK_SECONDS", 0.05)
    peer = Peer(sys.executable, "fake", tmp_path)
    try:
        assert peer.ask(np.array([1.0, 2.0]), 1, 5.0).points == [[1.0, 2.0]] and peer.versions == "fake 1"
        assert "time limit" in peer.ask(np.array([1.0]), 2, 0.2).error
        assert peer.ask(np.array([3.0]), 1, 5.0).points == [[3.0]]  # started again
    finally:
        peer.close()


def test_an_environment_that_cannot_be_made_is_a_reason_on_every_row(case, tmp_path, monkeypatch):
    def refuse(library, cache, console):
        raise environments.NoEnvironment("no environment for nice: no network")

    monkeypatch.setattr(environments, "python_of", refuse)
    how = QueryRequest(norm="l1", method="nice", way="one")
    (batch,) = race.ask(case, how, [], tmp_path, None)
    assert [(r.row, r.status, r.note) for r in batch] == [
        (i, "error", "no environment for nice: no network") for i in range(3)
    ]


def test_the_lists_pin_every_version():
    for library in environments.LIBRARIES:
        lines = (environments.LOCKS / f"{library}.txt").read_text().splitlines()
        assert lines and all("==" in line for line in lines)


def test_the_table_counts_all_rows():
    def record(method, row, upper, **others):
        facts = {"suite": "peers", "dataset": "adult", "arch": "2x10", "variant": "norm", "norm": "l1", "way": "one",
                 "status": "found", "lower": 0.0, "valid": True, "seconds": 1.0, "cpu_seconds": 0.5, "nodes": 0}  # fmt: skip
        return Record(method=method, row=row, upper=upper, **(facts | others))

    found = [
        *(record("ifonly", i, 0.1, status="nearest") for i in range(3)),
        record("nice", 0, 0.2),
        record("nice", 1, 0.05, plausible=False),
        record(
            "nice",
            2,
            float("inf"),
            status="limit",
            valid=False,
            plausible=False,
            note="time limit of 1 s",
            stopped_by="seconds",
        ),
    ]
    (sheet,) = table.sheets(found)
    assert sheet.rows[1][1:12] == ["NICE", "3", "1/3", "2", "1", "2", "-", "1", "0", "2.00x", "2.00x"]
