"""Chunks of rows: what is read, sent to a worker and answered together.

Rows are counted from 0 over the whole table. The records of a table do not depend on how it is cut into chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

ROWS = 256
"""Rows of a chunk: enough that sending it costs nothing in comparison, few enough to be answered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlock:
    """Rows as a reader gives them: columns side by side, or rows where they do not all have the same names.

    `wrong` says why rows could not be read; what the block has in their place means nothing.
    """

    count: int
    columns: Mapping[str, Sequence[Any]] | None = None
    rows: Sequence[Any] = ()
    wrong: Mapping[int, str] = field(default_factory=dict)

    def column(self, name: str) -> list[Any]:
        """The values of a column, None where a row has none."""
        if self.columns is not None:
            values = self.columns[name]
            return values.tolist() if isinstance(values, np.ndarray) else list(values)
        return [row.get(name) if isinstance(row, Mapping) else None for row in self.rows]

    def as_rows(self) -> list[dict[str, Any]]:
        """One dict per row."""
        if self.columns is None:
            return [dict(row) for row in self.rows]
        names = list(self.columns)
        columns = [self.column(name) for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def with_columns(self, values: Mapping[str, Any]) -> RowBlock:
        """With more columns, each with one value for all rows; they replace columns of the same name."""
        if not values:
            return self
        if self.columns is None:
            return replace(self, rows=[{**row, **values} for row in self.rows])
        more = {name: [value] * self.count for name, value in values.items()}
        return replace(self, columns={**self.columns, **more})

    def table(self) -> Any:
        """What `schema.read_points` reads."""
        return self.rows if self.columns is None else self.columns

    def part(self, first: int, last: int) -> RowBlock:
        """The rows from `first` up to, but not including, `last`."""
        columns = None if self.columns is None else {name: many[first:last] for name, many in self.columns.items()}
        wrong = {i - first: why for i, why in self.wrong.items() if first <= i < last}
        return RowBlock(count=last - first, columns=columns, rows=self.rows[first:last], wrong=wrong)

    def parts(self, size: int) -> Iterator[RowBlock]:
        """Blocks of `size` rows; the last one may be shorter."""
        if self.count <= size:
            yield self
            return
        for first in range(0, self.count, size):
            yield self.part(first, min(first + size, self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A block with the number of its first row. `digest` is the fingerprint of all rows up to its end, if they are
    in no file."""

    first: int
    block: RowBlock
    digest: str = ""

    @property
    def end(self) -> int:
        return self.first + self.block.count

    def singles(self) -> list[Chunk]:
        """Each row alone."""
        return [Chunk(first=self.first + i, block=self.block.part(i, i + 1)) for i in range(self.block.count)]


class Digest:
    """A running fingerprint of the rows of a stream, block by block."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, block: RowBlock) -> str:
        """The fingerprint of all rows up to the end of this block."""
        self._hash = self._with(block)
        return self._hash.hexdigest()

    def upto(self, block: RowBlock) -> str:
        """The same, if the block is the beginning of the next one."""
        return self._with(block).hexdigest()

    def _with(self, block: RowBlock) -> Any:
        copy = self._hash.copy()
        if block.columns is None:
            copy.update(_text(block.rows))
        else:
            for name, values in block.columns.items():
                copy.update(_text(name))
                copy.update(_bytes(values))
        return copy


def _bytes(values: Any) -> bytes:
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        return values.tobytes()
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return _text(listed)


def _text(values: Any) -> bytes:
    try:
        return repr(values).encode("utf-8", "backslashreplace")
    except Exception:  # a hostile __repr__: such a row has no answer anyway
        return b"?"
