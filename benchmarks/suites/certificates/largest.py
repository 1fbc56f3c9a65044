"""The largest proof that is written within a limit on time, and what checking it takes.

Random networks of two hidden layers over 12 and over 5 real numbers, wider and wider; the same under rules; and forests
of more and more trees: until a proof is not written in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from rich.console import Console

from ifonly import Explainer, Limits, Network, Real, Schema, certify, check
from ifonly.errors import UnsupportedQuestion
from ifonly.model import network_model

Step = tuple[str, Callable[[], Explainer]]
LADDERS = {12: (8, 12, 16, 20, 24, 28, 32, 40, 48, 64), 5: (8, 16, 24, 32, 40, 48, 56, 64)}
"""Widths of the hidden layers, by the number of features."""
RULED = (8, 12, 16, 20, 24, 28, 32, 40)
RULES = ("x0 + x1 + x2 <= 6", "if x3 > 1 then x4 >= 2", "x1 >= x2 - 3", "at most 4 changes")
FORESTS = (10, 20, 50, 100, 200, 400, 800)
"""How many trees."""


def run(seconds: float, only: str, console: Console) -> None:
    """Write proofs, each within so many seconds; check those that were. `only`: those with this text in their names."""
    ladders = [
        (f"networks over {n} features", [_network(n, width) for width in widths]) for n, widths in LADDERS.items()
    ]
    ladders.append(("networks over 5 features under rules", [_network(5, width, RULES) for width in RULED]))
    ladders.append(("forests over 12 features, 6 deep", [_forest(12, trees) for trees in FORESTS]))
    for title, steps in ladders:
        if only in title:
            console.print(f"{title}\nmodel        nodes        kB  answer s  certified s   check s  verdict")
            _climb(steps, seconds, console)


def _climb(steps: list[Step], seconds: float, console: Console) -> None:
    for name, make in steps:
        explainer = make().using(limits=Limits(seconds=seconds))
        row = dict.fromkeys(explainer.schema.names, 0.0)
        begun = time.process_time()
        explainer.explain(row)
        answered = time.process_time()
        try:
            certificate = certify(explainer, row)
        except UnsupportedQuestion as error:
            console.print(f"{name:<10} {error}")
            return
        written = time.process_time()
        checked = check(certificate)
        took = answered - begun, written - answered, time.process_time() - written
        size = f"{name:<10} {checked.nodes:>7,} {len(certificate.content) / 1000:>9,.1f}"
        console.print(f"{size} {took[0]:>9.2f} {took[1]:>12.2f} {took[2]:>9.2f}  {checked.verdict}")


def _network(features: int, width: int, rules: tuple[str, ...] = ()) -> Step:
    return f"2x{width}", lambda: _of_network(features, width, rules)


def _forest(features: int, trees: int) -> Step:
    return f"{trees} trees", lambda: _of_trees(features, trees)


def _of_trees(features: int, trees: int) -> Explainer:
    """Trees fitted to the decisions of a random network."""
    from sklearn.ensemble import RandomForestClassifier

    teacher, rng = _of_network(features, 12).model, np.random.default_rng(trees)
    points = rng.uniform(-10.0, 10.0, size=(4000, features))
    forest = RandomForestClassifier(trees, max_depth=6, random_state=0)
    forest.fit(points, teacher.decide(teacher.scores(points)))
    return Explainer(forest, schema=teacher.schema, classes=("no", "yes"))


def _of_network(features: int, width: int, rules: tuple[str, ...] = ()) -> Explainer:
    rng = np.random.default_rng(width)
    schema = Schema([Real(f"x{k}", -10.0, 10.0) for k in range(features)], rules=rules)
    sizes = (features, width, width, 1)
    layers = [
        (rng.normal(size=(after, before)) / np.sqrt(before), rng.normal(size=after) / 2.0)
        for before, after in pairwise(sizes)
    ]
    scores = Network.of(layers).scores(rng.normal(size=(2000, features)))[:, 0]
    layers[-1] = (layers[-1][0], layers[-1][1] - np.quantile(scores, 0.95))  # few rows are favourable
    return Explainer(network_model(Network.of(layers), schema, classes=("no", "yes")))
