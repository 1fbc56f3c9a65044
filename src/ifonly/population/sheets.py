"""Rows of an Excel file (.xlsx): its first sheet, whose first row names the columns. Values, not formulas, are read."""

from __future__ import annotations

import datetime
import importlib.util
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO, Any

from ifonly.errors import FileError, MissingExtra
from ifonly.population.chunks import RowBlock

MOST_BYTES = 1 << 30
"""Unpacked, of all that an Excel file holds."""
MOST_PACKED = 200
"""Times that the content may be larger than the file."""


def sheet_columns(file: IO[bytes], name: str) -> list[str]:
    """The columns of a sheet."""
    with _rows(file, name) as rows:
        return [one for one in _header(rows, name) if one]


def sheet_blocks(file: IO[bytes], name: str, size: int, columns: Collection[str] | None) -> Iterator[RowBlock]:
    """The rows of a sheet, without empty ones."""
    with _rows(file, name) as rows:
        header = _header(rows, name)
        wanted = {k: one for k, one in enumerate(header) if one and (columns is None or one in columns)}
        some: list[tuple[Any, ...]] = []
        for cells in rows:
            if all(cell is None for cell in cells):
                continue
            some.append(tuple(_value(cell) for cell in cells[: len(header)]) + (None,) * (len(header) - len(cells)))
            if len(some) == size:
                yield _block(some, wanted)
                some = []
        if some:
            yield _block(some, wanted)


def _block(rows: list[tuple[Any, ...]], wanted: dict[int, str]) -> RowBlock:
    return RowBlock(count=len(rows), columns={name: [row[k] for row in rows] for k, name in wanted.items()})


def _header(rows: Iterator[tuple[Any, ...]], name: str) -> list[str]:
    cells = list(next(rows, ()))
    while cells and cells[-1] is None:
        cells.pop()
    header = ["" if cell is None else str(_value(cell)).strip() for cell in cells]
    if not any(header):
        raise FileError(f"{name} is empty; the first row of its first sheet must name the columns.")
    twice = next((one for one in header if one and header.count(one) > 1), None)
    if twice is not None:
        raise FileError(f"{name} has two columns called '{twice}'.")
    return header


def _value(cell: Any) -> Any:
    """A cell as plain data: dates as ISO texts, an empty text as None."""
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        cell = cell.date()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return None if cell == "" else cell if isinstance(cell, str | bool | int | float | None) else str(cell)


@contextmanager
def _rows(file: IO[bytes], name: str) -> Iterator[Iterator[tuple[Any, ...]]]:
    if importlib.util.find_spec("openpyxl") is None:
        raise MissingExtra("openpyxl", extra="excel", needed_for="Reading an Excel file")
    from openpyxl import load_workbook

    try:
        _check_size(file, name)
        book = load_workbook(file, read_only=True, data_only=True)
        try:
            if not book.worksheets:
                raise FileError(f"{name} has no sheet with cells.")
            yield iter(book.worksheets[0].iter_rows(values_only=True))
        finally:
            book.close()
    except (FileError, GeneratorExit, MemoryError):
        raise
    except Exception as error:  # a damaged file makes openpyxl raise almost anything, at any depth
        words = " ".join(str(error).split())[:200]
        raise FileError(f"{name} is not an Excel file (.xlsx), or is damaged ({words}).") from error


def _check_size(file: IO[bytes], name: str) -> None:
    """Refuse a file that unpacks to far more than it is."""
    with zipfile.ZipFile(file) as packed:
        whole, own = (sum(getattr(one, size) for one in packed.infolist()) for size in ("file_size", "compress_size"))
    if whole > MOST_BYTES or whole > MOST_PACKED * max(own, 1 << 16):
        raise FileError(f"{name} unpacks to {whole >> 20:,} MiB, which is more than is read; write the rows as .csv.")
    file.seek(0)
