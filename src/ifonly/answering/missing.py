"""People who lack numbers: who asks for them, and what is found where a number may be filled in.

For everybody who lacks the same numbers the model is one function of the others, which the importer makes anew
(`Model.with_missing`); with it, people are asked about like all others. Where numbers may be filled in, there is one
question for each choice of those that are: the nearest of their rows is the answer, the least bound its bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ifonly.answering.branching import Spent
from ifonly.answering.build_answers import AnswerBuilder
from ifonly.answering.checked_solver import PreparedMethod
from ifonly.answering.runner import QueryRunner, parted
from ifonly.answering.values import CheckedResult, Floats, PreparedQuery, ResolvedTarget
from ifonly.caching import SizedCache, bytes_of
from ifonly.errors import ModelError, QuestionError, RowError, located
from ifonly.model import Model
from ifonly.problem.missing import constraints_restricted_to, counted, distance_restricted_to
from ifonly.problem.query import Query
from ifonly.results import Claim, Limits, check_witnesses
from ifonly.schema import Numeric, Schema
from ifonly.tolerances import Tolerances

OTHERS_BYTES = 2**28
"""Models of people who lack some numbers, by which."""
MOST_FILLED = 6
"""Missing numbers of one person that may be filled in: each choice of them is a question of its own."""
FEWEST, TRIES = 3, 5
"""Digits of a real number that is filled in: these are tried, and so many more."""


class RunnersByMissing:
    """Who asks for people that lack numbers, by which they lack. `prepared`: where prepared questions are kept."""

    def __init__(self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod]) -> None:
        self.model, self.tolerances, self.prepared = model, tolerances, prepared
        self._kept: SizedCache[tuple[QueryRunner, AnswerBuilder]] = SizedCache(OTHERS_BYTES, _model_bytes)

    def of(self, missing_names: Collection[str]) -> tuple[QueryRunner, AnswerBuilder]:
        """Of those who lack these numbers; a RowError where the model does not take that."""
        return self._kept.get_or_make(frozenset(missing_names), lambda: self._made(missing_names))

    def _made(self, missing_names: Collection[str]) -> tuple[QueryRunner, AnswerBuilder]:
        try:
            model = self.model.with_missing(frozenset(missing_names)) if missing_names else self.model
        except ModelError as error:
            name = next(iter(missing_names))
            message = f"Feature '{name}' has no value, and the model cannot do without it: {error}"
            raise RowError(message, feature=name) from None
        return QueryRunner(model, self.tolerances, self.prepared), AnswerBuilder(model, self.tolerances)


def _model_bytes(who: tuple[QueryRunner, AnswerBuilder]) -> int:
    return bytes_of(who, (who[0].finder.prepared,))


def query_restricted_to(
    schema: Schema, query: Query, constraints: Collection[object], missing_names: Collection[str]
) -> Query:
    """The query of people who lack these numbers; `constraints` are all that hold for them."""
    with located("distance"):
        query.measure.check(schema)
    return replace(
        query,
        distance=distance_restricted_to(query.measure, missing_names),
        constraints=constraints_restricted_to(schema, constraints, missing_names),
    )


def patterns(schema: Schema, points: Floats, rows: Collection[int]) -> dict[tuple[str, ...], list[int]]:
    """These rows by the numbers that they lack; those that lack none first."""
    found: dict[tuple[str, ...], list[int]] = {(): []}
    for i in rows:
        found.setdefault(schema.missing_names(points[i]), []).append(i)
    return found


# ---------------------------------------------------------------------- filling in


@dataclass(frozen=True, kw_only=True)
class Imputation:
    """One person, whose missing numbers may be filled in. `prepared_query` is for somebody who lacks nothing."""

    others: RunnersByMissing
    schema: Schema
    point: Floats
    missing_names: tuple[str, ...]
    changes: Mapping[str, float]
    """What filling in each number counts as, of those that may be."""
    prepared_query: PreparedQuery

    def __post_init__(self) -> None:
        if self.prepared_query.fewest_first:
            raise QuestionError("The fewest changes cannot be asked for where a number may be filled in: use l0.")
        if len(self.changes) > MOST_FILLED:
            raise RowError(
                f"{len(self.changes)} numbers of this row are missing and may be filled in; at most {MOST_FILLED} can "
                f"be asked about at once: allow fewer."
            )

    def nearest(self, resolved: ResolvedTarget, threads: int) -> CheckedResult:
        """The nearest row, whatever is filled in."""
        none = Claim(point=None, lower=math.inf, method="")
        spent, best, bounds = Spent(self.prepared_query.limits), CheckedResult(none, None), [math.inf]
        tolerances = self.others.tolerances
        for filled in self._choices():
            least = self._counted(0.0, filled)
            beaten = best.witness is not None and tolerances.close(least, best.upper)
            if spent.prepared_query and (beaten or spent.stop):
                bounds.append(least)
                continue
            found = self._with(filled, resolved, spent.left, threads)
            spent.nodes, spent.prepared_query = spent.nodes + found.claim.nodes, spent.prepared_query + 1
            bounds.append(found.lower)
            left = best.left or found.stop
            best = (found if found.upper < best.upper or not best.claim.method else best)._replace(left=left)
        lower = min(*bounds, best.upper)
        closed = best.witness is not None and tolerances.close(lower, best.upper)
        stop = None if closed or lower == math.inf else spent.stop or best.left
        claim = replace(best.claim, lower=lower, lower_any_rounding=None, stop=stop, nodes=spent.nodes,
        seconds=spent.seconds,
                        record=None)  # fmt: skip
        return CheckedResult(claim, best.witness)

    def _choices(self) -> Iterator[tuple[str, ...]]:
        """Which numbers to fill in, the least first; the first is none."""
        every = (chosen for k in range(len(self.changes) + 1) for chosen in combinations(self.changes, k))
        return iter(sorted(every, key=lambda filled: self._counted(0.0, filled)))

    def _counted(self, rest: float, filled: Collection[str]) -> float:
        changes = {name: self.changes[name] for name in filled}
        return counted(self.prepared_query.distance, len(self.schema), rest, changes)

    def _with(self, filled: Collection[str], resolved: ResolvedTarget, limits: Limits, threads: int) -> CheckedResult:
        """The nearest row in which these numbers, and no others, are filled in."""
        rest = tuple(name for name in self.missing_names if name not in filled)
        runner, _ = self.others.of(rest)
        constraints = constraints_restricted_to(self.schema, self.prepared_query.constraints, rest, filled)
        distance = distance_restricted_to(self.prepared_query.distance, rest, filled)
        prepared_query = replace(
            self.prepared_query, distance=distance, constraints=constraints, limits=limits, listen=None
        )
        before, prepared_query = self._start(filled), runner.branched(prepared_query)
        found = runner.nearest(resolved, before[None, :], prepared_query, threads)[0]
        lower = found.lower if found.lower == math.inf else self._counted(found.lower, filled)
        if found.witness is None or found.claim.point is None:
            return CheckedResult(replace(found.claim, lower=lower, lower_any_rounding=None), None, found.left)
        own = [self.schema.index(name) for name in filled]
        after, scores = self._shorter(runner, resolved, prepared_query, before, found, own)
        before[own] = after[own]  # whose value makes no difference
        upper = self._counted(distance.between(runner.model.schema, before, after), filled)
        after[[self.schema.index(name) for name in rest]] = math.nan
        claim = replace(found.claim, point=after, lower=min(lower, upper), lower_any_rounding=None)
        return CheckedResult(claim, replace(found.witness, distance=upper, scores=scores), found.left)

    def _shorter(
        self,
        runner: QueryRunner,
        resolved: ResolvedTarget,
        prepared_query: PreparedQuery,
        before: Floats,
        found: CheckedResult,
        own: list[int],
    ) -> tuple[Floats, Floats]:
        """The row, with fewer digits in the real numbers that are filled in; and its scores."""
        assert found.witness is not None and found.claim.point is not None
        row, scores = found.claim.point.copy(), found.witness.scores
        conditions, _ = parted(prepared_query.constraints)
        questions = (
            [] if conditions else [runner.finder.question(target, prepared_query) for target in resolved.alternatives]
        )
        lower, upper = (ends.tolist() for ends in self.schema.grid[:2])
        for g in (g for g in own if g in self.schema.reals):  # numbers with a step are as short as it is
            first = FEWEST - 1 - math.floor(math.log10(upper[g] - lower[g])) if upper[g] > lower[g] else 0
            for places in range(first, first + TRIES):
                short = row.copy()
                short[g] = min(max(_rounded(row[g], before[g], places), lower[g]), upper[g])
                told = [check_witnesses(one, before[None, :], short[None, :])[0] for one in questions]
                good = next((witness for witness in told if not witness.refusal), None)
                if good is not None:
                    row, scores = short, good.scores
                    break
        return row, scores

    def _start(self, filled: Collection[str]) -> Floats:
        """The person, with filled in numbers in the middle of their range: of equally near rows, the one with numbers
        nearest to that is found. A number may stay what it was even off its grid, so this one is on it. What stays
        missing has the option of that.
        """
        point = np.nan_to_num(self.point, nan=0.0)
        for name in filled:
            number = self.schema[name]
            assert isinstance(number, Numeric)
            point[self.schema.index(name)] = number.nearest(number.lower + number.width / 2.0)
        return point


def _rounded(value: float, start: float, places: int) -> float:
    """To so many decimals, away from where it started."""
    scale = 10.0 ** abs(places)
    shifted = value * scale if places >= 0 else value / scale
    whole = math.ceil(shifted) if value > start else math.floor(shifted) if value < start else round(shifted)
    return whole / scale if places >= 0 else whole * scale
