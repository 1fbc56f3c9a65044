"""The command line of the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from benchmarks import agreement, certificates, method_table, methods, plot, processes, records, tables
from benchmarks.plan import PLANNED, SUITES, plan
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


@main.command()
@click.option("--quick", is_flag=True, help="Fewer networks and rows: a look, not a measurement.")
@click.option("--only", type=click.Choice(SUITES), multiple=True, help="These suites only (may be repeated).")
@click.option("--methods", "chosen", default="", help=f"Comma-separated, of: {', '.join(methods.METHODS)}.")
@click.option("--datasets", default="", help="Comma-separated: these data sets only.")
@click.option("--archs", default="", help="Comma-separated, such as 2x10,2x50: these architectures only.")
@click.option("--norms", default="", help="Comma-separated: these norms only.")
@click.option("--rows", type=click.IntRange(1), help="Rows a network (the suite's own number otherwise).")
@click.option("--budget", type=float, default=60.0, show_default=True, help="Seconds a row.")
@click.option("--fresh", is_flag=True, help="Forget earlier records instead of adding to them.")
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
    """The search engine against the MIP, and by itself."""
    console = _console()
    names = _listed(chosen, tuple(methods.METHODS), "method")
    for suite in only or SUITES:
        places = Folders(cache=cache, results=results / "quick" if quick else results)
        path = records.path_of(places.results, suite)
        if fresh:
            path.unlink(missing_ok=True)
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
        elif suite == "memory":
            processes.memory(places, console, quick=quick)
        else:
            processes.cold(places, console)
        _show(console, suite, places.results)


@main.command()
@click.option("--quick", is_flag=True, help="Of the records of quick runs.")
@folders
def report(quick: bool, cache: Path, results: Path) -> None:
    """Print the summaries of the records that are there."""
    for suite in SUITES:
        _show(_console(), suite, results / "quick" if quick else results)


@main.command("certificates")
@click.option("--rows", type=click.IntRange(1), default=1000, help="Rows a case and norm (default: all).")
@click.option("--archs", default="2x10,2x50", show_default=True, help="Comma-separated: these architectures only.")
@click.option("--norms", default=",".join(certificates.NORMS), show_default=True, help="These norms only.")
@folders
def certificates_command(rows: int, archs: str, norms: str, cache: Path, results: Path) -> None:
    """What certificates cost to make, to check and to keep."""
    names = _listed(norms, certificates.NORMS, "norm")
    certificates.run(tuple(archs.split(",")), names, rows, results / "certificates.csv", _console())


@main.command("methods")
@click.option("--rows", type=click.IntRange(1), default=5, show_default=True, help="Rows a data set and norm.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Seconds a row.")
@folders
def methods_command(rows: int, budget: float, cache: Path, results: Path) -> None:
    """The paper's methods beside one another: times and bounds."""
    method_table.write(results / "methods.md", rows, budget)


main.add_command(agreement.commands)


@main.command("plot")
@click.option("--quick", is_flag=True, help="Of the records of quick runs.")
@folders
def plot_command(quick: bool, cache: Path, results: Path) -> None:
    """Plot time against size as SVG."""
    written = plot.draw(results / "quick" if quick else results)
    for path in written:
        click.echo(path)
    if not written:
        raise click.ClickException("There are no records to plot; run: python -m benchmarks search --only scale")


def _console() -> Console:
    """A terminal's own width; elsewhere wide enough for the tables."""
    return Console() if sys.stdout.isatty() else Console(width=150)


def _listed(text: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"there is no {what} '{name}'; choose among {', '.join(known)}")
    return names


def _show(console: Console, suite: str, results: Path) -> None:
    for sheet in tables.summary(suite, records.read(records.path_of(results, suite))):
        console.print(sheet.rich())
        path = results / f"search_{suite}.md"
        path.write_text(sheet.markdown(), encoding="utf-8")
        console.print(f"[dim]{path}[/dim]")


if __name__ == "__main__":
    main()
