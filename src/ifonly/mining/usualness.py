"""How usual a counterfactual is among the rows of a table: invariants that it breaks, pairs of values that never occur
together, and the nearest real row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import QuestionError
from ifonly.mining.invariants import Invariants, invariants
from ifonly.problem import Distance, Rule
from ifonly.problem.rule import rows_allowed
from ifonly.results import Answer, Usualness
from ifonly.schema import Choice, Feature, Integer, Schema, read_points

Floats = NDArray[np.float64]

MAX_VALUES = 64
"""Values of a feature that are looked at in pairs."""
LEAST_EXPECTED = 5.0
"""Rows: a pair of values is remarkable for its absence where so many would have it by chance."""
BLOCK = 2_000_000
"""Distances that are computed at once."""


class ObservedRows:
    """A table of real rows, prepared to be compared with answers. Missing numbers are compared with nothing.

    `found`: the invariants of the table, if they are known; otherwise they are mined when they are first needed.
    """

    def __init__(
        self, table: Any, schema: Schema, *, distance: Distance | None = None, found: Invariants | None = None
    ) -> None:
        self.schema, self.table = schema, table
        self.points = read_points(schema, table)
        if not len(self.points):
            raise QuestionError("The table has no rows, so nothing can be compared with it.")
        self.distance = Distance() if distance is None else distance
        self._found = found
        self._pairs: dict[tuple[int, int], NDArray[np.int64]] = {}

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """What all rows obey."""
        found = invariants(self.table, self.schema) if self._found is None else self._found
        return tuple(Rule(text) for one in found if not one.exceptions for text in one.rules)

    def usualness(self, answer: Answer) -> Usualness | None:
        """How usual the counterfactual of an answer is; None without one."""
        if answer.counterfactual is None:
            return None
        point = self.schema.read(dict(answer.counterfactual))
        row, distance = self._nearest(point)
        return Usualness(
            nearest_row=row,
            nearest_distance=distance,
            breaks=tuple(rule.describe() for rule in self.rules if not rule.allows_row(self.schema, point, point)),
            unseen=tuple(self._unseen(point, {change.feature for change in answer.changes})),
        )

    def impossible(self, answers: Iterable[Answer]) -> int:
        """How many answers have a counterfactual that breaks what all rows obey."""
        rows = [self.schema.read(dict(a.counterfactual)) for a in answers if a.counterfactual is not None]
        if not rows or not self.rules:
            return 0
        points = np.array(rows)
        kept = np.all([rows_allowed(rule, self.schema, points, points) for rule in self.rules], axis=0)
        return int((~kept).sum())

    def _nearest(self, point: Floats) -> tuple[int, float]:
        measure, best, least = self.distance.on(self.schema), 0, np.inf
        step = max(1, BLOCK // len(self.schema))
        for start in range(0, len(self.points), step):
            distances = measure.between(point, self.points[start : start + step])
            distances = np.where(np.isnan(distances), np.inf, distances)
            place = int(distances.argmin())
            if distances[place] < least:
                best, least = start + place, float(distances[place])
        return best, float(least)

    def _unseen(self, point: Floats, changed: set[str]) -> Iterator[str]:
        """Pairs of values that are frequent, and never together."""
        finite = [g for g, feature in enumerate(self.schema.features) if _count(feature) <= MAX_VALUES]
        for g, h in combinations(finite, 2):
            if not changed & {self.schema.names[g], self.schema.names[h]}:
                continue
            counts = self._counted(g, h)
            i, j = (self._code(k, point[k : k + 1])[0] for k in (g, h))
            expected = counts[i].sum() * counts[:, j].sum() / len(self.points)
            if counts[i, j] == 0 and expected >= LEAST_EXPECTED:
                yield f"{self._words(g, point)} and {self._words(h, point)}"

    def _counted(self, g: int, h: int) -> NDArray[np.int64]:
        """(value of g, value of h): rows that have both."""
        if (g, h) not in self._pairs:
            table = np.zeros((_count(self.schema.features[g]), _count(self.schema.features[h])), dtype=np.int64)
            known = ~np.isnan(self.points[:, [g, h]]).any(axis=1)
            np.add.at(table, (self._code(g, self.points[known, g]), self._code(h, self.points[known, h])), 1)
            self._pairs[g, h] = table
        return self._pairs[g, h]

    def _code(self, g: int, column: Floats) -> NDArray[np.intp]:
        feature = self.schema.features[g]
        if isinstance(feature, Integer):
            return np.rint((column - feature.lower) / feature.step).astype(np.intp)
        return column.astype(np.intp)

    def _words(self, g: int, point: Floats) -> str:
        feature = self.schema.features[g]
        return f"{feature.name} = {feature.value(float(point[g]))}"


def _count(feature: Feature) -> int:
    """How many values a feature has; more than are looked at for real numbers."""
    if isinstance(feature, Choice):
        return len(feature.options)
    return round(feature.width / feature.step) + 1 if isinstance(feature, Integer) else MAX_VALUES + 1
