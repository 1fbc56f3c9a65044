"""The command line of the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from benchmarks import (
    agreement,
    certificates,
    diversity,
    forgeries,
    method_table,
    methods,
    plot,
    processes,
    publish,
    records,
    rules,
    scale,
    tables,
)
from benchmarks.paper import page
from benchmarks.paper import plans as figures
from benchmarks.peers import race
from benchmarks.peers import table as peers_table
from benchmarks.plan import PLANNED, SCALE, SEARCH, plan
from benchmarks.run import Folders, run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Benchmarks of ifonly: one CSV record a row asked, summaries in the terminal and in Markdown."""


Command = TypeVar("Command", bound=Callable[..., Any])


def folders(command: Command) -> Command:
    """The options that say where things are kept."""
    kind = click.Path(path_type=Path, file_okay=False)
    command = click.option("--results", type=kind, default=ROOT / "results", help="Folder of records and plots.")(
        command
    )
    return click.option("--cache", type=kind, default=HERE / "cache", help="Folder of trained networks.")(command)


quick_option = click.option("--quick", is_flag=True, help="Fewer networks and rows: a look, not a measurement.")
rows_option = click.option("--rows", type=click.IntRange(1), help="Rows a network (the suite's own number otherwise).")
fresh_option = click.option("--fresh", is_flag=True, help="Forget earlier records instead of adding to them.")


@main.command()
@quick_option
@click.option("--only", type=click.Choice(SEARCH), multiple=True, help="These suites only (may be repeated).")
@click.option("--methods", "chosen", default="", help=f"Comma-separated, of: {', '.join(methods.METHODS)}.")
@click.option("--datasets", default="", help="Comma-separated: these data sets only.")
@click.option("--archs", default="", help="Comma-separated, such as 2x10,2x50: these architectures only.")
@click.option("--norms", default="", help="Comma-separated: these norms only.")
@rows_option
@click.option("--budget", type=float, default=60.0, show_default=True, help="Seconds of processor time a row.")
@fresh_option
@folders
def search(
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
    console = _console()
    names = _listed(chosen, tuple(methods.METHODS), "method")
    places = Folders(cache=cache, results=results / "quick" if quick else results)
    for suite in only or SEARCH:
        _forget(places, suite, fresh)
        if suite in PLANNED:
            asked = plan(suite, quick=quick)
            specs = tuple(
                s
                for s in asked.specs
                if (not datasets or s.dataset in datasets.split(",")) and (not archs or s.arch in archs.split(","))
            )
            asked = replace(
                asked,
                specs=specs,
                methods=names or asked.methods,
                norms=_listed(norms, asked.norms, "norm") or asked.norms,
                rows=rows or asked.rows,
            )
            run(asked, places, budget, console)
        else:
            processes.cold(places, console)
        _show(console, suite, places.results)


@main.command("scale")
@quick_option
@click.option("--only", type=click.Choice(SCALE), multiple=True, help="These suites only (may be repeated).")
@rows_option
@click.option("--budget", type=float, default=60.0, show_default=True, help="Seconds of processor time a row.")
@fresh_option
@folders
def scale_command(
    quick: bool, only: tuple[str, ...], rows: int | None, budget: float, fresh: bool, cache: Path, results: Path
) -> None:
    """Time against depth, width, inputs, rows and cores, with fitted growth; memory."""
    console = _console()
    places = Folders(cache=cache, results=results / "quick" if quick else results)
    for suite in only or SCALE:
        _forget(places, suite, fresh)
        if suite in PLANNED:
            asked = plan(suite, quick=quick)
            run(replace(asked, rows=rows or asked.rows), places, budget, console)
        elif suite == "rows":
            scale.rows(places, console, quick=quick)
        else:
            processes.memory(places, console, quick=quick)
        _show(console, suite, places.results)
    for path in plot.draw(places.results):
        console.print(f"[dim]{path}[/dim]")


@main.command("paper")
@quick_option
@click.option("--only", type=click.Choice(tuple(figures.FIGURES)), multiple=True, help="These figures only.")
@click.option("--rows", type=click.IntRange(1), help="Rows a network, for every method (each has its own otherwise).")
@click.option("--budget", type=float, help="Seconds of processor time a row (5; with --quick, 2; DiCE always has 60).")
@fresh_option
@click.option("--draw", is_flag=True, help="Ask nothing: write the report from the records that are there.")
@folders
def paper_command(
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
    console = _console()
    places = Folders(cache=cache, results=results / "quick" if quick else results)
    if not draw:
        page.describe_machine(places.results)
    for figure in () if draw else only or figures.FIGURES:
        _forget(places, figures.suite(figure), fresh)
        for asked in figures.plans(figure, quick=quick, rows=rows):
            run(asked, places, budget or (figures.QUICK_BUDGET if quick else figures.BUDGET), console)
    for path in page.write(places.results):
        console.print(f"[dim]{path}[/dim]")


@main.command("peers")
@quick_option
@click.option("--only", default="", help=f"Comma-separated, of: {', '.join(race.plan().methods)}.")
@click.option("--datasets", default="", help="Comma-separated: these data sets only.")
@rows_option
@click.option("--budget", type=float, default=60.0, show_default=True, help="Seconds of processor time a row.")
@fresh_option
@folders
def peers_command(
    quick: bool, only: str, datasets: str, rows: int | None, budget: float, fresh: bool, cache: Path, results: Path
) -> None:
    """Other libraries and exact MIPs on the same networks and rows, each library in an environment of its own."""
    console = _console()
    places = Folders(cache=cache, results=results / "quick" if quick else results)
    _forget(places, "peers", fresh)
    asked = race.plan(quick=quick)
    names = _listed(only, asked.methods, "method") or asked.methods
    specs = tuple(s for s in asked.specs if not datasets or s.dataset in datasets.split(","))
    for name in names:  # one after the other: a slow peer is the last to keep the others waiting
        run(replace(asked, methods=(name,), specs=specs, rows=rows or asked.rows), places, budget, console)
    for sheet in peers_table.sheets(records.read(records.path_of(places.results, "peers"))):
        _print(console, sheet, places.results / "peers.md")
    for path in peers_table.draw(places.results):
        console.print(f"[dim]{path}[/dim]")


@main.command()
@quick_option
@folders
def report(quick: bool, cache: Path, results: Path) -> None:
    """Print the summaries of the records that are there."""
    for suite in (*SEARCH, *SCALE):
        _show(_console(), suite, results / "quick" if quick else results)


@main.command("publish")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), default=ROOT, help="Root of the documents.")
@folders
def publish_command(to: Path, cache: Path, results: Path) -> None:
    """Put reports, tables, plots and records of `results` among the documents, and write PERFORMANCE.md."""
    for path in publish.everything(results, to):
        click.echo(path)


@main.command("certificates")
@click.option("--rows", type=click.IntRange(1), default=1000, help="Rows a case and norm (default: all).")
@click.option("--archs", default="2x10,2x50", show_default=True, help="Comma-separated: these architectures only.")
@click.option("--norms", default=",".join(certificates.NORMS), show_default=True, help="These norms only.")
@click.option(
    "--cases",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of reference cases, all of whose rows are asked about (default: those of the tests).",
)
@click.option("--random", "count", type=click.IntRange(1), help="Instead: so many random small problems.")
@click.option(
    "--mutations", type=click.IntRange(1), help="Instead: so many alterations, none of which may prove a lie."
)
@click.option("--forgeries", "forged", type=click.IntRange(1), help="Instead: so many structural alterations, judged.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the forgeries.")
@click.option("--arithmetic", is_flag=True, help="Instead: the checker's inner loop in other arithmetics.")
@click.option("--budget", type=float, help="Seconds that the search may take for a row (default: any).")
@folders
def certificates_command(
    rows: int,
    archs: str,
    norms: str,
    cases: Path | None,
    count: int | None,
    mutations: int | None,
    forged: int | None,
    seed: int,
    arithmetic: bool,
    budget: float | None,
    cache: Path,
    results: Path,
) -> None:
    """What certificates cost to make, to check and to keep, and whether all are valid."""
    names = _listed(norms, certificates.NORMS, "norm")
    if mutations is not None:
        certificates.mutations(mutations, _console())
    elif forged is not None:
        if forgeries.run(forged, seed, _console()):
            raise click.ClickException("a false statement is VALID; the certificates are saved here as false-*.cert")
    elif arithmetic:
        certificates.arithmetic(tuple(archs.split(",")), _console())
    elif count is None:
        made = certificates.reference(cases, tuple(archs.split(",")), names, rows, budget)
        certificates.run(made, None, results / "certificates.csv", _console())
    else:
        certificates.run(certificates.random_problems(count), count, results / "certificates_random.csv", _console())


@main.command("methods")
@click.option("--rows", type=click.IntRange(1), default=5, show_default=True, help="Rows a data set and norm.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Seconds a row.")
@folders
def methods_command(rows: int, budget: float, cache: Path, results: Path) -> None:
    """The paper's methods beside one another: times and bounds."""
    method_table.write(results / "methods.md", rows, budget)


main.add_command(agreement.commands)
main.add_command(diversity.command)
main.add_command(rules.command)


def _console() -> Console:
    """A terminal's own width; elsewhere wide enough for the tables."""
    return Console() if sys.stdout.isatty() else Console(width=150)


def _listed(text: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"there is no {what} '{name}'; choose among {', '.join(known)}")
    return names


def _forget(places: Folders, suite: str, fresh: bool) -> None:
    if fresh:
        records.path_of(places.results, suite).unlink(missing_ok=True)


def _show(console: Console, suite: str, results: Path) -> None:
    for sheet in tables.summary(suite, records.read(records.path_of(results, suite))):
        _print(console, sheet, results / f"{suite}.md")


def _print(console: Console, sheet: tables.Sheet, path: Path) -> None:
    console.print(sheet.rich())
    path.write_text(sheet.markdown(), encoding="utf-8")
    console.print(f"[dim]{path}[/dim]")


if __name__ == "__main__":
    main()
