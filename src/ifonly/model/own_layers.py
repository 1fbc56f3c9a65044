"""A network's own layers: the weights as they were trained, and the scaling before them, which nobody trained.

An importer folds scaling and encoding into the first layer. Where the model's own weights matter (how far they may
change), they are read from its operation graph:  z = scale @ x + shift, then layer after layer with ReLU between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.model.kind import Floats, Kind
from ifonly.model.model import Model
from ifonly.model.network import Network
from ifonly.model.operations import AffineOperation, Gather, LeakyReLU, OperationGraph, RoundedInput, Shift


@dataclass(frozen=True, eq=False)
class OwnLayers:
    """The inputs z = scale @ x + shift of the first layer, each a number of one column x, and the layers."""

    scale: Floats
    shift: Floats
    layers: tuple[tuple[Floats, Floats], ...]

    def inputs_of(self, encoded: Floats) -> Floats:
        return np.asarray(encoded @ self.scale.T + self.shift)

    def scores(self, encoded: Floats) -> Floats:
        """The forward pass in float64."""
        h = self.inputs_of(encoded)
        *hidden, (weight, bias) = self.layers
        for inner, offset in hidden:
            h = np.maximum(h @ inner.T + offset, 0.0)
        return np.asarray(h @ weight.T + bias)


def own_layers(model: Model) -> OwnLayers:
    """The layers of a network that is a chain of linear layers with ReLU between them; others are refused."""
    function = model.function
    if not isinstance(function, Network):
        raise _refused(function, f"it is {function.name}")
    if function.operations is None:
        width = function.inputs
        layers = tuple((layer.weight, layer.bias) for layer in function.layers)
        return OwnLayers(np.eye(width), np.zeros(width), layers)
    return _of_graph(function, function.operations)


def _of_graph(function: Network, graph: OperationGraph) -> OwnLayers:
    """The affine maps between activations; of those before the first, all but the last are scaling."""
    groups: list[list[tuple[Floats, Floats]]] = [[]]
    width = function.inputs
    for k, step in enumerate(graph.steps):
        operation = step.operation
        if isinstance(operation, RoundedInput) and k == 0:
            continue
        if step.sources != (k - 1,):
            raise _refused(function, "values pass by a layer of it, or it branches")
        if isinstance(operation, LeakyReLU) and operation.plain:
            groups.append([])
            continue
        mapped = _affine(operation, width)
        if mapped is None:
            raise _refused(function, "it has other operations than linear layers and ReLU")
        groups[-1].append(mapped)
        width = len(mapped[1])
    first, *others = groups
    if not first or any(len(group) != 1 for group in others):
        raise _refused(function, "it has several linear layers in a row; multiply them to one")
    scale, shift = np.eye(function.inputs), np.zeros(function.inputs)
    for weight, bias in first[:-1]:
        scale, shift = weight @ scale, weight @ shift + bias
    if ((scale != 0.0).sum(axis=1) > 1).any():
        raise _refused(function, "it has several linear layers in a row; multiply them to one")
    return OwnLayers(scale, shift, (first[-1], *(group[0] for group in others)))


def _affine(operation: object, width: int) -> tuple[Floats, Floats] | None:
    """The operation as a matrix and a constant; None if it is no affine map."""
    match operation:
        case AffineOperation(weight=weight, bias=bias):
            return np.diag(weight) if weight.ndim == 1 else weight, bias
        case Shift(sign=sign, bias=bias):
            return np.diag(np.broadcast_to(sign, (width,))), np.broadcast_to(bias, (width,)).astype(np.float64)
        case Gather(columns=(columns,)):
            chosen = np.eye(width) if columns is None else np.eye(width)[columns]
            return chosen, np.zeros(len(chosen))
        case _:
            return None


def _refused(function: Kind, why: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"Changes of weights are proven for networks of linear layers with ReLU between them, one after another; this "
        f"model is none, since {why}. Ask instead that other versions of it accept: Accepted(by=...).",
        operation=function.name,
    )
