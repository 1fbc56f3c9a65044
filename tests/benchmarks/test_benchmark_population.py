"""The table of a million people: as many rows as asked for, no two alike, all of them people of the schema."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.suites.population import held, people
from ifonly import datasets
from ifonly.schema import read_points


@pytest.mark.long
def test_people(tmp_path: Path) -> None:
    count = 50_000  # Adult has fewer: some of them stand there twice, with changes of their own
    path = people(tmp_path / "people.csv", count, denied=False)
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    assert names == ["ID", *datasets.network("adult", rules=False).schema.names]
    assert [row[0] for row in rows] == list(map(str, range(count)))
    assert len({tuple(row[1:]) for row in rows}) == count
    schema = datasets.network("adult", rules=False).schema
    errors: list = []
    read_points(schema, dict(zip(schema.names, list(zip(*rows, strict=True))[1:], strict=True)), errors=errors)
    assert not any(errors)


def test_memory_is_read() -> None:
    import os

    assert held(os.getpid()) > 10 or not Path("/proc/self/status").exists()
