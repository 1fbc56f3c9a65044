"""Ask about many rows in batches, so that an interruption loses at most the batch in hand.

Batches grow while they are quick. Rows that read the same are asked about once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ifonly.errors import IfonlyError, RowError
from ifonly.explainer import Explainer
from ifonly.problem import Query
from ifonly.progress import ProgressBar
from ifonly.results import Answer, Answers, Failed

BATCH_SECONDS = 0.5


@dataclass(slots=True)
class BatchOutcome:
    """What came back: the answers in the order of the rows, and what stopped the asking, if anything did."""

    order: Sequence[int]
    found: dict[int, Answer] = field(default_factory=dict)
    seconds: float = 0.0
    stopped: KeyboardInterrupt | IfonlyError | None = None

    @property
    def answers(self) -> Answers:
        return Answers([self.found[number] for number in self.order if number in self.found], seconds=self.seconds)


def ask(
    explainer: Explainer, rows: Mapping[int, Mapping[str, Any]], query: Query, bar: ProgressBar, before: int = 0
) -> BatchOutcome:
    """One answer per row, or as many as there was time for; `before` were answered already, for the bar."""
    told, begun = BatchOutcome(tuple(rows)), time.perf_counter()
    batches = _Batches(explainer=explainer.using(listen=bar), rows=rows, query=query, bar=bar, told=told, before=before)
    try:
        batches.run()
    except (KeyboardInterrupt, IfonlyError) as stopped:
        told.stopped = stopped
    told.seconds = time.perf_counter() - begun
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batches:
    explainer: Explainer
    rows: Mapping[int, Mapping[str, Any]]
    query: Query
    bar: ProgressBar
    told: BatchOutcome
    before: int

    def run(self) -> None:
        alike = self._alike()
        numbers = list(alike)
        size, done = self.explainer.threads, 0
        while done < len(numbers):
            batch, begun = numbers[done : done + size], time.perf_counter()
            answers = self.explainer.explain_many([self.rows[number] for number in batch], self.query)
            for number, answer in zip(batch, answers, strict=True):
                self.told.found |= {twin: replace(answer, row=twin) for twin in alike[number]}
            done += len(batch)
            self.bar.settle(self.before + len(self.told.found))
            quick = time.perf_counter() - begun < BATCH_SECONDS
            size = size * 2 if quick else max(self.explainer.threads, size // 2)

    def _alike(self) -> dict[int, list[int]]:
        """For each distinct row, by its first number: all that read the same. Unreadable ones have failed."""
        groups: dict[bytes, list[int]] = {}
        for number, row in self.rows.items():
            try:
                groups.setdefault(self.explainer.schema.read(row, number=number).tobytes(), []).append(number)
            except RowError as error:
                self.told.found[number] = Failed.of(number, error)
        return {same[0]: same for same in groups.values()}
