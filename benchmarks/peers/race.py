"""Who is asked about what: other libraries, exact MIPs and our own search, on the same networks and rows, l1.

A peer may return several rows; what counts is the nearest of those that are plausible and flip the network, and failing
that the nearest that flips it. Its distance is computed here, by the question's own definition, and validity by the
network itself. Each peer is told the same seed and has the same budget per row; setting it up is not timed.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.asking import records
from benchmarks.asking.case import WANTED, Case, QueryRequest, cell, common, distance_of, failed, timed_out
from benchmarks.asking.records import Record
from benchmarks.asking.sets import spread
from benchmarks.peers import environments, handover
from benchmarks.peers.environments import NoEnvironment
from benchmarks.peers.talk import Peer, Said
from ifonly import StoppedBy

PEERS = {
    "dice-gradient": "DiCE gradient",
    "dice-genetic": "DiCE genetic",
    "dice-random": "DiCE random",
    "nice": "NICE",
    "cfnow-greedy": "cfnow greedy",
    "cfnow-random": "cfnow random",
    "alibi": "alibi proto",
}
EXACT = ("gurobi", "scip", "highs")


def ask(
    case: Case, how: QueryRequest, known: Sequence[Record], cache: Path, console: Console, sizes: Sequence[int] = (1,)
) -> Iterator[list[Record]]:
    """Records of all rows that are not known yet, as they come. With `sizes`, sets of so many rows (`way` is k=...)."""
    for k in sizes:
        asked = how if k == 1 else replace(how, way=f"k={k}")
        mine = {r.row: r for r in known if (r.cell, r.method, r.way) == cell(case, asked)}
        left = [r for r in range(len(case.rows)) if r not in mine]
        if left:
            yield from _asked(case, asked, left, mine, cache, console, k)


def _asked(
    case: Case, how: QueryRequest, left: list[int], mine: dict[int, Record], cache: Path, console: Console, k: int
) -> Iterator[list[Record]]:
    try:
        python = environments.python_of(how.method.partition("-")[0], cache, console)
    except NoEnvironment as error:
        yield [failed(case, how, row, "error", str(error)) for row in left]
        return
    with tempfile.TemporaryDirectory() as folder:
        budget = how.budget or math.inf
        handover.write(Path(folder), case.model, case.data, budget)
        peer = Peer(python, how.method, Path(folder))
        try:
            for n, row in enumerate(left):
                if how.give_up and timed_out(list(mine.values()), how.give_up):
                    why = f"not run: the {how.give_up} rows before it hit a limit"
                    yield [failed(case, how, r, records.NOT_RUN, why) for r in left[n:]]
                    return
                said = peer.ask(case.data.points[case.rows[row]], k, budget)
                mine[row] = record(case, how, row, said, peer, k)
                yield [mine[row]]
        finally:
            peer.close()


def record(case: Case, how: QueryRequest, row: int, said: Said, peer: Peer, k: int) -> Record:
    """What a peer's rows are worth."""
    person, schema = case.data.points[case.rows[row]], case.data.schema
    entry = common(case, how, row)
    entry["versions"] = "; ".join(part for part in (peer.versions, entry["versions"]) if part)
    timing = {"seconds": said.seconds, "cpu_seconds": said.cpu_seconds, "nodes": 0, "lower": 0.0}
    points = np.array(said.points, dtype=np.float64).reshape(-1, len(schema))
    late = StoppedBy.SECONDS.value if "time limit" in said.error else ""  # a peer has words only
    if not len(points) or np.isnan(points).any():
        status = "limit" if late else "not found" if _none(said.error) else "error"
        return Record(
            **entry, **timing, status=status, upper=math.inf, valid=False, plausible=False, note=said.error,
            stopped_by=late,
        )  # fmt: skip
    found = judge(case, person, points, how.norm)
    if k > 1:
        return Record(
            **entry, **timing, status="found", valid=bool(found.valid[:k].all()) and len(points) >= k,
            plausible=bool(found.plausible[:k].all()), upper=float(found.distance[:k].mean()),
            diversity=spread(case, points[:k], how.norm), batch=len(points[:k]),
            changed=round(float((points[:k] != person).sum(axis=1).mean())),
            note=said.error or ("" if len(points) >= k else f"{len(points)} of {k} rows"), stopped_by=late,
        )  # fmt: skip
    best = found.best
    return Record(
        **entry, **timing, status="found", valid=bool(found.valid[best]), plausible=bool(found.plausible[best]),
        upper=float(found.distance[best]), changed=int((points[best] != person).sum()),
        note="" if found.rounded[best] == found.valid[best] else "rounded to whole numbers and bounds it does not flip",
    )  # fmt: skip


def _none(error: str) -> bool:
    """An empty answer, or an error that says no more than that nothing was found."""
    return not error or "No counterfactuals found" in error


@dataclass(frozen=True)
class JudgedRow:
    """What the network and the schema say of the rows returned."""

    distance: NDArray[np.float64]
    valid: NDArray[np.bool_]
    plausible: NDArray[np.bool_]
    rounded: NDArray[np.bool_]
    """Do they still flip the network once they are rounded to rows of the schema?"""

    @property
    def best(self) -> int:
        """The nearest row that is valid and plausible; without one, the nearest valid; without one, the nearest."""
        rank = np.where(self.valid & self.plausible, 0, np.where(self.valid, 1, 2))
        return int(np.lexsort((self.distance, rank))[0])


def judge(case: Case, person: NDArray[np.float64], points: NDArray[np.float64], norm: str = "l1") -> JudgedRow:
    """Distance, validity and plausibility of rows as they were returned."""
    schema, model = case.data.schema, case.model
    whole = np.array([f.kind == "integer" for f in schema.features])
    lower, upper = (np.array([_bound(f, end) for f in schema.features]) for end in ("lower", "upper"))
    rounded = np.clip(np.where(whole, np.round(points), points), lower, upper)
    return JudgedRow(
        distance=np.asarray(distance_of(norm).between(schema, person, points)),
        valid=model.decide(model.scores(points)) == WANTED,
        plausible=schema.admits(points),
        rounded=model.decide(model.scores(rounded)) == WANTED,
    )


def _bound(feature: object, end: str) -> float:
    options = getattr(feature, "options", None)
    return float(getattr(feature, end)) if options is None else 0.0 if end == "lower" else float(len(options) - 1)
