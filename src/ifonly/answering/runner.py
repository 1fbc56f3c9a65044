"""From people to findings: whose target is which, who has it already, and either-or conditions by branching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.branching import Branching, QueryRequest
from ifonly.answering.checked_results import CheckedResults, TargetResults
from ifonly.answering.checked_solver import CheckedSolver, PreparedMethod
from ifonly.answering.values import Batch, CheckedResult, Floats, PreparedQuery, ResolvedTarget, distinct, shifted
from ifonly.caching import PREPARING, SizedCache, bytes_of
from ifonly.errors import ModelError, QuestionError, located
from ifonly.model import Model
from ifonly.printing import shown
from ifonly.problem import ClassTarget, OpenTarget, OtherTarget, Target
from ifonly.problem.disjunctions import Condition, PersonContext, as_conditions, is_condition
from ifonly.results import Limits, Progress
from ifonly.tolerances import Tolerances

WANTED_BYTES = 2**20
"""What people want, by target and class."""


class QueryRunner:
    """Puts a query to a method for any number of people. `prepared`: where prepared questions are kept, if not here."""

    def __init__(
        self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod] | None = None
    ) -> None:
        self.model, self.tolerances = model, tolerances
        self.finder = CheckedSolver(model, tolerances, prepared)
        self._resolved: SizedCache[ResolvedTarget] = SizedCache(WANTED_BYTES, bytes_of)

    def batch(self, points: Floats, rows: Sequence[int]) -> Batch:
        """The people, with what the model itself says of them; `rows` are the numbers that a complaint names."""
        with PREPARING:  # frameworks import and compile at their first call
            scores = self.model.scores(points)
        blank = np.isnan(scores)
        if blank.any():
            row = rows[int(np.argwhere(blank)[0, 0])]
            raise ModelError(f"The model gives no score (NaN) for row {row}, so nothing can be said of it.")
        decided = self.model.decide(scores) if self.model.is_classifier else np.zeros(len(points), dtype=np.intp)
        return Batch(points=points, scores=scores, decided=decided)

    def resolved(self, target: Target | OpenTarget | None, now: int) -> ResolvedTarget:
        """What someone of this class wants: what was asked for, or, for two classes, the other class."""
        with located("target"):
            return self._resolved.get_or_make((target, now), lambda: self._want(target, now))

    def _want(self, target: Target | OpenTarget | None, now: int) -> ResolvedTarget:
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

    def groups(
        self, prepared_query: PreparedQuery, decided: NDArray[np.intp]
    ) -> list[tuple[ResolvedTarget, list[int]]]:
        """People by what they want: those of one class want the same."""
        if len(decided) == 1 or (
            prepared_query.target is not None and not isinstance(prepared_query.target, OpenTarget)
        ):
            return [(self.resolved(prepared_query.target, int(decided[0])), list(range(len(decided))))]
        return [
            (self.resolved(prepared_query.target, now), np.flatnonzero(decided == now).tolist())
            for now in sorted(set(decided.tolist()))
        ]

    # ------------------------------------------------------------------ many people

    def find(self, batch: Batch, prepared_query: PreparedQuery, threads: int) -> TargetResults:
        """What each wants, and what is found: the row as it is of those who have it, the nearest row of the others.

        `prepared_query` must be `branched` already.
        """
        wants: list[ResolvedTarget] = []
        order: list[int] = []
        parts: list[tuple[list[int], CheckedResults]] = []
        apart = []
        for resolved, members in self.groups(prepared_query, batch.decided):
            order += members
            wants += [resolved] * len(members)
            already_satisfied = self.already_satisfied(resolved, batch.part(members), prepared_query)
            if has := {i: found for i, found in zip(members, already_satisfied, strict=True) if found is not None}:
                there = CheckedResults.of(list(has.values()), batch.points[list(has)], self.model.outputs)
                parts.append((list(has), there))
            waiting = [i for i in members if i not in has] if has else members
            if waiting:
                apart.append((resolved, waiting, *distinct(batch.part(waiting).points)))
        done = sum(len(distinct(batch.points[has])[0]) for has, _ in parts)
        people = done + sum(len(unique) for _, _, unique, _ in apart)
        if prepared_query.listen is not None and not apart:
            prepared_query.listen(Progress(finished=done, people=people))
        for resolved, members, unique, inverse in apart:
            with_progress = (
                prepared_query
                if prepared_query.listen is None
                else replace(prepared_query, listen=shifted(prepared_query.listen, done, people))
            )
            found = CheckedResults.of(
                self.nearest(resolved, unique, with_progress, threads), unique, self.model.outputs
            )
            done += len(unique)
            parts.append((members, found if len(unique) == len(members) else found.take(inverse)))
        if len(order) > 1 and order != sorted(order):
            wants = [wants[k] for k in np.argsort(order).tolist()]
        return TargetResults(resolved=wants, found=CheckedResults.joined(parts))

    def branched(self, prepared_query: PreparedQuery) -> PreparedQuery:
        """The same, with those rules as conditions that are better branched on than searched, all of them checked."""
        schema = self.model.schema
        if not prepared_query.fewest_first:
            prepared_query = replace(prepared_query, constraints=as_conditions(prepared_query.constraints, schema))
        for condition in filter(is_condition, prepared_query.constraints):
            if prepared_query.fewest_first:
                raise QuestionError("The fewest changes cannot be asked for under a condition such as Near: use l0.")
            condition.check(schema)
        return prepared_query

    def already_satisfied(
        self, resolved: ResolvedTarget, batch: Batch, prepared_query: PreparedQuery
    ) -> list[CheckedResult | None]:
        """For each person who has what is wanted already: the row as it is, and the constraints that it breaks."""
        conditions, ordinary = parted(prepared_query.constraints)
        plainly = replace(prepared_query, constraints=ordinary) if conditions else prepared_query
        result = self.finder.already_satisfied(resolved, batch.points, batch.scores, plainly)
        if not conditions:
            return result
        for k, found in enumerate(result):
            if found is not None:
                context = PersonContext(self.model.schema, batch.points[k], prepared_query.distance)
                unmet = [c.describe() for c in conditions if not c.holds(context, batch.points[k])]
                result[k] = found._replace(breaks=(*found.breaks, *unmet))
        return result

    def nearest(
        self, resolved: ResolvedTarget, points: Floats, prepared_query: PreparedQuery, threads: int
    ) -> Sequence[CheckedResult]:
        """The nearest row of each person, also of those who have what they want: by the method, or by branching."""
        conditions, _ = parted(prepared_query.constraints)
        if not conditions:
            return self.finder.found(resolved, points, prepared_query, threads, prepared_query.listen)
        found: list[CheckedResult] = []
        for point in points:
            branching = self.branching(resolved, point, prepared_query, threads)
            found.append(branching.nearest(conditions, prepared_query.limits))
            if prepared_query.listen is not None:
                prepared_query.listen(Progress(finished=len(found), people=len(points)))
        return found

    # ------------------------------------------------------------------ one person, again and again

    def branching(
        self, resolved: ResolvedTarget, point: Floats, prepared_query: PreparedQuery, threads: int
    ) -> Branching:
        """The search over either-or choices for one person."""
        context = PersonContext(self.model.schema, point, prepared_query.distance)
        return Branching(self.ask(resolved, point, prepared_query, threads), context, self.tolerances)

    def ask(self, resolved: ResolvedTarget, point: Floats, prepared_query: PreparedQuery, threads: int) -> QueryRequest:
        """The person's nearest row under the ordinary constraints of the query and further ones."""
        _, ordinary = parted(prepared_query.constraints)

        def ask(chosen: tuple[Any, ...], left: Limits) -> CheckedResult:
            inner = replace(prepared_query, constraints=(*ordinary, *chosen), limits=left, listen=None)
            return self.finder.found(resolved, point[None, :], inner, threads, None)[0]

        return ask


def parted(constraints: Sequence[Any]) -> tuple[list[Condition], tuple[Any, ...]]:
    """The either-or conditions, and the ordinary constraints."""
    conditions = [c for c in constraints if is_condition(c)]
    return conditions, tuple(c for c in constraints if not is_condition(c)) if conditions else tuple(constraints)
