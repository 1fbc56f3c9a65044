"""MIP-SAT (paper, Algorithms 1 and 3) and SAT (MACE): search on the distance, and ask Z3 in each step.

    mip-sat   exponential, then binary search; ReLUs whose state the bounds of Algorithm 2 fix are left out
    mace      binary search from [0, the farthest row], every ReLU a disjunction, every split of a tree an
              if-then-else (mip-sat: those that the interval leaves open)

Both ask for  C s - d >= margin - E  first (E: the deployed model's rounding error). Unsatisfiable is a proof in exact
arithmetic that nothing is within the budget. A model is a row; when its floats do not meet the decision under any
rounding, the formula is solved again for  margin + E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered, Question
from ifonly.results import Claim, Limits, Listener, Stop, StoppedBy
from ifonly.solvers.common.backends.protocol import SolveStatus
from ifonly.solvers.common.bounds import BOUNDS, Bounds, BoundsName, check_bounds, neuron_bounds
from ifonly.solvers.common.distances import DistanceSteps, StepOutcome, Verdict, cut_to, search_distances
from ifonly.solvers.common.inputs import Floats, Person
from ifonly.solvers.common.per_person import Clock, answer_each, distance_of, stop_of
from ifonly.solvers.common.repair import decided, repaired
from ifonly.solvers.common.trees import PersonTrees, lowered_of, person_trees, refusal, trees_of
from ifonly.solvers.smt.formula import formula, load_z3
from ifonly.tolerances import DEFAULT, Tolerances

MOST_EXCLUDED = 100
"""Sets of leaves that are excluded within one budget, before it is called undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MipSat:
    """MIP-SAT: Z3 on formulas without the ReLUs that the distance interval fixes.

    `first`: the paper's epsilon, the first interval. `gap`: how small the last must be (None: as the tolerances say).
    """

    bounds: BoundsName = "linear"
    first: float = 1e-3
    gap: float | None = None
    name: str = "mip-sat"

    def refuses(self, question: Question) -> str:
        """Why it cannot take the question; empty when it can."""
        return refusal(question, self.name)

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> SmtSolver:
        check_bounds(self.bounds, BOUNDS)
        load_z3()
        return SmtSolver(method=self, lowered=lowered_of(question), tolerances=tolerances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mace:
    """SAT, as MACE asks it: Z3 on the whole network, binary search from the whole interval."""

    gap: float | None = None
    name: str = "mace"

    def refuses(self, question: Question) -> str:
        """Why it cannot take the question; empty when it can."""
        return refusal(question, self.name)

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> SmtSolver:
        load_z3()
        return SmtSolver(method=self, lowered=lowered_of(question), tolerances=tolerances)


@dataclass(frozen=True, kw_only=True)
class SmtSolver:
    """An SMT method, ready for one question; one thread, whatever `threads` says."""

    method: MipSat | Mace
    lowered: Lowered
    tolerances: Tolerances

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        return answer_each(self.lowered, points, limits, listen, self.method.name, self._answer)

    def _answer(self, person: Person, clock: Clock) -> Claim:
        first = self.method.first if isinstance(self.method, MipSat) else math.inf
        steps = DistanceSteps(first=first, gap=self.method.gap, tolerances=self.tolerances, limits=clock.limits)
        excluded: list[NDArray[np.intp]] = []

        def find(budget: float) -> StepOutcome:
            if trees_of(self.lowered.question) is None:
                return self._find(person, budget, clock)
            return self._find_in_trees(person, budget, clock, excluded)

        return search_distances(self.lowered, person, find, steps, self.method.name)

    def _reduced(self, person: Person, budget: float, clock: Clock) -> tuple[Person | None, Bounds | None]:
        """What the budget leaves of the domains (None: nothing), and bounds of the neurons there, if they are used."""
        if not isinstance(self.method, MipSat):
            return person, None
        cut = cut_to(self.lowered, person, budget)
        if cut is None:
            return None, None
        return cut, neuron_bounds(self.lowered, cut, budget, self.method.bounds, until=clock.until)

    def _find(self, person: Person, budget: float, clock: Clock) -> StepOutcome:
        """Algorithm 3: is there a counterfactual within the budget?"""
        lowered, need = self.lowered, self.lowered.need + person.rounding_bound
        searched, bounds = self._reduced(person, budget, clock)
        if searched is None or (bounds is not None and (bounds.upper[-1] < need).any()):
            return StepOutcome(verdict=Verdict.NONE)
        for more, nothing in ((0.0, Verdict.NONE), (2.0 * person.own, Verdict.UNDECIDED)):
            found = self._ask(searched, budget, need + more, bounds, clock)
            if isinstance(found, Stop):
                return StepOutcome(verdict=Verdict.STOPPED, stop=found)
            if found is None:
                return StepOutcome(verdict=nothing)
            point = repaired(lowered, person, found, need + person.own)
            if point is not None:
                return StepOutcome(verdict=Verdict.FOUND, point=point, distance=distance_of(lowered, person, point))
        return StepOutcome(verdict=Verdict.UNDECIDED)

    def _find_in_trees(
        self, person: Person, budget: float, clock: Clock, excluded: list[NDArray[np.intp]]
    ) -> StepOutcome:
        """The same of an ensemble. Rows that the library's own sum refuses are excluded by their leaves, for good."""
        lowered, required = self.lowered, self.lowered.need + person.rounding_bound + person.own
        searched, bounds = self._reduced(person, budget, clock)
        if searched is None:
            return StepOutcome(verdict=Verdict.NONE)
        forest = replace(person_trees(lowered, searched), excluded=tuple(excluded))
        if isinstance(self.method, MipSat) and (forest.ends()[1] < required).any():
            return StepOutcome(verdict=Verdict.NONE)
        for _ in range(MOST_EXCLUDED):
            found = self._ask(searched, budget, required - forest.slack, bounds, clock, forest)
            if isinstance(found, Stop):
                return StepOutcome(verdict=Verdict.STOPPED, stop=found)
            if found is None:
                return StepOutcome(verdict=Verdict.NONE)
            row = lowered.on_steps(person.factual[None, :], found[None, :])[0]
            point = repaired(lowered, forest.within(lowered, person, row), row, required)
            if point is not None:
                return StepOutcome(verdict=Verdict.FOUND, point=point, distance=distance_of(lowered, person, point))
            if decided(lowered, person, row[None, :], required)[0]:  # a rule refuses it
                break
            forest = forest.without(row)
            excluded.append(forest.excluded[-1])
        return StepOutcome(verdict=Verdict.UNDECIDED)

    def _ask(
        self,
        person: Person,
        budget: float,
        need: Floats,
        bounds: Bounds | None,
        clock: Clock,
        forest: PersonTrees | None = None,
    ) -> Floats | Stop | None:
        """A point; None for unsatisfiable; or why Z3 stopped."""
        z3: Any = load_z3()
        solver = z3.Solver()
        solver.set("threads", 1)
        if clock.out:
            return stop_of(SolveStatus.TIME, clock.limits)
        left = clock.settings()
        if left.seconds is not None:
            solver.set("timeout", max(int(1000 * left.seconds), 1))
        if left.memory_bytes is not None:
            solver.set("max_memory", max(int(left.memory_bytes / 2**20), 1))
        made = formula(self.lowered, person, budget, need, bounds, forest)
        solver.add(*made.assertions)
        said = solver.check()
        if said == z3.unsat:
            return None
        if said == z3.sat:
            return made.read(solver.model(), person)
        reason = solver.reason_unknown()
        if "timeout" in reason or "canceled" in reason:
            return stop_of(SolveStatus.TIME, clock.limits)
        return Stop(StoppedBy.UNDECIDED, detail=str(reason))
