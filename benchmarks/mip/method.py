"""The MIP as a method, so that it is asked, checked and timed exactly like every other.

    bound   the solver's own lower bound for  C s - d >= margin - E  (E: the deployed model's rounding error)
    row     its solution, snapped to the schema and repaired to  C s - d >= margin + E;  when no real feature can repair
            it (everything discrete, the row exactly on the margin), another program asks for a little more

How much more: a binary that is 1e-9 away from 0 still lets a big-M of 100 pass 1e-7, and layers multiply that. So the
next program asks for ten times what the row missed, and at least for MORE. Two things are the solver's word: that its
bound holds to its tolerances, and that infeasible means infeasible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal, TypeAlias

import numpy as np

from benchmarks.mip import gurobi, highs
from benchmarks.mip.ball import known_row, within
from benchmarks.mip.inputs import Floats, Person, read_point
from benchmarks.mip.outcome import TIGHTEST, Ending, Outcome, Settings
from benchmarks.mip.program import Program, formulate
from benchmarks.mip.repair import conditions, repaired
from ifonly.problem import Lowered, Norm, Question, lower
from ifonly.proof import Claim, Limits, Listener
from ifonly.tolerances import DEFAULT, Tolerances

Backend: TypeAlias = Literal["gurobi", "highs"]
MODULES: dict[str, str] = {"gurobi": "gurobipy", "highs": "highspy"}
SOLVE: dict[str, Callable[[Program, Settings], Outcome]] = {"gurobi": gurobi.solve, "highs": highs.solve}

MORE = 1e-7
"""Score: what the second program asks for beyond the margin, well above the solvers' tolerances."""

ROUNDS = 4


def available(backend: Backend) -> bool:
    """Is the solver's package installed? (Takes no licence.)"""
    return find_spec(MODULES[backend]) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class BigM:
    """A clean big-M MIP in a solver of your choice.

    `ball` also hands it the box that a known row allows. `refine` solves once more in the box that the row found
    allows, in units of that box: tolerances are then relative to the distance, however small it is. For oracles.
    """

    backend: Backend = "gurobi"
    ball: bool = False
    refine: bool = False
    gap: float = 0.0
    """Relative."""
    gap_absolute: float = 1e-9
    """Relative to the largest cost of one unit of a column (that is, to about 1 / n)."""

    @property
    def name(self) -> str:
        return f"mip-{self.backend}" + ("-ball" if self.ball else "")

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> BigMSolver:
        return BigMSolver(method=self, lowered=lower(question))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is known about one person."""

    bound: float
    ending: Ending
    point: Floats | None = None
    nodes: int = 0


@dataclass(frozen=True, kw_only=True)
class BigMSolver:
    """The MIP, ready for one question. Every person is a new program; one thread, whatever `threads` says."""

    method: BigM
    lowered: Lowered

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        people = self.lowered.domains(points)
        return [self._solve(Person.of(people, i), limits) for i in range(len(people))]

    def _solve(self, person: Person, limits: Limits) -> Claim:
        begun, lowered = time.perf_counter(), self.lowered
        if person.empty(lowered):
            return self._claim(_Found(bound=math.inf, ending=Ending.SOLVED), begun)
        known = known_row(lowered, person, lowered.need + lowered.question.error) if self.method.ball else None
        found = self._within_ball(person, known, limits, begun)
        if self.method.refine and found.point is not None and found.ending is Ending.SOLVED:
            again = self._within_ball(person, found.point, limits, begun)
            found = replace(again, nodes=found.nodes + again.nodes)
        return self._claim(found, begun)

    def _within_ball(self, person: Person, known: Floats | None, limits: Limits, begun: float) -> _Found:
        """Nothing farther than a known row is looked at."""
        if known is None:
            return self._search(person, person, limits, begun)
        found = self._search(person, within(self.lowered, person, known), limits, begun)
        distance = self._distance(person, known)
        if found.point is None or distance < self._distance(person, found.point):
            found = replace(found, point=known)
        return replace(found, bound=min(found.bound, distance))

    def _search(self, person: Person, searched: Person, limits: Limits, begun: float) -> _Found:
        """Solve, snap, repair; ask for more where that fails."""
        lowered, error = self.lowered, self.lowered.question.error
        need, surely = lowered.need - error, lowered.need + error
        found = _Found(bound=0.0, ending=Ending.TROUBLE)
        for attempt in range(ROUNDS):
            program = formulate(lowered, searched, need)
            outcome = self._run(program, limits, begun)
            bound = found.bound if attempt else self._bound(program, outcome.bound)
            ending = Ending.SOLVED if outcome.ending is Ending.INFEASIBLE else outcome.ending
            found = _Found(bound=bound, ending=ending, nodes=found.nodes + outcome.nodes)
            if outcome.values is None:
                return found
            row = read_point(lowered, person, program.inputs, outcome.values[: len(program.inputs)])
            point = repaired(lowered, person, row, surely)
            if point is not None:  # the solver's tolerances may put its bound a hair above the distance of its own row
                return replace(found, point=point, bound=min(bound, self._distance(person, point)))
            if ending is not Ending.SOLVED:
                return found
            missed = float((need - conditions(lowered, row[None, :])[0]).max())
            need = surely + max(MORE, 10.0 * missed)
        return replace(found, ending=Ending.TROUBLE)

    def _claim(self, found: _Found, begun: float) -> Claim:
        return Claim(
            point=found.point,
            lower=found.bound,
            method=self.method.name,
            limit=found.ending.value,
            nodes=found.nodes,
            seconds=time.perf_counter() - begun,
        )

    def _run(self, program: Program, limits: Limits, begun: float) -> Outcome:
        if not len(program.cost):  # nothing can change
            ending = Ending.SOLVED if (program.limit >= -TIGHTEST).all() else Ending.INFEASIBLE
            values = np.zeros(0) if ending is Ending.SOLVED else None
            return Outcome(ending=ending, values=values, bound=0.0 if values is not None else math.inf)
        left = None if limits.seconds is None else max(limits.seconds - (time.perf_counter() - begun), 1e-3)
        settings = Settings(
            seconds=left,
            nodes=limits.nodes,
            memory_bytes=limits.memory_bytes,
            gap=self.method.gap,
            gap_absolute=self.method.gap_absolute,
        )
        return SOLVE[self.method.backend](program, settings)

    def _bound(self, program: Program, bound: float) -> float:
        """The solver's bound as a distance."""
        total = max(bound / program.scale + program.offset, 0.0)
        return math.sqrt(total) if self.lowered.norm is Norm.L2 else total

    def _distance(self, person: Person, point: Floats) -> float:
        question = self.lowered.question
        return float(question.distance.between(question.schema, person.factual, point))
