"""Table files, block by block: csv, jsonl and parquet; memory does not grow with the number of rows.

A line that cannot be a row (too many cells, no JSON) is a wrong row, and the rest is read; what makes the rest
unreadable too is a FileError.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from ifonly.errors import FileError, MissingExtra
from ifonly.population.chunks import RowBlock
from ifonly.schema.given import path_of

KINDS = (".csv", ".jsonl", ".parquet")
MOST_LINE = 16 * 2**20
"""Characters of one line."""
ROWS_AT_A_TIME = 4096
"""Rows of a parquet file that are taken out of it together."""


def check_kind(path: Path) -> None:
    if path.suffix not in KINDS:
        raise FileError(f"A table file ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}; '{path.name}' does not.")


def need_pyarrow(what: str) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", extra="parquet", needed_for=what)


def check_output(path: str | Path) -> Path:
    """The path, if records can be written there: asked before the work, not after it."""
    path = path_of(path)
    check_kind(path)
    if path.suffix == ".parquet":
        need_pyarrow("Writing a parquet file")
    try:
        folder, there = path.is_dir(), path.parent.is_dir()
    except OSError as error:  # a name that is too long
        raise FileError(f"Cannot write '{path}': {error.strerror or error}.") from None
    if folder or not there:
        why = "it is a folder" if folder else "its folder is not there"
        raise FileError(f"Cannot write '{path}': {why}.")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"Cannot write '{path}': its folder is read-only.")
    return path


def read_blocks(path: Path, size: int, wanted: Collection[str] | None = None) -> Iterator[RowBlock]:
    """The rows of one file, in blocks of `size` (the last one of a stretch may be shorter); only columns `wanted`."""
    reader = {".csv": _csv_blocks, ".jsonl": _jsonl_blocks, ".parquet": _parquet_blocks}[path.suffix]
    with _readable(path):
        yield from reader(path, size, wanted)


def column_names(path: Path) -> tuple[str, ...] | None:
    """The columns of a file; None where only its rows tell."""
    with _readable(path):
        if path.suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as lines:
                return tuple(name for name in _header(csv.reader(_lines(lines, path)), path) if name)
        return tuple(parquet_schema(path).names) if path.suffix == ".parquet" else None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What goes wrong with a file, in a sentence."""
    try:
        yield
    except OSError as error:
        raise FileError(f"Cannot read the table '{path}': {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise FileError(
            f"'{path}' is not UTF-8 text (byte 0x{error.object[error.start]:02x} at position {error.start}); "
            f"save it as UTF-8."
        ) from None


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file, none of them without end."""
    number = 0
    while line := file.readline(MOST_LINE):
        number += 1
        if len(line) == MOST_LINE and not line.endswith("\n"):
            raise FileError(f"'{path}', line {number} is longer than {MOST_LINE // 2**20} Mi characters.")
        yield line


# ---------------------------------------------------------------------- csv


def _header(reader: Any, path: Path) -> list[str]:
    try:
        header = next(reader, None)
    except csv.Error as error:
        raise FileError(f"'{path}', line {reader.line_num}: {error}.") from None
    if header is None:
        raise FileError(f"'{path}' is empty; its first line must name the columns.")
    _check_twice(header, path)
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise FileError(f"'{path}' is not separated by commas, but by {'semicolons' if ';' in header[0] else 'tabs'}.")
    return list(header)


def _check_twice(header: Sequence[str], path: Path) -> None:
    twice = next((name for name, times in Counter(header).items() if name and times > 1), None)
    if twice is not None:
        raise FileError(f"'{path}' has two columns called '{twice}'.")


def _csv_blocks(path: Path, size: int, wanted: Collection[str] | None) -> Iterator[RowBlock]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(_lines(lines, path))
        header = _header(reader, path)
        names = {k: name for k, name in enumerate(header) if name and (wanted is None or name in wanted)}
        rows: list[list[str]] = []
        wrong: dict[int, str] = {}
        try:
            for cells in reader:
                if len(cells) != len(header):
                    if not cells:
                        continue
                    if len(cells) > len(header):
                        wrong[len(rows)] = _too_many(path, reader.line_num, len(cells), len(header))
                    cells = [*cells, *[""] * (len(header) - len(cells))]
                rows.append(cells)
                if len(rows) == size:
                    yield _csv_block(rows, names, wrong)
                    rows, wrong = [], {}
        except csv.Error as error:
            raise FileError(f"'{path}', line {reader.line_num}: {error}.") from None
        if rows:
            yield _csv_block(rows, names, wrong)


def _too_many(path: Path, line: int, cells: int, columns: int) -> str:
    return (
        f"'{path}', line {line} has {cells} cells, but there are {columns} columns; "
        f"put texts with commas in quotes."
    )  # fmt: skip


def _csv_block(rows: list[list[str]], names: dict[int, str], wrong: dict[int, str]) -> RowBlock:
    """Cells by columns; an empty one is None."""
    columns = list(zip(*rows, strict=False))  # a row with too many cells is a wrong one
    return RowBlock(
        count=len(rows),
        columns={name: [cell or None for cell in columns[k]] for k, name in names.items()},
        wrong=wrong,
    )


# ---------------------------------------------------------------------- jsonl


def _jsonl_blocks(path: Path, size: int, wanted: Collection[str] | None) -> Iterator[RowBlock]:
    rows: list[dict[str, Any]] = []
    wrong: dict[int, str] = {}
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(_lines(lines, path), 1):
            if line.isspace():
                continue
            row, why = _json_row(line)
            if why:
                wrong[len(rows)] = f"'{path}', line {number} {why}"
            rows.append(row)
            if len(rows) == size:
                yield _jsonl_block(rows, wanted, wrong)
                rows, wrong = [], {}
    if rows:
        yield _jsonl_block(rows, wanted, wrong)


def _json_row(line: str) -> tuple[dict[str, Any], str]:
    """The row of a line, or why it is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, f"is not JSON: {error}."
    return (row, "") if isinstance(row, dict) else ({}, "must be a JSON object of names and values.")


def _jsonl_block(rows: list[dict[str, Any]], wanted: Collection[str] | None, wrong: dict[int, str]) -> RowBlock:
    if wanted is not None:
        rows = [{name: row[name] for name in wanted if name in row} for row in rows]
    return RowBlock(count=len(rows), rows=rows, wrong=wrong)


# ---------------------------------------------------------------------- parquet


def parquet_schema(path: Path) -> Any:
    """The arrow schema of a parquet file."""
    need_pyarrow("Reading a parquet file")
    import pyarrow.parquet as pq

    with path.open("rb") as file, _arrow(path):
        schema = pq.read_schema(file)
        _check_twice(schema.names, path)
        return schema


def parquet_count(path: Path) -> int:
    """The rows of a parquet file."""
    import pyarrow.parquet as pq

    with _readable(path), path.open("rb") as file, _arrow(path):
        return int(pq.read_metadata(file).num_rows)


def _parquet_blocks(path: Path, size: int, wanted: Collection[str] | None) -> Iterator[RowBlock]:
    import pyarrow.parquet as pq

    names = [name for name in parquet_schema(path).names if wanted is None or name in wanted]
    with path.open("rb") as file, _arrow(path):
        opened = pq.ParquetFile(file)
        for batch in opened.iter_batches(max(size, ROWS_AT_A_TIME // size * size), columns=names, use_threads=False):
            columns = {name: _values(batch.column(k)) for k, name in enumerate(batch.schema.names)}
            yield from RowBlock(count=batch.num_rows, columns=columns).parts(size)


def _values(array: Any) -> Any:
    """Numbers as an array, the rest as a list of Python's values."""
    import pyarrow as pa

    number = pa.types.is_integer(array.type) or pa.types.is_float64(array.type)
    return array.to_numpy() if number and not array.null_count else array.to_pylist()


@contextmanager
def _arrow(path: Path) -> Iterator[None]:
    try:
        yield
    except (FileError, GeneratorExit):
        raise
    except Exception as error:  # a damaged file makes pyarrow raise almost anything, at any depth
        words = " ".join(str(error).split())
        raise FileError(f"'{path}' is not a parquet file, or is damaged ({words}).") from error
