"""Several models in one question: those that refuse the nearest row of the others are added, the worst first.

The nearest row that some of the models accept is a relaxation: nothing that all accept is nearer. If the others accept
it, too, under any rounding, it is the nearest row of all; if there is none, there is none of all. So a model that does
not matter to a person costs one evaluation, and the search that proves the answer is about those that do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question
from ifonly.problem.elimination import Elimination, eliminated
from ifonly.problem.joint_target import JointTarget
from ifonly.resources import LimitReached, limited
from ifonly.results import Claim, Claims, Limits, Listener, Progress, Solver
from ifonly.solvers.search.enumerate import robustly_accepted
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]
Prepare = Callable[[Question, Tolerances], Solver]

AT_ONCE = 4
"""How many networks are added at a time, also some that do not refuse where no more are left: a box is bounded for
those that matter in it (`kernels.groups`), so that one search costs less than one after another. Other models are added
one at a time."""


@dataclass(frozen=True)
class _Prepared:
    """The search under some of the models; where derived features are eliminated, of the reduced question."""

    solver: Solver
    elimination: Elimination | None

    def claims(self, points: Floats, limits: Limits, threads: int, listen: Listener | None) -> Claims:
        own = points if self.elimination is None else self.elimination.reduced(points)
        claims = Claims.of(self.solver.solve(own, limits, threads=threads, listen=listen), own)
        if self.elimination is None:
            return claims
        rows = self.elimination.rows(claims.points)
        return replace(claims, points=np.where(claims.found[:, None], rows, points))


class SeveralModels:
    """The search for a question to several models, of which the first is the one that is explained."""

    def __init__(self, prepare: Prepare, question: Question, tolerances: Tolerances) -> None:
        assert isinstance(question.target, JointTarget)
        self._prepare, self.question, self.target, self.tolerances = prepare, question, question.target, tolerances
        self._known: dict[tuple[tuple[int, ...], bool], _Prepared] = {}
        self._solver((0,), True)  # what cannot be searched is refused here

    def _solver(self, models: tuple[int, ...], reduced: bool) -> _Prepared:
        """The search under these models, prepared once."""
        if (models, reduced) not in self._known:
            question = self.question.to(self.target.part(models))
            searched, elimination = (eliminated(question) if reduced else None) or (question, None)
            self._known[models, reduced] = _Prepared(self._prepare(searched, self.tolerances), elimination)
        return self._known[models, reduced]

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        result: list[Claim | None] = [None] * len(points)
        waiting: dict[tuple[int, ...], list[int]] = {(0,): list(range(len(points)))}
        nodes, seconds = np.zeros(len(points), dtype=np.int64), np.zeros(len(points))
        best: dict[int, Claim] = {}
        while waiting:
            models = min(waiting, key=len)
            people = waiting.pop(models)
            rest = limits.after(float(seconds[people].max()), int(nodes[people].max()))
            begun = time.perf_counter()
            claims = self._under(models, points[people], rest, threads, _counted(listen, result))
            seconds[people] += (time.perf_counter() - begun) / len(people)
            nodes[people] += claims.nodes
            refusing = self._refusing(models, points[people], claims)
            for k, i in enumerate(people):
                claim = replace(claims[k], nodes=int(nodes[i]), seconds=float(seconds[i]), record=None)
                claim = best[i] = _with_bound_of(best.get(i), claim)
                doubtful = claim.point is None and claim.lower < math.inf and claim.stop is None
                if doubtful and len(models) < len(self.target.models):  # only some rounding accepts: do all models?
                    waiting.setdefault(tuple(range(len(self.target.models))), []).append(i)
                elif not refusing[k]:
                    result[i] = claim
                elif claim.stop is not None or rest.reached(nodes=int(claims.nodes[k])) is not None:
                    stop = claim.stop or rest.reached(nodes=int(claims.nodes[k]))
                    result[i] = replace(claim, point=None, stop=stop, lower_any_rounding=None)
                else:
                    waiting.setdefault(self._with(models, refusing[k]), []).append(i)
        if listen is not None:
            listen(Progress(finished=len(points), people=len(points)))
        return [claim for claim in result if claim is not None]

    def _with(self, models: tuple[int, ...], refusing: list[int]) -> tuple[int, ...]:
        """These models and some of those that refuse, which may make others needless: these are added only if they
        refuse."""
        functions = [one.function for one in self.target.models]
        others = [k for k in range(len(functions)) if k not in models]
        networks = all(functions[k].search == "network" for k in (*models, *others))
        if networks and len(others) <= AT_ONCE:
            refusing = [*refusing, *(k for k in others if k not in refusing)]
        more = refusing[: AT_ONCE if networks else 1]
        together = [*models, *more[1:]]
        needed = [k for k in together if not functions[more[0]].implies(functions[k])]
        return tuple(sorted([*needed, more[0]]))

    def _under(
        self, models: tuple[int, ...], points: Floats, limits: Limits, threads: int, listen: Listener | None
    ) -> Claims:
        """What the search under these models claims."""
        try:
            seconds = None if limits.seconds is None else limits.seconds * len(points)
            with limited(seconds, limits.memory_bytes):
                prepared = self._solver(models, True)
                if prepared.elimination is not None and not prepared.elimination.takes(points):
                    prepared = self._solver(models, False)
        except LimitReached as reached:
            nothing = Claim(point=None, lower=0.0, method="search", stop=limits.stop(reached))
            return Claims.of([nothing] * len(points), points)
        return prepared.claims(points, limits, threads, listen)

    def _refusing(self, models: tuple[int, ...], points: Floats, claims: Claims) -> list[list[int]]:
        """Of each claimed row, the models outside of these that refuse it, those first that do by most in units of how
        far the person was from them; none where there is no row."""
        shares = np.full((len(points), len(self.target.models)), -math.inf)
        rows = np.flatnonzero(claims.found)
        for k, member in enumerate(self.question.members if len(rows) else ()):
            if k in models:
                continue
            refused = rows[~robustly_accepted(member, claims.points[rows])]
            if not len(refused):
                continue
            short, before = (-member.score_margin(x[refused])[0] for x in (claims.points, points))
            shares[refused, k] = short / np.maximum(np.abs(before), 1e-12)
        order = np.argsort(-shares, axis=1, kind="stable")
        return [[int(k) for k in line if shares[i, k] > -math.inf] for i, line in enumerate(order)]


def _with_bound_of(earlier: Claim | None, claim: Claim) -> Claim:
    """A claim that was cut short, with the bound of fewer models where that is higher: it holds for all of them."""
    if earlier is None or claim.stop is None or earlier.lower <= claim.lower:
        return claim
    return replace(claim, lower=earlier.lower, rounding_bound=max(claim.rounding_bound, earlier.rounding_bound))


def _counted(listen: Listener | None, result: list[Claim | None]) -> Listener | None:
    """A listener that counts those who are answered, whatever a part of the search says of that."""
    if listen is None:
        return None

    def tell(progress: Progress) -> None:
        listen(replace(progress, finished=sum(one is not None for one in result), people=len(result)))

    return tell
