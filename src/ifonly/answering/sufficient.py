"""Sufficient reasons of a person: which features, held at their values, leave no row that is decided otherwise.

Each set of features is one query, "decided otherwise, with these features held", answered by the checked solver with a
proof or a row:

    none exists    the set suffices: no such row reaches the threshold by less than what rounding can do
    a row          it does not: the user's own model decides this row otherwise
    neither        not decided (a limit, or rows within rounding of the threshold); nothing is claimed of the set

The rows that count are those of the schema that obey its rules between features (facts); what restricts changes, in the
schema, the explainer or a query, does not narrow them. Derived features follow from the others and are not held. Which
sets are tried is the matter of `minimal_reasons`.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ifonly.answering.answerer import Answerer
from ifonly.answering.hitting_sets import bits
from ifonly.answering.implied_features import ImpliedFeatures
from ifonly.answering.minimal_reasons import FoundSet, OutOfTime, ReasonSearch, SufficiencyVerdict
from ifonly.answering.sampled_rows import RowSampler, by_influence
from ifonly.answering.values import CheckedResult, Floats, SearchSettings
from ifonly.errors import Contradiction, QuestionError
from ifonly.problem import ClassTarget, Derived, OtherTarget, Query, Question
from ifonly.problem.holding import Held, holding
from ifonly.problem.sufficiency import Sufficiency
from ifonly.results import Limits, Stop, StoppedBy
from ifonly.results.claim import NO_TIME
from ifonly.results.sufficient import NeededFeature, SufficientReason, SufficientReasons
from ifonly.solvers.search import Search

MOST_SEARCHES = 20_000
"""For the reasons of one person."""
SHARE = 4.0
"""One search has this part of the seconds that are left."""


def sufficient_reasons(
    answerer: Answerer, point: Floats, sufficiency: Sufficiency, settings: SearchSettings
) -> SufficientReasons:
    """The reasons of one person. The limits are for all of it."""
    begun = time.perf_counter()
    oracle, query, breaks = _held_rows(answerer, point, sufficiency, settings)
    answerer, point, missing = oracle.answerer, oracle.point, oracle.missing
    weights = sufficiency.weights(answerer.schema, oracle.names)
    search = ReasonSearch(oracle.verdict, weights, oracle.check, oracle.implied.closure)
    search.run(sufficiency.several)
    facts = tuple(one.describe() for one in query.constraints if one in answerer.facts)
    return SufficientReasons(
        row=0,
        factual=answerer.schema.row(point),
        decision=oracle.decision,
        target=oracle.resolved.name,
        subject=oracle.resolved.words.subject,
        state=oracle.resolved.words.state,
        otherwise=_is_otherwise(sufficiency, answerer),
        reasons=tuple(oracle.reason(search, one) for one in search.found),
        necessary=oracle.named(search.necessary),
        irrelevant=oracle.named(search.irrelevant()),
        complete=search.complete,
        at_least=_at_least(search) if sufficiency.counts else None,
        facts=facts,
        breaks=breaks,
        within=sufficiency.within.words,
        follows=oracle.follows,
        missing=missing,
        precision=answerer.model.precision,
        method=settings.method.name,
        searches=oracle.searches,
        nodes=oracle.nodes,
        seconds=time.perf_counter() - begun,
        stop=oracle.stop,
        words=answerer.builder.words,
        translations=answerer.builder.translations,
        contrasts=tuple(tuple(oracle.rows[one].tolist()) for one in search.contrasts if one in oracle.rows),
    )


def decides_alone(
    answerer: Answerer, point: Floats, names: Collection[str], sufficiency: Sufficiency, settings: SearchSettings
) -> bool | None:
    """Do these features decide the outcome of a person alone? None: not decided. Of derived features count those that
    they follow from."""
    oracle, _, _ = _held_rows(answerer, point, sufficiency, settings)
    held = set(names)
    for rule in oracle.definitions:
        if rule.feature in held:
            held |= rule.bases(oracle.answerer.schema)
    members = sum(1 << i for i, name in enumerate(oracle.names) if name in held)
    return oracle.verdict(oracle.implied.closure(members)).suffices


def _held_rows(
    answerer: Answerer, point: Floats, sufficiency: Sufficiency, settings: SearchSettings
) -> tuple[_HeldRows, Query, tuple[str, ...]]:
    """The rows that count, the query about them, and the facts that the person's own row breaks."""
    missing = answerer.schema.missing_names(point)
    query = sufficiency.query(answerer.schema, answerer.facts)
    answerer, point, query = answerer.kept_missing(point, query)
    query, breaks = answerer.without_broken(point, query)
    return _HeldRows(answerer, point, query, sufficiency, settings, missing), query, breaks


def reason_questions(answerer: Answerer, point: Floats, sufficiency: Sufficiency) -> tuple[list[Question], Floats]:
    """What is asked of the rows that count, one question for each alternative of the target, with nothing held; and
    the person's point.
    """
    query = sufficiency.query(answerer.schema, answerer.facts)
    answerer, point, query = answerer.kept_missing(point, query)
    query, _ = answerer.without_broken(point, query)
    return answerer.runner.questions(point, query), point


def _is_otherwise(sufficiency: Sufficiency, answerer: Answerer) -> bool:
    """Is the target any other decision? Of two classes, so is the one that the row does not have."""
    target = sufficiency.target
    other = isinstance(target, ClassTarget) and target.margin == 0.0 and len(answerer.model.classes) == 2
    return other or isinstance(target, OtherTarget)


def _at_least(search: ReasonSearch) -> int:
    """How many features every reason has at least, where all weigh the same."""
    first = search.found[0] if search.found else None
    return first.members.bit_count() if first is not None and first.least else search.at_least


class _HeldRows:
    """The rows of one person in which some features keep their values. Sets of features are bits, by `names`."""

    def __init__(
        self,
        answerer: Answerer,
        point: Floats,
        query: Query,
        sufficiency: Sufficiency,
        settings: SearchSettings,
        missing: tuple[str, ...],
    ) -> None:
        schema = answerer.schema
        self.definitions = [one for one in query.constraints if isinstance(one, Derived)]
        self.missing = missing
        followed = {one.feature for one in self.definitions if not one.bases(schema) & set(missing)}
        own = [schema.index(name) for name in schema.names if name not in followed and name not in missing]
        self.names = tuple(schema.names[g] for g in by_influence(answerer.model, point, own))
        self.follows = tuple(name for name in schema.names if name in followed)
        self.places = [schema.index(name) for name in self.names]
        self.answerer, self.point, self.radius = answerer, point, sufficiency.within.radius
        self.query = replace(query, constraints=(*query.constraints, *map(Held, self.names)))
        self.runner = answerer.any_row if self.radius is None else answerer.runner
        batch, self.resolved, already = answerer.one(point, query)
        if already is not None:
            raise QuestionError(
                f"This row is decided as asked already ({self.resolved.name}). A reason is one for what a row is not: "
                f"leave the target out, or name another one."
            )
        self.decision = answerer.builder.decisions(batch.decided)[0]
        method = settings.method
        if self.radius is not None and isinstance(method, Search):
            method = replace(method, any_rounding=True)
        self.settings = replace(settings, method=method, threads=1, listen=None, reasons=False)
        self.begun = time.perf_counter()
        self.searches = self.nodes = 0
        self.stop: Stop | None = None
        self.rows: dict[int, Floats] = {}
        self.implied = ImpliedFeatures(schema, query.constraints, point, self.places)
        conditions, plain = self.runner.split(self.query)
        several = len(answerer.model.classes) > 2 and answerer.model.function.as_trees() is not None
        trying = several and not conditions and self.radius is None  # other searches find a row as quickly
        self.sampler = RowSampler(self.runner.solver, self.resolved, plain, point) if trying else None

    def check(self) -> None:
        """Raises where a limit on all of it is reached."""
        seconds = self.settings.limits.seconds
        if seconds is not None and time.perf_counter() - self.begun >= seconds:
            self.stop = Stop(StoppedBy.SECONDS, seconds)
            raise OutOfTime
        if self.searches >= MOST_SEARCHES:
            self.stop = Stop(StoppedBy.QUESTIONS, MOST_SEARCHES)
            raise OutOfTime

    def verdict(self, held: int) -> SufficiencyVerdict:
        """Whether these features suffice."""
        with holding(self.named(held)):
            if (row := self._tried(held)) is not None:
                return self._row(held, row)
            settings = replace(self.settings, limits=self._share())
            found = self.runner.nearest(self.resolved, self.point[None, :], self.query, settings)[0]
        self.searches += 1
        self.nodes += found.claim.nodes
        if found.none_exists or self._beyond(found):
            return SufficiencyVerdict(True)
        if found.point is None or (self.radius is not None and found.upper > self.radius):
            self.stop = self.stop or self._stopped(found)
            return SufficiencyVerdict(None)
        return self._row(held, found.point)

    def _tried(self, held: int) -> Floats | None:
        """A row that is decided otherwise, found without a search."""
        if self.sampler is None:
            return None
        kept = set(bits(held))
        free = [g for i, g in enumerate(self.places) if i not in kept]
        return self.sampler.otherwise([self.places[i] for i in kept], free)

    def _share(self) -> Limits:
        """What one search may take of what is left: a set that is hard to decide must not take the time of all."""
        left = self.settings.limits.after(time.perf_counter() - self.begun)
        return left if left.seconds is None else replace(left, seconds=max(left.seconds / SHARE, NO_TIME))

    def _row(self, held: int, row: Floats) -> SufficiencyVerdict:
        """The verdict of a row that is decided otherwise."""
        changed = sum(1 << i for i, g in enumerate(self.places) if row[g] != self.point[g])
        if changed & held:
            raise Contradiction(f"A row changes features that are held: {', '.join(self.named(changed & held))}.")
        if not changed:
            self.stop = self.stop or Stop(StoppedBy.UNDECIDED, detail="a derived feature may have more than one value")
            return SufficiencyVerdict(None)
        self.rows.setdefault(changed, row)
        if self.sampler is not None:
            self.sampler.kept.append(row)
        return SufficiencyVerdict(False, changed)

    def _stopped(self, found: CheckedResult) -> Stop:
        """What left a set undecided; of the time, the whole limit."""
        model = self.answerer.model
        unbounded = Stop(StoppedBy.ROUNDING, float(model.error.max()), model.precision)
        stop = found.stop or unbounded  # a radius: nothing nearer is accepted under every rounding, but under some
        return replace(stop, amount=self.settings.limits.seconds) if stop.by is StoppedBy.SECONDS else stop

    def _beyond(self, found: CheckedResult) -> bool:
        """Is it proven that no row within the radius is decided otherwise under any rounding?"""
        lower = found.claim.lower_any_rounding
        return self.radius is not None and lower is not None and lower > self.radius

    def named(self, members: int) -> tuple[str, ...]:
        """The names of the features of a set, in the order of the schema."""
        return tuple(self.names[i] for i in sorted(bits(members), key=self.places.__getitem__))

    def reason(self, search: ReasonSearch, found: FoundSet) -> SufficientReason:
        """A set that was found, in the user's own values."""
        needed = []
        if found.minimal:
            contrasts = search.needed(found.members)
            for i, contrast in sorted(contrasts.items(), key=lambda pair: self.places[pair[0]]):
                changes = self.answerer.builder.changes(self.point, self.rows[contrast], frozenset(self.follows))
                needed.append(NeededFeature(feature=self.names[i], changes=changes))
        first = not search.found or found is search.found[0]
        status: Any = "smallest" if found.least and first else "minimal" if found.minimal else "sufficient"
        return SufficientReason(features=self.named(found.members), status=status, needed=tuple(needed))
