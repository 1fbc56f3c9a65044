"""The explainer: the calls that explain a model's decisions, one by one, in tables and by group.

    row -> point -> query with all constraints -> `answering` -> answer

A method only claims; `answering` checks what it claims with the user's own model and builds the answers.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ifonly.answering.correlated import correlated_answer
from ifonly.answering.diverse import diverse_answers
from ifonly.answering.diverse_recourse import diverse_recourse
from ifonly.answering.missing import FilledQuestions
from ifonly.answering.preparing import prepare
from ifonly.answering.proposals import accepted
from ifonly.answering.records import RecordsOf
from ifonly.answering.robustness import robustness_of
from ifonly.answering.sufficient import reason_questions, sufficient_reasons
from ifonly.answering.values import Floats
from ifonly.causes import CausalModel
from ifonly.configured_model import ConfiguredModel
from ifonly.errors import QuestionError, RowError
from ifonly.population.actions import ChangeEvaluator
from ifonly.population.auditing import Audit, audit
from ifonly.population.engines import Engine, InProcess
from ifonly.population.existing_output import Existing
from ifonly.population.labels import By
from ifonly.population.output_paths import Output
from ifonly.population.run import Plan, RunResult, run
from ifonly.population.sources import source_of
from ifonly.printing import shown
from ifonly.problem import Distance, Question
from ifonly.problem.diversity import Diversity
from ifonly.problem.learned.correlated import Mahalanobis
from ifonly.problem.query import Query, query_of
from ifonly.problem.rules import AnyConstraint
from ifonly.problem.sufficiency import Sufficiency, sufficiency_of
from ifonly.progress import on_terminal
from ifonly.results import Answer, Answers, Claim, DiverseAnswers, Failed, Limits, Method, NoneExists, Reasons
from ifonly.results.diverse_recourse import DiverseRecourse
from ifonly.results.records import record_kinds, value_kind
from ifonly.results.recourse import Recourse
from ifonly.results.robustness import Robustness, TreeRobustness
from ifonly.results.sufficient import SufficientReasons
from ifonly.schema import Schema, index_of, read_points
from ifonly.schema.arguments import items, true_or_false

SECONDS_FOR_REASONS = 5.0
"""Of one person in an audit, where no limit is set."""


class Explainer(ConfiguredModel):
    """Prepares a model once and answers any number of people.

    `model` is an ifonly Model or Network, a path to a network or ONNX file, or a fitted scikit-learn or torch model;
    all but the first need `schema`. `classes` names the classes where the model does not: a list, or a dict with the
    outcome of each as a clause for `answer.sentence()`, such as {"approve": "the application would have been approved"}
    (or a dict of clauses by language). `constraints` (objects, or words such as "Age is fixed") hold for everybody, as
    the schema's own rules do; those of one query are added.
    """

    def prepare(
        self,
        query: Query | None = None,
        *,
        target: Any = None,
        distance: str | Distance | None = None,
        constraints: Sequence[AnyConstraint | str] = (),
        wait: bool = True,
    ) -> Self:
        """Do now what the first `explain` or `explain_many` of this query would do first, and return the explainer.

        Kernels are loaded, or compiled where this machine has none yet, which takes a minute and is waited for; the
        model is called for a row; and the questions of people of each class are prepared. The parts of the query are
        those of `explain`; its limits are not needed. `wait=False`: what is not compiled is compiled in the background.
        """
        whole, patient = self._query(query, target, distance, constraints), true_or_false(wait, "wait")
        prepare(self._answerer, whole, self._settings(events=False), wait=patient)
        return self

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
        whole = self._query(query, target, distance, constraints)
        with self._searching(limits, reasons=self.reasons is not False) as settings:
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
        begun, errors = time.perf_counter(), list[RowError | None]()
        whole = self._query(query, target, distance, constraints)
        points = read_points(self.schema, table, errors=errors)
        good = [i for i, error in enumerate(errors) if error is None]
        with self._searching(limits, reasons=bool(self.reasons)) as settings:
            found = dict(zip(good, self._answerer.answers(points[good], good, whole, settings), strict=True))
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
            answer=RecordsOf(self._answerer, self._query(whole), self._settings(events=False)),
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
        whole = self._query(query, target, distance, constraints)
        with self._searching(events=False) as settings:
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
        whole = self._query(query, target, None, constraints)
        point = self.schema.read(row)
        with self._searching(events=False) as settings:
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
        with self._searching(limits, events=False) as settings:
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
        whole = self._query(query, target, distance, constraints)
        with self._searching(reasons=self.reasons is not False) as settings:
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
        whole = self._query(query, target, None, constraints)
        with self._searching(reasons=self.reasons is not False) as settings:
            return diverse_recourse(self._recourse, row, causes, k, whole, settings)

    def robustness(self, answer: Any, *, target: Any = None, relative: bool = False) -> Robustness | TreeRobustness:
        """How far the network's weights may change before an answer (or any row) is no longer decided as it is; of an
        ensemble of trees, how many of them may be removed, whichever they are.

        A proven lower bound, and an upper bound with a network that decides otherwise. `target`: what the row must keep
        (by default its present class). `relative`: changes as shares of each weight.
        """
        return robustness_of(self._answerer, answer, query_of(None, target).target, true_or_false(relative, "relative"))

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
        whole, explaining = self._query(query), true_or_false(reasons, "reasons")
        limits = self.limits if self.limits.seconds is not None else replace(self.limits, seconds=SECONDS_FOR_REASONS)

        def why(row: Any) -> Reasons | None:
            answer = self.using(reasons=True, limits=limits).explain(row, query)
            return answer.reasons if isinstance(answer, NoneExists) else None

        return ChangeEvaluator(
            self.schema,
            lambda before, after: accepted(self._answerer, whole, before, after),
            why if explaining else None,
        )

    # ------------------------------------------------------------------ what a method is asked

    def question(self, row: Any, query: Query | None = None) -> tuple[Question, Floats]:
        """What a method is asked about a row, and the row's point; of several alternatives, the first."""
        questions, point = self.questions(row, query)
        return questions[0], point

    def questions(
        self, row: Any, query: Query | None = None, *, only: Collection[str] | None = None
    ) -> tuple[list[Question], Floats]:
        """What a method is asked about a row, one question for each alternative; and the row's point. `only`: under
        the definitions of derived features, and those of all other constraints that are described so."""
        return self._answerer.questions(self.schema.read(row), self._query(query), only)

    def filling(self, row: Any, query: Query | None = None) -> list[FilledQuestions]:
        """What a method is asked about a row, for each choice of the missing numbers that are filled in."""
        return self._answerer.filling(self.schema.read(row), self._query(query))

    def reason_questions(self, row: Any, sufficiency: Sufficiency) -> tuple[list[Question], Floats]:
        """What `why` asks about a row, with no features held; and the row's point."""
        return reason_questions(self._answerer, self.schema.read(row), sufficiency)

    def _claim(self, question: Question, point: Floats, method: Method) -> Claim:
        """What a method claims about the point of one `question`, checked with the user's own model."""
        return self._answerer.claim(question, point, replace(self._settings(events=False), method=method))

    def _compared(self, answer: Answer) -> Answer:
        """The answer, with what real rows say of it."""
        return answer if self.observed is None else replace(answer, usual=self.observed.usualness(answer))


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
