"""What of the results goes into the documents: the report, every table, the plots, the records, PERFORMANCE.md."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import performance, plot, records, tables
from benchmarks.paper import page
from benchmarks.paper.plans import FIGURES, suite
from benchmarks.peers import table
from benchmarks.plan import SCALE, SEARCH

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
    for name in (*(suite(figure) for figure in FIGURES), "peers", *SCALE, *SEARCH):
        path = records.path_of(results, name)
        if path.exists() and path.stat().st_size <= MOST_BYTES:
            written.append(Path(shutil.copy(path, docs)))
    for drawn in (*plot.draw(results), *table.draw(results)):
        if drawn.name in PLOTS:
            target = root / PLOTS[drawn.name]
            target.parent.mkdir(parents=True, exist_ok=True)
            written.append(Path(shutil.copy(drawn, target)))
    return [*written, performance.write(results, root / "PERFORMANCE.md")]


def _tables(results: Path) -> str:
    """The summaries of every suite that has records."""
    found = {figure: records.read(records.path_of(results, suite(figure))) for figure in FIGURES}
    sheets = [page.coverage(figure, found[figure]) for figure in FIGURES if found[figure]]
    sheets += table.sheets(records.read(records.path_of(results, "peers")))
    for name in (*SCALE, *SEARCH):
        sheets += tables.summary(name, records.read(records.path_of(results, name)))
    head = "# Every table\n\nWritten by `python -m benchmarks publish` from the CSV files beside it.\n\n"
    return head + "\n".join(sheet.markdown() for sheet in sheets)
