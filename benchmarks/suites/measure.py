"""`measure`: the published figures again, one command of this package after the other, in one sitting.

The longest ones are campaigns, which take most of a day and run with `--campaigns`; the others take an hour and a half
on one idle core. Each command is a process of its own. Its output is kept in `results/measure/NAME.txt`; its commit,
exit code, time and the load of the machine are a line of `results/measure/runs.jsonl`. What was measured at this commit
is left out.
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


SOON = "the first 10 ms"
REALS_SHAPES = "--shape 2x10 --shape 2x20 --shape 2x32 --shape 3x20"
SMOOTH_SHAPES = "--shape tanh-2x10 --shape logistic-2x10"
SYNTHETIC = "--family synthetic-20 --family synthetic-40 --family synthetic-60"
MIXED = "--family mixed --family adult --family credit --family compas"

QUICK_PEERS = "ifonly,gurobi,scip,highs,dice-gradient,dice-genetic,dice-random,nice"
TOGETHER = "Several models in one question"
REALS = "Many real features"

SITTING = (
    Part("speed", "search --only speed --archs 2x10 --rows 10 --fresh", "Claims, README", 6),
    Part("paper-full", "paper --only full --fresh", "Claims, paper.md, README", 6),
    Part("size", "scale --only size --fresh", "Claims, README", 6),
    Part("throughput", "scale --only inputs --only rows --only throughput --fresh", "Claims, README", 3),
    Part("one-call", "one-call --rows 8 --data adult --rounds 3", "One call", 2),
    Part("threads", "threads", "Growth, and the slowest rows", 2),
    Part("bootstraps", 'chains --rows 100 --only "bootstrap networks"', TOGETHER, 2),
    Part("reals", f'reals --rows 8 --seconds 60 --against "{SOON}" --fresh', REALS, 12),
    Part("paper-width", "paper --only width --fresh", "Claims, paper.md", 6),
    Part("paper-depth", "paper --only depth --fresh", "Claims, paper.md", 4),
    Part("paper-dice", "paper --only dice --fresh", "Claims, paper.md", 6),
    Part("trees", "trees --rows 10", "Trees", 4),
    Part("trees-rules", "trees --rules --rows 20 --seconds 20 --data adult --data credit", "Trees", 3),
    Part("causes", "causes --only data --seconds 20", "causes.md", 1),
    Part("causes-forests", "causes --only forests --seconds 20 --rows 30", "causes.md", 1),
    Part("certificates", "certificates --ruled 12 --only network", "Certificates", 2),
    Part("possible", "possible", "invariants.md", 1),
    Part("rules", "rules", "Rules", 1),
    Part("memory", "scale --only memory --fresh", "Claims", 3),
    Part("cold", "search --only cold --fresh", "Claims", 2),
    Part("first", "first --empty --rounds 1", "First answer with nothing compiled", 3),
    Part("paper-sparsity", "paper --only sparsity --fresh", "Claims, paper.md", 3),
    Part("paper-diversity", "paper --only diversity --fresh", "Claims, paper.md", 5),
    Part("anomaly", 'chains --rows 100 --seconds 120 --only "isolation forest" --only autoencoder',
         TOGETHER, 3),
    Part("outlier-factor", 'chains --rows 100 --seconds 120 --only "outlier factor"', TOGETHER, 4),
    Part("densities", 'chains --rows 20 --seconds 5 --only "gaussian mixture" --only "one-class svm"', TOGETHER, 3),
    Part("gaussians", "gaussians --rows 20 --seconds 5", TOGETHER, 4),
    Part("collection", "certificates --collection 100 --norms l1", "Certificates", 2),
    Part("causes-literature", "causes --only literature --peers 4", "causes.md", 2),
    Part("reals-mixed", f'reals {MIXED} --shape 2x10 --shape 2x20 --rows 20 --rounds 3 --against "without probing" '
         "--records results/reals-mixed.jsonl --fresh",
         REALS, 2),
    Part("reals-trees", "reals-trees --seconds 20 --rows 5", REALS, 2),
    Part("reals-smooth", f"reals --family breast-cancer {SYNTHETIC} {SMOOTH_SHAPES} --rows 4 --seconds 5 "
         '--against "without probing" --records results/reals-smooth.jsonl --fresh', REALS, 3),
    Part("peers", f"peers --only {QUICK_PEERS} --fresh", "Claims", 15),
)  # fmt: skip
"""In the order of what matters most, so that a sitting that is cut short has it."""

CAMPAIGNS = (
    Part("reals-gurobi", f"reals --rows 8 --seconds 20 {REALS_SHAPES} --against gurobi", REALS, 50),
    Part("reals-open", "reals --rows 8 --seconds 60 --open-only --against gurobi --against mip-obj", REALS, 15),
    Part("reals-certificates", "reals --rows 4 --seconds 120 --shape 2x10 --shape 2x20 --against certificate",
         REALS, 5),
    Part("peers-slow", "peers --only cfnow-greedy,cfnow-random,alibi", "Claims", 45),
    Part("agreement", "agreement reference", "Methods beside each other", 60),
    Part("methods", "methods --rows 5 --budget 10", "Methods beside each other", 5),
    Part("models", "models", "Sixty models", 10),
    Part("diversity", "diversity --rows 50 --check 5", "Diverse sets", 10),
    Part("robust", "robust --rows 25 --seconds 30 --hidden 16 --hidden 10,10", "Changed weights", 20),
    Part("retraining", "retraining --rows 250 --changes 25", "Models that are trained again", 120),
    Part("plausible", "plausible --only forests --rows 5 --changes 1 --seconds 10",
         "Peers that ask for more than the nearest row", 10),
    Part("tree-race", "tree-race --peer ocean", "Trees", 60),
    Part("why", "why --rows 200 --seconds 120", "Sufficient reasons", 30),
    Part("certificates-random", "certificates --random 1000", "Certificates", 5),
    Part("certificates-largest", "certificates --largest 60", "Certificates", 15),
    Part("invariants", "invariants", "invariants.md", 10),
    Part("limits", "limits", "Time limits", 5),
    Part("population", "population", "Populations", 10),
    Part("audit-stream", "audit-stream", "Populations", 5),
    Part("audit", "audit --populations 300", "audit.md", 10),
    Part("desk", "desk", "The service", 5),
)  # fmt: skip

PUBLISH = Part("publish", "publish", "Claims", 1)
"""It reads what the others have written."""
PARTS = (*SITTING, *CAMPAIGNS, PUBLISH)


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
    table = Table(
        "part", "command: python -m benchmarks ...", "page, or heading of docs/performance.md", "minutes", "campaign"
    )
    for part in PARTS:
        table.add_row(part.name, part.arguments, part.where, f"{part.minutes:g}", "yes" if part in CAMPAIGNS else "")
    return table


@click.command("measure")
@click.option("--list", "only_listed", is_flag=True, help="Show the commands; run nothing.")
@click.option("--only", type=click.Choice([part.name for part in PARTS]), multiple=True, help="These parts only.")
@click.option("--without", type=click.Choice([part.name for part in PARTS]), multiple=True, help="All but these parts.")
@click.option("--campaigns", is_flag=True, help="The long ones, too: most of a day.")
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
    campaigns: bool,
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
    usual = PARTS if campaigns else (*SITTING, PUBLISH)
    asked = [
        part for part in (PARTS if only else usual) if part.name in (only or {part.name}) and part.name not in without
    ]
    parts = [part for part in asked if part.name not in done]
    for part in asked:
        if part.name in done:
            out.print(f"{part.name}: measured at {commit} already")
    last = [part for part in parts if part == PUBLISH]
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
