"""What MIP-OBJ, MIP-EXP, MIP-SAT and SAT share around their solvers: one person after another, each on a clock.

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
from ifonly.exact.backends.protocol import Ending, Settings
from ifonly.exact.inputs import Floats, Person
from ifonly.exact.repair import favourable
from ifonly.problem import Lowered, People
from ifonly.proof import Claim, Limits, Listener, Progress, Stop, StoppedBy
from ifonly.schema.features import show_number


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What one person's answer may spend, from now on."""

    limits: Limits
    begun: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.begun

    @property
    def out(self) -> bool:
        return self.limits.seconds is not None and self.spent > self.limits.seconds

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
    for i in range(len(people)):
        person, clock = Person.of(people, i), Clock(limits=limits)
        claim = _without_a_solver(lowered, person, method) or answer(person, clock)
        if claim.point is not None:
            point = lowered.on_steps(person.factual[None, :], claim.point[None, :].copy())[0]
            claim = replace(claim, point=point)
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


def stop_of(ending: Ending, limits: Limits) -> Stop | None:
    """What stopped a solver, with the number of the limit."""
    match ending:
        case Ending.SOLVED | Ending.ENOUGH | Ending.INFEASIBLE:
            return None
        case Ending.TIME:
            return Stop(StoppedBy.SECONDS, limits.seconds)
        case Ending.NODES:
            return Stop(StoppedBy.NODES, limits.nodes)
        case Ending.MEMORY:
            return limits.memory
        case Ending.TROUBLE:
            return Stop(StoppedBy.TROUBLE)
        case _:
            assert_never(ending)


def _without_a_solver(lowered: Lowered, person: Person, method: str) -> Claim | None:
    if person.empty(lowered):
        return Claim(point=None, lower=math.inf, method=method)
    start = person.nearest(lowered)
    if favourable(lowered, person, start[None, :], lowered.need + lowered.question.error)[0]:
        return Claim(point=start, lower=distance_of(lowered, person, start), method=method)
    return None


def distance_of(lowered: Lowered, person: Person, point: Floats) -> float:
    """From the person to the point."""
    question = lowered.question
    return float(question.measure.between(person.factual, point))
