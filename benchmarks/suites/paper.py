"""`paper`: every figure of the paper is asked for (`paper/figures.py` says of whom), then the report is written."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.paper import figures, page
from benchmarks.suites.run import forget, run
from benchmarks.terminal import Folders, console, folder_options, fresh_option, quick_option


@click.command("paper")
@quick_option
@click.option("--only", type=click.Choice(tuple(figures.FIGURES)), multiple=True, help="These figures only.")
@click.option("--rows", type=click.IntRange(1), help="Rows per network, for every method (each has its own otherwise).")
@click.option(
    "--budget", type=float, help="Seconds of processor time per row (5; with --quick, 2; DiCE always has 60)."
)
@fresh_option
@click.option("--draw", is_flag=True, help="Ask nothing: write the report from the records that are there.")
@folder_options
def command(
    quick: bool,
    only: tuple[str, ...],
    rows: int | None,
    budget: float | None,
    fresh: bool,
    draw: bool,
    cache: Path,
    results: Path,
) -> None:
    """Every figure of the paper, and one HTML report with all of them."""
    folders, out = Folders.of(cache, results, quick=quick), console()
    if not draw:
        page.describe_machine(folders.results)
    for figure in () if draw else only or figures.FIGURES:
        forget(folders, figures.suite(figure), fresh=fresh)
        for asked in figures.plans(figure, quick=quick, rows=rows):
            run(asked, folders, budget or (figures.QUICK_BUDGET if quick else figures.BUDGET), out)
    for path in page.write(folders.results):
        out.print(f"[dim]{path}[/dim]")
