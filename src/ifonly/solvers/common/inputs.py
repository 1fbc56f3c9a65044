"""The input side of the MIP: one person's free choices as columns, their costs and their box.

    numbers    change = unit * (p - q),  0 <= p, q   (one signed column for l2); integers count steps
    choices    one binary per option other than the base option; at most one of them is 1

A real feature's unit is its largest possible change, so that its columns lie in [0, 1]: the scaling that suits a
solver. What cannot change is no column at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered, Norm, People

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Person:
    """One person of `People`: the factual, and what each feature may become."""

    factual: Floats
    lower: Floats
    upper: Floats
    allowed: NDArray[np.bool_]
    cost: Floats
    rounding_bound: float = 0.0
    """How much above the margin a score must be for a row to count."""
    own: float = 0.0
    """How much more, so that float64 here cannot take it away."""

    @classmethod
    def of(cls, people: People, index: int) -> Person:
        return cls(
            factual=people.factual[index],
            lower=people.lower[index],
            upper=people.upper[index],
            allowed=people.allowed[index],
            cost=people.cost[index],
        )

    def empty(self, lowered: Lowered) -> bool:
        """Does some feature have no value left?"""
        return not np.logical_or.reduceat(self.allowed, lowered.start[:-1]).all()

    def nearest(self, lowered: Lowered) -> Floats:
        """The allowed row that is nearest to the factual, whatever the model says of it. Domains must not be empty."""
        point = np.clip(self.factual, self.lower, self.upper)
        for g in np.flatnonzero(~lowered.numeric):
            start, end = int(lowered.start[g]), int(lowered.start[g + 1])
            point[g] = int(np.where(self.allowed[start:end], self.cost[start:end], np.inf).argmin())
        return point


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Columns of the person's free choices. Unrolled columns = base + sum over columns of coefficient * value."""

    base: Floats
    """The unrolled columns when every column here is 0."""
    feature: Ints
    plus: Ints
    """The unrolled column that each column moves ..."""
    minus: Ints
    """... and the one that it takes from (the base option), or -1."""
    unit: Floats
    """Change of `plus` for one unit of the column (negative for decreases)."""
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]
    signed: NDArray[np.bool_]
    """Signed columns carry their cost squared (l2)."""
    cost: Floats
    """Cost of one unit (for signed columns: of its square)."""
    fixed_cost: Floats
    """For each feature what it costs when its columns are all 0."""

    def __len__(self) -> int:
        return len(self.plus)

    def first_layer(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """The first layer as a function of these columns: matrix and constant."""
        matrix = weight[:, self.plus] * self.unit
        taken = self.minus >= 0
        matrix[:, taken] -= weight[:, self.minus[taken]]
        return matrix, weight @ self.base + bias


def make_inputs(lowered: Lowered, person: Person) -> Inputs:
    """The columns of one person, whose domains must not be empty."""
    base = np.zeros(lowered.width)
    fixed = np.zeros(lowered.features)
    columns: list[tuple[int, int, int, float, float, float, bool, bool, float]] = []
    for g in range(lowered.features):
        at = int(lowered.start[g])
        if lowered.numeric[g]:
            columns += _number(lowered, person, g, at, base, fixed)
        else:
            options = at + np.flatnonzero(person.allowed[at : lowered.start[g + 1]])
            stay = int(options[person.cost[options].argmin()])
            base[stay], fixed[g] = 1.0, person.cost[stay]
            columns += [
                (g, j, stay, 1.0, 0.0, 1.0, True, False, float(person.cost[j] - person.cost[stay]))
                for j in options.tolist()
                if j != stay
            ]
    fields = zip(*columns, strict=True) if columns else [()] * 9
    feature, plus, minus, unit, lower, upper, integer, signed, cost = fields
    return Inputs(
        base=base,
        feature=np.array(feature, dtype=np.intp),
        plus=np.array(plus, dtype=np.intp),
        minus=np.array(minus, dtype=np.intp),
        unit=np.array(unit, dtype=np.float64),
        lower=np.array(lower, dtype=np.float64),
        upper=np.array(upper, dtype=np.float64),
        integer=np.array(integer, dtype=bool),
        signed=np.array(signed, dtype=bool),
        cost=np.array(cost, dtype=np.float64),
        fixed_cost=fixed,
    )


def _number(
    lowered: Lowered, person: Person, g: int, at: int, base: Floats, fixed: Floats
) -> list[tuple[int, int, int, float, float, float, bool, bool, float]]:
    """The columns of a number: up and down, or one signed column for l2 (where both ways cost the same)."""
    factual, low, high = float(person.factual[g]), float(person.lower[g]), float(person.upper[g])
    rate, fall = float(lowered.rate[g]), float(lowered.rate_down[g])
    jump, squared = float(lowered.jump[g]), lowered.norm is Norm.L2
    if low == high:
        base[at] = low
        moved = rate * (low - factual) if low > factual else fall * (factual - low)
        fixed[g] = moved**2 if squared else moved + jump * (low != factual)
        return []
    base[at] = factual
    whole = lowered.step[g] > 0
    unit = float(lowered.step[g]) if whole else max(abs(high - factual), abs(low - factual))
    up, down = (high - factual) / unit, (factual - low) / unit
    if whole:
        up, down = round(up), round(down)
    if squared and rate == fall:
        return [(g, at, -1, unit, -down, up, whole, True, (rate * unit) ** 2)]
    both = [(unit, max(-down, 0.0), up, rate * unit), (-unit, max(-up, 0.0), down, fall * unit)]
    return [
        (g, at, -1, u, least, most, whole, squared, cost**2 if squared else cost)
        for u, least, most, cost in both
        if most > 0
    ]


def read_point(lowered: Lowered, person: Person, inputs: Inputs, values: Floats) -> Floats:
    """The point that a solver's values stand for: integers and options rounded, numbers clipped to the domain."""
    point = np.array(person.factual)
    rounded = np.where(inputs.integer, np.round(values), values)
    for g in range(lowered.features):
        mine = np.flatnonzero(inputs.feature == g)
        at, end = int(lowered.start[g]), int(lowered.start[g + 1])
        if lowered.numeric[g]:
            change = float(inputs.unit[mine] @ rounded[mine])
            if not lowered.step[g] and len(mine) and abs(change) < NOISE * float(np.abs(inputs.unit[mine]).max()):
                change = 0.0
            point[g] = min(max(inputs.base[at] + change, person.lower[g]), person.upper[g])
        else:
            chosen = mine[rounded[mine] == 1.0] if len(mine) else mine
            column = int(inputs.plus[chosen[0]]) if len(chosen) else at + int(inputs.base[at:end].argmax())
            point[g] = column - at
    return point


NOISE = 1e-9
"""Changes of a real feature below this share of its largest possible change are the solver's tolerance: taken back."""
