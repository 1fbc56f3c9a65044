"""The decimal mark of a csv file: what its own cells say of whether 10.000 is ten or ten thousand.

A column that has 12.5 or 0.125 writes decimals with a point, one that has 12,5 or 1.234,50 with a comma. A column that
has neither follows the others; where none says anything, a file separated by semicolons, as spreadsheets write it where
the comma is the decimal mark, leaves it open, and any other file has points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ifonly.schema.number_text import DecimalMark, UnclearNumber, mark_of, other_reading

HEAD = 1000
"""Rows at the head of a file that tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecimalMarks:
    """The mark of the table as a whole, and those of the columns that have one of their own."""

    table: DecimalMark = DecimalMark.POINT
    columns: Mapping[int, DecimalMark] = field(default_factory=dict)

    def cells(self, place: int, cells: Sequence[str]) -> list[str | None]:
        """The cells of a column, an empty one as None, and those that may be two numbers as such."""
        if self.columns.get(place, self.table) is DecimalMark.POINT:
            return [cell or None for cell in cells]
        return [
            None if not cell else UnclearNumber(cell) if other_reading(cell) is not None else cell for cell in cells
        ]


def decimal_marks(rows: Sequence[Sequence[str]], separator: str) -> DecimalMarks:
    """The decimal marks of a table, by the rows at its head."""
    if separator != ";" and not any("," in cell for row in rows for cell in row):
        return DecimalMarks()
    marks = {place: mark_of(column) for place, column in enumerate(zip(*rows, strict=False))}
    columns = {place: mark for place, mark in marks.items() if mark is not None}
    shown = set(columns.values())
    unsaid = DecimalMark.UNKNOWN if separator == ";" else DecimalMark.POINT
    table = unsaid if not shown else DecimalMark.UNKNOWN if len(shown) > 1 else next(iter(shown))
    return DecimalMarks(table=table, columns=columns)
