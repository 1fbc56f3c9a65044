"""What a worker does with a chunk: answer it, and give back bytes that only need to be put in their place.

A row that makes the model, or us, fail is answered alone, and gets a sentence instead of an answer; the others of its
chunk are answered. Contradictions, which are bugs, are counted apart: a run neither is lost by one nor hides it. A
question that is wrong as such is an error for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ifonly.errors import IfonlyError, MissingExtra, QuestionError, SchemaError
from ifonly.population.chunks import Chunk
from ifonly.population.counters import AnswerCounts
from ifonly.population.formats import carried, encoded
from ifonly.printing import shown
from ifonly.results import Failed
from ifonly.results.records import Kind, Records, merged, records_of

FOR_ALL = (QuestionError, SchemaError, MissingExtra)
"""Errors that no row is to blame for."""

Answering = Callable[[Any, int], Records]
"""Rows, and the number of the first of them, to records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """A chunk that is answered, as bytes of the file, and what is to be counted of it."""

    bodies: tuple[bytes, ...]
    tally: AnswerCounts
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked about every chunk. It is sent to each worker once."""

    answer: Answering
    suffix: str
    kinds: Mapping[str, Kind]
    """The columns of the file: those of a record, and those that travel along."""
    keep: tuple[str, ...] = ()
    escape_formulas: bool = False

    def __call__(self, chunk: Chunk) -> ChunkResult:
        begun = time.perf_counter()
        done = self._done(chunk, self._records(chunk))
        return replace(done, seconds=time.perf_counter() - begun)

    def lost(self, chunk: Chunk, why: str) -> ChunkResult:
        """Of a chunk that nobody could answer: a record per row that says so."""
        return self._done(chunk, records_of([Failed.of(chunk.first + i, why) for i in range(chunk.block.count)]))

    def _records(self, chunk: Chunk) -> Records:
        wrong, block = chunk.block.wrong, chunk.block
        if not wrong:
            return self._answers(chunk)
        told = [((i,), records_of([Failed.of(chunk.first + i, why)])) for i, why in wrong.items()]
        told += [((i,), self._answers(one)) for i, one in enumerate(chunk.singles()) if i not in wrong]
        return merged(block.count, told)

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

    def _done(self, chunk: Chunk, records: Records) -> ChunkResult:
        columns = dict(records.columns)
        for name in self.keep:
            columns[name] = carried(chunk.block.column(name), self.kinds[name])
        tally = AnswerCounts()
        tally.add(records)
        body = encoded(self.suffix, columns, self.kinds, escape_formulas=self.escape_formulas)
        return ChunkResult(bodies=(body,), tally=tally)
