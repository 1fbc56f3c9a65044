"""`population`: a million people as one stream, on one process and on two; the time, the rate, the memory.

The table is Adult over and over, each row with a small change of its own, so that no two rows are alike. Every run is a
process of its own; what the reader and the largest worker hold is read from /proc while it goes, and compared between
the first tenth and the end.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import ROOT, console, results_option
from ifonly import datasets
from ifonly.worker_processes import cores

RUN = """
import json, sys, time
from dataclasses import replace
from ifonly import Explainer, Query, datasets
from ifonly.engines import Processes
from ifonly.population.engines import InProcess

class SlowAtFirst:  # as on a machine that is busy for a moment
    def __init__(self, inner, seconds):
        self.inner, self.seconds, self.calls = inner, seconds, 0

    def __call__(self, points):
        self.calls += 1
        time.sleep(self.seconds if self.calls <= 8 else 0.0)
        return self.inner(points)

def main(table, output, processes, slow):
    engine = Processes(int(processes)) if int(processes) else InProcess()
    model = datasets.network("adult", rules=False)
    if float(slow):
        model = replace(model, original=SlowAtFirst(model.original, float(slow)))
    explainer = Explainer(model)
    begun = time.perf_counter()
    written = explainer.explain_to(output, table, Query(distance="l1"), keep=["ID"], engine=engine)
    print(json.dumps({"rows": written.rows, "counts": written.counts, "seconds": time.perf_counter() - begun}))

if __name__ == "__main__":
    main(*sys.argv[1:])
"""
STEP = 1e-4
"""Of the capital gain: what one row is changed by more than the row before it."""


@click.command("population")
@click.option("--rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="People in the table.")
@click.option("--processes", default="1,2", show_default=True, help="Comma-separated; 0 is the reader's own process.")
@click.option("--kind", type=click.Choice(["csv", "jsonl", "parquet"]), default="jsonl", show_default=True)
@click.option("--denied", is_flag=True, help="Only people whom the network denies, as in the other suites.")
@click.option("--busy", type=click.IntRange(0), default=0, show_default=True, help="Processes that only count, beside.")
@click.option("--slow-start", type=float, default=0.0, show_default=True, help="Seconds that each of the model's "
              "first eight calls in a worker takes longer.")  # fmt: skip
@results_option
def command(rows: int, processes: str, kind: str, denied: bool, busy: int, slow_start: float, results: Path) -> None:
    """Many people as a stream: wall and processor time, rows per second, peak memory of reader and workers."""
    folder = results / "population"
    folder.mkdir(parents=True, exist_ok=True)
    table = people(folder / f"adult{'-denied' if denied else ''}-{rows}.csv", rows, denied=denied)
    sheet = Table("processes", "rows", "seconds", "rows/s", "CPU us/row", "reader MiB", "worker MiB",
                  "reader grew MiB", "worker grew MiB", "proven")  # fmt: skip
    told = []
    for count in map(int, processes.split(",")):
        with busy_beside(busy):
            told.append(measured(folder, table, folder / f"answers-{count}.{kind}", count, slow_start))
        one = told[-1]
        sheet.add_row(*(str(one[name]) for name in ("processes", "rows", "seconds", "rate", "cpu", "reader", "worker",
                                                    "reader_grew", "worker_grew", "proven")))  # fmt: skip
    with (folder / "population.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(
            json.dumps({**one, "cores": cores(), "kind": kind, "busy": busy, "slow_start": slow_start}) + "\n"
            for one in told
        )
    console().print(sheet)
    if len(told) > 1:
        console().print(
            f"{told[-1]['processes']} processes are {told[-1]['rate'] / told[0]['rate']:.2f} times as fast."
        )


@contextlib.contextmanager
def busy_beside(count: int) -> Iterator[None]:
    """So many processes that take whatever time they are given."""
    words = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def people(path: Path, count: int, *, denied: bool) -> Path:
    """Adult, each row with a change of its own, and a column that names it."""
    if path.exists():
        return path
    model, data = datasets.network("adult", rules=False), datasets.load("adult", rules=False)
    points = data.points()
    if denied:
        points = points[model.scores(points)[:, 0] < 0.0]
    points = points[np.random.default_rng(0).permutation(len(points))]
    from ifonly.schema.tables import user_columns

    gain = model.schema.index("CapitalGain")
    most = model.schema.features[gain].upper  # type: ignore[union-attr]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ID", *model.schema.names])
        for first in range(0, count, len(points)):
            some = points[: count - first].copy()
            change = STEP * (1 + first + np.arange(len(some)))
            some[:, gain] = np.round(some[:, gain] + np.where(some[:, gain] < most / 2, change, -change), 4)
            columns = user_columns(model.schema, some)
            writer.writerows(zip(range(first, first + len(some)), *columns.values(), strict=True))
    return path


def measured(folder: Path, table: Path, output: Path, processes: int, slow_start: float) -> dict[str, Any]:
    """One run in a process of its own, watched."""
    for left in folder.glob(f"{output.name}*"):
        left.unlink()
    script = folder / "run.py"
    script.write_text(RUN, encoding="utf-8")
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, str(script), str(table), str(output), str(processes), str(slow_start)]
    before, begun = os.times(), time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}) as process:
        held = list(watched(process))
        said = json.loads(process.stdout.read() if process.stdout else "")
    wall, after = time.perf_counter() - begun, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    early = max(1, len(held) // 10)
    reader, worker = ([sample[k] for sample in held] for k in (0, 1))
    return {
        "processes": processes,
        "rows": said["rows"],
        "seconds": round(wall, 1),
        "rate": round(said["rows"] / said["seconds"]),
        "cpu": round(cpu / said["rows"] * 1e6, 1),
        "reader": round(max(reader)),
        "worker": round(max(worker)),
        "reader_grew": round(max(reader) - max(reader[:early])),
        "worker_grew": round(max(worker) - max(worker[:early])),
        "proven": said["counts"]["nearest"] + said["counts"]["none exists"],
    }


def watched(process: subprocess.Popen[str]) -> Iterator[tuple[float, float]]:
    """MiB that the reader and the largest worker hold, again and again until the run is over."""
    while process.poll() is None:
        workers = [held(child) for child in children(process.pid)]
        yield held(process.pid), max(workers, default=0.0)
        time.sleep(0.2)


def held(process: int) -> float:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
    return 0.0


def children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()))
    return []
