"""People on their way through the kernels: packed, with results in the kernels' units, and back.

The kernels count changes from the factual in steps or units, and compare costs; under l2 those are squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered
from ifonly.problem import People as Allowed
from ifonly.proof import Claim, Stop
from ifonly.search.kernels.layout import LEAST, MOST, SQUARED, Pack, PackedPeople, Scratch, Tree
from ifonly.search.pack import Errors, pack_people, pack_question, units
from ifonly.search.record import Record
from ifonly.tolerances import Tolerances

END = 1e-15
"""Relative to the size of a domain: what a change may miss its end by."""

Floats = NDArray[np.float64]


@dataclass
class SearchBatch:
    """The people of one call, and their results in the kernels' units."""

    allowed: Allowed
    people: PackedPeople
    lower: Floats
    best: Floats
    """The best point of each person, then its cost."""
    nodes: NDArray[np.int64]
    seconds: Floats
    spent_nodes: NDArray[np.int64]
    spent_seconds: Floats
    """What an earlier pass took of each person's limits."""
    stops: dict[int, Stop] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)

    def add_spent(self, i: int, part: SearchBatch, k: int) -> None:
        """What person i has taken as person k of a further pass."""
        self.nodes[i] += part.nodes[k]
        self.seconds[i] += part.seconds[k]
        if k in part.stops:
            self.stops[i] = part.stops[k]


@dataclass(frozen=True)
class PackedQuestion:
    """A question in the kernels' arrays, and the way between its units and theirs."""

    lowered: Lowered
    pack: Pack
    unit: Floats
    records: bool
    spare: list[tuple[Scratch, Tree]] = field(default_factory=list, compare=False)
    """Buffers that no thread is using."""

    @classmethod
    def of(cls, lowered: Lowered, tolerances: Tolerances, *, records: bool) -> PackedQuestion:
        return cls(lowered, pack_question(lowered, tolerances), units(lowered), records)

    @property
    def squared(self) -> bool:
        return self.pack.norm == SQUARED

    def batch(self, allowed: Allowed, errors: Errors) -> SearchBatch:
        count = len(allowed)
        return SearchBatch(
            allowed=allowed,
            people=pack_people(self.lowered, allowed, errors, self.unit),
            lower=np.zeros(count),
            best=np.full((count, self.lowered.features + 1), math.inf),
            nodes=np.zeros(count, dtype=np.int64),
            seconds=np.zeros(count),
            spent_nodes=np.zeros(count, dtype=np.int64),
            spent_seconds=np.zeros(count),
        )

    def distance(self, cost: Floats) -> Floats:
        """Costs as distances."""
        return np.sqrt(cost) if self.squared else cost

    def cost(self, distance: float) -> float:
        """A distance as a cost."""
        return distance**2 if self.squared else distance

    def points(self, batch: SearchBatch) -> tuple[Floats, NDArray[np.bool_]]:
        """The rows found, in the question's own units, and whether there is one."""
        allowed = batch.allowed
        found = np.isfinite(batch.best[:, -1])
        change = np.where(found[:, None], batch.best[:, :-1], 0.0)
        changed = change != 0.0
        moved = np.where(changed, allowed.factual + change * self.unit, allowed.factual)
        low, high = batch.people.box[:, LEAST], batch.people.box[:, MOST]
        ends = END * np.maximum(np.abs(low), np.abs(high))  # an end of the domain is that end, to the last bit
        moved = np.where(changed & (change >= high - ends), allowed.upper, moved)
        moved = np.where(changed & (change <= low + ends), allowed.lower, moved)
        inside = np.minimum(np.maximum(moved, allowed.lower), allowed.upper)
        return self.lowered.on_steps(allowed.factual, np.where(self.lowered.numeric, inside, change)), found

    def put(self, batch: SearchBatch, i: int, factual: Floats, point: Floats) -> None:
        """Make a row the best one of person i."""
        distance = float(self.lowered.question.measure.between(factual, point))
        batch.best[i, :-1] = np.where(self.lowered.numeric, (point - factual) / self.unit, point)
        batch.best[i, -1] = self.cost(distance)

    def claims(self, batch: SearchBatch) -> list[Claim]:
        points, found = self.points(batch)
        lower = np.maximum(self.distance(batch.lower) * (1.0 - 1e-12) - self.lowered.grid_rounding, 0.0)
        rows = zip(points, found.tolist(), lower.tolist(), batch.nodes.tolist(), batch.seconds.tolist(), strict=True)
        return [
            Claim(
                point=point if good else None,
                lower=low,
                method="search",
                stop=batch.stops.get(i),
                nodes=nodes,
                seconds=seconds,
                record=batch.records.get(i),
            )
            for i, (point, good, low, nodes, seconds) in enumerate(rows)
        ]
