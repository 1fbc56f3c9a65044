"""The race in tables and in one plot: how much farther than the nearest, at what cost, for how many of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.asking import records
from benchmarks.asking.contestants import OURS
from benchmarks.asking.records import Record, spent
from benchmarks.peers.race import EXACT, PEERS
from benchmarks.showing.sheet import TextTable, time_text
from benchmarks.subjects.data import NAMES

LABELS = {OURS: "ifonly", "gurobi": "Gurobi MIP", "scip": "SCIP MIP", "highs": "HiGHS MIP", **PEERS}
COLUMNS = (
    "method", "rows", "answered", "flips", "plausible", "rounded", "proven", "limit", "failed", "distance / nearest",
    "farthest", "CPU (median)", "wall (median)", "slowest",
)  # fmt: skip

NAME_WIDE, NAME_HIGH = 1.6, 0.085
"""Decades on the axes that a name takes."""


@dataclass(frozen=True)
class Line:
    """A method on one data set."""

    method: str
    rows: int
    good: list[Record]
    """Rows that flip the network and are rows of the schema."""
    ratios: list[float]
    cpu: float
    wall: float
    slowest: float


def lines(found: Sequence[Record], dataset: str) -> list[tuple[Line, list[Record]]]:
    """Every method that was asked, with its records."""
    here = [r for r in found if r.dataset == dataset]
    nearest = {r.row: r.upper for r in here if r.method == OURS and r.valid}
    result = []
    for method in LABELS:
        mine = [r for r in here if r.method == method]
        if not mine:
            continue
        good = [r for r in mine if r.valid and r.plausible]
        ran = [r for r in mine if r.seconds > 0.0 and math.isfinite(r.seconds)]
        line = Line(
            method=method,
            rows=len(mine),
            good=good,
            ratios=[r.upper / nearest[r.row] for r in good if r.row in nearest],
            cpu=_median([spent(r) for r in ran]),
            wall=_median([r.seconds for r in ran]),
            slowest=max((r.seconds for r in ran), default=math.nan),
        )
        result.append((line, mine))
    return result


def sheets(found: Sequence[Record]) -> list[TextTable]:
    """One table, data set by data set."""
    sheet = TextTable("Peers: 2x10 on normalised inputs, l1, the same rows for everybody", ["data set", *COLUMNS])
    for dataset in dict.fromkeys(r.dataset for r in found):
        for line, mine in lines(found, dataset):
            sheet.rows.append(
                [
                    NAMES[dataset],
                    LABELS[line.method],
                    str(line.rows),
                    f"{len(line.good)}/{line.rows}",
                    str(sum(r.valid for r in mine)),
                    str(sum(r.plausible and math.isfinite(r.upper) for r in mine)),
                    str(sum(r.valid and (r.plausible or not r.note) for r in mine)),
                    str(sum(r.proven for r in mine)) if line.method in (OURS, *EXACT) else "-",
                    str(sum(r.stopped and r.status != "error" for r in mine)),
                    str(sum(r.status == "error" for r in mine)),
                    _times(_median(line.ratios)),
                    _times(max(line.ratios, default=math.nan)),
                    *(time_text(seconds) for seconds in (line.cpu, line.wall, line.slowest)),
                ]
            )
    sheet.notes = [
        "answered: a row that flips the network and obeys the schema (whole numbers, bounds, options), of all asked",
        "flips, plausible: each of the two by itself; rounded: flips, and still does once rounded to the schema",
        "proven: with a proof that nothing is nearer",
        "limit: the budget was spent, or two rows before had spent it; failed: an error instead of an answer",
        "distance / nearest: median over answered rows of its distance by the proven nearest; farthest: the worst row",
        *_failures(found),
        *(f"{LABELS[m]}: {_versions(found, m)}" for m in LABELS if _versions(found, m)),
    ]
    return [sheet] if sheet.rows else []


def _failures(found: Sequence[Record]) -> list[str]:
    """Each reason once, with how often it was given."""
    counts: dict[tuple[str, str], int] = {}
    for r in found:
        if r.status in ("error", "not found") or (r.note and not r.plausible):
            key = LABELS.get(r.method, r.method), r.note or r.status
            counts[key] = counts.get(key, 0) + 1
    return [f"{name}, {count} row{'s' * (count > 1)}: {why}" for (name, why), count in counts.items()]


def _versions(found: Sequence[Record], method: str) -> str:
    return next((r.versions for r in found if r.method == method and r.versions), "")


def draw(results: Path) -> list[Path]:
    """The plot that says it all: time against distance, a point per method."""
    import matplotlib  # type: ignore[import-not-found, unused-ignore]

    matplotlib.rcdefaults()  # the report draws on transparent ground; these stand on white
    matplotlib.rcParams["svg.hashsalt"] = "peers"  # the same records give the same bytes
    matplotlib.use("svg")
    found = records.read(records.path_of(results, "peers"))
    if not found:
        return []
    path = results / "peers.svg"
    plot(found).savefig(path, metadata={"Date": None})
    return [path]


def plot(found: Sequence[Record]) -> Any:
    """Panels by data set: CPU seconds per row against how many times farther than the nearest."""
    import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]
    from matplotlib.ticker import FuncFormatter, NullFormatter  # type: ignore[import-not-found, unused-ignore]

    datasets = [name for name in NAMES if any(r.dataset == name for r in found)]
    figure, panels = plt.subplots(1, len(datasets), figsize=(4.3 * len(datasets), 4.2), sharex=True, sharey=True,
                                  layout="constrained", squeeze=False)  # fmt: skip
    every: list[tuple[float, float]] = []
    for axes, dataset in zip(panels[0], datasets, strict=True):
        asked = [line for line, _ in lines(found, dataset)]
        spots = [(line, _median(line.ratios)) for line in asked if line.ratios]
        for line, ratio in spots:
            ours, exact = line.method == OURS, line.method in EXACT
            colour = "#0072B2" if ours else "#009E73" if exact else "#D55E00"
            axes.scatter(line.cpu, ratio, s=110 if ours else 46, marker="*" if ours else "s" if exact else "o",
                         color=colour, zorder=3)  # fmt: skip
        axes.set(xscale="log", yscale="log", title=NAMES[dataset], xlabel="CPU seconds per row (median)")
        axes.grid(visible=True, which="major", linewidth=0.4, alpha=0.5)
        axes.axhline(1.0, color="#0072B2", linewidth=0.8, alpha=0.6)
        _label(
            axes, [(line.cpu, ratio, f"{LABELS[line.method]} {len(line.good)}/{line.rows}") for line, ratio in spots]
        )
        missing = [f"{LABELS[line.method]} 0/{line.rows}" for line in asked if not line.ratios]
        axes.text(0.02, 0.98, "\n".join(missing), transform=axes.transAxes, va="top", fontsize=7.5, color="#666666")
        every += [(line.cpu, ratio) for line, ratio in spots]
    first = panels[0][0]
    first.set_ylabel("distance / proven nearest (median)")
    first.set_xlim(min(x for x, _ in every) / 6.0, max(x for x, _ in every) * 8.0)
    first.set_ylim(0.8, 2.0 * max(y for _, y in every))
    for axis in (first.xaxis, first.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    return figure


def _label(axes: Any, spots: list[tuple[float, float, str]]) -> None:
    """A name above each point; names that would cover one another are stacked."""
    stacked: list[tuple[float, float]] = []
    for x, y, text in sorted(spots, key=lambda spot: (spot[1], spot[0])):
        height = math.log10(y)
        while any(abs(math.log10(x / a)) < NAME_WIDE and abs(height - h) < NAME_HIGH for a, h in stacked):
            height += NAME_HIGH / 4
        stacked.append((x, height))
        axes.annotate(text, (x, y), xytext=(x, 10.0 ** (height + 0.03)), fontsize=7.5, ha="center", va="bottom",
                      arrowprops={"arrowstyle": "-", "linewidth": 0.4, "alpha": 0.5, "shrinkB": 3})  # fmt: skip


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if len(values) else math.nan


def _times(ratio: float) -> str:
    return f"{ratio:,.2f}x" if math.isfinite(ratio) else "-"
