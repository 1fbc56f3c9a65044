"""The suites that look at whole processes: `memory` (a hard row at its node limit), `cold` (nothing compiled yet)."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.asking import contestants, records
from benchmarks.asking.case import WANTED, Case
from benchmarks.asking.records import Record
from benchmarks.subjects.data import CANCER
from benchmarks.subjects.networks import Spec, arch, train_missing
from benchmarks.terminal import ROOT, Folders
from ifonly import Stop
from ifonly.datasets.dataset import SEED
from ifonly.problem.target import MARGIN

HARD = Spec(CANCER, arch("2x50"))
EASY = Spec("adult", arch("2x10"))
HARD_NORM = "l0"
"""No ReLU is probed, and proofs take many nodes."""
NODE_LIMIT = 200_000
HARD_MARGIN = 1.2
"""Times the largest score of random rows: no row is known that reaches it, and no bound shows that there is none."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One answer in a new process."""

    suite: str
    spec: Spec
    row: int = 0
    way: str = "one"
    norm: str = "l1"
    margin: float = MARGIN
    nodes: int | None = None
    numba_cache: str | None = None


def memory(folders: Folders, console: Console, *, quick: bool = False) -> None:
    """How much the peak grows while hard rows run into their node limit."""
    rows, nodes = (1, NODE_LIMIT // 10) if quick else (3, NODE_LIMIT)
    train_missing((HARD,), folders.cache, console)
    case = Case.make("memory", HARD, folders.cache, rows)
    scores = case.model.scores(case.data.schema.sample(5000, np.random.default_rng(SEED)))
    margin = HARD_MARGIN * float(scores.max())
    asked = [Process(suite="memory", spec=HARD, row=r, nodes=nodes, norm=HARD_NORM, margin=margin) for r in range(rows)]
    _run(asked, folders, console)


def cold(folders: Folders, console: Console) -> None:
    """The first answer with an empty cache of compiled code, and with a filled one: whole processes."""
    with tempfile.TemporaryDirectory() as empty:
        first, *warm = [
            Process(suite="cold", spec=EASY, row=r, way="warm" if r else "cold", numba_cache=empty) for r in range(4)
        ]
        _run([first], folders, console)
        compile_all = [sys.executable, "-m", "ifonly.compiling", "ifonly.solvers.search.compiled:KERNELS"]
        subprocess.run(compile_all, env={**os.environ, "NUMBA_CACHE_DIR": empty}, check=True)
        _run(warm, folders, console)


def _run(processes: list[Process], folders: Folders, console: Console) -> None:
    for process in processes:
        train_missing((process.spec,), folders.cache, console)
        path = records.path_of(folders.results, process.suite)
        case = Case.make(process.suite, process.spec, folders.cache, process.row + 1)
        key = (*_place(process), process.row, contestants.OURS, process.way, 1)
        if key in {record.key for record in records.read(path)} and process.suite != "cold":
            continue
        with console.status(f"{process.suite}: {process.spec.dataset} {process.spec.arch} row {process.row}"):
            records.append(path, [_record(process, case, *_answer(process, case, folders.cache))])


def _place(process: Process) -> tuple[str, str, str, str]:
    return process.spec.dataset, process.spec.arch, process.spec.variant, process.norm


def _answer(process: Process, case: Case, cache: Path) -> tuple[dict[str, Any], float]:
    """What the child says, and the wall time of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder) / "schema.json"
        case.data.schema.save(schema)
        row = json.dumps(case.data.schema.row(case.data.points[case.rows[process.row]]))
        command = [sys.executable, "-m", "benchmarks.asking.child", str(cache / process.spec.file), str(schema), row]
        command += ["--nodes", str(process.nodes)] if process.nodes else []
        command += ["--margin", str(process.margin), "--distance", process.norm]
        extra = {"NUMBA_CACHE_DIR": process.numba_cache, "IFONLY_COMPILE": ""} if process.numba_cache else {}
        begun = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **extra},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1]), time.perf_counter() - begun


def _record(process: Process, case: Case, said: dict[str, Any], wall: float) -> Record:
    dataset, arch_name, variant, norm = _place(process)
    after = said["counterfactual"]
    valid = False
    if after is not None:
        scores = case.model.scores(case.data.schema.read(after)[None, :])
        valid = int(case.model.decide(scores)[0]) == WANTED
    timing = f"imports {said['imported']:.2f} s, first answer {said['answered']:.2f} s, process {wall:.2f} s"
    return Record(
        suite=process.suite,
        dataset=dataset,
        arch=arch_name,
        variant=variant,
        norm=norm,
        row=process.row,
        method=contestants.OURS,
        way=process.way,
        status=said["status"],
        lower=said["lower"],
        upper=math.inf if said["upper"] is None else said["upper"],
        valid=valid,
        seconds=wall if process.suite == "cold" else said["answered"],
        nodes=said["nodes"],
        memory_mib=said["grown_kib"] / 1024,
        note=f"{said['note']}; {timing}".lstrip("; "),
        stopped_by=records.stopped_by(None if said["stop"] is None else Stop.from_dict(said["stop"])),
        network=case.model.network.fingerprint[:12],
        versions=records.versions(contestants.OURS),
    )
