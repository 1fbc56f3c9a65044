"""Asking and timing, the same way for every method.

Our own search is asked about many rows in one `explain_many` on one thread: reading the rows, preparing the question,
searching, checking every row with the model, making the answers. What the method reports for a row, plus an equal share
of everything else, is that row's time; these add up to the wall time of the call (`batch_seconds`). A second pass asks
`explain` about each row alone. The MIPs are asked by `explain_many` row by row (building and solving a program dwarfs
the rest), so that a long run can be watched, stopped and resumed. Compilation is not timed here: see the suite `cold`.
"""

from __future__ import annotations

import math
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
from benchmarks.records import Record
from ifonly import Explainer, Limits
from ifonly.errors import UnsupportedQuestion
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
    nodes: int | None = None
    chunk: int = 1000
    """How many rows our own search is asked about at once."""

    @property
    def at_once(self) -> int:
        return self.chunk if self.way == "many" and self.method not in methods.MIPS else 1


def ask(case: Case, how: Ask, done: set[tuple[Any, ...]]) -> Iterator[list[Record]]:
    """Records of all rows that are not done yet, as they come."""
    left = [r for r in range(len(case.rows)) if (*_cell(case, how), r, how.method, how.way, how.threads) not in done]
    if not left:
        return
    explainer = Explainer(case.model, threads=how.threads)
    for first in range(0, len(left), how.at_once):
        yield _ask(explainer, case, how, left[first : first + how.at_once])


def warm_up(case: Case, how: Ask) -> None:
    """Compile what is compiled once, on an explainer that is then thrown away."""
    if how.method == methods.OURS and len(case.rows):
        _ask(Explainer(case.model, threads=how.threads), case, how, [0])


def _cell(case: Case, how: Ask) -> tuple[str, str, str, str]:
    return case.spec.dataset, case.spec.arch, case.spec.variant, how.norm


def _ask(explainer: Explainer, case: Case, how: Ask, rows: Sequence[int]) -> list[Record]:
    table = case.data.table(case.rows[list(rows)])
    question: dict[str, Any] = {
        "target": WANTED,
        "distance": how.norm,
        "method": methods.make(how.method),
        "limits": Limits(seconds=how.budget, nodes=how.nodes),
    }
    begun = time.perf_counter()
    try:
        if how.way == "one":
            (row,) = rows
            point = case.data.schema.row(case.data.points[case.rows[row]])
            begun = time.perf_counter()
            answers: Sequence[Answer] = [explainer.explain(point, **question)]
        else:
            answers = explainer.explain_many(table, **question)
    except UnsupportedQuestion as error:
        return [_refused(case, how, row, str(error)) for row in rows]
    wall = time.perf_counter() - begun
    share = (wall - sum(answer.seconds for answer in answers)) / len(rows)
    return [
        _record(case, how, row, answer, seconds=answer.seconds + share, batch=len(rows), wall=wall)
        for row, answer in zip(rows, answers, strict=True)
    ]


def _record(case: Case, how: Ask, row: int, answer: Answer, *, seconds: float, batch: int, wall: float) -> Record:
    dataset, arch, variant, norm = _cell(case, how)
    return Record(
        suite=case.suite,
        dataset=dataset,
        arch=arch,
        variant=variant,
        norm=norm,
        row=row,
        method=how.method,
        way=how.way,
        status=answer.status,
        lower=answer.lower,
        upper=answer.upper,
        valid=is_valid(case.model, answer),
        seconds=seconds,
        nodes=answer.nodes,
        batch=batch,
        batch_seconds=wall,
        threads=how.threads,
        note=answer.note,
        network=case.model.network.fingerprint[:12],
        versions=records.versions(how.method),
    )


def _refused(case: Case, how: Ask, row: int, why: str) -> Record:
    dataset, arch, variant, norm = _cell(case, how)
    return Record(
        suite=case.suite,
        dataset=dataset,
        arch=arch,
        variant=variant,
        norm=norm,
        row=row,
        method=how.method,
        way=how.way,
        status="too large",
        lower=0.0,
        upper=math.inf,
        valid=False,
        seconds=math.inf,
        nodes=0,
        threads=how.threads,
        note=why,
        network=case.model.network.fingerprint[:12],
        versions=records.versions(how.method),
    )


def is_valid(model: Model, answer: Answer) -> bool:
    """Does the network itself, asked anew, decide the returned row as wanted?"""
    if answer.counterfactual is None:
        return False
    scores = model.scores(model.schema.read(answer.counterfactual)[None, :])
    return int(model.decide(scores)[0]) == WANTED
