"""An attack on weights: a network within a box of weights whose score at a row is low, found by signs of gradients.

Layer by layer from the top, each weight goes to the end of its interval that lowers the score, given the values below
and the slopes above it. For one hidden layer that is the lowest network of the box; with more of them it is repeated
with the values of the network that was found, and the lowest is kept.
"""

from __future__ import annotations

import numpy as np

from ifonly.model.kind import Floats
from ifonly.model.own_layers import OwnLayers
from ifonly.model.weight_box import Layer, WeightBox

ROUNDS = 12


def lowest_network(box: WeightBox, encoded: Floats, condition: Floats) -> tuple[float, OwnLayers]:
    """The lowest `condition @ scores` at one encoded row that was found, and the network of the box that has it."""
    radii = [tuple(box.radius(part) for part in layer) for layer in box.centre.layers]
    now = box.centre
    best, found = _value(now, encoded, condition), now
    for _ in range(ROUNDS):
        now = OwnLayers(now.scale, now.shift, _lowered(box.centre.layers, radii, now, encoded, condition))
        value = _value(now, encoded, condition)
        if value >= best:
            break
        best, found = value, now
    return best, found


def _lowered(
    centre: tuple[Layer, ...], radii: list[tuple[Floats, ...]], now: OwnLayers, encoded: Floats, condition: Floats
) -> tuple[Layer, ...]:
    """Every weight at the end of its interval that lowers the score, from the last layer to the first."""
    inputs = _values(now, encoded)
    slope, result = condition, []
    for k in range(len(centre) - 1, -1, -1):
        (weight, bias), (reach, offset) = centre[k], radii[k]
        signs = np.sign(slope)[:, None] * np.where(inputs[k] < 0.0, -1.0, 1.0)[None, :]
        moved = weight - signs * reach, bias - np.sign(slope) * offset
        result.append(moved)
        below = slope @ moved[0]
        if k:  # a neuron that is off may be worth switching on, one that raises the score is not
            on = (inputs[k] > 0.0) | (below < 0.0)
            slope = np.where(on, below, 0.0)
    return tuple(reversed(result))


def _values(network: OwnLayers, encoded: Floats) -> list[Floats]:
    """What each layer reads."""
    values = [network.inputs_of(encoded)]
    for weight, bias in network.layers[:-1]:
        values.append(np.maximum(weight @ values[-1] + bias, 0.0))
    return values


def _value(network: OwnLayers, encoded: Floats, condition: Floats) -> float:
    return float(network.scores(encoded) @ condition)
