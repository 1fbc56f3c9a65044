"""Input columns of a program: a person's columns, what they cost, and which of them may change together.

Columns: the person's inputs, a binary for each number that pays for having changed (or whose changing counts), one for
the direction of each integer without which another feature may not change, the level t of linf, the squares (only
where an l2 distance has a budget). What follows them (a network, or its relaxation) is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered, Norm
from ifonly.solvers.common.backends.protocol import Floats, Form
from ifonly.solvers.common.backends.squares import with_squares
from ifonly.solvers.common.inputs import Inputs, Person, make_inputs

BUDGET_SLACK = 1e-9
"""Relative: how far beyond its budget a distance may go in a row of a program, so that rounding cuts nothing off."""


@dataclass(frozen=True, kw_only=True)
class InputSide:
    """The columns before the network: inputs, indicators, level, squares; with the distance as cost, or as a row."""

    form: Form
    offset: float
    """Distance (l2: squared) paid in any case, beside the costs."""
    inputs: Inputs
    changed: NDArray[np.intp]
    """The numbers that have an indicator of having changed; theirs are the columns after the inputs."""
    squared: NDArray[np.intp]
    """Where a budget made squares into columns: the columns squared; theirs are the last."""


def input_side(lowered: Lowered, person: Person, budget: float | None = None, *, support: bool = True) -> InputSide:
    """The inputs of one person, whose domains must not be empty. With a budget, the distance is a row (of cost 0).

    Without `support`, which features change is left open: what is then said of the domain holds for all who share it.
    """
    inputs = make_inputs(lowered, person)
    changed = _with_indicator(lowered, inputs)
    binaries = len(changed) + len(_turning(lowered, changed))
    level = lowered.norm is Norm.LINF
    columns = len(inputs) + binaries + level
    lower, upper = np.zeros(columns), np.ones(columns)
    lower[: len(inputs)], upper[: len(inputs)] = inputs.lower, inputs.upper
    integer = np.zeros(columns, dtype=bool)
    integer[: len(inputs)] = inputs.integer
    integer[len(inputs) : len(inputs) + binaries] = True
    parts = [
        _choice_rows(inputs, columns),
        _change_rows(inputs, changed, columns),
        *([_support_rows(lowered, person, inputs, changed, columns)] if support else []),
    ]
    if level:
        parts.append(_level_rows(lowered, inputs, columns - 1, columns))
    cost, square, offset = _objective(lowered, inputs, changed, columns)
    form = Form(
        cost=cost,
        square=square,
        rows=np.concatenate([rows for rows, _ in parts]),
        limit=np.concatenate([limit for _, limit in parts]),
        lower=lower,
        upper=upper,
        integer=integer,
    )
    if budget is None:
        return InputSide(form=form, offset=offset, inputs=inputs, changed=changed, squared=np.zeros(0, dtype=np.intp))
    squared = np.flatnonzero(square)
    form = with_squares(form, squared) if len(squared) else form
    total = (budget**2 if lowered.norm is Norm.L2 else budget) * (1.0 + BUDGET_SLACK) - offset
    form = _within_budget(form, total)
    return InputSide(form=form, offset=offset, inputs=inputs, changed=changed, squared=squared)


def _within_budget(form: Form, total: float) -> Form:
    """The costs as a row, at most this; nothing is minimised."""
    size = float(form.cost.max(initial=0.0)) or 1.0
    return replace(
        form,
        cost=np.zeros(len(form.cost)),
        rows=np.vstack([form.rows, form.cost[None, :] / size]),
        limit=np.append(form.limit, total / size),
    )


def _with_indicator(lowered: Lowered, inputs: Inputs) -> NDArray[np.intp]:
    """Free numbers that pay for having changed, or whose changing counts. (Options are indicators themselves.)"""
    free = np.zeros(lowered.features, dtype=bool)
    free[inputs.feature] = True
    counted = lowered.most_changes < lowered.features
    linked = np.isin(np.arange(lowered.features), lowered.partners)
    return np.flatnonzero(free & lowered.numeric & ((lowered.jump > 0.0) | counted | linked))


def _support_rows(
    lowered: Lowered, person: Person, inputs: Inputs, changed: NDArray[np.intp], columns: int
) -> tuple[Floats, Floats]:
    """At most so many changes; a feature only with its partner.

    An integer partner with an indicator also really moves: its direction is a binary d, and
    v >= i - (D + 1)(1 - d),  v <= (U + 1) d - i  for its indicator i and its steps v in [-D, U].
    """
    rows: list[Floats] = []
    limits: list[float] = []
    change, always = _changes(lowered, person, inputs, changed, columns)
    if lowered.most_changes < lowered.features:
        rows.append(change[lowered.counts].sum(axis=0))
        limits.append(lowered.most_changes - always[lowered.counts].sum())
    for g, partner in lowered.partners.tolist():
        rows.append(change[g] - change[partner])
        limits.append(float(always[partner] - always[g]))
    for d, g in enumerate(_turning(lowered, changed).tolist(), start=len(inputs) + len(changed)):
        steps = np.zeros(columns)
        mine = np.flatnonzero(inputs.feature == g)
        steps[mine] = np.sign(inputs.unit[mine])
        step = lowered.step[g]
        down = round((person.factual[g] - person.lower[g]) / step)
        up = round((person.upper[g] - person.factual[g]) / step)
        one, other = change[g] - steps, change[g] + steps
        one[d] += down + 1.0
        other[d] -= up + 1.0
        rows += [one, other]
        limits += [down + 1.0 - always[g], -always[g]]
    return np.array(rows).reshape(len(rows), columns), np.array(limits)


def _changes(
    lowered: Lowered, person: Person, inputs: Inputs, changed: NDArray[np.intp], columns: int
) -> tuple[Floats, Floats]:
    """Each feature's change as a sum of columns (its indicator, or its options other than the factual's) plus a
    constant, which is 1 where it must change.
    """
    change, always = np.zeros((lowered.features, columns)), np.zeros(lowered.features)
    for g in range(lowered.features):
        if lowered.numeric[g]:
            must = not person.lower[g] <= person.factual[g] <= person.upper[g]
        else:
            must = not person.allowed[int(lowered.start[g]) + int(person.factual[g])]
        if must:
            always[g] = 1.0
        elif not lowered.numeric[g]:
            change[g, np.flatnonzero(inputs.feature == g)] = 1.0
        elif g in changed:
            change[g, len(inputs) + int(np.flatnonzero(changed == g)[0])] = 1.0
    return change, always


def _turning(lowered: Lowered, changed: NDArray[np.intp]) -> NDArray[np.intp]:
    """Integers that are somebody's partner: they need a direction."""
    return changed[np.isin(changed, lowered.partners[:, 1])]


def _choice_rows(inputs: Inputs, columns: int) -> tuple[Floats, Floats]:
    """At most one option other than the base (a single one needs no row)."""
    groups = [np.flatnonzero((inputs.feature == g) & (inputs.minus >= 0)) for g in np.unique(inputs.feature)]
    groups = [group for group in groups if len(group) > 1]
    rows = np.zeros((len(groups), columns))
    for r, group in enumerate(groups):
        rows[r, group] = 1.0
    return rows, np.ones(len(groups))


def _change_rows(inputs: Inputs, changed: NDArray[np.intp], columns: int) -> tuple[Floats, Floats]:
    """p / p_max + q / q_max <= indicator: big-M by the width of the domain (a signed column: both ways)."""
    rows: list[Floats] = []
    for r, g in enumerate(changed):
        mine = np.flatnonzero(inputs.feature == g)
        signed = inputs.lower[mine].min() < 0.0
        for end, sign in ((inputs.upper, 1.0), (inputs.lower, -1.0)) if signed else ((inputs.upper, 1.0),):
            if (sign * end[mine] > 0.0).all():
                row = np.zeros(columns)
                row[mine] = 1.0 / end[mine]
                row[len(inputs) + r] = -1.0
                rows.append(row)
    return np.array(rows).reshape(len(rows), columns), np.zeros(len(rows))


def _level_rows(lowered: Lowered, inputs: Inputs, level: int, columns: int) -> tuple[Floats, Floats]:
    """t >= cost of every feature (of those that cannot change too), in units of the most that t can be."""
    unit = _level_unit(inputs)
    rows = np.zeros((lowered.features, columns))
    rows[inputs.feature, np.arange(len(inputs))] = inputs.cost / unit
    rows[:, level] = -1.0
    keep = np.isin(np.arange(lowered.features), inputs.feature) | (inputs.fixed_cost > 0.0)
    return rows[keep], -inputs.fixed_cost[keep] / unit


def _level_unit(inputs: Inputs) -> float:
    """The level t of linf is a column in [0, 1] like every other: a solver's tolerances then suit small distances."""
    most = inputs.fixed_cost.copy()
    np.add.at(most, inputs.feature, inputs.cost * inputs.upper)
    return float(most.max()) * (1.0 + BUDGET_SLACK) or 1.0


def _objective(
    lowered: Lowered, inputs: Inputs, changed: NDArray[np.intp], columns: int
) -> tuple[Floats, Floats, float]:
    """Linear costs, quadratic costs, and what is paid in any case."""
    cost, square = np.zeros(columns), np.zeros(columns)
    if lowered.norm is Norm.LINF:
        cost[-1] = _level_unit(inputs)
        return cost, square, 0.0
    square[: len(inputs)] = np.where(inputs.signed, inputs.cost, 0.0)
    cost[: len(inputs)] = np.where(inputs.signed, 0.0, inputs.cost)
    cost[len(inputs) : len(inputs) + len(changed)] = lowered.jump[changed]
    return cost, square, float(inputs.fixed_cost.sum())
