"""Whole tables from files, for the commands that look at all rows at once; records to files, whole or not at all."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifonly.cli.outputs import check_place
from ifonly.errors import FileError, MissingExtra
from ifonly.population.files import KINDS, check_output
from ifonly.population.formats import begun, encoded
from ifonly.population.sources import TableFiles, files_of
from ifonly.proof import Answer, Answers
from ifonly.proof.records import Kind, record, record_kinds
from ifonly.schema.given import path_of
from ifonly.schema.io import replacing


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in the order of the file, each a dict of column names to values (csv: texts; an empty cell is None)."""

    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]
    words: str = "the table"
    untyped: bool = False
    """Every value is a text, whatever it stands for: those of a csv file."""

    def column(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]


def read_table(given: str | Path | TableFiles) -> Table:
    """The rows of table files, by their ending; a row that cannot be read is an error."""
    files = given if isinstance(given, TableFiles) else files_of(given)
    columns = dict.fromkeys(files.names or ())
    rows: list[dict[str, Any]] = []
    for block in files.blocks(None):
        for why in block.wrong.values():
            raise FileError(why)
        some = block.as_rows()
        for row in some if block.columns is None else ():
            columns |= dict.fromkeys(row)
        rows += some
    if not rows:
        raise FileError(f"{files.words} has no rows.")
    return Table(tuple(columns), rows, files.words, untyped=files.files[0].kind == ".csv")


def is_sheet(output: str | Path | None) -> bool:
    return output is not None and str(output).lower().endswith(".xlsx")


def check_ending(output: str) -> None:
    """Can answers be written to a file that ends so? (A folder has no ending, or ends in a slash.)"""
    ending = path_of(output).suffix
    if ending and not is_sheet(output) and ending not in KINDS and not output.endswith("/"):
        raise FileError(f"Answers are written as {', '.join(KINDS)} or .xlsx; '{Path(output).name}' is none of these.")


def answers_place(output: str, *, force: bool) -> Path:
    """The path, if a table of answers can be written there: asked before the work, not after it."""
    check_ending(output)
    if not is_sheet(output):
        return check_place(check_output(output), force=force)
    if importlib.util.find_spec("openpyxl") is None:
        raise MissingExtra("openpyxl", extra="excel", needed_for="Writing an Excel file")
    return check_place(output, force=force)


def write_answers(
    path: Path,
    answers: Sequence[Answer],
    outputs: int,
    *,
    beside: Mapping[str, Sequence[int]] | None = None,
    overwrite: bool,
) -> None:
    """Answers of a model with so many scores as a table, with columns of numbers beside them."""
    more = beside or {}
    if is_sheet(path):
        frame = Answers(answers).to_frame("all").assign(**more)
        with replacing(path, overwrite=overwrite) as temporary:
            frame.to_excel(temporary, index=False)
        return
    rows = [record(answer) | {name: many[i] for name, many in more.items()} for i, answer in enumerate(answers)]
    kinds: dict[str, Kind] = {**record_kinds(outputs), **dict.fromkeys(more, "integer")}
    write_records(path, rows, kinds, overwrite=overwrite)


def write_records(
    path: Path, records: Sequence[dict[str, Any]], columns: Mapping[str, Kind], *, overwrite: bool = False
) -> None:
    """Records by the file's ending. Nested values are JSON text in csv and parquet."""
    with replacing(path, overwrite=overwrite) as temporary:
        piece = begun(temporary, columns)
        piece.add(encoded(path.suffix, {name: [record[name] for record in records] for name in columns}, columns))
        piece.close()
