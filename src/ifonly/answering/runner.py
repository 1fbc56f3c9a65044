"""Runs a query for any number of people: their targets, who meets them already, the nearest rows of the others.

A query here holds all constraints that apply (the schema's, everybody's and its own). Constraints that are met in one
of several ways are branched on (`branching`); all others are the method's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.box_bounds import PreparedBoxBounds
from ifonly.answering.branching import Branching, NearestUnder
from ifonly.answering.checked_results import CheckedResults, TargetResults
from ifonly.answering.checked_solver import CheckedSolver
from ifonly.answering.prepared_methods import PreparedMethod
from ifonly.answering.values import (
    Batch,
    CheckedResult,
    Floats,
    ResolvedTarget,
    SearchSettings,
    distinct,
    shifted,
)
from ifonly.caching import PREPARING, SizedCache, bytes_of
from ifonly.errors import ModelError, QuestionError, located
from ifonly.model import Model
from ifonly.printing import shown
from ifonly.problem import (
    AcceptedBySome,
    ClassTarget,
    OpenTarget,
    OtherTarget,
    Query,
    Question,
    RobustToTrees,
    Target,
)
from ifonly.problem.chains import each_choice
from ifonly.problem.disjunctions import Condition, PersonContext, as_conditions, is_condition
from ifonly.problem.missing import without_imputable
from ifonly.problem.rules import bytes_beside
from ifonly.results import Limits, Progress
from ifonly.tolerances import Tolerances

TARGET_BYTES = 2**20
"""Targets, by the present class."""
QUERY_BYTES = 2**22
"""Queries, split into conditions and ordinary constraints."""


class SplitQuery(NamedTuple):
    """The conditions of a query, which are branched on, and the query with its ordinary constraints only."""

    conditions: tuple[Condition, ...]
    plain: Query


class QueryRunner:
    """Runs queries on one model. `prepared`: the cache of prepared methods, if it is shared."""

    def __init__(
        self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod] | None = None
    ) -> None:
        self.model, self.tolerances = model, tolerances
        self.solver = CheckedSolver(model, tolerances, prepared)
        self._resolved: SizedCache[ResolvedTarget] = SizedCache(TARGET_BYTES, bytes_of)
        self._split: SizedCache[SplitQuery] = SizedCache(QUERY_BYTES, partial(bytes_beside, schema=model.schema))

    def batch(self, points: Floats, rows: Sequence[int]) -> Batch:
        """The people, with the model's own scores and decisions; `rows` are the numbers that an error message names."""
        with PREPARING:  # frameworks import and compile at their first call
            scores = self.model.scores(points)
        blank = np.isnan(scores)
        if blank.any():
            row = rows[int(np.argwhere(blank)[0, 0])]
            raise ModelError(f"The model gives no score (NaN) for row {row}, so nothing can be said of it.")
        decided = self.model.decide(scores) if self.model.is_classifier else np.zeros(len(points), dtype=np.intp)
        return Batch(points=points, scores=scores, decided=decided)

    # ------------------------------------------------------------------ queries and targets

    def split(self, query: Query) -> SplitQuery:
        """The query by what is branched on and what is searched, checked."""
        return self._split.get_or_make(query, lambda: self._split_up(query))

    def _split_up(self, query: Query) -> SplitQuery:
        schema = self.model.schema
        constraints = without_imputable(query.constraints, schema)
        if not query.fewest_first:
            constraints = as_conditions(constraints, schema)
        conditions, ordinary = parted(constraints)
        if conditions and query.fewest_first:
            raise QuestionError("The fewest changes cannot be asked for under a condition such as Near: use l0.")
        for condition in conditions:
            condition.check(schema)
        return SplitQuery(conditions, replace(query, constraints=ordinary))

    def resolved(self, target: Target | OpenTarget | None, now: int) -> ResolvedTarget:
        """The target of people of this class: the one that is stated, or, for two classes, the other class."""
        with located("target"):
            return self._resolved.get_or_make((target, now), lambda: self._resolve(target, now))

    def _resolve(self, target: Target | OpenTarget | None, now: int) -> ResolvedTarget:
        model = self.model
        if target is None:
            self._check_two_classes()
            target = OtherTarget()
        other = False
        if isinstance(target, OtherTarget) and len(model.classes) == 2:
            target, other = ClassTarget(model.classes[1 - now], target.margin), True
        if isinstance(target, OpenTarget):
            target.check(model)
            return ResolvedTarget(
                target.describe(), target.words(model, now), target.alternatives(model, now), target, now
            )
        return ResolvedTarget(target.describe(), target.words(), (target,), other=other)

    def questions(self, point: Floats, query: Query, resolved: ResolvedTarget | None = None) -> list[Question]:
        """What a method is asked of a person: a question for each alternative of the target (that of the person's own
        decision, unless it is given), and for each choice of the models that accept.
        """
        resolved = resolved or self.resolved(query.target, int(self.batch(point[None, :], [0]).decided[0]))
        ways = each_choice(without_imputable(query.constraints, self.model.schema))
        queries = [replace(query, constraints=way) for way in ways]
        return [self.solver.question(target, one) for target in resolved.alternatives for one in queries]

    def check(self, query: Query) -> None:
        """Raise the error of a query that does not fit the model, the schema or the method."""
        searched = self.split(query).plain
        for target in self.resolved(searched.target, 0).alternatives:
            self.solver.question(target, searched)

    def _check_two_classes(self) -> None:
        classes = self.model.classes
        if len(classes) == 2:
            return
        listed = (
            f"one of {', '.join(map(shown, classes))}, or OtherTarget() for any but the present one"
            if classes
            else "a ScoreTarget, since this is a regression"
        )
        raise QuestionError(f"Say which decision is wanted with target=...: {listed}.")

    def groups(self, query: Query, decided: NDArray[np.intp]) -> list[tuple[ResolvedTarget, list[int]]]:
        """People by their target, which depends on the present class only."""
        if len(decided) == 1 or (query.target is not None and not isinstance(query.target, OpenTarget)):
            return [(self.resolved(query.target, int(decided[0])), list(range(len(decided))))]
        return [
            (self.resolved(query.target, now), np.flatnonzero(decided == now).tolist())
            for now in sorted(set(decided.tolist()))
        ]

    # ------------------------------------------------------------------ many people

    def find(self, batch: Batch, query: Query, settings: SearchSettings) -> TargetResults:
        """Each person's target and result: the unchanged row where it meets the target, or else the nearest row."""
        resolved: list[ResolvedTarget] = []
        order: list[int] = []
        parts: list[tuple[list[int], CheckedResults]] = []
        searches = []
        for target, members in self.groups(query, batch.decided):
            order += members
            resolved += [target] * len(members)
            unchanged = self.already_satisfied(target, batch.part(members), query)
            if already := {i: one for i, one in zip(members, unchanged, strict=True) if one is not None}:
                results = CheckedResults.of(list(already.values()), batch.points[list(already)], self.model.outputs)
                parts.append((list(already), results))
            others = [i for i in members if i not in already] if already else members
            if others:
                searches.append((target, others, *distinct(batch.part(others).points)))
        done = sum(len(distinct(batch.points[members])[0]) for members, _ in parts)
        people = done + sum(len(unique) for _, _, unique, _ in searches)
        if settings.listen is not None and not searches:
            settings.listen(Progress(finished=done, people=people))
        for target, members, unique, inverse in searches:
            listen = shifted(settings.listen, done, people)
            counted = settings if listen is None else replace(settings, listen=listen)
            found = CheckedResults.of(self.nearest(target, unique, query, counted), unique, self.model.outputs)
            done += len(unique)
            parts.append((members, found if len(unique) == len(members) else found.take(inverse)))
        if len(order) > 1 and order != sorted(order):
            resolved = [resolved[k] for k in np.argsort(order).tolist()]
        return TargetResults(resolved=resolved, results=CheckedResults.merged(parts))

    def already_satisfied(self, resolved: ResolvedTarget, batch: Batch, query: Query) -> list[CheckedResult | None]:
        """For each person who meets the target already: the unchanged row, and the constraints that it breaks."""
        conditions, plain = self.split(query)
        result = self.solver.already_satisfied(resolved, batch.points, batch.scores, plain)
        for k, found in enumerate(result if conditions else ()):
            if found is not None:
                context = PersonContext(self.model.schema, batch.points[k], query.measure)
                deciding = [c for c in conditions if isinstance(c, AcceptedBySome | RobustToTrees)]
                if not all(c.holds_unchanged(context) for c in deciding):
                    result[k] = None
                    continue
                others = [c for c in conditions if c not in deciding]
                unmet = [c.describe() for c in others if not c.holds(context, batch.points[k])]
                result[k] = found._replace(breaks=(*found.breaks, *unmet))
        return result

    def nearest(
        self, resolved: ResolvedTarget, points: Floats, query: Query, settings: SearchSettings
    ) -> Sequence[CheckedResult]:
        """The nearest row of each person, whether or not the target is met already: by the method, or by branching."""
        conditions, plain = self.split(query)
        if not conditions:
            return self.solver.nearest(resolved, points, plain, settings)
        found: list[CheckedResult] = []
        for point in points:
            found.append(self.branching(resolved, point, query, settings).nearest(conditions, settings.limits))
            if settings.listen is not None:
                settings.listen(Progress(finished=len(found), people=len(points)))
        return found

    # ------------------------------------------------------------------ repeated searches for one person

    def branching(self, resolved: ResolvedTarget, point: Floats, query: Query, settings: SearchSettings) -> Branching:
        """The branch and bound over the conditions of one person."""
        context = PersonContext(self.model.schema, point, query.measure)
        plain = self.split(query).plain
        boxes = PreparedBoxBounds(self.solver, resolved, point, plain, settings)
        return Branching(self.under(resolved, point, plain, settings), context, self.tolerances, boxes)

    def under(self, resolved: ResolvedTarget, point: Floats, plain: Query, settings: SearchSettings) -> NearestUnder:
        """The person's nearest row under the constraints of a query without conditions and under further ones."""

        def nearest(more: tuple[Any, ...], limits: Limits) -> CheckedResult:
            restricted = replace(plain, constraints=(*plain.constraints, *more))
            inner = replace(settings, limits=limits, listen=None)
            return self.solver.nearest(resolved, point[None, :], restricted, inner)[0]

        return nearest


def parted(constraints: Sequence[Any]) -> tuple[tuple[Condition, ...], tuple[Any, ...]]:
    """The conditions, and the ordinary constraints."""
    conditions = tuple(c for c in constraints if is_condition(c))
    return conditions, tuple(c for c in constraints if not is_condition(c))
