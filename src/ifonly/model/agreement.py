"""Is the imported function the model? Compared on random rows, every time a model is imported.

The rows are drawn over the whole schema: every option of every feature occurs, and so do the ends of every interval,
because that is where a clipped scaler or an unknown category would show. Trees are also compared at their splits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.model import Model
from ifonly.model.trees import Trees
from ifonly.model.trees.edges import edge_points
from ifonly.schema import Choice, Numeric, Schema
from ifonly.tolerances import DEFAULT, Tolerances

ROWS = 1000


def check_agreement(model: Model, *, rows: int = ROWS, seed: int = 0, tolerances: Tolerances = DEFAULT) -> Model:
    """The model with its largest deviation filled in; a ModelError when that is more than rounding."""
    points = comparison_rows(model.schema, rows, seed)
    if isinstance(model.function, Trees):
        points = np.concatenate([points, edge_points(model.function, seed=seed)])
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in words
        ours, theirs = model.exact_scores(points), model.scores(points)
    for who, scores in (("imported model", ours), ("model", theirs)):
        wrong = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(wrong):
            raise ModelError(
                f"The {who} gives NaN or infinite scores on rows of the schema, e.g. on "
                f"{model.schema.row(points[wrong[0]])}; narrow the schema's bounds, or repair the model."
            )
    difference = np.abs(ours - theirs)
    allowed, worst = _allowed(model, float(np.abs(ours).max()), tolerances), float(difference.max())
    if worst > allowed:
        row = int(difference.max(axis=1).argmax())
        raise ModelError(
            f"The imported model and the original disagree by {worst:.3g} (allowed: {allowed:.3g}), e.g. on the row "
            f"{model.schema.row(points[row])}: {ours[row].tolist()} against {theirs[row].tolist()}. "
            f"Is the schema's column order the one that the model was trained with?"
        )
    if isinstance(model.function, Trees) and worst > 0.0:  # the sum is not the library's, bit for bit
        model = replace(model, function=model.function.in_any_order())
    return replace(model, deviation=worst)


def _allowed(model: Model, largest: float, tolerances: Tolerances) -> float:
    """Rounding: a share of the largest score, and for trees no more than another order of summation can do."""
    if isinstance(model.function, Trees):
        nowhere = np.zeros((1, 0))
        error = model.function.in_any_order().error(nowhere, nowhere, model.precision, np.zeros(0, dtype=np.bool_))
        return float(error.max())
    relative = tolerances.agreement_relative if model.precision == "float64" else tolerances.agreement_relative_float32
    return relative * (1.0 + largest)


def comparison_rows(schema: Schema, rows: int, seed: int) -> NDArray[np.float64]:
    """Random points, at least `rows`, with every option of every feature and both ends of every interval."""
    rng = np.random.default_rng(seed)
    count = max([rows, 2] + [len(f.options) for f in schema.features if isinstance(f, Choice)])
    points = schema.sample(count, rng)
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            points[rng.choice(count, 2, replace=False), i] = feature.lower, feature.upper
        else:
            points[:, i] = rng.permutation(np.arange(count) % len(feature.options))
    return points
