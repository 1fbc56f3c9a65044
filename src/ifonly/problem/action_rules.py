"""Rules about actions: what follows has its values and stays in its range, and rules about the row that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.causes.causal_model import value_ends
from ifonly.problem.action_regions import RegionTie
from ifonly.problem.actions import WITHIN, ActionSpace
from ifonly.problem.parts import Part, UnrolledColumns
from ifonly.schema import Schema

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FollowingRule:
    """A rule about actions and the rows that follow from them: each says of which it holds (`_of`)."""

    space: ActionSpace

    @property
    def smooth(self) -> bool:
        return self.space.smooth

    def check(self, schema: Schema) -> None:
        """It fits the schema that it was made with."""

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        row, inside = self.space.followed_row(after, "after")
        return bool(self._of(after[None, :], row[None, :], inside[None, :])[0])

    def allows_rows(self, schema: Schema, before: Floats, after: Floats) -> Mask:
        return np.asarray(self._of(after, *self.space.followed(after)))

    def _of(self, actions: Floats, rows: Floats, inside: Mask) -> Mask:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class FollowersInRange(FollowingRule):
    """Real numbers that follow stay within their ranges."""

    def _of(self, actions: Floats, rows: Floats, inside: Mask) -> Mask:
        return np.asarray(inside.all(axis=1))

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        space = self.space
        own = UnrolledColumns(space.rows_schema)
        parts = []
        for g in space.following:
            if g in space.unknown:
                continue
            (low, high), slack = value_ends(space.rows_schema.features[g]), WITHIN * space.causes.snaps[g]
            for sign, end in ((1.0, low), (-1.0, high)):
                weight = np.zeros((1, own.width))
                weight[0, own.start[g]] = sign
                parts.append(space.behind(weight, np.array([slack - sign * end])))
        return parts

    def describe(self) -> str:
        return "what follows stays within its range"


@dataclass(frozen=True, eq=False)
class TiedValue(FollowingRule):
    """The unknown of a feature that follows is the value that follows from its causes."""

    place: int

    @property
    def derives(self) -> str:
        return self.space.schema.names[self.place]

    def _of(self, actions: Floats, rows: Floats, inside: Mask) -> Mask:
        return inside[:, self.place] & (rows[:, self.place] == actions[:, self.place])

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return self.space.tie_parts(self.place)

    def describe(self) -> str:
        return f"{self.space.rows_schema.names[self.place]} follows from its causes"


@dataclass(frozen=True, eq=False)
class TiedRegion(FollowingRule):
    """The unknown region of a partition is the one that the causes are in."""

    partition: int

    @property
    def derives(self) -> str:
        return self.space.schema.names[self.space.regions[self.partition]]

    def _of(self, actions: Floats, rows: Floats, inside: Mask) -> Mask:
        return np.asarray(self._tie.of(rows) == actions[:, self.space.regions[self.partition]])

    @property
    def _tie(self) -> RegionTie:
        return self.space.ties[self.partition]

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return self.space.region_parts(self.partition)

    def describe(self) -> str:
        names = self.space.rows_schema.names
        return (
            f"{', '.join(names[p] for p in self._tie.causes.tolist())} are in their region of {names[self._tie.place]}"
        )


@dataclass(frozen=True, eq=False)
class BetweenEnds(FollowingRule):
    """The real number that follows is between two ends: what a box of cells leaves of `TiedValue`."""

    place: int

    def _of(self, actions: Floats, rows: Floats, inside: Mask) -> Mask:
        low, high = actions[:, list(self.space.ends[self.place])].T
        return inside[:, self.place] & (low <= rows[:, self.place]) & (rows[:, self.place] <= high)

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return self.space.tie_parts(self.place)

    def describe(self) -> str:
        return f"{self.space.rows_schema.names[self.place]} is in the box"


def in_boxes(constraints: Sequence[Any]) -> tuple[tuple[Any, ...], ActionSpace | None]:
    """The constraints of a question to trees, as they are asked in boxes of cells; and where they are about actions,
    the rows that follow."""
    ties = [one for one in constraints if isinstance(one, TiedValue)]
    if not ties:
        return tuple(constraints), None
    space = ties[0].space
    kept = [one for one in constraints if one not in ties and getattr(one, "feature", None) not in space.end_names]
    return (*kept, *((BetweenEnds if one.place in space.boxed else TiedValue)(space, one.place) for one in ties)), space
