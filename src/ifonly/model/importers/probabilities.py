"""Classifiers that return probabilities: scores are the logits before the last activation, ties are those of the
probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.agreement import ROWS, check_agreement, comparison_rows
from ifonly.model.flow import Flow
from ifonly.model.importers.flow_operations import Final
from ifonly.model.model import Logistic, Model, Scores, class_names
from ifonly.schema import Schema

LOG_ODDS = 1e-5
"""How well a reported probability must follow from the score, also in the float32 that some models report."""


def follow_from(scores: Scores, reported: Scores, schema: Schema) -> bool:
    """Are the scores the log-odds of the probabilities that a model reports?"""
    points = comparison_rows(schema, ROWS, seed=2)
    return np.allclose(reported(points), Logistic(scores)(points), rtol=0.0, atol=LOG_ODDS)


def settled(logits: NDArray[np.float64], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logits, with ties where the model's probabilities tie: rounding to a probability can lose a tiny lead.

    One column: the logit of the second class, 0 where its probability is exactly one half. Several: one logit per class
    (probabilities may also be their logarithms), all classes of the largest probability with the largest logit.
    """
    if logits.shape[1] == 1:
        return np.where(probabilities == 0.5, 0.0, logits)
    largest = probabilities == probabilities.max(axis=1, keepdims=True)
    return np.where(largest, logits.max(axis=1, keepdims=True), logits)


def as_labelled(scores: NDArray[np.float64], labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Scores that decide for the labels: where they do not, those of the label's class are made the largest, barely."""
    rows = np.arange(len(scores))
    if scores.shape[1] == 1:
        second = scores[:, 0] > 0.0
        nearest = np.where(labels == 1, np.nextafter(0.0, 1.0), 0.0)
        return np.where(second == (labels == 1), scores[:, 0], nearest)[:, None]
    wrong = scores.argmax(axis=1) != labels
    if not wrong.any():
        return scores
    largest = scores.max(axis=1)
    result = np.where(wrong[:, None], np.minimum(scores, np.nextafter(largest, -np.inf)[:, None]), scores)
    result[rows[wrong], labels[wrong]] = largest[wrong]
    return result


@dataclass(frozen=True)
class Reported:
    """Probabilities of classes from what the model gives: that of the second of two, each, or their logarithms."""

    outputs: Scores

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        own = np.asarray(self.outputs(points), dtype=np.float64).reshape(len(points), -1)
        if own.shape[1] == 1:
            return np.column_stack([1.0 - own, own])
        return np.exp(own) if (own <= 0.0).all() else own


def reported(scores: Scores, outputs: Scores, schema: Schema) -> Reported:
    """The probabilities that the whole model gives, which must be those of the scores before its last activation."""
    found = Reported(outputs)
    if not follow_from(scores, found, schema):
        raise ModelError(
            "What the model gives does not follow from what it has before its last activation; end it with one sigmoid "
            "or softmax, and nothing after that."
        )
    return found


def model_of_flow(
    value: Flow | Final, original: Any, schema: Schema, *, classes: tuple[Any, ...], regression: bool, source: str
) -> Model:
    """The Model of a framework's scores, checked against the original; `original.before` gives the logits of a model
    that gives probabilities."""
    final, flow = (value, value.flow) if isinstance(value, Final) else (None, value)
    if final is not None:
        check_final(final.operation, final.activation, flow.width, regression=regression)
    network = flow.to_network()
    made = Model(
        function=network,
        schema=schema,
        original=original,
        classes=class_names(classes, network.outputs, regression=regression),
        source=source,
        precision=original.precision,
        probabilities=None if final is None else reported(original, replace(original, before=None), schema),
    )
    return check_agreement(made)


def check_final(operation: str, activation: Literal["sigmoid", "softmax"], outputs: int, *, regression: bool) -> None:
    """Can the last activation be taken off without changing what the model decides?"""
    if regression:
        raise UnsupportedModel(
            f"The last operation {operation} is not piecewise linear, so its output cannot be a prediction here; "
            f"leave it out of the model, or leave out regression=True.",
            operation=operation,
        )
    if activation == "sigmoid" and outputs != 1:
        raise UnsupportedModel(
            f"The last operation {operation} gives {outputs} labels at once (multilabel); "
            f"only one decision among classes is supported.",
            operation=operation,
        )
    if activation == "softmax" and outputs == 1:
        raise UnsupportedModel(
            f"The last operation {operation} over one output is always 1; the model decides nothing.",
            operation=operation,
        )
