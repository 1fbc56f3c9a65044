"""`measure`: the published figures again, one command of this package after the other, in one sitting.

Each command is a process of its own. Its output is kept in `results/measure/NAME.txt`; its commit, exit code, time and
the load of the machine are a line of `results/measure/runs.jsonl`. What was measured at this commit is left out.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from benchmarks.asking import records
from benchmarks.terminal import ROOT, console, fresh_option, results_option

IDLE = 0.5
"""Load below which the machine counts as idle."""
PATIENCE_SECONDS = 30.0
"""How long an idle machine is waited for, before each command that needs one."""
RUNS = "runs.jsonl"


@dataclass(frozen=True)
class Part:
    """One command, its name, and the heading of docs/performance.md (or the page) that has its figures."""

    name: str
    arguments: str
    where: str
    minutes: float
    """On an idle core, roughly."""


PARTS = (
    Part("paper", "paper --fresh", "Claims, paper.md", 25),
    Part("one-call", "one-call --rows 8 --data adult --rounds 3", "One call", 2),
    Part("threads", "threads", "Growth, and the slowest rows", 2),
    Part("trees-rules", "trees --rules --rows 20 --seconds 20 --data adult --data credit", "Trees", 3),
    Part("bootstraps", 'chains --rows 100 --only "bootstrap networks"', "Several models in one question", 2),
    Part("causes", "causes --only data --seconds 20", "causes.md", 1),
    Part("causes-forests", "causes --only forests --seconds 20 --rows 30", "causes.md", 1),
    Part("certificates", "certificates --ruled 12 --only network", "Certificates", 2),
    Part("possible", "possible", "invariants.md", 1),
    Part("rules", "rules", "Rules", 1),
    Part("throughput", "scale --only inputs --only rows --only throughput --fresh", "Claims", 3),
    Part("memory", "scale --only memory --fresh", "Claims", 1),
    Part("cold", "search --only cold --fresh", "Claims", 2),
    Part("size", "scale --only size --fresh", "Claims", 6),
    Part("speed", "search --only speed --archs 2x10 --rows 10 --fresh", "Claims", 6),
    Part("trees", "trees --rows 10", "Trees", 8),
    Part("first", "first --empty --rounds 1", "First answer with nothing compiled", 3),
    Part("collection", "certificates --collection 100 --norms l1", "Certificates", 2),
    Part("reals", "reals --rows 4 --seconds 20 --shape 2x10 --shape 2x20 --shape 2x32", "Many real features", 4),
    Part("peers", "peers", "Claims", 60),
    Part("publish", "publish", "Claims", 1),
)


def _await_idle(load: float, patience: float) -> float:
    """The load of the machine, when it has fallen to this, or after a while."""
    until = time.monotonic() + patience
    while (now := os.getloadavg()[0]) > load and time.monotonic() < until:
        time.sleep(2.0)
    return now


def measured(part: Part, folder: Path, commit: str, load: float, patience: float) -> dict[str, Any]:
    """Run one command; what is to be known about the run."""
    before, begun = _await_idle(load, patience), time.monotonic()
    with (folder / f"{part.name}.txt").open("w", encoding="utf-8") as log:
        log.write(f"python -m benchmarks {part.arguments}\ncommit {commit}, load {before:.1f}\n\n")
        log.flush()
        words = [sys.executable, "-m", "benchmarks", *shlex.split(part.arguments)]
        ended = subprocess.run(
            words,
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    return {
        "part": part.name,
        "command": part.arguments,
        "commit": commit,
        "seconds": round(time.monotonic() - begun, 1),
        "exit_code": ended.returncode,
        "load_before": round(before, 2),
        "load_after": round(os.getloadavg()[0], 2),
    }


def _known(path: Path, commit: str) -> set[str]:
    """What was measured at this commit without an error."""
    if not path.exists():
        return set()
    runs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {run["part"] for run in runs if run["commit"] == commit and run["exit_code"] == 0}


def _listing() -> Table:
    table = Table("part", "command: python -m benchmarks ...", "page, or heading of docs/performance.md", "minutes")
    for part in PARTS:
        table.add_row(part.name, part.arguments, part.where, f"{part.minutes:g}")
    return table


@click.command("measure")
@click.option("--list", "only_listed", is_flag=True, help="Show the commands; run nothing.")
@click.option("--only", type=click.Choice([part.name for part in PARTS]), multiple=True, help="These parts only.")
@click.option("--without", type=click.Choice([part.name for part in PARTS]), multiple=True, help="All but these parts.")
@click.option("--jobs", type=click.IntRange(1, 2), default=1, show_default=True, help="Commands at the same time.")
@click.option(
    "--patience", type=float, default=PATIENCE_SECONDS, show_default=True, help="Seconds to wait for an idle machine."
)
@fresh_option
@results_option
def command(
    only_listed: bool,
    only: tuple[str, ...],
    without: tuple[str, ...],
    jobs: int,
    patience: float,
    fresh: bool,
    results: Path,
) -> None:
    """The published figures again, in one sitting on an idle machine: one command after the other, with its log."""
    out = console()
    if only_listed:
        out.print(_listing())
        return
    folder, commit = results / "measure", records.commit()
    folder.mkdir(parents=True, exist_ok=True)
    done = set() if fresh else _known(folder / RUNS, commit)
    asked = [part for part in PARTS if part.name in (only or [p.name for p in PARTS]) and part.name not in without]
    parts = [part for part in asked if part.name not in done]
    for part in asked:
        if part.name in done:
            out.print(f"{part.name}: measured at {commit} already")
    last = [part for part in parts if part.name == "publish"]  # it reads what the others have written
    failed = []
    for group in ([part for part in parts if part not in last], last):
        with ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(measured, part, folder, commit, IDLE + jobs - 1, patience): part for part in group}
            for ended in as_completed(waiting):
                part, run = waiting[ended], ended.result()
                with (folder / RUNS).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
                out.print(f"{part.name}: {run['seconds']:.0f} s, exit code {run['exit_code']}")
                failed += [part.name] if run["exit_code"] else []
    if failed:
        raise click.ClickException(f"These ended with an error; their logs say why: {', '.join(failed)}.")
