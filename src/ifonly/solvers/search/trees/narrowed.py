"""The nearest row of a box under rules, where the clauses of the rules narrow the box to one whose nearest row obeys
all: then it is the nearest, and nothing need be searched."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.costs import People
from ifonly.solvers.search.trees.clauses import RuleClauses
from ifonly.solvers.search.trees.kernels.layout import CellRules
from ifonly.solvers.search.trees.rules import RuledBoxes

Floats = NDArray[np.float64]


class NearestInBox(NamedTuple):
    """The nearest row of a box, none where there is none, and a distance that none is below."""

    point: Floats | None
    lower: float


NO_ROW = NearestInBox(None, math.inf)


class Narrowing:
    """One person's boxes of values under the rules of a question."""

    def __init__(self, rules: RuledBoxes, clauses: RuleClauses, cell_rules: CellRules, kernel: Any) -> None:
        self.rules, self.clauses, self.cell_rules, self.kernel = rules, clauses, cell_rules, kernel
        self.costs = rules.cells.costs
        self.step = np.where(clauses.whole, self.costs.step, 0.0)

    def nearest(self, inside: People, below: float = math.inf) -> NearestInBox | None:
        """The nearest row in the only person's domains that all rules admit, if one is nearer than a distance; None
        where clauses do not tell."""
        factual, box = inside.factual[0], (inside.lower[0].copy(), inside.upper[0].copy(), inside.allowed[0].copy())
        lower = math.inf
        # what rounding may take from a sum is left in the box: on no grid, its end may lie that far beyond a rule
        for constant in (self.cell_rules.constant, self.clauses.inner):
            point = self._point(factual, box, constant, inside)
            if point is None:
                return NO_ROW if lower == math.inf else None
            lower = min(lower, float(self.rules.question.measure.between(factual, point)))
            if lower >= below:
                return NearestInBox(None, lower)
            row = self.rules.completed(point)
            if row is not point and not self._near_enough(inside, row, lower):
                continue
            if self.rules.admits(factual, row):  # one that is farther than the bound may not be the nearest
                return NearestInBox(row, lower) if self._as_near(factual, row, lower) else None
        return None

    def _near_enough(self, inside: People, row: Floats, lower: float) -> bool:
        """Is what follows in the box, and the row as near as rows of it can be?"""
        number, start = self.costs.numeric, self.costs.start
        choice = np.flatnonzero(~number)
        within = ((inside.lower[0] <= row) & (row <= inside.upper[0]))[number].all()
        allowed = inside.allowed[0, start[choice] + row[choice].astype(np.intp)].all()
        return bool(within and allowed and self._as_near(inside.factual[0], row, lower))

    def _as_near(self, factual: Floats, row: Floats, lower: float) -> bool:
        """Is the row at this bound, up to the tolerance?"""
        return bool(self.rules.tolerances.close(lower, float(self.rules.question.measure.between(factual, row))))

    def _point(
        self, factual: Floats, box: tuple[Floats, Floats, NDArray[np.bool_]], constant: Floats, inside: People
    ) -> Floats | None:
        """The nearest point of the box that the clauses narrow, to values that there are; None if none is left."""
        lower, upper, allowed = box
        start, numeric, own = self.costs.start, self.costs.numeric, factual.tolist()
        for _ in range(2):  # the second time from the ends on grids
            before = lower.copy(), upper.copy()
            if not self.kernel.narrow_values(
                self.cell_rules, constant, factual, self.step, self.rules.cells.choice, start, lower, upper, allowed
            ):
                return None
            moved = numeric & ((lower != before[0]) | (upper != before[1]))
            for g in np.flatnonzero(moved).tolist():
                lower[g], upper[g] = self.rules.values_between(g, own[g], float(lower[g]), float(upper[g]))
            if (numeric & ~(lower <= upper)).any():
                return None
            if not moved.any():
                break
        point = np.clip(factual, lower, upper)
        for g in np.flatnonzero(~numeric).tolist():
            here = slice(int(start[g]), int(start[g + 1]))
            price = np.where(allowed[here], inside.cost[0, here], math.inf)
            point[g] = k = int(price.argmin())
            if not price[k] < math.inf:
                return None
        return point
