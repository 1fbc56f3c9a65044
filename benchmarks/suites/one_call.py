"""Time against the number of people in one call: `explain_many` on ever more distinct rows of Adult, one thread."""

from __future__ import annotations

import time

from rich.console import Console

from benchmarks.asking import contestants, records
from benchmarks.asking.case import WANTED, Case, QueryRequest, common
from benchmarks.asking.records import Record
from benchmarks.subjects.networks import Spec, arch, train_missing
from benchmarks.terminal import Folders, bar
from ifonly import Explainer

SPEC = Spec("adult", arch("2x10"))
COUNTS = (1, 3, 10, 30, 100, 300, 1000, 2900)
REPEATS = 3


def rows(folders: Folders, console: Console, *, quick: bool = False) -> None:
    """One record per call; `row` is the repeat, `nodes` how many answers were proven."""
    train_missing((SPEC,), folders.cache, console)
    path = records.path_of(folders.results, "rows")
    known = {(r.batch, r.row) for r in records.read(path)}
    case = Case.make("rows", SPEC, folders.cache, max(COUNTS))
    asked = [(n, i) for n in COUNTS[: 5 if quick else None] for i in range(REPEATS) if (n, i) not in known]
    with bar(console) as progress:
        task = progress.add_task("rows: adult 2x10", total=len(asked))
        for count, repeat in asked:
            records.append(path, [_record(case, count, repeat)])
            progress.advance(task)


def _record(case: Case, count: int, repeat: int) -> Record:
    table = case.data.table(case.rows[:count])
    explainer = Explainer(case.model)
    explainer.explain_many(case.data.table(case.rows[:1]), target=WANTED)  # prepared and compiled
    begun, spent = time.perf_counter(), time.process_time()
    answers = explainer.explain_many(table, target=WANTED)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
    proven = sum(answer.status == "nearest" for answer in answers)
    return Record(
        **common(case, QueryRequest(norm="l1", method=contestants.OURS, way=f"rows={count}"), repeat),
        status="nearest" if proven == len(answers) else "within",
        lower=max(answer.lower for answer in answers),
        upper=max(answer.upper for answer in answers),
        valid=all(answer.counterfactual is not None for answer in answers),
        seconds=seconds,
        cpu_seconds=cpu,
        nodes=proven,
        batch=len(answers),
        batch_seconds=seconds,
    )
