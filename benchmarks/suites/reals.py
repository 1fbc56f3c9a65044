"""Networks over many real features: rows proven and CPU time, beside the search without probing and Gurobi's programs.

Data sets of scikit-learn, standardised; networks by `MLPClassifier`, seed 0; rows that the network decides as class 0.
Each contestant answers the same rows one after the other, in one process, on one thread. A ratio is the geometric mean
over rows of its CPU time to ours; a row that it leaves open counts with the time that it took.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.asking import contestants
from benchmarks.asking.contestants import OURS
from benchmarks.terminal import console
from ifonly import ClassTarget, Distance, Limits, Network, Real, Schema
from ifonly.model import Model, network_model
from ifonly.problem import Question
from ifonly.results import Method
from ifonly.solvers.search import Search, load_kernels
from ifonly.tolerances import DEFAULT

BEFORE = "without probing"
FAMILIES = ("breast-cancer", "wine", "digits", "synthetic-20", "synthetic-40", "synthetic-60")
SHAPES = ("2x10", "2x20", "2x32", "2x48", "2x64", "3x20", "3x32")
SOON = 0.01
"""Seconds within which some row should be known."""
LEAST_SECONDS = 1e-4
"""CPU times below count as this in ratios."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """One row by one contestant."""

    proven: bool
    lower: float
    upper: float
    seconds: float


def _data(family: str) -> tuple[Floats, NDArray[np.int64]]:
    from sklearn import datasets

    if family.startswith("synthetic-"):
        features = int(family.removeprefix("synthetic-"))
        x, y = datasets.make_classification(
            600, features, n_informative=features // 2, n_redundant=features // 4, random_state=0
        )
        return x, y
    load = {"breast-cancer": datasets.load_breast_cancer, "wine": datasets.load_wine, "digits": datasets.load_digits}
    x, y = load[family](return_X_y=True)
    positive = {"breast-cancer": 1, "wine": 1, "digits": 8}[family]
    moves = np.ptp(x, axis=0) > 0.0
    return x[:, moves], (y == positive).astype(np.int64)


def _subject(family: str, shape: str) -> tuple[Model, Floats]:
    """A network, and the rows that it decides as class 0."""
    from sklearn.neural_network import MLPClassifier

    x, y = _data(family)
    layers, width = (int(part) for part in shape.split("x"))
    mean, spread = x.mean(axis=0), x.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that training has not converged
        trained = MLPClassifier((width,) * layers, random_state=0, max_iter=200).fit((x - mean) / spread, y)
    weights, biases = [w.T for w in trained.coefs_], list(trained.intercepts_)
    biases[0] = biases[0] - weights[0] @ (mean / spread)
    weights[0] = weights[0] / spread
    schema = Schema([Real(f"x{j}", float(x[:, j].min()), float(x[:, j].max())) for j in range(x.shape[1])])
    model = network_model(Network.of(list(zip(weights, biases, strict=True))), schema)
    denied = np.flatnonzero(model.decide(model.scores(x)) == 0)
    return model, x[np.random.default_rng(0).permutation(denied)]


def _method(name: str) -> Method:
    return Search(probing="never") if name == BEFORE else contestants.make(name)


def _outcomes(question: Question, points: Floats, name: str, seconds: float) -> list[Outcome]:
    solver, limits, outcomes = _method(name).prepare(question, DEFAULT), Limits(seconds=seconds), []
    for point in points:
        begun = time.process_time()
        claim = solver.solve(point[None, :], limits)[0]
        taken = time.process_time() - begun
        upper = math.inf if claim.point is None else float(question.measure.between(point, claim.point))
        outcomes.append(Outcome(DEFAULT.close(claim.lower, upper), claim.lower, upper, taken))
    return outcomes


def _contradictions(ours: list[Outcome], theirs: list[Outcome]) -> int:
    """Rows of which one's lower bound is above the other's row, beyond what a MIP's tolerances allow."""
    return sum(
        a.lower > b.upper * (1.0 + 1e-5) + 1e-6 or b.lower > a.upper * (1.0 + 1e-4) + 1e-5
        for a, b in zip(ours, theirs, strict=True)
    )


def _ratio(ours: list[Outcome], theirs: list[Outcome]) -> float:
    logs = [
        math.log(max(b.seconds, LEAST_SECONDS) / max(a.seconds, LEAST_SECONDS))
        for a, b in zip(ours, theirs, strict=True)
    ]
    return math.exp(sum(logs) / len(logs))


def _told(name: str, ours: list[Outcome], theirs: list[Outcome]) -> list[str]:
    taken = [one.seconds for one in theirs]
    return [
        name, f"{sum(one.proven for one in theirs)} of {len(theirs)}",
        f"{np.median(taken):.4f}", f"{max(taken):.3f}",
        "" if name == OURS else f"{_ratio(ours, theirs):.1f}",
        "" if name == OURS else str(sum(b.proven and not a.proven for a, b in zip(ours, theirs, strict=True))),
        "" if name == OURS else str(_contradictions(ours, theirs)),
    ]  # fmt: skip


def _cells(families: tuple[str, ...], shapes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for family in families:
        for shape in shapes:
            yield family, shape


@click.command("reals")
@click.option("--rows", type=click.IntRange(1), default=8, show_default=True, help="Rows per network.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Limit per row and contestant.")
@click.option("--family", "families", type=click.Choice(FAMILIES), multiple=True, default=FAMILIES, show_default=True)
@click.option("--shape", "shapes", multiple=True, default=SHAPES, show_default=True)
@click.option("--distance", "norms", multiple=True, default=("l1",), show_default=True)
@click.option("--against", multiple=True, default=(BEFORE, "gurobi", "mip-obj"), show_default=True)
def command(rows: int, seconds: float, families: tuple[str, ...], shapes: tuple[str, ...], norms: tuple[str, ...],
            against: tuple[str, ...]) -> None:  # fmt: skip
    """Many real features: the search, the search without probing, and Gurobi."""
    load_kernels()
    table = Table("data", "network", "norm", "method", "proven", "median s", "worst s", "times ours", "left open by us",
                  "contradictions")  # fmt: skip
    soon = asked = 0
    for family, shape in _cells(families, shapes):
        model, denied = _subject(family, shape)
        points = denied[:rows]
        for norm in norms:
            question = Question(model=model, target=ClassTarget(model.classes[1]), distance=Distance(norm))
            _outcomes(question, points[:1], OURS, seconds)  # whatever is loaded once is loaded now
            ours = _outcomes(question, points, OURS, seconds)
            soon += sum(math.isfinite(one.upper) for one in _outcomes(question, points, OURS, SOON))
            asked += len(points)
            for name in (OURS, *against):
                theirs = ours if name == OURS else _outcomes(question, points, name, seconds)
                told = [family, shape, norm, *_told(name, ours, theirs)]
                table.add_row(*told)
                console().print(" | ".join(told))
    console().print(table)
    console().print(f"A row within {1e3 * SOON:g} ms: {soon} of {asked}.")
