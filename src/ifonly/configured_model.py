"""Configured models: a model, prepared once, with the constraints and settings that all questions about it share."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Self

from ifonly.answering.answerer import Answerer
from ifonly.answering.common_constraints import CommonConstraints
from ifonly.answering.given_model import given_model
from ifonly.answering.identity import run_identity
from ifonly.answering.recourse import RecourseAnswerer
from ifonly.answering.values import SearchSettings
from ifonly.errors import QuestionError
from ifonly.mining.usualness import ObservedRows
from ifonly.printing import shown
from ifonly.problem import Accepted
from ifonly.problem.learned import inliers, support
from ifonly.problem.query import Query, query_of
from ifonly.problem.rules import AnyConstraint
from ifonly.progress import on_terminal
from ifonly.results import Limits, Listener, Method
from ifonly.schema import Schema
from ifonly.schema.arguments import true_or_false, whole_number
from ifonly.solvers.search import Search
from ifonly.tolerances import DEFAULT, Tolerances


class ConfiguredModel:
    """A model with constraints for everybody, a method, limits and a listener."""

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
        self.observed: ObservedRows | None = None
        self.method: Method = Search()
        self.limits = Limits()
        self.listen: Listener | None = None
        self.reasons: bool | None = None
        self._common = CommonConstraints(self.schema, constraints)
        self._answerer = Answerer(self.model, tolerances)
        self._answerer.facts = self._common.facts  # the rules are read once
        self._recourse = RecourseAnswerer(self._answerer)

    @property
    def constraints(self) -> tuple[AnyConstraint, ...]:
        """Those for everybody, beside the schema's own rules."""
        return self._common.own

    def __repr__(self) -> str:
        constraints = f", {len(self._common.merged)} constraints" if self._common.merged else ""
        method = "" if self.method == Search() else f", by {self.method.name}"
        return f"<{type(self).__name__}: {self.model!r}{constraints}{method}>"

    def using(
        self,
        method: Method | None = None,
        *,
        limits: Limits | None = None,
        threads: int | None = None,
        listen: Listener | None = None,
        reasons: bool | None = None,
        data: Any = None,
    ) -> Self:
        """The same with other settings; what is not given stays as it is.

        `method`: how to search, such as MipObj(). `limits`: what one row may spend. `listen` is called with
        `Progress`. `reasons`: where there is no row, say which constraints rule it out and what would help (by default
        for one row, not for many); of the seconds of a row, they have what its answer has left. `data`: a table of real
        rows; answers of `explain` and `explain_many` then say how usual they are among these (`answer.usual`).
        """
        other = copy.copy(self)
        if method is not None:
            other.method = _checked_method(method)
        if limits is not None:
            other.limits = _checked_limits(limits)
        if threads is not None:
            other.threads = _checked_threads(threads)
        if listen is not None:
            other.listen = _checked_listener(listen)
        if reasons is not None:
            other.reasons = true_or_false(reasons, "reasons")
        if data is not None:
            other.observed = ObservedRows(data, self.schema)
        return other

    def knowing(self, *models: Accepted) -> Self:
        """The same, whose queries can name these models: "fraud check accepts", "at least 2 of a, b, c
        accept", or by fingerprint in JSON. Nothing is asked of them until a query does."""
        other = copy.copy(self)
        other._common = self._common.with_models(models)
        return other

    def plausible(self, data: Any) -> Self:
        """The same, whose answers must look like rows of this table, for people who do not want to choose:
        options that occur in it, numbers in its range, and an inlier to an isolation forest that is fitted on it
        (`plausibility.support`, `plausibility.inliers`)."""
        other = copy.copy(self)
        other._common = self._common.with_constraints((*support(self.schema, data), inliers(self.schema, data)))
        return other

    def check(self, query: Query) -> None:
        """Raise the error of a query that does not fit the model, the schema or the method, before any row is read."""
        self._answerer.runner.check(self._query(query))

    def identity(self, query: Query) -> dict[str, Any]:
        """The query, the model and the settings as plain data: equal for a run and for the one that resumes it."""
        return run_identity(self._answerer, self._query(query), self._settings())

    def constraints_for(self, constraints: Any) -> tuple[AnyConstraint, ...]:
        """The schema's own rules, those for everybody, and a person's; `Unconstrained` lifts those on a feature."""
        return self._common.for_person(constraints)

    def _query(self, query: Query | None, target: Any = None, distance: Any = None, constraints: Any = ()) -> Query:
        """The query with all constraints that hold, checked."""
        return self._common.complete(query_of(query, target, distance, constraints), self._answerer.runner.split)

    def _settings(self, limits: Limits | None = None, *, reasons: bool = False, events: bool = True) -> SearchSettings:
        return SearchSettings(
            method=self.method,
            limits=self.limits if limits is None else _checked_limits(limits),
            threads=self.threads,
            listen=self.listen if events else None,
            reasons=reasons,
        )

    @contextmanager
    def _searching(
        self, limits: Limits | None = None, *, reasons: bool = False, events: bool = True
    ) -> Iterator[SearchSettings]:
        """The settings, with a progress bar on a terminal where nobody listens. `events`: of the search, to either."""
        settings = self._settings(limits, reasons=reasons, events=events)
        bar = None if self.listen is not None else on_terminal(lazy=events)
        with nullcontext() if bar is None else bar:
            yield replace(settings, listen=bar) if bar is not None and events else settings


def _checked_limits(limits: Any) -> Limits:
    if not isinstance(limits, Limits):
        raise QuestionError(f"Give limits as Limits(seconds=...); got {shown(limits)}.")
    return limits


def _checked_threads(threads: Any) -> int:
    return whole_number(threads, "The number of threads must be a whole number >= 1; it is", 1)


def _checked_method(method: Any) -> Method:
    if not hasattr(method, "prepare"):
        raise QuestionError(f"A method is an object such as Search(); got {shown(method)}.")
    found: Method = method
    return found


def _checked_listener(listen: Any) -> Listener:
    if not callable(listen):
        raise QuestionError(f"'listen' is a function that takes a Progress; got {shown(listen)}.")
    found: Listener = listen
    return found
