"""docs/paper.md: the paper's experiments on one page. Statements beside statements, one table, a few figures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.asking import records
from benchmarks.asking.records import Record, spent
from benchmarks.paper import claims, draw, page
from benchmarks.paper.cross_check import agreement
from benchmarks.paper.figures import FIGURES, suite
from benchmarks.paper.style import LOOKS
from benchmarks.showing.sheet import time_text

HEAD = """# The paper's experiments

Mohammadi, Karimi, Barthe and Valera, *Scaling Guarantees for Nearest Counterfactual Explanations* (2021), run again
with ifonly. This page is written by `python -m benchmarks publish` from the records of `python -m benchmarks paper`.
The records themselves, one per row and method, are not in the repository: both commands leave them in `results/`, with
a report that has every figure and every table (`results/paper.html`, `results/tables.md`, `results/records.zip`).
[Performance](performance.md#how-far-to-trust-the-figures) says which version of the code was measured.

"""
DRAWN: dict[str, tuple[str, Callable[[Sequence[Record]], str]]] = {
    "depth": (
        "CPU seconds and distance against the number of hidden layers, by method and data set",
        lambda found: draw.growing(found, lambda r: r.depth, "hidden layers of ten neurons"),
    ),
    "dice": ("CPU seconds and distance of our search, MIP-OBJ and DiCE", draw.against_dice),
    "diversity": ("diversity, distance and CPU seconds of sets of k answers", draw.diversity),
}
"""The figures of the page, and what each shows to readers who do not see it."""
INK = "#767676"
"""Text colour of the figures: legible on white and on black."""


def write(results: Path, docs: Path) -> list[Path]:
    """Write page and figures, if there are records of all experiments; nothing otherwise."""
    found = {figure: records.read(records.path_of(results, suite(figure))) for figure in FIGURES}
    if not all(found.values()):
        return []
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    written = [docs / "paper.md"]
    parts = [HEAD, _statements(found), _coverage(found), "## Figures\n\n"]
    for figure, (alt, drawn) in DRAWN.items():
        if found[figure]:
            written.append(images / f"paper-{figure}.svg")
            written[-1].write_text(_file(drawn(found[figure])), encoding="utf-8")
            parts.append(f"**{FIGURES[figure]}.** {page.CAPTIONS[figure]}\n\n![{alt}](images/paper-{figure}.svg)\n\n")
    written[0].write_text("".join([*parts, _how(found, results)]), encoding="utf-8")
    return written


def _statements(found: dict[str, list[Record]]) -> str:
    """What the paper says, what the records say, and why where they differ."""
    rows = [f"| {c.paper} | {c.here} | {c.why} |" for c in claims.claims(found)]
    table = ["| the paper | this run | why they differ |", "|---|---|---|", *rows]
    reasons = [f"- **{name}**: {why}" for name, why in claims.REASONS.items()]
    return "\n".join(["## Statement by statement", "", *table, "", *reasons, "", ""])


def _coverage(found: dict[str, list[Record]]) -> str:
    """A line per experiment and method: how many rows ended how, and the typical time."""
    result = agreement([r for group in found.values() for r in group])
    outcome = "no difference" if result.holds else f"{len(result.differences)} differences"
    lines = ["## Coverage", "", "| experiment | method | rows | " + " | ".join(page.KINDS) + " | CPU per row |"]
    lines.append("|---|---|" + "--:|" * (len(page.KINDS) + 2))
    for figure in FIGURES:
        for method in (m for m in LOOKS if any(r.method == m for r in found[figure])):
            mine = [r for r in found[figure] if r.method == method]
            kinds = [page.kind(r) for r in mine]
            counts = " | ".join(str(kinds.count(kind)) for kind in page.KINDS)
            lines.append(f"| {FIGURES[figure]} | {LOOKS[method].name} | {len(mine)} | {counts} | {_typical(mine)} |")
    lines += ["", f"- {page.COVERAGE_NOTES[0]}", "- CPU per row: geometric mean of the cells' medians"]
    lines.append(f"- {result.rows:,} rows were finished by two or more exact methods: {outcome}")
    return "\n".join([*lines, "", ""])


def _typical(mine: Sequence[Record]) -> str:
    cells: dict[object, list[float]] = {}
    for r in mine:
        if math.isfinite(r.seconds) and spent(r) > 0.0:
            cells.setdefault((r.cell, r.way), []).append(spent(r))
    medians = [float(np.median(times)) for times in cells.values()]
    return time_text(float(np.exp(np.mean(np.log(medians))))) if medians else "-"


def _how(found: dict[str, list[Record]], results: Path) -> str:
    everything = [r for group in found.values() for r in group]
    seen = sorted({part for r in everything for part in r.versions.split("; ") if part})
    return (
        "## How it was run\n\nOne row at a time for every method, one thread; the first distinct test rows that a "
        "network decides against; networks of scikit-learn, trained as in the paper. Slow methods are given fewer rows "
        "than in the paper, and COMPAS has only about 45 distinct ones. "
        f"Machine: {'; '.join(page.machine(results).values())}. "
        f"Versions: {'; '.join(seen)}.\n"
    )


def _file(svg: str) -> str:
    """A drawing as a file of its own: a fixed colour of text, and coordinates (not labels) of two decimals."""
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), svg.replace("currentColor", INK))
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"
