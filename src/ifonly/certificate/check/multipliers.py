"""Bounds by Lagrange multipliers: of the conditions, and of the equations of the hidden neurons.

Multipliers m >= 0 of the conditions give every favourable row  sum of m * condition >= 0.  Going back through the
layers, with g the coefficient of a ReLU's value and w the multiplier of its pre-activation z in [low, high],

    g max(z, 0) <= w z + max over [low, high] of (g max(z, 0) - w z)

for any w; the largest value is at an end, or at 0. What is left is linear in the changes. Where it is negative in all
of box and ball, there is no such row. Only the ratios of multipliers matter, so they are whole numbers.
"""

from __future__ import annotations

from typing import Any

from .box import Box, Extent
from .reading import Refusal, listed, number, scaled, whole
from .region import Bounds, Region
from .statement import Statement

LARGEST = 2**62
"""Of a multiplier."""
MAX_STEPS = 10_000
"""Bounds that one node of the tree may show."""

Multipliers = tuple[list[int], list[int | None]]
"""Of each condition, and of each hidden neuron; None: g where low >= 0, and 0 elsewhere."""


def bounds_in(known: Bounds, extent: Extent) -> Bounds:
    """Bounds of the hidden neurons that hold in a box: those of the whole, and those shown on the way."""
    return [[extent.bounds(layer, i, *ends) for i, ends in enumerate(row)] for layer, row in enumerate(known)]


def is_contradiction(bounds: Bounds) -> bool:
    return any(low > high for row in bounds for low, high in row)


def read_multipliers(statement: Statement, value: Any, where: str) -> Multipliers:
    """[conditions, hidden neurons]"""
    if statement.rules.any or statement.forest is not None or statement.layers < 2 or statement.curved:
        raise Refusal(f"{where}: multipliers are for networks with hidden layers of ReLUs, without rules")
    conditions, neurons = listed(value, f"{where}: the multipliers", 2)
    statement.meter.tick()
    first = [
        whole(m, f"{where}: a condition's multiplier", 0, LARGEST)
        for m in listed(conditions, f"{where}: the conditions' multipliers", statement.sizes[-1])
    ]
    second = [
        None if m is None else whole(m, f"{where}: a neuron's multiplier", -LARGEST, LARGEST)
        for m in listed(neurons, f"{where}: the neurons' multipliers", statement.starts[-2])
    ]
    return first, second


def most_of_multipliers(region: Region, bounds: Bounds, multipliers: Multipliers) -> int:
    """An upper bound, over the region, of what favourable rows make at least 0; its sign is what counts."""
    statement, (conditions, neurons) = region.statement, multipliers
    last = statement.layers - 1
    unit = statement.exponents[last]
    v = statement.products(conditions, statement.weight_columns[last])
    (constant,) = statement.products(conditions, [statement.biases[last]])
    for layer in range(last - 1, -1, -1):
        start, below = statement.starts[layer], bounds[layer]
        for j, g in enumerate(v):
            low, high = below[j]
            m = neurons[start + j]
            w = (g if low >= 0 else 0) if m is None else m << unit
            part = max(g * max(low, 0) - w * low, g * max(high, 0) - w * high)
            constant += max(part, 0) if low < 0 < high else part
            v[j] = w
        bits = statement.exponents[layer]
        (fixed,) = statement.products(v, [region.first if layer == 0 else statement.biases[layer]])
        constant = (constant << bits) + fixed
        unit += bits
        v = statement.products(v, region.columns if layer == 0 else statement.weight_columns[layer])
    return region.most(v, constant, unit)


class ShownBounds:
    """Bounds of hidden neurons in one box, each shown with those before it."""

    def __init__(self, statement: Statement, region: Region, known: Bounds) -> None:
        self.statement, self.region = statement, region
        self.bounds = bounds_in(known, region.extent)

    @property
    def empty(self) -> bool:
        """Is nothing left?"""
        return self.region.empty or is_contradiction(self.bounds)

    def shows(self, layer: int, neuron: int, sign: int, bound: int, multipliers: Multipliers) -> bool:
        """Is the pre-activation at most (sign 1) or at least (sign -1) the bound, for every favourable row nearer than
        claimed? No row is beyond it.
        """
        row = self.bounds[layer]
        kept = low, high = row[neuron]
        row[neuron] = (max(low, bound), high) if sign == 1 else (low, min(high, bound))
        shown = self.empty or most_of_multipliers(self.region, self.bounds, multipliers) < 0
        row[neuron] = kept
        return shown

    def add(self, layer: int, neuron: int, sign: int, bound: int) -> None:
        low, high = self.bounds[layer][neuron]
        self.bounds[layer][neuron] = (low, min(high, bound)) if sign == 1 else (max(low, bound), high)

    def closes(self, multipliers: Multipliers) -> bool:
        return self.empty or most_of_multipliers(self.region, self.bounds, multipliers) < 0


def check_steps(steps: ShownBounds | None, statement: Statement, box: Box, value: Any, where: str) -> Box:
    """[[layer, neuron, sign, bound, multipliers], ...]: the box with these bounds. No steps: nothing is left of it."""
    entries = listed(value, f"{where}: the bounds")
    if len(entries) > MAX_STEPS:
        raise Refusal(f"{where} has more than {MAX_STEPS} bounds")
    for entry in entries:
        layer, neuron, sign, text, multipliers = listed(entry, f"{where}: a bound", 5)
        layer = whole(layer, f"{where}: a bound's layer", 0, statement.layers - 2)
        neuron = whole(neuron, f"{where}: a bound's neuron", 0, statement.sizes[layer] - 1)
        sign = whole(sign, f"{where}: a bound's sign", -1, 1)
        bound = scaled(number(text, f"{where}: a bound"), statement.grid, f"{where}: a bound")
        read = read_multipliers(statement, multipliers, where)
        if sign == 0 or not (steps is None or steps.shows(layer, neuron, sign, bound, read)):
            raise Refusal(f"{where}: the bound of neuron ({layer}, {neuron}) is not shown")
        if steps is not None:
            steps.add(layer, neuron, sign, bound)
        box = box.bounded(layer, neuron, sign, bound)
    return box
