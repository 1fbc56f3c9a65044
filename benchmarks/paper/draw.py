"""The paper's figures, with its axes, as SVG that takes the page's own text colour (so that it can be dark)."""

from __future__ import annotations

import io
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.asking.records import NOT_RUN, Record, spent
from benchmarks.paper.style import DATASETS, EXACT, INK, LOOKS

TIME = "CPU seconds per row"
OFTEN = 5
NORMS = {"l0": "l0", "l1": "l1", "l2": "l2", "linf": "linf"}


def settled(record: Record) -> bool:
    """Is its distance the method's last word? Of an exact method: proven; of DiCE: a row that it can stand by."""
    return record.proven if record.method in EXACT else record.valid and record.plausible


def asked_of_all(found: Sequence[Record]) -> list[Record]:
    """The rows that every method present was asked about."""
    rows: dict[str, set[int]] = defaultdict(set)
    for r in found:
        rows[r.method].add(r.row)
    shared = set.intersection(*rows.values()) if rows else set()
    return [r for r in found if r.row in shared]


# ---------------------------------------------------------------------- the figures


def full_time(found: Sequence[Record]) -> str:
    """Time: rows of panels are data sets, columns norms."""
    return _grid(found, spent, TIME, lambda r: r.status != NOT_RUN and math.isfinite(r.seconds), lambda cell: cell)


def full_distance(found: Sequence[Record]) -> str:
    """Distance, on the rows that everybody was asked about."""
    return _grid(found, lambda r: r.upper, "distance", settled, asked_of_all)


def _grid(
    found: Sequence[Record],
    value: Callable[[Record], float],
    label: str,
    shown: Callable[[Record], bool],
    narrowed: Callable[[list[Record]], list[Record]],
) -> str:
    datasets = [d for d in DATASETS if any(r.dataset == d for r in found)]
    norms = [n for n in NORMS if any(r.norm == n for r in found)]
    methods = [m for m in LOOKS if any(r.method == m for r in found)]
    figure, panels = _panels(len(datasets), len(norms), width=2.75, height=2.3, sharey="row")
    for i, dataset in enumerate(datasets):
        for j, norm in enumerate(norms):
            axes = panels[i][j]
            cell = narrowed([r for r in found if r.dataset == dataset and r.norm == norm])
            for k, method in enumerate(methods):
                mine = [r for r in cell if r.method == method]
                kept = [r for r in mine if shown(r)]
                _box(axes, k, kept, value, method, whole=label == TIME or len(kept) == len(mine))
                done = f"{sum(r.proven for r in mine)}/{len(mine)}"
                axes.text(k, 1.01, done, transform=axes.get_xaxis_transform(), ha="center", fontsize=7)
            axes.set(xlim=(-0.6, len(methods) - 0.4))
            axes.set_xticks(range(len(methods)), [LOOKS[m].name for m in methods], rotation=35, ha="right")
            if i == 0:
                axes.set_title(NORMS[norm], pad=16)
            if j == 0:
                axes.set_ylabel(f"{DATASETS[dataset]}\n{label}")
        _logarithmic(panels[i])
    return _svg(figure, f"{label} by method, data sets by norms")


def _box(
    axes: Any,
    at: float,
    mine: list[Record],
    value: Callable[[Record], float],
    method: str,
    *,
    size: float = 0.34,
    whole: bool = True,
) -> None:
    """A dot a row (hollow: stopped by a limit); where none is missing, a box between the quartiles and the median."""
    look = LOOKS[method]
    values = np.array([value(r) for r in mine])
    if not len(values):
        return
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    if whole:
        axes.fill_between([at - size, at + size], low, high, color=look.colour, alpha=0.25, linewidth=0)
        axes.plot([at - size, at + size], [middle, middle], color=look.colour, linewidth=2)
    beside = at + 0.5 * size * np.linspace(-1, 1, len(values)) if len(values) > 1 else np.array([at])
    for hollow in (False, True):
        picked = np.array([r.stopped == hollow for r in mine])
        if picked.any():
            face = "none" if hollow else look.colour
            axes.scatter(beside[picked], values[picked], s=9, marker=look.marker, facecolors=face,
                         edgecolors=look.colour, linewidths=0.7, alpha=0.8)  # fmt: skip


def against_dice(found: Sequence[Record]) -> str:
    """Distance and time by data set, on the rows that everybody was asked about."""
    datasets = [d for d in DATASETS if any(r.dataset == d for r in found)]
    methods = [m for m in LOOKS if any(r.method == m for r in found)]
    figure, panels = _panels(1, 2, width=5.0, height=3.4)
    plots: list[tuple[str, Callable[[Record], float], Callable[[Record], bool]]] = [
        ("distance (l1)", lambda r: r.upper, settled),
        (TIME, spent, lambda r: r.status != NOT_RUN and spent(r) > 0.0 and math.isfinite(spent(r))),
    ]
    for axes, (label, value, shown) in zip(panels[0], plots, strict=True):
        for i, dataset in enumerate(datasets):
            cell = asked_of_all([r for r in found if r.dataset == dataset])
            for k, method in enumerate(methods):
                at = i + 0.28 * (k - (len(methods) - 1) / 2)
                mine = [r for r in cell if r.method == method]
                _box(axes, at, [r for r in mine if shown(r)], value, method, size=0.11)
                good = sum(r.valid and r.plausible for r in mine)
                axes.text(
                    at, 1.01, f"{good}/{len(mine)}", transform=axes.get_xaxis_transform(), ha="center", fontsize=7
                )
        axes.set(ylabel=label, xlim=(-0.5, len(datasets) - 0.5))
        _logarithmic([axes])
        axes.set_xticks(range(len(datasets)), [DATASETS[d] for d in datasets])
    _legend(figure, methods)
    return _svg(figure, "Distance and time against DiCE")


def growing(found: Sequence[Record], size: Callable[[Record], int], label: str) -> str:
    """Time and distance against the size of the network, a row of panels per data set."""
    datasets = [d for d in DATASETS if any(r.dataset == d for r in found)]
    methods = [m for m in LOOKS if any(r.method == m for r in found)]
    figure, panels = _panels(len(datasets), 3, width=3.7, height=2.5)
    for i, dataset in enumerate(datasets):
        here = [r for r in found if r.dataset == dataset]
        for method in methods:
            mine = [r for r in here if r.method == method]
            _line(panels[i][0], _by(mine, size, lambda r: math.isfinite(r.seconds) and spent(r) > 0), spent, method)
            _line(panels[i][1], _settled(here, size, method), lambda r: r.upper, method)
            _coverage(panels[i][2], _by(mine, size, lambda r: True), method)
        ticks = sorted({size(r) for r in here})
        for j, what in enumerate((TIME, "distance (l1)", "answered, % of rows given")):
            axes = panels[i][j]
            axes.set_xticks(ticks if len(ticks) <= 10 else ticks[::2])
            axes.set_ylabel(f"{DATASETS[dataset]}\n{what}" if j == 0 else what)
            axes.set_xlabel(label)
            if j == 0:
                _logarithmic([axes])
            elif j == 1:
                axes.set_ylim(bottom=0.0)
            else:
                axes.set_ylim(-5.0, 105.0)
    _legend(figure, methods)
    return _svg(figure, f"Time, distance and coverage against {label}")


def _by(
    found: Sequence[Record], size: Callable[[Record], int], shown: Callable[[Record], bool]
) -> dict[int, list[Record]]:
    groups: dict[int, list[Record]] = defaultdict(list)
    for r in found:
        if shown(r):
            groups[size(r)].append(r)
    return dict(sorted(groups.items()))


def _settled(here: Sequence[Record], size: Callable[[Record], int], method: str) -> dict[int, list[Record]]:
    """By size, a method's answers to the rows asked of all; only sizes at which it has all of them."""
    groups = {}
    for at, group in _by(here, size, lambda r: True).items():
        mine = [r for r in asked_of_all(group) if r.method == method]
        if mine and all(settled(r) for r in mine):
            groups[at] = mine
    return groups


def _line(axes: Any, groups: dict[int, list[Record]], value: Callable[[Record], float], method: str) -> None:
    """Medians by size, with the band between the quartiles."""
    look = LOOKS[method]
    sizes = list(groups)
    if not sizes:
        return
    quartiles = np.array([np.quantile([value(r) for r in groups[s]], [0.25, 0.5, 0.75]) for s in sizes])
    axes.plot(sizes, quartiles[:, 1], color=look.colour, marker=look.marker, markersize=4, linewidth=1.4)
    axes.fill_between(sizes, quartiles[:, 0], quartiles[:, 2], color=look.colour, alpha=0.13, linewidth=0)


def _coverage(axes: Any, groups: dict[int, list[Record]], method: str) -> None:
    look = LOOKS[method]
    shares = [100.0 * np.mean([r.valid and r.plausible for r in mine]) for mine in groups.values()]
    axes.plot(list(groups), shares, color=look.colour, marker=look.marker, markersize=4, linewidth=1.4)


def diversity(found: Sequence[Record]) -> str:
    """k-diversity, k-distance and time against k."""
    figure, panels = _panels(1, 3, width=3.6, height=3.0)
    plots: list[tuple[str, Callable[[Record], float]]] = [
        ("k-diversity (higher: more diverse)", lambda r: r.diversity),
        ("k-distance (lower: nearer)", lambda r: r.upper),
        ("CPU seconds per set", spent),
    ]
    methods = [m for m in LOOKS if any(r.method == m for r in found)]
    for axes, (label, value) in zip(panels[0], plots, strict=True):
        for method in methods:
            mine = [r for r in found if r.method == method and math.isfinite(value(r)) and value(r) > 0.0]
            _line(axes, _by(mine, lambda r: int(r.way[2:]), lambda r: True), value, method)
        axes.set(xlabel="k (rows in a set)", ylabel=label)
        axes.set_xticks(sorted({int(r.way[2:]) for r in found}))
    _logarithmic(panels[0][2:])
    _legend(figure, methods)
    return _svg(figure, "Diverse sets: diversity, distance, time")


def sparsity(found: Sequence[Record]) -> str:
    """From l0 to l1 by mixtures: features changed against the size of the change."""
    datasets = [d for d in DATASETS if any(r.dataset == d for r in found)]
    figure, panels = _panels(1, len(datasets), width=3.7, height=3.1)
    norms = list(dict.fromkeys(r.norm for r in found))
    ours = [r for r in found if r.method == next(iter(LOOKS)) and r.valid]
    for axes, dataset in zip(panels[0], datasets, strict=True):
        spots = []
        for norm in norms:
            mine = [r for r in ours if r.dataset == dataset and r.norm == norm]
            if mine:
                spots.append((float(np.mean([r.changed for r in mine])), float(np.mean([r.l1 for r in mine])), norm))
        axes.plot(
            [s[0] for s in spots], [s[1] for s in spots], color="#0072B2", marker="o", markersize=4, linewidth=1.2
        )
        _spread_labels(axes, spots)
        axes.set(title=DATASETS[dataset], xlabel="features changed (mean)")
        axes.set_xlim(0.8, max([1.5, *(1.35 * s[0] for s in spots)]))
        _logarithmic([axes])
    panels[0][0].set_ylabel("l1 distance of the answers (mean)")
    return _svg(figure, "Features changed against distance, from l0 to l1")


def _spread_labels(axes: Any, spots: list[tuple[float, float, str]]) -> None:
    """The share of l0 beside each point; points that coincide share a label."""
    together: dict[tuple[float, float], list[str]] = defaultdict(list)
    for x, y, norm in spots:
        share = {"l0": "l0 only", "l1": "l1 only"}.get(norm, f"{norm.split('*')[0]} l0")
        known = next((k for k in together if abs(x - k[0]) < 0.02 and abs(math.log10(y / k[1])) < 0.03), (x, y))
        together[known].append(share)
    for (x, y), shares in together.items():
        text = shares[0] if len(shares) == 1 else f"{shares[0]} to {shares[-1]}"
        axes.annotate(text, (x, y), xytext=(6, 4), textcoords="offset points", fontsize=8)


# ---------------------------------------------------------------------- drawing


def _panels(rows: int, columns: int, *, width: float, height: float, sharey: Any = False) -> tuple[Any, Any]:
    import matplotlib  # type: ignore[import-not-found, unused-ignore]

    matplotlib.use("svg")
    import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

    plt.rcParams.update(
        {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False}
        | {"axes.spines.right": False, "axes.grid": True, "grid.linewidth": 0.4, "grid.alpha": 0.35}
        | dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
        | {"grid.color": INK, "axes.facecolor": "none", "figure.facecolor": "none"}
    )
    size = (width * columns, height * rows + 0.35)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, sharey=sharey)


def _logarithmic(panels: Sequence[Any]) -> None:
    """Logarithmic, in plain numbers, over two decades at least, with room at both ends."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # type: ignore[import-not-found, unused-ignore]

    values = [v for axes in panels for v in axes.dataLim.intervaly if 0.0 < v < math.inf]
    low, high = (min(values) / 1.5, max(values) * 1.5) if values else (1e-3, 1.0)
    if high < 100.0 * low:
        middle = math.sqrt(low * high)
        low, high = middle / 10.0, middle * 10.0
    for axes in panels:
        axes.set(yscale="log", ylim=(low, high))
        axes.yaxis.set_major_locator(LogLocator(base=10.0, numticks=8))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def _legend(figure: Any, methods: Sequence[str]) -> None:
    from matplotlib.lines import Line2D  # type: ignore[import-not-found, unused-ignore]

    handles = [
        Line2D([], [], color=LOOKS[m].colour, marker=LOOKS[m].marker, markersize=5, label=LOOKS[m].name)
        for m in methods
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(methods), frameon=False)


def _svg(figure: Any, title: str) -> str:
    """Inline SVG: the page's width, the page's ink, ids that no other drawing has."""
    import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

    plt.rcParams["svg.hashsalt"] = title
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(figure)
    text = file.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    width = float(re.search(r'width="([\d.]+)pt"', text)[1])  # type: ignore[index]
    text = re.sub(r'(width|height)="[\d.]+pt" ?', "", text, count=2)
    text = _shortened(text, title)
    return text.replace("<svg ", f'<svg role="img" aria-label="{title}" style="width:{width * 4 / 3:.0f}px" ', 1)


def _shortened(svg: str, title: str) -> str:
    """The same drawing in half the bytes: styles that many marks share become classes, named by the drawing."""
    name = f"s{zlib.crc32(title.encode()):x}"
    counts = Counter(re.findall(r' style="([^"]*)"', svg))
    classes = {style: f"{name}-{i}" for i, (style, count) in enumerate(counts.items()) if count >= OFTEN}
    for style, short in classes.items():
        svg = svg.replace(f' style="{style}"', f' class="{short}"')
    rules = "".join(f".{short}{{{style}}}" for style, short in classes.items())
    return svg.replace("<defs>", f"<style>{rules}</style><defs>", 1)
