"""Two threads beside one: CPU time of both, and what two would take on idle cores, on a machine that need not be idle.

A thread runs, waits for a core, or waits for the interpreter's lock. The first two are counted by Linux, so the third
is known too: on idle cores the call would last as long as the longest of its threads runs and waits for the lock.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from benchmarks.asking.case import WANTED, Case
from benchmarks.subjects.networks import Spec, arch, train_missing
from benchmarks.terminal import console, folder_options
from ifonly import Explainer
from ifonly.answering import threads as pool

ASKED = (("adult", "2x10", 3000), ("adult", "2x50", 3000), ("adult", "5x50", 600), ("credit", "2x50", 600))
REPEATS = 5


def _counted() -> tuple[float, float, float]:
    """Seconds: of the clock, on a core, and waiting for one; of this thread."""
    ran, waited, _ = Path("/proc/thread-self/schedstat").read_text().split()
    return time.perf_counter(), 1e-9 * int(ran), 1e-9 * int(waited)


def _measured(explainer: Explainer, table: Any) -> tuple[float, float] | None:
    """CPU seconds of the threads, and seconds of the call on idle cores; None where one thread did it all."""
    spent: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    plain = pool._on_threads

    def counting(calls: Any, threads: int, cancelled: threading.Event) -> list[Any]:
        return plain([_counting(call, spent) for call in calls], threads, cancelled)

    pool._on_threads = counting
    try:
        explainer.explain_many(table, target=WANTED)
    finally:
        pool._on_threads = plain
    if not spent:
        return None
    return sum(ran for ran, _ in spent.values()), max(ran + blocked for ran, blocked in spent.values())


def _counting(call: Callable[[], Any], spent: dict[int, list[float]]) -> Callable[[], Any]:
    def run() -> Any:
        before = _counted()
        result = call()
        clock, ran, waited = (now - then for now, then in zip(_counted(), before, strict=True))
        mine = spent[threading.get_ident()]
        mine[0] += ran
        mine[1] += max(clock - ran - waited, 0.0)
        return result

    return run


def _least_cpu(explainer: Explainer, table: Any) -> float:
    taken = []
    for _ in range(REPEATS):
        begun = time.process_time()
        explainer.explain_many(table, target=WANTED)
        taken.append(time.process_time() - begun)
    return min(taken)


@click.command("threads")
@folder_options
def command(cache: Path, results: Path) -> None:
    """Two threads beside one, for networks of several sizes."""
    specs = [Spec(name, arch(size)) for name, size, _ in ASKED]
    train_missing(specs, cache, console())
    shown = Table("network", "people", "one thread, CPU s", "two, CPU s", "times as fast on idle cores")
    for spec, (_, _, most) in zip(specs, ASKED, strict=True):
        case = Case.make("threads", spec, cache, most)
        table = case.data.table(case.rows[:most])
        one, two = (Explainer(case.model, threads=threads).prepare(target=WANTED) for threads in (1, 2))
        found = [times for times in (_measured(two, table) for _ in range(REPEATS)) if times is not None]
        faster = f"{max(cpu / alone for cpu, alone in found):.2f}" if found else "not used"
        cpu = (f"{_least_cpu(explainer, table):.3f}" for explainer in (one, two))
        shown.add_row(f"{spec.dataset} {spec.arch}", str(len(case.rows[:most])), *cpu, faster)
    console().print(shown)
