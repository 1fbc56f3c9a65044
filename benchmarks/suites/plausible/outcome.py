"""Ways of answering, what came of them, and the line of the table about one of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.peers.talk import Peer
from benchmarks.suites.retraining import Records
from ifonly import Distance, Explainer

CLOSE = 1e-6
"""Relative: distances closer than this are equal; it is the gap within which an answer is called nearest."""
COLUMNS = (
    "answered", "proven", "model refuses", "own condition broken", "times the nearest", "nearer than proven",
    "changed models: accept", "outlier factor: median", "CPU ms: median", "worst",
)  # fmt: skip


@dataclass(frozen=True)
class Way:
    """`ask`: a person's point to what is recorded. `keeps`: does a row meet the way's own condition, judged by what
    was said of it or by the original models? `against`: our way with the same conditions or fewer."""

    ask: Callable[[Any], dict[str, Any]]
    keeps: Callable[[Any, dict[str, Any]], bool] = lambda point, facts: True
    against: str = "nearest"


@dataclass
class Outcome:
    """Of the people who were asked about, by number of row: what was recorded, and how far accepted rows are."""

    told: dict[int, dict[str, Any]] = field(default_factory=dict)
    distance: dict[int, float] = field(default_factory=dict)
    refused: int = 0
    broken: int = 0

    @property
    def proven(self) -> dict[int, float]:
        return {i: away for i, away in self.distance.items() if self.told[i]["proven"]}


@dataclass(frozen=True)
class Judges:
    """The explained model, models that were trained again (sklearn's, over encoded columns), and an outlier factor."""

    model: Any
    changed: list[Any]
    factor: Any
    scaled: Callable[[Any], Any]


def ours(explainer: Explainer, *constraints: Any) -> Callable[[Any], dict[str, Any]]:
    """`explain` with these constraints."""
    model, target = explainer.model, explainer.model.classes[1]

    def ask(point: Any) -> dict[str, Any]:
        begun = time.process_time()
        answer = explainer.explain(model.schema.row(point), target=target, constraints=constraints)
        taken = 1e3 * (time.process_time() - begun)
        row = answer.counterfactual
        found = None if row is None else model.schema.read(row).tolist()
        return {"point": found, "proven": answer.status == "nearest", "milliseconds": taken}

    return ask


def theirs(peer: Peer, budget: float, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> Callable[..., Any]:
    """A peer in its own process; `write` makes what it is given of a point, `read` a point of what it returns."""

    def ask(point: Any) -> dict[str, Any]:
        said = peer.ask(write(point), 1, budget)
        found = read(np.array(said.points[0])).tolist() if said.points else None
        done = bool(said.facts.get("optimal", found is not None))
        return {"point": found, "proven": done, "milliseconds": 1e3 * said.cpu_seconds, "facts": said.facts,
                "error": said.error}  # fmt: skip

    return ask


def asked(name: str, way: Way, people: dict[int, Any], judges: Judges, records: Records) -> Outcome:
    """Everybody's answer, from the records or now."""
    outcome, schema = Outcome(), judges.model.schema
    if any((name, i) not in records.known for i in people):
        way.ask(next(iter(people.values())))  # compiled and prepared
    for i, person in people.items():
        told = records.known.get((name, i)) or records.add(name, i, **way.ask(person))
        outcome.told[i] = told
        if told["point"] is None:
            continue
        point = np.array(told["point"])
        if judges.model.decide(judges.model.scores(point[None, :]))[0] != 1:
            outcome.refused += 1
            continue
        outcome.broken += not way.keeps(point, told.get("facts", {}))
        outcome.distance[i] = float(Distance().between(schema, person, point))
    return outcome


def nearer(outcome: Outcome, reference: Outcome) -> int:
    """Rows nearer than the reference's proven ones: none, if the proofs are right."""
    known = reference.proven
    return sum(away < known[i] * (1.0 - CLOSE) - 1e-12 for i, away in outcome.distance.items() if i in known)


def line(way: Way, outcome: Outcome, outcomes: dict[str, Outcome], judges: Judges) -> list[str]:
    """What `COLUMNS` names."""
    taken = np.array([told["milliseconds"] for told in outcome.told.values()])
    times = [f"{np.median(taken):.0f}", f"{taken.max():.0f}"]
    proven = sum(outcome.told[i]["proven"] for i in outcome.distance)
    counts = [f"{len(outcome.distance)} of {len(outcome.told)}", f"{proven}", f"{outcome.refused}", f"{outcome.broken}"]
    base = outcomes["nearest"].distance
    both = [i for i in outcome.distance if i in base]
    if not both:
        return [*counts, "-", "-", "-", "-", *times]
    rows = np.array([outcome.told[i]["point"] for i in outcome.distance])
    encoded = judges.model.schema.encode(rows)
    kept = np.mean([one.predict(encoded) == 1 for one in judges.changed])
    factor = np.median(-judges.factor.score_samples(judges.scaled(encoded)))
    ratio = sum(outcome.distance[i] for i in both) / sum(base[i] for i in both)
    return [
        *counts, f"{ratio:.3f}", f"{nearer(outcome, outcomes[way.against])}", f"{100 * kept:.0f} %", f"{factor:.2f}",
        *times,
    ]  # fmt: skip
