"""Time against size, as SVG: medians with the band from fastest to slowest row, logarithmic axes.

Colours are Okabe and Ito's, which people with any kind of colour vision can tell apart; methods also differ by marker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks import records
from benchmarks.records import Record

COLOURS = {"compas": "#0072B2", "credit": "#D55E00", "adult": "#009E73", "cancer": "#CC79A7"}
MARKERS = {"ifonly": "o", "gurobi": "s", "gurobi-ball": "D", "highs": "^", "highs-ball": "v"}


def draw(results: Path) -> list[Path]:
    """All plots that the records allow; the files written."""
    try:
        import matplotlib  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise click.ClickException("Plots need matplotlib: pip install -r benchmarks/requirements.txt") from None
    matplotlib.use("svg")
    found = records.read(records.path_of(results, "scale"))
    plots: list[tuple[str, str, Callable[[Record], int | None]]] = [
        ("depth", "hidden layers of ten", lambda r: _depth(r) if _width(r) == 10 else None),
        ("width", "width of two hidden layers", lambda r: _width(r) if _depth(r) == 2 else None),
        ("neurons", "hidden neurons", lambda r: _depth(r) * _width(r)),
    ]
    written = []
    for name, label, size in plots:
        series = _series(found, size)
        if series:
            written.append(_plot(results / f"search_scale_{name}.svg", label, series))
    return written


def _depth(record: Record) -> int:
    return int(record.arch.split("x")[0])


def _width(record: Record) -> int:
    return int(record.arch.split("x")[1])


def _series(found: list[Record], size: Callable[[Record], int | None]) -> dict[tuple[str, str], dict[int, list[float]]]:
    """Seconds by (data set, method) and size."""
    series: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in found:
        at = size(record)
        if at is not None and np.isfinite(record.seconds):
            series[record.dataset, record.method][at].append(record.seconds)
    return series


def _plot(path: Path, label: str, series: dict[tuple[str, str], dict[int, list[float]]]) -> Path:
    import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (dataset, method), points in series.items():
        sizes = sorted(points)
        middle = [float(np.median(points[s])) for s in sizes]
        colour, marker = COLOURS.get(dataset, "#000000"), MARKERS.get(method, "x")
        style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "-" if method == "ifonly" else "--"}
        axes.plot(sizes, middle, label=f"{dataset}, {method}", markersize=4, linewidth=1.5, **style)
        ends = [min(points[s]) for s in sizes], [max(points[s]) for s in sizes]
        axes.fill_between(sizes, *ends, color=colour, alpha=0.12, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel="seconds a row (median; band: fastest to slowest)")
    ticks = _apart(sorted({s for points in series.values() for s in points}))
    axes.set_xticks(ticks, [str(s) for s in ticks])
    axes.minorticks_off()
    axes.grid(visible=True, which="major", linewidth=0.4, alpha=0.5)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def _apart(sizes: list[int]) -> list[int]:
    """Sizes that leave room for their labels on a logarithmic axis."""
    kept: list[int] = []
    for size in sizes:
        if not kept or np.log(size / kept[-1]) >= 0.055 * np.log(sizes[-1] / sizes[0]):
            kept.append(size)
    return kept
