"""The task of a worker: answer a chunk, and return the encoded records, which only need to be written in order.

A row that makes the model or the library fail is answered alone and gets an error record; the other rows of its chunk
are answered. Contradictions, which are bugs, are counted apart: they neither end a run nor are hidden by it. An error
of the query itself ends the run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ifonly.errors import IfonlyError, MissingExtra, QuestionError, SchemaError
from ifonly.population.chunks import Chunk
from ifonly.population.counters import AnswerCounts
from ifonly.population.formats import encoded, kept_column
from ifonly.population.partitions import EncodedRecords, rows_by_folder
from ifonly.printing import shown
from ifonly.results import Failed
from ifonly.results.records import Kind, Records, merged, records_of

FOR_ALL = (QuestionError, SchemaError, MissingExtra)
"""Errors of the query, not of a row."""

Answering = Callable[[Any, int], Records]
"""Rows, and the number of the first of them, to records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """The answers of a chunk: encoded records, counts, and the seconds that they took."""

    bodies: tuple[EncodedRecords, ...]
    tally: AnswerCounts
    seconds: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of the records."""
        return sum(len(one.body) for one in self.bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """How chunks are answered. It is sent to each worker once."""

    answer: Answering
    suffix: str
    kinds: Mapping[str, Kind]
    """The columns of the file: those of a record, and those that are kept."""
    keep: tuple[str, ...] = ()
    escape_formulas: bool = False
    flat: tuple[str, ...] = ()
    """Features that have a column with their value after a change."""
    partition_by: tuple[str, ...] = ()
    """Columns that are in the names of folders."""

    @property
    def file_kinds(self) -> dict[str, Kind]:
        """The columns that are in the files."""
        return {name: kind for name, kind in self.kinds.items() if name not in self.partition_by}

    def __call__(self, chunk: Chunk) -> ChunkResult:
        started = time.perf_counter()
        result = self._result(chunk, self._records(chunk))
        return replace(result, seconds=time.perf_counter() - started)

    def lost(self, chunk: Chunk, why: str) -> ChunkResult:
        """The result of a chunk that no worker could answer: an error record per row."""
        return self._result(chunk, records_of([Failed.of(chunk.first + i, why) for i in range(chunk.block.count)]))

    def _records(self, chunk: Chunk) -> Records:
        wrong, block = chunk.block.wrong, chunk.block
        if not wrong:
            return self._answers(chunk)
        parts = [((i,), records_of([Failed.of(chunk.first + i, why)])) for i, why in wrong.items()]
        parts += [((i,), self._answers(one)) for i, one in enumerate(chunk.singles()) if i not in wrong]
        return merged(block.count, parts)

    def _answers(self, chunk: Chunk) -> Records:
        try:
            return self.answer(chunk.block.table(), chunk.first)
        except FOR_ALL:
            raise
        except Exception as error:
            if chunk.block.count > 1:
                return merged(chunk.block.count, [((i,), self._answers(one)) for i, one in enumerate(chunk.singles())])
            why = error if isinstance(error, IfonlyError) else f"{type(error).__name__}: {shown(str(error), 200)}"
            return records_of([Failed.of(chunk.first, why)])

    def _result(self, chunk: Chunk, records: Records) -> ChunkResult:
        columns = {name: [None] * len(records) for name in self.kinds} | dict(records.columns)
        if self.flat:
            columns |= _flat_changes(columns["changes"], self.flat)
        for name in self.keep:
            columns[name] = kept_column(chunk.block.column(name), self.kinds[name])
        tally = AnswerCounts()
        tally.add(records)
        return ChunkResult(bodies=tuple(self._encoded(columns, len(records))), tally=tally)

    def _encoded(self, columns: Mapping[str, Sequence[Any]], rows: int) -> Iterator[EncodedRecords]:
        """The records, by folder."""
        kinds, escape = self.file_kinds, self.escape_formulas
        if not self.partition_by:
            yield EncodedRecords(encoded(self.suffix, columns, kinds, escape_formulas=escape), rows)
            return
        for folder, places in rows_by_folder(columns, self.partition_by).items():
            some = {name: [columns[name][i] for i in places] for name in kinds}
            yield EncodedRecords(encoded(self.suffix, some, kinds, escape_formulas=escape), len(places), folder)


def after_column(feature: str) -> str:
    """The column of a feature's value after a change, as in frames and sheets."""
    return f"{feature} (after)"


def _flat_changes(changes: Sequence[str | None], features: Sequence[str]) -> dict[str, list[Any]]:
    """The changes of records, which are JSON, by columns; None where a feature does not change."""
    each = [{one["feature"]: one["to"] for one in json.loads(text)} if text else {} for text in changes]
    return {after_column(name): [row.get(name) for row in each] for name in features}
