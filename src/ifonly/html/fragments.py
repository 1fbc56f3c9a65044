"""Fragments of HTML that stand in a notebook as well as in a page.

Everything from outside goes through `words` and stands between tags or in a quoted attribute. A fragment brings its
own style, whose names all begin with `ifonly`, and takes the colours of what it stands in; a `document` is a whole page
that says itself that nothing may be loaded, readable on paper too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

from ifonly.printing import printable

MOST = 2000
"""Characters of one text."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def words(text: str) -> str:
    """Any text as it may stand in a page or in an attribute of one; arrows as they are printed."""
    return escape(printable(text.replace(" -> ", " \N{RIGHTWARDS ARROW} "), MOST), quote=True)


def fragment(*parts: str) -> str:
    """Parts of a page as one block with its style."""
    return f'<div class="ifonly"><style>{style()}</style>{"".join(parts)}</div>'


def document(title: str, *parts: str, language: str = "en", look: str = "") -> str:
    """A whole page; `look` is its style sheet, if it is not that of the fragments."""
    return (
        f'<!doctype html>\n<html lang="{words(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="color-scheme" content="light dark">\n<meta name="generator" content="ifonly">\n'
        f'<title>{words(title)}</title>\n<style>\n{look or style()}</style>\n</head>\n<body class="ifonly-page">\n'
        f'<main class="ifonly">\n<h1>{words(title)}</h1>\n' + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


@cache
def style() -> str:
    """The style sheet, without comments."""
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    right: frozenset[int] = frozenset(),
    drawn: frozenset[int] = frozenset(),
) -> str:
    """A table whose first column names the rows; columns in `right` are numbers, those in `drawn` are HTML already."""
    head = "".join(f'<th scope="col"{_side(j in right)}>{words(name)}</th>' for j, name in enumerate(header))
    body = []
    for row in rows:
        cells = "".join(
            f"<td{_side(j in right)}>{cell if j in drawn else words(cell)}</td>" for j, cell in enumerate(row) if j
        )
        body.append(f'<tr><th scope="row">{words(row[0])}</th>{cells}</tr>')
    told = f"<caption>{words(caption)}</caption>" if caption else ""
    whole = f"<table>{told}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="ifonly-wide">{whole}</div>'


def _side(right: bool) -> str:
    return ' class="ifonly-n"' if right else ""


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are."""
    return "<dl>" + "".join(f"<dt>{words(name)}</dt><dd>{words(what)}</dd>" for name, what in pairs) + "</dl>"


def numbered(items: Iterable[str]) -> str:
    """A list with numbers."""
    return "<ol>" + "".join(f"<li>{words(item)}</li>" for item in items) + "</ol>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph; of the kind "sentence" or "soft"."""
    return f'<p class="ifonly-{kind}">{words(text)}</p>' if kind else f"<p>{words(text)}</p>"
