"""Recourse over a group of people: who has it, who provably has none, what it costs, and what has to change.

People who are already decided as asked need no recourse and are counted apart. Of the others, each has a row (proven
nearest or not), is proven to have none, or is left open by a limit. The cost of recourse is the distance of the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import Contradiction, QuestionError
from ifonly.html.fragments import fragment, table
from ifonly.population.actions import ChangeEvaluator, find_cover
from ifonly.population.aggregation import FOUND, NEAREST, OPEN, UNNEEDED, WITHOUT, AnswerAggregates
from ifonly.population.differences import Difference, Side, find_differences
from ifonly.population.group import BlockingConstraint, Group, GroupDetails
from ifonly.population.intervals import mean_interval
from ifonly.population.labels import LEAST, By, Grouping
from ifonly.population.moves import FlipSet, MoveCount, count_parts, sets_of
from ifonly.printing import json_object, shown
from ifonly.results import Answer, NoneExists, show
from ifonly.schema import Choice, Numeric
from ifonly.schema.arguments import is_listed

MOST_LINES = 20
"""Of each list of moves, sets, constraints: the most frequent ones."""
MOST_BLAMED = 100
"""People without recourse for whom it is computed what rules it out."""
MOST_ADVISED = 24
"""Groups for which common actions are searched for: the largest ones."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Audit:
    """The groups and everybody together. `by` says what they have in common; `failed` rows could not be read or
    answered. `contradictions` counts bugs: rows that failed by one, and people for whom it is not known what rules
    recourse out because of one.

    `differences` are the groups of at least `least` people who need recourse, each against everybody else. What was
    drawn by chance was drawn from `seed`.
    """

    by: str
    target: str
    distance_name: str
    groups: tuple[Group, ...]
    everybody: Group
    failed: int
    contradictions: int = 0
    impossible: int = 0
    """Answers that break what all real rows obey, where the explainer has some to compare with."""
    differences: tuple[Difference, ...] = ()
    least: int = LEAST
    seed: int = 0
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Labels and units of the features that have them: for people, and no part of `to_dict`."""

    def label(self, name: str) -> str:
        """The label of a feature; anything else is its own label."""
        return self.words.get(name, ("", ""))[0] or name

    def __repr__(self) -> str:
        by, all_of_them = f" in {len(self.groups)} groups" if self.groups else "", self.everybody
        recourse = f"{all_of_them.recourse} of {all_of_them.needing} with recourse"
        return f"<Audit: {all_of_them.people} people{by}, {recourse}>"

    def _repr_html_(self) -> str:
        rows = [
            (group.name, f"{group.people:,}", f"{group.needing:,}", f"{group.recourse:,}", f"{group.without:,}",
             f"{group.unknown:,}", f"{group.median:.4g}" if group.recourse else "")
            for group in (*self.groups, self.everybody)
        ]  # fmt: skip
        header = (
            self.label(self.by) or "group",
            "people",
            "need recourse",
            "have it",
            "provably have none",
            "open",
            "median cost",
        )
        return fragment(table(header, rows, caption=f"Recourse to {self.target}", right=frozenset(range(1, 7))))

    def to_dict(self) -> dict[str, Any]:
        data = json_object(self)
        del data["words"]
        if not self.impossible:
            del data["impossible"]
        return data


def audit(answers: Iterable[Answer], *, by: By = None, judge: ChangeEvaluator | None = None) -> Audit:
    """Recourse by subgroup: `by` is a feature, one label per row, a function of the row, or a `Grouping` of one.

    Answers are read once, one after another, and may come from anywhere. Numbers with many values are grouped by
    quartiles, dates by month. All answers should have the same target: give `target` in the query, or it is for
    everybody the decision that they do not have. With a judge (`explainer.judge(query)`), the model also says which
    actions help many people, and what rules recourse out for those who have none.
    """
    if not is_listed(answers):
        raise QuestionError(f"An audit is made from answers; got {shown(answers)}.")
    if judge is not None and not isinstance(judge, ChangeEvaluator):
        raise QuestionError(f"A judge is what `explainer.judge(query)` gives; got {shown(judge)}.")
    grouping = by if isinstance(by, Grouping) else Grouping(by)
    numeric = () if judge is None else [f.name for f in judge.schema.features if isinstance(f, Numeric)]
    aggregates = AnswerAggregates.of(answers, grouping, frozenset(numeric))
    names, of = aggregates.labels.groups(grouping.parts)
    builder = _GroupBuilder(aggregates, grouping, judge)
    everybody = builder.group("everybody", np.arange(len(of)), advised=True)
    groups = () if grouping.by is None else _ordered(tuple(builder.groups(names, of)), grouping.by, judge)
    return Audit(
        by=grouping.name,
        target=" or ".join(aggregates.targets),
        distance_name=aggregates.distance_name,
        groups=groups,
        everybody=everybody,
        failed=aggregates.failed,
        contradictions=aggregates.contradictions,
        impossible=aggregates.impossible,
        differences=find_differences([_side(g) for g in groups if g.compared], _side(everybody)),
        least=grouping.least,
        seed=grouping.seed,
        words=_words(aggregates, judge),
    )


def _words(aggregates: AnswerAggregates, judge: ChangeEvaluator | None) -> Mapping[str, tuple[str, str]]:
    """Labels and units: the schema's, or those that the answers have."""
    if judge is None:
        return next((answer.words for _, answer in aggregates.sample.kept if answer.words), {})
    return {f.name: (f.label, f.unit) for f in judge.schema.features if f.label or f.unit}


def _ordered(groups: tuple[Group, ...], by: Any, judge: ChangeEvaluator | None) -> tuple[Group, ...]:
    """The groups of a feature with options in the order of these."""
    feature = judge.schema[by] if judge is not None and isinstance(by, str) and by in judge.schema.names else None
    if not isinstance(feature, Choice):
        return groups
    place = {show(option): k for k, option in enumerate(feature.options)}
    return tuple(sorted(groups, key=lambda group: place.get(group.name, len(place))))


def _side(group: Group) -> Side:
    return Side(name=group.name, needing=group.needing, costs=group.costs)


class _GroupBuilder:
    """Builds groups from the aggregates."""

    def __init__(self, aggregates: AnswerAggregates, grouping: Grouping, judge: ChangeEvaluator | None) -> None:
        self.aggregates, self.grouping, self.judge = aggregates, grouping, judge
        self.kinds, self.costs, self.numbers = aggregates.columns()
        self.blamed = {} if judge is None else _blamed(aggregates, judge)

    def groups(self, names: list[str], of: NDArray[np.intp]) -> Iterator[Group]:
        if not names:
            return
        order = np.argsort(of, kind="stable")
        ends = np.cumsum(np.bincount(of, minlength=len(names)))
        parts = np.split(order, ends[:-1])
        needing = [int((self.kinds[part] != UNNEEDED).sum()) for part in parts]
        largest = set(sorted(range(len(names)), key=lambda k: -needing[k])[:MOST_ADVISED])
        for k, (name, members) in enumerate(zip(names, parts, strict=True)):
            yield self.group(name, members, advised=k in largest and needing[k] >= self.grouping.least)

    def group(self, name: str, members: NDArray[np.intp], *, advised: bool) -> Group:
        kinds = self.kinds[members]
        found = members[(kinds == NEAREST) | (kinds == FOUND)]
        costs = _frozen(np.sort(self.costs[found]))
        group = Group(
            name=name,
            unneeded=int((kinds == UNNEEDED).sum()),
            without=int((kinds == WITHOUT).sum()),
            unknown=int((kinds == OPEN).sum()),
            unproven=int((kinds == FOUND).sum()),
            costs=costs,
            mean_interval=mean_interval(costs, self.grouping.seed),
        )
        details = self._details(members, kinds, found)
        if advised and self.judge is not None:
            sample = self._sampled(members)
            cover = find_cover(sample, self.judge, sampled=len(sample) < group.needing)
            details = replace(details, cover=cover)
        return replace(group, compared=group.needing >= self.grouping.least, details=details)

    def _details(self, members: NDArray[np.intp], kinds: NDArray[np.int8], found: NDArray[np.intp]) -> GroupDetails:
        ways, stops = self.aggregates.ways, self.aggregates.stops
        open_ = stops.counts(self.numbers[members[kinds == OPEN]])
        moves = count_parts(ways.counts(self.numbers[found]))
        return GroupDetails(
            moves=tuple(MoveCount(move=move, count=count) for move, count in moves[:MOST_LINES]),
            together=self._together(found)[:MOST_LINES],
            blame=self._blame(members[kinds == WITHOUT])[:MOST_LINES],
            stops=tuple((why, count) for (why,), count in open_.most_common(MOST_LINES)),
        )

    def _together(self, found: NDArray[np.intp]) -> tuple[FlipSet, ...]:
        """The sets of features that these people change."""
        if not len(found):
            return ()
        numbers = self.numbers[found]
        order = np.argsort(numbers, kind="stable")
        ways = list(self.aggregates.ways.known)
        there, first = np.unique(numbers[order], return_index=True)
        pieces = np.split(self.costs[found][order], first[1:])
        return sets_of(
            (tuple(move.feature for move in ways[k]), piece)
            for k, piece in zip(there.tolist(), pieces, strict=True) if k >= 0
        )  # fmt: skip

    def _blame(self, without: NDArray[np.intp]) -> tuple[BlockingConstraint, ...]:
        """What rules recourse out for these people, as far as it was asked."""
        counts: Counter[tuple[str, ...]] = self.aggregates.blames.counts(self.numbers[without])
        if self.blamed:
            counts.update(self.blamed[k] for k in without.tolist() if k in self.blamed)
        asked = counts.total()
        counts[("the model, which decides so on no row at all",)] += counts.pop((), 0)
        return tuple(BlockingConstraint(words=words, count=n, asked=asked) for words, n in count_parts(+counts))

    def _sampled(self, members: NDArray[np.intp]) -> list[Answer]:
        """The answers of these people that were kept."""
        mine = np.zeros(len(self.kinds), dtype=np.bool_)
        mine[members] = True
        return [answer for person, answer in self.aggregates.sample.kept if mine[person]]


def _blamed(aggregates: AnswerAggregates, judge: ChangeEvaluator) -> dict[int, tuple[str, ...]]:
    """What rules recourse out for people of the sample whose answers do not say so."""
    if judge.reasons is None:
        return {}
    unexplained = [
        (person, answer)
        for person, answer in aggregates.sample.kept
        if isinstance(answer, NoneExists) and answer.reasons is None and judge.knows(answer)
    ]
    blamed: dict[int, tuple[str, ...]] = {}
    for person, answer in unexplained[:MOST_BLAMED]:
        try:
            reasons = judge.reasons(answer.factual)
        except Contradiction:
            aggregates.contradictions += 1
            continue
        if reasons is not None:
            blamed[person] = reasons.blame
    return blamed


def _frozen(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    costs.flags.writeable = False
    return costs
