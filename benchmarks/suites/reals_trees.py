"""`reals-trees`: forests over 30 to 64 real features, before and after a change of the search, in one run.

    git worktree add ../old COMMIT
    python -m benchmarks reals-trees --before ../old/src

Both versions answer the same rows in processes of their own, family by family in turns. CPU seconds, one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ifonly import ClassTarget, Distance, Limits, Real, Schema, import_model
from ifonly.problem import Question
from ifonly.solvers.search import Search, load_kernels

ROOT = Path(__file__).parents[2]
SEED = 0


def _cancer() -> tuple[Any, Any]:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    return found.data, found.target


def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.data, (found.target == 3).astype(int)


def _synthetic(informative: int, redundant: int, apart: float) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        from sklearn.datasets import make_classification

        made = make_classification(
            2000, 50, n_informative=informative, n_redundant=redundant, class_sep=apart, random_state=SEED
        )
        return made[0], made[1]

    return make


FAMILIES: dict[str, tuple[Callable[[], tuple[Any, Any]], int, int | None]] = {
    "cancer (30 reals), 300 x 8": (_cancer, 300, 8),
    "digits (64 reals), 50 x 6": (_digits, 50, 6),
    "synthetic (50 reals), 100, full depth": (_synthetic(10, 10, 1.0), 100, None),
    "synthetic far apart (50 reals), 100, full depth": (_synthetic(20, 0, 2.0), 100, None),
}
"""By name: the data, the number of trees, their depth."""


def asked(family: str, rows: int, seconds: float, norm: str) -> list[list[float]]:
    """Per row: CPU seconds, the proven bound, the distance of the row found, whether it is proven, nodes."""
    from sklearn.ensemble import RandomForestClassifier

    data, trees, depth = FAMILIES[family]
    points, labels = data()
    ends = zip(points.min(axis=0), points.max(axis=0), strict=True)
    schema = Schema([Real(f"x{i}", float(low), float(max(high, low + 1.0))) for i, (low, high) in enumerate(ends)])
    fitted = RandomForestClassifier(trees, max_depth=depth, random_state=SEED).fit(points, labels)
    model = import_model(fitted, schema)
    question = Question(model=model, target=ClassTarget(model.classes[1]), distance=Distance(norm))
    load_kernels()
    solver, told = Search(table_rows=0).prepare(question), []
    low = points[model.decide(model.scores(points)) == 0][:rows]
    solver.solve(low[:1], Limits(seconds=0.1))  # not the first: whatever is loaded once is loaded now
    for point in low:
        begun = time.process_time()
        (claim,) = solver.solve(point[None, :], Limits(seconds=seconds))
        spent = time.process_time() - begun
        upper = float("inf") if claim.point is None else float(question.measure.between(point, claim.point))
        told.append([spent, claim.lower, upper, float(claim.stop is None), float(claim.nodes)])
    return told


def _child(source: str, family: str, rows: int, seconds: float, norm: str) -> list[list[float]]:
    """The same, by the version in this folder."""
    asked = f"asked({family!r}, {rows}, {seconds}, {norm!r})"
    code = f"import json; from benchmarks.suites.reals_trees import asked; print(json.dumps({asked}))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(source).resolve()), str(ROOT)])},
        capture_output=True,
        text=True,
        check=True,
    )
    return [list(map(float, row)) for row in json.loads(done.stdout.strip().splitlines()[-1])]


@click.command("reals-trees")
@click.option("--rows", type=click.IntRange(1), default=5, show_default=True, help="People per family.")
@click.option("--seconds", type=float, default=30.0, show_default=True, help="Limit per row.")
@click.option("--distance", "norm", default="l1", show_default=True)
@click.option("--family", "families", multiple=True, default=tuple(FAMILIES), help="Which families; all by default.")
@click.option("--before", type=click.Path(exists=True), help="The src folder of an earlier version, for comparison.")
def command(rows: int, seconds: float, norm: str, families: tuple[str, ...], before: str | None) -> None:
    """Forests over many real features: rows proven, CPU seconds, and how far open rows got."""
    console = Console(width=150)
    table = Table("family", "version", "proven", "median s", "worst s", "least lower / upper", "nodes", "times")
    versions = ([("before", before)] if before else []) + [("now", str(ROOT / "src"))]
    for family in families:
        spent: list[Any] = []
        for version, source in versions:
            told = np.array(_child(source, family, rows, seconds, norm))
            spent.append(told[:, 0])
            mean = f"{np.exp(np.log(spent[0] / spent[-1]).mean()):.1f}" if len(spent) > 1 else ""
            line = [
                family, version, f"{int(told[:, 3].sum())} of {len(told)}",
                f"{np.median(told[:, 0]):.2f}", f"{told[:, 0].max():.2f}", f"{(told[:, 1] / told[:, 2]).min():.3f}",
                f"{np.median(told[:, 4]):,.0f}", mean,
            ]  # fmt: skip
            table.add_row(*line)
            console.print(" | ".join(line))
    console.print(table)
