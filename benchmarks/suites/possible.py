"""`possible`: answers that could exist. What the rules of the shipped schemas prevent, and what they cost.

The same denied people with and without the rules, side by side in one run. An answer is impossible if it breaks an
invariant that all rows of the data obey, as `ifonly.invariants` finds them.
"""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import Answers, Explainer, datasets
from ifonly.mining import invariants
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules import Rule

ROUNDS = 3


@click.command("possible")
@click.option("--rows", type=click.IntRange(1), default=1000, show_default=True, help="Denied people per data set.")
def command(rows: int) -> None:
    """Impossible answers with and without the rules of the shipped schemas, and what the rules cost."""
    table = Table(
        "data set", "people", "impossible without", "with", "mean distance without", "with", "CPU us per row without",
        "with", "times", "nodes without", "with", "statuses",
    )  # fmt: skip
    for name in datasets.names():
        table.add_row(*_row(name, rows))
    console().print(table)


def _row(name: str, rows: int) -> list[str]:
    bare, ruled = Explainer(datasets.network(name, rules=False)), Explainer(datasets.network(name))
    data = datasets.load(name, rules=False)
    model = bare.model
    denied = np.flatnonzero(model.decide(model.scores(data.points())) == 0)[:rows]
    people = {feature: column[denied] for feature, column in data.columns.items()}
    taken: dict[Explainer, list[float]] = {bare: [], ruled: []}
    told: dict[Explainer, Answers] = {}
    for _ in range(ROUNDS):  # in turn, so that a busy moment hits both
        for explainer, times in taken.items():
            begun = time.process_time()
            told[explainer] = explainer.explain_many(people)
            times.append((time.process_time() - begun) / len(denied))
    obeyed = [Rule(text) for one in invariants(data.columns, data.schema) if not one.exceptions for text in one.rules]
    cpu = {explainer: float(np.median(times)) for explainer, times in taken.items()}
    return [
        name, f"{len(denied):,}",
        *(f"{_impossible(data, told[one], obeyed):,}" for one in (bare, ruled)),
        *(f"{np.mean([answer.upper for answer in told[one]]):.5f}" for one in (bare, ruled)),
        *(f"{1e6 * cpu[one]:.0f}" for one in (bare, ruled)), f"{cpu[ruled] / cpu[bare]:.1f}",
        *(f"{np.mean([answer.nodes for answer in told[one]]):.0f}" for one in (bare, ruled)),
        ", ".join(f"{count:,} {status}" for status, count in told[ruled].counts().items() if count),
    ]  # fmt: skip


def _impossible(data: Any, answers: Answers, obeyed: list[Rule]) -> int:
    """Answers whose row breaks what every row of the data obeys."""
    points = np.array([data.schema.read(a.counterfactual) for a in answers if a.counterfactual is not None])
    kept = [rows_allowed(rule, data.schema, points, points) for rule in obeyed]
    return int((~np.all(kept, axis=0)).sum()) if kept else 0
