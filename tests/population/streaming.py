"""A run in a process of its own, for tests that kill it.

python streaming.py TABLE OUTPUT here|2 [resume] [hold=ROWS]     parts of one chunk each, so that every moment is
                                                                 between two; held when so many rows are written,
                                                                 until its input has a line or ends
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ifonly import Explainer, Query, datasets
from ifonly.engines import Processes
from ifonly.population import chunks, run, sources
from ifonly.population import output as parts
from ifonly.schema.tables import user_columns

ROWS = 64
IGNORED = ("seconds",)
"""What differs from run to run."""


def table(count: int, path: Path) -> Path:
    """Rows of Adult, some of them wrong, with a column that names them."""
    import csv

    model = datasets.network("adult", rules=False)
    rng = np.random.default_rng(5)
    points = datasets.load("adult", rules=False).points()
    columns = user_columns(model.schema, points[rng.permutation(len(points))[:count]])
    columns["Age"] = [age if i % 97 else "old" for i, age in enumerate(columns["Age"])]
    columns["Customer ID"] = [f"c-{i:05d}" for i in range(count)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def explainer() -> Explainer:
    return Explainer(datasets.network("adult", rules=False), constraints=["Sex is fixed"])


def small_parts() -> None:
    parts.MOST_ROWS, run.FIRST_ROWS, run.CHUNK_SECONDS = ROWS, ROWS, 1e9
    sources.ROWS = chunks.ROWS = ROWS


def hold_at(rows: int) -> None:
    """Write "held" when so many rows are written, and wait for a line or the end of the input."""
    add, waiting = parts.Parts.add, [rows]

    def held(self: parts.Parts, *given: Any) -> None:
        add(self, *given)
        if waiting and self.rows >= waiting[0]:
            waiting.clear()
            print("held", flush=True)
            sys.stdin.readline()

    parts.Parts.add = held  # type: ignore[method-assign]


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a file or a folder, without the time that they took."""
    import json

    files = sorted(path.glob("part-*")) if path.is_dir() else [path]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in json.loads(line).items() if k not in IGNORED} for line in lines]


def same(found: list[dict[str, Any]], meant: list[dict[str, Any]]) -> bool:
    """Are the records the same? The last bits of the model's own scores depend on BLAS, its threads and its batches."""
    import pytest

    assert len(found) == len(meant)
    for one, other in zip(found, meant, strict=True):
        for name in one.keys() | other.keys():
            left, right = one[name], other[name]
            if name.startswith("score") and right is not None:
                assert left == pytest.approx(right, rel=1e-9, abs=1e-9)
            else:
                assert left == right, (one["row"], name)
    return True


def main(source: str, output: str, workers: str, *rest: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    small_parts()
    for word in rest:
        if word.startswith("hold="):
            hold_at(int(word.removeprefix("hold=")))
    engine = None if workers == "here" else Processes(int(workers))
    written = explainer().explain_to(
        output,
        source,
        Query(distance="l1"),
        keep=["Customer ID"],
        existing="resume" if "resume" in rest else "refuse",
        engine=engine,
    )
    print("already" if written.already else "finished", written.rows, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
