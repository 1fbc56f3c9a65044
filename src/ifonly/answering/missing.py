"""Missing numbers: the query of people who have them, and the nearest row where they may be filled in (imputed).

Where numbers may be filled in, there is one search for each choice of those that are. The nearest of their rows is the
answer, and the least of their bounds its bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from ifonly.answering.branching import Spent
from ifonly.answering.runner import QueryRunner
from ifonly.answering.values import CheckedResult, Floats, ResolvedTarget, SearchSettings
from ifonly.caching import cached_property
from ifonly.errors import QuestionError, RowError, located
from ifonly.problem import Query, Question
from ifonly.problem.missing import constraints_restricted_to, counted, distance_restricted_to, fillable
from ifonly.results import Claim, Limits, check_witnesses
from ifonly.schema import Numeric, Schema
from ifonly.tolerances import Tolerances

MOST_FILLED = 6
"""Missing numbers of one person that may be filled in: each choice of them is a search of its own."""
FEWEST, TRIES = 3, 5
"""Digits of a real number that is filled in: so few at first, then so many tries with one more each."""


def query_restricted_to(schema: Schema, query: Query, missing: Collection[str], filled: Collection[str] = ()) -> Query:
    """The query of people with these numbers missing, in whose answer others are filled in."""
    with located("distance"):
        query.measure.check(schema)
    return replace(
        query,
        distance=distance_restricted_to(query.measure, missing, filled),
        constraints=constraints_restricted_to(schema, query.constraints, missing, filled),
    )


def patterns(schema: Schema, points: Floats) -> dict[tuple[str, ...], list[int]]:
    """The numbers of the rows by their missing features; complete rows first."""
    found: dict[tuple[str, ...], list[int]] = {(): []}
    for i, point in enumerate(points):
        found.setdefault(schema.missing_names(point), []).append(i)
    return {missing: members for missing, members in found.items() if members}


# ---------------------------------------------------------------------- filling in


FilledQuestions: TypeAlias = tuple[dict[str, float], list[Question], Floats]
"""What is asked of a person where some missing numbers are filled in: what that counts as, the questions (a value there
makes no difference to their distances), and the point."""


@dataclass(frozen=True, kw_only=True)
class Imputation:
    """One person, of whom missing numbers may be filled in. `runner_without` gives the runner of people with these
    numbers missing."""

    runner_without: Callable[[Collection[str]], QueryRunner]
    schema: Schema
    point: Floats
    missing: tuple[str, ...]
    query: Query
    settings: SearchSettings

    def __post_init__(self) -> None:
        if self.query.fewest_first:
            raise QuestionError("The fewest changes cannot be asked for where a number may be filled in: use l0.")
        choices(self.schema, self.query, self.changes)

    @cached_property
    def changes(self) -> Mapping[str, float]:
        """The numbers that may be filled in, and what that counts as."""
        return fillable(self.query.constraints, self.missing)

    def nearest(self, resolved: ResolvedTarget, tolerances: Tolerances) -> CheckedResult:
        """The nearest row, whatever is filled in."""
        spent, bounds = Spent(self.settings.limits), [math.inf]
        best = CheckedResult(Claim(point=None, lower=math.inf, method=""))
        for filled in choices(self.schema, self.query, self.changes):
            least = self._counted(0.0, filled)
            beaten = best.point is not None and tolerances.close(least, best.upper)
            if spent.searches and (beaten or spent.stop):
                bounds.append(least)
                continue
            found = self._nearest_with(filled, resolved, spent.left)
            spent.count(found)
            bounds.append(found.lower)
            left = best.left or found.stop
            best = (found if found.upper < best.upper or not best.claim.method else best)._replace(left=left)
        lower = min(*bounds, best.upper)
        closed = best.point is not None and tolerances.close(lower, best.upper)
        stop = None if closed or lower == math.inf else spent.stop or best.left
        claim = replace(
            best.claim, lower=lower, lower_any_rounding=None, stop=stop, nodes=spent.nodes, seconds=spent.seconds,
            record=None,
        )  # fmt: skip
        return CheckedResult(claim, best.upper, best.scores)

    def _counted(self, rest: float, filled: Collection[str]) -> float:
        changes = {name: self.changes[name] for name in filled}
        return counted(self.query.measure, len(self.schema), rest, changes)

    def _nearest_with(self, filled: Collection[str], resolved: ResolvedTarget, limits: Limits) -> CheckedResult:
        """The nearest row in which these numbers, and no others, are filled in."""
        rest = tuple(name for name in self.missing if name not in filled)
        runner, query = self.runner_without(rest), query_restricted_to(self.schema, self.query, rest, filled)
        before, settings = started(self.schema, self.point, filled), replace(self.settings, limits=limits, listen=None)
        found = runner.nearest(resolved, before[None, :], query, settings)[0]
        lower = found.lower if found.lower == math.inf else self._counted(found.lower, filled)
        if found.point is None:
            return CheckedResult(replace(found.claim, lower=lower, lower_any_rounding=None), left=found.left)
        own = [self.schema.index(name) for name in filled]
        after, scores = self._shorter(runner, resolved, query, before, found, own)
        before[own] = after[own]  # whose value makes no difference
        upper = self._counted(query.measure.between(runner.model.schema, before, after), filled)
        after[[self.schema.index(name) for name in rest]] = math.nan
        claim = replace(found.claim, point=after, lower=min(lower, upper), lower_any_rounding=None)
        return CheckedResult(claim, upper, scores, found.left)

    def _shorter(
        self,
        runner: QueryRunner,
        resolved: ResolvedTarget,
        query: Query,
        before: Floats,
        found: CheckedResult,
        own: list[int],
    ) -> tuple[Floats, Floats | None]:
        """The row, with fewer digits in the real numbers that are filled in; and its scores."""
        assert found.point is not None
        row, scores = found.point.copy(), found.scores
        conditions, plain = runner.split(query)
        questions = [] if conditions else [runner.solver.question(target, plain) for target in resolved.alternatives]
        lower, upper = (ends.tolist() for ends in self.schema.grid[:2])
        for g in (g for g in own if g in self.schema.reals):  # numbers with a step are as short as it is
            first = FEWEST - 1 - math.floor(math.log10(upper[g] - lower[g])) if upper[g] > lower[g] else 0
            for places in range(first, first + TRIES):
                short = row.copy()
                short[g] = min(max(_rounded(row[g], before[g], places), lower[g]), upper[g])
                checked = (check_witnesses(question, before[None, :], short[None, :]) for question in questions)
                accepted = next((witnesses for witnesses in checked if not witnesses.rejected), None)
                if accepted is not None:
                    row, scores = short, accepted.scores[0]
                    break
        return row, scores


def started(schema: Schema, row: Floats, filled: Collection[str]) -> Floats:
    """A person, with the numbers to fill in at the middle of their range: of equally near rows, the one with numbers
    nearest to that is found. A number may keep a value off its grid, so these are on it. A number that stays missing
    has the only option of its feature.
    """
    point = np.nan_to_num(row, nan=0.0)
    for name in filled:
        number = schema[name]
        assert isinstance(number, Numeric)
        point[schema.index(name)] = number.nearest(number.lower + number.width / 2.0)
    return point


def choices(schema: Schema, query: Query, changes: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Which numbers to fill in, the least first; the first is none."""
    if len(changes) > MOST_FILLED:
        raise RowError(
            f"{len(changes)} numbers of this row are missing and may be filled in; at most {MOST_FILLED} can "
            f"be asked about at once: allow fewer."
        )
    every = (chosen for k in range(len(changes) + 1) for chosen in combinations(changes, k))
    size = {chosen: counted(query.measure, len(schema), 0.0, {name: changes[name] for name in chosen})
            for chosen in every}  # fmt: skip
    return sorted(size, key=size.__getitem__)


def _rounded(value: float, start: float, places: int) -> float:
    """To so many decimals, away from where it started."""
    scale = 10.0 ** abs(places)
    shifted = value * scale if places >= 0 else value / scale
    whole = math.ceil(shifted) if value > start else math.floor(shifted) if value < start else round(shifted)
    return whole / scale if places >= 0 else whole * scale
