"""A small table of strings, for the terminal and for Markdown, and how times are written in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass
class TextTable:
    """A small table of strings, for the terminal and for Markdown."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def rich(self) -> Table:
        table = Table(title=self.title, caption="\n".join(self.notes), caption_justify="left")
        for i, name in enumerate(self.columns):
            table.add_column(name, justify="left" if i == 0 else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _line(self.columns), _line(["---"] + ["---:"] * (len(self.columns) - 1))]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, "", *(f"- {note}" for note in self.notes)]).rstrip() + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def show(sheet: TextTable, path: Path, console: Console) -> None:
    """Print a table and keep it as Markdown."""
    console.print(sheet.rich())
    path.write_text(sheet.markdown(), encoding="utf-8")
    console.print(f"[dim]{path}[/dim]")


def time_text(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "-"
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
