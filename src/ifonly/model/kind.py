"""Abstract base of the kinds of models: a function of encoded rows, and the capabilities that it declares.

A kind is a network, a network with smooth activations, or an ensemble of trees. Its scores are real numbers, and
`error` bounds what the deployed model's own arithmetic can do to them. Nobody outside this package asks what class a
kind is: solvers, certificates, files and the service read the capabilities declared here. The search that a kind names
(`search`) is registered in `ifonly.solvers.search.search.SEARCHES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ifonly.model.network import Network
    from ifonly.model.smooth import SmoothNetwork
    from ifonly.model.trees import Trees

Floats = NDArray[np.float64]
Precision: TypeAlias = Literal["float64", "float32"]


class ByFingerprint:
    """Equality and hash by fingerprint, among values of one class."""

    @property
    def fingerprint(self) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


class Kind(ByFingerprint, ABC):
    """A function of encoded rows, with the identity and the arithmetic that proofs about it need."""

    exact_sums: ClassVar[bool] = False
    """`scores` adds up as the deployed library does, so solvers evaluate rows by it and not by affine layers."""

    # ------------------------------------------------------------------ identity

    @property
    @abstractmethod
    def name(self) -> str:
        """The noun phrase for messages: "this model is a network"."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Number of encoded columns that it reads."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of scores that it returns."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of the function, whatever file it came from."""

    @property
    def within(self) -> tuple[Floats, Floats] | None:
        """The least and the largest inputs for which it equals the imported model; None where it does for all."""
        return None

    def sizes(self) -> dict[str, Any]:
        """Its sizes by name, for people."""
        return {"outputs": self.outputs}

    # ------------------------------------------------------------------ evaluation

    @abstractmethod
    def scores(self, x: Floats) -> Floats:
        """The scores of encoded rows, shape (rows, outputs), in float64."""

    def same_scores(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Of pairs of points: which are certain to have the same scores, without evaluating them?"""
        return np.asarray((before == after).all(axis=1))

    def implies(self, other: Kind) -> bool:
        """Does it accept only rows that the other accepts, if both are asked the same?"""
        return False

    def steady_scores(self, x: Floats) -> Floats:
        """The same, where equal rows of one call have equal scores to the last bit."""
        return self.scores(x)

    def decide(self, scores: Floats) -> NDArray[np.intp]:
        """The class of each row of scores: of one score the second class iff it is > 0; of several the largest, the
        first on ties."""
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0.0).astype(np.intp)
        return scores.argmax(axis=1)

    @abstractmethod
    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """Rounding error bound: how far a deployed score can be from the exact one on the rows of each box.

        Arrays of shape (boxes, columns) to (boxes, outputs). Rigorous for any order of summation in the precision.
        `exact`: columns of which every value is a number of the precision, so that reading a row does not round it.
        """

    def without_constants(self, value: Floats) -> Kind:
        """The same function of rows that have these values (where not 0), with less for rounding to act on."""
        network = self.as_network()
        return self if network is None else network.without_constants(value)

    # ------------------------------------------------------------------ what solvers and certificates take

    @property
    def search(self) -> str:
        """The name of its entry in the registry of searches; empty if only enumeration can answer."""
        return "" if self.as_network() is None else "network"

    def as_network(self) -> Network | None:
        """The same function as a piecewise-linear network; None if it has no such form."""
        return None

    def as_smooth_network(self) -> SmoothNetwork | None:
        """The same function as a network with smooth activations; None if it has no such form."""
        return None

    def as_trees(self) -> Trees | None:
        """The same function as an ensemble of trees over features; None if it has no such form."""
        return None

    def statement(self) -> dict[str, Any] | None:
        """The function as a certificate states it, as plain data; None if certificates cannot state it."""
        return None
