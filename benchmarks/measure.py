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
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import methods, records
from benchmarks.data import Data, load
from benchmarks.networks import Spec, denied, model
from benchmarks.pace import PACE
from benchmarks.records import Record
from ifonly import Distance, Explainer, Limits
from ifonly.errors import Contradiction, UnsupportedQuestion
from ifonly.model import Model
from ifonly.proof import Answer

WANTED = 1
"""The class that people want."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network and the rows to ask about."""

    suite: str
    spec: Spec
    model: Model
    data: Data
    rows: NDArray[np.intp]

    @classmethod
    def make(cls, suite: str, spec: Spec, cache: Path, rows: int | None) -> Case:
        network, data = model(spec, cache), load(spec.dataset)
        return cls(suite=suite, spec=spec, model=network, data=data, rows=denied(network, data, rows))


@dataclass(frozen=True, kw_only=True)
class Ask:
    """How a case is asked about."""

    norm: str
    method: str
    way: str = "many"
    threads: int = 1
    budget: float | None = 60.0
    """Seconds of processor time a row."""
    nodes: int | None = None
    chunk: int = 1000
    """How many rows our own search is asked about at once."""
    give_up: int | None = None
    """After so many time-outs in a row, the other rows of the cell are not asked."""

    @property
    def at_once(self) -> int:
        return self.chunk if self.way == "many" and self.method not in methods.MIPS else 1


def distance_of(norm: str) -> Distance:
    """`l1`, or a mixture such as `0.2*l0 + 0.8*l1`."""
    if "*" not in norm:
        return Distance(norm)
    parts = [part.split("*") for part in norm.split(" + ")]
    return Distance({name: float(share) for share, name in parts})


def ask(case: Case, how: Ask, known: Sequence[Record]) -> Iterator[list[Record]]:
    """Records of all rows that are not known yet, as they come."""
    mine = {r.row: r for r in known if (r.cell, r.method, r.way, r.threads) == (*cell(case, how), how.threads)}
    left = [r for r in range(len(case.rows)) if r not in mine]
    if not left:
        return
    warm_up(case, how)
    explainer = Explainer(case.model, threads=how.threads)
    for first in range(0, len(left), how.at_once):
        if how.give_up and timed_out(list(mine.values()), how.give_up):
            why = f"not run: the {how.give_up} rows before it hit a limit"
            yield [failed(case, how, row, records.NOT_RUN, why) for row in left[first:]]
            return
        batch = _ask(explainer, case, how, left[first : first + how.at_once])
        mine.update({r.row: r for r in batch})
        yield batch


def timed_out(before: Sequence[Record], count: int) -> bool:
    """Did the last `count` rows all run into a limit? (Errors do not count: the next row may well go through.)"""
    last = sorted(before, key=lambda r: r.row)[-count:]
    return len(last) == count and all(r.stopped and r.status != "error" for r in last)


def warm_up(case: Case, how: Ask) -> None:
    """Compile what is compiled once, on an explainer that is then thrown away."""
    if how.method == methods.OURS and len(case.rows):
        _ask(Explainer(case.model, threads=how.threads), case, how, [0])


def cell(case: Case, how: Ask) -> tuple[tuple[str, str, str, str], str, str]:
    """Network and norm, method, way: what a summary has one line for."""
    return (case.spec.dataset, case.spec.arch, case.spec.variant, how.norm), how.method, how.way


def _ask(explainer: Explainer, case: Case, how: Ask, rows: Sequence[int]) -> list[Record]:
    table = case.data.table(case.rows[list(rows)])
    question: dict[str, Any] = {
        "target": WANTED,
        "distance": distance_of(how.norm),
        "method": methods.make(how.method),
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
    return [
        Record(
            **common(case, how, row),
            status=answer.status,
            lower=answer.lower,
            upper=answer.upper,
            valid=is_valid(case.model, answer),
            seconds=answer.seconds + share,
            cpu_seconds=cpu * (answer.seconds + share) / wall,
            nodes=answer.nodes,
            batch=len(rows),
            batch_seconds=wall,
            changed=len(answer.changes),
            l1=_l1(case, row, answer),
            note=answer.note,
        )
        for row, answer in zip(rows, answers, strict=True)
    ]


def _l1(case: Case, row: int, answer: Answer) -> float:
    if answer.counterfactual is None:
        return math.inf
    point = case.data.schema.read(answer.counterfactual)
    return float(Distance("l1").between(case.data.schema, case.data.points[case.rows[row]], point))


def common(case: Case, how: Ask, row: int) -> dict[str, Any]:
    """What every record of a row says, whatever came of it."""
    (dataset, arch, variant, norm), method, way = cell(case, how)
    return {
        "suite": case.suite,
        "dataset": dataset,
        "arch": arch,
        "variant": variant,
        "norm": norm,
        "row": row,
        "method": method,
        "way": way,
        "threads": how.threads,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        "network": case.model.network.fingerprint[:12],
        "versions": records.versions(how.method),
    }


def failed(case: Case, how: Ask, row: int, status: str, why: str) -> Record:
    """A row without an answer, and the reason."""
    nothing: dict[str, Any] = {"lower": 0.0, "upper": math.inf, "valid": False, "seconds": math.inf, "nodes": 0}
    return Record(**common(case, how, row), **nothing, status=status, note=why)


def is_valid(model: Model, answer: Answer) -> bool:
    """Does the network itself, asked anew, decide the returned row as wanted?"""
    if answer.counterfactual is None:
        return False
    scores = model.scores(model.schema.read(answer.counterfactual)[None, :])
    return int(model.decide(scores)[0]) == WANTED
