"""The rows of an audit as a stream, a few thousand at a time: answered, or joined to the answers of an earlier run.

Each answer carries the column that people are grouped by beside the features of its row. Of rows that are done, only
the counts of their answers are kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ifonly.cli.batches import explain_in_batches
from ifonly.errors import FileError, IfonlyError, QuestionError, RowError
from ifonly.explainer import Explainer
from ifonly.population.sources import RowSource
from ifonly.printing import some_of
from ifonly.problem import Query
from ifonly.progress import ProgressBar
from ifonly.results import Answer, Failed
from ifonly.schema import Schema
from ifonly.schema.number_text import other_reading

ROWS = 4096
"""Rows that are held at a time."""
NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,17})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table; `wrong` says why it cannot be read."""

    number: int
    row: dict[str, Any]
    wrong: str = ""


@dataclass(slots=True, kw_only=True)
class AuditedPeople:
    """Rows of a table, all or those that were chosen; `by` is what they are grouped by, if anything is."""

    source: RowSource
    schema: Schema
    by: str | None = None
    chosen: Sequence[int] = ()
    counts: Counter[str] = field(default_factory=Counter)
    """Answers so far, by status."""
    stopped: bool = False
    """Interrupted by Ctrl-C."""

    def __post_init__(self) -> None:
        names, words = self.source.names, self.source.description
        if names is None:
            return  # known from its rows
        for name in self.schema.names:
            if name not in names:
                raise RowError(f"{words} has no column '{name}'; it has {some_of(names)}.", feature=name)
        self._check_by(names)

    def answered(self, explainer: Explainer, query: Query, bar: ProgressBar) -> Iterator[Answer]:
        """One answer per row."""
        done = 0
        for some in self._batches():
            rows = {one.number: one.row for one in some if not one.wrong}
            result = explain_in_batches(explainer, rows, query, bar, done)
            if isinstance(result.stopped, IfonlyError):
                raise result.stopped
            for one in some:
                answer = Failed.of(one.number, RowError(one.wrong)) if one.wrong else result.found.get(one.number)
                if answer is not None:
                    yield self._counted(answer, one.row)
            done += len(some)
            if result.stopped is not None:
                self.stopped = True
                return

    def joined(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """The answers of an earlier run, with all features of the rows."""
        known_answers = iter(answers)
        for some in self._batches():
            for one in some:
                answer = next(known_answers, None)
                if answer is None or answer.row != one.number:
                    raise QuestionError(f"There is no answer for row {one.number} of {self.source.description}.")
                yield self._counted(answer if isinstance(answer, Failed) else self._whole(answer, one), one.row)
        if next(known_answers, None) is not None:
            raise QuestionError(f"There are more answers than rows in {self.source.description}.")

    def _whole(self, answer: Answer, one: TableRow) -> Answer:
        """The answer with the row as it is in the table, which must be the row that it is about."""
        point = self.schema.read(one.row, number=one.number)
        known = answer.counterfactual is not None  # else the record does not say what the row was
        if known and not np.array_equal(self.schema.read(answer.factual), point, equal_nan=True):
            raise QuestionError(f"Row {one.number} of {self.source.description} is not the one that was answered.")
        return replace(answer, factual=self.schema.row(point))

    def _counted(self, answer: Answer, row: dict[str, Any]) -> Answer:
        self.counts[answer.status] += 1
        if self.by is None or self.by in self.schema.names or isinstance(answer, Failed):
            return answer
        return replace(answer, factual={**answer.factual, self.by: typed(row.get(self.by))})

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as they are in the table."""
        return (one.row for some in self._batches(every=True) for one in some)

    def _batches(self, *, every: bool = False) -> Iterator[list[TableRow]]:
        columns: Collection[str] | None = {*self.schema.names, *([self.by] if self.by else [])}
        columns = None if every or self.source.names is None else columns
        chosen, first = set(self.chosen), 0
        some: list[TableRow] = []
        for block in self.source.blocks(columns):
            if not first and block.columns is None:
                self._check_by(list(dict.fromkeys(name for row in block.rows for name in row)))
            for number, row in enumerate(block.as_rows(), first):
                if not chosen or number in chosen:
                    some.append(TableRow(number, row, block.wrong.get(number - first, "")))
            first += block.count
            if len(some) >= ROWS:
                yield some
                some = []
            if chosen and first > max(chosen):
                break
        if not first:
            raise FileError(f"{self.source.description} has no rows.")
        if chosen and max(chosen) >= first:
            raise FileError(f"There is no row {max(chosen)}: the rows are 0 to {first - 1}.")
        yield some

    def _check_by(self, names: Sequence[str]) -> None:
        if self.by is not None and self.by not in (*names, *self.schema.names):
            raise QuestionError(f"There is no column '{self.by}' to group people by; the columns are {some_of(names)}.")


def answers_without_rows(
    answers: Iterable[Answer], by: str | None, counts: Counter[str], words: str
) -> Iterator[Answer]:
    """Answers without their table: groups are known from the kept columns, or from the features of the rows."""
    for answer in answers:
        counts[answer.status] += 1
        if by is None or isinstance(answer, Failed):
            yield answer
            continue
        if by not in answer.factual:
            raise QuestionError(
                f"{words} does not say '{by}' of row {answer.row}: give the people with --rows FILE, or keep that "
                f"column with ifonly explain --keep."
            )
        yield replace(answer, factual={**answer.factual, by: typed(answer.factual[by])})


def typed(cell: Any) -> Any:
    """A text as the number that it is, if it is one as people write it: 12, -3.5, but not 007, 1_000, 10.000 or inf."""
    if not isinstance(cell, str) or not NUMBER.fullmatch(cell) or other_reading(cell) is not None:
        return cell
    return float(cell) if "." in cell else int(cell)
