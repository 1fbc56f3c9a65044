"""One CSV record per row asked, whatever came of it: time-outs and refusals are records too."""

from __future__ import annotations

import csv
import platform
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np

import ifonly
from benchmarks.asking.contestants import solver_version
from benchmarks.terminal import ROOT
from ifonly.datasets.dataset import SEED
from ifonly.results import Stop, StoppedBy

COMMIT_MARK = " at "
"""Between the version and the commit, among the versions of a record."""
NOT_RUN = "not run"
"""The status of a row that nobody was asked about, because the rows before it ran into their limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`seconds` is the wall time of this row, everything included (see `measure`); distances are the question's."""

    suite: str
    dataset: str
    arch: str
    variant: str
    norm: str
    row: int
    """Position among the distinct denied test rows."""
    method: str
    way: str
    """`many`: explain_many on `batch` rows at once; `one`: explain on this row alone; `cold`, `warm`: a new process."""
    status: str
    lower: float
    upper: float
    valid: bool
    """The network, asked again by the harness, decides as wanted."""
    seconds: float
    nodes: int
    batch: int = 1
    batch_seconds: float = 0.0
    threads: int = 1
    memory_mib: float = 0.0
    """Growth of the peak resident memory, where it was measured."""
    cpu_seconds: float = 0.0
    """What the row cost of the processors: comparable on a machine that others use too."""
    load: float = 0.0
    """The machine's load average (one minute) when the row was done."""
    changed: int = 0
    """Features that differ from the person's own."""
    l1: float = 0.0
    """The l1 distance of the row found, whatever the question's own distance is."""
    plausible: bool = True
    """Whole numbers are whole, everything is inside the bounds, and options are options."""
    diversity: float = 0.0
    """Of a set: the mean distance between two of its rows (`upper` is then the mean distance from the person)."""
    note: str = ""
    stopped_by: str = ""
    """What stopped the search, if anything did: the value of a `StoppedBy`."""
    network: str = ""
    seed: int = SEED
    versions: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.dataset, self.arch, self.variant, self.norm, self.row, self.method, self.way, self.threads)

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """Network and norm."""
        return self.dataset, self.arch, self.variant, self.norm

    @property
    def depth(self) -> int:
        return int(self.arch.split("x")[0])

    @property
    def width(self) -> int:
        return int(self.arch.split("x")[1])

    @property
    def proven(self) -> bool:
        return self.status in ("nearest", "none exists")

    @property
    def solved(self) -> bool:
        """Finished. (A MIP's tolerances may leave a gap that is wider than `nearest` allows.)"""
        return self.proven or (self.status in ("within", "unknown") and not self.stopped)

    @property
    def stopped(self) -> bool:
        ended = is_limit(self.stopped_by) or self.stopped_by == StoppedBy.TROUBLE.value
        return ended or self.status in ("too large", "error", NOT_RUN)


def stopped_by(stop: Stop | None) -> str:
    """What stopped a search, in a word; where that has a cause, the cause."""
    while stop is not None and stop.cause is not None:
        stop = stop.cause
    return "" if stop is None else stop.by.value


def is_limit(word: str) -> bool:
    """Is this what stopped a search a limit?"""
    return bool(word) and Stop(StoppedBy(word)).is_limit


def stopped_by_of_old(note: str) -> str:
    """The same of a record that is older than the column: all it has is a sentence."""
    return StoppedBy.SECONDS.value if "limit" in note else StoppedBy.TROUBLE.value if "trouble" in note else ""


def spent(record: Record) -> float:
    """CPU seconds; of a process that had to be ended nobody knows them, and the wall clock stands in."""
    return record.cpu_seconds if record.cpu_seconds > 0.0 else record.seconds


@cache
def versions(method: str) -> str:
    """Everything that a timing may depend on."""
    ours = f"ifonly {ifonly.__version__}{COMMIT_MARK}{commit()}"
    parts = [ours, f"python {platform.python_version()}", f"numpy {np.__version__}"]
    parts += [solver_version(method)] if solver_version(method) else []
    return "; ".join([*parts, f"{platform.system()} {platform.machine()}"])


@cache
def commit() -> str:
    """The commit that is measured, with a plus where files differ from it."""
    shown = subprocess.run(
        ["git", "describe", "--always", "--abbrev=8", "--dirty=+"], cwd=ROOT, capture_output=True, text=True
    )
    return shown.stdout.strip() or "unknown"


def commits(found: Iterable[Record]) -> list[str]:
    """The commits of these records, in the order in which they occur; none of records that are too old to have one."""
    parts = (part for record in found for part in record.versions.split("; ") if COMMIT_MARK in part)
    return list(dict.fromkeys(part.partition(COMMIT_MARK)[2] for part in parts))


def path_of(results: Path, suite: str) -> Path:
    return results / f"{suite}.csv"


def append(path: Path, records: Iterable[Record]) -> None:
    """Write records at once, so that an interrupted run loses nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [field.name for field in fields(Record)]
    new = not path.exists()
    if not new and _columns(path) != names:
        raise click.ClickException(f"{path} has other columns than this version writes; start it anew with --fresh.")
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        if new:
            writer.writeheader()
        writer.writerows(asdict(record) for record in records)


def _columns(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def read(path: Path) -> list[Record]:
    """All records of a file; none when there is no file. Columns that a file is too old to have get their defaults."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_record(line) for line in csv.DictReader(file)]


def _record(line: dict[str, str]) -> Record:
    make: dict[str, Callable[[str], Any]] = {
        "int": int,
        "float": float,
        "bool": lambda text: text == "True",
        "str": str,
    }
    line = {"stopped_by": stopped_by_of_old(line.get("note", "")), **line}
    return Record(
        **{field.name: make[str(field.type)](line[field.name]) for field in fields(Record) if field.name in line}
    )
