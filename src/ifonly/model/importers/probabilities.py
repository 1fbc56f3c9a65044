"""Models that answer with probabilities: scores are the logits behind them, decisions are the probabilities' own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def settled(logits: NDArray[np.float64], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logits, with ties where the model's probabilities tie: rounding to a probability can lose a tiny lead.

    One column: the logit of the second class, 0 where its probability is exactly one half. Several: one logit a class
    (probabilities may also be their logarithms), all classes of the largest probability with the largest logit.
    """
    if logits.shape[1] == 1:
        return np.where(probabilities == 0.5, 0.0, logits)
    largest = probabilities == probabilities.max(axis=1, keepdims=True)
    return np.where(largest, logits.max(axis=1, keepdims=True), logits)
