"""Common actions: a few changes that would help most people of a group, chosen by greedy maximum coverage.

An action is a change without a person: "Income +500", "Job -> nurse", or several of these. Candidates are drawn
from the answers: for each set of features that they change together, amounts that are enough for a half, three quarters
and nine tenths of those people. An action helps a person if the row with the action applied fits the schema, keeps all
constraints, and has the target decision by the user's own model, which is called for that.

Again and again the action is chosen that helps most of the people whom the earlier ones do not help, or one with fewer
or smaller changes that helps nearly as many (within 2 % of the group). But for that tolerance, the set helps at least
63 % (1 - 1/e) of those whom the best set of its size would. Of a group that is known by a sample only, one half of the
sample is used to choose and the other half to estimate how many are helped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.population.intervals import Interval, share_interval
from ifonly.printing import json_object
from ifonly.results import Answer, NoneExists, Reasons, show
from ifonly.schema import Numeric, Schema, Value
from ifonly.schema.decimals import rounded, written
from ifonly.schema.features import Feature, Integer, Real

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.bool_]

MOST_ACTIONS = 4
LEAST_GAIN = 0.02
"""Of the group: an action that helps fewer people is left out."""
MOST_SETS = 15
"""Sets of features that actions are drawn from, the most frequent ones."""
ENOUGH_FOR = (0.5, 0.75, 0.9)
COMMON = 0.5
"""Of those who change a number: where so many end at the same value, the action is that value."""
MOST_PEOPLE = 800
"""Of one group whose rows are evaluated."""


@dataclass(frozen=True)
class ChangeEvaluator:
    """Evaluates changes with the model. `accepted`: which of the changed points are answers for the people beside them;
    `reasons`: what rules recourse out for a row (None: that is not computed)."""

    schema: Schema
    accepted: Callable[[Floats, Floats], Matrix]
    reasons: Callable[[Any], Reasons | None] | None = None

    def knows(self, answer: Answer) -> bool:
        """Does the answer hold the whole row? (A record without a counterfactual does not.)"""
        return all(name in answer.factual for name in self.schema.names)


@dataclass(frozen=True, slots=True)
class ActionStep:
    """One feature of an action: a number that changes `by` an amount, or a value that it changes `to`."""

    feature: str
    by: float | None = None
    to: Value = None

    def __str__(self) -> str:
        if self.by is None:
            return f"{self.feature} -> {show(self.to)}"
        return f"{self.feature} {'+' if self.by > 0 else '-'}{show(abs(self.by))}"

    def to_dict(self) -> dict[str, Any]:
        return {"feature": self.feature, "to": self.to} if self.by is None else {"feature": self.feature, "by": self.by}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The changes, how many people they help, and how many of these no earlier action of the set helps."""

    steps: tuple[ActionStep, ...]
    helps: int
    more: int

    def __str__(self) -> str:
        return " and ".join(map(str, self.steps))

    def to_dict(self) -> dict[str, Any]:
        return json_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """A few actions, and how many of the evaluated people at least one of them helps.

    `sampled`: the people are a sample of the group, drawn apart from those for whom the actions were chosen.
    """

    actions: tuple[Action, ...]
    people: int
    sampled: bool

    @property
    def helped(self) -> int:
        return sum(action.more for action in self.actions)

    @property
    def share(self) -> float:
        return self.helped / self.people if self.people else math.nan

    @property
    def interval(self) -> Interval | None:
        """Where the share of the whole group lies, at 95 %; None where the whole group was evaluated."""
        return share_interval(self.helped, self.people) if self.sampled else None

    def to_dict(self) -> dict[str, Any]:
        return json_object(self, ("people", "helped", "share", "sampled", "interval", "actions"), actions="chosen")


def find_cover(answers: Sequence[Answer], judge: ChangeEvaluator, *, sampled: bool) -> Cover | None:
    """A few actions that help most of these people, who need recourse; None where no answer says what would help."""
    drawn = answers[:MOST_PEOPLE]
    sampled = sampled or len(drawn) < len(answers)
    train, test = (drawn[::2], drawn[1::2]) if sampled else (drawn, drawn)
    found = candidates(train, judge.schema)
    if not found or not test:
        return None
    chosen = greedy(_helped(train, found, judge))
    if not chosen:
        return None
    helped = _helped(test, [found[k] for k in chosen], judge)
    actions, left = [], np.ones(len(test), dtype=np.bool_)
    for k, row in zip(chosen, helped, strict=True):
        actions.append(Action(steps=found[k], helps=int(row.sum()), more=int((row & left).sum())))
        left &= ~row
    return Cover(actions=tuple(actions), people=len(test), sampled=sampled)


def greedy(helps: Matrix, slack: float = LEAST_GAIN) -> list[int]:
    """Rows of the matrix (action, person), each one that helps most of those whom the earlier ones leave: the first of
    those that come within `slack` of the most, as a share of all people."""
    people = helps.shape[1]
    left = np.ones(people, dtype=np.bool_)
    chosen: list[int] = []
    for _ in range(MOST_ACTIONS):
        gains = (helps & left).sum(axis=1)
        most, least = int(gains.max(initial=0)), max(1.0, LEAST_GAIN * people)
        if most < least:
            break
        chosen.append(int(np.argmax(gains >= max(least, most - slack * people))))
        left &= ~helps[chosen[-1]]
    return chosen


def _helped(answers: Sequence[Answer], actions: Sequence[tuple[ActionStep, ...]], judge: ChangeEvaluator) -> Matrix:
    """Whom each action helps, by the user's own model; one row per action. Nothing helps those who provably have no
    recourse; of those whose row is not known nothing can be said."""
    helps = np.zeros((len(actions), len(answers)), dtype=np.bool_)
    known = [i for i, a in enumerate(answers) if not isinstance(a, NoneExists) and judge.knows(a)]
    if not known:
        return helps
    people = np.array([judge.schema.read(answers[i].factual) for i in known])
    for k, steps in enumerate(actions):
        after = applied(steps, people, judge.schema)
        changed = np.flatnonzero(((after != people) & ~np.isnan(people)).any(axis=1))
        if len(changed):
            helps[k, np.array(known)[changed]] = judge.accepted(people[changed], after[changed])
    return helps


def applied(steps: tuple[ActionStep, ...], people: Floats, schema: Schema) -> Floats:
    """The points of these people with the action applied, inside the schema or not."""
    after = people.copy()
    for step in steps:
        g = schema.index(step.feature)
        if step.by is None:
            after[:, g] = schema.features[g].read(step.to)
            continue
        amount = written(step.by)
        after[:, g] = [x if math.isnan(x) else rounded(written(x) + amount) for x in people[:, g].tolist()]
        if g in schema.grids:
            after[:, g] = schema.grids[g].nearest_to(after[:, g])
    return after


# ---------------------------------------------------------------------- where actions come from


def candidates(answers: Sequence[Answer], schema: Schema) -> list[tuple[ActionStep, ...]]:
    """Actions drawn from what these people change: those with few changes first, then those of frequent sets."""
    sets: dict[tuple[str, ...], list[Answer]] = {}
    for answer in answers:
        if answer.changes and all(
            change.before is not None for change in answer.changes
        ):  # imputed values have nothing in common
            sets.setdefault(tuple(change.feature for change in answer.changes), []).append(answer)
    frequent = sorted(sets.items(), key=lambda one: (-len(one[1]), one[0]))[:MOST_SETS]
    frequent.sort(key=lambda one: len(one[0]))
    found = [
        tuple(_step(schema[name], [answer.changes[i] for answer in mine], q) for i, name in enumerate(names))
        for names, mine in frequent
        for q in ENOUGH_FOR
    ]
    return list(dict.fromkeys(found))


def _step(feature: Feature, changes: Sequence[Any], q: float) -> ActionStep:
    """What is enough for a share q of these changes of one feature."""
    ((end, times),) = Counter(change.after for change in changes).most_common(1)
    if not isinstance(feature, Numeric) or (times > 1 and times >= COMMON * len(changes)):
        return ActionStep(feature.name, to=end)
    by = np.array([change.after - change.before for change in changes], dtype=np.float64)
    up = by[by > 0.0] if 2 * int((by > 0.0).sum()) >= len(by) else -by[by < 0.0]
    amount = _round(float(np.quantile(up, q, method="inverted_cdf")), feature)
    signed = amount if 2 * int((by > 0.0).sum()) >= len(by) else -amount
    return ActionStep(feature.name, by=int(signed) if isinstance(feature, Integer) else signed)


def _round(amount: float, feature: Numeric) -> float:
    """The amount with two digits, or in whole steps of the feature; never less."""
    unit = Fraction(10) ** (math.floor(math.log10(amount)) - 1)
    step = Fraction(feature.step) if isinstance(feature, Real | Integer) and feature.step is not None else None
    grain = unit if step is None else step * max(1, math.floor(unit / step))
    return rounded(math.ceil(written(amount) / grain) * grain)
