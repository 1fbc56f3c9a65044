"""MIP-OBJ (paper, Algorithm 5): the distance is the objective of one mixed-integer program.

    bound   the solver's own lower bound for  C s - d >= margin + E  (E: what the deployed model can lose by rounding),
            less SLACK
    row     its solution, snapped to the schema and repaired to the same;  when no real feature can repair it
            (everything discrete, the row exactly on the margin), another program asks for a little more

How much more: a binary that is 1e-9 away from 0 still lets a big-M of 100 pass 1e-7, and layers multiply that. So the
next program asks for ten times what the row missed, and at least for MORE. Two things are not checked: that its
bound holds to its tolerances, and that infeasible means infeasible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ifonly.caching import SizedCache, bytes_of
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Lowered, Norm, Question
from ifonly.resources import LimitReached
from ifonly.results import Claim, Limits, Listener
from ifonly.solvers.common import backends
from ifonly.solvers.common.backends import BackendName
from ifonly.solvers.common.backends.protocol import TIGHTEST, Capability, Outcome, SolveStatus
from ifonly.solvers.common.bounds import BOUNDS, Bounds, BoundsName, check_bounds, neuron_bounds
from ifonly.solvers.common.contradiction import check_bound
from ifonly.solvers.common.distance_box import known_row, within
from ifonly.solvers.common.inputs import Floats, Person, read_point
from ifonly.solvers.common.per_person import Clock, answer_each, distance_of, stop_of
from ifonly.solvers.common.repair import conditions, decided, pulled, repaired
from ifonly.solvers.common.trees import PersonTrees, lowered_of, person_trees, refusal, trees_of
from ifonly.solvers.mip.program import Program, formulate
from ifonly.solvers.mip.tree_program import read_row
from ifonly.tolerances import DEFAULT, Tolerances

MORE = 1e-7
"""Score: what the second program asks for beyond the margin, well above the solvers' tolerances."""
SLACK = TIGHTEST
"""Scaled objective, relative to 1 + |bound|: what a solver's bound is lowered by, because its duals are feasible only
to its tolerances."""
TREE_SLACK = 1e-8
"""Relative to the largest leaf: how much less a program with trees asks for, so that tolerances take nothing away. What
it then finds too much is excluded."""
MOST_EXCLUDED = 60
"""Sets of leaves that are excluded one by one, before a program asks for clearly more."""
ROUNDS = 4
BOUNDS_BYTES = 2**23
"""Bounds of neurons that are kept, by domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MipObj:
    """MIP-OBJ: minimise the distance in a mixed-integer program.

    `bounds`: how the big-M are found, by linear programs (the paper's way), by substitution or by intervals; "none" is
    the paper's unbounded encoding, for backends that have indicator constraints. Not in the paper: `refine` solves once
    more, where the solver's tolerances leave more than the gap allowed, in the box that the row found allows and in
    units of that box; tolerances are then relative to the distance, however small it is. `ball`, off, hands the solver
    from the start the box that a row found by sampling allows.
    """

    backend: BackendName = "highs"
    bounds: BoundsName | Literal["none"] = "linear"
    ball: bool = False
    refine: bool = True
    gap: float = 0.0
    """Relative."""
    gap_absolute: float = 1e-9
    """Relative to the largest cost of one unit of a column (that is, to about 1 / n)."""

    @property
    def name(self) -> str:
        return "mip-obj" + ("" if self.backend == "highs" else f"-{self.backend}")

    def refuses(self, question: Question) -> str:
        """Why it cannot take the question; empty when it can."""
        return refusal(question, self.name)

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> MipObjSolver:
        check_bounds(self.bounds, (*BOUNDS, "none"))
        if Capability.INDICATORS not in backends.get(self.backend).capabilities and self.bounds == "none":
            raise UnsupportedQuestion(
                f"The backend '{self.backend}' has no indicator constraints, which the unbounded encoding "
                "(bounds='none') needs; use backend='gurobi' or 'scip', or bounds='linear'."
            )
        return MipObjSolver(method=self, lowered=lowered_of(question), name=self.name, tolerances=tolerances)


def tree_slack(forest: PersonTrees) -> float:
    """How much less a program with trees asks for."""
    return float(forest.slack.max(initial=0.0) + TREE_SLACK * np.abs(forest.weight).max(initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is known about one person."""

    bound: float
    ending: SolveStatus
    point: Floats | None = None
    nodes: int = 0


@dataclass(frozen=True, kw_only=True)
class MipObjSolver:
    """The MIP, ready for one question. Every person is a new program; one thread, whatever `threads` says."""

    method: MipObj
    lowered: Lowered
    name: str
    tolerances: Tolerances = DEFAULT
    kept: SizedCache[Bounds] = field(default_factory=lambda: SizedCache(BOUNDS_BYTES, bytes_of))
    buffer_bytes: int = BOUNDS_BYTES
    """What it may come to keep."""

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        return answer_each(self.lowered, points, limits, listen, self.name, self._answer)

    def _answer(self, person: Person, clock: Clock) -> Claim:
        lowered = self.lowered
        known = (
            known_row(lowered, person, lowered.need + person.rounding_bound + person.own) if self.method.ball else None
        )
        found = self._within_ball(person, known, clock)
        if self.method.refine and found.point is not None and self._loose(person, found):
            found = self._refined(person, found, clock)
        stop = stop_of(found.ending, clock.limits)
        return Claim(point=found.point, lower=found.bound, method=self.name, stop=stop, nodes=found.nodes)

    def _refined(self, person: Person, found: _Found, clock: Clock) -> _Found:
        """Solved once more in the box of the row; where that takes more than it may, as it was."""
        assert found.point is not None
        try:
            again = self._within_ball(person, found.point, clock)
        except LimitReached as reached:
            return replace(found, ending=SolveStatus.MEMORY if reached.resource == "memory" else SolveStatus.TIME)
        return replace(again, nodes=found.nodes + again.nodes)

    def _loose(self, person: Person, found: _Found) -> bool:
        """Solved, but not as closely as asked?"""
        if found.point is None or found.ending is not SolveStatus.SOLVED:
            return False
        distance = distance_of(self.lowered, person, found.point)
        return distance - found.bound > self.tolerances.allowed(distance)

    def _within_ball(self, person: Person, known: Floats | None, clock: Clock) -> _Found:
        """Nothing farther than a known row is looked at."""
        if known is None:
            return self._search(person, person, clock)
        found = self._search(person, within(self.lowered, person, known), clock)
        distance = distance_of(self.lowered, person, known)
        if found.point is None or distance < distance_of(self.lowered, person, found.point):
            found = replace(found, point=known)
        return replace(found, bound=min(found.bound, distance))

    def _search(self, person: Person, searched: Person, clock: Clock) -> _Found:
        """Solve, snap, repair; ask for more where that fails."""
        lowered = self.lowered
        if trees_of(lowered.question) is not None:
            return self._search_trees(person, searched, clock)
        need = lowered.need + person.rounding_bound
        required = need + person.own
        found = _Found(bound=0.0, ending=SolveStatus.TROUBLE)
        bounds, missing = self._bounds(searched, clock), None
        if clock.out:
            return replace(found, ending=SolveStatus.TIME)
        for attempt in range(ROUNDS):
            program = formulate(lowered, searched, need, bounds, clear=MORE * attempt)
            outcome = self._run(program, clock)
            bound = found.bound if attempt else self._bound(program, outcome.bound)
            ending = SolveStatus.SOLVED if outcome.ending is SolveStatus.INFEASIBLE else outcome.ending
            found = _Found(bound=bound, ending=ending, nodes=found.nodes + outcome.nodes)
            if outcome.values is None:
                return found
            row = read_point(lowered, person, program.inputs, outcome.values[: len(program.inputs)])
            point = repaired(lowered, person, row, required)
            if point is not None and missing is not None:
                point = pulled(lowered, person, point, missing, required)
            if point is not None:
                return self._known(found, person, point)
            if ending is not SolveStatus.SOLVED:
                return found
            missing = row if missing is None else missing
            missed = float((need - conditions(lowered, row[None, :])[0]).max())
            need = required + max(MORE, 10.0 * missed)
        return replace(found, ending=SolveStatus.TROUBLE)

    def _search_trees(self, person: Person, searched: Person, clock: Clock) -> _Found:
        """Solve, read the row, judge it; where the library's own sum refuses it, solve again without its leaves."""
        lowered, forest = self.lowered, person_trees(self.lowered, searched)
        required = lowered.need + person.rounding_bound + person.own
        slack = tree_slack(forest)
        found, need, clear = _Found(bound=0.0, ending=SolveStatus.TROUBLE), required - slack, 0.0
        bounds = self._bounds(searched, clock)
        for attempt in range(MOST_EXCLUDED + 1):
            if clock.out:
                return replace(found, ending=SolveStatus.TIME)
            # after too many that are too close, the bound stays, and a clear row is searched for
            if attempt == MOST_EXCLUDED:
                need = required + slack
            program = formulate(lowered, searched, need, bounds, clear=clear, forest=forest)
            outcome = self._run(program, clock)
            proves = clear == 0.0 and attempt < MOST_EXCLUDED
            bound = max(found.bound, self._bound(program, outcome.bound)) if proves else found.bound
            ending = SolveStatus.SOLVED if outcome.ending is SolveStatus.INFEASIBLE else outcome.ending
            found = replace(found, bound=bound, ending=ending, nodes=found.nodes + outcome.nodes)
            if outcome.values is None:
                return found
            row = read_row(lowered, person, program.inputs, outcome.values, forest, program.cuts)
            point = repaired(lowered, forest.within(lowered, person, row), row, required)
            if point is not None:
                return self._known(found, person, point)
            if ending is not SolveStatus.SOLVED:
                return found
            if decided(lowered, person, row[None, :], required)[0]:  # a rule refuses it
                clear = max(MORE, 10.0 * clear)
            else:
                forest = forest.without(row)
        return replace(found, ending=SolveStatus.TROUBLE)

    def _known(self, found: _Found, person: Person, point: Floats) -> _Found:
        """With a row. (The solver's tolerances may put its bound a hair above the distance of its own row.)"""
        distance = distance_of(self.lowered, person, point)
        check_bound(self.lowered.question, person.factual, found.bound, distance, self.name)
        return replace(found, point=point, bound=min(found.bound, distance))

    def _bounds(self, person: Person, clock: Clock) -> Bounds:
        """Bounds of the neurons; people with the same domain share them, unless there was no time to finish them."""
        key = person.lower.tobytes() + person.upper.tobytes() + person.allowed.tobytes()
        bounds = self.kept.get(key)
        if bounds is None:
            bounds = neuron_bounds(self.lowered, person, None, self.method.bounds, until=clock.until)
            if not clock.out:
                self.kept.put(key, bounds)
        return bounds

    def _run(self, program: Program, clock: Clock) -> Outcome:
        settings = replace(
            clock.settings(),
            gap=self.method.gap,
            gap_absolute=self.method.gap_absolute,
            presolve=trees_of(self.lowered.question) is None,
        )
        return backends.run(program.form, self.method.backend, settings)

    def _bound(self, program: Program, bound: float) -> float:
        """The solver's bound as a distance, lowered by what its tolerances may be worth."""
        if math.isinf(bound):
            return math.inf if bound > 0.0 else 0.0
        safe = bound - SLACK * (1.0 + abs(bound)) if len(program.form.cost) else bound
        total = max(safe / program.scale + program.offset, program.offset, 0.0)
        return math.sqrt(total) if self.lowered.norm is Norm.L2 else total
