"""`python -m benchmarks plausible`: PROPLACE written again, how rows are judged and compared, and what a peer is told."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from benchmarks.peers import handover, talk
from benchmarks.peers.inside.handed import Handed
from benchmarks.peers.talk import Peer
from benchmarks.suites.plausible.outcome import Judges, Outcome, Way, asked, line, nearer, theirs
from benchmarks.suites.plausible.proplace import MARGIN, Options, Proplace, nearest_mixture
from benchmarks.suites.retraining import Records
from benchmarks.suites.robust.mce_r import accepted_by_all
from ifonly import Categorical, Distance, Explainer, Integer, Network, Ordinal, Real, RobustToWeights, Schema
from ifonly.model import network_model
from ifonly.model.own_layers import own_layers

SCHEMA = Schema([Real("Income", 0, 10), Integer("Debts", 0, 4), Categorical("Job", ["a", "b", "c"]),
                 Ordinal("Level", ["low", "middle", "high"])])  # fmt: skip
DELTA = 0.01


def _model(seed: int = 0) -> Any:
    rng, width = np.random.default_rng(seed), len(SCHEMA.columns)
    sizes = [width, 4, 4, 1]
    layers = [(rng.normal(size=(b, a)) / np.sqrt(a), rng.normal(size=b)) for a, b in itertools.pairwise(sizes)]
    scores = network_model(Network.of(layers), SCHEMA, classes=("no", "yes")).scores(_points(200, 1))[:, 0]
    layers[-1] = layers[-1][0], layers[-1][1] - np.median(scores)
    return network_model(Network.of(layers), SCHEMA, classes=("no", "yes"))


def _points(count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.column_stack([
        np.round(rng.uniform(0, 10, count), 2), rng.integers(0, 5, count), rng.integers(0, 3, count), rng.integers(0, 3, count)
    ]).astype(float)  # fmt: skip


def test_options_are_columns_and_their_costs_are_the_distance() -> None:
    options, points = Options(SCHEMA), _points(40, 0)
    columns = options.columns(points)
    assert all(np.array_equal(options.point(row), point) for row, point in zip(columns, points, strict=True))
    for before, after in zip(points[:20], points[20:], strict=True):
        number, option = options.costs(before)
        row, own = options.columns(after[None, :])[0], options.columns(before[None, :])[0]
        assert number @ np.abs(row - own) + option @ row == pytest.approx(
            float(Distance().between(SCHEMA, before, after)), abs=1e-12
        )


def test_the_nearest_mixture_is_found_by_a_grid_too() -> None:
    """Two vertices, so that the region is a segment, of which a fine grid misses little."""
    model, options, table = _model(), Options(SCHEMA), handover.columns_of_options(SCHEMA)
    points = _points(400, 2)
    points[:, 1:] = points[0, 1:]
    scores = model.scores(points)[:, 0]
    low, high = points[scores < -MARGIN], points[scores > 2 * MARGIN]
    assert len(low) and len(high), "the network decides by income, too"
    shares = np.linspace(0.0, 1.0, 4001)
    for before, after in zip(low[:5], high[:5], strict=False):
        vertices = options.columns(np.array([before, after]))
        found = nearest_mixture(vertices, [own_layers(model)], table, options, before)
        rows = (1 - shares[:, None]) * before + shares[:, None] * after
        accepted = rows[model.scores(rows)[:, 0] >= MARGIN]
        best = min(float(Distance().between(SCHEMA, before, row)) for row in accepted)
        away = float(Distance().between(SCHEMA, before, options.point(found)))
        assert best - 1e-3 <= away <= best + 1e-6
        assert model.scores(options.point(found)[None, :])[0, 0] >= MARGIN - 1e-6


def test_answers_hold_for_all_networks_and_are_never_nearer_than_the_proven_one() -> None:
    model = _model()
    points = _points(300, 3)
    method, explainer = Proplace(model, points, DELTA), Explainer(model)
    people = points[model.scores(points)[:, 0] < -0.05][:6]
    answered = 0
    for person in people:
        row = method.answer(person)
        if row is None:
            continue
        answered += 1
        assert accepted_by_all(model, row[None, :], DELTA)
        proven = explainer.explain(SCHEMA.row(person), target="yes", constraints=[RobustToWeights(DELTA)])
        assert float(Distance().between(SCHEMA, person, row)) >= proven.lower - 1e-9
    assert answered >= 3


def test_rows_are_counted_as_their_conditions_say(tmp_path: Path) -> None:
    model = _model()
    points = _points(300, 4)
    scores = model.scores(points)[:, 0]
    person, good, bad = points[scores < 0][0], points[scores > 0][:2], points[scores < 0][1]
    told = {0: good[0], 1: good[1], 2: bad, 3: None}
    people = {i: np.array([i / 100, *person[1:]]) for i in told}
    calls = []

    def ask(point: Any) -> dict[str, Any]:
        calls.append(point)
        row = told[round(100 * point[0])]
        return {"point": None if row is None else row.tolist(), "proven": True, "milliseconds": 2.0}

    def keeps(point: Any, facts: Any) -> bool:
        return bool(point[0] == good[0][0])

    class Trained:
        def predict(self, encoded: Any) -> Any:
            return np.array([1, 0])

    class Factor:
        def score_samples(self, encoded: Any) -> Any:
            return np.full(len(encoded), -1.25)

    judges = Judges(model, [Trained()], Factor(), np.asarray)
    records = tmp_path / "plausible.jsonl"
    way = Way(ask, keeps)
    found = asked("ours", way, people, judges, Records(records, "here"))
    assert (len(found.distance), found.refused, found.broken) == (2, 1, 1)
    assert len(calls) == 5, "everybody, after one who is not timed"
    again = asked("ours", way, people, judges, Records(records, "here"))
    assert len(calls) == 5 and again.distance == found.distance
    assert line(way, found, {"nearest": found}, judges) == [
        "2 of 4", "2", "1", "1", "1.000", "0", "50 %", "1.25", "2", "2"
    ]  # fmt: skip


def test_a_row_nearer_than_a_proven_one_is_counted() -> None:
    proven, open_ = {"proven": True}, {"proven": False}
    ours = Outcome(told={0: proven, 1: proven, 2: open_}, distance={0: 0.1, 1: 0.2, 2: 0.3})
    assert nearer(Outcome(distance={0: 0.1 - 1e-9, 1: 0.2, 2: 0.1}), ours) == 0
    assert nearer(Outcome(distance={0: 0.0999, 1: 0.2, 3: 0.0}), ours) == 1


def test_a_peer_is_told_where_its_checkout_is_and_says_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handover.write_features(tmp_path, SCHEMA, 5.0, tmp_path / "there")
    np.savez(tmp_path / "task.npz", train=_points(3, 0), labels=np.zeros(3))
    assert Handed(tmp_path).checkout == str(tmp_path / "there")
    inside = tmp_path / "inside"
    inside.mkdir()
    for name in ("main.py", "handed.py"):
        (inside / name).write_text((talk.SCRIPT.parent / name).read_text(encoding="utf-8"), encoding="utf-8")
    (inside / "with_fake.py").write_text(
        "def versions(): return 'fake 1'\n"
        "def make(handed, way):\n"
        "    return lambda point, k: (point[None, :] + 1.0, {'density': -2.5, 'optimal': way == 'done'})\n"
    )
    monkeypatch.setattr(talk, "SCRIPT", inside / "main.py")
    for way, done in (("done", True), ("late", False)):
        peer = Peer(Path(sys.executable), f"fake-{way}", tmp_path)
        try:
            told = theirs(peer, 60.0, read=lambda row: row[:2], write=lambda point: 2.0 * point)(
                np.array([1.0, 2.0, 3.0])
            )
        finally:
            peer.close()
        assert (told["point"], told["proven"], told["facts"]["density"]) == ([3.0, 5.0], done, -2.5)
        json.dumps(told)
