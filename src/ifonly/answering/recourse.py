"""The cheapest action of a person under causes: a question about actions, answered like any other.

point -> action that does nothing -> QueryRunner of the action model: cheapest action, checked by abduction, action
and prediction with the user's own equations and model -> row that follows -> answer
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ifonly.answering.answerer import Answerer
from ifonly.answering.reasons import find_reasons
from ifonly.answering.values import CheckedResult, Floats, ResolvedTarget, SearchSettings
from ifonly.caching import SizedCache, bytes_of
from ifonly.causes import CausalModel
from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem import Query
from ifonly.problem.action_models import action_model
from ifonly.problem.action_query import action_query, fixed_features
from ifonly.problem.actions import ActionSpace
from ifonly.problem.missing import without_imputable
from ifonly.results import Answer, NoneExists
from ifonly.results.answer import Change
from ifonly.results.recourse import Intervention, Recourse
from ifonly.schema import Schema
from ifonly.schema.editing import unlabelled

SPACE_BYTES = 2**28
"""Models of actions, by the causal model and by what cannot be acted on."""
QUERY_BYTES = 2**22


@dataclass(frozen=True, eq=False)
class ActionAnswerer:
    """Answers questions about actions, for one causal model and one set of features that can be acted on."""

    space: ActionSpace
    answerer: Answerer
    queries: SizedCache[Query]

    @classmethod
    def of(cls, answerer: Answerer, causes: CausalModel, fixed: frozenset[str]) -> ActionAnswerer:
        space = ActionSpace.of(causes, fixed)
        own = Answerer(action_model(answerer.model, space), answerer.tolerances)
        return cls(space, own, SizedCache(QUERY_BYTES, bytes_of))

    def cheapest(self, point: Floats, query: Query, settings: SearchSettings) -> tuple[ResolvedTarget, CheckedResult]:
        """The target, and the cheapest action, checked."""
        own = self.queries.get_or_make(query, lambda: action_query(query, self.space))
        runner = self.answerer.runner
        batch = runner.batch(self.space.actions(point[None, :]), [0])
        found = runner.find(batch, own, settings)
        return found.resolved[0], found.results[0]


class RecourseAnswerer:
    """Answers questions about recourse with one model, under any causal model."""

    def __init__(self, answerer: Answerer) -> None:
        self.answerer, self.schema = answerer, answerer.schema
        self._spaces: SizedCache[ActionAnswerer] = SizedCache(SPACE_BYTES, lambda kept: bytes_of(kept, (answerer,)))

    def recourse(self, row: Any, causes: CausalModel, query: Query, settings: SearchSettings) -> Recourse:
        """The cheapest action of one person; what is wrong is raised."""
        check_causes(causes, self.schema)
        point = causes.read(row)
        query, breaks = self.answerer.without_broken(point, query)
        resolved, found, actions, follows = self._found(point, causes, query, settings)
        batch = self.answerer.runner.batch(point[None, :], [0])
        answer = self.answerer.builder.answer(batch, resolved, found, query)
        answer = replace(answer, changes=_marked(answer.changes, follows), breaks=(*breaks, *answer.breaks))
        if isinstance(answer, NoneExists) and settings.reasons:
            answer = replace(answer, reasons=self._reasons(answer, point, causes, query, settings))
        return Recourse(answer=answer, actions=self._actions(answer, point, actions))

    def _found(
        self, point: Floats, causes: CausalModel, query: Query, settings: SearchSettings
    ) -> tuple[ResolvedTarget, CheckedResult, tuple[str, ...], frozenset[str]]:
        """The target; the result, whose point is the row that follows; the features acted on; those that follow."""
        fixed = fixed_features(query)
        key = (causes, fixed.intersection(causes.graph))
        own = self._spaces.get_or_make(key, lambda: ActionAnswerer.of(self.answerer, causes, fixed))
        resolved, found = own.cheapest(point, query, settings)
        if found.point is None:
            return resolved, found, (), frozenset()
        action, names, places = found.point, self.schema.names, range(len(self.schema))
        cut = own.space.acted(action[None, :])[0]
        acted = [names[g] for g in places if cut[g] or (names[g] not in causes.graph and action[g] != point[g])]
        follows = frozenset(names[g] for g in places if names[g] in causes.graph and not cut[g])
        row = own.space.rows(action[None, :])[0]
        return resolved, found._replace(claim=replace(found.claim, point=row, record=None)), tuple(acted), follows

    def _actions(self, answer: Answer, point: Floats, acted: Sequence[str]) -> tuple[Intervention, ...]:
        """What is done, in the user's own values."""
        moved = {change.feature: change for change in answer.own_changes}
        own = self.schema.row(point)
        return tuple(
            Intervention(moved[name]) if name in moved else Intervention(Change(name, own[name], own[name]), held=True)
            for name in acted
        )

    def _reasons(
        self, answer: NoneExists, point: Floats, causes: CausalModel, query: Query, settings: SearchSettings
    ) -> Any:
        """Which constraints leave no action, and what would help."""
        begun = time.perf_counter() - answer.seconds

        def under(constraints: tuple[Any, ...]) -> CheckedResult:
            left = replace(settings, limits=settings.limits.after(time.perf_counter() - begun), listen=None)
            return self._found(point, causes, replace(query, constraints=constraints), left)[1]

        return find_reasons(
            without_imputable(query.constraints, self.schema),
            under,
            lambda after: self.answerer.builder.changes(point, after, frozenset(causes.graph)),
            seconds=settings.limits.after(answer.seconds).seconds,
            tolerances=self.answerer.tolerances,
            facts=frozenset(self.answerer.facts),
        )


def check_causes(causes: Any, schema: Schema) -> None:
    """Raise where these are no causes of the features of a schema."""
    if not isinstance(causes, CausalModel):
        raise QuestionError(f"Say what follows from what with a CausalModel; got {shown(causes)}.")
    if unlabelled(causes.schema).features != unlabelled(schema).features:
        raise QuestionError("These causes are about rows of another schema; make them with that of the explainer.")


def _marked(changes: Sequence[Change], follows: frozenset[str]) -> tuple[Change, ...]:
    return tuple(replace(change, follows=change.follows or change.feature in follows) for change in changes)
