"""`publish`: the paper's experiments become docs/paper.md, and the claims of docs/performance.md are written.

What is large stays in the folder of the records, which is not in the repository: the report with every figure
(paper.html), every table (tables.md), and the records as one compressed file (records.zip). Unpacked, that file gives
the same documents again: `unzip results/records.zip -d again`, then
`python -m benchmarks publish --results again --to again`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from benchmarks.asking import records
from benchmarks.paper import page
from benchmarks.paper.figures import FIGURES, suite
from benchmarks.peers import table
from benchmarks.publishing import archive, paper_page, performance_page
from benchmarks.showing import growth_plot, summaries
from benchmarks.suites import scale, search
from benchmarks.terminal import ROOT, folder_options

RECORDS = "records.zip"
PLOTS = {"scale_neurons.svg": "scale.svg", "peers.svg": "peers.svg"}


def everything(results: Path, root: Path) -> list[Path]:
    """Write all that the records of `results` allow; the files written."""
    docs = root / "docs"
    (docs / "images").mkdir(parents=True, exist_ok=True)
    written = [*page.write(results), results / "tables.md", *paper_page.write(results, docs)]
    (results / "tables.md").write_text(_tables(results), encoding="utf-8")
    written.append(archive.write(results / RECORDS, _recorded(results)))
    drawn = [path for path in (*growth_plot.draw(results), *table.draw(results)) if path.name in PLOTS]
    written += [Path(shutil.copy(path, docs / "images" / PLOTS[path.name])) for path in drawn]
    return [*written, performance_page.write(results, docs / "performance.md")]


def _recorded(results: Path) -> list[Path]:
    """The records of every suite, and what the machine was."""
    names = (*(suite(figure) for figure in FIGURES), "peers", *scale.SUITES, *search.SUITES)
    paths = [*(records.path_of(results, name) for name in names), results / page.MACHINE]
    return [path for path in paths if path.exists()]


def _tables(results: Path) -> str:
    """The summaries of every suite that has records."""
    found = {figure: records.read(records.path_of(results, suite(figure))) for figure in FIGURES}
    sheets = [page.coverage(figure, found[figure]) for figure in FIGURES if found[figure]]
    sheets += table.sheets(records.read(records.path_of(results, "peers")))
    for name in (*scale.SUITES, *search.SUITES):
        sheets += summaries.summary(name, records.read(records.path_of(results, name)))
    head = "# Every table\n\nWritten by `python -m benchmarks publish` from the records beside it.\n\n"
    return head + "\n".join(sheet.markdown() for sheet in sheets)


@click.command("publish")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), default=ROOT, help="Root of the documents.")
@folder_options
def command(to: Path, cache: Path, results: Path) -> None:
    """Write docs/paper.md and the claims of docs/performance.md; report, tables and archive stay in `results`."""
    for path in everything(results, to):
        click.echo(path)
