"""Whole tables from files, for the commands that look at all rows at once; records to files, whole or not at all."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifonly.cli.outputs import check_place
from ifonly.errors import FileError, MissingExtra, QuestionError
from ifonly.population.files import KINDS, check_output
from ifonly.population.formats import encoded, is_formula, open_writer
from ifonly.population.sources import RowSource, TableFiles, files_of
from ifonly.printing import escaped
from ifonly.results import Answer
from ifonly.results.frames import frame_columns_of
from ifonly.results.records import Kind, record, record_kinds
from ifonly.schema.arguments import path_of
from ifonly.schema.io import replacing

MOST_SHEET_ROWS, MOST_SHEET_COLUMNS = 2**20, 2**14
"""Of an Excel file."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in the order of the file, each a dict of column names to values (csv: texts; an empty cell is None)."""

    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]
    description: str = "the table"
    untyped: bool = False
    """Every value is a text, also a number: the values of a csv file."""

    def column(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]


def read_table(given: str | Path | RowSource) -> Table:
    """All rows of a source, or of table files; a row that cannot be read is an error."""
    source = files_of(given) if isinstance(given, str | Path) else given
    columns = dict.fromkeys(source.names or ())
    rows: list[dict[str, Any]] = []
    for block in source.blocks(None):
        for why in block.wrong.values():
            raise FileError(why)
        some = block.as_rows()
        for row in some if block.columns is None else ():
            columns |= dict.fromkeys(row)
        rows += some
    if not rows:
        raise FileError(f"{source.description} has no rows.")
    untyped = isinstance(source, TableFiles) and source.files[0].kind == ".csv"
    return Table(tuple(columns), rows, source.description, untyped=untyped)


def is_sheet(output: str | Path | None) -> bool:
    return output is not None and str(output).lower().endswith(".xlsx")


def check_ending(output: str) -> None:
    """Can answers be written to a file that ends so? (A folder has no ending, or ends in a slash.)"""
    ending = path_of(output).suffix
    if ending and not is_sheet(output) and ending not in KINDS and not output.endswith("/"):
        raise FileError(f"Answers are written as {', '.join(KINDS)} or .xlsx; '{Path(output).name}' is none of these.")


def answers_place(output: str, *, force: bool) -> Path:
    """The path, if a table of answers can be written there: checked before the work, not after it."""
    check_ending(output)
    if not is_sheet(output):
        return check_place(check_output(output), force=force)
    if importlib.util.find_spec("openpyxl") is None:
        raise MissingExtra("openpyxl", extra="excel", needed_for="Writing an Excel file")
    return check_place(output, force=force)


def check_escaping(output: str | None, *, escape_formulas: bool) -> None:
    """`--escape-formulas` is about a csv file, or a folder of csv parts."""
    if escape_formulas and (output is None or path_of(output).suffix != ".csv"):
        raise QuestionError(
            "--escape-formulas is about csv files: say where with --output FILE.csv (an .xlsx has none)."
        )


def write_answers(
    path: Path,
    answers: Sequence[Answer],
    outputs: int,
    *,
    beside: Mapping[str, Sequence[Any]] | None = None,
    overwrite: bool,
    escape_formulas: bool = False,
) -> None:
    """Answers of a model with so many scores as a table, with other columns beside them."""
    more = beside or {}
    if is_sheet(path):
        with replacing(path, overwrite=overwrite) as temporary:
            write_sheet(temporary, {**more, **frame_columns_of(answers, "all")})
        return
    rows = [record(answer) | {name: many[i] for name, many in more.items()} for i, answer in enumerate(answers)]
    whole = {name: all(type(value) is int for value in many) for name, many in more.items()}
    kinds: dict[str, Kind] = {
        **record_kinds(outputs), **{name: "integer" if whole[name] else "text" for name in more}
    }  # fmt: skip
    write_records(path, rows, kinds, overwrite=overwrite, escape_formulas=escape_formulas)


def write_records(
    path: Path,
    records: Sequence[dict[str, Any]],
    kinds: Mapping[str, Kind],
    *,
    overwrite: bool = False,
    escape_formulas: bool = False,
) -> None:
    """Records by the file's ending. Nested values are JSON text in csv and parquet."""
    columns = {name: [record[name] for record in records] for name in kinds}
    with replacing(path, overwrite=overwrite) as temporary:
        writer = open_writer(temporary, kinds, escape_formulas=escape_formulas)
        writer.add(encoded(path.suffix, columns, kinds, escape_formulas=escape_formulas))
        writer.close()


def write_sheet(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Columns as an Excel file: numbers are numbers, and every text is a text, never a formula or an error."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    count = max(map(len, columns.values()), default=0)
    if count >= MOST_SHEET_ROWS or len(columns) > MOST_SHEET_COLUMNS:
        raise FileError(f"An Excel file has no room for {count:,} rows and {len(columns):,} columns; write a .csv.")
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = escaped(value)
        made = WriteOnlyCell(sheet, value=text)
        made.data_type = "s"
        made.quotePrefix = is_formula(text)  # a text also after somebody has edited it
        return made

    head = [cell(name) for name in columns]
    for one in head:
        one.font = Font(bold=True)
    sheet.append(head)
    for values in zip(*columns.values(), strict=True):
        sheet.append([cell(value) for value in values])
    book.save(path)
