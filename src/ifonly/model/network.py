"""Feed-forward ReLU network: the piecewise-linear function that most solvers search.

    h_0 = x,   h_i = relu(W_i h_{i-1} + b_i)  for i = 1..L-1,   scores = W_L h_{L-1} + b_L

Weights are float64, finite and read-only; the fingerprint names the function, whatever file it came from. A linear
model is a network of one layer. Importers fold scaling and encoding into W_1 and multiply affine layers in a row; the
`OperationGraph` says what the model itself computes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.kind import Kind, Precision
from ifonly.model.operations import OperationGraph, operations_of_layers
from ifonly.model.products import rows_times
from ifonly.model.rounding import rounding_error_bound
from ifonly.printing import shown
from ifonly.schema.arguments import items

MAX_LAYERS = 1000
MAX_WEIGHTS = 200_000_000
MAX_WIDTH = 100_000
"""Neurons of one layer: a model is compared on a thousand rows at once, and each neuron of it with them."""


@dataclass(frozen=True, slots=True)
class Affine:
    """One layer: z = weight @ h + bias, with weight of shape (outputs, inputs)."""

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, ndim in (("weight", 2), ("bias", 1)):
            array = _numbers(getattr(self, name), name)
            if array.ndim != ndim or array.size == 0:
                raise ModelError(f"A layer's {name} must be a non-empty array of {ndim} dimension(s).")
            if not np.isfinite(array).all():
                raise ModelError(f"A layer's {name} has NaN or infinite entries; the model is damaged.")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.weight.shape[0] != self.bias.shape[0]:
            raise ModelError(f"A layer has {self.weight.shape[0]} outputs but {self.bias.shape[0]} biases.")


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
            array = np.asarray(values)
            if array.dtype.kind in "biufO":
                return np.array(array, dtype=np.float64, order="C")
    except Exception:  # an element's own __float__ may raise anything
        pass
    raise ModelError(f"A layer's {name} must be an array of numbers; got {shown(values)}.")


@dataclass(frozen=True, eq=False)
class Network(Kind):
    """Layers in order; ReLU after every layer but the last."""

    layers: Sequence[Affine]
    operations: OperationGraph | None = field(default=None, compare=False, repr=False)
    """The operation graph of the imported model, where that is not just layer after layer, for the error bound."""
    within: tuple[NDArray[np.float64], NDArray[np.float64]] | None = field(default=None, compare=False, repr=False)
    """The least and the largest inputs for which it equals the imported model; None where it does for all."""

    def __post_init__(self) -> None:
        layers = items(self.layers)
        if layers is None or not all(isinstance(layer, Affine) for layer in layers):
            raise ModelError(f"A network is made of a list of layers; got {shown(self.layers)}.")
        if not 1 <= len(layers) <= MAX_LAYERS:
            raise ModelError(f"A network has between 1 and {MAX_LAYERS} layers; got {len(layers)}.")
        if max(layer.weight.shape[0] for layer in layers) > MAX_WIDTH:
            raise ModelError(f"A layer of a network has at most {MAX_WIDTH} neurons.")
        if sum(layer.weight.size for layer in layers) > MAX_WEIGHTS:
            raise ModelError(f"A network has at most {MAX_WEIGHTS} weights.")
        for i, (a, b) in enumerate(itertools.pairwise(layers)):
            if a.weight.shape[0] != b.weight.shape[1]:
                raise ModelError(
                    f"Layer {i} gives {a.weight.shape[0]} values, but layer {i + 1} takes {b.weight.shape[1]}."
                )
        object.__setattr__(self, "layers", layers)
        if self.within is not None:
            object.__setattr__(self, "within", self._checked_bounds(self.within))

    def _checked_bounds(self, bounds: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        ends = [_numbers(end, "bounds") for end in items(bounds) or ()]
        if [end.shape for end in ends] != [(self.inputs,)] * 2 or np.isnan(ends).any():
            raise ModelError(f"The bounds of a network are a least and a largest value for each of its inputs; got "
                             f"{shown(bounds)}.")  # fmt: skip
        return ends[0], ends[1]

    @classmethod
    def of(cls, layers: Sequence[tuple[Any, Any]]) -> Network:
        """A network from (weight, bias) pairs, weight of shape (outputs, inputs)."""
        pairs = [items(layer) for layer in items(layers) or ()]
        if not pairs or not all(pair is not None and len(pair) == 2 for pair in pairs):
            raise ModelError(f"A network is made of pairs (weight, bias), one for each layer; got {shown(layers)}.")
        return cls(tuple(Affine(*pair) for pair in pairs if pair is not None))

    @property
    def name(self) -> str:
        return "a network"

    @cached_property
    def inputs(self) -> int:
        return int(self.layers[0].weight.shape[1])

    @cached_property
    def outputs(self) -> int:
        return int(self.layers[-1].weight.shape[0])

    @property
    def hidden(self) -> tuple[int, ...]:
        """Neurons with a ReLU, layer by layer."""
        return tuple(layer.weight.shape[0] for layer in self.layers[:-1])

    def sizes(self) -> dict[str, Any]:
        weights = sum(layer.weight.size + layer.bias.size for layer in self.layers)
        return {"hidden": list(self.hidden), "outputs": self.outputs, "weights": weights}

    def scores(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The forward pass in float64, for one encoded row or many."""
        h = np.asarray(x, dtype=np.float64)
        *hidden, last = self.layers
        for layer in hidden:
            h = np.maximum(rows_times(h, layer.weight) + layer.bias, 0.0)
        return np.asarray(rows_times(h, last.weight) + last.bias)

    def steady_scores(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The forward pass with one product per row: the last bits then do not depend on the position of a row."""
        return np.asarray(self.scores(x[:, None, :])[:, 0, :])

    def error(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64], precision: Precision, exact: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        return rounding_error_bound(self.operation_graph, (lower, upper), precision, exact)

    @cached_property
    def operation_graph(self) -> OperationGraph:
        """What the deployed model computes: its own operations, or else the layers."""
        return self.operations or operations_of_layers([(layer.weight, layer.bias) for layer in self.layers])

    def as_network(self) -> Network:
        return self

    def statement(self) -> dict[str, Any]:
        """The stored weights, exactly: hexadecimal text. -0.0 too, since the fingerprint tells it from 0.0."""
        return {
            "network": [
                {"weight": [[v.hex() for v in row] for row in layer.weight.tolist()],
                 "bias": [v.hex() for v in layer.bias.tolist()]}
                for layer in self.layers
            ]
        }  # fmt: skip

    def deployed_as(self, operations: OperationGraph) -> Network:
        """The same function, as the equal of a model with this operation graph."""
        return Network(self.layers, operations, self.within)

    def without_constants(self, value: NDArray[np.float64]) -> Network:
        """The same function of rows that have these values (where not 0): they are made part of the first bias,
        exactly.

        A model that divides by a standard deviation of nearly 0 has very large weights there, which cancel against the
        bias. Added up, they leave nothing for rounding to act on.
        """
        first, constant = self.layers[0], np.flatnonzero(value)
        if not len(constant):
            return Network(self.layers, within=self.within)
        values = [Fraction(v) for v in value[constant].tolist()]
        parts = zip(first.bias.tolist(), first.weight[:, constant].tolist(), strict=True)
        bias = [
            float(sum((Fraction(w) * v for w, v in zip(row, values, strict=True)), Fraction(b))) for b, row in parts
        ]
        weight = first.weight.copy()
        weight[:, constant] = 0.0
        return Network([Affine(weight, np.array(bias)), *self.layers[1:]], within=self.within)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over shapes and little-endian weights: the identity of the function."""
        digest = hashlib.sha256(b"ifonly-network-1")
        for layer in self.layers:
            digest.update(np.array(layer.weight.shape, dtype="<i8").tobytes())
            digest.update(layer.weight.astype("<f8").tobytes())
            digest.update(layer.bias.astype("<f8").tobytes())
        return digest.hexdigest()

    def after(self, weight: NDArray[np.float64], shift: NDArray[np.float64]) -> Network:
        """The network that first maps its input x to weight @ x + shift: folded into the first layer."""
        first = self.layers[0]
        folded = Affine(first.weight @ weight, first.weight @ shift + first.bias)
        return Network((folded, *self.layers[1:]))
