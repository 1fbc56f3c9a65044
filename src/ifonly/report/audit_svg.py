"""The audit as an SVG chart: of those who need recourse, the share who have it at no more than a cost."""

from __future__ import annotations

import textwrap
from html import escape

from ifonly.population.auditing import Audit
from ifonly.population.group import Group
from ifonly.printing import printable
from ifonly.report.audit_sentences import percent
from ifonly.report.charts import curve_path, round_numbers

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#777777")
"""Okabe and Ito's colours, distinguished with any colour vision; lines differ in their dashes too."""
DASHES = ("", "7 3", "2 2", "9 3 2 3", "4 4", "12 4", "1 3", "6 2 2 2")
WIDTH, PLOT = 720, 300
LEFT, RIGHT, BELOW, LINE = 64, 24, 62, 18
LETTERS = 84
"""In a line of this width."""


def audit_svg(audit: Audit) -> str:
    """One line per group, at most eight, and below the plot all of their names."""
    groups = [group for group in audit.groups or (audit.everybody,) if group.needing][: len(COLOURS)]
    largest = max((float(group.costs[-1]) for group in groups if len(group.costs)), default=1.0) or 1.0
    ticks = round_numbers(largest)
    title = _wrapped(f"Recourse to {audit.target}" + (f", by {audit.label(audit.by)}" if audit.by else ""))
    names = [_wrapped(f"{group.name}: {percent(group.share)} of {group.needing:,}") for group in groups]
    top = 14 + LINE * len(title)
    height = top + PLOT + BELOW + LINE * sum(map(len, names)) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(' '.join(title))}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *(_text(LEFT, 20 + LINE * i, line, weight=True) for i, line in enumerate(title)),
        *(_across(y / 4, top) for y in range(5)),
        *(_text(LEFT + (WIDTH - LEFT - RIGHT) * t / ticks[-1], top + PLOT + 20, f"{t:.4g}", anchor="middle")
          for t in ticks),
        _text(LEFT + (WIDTH - LEFT - RIGHT) / 2, top + PLOT + 42, f"cost ({audit.distance_name} distance)",
              anchor="middle"),
        f'<text transform="translate(16 {top + PLOT / 2:g}) rotate(-90)" text-anchor="middle" '
        f'fill="#222222">share with recourse</text>',
        *(_curve(group, k, ticks[-1], top) for k, group in enumerate(groups)),
        *_legend(names, top + PLOT + BELOW + 6),
        "</svg>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(printable(text, 400), LETTERS) or [""]


def _across(part: float, top: int) -> str:
    y = top + PLOT * (1 - part)
    line = f'<line x1="{LEFT}" y1="{y:g}" x2="{WIDTH - RIGHT}" y2="{y:g}" stroke="#dddddd"/>'
    return line + _text(LEFT - 8, y + 4, f"{part:.0%}", anchor="end")


def _curve(group: Group, k: int, end: float, top: int) -> str:
    path = curve_path(group, end, left=LEFT, width=WIDTH - LEFT - RIGHT, top=top, height=PLOT)
    return f'<path d="{path}" fill="none" {_stroke(k)}/>'


def _legend(names: list[list[str]], y: int) -> list[str]:
    drawn = []
    for k, lines in enumerate(names):
        drawn.append(f'<line x1="{LEFT}" y1="{y - 4}" x2="{LEFT + 34}" y2="{y - 4}" {_stroke(k)}/>')
        for line in lines:
            drawn.append(_text(LEFT + 44, y, line))
            y += LINE
    return drawn


def _stroke(k: int) -> str:
    dash = f' stroke-dasharray="{DASHES[k]}"' if DASHES[k] else ""
    return f'stroke="{COLOURS[k]}" stroke-width="2"{dash}'


def _text(x: float, y: float, words: str, *, anchor: str = "start", weight: bool = False) -> str:
    bold = ' font-weight="600"' if weight else ""
    shown = escape(printable(words, 400))
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="#222222"{bold}>{shown}</text>'
