"""Pullback of a rule: a rule about rows x, stated about other rows u by a map x = f(u)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.parts import Part, UnrolledColumns
from ifonly.problem.rule import RowRule, rows_allowed
from ifonly.schema import Schema

Floats = NDArray[np.float64]
T = TypeVar("T")


class RowMap(Protocol):
    """From rows that are searched to rows of `rows_schema`."""

    @property
    def rows_schema(self) -> Schema: ...

    def rows(self, points: Floats) -> Floats: ...

    def row(self, point: Floats, role: str) -> Floats: ...

    def parts_of(self, rule: RowRule, columns: UnrolledColumns) -> Sequence[Part]:
        """The parts of a rule about rows of `rows_schema`, over the columns that are searched."""


@dataclass(frozen=True, eq=False)
class ComposedRule:
    """A rule about rows of a map's `rows_schema`, as one about the rows that are searched."""

    rule: RowRule
    map: RowMap

    @property
    def smooth(self) -> bool:
        """May its parts have smooth activations?"""
        return bool(getattr(self.map, "smooth", False) or getattr(self.rule, "smooth", False))

    @property
    def derives(self) -> str:
        return getattr(self.rule, "derives", "")

    def check(self, schema: Schema) -> None:
        self.rule.check(self.map.rows_schema)

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        old = self.map.row(before, "before")
        new = old if after is before else self.map.row(after, "after")
        return self.rule.allows_row(self.map.rows_schema, old, new)

    def allows_rows(self, schema: Schema, before: Floats, after: Floats) -> NDArray[np.bool_]:
        return rows_allowed(self.rule, self.map.rows_schema, self.map.rows(before), self.map.rows(after))

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return self.map.parts_of(self.rule, columns)

    def describe(self) -> str:
        return self.rule.describe()


def last_of(owner: Any, role: str, point: Floats, make: Callable[[], T]) -> T:
    """What is made of a point; the last of a role (before, after) is kept, since each of several rules judges it."""
    kept: tuple[bytes, T] | None = owner.__dict__.get(f"_last_{role}")
    own = point.tobytes()
    if kept is None or kept[0] != own:
        kept = (own, make())
        owner.__dict__[f"_last_{role}"] = kept
    return kept[1]
