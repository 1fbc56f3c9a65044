"""`first`: the first answer on a machine where nothing is compiled, beside the same with everything compiled.

Each time is that of a whole new process, from its start to its end. The first processes share an empty cache of
compiled code, which a process that they have started is filling meanwhile; the others, the same cache when that is
done.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console

EXPLAIN = """
from ifonly import Explainer, datasets
print(Explainer(datasets.network("credit")).explain(datasets.load("credit").row(51)))
"""
COMMANDS = {
    "ifonly demo": ["-m", "ifonly.cli", "demo"],
    "explain, in Python": ["-c", EXPLAIN],
}
COMPILE = ["-m", "ifonly.compiling", "ifonly.search.warm:KERNELS"]


@click.command("first")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Processes of each kind.")
def command(rounds: int) -> None:
    """The first answer of a new process, with nothing compiled and with everything compiled."""
    table = Table("process", "cache", "seconds", "CPU seconds", "proven")
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
        for name, words in COMMANDS.items():
            table.add_row(name, "empty", *_told([_run(words, cache) for _ in range(rounds)]))
        _run(COMPILE, cache)  # waits for the one in the background
        for name, words in COMMANDS.items():
            table.add_row(name, "filled", *_told([_run(words, cache) for _ in range(rounds)]))
        table.add_row("compiling", "empty", *_told([_run(COMPILE, other)])[:2], "")
    console().print(table)


def _run(words: list[str], cache: str) -> tuple[float, float, bool]:
    """Wall and processor seconds of the process, and whether it said that its answer is proven."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    environment.pop("IFONLY_COMPILE", None)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *words], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, "no smaller allowed change does it (proven" in done.stdout


def _told(runs: list[tuple[float, float, bool]]) -> tuple[str, str, str]:
    wall, cpu, proven = zip(*runs, strict=True)
    return f"{np.median(wall):.2f}", f"{np.median(cpu):.2f}", f"{sum(proven)} of {len(proven)}"
