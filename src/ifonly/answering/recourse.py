"""The cheapest action of a person under causes: the least over the sets of features with causes that are acted on.

    for each set: a question about actions (`problem.actions`), answered like any other, in which nothing that costs
    more than the best action so far is looked at

Sets on which nothing can be cheaper are left out by bounds on all of them at once (`action_bounds`), which also say
which set to ask first; else the least fees come first. Each answer is checked by abduction, action and prediction with
the user's own equations and model. A set whose fees alone cost as much as the best action needs no search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ifonly.answering.action_bounds import ActionBounds
from ifonly.answering.answerer import Answerer
from ifonly.answering.branching import Spent
from ifonly.answering.leaf_bounds import TreeLeaves
from ifonly.answering.prepared_methods import prepared_cache
from ifonly.answering.reasons import find_reasons
from ifonly.answering.runner import QueryRunner
from ifonly.answering.values import Batch, CheckedResult, Floats, ResolvedTarget, SearchSettings
from ifonly.caching import SizedCache, bytes_of, cached_property
from ifonly.causes import CausalModel, check_causes
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Fixed, MaxChanges, Query, Target
from ifonly.problem.action_models import action_model
from ifonly.problem.action_query import action_query, any_trees, spending, staying_in, with_fees, without_fees
from ifonly.problem.actions import ActionSpace
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.missing import without_imputable
from ifonly.problem.parts import UnrolledColumns
from ifonly.resources import LimitReached, limited
from ifonly.results import Answer, Claim, Limits, NoneExists, Reasons, check_witnesses
from ifonly.results.answer import Change
from ifonly.results.recourse import Intervention, Recourse
from ifonly.tolerances import Tolerances

SPACE_BYTES = 2**28
"""Models of actions, by the causal model and by what cannot be acted on."""
PREPARED_BYTES = 2**31
"""Methods, prepared for the question of each set."""
QUERY_BYTES = 2**22
BOUND_BYTES = 2**24
FEW = 4
"""So many sets are searched as soon as they are bounded."""
FIRST_NODES = 24
"""Of the search for a row that ignores causes, which need not be the nearest."""
Box: TypeAlias = tuple[FeatureBoxes, int]
MOST_ACTED = 10
"""Features with causes that may be acted on: each choice of them is a search of its own."""


@dataclass(frozen=True, eq=False)
class ActionAnswerer:
    """Answers questions about actions on one set of features."""

    space: ActionSpace
    runner: QueryRunner
    queries: SizedCache[Query]

    @classmethod
    def of(cls, answerer: Answerer, prepared: Any, space: ActionSpace) -> ActionAnswerer:
        runner = QueryRunner(action_model(answerer.model, space), answerer.tolerances, prepared)
        return cls(space, runner, SizedCache(QUERY_BYTES, bytes_of))

    def cheapest(
        self, resolved: ResolvedTarget, point: Floats, query: Query, settings: SearchSettings
    ) -> CheckedResult:
        """The cheapest action, checked, without its fees."""
        return self.runner.nearest(
            resolved, self.space.actions(point[None, :]), self._query(query, cut=True), settings
        )[0]

    def cheapest_below(
        self, resolved: ResolvedTarget, point: Floats, query: Query, cost: float, settings: SearchSettings
    ) -> CheckedResult | None:
        """The same, if it costs less than this; else a bound. None where the method cannot begin with a cutoff."""
        if math.isinf(cost) or self.runner.split(query).conditions:
            return None
        action = self.space.actions(point[None, :])[0]
        return self.runner.solver.nearest_below(resolved, action, self._query(query, cut=False), cost, settings)

    def _query(self, query: Query, *, cut: bool) -> Query:
        return self.queries.get_or_make((query, cut), lambda: action_query(query, self.space, cut=cut))


class FoundAction(NamedTuple):
    """A result about the row that follows, and the places of the features with causes that are acted on."""

    result: CheckedResult
    acted: frozenset[int] = frozenset()


class KnownBounds(NamedTuple):
    """Bounds for a question, if there are any."""

    bounds: ActionBounds | None


class RecourseAnswerer:
    """Answers questions about recourse with one model, under any causal model."""

    def __init__(self, answerer: Answerer) -> None:
        self.answerer, self.schema, self.tolerances = answerer, answerer.schema, answerer.tolerances
        self._prepared = prepared_cache(PREPARED_BYTES)
        self._spaces: SizedCache[ActionAnswerer] = SizedCache(SPACE_BYTES, _own_bytes)
        self._bounds: SizedCache[KnownBounds] = SizedCache(BOUND_BYTES, bytes_of)

    def recourse(self, row: Any, causes: CausalModel, query: Query, settings: SearchSettings) -> Recourse:
        """The cheapest action of one person; what is wrong is raised."""
        point, query, breaks, batch, resolved, already = self.begun(row, causes, query)
        found = FoundAction(already) if already is not None else self.found(resolved, point, causes, query, settings)
        return self.told(point, causes, query, settings, (found, breaks, batch, resolved))

    def begun(
        self, row: Any, causes: CausalModel, query: Query
    ) -> tuple[Floats, Query, tuple[str, ...], Batch, ResolvedTarget, CheckedResult | None]:
        """The person's point, the query without what it breaks already and what that is, what the model says, what is
        asked of it, and the row itself where it is decided so already."""
        check_causes(causes, self.schema)
        point = causes.read(row)
        query, breaks = self.answerer.without_broken(point, query)
        return point, query, tuple(breaks), *self.answerer.one(point, query)

    # size: what an answer is made of
    def told(
        self,
        point: Floats,
        causes: CausalModel,
        query: Query,
        settings: SearchSettings,
        known: tuple[FoundAction, tuple[str, ...], Batch, ResolvedTarget],
    ) -> Recourse:
        """What was found, as the person is told."""
        found, breaks, batch, resolved = known
        answer = self.answerer.builder.answer(batch, resolved, found.result, query)
        follows = frozenset(causes.graph) - {self.schema.names[g] for g in found.acted}
        answer = replace(answer, changes=_marked(answer.changes, follows), breaks=(*breaks, *answer.breaks))
        if isinstance(answer, NoneExists) and settings.reasons:
            answer = replace(answer, reasons=self._reasons(answer, resolved, point, causes, query, settings))
        return Recourse(answer=answer, actions=self._actions(answer, point, found.acted))

    def found(
        self, resolved: ResolvedTarget, point: Floats, causes: CausalModel, query: Query, settings: SearchSettings
    ) -> FoundAction:
        """The cheapest action over all sets of features with causes."""
        tolerances, spent, bounds = self.answerer.tolerances, Spent(settings.limits), [math.inf]
        waiting, known = self._sets(causes, query), math.inf
        best, first = self._known(resolved, point, causes, query, settings, spent)
        waiting.sort(key=lambda some: some != first)
        few, boxes = FEW if self._leaves is None else 0, dict[frozenset[int], Box]()
        while waiting:
            if best.result.upper < known and len(waiting) > few:
                known, count = best.result.upper, len(waiting)
                waiting = self._in_time(resolved, point, causes, query, (waiting, known, boxes), spent.left)
                bounds.append(known if len(waiting) < count else math.inf)
                continue
            acted, *waiting = waiting
            fees = self._fees(causes, query, acted)
            least = with_fees(query.measure, len(self.schema), 0.0, fees)
            beaten = best.result.point is not None and tolerances.close(least, best.result.upper)
            if beaten or (spent.searches and spent.stop):
                bounds.append(least)
                continue
            chosen = (acted, fees, best.result.upper)
            with staying_in(boxes.get(acted)):
                found = self._on_set(resolved, point, causes, query, chosen, settings, spent)
            bounds.append(found.result.lower)
            left = best.result.left or found.result.stop
            better = found.result.upper < best.result.upper or not best.result.claim.method
            best = found if better else best
            best = best._replace(result=best.result._replace(left=left))
        return best._replace(result=_closed(best.result, min(bounds), spent, tolerances))

    # size: what bounds are asked of, and how long they may take
    def _in_time(
        self,
        resolved: ResolvedTarget,
        point: Floats,
        causes: CausalModel,
        query: Query,
        asked: tuple[list[frozenset[int]], float, dict[frozenset[int], Box]],
        left: Limits,
    ) -> list[frozenset[int]]:
        """`_in_reach`, or all sets as they are where that would take more than half of the time that is left."""
        try:
            with limited(None if left.seconds is None else 0.5 * left.seconds, left.memory_bytes):
                return self._in_reach(resolved, point, causes, query, asked)
        except LimitReached:
            return asked[0]

    def _in_reach(
        self,
        resolved: ResolvedTarget,
        point: Floats,
        causes: CausalModel,
        query: Query,
        asked: tuple[list[frozenset[int]], float, dict[frozenset[int], Box]],
    ) -> list[frozenset[int]]:
        """The sets of which no bound says that nothing on them is cheaper than this, those first that may be cheapest;
        as they are where there are no bounds. What follows from acting on each is added to the boxes."""
        (sets, cost, boxes), bounds = asked, []
        for target in resolved.alternatives:
            known = self._bounds.get_or_make((target, causes, query), partial(self._bounds_of, target, causes, query))
            if known.bounds is None:
                return sets
            bounds.append(known.bounds)
        fees = [self._fees(causes, query, some) for some in sets]
        each = [one.of_sets(point, sets, fees, cost) for one in bounds]
        if each[0].boxes is not None:  # the same for all targets
            boxes.update((some, (each[0].boxes, k)) for k, some in enumerate(sets))
        out = np.logical_and.reduce([one.out for one in each])
        guess = np.minimum.reduce([one.guess for one in each])
        return [sets[k] for k in np.argsort(guess, kind="stable").tolist() if not out[k]]

    def _bounds_of(self, target: Target, causes: CausalModel, query: Query) -> KnownBounds:
        return KnownBounds(ActionBounds.of(self.answerer.model, target, causes, query, self._leaves))

    @cached_property
    def _leaves(self) -> TreeLeaves | None:
        """Of a model that is trees."""
        trees = self.answerer.model.function.as_trees()
        return None if trees is None else TreeLeaves.of(trees, UnrolledColumns(self.schema).start)

    # size: what a question is made of
    def _known(
        self,
        resolved: ResolvedTarget,
        point: Floats,
        causes: CausalModel,
        query: Query,
        settings: SearchSettings,
        spent: Spent,
    ) -> tuple[FoundAction, frozenset[int]]:
        """An action that is known, and the set to begin with: of a near row that ignores causes, each change is an
        action, unless what follows from them undoes it."""
        nothing = FoundAction(CheckedResult(Claim(point=None, lower=math.inf, method="")))
        if self.answerer.runner.split(query).conditions:
            return nothing, frozenset()
        limits = spent.left
        if self.answerer.model.function.as_network() is not None:  # whose searches find good rows soon
            limits = replace(limits, nodes=min(FIRST_NODES, limits.nodes or FIRST_NODES))
        limited = replace(settings, limits=limits, listen=None)
        found = self.answerer.runner.nearest(resolved, point[None, :], query, limited)[0]
        spent.count(found)
        if found.point is None:
            return nothing, frozenset()
        changed = found.point != point
        acted = frozenset(g for g in causes.order if changed[g])
        rows, inside = causes.followed(found.point[None, :], changed[None, :], causes.noise(point[None, :]))
        if not inside.all():
            return nothing, acted
        judged = bool((rows[0] == found.point).all())
        scores = found.scores if judged else self._scores(resolved, point, rows[0], query)
        if scores is None:
            return nothing, acted
        cost = with_fees(query.measure, len(self.schema), found.upper, self._fees(causes, query, acted))
        claim = Claim(point=rows[0], lower=0.0, method=found.claim.method)
        return FoundAction(CheckedResult(claim, cost, scores), acted), acted

    def _scores(self, resolved: ResolvedTarget, point: Floats, row: Floats, query: Query) -> Floats | None:
        """What the model says of a row that is as asked, by one call; None where it is not."""
        runner = self.answerer.runner
        for target in resolved.alternatives:
            question = runner.solver.question(target, runner.split(query).plain)
            checked = check_witnesses(question, point[None, :], row[None, :])
            if not checked.rejected:
                return checked.scores[0]
        return None

    # size: what a set is asked with
    def _on_set(
        self,
        resolved: ResolvedTarget,
        point: Floats,
        causes: CausalModel,
        query: Query,
        chosen: tuple[frozenset[int], list[float], float],
        settings: SearchSettings,
        spent: Spent,
    ) -> FoundAction:
        """The cheapest action on one set, as far as it is cheaper than the best so far."""
        (acted, fees, upper), size = chosen, len(self.schema)
        trees = any_trees(self.answerer.model, query)
        space = ActionSpace(causes, acted, for_trees=trees)
        made = partial(ActionAnswerer.of, self.answerer, self._prepared, space)
        own = self._spaces.get_or_make((causes, acted, trees), made)
        limited = replace(settings, limits=spent.left, listen=None)
        most = without_fees(query.measure, size, upper, fees)
        found = own.cheapest_below(resolved, point, query, most, limited)
        if found is None:
            with spending(most):
                found = own.cheapest(resolved, point, query, replace(limited, limits=spent.left))
        spent.count(found)
        lower = found.lower
        if lower == math.inf and upper < math.inf:
            lower = upper  # nothing cheaper was looked for
        elif lower < math.inf:
            lower = with_fees(query.measure, size, lower, fees)
        claim = replace(found.claim, lower=lower, lower_any_rounding=None, record=None)
        if found.point is None:
            return FoundAction(CheckedResult(claim, left=found.left))
        total = with_fees(query.measure, size, found.upper, fees)
        row = own.space.rows(found.point[None, :])[0]
        claim = replace(claim, point=row, lower=min(lower, total))
        return FoundAction(CheckedResult(claim, total, found.scores, found.left), acted)

    def _sets(self, causes: CausalModel, query: Query) -> list[frozenset[int]]:
        """The features with causes to act on, least fees first."""
        fixed = {one.feature for one in query.constraints if isinstance(one, Fixed)}
        most = min((one.most for one in query.constraints if isinstance(one, MaxChanges)), default=len(self.schema))
        free = [g for g in causes.order if self.schema.names[g] not in fixed]
        if len(free) > MOST_ACTED:
            raise UnsupportedQuestion(
                f"{len(free)} features with causes may be acted on, and each choice of them is a search of its own; at "
                f"most {MOST_ACTED} are tried: fix some of them, such as '{self.schema.names[free[0]]} is fixed'."
            )
        sets = [frozenset(some) for k in range(min(len(free), most) + 1) for some in combinations(free, k)]
        size = len(self.schema)
        return sorted(sets, key=lambda some: with_fees(query.measure, size, 0.0, self._fees(causes, query, some)))

    def _fees(self, causes: CausalModel, query: Query, acted: frozenset[int]) -> list[float]:
        names, weights = self.schema.names, query.measure.weights
        return [causes.holding_cost(names[g]) * weights.get(names[g], 1.0) for g in sorted(acted)]

    def _actions(self, answer: Answer, point: Floats, acted: frozenset[int]) -> tuple[Intervention, ...]:
        """What is done, in the user's own values."""
        moved = {change.feature: change for change in answer.own_changes}
        own, names = self.schema.row(point), self.schema.names
        return tuple(
            Intervention(moved[name]) if name in moved else Intervention(Change(name, own[name], own[name]), held=True)
            for g, name in enumerate(names) if name in moved or g in acted
        )  # fmt: skip

    def _reasons(
        self,
        answer: NoneExists,
        resolved: ResolvedTarget,
        point: Floats,
        causes: CausalModel,
        query: Query,
        settings: SearchSettings,
    ) -> Reasons:
        """Which constraints leave no action, and what would help."""
        begun = time.perf_counter() - answer.seconds
        acted: dict[bytes, frozenset[int]] = {}

        def under(constraints: tuple[Any, ...]) -> CheckedResult:
            left = replace(settings, limits=settings.limits.after(time.perf_counter() - begun), listen=None)
            found = self.found(resolved, point, causes, replace(query, constraints=constraints), left)
            if found.result.point is not None:
                acted[found.result.point.tobytes()] = found.acted
            return found.result

        def changes(after: Floats) -> tuple[Change, ...]:
            done = {self.schema.names[g] for g in acted[after.tobytes()]}
            return self.answerer.builder.changes(point, after, frozenset(causes.graph) - done)

        return find_reasons(
            without_imputable(query.constraints, self.schema),
            under,
            changes,
            seconds=settings.limits.after(answer.seconds).seconds,
            tolerances=self.answerer.tolerances,
            facts=frozenset(self.answerer.facts),
        )


def _closed(best: CheckedResult, lower: float, spent: Spent, tolerances: Tolerances) -> CheckedResult:
    """The best action with the bound of all sets, and what stopped the search, if that leaves a gap."""
    lower = min(lower, best.upper)
    closed = best.point is not None and tolerances.close(lower, best.upper)
    stop = None if closed or lower == math.inf else spent.stop or best.left
    claim = replace(best.claim, lower=lower, stop=stop, nodes=spent.nodes, seconds=spent.seconds)
    return CheckedResult(claim, best.upper, best.scores)


def _own_bytes(kept: ActionAnswerer) -> int:
    return bytes_of(kept, (kept.space.causes, kept.space.rows_schema, kept.runner.solver.prepared))


def _marked(changes: Sequence[Change], follows: frozenset[str]) -> tuple[Change, ...]:
    return tuple(replace(change, follows=change.follows or change.feature in follows) for change in changes)
