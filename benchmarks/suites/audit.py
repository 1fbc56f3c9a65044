"""`audit`: how often noise is called a difference, how often a planted one is found, and what an audit of many costs.

The people are made up: costs are drawn from one distribution, and labels at random. A difference told of those is a
false one. Then the same with one group that pays more, or has recourse less often.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import Answer, Nearest, NoneExists, audit
from ifonly.results import Change

GROUPS = (2, 4, 8)
PEOPLE = 300
PLANTED = ((1.0, 1.0), (1.5, 1.0), (1.0, 2.0))
"""How many times as much group 0 pays, and how many times as often it has none."""


@click.command("audit")
@click.option("--populations", type=click.IntRange(1), default=1000, show_default=True, help="Per number of groups.")
@click.option("--rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="Of the large audit.")
def command(populations: int, rows: int) -> None:
    """Noise called a difference, planted differences found, and the memory of a large audit."""
    table = Table("groups", "noise: told", "one pays 1.5 times: found", "one lacks it 2 times as often: found")
    for groups in GROUPS:
        shares = [
            f"{_told(groups, populations, dearer, with_missing):.1%}"
            for dearer, with_missing in ((1, 1), (1.5, 1), (1, 2))
        ]
        table.add_row(str(groups), *shares)
    console().print(table)
    before, begun = _peak(), time.process_time()
    for _ in people(rows, 4, 0):
        pass
    made, begun = time.process_time() - begun, time.process_time()
    audit(people(rows, 4, 0), by="group")
    took = time.process_time() - begun - made
    console().print(f"{rows:,} answers: {took:.1f} CPU s, {_peak() - before:.0f} MiB more than before")


def _told(groups: int, populations: int, dearer: float, with_missing: float) -> float:
    """How often a difference is told; of a planted one, of the right group."""
    told = 0
    for seed in range(populations):
        found = audit(people(PEOPLE, groups, seed, dearer, with_missing), by="group").differences
        noise = dearer == with_missing == 1
        told += any(one.real and (noise or one.group == "0") for one in found)
    return told / populations


def people(count: int, groups: int, seed: int, dearer: float = 1.0, with_missing: float = 1.0) -> Iterator[Answer]:
    """Made-up answers; group 0 pays `dearer` times as much and has none `with_missing` times as often."""
    chance = np.random.default_rng(seed)
    labels, costs, draws = chance.integers(groups, size=count), chance.exponential(1.0, count), chance.random(count)
    for i, (label, cost, draw) in enumerate(zip(labels.tolist(), costs.tolist(), draws.tolist(), strict=True)):
        common: dict[str, Any] = {"row": i, "factual": {"group": label}, "target": "yes", "distance_name": "l1"}
        if draw < 0.2 * (1.0 if label else with_missing):
            yield NoneExists(lower=math.inf, **common)
            continue
        paid = cost * (1.0 if label else dearer)
        yield Nearest(lower=paid, upper=paid, counterfactual={}, changes=(Change("x", 0.0, paid),), **common)


def _peak() -> float:
    """MiB of memory that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
