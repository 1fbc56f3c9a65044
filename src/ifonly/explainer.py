"""The explainer: a model, prepared once, and the calls that explain its decisions.

    row -> point -> query with all constraints -> `answering` -> answer

This module reads rows and queries and hands points to the layers below. A method only claims; `answering` checks what
it claims with the user's own model and builds the answers.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.answering.answerer import Answerer
from ifonly.answering.checked_solver import CheckedSolver
from ifonly.answering.correlated import correlated_answer
from ifonly.answering.diverse import diverse_answers
from ifonly.answering.diverse_recourse import diverse_recourse
from ifonly.answering.given_model import given_model
from ifonly.answering.identity import run_identity
from ifonly.answering.missing import FilledQuestions
from ifonly.answering.proposals import accepted
from ifonly.answering.records import RecordsOf
from ifonly.answering.recourse import RecourseAnswerer
from ifonly.answering.robustness import robustness_of
from ifonly.answering.sufficient import reason_questions, sufficient_reasons
from ifonly.answering.values import Floats, ResolvedTarget, SearchSettings
from ifonly.caching import SizedCache, bytes_of
from ifonly.causes import CausalModel
from ifonly.errors import QuestionError, RowError, UnsupportedQuestion
from ifonly.mining.usualness import ObservedRows
from ifonly.population.actions import ChangeEvaluator
from ifonly.population.auditing import Audit, audit
from ifonly.population.engines import Engine, InProcess
from ifonly.population.existing_output import Existing
from ifonly.population.labels import By
from ifonly.population.output_paths import Output
from ifonly.population.run import Plan, RunResult, run
from ifonly.population.sources import source_of
from ifonly.printing import shown
from ifonly.problem import Accepted, Distance, Question
from ifonly.problem.chains import named_models
from ifonly.problem.diversity import Diversity
from ifonly.problem.learned import inliers, support
from ifonly.problem.learned.correlated import Mahalanobis
from ifonly.problem.open_target import OpenTarget
from ifonly.problem.query import Query, checked_constraints, query_of, read_constraints
from ifonly.problem.rules import AnyConstraint, facts_of, merged
from ifonly.problem.rules.derived import derived_features
from ifonly.problem.sufficiency import Sufficiency, sufficiency_of
from ifonly.progress import on_terminal
from ifonly.results import Answer, Answers, Claim, DiverseAnswers, Failed, Limits, Listener, Method, NoneExists, Reasons
from ifonly.results.diverse_recourse import DiverseRecourse
from ifonly.results.records import record_kinds, value_kind
from ifonly.results.recourse import Recourse
from ifonly.results.robustness import Robustness, TreeRobustness
from ifonly.results.sufficient import SufficientReasons
from ifonly.schema import Schema, index_of, read_points
from ifonly.schema.arguments import items
from ifonly.schema.values import plain
from ifonly.solvers.search import Search
from ifonly.tolerances import DEFAULT, Tolerances

QUERY_BYTES = 2**22
"""Queries with all constraints, by the query as it was given."""
SECONDS_FOR_REASONS = 5.0
"""Of one person in an audit, where no limit is set."""


class Explainer:
    """Prepares a model once and answers any number of people.

    `model` is an ifonly Model or Network, a path to a network or ONNX file, or a fitted scikit-learn or torch model;
    all but the first need `schema`. `classes` names the classes where the model does not: a list, or a dict with the
    outcome of each as a clause for `answer.sentence()`, such as {"approve": "the application would have been approved"}
    (or a dict of clauses by language). `constraints` (objects, or words such as "Age is fixed") hold for everybody, as
    the schema's own rules do; those of one query are added.
    """

    def __init__(
        self,
        model: Any,
        *,
        schema: Schema | None = None,
        classes: Sequence[Any] | Mapping[Any, Any] = (),
        constraints: Sequence[AnyConstraint | str] = (),
        threads: int = 1,
        tolerances: Tolerances = DEFAULT,
    ) -> None:
        self.model = given_model(model, schema, classes)
        self.schema = self.model.schema
        if not isinstance(tolerances, Tolerances):
            raise QuestionError(f"Give tolerances as Tolerances(gap=...); got {shown(tolerances)}.")
        self.tolerances = tolerances
        self.threads = _checked_threads(threads)
        self.constraints = read_constraints(constraints, self.schema)
        self.known = {one.name: one for one in self.constraints if isinstance(one, Accepted)}
        self.observed: ObservedRows | None = None
        self.method: Method = Search()
        self.limits = Limits()
        self.listen: Listener | None = None
        self.reasons: bool | None = None
        own = merged(self.schema)
        self._everybody = merged(self.schema, (), self.constraints) if self.constraints else own
        self._answerer = Answerer(self.model, tolerances)
        self._answerer.facts = facts_of(self.schema, own)  # the rules are read once
        self._recourse = RecourseAnswerer(self._answerer)
        self._queries: SizedCache[Query] = SizedCache(QUERY_BYTES, bytes_of)

    def __repr__(self) -> str:
        constraints = f", {len(self._everybody)} constraints" if self._everybody else ""
        method = "" if self.method == Search() else f", by {self.method.name}"
        return f"<Explainer: {self.model!r}{constraints}{method}>"

    def using(
        self,
        method: Method | None = None,
        *,
        limits: Limits | None = None,
        threads: int | None = None,
        listen: Listener | None = None,
        reasons: bool | None = None,
        data: Any = None,
    ) -> Explainer:
        """The same explainer with other settings; what is not given stays as it is.

        `method`: how to search, such as MipObj(). `limits`: what one row may spend. `listen` is called with
        `Progress`. `reasons`: where there is no row, say which constraints rule it out and what would help (by default
        for one row, not for many); of the seconds of a row, they have what its answer has left. `data`: a table of real
        rows; answers of `explain` and `explain_many` then say how usual they are among these (`answer.usual`).
        """
        other = copy.copy(self)
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
        if data is not None:
            other.observed = ObservedRows(data, self.schema)
        return other

    def knowing(self, *models: Accepted) -> Explainer:
        """The same explainer, whose queries can name these models: "fraud check accepts", "at least 2 of a, b, c
        accept", or by fingerprint in JSON. Nothing is asked of them until a query does."""
        other, known = copy.copy(self), dict(self.known)
        for one in models:
            if not isinstance(one, Accepted) or isinstance(one.by, str):
                raise QuestionError(f"Name a model with Accepted(by=model, target=..., name='...'); got {shown(one)}.")
            one = one.bound(self.schema)
            one.check(self.schema)
            known[one.name] = one
        other.known, other._queries = known, SizedCache(QUERY_BYTES, bytes_of)
        return other

    def plausible(self, data: Any) -> Explainer:
        """The same explainer, whose answers must look like rows of this table, for people who do not want to choose:
        options that occur in it, numbers in its range, and an inlier to an isolation forest that is fitted on it
        (`plausibility.support`, `plausibility.inliers`)."""
        other, forest = copy.copy(self), inliers(self.schema, data)
        learned = (*self.constraints, *support(self.schema, data), forest)
        other.constraints = read_constraints(learned, self.schema)
        other.known = {**self.known, forest.name: forest}
        other._everybody = merged(self.schema, (), other.constraints)
        other._queries = SizedCache(QUERY_BYTES, bytes_of)
        return other

    # ------------------------------------------------------------------ explanations

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
        whole = self._with_everybodys(query_of(query, target, distance, constraints))
        with self._shown(self._settings(limits, reasons=self.reasons is not False)) as settings:
            return self._compared(self._answerer.answer(point, whole, settings))

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
        whole = self._with_everybodys(query_of(query, target, distance, constraints))
        settings = self._settings(limits, reasons=bool(self.reasons))
        errors: list[RowError | None] = []
        points = read_points(self.schema, table, errors=errors)
        good = [i for i, error in enumerate(errors) if error is None]
        with self._shown(settings) as shown_settings:
            found = dict(zip(good, self._answerer.answers(points[good], good, whole, shown_settings), strict=True))
        answers = [self._compared(found[i]) if error is None else Failed.of(i, error) for i, error in enumerate(errors)]
        return Answers(answers, seconds=time.perf_counter() - begun, ids=index_of(table))

    def explain_to(
        self,
        path: str | Path | Output,
        table: Any,
        query: Query | Any = None,
        *,
        keep: Sequence[str] | bool = (),
        existing: Existing = "refuse",
        engine: Engine | None = None,
    ) -> RunResult:
        """Answer a table of any size into a file (.csv, .jsonl, .parquet), or a folder of parts ("answers.parquet/").

        `Output("answers.csv", flat_changes=True, escape_formulas=True)` also says how it is written. `query` is a
        query, or only the target that it has: "approve". `table` is a path (of a file, a folder, a pattern), a URL, a
        frame, a dict of columns, or any iterable of rows; it is read as a stream. `keep` names columns that travel
        along; True keeps all that are no features. `engine` is who answers: this process, `Processes(4)`, `Ray(...)`. A
        finished run of the same question is left as it is, any other file refused. `existing="resume"` goes on with a
        run that ended early, "replace" writes over it. A record is an answer's `to_dict`, nested values as JSON.
        """
        whole = query_of(query) if query is None or isinstance(query, Query) else query_of(None, query)
        self.check(whole)
        if engine is not None and not hasattr(engine, "begin"):
            raise QuestionError(f"An engine is an object such as Processes(2); got {shown(engine)}.")
        if isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] == len(self.schema):
            table = dict(zip(self.schema.names, table.T, strict=True))
        plan = Plan(
            source=source_of(table),
            path=path,
            answer=RecordsOf(self._answerer, self._with_everybodys(whole), self._settings(listen=False)),
            features=self.schema.names,
            record=record_kinds(self.model.outputs),
            after={one.name: value_kind(one) for one in self.schema.features},
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
        whole = self._with_everybodys(query_of(query, target, distance, constraints))
        with self._shown(self._settings(listen=False), lazy=False, heard=False) as settings:
            return diverse_answers(self._answerer, point, diversity, whole, settings)

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

        By bisection on the cost; the limits are for each of its searches.
        """
        whole = self._with_everybodys(query_of(query, target, None, constraints))
        point = self.schema.read(row)
        with self._shown(self._settings(listen=False), lazy=False, heard=False) as settings:
            return correlated_answer(self._answerer, point, cost, whole, settings)

    def why(
        self,
        row: Any,
        sufficiency: Sufficiency | None = None,
        *,
        target: Any = None,
        within: Any = None,
        several: int | None = 1,
        limits: Limits | None = None,
    ) -> SufficientReasons:
        """A smallest set of features whose values alone decide the outcome, whatever the others are, with its proof.

        `target` is the outcome that the row does not have: by default any other decision. `within`: only rows that meet
        these constraints, or within this l1 distance, count. `several`: so many minimal reasons, or None for all. A
        `Sufficiency` says all of this, and which features are preferred. The limits are for all of it.
        """
        point = self.schema.read(row)
        sufficiency = sufficiency_of(sufficiency, target, within, several)
        with self._shown(self._settings(limits, listen=False), lazy=False, heard=False) as settings:
            return sufficient_reasons(self._answerer, point, sufficiency, settings)

    def recourse(
        self,
        row: Any,
        causes: CausalModel,
        query: Query | None = None,
        *,
        target: Any = None,
        distance: str | Distance | None = None,
        constraints: Sequence[AnyConstraint | str] = (),
    ) -> Recourse:
        """The cheapest action after which the model decides as asked, when the other features follow their causes.

        The distance is the cost of what is acted on. Constraints on how a feature changes are about actions ("Age is
        fixed" says that nobody can act on it; it may still follow); ranges, allowed values, rules between features and
        other models are about the row that follows.
        """
        whole = self._with_everybodys(query_of(query, target, distance, constraints))
        with self._shown(self._settings(reasons=self.reasons is not False)) as settings:
            return self._recourse.recourse(row, causes, whole, settings)

    def diverse_recourse(
        self,
        row: Any,
        causes: CausalModel,
        k: int = 3,
        query: Query | None = None,
        *,
        target: Any = None,
        constraints: Sequence[AnyConstraint | str] = (),
    ) -> DiverseRecourse:
        """Up to k actions as of `recourse`, cheapest first: each is the cheapest that leaves out something that every
        earlier one acts on. The limits are for each of them."""
        whole = self._with_everybodys(query_of(query, target, None, constraints))
        with self._shown(self._settings(reasons=self.reasons is not False)) as settings:
            return diverse_recourse(self._recourse, row, causes, k, whole, settings)

    def robustness(self, answer: Any, *, target: Any = None, relative: bool = False) -> Robustness | TreeRobustness:
        """How far the network's weights may change before an answer (or any row) is no longer decided as it is; of an
        ensemble of trees, how many of them may be removed, whichever they are.

        A proven lower bound, and an upper bound with a network that decides otherwise. `target`: what the row must keep
        (by default its present class). `relative`: changes as shares of each weight.
        """
        row = answer.counterfactual if isinstance(answer, Answer) else answer
        if isinstance(answer, Answer) and row is None:
            raise QuestionError(f"This answer has no row whose robustness could be found: it is '{answer.status}'.")
        if not isinstance(relative, bool | np.bool_):
            raise QuestionError(f"'relative' is True or False; got {shown(relative)}.")
        asked = query_of(None, target).target
        if isinstance(asked, OpenTarget):
            raise UnsupportedQuestion("Robustness is found for one class, score or probability; name one of them.")
        answerer, point, _ = self._answerer.kept_missing(self.schema.read(row), Query())
        return robustness_of(answerer.model, point, asked, bool(relative))

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
        """Recourse over a table, by subgroup: `ifonly.audit` of the answers, with the model's own decisions."""
        whole = query_of(query, target, distance, constraints)
        return audit(self.explain_many(table, whole), by=by, judge=self.judge(whole))

    def judge(self, query: Query | None = None, *, reasons: bool = True) -> ChangeEvaluator:
        """For audits, under this query: which changes help whom, and (with `reasons`) what rules recourse out."""
        whole = query_of(query)
        if not isinstance(reasons, bool | np.bool_):
            raise QuestionError(f"'reasons' is True or False; got {shown(reasons)}.")
        limits = self.limits if self.limits.seconds is not None else replace(self.limits, seconds=SECONDS_FOR_REASONS)

        def why(row: Any) -> Reasons | None:
            answer = self.using(reasons=True, limits=limits).explain(row, whole)
            return answer.reasons if isinstance(answer, NoneExists) else None

        complete = self._with_everybodys(whole)
        return ChangeEvaluator(
            self.schema,
            lambda before, after: accepted(self._answerer, complete, before, after),
            why if reasons else None,
        )

    def question(self, row: Any, query: Query | None = None) -> tuple[Question, Floats]:
        """What a method is asked about a row, and the row's point; of several alternatives, the first."""
        questions, point = self.questions(row, query)
        return questions[0], point

    def questions(
        self, row: Any, query: Query | None = None, *, only: Collection[str] | None = None
    ) -> tuple[list[Question], Floats]:
        """What a method is asked about a row, one question for each alternative; and the row's point. `only`: under
        the definitions of derived features, and those of all other constraints that are described so."""
        whole = self._with_everybodys(query_of(query))
        answerer, point, own = self._answerer.kept_missing(self.schema.read(row), whole)
        own, _ = answerer.without_broken(point, own)
        if only is not None:
            own = replace(own, constraints=tuple(
                one for one in own.constraints if derived_features([one]) or one.describe() in only
            ))  # fmt: skip
        return answerer.runner.questions(point, own), point

    def filling(self, row: Any, query: Query | None = None) -> list[FilledQuestions]:
        """What a method is asked about a row, for each choice of the missing numbers that are filled in."""
        return self._answerer.filling(self.schema.read(row), self._with_everybodys(query_of(query)))

    def reason_questions(self, row: Any, sufficiency: Sufficiency) -> tuple[list[Question], Floats]:
        """What `why` asks about a row, with no features held; and the row's point."""
        return reason_questions(self._answerer, self.schema.read(row), sufficiency)

    def _claim(self, question: Question, point: Floats, method: Method) -> Claim:
        """What a method claims about the point of one `question`, checked with the user's own model."""
        own = question.model is self.model
        solver = self._answerer.runner.solver if own else CheckedSolver(question.model, self.tolerances)
        query = Query(target=question.target, distance=question.distance, constraints=tuple(question.constraints))
        settings = SearchSettings(method=method, limits=self.limits, threads=self.threads)
        resolved = ResolvedTarget("", question.target.words(), (question.single_target,))
        return solver.nearest(resolved, point[None, :], query, settings)[0].claim

    def check(self, query: Query) -> None:
        """Raise the error of a query that does not fit the model, the schema or the method, before any row is read."""
        runner = self._answerer.runner
        _, searched = runner.split(self._with_everybodys(query))
        for target in runner.resolved(searched.target, 0).alternatives:
            runner.solver.question(target, searched)

    def identity(self, query: Query) -> dict[str, Any]:
        """The query, the model and the settings as plain data: equal for a run and for the one that resumes it."""
        return run_identity(self._answerer, self._with_everybodys(query), self._settings())

    def constraints_for(self, constraints: Any) -> tuple[AnyConstraint, ...]:
        """The schema's own rules, those for everybody, and a person's; `Unconstrained` lifts those on a feature."""
        given = items(constraints)
        named = constraints if given is None else named_models(given, self.known)
        own = checked_constraints(named, self.schema)
        return merged(self.schema, own, self.constraints) if own else self._everybody

    # ------------------------------------------------------------------ queries and settings

    def _compared(self, answer: Answer) -> Answer:
        """The answer, with what real rows say of it."""
        return answer if self.observed is None else replace(answer, usual=self.observed.usualness(answer))

    def _with_everybodys(self, query: Query) -> Query:
        """The query with all constraints that hold, checked; made once."""

        def make() -> Query:
            whole = replace(query, constraints=self.constraints_for(query.constraints))
            self._answerer.runner.split(whole)
            return whole

        return self._queries.get_or_make(query, make)

    def _settings(self, limits: Limits | None = None, *, reasons: bool = False, listen: bool = True) -> SearchSettings:
        return SearchSettings(
            method=self.method,
            limits=self.limits if limits is None else _checked_limits(limits),
            threads=self.threads,
            listen=self.listen if listen else None,
            reasons=reasons,
        )

    @contextmanager
    def _shown(self, settings: SearchSettings, *, lazy: bool = True, heard: bool = True) -> Iterator[SearchSettings]:
        """The settings with a progress bar, on a terminal where nobody listens. `heard`: it is fed with events."""
        bar = None if (settings.listen or self.listen) is not None else on_terminal(lazy=lazy)
        with nullcontext() if bar is None else bar:
            yield settings if bar is None or not heard else replace(settings, listen=bar)


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


def _checked_limits(limits: Any) -> Limits:
    if not isinstance(limits, Limits):
        raise QuestionError(f"Give limits as Limits(seconds=...); got {shown(limits)}.")
    return limits


def _checked_threads(threads: Any) -> int:
    number = plain(threads)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise QuestionError(f"The number of threads must be a whole number >= 1; it is {shown(threads)}.")
    return number
