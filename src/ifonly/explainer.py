"""The door: rows come in, answers go out.

    row -> point -> asked of a method -> checked with the user's own model -> answer

A method only claims. What it claims is checked in `answering.checked_solver`, and made into an answer in
`answering.build_answers`, once
for all methods; loops over several questions (`asking`) work on points.
"""

from __future__ import annotations

import copy
import hashlib
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.build_answers import AnswerBuilder
from ifonly.answering.checked_results import CheckedResults, TargetResults
from ifonly.answering.correlated import least_correlated
from ifonly.answering.diverse import DiverseSearch, find_diverse
from ifonly.answering.missing import Imputation, RunnersByMissing, patterns, query_restricted_to
from ifonly.answering.proposals import accepted
from ifonly.answering.reasons import find_reasons
from ifonly.answering.runner import QueryRunner, parted
from ifonly.answering.values import (
    Batch,
    CheckedResult,
    Floats,
    PreparedQuery,
    ResolvedTarget,
    distinct,
    shifted,
    uncounted,
)
from ifonly.caching import PREPARING, SizedCache, bytes_of, nothing_to_collect
from ifonly.errors import Contradiction, ModelError, QuestionError, RowError, UnsupportedQuestion
from ifonly.model import Model, Network, network_model
from ifonly.model.model import class_list
from ifonly.population.actions import ChangeEvaluator
from ifonly.population.auditing import Audit, audit
from ifonly.population.engines import Engine, InProcess
from ifonly.population.existing_output import Existing
from ifonly.population.labels import By
from ifonly.population.output import CsvOutput
from ifonly.population.run import Plan, RunResult, run
from ifonly.population.sources import source_of
from ifonly.population.threads import run_chunks
from ifonly.printing import json_text, shown
from ifonly.problem import Distance, Question
from ifonly.problem.disjunctions import PersonContext
from ifonly.problem.diversity import Diversity, distances_between, settled_reals
from ifonly.problem.learned.correlated import Mahalanobis
from ifonly.problem.missing import distance_restricted_to, fillable, without_leave
from ifonly.problem.query import Query, plain_query, query_of, read_constraints
from ifonly.problem.rules import AnyConstraint, merged
from ifonly.progress import on_terminal
from ifonly.results import (
    Answer,
    Answers,
    DiverseAnswers,
    Failed,
    Limits,
    Listener,
    Method,
    NoneExists,
    Progress,
    Reasons,
)
from ifonly.results.records import Records, record_kinds, records_of
from ifonly.results.records import merged as merged_records
from ifonly.schema import Schema, index_of, read_points, schema_to_json
from ifonly.schema.arguments import items
from ifonly.schema.editing import unlabelled
from ifonly.schema.values import plain
from ifonly.solvers.search import Search
from ifonly.solvers.search.search import begin_to_compile
from ifonly.tolerances import DEFAULT, Tolerances

QUERY_BYTES = 2**22
"""Queries that are not read again."""
SECONDS_FOR_REASONS = 5.0
"""Of one person in an audit, where no limit is set."""
PEOPLE_PER_CHUNK = 256
"""Distinct people that one thread takes through at a time: their arrays stay in its cache, and no product of them is
large enough that a library for linear algebra would spread it over all cores."""


class Explainer:
    """Prepares a model once and answers any number of people.

    `model` is an ifonly Model or Network, a path to a network or ONNX file, or a fitted scikit-learn or torch model;
    all but the first need `schema`. `classes` names the classes where the model does not. `constraints` (objects, or
    words such as "Age is fixed") hold for everybody, as the schema's own rules do; those of one query are added.
    """

    def __init__(
        self,
        model: Any,
        *,
        schema: Schema | None = None,
        classes: Sequence[Any] = (),
        constraints: Sequence[AnyConstraint | str] = (),
        threads: int = 1,
        tolerances: Tolerances = DEFAULT,
    ) -> None:
        with PREPARING:
            self.model = _as_model(model, schema, class_list(classes))
        begin_to_compile(self.model.function)
        self.schema = self.model.schema
        if not isinstance(tolerances, Tolerances):
            raise QuestionError(f"Give tolerances as Tolerances(gap=...); got {shown(tolerances)}.")
        self.tolerances = tolerances
        self.threads = _checked_threads(threads)
        self.constraints = read_constraints(constraints, self.schema)
        self.method: Method = Search()
        self.limits = Limits()
        self.listen: Listener | None = None
        self.reasons: bool | None = None
        self._everybody = merged(self.schema, (), self.constraints)
        self._runner = QueryRunner(self.model, tolerances)
        self._others = RunnersByMissing(self.model, tolerances, self._runner.finder.prepared)
        self._builder = AnswerBuilder(self.model, tolerances)
        self._kept = _queries()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": _queries()}

    def __repr__(self) -> str:
        besides = f", {len(self._everybody)} constraints" if self._everybody else ""
        how = "" if self.method == Search() else f", by {self.method.name}"
        return f"<Explainer: {self.model!r}{besides}{how}>"

    def using(
        self,
        method: Method | None = None,
        *,
        limits: Limits | None = None,
        threads: int | None = None,
        listen: Listener | None = None,
        reasons: bool | None = None,
    ) -> Explainer:
        """The same explainer with another way of answering; what is not given stays as it is.

        `method`: how to search, such as MipObj(). `limits`: what one row may spend. `listen` is called with
        `Progress`. `reasons`: where there is no row, say which constraints rule it out and what would help (by default
        for one row, not for many); of the seconds of a row, they have what its answer has left.
        """
        other = copy.copy(self)  # without what is kept, which knows the method and the limits
        if method is not None:
            if not hasattr(method, "prepare"):
                raise QuestionError(f"A method is an object such as Search(); got {shown(method)}.")
            other.method = method
        if limits is not None:
            other.limits = _checked_limits(limits)
        if threads is not None:
            other.threads = _checked_threads(threads)
        if listen is not None:
            if not callable(listen):
                raise QuestionError(f"'listen' is a function that takes a Progress; got {shown(listen)}.")
            other.listen = listen
        if reasons is not None:
            if not isinstance(reasons, bool | np.bool_):
                raise QuestionError(f"'reasons' is True or False; got {shown(reasons)}.")
            other.reasons = bool(reasons)
        return other

    # ------------------------------------------------------------------ the verbs

    def explain(
        self,
        row: Any,
        query: Query | None = None,
        *,
        target: Any = None,
        distance: str | Distance | None = None,
        constraints: Sequence[AnyConstraint | str] = (),
        limits: Limits | None = None,
    ) -> Answer:
        """The nearest allowed row that the model decides as asked, or the proof that there is none.

        `target` is a class name, or a target such as ProbabilityTarget; for two classes it defaults to the other class.
        `target`, `distance` and `constraints` are parts of a query; beside one, they replace its parts (constraints are
        added). What the answer may spend and how it is found is said with `limits` here, or with `using`.
        """
        point = self.schema.read(row)
        if missing_names := self.schema.missing_names(point):
            return self._explain_missing(missing_names, point, query_of(query, target, distance, constraints), limits)
        prepared_query = self._read_once(query, target, distance, constraints, limits)
        batch = self._runner.batch(point[None, :], [0])
        with _with_progress(prepared_query) as with_progress:
            told = self._runner.find(batch, with_progress, self.threads)
            answer = next(self._builder.answers(batch, [0], told, _named(prepared_query), prepared_query.words))
            return (
                answer if self.reasons is False else self._with_reasons(answer, point, told.resolved[0], with_progress)
            )

    def explain_many(
        self,
        table: Any,
        query: Query | None = None,
        *,
        target: Any = None,
        distance: str | Distance | None = None,
        constraints: Sequence[AnyConstraint | str] = (),
        limits: Limits | None = None,
    ) -> Answers:
        """One answer per row, in order; a row that does not fit the schema gives a `Failed` one. Limits are per row."""
        begun = time.perf_counter()
        prepared_query = self._read_once(query, target, distance, constraints, limits)
        errors: list[RowError | None] = []
        points = read_points(self.schema, table, errors=errors)
        good = [i for i, error in enumerate(errors) if error is None]
        with _with_progress(prepared_query) as with_progress:
            if self.schema.may_have_missing:
                told = self._answer_patterns(
                    points, good, query_of(query, target, distance, constraints), with_progress
                )
            else:
                told = dict(zip(good, self._answer_all(points[good], good, with_progress), strict=True))
        answers = [told[i] if error is None else Failed.of(i, error) for i, error in enumerate(errors)]
        return Answers(answers, seconds=time.perf_counter() - begun, ids=index_of(table))

    def explain_to(
        self,
        path: str | Path | CsvOutput,
        table: Any,
        query: Query | None = None,
        *,
        keep: Sequence[str] | bool = (),
        existing: Existing = "refuse",
        engine: Engine | None = None,
    ) -> RunResult:
        """Answer a table of any size into a file (.csv, .jsonl, .parquet), or a folder of parts ("answers.parquet/").

        For people who open it in a spreadsheet: `CsvOutput("answers.csv")`, in which no text is taken for a formula.
        `table` is a path (of a file, a folder, a pattern), a frame, a dict of columns, or any iterable of rows; it is
        read as a stream. `keep` names columns that travel along; True keeps all that are no features. `engine` is who
        answers: this process, `Processes(4)`, `Ray(...)`. A finished run of the same question is left as it is, any
        other file refused. `existing="resume"` goes on with a run that ended early, "replace" writes over it.
        A record is an answer's `to_dict`, nested values as JSON.
        """
        whole = query_of(query)
        self.check(whole)
        if engine is not None and not hasattr(engine, "begin"):
            raise QuestionError(f"An engine is an object such as Processes(2); got {shown(engine)}.")
        if isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] == len(self.schema):
            table = dict(zip(self.schema.names, table.T, strict=True))
        plan = Plan(
            source=source_of(table),
            path=path,
            answer=_Recording(self._quietly(), whole),
            features=self.schema.names,
            record=record_kinds(self.model.outputs),
            about=self.identity(whole),
            distance_name=whole.distance_name,
            keep=None if keep is True else _column_names(keep),
        )
        bar = None if self.listen is not None else on_terminal(lazy=False)
        with nullcontext() if bar is None else bar:
            return run(plan, InProcess() if engine is None else engine, existing=existing, listen=self.listen or bar)

    def explain_diverse(
        self,
        row: Any,
        several: int | Diversity,
        query: Query | None = None,
        *,
        target: Any = None,
        distance: str | Distance | None = None,
        constraints: Sequence[AnyConstraint | str] = (),
    ) -> DiverseAnswers:
        """Several answers, nearest first, each the nearest that differs from all earlier ones.

        `several` is how many, or a `Diversity`, which also says in what way and by how much they differ. Limits are per
        answer. Where there are fewer, `ended` of the set says why.
        """
        point = self.schema.read(row)
        diversity = several if isinstance(several, Diversity) else Diversity(several)
        whole = query_of(query, target, distance, constraints)
        if missing_names := self.schema.missing_names(point):
            other, among = self._kept_missing(missing_names, whole)
            if isinstance(diversity.apart_distance, Distance):
                diversity = replace(
                    diversity, apart_distance=distance_restricted_to(diversity.apart_distance, missing_names)
                )
            return other.explain_diverse(self.schema.row(point), diversity, among)
        return self._diverse(point, diversity, self._runner.branched(self._prepared_query(whole, None, listen=False)))

    def _diverse(self, point: Floats, diversity: Diversity, prepared_query: PreparedQuery) -> DiverseAnswers:
        """Several answers of one person."""
        begun = time.perf_counter()
        diversity.check(self.schema, prepared_query.distance)
        batch, resolved = self._one(point, prepared_query)
        conditions, ordinary = parted(prepared_query.constraints)
        asking = DiverseSearch(
            self._runner.branching(resolved, point, prepared_query, self.threads),
            PersonContext(self.schema, point, prepared_query.distance),
            conditions,
            settled_reals(self.schema, point, ordinary),
        )
        with _with_progress(prepared_query, lazy=False):
            found = find_diverse(
                asking,
                diversity,
                self._runner.already_satisfied(resolved, batch, prepared_query)[0],
                prepared_query.limits,
            )
        ended = None if found.ended is None else self._told(batch, resolved, found.ended, prepared_query)
        if isinstance(ended, NoneExists) and not found.found:  # the query itself has no answer: say why
            ended = self._with_reasons(ended, point, resolved, prepared_query)
        return DiverseAnswers(
            [self._told(batch, resolved, one, prepared_query) for one in found.found],
            ended=ended,
            apart=distances_between(self.schema, prepared_query.distance, found.points),
            condition=diversity.describe(prepared_query.distance),
            seconds=time.perf_counter() - begun,
        )

    def explain_correlated(
        self,
        row: Any,
        cost: Mahalanobis,
        query: Query | None = None,
        *,
        target: Any = None,
        constraints: Sequence[AnyConstraint | str] = (),
    ) -> Answer:
        """The allowed row with the least correlated cost; `lower` and `upper` of the answer are in that cost.

        By searching on the cost: is there a row that costs at most so much? The limits are for each such question.
        """
        prepared_query = self._prepared_query(query_of(query, target, None, constraints), None, listen=False)
        if any(parted(prepared_query.constraints)[0]):
            raise QuestionError("A correlated cost cannot be minimised under a condition such as Near.")
        point = self.schema.read(row)
        if missing_names := self.schema.missing_names(point):
            name = missing_names[0]
            raise RowError(f"A correlated cost has no meaning where '{name}' is missing; fill it in.", feature=name)
        batch, resolved = self._one(point, prepared_query)
        with _with_progress(prepared_query, lazy=False):
            found = self._runner.already_satisfied(resolved, batch, prepared_query)[0] or least_correlated(
                self._runner.ask(resolved, point, prepared_query, self.threads),
                PersonContext(self.schema, point, prepared_query.distance),
                cost,
                limits=prepared_query.limits,
                tolerances=self.tolerances,
            )
        return self._told(batch, resolved, found, prepared_query, "correlated l1")

    def audit(
        self,
        table: Any,
        query: Query | None = None,
        *,
        by: By = None,
        target: Any = None,
        distance: str | Distance | None = None,
        constraints: Sequence[AnyConstraint | str] = (),
    ) -> Audit:
        """Recourse over a table, by subgroup: `ifonly.audit` of the answers to its rows, with the model as judge."""
        whole = query_of(query, target, distance, constraints)
        return audit(self.explain_many(table, whole), by=by, judge=self.judge(whole))

    def judge(self, query: Query | None = None, *, reasons: bool = True) -> ChangeEvaluator:
        """Whom an audit asks which changes help whom, and (with `reasons`) what rules recourse out, by this query."""
        whole = query_of(query)
        if not isinstance(reasons, bool | np.bool_):
            raise QuestionError(f"'reasons' is True or False; got {shown(reasons)}.")
        limits = self.limits if self.limits.seconds is not None else replace(self.limits, seconds=SECONDS_FOR_REASONS)

        def why(row: Any) -> Reasons | None:
            answer = self.using(reasons=True, limits=limits).explain(row, whole)
            return answer.reasons if isinstance(answer, NoneExists) else None

        return ChangeEvaluator(
            self.schema, lambda before, after: self._accepted(before, after, whole), why if reasons else None
        )

    def question(self, row: Any, query: Query | None = None) -> tuple[Question, Floats]:
        """What a method is asked about a row, and the row's point; of a target with alternatives, the first of them."""
        point = self.schema.read(row)
        if missing_names := self.schema.missing_names(point):
            other, among = self._kept_missing(missing_names, query_of(query, None, None, ()))
            return other.question(self.schema.row(point), among)
        prepared_query = self._prepared_query(query_of(query, None, None, ()), None)
        resolved = self._runner.resolved(prepared_query.target, int(self._runner.batch(point[None, :], [0]).decided[0]))
        return self._runner.finder.question(resolved.alternatives[0], prepared_query), point

    def check(self, query: Query) -> None:
        """Complain about a query before any row is asked about: does it fit the model, the schema and the method?"""
        prepared_query = self._runner.branched(self._prepared_query(query, None))
        _, ordinary = parted(prepared_query.constraints)
        for target in self._runner.resolved(prepared_query.target, 0).alternatives:
            self._runner.finder.question(target, replace(prepared_query, constraints=ordinary))

    def constraints_for(self, constraints: Any) -> tuple[AnyConstraint, ...]:
        """The schema's own rules, those for everybody, and a person's; `Unconstrained` ones undo what holds for the
        feature."""
        own = read_constraints(constraints, self.schema)
        return merged(self.schema, own, self.constraints) if own else self._everybody

    # ------------------------------------------------------------------ a stream of people

    def _quietly(self) -> Explainer:
        """The same explainer, to which nobody listens: it can be sent elsewhere."""
        other = copy.copy(self)
        other.listen, other.reasons = None, False
        return other

    def identity(self, query: Query) -> dict[str, Any]:
        """What is asked, as plain data: the same for a run and for the one that goes on with it."""
        every = replace(query, constraints=self.constraints_for(query.constraints))
        model = self.model
        return {
            "ifonly": import_module("ifonly").__version__,
            "versions": {"python": platform.python_version(), "numpy": np.__version__},
            "model": {"fingerprint": model.function.fingerprint, "classes": list(model.classes), "source": model.source,
                      "precision": model.precision},
            "schema": hashlib.sha256(json_text(schema_to_json(self.schema)).encode("utf-8")).hexdigest(),
            "query": plain_query(every),
            "method": {"name": self.method.name, "options": repr(self.method) if is_dataclass(self.method) else "",
                       "limits": repr(self.limits), "tolerances": repr(self.tolerances)},
        }  # fmt: skip

    def _records(self, table: Any, first: int, query: Query) -> Records:
        """The records of some rows; the number of the first of them is `first`."""
        errors: list[RowError | None] = []
        points = read_points(self.schema, table, errors=errors, first=first)
        prepared_query = self._read_once(query, None, None, (), None)
        good = [i for i, error in enumerate(errors) if error is None]
        wrong = [(i, error) for i, error in enumerate(errors) if error is not None]
        told = []
        if wrong:
            told.append(([i for i, _ in wrong], records_of([Failed.of(first + i, error) for i, error in wrong])))
        if good and self.schema.may_have_missing:
            answers = self._answer_patterns(points, good, query, prepared_query)
            told.append((good, records_of([replace(answers[i], row=first + i) for i in good])))
        elif good:
            rows = [first + i for i in good]
            batch = self._runner.batch(points[good], rows)
            told.append(
                (
                    good,
                    self._builder.records(batch, rows, self._runner.find(batch, prepared_query, self.threads)),
                )
            )
        return merged_records(len(errors), told)

    # ------------------------------------------------------------------ people who lack numbers

    def _restricted_to(self, missing_names: tuple[str, ...], query: Query) -> tuple[Explainer, Query]:
        """The explainer of the people who lack these numbers, and the query as it is for them."""
        runner, builder = self._others.of(missing_names)
        other = copy.copy(self)
        other.model, other.schema = runner.model, runner.model.schema
        other._runner, other._builder, other._kept = runner, builder, _queries()
        other.constraints = other._everybody = ()  # they are in the query
        return other, query_restricted_to(self.schema, query, self.constraints_for(query.constraints), missing_names)

    def _kept_missing(self, missing_names: tuple[str, ...], query: Query) -> tuple[Explainer, Query]:
        """The same, where nothing can be filled in."""
        if changes := fillable(self.constraints_for(query.constraints), missing_names):
            raise UnsupportedQuestion(
                f"That '{next(iter(changes))}' may be filled in can be asked with `explain` and `explain_many` only; "
                f"here it stays missing: leave that out."
            )
        return self._restricted_to(missing_names, query)

    def _explain_missing(self, missing_names: tuple[str, ...], point: Floats, query: Query, limits: Any) -> Answer:
        """The answer of one person who lacks numbers."""
        other, among = self._restricted_to(missing_names, query)
        if not fillable(self.constraints_for(query.constraints), missing_names):
            return other.explain(self.schema.row(point), among, limits=limits)
        prepared_query = replace(
            self._prepared_query(query, limits), constraints=self.constraints_for(query.constraints)
        )
        return self._filled(
            other, other._read_once(among, None, None, (), limits), point, missing_names, prepared_query
        )

    def _filled(
        self,
        other: Explainer,
        staying: PreparedQuery,
        point: Floats,
        missing_names: tuple[str, ...],
        prepared_query: PreparedQuery,
    ) -> Answer:
        """The answer of one person who lacks numbers that may be filled in."""
        filling = Imputation(
            others=self._others, schema=self.schema, point=point, missing_names=missing_names,
            changes=fillable(prepared_query.constraints, missing_names), prepared_query=prepared_query,
        )  # fmt: skip
        batch, resolved = other._one(np.nan_to_num(point, nan=0.0), staying)
        has = other._runner.already_satisfied(resolved, batch, staying)[0]
        if has is not None:
            return other._told(batch, resolved, has, staying)
        found = filling.nearest(resolved, self.threads)
        told = self._told(replace(batch, points=point[None, :]), resolved, found, prepared_query)
        changes = tuple(one for one in told.changes if (one.before, one.after) != (None, None))  # NaN is not NaN
        return replace(told, changes=changes)

    def _answer_patterns(
        self, points: Floats, rows: list[int], query: Query, prepared_query: PreparedQuery
    ) -> dict[int, Answer]:
        """One answer per row, for all who lack the same numbers at once."""
        told: dict[int, Answer] = {}
        done, people = 0, len(distinct(points[rows])[0]) if rows else 0
        for missing_names, members in patterns(self.schema, points, rows).items():
            with_progress = replace(prepared_query, listen=shifted(prepared_query.listen, done, people))
            told |= zip(
                members,
                self._answer_pattern(missing_names, points[members], members, query, with_progress),
                strict=True,
            )
            done += len(distinct(points[members])[0]) if members else 0
        return told

    def _answer_pattern(
        self,
        missing_names: tuple[str, ...],
        points: Floats,
        rows: list[int],
        query: Query,
        prepared_query: PreparedQuery,
    ) -> list[Answer]:
        """One answer per person of those who lack the same numbers."""
        if not missing_names or not rows:
            return self._answer_all(points, rows, prepared_query)
        try:
            other, among = self._restricted_to(missing_names, query)
            staying = replace(
                other._read_once(among, None, None, (), prepared_query.limits), listen=prepared_query.listen
            )
            every = self.constraints_for(query.constraints)
            if not fillable(every, missing_names):
                return other._answer_all(np.nan_to_num(points, nan=0.0), rows, staying)
            unique, inverse = distinct(points)
            answers = []
            for point in unique:
                try:
                    answers.append(
                        self._filled(other, staying, point, missing_names, replace(prepared_query, constraints=every))
                    )
                except Contradiction as error:
                    answers.append(Failed.of(0, error))
                if prepared_query.listen is not None:
                    prepared_query.listen(Progress(finished=len(answers), people=len(unique)))
            return [replace(answers[k], row=row) for row, k in zip(rows, inverse, strict=True)]
        except RowError as error:
            return [Failed.of(row, error) for row in rows]

    def _accepted(self, before: Floats, after: Floats, query: Query) -> NDArray[np.bool_]:
        """Which changed rows are answers to the people beside them; what somebody lacks has to stay missing."""
        good = np.zeros(len(before), dtype=np.bool_)
        same = np.flatnonzero((np.isnan(before) == np.isnan(after)).all(axis=1)).tolist()
        for missing_names, members in patterns(self.schema, before, same).items():
            if members:
                other, among = self._restricted_to(missing_names, query) if missing_names else (self, query)
                prepared_query = other._read_once(among, None, None, (), None)
                points = (np.nan_to_num(each[members], nan=0.0) for each in (before, after))
                good[members] = accepted(other._runner, prepared_query, *points)
        return good

    # ------------------------------------------------------------------ from a query to answers

    def _read_once(self, query: Any, target: Any, distance: Any, constraints: Any, limits: Any) -> PreparedQuery:
        """The query of a call as it is put to a method; of a call like the last ones, the one that was read then."""
        listed = tuple(constraints) if isinstance(constraints, list) else constraints
        return self._kept.get_or_make(
            (query, target, distance, listed, limits),
            lambda: self._runner.branched(self._prepared_query(query_of(query, target, distance, constraints), limits)),
        )

    def _prepared_query(self, query: Query, limits: Limits | None, *, listen: bool = True) -> PreparedQuery:
        """The query with the constraints that hold for everybody, and the way of answering."""
        constraints = self.constraints_for(query.constraints)
        return PreparedQuery(
            target=query.target,
            distance=query.measure,
            constraints=without_leave(constraints, self.schema),
            words=tuple(one.describe() for one in constraints),
            fewest_first=query.fewest_first,
            method=self.method,
            limits=self.limits if limits is None else _checked_limits(limits),
            listen=self.listen if listen else None,
        )

    def _one(self, point: Floats, prepared_query: PreparedQuery) -> tuple[Batch, ResolvedTarget]:
        """One person, and what this person wants."""
        if prepared_query.fewest_first:
            raise QuestionError("The fewest changes are asked for with `explain` and `explain_many` only; use l0 here.")
        batch = self._runner.batch(point[None, :], [0])
        return batch, self._runner.resolved(prepared_query.target, int(batch.decided[0]))

    def _told(
        self,
        batch: Batch,
        resolved: ResolvedTarget,
        found: CheckedResult,
        prepared_query: PreparedQuery,
        name: str = "",
    ) -> Answer:
        told = TargetResults(
            resolved=[resolved],
            found=CheckedResults.of([found], batch.points, self.model.outputs),
        )
        return next(self._builder.answers(batch, [0], told, name or _named(prepared_query), prepared_query.words))

    def _answer_all(self, points: Floats, rows: list[int], prepared_query: PreparedQuery) -> list[Answer]:
        """One answer per point; of many people chunk by chunk, on all threads. Identical people share a chunk."""
        if len(points) < 2 * PEOPLE_PER_CHUNK:
            return self._answer(points, rows, prepared_query, self.threads)
        unique, inverse = distinct(points)
        of = np.array(inverse) // PEOPLE_PER_CHUNK
        ends = np.bincount(of).cumsum()[:-1]
        chunks = [members.tolist() for members in np.split(np.argsort(of, kind="stable"), ends)]

        def task(members: list[int], with_progress: Listener | None) -> list[Answer]:
            return self._answer(
                points[members], [rows[i] for i in members], replace(prepared_query, listen=with_progress), 1
            )

        sizes = [min(PEOPLE_PER_CHUNK, len(unique) - k * PEOPLE_PER_CHUNK) for k in range(len(chunks))]
        told = run_chunks(task, chunks, sizes, self.threads, prepared_query.listen)
        answers = {i: answer for members, part in zip(chunks, told, strict=True)
                   for i, answer in zip(members, part, strict=True)}  # fmt: skip
        return [answers[i] for i in range(len(points))]

    def _answer(self, points: Floats, rows: list[int], prepared_query: PreparedQuery, threads: int) -> list[Answer]:
        """One answer per point, in order; `rows` are the numbers that the answers carry. A bug that one person meets
        keeps nobody else from being answered."""
        if not len(points):
            return []
        try:
            return self._answered(points, rows, prepared_query, threads)
        except Contradiction as error:
            if len(points) == 1:
                return [Failed.of(rows[0], error)]
        quiet = replace(prepared_query, listen=None)
        return [self._answer(points[i : i + 1], [row], quiet, threads)[0] for i, row in enumerate(rows)]

    def _answered(self, points: Floats, rows: list[int], prepared_query: PreparedQuery, threads: int) -> list[Answer]:
        """The same, for everybody or for nobody."""
        batch = self._runner.batch(points, rows)
        told = self._runner.find(batch, prepared_query, threads)
        with nothing_to_collect():
            answers = list(self._builder.answers(batch, rows, told, _named(prepared_query), prepared_query.words))
        if not self.reasons:
            return answers
        known: dict[bytes, Reasons | None] = {}
        for i, (answer, point, resolved) in enumerate(zip(answers, points, told.resolved, strict=True)):
            if isinstance(answer, NoneExists):  # identical people have identical reasons
                who = point.tobytes()
                if who not in known:
                    explained = self._with_reasons(answer, point, resolved, prepared_query)
                    known[who] = explained.reasons if isinstance(explained, NoneExists) else None
                answers[i] = replace(answer, reasons=known[who])
        return answers

    def _with_reasons(
        self, answer: Answer, point: Floats, resolved: ResolvedTarget, prepared_query: PreparedQuery
    ) -> Answer:
        """The answer; where none exists, with the constraints that rule it out and what would help."""
        if not isinstance(answer, NoneExists):
            return answer
        with_progress, begun = (
            replace(prepared_query, listen=uncounted(prepared_query.listen)),
            time.perf_counter() - answer.seconds,
        )

        def ask(constraints: tuple[Any, ...]) -> CheckedResult:
            left = prepared_query.limits.after(time.perf_counter() - begun)
            under = self._runner.branched(replace(with_progress, constraints=constraints, limits=left))
            try:
                return self._runner.nearest(resolved, point[None, :], under, self.threads)[0]
            except UnsupportedQuestion:  # e.g. the enumerator, when a real number is no longer fixed
                return self._runner.nearest(resolved, point[None, :], replace(under, method=Search()), self.threads)[0]

        reasons = find_reasons(
            prepared_query.constraints,
            ask,
            lambda after: self._builder.changes(point, after),
            seconds=prepared_query.limits.after(answer.seconds).seconds,
            tolerances=self.tolerances,
        )
        return replace(answer, reasons=reasons)


@dataclass(frozen=True, slots=True)
class _Recording:
    """What a worker is sent: an explainer and the query."""

    explainer: Explainer
    query: Query

    def __call__(self, table: Any, first: int) -> Records:
        return self.explainer._records(table, first, self.query)


def _column_names(names: Any) -> tuple[str, ...]:
    """Names of columns, from a list of them."""
    found = items(names) if names is not False else ()
    if found is None or not all(isinstance(name, str) for name in found):
        raise QuestionError(f"Say which columns to keep as a list of names, or keep=True for all; got {shown(names)}.")
    return found


def explain(
    model: Any,
    row: Any,
    query: Query | None = None,
    *,
    schema: Schema | None = None,
    target: Any = None,
    constraints: Sequence[AnyConstraint | str] = (),
) -> Answer:
    """`Explainer(model, schema=schema).explain(row, ...)` in one call, for a single question."""
    return Explainer(model, schema=schema).explain(row, query, target=target, constraints=constraints)


def explain_correlated(
    explainer: Explainer,
    row: Any,
    cost: Mahalanobis,
    query: Query | None = None,
    *,
    target: Any = None,
    constraints: Sequence[AnyConstraint | str] = (),
) -> Answer:
    """`explainer.explain_correlated(row, cost, ...)`: the allowed row with the least correlated cost."""
    return explainer.explain_correlated(row, cost, query, target=target, constraints=constraints)


@contextmanager
def _with_progress(prepared_query: PreparedQuery, *, lazy: bool = True) -> Iterator[PreparedQuery]:
    """What is asked, with someone who listens: on a terminal, where nobody else does, a bar."""
    bar = None if prepared_query.listen is not None else on_terminal(lazy=lazy)
    if bar is None:
        yield prepared_query
    else:
        with bar:
            yield replace(prepared_query, listen=bar)


def _named(prepared_query: PreparedQuery) -> str:
    """The distance of an answer, by name."""
    return (
        f"fewest changes, then {prepared_query.distance.name}"
        if prepared_query.fewest_first
        else prepared_query.distance.name
    )


def _queries() -> SizedCache[PreparedQuery]:
    return SizedCache(QUERY_BYTES, bytes_of)


def _checked_limits(limits: Any) -> Limits:
    if not isinstance(limits, Limits):
        raise QuestionError(f"Give limits as Limits(seconds=...); got {shown(limits)}.")
    return limits


def _checked_threads(threads: Any) -> int:
    number = plain(threads)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise QuestionError(f"The number of threads must be a whole number >= 1; it is {shown(threads)}.")
    return number


def _as_model(model: Any, schema: Any, classes: tuple[Any, ...]) -> Model:
    if schema is not None and not isinstance(schema, Schema):
        frame = hasattr(schema, "columns") and hasattr(schema, "dtypes")
        hint = "; a table becomes one with Schema.infer(frame)" if frame else ""
        raise ModelError(f"Say what a row is with a Schema{hint}; got {shown(schema)}.")
    if isinstance(model, Model):
        if schema is not None and unlabelled(schema) != unlabelled(model.schema):
            raise ModelError("This model already has a schema of its own; leave out schema=..., or import it anew.")
        model = model if schema is None else replace(model, schema=schema)  # with its labels and units
        return replace(model, classes=classes) if classes else model
    if schema is None:
        raise ModelError("Say what a row is with schema=...; Schema.infer(frame) proposes one.")
    if isinstance(model, Network):
        return network_model(model, schema, classes=classes)
    from ifonly.model.importers import import_model

    return import_model(Path(model) if isinstance(model, str) else model, schema, classes=classes)
