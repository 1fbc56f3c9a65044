"""Attributions: SHAP's (KernelExplainer for networks, TreeExplainer for forests) where `shap` is installed, else
Shapley values sampled here by permutations."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from benchmarks.suites.why.subjects import Subject

Floats = NDArray[np.float64]
BACKGROUND = 50
"""Rows that attributions are relative to."""
PERMUTATIONS = 100


def named() -> str:
    """Whose attributions they are."""
    return f"shap {version('shap')}" if find_spec("shap") else "sampled Shapley values"


def attributions(subject: Subject, points: Floats) -> Floats:
    """(person, feature): how much each feature adds to the score of a person, relative to other rows."""
    model, rng = subject.explainer.model, np.random.default_rng(0)
    every = subject.data.points()
    background = every[rng.choice(len(every), BACKGROUND, replace=False)]

    def score(rows: Floats) -> Floats:
        return np.asarray(model.scores(np.asarray(rows))[:, -1])

    if not find_spec("shap"):
        return np.array([_sampled(score, point, background, rng) for point in points])
    import shap

    if subject.forest is None:
        return np.asarray(shap.KernelExplainer(score, background, seed=0).shap_values(points, silent=True))
    schema = subject.data.schema
    explained = shap.TreeExplainer(subject.forest, schema.encode(background))
    values = np.asarray(explained.shap_values(schema.encode(points), check_additivity=False))[:, :, 1]
    return np.stack([values[:, columns].sum(axis=1) for columns in schema.feature_columns], axis=1)


def _sampled(score: Callable[[Floats], Floats], point: Floats, background: Floats, rng: np.random.Generator) -> Floats:
    """Interventional Shapley values by random permutations, each from a row of the background to the person's."""
    total = np.zeros(len(point))
    for _ in range(PERMUTATIONS):
        order = rng.permutation(len(point))
        steps = np.repeat(background[rng.integers(len(background))][None, :], len(point) + 1, axis=0)
        for k, g in enumerate(order.tolist(), 1):
            steps[k:, g] = point[g]
        total[order] += np.diff(score(steps))
    return total / PERMUTATIONS
