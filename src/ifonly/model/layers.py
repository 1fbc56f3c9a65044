"""Networks as layers and activations, whatever these are; and interval arithmetic on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model.network import Network
from ifonly.model.smooth import RELU, Activation, SmoothNetwork
from ifonly.model.smooth.activations import SideBySide

Floats = NDArray[np.float64]


def layers_of(network: Network | SmoothNetwork) -> tuple[list[tuple[Floats, Floats]], list[Activation | SideBySide]]:
    """The affine layers, and the activation after each but the last."""
    linear = network.linear if isinstance(network, SmoothNetwork) else network
    layers = [(layer.weight, layer.bias) for layer in linear.layers]
    activations = network.activations if isinstance(network, SmoothNetwork) else [RELU] * (len(layers) - 1)
    return layers, list(activations)


def network_of_layers(
    layers: Sequence[tuple[Any, Any]], activations: Sequence[Activation | SideBySide]
) -> Network | SmoothNetwork:
    """The inverse of `layers_of`."""
    network = Network.of(layers)
    return network if all(one == RELU for one in activations) else SmoothNetwork(network, activations)


def affine(weight: Floats, bias: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """W x + b over boxes (boxes, columns)."""
    above, below = np.maximum(weight, 0.0).T, np.minimum(weight, 0.0).T
    return lower @ above + upper @ below + bias, upper @ above + lower @ below + bias


def interval(network: Network | SmoothNetwork, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The least and the largest scores over boxes of encoded columns, by interval arithmetic."""
    layers, activations = layers_of(network)
    for (weight, bias), activation in zip(layers, [*activations, None], strict=True):
        lower, upper = affine(weight, bias, lower, upper)
        if activation is not None:
            lower, upper = activation.values(lower, upper)
    return lower, upper
