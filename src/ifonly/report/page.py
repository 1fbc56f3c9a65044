"""A page is a list of blocks (headings, paragraphs, tables, facts): plain data, rendered as text or on a terminal.

The plain rendering is what a pipe, a file or a test reads: no colours, no frames, nothing cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ifonly.printing import escaped

MARK = "* "


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows."""

    words: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or more; `quiet` ones are asides."""

    words: str
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to copy into a shell."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are, one pair per line."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table of texts. `marked` rows stand out; columns in `right` are numbers, aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = field(default_factory=frozenset)
    right: frozenset[int] = field(default_factory=frozenset)


Block: TypeAlias = Heading | Paragraph | Commands | Facts | TextTable
Page: TypeAlias = tuple[Block, ...]


def plain(page: Sequence[Block]) -> str:
    """The page as plain text, blocks separated by empty lines."""
    return "\n\n".join(part for part in map(_plain_block, page) if part)


def _plain_block(block: Block) -> str:
    match block:
        case Heading() | Paragraph():
            return escaped(block.words)
        case Commands():
            return "\n".join("  " + escaped(line) for line in block.lines)
        case Facts():
            return _columns(["", ""], [[name, what] for name, what in block.pairs], frozenset())
        case TextTable():
            return _plain_sheet(block)


def _plain_sheet(sheet: TextTable) -> str:
    if not sheet.marked:
        return _columns(sheet.header, sheet.rows, sheet.right)
    blank = " " * len(MARK)
    marked = [[(MARK if i in sheet.marked else blank) + row[0], *row[1:]] for i, row in enumerate(sheet.rows)]
    return _columns([blank + sheet.header[0], *sheet.header[1:]], marked, sheet.right)


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int]) -> str:
    lines = [[escaped(cell) for cell in row] for row in ([header] if any(header) else []) + list(rows)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))] if lines else []
    return "\n".join(
        "  ".join(c.rjust(w) if j in right else c.ljust(w) for j, (c, w) in enumerate(zip(line, widths, strict=True)))
        .rstrip()
        for line in lines
    )  # fmt: skip
