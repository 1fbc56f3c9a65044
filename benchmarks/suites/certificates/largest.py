"""The largest proof that is written within a limit on time, and what checking it takes.

Random networks of two hidden layers over 12 and over 5 real numbers, wider and wider, until a proof is not written in
time.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
from rich.console import Console

from ifonly import Explainer, Limits, Network, Real, Schema, certify, check
from ifonly.errors import UnsupportedQuestion
from ifonly.model import network_model

LADDERS = {12: (8, 12, 16, 20, 24, 28, 32, 40, 48, 64), 5: (8, 16, 24, 32, 40, 48, 56, 64)}
"""Widths of the hidden layers, by the number of features."""


def run(seconds: float, console: Console) -> None:
    """Write proofs, each within so many seconds; check those that were."""
    for features, widths in LADDERS.items():
        console.print(f"{features} features\nnetwork      nodes        kB  answer s  certified s   check s  verdict")
        _climb(features, widths, seconds, console)


def _climb(features: int, widths: tuple[int, ...], seconds: float, console: Console) -> None:
    for width in widths:
        explainer = _explainer(features, width, seconds)
        row = dict.fromkeys(explainer.schema.names, 0.0)
        begun = time.process_time()
        explainer.explain(row)
        answered = time.process_time()
        try:
            certificate = certify(explainer, row)
        except UnsupportedQuestion as error:
            console.print(f"2x{width:<8} {error}")
            return
        written = time.process_time()
        checked = check(certificate)
        took = answered - begun, written - answered, time.process_time() - written
        size = f"2x{width:<8} {checked.nodes:>7,} {len(certificate.content) / 1000:>9,.1f}"
        console.print(f"{size} {took[0]:>9.2f} {took[1]:>12.2f} {took[2]:>9.2f}  {checked.verdict}")


def _explainer(features: int, width: int, seconds: float) -> Explainer:
    rng = np.random.default_rng(width)
    schema = Schema([Real(f"x{k}", -10.0, 10.0) for k in range(features)])
    sizes = (features, width, width, 1)
    layers = [
        (rng.normal(size=(after, before)) / np.sqrt(before), rng.normal(size=after) / 2.0)
        for before, after in pairwise(sizes)
    ]
    scores = Network.of(layers).scores(rng.normal(size=(2000, features)))[:, 0]
    layers[-1] = (layers[-1][0], layers[-1][1] - np.quantile(scores, 0.95))  # few rows are favourable
    model = network_model(Network.of(layers), schema, classes=("no", "yes"))
    return Explainer(model).using(limits=Limits(seconds=seconds))
