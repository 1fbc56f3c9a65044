"""Networks with smooth activations: how long the nearest row takes (COMPAS, Credit and Adult; CPU time, one thread)."""

from __future__ import annotations

import time
import warnings
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ifonly import ClassTarget, Distance, Limits, datasets, import_model
from ifonly.model import Model
from ifonly.problem import Question
from ifonly.solvers.search import Search
from ifonly.tolerances import DEFAULT

SKLEARN = {"tanh": "tanh", "sigmoid": "logistic"}
TRAINED_ON = 4_000
"""Rows: of torch's networks, which are trained on all at once."""
TORCH = {"softplus": "Softplus", "gelu": "GELU", "silu": "SiLU", "elu": "ELU"}


def _sklearn(activation: str, width: int, x: Any, labels: Any) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    perceptron = MLPClassifier((width, width), activation=SKLEARN[activation], max_iter=30, random_state=0)
    return make_pipeline(StandardScaler(), perceptron).fit(x, labels)


def _torch(activation: str, width: int, x: Any, labels: Any) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    scale = nn.BatchNorm1d(x.shape[1], affine=False)
    bend = getattr(nn, TORCH[activation])
    module = nn.Sequential(
        scale, nn.Linear(x.shape[1], width), bend(), nn.Linear(width, width), bend(), nn.Linear(width, 1)
    )
    some = np.random.default_rng(0).permutation(len(x))[:TRAINED_ON]
    rows, resolved = torch.tensor(x[some], dtype=torch.float32), torch.tensor(labels[some], dtype=torch.float32)
    trained = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(200):
        trained.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(module(rows)[:, 0], resolved).backward()
        trained.step()
    return module


@click.command("smooth")
@click.option("--rows", type=click.IntRange(1), default=20, show_default=True, help="People per network.")
@click.option("--seconds", type=float, default=10.0, show_default=True, help="Limit per row.")
@click.option("--data", "names", multiple=True, default=("compas", "credit", "adult"), show_default=True)
@click.option("--activation", "activations", multiple=True, default=(*SKLEARN, *TORCH), show_default=True)
@click.option("--width", "widths", type=int, multiple=True, default=(10, 20), show_default=True)
@click.option("--distance", "norms", multiple=True, default=("l1", "l2"), show_default=True)
def command(rows: int, seconds: float, names: tuple[str, ...], activations: tuple[str, ...], widths: tuple[int, ...],
            norms: tuple[str, ...]) -> None:  # fmt: skip
    """The nearest row to change class 0 to class 1, under networks of two hidden layers."""
    console = Console(width=130)
    table = Table("data", "network", "in", "norm", "proven", "median ms", "worst ms", "median nodes", "most nodes")
    for name in names:
        data = datasets.load(name, rules=False)
        points = data.points()
        x = data.schema.encode(points)
        for activation in activations:
            for width in widths:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that training has not converged
                    make = _sklearn if activation in SKLEARN else _torch
                    model = import_model(make(activation, width, x, data.labels), data.schema)
                low = points[model.decide(model.scores(points)) == 0][:rows]
                for norm in norms:
                    title = f"{activation} 2x{width}"
                    told = [name, title, model.precision, norm, *_asked(model, low, norm, seconds)]
                    table.add_row(*told)
                    console.print(" | ".join(told))
    console.print(table)


def _asked(model: Model, points: Any, norm: str, seconds: float) -> list[str]:
    """Proven, median and worst milliseconds, median and most nodes."""
    question = Question(model=model, target=ClassTarget(model.classes[1]), distance=Distance(norm))
    solver, limits, taken, nodes, proven = Search(table_rows=0).prepare(question), Limits(seconds=seconds), [], [], 0
    solver.solve(points[:1], limits)  # not the first: whatever is loaded once is loaded now
    for point in points:
        begun = time.process_time()
        claim = solver.solve(point[None, :], limits)[0]
        taken.append(1e3 * (time.process_time() - begun))
        nodes.append(claim.nodes)
        far = np.inf if claim.point is None else float(question.measure.between(point, claim.point))
        proven += claim.lower == np.inf or DEFAULT.close(claim.lower, far)
    return [
        f"{proven} of {len(points)}",
        f"{np.median(taken):.2f}", f"{max(taken):.2f}", f"{np.median(nodes):.0f}", f"{max(nodes):,}",
    ]  # fmt: skip
