"""`audit-stream`: what `ifonly audit` holds in memory, for a few people and for many; asked for, and read from answers.

The people are those of `population`. Each audit is a process of its own, whose largest size is what the system says of
it when it has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import click
from rich.table import Table

from benchmarks.suites.population import people
from benchmarks.terminal import ROOT, console, results_option

QUESTION = ("--dataset", "adult", "--target", "above 50K", "--fix", "Sex,Age")


@click.command("audit-stream")
@click.option("--rows", default="20000,200000", show_default=True, help="People, comma-separated.")
@results_option
def command(rows: str, results: Path) -> None:
    """The memory of the audit command: does it grow with the number of people?"""
    folder = results / "population"
    folder.mkdir(parents=True, exist_ok=True)
    sheet = Table("people", "how", "CPU s", "seconds", "peak MiB")
    for count in map(int, rows.split(",")):
        table = people(folder / f"adult-denied-{count}.csv", count, denied=True)
        answers = folder / f"adult-denied-{count}.answers.jsonl"
        asked = (*QUESTION, "--rows", str(table))
        said = ("--by", "Sex", "--no-why", "--output", str(folder / "audit.json"), "--force")
        for how, words in {
            "asked": ("audit", *asked, *said),
            "(explained)": ("explain", *asked, "--output", str(answers), "--force"),
            "from answers": ("audit", *asked, *said, "--answers", str(answers)),
        }.items():
            cpu, seconds, peak = measured(words)
            sheet.add_row(f"{count:,}", how, f"{cpu:.1f}", f"{seconds:.1f}", f"{peak:.0f}")
    console().print(sheet)


def measured(words: tuple[str, ...]) -> tuple[float, float, float]:
    """Processor seconds, seconds and the largest size in MiB of a command (the largest of itself and its workers)."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "ifonly", *words],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    )
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode not in (0, 1):
        raise click.ClickException(f"ifonly {' '.join(words)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - begun, usage.ru_maxrss / 1024
