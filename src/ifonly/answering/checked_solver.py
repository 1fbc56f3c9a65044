"""Solver with an independent check: the nearest rows that a method claims, each checked with the user's own model.

a plain target      the method's claim, and the check of its row; where the model refuses it, another search
a curved target     the same for tangent planes, more of them until the row has the probability (`probability_planes`)
an open target      the nearest row over its alternatives, and the least of their bounds
fewest first        lexicographic: the least number of changes (l0), then the nearest row with no more
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ifonly.answering.checked_claims import checked_claims, valid_claims
from ifonly.answering.prepared_methods import (
    PreparedMethod,
    PreparedMethods,
    accepted_by_neighbours,
    prepared_cache,
    refusal,
)
from ifonly.answering.probability_planes import ProbabilityQuestion, nearest_within
from ifonly.answering.values import CheckedResult, Floats, ResolvedTarget, SearchSettings, uncounted
from ifonly.answering.weight_scenarios import Searches, nearest_robust, surroundings
from ifonly.caching import SizedCache
from ifonly.errors import Contradiction
from ifonly.model import Model
from ifonly.problem import Accepted, Distance, MaxChanges, ProbabilityTarget, Query, Question, RobustToWeights, Target
from ifonly.problem.already_satisfied import already_decided, broken_by
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.rules.derived import derived_features
from ifonly.problem.target import TangentTarget
from ifonly.resources import LimitReached, limited
from ifonly.results import (
    Claim,
    Claims,
    Limits,
    Listener,
    Stop,
    StoppedBy,
)
from ifonly.results.deployed import covering_margin
from ifonly.solvers.search import Search
from ifonly.tolerances import Tolerances

CAUTION = 16.0
"""The factor on the bound of the rounding error after each refused row."""
TRIES = 3
COUNT_TOLERANCE = 1e-6
"""Rounding in a bound on a number of changes, which is whole."""

THE_MODEL = "model"
"""The method of an answer without a search: the user's model decides the unchanged row."""


class CheckedSolver:
    """Prepares a method for each question once, and checks the rows that it claims."""

    def __init__(
        self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod] | None = None
    ) -> None:
        self.model, self.tolerances = model, tolerances
        self.prepared = prepared_cache() if prepared is None else prepared
        self._methods = PreparedMethods(model, tolerances, self.prepared)

    def question(self, target: Target, query: Query) -> Question:
        """The question of one target under a query without conditions; checked once."""
        return self._methods.question(target, query)

    def prepare(
        self, resolved: ResolvedTarget, query: Query, settings: SearchSettings, point: Floats, *, wait: bool
    ) -> bool:
        """Prepare the method for what it is asked first under this query, and begin with some point. Were all searches
        begun? `wait`: until its kernels are compiled; else within the limits of one row."""
        method, limits, points, begun = settings.method, settings.limits, point[None, :], []
        for question in self._first_questions(resolved, query):
            load = getattr(method, "wait" if wait else "load", None)
            if load is not None and not refusal(method, question.joint):
                load(question.joint)
            seconds = None if wait else limits.seconds
            with suppress(LimitReached), limited(seconds, limits.memory_bytes):  # each answer says what was reached
                prepared = self._methods.method(question, method)
                begin = getattr(prepared.solver, "begin", None)
                begun += [begin is not None and prepared.takes(points) and begin(prepared.reduced(points), wait=wait)]
        return len(begun) > 0 and all(begun)

    def _first_questions(self, resolved: ResolvedTarget, query: Query) -> list[Question]:
        """The questions that the method is asked of anybody, each before it is known what it finds."""
        query = replace(query, distance="l0") if query.fewest_first else query
        asked = [self.question(target, query) for target in resolved.alternatives]
        target = asked[0].target
        if isinstance(target, ProbabilityTarget) and target.curved(self.model):
            return [self.question(ProbabilityQuestion(asked[0], self.tolerances).first, query)]
        return asked

    # ------------------------------------------------------------------ people who meet the target already

    def already_satisfied(
        self, resolved: ResolvedTarget, points: Floats, scores: Floats, query: Query
    ) -> list[CheckedResult | None]:
        """For each person who meets the target already: the unchanged row, at distance 0, by the model's own scores."""
        for target in resolved.alternatives:  # the question must be valid for everybody
            self.question(target, query)
        result: list[CheckedResult | None] = [None] * len(points)
        if resolved.other:
            return result
        met = already_decided(resolved.target or resolved.alternatives[0], self.model, points, scores, resolved.now)
        for other in (one for one in query.constraints if isinstance(one, Accepted | RobustToWeights)):
            if met.any():
                ways = {accepted_by_neighbours(other, self.model, target) for target in resolved.alternatives}
                met[met] = np.any([way.accepts_unchanged(self.model.schema, points[met]) for way in ways], axis=0)
        for i in np.flatnonzero(met).tolist():
            result[i] = CheckedResult(
                Claim(point=points[i], lower=0.0, method=THE_MODEL),
                upper=0.0,
                scores=scores[i],
                breaks=broken_by(self.model.schema, points[i], query.constraints),
            )
        return result

    # ------------------------------------------------------------------ the nearest row

    def nearest(
        self, resolved: ResolvedTarget, points: Floats, query: Query, settings: SearchSettings
    ) -> Sequence[CheckedResult]:
        """The nearest row of each person; with `fewest_first`, the nearest of those with the fewest changes."""
        if not query.fewest_first:
            return self._nearest(resolved, points, query, settings)
        half = replace(settings, limits=_shared(settings.limits, 2))
        first = self._nearest(
            resolved, points, replace(query, distance="l0"), replace(half, listen=uncounted(settings.listen))
        )
        derived = derived_features(query.constraints)
        counts = np.array([name not in derived for name in self.model.schema.names])
        changes = [None if one.point is None else int((one.point != p)[counts].sum())
                   for one, p in zip(first, points, strict=True)]  # fmt: skip
        result = [_not_yet(one) for one in first]
        for most in sorted({k for k in changes if k is not None}):
            members = [i for i, k in enumerate(changes) if k == most]
            restricted = replace(query, constraints=(*query.constraints, MaxChanges(most)))
            nearest = self._nearest(resolved, points[members], restricted, half)
            for i, second in zip(members, nearest, strict=True):
                result[i] = self._lexicographic(first[i], second, most, points[i], query.measure.without(derived))
        return result

    def nothing_below(
        self, resolved: ResolvedTarget, point: Floats, query: Query, distance: float, settings: SearchSettings
    ) -> tuple[float, int, float] | None:
        """Where the method proves soon that nothing is nearer than a distance: a bound, nodes, seconds."""
        prepared = self._prepared_for_bounds(resolved, query, settings)
        known = None if prepared is None else getattr(prepared.solver, "nothing_below", None)
        if prepared is None or known is None or not prepared.takes(point[None, :]):
            return None
        return known(prepared.reduced(point[None, :])[0], distance, settings.limits)

    def nearest_below(
        self, resolved: ResolvedTarget, point: Floats, query: Query, distance: float, settings: SearchSettings
    ) -> CheckedResult | None:
        """The nearest row, if one is nearer than a distance, checked; else a bound. None where the method cannot tell,
        or where the model refuses the row: then it takes a search without a cutoff."""
        prepared, points = self._prepared_for_bounds(resolved, query, settings), point[None, :]
        search = None if prepared is None else getattr(prepared.solver, "nearest_below", None)
        if prepared is None or search is None or not prepared.takes(points):
            return None
        claim = search(prepared.reduced(points)[0], distance, settings.limits)
        if claim is None or claim.point is None:
            return None if claim is None else CheckedResult(claim)
        claim = replace(claim, point=prepared.rows(claim.point[None, :])[0])
        question = self.question(resolved.alternatives[0], query)
        found, refused = checked_claims(question, points, Claims.of([claim], points), self.tolerances)
        return None if refused else found[0]

    def bounds_in_boxes(
        self,
        resolved: ResolvedTarget,
        point: Floats,
        query: Query,
        boxes: FeatureBoxes,
        below: float,
        settings: SearchSettings,
    ) -> tuple[Floats, int] | None:
        """Where the method can tell of many boxes at once: of each a distance, at most `below`, that none of its rows
        is nearer than; and the nodes that it took. The limits are for all boxes together."""
        prepared = self._prepared_for_bounds(resolved, query, settings)
        known = None if prepared is None else getattr(prepared.solver, "bounds_in_boxes", None)
        if prepared is None or known is None or not prepared.takes(point[None, :]):
            return None
        limits, elimination = _shared(settings.limits, len(boxes)), prepared.elimination
        reduced = boxes if elimination is None else elimination.reduced_boxes(boxes)
        return known(prepared.reduced(point[None, :])[0], reduced, below, limits)

    def _prepared_for_bounds(
        self, resolved: ResolvedTarget, query: Query, settings: SearchSettings
    ) -> PreparedMethod | None:
        """The method, prepared, where one question is all that there is to it."""
        questions = [self.question(target, query) for target in resolved.alternatives]
        curved = any(isinstance(one.target, ProbabilityTarget) and one.target.curved(self.model) for one in questions)
        robust = any(isinstance(one, RobustToWeights) for one in query.constraints)
        if len(questions) > 1 or query.fewest_first or curved or robust:
            return None
        limits = settings.limits
        try:
            with limited(limits.seconds, limits.memory_bytes):
                prepared = self._methods.method(questions[0], settings.method)
        except LimitReached:
            return None
        return None if limits.memory_bytes is not None and prepared.nbytes > limits.memory_bytes else prepared

    def _lexicographic(
        self, first: CheckedResult, second: CheckedResult, most: int, point: Floats, distance: Distance
    ) -> CheckedResult:
        """A row with the fewest changes, and the nearest with no more: the second, or the first if that has none."""
        assert first.point is not None
        if second.lower == math.inf:
            raise Contradiction(
                f"Method '{second.claim.method}' found a row with {most} changes, but claims that none exists."
            )
        apart = distance.between(self.model.schema, point, first.point)
        claim, upper, scores = second.claim, second.upper, second.scores
        if scores is None or upper > apart:
            claim, upper, scores = replace(claim, point=first.point), apart, first.scores
        fewer = first.lower * len(self.model.schema) <= most - 1 + COUNT_TOLERANCE
        left = Stop(StoppedBy.FEWER, most, cause=first.claim.stop) if fewer else None
        nodes, seconds = first.claim.nodes + claim.nodes, first.claim.seconds + claim.seconds
        claim = replace(claim, nodes=nodes, seconds=seconds, lower_any_rounding=None, record=None)
        return CheckedResult(claim, upper, scores, left)

    def _nearest(
        self, resolved: ResolvedTarget, points: Floats, query: Query, settings: SearchSettings
    ) -> Sequence[CheckedResult]:
        """The nearest row of each person: of an open target, the nearest over its alternatives."""
        questions = [self.question(target, query) for target in resolved.alternatives]
        target = questions[0].target
        if isinstance(target, ProbabilityTarget) and target.curved(self.model):
            return self._within_curve(target, points, query, settings)
        if len(questions) == 1:
            return self._robust(questions[0], query, points, settings)
        share = replace(settings, limits=_shared(settings.limits, len(questions)))
        quiet = replace(share, listen=uncounted(settings.listen))
        *others, last = questions
        results = [self._robust(question, query, points, quiet) for question in others]
        results.append(self._robust(last, query, points, share))
        return [self._nearest_of(resolved, each) for each in zip(*results, strict=True)]

    def _nearest_of(self, resolved: ResolvedTarget, each: tuple[CheckedResult, ...]) -> CheckedResult:
        """The nearest of several alternatives' rows; nothing is nearer than the least of their bounds."""
        best = min(each, key=lambda one: one.upper)
        if best.scores is not None and resolved.target is not None:
            agrees = resolved.target.agrees(self.model, best.scores[None, :], resolved.now)
            if not agrees[0]:
                raise Contradiction(
                    f"A row that meets one of the alternatives of '{resolved.name}' does not meet it: "
                    f"scores {best.scores.tolist()}."
                )
        weakest = min(each, key=lambda one: (one.lower, one.claim.stop is None))
        claim = replace(
            best.claim,
            lower=weakest.lower,
            stop=weakest.claim.stop,
            rounding_bound=max(one.claim.rounding_bound for one in each),
            lower_any_rounding=_least([one.claim.lower_any_rounding for one in each]),
            nodes=sum(one.claim.nodes for one in each),
            seconds=sum(one.claim.seconds for one in each),
            record=None,
        )
        return CheckedResult(claim, best.upper, best.scores)

    def _within_curve(
        self, target: ProbabilityTarget, points: Floats, query: Query, settings: SearchSettings
    ) -> list[CheckedResult]:
        """The nearest row of each person that has a probability which is not linear in the scores."""
        curve = ProbabilityQuestion(self.question(target, query), self.tolerances)
        first = curve.first

        def beyond(
            planes: TangentTarget, some: Floats, limits: Limits, listen: Listener | None
        ) -> Sequence[CheckedResult]:
            solver = self if planes == first else CheckedSolver(self.model, self.tolerances)  # only the first is kept
            return solver._checked(
                solver.question(planes, query), some, replace(settings, limits=limits, listen=listen)
            )

        return nearest_within(curve, beyond, points, settings.limits, settings.listen)

    def _robust(
        self, question: Question, query: Query, points: Floats, settings: SearchSettings
    ) -> Sequence[CheckedResult]:
        """The nearest rows, also where it takes many searches: what all networks around the model accept."""
        target = question.single_target
        around = surroundings(query.constraints, self.model, target)
        if not around:
            return self._checked(question, points, settings)
        kept = tuple(c for c in query.constraints if all(c is not one.constraint for one in around))

        def solve(point: Floats, networks: Sequence[Accepted], limits: Limits) -> CheckedResult:
            relaxed = replace(query, constraints=(*kept, *networks))
            found = self.question(target, relaxed)
            return self._checked(found, point[None, :], replace(settings, limits=limits, listen=None))[0]

        def bound(point: Floats, limits: Limits) -> CheckedResult:
            return self._checked(question, point[None, :], replace(settings, limits=limits, listen=None))[0]

        searches = Searches(solve, bound, lambda other, one, limits: searched(other, one, limits, self.tolerances))
        return nearest_robust(around, searches, points, settings, self.tolerances)

    def _checked(self, question: Question, points: Floats, settings: SearchSettings) -> Sequence[CheckedResult]:
        """Claims whose rows the user's own model accepts. Where it refuses one, search again with more caution."""
        method = settings.method
        load = getattr(method, "load", None)
        if load is not None and not refusal(method, question.joint):
            load(question.joint)
        begun = time.perf_counter()
        result: list[CheckedResult] = []
        waiting: Sequence[int] = range(len(points))
        for attempt in range(TRIES):
            careful = question.more_careful(CAUTION**attempt) if attempt else question
            if len(points) == 1:  # its limit is for everything from here on; of several, for their searches
                spent = time.perf_counter() - begun
            else:
                spent = max(result[i].claim.seconds for i in waiting) if result else 0.0
            some = points[waiting] if result else points
            claims = self._claims(careful, some, replace(settings, listen=None) if result else settings, spent)
            found, refused = checked_claims(question, some, claims, self.tolerances)
            if not refused and not result:
                return found
            if not result:
                result = list(found)
            for i, one in zip(waiting, found, strict=True):
                result[i] = one
            waiting = [waiting[k] for k in refused]
            for i in waiting:
                result[i] = CheckedResult(_refused(result[i].claim, careful))
            if not waiting:
                break
        return result

    def _claims(self, question: Question, points: Floats, settings: SearchSettings, spent: float) -> Claims:
        """What the method claims of people who have spent so many seconds. Preparing it is part of one person's time;
        for several it may take as long as they may together.
        """
        method, limits, begun = settings.method, settings.limits, time.perf_counter()
        seconds = limits.after(spent).seconds
        try:
            with limited(None if seconds is None else seconds * len(points), limits.memory_bytes):
                prepared = self._methods.method(question, method)
                if not prepared.takes(points):
                    prepared = self._methods.method(question, method, reduced=False)
            if limits.memory_bytes is not None and prepared.nbytes > limits.memory_bytes:
                raise LimitReached("memory")
        except LimitReached as reached:
            spent += time.perf_counter() - begun
            nothing = Claim(point=None, lower=0.0, method=method.name, stop=limits.stop(reached), seconds=spent)
            return Claims.of([nothing] * len(points), points)
        spent += time.perf_counter() - begun if len(points) == 1 else 0.0
        left = limits.after(spent)
        own = prepared.reduced(points)
        claims = valid_claims(
            prepared.solver.solve(own, left, threads=settings.threads, listen=settings.listen), own, method
        )
        if own is not points:
            rows = prepared.rows(claims.points)
            claims = replace(claims, points=np.where(claims.found[:, None], rows, points))
        return claims if left is limits else claims.counting(spent, limits)


def searched(question: Question, point: Floats, limits: Limits, tolerances: Tolerances) -> Claim:
    """What the search claims of one point, checked."""
    settings = SearchSettings(method=Search(), limits=limits)
    return CheckedSolver(question.model, tolerances)._checked(question, point[None, :], settings)[0].claim


def _refused(claim: Claim, careful: Question) -> Claim:
    """A claim whose row the deployed model refuses. It is then not the model that the bound was proven for."""
    margin = covering_margin(careful.more_careful(CAUTION))
    return replace(claim, point=None, lower=0.0, lower_any_rounding=None, stop=Stop(StoppedBy.REFUSED, margin))


def _not_yet(first: CheckedResult) -> CheckedResult:
    """Before the second of two stages: without a row, all that is known is whether there can be one."""
    lower = math.inf if first.lower == math.inf else 0.0
    return CheckedResult(replace(first.claim, point=None, lower=lower, lower_any_rounding=None, record=None))


def _least(bounds: list[float | None]) -> float | None:
    """The least of several bounds; None where one is not known."""
    known = [bound for bound in bounds if bound is not None]
    return min(known) if len(known) == len(bounds) else None


def _shared(limits: Limits, parts: int) -> Limits:
    """The limits of a row, divided among the searches that its answer takes."""
    seconds = None if limits.seconds is None else limits.seconds / parts
    return replace(limits, seconds=seconds, nodes=None if limits.nodes is None else max(1, limits.nodes // parts))
