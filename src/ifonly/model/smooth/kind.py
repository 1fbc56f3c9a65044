"""Feed-forward network with smooth activations after some layers: a kind of model.

    h_0 = x,   h_i = a_i(W_i h_{i-1} + b_i)  for i = 1..L-1,   scores = W_L h_{L-1} + b_L

It has no piecewise-linear form, so the search bounds each activation by linear functions
(`ifonly.solvers.search.smooth`), and closes the gap by branching.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.kind import Kind, Precision
from ifonly.model.network import Network
from ifonly.model.operations import OperationGraph, operations_of_layers
from ifonly.model.products import rows_times
from ifonly.model.rounding import rounding_error_bound
from ifonly.model.smooth.activations import RELU, Activation, SideBySide
from ifonly.printing import shown
from ifonly.schema.arguments import items

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SmoothNetwork(Kind):
    """`linear` has the affine layers; `activations` the activation after each but the last."""

    search: ClassVar[str] = "smooth network"

    linear: Network
    activations: Sequence[Activation | SideBySide]

    def __post_init__(self) -> None:
        activations = items(self.activations)
        if (
            not isinstance(self.linear, Network)
            or activations is None
            or not all(isinstance(a, Activation | SideBySide) for a in activations)
        ):
            raise ModelError(f"A smooth network is made of a Network and activations; got {shown(self.activations)}.")
        if len(activations) != len(self.linear.layers) - 1:
            raise ModelError(
                f"A network of {len(self.linear.layers)} layers has {len(self.linear.layers) - 1} activations; "
                f"got {len(activations)}."
            )
        object.__setattr__(self, "activations", tuple(activations))

    @property
    def name(self) -> str:
        smooth = dict.fromkeys(a.name for a in self.activations if a.name != "relu")
        return f"a network with {' and '.join(smooth)} inside" if smooth else "a network"

    @property
    def inputs(self) -> int:
        return self.linear.inputs

    @property
    def outputs(self) -> int:
        return self.linear.outputs

    @property
    def within(self) -> tuple[Floats, Floats] | None:
        return self.linear.within

    def sizes(self) -> dict[str, Any]:
        return {**self.linear.sizes(), "activations": [activation.name for activation in self.activations]}

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(b"ifonly-smooth-1" + self.linear.fingerprint.encode())
        digest.update(repr([_identity(a) for a in self.activations]).encode())
        return digest.hexdigest()

    def scores(self, x: Floats) -> Floats:
        """The forward pass in float64, for one encoded row or many."""
        h = np.asarray(x, dtype=np.float64)
        *hidden, last = self.linear.layers
        for layer, activation in zip(hidden, self.activations, strict=True):
            h = activation(rows_times(h, layer.weight) + layer.bias)
        return np.asarray(rows_times(h, last.weight) + last.bias)

    def steady_scores(self, x: Floats) -> Floats:
        return np.asarray(self.scores(x[:, None, :])[:, 0, :])

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        return rounding_error_bound(self._operations, (lower, upper), precision, exact)

    @cached_property
    def _operations(self) -> OperationGraph:
        layers = [(layer.weight, layer.bias) for layer in self.linear.layers]
        curves = [a if a != RELU else None for a in self.activations]
        return self.linear.operations or operations_of_layers(layers, curves)

    def statement(self) -> dict[str, Any]:
        """The stored weights and the activations, as certificates state them."""
        return {**self.linear.statement(), "activations": [_stated(a) for a in self.activations]}

    def deployed_as(self, operations: OperationGraph) -> SmoothNetwork:
        """See `Network.deployed_as`."""
        return SmoothNetwork(self.linear.deployed_as(operations), self.activations)

    def as_smooth_network(self) -> SmoothNetwork:
        return self

    def without_constants(self, value: Floats) -> SmoothNetwork:
        """See `Network.without_constants`."""
        return SmoothNetwork(self.linear.without_constants(value), self.activations)


def _stated(activation: Activation | SideBySide) -> Any:
    """By name, with the number that ELU and powers have; several side by side with how many neurons have each."""
    if isinstance(activation, SideBySide):
        return [[_stated(one), count] for one, count in activation.parts]
    number = {"elu": "alpha", "power": "exponent"}.get(activation.name)
    if number is None:
        return activation.name
    return {"name": activation.name, number: (activation.alpha + 0.0).hex()}


def _identity(activation: Activation | SideBySide) -> Any:
    """What tells an activation from others."""
    if isinstance(activation, Activation):
        return activation.name, activation.alpha
    return [(one.name, one.alpha, count) for one, count in activation.parts]
