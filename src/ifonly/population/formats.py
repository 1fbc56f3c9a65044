"""Writers of records: csv, jsonl and parquet. A file that is written in pieces is the same as one written at once.

CSV injection: a spreadsheet takes a csv cell that begins with =, +, - or @ for a formula. `escape_formulas` puts a
quote before such a text, in cells and in the header; `formula_unescaped` takes it away again.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ifonly.printing import escaped, json_text
from ifonly.results.records import Kind

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with, also in full width; a tab or a carriage return may stand before it."""
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)


def is_formula(text: str) -> bool:
    """Does a spreadsheet take this text for a formula? (Not for a number: -5 and +3.2 are those.)"""
    return text.startswith(FORMULA_SIGNS) and not _NUMBER.fullmatch(text)


def formula_escaped(text: str) -> str:
    """The text with a quote before it where it is a formula (or would be read back as one that was escaped)."""
    quoted = text.startswith("'") and text.lstrip("'").startswith(FORMULA_SIGNS)
    return f"'{text}" if quoted or is_formula(text) else text


def formula_unescaped(cell: str) -> str:
    """The text of which `formula_escaped` has made the cell."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA_SIGNS) else cell


def encoded(
    suffix: str, columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind], *, escape_formulas: bool = False
) -> bytes:
    """Encoded records, without the header of a file."""
    if suffix == ".csv":
        return _csv(columns, kinds, escape_formulas)
    return _jsonl(columns, kinds) if suffix == ".jsonl" else _arrow(columns, kinds)


class RecordWriter(Protocol):
    """A file that is being written."""

    def add(self, body: bytes) -> None:
        """Write encoded records."""

    def add_file(self, part: Path) -> None:
        """Write all records of a finished file."""

    def close(self) -> None:
        """Write what is left."""


def open_writer(path: Path, kinds: Mapping[str, Kind], *, escape_formulas: bool = False) -> RecordWriter:
    """The writer of a new file; its header is written."""
    if path.suffix == ".parquet":
        return _ParquetWriter(path, kinds)
    return _TextWriter(path, header(path.suffix, kinds, escape_formulas))


def new_file(path: Path) -> BinaryIO:
    """A new file in the place of whatever has its name: a link that is there is removed, not followed."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def header(suffix: str, kinds: Mapping[str, Kind], escape_formulas: bool) -> bytes:
    """The header of a text file: the names of csv columns."""
    names = {name: [name] for name in kinds}
    return _csv(names, dict.fromkeys(kinds, "text"), escape_formulas) if suffix == ".csv" else b""


def concatenate(
    target: Path, parts: Iterable[Path], kinds: Mapping[str, Kind], *, escape_formulas: bool = False
) -> None:
    """Write the records of several files into one, in bounded memory."""
    writer = open_writer(target, kinds, escape_formulas=escape_formulas)
    try:
        for part in parts:
            writer.add_file(part)
    finally:
        writer.close()


# ---------------------------------------------------------------------- text


class _TextWriter:
    def __init__(self, path: Path, first: bytes) -> None:
        self._file: BinaryIO = new_file(path)
        self._header = first
        self.add(first)

    def add(self, body: bytes) -> None:
        self._file.write(body)

    def add_file(self, part: Path) -> None:
        with part.open("rb") as file:
            file.seek(len(self._header))
            while some := file.read(1 << 20):
                self._file.write(some)

    def close(self) -> None:
        self._file.close()


def _csv(columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind], escape_formulas: bool) -> bytes:
    text = io.StringIO(newline="")
    cells = [_cells(columns[name], kind) for name, kind in kinds.items()]
    if escape_formulas:
        cells = [[formula_escaped(one) if isinstance(one, str) else one for one in column] for column in cells]
    csv.writer(text, lineterminator="\n").writerows(zip(*cells, strict=True))
    return text.getvalue().encode("utf-8")


def _cells(values: Sequence[Any], kind: Kind) -> Sequence[Any]:
    """A column as it is written to csv or, if it has texts, to parquet."""
    match kind:
        case "text":
            return _each(values, as_text)
        case "numbers":
            return [json_text(value) if isinstance(value, list) else value for value in values]
    return values


def _jsonl(columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind]) -> bytes:
    line = "{" + ", ".join(f"{json_text(name).replace('%', '%%')}: %s" for name in kinds) + "}\n"
    texts = [_json(columns[name], kind) for name, kind in kinds.items()]
    return "".join(map(line.__mod__, zip(*texts, strict=True))).encode("utf-8")


def _json(values: Sequence[Any], kind: Kind) -> Sequence[str]:
    match kind:
        case "number":
            return list(map(repr, values)) if _all_finite(values) else list(map(_number, values))
        case "integer":
            return ["null" if value is None else str(value) for value in values]
        case "nested":
            return ["null" if value is None else value for value in values]
    whole = "".join(values) if all(type(value) is str for value in values) else "\n"
    if whole.isprintable() and '"' not in whole and "\\" not in whole:
        return [f'"{value}"' for value in values]
    return _each(values, json_text)


def _all_finite(values: Sequence[Any]) -> bool:
    return None not in values and all(map(math.isfinite, values))


def _number(value: float | None) -> str:
    return "null" if value is None or not math.isfinite(value) else repr(value)


def _each(values: Sequence[Any], convert: Callable[[Any], Any]) -> list[Any]:
    """Each value converted; equal texts once."""
    known: dict[str, Any] = {}
    result = []
    for value in values:
        if type(value) is not str:
            result.append(convert(value))
            continue
        text = known.get(value)
        if text is None:
            text = known[value] = convert(value)
        result.append(text)
    return result


def as_text(value: Any) -> str | None:
    """A value of a column of texts."""
    return None if value is None else escaped(value) if isinstance(value, str) else json_text(value)


def kept_column(values: Sequence[Any], kind: Kind) -> list[Any]:
    """A column of the table that is written beside the records: numbers as numbers, the rest as plain data."""
    if kind == "text":
        return [value if value is None or type(value) is str else _plain(value) for value in values]
    return [None if value is None or value != value else value for value in values]


def _plain(value: Any) -> Any:
    """Plain data as it is, anything else as Python's own text of it."""
    try:
        json.dumps(value, allow_nan=False)
        return value
    except (TypeError, ValueError, RecursionError):
        if isinstance(value, float) and math.isnan(value):
            return None
    try:
        return str(value)
    except Exception:  # whatever the value's own __str__ raises
        return f"an object of type {type(value).__name__}"


# ---------------------------------------------------------------------- parquet


def _types(kinds: Mapping[str, Kind]) -> Any:
    import pyarrow as pa

    types = {"integer": pa.int64(), "number": pa.float64(), "numbers": pa.list_(pa.float64()),
             "text": pa.string(), "nested": pa.string()}  # fmt: skip
    return pa.schema([(name, types[kind]) for name, kind in kinds.items()])


def _arrow(columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind]) -> bytes:
    import pyarrow as pa

    schema = _types(kinds)
    values = [columns[name] if kind == "numbers" else _cells(columns[name], kind) for name, kind in kinds.items()]
    arrays = [pa.array(many, type=field.type) for many, field in zip(values, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


class _ParquetWriter:
    """Batches are gathered into groups of rows, so that a file of many small ones reads well."""

    ROWS = 65_536

    def __init__(self, path: Path, kinds: Mapping[str, Kind]) -> None:
        import pyarrow.parquet as pq

        self._schema = _types(kinds)
        self._file: BinaryIO = new_file(path)
        self._writer = pq.ParquetWriter(self._file, self._schema)
        self._waiting: list[Any] = []

    def add(self, body: bytes) -> None:
        import pyarrow as pa

        with pa.ipc.open_stream(body) as reader:
            self._put(list(reader))

    def add_file(self, part: Path) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetFile(part) as opened:
            for batch in opened.iter_batches(self.ROWS, use_threads=False):
                self._put([batch])

    def _put(self, batches: list[Any]) -> None:
        self._waiting += batches
        if sum(batch.num_rows for batch in self._waiting) >= self.ROWS:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, schema=self._schema))
            self._waiting = []

    def close(self) -> None:
        try:
            self._write()
            self._writer.close()
        finally:
            self._file.close()
