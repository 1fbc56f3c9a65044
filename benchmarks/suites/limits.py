"""`limits`: by how much a time limit is passed on large networks and on a forest, from the call of `explain` to its
answer; and what each further question to the forest takes: time to prepare it, and memory that is kept.

The networks are random, the question is one that no row is known to answer, so that every search is still at work when
its time is up. The first call also prepares the question, which is part of the limit.
"""

from __future__ import annotations

import resource
import time
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import ClassTarget, Distance, Explainer, Limits, Network, Real, Schema
from ifonly.model import network_model
from ifonly.solvers.search import load_kernels

SHAPES = ((20, (10, 10)), (500, (50, 50)), (50, (200,) * 3), (20, (100,) * 10), (200, (100,) * 10), (20, (400,) * 5),
          (400, (400,) * 5), (100, (1000, 1000)), (100, (50,) * 20), (1000, (2000,)))  # fmt: skip
"""Inputs, and hidden layers."""
NORMS = ("l1", "l2", "linf")
SECONDS = (0.1, 1.0)


@click.command("limits")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Calls after the first one.")
@click.option("--only", type=click.Choice(["networks", "forest"]), help="One of the two tables.")
def command(rounds: int, only: str | None) -> None:
    """By how much a time limit is passed on large networks; what questions to a large forest take."""
    load_kernels()
    if only != "forest":
        _networks(rounds)
    if only != "networks":
        _forest()


def _networks(rounds: int) -> None:
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


# ---------------------------------------------------------------------- a forest

TREES, ROWS, FEATURES, QUESTIONS = 200, 5000, 20, 4


def _forest() -> None:
    """Distinct questions to one forest of deep trees."""
    explainer, row = _grown()
    _busy(*_small(), Distance(), Limits(nodes=1))  # what is loaded once per process
    resident = _resident()
    first = _busy(explainer, row, Distance("linf"), Limits(nodes=1))
    once = _resident() - resident
    table = Table("forest", "first question: CPU ms, MB", "preparing: CPU ms each", "kept: MB each",
                  "limit", "over: wall, CPU ms, largest")  # fmt: skip
    before, spent = _resident(), []
    for k in range(QUESTIONS):
        new, again = (_busy(explainer, row, _distance(k), Limits(nodes=1)) for _ in range(2))
        spent.append(new - again)
    kept = (_resident() - before) / QUESTIONS
    limits = Limits(seconds=0.1, memory_bytes=20_000_000)
    over = []
    for k in range(QUESTIONS):
        begun, busy = time.perf_counter(), time.thread_time()
        explainer.explain(row, distance=_distance(QUESTIONS + k), limits=limits)
        over.append([1e3 * (time.perf_counter() - begun - 0.1), 1e3 * (time.thread_time() - busy - 0.1)])
    wall, cpu = np.array(over).max(axis=0)
    table.add_row(f"{TREES} trees, {ROWS:,} rows, {FEATURES} features", f"{1e3 * first:.0f}, {once / 1e6:.0f}",
                  f"{1e3 * float(np.median(spent)):.0f}", f"{kept / 1e6:.1f}", "0.1 s, 20 MB",
                  f"{wall:.0f}, {cpu:.0f}")  # fmt: skip
    console().print(table)


def _distance(k: int) -> Distance:
    return Distance("l1", weights={"x0": 2.0 + k})


def _small() -> tuple[Explainer, dict[str, float]]:
    return _grown(2, 50)


def _grown(trees: int = TREES, count: int = ROWS) -> tuple[Explainer, dict[str, float]]:
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(count, FEATURES))
    labels = rows @ rng.normal(size=FEATURES) + np.sin(3 * rows[:, 0]) + 0.5 * rng.normal(size=count) > 0
    model = RandomForestClassifier(trees, random_state=0).fit(rows, labels)
    schema = Schema([Real(f"x{i}", float(rows[:, i].min()), float(rows[:, i].max())) for i in range(FEATURES)])
    return Explainer(model, schema=schema), schema.row(rows[np.flatnonzero(~labels)[0]])


def _busy(explainer: Explainer, row: dict[str, float], distance: Distance, limits: Limits) -> float:
    busy = time.thread_time()
    explainer.explain(row, distance=distance, limits=limits)
    return time.thread_time() - busy


def _resident() -> int:
    """Bytes of this process that are in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
