"""Rules about actions: what follows has its values and stays in its range, and rules about the row that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.causes.causal_model import value_ends
from ifonly.problem.action_regions import RegionTie
from ifonly.problem.actions import WITHIN, ActionSpace
from ifonly.problem.composed_rule import ComposedRule
from ifonly.problem.elimination import Elimination
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


@dataclass(frozen=True, eq=False)
class FollowingValues:
    """What follows in the rows that are searched, whose derived features may be eliminated."""

    space: ActionSpace
    elimination: Elimination | None

    def completed(self, point: Floats) -> Floats:
        """The row with what follows from its causes, which costs nothing."""
        if self.elimination is None:
            return self.space.completed(point)
        action = self.space.completed(self.elimination.rows(point[None, :])[0])
        return np.asarray(self.elimination.reduced(action[None, :])[0])

    @cached_property
    def ends(self) -> tuple[tuple[int, int, list[int]], ...]:
        """Of each real number that follows: its place among actions, its own and that of its ends where it is
        searched."""
        kept = range(len(self.space.schema)) if self.elimination is None else self.elimination.kept
        at = {g: k for k, g in enumerate(kept)}
        return tuple((g, at[g], [at[end] for end in both]) for g, both in self.space.ends.items())


def as_tied(one: Any) -> tuple[TiedValue, Elimination | None] | None:
    """The tie that a constraint is, also where derived features are eliminated from it."""
    if isinstance(one, TiedValue):
        return one, None
    if isinstance(one, ComposedRule) and isinstance(one.rule, TiedValue) and isinstance(one.map, Elimination):
        return one.rule, one.map
    return None


def in_boxes(constraints: Sequence[Any]) -> tuple[tuple[Any, ...], FollowingValues | None]:
    """The constraints of a question to trees, as they are asked in boxes of cells; and where they are about actions,
    what follows."""
    ties = [found for one in constraints if (found := as_tied(one)) is not None]
    if not ties:
        return tuple(constraints), None
    follow = FollowingValues(ties[0][0].space, ties[0][1])
    ends = follow.space.end_names
    kept = [one for one in constraints if as_tied(one) is None and getattr(one, "feature", None) not in ends]
    boxed = [BetweenEnds(one.space, one.place) if one.place in one.space.boxed else one for one, _ in ties]
    fewer = follow.elimination
    return (*kept, *(one if fewer is None else ComposedRule(one, fewer) for one in boxed)), follow
