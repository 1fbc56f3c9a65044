"""Recourse over a group as a page and as a picture."""

from __future__ import annotations

import math
from html import escape

from ifonly.population.audit import Audit
from ifonly.population.group import Group
from ifonly.population.ways import FlipSet
from ifonly.printing import printable
from ifonly.report.page import Page, Paragraph, Sheet
from ifonly.report.text import number, share

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#777777")
"""Okabe and Ito's colours, told apart with any colour vision; lines differ in their dashes too."""
DASHES = ("", "7 3", "2 2", "9 3 2 3", "4 4", "12 4", "1 3", "6 2 2 2")
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 48, 56


def audit_page(audit: Audit) -> Page:
    """One line per group, everybody last, and what differs most between groups."""
    groups = (*audit.groups, audit.everybody)
    header = (audit.by or "group", "people", "need it", "have it", "have none", "open", "median", "mean", "p10", "p90")
    sheet = Sheet(
        header=header,
        rows=[_line(group) for group in groups],
        right=frozenset(range(1, len(header))),
        marked=frozenset({len(groups) - 1}) if audit.groups else frozenset(),
    )
    what = (
        f"Recourse to {audit.target}: of those who need it, how many have it, how many provably have none, "
        f"and its cost ({audit.distance_name} distance of the nearest row)."
    )
    notes = [Paragraph(line, quiet=True) for line in _notes(audit)]
    return (Paragraph(what), sheet, *(Paragraph(line) for line in _differences(audit)), *notes)


def flip_sets_page(sets: tuple[FlipSet, ...], *, most: int = 20) -> Page:
    """One line per set of features."""
    if not sets:
        return (Paragraph("No answer changes anything."),)
    rows = [(", ".join(s.features), f"{s.count:,}", number(s.costs[0]), number(s.costs[s.count // 2]))
            for s in sets[:most]]  # fmt: skip
    sheet = Sheet(header=("changed together", "answers", "least cost", "median"), rows=rows, right=frozenset({1, 2, 3}))
    left = len(sets) - most
    return (sheet, Paragraph(f"... and {left:,} more sets", quiet=True)) if left > 0 else (sheet,)


def _line(group: Group) -> tuple[str, ...]:
    needing = group.needing

    def of(count: int) -> str:
        return f"{count:,} ({share(count, needing)})" if needing else f"{count:,}"

    costs = (group.median, group.mean, group.quantile(0.1), group.quantile(0.9))
    return (
        group.name, f"{group.people:,}", f"{needing:,}", of(group.recourse), of(group.without), of(group.unknown),
        *(f"{cost:.4g}" if math.isfinite(cost) else "-" for cost in costs),
    )  # fmt: skip


def _differences(audit: Audit) -> list[str]:
    """Which groups are farthest apart."""
    told = []
    known = [group for group in audit.groups if group.needing]
    if len(known) > 1:
        low, high = min(known, key=lambda g: g.share), max(known, key=lambda g: g.share)
        if high.share > low.share:
            told.append(
                f"Recourse exists for {share(low.recourse, low.needing)} of {low.name} and for "
                f"{share(high.recourse, high.needing)} of {high.name}."
            )
    known = [group for group in audit.groups if len(group.costs)]
    if len(known) > 1:
        low, high = min(known, key=lambda g: g.median), max(known, key=lambda g: g.median)
        if low.median > 0 and high.median > low.median:
            told.append(
                f"Where it exists, its median cost is {number(high.median)} for {high.name}, "
                f"{high.median / low.median:.2f} times that for {low.name}."
            )
    return told


def _notes(audit: Audit) -> list[str]:
    everybody = audit.everybody
    notes = []
    if everybody.unproven:
        notes.append(f"{everybody.unproven:,} of the rows are not proven to be the nearest: costs may be lower.")
    if everybody.unknown:
        notes.append(f"{everybody.unknown:,} are open: a limit was hit before a row was found or ruled out.")
    if audit.failed:
        notes.append(f"{audit.failed:,} rows could not be read and are left out.")
    return notes


# ---------------------------------------------------------------------- the picture


def audit_svg(audit: Audit) -> str:
    """Of those who need recourse, the share who have it at no more than a cost: one line per group, as SVG."""
    groups = [group for group in audit.groups or (audit.everybody,) if group.needing][: len(COLOURS)]
    largest = max((group.costs[-1] for group in groups if len(group.costs)), default=1.0) or 1.0
    ticks = _ticks(largest)
    end = max(ticks[-1], largest)
    title = f"Recourse to {audit.target}" + (f", by {audit.by}" if audit.by else "")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(printable(title))}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 24, title, weight=True),
        *(_across(y / 4) for y in range(5)),
        *(_below(x, end) for x in ticks),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, f"cost ({audit.distance_name} distance)", anchor="middle"),
        f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:g}) rotate(-90)" text-anchor="middle" '
        f'fill="#222222">share with recourse</text>',
        *(_curve(group, k, end) for k, group in enumerate(groups)),
        *(_legend(group, k) for k, group in enumerate(groups)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(cost: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * cost / end


def _y(part: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part


def _ticks(largest: float) -> list[float]:
    """About five round numbers from 0 to at least the largest."""
    raw = largest / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= raw)
    return [k * step for k in range(math.ceil(largest / step - 1e-9) + 1)]


def _across(part: float) -> str:
    y = _y(part)
    line = f'<line x1="{LEFT}" y1="{y:g}" x2="{WIDTH - RIGHT}" y2="{y:g}" stroke="#dddddd"/>'
    return line + _text(LEFT - 8, y + 4, f"{part:.0%}", anchor="end")


def _below(cost: float, end: float) -> str:
    return _text(_x(cost, end), HEIGHT - BOTTOM + 20, f"{cost:.4g}", anchor="middle")


def _curve(group: Group, k: int, end: float) -> str:
    """Up by one person at each cost."""
    corners = [f"M {_x(0, end):.2f} {_y(0):.2f}"]
    for i, cost in enumerate(group.costs, start=1):
        if i < len(group.costs) and group.costs[i] == cost:
            continue
        corners.append(f"H {_x(cost, end):.2f} V {_y(i / group.needing):.2f}")
    corners.append(f"H {_x(end, end):.2f}")
    dash = f' stroke-dasharray="{DASHES[k]}"' if DASHES[k] else ""
    return f'<path d="{" ".join(corners)}" fill="none" stroke="{COLOURS[k]}" stroke-width="2"{dash}/>'


def _legend(group: Group, k: int) -> str:
    x, y = WIDTH - RIGHT + 14, TOP + 10 + 34 * k
    dash = f' stroke-dasharray="{DASHES[k]}"' if DASHES[k] else ""
    line = f'<line x1="{x}" y1="{y}" x2="{x + 28}" y2="{y}" stroke="{COLOURS[k]}" stroke-width="2"{dash}/>'
    name = group.name if len(group.name) <= 18 else group.name[:17] + "…"
    told = f"{share(group.recourse, group.needing)} of {group.needing:,}"
    return line + _text(x + 36, y + 4, name) + _text(x + 36, y + 19, told, colour="#666666")


def _text(
    x: float, y: float, words: str, *, anchor: str = "start", weight: bool = False, colour: str = "#222222"
) -> str:
    bold = ' font-weight="600"' if weight else ""
    shown = escape(printable(words))
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}"{bold}>{shown}</text>'
