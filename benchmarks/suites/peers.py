"""`peers`: other libraries, exact MIPs and our own search on the same networks and rows, l1."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from benchmarks.asking import records
from benchmarks.asking.contestants import OURS
from benchmarks.asking.plan import Plan, specs
from benchmarks.peers import table
from benchmarks.peers.race import EXACT, PEERS
from benchmarks.showing.sheet import show
from benchmarks.subjects.data import PAPER
from benchmarks.suites.run import forget, run
from benchmarks.terminal import (
    Folders,
    budget_option,
    console,
    datasets_option,
    folder_options,
    fresh_option,
    listed,
    quick_option,
    rows_option,
)

METHODS = (OURS, *EXACT, *PEERS)


def plan(*, quick: bool = False) -> Plan:
    """2x10 on normalised inputs, l1: what the paper compares DiCE on."""
    return Plan(
        suite="peers", specs=specs(PAPER, ["2x10"]), methods=METHODS, rows=2 if quick else 10, way="one", give_up=2
    )


@click.command("peers")
@quick_option
@click.option("--only", default="", help=f"Comma-separated, of: {', '.join(METHODS)}.")
@datasets_option
@rows_option
@budget_option
@fresh_option
@folder_options
def command(
    quick: bool, only: str, datasets: str, rows: int | None, budget: float, fresh: bool, cache: Path, results: Path
) -> None:
    """Other libraries and exact MIPs on the same networks and rows, each library in an environment of its own."""
    folders, out = Folders.of(cache, results, quick=quick), console()
    forget(folders, "peers", fresh=fresh)
    asked = plan(quick=quick)
    kept = tuple(s for s in asked.specs if not datasets or s.dataset in datasets.split(","))
    for name in listed(only, METHODS, "method") or METHODS:  # one after the other: the slow ones keep nobody waiting
        run(replace(asked, methods=(name,), specs=kept, rows=rows or asked.rows), folders, budget, out)
    for sheet in table.sheets(records.read(records.path_of(folders.results, "peers"))):
        show(sheet, folders.results / "peers.md", out)
    for path in table.draw(folders.results):
        out.print(f"[dim]{path}[/dim]")
