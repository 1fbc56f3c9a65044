"""Asking and timing, the same way for every method.

Our own search is asked about many rows in one `explain_many` on one thread: reading the rows, preparing the question,
searching, checking every row with the model, making the answers. What the method reports for a row, plus an equal share
of everything else, is that row's time; these add up to the wall time of the call (`batch_seconds`). A second pass asks
`explain` about each row alone. The MIPs are asked by `explain_many` row by row (building and solving a program dwarfs
the rest), so that a long run can be watched, stopped and resumed. Compilation is not timed here: see the suite `cold`.

After `give_up` rows in a row that ran into their limit, the rest of a cell is not asked; each of those rows is a record
that says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.asking import contestants, records
from benchmarks.asking.case import WANTED, Case, QueryRequest, cell, common, distance_of, failed, is_valid, timed_out
from benchmarks.asking.pace import PACE
from benchmarks.asking.records import Record
from ifonly import Distance, Explainer, Limits
from ifonly.errors import Contradiction, UnsupportedQuestion
from ifonly.results import Answer

WARM_UP = 600
"""Rows, where many are asked about at once: enough that all threads have had some."""


def ask(case: Case, how: QueryRequest, known: Sequence[Record]) -> Iterator[list[Record]]:
    """Records of all rows that are not known yet, as they come."""
    mine = {r.row: r for r in known if (r.cell, r.method, r.way, r.threads) == (*cell(case, how), how.threads)}
    left = [r for r in range(len(case.rows)) if r not in mine]
    if not left:
        return
    compile_kernels(case, how)
    explainer = Explainer(case.model, threads=how.threads)
    for first in range(0, len(left), how.at_once):
        if how.give_up and timed_out(list(mine.values()), how.give_up):
            why = f"not run: the {how.give_up} rows before it hit a limit"
            yield [failed(case, how, row, records.NOT_RUN, why) for row in left[first:]]
            return
        batch = _ask(explainer, case, how, left[first : first + how.at_once])
        mine.update({r.row: r for r in batch})
        yield batch


def compile_kernels(case: Case, how: QueryRequest) -> None:
    """Compile what is compiled once and start what is started once, on an explainer that is then thrown away."""
    if how.method == contestants.OURS and len(case.rows):
        some = 1 if how.way == "one" else min(len(case.rows), WARM_UP)
        _ask(Explainer(case.model, threads=how.threads), case, how, range(some))


def _ask(explainer: Explainer, case: Case, how: QueryRequest, rows: Sequence[int]) -> list[Record]:
    table = case.data.table(case.rows[list(rows)])
    explainer = explainer.using(contestants.make(how.method))
    question: dict[str, Any] = {
        "target": WANTED,
        "distance": distance_of(how.norm),
        "limits": Limits(seconds=PACE.wall(how.budget), nodes=how.nodes),
    }
    begun, spent = time.perf_counter(), time.process_time()
    try:
        if how.way == "one":
            (row,) = rows
            point = case.data.schema.row(case.data.points[case.rows[row]])
            begun, spent = time.perf_counter(), time.process_time()
            answers: Sequence[Answer] = [explainer.explain(point, **question)]
        else:
            answers = explainer.explain_many(table, **question)
    except UnsupportedQuestion as error:
        return [failed(case, how, row, "too large", str(error)) for row in rows]
    except Contradiction as error:
        return [failed(case, how, row, "error", str(error)) for row in rows]
    wall, cpu = time.perf_counter() - begun, time.process_time() - spent
    PACE.see(wall, cpu)
    share = (wall - sum(answer.seconds for answer in answers)) / len(rows)
    batch = _Batch(rows=len(rows), wall=wall, cpu=cpu, share=share)
    return [_record(case, how, row, answer, batch) for row, answer in zip(rows, answers, strict=True)]


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """A call about several rows."""

    rows: int
    wall: float
    cpu: float
    share: float
    """Seconds per row that no row's own search accounts for."""


def _record(case: Case, how: QueryRequest, row: int, answer: Answer, batch: _Batch) -> Record:
    seconds = answer.seconds + batch.share
    return Record(
        **common(case, how, row),
        status=answer.status,
        lower=answer.lower,
        upper=answer.upper,
        valid=is_valid(case.model, answer),
        seconds=seconds,
        cpu_seconds=batch.cpu * seconds / batch.wall,
        nodes=answer.nodes,
        batch=batch.rows,
        batch_seconds=batch.wall,
        changed=len(answer.changes),
        l1=_l1(case, row, answer),
        note=answer.note,
        stopped_by=records.stopped_by(answer.stop),
    )


def _l1(case: Case, row: int, answer: Answer) -> float:
    if answer.counterfactual is None:
        return math.inf
    point = case.data.schema.read(answer.counterfactual)
    return float(Distance("l1").between(case.data.schema, case.data.points[case.rows[row]], point))
