"""The changes of answers in aggregate: which features, in which direction, together with which.

A *move* is a feature and its direction: up or down for numbers, from one option to another for the rest. A person's
moves together are a *way*. There are few ways in comparison with people, so each is stored once and people have its
number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.results import Answer, Change
from ifonly.schema.arguments import items

MOST_WAYS = 50_000
"""Distinct ones: the rest is counted together."""
OTHERS = -1


class Move(NamedTuple):
    """One feature and its direction: "up", "down", "filled in", or "clerk -> nurse"."""

    feature: str
    direction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCount:
    """How many people make a move."""

    move: Move
    count: int

    def to_dict(self) -> dict[str, Any]:
        return {"feature": self.move.feature, "direction": self.move.direction, "count": self.count}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlipSet:
    """Features that together change the decision, how often, and at what costs (ascending)."""

    features: tuple[str, ...]
    costs: NDArray[np.float64]

    @property
    def count(self) -> int:
        return len(self.costs)

    @property
    def median(self) -> float:
        return float(np.median(self.costs))

    def to_dict(self) -> dict[str, Any]:
        return {
            "features": list(self.features),
            "count": self.count,
            "least": float(self.costs[0]),
            "median": self.median,
            "most": float(self.costs[-1]),
        }


def move_of(change: Change, numeric: Container[str] = ()) -> Move:
    """The move of a change; whole numbers of `numeric` features are amounts, whether the change says so or not."""
    before, after = change.before, change.after
    if before is None:
        return Move(change.feature, "filled in")
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (before, after))
    amount = change.counted or isinstance(before, float) or isinstance(after, float) or change.feature in numeric
    if numbers and amount:
        return Move(change.feature, "up" if after > before else "down")  # type: ignore[operator]
    return Move(change.feature, f"{change.shown(before)} -> {change.shown(after)}")


class NumberedItems:
    """Numbers for recurring items (interning), up to a limit."""

    def __init__(self, most: int = MOST_WAYS) -> None:
        self.most = most
        self.known: dict[tuple[Any, ...], int] = {}

    def __call__(self, thing: tuple[Any, ...]) -> int:
        if len(self.known) >= self.most:
            return self.known.get(thing, OTHERS)
        return self.known.setdefault(thing, len(self.known))

    def counts(self, numbers: NDArray[np.intp]) -> Counter[tuple[Any, ...]]:
        """How often each is among these numbers, the most frequent first."""
        times = np.bincount(numbers[numbers >= 0], minlength=len(self.known)).tolist()
        return Counter({thing: n for thing, n in zip(self.known, times, strict=True) if n})


def count_parts(ways: Counter[tuple[Any, ...]]) -> list[tuple[Any, int]]:
    """How many people have each part of a way, the most frequent first."""
    counts: Counter[Any] = Counter()
    for way, times in ways.items():
        for part in dict.fromkeys(way):
            counts[part] += times
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def sets_of(pairs: Iterable[tuple[tuple[str, ...], NDArray[np.float64]]]) -> tuple[FlipSet, ...]:
    """The sets of features, the most frequent first, from features and costs in any number of pieces."""
    costs: dict[tuple[str, ...], list[NDArray[np.float64]]] = {}
    for features, some in pairs:
        costs.setdefault(features, []).append(some)
    sets = [FlipSet(features=features, costs=np.sort(np.concatenate(mine))) for features, mine in costs.items()]
    return tuple(sorted(sets, key=lambda flip: (-flip.count, flip.costs[0], flip.features)))


def flip_sets(answers: Sequence[Answer]) -> tuple[FlipSet, ...]:
    """The sets of features that the answers change: of one person's alternatives nearest first, of a group most often.

    Answers that change nothing, or that have no row, are left out.
    """
    given = items(answers)
    if given is None or not all(hasattr(answer, "counterfactual") for answer in given):
        raise QuestionError(f"Sets of changes are made from a list of answers; got {shown(answers)}.")
    costs: dict[tuple[str, ...], list[float]] = {}
    for answer in given:
        if answer.counterfactual is not None and not answer.already:
            costs.setdefault(tuple(change.feature for change in answer.changes), []).append(answer.upper)
    return sets_of((features, np.array(mine)) for features, mine in costs.items())
