"""The table of docs/performance.md: per claim a figure, the command that measured it, and the commit that was measured.

A line whose command has no records here stays as it was written, with its commit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.asking import contestants, records
from benchmarks.asking.contestants import OURS, PAPER
from benchmarks.asking.records import Record, spent
from benchmarks.paper.cross_check import agreement
from benchmarks.paper.draw import asked_of_all
from benchmarks.paper.figures import FIGURES, suite
from benchmarks.paper.page import machine
from benchmarks.paper.style import DATASETS
from benchmarks.peers.race import EXACT, PEERS
from benchmarks.peers.table import LABELS, lines
from benchmarks.showing.growth import LAWS, SERIES, fit, series
from benchmarks.showing.sheet import time_text
from benchmarks.subjects.data import NAMES

CheckedResult = dict[str, list[Record]]
Row = tuple[str, str, str]
"""Claim, figure, command."""

BEGIN, END = "<!-- claims: written by python -m benchmarks publish -->", "<!-- end of claims -->"
"""What is between these marks is written from records; the rest of the page by hand."""


def write(results: Path, path: Path) -> Path:
    """Write the claims of all records that are there between the marks of the page."""
    names = [*(suite(figure) for figure in FIGURES), "peers", *OTHERS]
    found = {name: records.read(records.path_of(results, name)) for name in names}
    text = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    inside, _, after = rest.partition(END)
    fresh = [_line(row, _commit(row[2], found)) for make in MAKERS for row in make(found)]
    lines = ["| claim | figure | command | commit |", "|---|---|---|---|", *_merged(_table_lines(inside), fresh)]
    conditions = _conditions(found, machine(results)) or inside.rpartition("|\n")[2].lstrip()
    path.write_text(before + "\n".join([BEGIN, *lines, "", conditions]) + END + after, encoding="utf-8")
    return path


def _line(row: Row, commit: str) -> str:
    claim, figure, command = row
    return f"| {claim} | {figure} | `{command}` | {commit} |"


def _commit(command: str, found: CheckedResult) -> str:
    """The commits whose records a command has left."""
    words = command.split()
    kind, only = words[3], words[-1]
    names = [name for name in found if name == kind or name.startswith(f"{kind}_")] if len(words) == 4 else [only]
    if kind == "paper" and len(words) > 4:
        names = [suite(only)]
    seen = dict.fromkeys(commit for name in names for commit in records.commits(found[name]))
    return ", ".join(f"`{commit}`" for commit in seen) or "not recorded"


def _table_lines(inside: str) -> list[str]:
    """The claims that the page has."""
    return [line for line in inside.splitlines() if line.count(" | ") >= 3 and not line.startswith("| claim |")]


def _command_of(line: str) -> str:
    return line.split(" | ")[2]


def _merged(old: list[str], fresh: list[str]) -> list[str]:
    """The fresh lines, each command's where the page had its first, and the old lines of all other commands."""
    by_command: dict[str, list[str]] = {}
    for line in fresh:
        by_command.setdefault(_command_of(line), []).append(line)
    merged = []
    for line in old:
        command = _command_of(line)
        merged += [line] if command not in {_command_of(new) for new in fresh} else by_command.pop(command, [])
    return merged + [line for lines in by_command.values() for line in lines]


OTHERS = ("size", "inputs", "rows", "throughput", "memory", "speed", "cold")


def _conditions(found: CheckedResult, here: dict[str, str]) -> str:
    loads = [r.load for group in found.values() for r in group if r.load > 0.0]
    if not loads:
        return ""
    busy = f"{min(loads):.1f} to {max(loads):.1f}, median {np.median(loads):.1f}"
    seen = "; ".join(
        sorted({part for group in found.values() for r in group for part in r.versions.split("; ") if part})
    )
    what = "; ".join(here.values())
    return f"Machine: {what}. Its load while it was measured (1 is one busy core): {busy}.\n\nVersions: {seen}.\n"


# ---------------------------------------------------------------------- the paper


def _full(found: CheckedResult) -> list[Row]:
    here, command = found[suite("full")], "python -m benchmarks paper --only full"
    if not here:
        return []
    rows = [
        (
            "2x10 on raw inputs, three data sets, l0 l1 l2 linf: our search",
            f"{_proven(here, OURS)} proven nearest",
            command,
        )
    ]
    for method, name in PAPER.items():
        ratios = [_ratio([r for r in here if r.cell == cell], method) for cell in dict.fromkeys(r.cell for r in here)]
        known = [ratio for ratio in ratios if math.isfinite(ratio)]
        if known:
            mean = float(np.exp(np.mean(np.log(known))))
            text = f"{_times(mean)} (geometric mean of {len(known)} cells), least {_times(min(known))}"
            text += f"; it proves {_proven(here, method)}"
            rows.append((f"the same: time of {name}, over ours", text, command))
    return rows


def _agree(found: CheckedResult) -> list[Row]:
    result = agreement([r for figure in FIGURES for r in found[suite(figure)]])
    if not result.rows:
        return []
    outcome = "no difference" if result.holds else f"{len(result.differences)} differences, listed in the report"
    text = f"{result.rows:,} rows, {result.pairs:,} pairs of answers: {outcome} (largest {result.largest:.1g})"
    return [("exact methods agree wherever two finish a row", text, "python -m benchmarks paper")]


def _dice(found: CheckedResult) -> list[Row]:
    rows = []
    for dataset, name in DATASETS.items():
        cell = asked_of_all([r for r in found[suite("dice")] if r.dataset == dataset])
        nearest = {r.row: r for r in cell if r.method == OURS}
        dice = [r for r in cell if r.method == "dice-gradient"]
        good = [r for r in dice if r.valid and r.plausible]
        if good:
            farther = np.median([r.upper / nearest[r.row].upper for r in good])
            slower = _ratio(cell, "dice-gradient")
            text = f"distance {_times(farther)}, time {_times(slower)}, answered {len(good)}/{len(dice)}"
            rows.append(
                (f"DiCE (gradient) over ours, 2x10, l1, {name}", text, "python -m benchmarks paper --only dice")
            )
    return rows


def _ladders(found: CheckedResult) -> list[Row]:
    rows = []
    for figure, text in (
        ("depth", "1 to 9 layers of 10"),
        ("width", "one layer of 20 to 340, two layers of 20 to 400"),
    ):
        here = found[suite(figure)]
        if here:
            others = "; ".join(
                f"{name} {_proven(here, m)}" for m, name in PAPER.items() if any(r.method == m for r in here)
            )
            said = f"{_proven(here, OURS)} proven ({others})"
            rows.append(
                (f"{text}, three data sets, l1: our search", said, f"python -m benchmarks paper --only {figure}")
            )
    return rows


def _sets(found: CheckedResult) -> list[Row]:
    here = found[suite("diversity")]
    ours = [r for r in here if r.method == OURS]
    if not ours:
        return []
    full = sum(r.valid for r in ours)
    text = f"{full}/{len(ours)} sets full and valid; median {time_text(_middle(ours, 'k=2'))} (k = 2) to "
    text += f"{time_text(_middle(ours, 'k=10'))} (k = 10)"
    return [("diverse sets, COMPAS 2x10, l1, at least 0.01 apart", text, "python -m benchmarks paper --only diversity")]


def _middle(ours: Sequence[Record], way: str) -> float:
    times = [spent(r) for r in ours if r.way == way]
    return float(np.median(times)) if times else math.nan


def _mixtures(found: CheckedResult) -> list[Row]:
    here = found[suite("sparsity")]
    command = "python -m benchmarks paper --only sparsity"
    return [("l0, l1 and mixtures of them, 2x10: our search", f"{_proven(here, OURS)} proven", command)] if here else []


# ---------------------------------------------------------------------- peers and size


def _peers(found: CheckedResult) -> list[Row]:
    here, command = found["peers"], "python -m benchmarks peers"
    rows = []
    for method in (*EXACT, *PEERS):
        parts = []
        for dataset in dict.fromkeys(r.dataset for r in here):
            known = {line.method: line for line, _ in lines(here, dataset)}
            if method in known and OURS in known:
                line = known[method]
                far = f"distance {_times(float(np.median(line.ratios)))}, " if line.ratios else ""
                slower = _times(line.cpu / known[OURS].cpu)
                parts.append(f"{NAMES[dataset]}: {far}time {slower}, answered {len(line.good)}/{line.rows}")
        if parts:
            rows.append((f"{LABELS[method]} over ours, 2x10, l1", "; ".join(parts), command))
    return rows


def _growth(found: CheckedResult) -> list[Row]:
    here = [r for name in ("size", "inputs", "rows") for r in found[name]]
    rows = []
    sizes = found["size"]
    if sizes:
        text = f"{_proven(sizes, OURS)} proven nearest; slowest {time_text(max(r.seconds for r in sizes))}"
        rows.append(
            (
                "three data sets, 1x10 to 9x10, 2x20 to 2x400, 5x50, 5x100",
                text,
                "python -m benchmarks scale --only size",
            )
        )
    for name, size in SERIES.items():
        fits = {dataset: fit(points, only=LAWS.get(name, "")) for dataset, points in series(here, size).items()}
        text = "; ".join(f"{NAMES[dataset]} {growth}" for dataset, growth in fits.items() if growth)
        if text:
            only = "rows" if name.startswith("rows") else "inputs" if name.startswith("inputs") else "size"
            rows.append((f"growth of the median with {name}", text, f"python -m benchmarks scale --only {only}"))
    return rows


def _throughput(found: CheckedResult) -> list[Row]:
    rows = []
    for arch in dict.fromkeys(r.arch for r in found["throughput"]):
        for threads in sorted({r.threads for r in found["throughput"]}):
            group = [r for r in found["throughput"] if (r.arch, r.threads) == (arch, threads)]
            wall = sum(r.batch_seconds / r.batch for r in group)
            text = f"{sum(r.proven for r in group) / wall:,.0f} proven answers per second of wall time"
            claim = f"Adult {arch}, l1, {len(group):,} distinct rows in one call, {threads} thread{'s' * (threads > 1)}"
            rows.append((claim, text, "python -m benchmarks scale --only throughput"))
    return rows


def _memory(found: CheckedResult) -> list[Row]:
    here = found["memory"]
    if not here:
        return []
    text = f"the peak of the process grows by at most {max(r.memory_mib for r in here):.0f} MiB"
    most = max(r.nodes for r in here)
    return [(f"memory of a hard search of up to {most:,} nodes", text, "python -m benchmarks scale --only memory")]


def _speed(found: CheckedResult) -> list[Row]:
    here, rows = [r for r in found["speed"] if r.way == "many"], []
    for method in contestants.MIPS:
        for norm in ("l1", "l0", "l2", "linf"):
            cells = dict.fromkeys(r.cell for r in here if r.norm == norm)
            ratios = [_ratio([r for r in here if r.cell == c], method) for c in cells]
            known = [ratio for ratio in ratios if math.isfinite(ratio)]
            if known:
                mean = float(np.exp(np.mean(np.log(known))))
                text = f"{_times(mean)} (geometric mean of {len(known)}), least {_times(min(known))}"
                rows.append(
                    (
                        f"{method} over ours (many people in one call), {norm}",
                        text,
                        "python -m benchmarks search --only speed",
                    )
                )
    return rows


def _cold(found: CheckedResult) -> list[Row]:
    times = {way: [r.seconds for r in found["cold"] if r.way == way] for way in ("cold", "warm")}
    if not all(times.values()):
        return []
    text = f"{np.median(times['cold']):.1f} s; once compiled {np.median(times['warm']):.1f} s, everything included"
    return [("first answer of a new process with nothing compiled", text, "python -m benchmarks search --only cold")]


MAKERS: tuple[Callable[[CheckedResult], list[Row]], ...] = (
    _full, _agree, _dice, _ladders, _sets, _mixtures, _peers, _growth, _throughput, _memory, _speed, _cold,
)  # fmt: skip


def _proven(found: Iterable[Record], method: str) -> str:
    mine = [r for r in found if r.method == method]
    return f"{sum(r.proven for r in mine):,} of {len(mine):,}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 9.5 else f"{ratio:.2f}x"


def _ratio(cell: Sequence[Record], method: str) -> float:
    """Median CPU time of a method by ours, on the rows that it was asked about and ran on."""
    theirs = {r.row: spent(r) for r in cell if r.method == method and math.isfinite(r.seconds) and spent(r) > 0.0}
    ours = [spent(r) for r in cell if r.method == OURS and r.row in theirs]
    return float(np.median(list(theirs.values())) / np.median(ours)) if theirs and ours else math.nan
