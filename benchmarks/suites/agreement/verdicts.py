"""Answers beside known optima: one record each, the verdict on it, and the tables of all of them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks.asking.records import is_limit, stopped_by_of_old
from benchmarks.suites.agreement.methods import PAPER_GAP
from ifonly.tolerances import DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One answer beside the optimum that is known."""

    method: str
    dataset: str
    arch: str
    variant: str
    norm: str
    row: int
    optimum: float
    status: str
    lower: float
    upper: float
    seconds: float
    limit: float
    """Seconds that the row was given."""
    note: str
    stopped_by: str = ""
    """What stopped the search, if anything did: the value of a `StoppedBy`."""

    @property
    def cell(self) -> tuple[str, ...]:
        return self.method, self.dataset, self.arch, self.variant, self.norm

    @property
    def verdict(self) -> str:
        """`agree`: proven nearest, and as far as the optimum within the gap that counts as proven (or the method's own:
        then the optimum lies between its bounds, and these within the gap).
        """
        if self.method.endswith("-paper") and self.upper < math.inf and not is_limit(self.stopped_by):
            inside = self.lower <= self.optimum + DEFAULT.gap and self.optimum <= self.upper + DEFAULT.gap
            return "agree" if inside and self.upper - self.lower <= PAPER_GAP * (1.0 + 1e-9) else "wrong"
        if self.status != "nearest":
            return "limit" if is_limit(self.stopped_by) and self.lower <= self.optimum + DEFAULT.gap else "wrong"
        return "agree" if abs(self.upper - self.optimum) <= DEFAULT.allowed(max(self.upper, self.optimum)) else "wrong"


def read(path: Path) -> list[Record]:
    """The records that are there."""
    if not path.exists():
        return []
    number = {"row": int, "optimum": float, "lower": float, "upper": float, "seconds": float, "limit": float}
    with path.open(newline="", encoding="utf-8") as file:
        lines = [{"stopped_by": stopped_by_of_old(line["note"]), **line} for line in csv.DictReader(file)]
    return [Record(**{k: number.get(k, str)(v) for k, v in line.items()}) for line in lines]


def added(path: Path, records: Iterable[Record]) -> Iterator[Record]:
    """Pass records on, each once it is in the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = read(path)  # written anew, since a file may be older than a column
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Record)])
        writer.writeheader()
        writer.writerows(map(asdict, kept))
        for record in records:
            writer.writerow(asdict(record))
            file.flush()
            yield record


def table(records: Sequence[Record]) -> Iterator[str]:
    """A line per method and data set; a cell counts agree / asked over all norms and variants."""
    yield ""
    yield "| method | data set | network | rows | agree | at the limit | wrong | largest difference | median CPU s |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for key in dict.fromkeys((r.method, r.dataset, r.arch) for r in records):
        mine = [r for r in records if (r.method, r.dataset, r.arch) == key]
        verdicts = [r.verdict for r in mine]
        worst = max((abs(r.upper - r.optimum) for r in mine if r.verdict == "agree"), default=math.nan)
        yield (
            f"| {key[0]} | {key[1]} | {key[2]} | {len(mine)} | {verdicts.count('agree')} | {verdicts.count('limit')} "
            f"| {verdicts.count('wrong')} | {worst:.1e} | {np.median([r.seconds for r in mine]):.2g} |"
        )


def times(records: Sequence[Record]) -> Iterator[str]:
    """A line per method, a column per data set and norm: median CPU seconds; in brackets agree / asked."""
    columns = sorted({(r.dataset, r.arch, r.norm) for r in records})
    for variant in dict.fromkeys(r.variant for r in records):
        yield ""
        yield f"| inputs: {variant} | " + " | ".join(" ".join(column) for column in columns) + " |"
        yield "|---|" + "--:|" * len(columns)
        for method in dict.fromkeys(r.method for r in records if r.variant == variant):
            mine = [r for r in records if (r.method, r.variant) == (method, variant)]
            cells = [[r for r in mine if (r.dataset, r.arch, r.norm) == column] for column in columns]
            yield f"| {method} | " + " | ".join(map(_time, cells)) + " |"


def _time(cell: Sequence[Record]) -> str:
    if not cell:
        return ""
    agree = sum(r.verdict == "agree" for r in cell)
    return f"{np.median([r.seconds for r in cell]):.2g} ({agree}/{len(cell)})"
