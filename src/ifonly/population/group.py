"""A group of people: who has recourse, who provably has none, what it costs, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.population.actions import Cover
from ifonly.population.intervals import Interval, median_interval, share_interval
from ifonly.population.moves import FlipSet, MoveCount
from ifonly.printing import json_object, json_value

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingConstraint:
    """Constraints that rule recourse out, and for how many of the `asked` people they do."""

    words: str
    count: int
    asked: int

    def to_dict(self) -> dict[str, Any]:
        return json_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDetails:
    """What a group's answers say beside counts and costs, the most frequent first."""

    moves: tuple[MoveCount, ...] = ()
    together: tuple[FlipSet, ...] = ()
    blame: tuple[BlockingConstraint, ...] = ()
    stops: tuple[tuple[str, int], ...] = ()
    """What stopped searches, and for how many people."""
    cover: Cover | None = None
    """A few actions that help most; None without a model to evaluate them, or where nobody has recourse."""

    def to_dict(self) -> dict[str, Any]:
        stops = [{"why": why, "count": count} for why, count in self.stops]
        return json_object(self, moves="changes", stops="open", cover="actions") | {"open": stops}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """People who have something in common. `costs` are the distances of those with recourse, in ascending order."""

    name: str
    unneeded: int
    """Already decided as asked."""
    without: int
    """Proven: no allowed change does it."""
    unknown: int
    """A limit was hit before a row was found."""
    unproven: int
    """Of those with recourse: a row, but not proven to be the nearest."""
    costs: NDArray[np.float64]
    compared: bool = True
    """Is it large enough to be compared with the others?"""
    details: GroupDetails = GroupDetails()
    mean_interval: Interval | None = None
    """Where the mean cost lies, at 95 %: by the bootstrap."""

    @property
    def recourse(self) -> int:
        return len(self.costs)

    @property
    def needing(self) -> int:
        """All who are not decided as asked."""
        return self.recourse + self.without + self.unknown

    @property
    def people(self) -> int:
        return self.needing + self.unneeded

    @property
    def share(self) -> float:
        """Of those who need recourse, how many have it (NaN if none needs it)."""
        return self.recourse / self.needing if self.needing else math.nan

    @property
    def share_interval(self) -> Interval | None:
        """Where that share lies, at 95 %: exact (Clopper and Pearson)."""
        return share_interval(self.recourse, self.needing)

    @property
    def mean(self) -> float:
        return float(np.mean(self.costs)) if len(self.costs) else math.nan

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    @property
    def median_interval(self) -> Interval | None:
        """Where the median cost lies, at 95 %: exact, by order statistics."""
        return median_interval(self.costs)

    def quantile(self, q: float) -> float:
        """The cost that a share q of those with recourse does not exceed (NaN without any)."""
        return float(np.quantile(self.costs, q)) if len(self.costs) else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        counts = ("people", "unneeded", "needing", "recourse", "without", "unknown", "unproven", "compared")
        quantiles = {f"p{round(100 * q)}": json_value(self.quantile(q)) for q in QUANTILES}
        return {
            **json_object(self, ("name", *counts, "share", "mean")),
            **quantiles,
            **json_object(self, ("share_interval", "mean_interval", "median_interval")),
            **self.details.to_dict(),
        }
