"""`explain_many` over rows in batches, so that an interruption loses at most the batch in progress.

Batches grow while they are quick.
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
class BatchResult:
    """The answers by row number, and what stopped the run before all rows were answered, if anything did."""

    rows: Sequence[int]
    found: dict[int, Answer] = field(default_factory=dict)
    seconds: float = 0.0
    stopped: KeyboardInterrupt | IfonlyError | None = None

    @property
    def answers(self) -> Answers:
        """In the order of the rows."""
        return Answers([self.found[number] for number in self.rows if number in self.found], seconds=self.seconds)


def explain_in_batches(
    explainer: Explainer, rows: Mapping[int, Mapping[str, Any]], query: Query, bar: ProgressBar, before: int = 0
) -> BatchResult:
    """One answer per row, or as many as there was time for; the bar counts `before` rows as answered already."""
    result, started = BatchResult(tuple(rows)), time.perf_counter()
    explainer = explainer.using(listen=bar)
    size, done = explainer.threads, 0
    try:
        while batch := result.rows[done : done + size]:
            batch_started = time.perf_counter()
            answers = explainer.explain_many([rows[number] for number in batch], query)
            result.found |= {
                number: _numbered(answer, number, rows[number], explainer)
                for number, answer in zip(batch, answers, strict=True)
            }
            done += len(batch)
            bar.settle(before + done)
            quick = time.perf_counter() - batch_started < BATCH_SECONDS
            size = size * 2 if quick else max(explainer.threads, size // 2)
    except (KeyboardInterrupt, IfonlyError) as stopped:
        result.stopped = stopped
    result.seconds = time.perf_counter() - started
    return result


def _numbered(answer: Answer, number: int, row: Mapping[str, Any], explainer: Explainer) -> Answer:
    """The answer with the number of its row in the table, which the message of a bad row also names."""
    if isinstance(answer, Failed) and not answer.contradiction:
        try:
            explainer.schema.read(row, number=number)
        except RowError as error:
            return Failed.of(number, error)
    return replace(answer, row=number)
