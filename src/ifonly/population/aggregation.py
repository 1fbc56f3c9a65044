"""Streaming aggregation of answers: one pass, five numbers per person.

An audit needs of a person only the label, the kind of the answer, the cost, and the changes (or what rules recourse
out, or what stopped the search). Of whole answers a sample of bounded size is kept (reservoir sampling, from a stated
seed): actions are drawn from it and evaluated on it.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.population.labels import Grouping, Labels, labelled
from ifonly.population.moves import NumberedItems, move_of
from ifonly.results import Answer, Failed, Nearest, NoneExists

UNNEEDED, NEAREST, FOUND, WITHOUT, OPEN = range(5)
"""Kinds of answer: decided as asked already, proven nearest, not proven nearest, proven that none exists, open."""
UNKNOWN = -1
"""The number of a person for whom it is not known what rules recourse out."""
MOST_KEPT = 5000
"""Answers of people who need recourse that are kept whole."""


@dataclass(slots=True)
class Sample:
    """Reservoir sampling (Vitter): a uniform sample of a stream."""

    rng: random.Random
    most: int = MOST_KEPT
    kept: list[tuple[int, Answer]] = field(default_factory=list)
    offered: int = 0

    def offer(self, person: int, answer: Answer) -> None:
        self.offered += 1
        if len(self.kept) < self.most:
            self.kept.append((person, answer))
        elif (place := self.rng.randrange(self.offered)) < self.most:
            self.kept[place] = (person, answer)


class AnswerAggregates:
    """The columns of numbers of all people so far."""

    def __init__(self, grouping: Grouping, numeric: Container[str] = ()) -> None:
        self.labels, self.numeric = Labels(), numeric
        self.kinds, self.costs, self.numbers = array("b"), array("d"), array("i")
        self.ways, self.blames, self.stops = NumberedItems(), NumberedItems(), NumberedItems()
        self.sample = Sample(random.Random(grouping.seed))
        self.targets: dict[str, None] = {}
        self.distance_name = ""
        self.failed = self.contradictions = self.impossible = 0

    @classmethod
    def of(cls, answers: Iterable[Answer], grouping: Grouping, numeric: Container[str] = ()) -> AnswerAggregates:
        """The aggregates of these answers; `numeric` are features that are known to be numbers."""
        aggregates = cls(grouping, numeric)
        for answer, label in labelled(answers, grouping.by):
            aggregates.add(answer, label)
        return aggregates

    def add(self, answer: Answer, label: Any) -> None:
        if isinstance(answer, Failed):
            self.failed += 1
            self.contradictions += answer.contradiction
            return
        self.impossible += answer.usual is not None and not answer.usual.possible
        kind, number = self._kind(answer)
        self.labels.add(label)
        if kind != UNNEEDED:
            self.sample.offer(len(self.kinds), answer)
        self.kinds.append(kind)
        self.costs.append(answer.upper)
        self.numbers.append(number)
        self.targets.setdefault(answer.target)
        self.distance_name = self.distance_name or answer.distance_name

    def _kind(self, answer: Answer) -> tuple[int, int]:
        """The kind of an answer, and the number of what it is about."""
        if answer.already:
            return UNNEEDED, 0
        if answer.counterfactual is not None:
            way = self.ways(tuple(move_of(change, self.numeric) for change in answer.changes))
            return (NEAREST if isinstance(answer, Nearest) else FOUND), way
        if isinstance(answer, NoneExists):
            return WITHOUT, UNKNOWN if answer.reasons is None else self.blames(answer.reasons.blame)
        return OPEN, self.stops((answer.note,))

    def columns(self) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.intp]]:
        """Kind, cost and number of each person."""
        kinds = np.array(self.kinds, dtype=np.int8)
        return kinds, np.array(self.costs, dtype=np.float64), np.array(self.numbers, dtype=np.intp)
