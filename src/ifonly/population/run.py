"""A run over a table: rows are read as a stream, answered by an engine, and written in order; it can be resumed.

    source -> chunks -> engine -> parts -> a file

A bounded number of chunks is in flight, so memory does not depend on the number of rows. The size of chunks adapts to
the time that earlier ones took. A chunk that is lost with its worker is tried again, then its rows one by one; a row
that is lost again gets an error record.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ifonly.errors import ChangedFile, FileError, QuestionError
from ifonly.population.chunks import ROWS, Chunk, Digest
from ifonly.population.counters import AnswerCounts
from ifonly.population.engines import Engine, Lost, Processes, WorkerPool
from ifonly.population.existing_output import COMPARED, Existing, earlier_run
from ifonly.population.output import FINISHED, Parts, locked, manifest_of
from ifonly.population.output_paths import Output, OutputPaths, place_of
from ifonly.population.remote import remote_output
from ifonly.population.sources import ChangedRows, RowSource, chunks
from ifonly.population.worker import Answering, ChunkResult, Task, after_column
from ifonly.printing import capitalised, json_text, shown, some_of
from ifonly.results import Listener, Progress
from ifonly.results.records import Kind

MOST_WAITING = 64 * 2**20
"""Bytes of answers that wait to be written after an earlier chunk."""
CHUNK_TRIES, ROW_TRIES = 3, 2
"""How often a chunk, and then a row alone, may be lost with its worker."""
MOST_GIVEN_UP = 20
"""Rows in a row that no worker survives: then it is not the rows."""
PROGRESS_SECONDS = 0.1
FIRST_ROWS, CHUNK_SECONDS = 4, 1.0
"""Rows of the first chunks, and how long one should take: so much work is lost with a worker."""
MOST_STEP = 4
"""The factor by which one measurement may change the size."""

CHANGED = f"This run cannot be resumed: {COMPARED['input']} that it was begun with."


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Source, output and task of a run. `about` describes the query as plain data, for the manifest."""

    source: RowSource
    path: Any
    answer: Answering
    features: Sequence[str]
    record: Mapping[str, Kind]
    about: Mapping[str, Any]
    distance_name: str
    after: Mapping[str, Kind] = field(default_factory=dict)
    """What each feature is after a change, for `Output.flat_changes`."""
    keep: Sequence[str] | None = ()
    """Columns that are kept beside the records; None for all that are no features."""

    def columns(self, task: Task) -> set[str]:
        """The columns that are read."""
        return {*self.features, *task.keep}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A finished run: where its records are, and its figures, as `report.summary` gives them of answers."""

    path: Path | str
    """A path, or the URL that was given."""
    rows: int
    counts: dict[str, int]
    summary: dict[str, Any] = field(repr=False)
    seconds: float
    """Of this run and the runs that it resumed."""
    already: bool = False
    """The run was finished before; nothing was done."""
    contradictions: int = 0
    """Of the error rows, those by which a method contradicts itself or the model: bugs, to be reported."""


def run(plan: Plan, engine: Engine, *, existing: Existing = "refuse", listen: Listener | None = None) -> RunResult:
    """Answer all rows of the plan's source, or what an earlier run has left of them."""
    output = plan.path if isinstance(plan.path, Output) else Output(plan.path)
    remote = remote_output(output.path)
    if remote is None or isinstance(remote, str):
        return _run(replace(plan, path=replace(output, path=remote or output.path)), engine, existing, listen)
    with remote.making():
        result = _run(replace(plan, path=replace(output, path=remote.local)), engine, existing, listen)
    return replace(result, path=remote.url)


def _run(plan: Plan, engine: Engine, existing: Existing, listen: Listener | None) -> RunResult:
    if isinstance(engine, Processes):
        engine.check_main()
    place = place_of(plan.path)
    plan.source.fingerprint()  # first of all: whatever is read later is compared with it
    task = _task(plan, place)
    about = {**_identity(plan, task), "engine": engine.description}
    found = earlier_run(place, about, existing)
    if found is not None and found["state"] == FINISHED:
        _check_rows(plan, task, found)
        place.clear(found)  # files of a run that was killed at its very end
        return _finished(place, found, plan, already=True)
    with locked(place):
        parts = Parts(place, about, task.file_kinds)
        try:
            if found is not None:
                parts.resume(found)
            else:
                parts.start()
            with engine.begin(task) as pool:
                _Pipeline(plan, task, pool, parts, listen).run()
            parts.finish()
        except ChangedFile as error:
            raise ChangedFile(error.file, _remedy(parts.rows)) from None
        finally:
            parts.close()
    return _finished(place, manifest_of(place) or {}, plan)


def _remedy(rows: int) -> str:
    """Of a table that has changed during the run."""
    if not rows:
        return "no row of the original is answered: begin anew when nobody writes to it"
    return (
        f"{rows:,} rows of the original are answered and kept: put it back and go on with --resume "
        f'(existing="resume"), or begin anew with --force (existing="replace")'
    )


# ---------------------------------------------------------------------- before and after


def _task(plan: Plan, place: OutputPaths) -> Task:
    """The task of a worker, with the columns of the file; a sentence where a column is not there."""
    names, source = plan.source.names, plan.source
    if names is not None:
        for feature in plan.features:
            if feature not in names:
                raise FileError(f"{_start(source.description)} has no column '{feature}'; it has {some_of(names)}.")
    if plan.keep is None and names is None:
        raise QuestionError(
            "Which columns there are is known only of csv and parquet files and frames; name those to keep."
        )
    flat = {after_column(name): kind for name, kind in plan.after.items()} if place.flat_changes else {}
    keep = [n for n in names or () if n not in plan.features] if plan.keep is None else list(dict.fromkeys(plan.keep))
    keep += [name for name in place.partition_by if name not in keep and name != "status"]
    for name in keep:
        if not isinstance(name, str) or (names is not None and name not in names):
            raise QuestionError(f"There is no column {shown(name)} to keep in {source.description}.")
        if name in plan.record or name in flat:
            raise QuestionError(f"The column '{name}' cannot be kept: answers have one of that name; rename it.")
    kinds = {**plan.record, **flat, **{name: source.kind(name) for name in keep}}
    return Task(
        answer=plan.answer, suffix=place.suffix, kinds=kinds, keep=tuple(keep), escape_formulas=place.escape_formulas,
        flat=tuple(plan.after) if flat else (), partition_by=place.partition_by,
    )  # fmt: skip


def _identity(plan: Plan, task: Task) -> dict[str, Any]:
    """What identifies a run: a run can be resumed only with the same."""
    data = {**plan.about, "input": plan.source.fingerprint(), "columns": list(task.kinds),
            "escape_formulas": task.escape_formulas, "partition_by": task.partition_by}  # fmt: skip
    return dict(json.loads(json_text(data)))


def _check_rows(plan: Plan, task: Task, found: Mapping[str, Any]) -> None:
    """Rows that are in no file must be those that were answered."""
    if found["input"] is None:
        digest, found_digest, rows = Digest(), "", 0
        for block in plan.source.blocks(plan.columns(task)):
            found_digest, rows = digest.add(block), rows + block.count
        if (found_digest, rows) != (found["digest"], found["rows"]):
            raise QuestionError(CHANGED)


def _finished(place: OutputPaths, found: Mapping[str, Any], plan: Plan, *, already: bool = False) -> RunResult:
    tally = AnswerCounts.from_data(found["tally"])
    summary = tally.summary(plan.distance_name, found["seconds"])
    return RunResult(
        path=place.path, rows=tally.rows, counts=summary["counts"], summary=summary, seconds=found["seconds"],
        already=already, contradictions=tally.contradictions,
    )  # fmt: skip


def _start(words: str) -> str:
    return capitalised(words)


# ---------------------------------------------------------------------- on the way


@dataclass(slots=True)
class _ChunkInFlight:
    """A chunk that is being answered, as a whole or row by row (`singles`), and its results."""

    chunk: Chunk
    lost: int = 0
    singles: list[_ChunkInFlight] = field(default_factory=list)
    done: ChunkResult | None = None

    def result(self) -> tuple[ChunkResult, ...] | None:
        """The results, once all are there."""
        if self.done is not None:
            return (self.done,)
        results = [one.done for one in self.singles]
        return tuple(done for done in results if done is not None) if results and all(results) else None


class ChunkSize:
    """Adaptive size of chunks: a power of two, as many rows as take about `CHUNK_SECONDS` by the chunks that are done.

    One measurement changes it by a bounded factor, so that the preparation in the first chunk or a single hard row has
    little influence.
    """

    def __init__(self) -> None:
        self.rows = FIRST_ROWS

    def measured(self, rows: int, seconds: float) -> None:
        """Take into account that so many rows took so long."""
        fitting = CHUNK_SECONDS * rows / max(seconds, 1e-9)
        fitting = min(max(fitting, self.rows / MOST_STEP, 1.0), self.rows * MOST_STEP, ROWS)
        self.rows = 2 ** int(math.log2(fitting))


class _Pipeline:
    """Chunks from the source to the engine and, in order, to the output."""

    def __init__(self, plan: Plan, task: Task, pool: WorkerPool, parts: Parts, listen: Listener | None) -> None:
        self._task, self._pool, self._parts, self._listen = task, pool, parts, listen
        self._source = plan.source
        self._people = plan.source.estimated_rows() or 0
        self._size = ChunkSize()
        self._chunks = self._unanswered(plan)
        self._order: deque[_ChunkInFlight] = deque()
        self._retries: deque[_ChunkInFlight] = deque()
        self._in_flight: dict[int, _ChunkInFlight] = {}
        self._ticket, self._held, self._given_up = 0, 0, 0
        self._begun = self._reported = time.monotonic()
        self._before = parts.rows
        self._counts = Counter(parts.tally.counts)

    def run(self) -> None:
        self._report()
        try:
            while True:
                while self._pool.has_capacity and (one := self._next()) is not None:
                    self._ticket += 1
                    self._in_flight[self._ticket] = one
                    self._pool.submit(self._ticket, one.chunk)
                if not self._in_flight:
                    self._source.check_unchanged()
                    self._report()
                    return
                ticket, outcome = self._pool.next()
                self._take(self._in_flight.pop(ticket), outcome)
                self._write()
        except BaseException:  # Ctrl-C, an error of the question, a table that ends in the middle of a line
            self._parts.close_part()
            raise

    def _unanswered(self, plan: Plan) -> Iterator[Chunk]:
        """The chunks that are not answered yet."""
        rows, blocks = self._parts.rows, plan.source.blocks(plan.columns(self._task))
        known = self._parts.digest if plan.source.fingerprint() is None else None
        some = False
        try:
            for chunk in chunks(blocks, lambda: self._size.rows, after=rows, known=known):
                some = True
                yield chunk
        except ChangedRows:
            raise QuestionError(CHANGED) from None
        if not some and not rows:
            raise FileError(f"{_start(plan.source.description)} has no rows.")

    def _next(self) -> _ChunkInFlight | None:
        """The next chunk to submit, unless too much waits to be written already."""
        if self._retries:
            return self._retries.popleft()
        if self._held > MOST_WAITING:
            return None
        chunk = next(self._chunks, None)
        if chunk is None:
            return None
        self._order.append(_ChunkInFlight(chunk))
        return self._order[-1]

    def _take(self, one: _ChunkInFlight, outcome: ChunkResult | Lost) -> None:
        if isinstance(outcome, ChunkResult):
            one.done, self._given_up = outcome, 0
            if outcome.seconds:  # a row that was given up took none
                self._size.measured(one.chunk.block.count, outcome.seconds)
            self._held += outcome.size
            self._counts.update(outcome.tally.counts)
            if time.monotonic() - self._reported >= PROGRESS_SECONDS:
                self._report()
            return
        one.lost += 1
        alone = one.chunk.block.count == 1
        if one.lost < (ROW_TRIES if alone else CHUNK_TRIES):
            self._retries.append(one)
        elif not alone:
            one.singles = [_ChunkInFlight(single) for single in one.chunk.singles()]
            self._retries.extend(one.singles)
        else:
            self._give_up(one, outcome.why)

    def _give_up(self, one: _ChunkInFlight, why: str) -> None:
        """Write an error record for a row that is lost each time; end the run where every row is."""
        given_up = self._given_up + 1
        if given_up >= MOST_GIVEN_UP:
            raise QuestionError(
                f"{given_up} rows one after the other were given up ({why}): no worker can answer this."
            )
        self._take(one, self._task.lost(one.chunk, f"This row was given up: {why}, {one.lost} times."))
        self._given_up = given_up

    def _write(self) -> None:
        """Write the results that are next in order."""
        while self._order and (results := self._order[0].result()) is not None:
            chunk = self._order.popleft().chunk
            for done in results:
                self._held -= done.size
                self._parts.add(done.bodies, done.tally, chunk.digest)

    def _report(self) -> None:
        """Report progress."""
        self._reported = now = time.monotonic()
        if self._listen is not None:
            finished = sum(self._counts.values())
            rate = (finished - self._before) / max(now - self._begun, 1e-9)
            people = max(self._people, finished)
            self._listen(Progress(finished=finished, people=people, counts=dict(self._counts), rate=rate))
