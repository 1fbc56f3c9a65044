"""Rules between features, for questions to trees: the nearest row of a box of cells that the rules admit.

Inside a box the rules are all that is left to ask, and the search for networks knows them: it is asked with a network
that is constant, under the same rules, in the same distance, with the box as the domain. No rule is written twice.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.model import Network, network_model
from ifonly.problem import ClassTarget, Question, lower
from ifonly.problem.lowering import People, on_grid
from ifonly.results import Claim, Limits
from ifonly.schema.decimals import stepped, steps_between
from ifonly.solvers.search.compiled import KERNELS
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.solver import SearchSolver
from ifonly.solvers.search.trees.cells import Cells
from ifonly.solvers.search.worker import Budget
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]


class RuledBoxes:
    """The rules of a question, ready to give the nearest row of any box that they admit."""

    def __init__(self, question: Question, cells: Cells, tolerances: Tolerances) -> None:
        self.question, self.cells = question, cells
        columns = len(question.schema.columns)
        always = network_model(Network.of([(np.zeros((1, columns)), np.ones(1))]), question.schema)
        lowered = lower(replace(question, model=always, target=ClassTarget(1)), simplify=True)
        KERNELS.prepare()
        self.solver = SearchSolver(lowered=lowered, tolerances=tolerances, table=None, records=False)

    def nearest(self, people: People, box: tuple[Floats, Floats, Floats], limits: Limits) -> Claim:
        """The nearest row that the rules admit, of one person, with cells between least and most (choices: left)."""
        inside = self._inside(people, *box)
        claim = self.solver.among(inside, Budget(limits, 1, ProgressReporter(0, None)))[0]
        if claim.point is None:
            return claim
        # changes are searched for, and the end of a box that is next to the person's own value is lost in the sum
        number = self.cells.costs.numeric
        return replace(claim, point=np.where(number, claim.point.clip(inside.lower[0], inside.upper[0]), claim.point))

    def _inside(self, people: People, least: Floats, most: Floats, left: Floats) -> People:
        """The person's domains, no wider than the box."""
        cells, costs = self.cells, self.cells.costs
        lower, upper, allowed = people.lower.copy(), people.upper.copy(), people.allowed.copy()
        for g in range(costs.features):
            columns = slice(int(costs.start[g]), int(costs.start[g + 1]))
            if not costs.numeric[g]:
                classes = cells.classes(g)
                allowed[0, columns] &= (left[g, classes >> 6] >> (classes & 63).astype(np.uint64)) & np.uint64(1) != 0
                continue
            cuts, own, step = cells.cuts(g), float(people.factual[0, g]), float(costs.step[g])
            if least[g] > 0:
                lower[0, g] = max(lower[0, g], math.nextafter(cuts[least[g] - 1], math.inf))
            if most[g] < len(cuts):
                upper[0, g] = min(upper[0, g], cuts[most[g]])
            grid = self.question.schema.grids.get(g)
            if grid is not None and lower[0, g] <= upper[0, g] and not costs.relative(g):
                ends = float(lower[0, g]), float(upper[0, g])
                lower[0, g], upper[0, g], _ = on_grid(grid, own, ends, relative=False)
            elif step > 0.0 and lower[0, g] <= upper[0, g]:
                first, last = steps_between(own, step, float(lower[0, g]), float(upper[0, g]))
                lower[0, g], upper[0, g] = stepped(own, first, step), stepped(own, last, step)
            allowed[0, columns] = lower[0, g] <= upper[0, g]
        return replace(people, lower=lower, upper=upper, allowed=allowed)
