"""Time against size, as SVG: medians with the band from fastest to slowest row, logarithmic axes, fitted growth.

Colours are Okabe and Ito's, which people with any colour vision can tell apart; data sets also differ by marker.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from benchmarks.asking import records
from benchmarks.showing.growth import LAWS, SERIES, fit, series
from benchmarks.subjects.data import NAMES

COLOURS = {"compas": "#0072B2", "credit": "#D55E00", "adult": "#009E73", "cancer": "#CC79A7"}
MARKERS = {"compas": "o", "credit": "s", "adult": "^", "cancer": "D"}
FILES = {
    "depth (layers of 10)": "depth",
    "width (two layers)": "width",
    "hidden neurons": "neurons",
    "inputs (real features)": "inputs",
    "rows in one call": "rows",
}


def draw(results: Path) -> list[Path]:
    """All plots that the records allow; the files written."""
    try:
        import matplotlib  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise click.ClickException("Plots need matplotlib: pip install -r benchmarks/requirements.txt") from None
    matplotlib.rcdefaults()  # the report draws on transparent ground; these stand on white
    matplotlib.rcParams["svg.hashsalt"] = "scale"  # the same records give the same bytes
    matplotlib.use("svg")
    found = [r for suite in ("size", "inputs", "rows") for r in records.read(records.path_of(results, suite))]
    written = []
    for name, size in SERIES.items():
        curves = series(found, size)
        if any(len(points) > 1 for points in curves.values()):
            written.append(_plot(results / f"scale_{FILES[name]}.svg", name, curves))
    return written


def _plot(path: Path, label: str, curves: dict[str, dict[int, list[float]]]) -> Path:
    import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]
    from matplotlib.ticker import FuncFormatter, NullFormatter  # type: ignore[import-not-found, unused-ignore]

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for dataset, points in curves.items():
        sizes = sorted(points)
        middle = [float(np.median(points[s])) for s in sizes]
        colour = COLOURS[dataset]
        growth = fit(points, only=LAWS.get(label, ""))
        text = NAMES[dataset] + (f", {growth}" if growth else "")
        axes.plot(sizes, middle, label=text, marker=MARKERS[dataset], color=colour, markersize=4, linewidth=1.5)
        ends = [min(points[s]) for s in sizes], [max(points[s]) for s in sizes]
        axes.fill_between(sizes, *ends, color=colour, alpha=0.12, linewidth=0)
    what = "CPU seconds per call" if label.startswith("rows") else "CPU seconds per row"
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel=f"{what} (median and range)")
    ticks = _apart(sorted({s for points in curves.values() for s in points}))
    axes.set_xticks(ticks, [str(s) for s in ticks])
    axes.xaxis.set_tick_params(which="minor", bottom=False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
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
