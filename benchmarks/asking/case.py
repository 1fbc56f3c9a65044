"""A network with the rows to ask about, how they are asked, and what every record of such a row says."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.asking import contestants, records
from benchmarks.asking.records import Record
from benchmarks.subjects.data import Data, load
from benchmarks.subjects.networks import Spec, denied, model
from ifonly import Distance
from ifonly.model import Model
from ifonly.results import Answer

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
class QueryRequest:
    """How a case is asked about."""

    norm: str
    method: str
    way: str = "many"
    threads: int = 1
    budget: float | None = 60.0
    """Seconds of processor time per row."""
    nodes: int | None = None
    chunk: int = 1000
    """How many rows our own search is asked about at once."""
    give_up: int | None = None
    """After so many time-outs in a row, the other rows of the cell are not asked."""

    @property
    def at_once(self) -> int:
        return self.chunk if self.way == "many" and self.method not in contestants.MIPS else 1


def distance_of(norm: str) -> Distance:
    """`l1`, or a mixture such as `0.2*l0 + 0.8*l1`."""
    if "*" not in norm:
        return Distance(norm)
    parts = [part.split("*") for part in norm.split(" + ")]
    return Distance({name: float(share) for share, name in parts})


def cell(case: Case, how: QueryRequest) -> tuple[tuple[str, str, str, str], str, str]:
    """Network and norm, method, way: what a summary has one line for."""
    return (case.spec.dataset, case.spec.arch, case.spec.variant, how.norm), how.method, how.way


def common(case: Case, how: QueryRequest, row: int) -> dict[str, Any]:
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


def failed(case: Case, how: QueryRequest, row: int, status: str, why: str) -> Record:
    """A row without an answer, and the reason."""
    nothing: dict[str, Any] = {"lower": 0.0, "upper": math.inf, "valid": False, "seconds": math.inf, "nodes": 0}
    return Record(**common(case, how, row), **nothing, status=status, note=why)


def timed_out(before: Sequence[Record], count: int) -> bool:
    """Did the last `count` rows all run into a limit? (Errors do not count: the next row may well go through.)"""
    last = sorted(before, key=lambda r: r.row)[-count:]
    return len(last) == count and all(r.stopped and r.status != "error" for r in last)


def is_valid(model: Model, answer: Answer) -> bool:
    """Does the network itself, asked anew, decide the returned row as wanted?"""
    if answer.counterfactual is None:
        return False
    scores = model.scores(model.schema.read(answer.counterfactual)[None, :])
    return int(model.decide(scores)[0]) == WANTED
