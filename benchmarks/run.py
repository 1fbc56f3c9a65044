"""Carrying out a plan: train what is missing, ask, write every record at once, show how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import methods, records
from benchmarks.measure import Ask, Case, ask, warm_up
from benchmarks.networks import Spec, model
from benchmarks.plan import Plan

WORTH_ASKING_SINGLY = 5.0
"""Seconds: rows that take longer are not asked a second time."""


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Where networks and records are kept."""

    cache: Path
    results: Path


def bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )


def train_missing(specs: tuple[Spec, ...], cache: Path, console: Console) -> None:
    """Train all networks that are not in the cache."""
    missing = [spec for spec in specs if not (cache / spec.file).exists()]
    if not missing:
        return
    with bar(console) as progress:
        task = progress.add_task("training", total=len(missing))
        for spec in missing:
            progress.update(task, description=f"training {spec.dataset} {spec.arch} {spec.variant}")
            model(spec, cache)
            progress.advance(task)


def run(plan: Plan, folders: Folders, budget: float, console: Console) -> None:
    """Ask everything that the CSV file does not have yet."""
    train_missing(plan.specs, folders.cache, console)
    path = records.path_of(folders.results, plan.suite)
    with bar(console) as progress:
        for spec in plan.specs:
            case = Case.make(plan.suite, spec, folders.cache, plan.rows)
            for how in asks(plan, budget):
                known = records.read(path)
                if how.way == "one" and _slow(known, case, how):
                    continue
                text = f"{plan.suite}: {spec.dataset} {spec.arch} {spec.variant} {how.norm} {how.method} {how.way}"
                task = progress.add_task(text, total=len(case.rows))
                done = {record.key for record in known}
                warm_up(case, how)
                for batch in ask(case, how, done):
                    records.append(path, batch)
                    progress.advance(task, len(batch))
                progress.remove_task(task)


def asks(plan: Plan, budget: float) -> Iterator[Ask]:
    """Ours and theirs, norm by norm, so that a ratio compares neighbours in time."""
    for norm in plan.norms:
        for name in plan.methods:
            for threads in plan.threads:
                how = Ask(norm=norm, method=name, threads=threads, budget=budget, chunk=plan.chunk)
                yield how
                if plan.singly and name == methods.OURS:
                    yield Ask(norm=norm, method=name, threads=threads, budget=budget, way="one")


def _slow(known: list[records.Record], case: Case, how: Ask) -> bool:
    cell = (case.spec.dataset, case.spec.arch, case.spec.variant, how.norm, how.method)
    mine = [r.seconds for r in known if (r.dataset, r.arch, r.variant, r.norm, r.method) == cell and r.way == "many"]
    return sum(mine) > WORTH_ASKING_SINGLY * len(mine)
