"""How many rows a chunk has follows from measured times, and changes nothing that is written; no row is asked about twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ifonly.population import chunks, run
from ifonly.population import output as parts
from ifonly.population.engines import InProcess
from ifonly.population.output_paths import place_of
from population.streaming import records, same
from population.test_streams import moody

COUNT = 3000


class Measured:
    """This process, with seconds that a test makes up: `takes(rows answered so far, rows of the chunk)`."""

    description = "this process"

    def __init__(self, takes: Callable[[int, int], float], stop: int = -1) -> None:
        self.takes, self.stop = takes, stop
        self.sizes: list[int] = []
        self.asked: list[int] = []

    @contextmanager
    def begin(self, task: Any) -> Iterator[Any]:
        with InProcess().begin(task) as self.pool:
            yield self

    @property
    def has_capacity(self) -> bool:
        return bool(self.pool.has_capacity)

    def submit(self, ticket: int, chunk: chunks.Chunk) -> None:
        self.sizes.append(chunk.block.count)
        self.asked += range(chunk.first, chunk.end)
        self.pool.submit(ticket, chunk)

    def next(self) -> Any:
        if len(self.sizes) == self.stop:
            raise KeyboardInterrupt
        ticket, done = self.pool.next()
        return ticket, replace(done, seconds=self.takes(len(self.asked), self.sizes[-1]))


def answered(path: Path, takes: Callable[[int, int], float], rows: Any = None) -> Measured:
    engine = Measured(takes)
    moody().explain_to(path, points(COUNT) if rows is None else rows, engine=engine)
    return engine


def points(count: int) -> dict[str, list[float]]:
    return {"x": [-0.5 + i / 10_000 for i in range(count)], "y": [-0.4] * count}


def test_no_row_is_asked_about_twice(tmp_path):
    engine = answered(tmp_path / "answers.jsonl", lambda done, rows: rows * 1e-4)
    assert engine.asked == list(range(COUNT))


def test_a_slow_beginning_does_not_last(tmp_path):
    """The first rows are slow, as on a machine that is busy then: chunks grow as soon as rows are fast."""
    engine = answered(tmp_path / "answers.jsonl", lambda done, rows: rows * (0.3 if done <= 20 else 1e-4))
    assert engine.sizes[0] == run.FIRST_ROWS and max(engine.sizes) == chunks.ROWS
    assert len(engine.sizes) < 20 + COUNT / chunks.ROWS


@pytest.mark.long
def test_rows_that_become_slow_make_chunks_small(tmp_path):
    engine = answered(tmp_path / "answers.jsonl", lambda done, rows: rows * (1e-4 if done <= 1000 else 0.4))
    assert max(engine.sizes) == chunks.ROWS
    assert set(engine.sizes[-20:]) <= {1, 2}


def test_one_slow_chunk_changes_little(tmp_path):
    times = iter([1e-4] * 8 + [3600.0])
    engine = answered(tmp_path / "answers.jsonl", lambda done, rows: next(times, 1e-4))
    assert engine.sizes[8:11] == [chunks.ROWS, chunks.ROWS // run.MOST_STEP, chunks.ROWS * 3 // 4]


@pytest.mark.parametrize("seconds", [0.0, 1e-300, 1e300, float("inf")])
def test_times_of_any_size(seconds):
    size = run.ChunkSize()
    for _ in range(9):
        size.measured(4, seconds)
        assert 1 <= size.rows <= chunks.ROWS


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["rows", "columns", "file"])
def test_records_and_resuming_do_not_depend_on_the_cut(tmp_path, monkeypatch, seed, kind):
    """Chunks of sizes drawn by chance; the run ends early, and goes on with chunks of other sizes."""
    import json

    rows: Any = points(COUNT)
    if kind != "columns":
        rows = [{"x": x, "y": y} for x, y in zip(rows["x"], rows["y"], strict=True)]
    if kind == "file":
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        rows = tmp_path / "rows.jsonl"
    monkeypatch.setattr(parts, "MOST_ROWS", 100)
    draw = random.Random(seed)
    takes: Any = lambda done, rows: rows * 10 ** draw.uniform(-5, 0)  # noqa: E731
    output = tmp_path / "answers.jsonl"
    with pytest.raises(KeyboardInterrupt):
        moody().explain_to(output, rows, engine=Measured(takes, stop=25))
    before = parts.manifest_of(place_of(output))["rows"]  # type: ignore[index]
    assert 0 < before < COUNT
    engine = Measured(takes)
    moody().explain_to(output, rows, engine=engine, existing="resume")
    assert engine.asked == list(range(before, COUNT))
    answered(tmp_path / "meant.jsonl", lambda done, rows: 1e-9, rows)
    assert same(records(output), records(tmp_path / "meant.jsonl"))
    assert moody().explain_to(output, rows, existing="resume").already
