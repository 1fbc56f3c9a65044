"""`search`: our search beside the big-M MIP (`speed`, `reals`), and the first answer of a new process (`cold`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from benchmarks.asking import contestants, processes
from benchmarks.asking.contestants import OURS
from benchmarks.asking.plan import Plan, specs
from benchmarks.showing.summaries import show_suite
from benchmarks.subjects.data import CANCER, PAPER
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

SUITES = ("speed", "reals", "cold")
NORMS = ("l1", "l0", "l2", "linf")


def plan(suite: str, *, quick: bool = False) -> Plan:
    """What `speed` or `reals` asks; `quick` is a few minutes' worth."""
    archs = ["2x10"] if quick else ["2x10", "2x50"]
    if suite == "speed":
        return Plan(
            suite=suite,
            specs=specs(PAPER, archs, ["norm"] if quick else ["norm", "raw"]),
            norms=NORMS,
            methods=(OURS, "gurobi", "gurobi-ball"),
            rows=10 if quick else 30,
            singly=True,
        )
    return Plan(suite=suite, specs=specs([CANCER], archs), methods=(OURS, "gurobi"), rows=10 if quick else 50, chunk=5)


def narrowed(asked: Plan, datasets: str, archs: str, norms: str) -> Plan:
    """The part of a plan that comma-separated lists leave; an empty list leaves everything."""
    kept = tuple(
        spec
        for spec in asked.specs
        if (not datasets or spec.dataset in datasets.split(",")) and (not archs or spec.arch in archs.split(","))
    )
    return replace(asked, specs=kept, norms=listed(norms, asked.norms, "norm") or asked.norms)


@click.command("search")
@quick_option
@click.option("--only", type=click.Choice(SUITES), multiple=True, help="These suites only (may be repeated).")
@click.option("--methods", "chosen", default="", help=f"Comma-separated, of: {', '.join(contestants.METHODS)}.")
@datasets_option
@click.option("--archs", default="", help="Comma-separated, such as 2x10,2x50: these architectures only.")
@click.option("--norms", default="", help="Comma-separated: these norms only.")
@rows_option
@budget_option
@fresh_option
@folder_options
def command(
    quick: bool,
    only: tuple[str, ...],
    chosen: str,
    datasets: str,
    archs: str,
    norms: str,
    rows: int | None,
    budget: float,
    fresh: bool,
    cache: Path,
    results: Path,
) -> None:
    """The search engine against the MIP, and the first answer of a new process."""
    names = listed(chosen, contestants.METHODS, "method")
    folders, out = Folders.of(cache, results, quick=quick), console()
    for suite in only or SUITES:
        forget(folders, suite, fresh=fresh)
        if suite == "cold":
            processes.cold(folders, out)
        else:
            asked = narrowed(plan(suite, quick=quick), datasets, archs, norms)
            asked = replace(asked, methods=names or asked.methods, rows=rows or asked.rows)
            run(asked, folders, budget, out)
        show_suite(suite, folders.results, out)
