"""Whole tables from files, for the commands that look at all rows at once; records to files, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifonly.errors import FileError
from ifonly.population.files import check_kind, column_names, read_blocks
from ifonly.population.formats import begun, encoded
from ifonly.proof.records import Kind
from ifonly.schema.given import path_of
from ifonly.schema.io import replacing

ROWS = 4096
"""Rows that are read at a time."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in the order of the file, each a dict of column names to values (csv: texts; an empty cell is None)."""

    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]

    def column(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]


def read_table(path: str | Path) -> Table:
    """The rows of a table file, by its ending; a row that cannot be read is an error."""
    path = path_of(path)
    check_kind(path)
    columns = dict.fromkeys(column_names(path) or ())
    rows: list[dict[str, Any]] = []
    for block in read_blocks(path, ROWS):
        for why in block.wrong.values():
            raise FileError(why)
        some = block.as_rows()
        for row in some if block.columns is None else ():
            columns |= dict.fromkeys(row)
        rows += some
    if not rows:
        raise FileError(f"'{path}' has no rows.")
    return Table(tuple(columns), rows)


def write_records(path: Path, records: Sequence[dict[str, Any]], columns: Mapping[str, Kind]) -> None:
    """Records by the file's ending. Nested values are JSON text in csv and parquet."""
    with replacing(path) as temporary:
        piece = begun(temporary, columns)
        piece.add(encoded(path.suffix, {name: [record[name] for record in records] for name in columns}, columns))
        piece.close()
