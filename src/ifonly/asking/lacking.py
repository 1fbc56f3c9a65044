"""People who lack numbers: who asks for them, and what is found where a number may be filled in.

For everybody who lacks the same numbers the model is one function of the others, which the importer makes anew
(`Model.lacking`); with it, people are asked about like all others. Where numbers may be filled in, there is one
question for each choice of those that are: the nearest of their rows is the answer, the least bound its bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ifonly.asking.asker import Asker, parted
from ifonly.asking.branching import Spent
from ifonly.asking.finder import PreparedMethod
from ifonly.asking.found import Asked, Floats, Found, Wanted
from ifonly.asking.telling import Teller
from ifonly.caching import SizedCache, bytes_of
from ifonly.errors import ModelError, QuestionError, RowError
from ifonly.model import Model
from ifonly.problem.lacking import constraints_among, counted, distance_among
from ifonly.problem.query import Query
from ifonly.proof import Claim, Limits, check_witnesses
from ifonly.schema import Numeric, Schema
from ifonly.tolerances import Tolerances

OTHERS_BYTES = 2**28
"""Models of people who lack some numbers, by which."""
MOST_FILLED = 6
"""Missing numbers of one person that may be filled in: each choice of them is a question of its own."""
FEWEST, TRIES = 3, 5
"""Digits of a real number that is filled in: these are tried, and so many more."""


class Others:
    """Who asks for people that lack numbers, by which they lack. `prepared`: where prepared questions are kept."""

    def __init__(self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod]) -> None:
        self.model, self.tolerances, self.prepared = model, tolerances, prepared
        self._kept: SizedCache[tuple[Asker, Teller]] = SizedCache(OTHERS_BYTES, _model_bytes)

    def of(self, lacked: Collection[str]) -> tuple[Asker, Teller]:
        """Of those who lack these numbers; a RowError where the model does not take that."""
        return self._kept.get_or_make(frozenset(lacked), lambda: self._made(lacked))

    def _made(self, lacked: Collection[str]) -> tuple[Asker, Teller]:
        try:
            model = self.model.lacking(frozenset(lacked)) if lacked else self.model
        except ModelError as error:
            name = next(iter(lacked))
            message = f"Feature '{name}' has no value, and the model cannot do without it: {error}"
            raise RowError(message, feature=name) from None
        return Asker(model, self.tolerances, self.prepared), Teller(model, self.tolerances)


def _model_bytes(who: tuple[Asker, Teller]) -> int:
    return bytes_of(who, (who[0].finder.prepared,))


def query_among(schema: Schema, query: Query, constraints: Collection[object], lacked: Collection[str]) -> Query:
    """The query of people who lack these numbers; `constraints` are all that hold for them."""
    query.measure.check(schema)
    return replace(
        query,
        distance=distance_among(query.measure, lacked),
        constraints=constraints_among(schema, constraints, lacked),
    )


def patterns(schema: Schema, points: Floats, rows: Collection[int]) -> dict[tuple[str, ...], list[int]]:
    """These rows by the numbers that they lack; those that lack none first."""
    found: dict[tuple[str, ...], list[int]] = {(): []}
    for i in rows:
        found.setdefault(schema.lacked(points[i]), []).append(i)
    return found


# ---------------------------------------------------------------------- filling in


@dataclass(frozen=True, kw_only=True)
class Filling:
    """One person, whose missing numbers may be filled in. `asked` is for somebody who lacks nothing."""

    others: Others
    schema: Schema
    point: Floats
    lacked: tuple[str, ...]
    changes: Mapping[str, float]
    """What filling in each number counts as, of those that may be."""
    asked: Asked

    def __post_init__(self) -> None:
        if self.asked.fewest_first:
            raise QuestionError("The fewest changes cannot be asked for where a number may be filled in: use l0.")
        if len(self.changes) > MOST_FILLED:
            raise RowError(
                f"{len(self.changes)} numbers of this row are missing and may be filled in; at most {MOST_FILLED} can "
                f"be asked about at once: allow fewer."
            )

    def nearest(self, wanted: Wanted, threads: int) -> Found:
        """The nearest row, whatever is filled in."""
        none = Claim(point=None, lower=math.inf, method="")
        spent, best, bounds = Spent(self.asked.limits), Found(none, None), [math.inf]
        tolerances = self.others.tolerances
        for filled in self._choices():
            least = self._counted(0.0, filled)
            beaten = best.witness is not None and tolerances.close(least, best.upper)
            if spent.asked and (beaten or spent.stop):
                bounds.append(least)
                continue
            found = self._with(filled, wanted, spent.left, threads)
            spent.nodes, spent.asked = spent.nodes + found.claim.nodes, spent.asked + 1
            bounds.append(found.lower)
            left = best.left or found.stop
            best = (found if found.upper < best.upper or not best.claim.method else best)._replace(left=left)
        lower = min(*bounds, best.upper)
        closed = best.witness is not None and tolerances.close(lower, best.upper)
        stop = None if closed or lower == math.inf else spent.stop or best.left
        claim = replace(best.claim, lower=lower, lucky=None, stop=stop, nodes=spent.nodes, seconds=spent.seconds,
                        record=None)  # fmt: skip
        return Found(claim, best.witness)

    def _choices(self) -> Iterator[tuple[str, ...]]:
        """Which numbers to fill in, the least first; the first is none."""
        every = (chosen for k in range(len(self.changes) + 1) for chosen in combinations(self.changes, k))
        return iter(sorted(every, key=lambda filled: self._counted(0.0, filled)))

    def _counted(self, rest: float, filled: Collection[str]) -> float:
        changes = {name: self.changes[name] for name in filled}
        return counted(self.asked.distance, len(self.schema), rest, changes)

    def _with(self, filled: Collection[str], wanted: Wanted, limits: Limits, threads: int) -> Found:
        """The nearest row in which these numbers, and no others, are filled in."""
        rest = tuple(name for name in self.lacked if name not in filled)
        asker, _ = self.others.of(rest)
        constraints = constraints_among(self.schema, self.asked.constraints, rest, filled)
        distance = distance_among(self.asked.distance, rest, filled)
        asked = replace(self.asked, distance=distance, constraints=constraints, limits=limits, listen=None)
        before, asked = self._start(filled), asker.branched(asked)
        found = asker.nearest(wanted, before[None, :], asked, threads)[0]
        lower = found.lower if found.lower == math.inf else self._counted(found.lower, filled)
        if found.witness is None or found.claim.point is None:
            return Found(replace(found.claim, lower=lower, lucky=None), None, found.left)
        own = [self.schema.index(name) for name in filled]
        after, scores = self._shorter(asker, wanted, asked, before, found, own)
        before[own] = after[own]  # whose value makes no difference
        upper = self._counted(distance.between(asker.model.schema, before, after), filled)
        after[[self.schema.index(name) for name in rest]] = math.nan
        claim = replace(found.claim, point=after, lower=min(lower, upper), lucky=None)
        return Found(claim, replace(found.witness, distance=upper, scores=scores), found.left)

    def _shorter(
        self, asker: Asker, wanted: Wanted, asked: Asked, before: Floats, found: Found, own: list[int]
    ) -> tuple[Floats, Floats]:
        """The row, with fewer digits in the real numbers that are filled in; and its scores."""
        assert found.witness is not None and found.claim.point is not None
        row, scores = found.claim.point.copy(), found.witness.scores
        conditions, _ = parted(asked.constraints)
        questions = [] if conditions else [asker.finder.question(target, asked) for target in wanted.alternatives]
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
