"""Sets of rows: each nearest to the person among those at least `APART` from the earlier ones (the paper's delta)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.asking import contestants
from benchmarks.asking.case import WANTED, Case, QueryRequest, cell, common, distance_of, failed, is_valid
from benchmarks.asking.pace import PACE
from benchmarks.asking.records import Record
from ifonly import Explainer, Limits
from ifonly.errors import IfonlyError
from ifonly.problem.diversity import Diversity

APART = 0.01


def ask(case: Case, how: QueryRequest, known: Sequence[Record], sizes: Sequence[int]) -> Iterator[list[Record]]:
    """One record per person and size: `upper` is the mean distance from the person, `diversity` that between rows."""
    explainer = Explainer(case.model, threads=how.threads)
    warm = False
    for k in sizes:
        asked = replace(how, way=f"k={k}")
        mine = {r.row for r in known if (r.cell, r.method, r.way) == cell(case, asked)}
        for row in range(len(case.rows)):
            if row not in mine:
                if not warm:
                    _record(Explainer(case.model), case, asked, row, k)
                    warm = True
                yield [_record(explainer, case, asked, row, k)]


def _record(explainer: Explainer, case: Case, how: QueryRequest, row: int, k: int) -> Record:
    schema, person = case.data.schema, case.data.points[case.rows[row]]
    begun, spent = time.perf_counter(), time.process_time()
    try:
        answers = list(
            explainer.using(contestants.make(how.method), limits=Limits(seconds=PACE.wall(how.budget))).explain_diverse(
                schema.row(person), Diversity(k, apart=APART), target=WANTED, distance=distance_of(how.norm)
            )
        )
    except IfonlyError as error:
        return failed(case, how, row, "error", str(error))
    seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
    found = [answer for answer in answers if answer.counterfactual is not None]
    points = np.array([schema.read(answer.counterfactual) for answer in found]).reshape(-1, len(schema))
    proven = all(answer.status in ("nearest", "none exists") for answer in answers)
    return Record(
        **common(case, how, row),
        status="nearest" if proven else "within",
        lower=float(np.mean([answer.lower for answer in found])) if found else math.inf,
        upper=float(np.mean([answer.upper for answer in found])) if found else math.inf,
        valid=len(found) == k and all(is_valid(case.model, answer) for answer in found),
        seconds=seconds,
        cpu_seconds=cpu,
        nodes=sum(answer.nodes for answer in answers),
        batch=len(found),
        changed=round(float(np.mean([len(answer.changes) for answer in found]))) if found else 0,
        diversity=spread(case, points, how.norm),
        note="" if len(found) == k else f"{len(found)} of {k} rows",
    )


def spread(case: Case, points: NDArray[np.float64], norm: str) -> float:
    """The paper's k-diversity: the mean distance between two rows of a set."""
    distance = distance_of(norm)
    pairs = [
        float(distance.between(case.data.schema, points[i], points[j]))
        for i in range(len(points))
        for j in range(i + 1, len(points))
    ]
    return float(np.mean(pairs)) if pairs else math.nan
