"""`publish`: the report, every table, the plots and the records go among the documents, and PERFORMANCE.md is written.

The records are published as one compressed file. Unpacked, they give the same documents again, but for the throughput:
`unzip docs/paper/records.zip -d again`, then `python -m benchmarks publish --results again --to again`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from benchmarks.asking import records
from benchmarks.paper import page
from benchmarks.paper.figures import FIGURES, suite
from benchmarks.peers import table
from benchmarks.publishing import archive, performance_page
from benchmarks.showing import growth_plot, summaries
from benchmarks.suites import scale, search
from benchmarks.terminal import ROOT, folder_options

RECORDS = "records.zip"
MOST_BYTES = 1_500_000
"""Larger records (`throughput`: thousands of rows) stay at home; their table is published."""
PLOTS = {"scale_neurons.svg": "docs/scale.svg", "peers.svg": "docs/images/peers.svg"}


def everything(results: Path, root: Path) -> list[Path]:
    """Write all that the records of `results` allow; the files written."""
    docs = root / "docs" / "paper"
    docs.mkdir(parents=True, exist_ok=True)
    written = [Path(shutil.copy(path, docs / "index.html")) for path in page.write(results)[:1]]
    written.append(docs / "tables.md")
    written[-1].write_text(_tables(results), encoding="utf-8")
    written.append(archive.write(docs / RECORDS, _published(results)))
    for drawn in (*growth_plot.draw(results), *table.draw(results)):
        if drawn.name in PLOTS:
            target = root / PLOTS[drawn.name]
            target.parent.mkdir(parents=True, exist_ok=True)
            written.append(Path(shutil.copy(drawn, target)))
    return [*written, performance_page.write(results, root / "PERFORMANCE.md")]


def _published(results: Path) -> list[Path]:
    """The records of every suite, and what the machine was."""
    names = (*(suite(figure) for figure in FIGURES), "peers", *scale.SUITES, *search.SUITES)
    paths = [*(records.path_of(results, name) for name in names), results / page.MACHINE]
    return [path for path in paths if path.exists() and path.stat().st_size <= MOST_BYTES]


def _tables(results: Path) -> str:
    """The summaries of every suite that has records."""
    found = {figure: records.read(records.path_of(results, suite(figure))) for figure in FIGURES}
    sheets = [page.coverage(figure, found[figure]) for figure in FIGURES if found[figure]]
    sheets += table.sheets(records.read(records.path_of(results, "peers")))
    for name in (*scale.SUITES, *search.SUITES):
        sheets += summaries.summary(name, records.read(records.path_of(results, name)))
    head = f"# Every table\n\nWritten by `python -m benchmarks publish` from the records in [{RECORDS}]({RECORDS}).\n\n"
    return head + "\n".join(sheet.markdown() for sheet in sheets)


@click.command("publish")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), default=ROOT, help="Root of the documents.")
@folder_options
def command(to: Path, cache: Path, results: Path) -> None:
    """Put reports, tables, plots and records of `results` among the documents, and write PERFORMANCE.md."""
    for path in everything(results, to):
        click.echo(path)
