"""HTML rendering: fragments for notebooks, and whole documents; the one renderer of every page.

Every text from outside goes through `words` and is put between tags or in a quoted attribute. A fragment brings its own
style, whose names all begin with `ifonly`, and takes the colours of its surroundings. A `document` is a whole page,
readable on paper too, whose content policy says that nothing may be loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

from ..printing import printable

MOST = 2000
"""Characters of one text."""
MOST_KEPT = 15
"""Rows of a table that is not cut in two on paper."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def words(text: str) -> str:
    """Any text, escaped for the content of an element or an attribute; arrows as they are printed."""
    return escape(printable(text.replace(" -> ", " \N{RIGHTWARDS ARROW} "), MOST), quote=True)


def fragment(*parts: str) -> str:
    """Parts of a page as one block with its style."""
    return f'<div class="ifonly"><style>{style()}</style>{"".join(parts)}</div>'


def document(title: str, *parts: str, language: str = "en", sheet: str = "style.css", headed: bool = True) -> str:
    """A whole page with one of the style sheets. `headed`: the title is its first line, too."""
    heading = f"<h1>{words(title)}</h1>\n" if headed else ""
    return (
        f'<!doctype html>\n<html lang="{words(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="color-scheme" content="light dark">\n<meta name="generator" content="ifonly">\n'
        f'<title>{words(title)}</title>\n<style>\n{style(sheet)}</style>\n</head>\n<body class="ifonly-page">\n'
        f'<main class="ifonly">\n{heading}' + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


@cache
def style(sheet: str = "style.css") -> str:
    """A style sheet; it is copied into the page."""
    return (Path(__file__).parent / sheet).read_text(encoding="utf-8")


# size: the options of every table
def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    right: frozenset[int] = frozenset(),
    drawn: frozenset[int] = frozenset(),
    stacked: bool = False,
    total: bool = False,
) -> str:
    """A table whose first column names the rows; columns in `right` are numbers, those in `drawn` are HTML already.

    `stacked`: on a narrow screen each row may be a block, so cells have labels and roles. `total`: the last row is that
    of all others together.
    """

    def role(name: str) -> str:
        return f' role="{name}"' if stacked else ""

    def cell(j: int, content: str) -> str:
        inside = content if j in drawn else words(content)
        if not j:
            return f'<th scope="row"{role("rowheader")}>{inside}</th>'
        label = f' data-label="{words(header[j])}"' if stacked else ""
        return f"<td{role('cell')}{_side(j in right)}{label}>{f'<span>{inside}</span>' if stacked else inside}</td>"

    head = "".join(f'<th scope="col"{role("columnheader")}{_side(j in right)}>{words(name)}</th>'
                   for j, name in enumerate(header))  # fmt: skip
    lines = ["".join(cell(j, content) for j, content in enumerate(row)) for row in rows]
    marks = ["" if not total or i < len(lines) - 1 else ' class="ifonly-total"' for i in range(len(lines))]
    body = "".join(f"<tr{role('row')}{mark}>{line}</tr>" for mark, line in zip(marks, lines, strict=True))
    title = f"<caption>{words(caption)}</caption>" if caption else ""
    keep = ' class="ifonly-keep"' if stacked and len(lines) <= MOST_KEPT else ""
    return (
        f'<div class="ifonly-wide"><table{role("table")}{keep}>{title}<thead{role("rowgroup")}><tr{role("row")}>{head}'
        f"</tr></thead><tbody{role('rowgroup')}>{body}</tbody></table></div>"
    )


def _side(right: bool) -> str:
    return ' class="ifonly-n"' if right else ""


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A description list of names and values."""
    return "<dl>" + "".join(f"<dt>{words(name)}</dt><dd>{words(what)}</dd>" for name, what in pairs) + "</dl>"


def numbered(items: Iterable[str]) -> str:
    """An ordered list."""
    return f"<ol>{_items(items)}</ol>"


def bullets(items: Iterable[str]) -> str:
    """An unordered list."""
    return f"<ul>{_items(items)}</ul>"


def _items(items: Iterable[str]) -> str:
    return "".join(f"<li>{words(item)}</li>" for item in items)


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph; of the kind "sentence" or "soft"."""
    return f'<p class="ifonly-{kind}">{words(text)}</p>' if kind else f"<p>{words(text)}</p>"
