"""Readers of table files, block by block: csv, jsonl, parquet and xlsx; memory does not grow with the number of rows.

A line that cannot be a row (too many cells, no JSON) is a wrong row, and the rest is read; what makes the rest
unreadable too is a FileError.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from ifonly.errors import FileError, MissingExtra
from ifonly.population.checksums import FileChecksums, open_verified
from ifonly.population.chunks import RowBlock
from ifonly.population.csv_format import SEPARATORS, USUAL, CsvFormat, detected, remark
from ifonly.population.decimal_marks import HEAD, DecimalMarks, decimal_marks
from ifonly.population.sheets import sheet_blocks, sheet_columns
from ifonly.schema.arguments import path_of
from ifonly.schema.io import check_writable
from ifonly.schema.number_text import DecimalMark

KINDS = (".csv", ".jsonl", ".parquet")
"""Of tables that are read and written."""
SHEET = ".xlsx"
READ_KINDS = (*KINDS, SHEET)
MOST_LINE = 16 * 2**20
"""Characters of one line."""
ROWS_AT_A_TIME = 4096
"""Rows of a parquet file that are taken out of it together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One file of rows. `description` is what messages call it; `columns` are those in the names of its folders, with
    the same value for all rows; what is read is compared with the checksums `known`, once these are taken.
    """

    path: Path
    description: str
    kind: str
    format: CsvFormat = CsvFormat(separator=",", encoding=USUAL)  # noqa: RUF009  frozen
    columns: Mapping[str, int | str | None] = field(default_factory=dict)
    known: FileChecksums | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.description

    def open(self) -> BinaryIO:
        return self.path.open("rb") if self.known is None else open_verified(self.known)

    def open_text(self, newline: str | None = None) -> TextIO:
        encoding = self.format.encoding if self.kind == ".csv" else USUAL
        return io.TextIOWrapper(self.open(), encoding=encoding, newline=newline)

    @property
    def separator(self) -> str:
        return self.format.separator or ","


def table_file(path: Path, csv_format: CsvFormat | None = None, description: str = "") -> TableFile:
    """The file at a path; its kind follows from its ending, or from a separator (csv)."""
    given = csv_format or CsvFormat()
    if given.separator is None:
        check_kind(path, READ_KINDS)
    elif path.suffix in READ_KINDS[1:]:
        raise FileError(f"'{path.name}' is no csv file, so nothing separates its cells; leave out the separator.")
    kind = path.suffix if given.separator is None else ".csv"
    return TableFile(path=path, description=description or f"'{path}'", kind=kind, format=given)


def with_format(files: Sequence[TableFile]) -> tuple[list[TableFile], str]:
    """Files of one kind with the csv format that the first of them has, and what is remarkable about it."""
    first = files[0]
    if first.kind != ".csv":
        return list(files), ""
    found = detected(first.path, first.format)
    files = [replace(one, format=found) for one in files]
    try:
        marks = file_marks(files[0])
    except FileError:  # reported when the rows are read
        return list(files), ""
    return list(files), remark(str(first), first.format, found, commas=marks.table is DecimalMark.COMMA and marks.known)


def check_kind(path: Path, kinds: Sequence[str] = KINDS) -> None:
    if path.suffix not in kinds:
        raise FileError(f"A table file ends in {', '.join(kinds[:-1])} or {kinds[-1]}; '{path.name}' does not.")


def need_pyarrow(what: str) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", extra="parquet", needed_for=what)


def check_output(path: str | Path) -> Path:
    """The path, if records can be written there: checked before the work, not after it."""
    path = path_of(path)
    check_kind(path)
    if path.suffix == ".parquet":
        need_pyarrow("Writing a parquet file")
    check_writable(path)
    return path


def read_blocks(file: TableFile, size: int, columns: Collection[str] | None = None) -> Iterator[RowBlock]:
    """The rows of one file, in blocks of `size` (some may be shorter); only these columns."""
    readers = {".csv": _csv_blocks, ".jsonl": _jsonl_blocks, ".parquet": _parquet_blocks, SHEET: _sheet_blocks}
    reader = readers[file.kind]
    from_folders = {name: value for name, value in file.columns.items() if columns is None or name in columns}
    with _readable(file):
        for block in reader(file, size, columns):
            yield block.with_columns(from_folders)


def column_names(file: TableFile) -> tuple[str, ...] | None:
    """The columns of a file, those of its folders last; None where only the rows have names."""
    with _readable(file):
        if file.kind == ".jsonl":
            return None
        if file.kind == ".csv":
            with file.open_text(newline="") as lines:
                own = [name for name in _header(_csv_reader(lines, file), file) if name]
        elif file.kind == SHEET:
            with file.open() as opened:
                own = sheet_columns(opened, str(file))
        else:
            own = parquet_schema(file).names
        return tuple(dict.fromkeys((*own, *file.columns)))


@contextmanager
def _readable(file: TableFile) -> Iterator[None]:
    """Errors of the file system and of the encoding as a FileError."""
    try:
        yield
    except OSError as error:
        raise FileError(f"Cannot read the table {file}: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        named = "UTF-8" if error.encoding.startswith("utf-8") else error.encoding
        or_say = "save it as UTF-8" + (", or say how it is encoded: --encoding cp1252" if file.kind == ".csv" else "")
        raise FileError(
            f"{file} is not {named} text (byte 0x{error.object[error.start]:02x} at position {error.start}); {or_say}."
        ) from None
    except UnicodeError as error:  # UTF-16 without its mark
        raise FileError(f"{file} is not {file.format.encoding} text ({error}); say how it is encoded.") from None


def _lines(text: TextIO, file: TableFile) -> Iterator[str]:
    """The lines of a file, of bounded length."""
    number = 0
    while line := text.readline(MOST_LINE):
        number += 1
        if len(line) == MOST_LINE and not line.endswith("\n"):
            raise FileError(f"{file}, line {number} is longer than {MOST_LINE // 2**20} Mi characters.")
        yield line


# ---------------------------------------------------------------------- csv


def _header(reader: Any, file: TableFile) -> list[str]:
    try:
        header = next(reader, None)
    except csv.Error as error:
        raise FileError(f"{file}, line {reader.line_num}: {error}.") from None
    if header is None:
        raise FileError(f"{file} is empty; its first line must name the columns.")
    _check_twice(header, file)
    if len(header) == 1:
        _check_separator(header[0], file)
    return list(header)


def _check_separator(line: str, file: TableFile) -> None:
    """Is a header with a single column one that something else separates?"""
    found = next((sign for sign in SEPARATORS if sign in line), None)
    if found is not None:
        name, option = SEPARATORS[found]
        given, _ = SEPARATORS.get(file.separator, (f"'{file.separator}'", ""))
        fix = f"add --sep {option} (in Python: pandas.read_csv(..., sep={found!r}))" if option else "leave out --sep"
        raise FileError(f"{file} is not separated by {given}, but by {name}: {fix}.")


def _csv_reader(lines: TextIO, file: TableFile) -> Any:
    return csv.reader(_lines(lines, file), delimiter=file.separator)


def _check_twice(header: Sequence[str], file: TableFile) -> None:
    twice = next((name for name, times in Counter(header).items() if name and times > 1), None)
    if twice is not None:
        raise FileError(f"{file} has two columns called '{twice}'.")


def _csv_blocks(file: TableFile, size: int, columns: Collection[str] | None) -> Iterator[RowBlock]:
    with file.open_text(newline="") as lines:
        reader = _csv_reader(lines, file)
        header = _header(reader, file)
        names = {k: name for k, name in enumerate(header) if name and (columns is None or name in columns)}
        marks = file_marks(file)
        rows: list[list[str]] = []
        wrong: dict[int, str] = {}
        try:
            for cells in reader:
                if len(cells) != len(header):
                    if not cells:
                        continue
                    if len(cells) > len(header):
                        wrong[len(rows)] = _too_many(file, reader.line_num, len(cells), len(header))
                    cells = [*cells, *[""] * (len(header) - len(cells))]
                rows.append(cells)
                if len(rows) == size:
                    yield _csv_block(rows, names, wrong, marks)
                    rows, wrong = [], {}
        except csv.Error as error:
            raise FileError(f"{file}, line {reader.line_num}: {error}.") from None
        if rows:
            yield _csv_block(rows, names, wrong, marks)


def file_marks(file: TableFile) -> DecimalMarks:
    """The decimal marks of a csv file, by its head; of any other file, whose numbers are no texts, the point."""
    if file.kind != ".csv":
        return DecimalMarks()
    with _readable(file), file.path.open(encoding=file.format.encoding, newline="") as lines:
        reader = _csv_reader(lines, file)
        width = len(_header(reader, file))
        try:
            rows = [cells for cells in islice(reader, HEAD) if len(cells) == width]
        except csv.Error:  # reported when the rows are read
            rows = []
    marks = decimal_marks(rows, file.separator, file.format.decimal)
    return replace(marks, missing=frozenset(file.format.missing))


def _too_many(file: TableFile, line: int, cells: int, columns: int) -> str:
    return (
        f"{file}, line {line} has {cells} cells, but there are {columns} columns; "
        f"put texts with {SEPARATORS.get(file.separator, (file.separator, ''))[0]} in quotes."
    )  # fmt: skip


def _csv_block(rows: list[list[str]], names: dict[int, str], wrong: dict[int, str], marks: DecimalMarks) -> RowBlock:
    """Cells by columns; an empty one is None."""
    columns = list(zip(*rows, strict=False))  # a row with too many cells is a wrong one
    return RowBlock(
        count=len(rows),
        columns={name: marks.cells(k, columns[k]) for k, name in names.items()},
        wrong=wrong,
    )


# ---------------------------------------------------------------------- jsonl


def _jsonl_blocks(file: TableFile, size: int, columns: Collection[str] | None) -> Iterator[RowBlock]:
    rows: list[dict[str, Any]] = []
    wrong: dict[int, str] = {}
    with file.open_text() as lines:
        for number, line in enumerate(_lines(lines, file), 1):
            if line.isspace():
                continue
            row, why = _json_row(line)
            if why:
                wrong[len(rows)] = f"{file}, line {number} {why}"
            rows.append(row)
            if len(rows) == size:
                yield _jsonl_block(rows, columns, wrong)
                rows, wrong = [], {}
    if rows:
        yield _jsonl_block(rows, columns, wrong)


def _json_row(line: str) -> tuple[dict[str, Any], str]:
    """The row of a line, or why it is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, f"is not JSON: {error}."
    return (row, "") if isinstance(row, dict) else ({}, "must be a JSON object of names and values.")


def _jsonl_block(rows: list[dict[str, Any]], columns: Collection[str] | None, wrong: dict[int, str]) -> RowBlock:
    if columns is not None:
        rows = [{name: row[name] for name in columns if name in row} for row in rows]
    return RowBlock(count=len(rows), rows=rows, wrong=wrong)


# ---------------------------------------------------------------------- sheets, parquet


def _sheet_blocks(file: TableFile, size: int, columns: Collection[str] | None) -> Iterator[RowBlock]:
    with file.open() as opened:
        yield from sheet_blocks(opened, str(file), size, columns)


def parquet_schema(file: TableFile) -> Any:
    """The arrow schema of a parquet file."""
    need_pyarrow("Reading a parquet file")
    import pyarrow.parquet as pq

    with file.open() as opened, _arrow(file):
        schema = pq.read_schema(opened)
        _check_twice(schema.names, file)
        return schema


def parquet_count(file: TableFile) -> int:
    """The rows of a parquet file."""
    import pyarrow.parquet as pq

    with _readable(file), file.open() as opened, _arrow(file):
        return int(pq.read_metadata(opened).num_rows)


def _parquet_blocks(file: TableFile, size: int, columns: Collection[str] | None) -> Iterator[RowBlock]:
    import pyarrow.parquet as pq

    names = [name for name in parquet_schema(file).names if columns is None or name in columns]
    with file.open() as opened, _arrow(file):
        parquet = pq.ParquetFile(opened)
        for batch in parquet.iter_batches(max(size, ROWS_AT_A_TIME // size * size), columns=names, use_threads=False):
            columns = {name: _values(batch.column(k)) for k, name in enumerate(batch.schema.names)}
            yield from RowBlock(count=batch.num_rows, columns=columns).parts(size)


def _values(array: Any) -> Any:
    """Numbers as an array, the rest as a list of Python's values."""
    import pyarrow as pa

    number = pa.types.is_integer(array.type) or pa.types.is_float64(array.type)
    return array.to_numpy() if number and not array.null_count else array.to_pylist()


@contextmanager
def _arrow(file: TableFile) -> Iterator[None]:
    try:
        yield
    except (FileError, GeneratorExit):
        raise
    except Exception as error:  # a damaged file makes pyarrow raise almost anything, at any depth
        words = " ".join(str(error).split())
        raise FileError(f"{file} is not a parquet file, or is damaged ({words}).") from error
