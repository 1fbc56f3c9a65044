"""Rules and networks beside trees: the nearest row of a box of cells that the rules admit and the networks accept.

Inside a box these are all that is left to ask, and the search for networks knows them: it is asked with the networks
(where there are none, with one that is constant), under the same rules, in the same distance, with the box as the
domain. No rule is written twice.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model import always_accepting
from ifonly.problem import ClassTarget, Question, lower
from ifonly.problem.action_rules import in_boxes
from ifonly.problem.costs import People, on_grid
from ifonly.results import Claim, Limits
from ifonly.schema.decimals import stepped, steps_between
from ifonly.solvers.search.enumerate import robustly_accepted
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.solver import SearchSolver
from ifonly.solvers.search.trees.cells import Cells
from ifonly.solvers.search.trees.kernels.layout import Forest, Stack
from ifonly.solvers.search.trees.vectorised import leaves_of
from ifonly.solvers.search.worker import Budget
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]
MOST_ENDS = 100_000
"""Of so many domains of a number between two cells are the ends kept."""


class RuledBoxes:
    """The rules of a question to trees, and the same question to `networks`, ready to give the nearest row of any box
    that is admitted by the rules and accepted by the networks."""

    def __init__(self, question: Question, networks: Question | None, cells: Cells, tolerances: Tolerances) -> None:
        self.question, self.networks, self.cells, self.tolerances = question, networks, cells, tolerances
        asked = networks
        if asked is None:
            asked = replace(question, model=always_accepting(question.schema), target=ClassTarget(1))
        constraints, self.follow = in_boxes(question.constraints)
        if self.follow is not None:
            asked = replace(asked, constraints=constraints)
        self.solver = SearchSolver(lowered=lower(asked, simplify=True), tolerances=tolerances, table=None)
        self.solver.packed.kernels.prepare()
        self._ends: dict[tuple[Any, ...], tuple[float, float]] = {}

    def completed(self, point: Floats) -> Floats:
        """The row with what follows from its causes, which costs nothing."""
        return point if self.follow is None else self.follow.completed(point)

    def admits(self, factual: Floats, point: Floats) -> bool:
        """Is a row admitted by all constraints, and accepted by the networks under every rounding?"""
        if self.question.allows(factual, point) is not None:
            return False
        return self.networks is None or bool(robustly_accepted(self.networks, point[None, :])[0])

    def inside(self, people: People, box: tuple[Floats, Floats, Floats]) -> People:
        """The only person's domains between the cells least and most (choices: left)."""
        return self._inside(people, *box)

    def nearest(self, inside: People, below: float, limits: Limits) -> Claim:
        """The nearest such row of one person in these domains, if one is nearer than a distance."""
        if below < math.inf:
            claim = self.solver.nearest_of(inside, below, limits)
        else:
            claim = self.solver.among(inside, Budget(limits, 1, ProgressReporter(0, None)))[0]
        if claim.point is None:
            return claim
        # changes are searched for, and the end of a box that is next to the person's own value is lost in the sum
        number = self.cells.costs.numeric
        point = np.where(number, claim.point.clip(inside.lower[0], inside.upper[0]), claim.point)
        return replace(claim, point=self.completed(point))

    def _inside(self, people: People, least: Floats, most: Floats, left: Floats) -> People:
        """The person's domains, no wider than the box."""
        lower, upper, allowed = people.lower.copy(), people.upper.copy(), people.allowed.copy()
        first, last = least.tolist(), most.tolist()
        owns, lowers, uppers = (part[0].tolist() for part in (people.factual, people.lower, people.upper))
        for g in range(self.cells.costs.features):
            if self.is_number(g):
                ends = self._ends_between(g, first[g], last[g], owns[g], lowers[g], uppers[g])
                lower[0, g], upper[0, g] = ends
                allowed[0, self._columns(g)] = ends[0] <= ends[1]
            else:
                classes = self.cells.classes(g)
                inside = (left[g, classes >> 6] >> (classes & 63).astype(np.uint64)) & np.uint64(1) != 0
                allowed[0, self._columns(g)] &= inside
        if self.follow is not None:
            for place, g, both in self.follow.ends:
                ends = self.follow.space.ends_of(place, owns[g], float(lower[0, g]), float(upper[0, g]))
                lower[0, both] = upper[0, both] = ends
        return replace(people, lower=lower, upper=upper, allowed=allowed)

    def is_number(self, g: int) -> bool:
        return bool(self.cells.costs.numeric[g])

    def _columns(self, g: int) -> slice:
        return slice(int(self.cells.costs.start[g]), int(self.cells.costs.start[g + 1]))

    def options_of(self, people: People, g: int) -> NDArray[np.bool_]:
        """The options of a choice that the only person may have."""
        return np.asarray(people.allowed[0, self._columns(g)])

    def ends_of_cells(self, people: People, g: int, cells: NDArray[np.int64]) -> Floats:
        """(2, cell): the ends of the only person's domain of a number in each of these cells."""
        own, lower, upper = (float(part[0, g]) for part in (people.factual, people.lower, people.upper))
        return np.array([self._ends_between(g, k, k, own, lower, upper) for k in cells.tolist()]).T

    def _ends_between(self, *between: Any) -> tuple[float, float]:
        """`_interval`, kept."""
        ends = self._ends.get(between)
        if ends is None:
            if len(self._ends) > MOST_ENDS:
                self._ends.clear()
            ends = self._ends[between] = self._interval(*between)
        return ends

    def _interval(self, g: int, least: int, most: int, own: float, lower: float, upper: float) -> tuple[float, float]:
        """The ends of the domain of number g, whose own value and domain these are, between two of its cells: values
        that it can take. The first is above the last where there is none."""
        cuts = self.cells.cuts(g)
        if least > 0:
            lower = max(lower, math.nextafter(cuts[least - 1], math.inf))
        if most < len(cuts):
            upper = min(upper, float(cuts[most]))
        return self.values_between(g, own, lower, upper)

    def values_between(self, g: int, own: float, lower: float, upper: float) -> tuple[float, float]:
        """The least and the largest value of number g between two numbers."""
        grid, step = self.question.schema.grids.get(g), float(self.cells.costs.step[g])
        if grid is not None and lower <= upper and not self.cells.costs.relative(g):
            lower, upper, _ = on_grid(grid, own, (lower, upper), relative=False)
        elif step > 0.0 and lower <= upper:
            first, last = steps_between(own, step, lower, upper)
            lower, upper = stepped(own, first, step), stepped(own, last, step)
        return lower, upper


def holds_other(forest: Forest, stack: Stack, s: int) -> bool:
    """Is the nearest row that the networks accept known, and in the box?"""
    cells = stack.other[s]
    if cells[0] < 0:
        return False
    word = stack.left[s].reshape(len(cells), -1)[np.arange(len(cells)), np.where(forest.choice, cells >> 6, 0)]
    kept = (word >> (cells & 63).astype(np.uint64)) & np.uint64(1) != 0
    return bool(np.where(forest.choice, kept, (stack.least[s] <= cells) & (cells <= stack.most[s])).all())


def elsewhere(forest: Forest, stack: Stack, s: int) -> NDArray[np.int32]:
    """The cells of a point of a box that the trees tell from its nearest one, in all features or in one; none if there
    is none. Where only some rounding of the networks accepts a row of the box, the trees may refuse it there."""
    near, left = stack.near[s], stack.left[s].reshape(len(forest.choice), -1)
    cells: list[list[int]] = []
    for g, own in enumerate(near.tolist()):
        inside = range(int(stack.least[s, g]), int(stack.most[s, g]) + 1)
        if forest.choice[g]:
            inside = range(int(forest.start[g + 1] - forest.start[g]))
        cells.append([k for k in inside if k != own and (not forest.choice[g] or int(left[g, k >> 6]) >> (k & 63) & 1)])
    tried = [np.array([some[-1] if some else own for some, own in zip(cells, near.tolist(), strict=True)])]
    for g, some in enumerate(cells):
        tried += [np.where(np.arange(len(near)) == g, cell, near) for cell in some]
    here = leaves_of(forest, forest.roots, near)
    for point in tried:
        if (leaves_of(forest, forest.roots, point.astype(np.int32)) != here).any():
            return point.astype(np.int32)
    return np.zeros(0, dtype=np.int32)
