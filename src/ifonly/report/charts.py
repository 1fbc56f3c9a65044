"""Charts of the audit page that fit any width: the marks are inline SVG that stretches, the labels are HTML that wraps.

Nothing depends on colour alone: lines differ in their dashes, parts of bars in lightness and hatching (blue and orange
are distinguished with any colour vision), and every number of a chart is also in a label or in the table below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ifonly.html.fragments import words
from ifonly.population.group import Group
from ifonly.population.intervals import Interval
from ifonly.printing import printable
from ifonly.report.audit_sentences import between, percent

MOST_LETTERS = 80
"""Of a name in a chart; the table has all of them."""
MOST_CURVES = 6
MOST_CORNERS = 400
"""Of a curve: more would not be visible."""


PATTERNS = (
    '<svg class="defs" aria-hidden="true" focusable="false"><defs>'
    '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" style="fill:var(--none)"/><path d="M0 0V6" style="stroke:var(--halo);stroke-width:3"/>'
    "</pattern>"
    '<pattern id="dotted" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<rect width="4" height="4" style="fill:var(--sheet)"/><rect width="2" height="2" style="fill:var(--open)"/>'
    "</pattern></defs></svg>"
)


def _name(text: str) -> str:
    return words(printable(text, MOST_LETTERS))


def bars(rows: Sequence[tuple[str, Sequence[tuple[str, float]], str, Interval | None]], alternative: str) -> str:
    """One stacked bar per row: its name, its parts (class and share of the whole), what to read, and an interval."""
    return _chart("".join(_row(name, _bar(parts, ends), value) for name, parts, value, ends in rows), alternative)


def _row(name: str, drawn: str, value: str) -> str:
    return (
        f'<div class="row"><span class="name">{_name(name)}</span><span class="bar">{drawn}</span>'
        f'<span class="value">{words(value)}</span></div>'
    )


def _bar(parts: Sequence[tuple[str, float]], ends: Interval | None) -> str:
    at, drawn = 0.0, ['<rect class="track" width="100%" height="100%"/>']
    for kind, part in parts:
        if part > 0.0:
            drawn.append(f'<rect class="{kind}" x="{100 * at:.3f}%" width="{100 * part:.3f}%" height="100%"/>')
        at += part
    return _strip("".join(drawn) + ("" if ends is None else _whisker("under", *ends) + _whisker("over", *ends)))


def _strip(inside: str) -> str:
    return f'<svg aria-hidden="true" focusable="false">{inside}</svg>'


def _line(kind: str, left: float, right: float, top: int = 50, bottom: int = 50) -> str:
    ends = f'x1="{100 * left:.3f}%" x2="{100 * right:.3f}%" y1="{top}%" y2="{bottom}%"'
    return f'<line class="{kind}" {ends}/>'


def _whisker(kind: str, low: float, high: float) -> str:
    return _line(kind, low, high) + _line(kind, low, low, 22, 78) + _line(kind, high, high, 22, 78)


def costs_chart(groups: Sequence[Group]) -> str:
    """The median cost of each group with its interval, and the span of the middle 80 % of its people."""
    end = max((group.quantile(0.9) for group in groups), default=1.0) or 1.0
    ticks = round_numbers(end)
    rows = []
    for group in groups:
        low, high, median = (group.quantile(q) / ticks[-1] for q in (0.1, 0.9, 0.5))
        ends = group.median_interval
        drawn = "".join(_line("grid", t / ticks[-1], t / ticks[-1], 0, 100) for t in ticks) + _line("span", low, high)
        if ends is not None:
            drawn += _whisker("over", *(min(1.0, end / ticks[-1]) for end in ends))
        drawn += f'<circle class="dot" cx="{100 * median:.3f}%" cy="50%" r="5"/>'
        value = f"{group.median:.3g}" + (f" ({between(ends)})" if ends is not None else "")
        rows.append(_row(group.name, _strip(drawn), value))
    alternative = "; ".join(f"{group.name}: median {group.median:.3g}, 95% interval {between(group.median_interval)}"
                     for group in groups)  # fmt: skip
    return _chart("".join(rows) + f'<div class="row axis"><span class="bar">{_axis(ticks)}</span></div>', alternative)


def _axis(ticks: Sequence[float]) -> str:
    shown = (f'<span style="left:{100 * t / ticks[-1]:.3f}%">{t:.4g}</span>' for t in ticks)
    return f'<span class="ticks">{"".join(shown)}</span>'


def curves(groups: Sequence[Group]) -> str:
    """Of those who need recourse, the share who have it at no more than a cost: one line per group."""
    drawn = groups[:MOST_CURVES]
    end = max((float(group.costs[-1]) for group in drawn if len(group.costs)), default=1.0) or 1.0
    ticks = round_numbers(end)
    lines = [f'<path class="grid" d="M0 {y}H100"/>' for y in (0, 25, 50, 75, 100)]
    lines += [
        f'<path class="curve c{k}" d="{curve_path(group, ticks[-1], left=0, width=100, top=0, height=100)}"/>'
        for k, group in enumerate(drawn)
    ]
    legend = "".join(
        f'<li><svg viewBox="0 0 44 10" width="44" height="10" aria-hidden="true" focusable="false">'
        f'<path class="curve c{k}" d="M0 5H44"/></svg> {_name(group.name)}</li>'
        for k, group in enumerate(drawn)
    )
    rises = "".join(f'<span style="top:{100 - y}%">{y}%</span>' for y in (0, 25, 50, 75, 100))
    alternative = "; ".join(f"{group.name} ends at {percent(group.share)}" for group in drawn)
    plot = (
        f'<div class="plot"><span class="rises" aria-hidden="true">{rises}</span>'
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true" focusable="false">{"".join(lines)}'
        f'</svg><span class="below">{_axis(ticks)}</span></div>'
    )
    return _chart(plot, f"Share with recourse at no more than a cost, rising from 0: {alternative}") + (
        f'<ul class="legend">{legend}</ul>'
    )


# size: the box of the plot
def curve_path(group: Group, end: float, *, left: float, width: float, top: float, height: float) -> str:
    """Up by one person at each cost, or by as many as make a step that is seen."""
    values, counts = np.unique(group.costs, return_counts=True)
    heights = np.cumsum(counts) / group.needing
    if len(values) > MOST_CORNERS:
        kept = np.unique(np.linspace(0, len(values) - 1, MOST_CORNERS).astype(np.intp))
        values, heights = values[kept], heights[kept]
    across, down = (left + width * values / end).tolist(), (top + height * (1 - heights)).tolist()
    steps = "".join(f"H{x:.2f}V{y:.2f}" for x, y in zip(across, down, strict=True))
    return f"M{left:g} {top + height:g}{steps}H{left + width:g}"


def round_numbers(largest: float) -> list[float]:
    """Four or five round numbers from 0 to at least the largest."""
    raw = largest / 4
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= raw * (1 - 1e-9))
    return [k * step for k in range(max(1, math.ceil(largest / step - 1e-9)) + 1)]


def _chart(inside: str, alternative: str) -> str:
    return f'<div class="chart" role="img" aria-label="{words(alternative)}">{inside}</div>'
