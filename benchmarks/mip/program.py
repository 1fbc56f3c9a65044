"""The big-M program of one person's question, and nothing about any solver.

    minimise  cost.v + square.(v*v) + offset      subject to  rows v <= limit,  lower <= v <= upper,  some v whole

Network: interval bounds l <= z <= u of every pre-activation over the person's domain; u <= 0 gives h = 0, l >= 0 gives
h = z, the rest get a binary a and

    h >= z,   h >= 0,   h <= z - l (1 - a),   h <= u a

Columns: the person's inputs, a binary for each number that pays for having changed, the level t of linf, then h and a
of the unstable neurons, layer by layer. Stable neurons are substituted and cost neither columns nor rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.mip.inputs import Floats, Inputs, Person, make_inputs
from ifonly.problem import Lowered, Norm


@dataclass(frozen=True, kw_only=True)
class Program:
    """Costs are multiplied by `scale` (largest cost 1) so that a solver's absolute tolerances mean something."""

    cost: Floats
    square: Floats
    offset: float
    rows: Floats
    limit: Floats
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]
    scale: float
    inputs: Inputs
    unstable: int


@dataclass(frozen=True)
class _Intervals:
    """Bounds of every hidden layer's pre-activations."""

    lower: list[Floats]
    upper: list[Floats]

    def unstable(self, layer: int) -> NDArray[np.bool_]:
        return (self.lower[layer] < 0.0) & (self.upper[layer] > 0.0)


def intervals(lowered: Lowered, person: Person) -> _Intervals:
    """Interval arithmetic over the person's domain; exactly one option of each choice."""
    weight, bias = lowered.layers[0]
    at = lowered.start[:-1][lowered.numeric]
    ends = weight[:, at] * person.lower[lowered.numeric], weight[:, at] * person.upper[lowered.numeric]
    low, high = np.minimum(*ends).sum(axis=1) + bias, np.maximum(*ends).sum(axis=1) + bias
    for g in np.flatnonzero(~lowered.numeric):
        here = slice(int(lowered.start[g]), int(lowered.start[g + 1]))
        options = weight[:, here][:, person.allowed[here]]
        low, high = low + options.min(axis=1), high + options.max(axis=1)
    lows, highs = [low], [high]
    for weight, bias in lowered.layers[1:]:
        positive, negative = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        below, above = np.maximum(lows[-1], 0.0), np.maximum(highs[-1], 0.0)
        lows.append(positive @ below + negative @ above + bias)
        highs.append(positive @ above + negative @ below + bias)
    return _Intervals(lows, highs)


def formulate(lowered: Lowered, person: Person, need: Floats) -> Program:
    """The program of one person; `need` is what each output condition must reach. Domains must not be empty."""
    inputs = make_inputs(lowered, person)
    bounds = intervals(lowered, person)
    hidden = range(len(lowered.layers) - 1)
    masks = [bounds.unstable(i) for i in hidden]
    counts = [int(mask.sum()) for mask in masks]
    changed = _paying_for_change(lowered, inputs)
    level = lowered.norm is Norm.LINF
    first_relu = len(inputs) + len(changed) + level
    columns = first_relu + 2 * sum(counts)

    lower, upper = np.zeros(columns), np.ones(columns)
    lower[: len(inputs)], upper[: len(inputs)] = inputs.lower, inputs.upper
    integer = np.zeros(columns, dtype=bool)
    integer[: len(inputs)] = inputs.integer
    integer[len(inputs) : len(inputs) + len(changed)] = True

    parts = [_choice_rows(inputs, columns), _change_rows(inputs, changed, columns)]
    if level:
        upper[first_relu - 1] = float(inputs.fixed_cost.max() + (np.abs(inputs.cost) * inputs.upper).sum())
        parts.append(_level_rows(lowered, inputs, first_relu - 1, columns))
    matrix, constant = inputs.first_layer(*lowered.layers[0])
    z, c = np.zeros((len(matrix), columns)), constant
    z[:, : len(inputs)] = matrix
    at = first_relu
    for i, (mask, count) in enumerate(zip(masks, counts, strict=True)):
        low, high = bounds.lower[i], bounds.upper[i]
        h, a = at + np.arange(count), at + count + np.arange(count)
        upper[h] = high[mask]
        integer[a] = True
        parts.append(_relu_rows(z[mask], c[mask], low[mask], high[mask], h, a))
        live = (low >= 0.0)[:, None]
        z, c = np.where(live, z, 0.0), np.where(live[:, 0], c, 0.0)
        z[np.flatnonzero(mask), h] = 1.0
        weight, bias = lowered.layers[i + 1]
        z, c = weight @ z, weight @ c + bias
        at += 2 * count
    parts.append((-z, c - need))

    cost, square, offset = _objective(lowered, inputs, changed, columns)
    scale = 1.0 / float(max(cost.max(initial=0.0), square.max(initial=0.0)) or 1.0)
    return Program(
        cost=cost * scale,
        square=square * scale,
        offset=offset,
        rows=np.concatenate([rows for rows, _ in parts]),
        limit=np.concatenate([limit for _, limit in parts]),
        lower=lower,
        upper=upper,
        integer=integer,
        scale=scale,
        inputs=inputs,
        unstable=sum(counts),
    )


def _paying_for_change(lowered: Lowered, inputs: Inputs) -> NDArray[np.intp]:
    """Free numbers with a jump: they get an indicator. (The options' costs have theirs inside.)"""
    free = np.zeros(lowered.features, dtype=bool)
    free[inputs.feature] = True
    return np.flatnonzero(free & lowered.numeric & (lowered.jump > 0.0))


def _choice_rows(inputs: Inputs, columns: int) -> tuple[Floats, Floats]:
    """At most one option other than the base (a single one needs no row)."""
    groups = [np.flatnonzero((inputs.feature == g) & (inputs.minus >= 0)) for g in np.unique(inputs.feature)]
    groups = [group for group in groups if len(group) > 1]
    rows = np.zeros((len(groups), columns))
    for r, group in enumerate(groups):
        rows[r, group] = 1.0
    return rows, np.ones(len(groups))


def _change_rows(inputs: Inputs, changed: NDArray[np.intp], columns: int) -> tuple[Floats, Floats]:
    """p / p_max + q / q_max <= indicator: big-M by the width of the domain."""
    rows = np.zeros((len(changed), columns))
    for r, g in enumerate(changed):
        mine = np.flatnonzero(inputs.feature == g)
        rows[r, mine] = 1.0 / inputs.upper[mine]
        rows[r, len(inputs) + r] = -1.0
    return rows, np.zeros(len(changed))


def _level_rows(lowered: Lowered, inputs: Inputs, level: int, columns: int) -> tuple[Floats, Floats]:
    """t >= cost of every feature (of those that cannot change too)."""
    rows = np.zeros((lowered.features, columns))
    rows[inputs.feature, np.arange(len(inputs))] = inputs.cost
    rows[:, level] = -1.0
    keep = np.isin(np.arange(lowered.features), inputs.feature) | (inputs.fixed_cost > 0.0)
    return rows[keep], -inputs.fixed_cost[keep]


def _relu_rows(
    z: Floats, c: Floats, low: Floats, high: Floats, h: NDArray[np.intp], a: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """z <= h;  h - z - l a <= -l  (from h <= z - l (1 - a));  h - u a <= 0, where z stands for z v + c."""
    each = np.arange(len(h))
    above, below, off = z.copy(), -z, np.zeros_like(z)
    above[each, h] -= 1.0
    below[each, h] += 1.0
    below[each, a] -= low
    off[each, h], off[each, a] = 1.0, -high
    return np.concatenate([above, below, off]), np.concatenate([-c, c - low, np.zeros(len(h))])


def _objective(
    lowered: Lowered, inputs: Inputs, changed: NDArray[np.intp], columns: int
) -> tuple[Floats, Floats, float]:
    """Linear costs, quadratic costs, and what is paid in any case."""
    cost, square = np.zeros(columns), np.zeros(columns)
    if lowered.norm is Norm.LINF:
        cost[len(inputs)] = 1.0
        return cost, square, 0.0
    square[: len(inputs)] = np.where(inputs.signed, inputs.cost, 0.0)
    cost[: len(inputs)] = np.where(inputs.signed, 0.0, inputs.cost)
    cost[len(inputs) : len(inputs) + len(changed)] = lowered.jump[changed]
    return cost, square, float(inputs.fixed_cost.sum())
