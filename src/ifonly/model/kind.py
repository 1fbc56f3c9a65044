"""What every kind of model says of itself: a network now, an ensemble of trees or a scorecard by the same words.

A kind is a function of encoded rows, exact on paper: its scores are real numbers, and `error` bounds what the deployed
model's own arithmetic can do to them. What a method can search is a method's own matter: it asks a kind for its
`as_network`, or looks at every row.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Precision: TypeAlias = Literal["float64", "float32"]


class ByFingerprint:
    """What is equal to others of its class by its fingerprint."""

    @property
    def fingerprint(self) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


@runtime_checkable
class Kind(Protocol):
    """A function of encoded rows, with the identity and the arithmetic that proofs about it need."""

    @property
    def name(self) -> str:
        """What it is, in a sentence: "this model is a network"."""

    @property
    def inputs(self) -> int:
        """How many encoded columns it reads."""

    @property
    def outputs(self) -> int:
        """How many scores it gives."""

    @property
    def fingerprint(self) -> str:
        """The identity of the function, whatever file it came from."""

    def scores(self, x: Floats) -> Floats:
        """The scores of encoded rows, shape (rows, outputs), in float64."""

    def steady_scores(self, x: Floats) -> Floats:
        """The same, where equal rows of one call have equal scores to the last bit."""

    def decide(self, scores: Floats) -> NDArray[np.intp]:
        """The class of each row of scores."""

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """How far a deployed score can be from the exact one on the rows of each box of encoded columns.

        Arrays of shape (boxes, columns) to (boxes, outputs). Rigorous for any order of summation in the precision.
        `exact`: columns of which every value is a number of the precision, so that reading a row does not round it.
        """

    def as_network(self) -> Any:
        """The same function as a piecewise-linear `Network`, for the methods that search one; None if it is none."""

    def statement(self) -> dict[str, Any] | None:
        """The function as a certificate states it, as plain data; None if certificates cannot state it."""


def by_sign_or_largest(scores: Floats) -> NDArray[np.intp]:
    """The usual decision: of one score the second class iff it is > 0; of several the largest, the first on ties."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0.0).astype(np.intp)
    return scores.argmax(axis=1)
