"""Ask about many rows in batches, so that an interruption loses at most the batch in hand.

Batches grow while they are quick. Rows that read the same are asked about once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ifonly.errors import IfonlyError, RowError
from ifonly.explainer import Explainer
from ifonly.model import Model
from ifonly.problem import ClassTarget, Distance, OpenTarget, Question, Target
from ifonly.problem.rules import AnyConstraint
from ifonly.problem.target import MARGIN
from ifonly.proof import Answer, Answers, Failed, Limits, Method
from ifonly.report.progress import ProgressBar

BATCH_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as the command line states it. `margin` matters where the target is left open."""

    target: Target | OpenTarget | None
    margin: float | None
    distance: Distance
    constraints: Sequence[AnyConstraint]
    limits: Limits
    fewest_first: bool = False
    reasons: bool = False

    def check(self, model: Model) -> None:
        """Complain about the question before any row is asked about."""
        if isinstance(self.target, OpenTarget):
            self.target.check(model)
        if self.target is not None or model.classes:
            self.question(model)

    def question(self, model: Model, decided: int = 1) -> Question:
        """What is asked about a row that is decided so; of a target with alternatives, the first of them."""
        target = self.target
        if isinstance(target, OpenTarget):
            target = target.alternatives(model, decided)[0]
        if target is None:
            target = ClassTarget(model.classes[1 - decided], MARGIN if self.margin is None else self.margin)
        return Question(model=model, target=target, distance=self.distance, constraints=self.constraints)


@dataclass(slots=True)
class Told:
    """What came back: the answers in the order of the rows, and what stopped the asking, if anything did."""

    order: Sequence[int]
    found: dict[int, Answer] = field(default_factory=dict)
    seconds: float = 0.0
    stopped: KeyboardInterrupt | IfonlyError | None = None

    @property
    def answers(self) -> Answers:
        return Answers([self.found[number] for number in self.order if number in self.found], seconds=self.seconds)


def ask(
    explainer: Explainer, rows: Mapping[int, Mapping[str, Any]], asked: Asked, method: Method | None, bar: ProgressBar
) -> Told:
    """One answer a row, or as many as there was time for."""
    told, begun = Told(tuple(rows)), time.perf_counter()
    asker = _Asker(explainer=explainer, rows=rows, asked=asked, method=method, bar=bar, told=told)
    try:
        asker.run()
    except (KeyboardInterrupt, IfonlyError) as stopped:
        told.stopped = stopped
    told.seconds = time.perf_counter() - begun
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asker:
    explainer: Explainer
    rows: Mapping[int, Mapping[str, Any]]
    asked: Asked
    method: Method | None
    bar: ProgressBar
    told: Told

    def run(self) -> None:
        alike = self._alike()
        for target, numbers in self._targets(list(alike)):
            size, done = self.explainer.threads, 0
            while done < len(numbers):
                batch, begun = numbers[done : done + size], time.perf_counter()
                for number, answer in zip(batch, self._answers(target, batch), strict=True):
                    self.told.found |= {twin: replace(answer, row=twin) for twin in alike[number]}
                done += len(batch)
                self.bar.settle(len(self.told.found))
                quick = time.perf_counter() - begun < BATCH_SECONDS
                size = size * 2 if quick else max(self.explainer.threads, size // 2)

    def _answers(self, target: Target | OpenTarget | None, batch: list[int]) -> Answers:
        return self.explainer.explain_many(
            [self.rows[number] for number in batch], target=target, distance=self.asked.distance,
            constraints=self.asked.constraints, fewest_first=self.asked.fewest_first, method=self.method,
            limits=self.asked.limits, reasons=self.asked.reasons, listen=self.bar,
        )  # fmt: skip

    def _alike(self) -> dict[int, list[int]]:
        """For each distinct row, by its first number: all that read the same. Unreadable ones have failed."""
        groups: dict[bytes, list[int]] = {}
        for number, row in self.rows.items():
            try:
                groups.setdefault(self.explainer.schema.read(row, number=number).tobytes(), []).append(number)
            except RowError as error:
                self.told.found[number] = Failed(
                    row=number, factual={}, target="", distance_name="", lower=0.0, note=str(error)
                )
        return {same[0]: same for same in groups.values()}

    def _targets(self, numbers: list[int]) -> list[tuple[Target | OpenTarget | None, list[int]]]:
        """The explainer knows what an open target means, but not by which margin: then the other class is named."""
        model, margin = self.explainer.model, self.asked.margin
        if self.asked.target is not None or margin is None or len(model.classes) != 2 or not numbers:
            return [(self.asked.target, numbers)]
        points = np.array([model.schema.read(self.rows[number]) for number in numbers])
        decided = dict(zip(numbers, model.decide(model.scores(points)).tolist(), strict=True))
        return [(ClassTarget(model.classes[1 - k], margin), [n for n in numbers if decided[n] == k]) for k in (0, 1)]
