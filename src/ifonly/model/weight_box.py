"""All networks whose weights and biases lie within a distance of a network's: their lowest scores, at one row.

    first layer      w'.z + b'  is at least  w.z + b - (r.|z| + r_0),  for radii r of the weights and r_0 of the bias
    further layers   of inputs 0 <= l <= h <= u:  sum of (w - r) l where w >= r, else of (w - r) u, less r_0
    largest values   the same with the signs turned

A sum over the box of weights is attained, neuron by neuron, so what is computed of one hidden layer is the minimum over
all networks of the box. From the second hidden layer on it is a lower bound: different neurons may then need different
weights of the layers below. Where z < 0 the *larger* weight gives the smaller product; hence |z|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.kind import Floats, Precision
from ifonly.model.own_layers import OwnLayers
from ifonly.model.rounding import FUSED, LEAST, UNIT

Layer = tuple[Floats, Floats]
Ends = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class WeightBox:
    """`delta`: how far each weight and bias of a layer may be from its own; `relative`: as a share of it."""

    centre: OwnLayers
    delta: float
    relative: bool = False

    @cached_property
    def layers(self) -> tuple[tuple[Layer, Layer], ...]:
        """Of each layer the least and the largest weights and biases, rounded outward; of the first, over the parts of
        its inputs above and below 0, which are >= 0 as the inputs of all other layers are."""
        first, *others = (self._ends(*layer) for layer in self.centre.layers)
        (low, low_bias), (high, high_bias) = first
        parts = (np.hstack([low, -high]), low_bias), (np.hstack([high, -low]), high_bias)
        return (parts, *others)

    def _ends(self, weight: Floats, bias: Floats) -> tuple[Layer, Layer]:
        (low, high), (low_bias, high_bias) = self._moved(weight), self._moved(bias)
        return (low, low_bias), (high, high_bias)

    def _moved(self, numbers: Floats) -> Ends:
        radius = self.radius(numbers)
        wide = np.nextafter(radius, np.inf)
        low, high = np.nextafter(numbers - wide, -np.inf), np.nextafter(numbers + wide, np.inf)
        return np.where(radius > 0.0, low, numbers), np.where(radius > 0.0, high, numbers)

    def radius(self, numbers: Floats) -> Floats:
        """How far each of these weights may change."""
        return self.delta * (np.abs(numbers) if self.relative else np.ones_like(numbers))

    @property
    def is_exact(self) -> bool:
        """Is the lowest score the minimum over the box, and not only a lower bound?"""
        return len(self.centre.layers) <= 2

    # ------------------------------------------------------------------ at rows

    def lowest(self, encoded: Floats, conditions: Floats) -> Floats:
        """Of each row, the least conditions @ scores over the box (a lower bound of it where not `is_exact`)."""
        low, high = self.activations(encoded)[-1]
        return lower_end(low, high, last_ends(self.layers[-1], conditions)[0])

    def activations(self, encoded: Floats) -> list[Ends]:
        """The least and the largest inputs of each layer."""
        z = self.centre.inputs_of(encoded)
        parts = np.concatenate([np.maximum(z, 0.0), np.maximum(-z, 0.0)], axis=1)
        found = [(parts, parts)]
        for least, largest in self.layers[:-1]:
            low, high = lower_end(*found[-1], least), -lower_end(*found[-1], (-largest[0], -largest[1]))
            found.append((np.maximum(low, 0.0), np.maximum(high, 0.0)))
        return found

    def member_error(self, box: Ends, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """How far any network of the box, computed in the precision, can be from its exact scores on the rows of each
        box of columns: forward error analysis by magnitudes, one number per output."""
        unit, least = UNIT[precision], LEAST[precision]
        size = np.maximum(np.abs(box[0]), np.abs(box[1]))
        error = np.where(exact, 0.0, unit * size) + least
        steps = [(np.abs(self.centre.scale), np.abs(self.centre.shift))]
        for weight, bias in self.centre.layers:
            steps.append((np.maximum(*map(np.abs, self._moved(weight))), np.maximum(*map(np.abs, self._moved(bias)))))
        for weight, bias in steps:
            terms = weight.shape[1] + 2.0 + FUSED
            with np.errstate(over="ignore", invalid="ignore"):
                both = size + error
                tiny = 2.0 * least * (2.0 * terms + weight.sum(axis=1)) * (1.0 + both.sum(axis=1, keepdims=True))
                rounding = terms * unit / (1.0 - terms * unit) * (both @ weight.T + bias) + tiny
                error, size = error @ weight.T + rounding, size @ weight.T + bias
        return np.where(np.isnan(error), np.inf, error)


def last_ends(ends: tuple[Layer, Layer], conditions: Floats) -> tuple[Layer, Layer]:
    """The least and the largest weights of `conditions @ scores`: of every output its own, by the sign."""
    (low, low_bias), (high, high_bias) = ends
    up, down = np.maximum(conditions, 0.0), np.maximum(-conditions, 0.0)
    least = up @ low - down @ high, up @ low_bias - down @ high_bias
    return least, (up @ high - down @ low, up @ high_bias - down @ low_bias)


def lower_end(low: Floats, high: Floats, least: Layer) -> Floats:
    """The least weight @ h + bias over low <= h <= high, of weights that are at least these, where low >= 0."""
    weight, bias = least
    return np.asarray(low @ np.maximum(weight, 0.0).T + high @ np.minimum(weight, 0.0).T + bias)
