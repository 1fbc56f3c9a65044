"""Driver of MIP-OBJ, MIP-EXP, MIP-SAT and SAT: one person after another, each within limits.

Two people need no solver: one who has no value left for some feature, and one for whom the nearest allowed row is
favourable already (nothing has to change, or only what the constraints force).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import assert_never

import numpy as np

from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Lowered, People
from ifonly.problem.question import GUESS, GUESSES, ROOM
from ifonly.resources import LimitReached, limited
from ifonly.results import Claim, Limits, Listener, Progress, Stop, StoppedBy
from ifonly.schema.values import show_number
from ifonly.solvers.common.backends.protocol import Settings, SolveStatus
from ifonly.solvers.common.inputs import Floats, Person
from ifonly.solvers.common.repair import favourable


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What one person's answer may spend, from now on."""

    limits: Limits
    begun: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.begun

    @property
    def until(self) -> float:
        """When time is up, as of `time.perf_counter`."""
        return math.inf if self.limits.seconds is None else self.begun + self.limits.seconds

    @property
    def out(self) -> bool:
        return time.perf_counter() > self.until

    def settings(self) -> Settings:
        """What is left, for the next solve."""
        left = None if self.limits.seconds is None else max(self.limits.seconds - self.spent, 1e-3)
        return Settings(seconds=left, nodes=self.limits.nodes, memory_bytes=self.limits.memory_bytes)


def answer_each(
    lowered: Lowered,
    points: Floats,
    limits: Limits,
    listen: Listener | None,
    method: str,
    answer: Callable[[Person, Clock], Claim],
) -> list[Claim]:
    """`answer` for everyone who needs it, on one thread; its claims get their seconds here."""
    people = lowered.domains(points)
    _refuse_off_grid(lowered, people, method)
    claims: list[Claim] = []
    whole = Clock(limits=limits)
    if listen is not None:  # at the start, since the first one may take long
        listen(Progress(finished=0, people=len(people)))
    for i in range(len(people)):
        person, clock = Person.of(people, i), Clock(limits=limits)
        try:
            with limited(limits.seconds, limits.memory_bytes):
                claim = _robust_claim(lowered, person, clock, method, answer)
        except LimitReached as reached:
            claim = Claim(point=None, lower=0.0, method=method, stop=limits.stop(reached))
        claim = replace(claim, lower=max(claim.lower - lowered.grid_rounding, 0.0))
        claims.append(replace(claim, seconds=clock.spent))
        if listen is not None:
            listen(Progress(finished=i + 1, people=len(people), seconds=whole.spent))
    return claims


def _refuse_off_grid(lowered: Lowered, people: People, method: str) -> None:
    """Numbers are counted in steps from the person's own value here, so it must be on the grid if it may change."""
    free = np.argwhere(people.off_grid & (people.lower < people.upper)).tolist()
    for i, g in free[:1]:
        feature = lowered.question.schema.features[g]
        raise UnsupportedQuestion(
            f"The method '{method}' needs values on the grid, but '{feature.name}' is "
            f"{show_number(float(people.factual[i, g]))}, between its steps; use the method 'search', or fix it."
        )


def stop_of(ending: SolveStatus, limits: Limits) -> Stop | None:
    """What stopped a solver, with the number of the limit."""
    match ending:
        case SolveStatus.SOLVED | SolveStatus.ENOUGH | SolveStatus.INFEASIBLE:
            return None
        case SolveStatus.TIME:
            return Stop(StoppedBy.SECONDS, limits.seconds)
        case SolveStatus.NODES:
            return Stop(StoppedBy.NODES, limits.nodes)
        case SolveStatus.MEMORY:
            return limits.memory
        case SolveStatus.TROUBLE:
            return Stop(StoppedBy.TROUBLE)
        case _:
            assert_never(ending)


def _robust_claim(
    lowered: Lowered, person: Person, clock: Clock, method: str, answer: Callable[[Person, Clock], Claim]
) -> Claim:
    """The answer with a row that the deployed model accepts however it rounds: see `results.claim`.

    How much above the margin its score must be is known at the row itself; until then it is guessed at the factual.
    Where there is no such row, that none exists is claimed only if no rounding could accept one.
    """
    question = lowered.question
    most = question.most_error
    score_margin, own = question.score_margin(person.factual[None, :])
    rounding_bound = float(question.first_rounding_bound(person.factual[None, :])[0])
    allowance = max(GUESS * float(own[0]), ROOM * abs(float(score_margin[0])))
    if question.model.function.exact_sums:  # the library's own sums: nothing is lost here
        allowance = float(own[0])
    nodes = 0

    def ask(searched: Person) -> Claim:
        return _without_a_solver(lowered, searched, method) or answer(searched, clock)

    for _ in range(GUESSES):
        claim = ask(replace(person, rounding_bound=rounding_bound, own=allowance))
        claim, nodes = replace(claim, rounding_bound=rounding_bound, nodes=claim.nodes + nodes), claim.nodes + nodes
        if claim.point is None:
            break
        row = lowered.on_steps(person.factual[None, :], claim.point[None, :].copy())
        actual, found = float(question.error_at(row)[0]), float(question.score_margin(row)[0][0])
        if found >= max(rounding_bound, actual):  # what was proven of less holds of more
            return replace(claim, point=row[0], rounding_bound=max(rounding_bound, actual))
        claim = replace(claim, point=None)  # whatever comes next, it is no answer
        if claim.stop is not None:
            break
        allowance += GUESS * max(rounding_bound - found, 0.0)
        rounding_bound = max(rounding_bound, min(GUESS * actual, most))
    if claim.point is None and claim.lower == math.inf and claim.stop is None and most > 0.0:
        again = ask(replace(person, rounding_bound=-most))
        return replace(claim, lower=again.lower, stop=again.stop, nodes=nodes + again.nodes)
    return claim


def _without_a_solver(lowered: Lowered, person: Person, method: str) -> Claim | None:
    if person.empty(lowered):
        return Claim(point=None, lower=math.inf, method=method)
    start = person.nearest(lowered)
    if favourable(lowered, person, start[None, :], lowered.need + person.rounding_bound + person.own)[0]:
        return Claim(point=start, lower=distance_of(lowered, person, start), method=method)
    return None


def distance_of(lowered: Lowered, person: Person, point: Floats) -> float:
    """From the person to the point."""
    question = lowered.question
    return float(question.measure.between(person.factual, point))
