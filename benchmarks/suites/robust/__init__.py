"""`robust`: the nearest row that every network within delta of the weights accepts, beside MCE-R and the nearest row.

Networks are trained on inputs scaled to [0, 1], as the method's authors do. Of each answer: its distance, how far the
weights may change, how many of many drawn networks within delta refuse it, and how many models that were trained again
(on bootstrap samples, from other initial weights) accept it.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.suites.robust.mce_r import accepted_by_all, raised_until_robust
from benchmarks.terminal import console
from ifonly import Explainer, Limits, RobustToWeights, datasets, import_model
from ifonly.model.own_layers import OwnLayers, own_layers

TRAINING_ROWS = 4000
AGAIN = 8
"""Models that are trained again: half on bootstrap samples, half from other initial weights."""
DRAWN_AT_ONCE = 500
GAP = 1e-6
"""Distances closer than this are equal: it is the gap within which an answer is called nearest."""


@dataclass
class Answered:
    """What one way of answering gave, person by person; NaN where it has no row."""

    distance: list[float] = field(default_factory=list)
    proven: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    refusing: int = 0
    kept: list[float] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)


@click.command("robust")
@click.option("--rows", type=click.IntRange(1), default=50, show_default=True, help="Denied people per network.")
@click.option("--delta", type=click.FloatRange(0.0), default=0.02, show_default=True, help="Change of each weight.")
@click.option("--draws", type=click.IntRange(0), default=10_000, show_default=True, help="Networks per answer.")
@click.option("--seconds", type=click.FloatRange(0.1), default=30.0, show_default=True, help="Limit of each question.")
@click.option("--hidden", multiple=True, default=("16", "10,10", "32,32"), show_default=True, help="Hidden layers.")
@click.option("--data", multiple=True, default=("credit", "adult"), show_default=True, help="Data sets.")
def command(
    rows: int, delta: float, draws: int, seconds: float, hidden: tuple[str, ...], data: tuple[str, ...]
) -> None:
    """Robustness to changed weights, beside MCE-R: distances, drawn networks, models trained again."""
    table = Table("data set", "hidden", "way", "answered", "nearest", "distance: mean", "proven delta: least",
                  "drawn: refuse", "trained again: accept", "CPU ms: median", "worst")  # fmt: skip
    for name in data:
        for layers in hidden:
            for line in _compared(name, tuple(map(int, layers.split(","))), rows, delta, draws, seconds):
                table.add_row(name, layers, *line)
    console().print(table)


def _compared(name: str, hidden: tuple[int, ...], rows: int, delta: float, draws: int, seconds: float) -> list[Any]:
    loaded = datasets.load(name)
    train, test = loaded.split()
    encoded, labels, points = loaded.encoded(), loaded.labels, loaded.points()
    first, *others = (_trained(encoded, labels, train, hidden, k) for k in range(1 + AGAIN))
    model = import_model(first, loaded.schema)
    again = [import_model(one, loaded.schema) for one in others]
    denied = test[model.decide(model.scores(points[test])) == 0][:rows]
    explainer = Explainer(model).using(limits=Limits(seconds=seconds), reasons=False)
    target, robust = model.classes[1], RobustToWeights(delta)

    def nearest(row: Any) -> Any:
        return explainer.explain(row, target=target)

    def ours(row: Any) -> Any:
        return explainer.explain(row, target=target, constraints=[robust])

    def mce_r(row: Any) -> Any:
        return raised_until_robust(explainer, row, target, delta)

    ways = {"nearest": nearest, "MCE-R": mce_r, "RobustToWeights": ours}
    found = {way: Answered() for way in ways}
    for one in ways.values():
        one(loaded.row(int(denied[0])))
    for i in denied.tolist():
        for way, ask in ways.items():
            begun = time.process_time()
            answer = ask(loaded.row(i))
            found[way].milliseconds.append(1e3 * (time.process_time() - begun))
            row = None if answer is None else answer.counterfactual
            found[way].statuses.append("none" if answer is None else answer.status)
            found[way].distance.append(np.nan if row is None else answer.upper)
            if row is not None:
                point = loaded.schema.read(row)[None, :]
                found[way].proven.append(explainer.robustness(answer).lower)
                found[way].refusing += way != "nearest" and _refused(model, point, delta, draws, i)
                found[way].kept.append(float(np.mean([one.decide(one.scores(point))[0] == 1 for one in again])))
                if way == "RobustToWeights":
                    assert accepted_by_all(model, point, delta)
    _say_differences(name, hidden, found)
    return [_line(way, one, way == "nearest") for way, one in found.items()]


def _line(way: str, one: Answered, plain: bool) -> list[str]:
    distance, taken = np.array(one.distance), np.array(one.milliseconds)
    return [
        way, f"{np.isfinite(distance).sum()} of {len(distance)}", f"{one.statuses.count('nearest')}",
        f"{np.nanmean(distance):.5f}",
        f"{min(one.proven, default=np.nan):.5f}", "-" if plain else f"{one.refusing}",
        f"{100 * np.mean(one.kept):.1f} %", f"{np.median(taken):.1f}", f"{taken.max():.0f}",
    ]  # fmt: skip


def _say_differences(name: str, hidden: tuple[int, ...], found: dict[str, Answered]) -> None:
    theirs, ours = np.array(found["MCE-R"].distance), np.array(found["RobustToWeights"].distance)
    both = np.isfinite(theirs) & np.isfinite(ours)
    more = ours[both] - theirs[both]
    console().print(
        f"{name} {hidden}: of {both.sum()} that both answer, ours is farther for {(more > GAP).sum()} (at most by "
        f"{more.max(initial=0.0):.2g}), nearer for {(more < -GAP).sum()}; on average "
        f"{np.mean(ours[both] / theirs[both]):.3f} of MCE-R's distance"
    )


def _trained(encoded: Any, labels: Any, train: Any, hidden: tuple[int, ...], k: int) -> Any:
    """The first model, and others trained again: odd ones on a bootstrap sample, even ones from other weights."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    rows = np.random.default_rng(0).choice(train, min(TRAINING_ROWS, len(train)), replace=False)
    sample = np.random.default_rng(k).choice(rows, len(rows)) if k % 2 else rows
    network = make_pipeline(
        MinMaxScaler().fit(encoded[rows]), MLPClassifier(hidden, random_state=0 if k % 2 else k, max_iter=60)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return network.fit(encoded[sample], labels[sample])


def _refused(model: Any, point: Any, delta: float, draws: int, seed: int) -> int:
    """How many of so many networks within delta refuse the row; half of them at corners."""
    rng, own = np.random.default_rng(seed), own_layers(model)
    encoded = model.schema.encode(point)
    return sum(
        _refusing(own, encoded, delta, min(DRAWN_AT_ONCE, draws - done), rng) for done in range(0, draws, DRAWN_AT_ONCE)
    )


def _refusing(own: OwnLayers, encoded: Any, delta: float, many: int, rng: Any) -> int:
    h = np.repeat(own.inputs_of(encoded), many, axis=0)
    corner = (np.arange(many) % 2 == 0)[:, None]
    for k, (weight, bias) in enumerate(own.layers):
        moves = []
        for part in (weight, bias):
            move = rng.uniform(-delta, delta, (many, part.size))
            moves.append(np.where(corner, np.where(move > 0.0, delta, -delta), move).reshape(many, *part.shape))
        h = np.einsum("noi,ni->no", weight + moves[0], h) + bias + moves[1]
        h = np.maximum(h, 0.0) if k + 1 < len(own.layers) else h
    return int((h[:, 0] <= 0.0).sum())
