"""A question to trees, packed for the kernels, with what people have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ifonly.caching import cached_property
from ifonly.compiling import Kernels
from ifonly.problem import Question
from ifonly.solvers.search.trees.cells import Cells
from ifonly.solvers.search.trees.clauses import RuleClauses
from ifonly.solvers.search.trees.kernels.layout import Forest
from ifonly.solvers.search.trees.rules import RuledBoxes
from ifonly.tolerances import Tolerances


@dataclass(frozen=True)
class PackedForest:
    """A question to trees, ready for everyone."""

    question: Question
    cells: Cells
    forest: Forest
    depth: int
    any_rounding_forest: Forest | None
    """The same forest, for rows that only some rounding accepts."""
    rules: RuledBoxes | None
    kernels: Kernels
    tolerances: Tolerances
    any_row: bool = False
    """Any row will do: the search ends with the first, and no box is priced: prices are about how near rows are."""

    @cached_property
    def clauses(self) -> RuleClauses:
        return RuleClauses.of(self.question)

    def distance(self, cost: float) -> float:
        return math.sqrt(cost) if self.cells.squared else cost

    def cost(self, distance: float) -> float:
        return distance**2 if self.cells.squared else distance
