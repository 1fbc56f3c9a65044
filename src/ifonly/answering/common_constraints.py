"""Common constraints: those of the schema and of an explainer, which every query has beside its own, merged once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ifonly.caching import SizedCache
from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem import Accepted
from ifonly.problem.chains import named_models
from ifonly.problem.query import Query, checked_constraints, read_constraints
from ifonly.problem.rules import AnyConstraint, bytes_beside, facts_of, merged
from ifonly.schema import Schema
from ifonly.schema.arguments import items

QUERY_BYTES = 2**22
"""Queries with all constraints, by the query as it was given."""


class CommonConstraints:
    """The schema's rules and further constraints for everybody. `models`: those that queries can name, by name."""

    def __init__(self, schema: Schema, constraints: Any = (), models: Mapping[str, Accepted] | None = None) -> None:
        self.schema = schema
        self.own = read_constraints(constraints, schema)
        self.models = {one.name: one for one in self.own if isinstance(one, Accepted)} if models is None else models
        rules = merged(schema)
        self.facts = facts_of(schema, rules)
        self.merged = merged(schema, (), self.own) if self.own else rules
        self._queries: SizedCache[Query] = SizedCache(QUERY_BYTES, partial(bytes_beside, schema=schema))

    def with_models(self, models: Iterable[Any]) -> CommonConstraints:
        """The same constraints, with further models that queries can name."""
        known = dict(self.models)
        for one in models:
            if not isinstance(one, Accepted) or isinstance(one.by, str):
                raise QuestionError(f"Name a model with Accepted(by=model, target=..., name='...'); got {shown(one)}.")
            one = one.bound(self.schema)
            one.check(self.schema)
            known[one.name] = one
        return CommonConstraints(self.schema, self.own, known)

    def with_constraints(self, constraints: Iterable[AnyConstraint]) -> CommonConstraints:
        """These and further constraints for everybody; models among them can be named."""
        added = tuple(constraints)
        models = {**self.models, **{one.name: one for one in added if isinstance(one, Accepted)}}
        return CommonConstraints(self.schema, (*self.own, *added), models)

    def for_person(self, constraints: Any) -> tuple[AnyConstraint, ...]:
        """All constraints that hold for a person who has these; `Unconstrained` lifts those on a feature."""
        given = items(constraints)
        named = constraints if given is None else named_models(given, self.models)
        personal = checked_constraints(named, self.schema)
        return merged(self.schema, personal, self.own) if personal else self.merged

    def complete(self, query: Query, check: Callable[[Query], object]) -> Query:
        """The query with all constraints that hold, checked; made once."""

        def make() -> Query:
            whole = replace(query, constraints=self.for_person(query.constraints))
            check(whole)
            return whole

        return self._queries.get_or_make(query, make)
