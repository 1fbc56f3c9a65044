"""Answers to queries about points, for complete rows and for rows with missing numbers.

    points -> QueryRunner: nearest rows, each checked -> AnswerBuilder: answers -> reasons, where none exists

A query here holds all constraints that apply. For all people with the same missing numbers the model is one function
of the other features, which the importer makes anew (`Model.with_missing`); an answerer of that model answers them.
Where missing numbers may be filled in, `Imputation` searches once for each choice of those that are.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.build_answers import AnswerBuilder
from ifonly.answering.checked_solver import CheckedSolver
from ifonly.answering.missing import (
    FilledQuestions,
    Imputation,
    choices,
    patterns,
    query_restricted_to,
    started,
)
from ifonly.answering.prepared_methods import PreparedMethod
from ifonly.answering.reasons import find_reasons
from ifonly.answering.runner import QueryRunner
from ifonly.answering.threads import run_chunks
from ifonly.answering.values import (
    Batch,
    CheckedResult,
    Floats,
    ResolvedTarget,
    SearchSettings,
    distinct,
    shifted,
    uncounted,
)
from ifonly.caching import SizedCache, bytes_of, cached_property, without_gc
from ifonly.errors import Contradiction, ModelError, QuestionError, RowError, UnsupportedQuestion
from ifonly.model import Model
from ifonly.problem import Query, Question
from ifonly.problem.missing import fillable, without_imputable
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules import facts_of
from ifonly.problem.rules.derived import derived_features
from ifonly.results import Answer, Claim, Failed, Listener, NoneExists, Progress, Reasons
from ifonly.results.records import Records, records_of
from ifonly.solvers.search import Search
from ifonly.tolerances import FEW, Tolerances

RESTRICTED_BYTES = 2**28
"""Models of people with missing numbers, by their names."""
PEOPLE_PER_CHUNK = 256
"""Distinct people that one thread takes at a time: their arrays stay in its cache, and no product of them is large
enough for a library of linear algebra to spread it over all cores."""
PEOPLE_AT_FIRST = 32
"""Distinct people whose answers say whether several threads are worthwhile."""
SEARCH_SHARE = 0.7
"""Of the time of these: what searching must take of it."""

ANY_ROW = Tolerances(gap=1.0 - 2.0**-20, relative_gap=1.0 - 2.0**-20)
"""The gap of a search that may end with the first row that it finds."""


class Answerer:
    """Answers queries about points with one model. `prepared`: the cache of prepared methods, if it is shared."""

    def __init__(
        self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod] | None = None
    ) -> None:
        self.model, self.schema, self.tolerances = model, model.schema, tolerances
        self.runner = QueryRunner(model, tolerances, prepared)
        self.builder = AnswerBuilder(model, tolerances)
        self._by_missing: SizedCache[Answerer] = SizedCache(RESTRICTED_BYTES, _own_bytes)

    # ------------------------------------------------------------------ one person, many people

    def answer(self, point: Floats, query: Query, settings: SearchSettings) -> Answer:
        """The answer of one person; what is wrong is raised."""
        missing = self.schema.missing_names(point)
        if not missing:
            return self._answered(point[None, :], [0], query, settings)[0]
        if fillable(query.constraints, missing):
            return self._imputed(point, missing, query, settings)
        other, complete, own = self.kept_missing(point, query)
        return other.answer(complete, own, settings)

    def answers(self, points: Floats, rows: list[int], query: Query, settings: SearchSettings) -> list[Answer]:
        """One answer per point, in order; `rows` are the numbers that the answers carry."""
        if not self.schema.may_have_missing:
            return self._by_chunks(points, rows, query, settings)
        answers: dict[int, Answer] = {}
        done, people = 0, len(distinct(points)[0])
        for missing, members in patterns(self.schema, points).items():
            counted = replace(settings, listen=shifted(settings.listen, done, people))
            numbers = [rows[i] for i in members]
            answers |= zip(members, self._of_pattern(missing, points[members], numbers, query, counted), strict=True)
            done += len(distinct(points[members])[0])
        return [answers[i] for i in range(len(points))]

    def records(self, points: Floats, rows: list[int], query: Query, settings: SearchSettings) -> Records:
        """The records of the answers."""
        if self.schema.may_have_missing or self.broken_facts(points, query):
            return records_of(self.answers(points, rows, query, settings))
        batch = self.runner.batch(points, rows)
        found = self.runner.find(batch, query, settings).results
        return self.builder.records(batch, rows, found, derived_features(query.constraints))

    def one(self, point: Floats, query: Query) -> tuple[Batch, ResolvedTarget, CheckedResult | None]:
        """One person as a batch, the target, and the result if the unchanged row meets it."""
        if query.fewest_first:
            raise QuestionError("The fewest changes are asked for with `explain` and `explain_many` only; use l0 here.")
        batch = self.runner.batch(point[None, :], [0])
        resolved = self.runner.resolved(query.target, int(batch.decided[0]))
        return batch, resolved, self.runner.already_satisfied(resolved, batch, query)[0]

    # ------------------------------------------------------------------ what a method is asked, and claims

    def questions(
        self, point: Floats, query: Query, only: Collection[str] | None = None
    ) -> tuple[list[Question], Floats]:
        """The question of each alternative, without facts that the row breaks, and the point in them. `only`: derived
        features keep their definitions, and of all other constraints those hold that are described so."""
        answerer, point, own = self.kept_missing(point, query)
        own, _ = answerer.without_broken(point, own)
        if only is not None:
            kept = [c for c in own.constraints if derived_features([c]) or c.describe() in only]
            own = replace(own, constraints=tuple(kept))
        return answerer.runner.questions(point, own), point

    def claim(self, question: Question, point: Floats, settings: SearchSettings) -> Claim:
        """What a method claims about the point of one question, checked with the user's own model."""
        own = question.model is self.model
        solver = self.runner.solver if own else CheckedSolver(question.model, self.tolerances)
        query = Query(target=question.target, distance=question.distance, constraints=tuple(question.constraints))
        resolved = ResolvedTarget("", question.target.words(), (question.single_target,))
        return solver.nearest(resolved, point[None, :], query, settings)[0].claim

    # ------------------------------------------------------------------ missing numbers

    def without(self, missing: Collection[str]) -> Answerer:
        """The answerer of people with these numbers missing; a RowError where the model does not take that."""
        return (
            self._by_missing.get_or_make(frozenset(missing), lambda: self._made_without(missing)) if missing else self
        )

    def _made_without(self, missing: Collection[str]) -> Answerer:
        try:
            model = self.model.with_missing(frozenset(missing))
        except ModelError as error:
            name = next(iter(missing))
            message = f"Feature '{name}' has no value, and the model cannot do without it: {error}"
            raise RowError(message, feature=name) from None
        return Answerer(model, self.tolerances, self.runner.solver.prepared)

    def kept_missing(self, point: Floats, query: Query) -> tuple[Answerer, Floats, Query]:
        """The answerer, the point and the query of a person whose missing numbers, if any, stay missing."""
        missing = self.schema.missing_names(point)
        if not missing:
            return self, point, query
        if changes := fillable(query.constraints, missing):
            raise UnsupportedQuestion(
                f"That '{next(iter(changes))}' may be filled in can be asked with `explain`, `explain_many` and "
                f"`certify_filled` only; "
                f"here it stays missing: leave that out."
            )
        return self.without(missing), complete(point), query_restricted_to(self.schema, query, missing)

    def filling(self, point: Floats, query: Query) -> list[FilledQuestions]:
        """Of a person, some of whose missing numbers may be filled in: the questions of each choice of those that are,
        the least first."""
        missing = self.schema.missing_names(point)
        changes, (_, resolved, _) = (
            fillable(query.constraints, missing),
            self.without(missing).one(complete(point), query_restricted_to(self.schema, query, missing)),
        )
        found = []
        for filled in choices(self.schema, query, changes):
            rest = tuple(name for name in missing if name not in filled)
            own, start = query_restricted_to(self.schema, query, rest, filled), started(self.schema, point, filled)
            questions = self.without(rest).runner.questions(start, own, resolved)
            found.append(({name: changes[name] for name in filled}, questions, start))
        return found

    def without_broken(self, point: Floats, query: Query) -> tuple[Query, tuple[str, ...]]:
        """The query without the facts that a person's own row breaks, and these in words."""
        broken = self.broken_facts(point[None, :], query)
        kept = tuple(c for c in query.constraints if c not in broken)
        return (replace(query, constraints=kept) if broken else query), tuple(rule.describe() for rule in broken)

    def _of_pattern(
        self, missing: tuple[str, ...], points: Floats, rows: list[int], query: Query, settings: SearchSettings
    ) -> list[Answer]:
        """One answer per point, of people with the same missing numbers."""
        if not missing:
            return self._by_chunks(points, rows, query, settings)
        try:
            if fillable(query.constraints, missing):
                return self._all_imputed(missing, points, rows, query, settings)
            own = query_restricted_to(self.schema, query, missing)
            return self.without(missing)._by_chunks(complete(points), rows, own, settings)
        except RowError as error:
            return [Failed.of(row, error) for row in rows]

    def _all_imputed(
        self, missing: tuple[str, ...], points: Floats, rows: list[int], query: Query, settings: SearchSettings
    ) -> list[Answer]:
        unique, inverse = distinct(points)
        answers: list[Answer] = []
        for point in unique:
            try:
                answers.append(self._imputed(point, missing, query, settings))
            except Contradiction as error:
                answers.append(Failed.of(0, error))
            if settings.listen is not None:
                settings.listen(Progress(finished=len(answers), people=len(unique)))
        return [replace(answers[k], row=row) for row, k in zip(rows, inverse, strict=True)]

    def _imputed(self, point: Floats, missing: tuple[str, ...], query: Query, settings: SearchSettings) -> Answer:
        """The answer of one person, of whom some missing numbers may be filled in."""
        imputation = Imputation(
            runner_without=lambda names: self.without(names).runner,
            schema=self.schema, point=point, missing=missing, query=query, settings=settings,
        )  # fmt: skip
        other, own = self.without(missing), query_restricted_to(self.schema, query, missing)
        batch, resolved, already = other.one(complete(point), own)
        if already is not None:
            return other.builder.answer(batch, resolved, already, own)
        found = imputation.nearest(resolved, self.tolerances)
        answer = self.builder.answer(replace(batch, points=point[None, :]), resolved, found, query)
        changes = tuple(one for one in answer.changes if (one.before, one.after) != (None, None))  # NaN is not NaN
        return replace(answer, changes=changes)

    # ------------------------------------------------------------------ complete rows

    def _by_chunks(self, points: Floats, rows: list[int], query: Query, settings: SearchSettings) -> list[Answer]:
        """One answer per point; of many people chunk by chunk, on all threads. Identical people share a chunk."""
        if len(points) < 2 * PEOPLE_PER_CHUNK:
            return self._robustly(points, rows, query, settings)
        unique, inverse = distinct(points)
        before = PEOPLE_PER_CHUNK - PEOPLE_AT_FIRST if settings.threads > 1 else 0
        chunk_of = (np.array(inverse) + before) // PEOPLE_PER_CHUNK
        ends = np.bincount(chunk_of).cumsum()[:-1]
        chunks = [members.tolist() for members in np.split(np.argsort(chunk_of, kind="stable"), ends)]

        def task(members: list[int], listen: Listener | None) -> list[Answer]:
            alone = replace(settings, threads=1, listen=listen)
            return self._robustly(points[members], [rows[i] for i in members], query, alone)

        ends = np.minimum(np.arange(1, len(chunks) + 1) * PEOPLE_PER_CHUNK - before, len(unique))
        sizes = np.diff(ends, prepend=0).tolist()
        parts = run_chunks(task, chunks, sizes, settings.threads, settings.listen, mostly_searching)
        answers = {i: answer for members, part in zip(chunks, parts, strict=True)
                   for i, answer in zip(members, part, strict=True)}  # fmt: skip
        return [answers[i] for i in range(len(points))]

    def _robustly(self, points: Floats, rows: list[int], query: Query, settings: SearchSettings) -> list[Answer]:
        """One answer per point. A contradiction, which is a bug, fails the rows that it concerns and no others."""
        if not len(points):
            return []
        try:
            return self._answered(points, rows, query, settings)
        except Contradiction as error:
            if len(points) == 1:
                return [Failed.of(rows[0], error)]
        quiet = replace(settings, listen=None)
        return [self._robustly(points[i : i + 1], [row], query, quiet)[0] for i, row in enumerate(rows)]

    def _answered(self, points: Floats, rows: list[int], query: Query, settings: SearchSettings) -> list[Answer]:
        """One answer per point, or an error for all. Facts that a person's row breaks are not asked of its answer."""
        broken = self.broken_facts(points, query)
        if not broken:
            return self._answered_alike(points, rows, query, settings)
        groups: dict[frozenset[Any], list[int]] = {}
        for i in range(len(points)):
            groups.setdefault(frozenset(rule for rule, those in broken.items() if those[i]), []).append(i)
        answers: dict[int, Answer] = {}
        for rules, members in groups.items():
            own = replace(query, constraints=tuple(c for c in query.constraints if c not in rules))
            words = tuple(rule.describe() for rule in broken if rule in rules)
            found = self._answered_alike(points[members], [rows[i] for i in members], own, settings)
            answers |= {i: replace(one, breaks=(*words, *one.breaks)) for i, one in zip(members, found, strict=True)}
        return [answers[i] for i in range(len(points))]

    def broken_facts(self, points: Floats, query: Query) -> dict[Any, NDArray[np.bool_]]:
        """The facts that some of the people's own rows break, and whose."""
        facts = [rule for rule in query.constraints if rule in self._facts]
        if len(points) == 1 and all(rule.allows_row(self.schema, points[0], points[0]) for rule in facts):
            return {}
        broken = {rule: ~rows_allowed(rule, self.schema, points, points) for rule in facts}
        return {rule: those for rule, those in broken.items() if those.any()}

    @cached_property
    def _facts(self) -> frozenset[Any]:
        return frozenset(self.facts)

    @cached_property
    def facts(self) -> tuple[Any, ...]:
        """The schema's rules between features."""
        return facts_of(self.schema)

    @cached_property
    def any_row(self) -> QueryRunner:
        """Runs queries of which any row will do: the nearest is not looked for."""
        return QueryRunner(self.model, ANY_ROW, self.runner.solver.prepared)

    def _answered_alike(self, points: Floats, rows: list[int], query: Query, settings: SearchSettings) -> list[Answer]:
        """One answer per point, under the same constraints."""
        batch = self.runner.batch(points, rows)
        found = self.runner.find(batch, query, settings)
        with nullcontext() if len(rows) < FEW else without_gc():
            answers = list(self.builder.answers(batch, rows, found, query))
        if not settings.reasons:
            return answers
        known: dict[bytes, Reasons | None] = {}
        for i, (answer, point, resolved) in enumerate(zip(answers, points, found.resolved, strict=True)):
            if isinstance(answer, NoneExists):  # identical people have identical reasons
                key = point.tobytes()
                if key not in known:
                    known[key] = self.reasons(answer, point, resolved, query, settings)
                answers[i] = replace(answer, reasons=known[key])
        return answers

    def reasons(
        self, answer: NoneExists, point: Floats, resolved: ResolvedTarget, query: Query, settings: SearchSettings
    ) -> Reasons:
        """The constraints that leave a person no row, and which relaxations would help, in the time that is left."""
        begun, quiet = time.perf_counter() - answer.seconds, replace(settings, listen=uncounted(settings.listen))

        def under(constraints: tuple[Any, ...]) -> CheckedResult:
            own = replace(query, constraints=constraints)
            left = replace(quiet, limits=settings.limits.after(time.perf_counter() - begun))
            try:
                return self.runner.nearest(resolved, point[None, :], own, left)[0]
            except UnsupportedQuestion:  # e.g. the enumerator, when a real number is no longer fixed
                return self.runner.nearest(resolved, point[None, :], own, replace(left, method=Search()))[0]

        return find_reasons(
            without_imputable(query.constraints, self.schema),
            under,
            lambda after: self.builder.changes(point, after, derived_features(query.constraints)),
            seconds=settings.limits.after(answer.seconds).seconds,
            tolerances=self.tolerances,
            facts=self._facts,
        )


def mostly_searching(answers: list[Answer], seconds: float) -> bool:
    """Does searching, during which other threads can work, take most of the time of these answers?"""
    return sum(answer.seconds for answer in answers) >= SEARCH_SHARE * seconds


def complete(points: Floats) -> Floats:
    """Points without NaN: a missing number is the only option of its feature in the restricted schema."""
    return np.nan_to_num(points, nan=0.0)


def _own_bytes(answerer: Answerer) -> int:
    return bytes_of(answerer, (answerer.runner.solver.prepared,))
