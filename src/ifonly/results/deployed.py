"""The deployed model's own evaluation of a row: reported beside the proof, never a part of it.

A proof is about real arithmetic on the stored weights. A deployed model rounds, by E at most (`ifonly.model.rounding`),
so a row on the margin may be favourable in real arithmetic and not in the model's. A margin of margin + E covers that:
what reaches it in real arithmetic reaches the asked margin in the model's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question

LEAST_MARGIN = 1e-12
"""The least margin that is recommended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The model's own scores of a row, and whether it decides as asked; if not, `margin` is one that covers it."""

    precision: str
    scores: tuple[float, ...]
    agrees: bool
    margin: float | None

    def to_data(self) -> dict[str, Any]:
        """As a certificate records it."""
        return {
            "precision": self.precision,
            "scores": [score.hex() for score in self.scores],
            "agrees": self.agrees,
            "margin": None if self.margin is None else self.margin.hex(),
        }


def deployed_answer(question: Question, point: NDArray[np.float64]) -> Deployed:
    """Ask the user's own model about a row."""
    scores = question.model.scores(point[None, :])
    agrees = bool(question.target.met(question.model, scores)[0])
    return Deployed(
        precision=question.model.precision,
        scores=tuple(scores[0].tolist()),
        agrees=agrees,
        margin=None if agrees else covering_margin(question),
    )


def covering_margin(question: Question) -> float:
    """The asked margin and what the deployed model's rounding can take from it, rounded up to two digits."""
    covering = max(question.target.margin + float(question.largest_error), LEAST_MARGIN)
    power = math.floor(math.log10(covering)) - 1
    return float(f"{math.ceil(covering / 10.0**power * (1.0 + 1e-12))}e{power}")
