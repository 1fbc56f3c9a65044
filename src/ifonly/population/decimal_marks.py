"""The decimal mark of a csv file, by its own cells: is 10.000 ten or ten thousand?

A column with 12.5 or 0.125 has decimal points, one with 12,5 or 1.234,50 decimal commas. A column with neither follows
the others. Where no column shows a mark, a file separated by semicolons leaves it open, since spreadsheets write it so
where the comma is the decimal mark; any other file has points. Decimal commas are read as such where somebody says so,
or where the file's cells are separated by something else and show no decimal point.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ifonly.schema.number_text import DecimalMark, UnclearNumber, comma_cell, mark_of, other_reading

HEAD = 1000
"""Rows at the head of a file by which its marks are recognised."""


_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecimalMarks:
    """The mark of the table as a whole, and those of the columns that have one of their own."""

    table: DecimalMark = DecimalMark.POINT
    columns: Mapping[int, DecimalMark] = field(default_factory=dict)
    known: bool = False
    """Decimal commas are read as such."""
    missing: frozenset[str] = frozenset()
    """Cells that stand for no value, besides empty ones."""

    def cells(self, place: int, cells: Sequence[str]) -> list[str | None]:
        """The cells of a column, an empty one as None, ambiguous numbers and those with decimal commas marked."""
        mark = self.columns.get(place, self.table)
        if self.missing:
            cells = ["" if self._is_missing(cell.strip()) else cell for cell in cells]
        if mark is DecimalMark.POINT:
            return [cell or None for cell in cells]
        if mark is DecimalMark.COMMA and self.known:
            return [comma_cell(cell) if cell else None for cell in cells]
        return [
            None if not cell else UnclearNumber(cell) if other_reading(cell) is not None else cell for cell in cells
        ]

    def _is_missing(self, cell: str) -> bool:
        """The cell as it was said, or the same number: -999.0 is -999."""
        if cell in self.missing:
            return True
        number = plain_number(cell)
        return number is not None and number in {plain_number(one) for one in self.missing}


def plain_number(text: str) -> float | None:
    """A number as programs write it."""
    return float(text) if _NUMBER.fullmatch(text) else None


def decimal_marks(rows: Sequence[Sequence[str]], separator: str, said: str | None = None) -> DecimalMarks:
    """The decimal marks of a table, by the rows at its head, or as somebody has said (`said`: a point or a comma)."""
    if said is not None:
        return DecimalMarks(table=DecimalMark.POINT if said == "." else DecimalMark.COMMA, known=True)
    if separator != ";" and not any("," in cell for row in rows for cell in row):
        return DecimalMarks()
    marks = {place: mark_of(column) for place, column in enumerate(zip(*rows, strict=False))}
    columns = {place: mark for place, mark in marks.items() if mark is not None}
    shown = set(columns.values())
    default = DecimalMark.UNKNOWN if separator == ";" else DecimalMark.POINT
    table = default if not shown else DecimalMark.UNKNOWN if len(shown) > 1 else next(iter(shown))
    return DecimalMarks(table=table, columns=columns, known=separator != "," and shown == {DecimalMark.COMMA})
