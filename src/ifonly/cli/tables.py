"""Table files: rows from csv, jsonl and parquet; records to the same; files written whole or not at all."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ifonly.errors import FileError, MissingExtra
from ifonly.printing import escaped, json_text
from ifonly.schema.given import path_of
from ifonly.schema.io import replacing

KINDS = (".csv", ".jsonl", ".parquet")

Kind: TypeAlias = Literal["integer", "number", "text", "score", "nested"]
"""What a column of records holds; a score is one number, or one per class."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in the order of the file, each a dict of column names to values (csv: texts; an empty cell is None)."""

    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]

    def column(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]


def read_table(path: str | Path) -> Table:
    """The rows of a table file, by its ending."""
    path = path_of(path)
    _check_kind(path)
    try:
        table = {".csv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}[path.suffix](path)
    except OSError as error:
        raise FileError(f"Cannot read the table '{path}': {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise FileError(
            f"'{path}' is not UTF-8 text (byte 0x{error.object[error.start]:02x} at position {error.start}); "
            f"save it as UTF-8."
        ) from None
    if not table.rows:
        raise FileError(f"'{path}' has no rows.")
    return table


def check_output(path: str | Path) -> Path:
    """The path, if records can be written there: asked before the work, not after it."""
    path = path_of(path)
    _check_kind(path)
    if path.suffix == ".parquet":
        _need_pyarrow("Writing a parquet file")
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


def write_records(path: Path, records: Sequence[dict[str, Any]], columns: Mapping[str, Kind]) -> None:
    """Records by the file's ending. Nested values are JSON text in csv and parquet."""
    writers: dict[str, Callable[[Path, Sequence[dict[str, Any]], Mapping[str, Kind]], None]] = {
        ".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet,
    }  # fmt: skip
    with replacing(path) as temporary:
        writers[path.suffix](temporary, records, columns)


# ---------------------------------------------------------------------- reading


def _read_csv(path: Path) -> Table:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines)
        try:
            header = next(reader, None)
            if header is None:
                raise FileError(f"'{path}' is empty; its first line must name the columns.")
            _check_header(header, path)
            rows = [_csv_row(header, cells, path, reader.line_num) for cells in reader if cells]
        except csv.Error as error:
            raise FileError(f"'{path}', line {reader.line_num}: {error}.") from None
    return Table(tuple(name for name in header if name), rows)


def _check_twice(header: Sequence[str], path: Path) -> None:
    twice = next((name for name, times in Counter(header).items() if name and times > 1), None)
    if twice is not None:
        raise FileError(f"'{path}' has two columns called '{twice}'.")


def _check_header(header: list[str], path: Path) -> None:
    _check_twice(header, path)
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise FileError(f"'{path}' is not separated by commas, but by {'semicolons' if ';' in header[0] else 'tabs'}.")


def _csv_row(header: list[str], cells: list[str], path: Path, line: int) -> dict[str, Any]:
    if len(cells) > len(header):
        raise FileError(
            f"'{path}', line {line} has {len(cells)} cells, but there are {len(header)} columns; "
            f"put texts with commas in quotes."
        )
    cells = cells + [""] * (len(header) - len(cells))
    return {name: cell if cell != "" else None for name, cell in zip(header, cells, strict=True) if name}


def _read_jsonl(path: Path) -> Table:
    columns: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FileError(f"'{path}', line {number} is not JSON: {error}.") from None
            if not isinstance(row, dict):
                raise FileError(f"'{path}', line {number} must be a JSON object of names and values.")
            columns |= dict.fromkeys(row)
            rows.append(row)
    return Table(tuple(columns), rows)


def _read_parquet(path: Path) -> Table:
    _need_pyarrow("Reading a parquet file")
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        try:
            table = pq.read_table(file)
            _check_twice(table.column_names, path)
            return Table(tuple(table.column_names), table.to_pylist())
        except FileError:
            raise
        except Exception as error:  # a damaged file makes pyarrow raise almost anything, at any depth
            words = " ".join(str(error).split())
            raise FileError(f"'{path}' is not a parquet file, or is damaged ({words}).") from error


def _check_kind(path: Path) -> None:
    if path.suffix not in KINDS:
        raise FileError(f"A table file ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}; '{path.name}' does not.")


def _need_pyarrow(what: str) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", extra="parquet", needed_for=what)


# ---------------------------------------------------------------------- writing


def _write_csv(path: Path, records: Sequence[dict[str, Any]], columns: Mapping[str, Kind]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_flat(record[name]) for name in columns] for record in records)


def _write_jsonl(path: Path, records: Sequence[dict[str, Any]], columns: Mapping[str, Kind]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(json_text({name: record[name] for name in columns}) + "\n")


def _write_parquet(path: Path, records: Sequence[dict[str, Any]], columns: Mapping[str, Kind]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = [name for name, kind in columns.items() if kind == "score"]
    many = any(isinstance(record[name], list) for record in records for name in scores)
    types = {
        "integer": pa.int64(), "number": pa.float64(), "text": pa.string(), "nested": pa.string(),
        "score": pa.list_(pa.float64()) if many else pa.float64(),
    }  # fmt: skip
    arrays = {
        name: pa.array([r[name] if kind == "score" else _flat(r[name]) for r in records], type=types[kind])
        for name, kind in columns.items()
    }
    pq.write_table(pa.table(arrays), path)


def _flat(value: Any) -> Any:
    """A value that fits in a cell."""
    if isinstance(value, dict | list):
        return json_text(value)
    return escaped(value) if isinstance(value, str) else value
