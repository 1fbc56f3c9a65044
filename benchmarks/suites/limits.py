"""`limits`: by how much a time limit is passed on large networks, from the call of `explain` to its answer.

The networks are random, the question is one that no row is known to answer, so that every search is still at work when
its time is up. The first call also prepares the question; preparing is counted, and not interrupted.
"""

from __future__ import annotations

import time
from itertools import pairwise

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import ClassTarget, Explainer, Limits, Network, Real, Schema
from ifonly.model import network_model
from ifonly.search import load_kernels

SHAPES = ((20, (10, 10)), (500, (50, 50)), (50, (200,) * 3), (20, (100,) * 10), (200, (100,) * 10), (20, (400,) * 5),
          (400, (400,) * 5), (100, (1000, 1000)), (100, (50,) * 20), (1000, (2000,)))  # fmt: skip
"""Inputs, and hidden layers."""
NORMS = ("l1", "l2", "linf")
SECONDS = (0.1, 1.0)


@click.command("limits")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Calls after the first one.")
def command(rounds: int) -> None:
    """By how much a time limit is passed on large networks."""
    load_kernels()
    table = Table("network", "inputs", "weights", "limit", "first call: wall, CPU ms over",
                  "later calls: median, largest ms over", "CPU: largest ms over")  # fmt: skip
    for inputs, hidden in SHAPES:
        explainer, row, target, weights = _subject(inputs, hidden)
        for seconds in SECONDS:
            over = np.array([
                [_over(using, row, target, norm, seconds) for _ in range(1 + rounds)]
                for norm in NORMS for using in [Explainer(explainer.model)]
            ])  # fmt: skip
            first, later = over[:, 0].max(axis=0), over[:, 1:].reshape(-1, 2)
            table.add_row(
                f"{len(hidden)}x{hidden[0]}", str(inputs), f"{weights:,}", f"{seconds:g} s",
                f"{first[0]:.0f}, {first[1]:.0f}", f"{np.median(later[:, 0]):.0f}, {later[:, 0].max():.0f}",
                f"{later[:, 1].max():.0f}",
            )  # fmt: skip
    console().print(table)


def _subject(inputs: int, hidden: tuple[int, ...]) -> tuple[Explainer, dict[str, float], ClassTarget, int]:
    rng, sizes = np.random.default_rng(0), (inputs, *hidden, 1)
    layers = [(rng.normal(size=(n, m)) * np.sqrt(2.0 / m), 0.1 * rng.normal(size=n))
              for m, n in pairwise(sizes)]  # fmt: skip
    schema = Schema([Real(f"x{i}", 0, 1) for i in range(inputs)])
    model = network_model(Network.of(layers), schema)
    points = schema.sample(2000, rng)
    scores = model.scores(points)[:, 0]
    beyond = max(float(scores.max() + 0.3 * (scores.max() - scores.min())), 0.0)
    return Explainer(model), schema.row(points[0]), ClassTarget(1, margin=beyond), sum(w.size for w, _ in layers)


def _over(explainer: Explainer, row: dict[str, float], target: ClassTarget, norm: str, seconds: float) -> list[float]:
    """Milliseconds beyond the limit, by the clock and of this thread's processor time; below 0 it ended before."""
    begun, busy = time.perf_counter(), time.thread_time()
    explainer.explain(row, target=target, distance=norm, limits=Limits(seconds=seconds))
    return [1e3 * (time.perf_counter() - begun - seconds), 1e3 * (time.thread_time() - busy - seconds)]
