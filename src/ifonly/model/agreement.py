"""Validation of an import: the imported function and the original are compared on scores and decisions.

The rows are random over the whole schema: every option of every feature occurs, and so do the ends of every interval,
because that is where a clipped scaler or an unknown category would show. Trees are also compared on both sides of every
split that their library has, and at every option: random rows seldom reach some splits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.model import Model
from ifonly.model.trees import Trees, edge_points
from ifonly.schema import Choice, Numeric, Schema
from ifonly.tolerances import DEFAULT

ROWS = 1000
TIE = 1e-9
"""Relative to 1 + |score|: closer to a tie than this, the decision may depend on rounding."""
Decided: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.intp]]


def check_agreement(model: Model, *, at: NDArray[np.float64] | None = None, decided: Decided | None = None) -> Model:
    """The model with its largest deviation filled in; a ModelError when that is more than rounding.

    `at` are points to compare at besides random ones: those at all splits of a library's trees, where it has some.
    `decided` gives the decisions of the original, by the number of the class.
    """
    points = comparison_rows(model.schema, ROWS, seed=0)
    if at is None and isinstance(model.function, Trees):
        at = edge_points(model.function.ensemble, model.schema)
    points = points if at is None else np.concatenate([points, at])
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
        ours, theirs = model.exact_scores(points), model.scores(points)
    _check_finite(model, points, ours, theirs)
    difference = np.abs(ours - theirs)
    allowed, worst = _allowed(model, float(np.abs(ours).max())), float(difference.max())
    beyond = difference - np.maximum(allowed, _rounding(model, points)) if worst > allowed else np.zeros(1)
    if not beyond.max() <= 0.0:  # a bound that is not a number allows nothing
        row, score = np.unravel_index(int(beyond.argmax()), beyond.shape)  # of NaN, if there is one
        found = difference[row, score]
        raise ModelError(
            f"The imported model and the original disagree by {found:.3g} "
            f"(allowed: {found - beyond[row, score]:.3g}), e.g. on the row "
            f"{model.schema.row(points[row])}: {ours[row].tolist()} against {theirs[row].tolist()}. "
            f"Is the schema's column order the one that the model was trained with?"
        )
    if decided is not None:
        _check_decisions(model, points, ours, decided(points), 2.0 * worst)
    if isinstance(model.function, Trees) and worst > 0.0:  # the sum is not the library's, bit for bit
        model = replace(model, function=model.function.in_any_order())
    return replace(model, deviation=worst)


def _check_finite(
    model: Model, points: NDArray[np.float64], ours: NDArray[np.float64], theirs: NDArray[np.float64]
) -> None:
    for who, scores in (("imported model", ours), ("model", theirs)):
        wrong = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(wrong):
            raise ModelError(
                f"The {who} gives NaN or infinite scores on rows of the schema, e.g. on "
                f"{model.schema.row(points[wrong[0]])}; narrow the schema's bounds, or repair the model."
            )


def _check_decisions(
    model: Model, points: NDArray[np.float64], scores: NDArray[np.float64], theirs: NDArray[np.intp], rounding: float
) -> None:
    """The original must decide as its scores do; a wrapper or a runtime may have another decision rule."""
    tie = model.function.tie if isinstance(model.function, Trees) else 0.0
    clear = score_margin_of(scores) > rounding + 2.0 * tie + TIE * (1.0 + np.abs(scores).max(axis=1))
    ours = model.decide(scores)
    for i in np.flatnonzero(clear & (ours != theirs))[:1].tolist():
        other = repr(model.classes[theirs[i]]) if theirs[i] >= 0 else "none of its classes"
        raise ModelError(
            f"The model predicts {other} where its own scores {scores[i].tolist()} say {model.classes[ours[i]]!r}, on "
            f"the row {model.schema.row(points[i])}; does it decide by a rule of its own?"
        )


def score_margin_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The margin of each row of scores: between the highest and the next, or of one score to 0."""
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    best = np.sort(scores, axis=1)
    return np.asarray(best[:, -1] - best[:, -2])


def _allowed(model: Model, largest: float) -> float:
    """The allowed difference: a share of the largest score; for trees the error of another order of summation."""
    if isinstance(model.function, Trees):
        nowhere = np.zeros((1, 0))
        error = model.function.in_any_order().error(nowhere, nowhere, model.precision, np.zeros(0, dtype=np.bool_))
        return float(error.max())
    float64 = model.precision == "float64"
    relative = DEFAULT.agreement_relative if float64 else DEFAULT.agreement_relative_float32
    return relative * (1.0 + largest)


def _rounding(model: Model, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the original and this float64 evaluation may each lose of a score at these points, in any order of sums.

    Large numbers that cancel lose more than a share of what is left of them; the search allows for the same bound.
    """
    encoded = model.schema.encode(points)
    return model.error_over(encoded, encoded) + model.function.error(encoded, encoded, "float64", model.exact)


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
