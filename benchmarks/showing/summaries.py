"""Summaries of the CSV files: every row counted, coverage beside speed, ratios of medians from one run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.asking import records
from benchmarks.asking.contestants import OURS
from benchmarks.asking.records import Record
from benchmarks.showing.growth import LAWS, SERIES, fit, series
from benchmarks.showing.sheet import TextTable, show, time_text
from benchmarks.subjects.data import load

AGREE = 1e-6
"""Two distances closer than this are the same."""


def summary(suite: str, found: list[Record]) -> list[TextTable]:
    """The tables of a suite."""
    if not found:
        return []
    match suite:
        case "speed" | "reals":
            return [_compared(suite, found)]
        case "size" | "inputs":
            return [_sizes(suite, found)]
        case "rows":
            return [_rows(found)]
        case "throughput":
            return [_throughput(found)]
        case _:
            return [_processes(suite, found)]


def show_suite(suite: str, results: Path, console: Console) -> None:
    """Print the tables of a suite and keep them beside its records."""
    for sheet in summary(suite, records.read(records.path_of(results, suite))):
        show(sheet, results / f"{suite}.md", console)


# ---------------------------------------------------------------------- ours against theirs


COMPARED = (
    "network", "norm", "method", "rows", "solved", "median", "mean", "slowest", "alone", "ratio", "differ", "refuted",
)  # fmt: skip
COMPARED_NOTES = [
    "solved: ours proven nearest; a MIP finished (its tolerances may leave a wider gap)",
    "mean: the wall time of explain_many, by rows; alone: median of explain, asked about one row at a time",
    "ratio: of the medians; time-outs count with the time they were given",
    f"differ: rows that both finished and whose distances differ by more than {AGREE:g}",
    "refuted: lower bounds above the distance of a valid row that another method found",
]


def _compared(suite: str, found: list[Record]) -> TextTable:
    sheet = TextTable(f"{suite}: seconds per row, one thread", COMPARED)
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (network, norm), group in _grouped(found, lambda r: (f"{r.dataset} {r.arch} {r.variant}", r.norm)).items():
        ours = {r.row: r for r in group if r.method == OURS and r.way == "many"}
        for (name,), mine in _grouped(group, lambda r: (r.method,)).items():
            many = {r.row: r for r in mine if r.way == "many"}
            seconds = [r.seconds for r in many.values()]
            ratio = _median(seconds) / _median([r.seconds for r in ours.values()])
            if name != OURS and math.isfinite(ratio):
                ratios[name, norm].append(ratio)
            solved = _share(r.proven if name == OURS else r.solved for r in many.values())
            sheet.rows.append(
                [network, norm, name, str(len(many)), solved]
                + [time_text(number) for number in (_median(seconds), _mean(seconds), max(seconds, default=math.nan))]
                + [time_text(_median([r.seconds for r in mine if r.way == "one"]))]
                + (["", ""] if name == OURS else [_times(ratio), str(_differences(ours, many))])
                + [str(_refuted(many, group))]
            )
    for (name, norm), values in ratios.items():
        mean = float(np.exp(np.mean(np.log(values))))
        sheet.notes.append(
            f"{name} / ours, {norm}: geometric mean {_times(mean)}, least {_times(min(values))} of {len(values)}"
        )
    sheet.notes += COMPARED_NOTES
    return sheet


def _differences(ours: dict[int, Record], theirs: dict[int, Record]) -> int:
    both = [(ours[r], theirs[r]) for r in ours if r in theirs and ours[r].solved and theirs[r].solved]
    return sum(not (a.upper == b.upper or abs(a.upper - b.upper) <= AGREE) for a, b in both)


def _refuted(mine: dict[int, Record], everyone: list[Record]) -> int:
    nearest: dict[int, float] = defaultdict(lambda: math.inf)
    for r in everyone:
        if r.valid:
            nearest[r.row] = min(nearest[r.row], r.upper)
    return sum(r.lower > nearest[r.row] * (1.0 + AGREE) + 1e-12 for r in mine.values())


# ---------------------------------------------------------------------- one method


def _growth_notes(found: list[Record]) -> list[str]:
    notes = []
    for name, size in SERIES.items():
        for dataset, points in series(found, size).items():
            growth = fit(points, only=LAWS.get(name, ""))
            if growth is not None:
                notes.append(f"median CPU time against {name}, {dataset}: {growth}")
    return notes


def _sizes(suite: str, found: list[Record]) -> TextTable:
    limits = (1.0, 10.0, 60.0)
    sheet = TextTable(
        f"{suite}: seconds per row, l1, each row asked alone",
        ["network", "inputs", "rows", "proven", "valid", "median", "CPU", "95 %", "slowest", "nodes (median)"]
        + [f"within {limit:g} s" for limit in limits],
    )
    for (name, dataset), group in _grouped(found, lambda r: (f"{r.dataset} {r.arch}", r.dataset)).items():
        seconds = [r.seconds for r in group]
        sheet.rows.append(
            [name, str(len(load(dataset).schema.columns)), str(len(group))]
            + [_share(r.proven for r in group), _share(r.valid for r in group)]
            + [time_text(_median(seconds)), time_text(_median([r.cpu_seconds for r in group]))]
            + [time_text(float(np.quantile(seconds, 0.95))), time_text(max(seconds))]
            + [f"{_median([float(r.nodes) for r in group]):,.0f}"]
            + [_share(r.proven and r.seconds <= limit for r in group) for limit in limits]
        )
    sheet.notes = _growth_notes(found)
    return sheet


def _rows(found: list[Record]) -> TextTable:
    sheet = TextTable("rows: one call about many people", ["network", "rows", "proven", "seconds", "CPU", "per row"])
    for r in sorted(found, key=lambda r: (r.batch, r.row)):
        spent = [f"{r.seconds:.4f}", f"{r.cpu_seconds:.4f}", time_text(r.cpu_seconds / r.batch)]
        sheet.rows.append([f"{r.dataset} {r.arch}", str(r.batch), f"{r.nodes}/{r.batch}", *spent])
    sheet.notes = _growth_notes(found)
    return sheet


def _throughput(found: list[Record]) -> TextTable:
    sheet = TextTable(
        "throughput: answers per second, all in",
        ["network", "norm", "threads", "rows", "proven", "seconds", "per second"],
    )
    speeds: dict[tuple[str, int], float] = {}
    for (name, norm, threads), group in _grouped(
        found, lambda r: (f"{r.dataset} {r.arch} {r.variant}", r.norm, r.threads)
    ).items():
        wall = sum(r.batch_seconds / r.batch for r in group)
        speed = speeds[name, threads] = sum(r.proven for r in group) / wall
        proven = _share(r.proven for r in group)
        sheet.rows.append([name, norm, str(threads), str(len(group)), proven, f"{wall:.3f}", f"{speed:,.0f}"])
    for name, threads in speeds:
        if threads > 1 and (name, 1) in speeds:
            sheet.notes.append(f"{name}, {threads} threads: {speeds[name, threads] / speeds[name, 1]:.2f}x one")
    return sheet


def _processes(suite: str, found: list[Record]) -> TextTable:
    sheet = TextTable(
        f"{suite}: one answer in a new process", ["network", "row", "way", "status", "seconds", "nodes", "peak growth"]
    )
    for r in found:
        name = f"{r.dataset} {r.arch} {r.variant}"
        sheet.rows.append(
            [name, str(r.row), r.way, r.status, time_text(r.seconds), f"{r.nodes:,}", f"{r.memory_mib:.0f} MiB"]
        )
    sheet.notes = [f"{r.way} {r.row}: {r.note}" for r in found]
    return sheet


# ---------------------------------------------------------------------- numbers


def _grouped(found: list[Record], key: Callable[[Record], tuple]) -> dict[tuple, list[Record]]:  # type: ignore[type-arg]
    groups: dict[tuple, list[Record]] = defaultdict(list)  # type: ignore[type-arg]
    for record in found:
        groups[key(record)].append(record)
    return groups


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if len(values) else math.nan


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _share(flags: Iterable[bool]) -> str:
    all_flags = list(flags)
    return f"{sum(all_flags)}/{len(all_flags)}"


def _times(ratio: float) -> str:
    if not math.isfinite(ratio):
        return "-"
    return f"{ratio:,.0f}x" if ratio >= 9.5 else f"{ratio:.1f}x"
