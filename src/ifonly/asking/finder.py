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

from ifonly.asking.findings import Findings
from ifonly.asking.found import Asked, Found, Wanted, uncounted
from ifonly.asking.tangents import Curve, nearest_within
from ifonly.caching import SizedCache, bytes_of
from ifonly.errors import Contradiction, UnsupportedQuestion
from ifonly.mip import MipInterval, MipObjective
from ifonly.model import Model
from ifonly.problem import AtMostChanges, Distance, ProbabilityTarget, Question, Target
from ifonly.problem.standing import broken_by, decided_as_asked
from ifonly.problem.target import TangentTarget
from ifonly.proof import (
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
    tidied,
)
from ifonly.proof.deployed import covering_margin
from ifonly.resources import LimitReached, limited
from ifonly.search import Enumerate, Search
from ifonly.smt import SmtPlain, SmtReduced
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

METHODS: tuple[Method, ...] = (Search(), MipObjective(), MipInterval(), SmtReduced(), SmtPlain(), Enumerate())
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


class Finder:
    """Prepares methods for questions, once each, and checks what they claim."""

    def __init__(
        self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod] | None = None
    ) -> None:
        self.model, self.tolerances = model, tolerances
        self.prepared = prepared_cache() if prepared is None else prepared
        self._questions: SizedCache[Question] = SizedCache(QUESTION_BYTES, bytes_of_question)

    # ------------------------------------------------------------------ what is kept between calls

    def question(self, target: Target, asked: Asked) -> Question:
        """The question of one target, checked once."""
        return self._questions.get_or_make(
            (target, asked.distance, asked.constraints),
            lambda: Question(model=self.model, target=target, distance=asked.distance, constraints=asked.constraints),
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

    def standing(
        self, wanted: Wanted, points: NDArray[np.float64], scores: NDArray[np.float64], asked: Asked
    ) -> list[Found | None]:
        """For each person who is decided as asked already: the row as it is, at distance 0, by the model's own word."""
        for target in wanted.alternatives:  # the question must make sense, whoever asks it
            self.question(target, asked)
        result: list[Found | None] = [None] * len(points)
        if wanted.other:
            return result
        has = decided_as_asked(wanted.target or wanted.alternatives[0], self.model, points, scores, wanted.now)
        for i in [k for k, already in enumerate(has.tolist()) if already]:
            result[i] = Found(
                Claim(point=points[i], lower=0.0, method=THE_MODEL),
                Witness(refusal="", deciding=False, distance=0.0, scores=scores[i]),
                breaks=broken_by(self.model.schema, points[i], asked.constraints),
            )
        return result

    # ------------------------------------------------------------------ the nearest row

    def found(
        self, wanted: Wanted, points: NDArray[np.float64], asked: Asked, threads: int, heard: Listener | None
    ) -> Sequence[Found]:
        """What is known of each person: the nearest row, or, if so asked, the nearest with the fewest changes."""
        if not asked.fewest_first:
            return self._nearest(wanted, points, asked, threads, heard)
        half = replace(asked, limits=_shared(asked.limits, 2))
        first = self._nearest(wanted, points, replace(half, distance=Distance("l0")), threads, uncounted(heard))
        changes = [None if f.claim.point is None else int((f.claim.point != p).sum())
                   for f, p in zip(first, points, strict=True)]  # fmt: skip
        result = [_not_yet(found) for found in first]
        for most in sorted({k for k in changes if k is not None}):
            members = [i for i, k in enumerate(changes) if k == most]
            limited = replace(half, constraints=(*asked.constraints, AtMostChanges(most)))
            nearest = self._nearest(wanted, points[members], limited, threads, heard)
            for i, found in zip(members, nearest, strict=True):
                result[i] = self._lexicographic(first[i], found, most, points[i], asked.distance)
        return result

    def _lexicographic(
        self, first: Found, second: Found, most: int, point: NDArray[np.float64], distance: Distance
    ) -> Found:
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
        return Found(replace(claim, nodes=nodes, seconds=seconds, lucky=None, record=None), witness, left)

    def _nearest(
        self, wanted: Wanted, points: NDArray[np.float64], asked: Asked, threads: int, heard: Listener | None
    ) -> Sequence[Found]:
        """The nearest row of each person: of an open target, the nearest over its alternatives."""
        questions = [self.question(target, asked) for target in wanted.alternatives]
        target = questions[0].target
        if isinstance(target, ProbabilityTarget) and target.curved(self.model):
            return self._within_curve(target, points, asked, threads, heard)
        if len(questions) == 1:
            return self._checked(questions[0], points, asked, threads, heard)
        share = replace(asked, limits=_shared(asked.limits, len(questions)))
        *first, last = questions
        told = [self._checked(question, points, share, threads, uncounted(heard)) for question in first]
        told.append(self._checked(last, points, share, threads, heard))
        return [self._nearest_of(wanted, each) for each in zip(*told, strict=True)]

    def _nearest_of(self, wanted: Wanted, each: tuple[Found, ...]) -> Found:
        """The nearest of several alternatives' rows; nothing is nearer than the least of their bounds."""
        best = min(each, key=lambda found: found.upper)
        if best.witness is not None and wanted.target is not None:
            agrees = wanted.target.agrees(self.model, best.witness.scores[None, :], wanted.now)
            if not agrees[0]:
                raise Contradiction(
                    f"A row that meets one of the alternatives of '{wanted.name}' does not meet it: "
                    f"scores {best.witness.scores.tolist()}."
                )
        weakest = min(each, key=lambda found: (found.claim.lower, found.claim.stop is None))
        claim = replace(
            best.claim,
            lower=weakest.claim.lower,
            stop=weakest.claim.stop,
            blur=max(found.claim.blur for found in each),
            lucky=_least([found.claim.lucky for found in each]),
            nodes=sum(found.claim.nodes for found in each),
            seconds=sum(found.claim.seconds for found in each),
            record=None,
        )
        return Found(claim, best.witness)

    def _within_curve(
        self,
        target: ProbabilityTarget,
        points: NDArray[np.float64],
        asked: Asked,
        threads: int,
        heard: Listener | None,
    ) -> list[Found]:
        """The nearest row of each person that has a probability which is not linear in the scores."""

        def ask(
            planes: TangentTarget, some: NDArray[np.float64], limits: Limits, hear: Listener | None
        ) -> Sequence[Found]:
            finder = self if planes == first else Finder(self.model, self.tolerances)  # only the first ones are kept
            inner = replace(asked, limits=limits)
            return finder._checked(finder.question(planes, inner), some, inner, threads, hear)

        curve = Curve(self.question(target, asked), self.tolerances)
        first = curve.first
        return nearest_within(curve, ask, points, asked.limits, heard)

    def _checked(
        self, question: Question, points: NDArray[np.float64], asked: Asked, threads: int, heard: Listener | None
    ) -> Sequence[Found]:
        """Claims whose rows the user's own model accepts. Where it refuses one, ask again with more caution."""
        load = getattr(asked.method, "load", None)
        if load is not None and not refusal(asked.method, question):
            load(question)
        begun = time.perf_counter()
        result: list[Found] = []
        waiting: Sequence[int] = range(len(points))
        for attempt in range(TRIES):
            careful = question.more_careful(CAUTION**attempt) if attempt else question
            if len(points) == 1:  # its limit is for everything from here on; of several, for their searches
                spent = time.perf_counter() - begun
            else:
                spent = max(result[i].claim.seconds for i in waiting) if result else 0.0
            who = points[waiting] if result else points
            claims = self._claims(careful, who, replace(asked, listen=None if result else heard), threads, spent)
            found = self._witnessed(question, who, claims)
            refused = _refused_rows(found, asked.method)
            if not refused and not result:
                return found
            if not result:
                result = list(found)
            for i, one in zip(waiting, found, strict=True):
                result[i] = one
            waiting = [waiting[k] for k in refused]
            for i in waiting:
                result[i] = Found(_refused(result[i].claim, careful), None)
            if not waiting:
                break
        return result

    def _claims(
        self, question: Question, points: NDArray[np.float64], asked: Asked, threads: int, spent: float
    ) -> Claims:
        """What the method claims of people who have spent so many seconds. Preparing it is part of one person's time;
        for several it may take as long as they may together.
        """
        limits, begun = asked.limits, time.perf_counter()
        seconds = limits.after(spent).seconds
        try:
            with limited(None if seconds is None else seconds * len(points), limits.memory_bytes):
                prepared = self._solver(question, asked.method)
            if limits.memory_bytes is not None and prepared.nbytes > limits.memory_bytes:
                raise LimitReached("memory")
        except LimitReached as reached:
            spent += time.perf_counter() - begun
            stop = limits.stop(reached)
            nothing = Claim(point=None, lower=0.0, method=asked.method.name, stop=stop, seconds=spent)
            return Claims.of([nothing] * len(points), points)
        spent += time.perf_counter() - begun if len(points) == 1 else 0.0
        left = limits.after(spent)
        told = prepared.solver.solve(points, left, threads=threads, listen=asked.listen)
        claims = _believable(told, points, asked.method)
        return claims if left is limits else claims.counting(spent, limits)

    def _witnessed(self, question: Question, points: NDArray[np.float64], claims: Claims) -> Findings:
        """The claims, tidied where the model agrees, with what stopped them, and the check of each claimed row."""
        tidy = tidied(question, points, claims, self.tolerances)
        witnesses = _witnesses(question, points, tidy)
        if witnesses.refusals:  # of what is shorter, perhaps, and not of what was claimed
            rows = tidy.points.copy()
            rows[list(witnesses.refusals)] = claims.points[list(witnesses.refusals)]
            tidy = tidy.at(rows)
            witnesses = _witnesses(question, points, tidy)
        unsettled = self.tolerances.unsettled(tidy.lower, witnesses.distances)
        stops = {k: self._left_open(question, tidy, k) for k in unsettled if k not in tidy.stops}
        return Findings(claims=replace(tidy, stops={**tidy.stops, **stops}) if stops else tidy, witnesses=witnesses)

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


def _refused_rows(found: Findings, method: Method) -> list[int]:
    """Those whose row the model does not decide as asked. No other refusal is possible."""
    for k, why in found.witnesses.refusals.items():
        if k not in found.witnesses.deciding:
            raise Contradiction(f"Method '{method.name}' returned a wrong row: {why}.")
    return sorted(found.witnesses.refusals)


def _refused(claim: Claim, careful: Question) -> Claim:
    """A claim whose row the deployed model refuses. It is then not the model that the bound was proven for."""
    margin = covering_margin(careful.more_careful(CAUTION))
    return replace(claim, point=None, lower=0.0, lucky=None, stop=Stop(StoppedBy.REFUSED, margin))


def _not_yet(found: Found) -> Found:
    """Before the second of two stages: without a row, all that is known is whether there can be one."""
    lower = math.inf if found.claim.lower == math.inf else 0.0
    return Found(replace(found.claim, point=None, lower=lower, lucky=None, record=None), None)


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
