"""Carrying out a plan: train what is missing, ask, write every record at once, show how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.asking import contestants, records, rows, sets
from benchmarks.asking.case import Case, QueryRequest, cell, failed, timed_out
from benchmarks.asking.plan import Plan
from benchmarks.asking.records import Record
from benchmarks.peers import race
from benchmarks.subjects.networks import Spec, train_missing
from benchmarks.terminal import Folders, bar

WORTH_ASKING_SINGLY = 5.0
"""Seconds: rows that take longer are not asked a second time."""


def forget(folders: Folders, suite: str, *, fresh: bool) -> None:
    """With `fresh`, a suite starts without its earlier records."""
    if fresh:
        records.path_of(folders.results, suite).unlink(missing_ok=True)


def run(plan: Plan, folders: Folders, budget: float, console: Console) -> None:
    """Ask everything that the CSV file does not have yet."""
    train_missing(plan.specs, folders.cache, console)
    path = records.path_of(folders.results, plan.suite)
    budget = plan.budget or budget
    with bar(console) as progress:
        for before, spec in zip((None, *plan.specs), plan.specs, strict=False):
            case = Case.make(plan.suite, spec, folders.cache, plan.rows)
            for how in asks(plan, budget):
                known = records.read(path)
                if plan.singly and how.way == "one" and _slow(known, case, how):
                    continue
                text = f"{plan.suite}: {spec.dataset} {spec.arch} {spec.variant} {how.norm} {how.method} {how.way}"
                task = progress.add_task(text, total=len(case.rows) * len(plan.sizes))
                too_large = plan.ladder and before is not None and _gave_up(known, before, spec, how)
                for batch in _records(plan, case, how, known, too_large, folders.cache, console):
                    records.append(path, batch)
                    progress.advance(task, len(batch))
                progress.remove_task(task)


def asks(plan: Plan, budget: float) -> Iterator[QueryRequest]:
    """Ours and theirs, norm by norm, so that a ratio compares neighbours in time."""
    for norm in plan.norms:
        for name in plan.methods:
            for threads in plan.threads:
                how = QueryRequest(
                    norm=norm, method=name, way=plan.way, threads=threads, budget=budget, chunk=plan.chunk,
                    give_up=plan.give_up,
                )  # fmt: skip
                yield how
                if plan.singly and name == contestants.OURS:
                    yield replace(how, way="one")


def _records(
    plan: Plan, case: Case, how: QueryRequest, known: list[Record], too_large: bool, cache: Path, console: Console
) -> Iterator[list[Record]]:
    if too_large:
        mine = {r.row for r in known if (r.cell, r.method, r.way) == cell(case, how)}
        left = [row for row in range(len(case.rows)) if row not in mine]
        why = "not run: gave up on the next smaller network"
        yield [failed(case, how, row, records.NOT_RUN, why) for row in left]
    elif how.method in race.PEERS:
        yield from race.ask(case, how, known, cache, console, plan.sizes)
    elif plan.sizes != (1,):
        yield from sets.ask(case, how, known, plan.sizes)
    else:
        yield from rows.ask(case, how, known)


def _gave_up(known: list[Record], before: Spec, spec: Spec, how: QueryRequest) -> bool:
    """Did the method run into its limits on the next smaller network of the same data set?"""
    if before.dataset != spec.dataset or not how.give_up:
        return False
    place = (before.dataset, before.arch, before.variant, how.norm)
    mine = [r for r in known if (r.cell, r.method, r.way) == (place, how.method, how.way)]
    return timed_out(mine, how.give_up)


def _slow(known: list[Record], case: Case, how: QueryRequest) -> bool:
    place = (case.spec.dataset, case.spec.arch, case.spec.variant, how.norm)
    mine = [r.seconds for r in known if (r.cell, r.method, r.way) == (place, how.method, "many")]
    return sum(mine) > WORTH_ASKING_SINGLY * len(mine)
