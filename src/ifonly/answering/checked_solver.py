"""From a target and people to claims about them that the user's own model has checked.

a plain target      the method's claim, and the witness check; a row that the model refuses is asked for again
a curved target     the same for planes around it, more of them until the row found has the probability (`tangents`)
an open target      the nearest row over its alternatives, the least of their bounds
the fewest first    the least number of changes (l0), then the nearest row with no more
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.checked_results import CheckedResults
from ifonly.answering.probability_planes import ProbabilityQuestion, nearest_within
from ifonly.answering.values import CheckedResult, PreparedQuery, ResolvedTarget, uncounted
from ifonly.caching import SizedCache, bytes_of
from ifonly.errors import Contradiction, UnsupportedQuestion
from ifonly.model import Model
from ifonly.problem import Distance, MaxChanges, ProbabilityTarget, Question, Target
from ifonly.problem.already_satisfied import already_decided, broken_by
from ifonly.problem.target import TangentTarget
from ifonly.resources import LimitReached, limited
from ifonly.results import (
    Claim,
    Claims,
    Limits,
    Listener,
    Method,
    Solver,
    Stop,
    StoppedBy,
    Witness,
    Witnesses,
    check_witnesses,
    shortened,
)
from ifonly.results.deployed import covering_margin
from ifonly.solvers.mip import MipExp, MipObj
from ifonly.solvers.search import Enumerate, Search
from ifonly.solvers.smt import Mace, MipSat
from ifonly.tolerances import Tolerances

CAUTION = 16.0
"""By how much more a refused row's rounding error is taken for, attempt after attempt."""
TRIES = 3
QUESTION_BYTES = 2**24
"""Questions that are kept from call to call."""
PREPARED_BYTES = 2**29
"""Methods, prepared for questions, that are kept from call to call."""
COUNT_TOLERANCE = 1e-6
"""Rounding in a bound on a number of changes, which is whole."""

EXACT = ("search", "enumerate")
"""Methods without tolerances of their own: what they leave open is due to rounding."""
THE_MODEL = "model"
"""The method of an answer that took no search: the user's model was asked about the row as it is."""

METHODS: tuple[Method, ...] = (Search(), MipObj(), MipExp(), MipSat(), Mace(), Enumerate())
"""Those that a refusal can name."""


class PreparedMethod(NamedTuple):
    """A method that is ready for a question, and what that takes."""

    solver: Solver
    nbytes: int
    kept_bytes: int
    """With the buffers that it may come to keep."""


def prepared_cache() -> SizedCache[PreparedMethod]:
    """For the prepared questions of one explainer: of everybody, whatever numbers they lack."""
    return SizedCache(PREPARED_BYTES, _prepared_bytes)


def _prepared_bytes(prepared: PreparedMethod) -> int:
    return prepared.kept_bytes


class CheckedSolver:
    """Prepares methods for questions, once each, and checks what they claim."""

    def __init__(
        self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod] | None = None
    ) -> None:
        self.model, self.tolerances = model, tolerances
        self.prepared = prepared_cache() if prepared is None else prepared
        self._questions: SizedCache[Question] = SizedCache(QUESTION_BYTES, bytes_of_question)

    # ------------------------------------------------------------------ what is kept between calls

    def question(self, target: Target, prepared_query: PreparedQuery) -> Question:
        """The question of one target, checked once."""
        return self._questions.get_or_make(
            (target, prepared_query.distance, prepared_query.constraints),
            lambda: Question(
                model=self.model,
                target=target,
                distance=prepared_query.distance,
                constraints=prepared_query.constraints,
            ),
        )

    def _solver(self, question: Question, method: Method) -> PreparedMethod:
        key = (self, question.target, question.distance, question.constraints, question.caution, method)
        return self.prepared.get_or_make(key, lambda: self._prepared(question, method))

    def _prepared(self, question: Question, method: Method) -> PreparedMethod:
        """The method, ready for the question; where it cannot take it, a sentence that names one that can."""
        if why := refusal(method, question):
            able = [other.name for other in METHODS if not refusal(other, question)]
            others = f"; use {' or '.join(able)}" if able else "; no method can take it"
            raise UnsupportedQuestion(f"{why}{others}.")
        solver = method.prepare(question, self.tolerances)
        shared = (self.model, self.model.function, self.model.schema, *getattr(solver, "shared", ()))
        nbytes = bytes_of(solver, shared)
        return PreparedMethod(solver, nbytes, nbytes + getattr(solver, "buffer_bytes", 0))

    # ------------------------------------------------------------------ who has it already

    def already_satisfied(
        self,
        resolved: ResolvedTarget,
        points: NDArray[np.float64],
        scores: NDArray[np.float64],
        prepared_query: PreparedQuery,
    ) -> list[CheckedResult | None]:
        """For each person who is decided as asked already: the row as it is, at distance 0, by the model's own word."""
        for target in resolved.alternatives:  # the question must make sense, whoever asks it
            self.question(target, prepared_query)
        result: list[CheckedResult | None] = [None] * len(points)
        if resolved.other:
            return result
        has = already_decided(resolved.target or resolved.alternatives[0], self.model, points, scores, resolved.now)
        for i in [k for k, already in enumerate(has.tolist()) if already]:
            result[i] = CheckedResult(
                Claim(point=points[i], lower=0.0, method=THE_MODEL),
                Witness(refusal="", deciding=False, distance=0.0, scores=scores[i]),
                breaks=broken_by(self.model.schema, points[i], prepared_query.constraints),
            )
        return result

    # ------------------------------------------------------------------ the nearest row

    def found(
        self,
        resolved: ResolvedTarget,
        points: NDArray[np.float64],
        prepared_query: PreparedQuery,
        threads: int,
        with_progress: Listener | None,
    ) -> Sequence[CheckedResult]:
        """What is known of each person: the nearest row, or, if so asked, the nearest with the fewest changes."""
        if not prepared_query.fewest_first:
            return self._nearest(resolved, points, prepared_query, threads, with_progress)
        half = replace(prepared_query, limits=_shared(prepared_query.limits, 2))
        first = self._nearest(
            resolved, points, replace(half, distance=Distance("l0")), threads, uncounted(with_progress)
        )
        changes = [None if f.claim.point is None else int((f.claim.point != p).sum())
                   for f, p in zip(first, points, strict=True)]  # fmt: skip
        result = [_not_yet(found) for found in first]
        for most in sorted({k for k in changes if k is not None}):
            members = [i for i, k in enumerate(changes) if k == most]
            limited = replace(half, constraints=(*prepared_query.constraints, MaxChanges(most)))
            nearest = self._nearest(resolved, points[members], limited, threads, with_progress)
            for i, found in zip(members, nearest, strict=True):
                result[i] = self._lexicographic(first[i], found, most, points[i], prepared_query.distance)
        return result

    def _lexicographic(
        self, first: CheckedResult, second: CheckedResult, most: int, point: NDArray[np.float64], distance: Distance
    ) -> CheckedResult:
        """A row with the fewest changes, and the nearest with no more: the second, or the first if that has none."""
        assert first.witness is not None and first.claim.point is not None
        if second.claim.lower == math.inf:
            raise Contradiction(
                f"Method '{second.claim.method}' found a row with {most} changes, but claims that none exists."
            )
        apart = distance.between(self.model.schema, point, first.claim.point)
        claim, witness = second.claim, second.witness
        if witness is None or witness.distance > apart:
            claim = replace(claim, point=first.claim.point)
            witness = replace(first.witness, distance=apart)
        fewer = first.claim.lower * len(self.model.schema) <= most - 1 + COUNT_TOLERANCE
        left = Stop(StoppedBy.FEWER, most, cause=first.claim.stop) if fewer else None
        nodes, seconds = first.claim.nodes + claim.nodes, first.claim.seconds + claim.seconds
        return CheckedResult(
            replace(claim, nodes=nodes, seconds=seconds, lower_any_rounding=None, record=None), witness, left
        )

    def _nearest(
        self,
        resolved: ResolvedTarget,
        points: NDArray[np.float64],
        prepared_query: PreparedQuery,
        threads: int,
        with_progress: Listener | None,
    ) -> Sequence[CheckedResult]:
        """The nearest row of each person: of an open target, the nearest over its alternatives."""
        questions = [self.question(target, prepared_query) for target in resolved.alternatives]
        target = questions[0].target
        if isinstance(target, ProbabilityTarget) and target.curved(self.model):
            return self._within_curve(target, points, prepared_query, threads, with_progress)
        if len(questions) == 1:
            return self._checked(questions[0], points, prepared_query, threads, with_progress)
        share = replace(prepared_query, limits=_shared(prepared_query.limits, len(questions)))
        *first, last = questions
        told = [self._checked(question, points, share, threads, uncounted(with_progress)) for question in first]
        told.append(self._checked(last, points, share, threads, with_progress))
        return [self._nearest_of(resolved, each) for each in zip(*told, strict=True)]

    def _nearest_of(self, resolved: ResolvedTarget, each: tuple[CheckedResult, ...]) -> CheckedResult:
        """The nearest of several alternatives' rows; nothing is nearer than the least of their bounds."""
        best = min(each, key=lambda found: found.upper)
        if best.witness is not None and resolved.target is not None:
            agrees = resolved.target.agrees(self.model, best.witness.scores[None, :], resolved.now)
            if not agrees[0]:
                raise Contradiction(
                    f"A row that meets one of the alternatives of '{resolved.name}' does not meet it: "
                    f"scores {best.witness.scores.tolist()}."
                )
        weakest = min(each, key=lambda found: (found.claim.lower, found.claim.stop is None))
        claim = replace(
            best.claim,
            lower=weakest.claim.lower,
            stop=weakest.claim.stop,
            rounding_bound=max(found.claim.rounding_bound for found in each),
            lower_any_rounding=_least([found.claim.lower_any_rounding for found in each]),
            nodes=sum(found.claim.nodes for found in each),
            seconds=sum(found.claim.seconds for found in each),
            record=None,
        )
        return CheckedResult(claim, best.witness)

    def _within_curve(
        self,
        target: ProbabilityTarget,
        points: NDArray[np.float64],
        prepared_query: PreparedQuery,
        threads: int,
        with_progress: Listener | None,
    ) -> list[CheckedResult]:
        """The nearest row of each person that has a probability which is not linear in the scores."""

        def ask(
            planes: TangentTarget, some: NDArray[np.float64], limits: Limits, with_progress: Listener | None
        ) -> Sequence[CheckedResult]:
            finder = (
                self if planes == first else CheckedSolver(self.model, self.tolerances)
            )  # only the first ones are kept
            inner = replace(prepared_query, limits=limits)
            return finder._checked(finder.question(planes, inner), some, inner, threads, with_progress)

        curve = ProbabilityQuestion(self.question(target, prepared_query), self.tolerances)
        first = curve.first
        return nearest_within(curve, ask, points, prepared_query.limits, with_progress)

    def _checked(
        self,
        question: Question,
        points: NDArray[np.float64],
        prepared_query: PreparedQuery,
        threads: int,
        with_progress: Listener | None,
    ) -> Sequence[CheckedResult]:
        """Claims whose rows the user's own model accepts. Where it refuses one, ask again with more caution."""
        load = getattr(prepared_query.method, "load", None)
        if load is not None and not refusal(prepared_query.method, question):
            load(question)
        begun = time.perf_counter()
        result: list[CheckedResult] = []
        waiting: Sequence[int] = range(len(points))
        for attempt in range(TRIES):
            careful = question.more_careful(CAUTION**attempt) if attempt else question
            if len(points) == 1:  # its limit is for everything from here on; of several, for their searches
                spent = time.perf_counter() - begun
            else:
                spent = max(result[i].claim.seconds for i in waiting) if result else 0.0
            who = points[waiting] if result else points
            claims = self._claims(
                careful, who, replace(prepared_query, listen=None if result else with_progress), threads, spent
            )
            found = self._witnessed(question, who, claims)
            refused = _refused_rows(found, prepared_query.method)
            if not refused and not result:
                return found
            if not result:
                result = list(found)
            for i, one in zip(waiting, found, strict=True):
                result[i] = one
            waiting = [waiting[k] for k in refused]
            for i in waiting:
                result[i] = CheckedResult(_refused(result[i].claim, careful), None)
            if not waiting:
                break
        return result

    def _claims(
        self, question: Question, points: NDArray[np.float64], prepared_query: PreparedQuery, threads: int, spent: float
    ) -> Claims:
        """What the method claims of people who have spent so many seconds. Preparing it is part of one person's time;
        for several it may take as long as they may together.
        """
        limits, begun = prepared_query.limits, time.perf_counter()
        seconds = limits.after(spent).seconds
        try:
            with limited(None if seconds is None else seconds * len(points), limits.memory_bytes):
                prepared = self._solver(question, prepared_query.method)
            if limits.memory_bytes is not None and prepared.nbytes > limits.memory_bytes:
                raise LimitReached("memory")
        except LimitReached as reached:
            spent += time.perf_counter() - begun
            stop = limits.stop(reached)
            nothing = Claim(point=None, lower=0.0, method=prepared_query.method.name, stop=stop, seconds=spent)
            return Claims.of([nothing] * len(points), points)
        spent += time.perf_counter() - begun if len(points) == 1 else 0.0
        left = limits.after(spent)
        told = prepared.solver.solve(points, left, threads=threads, listen=prepared_query.listen)
        claims = _believable(told, points, prepared_query.method)
        return claims if left is limits else claims.counting(spent, limits)

    def _witnessed(self, question: Question, points: NDArray[np.float64], claims: Claims) -> CheckedResults:
        """The claims, tidied where the model agrees, with what stopped them, and the check of each claimed row."""
        tidy = shortened(question, points, claims, self.tolerances)
        witnesses = _witnesses(question, points, tidy)
        if witnesses.refusals:  # of what is shorter, perhaps, and not of what was claimed
            rows = tidy.points.copy()
            rows[list(witnesses.refusals)] = claims.points[list(witnesses.refusals)]
            tidy = tidy.at(rows)
            witnesses = _witnesses(question, points, tidy)
        unsettled = self.tolerances.unsettled(tidy.lower, witnesses.distances)
        stops = {k: self._left_open(question, tidy, k) for k in unsettled if k not in tidy.stops}
        return CheckedResults(
            claims=replace(tidy, stops={**tidy.stops, **stops}) if stops else tidy, witnesses=witnesses
        )

    def _left_open(self, question: Question, claims: Claims, k: int) -> Stop:
        """What arithmetic left open of a claim that nothing stopped.

        Without a row: no row is sure, and some may be accepted by luck. With one: a solver's tolerances, the edge of a
        rule about real numbers, or scores that float64 cannot tell from the margin.
        """
        if not claims.found[k]:
            return Stop(StoppedBy.ROUNDING, float(question.largest_error), question.model.precision)
        if claims.methods[k] not in EXACT:
            return Stop(StoppedBy.TOLERANCES)
        edges = question.rules and len(question.schema.reals)  # rules about other values have no edges
        return Stop(StoppedBy.EDGE if edges else StoppedBy.CLOSE)


def bytes_of_question(question: Question) -> int:
    """What a question takes beside its model."""
    return bytes_of(question, (question.model, question.model.schema))


def refusal(method: Method, question: Question) -> str:
    """Why a method cannot take a question; empty when it can, or does not say."""
    refuses = getattr(method, "refuses", None)
    return str(refuses(question)) if refuses is not None else ""


def _believable(told: Sequence[Claim], points: NDArray[np.float64], method: Method) -> Claims:
    """What a method says, if it can be a claim about each of these people."""
    if len(told) != len(points):
        raise Contradiction(f"Method '{method.name}' gave {len(told)} claims for {len(points)} people.")
    claims = Claims.of(told, points)
    if not (claims.lower >= 0.0).all():
        raise Contradiction(f"Method '{method.name}' gave a lower bound of {claims.lower.min()}.")
    return claims


def _refused_rows(found: CheckedResults, method: Method) -> list[int]:
    """Those whose row the model does not decide as asked. No other refusal is possible."""
    for k, why in found.witnesses.refusals.items():
        if k not in found.witnesses.deciding:
            raise Contradiction(f"Method '{method.name}' returned a wrong row: {why}.")
    return sorted(found.witnesses.refusals)


def _refused(claim: Claim, careful: Question) -> Claim:
    """A claim whose row the deployed model refuses. It is then not the model that the bound was proven for."""
    margin = covering_margin(careful.more_careful(CAUTION))
    return replace(claim, point=None, lower=0.0, lower_any_rounding=None, stop=Stop(StoppedBy.REFUSED, margin))


def _not_yet(found: CheckedResult) -> CheckedResult:
    """Before the second of two stages: without a row, all that is known is whether there can be one."""
    lower = math.inf if found.claim.lower == math.inf else 0.0
    return CheckedResult(replace(found.claim, point=None, lower=lower, lower_any_rounding=None, record=None), None)


def _least(bounds: list[float | None]) -> float | None:
    """The least of several bounds; None where one is not known."""
    known = [bound for bound in bounds if bound is not None]
    return min(known) if len(known) == len(bounds) else None


def _shared(limits: Limits, parts: int) -> Limits:
    """The limits of a row, divided among the searches that its answer takes."""
    seconds = None if limits.seconds is None else limits.seconds / parts
    return replace(limits, seconds=seconds, nodes=None if limits.nodes is None else max(1, limits.nodes // parts))


def _witnesses(question: Question, points: NDArray[np.float64], claims: Claims) -> Witnesses:
    """The check of each claimed row; of claims without one, an infinite distance and no scores."""
    if claims.found.all():
        return check_witnesses(question, points, claims.points)
    distances = np.full(len(claims), math.inf)
    scores = np.full((len(claims), question.model.outputs), math.nan)
    found = np.flatnonzero(claims.found).tolist()
    if not found:
        return Witnesses(distances=distances, scores=scores)
    told = check_witnesses(question, points[found], claims.points[found])
    distances[found], scores[found] = told.distances, told.scores
    return Witnesses(
        distances=distances,
        scores=scores,
        refusals={found[k]: refusal for k, refusal in told.refusals.items()},
        deciding=frozenset(found[k] for k in told.deciding),
    )
