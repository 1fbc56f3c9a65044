"""The people of an audit, a few thousand at a time: answered as they go by, or joined to the answers of an earlier run.

Each answer carries the column that people are grouped by beside the features of the row. Nothing is kept of those who
have gone by but how many had which answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ifonly.cli.batches import ask
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
    """A row of a table; `wrong` says why it is none."""

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
    """Of those who have gone by: how many have which answer."""
    stopped: bool = False
    """By Ctrl-C, before all had gone by."""

    def __post_init__(self) -> None:
        names, words = self.source.names, self.source.words
        if names is None:
            return  # its rows tell
        for name in self.schema.names:
            if name not in names:
                raise RowError(f"{words} has no column '{name}'; it has {some_of(names)}.", feature=name)
        self._check_by(names)

    def answered(self, explainer: Explainer, query: Query, bar: ProgressBar) -> Iterator[Answer]:
        """An answer per person."""
        done = 0
        for some in self._batches():
            rows = {one.number: one.row for one in some if not one.wrong}
            told = ask(explainer, rows, query, bar, done)
            if isinstance(told.stopped, IfonlyError):
                raise told.stopped
            for one in some:
                answer = Failed.of(one.number, RowError(one.wrong)) if one.wrong else told.found.get(one.number)
                if answer is not None:
                    yield self._counted(answer, one.row)
            done += len(some)
            if told.stopped is not None:
                self.stopped = True
                return

    def joined(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """The answers that these people have already, with all features of the rows."""
        told = iter(answers)
        for some in self._batches():
            for one in some:
                answer = next(told, None)
                if answer is None or answer.row != one.number:
                    raise QuestionError(f"There is no answer for row {one.number} of {self.source.words}.")
                yield self._counted(answer if isinstance(answer, Failed) else self._whole(answer, one), one.row)
        if next(told, None) is not None:
            raise QuestionError(f"There are more answers than rows in {self.source.words}.")

    def _whole(self, answer: Answer, one: TableRow) -> Answer:
        """The answer with the row as it is in the table, which must be the row that it is about."""
        point = self.schema.read(one.row, number=one.number)
        known = answer.counterfactual is not None  # else the record does not say what the row was
        if known and not np.array_equal(self.schema.read(answer.factual), point, equal_nan=True):
            raise QuestionError(f"Row {one.number} of {self.source.words} is not the one that was answered.")
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
        wanted: Collection[str] | None = {*self.schema.names, *([self.by] if self.by else [])}
        wanted = None if every or self.source.names is None else wanted
        picked, first = set(self.chosen), 0
        some: list[TableRow] = []
        for block in self.source.blocks(wanted):
            if not first and block.columns is None:
                self._check_by(list(dict.fromkeys(name for row in block.rows for name in row)))
            for number, row in enumerate(block.as_rows(), first):
                if not picked or number in picked:
                    some.append(TableRow(number, row, block.wrong.get(number - first, "")))
            first += block.count
            if len(some) >= ROWS:
                yield some
                some = []
            if picked and first > max(picked):
                break
        if not first:
            raise FileError(f"{self.source.words} has no rows.")
        if picked and max(picked) >= first:
            raise FileError(f"There is no row {max(picked)}: the rows are 0 to {first - 1}.")
        yield some

    def _check_by(self, names: Sequence[str]) -> None:
        if self.by is not None and self.by not in (*names, *self.schema.names):
            raise QuestionError(f"There is no column '{self.by}' to group people by; the columns are {some_of(names)}.")


def alone(answers: Iterable[Answer], by: str | None, counts: Counter[str], words: str) -> Iterator[Answer]:
    """Answers without a table: the groups are known from the columns that were kept, or from the rows they name."""
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
    """A number where the text is one as people write it: 12, -3.5, but not 007, 1_000, 10.000 or inf."""
    if not isinstance(cell, str) or not NUMBER.fullmatch(cell) or other_reading(cell) is not None:
        return cell
    return float(cell) if "." in cell else int(cell)
