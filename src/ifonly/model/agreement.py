"""Is the imported network the model? Compared on random rows, every time a model is imported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ifonly.errors import ModelError
from ifonly.model.model import Model
from ifonly.tolerances import DEFAULT, Tolerances

ROWS = 1000
SATURATED = 25.0
"""Log-odds beyond this are lost to rounding in a model that answers with probabilities."""


def check_agreement(model: Model, *, rows: int = ROWS, seed: int = 0, tolerances: Tolerances = DEFAULT) -> Model:
    """The model with its largest deviation filled in; a ModelError when that is more than rounding."""
    points = model.schema.sample(rows, np.random.default_rng(seed))
    ours = model.network.scores(model.schema.encode(points))
    theirs = model.scores(points)
    if not np.isfinite(ours).all() or np.isnan(theirs).any():
        raise ModelError("The model gives NaN or infinite scores on rows of the schema.")
    clipped_ours, clipped_theirs = np.clip(ours, -SATURATED, SATURATED), np.clip(theirs, -SATURATED, SATURATED)
    exact = np.isfinite(theirs) & (np.abs(theirs) < SATURATED)
    difference = np.where(exact, np.abs(ours - np.where(exact, theirs, 0.0)), np.abs(clipped_ours - clipped_theirs))
    if model.network.outputs == 1 and not model.is_classifier:
        difference = np.abs(ours - theirs)
    allowed = tolerances.agreement_relative if model.precision == "float64" else tolerances.agreement_relative_float32
    scale = allowed * (1.0 + np.abs(ours).max())
    worst = float(difference.max())
    if worst > scale:
        row = int(difference.max(axis=1).argmax())
        raise ModelError(
            f"The imported network and the model disagree by {worst:.3g} (allowed: {scale:.3g}), e.g. on the row "
            f"{model.schema.row(points[row])}: {ours[row].tolist()} against {theirs[row].tolist()}. "
            f"Is the schema's column order the one that the model was trained with?"
        )
    return replace(model, deviation=worst)
