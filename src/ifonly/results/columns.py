"""What is known of many people, by columns: an entry per person in each; what few have is in a table by number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Self, TypeVar, overload

One = TypeVar("One")


class ByColumns(Sequence[One]):
    """A sequence whose entries are made when somebody looks at one."""

    __slots__ = ()

    @abstractmethod
    def one(self, i: int) -> One:
        """What is known of person i."""

    @abstractmethod
    def take(self, members: Sequence[int]) -> Self:
        """What is known of these people, in this order."""

    @overload
    def __getitem__(self, index: int) -> One: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> One | Self:
        chosen = range(len(self))[index]
        return self.take(chosen) if isinstance(chosen, range) else self.one(chosen)

    def __iter__(self) -> Iterator[One]:
        return map(self.one, range(len(self)))


def taken(table: Mapping[int, One], members: Sequence[int]) -> dict[int, One]:
    """What these people have in a table by number, by their new numbers."""
    return {k: table[i] for k, i in enumerate(members) if i in table} if table else {}


def shifted(tables: Sequence[Mapping[int, One]], starts: Sequence[int]) -> dict[int, One]:
    """One table by number from several, of which each begins to count at its start."""
    return {start + i: value for table, start in zip(tables, starts, strict=True) for i, value in table.items()}
