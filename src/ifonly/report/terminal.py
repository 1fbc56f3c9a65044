"""Pages of text on a terminal, with rich: frames, colours, changed features in bold."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleRenderable
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ifonly.printing import escaped
from ifonly.report.page import Block, Commands, Facts, Heading, Paragraph, TextTable

STATUS = {
    "nearest": "green",
    "none exists": "cyan",
    "within": "yellow",
    "unknown": "magenta",
    "error": "red",
    "ok": "green",
    "missing": "yellow",
}


def draw(page: Sequence[Block], console: Console) -> None:
    """Print the page, one empty line after each block."""
    for block in page:
        console.print(_drawn(block))
        console.print()


def _drawn(block: Block) -> ConsoleRenderable:
    match block:
        case Heading():
            return Text(escaped(block.words), style="bold")
        case Paragraph():
            return Text(escaped(block.words), style="dim" if block.quiet else "")
        case Commands():
            return Padding(Text("\n".join(map(escaped, block.lines)), style="cyan"), (0, 0, 0, 2))
        case Facts():
            return _facts(block)
        case TextTable():
            return _sheet(block)


def _facts(facts: Facts) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, what in facts.pairs:
        table.add_row(Text(escaped(name), style=STATUS.get(name, "")), Text(escaped(what)))
    return table


def _sheet(sheet: TextTable) -> Table:
    table = Table(box=box.ROUNDED, header_style="bold", border_style="dim")
    last = len(sheet.header) - 1
    for j, name in enumerate(sheet.header):
        right = j in sheet.right
        table.add_column(
            Text(escaped(name)), justify="right" if right else "left", overflow="fold", no_wrap=right,
            min_width=min(len(name), 8) if j != last else None,
        )  # fmt: skip
    for i, row in enumerate(sheet.rows):
        style = "" if not sheet.marked else "bold green" if i in sheet.marked else "dim"
        cells = [
            Text(escaped(cell), style=STATUS.get(cell, "") if name == "status" else "")
            for name, cell in zip(sheet.header, row, strict=True)
        ]
        table.add_row(*cells, style=style)
    return table
