"""`tree-race`: OCEAN's CP-SAT (l1) and Veritas (linf) on the same forests, boosted trees and rows, in one run.

Numbers are scaled to [0, 1] and are real; choices are one-hot under l1, and columns like others under linf, since
Veritas knows no choices. So the three libraries are asked the very same question.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.peers import environments
from benchmarks.peers.environments import NoEnvironment
from benchmarks.peers.talk import Peer, Said
from benchmarks.suites.trees import MODELS
from benchmarks.terminal import cache_option
from ifonly import Categorical, ClassTarget, Distance, Limits, Real, Schema, datasets, import_model
from ifonly.problem import Question
from ifonly.results import Claim
from ifonly.schema import Numeric
from ifonly.solvers.search import Search

Floats = NDArray[np.float64]

PEERS = {"ocean": "l1", "veritas": "linf"}
"""Who is asked, in which norm."""
RACED = ("forest 10 x 4", "forest 50 x 4", "forest 50 x 6", "forest 100 x 6", "XGBoost 50 x 4", "XGBoost 100 x 6")
CLOSE = 2e-3
"""Relative: optima that are as close as this are the same. CP-SAT counts in whole numbers; Veritas bisects."""
LITTLE = 1e-6


@dataclass(frozen=True)
class Scaled:
    """A data set with numbers in [0, 1]."""

    schema: Schema
    points: Floats
    labels: NDArray[Any]


def scaled(name: str, *, columns: bool) -> Scaled:
    """With `columns`, every column is a number."""
    data = datasets.load(name, rules=False)
    points, features = data.points().astype(np.float64), []
    for g, feature in enumerate(data.schema.features):
        if isinstance(feature, Numeric):
            points[:, g] = (points[:, g] - feature.lower) / (feature.upper - feature.lower)
            features.append(Real(feature.name, 0.0, 1.0))
        else:
            features.append(Categorical(feature.name, [f"{option:03d}" for option in range(len(feature.options))]))
    schema = Schema(features)
    if not columns:
        return Scaled(schema, points, data.labels)
    rows = schema.encode(points)
    return Scaled(Schema([Real(f"c{i}", 0.0, 1.0) for i in range(rows.shape[1])]), rows, data.labels)


def _hand_over(folder: Path, data: Scaled, fitted: Any, budget: float) -> None:
    """What `inside/handed.py` reads."""
    features = [
        {"name": f.name, "kind": f.kind}
        | ({"lower": 0.0, "upper": 1.0} if isinstance(f, Numeric) else {"options": len(f.options)})
        for f in data.schema.features
    ]
    said = {"features": features, "seed": 0, "budget": budget}
    (folder / "task.json").write_text(json.dumps(said), encoding="utf-8")
    np.savez(folder / "task.npz", train=data.points[:1], labels=np.zeros(1))
    if hasattr(fitted, "save_model"):
        fitted.save_model(folder / "model.json")
    else:
        import joblib

        joblib.dump(fitted, folder / "model.joblib")


@dataclass
class RaceOutcome:
    """CPU seconds and costs, row by row; infinity where nothing was proven."""

    ours: list[float]
    theirs: list[float]
    proven: tuple[int, int]
    different: int


def race(peer: str, name: str, title: str, rows: int, seconds: float, python: Path) -> RaceOutcome:
    """The same rows for both."""
    norm = PEERS[peer]
    data = scaled(name, columns=norm == "linf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[title]().fit(data.schema.encode(data.points), data.labels)
        model = import_model(fitted, data.schema)
    low = data.points[model.decide(model.scores(data.points)) == 0][:rows]
    question = Question(model=model, target=ClassTarget(model.classes[1]), distance=Distance(norm))
    solver, limits = Search(table_rows=0).prepare(question), Limits(seconds=seconds)
    solver.solve(low[:1], limits)
    told = RaceOutcome([], [], (0, 0), 0)
    with tempfile.TemporaryDirectory() as folder:
        _hand_over(Path(folder), data, fitted, seconds)
        other = Peer(python, peer, Path(folder))
        try:
            for point in low:
                begun = time.process_time()
                (claim,) = solver.solve(point[None, :], limits)
                told.ours.append(time.process_time() - begun)
                said = other.ask(data.schema.encode(point[None, :])[0], 1, 2.0 * seconds)
                told.theirs.append(said.cpu_seconds)
                _judge(told, question, point, claim, said)
        finally:
            other.close()
    return told


def _judge(told: RaceOutcome, question: Question, point: Floats, claim: Claim, said: Said) -> None:
    """Count what is proven, and what differs."""
    ours, theirs = claim.stop is None and claim.point is not None, bool(said.points)
    told.proven = told.proven[0] + ours, told.proven[1] + theirs
    if not said.points and "time limit" not in said.error:
        raise click.ClickException(said.error)
    if ours and theirs:
        assert claim.point is not None
        mine = float(question.measure.between(point, claim.point)) * len(question.schema)
        columns = np.abs(np.array(said.points[0]) - question.schema.encode(point[None, :])[0])
        if question.distance.norm == "linf":
            cost = float(columns.max())
        else:  # another option is a change of two columns
            features = question.schema.features
            parts = [np.ones(1) if isinstance(f, Numeric) else np.full(len(f.options), 0.5) for f in features]
            cost = float(columns @ np.concatenate(parts))
        told.different += not math.isclose(mine, cost, rel_tol=CLOSE, abs_tol=LITTLE)


@click.command("tree-race")
@click.option("--rows", type=click.IntRange(1), default=3, show_default=True, help="People per model.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Limit per row, for everybody.")
@click.option("--data", "names", multiple=True, default=("compas", "credit", "adult"), show_default=True)
@click.option("--model", "models", multiple=True, default=RACED, help="Which models.")
@click.option("--peer", "peers", multiple=True, default=tuple(PEERS), show_default=True)
@cache_option
def command(
    rows: int, seconds: float, names: tuple[str, ...], models: tuple[str, ...], peers: tuple[str, ...], cache: Path
) -> None:
    """OCEAN's CP-SAT and Veritas beside our search, on forests and XGBoost."""
    console = Console(width=150)
    table = Table(
        "peer", "norm", "data", "model", "rows", "proven", "by the peer", "CPU ms", "peer's", "times", "differ"
    )
    for peer in peers:
        try:
            python = environments.python_of(peer, cache, console)
        except NoEnvironment as error:
            console.print(f"{peer}: {error}")
            continue
        ratios: list[float] = []
        for name in names:
            for title in models:
                told = race(peer, name, title, rows, seconds, python)
                mine, theirs = 1e3 * np.array(told.ours), 1e3 * np.array(told.theirs)
                ratios += (theirs / mine).tolist()
                line = [
                    peer, PEERS[peer], name, title, str(len(mine)), str(told.proven[0]), str(told.proven[1]),
                    f"{np.median(mine):.2f}", f"{np.median(theirs):.1f}", f"{np.median(theirs / mine):,.0f}",
                    str(told.different),
                ]  # fmt: skip
                table.add_row(*line)
                console.print(" | ".join(line))
        if ratios:
            mean = math.exp(float(np.log(ratios).mean()))
            console.print(f"{peer}: geometric mean of {len(ratios)} rows {mean:,.0f}, least {min(ratios):.2f}")
    console.print(table)
