"""MIP-OBJ (paper, Algorithm 5): the distance is the objective of one mixed-integer program.

    bound   the solver's own lower bound for  C s - d >= margin - E  (E: the deployed model's rounding error), less
            SLACK
    row     its solution, snapped to the schema and repaired to  C s - d >= margin + E;  when no real feature can repair
            it (everything discrete, the row exactly on the margin), another program asks for a little more

How much more: a binary that is 1e-9 away from 0 still lets a big-M of 100 pass 1e-7, and layers multiply that. So the
next program asks for ten times what the row missed, and at least for MORE. Two things are the solver's word: that its
bound holds to its tolerances, and that infeasible means infeasible.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from ifonly.mip import backends
from ifonly.mip.backends.protocol import TIGHTEST, Ending, Form, Outcome, Settings
from ifonly.mip.ball import known_row, within
from ifonly.mip.bounds import Bounds, interval_bounds, linear_bounds
from ifonly.mip.contradiction import check_bound
from ifonly.mip.inputs import Floats, Person, read_point
from ifonly.mip.program import Program, formulate
from ifonly.mip.repair import conditions, pulled, repaired
from ifonly.problem import Lowered, Norm, Question, lower
from ifonly.proof import Claim, Limits, Listener, Progress
from ifonly.tolerances import DEFAULT, Tolerances

BackendName: TypeAlias = Literal["highs", "gurobi", "scip"]
BoundsName: TypeAlias = Literal["linear", "interval"]

MORE = 1e-7
"""Score: what the second program asks for beyond the margin, well above the solvers' tolerances."""
SLACK = TIGHTEST
"""Scaled objective, relative to 1 + |bound|: what a solver's bound is lowered by, because its duals are feasible only
to its tolerances."""
ROUNDS = 4
MOST_KEPT = 256
"""Bounds are kept for this many different domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MipObjective:
    """MIP-OBJ: minimise the distance in a mixed-integer program.

    `bounds`: how the big-M are found, by linear programs (the paper's way) or by intervals. Not in the paper: `refine`
    solves once more, where the solver's tolerances leave more than the gap allowed, in the box that the row found
    allows and in units of that box; tolerances are then relative to the distance, however small it is. `ball`, off,
    hands the solver from the start the box that a row found by sampling allows.
    """

    backend: BackendName = "highs"
    bounds: BoundsName = "linear"
    ball: bool = False
    refine: bool = True
    gap: float = 0.0
    """Relative."""
    gap_absolute: float = 1e-9
    """Relative to the largest cost of one unit of a column (that is, to about 1 / n)."""

    @property
    def name(self) -> str:
        return "mip-objective" + ("" if self.backend == "highs" else f"-{self.backend}")

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> ObjectiveSolver:
        backends.get(self.backend)
        return ObjectiveSolver(method=self, lowered=lower(question), name=self.name, tolerances=tolerances)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is known about one person."""

    bound: float
    ending: Ending
    point: Floats | None = None
    nodes: int = 0


def surely(lowered: Lowered, point: Floats) -> bool:
    """Does the point meet the decision, whatever the deployed model's rounding does?"""
    return bool((conditions(lowered, point[None, :])[0] >= lowered.need + lowered.question.error).all())


def run(form: Form, backend: str, settings: Settings) -> Outcome:
    """Solve; a program without columns is decided here."""
    if len(form.cost):
        return backends.get(backend).solve(form, settings)
    if (form.limit >= -TIGHTEST).all():
        return Outcome(ending=Ending.SOLVED, values=np.zeros(0), bound=0.0)
    return Outcome(ending=Ending.INFEASIBLE, values=None, bound=math.inf)


@dataclass(frozen=True, kw_only=True)
class ObjectiveSolver:
    """The MIP, ready for one question. Every person is a new program; one thread, whatever `threads` says."""

    method: MipObjective
    lowered: Lowered
    name: str
    tolerances: Tolerances = DEFAULT
    kept: dict[bytes, Bounds] = field(default_factory=dict)

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        people = self.lowered.domains(points)
        claims: list[Claim] = []
        begun = time.perf_counter()
        for i in range(len(people)):
            claims.append(self._solve(Person.of(people, i), limits))
            if listen is not None:
                listen(Progress(finished=i + 1, people=len(people), seconds=time.perf_counter() - begun))
        return claims

    def _solve(self, person: Person, limits: Limits) -> Claim:
        begun, lowered = time.perf_counter(), self.lowered
        if person.empty(lowered):
            return self._claim(_Found(bound=math.inf, ending=Ending.SOLVED), begun)
        point = person.nearest(lowered)
        if surely(lowered, point):  # nothing has to change (or only what the constraints force)
            found = _Found(bound=self._distance(person, point), ending=Ending.SOLVED, point=point)
            return self._claim(found, begun)
        known = known_row(lowered, person, lowered.need + lowered.question.error) if self.method.ball else None
        found = self._within_ball(person, known, limits, begun)
        if self.method.refine and found.point is not None and self._loose(person, found):
            again = self._within_ball(person, found.point, limits, begun)
            found = replace(again, nodes=found.nodes + again.nodes)
        return self._claim(found, begun)

    def _loose(self, person: Person, found: _Found) -> bool:
        """Solved, but not as closely as asked?"""
        if found.point is None or found.ending is not Ending.SOLVED:
            return False
        distance = self._distance(person, found.point)
        return distance - found.bound > self.tolerances.allowed(distance)

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
        need, wanted = lowered.need - error, lowered.need + error
        found = _Found(bound=0.0, ending=Ending.TROUBLE)
        bounds, missing = self._bounds(searched), None
        for attempt in range(ROUNDS):
            program = formulate(lowered, searched, need, bounds)
            outcome = self._run(program, limits, begun)
            bound = found.bound if attempt else self._bound(program, outcome.bound)
            ending = Ending.SOLVED if outcome.ending is Ending.INFEASIBLE else outcome.ending
            found = _Found(bound=bound, ending=ending, nodes=found.nodes + outcome.nodes)
            if outcome.values is None:
                return found
            row = read_point(lowered, person, program.inputs, outcome.values[: len(program.inputs)])
            point = repaired(lowered, person, row, wanted)
            if point is not None and missing is not None:
                point = pulled(lowered, person, point, missing, wanted)
            if point is not None:  # the solver's tolerances may put its bound a hair above the distance of its own row
                distance = self._distance(person, point)
                check_bound(lowered.question, person.factual, bound, distance, self.name)
                return replace(found, point=point, bound=min(bound, distance))
            if ending is not Ending.SOLVED:
                return found
            missing = row if missing is None else missing
            missed = float((need - conditions(lowered, row[None, :])[0]).max())
            need = wanted + max(MORE, 10.0 * missed)
        return replace(found, ending=Ending.TROUBLE)

    def _bounds(self, person: Person) -> Bounds:
        """Bounds of the neurons; people with the same domain share them."""
        if self.method.bounds == "interval":
            return interval_bounds(self.lowered, person)
        key = person.lower.tobytes() + person.upper.tobytes() + person.allowed.tobytes()
        if key not in self.kept and len(self.kept) >= MOST_KEPT:
            self.kept.clear()
        if key not in self.kept:
            self.kept[key] = linear_bounds(self.lowered, person)
        return self.kept[key]

    def _claim(self, found: _Found, begun: float) -> Claim:
        return Claim(
            point=found.point,
            lower=found.bound,
            method=self.name,
            limit=found.ending.value,
            nodes=found.nodes,
            seconds=time.perf_counter() - begun,
        )

    def _run(self, program: Program, limits: Limits, begun: float) -> Outcome:
        left = None if limits.seconds is None else max(limits.seconds - (time.perf_counter() - begun), 1e-3)
        settings = Settings(
            seconds=left,
            nodes=limits.nodes,
            memory_bytes=limits.memory_bytes,
            gap=self.method.gap,
            gap_absolute=self.method.gap_absolute,
        )
        return run(program.form, self.method.backend, settings)

    def _bound(self, program: Program, bound: float) -> float:
        """The solver's bound as a distance, lowered by what its tolerances may be worth."""
        if math.isinf(bound):
            return math.inf if bound > 0.0 else 0.0
        safe = bound - SLACK * (1.0 + abs(bound)) if len(program.form.cost) else bound
        total = max(safe / program.scale + program.offset, program.offset, 0.0)
        return math.sqrt(total) if self.lowered.norm is Norm.L2 else total

    def _distance(self, person: Person, point: Floats) -> float:
        question = self.lowered.question
        return float(question.distance.between(question.schema, person.factual, point))
