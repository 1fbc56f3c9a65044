"""Struct of arrays: facts about many people by columns, with an entry per person in each column.

A column is an array, a list, or columns itself; what few people have is a table by their number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Self, TypeVar, overload

import numpy as np

One = TypeVar("One")


class ByColumns(Sequence[One]):
    """A dataclass whose fields are columns. As a sequence, it gives row views: each is made when it is looked at."""

    __slots__ = ()

    @abstractmethod
    def one(self, i: int) -> One:
        """What is known of person i."""

    @overload
    def __getitem__(self, index: int) -> One: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> One | Self:
        chosen = range(len(self))[index]
        return self.take(chosen) if isinstance(chosen, range) else self.one(chosen)

    def __iter__(self) -> Iterator[One]:
        return map(self.one, range(len(self)))

    def take(self, members: Sequence[int]) -> Self:
        """What is known of these people, in this order."""
        return type(self)(**{name: _take(column, members) for name, column in self._columns()})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """What is known of some people, then of others."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *map(len, parts[:-1])]).tolist()
        each = zip(*(part._columns() for part in parts), strict=True)
        return cls(**{same[0][0]: _joined([column for _, column in same], starts) for same in each})

    def _columns(self) -> Iterator[tuple[str, Any]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]


def _take(column: Any, members: Sequence[int]) -> Any:
    if isinstance(column, Mapping):
        return {k: column[i] for k, i in enumerate(members) if i in column} if column else {}
    if isinstance(column, list):
        return [column[i] for i in members]
    return column.take(members) if isinstance(column, ByColumns) else column[list(members)]


def _joined(columns: Sequence[Any], starts: Sequence[int]) -> Any:
    first = columns[0]
    if isinstance(first, Mapping):
        return {start + i: value for table, start in zip(columns, starts, strict=True) for i, value in table.items()}
    if isinstance(first, list):
        return [value for column in columns for value in column]
    return type(first).joined(columns) if isinstance(first, ByColumns) else np.concatenate(columns)
