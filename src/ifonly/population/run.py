"""A run through a table: read, answered by an engine, written in parts, in order; can be resumed wherever it ended.

    source -> chunks -> engine -> parts -> a file

At any time a bounded number of chunks is on its way, so memory does not depend on the number of rows. How many rows a
chunk has follows from the time that those before it took. A chunk that is lost with its worker is asked for again, then
its rows one by one; a row that is lost again gets a sentence.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ifonly.errors import ChangedFile, FileError, QuestionError
from ifonly.population.chunks import ROWS, Chunk, Digest
from ifonly.population.counters import AnswerCounts
from ifonly.population.engines import Engine, Lost, Processes, WorkerPool
from ifonly.population.existing_output import COMPARED, Existing, earlier_run
from ifonly.population.output import FINISHED, OutputPaths, Parts, alone, manifest_of, place_of
from ifonly.population.sources import ChangedRows, RowSource, chunks
from ifonly.population.worker import Answering, ChunkResult, Task
from ifonly.printing import json_text, shown, some_of
from ifonly.results import Listener, Progress
from ifonly.results.records import Kind

MOST_WAITING = 64 * 2**20
"""Bytes of answers that wait for a chunk before them."""
CHUNK_TRIES, ROW_TRIES = 3, 2
"""How often a chunk, and then a row alone, may be lost with its worker."""
MOST_GIVEN_UP = 20
"""Rows, one after the other, that no worker survives: then it is not the rows."""
TELL_SECONDS = 0.1
FIRST_ROWS, CHUNK_SECONDS = 4, 1.0
"""Rows of the first chunks, and how long one may take: little is lost with it."""
MOST_STEP = 4
"""By how much one measurement makes chunks larger or smaller."""

CHANGED = f"This run cannot be resumed: {COMPARED['input']} that it was begun with."


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is answered, from where to where. `about` says what is asked, as plain data, for the manifest."""

    source: RowSource
    path: Any
    answer: Answering
    features: Sequence[str]
    record: Mapping[str, Kind]
    about: Mapping[str, Any]
    distance_name: str
    keep: Sequence[str] | None = ()
    """Columns that travel along; None for all that are no features."""

    def wanted(self, task: Task) -> set[str]:
        """The columns that are read."""
        return {*self.features, *task.keep}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A finished run: where its records are, and its figures, as `report.summary` gives them of answers."""

    path: Path
    rows: int
    counts: dict[str, int]
    summary: dict[str, Any] = field(repr=False)
    seconds: float
    """Of this run and those that it went on from."""
    already: bool = False
    """It was finished before; nothing was done."""
    contradictions: int = 0
    """Of the error rows, those by which a method contradicts itself or the model: bugs, to be reported."""


def run(plan: Plan, engine: Engine, *, existing: Existing = "refuse", listen: Listener | None = None) -> RunResult:
    """Answer all rows of the plan's source, or what an earlier run has left of them."""
    if isinstance(engine, Processes):
        engine.check_main()
    place = place_of(plan.path)
    plan.source.fingerprint()  # before anything else is read: all that is read from here on is compared with it
    task = _task(plan, place)
    about = {**_identity(plan, task), "engine": engine.description}
    found = earlier_run(place, about, existing)
    if found is not None and found["state"] == FINISHED:
        _check_rows(plan, task, found)
        place.clear(found)  # what a run that was killed at its very end has left
        return _finished(place, found, plan, already=True)
    with alone(place):
        parts = Parts(place, about, task.kinds)
        try:
            if found is not None:
                parts.resume(found)
            else:
                parts.begin()
            with engine.begin(task) as pool:
                _Flow(plan, task, pool, parts, listen).run()
            parts.finish()
        except ChangedFile as error:
            raise ChangedFile(error.file, _remedy(parts.rows)) from None
        finally:
            parts.leave()
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
                raise FileError(f"{_start(source.words)} has no column '{feature}'; it has {some_of(names)}.")
    if plan.keep is None and names is None:
        raise QuestionError(
            "Which columns there are is known only of csv and parquet files and frames; name those to keep."
        )
    keep = [n for n in names or () if n not in plan.features] if plan.keep is None else list(dict.fromkeys(plan.keep))
    for name in keep:
        if not isinstance(name, str) or (names is not None and name not in names):
            raise QuestionError(f"There is no column {shown(name)} to keep in {source.words}.")
        if name in plan.record:
            raise QuestionError(f"The column '{name}' cannot be kept: answers have one of that name; rename it.")
    kinds = {**plan.record, **{name: source.kind(name) for name in keep}}
    return Task(
        answer=plan.answer, suffix=place.suffix, kinds=kinds, keep=tuple(keep), escape_formulas=place.escape_formulas
    )


def _identity(plan: Plan, task: Task) -> dict[str, Any]:
    """What a run is about: the same for the run that began it and the one that goes on."""
    data = {**plan.about, "input": plan.source.fingerprint(), "columns": list(task.kinds),
            "escape_formulas": task.escape_formulas}  # fmt: skip
    return dict(json.loads(json_text(data)))


def _check_rows(plan: Plan, task: Task, found: Mapping[str, Any]) -> None:
    """Of rows that are in no file: are they those that were answered?"""
    if found["input"] is None:
        digest, told, rows = Digest(), "", 0
        for block in plan.source.blocks(plan.wanted(task)):
            told, rows = digest.add(block), rows + block.count
        if (told, rows) != (found["digest"], found["rows"]):
            raise QuestionError(CHANGED)


def _finished(place: OutputPaths, found: Mapping[str, Any], plan: Plan, *, already: bool = False) -> RunResult:
    tally = AnswerCounts.from_data(found["tally"])
    summary = tally.summary(plan.distance_name, found["seconds"])
    return RunResult(
        path=place.path, rows=tally.rows, counts=summary["counts"], summary=summary, seconds=found["seconds"],
        already=already, contradictions=tally.contradictions,
    )  # fmt: skip


def _start(words: str) -> str:
    return words[:1].upper() + words[1:]


# ---------------------------------------------------------------------- on the way


@dataclass(slots=True)
class _Waiting:
    """A chunk on its way: its rows in one piece, or one by one, and what came back of them."""

    chunk: Chunk
    lost: int = 0
    singles: list[_Waiting] = field(default_factory=list)
    done: ChunkResult | None = None

    def result(self) -> tuple[ChunkResult, ...] | None:
        """What came back, once all of it has."""
        if self.done is not None:
            return (self.done,)
        results = [one.done for one in self.singles]
        return tuple(done for done in results if done is not None) if results and all(results) else None


class ChunkSize:
    """How many rows a chunk has: a power of two, as many as take about `CHUNK_SECONDS` by the chunks that are done.

    One measurement changes it by a bounded factor: what is prepared and loaded the first time, or a single row that is
    hard, is soon made up for.
    """

    def __init__(self) -> None:
        self.rows = FIRST_ROWS

    def measured(self, rows: int, seconds: float) -> None:
        """So many rows took so long."""
        fitting = CHUNK_SECONDS * rows / max(seconds, 1e-9)
        fitting = min(max(fitting, self.rows / MOST_STEP, 1.0), self.rows * MOST_STEP, ROWS)
        self.rows = 2 ** int(math.log2(fitting))


class _Flow:
    """Chunks from the source to the engine and, in order, to the parts."""

    def __init__(self, plan: Plan, task: Task, pool: WorkerPool, parts: Parts, listen: Listener | None) -> None:
        self._task, self._pool, self._parts, self._listen = task, pool, parts, listen
        self._source = plan.source
        self._people = plan.source.about() or 0
        self._size = ChunkSize()
        self._chunks = self._left(plan)
        self._order: deque[_Waiting] = deque()
        self._again: deque[_Waiting] = deque()
        self._out: dict[int, _Waiting] = {}
        self._ticket, self._held, self._given_up = 0, 0, 0
        self._begun = self._told = time.monotonic()
        self._before = parts.rows
        self._counts = Counter(parts.tally.counts)

    def run(self) -> None:
        self._tell()
        try:
            while True:
                while self._pool.has_capacity and (one := self._next()) is not None:
                    self._ticket += 1
                    self._out[self._ticket] = one
                    self._pool.submit(self._ticket, one.chunk)
                if not self._out:
                    self._source.check_unchanged()
                    self._tell()
                    return
                ticket, outcome = self._pool.next()
                self._take(self._out.pop(ticket), outcome)
                self._write()
        except BaseException:  # Ctrl-C, an error of the question, a table that ends in the middle of a line
            self._parts.settle()
            raise

    def _left(self, plan: Plan) -> Iterator[Chunk]:
        """The chunks that are not answered yet."""
        rows, blocks = self._parts.rows, plan.source.blocks(plan.wanted(self._task))
        known = self._parts.digest if plan.source.fingerprint() is None else None
        some = False
        try:
            for chunk in chunks(blocks, lambda: self._size.rows, after=rows, known=known):
                some = True
                yield chunk
        except ChangedRows:
            raise QuestionError(CHANGED) from None
        if not some and not rows:
            raise FileError(f"{_start(plan.source.words)} has no rows.")

    def _next(self) -> _Waiting | None:
        """What to submit next, unless too much waits to be written already."""
        if self._again:
            return self._again.popleft()
        if self._held > MOST_WAITING:
            return None
        chunk = next(self._chunks, None)
        if chunk is None:
            return None
        self._order.append(_Waiting(chunk))
        return self._order[-1]

    def _take(self, one: _Waiting, outcome: ChunkResult | Lost) -> None:
        if isinstance(outcome, ChunkResult):
            one.done, self._given_up = outcome, 0
            if outcome.seconds:  # a row that was given up took none
                self._size.measured(one.chunk.block.count, outcome.seconds)
            self._held += sum(map(len, outcome.bodies))
            self._counts.update(outcome.tally.counts)
            if time.monotonic() - self._told >= TELL_SECONDS:
                self._tell()
            return
        one.lost += 1
        alone = one.chunk.block.count == 1
        if one.lost < (ROW_TRIES if alone else CHUNK_TRIES):
            self._again.append(one)
        elif not alone:
            one.singles = [_Waiting(single) for single in one.chunk.singles()]
            self._again.extend(one.singles)
        else:
            self._give_up(one, outcome.why)

    def _give_up(self, one: _Waiting, why: str) -> None:
        """A record that says so for a row that is lost each time; an end to it all where every row is."""
        given_up = self._given_up + 1
        if given_up >= MOST_GIVEN_UP:
            raise QuestionError(
                f"{given_up} rows one after the other were given up ({why}): no worker can answer this."
            )
        self._take(one, self._task.lost(one.chunk, f"This row was given up: {why}, {one.lost} times."))
        self._given_up = given_up

    def _write(self) -> None:
        """Write what has its turn."""
        while self._order and (results := self._order[0].result()) is not None:
            chunk = self._order.popleft().chunk
            for done in results:
                self._held -= sum(map(len, done.bodies))
                self._parts.add(done.bodies, done.tally, chunk.digest)

    def _tell(self) -> None:
        """Say how far it is."""
        self._told = now = time.monotonic()
        if self._listen is not None:
            finished = sum(self._counts.values())
            rate = (finished - self._before) / max(now - self._begun, 1e-9)
            people = max(self._people, finished)
            self._listen(Progress(finished=finished, people=people, counts=dict(self._counts), rate=rate))
