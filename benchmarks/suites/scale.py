"""`scale`: time against depth, width, inputs, rows and cores, with fitted growth; memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from benchmarks.asking import processes
from benchmarks.asking.plan import DEPTHS, WIDTHS, Plan, specs
from benchmarks.showing import growth_plot
from benchmarks.showing.summaries import show_suite
from benchmarks.subjects.data import CANCER, PAPER
from benchmarks.suites import one_call
from benchmarks.suites.run import forget, run
from benchmarks.terminal import (
    Folders,
    budget_option,
    console,
    folder_options,
    fresh_option,
    quick_option,
    rows_option,
)

SUITES = ("size", "inputs", "rows", "throughput", "memory")
DEEP = ("5x50", "5x100")
INPUTS = tuple(f"{CANCER}{inputs}" for inputs in (5, 10, 15, 20, 25, 30))
THREADS = (1, 2)


def plan(suite: str, *, quick: bool = False) -> Plan:
    """What `size`, `inputs` or `throughput` asks; `quick` is a few minutes' worth."""
    match suite:
        case "size":
            archs = ("1x10", "5x10", "9x10", "2x20", "2x100") if quick else (*DEPTHS, *WIDTHS, *DEEP)
            return Plan(suite=suite, specs=specs(PAPER, archs), rows=10 if quick else 20, way="one")
        case "inputs":
            return Plan(suite=suite, specs=specs(INPUTS, ["2x10"]), rows=10 if quick else 50, way="one")
        case "throughput":
            archs = ("2x10",) if quick else ("2x10", "2x50")
            return Plan(suite=suite, specs=specs(["adult"], archs), rows=300 if quick else 3000, threads=THREADS)
        case _:
            raise ValueError(f"There is no plan '{suite}'.")


@click.command("scale")
@quick_option
@click.option("--only", type=click.Choice(SUITES), multiple=True, help="These suites only (may be repeated).")
@rows_option
@budget_option
@fresh_option
@folder_options
def command(
    quick: bool, only: tuple[str, ...], rows: int | None, budget: float, fresh: bool, cache: Path, results: Path
) -> None:
    """Time against depth, width, inputs, rows and cores, with fitted growth; memory."""
    folders, out = Folders.of(cache, results, quick=quick), console()
    for suite in only or SUITES:
        forget(folders, suite, fresh=fresh)
        if suite == "rows":
            one_call.rows(folders, out, quick=quick)
        elif suite == "memory":
            processes.memory(folders, out, quick=quick)
        else:
            asked = plan(suite, quick=quick)
            run(replace(asked, rows=rows or asked.rows), folders, budget, out)
        show_suite(suite, folders.results, out)
    for path in growth_plot.draw(folders.results):
        out.print(f"[dim]{path}[/dim]")
