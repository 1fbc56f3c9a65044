"""Row sources: files, folders and patterns of files, data frames, dicts of columns, any iterable of rows.

A source knows its columns and the approximate number of its rows, where that is possible. It gives its rows in order,
block by block, and can do so again. It has a fingerprint: of files that of their bytes, of anything else that of the
rows that were read (`Chunk.digest`).
"""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ifonly.errors import FileError, RowError
from ifonly.population.checksums import checksums
from ifonly.population.chunks import ROWS, Chunk, Digest, RowBlock
from ifonly.population.csv_format import CsvFormat
from ifonly.population.files import (
    READ_KINDS,
    SHEET,
    TableFile,
    column_names,
    file_marks,
    parquet_count,
    parquet_schema,
    read_blocks,
    table_file,
    with_format,
)
from ifonly.population.partitions import column_of_folder
from ifonly.population.remote import StagedTable, is_url
from ifonly.printing import shown
from ifonly.results.records import Kind
from ifonly.schema.arguments import path_of
from ifonly.schema.number_text import DecimalMark
from ifonly.schema.tables import check_two_dimensions, frame_columns

MOST_FILES = 100_000
MOST_ENTRIES = 300_000
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)


class RowSource(Protocol):
    """A table whose rows are read as a stream, any number of times."""

    @property
    def description(self) -> str:
        """What messages call it."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Its columns; None where only the rows have names."""

    def estimated_rows(self) -> int | None:
        """The number of rows, exact or approximate, where it is known."""

    def kind(self, name: str) -> Kind:
        """What a column holds."""

    def fingerprint(self) -> list[dict[str, Any]] | None:
        """What the rows are read from, as plain data; None where that is known only from the rows."""

    def blocks(self, columns: Collection[str] | None) -> Iterator[RowBlock]:
        """The rows, at most `ROWS` of them at a time. Once a fingerprint was taken, what is read is what it is of."""

    def check_unchanged(self) -> None:
        """`ChangedFile` where what the rows are read from is not what the fingerprint was taken of."""


def chunks(
    blocks: Iterable[RowBlock], size: Callable[[], int], *, after: int = 0, known: str | None = None
) -> Iterator[Chunk]:
    """Numbered chunks of rows, of the size that `size()` gives at the time, without the first `after` rows.

    `known`: the fingerprint of those, where the rows themselves have one; a chunk then has that of all up to its end.
    """
    first, digest = 0, None if known is None else Digest()
    for block in blocks:
        start = max(after - first, 0)
        if digest is not None and 0 < start <= block.count and digest.upto(block.part(0, start)) != known:
            raise ChangedRows
        while start < block.count:
            end = min(start + size(), block.count)
            so_far = "" if digest is None else digest.upto(block.part(0, end))
            yield Chunk(first=first + start, block=block.part(start, end), digest=so_far)
            start = end
        if digest is not None:
            digest.add(block)
        first += block.count
    if first < after:
        raise ChangedRows


class ChangedRows(Exception):
    """The rows that are skipped are not those that were answered."""


def source_of(table: Any) -> RowSource:
    """The source that a path, a pattern, a frame, a dict of columns or an iterable of rows is."""
    if isinstance(table, TableFiles | FrameRows | LooseRows | FirstRows):
        return table
    if isinstance(table, str | Path):
        files = files_of(table)
        if files.remark:
            warnings.warn(files.remark, UserWarning, stacklevel=4)
        return files
    if isinstance(table, Mapping) or (hasattr(table, "columns") and hasattr(table, "__getitem__")):
        return FrameRows(frame_columns(table))
    check_two_dimensions(table)
    if isinstance(table, bytes) or not isinstance(table, Iterable):
        raise RowError(
            f"A table is a path, a data frame, a dict of columns or an iterable of rows; got {shown(table)}."
        )
    return LooseRows(table)


# ---------------------------------------------------------------------- files


def files_of(given: str | Path, csv_format: CsvFormat | None = None, description: str = "") -> TableFiles:
    """The files that a path names: itself, those in a folder, or those that a pattern such as data/*.csv matches.

    `csv_format`: how csv files are written (with a separator, they are csv files); `description`: what messages call
    them.
    """
    if isinstance(given, str) and is_url(given):
        staged = StagedTable(given)
        return replace(files_of(staged.path, csv_format, description or f"'{given}'"), staged=staged)
    path, root = path_of(given), None
    try:
        if path.is_dir():
            found, root = _tables_in(path), path
        elif _has_wildcards(str(given)) and not path.exists():
            found = [Path(one) for one in sorted(glob.glob(str(given), recursive=True))]  # noqa: PTH207  of any root
            root = Path(*takewhile(lambda part: not _has_wildcards(part), path.parts))
        else:
            found = [path]
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot read the table '{path}': {getattr(error, 'strerror', None) or error}.") from None
    if not found or len(found) > MOST_FILES:
        many = f"more than {MOST_FILES:,}" if found else "no"
        named = f"The directory '{path}' holds" if root == path else f"'{path}' names"
        raise FileError(f"{named} {many} table files ({', '.join(READ_KINDS)}).")
    files = [table_file(one, csv_format, description) for one in found]
    kinds = sorted({one.kind for one in files})
    if len(kinds) > 1:
        raise FileError(f"'{path}' holds files of several kinds ({', '.join(kinds)}); name one, such as *{kinds[0]}.")
    files, remark = with_format(files if root is None else _partitioned(files, root))
    return TableFiles(description=description or f"'{path}'", files=tuple(files), remark=remark)


def _has_wildcards(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _partitioned(files: Sequence[TableFile], root: Path) -> list[TableFile]:
    """With the columns in the names of folders below `root` (Hive partitioning, also of Spark and pandas):
    country=DE/month=10/part.parquet. Whole numbers are numbers where all files have one.
    """
    values = [dict(filter(None, map(column_of_folder, one.path.relative_to(root).parts[:-1]))) for one in files]
    names = dict.fromkeys(name for some in values for name in some)
    whole = {name for name in names if all(_WHOLE.fullmatch(some.get(name) or "") for some in values)}
    typed = [{name: int(text) if name in whole and text else text for name, text in some.items()} for some in values]
    return [replace(one, columns=some) for one, some in zip(files, typed, strict=True)]


def _tables_in(folder: Path) -> list[Path]:
    """The tables of a folder and of those in it. Names that begin with a dot or an underscore are metadata."""
    found, seen = list[Path](), 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        seen += len(folders) + len(names)
        if seen > MOST_ENTRIES:
            many = f"The directory '{folder}' holds more than {MOST_ENTRIES:,} files"
            raise FileError(f"{many}; name the one of the table.")
        found += [Path(place, name) for name in names if name.endswith(READ_KINDS) and not name.startswith((".", "_"))]
    return sorted(one for one in found if one.is_file())


@dataclass(frozen=True)
class TableFiles:
    """Table files of one kind, one after the other; all have the columns of the first."""

    description: str
    files: tuple[TableFile, ...]
    remark: str = ""
    """What was detected about their format and is not the usual."""
    staged: StagedTable | None = field(default=None, repr=False, compare=False)
    """What keeps the copies of files at a URL."""

    @property
    def names(self) -> tuple[str, ...] | None:
        head, *rest = self._current()
        first = column_names(head)
        for file in rest:
            names = column_names(file)
            if names is not None and first is not None and set(names) != set(first):
                other = next(iter(set(names) ^ set(first)))
                raise FileError(f"{file} and {head} do not have the same columns: '{other}' is in one only.")
        return first

    def estimated_rows(self) -> int | None:
        kind = self.files[0].kind
        if kind == ".parquet":
            return sum(map(parquet_count, self._current()))
        if kind == SHEET:
            return None
        lines = sum(file.known.lines for file in self._fingerprinted() if file.known is not None)
        return max(lines - len(self.files) * (kind == ".csv"), 0)

    def kind(self, name: str) -> Kind:
        first, *_ = self._current()
        if name in first.columns:
            return "integer" if isinstance(first.columns[name], int) else "text"
        if first.kind != ".parquet":
            return "text"
        import pyarrow as pa

        found = parquet_schema(first).field(name).type
        if pa.types.is_integer(found) and not pa.types.is_uint64(found):
            return "integer"
        return "number" if pa.types.is_floating(found) else "text"

    @property
    def decimal_mark(self) -> DecimalMark:
        """The decimal mark of the first file."""
        return file_marks(self.files[0]).table

    def fingerprint(self) -> list[dict[str, Any]]:
        files = []
        for file in self._fingerprinted():
            assert file.known is not None
            one = {"file": file.path.name, "bytes": file.known.size, "sha256": file.known.sha256}
            one |= {"columns": dict(file.columns)} if file.columns else {}
            files.append(one | ({"format": written} if (written := file.format.to_dict()) else {}))
        return files

    def _fingerprinted(self) -> tuple[TableFile, ...]:
        """The files with their checksums, taken once."""
        known: tuple[TableFile, ...] | None = self.__dict__.get("_known")
        if known is None:
            known = tuple(replace(file, known=checksums(file.path, file.description)) for file in self.files)
            object.__setattr__(self, "_known", known)
        return known

    def _current(self) -> tuple[TableFile, ...]:
        """The files, with their checksums if these were taken."""
        return self.__dict__.get("_known") or self.files

    def blocks(self, columns: Collection[str] | None) -> Iterator[RowBlock]:
        for file in self._current():
            yield from read_blocks(file, ROWS, columns)

    def check_unchanged(self) -> None:
        for file in self._current():
            if file.known is not None:
                file.known.check()


# ---------------------------------------------------------------------- in memory


class RowsInMemory:
    """Rows that have no fingerprint of their own."""

    description = "the table"

    def fingerprint(self) -> None:
        return None

    def check_unchanged(self) -> None:
        """Nothing to compare them with."""


@dataclass(frozen=True)
class FrameRows(RowsInMemory):
    """A data frame, or a dict of columns."""

    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        sliced = {name: many if _can_be_sliced(many) else list(many) for name, many in self.columns.items()}
        object.__setattr__(self, "columns", sliced)
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            (one, few), *rest = lengths.items()
            other = next(name for name, many in rest if many != few)
            raise RowError(
                f"Column '{other}' has {lengths[other]} values, but column '{one}' has {few}; "
                f"all columns of a table must have the same length.",
                feature=other,
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def estimated_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def kind(self, name: str) -> Kind:
        types = {"i": "integer", "f": "number"}
        kind = getattr(_slice(self.columns[name], 0, 1), "dtype", np.dtype(object)).kind
        return types.get(kind, "text")  # type: ignore[return-value]

    def blocks(self, columns: Collection[str] | None) -> Iterator[RowBlock]:
        for first in range(0, self.estimated_rows(), ROWS):
            last = min(first + ROWS, self.estimated_rows())
            columns = {name: _slice(column, first, last) for name, column in self.columns.items()
                       if columns is None or name in columns}  # fmt: skip
            yield RowBlock(count=last - first, columns=columns)


def _can_be_sliced(column: Any) -> bool:
    return isinstance(column, list | tuple | np.ndarray) or hasattr(column, "to_numpy")


def _slice(column: Any, first: int, last: int) -> Any:
    """Some values of a column, as an array or a list."""
    part = column.iloc[first:last] if hasattr(column, "iloc") else column[first:last]
    return part.to_numpy() if hasattr(part, "to_numpy") else part


@dataclass(frozen=True)
class LooseRows(RowsInMemory):
    """An iterable of rows: mappings, or sequences in the order of the features."""

    rows: Iterable[Any]
    names = None

    def estimated_rows(self) -> int | None:
        return len(self.rows) if isinstance(self.rows, Sequence | np.ndarray) else None

    def kind(self, name: str) -> Kind:
        return "text"

    def blocks(self, columns: Collection[str] | None) -> Iterator[RowBlock]:
        rows = iter(self.rows)
        while some := list(islice(rows, ROWS)):
            yield RowBlock(count=len(some), rows=[_plain(row, columns) for row in some])


def _plain(row: Any, columns: Collection[str] | None) -> Any:
    """A row as it can be sent: of a mapping, only these columns."""
    if hasattr(row, "to_dict") and not isinstance(row, Mapping):
        row = row.to_dict()
    if isinstance(row, Mapping):
        return {name: value for name, value in row.items() if columns is None or name in columns}
    return row


@dataclass(frozen=True)
class FirstRows:
    """Only the first rows of a source."""

    source: RowSource
    most: int

    @property
    def description(self) -> str:
        return self.source.description

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.source.names

    def estimated_rows(self) -> int:
        whole = self.source.estimated_rows()
        return self.most if whole is None else min(whole, self.most)

    def kind(self, name: str) -> Kind:
        return self.source.kind(name)

    def fingerprint(self) -> list[dict[str, Any]] | None:
        whole = self.source.fingerprint()
        return None if whole is None else [*whole, {"rows": self.most}]

    def blocks(self, columns: Collection[str] | None) -> Iterator[RowBlock]:
        left = self.most
        for block in self.source.blocks(columns):
            yield block if block.count <= left else block.part(0, left)
            left -= block.count
            if left <= 0:
                return

    def check_unchanged(self) -> None:
        self.source.check_unchanged()
