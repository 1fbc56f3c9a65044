"""The programs of one person's question (paper eqs. 3 and 4), and nothing about any solver.

Network: bounds l <= z <= u of every pre-activation over the person's domain; u <= 0 gives h = 0, l >= 0 gives h = z,
the rest get a binary a and

    h >= z,   h >= 0,   h <= z - l (1 - a),   h <= u a

(bounded, eq. 4). Without bounds (eq. 3) every neuron gets one, and rows that count only for one state:

    h >= z,   h >= 0,   a = 1  =>  h <= z,   a = 0  =>  h <= 0

Columns: the person's inputs, a binary for each number that pays for having changed (or whose changing counts), one for
the direction of each integer without which another feature may not change, the level t of linf, the squares (only
where an l2 distance has a budget), then h and a of the unstable neurons, layer by layer. Stable neurons are
substituted and cost neither columns nor rows. Neurons that stand for rules are rows  z >= 0.

Two programs are made of it. MIP-OBJ minimises the distance under  C s - d >= need.  MIP-EXP maximises the smallest
slack of the conditions,  t <= C s - d - margin,  under  distance <= budget.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.mip.backends.protocol import Floats, Form, When
from ifonly.mip.backends.squares import with_squares
from ifonly.mip.bounds import Bounds
from ifonly.mip.inputs import Inputs, Person, make_inputs
from ifonly.problem import Lowered, Norm

BUDGET_SLACK = 1e-9
"""Relative: how far beyond its budget a distance may go in a row of a program, so that rounding cuts nothing off."""

WHOLE_EDGE = 1e-6
"""A rule that takes only whole values may miss 0 by this: its big-M rows have coefficients of many sizes."""

ROOM = 1e-7
"""Relative to u - l: how far the bounds in a program lie outside those proven. Bounds that are tight to the last bit
make a presolve fix columns at them and then call the program infeasible (HiGHS 1.15 does)."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """Costs are multiplied by `scale` (largest cost 1) so that a solver's absolute tolerances mean something."""

    form: Form
    offset: float
    scale: float
    inputs: Inputs
    unstable: int


@dataclass(frozen=True, kw_only=True)
class InputSide:
    """The columns before the network: inputs, indicators, level, squares; with the distance as cost, or as a row."""

    form: Form
    offset: float
    """Distance (l2: squared) paid in any case, beside the costs."""
    inputs: Inputs
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
        return InputSide(form=form, offset=offset, inputs=inputs, squared=np.zeros(0, dtype=np.intp))
    squared = np.flatnonzero(square)
    form = with_squares(form, squared) if len(squared) else form
    total = (budget**2 if lowered.norm is Norm.L2 else budget) * (1.0 + BUDGET_SLACK) - offset
    size = float(form.cost.max(initial=0.0)) or 1.0
    form = replace(
        form,
        cost=np.zeros(len(form.cost)),
        rows=np.vstack([form.rows, form.cost[None, :] / size]),
        limit=np.append(form.limit, total / size),
    )
    return InputSide(form=form, offset=offset, inputs=inputs, squared=squared)


@dataclass(frozen=True, kw_only=True)
class _Encoded:
    """Inputs and network; the conditions are z v + c."""

    form: Form
    z: Floats
    c: Floats


def _encoded(lowered: Lowered, side: InputSide, bounds: Bounds, clear: float = 0.0) -> _Encoded:
    hidden = range(len(lowered.layers) - 1)
    masks = [bounds.unstable(i) for i in hidden]
    for layer, place in lowered.required.tolist():  # nothing follows from them
        masks[layer][place] = False
    counts = [int(mask.sum()) for mask in masks]
    before, more = len(side.form.cost), 2 * sum(counts)
    columns = before + more
    lower, upper = np.append(side.form.lower, np.zeros(more)), np.append(side.form.upper, np.ones(more))
    integer = np.append(side.form.integer, np.zeros(more, dtype=bool))
    parts = [(np.hstack([side.form.rows, np.zeros((len(side.form.limit), more))]), side.form.limit)]
    matrix, c = side.inputs.first_layer(*lowered.layers[0])
    z = np.zeros((len(matrix), columns))
    z[:, : len(side.inputs)] = matrix
    at, when = before, list[When]()
    for i, (mask, count) in enumerate(zip(masks, counts, strict=True)):
        low, high = bounds.lower[i], bounds.upper[i]
        parts.append(_rule_rows(lowered, i, z, c, clear))
        h, a = at + np.arange(count), at + count + np.arange(count)
        room = ROOM * (high - low)[mask]
        upper[h] = high[mask] + 2.0 * room
        integer[a] = True
        if np.isfinite(room).all():
            parts.append(_relu_rows(z[mask], c[mask], low[mask] - room, high[mask] + room, h, a))
        else:
            parts.append(_above_rows(z[mask], c[mask], h))
            when += _relu_states(z[mask], c[mask], h, a)
        live = (low >= 0.0)[:, None]
        z, c = np.where(live, z, 0.0), np.where(live[:, 0], c, 0.0)
        z[np.flatnonzero(mask), h] = 1.0
        weight, bias = lowered.layers[i + 1]
        z, c = weight @ z, weight @ c + bias
        at += 2 * count
    form = Form(
        cost=np.append(side.form.cost, np.zeros(more)),
        square=np.append(side.form.square, np.zeros(more)),
        rows=np.concatenate([rows for rows, _ in parts]),
        limit=np.concatenate([limit for _, limit in parts]),
        lower=lower,
        upper=upper,
        integer=integer,
        when=tuple(when),
    )
    return _Encoded(form=form, z=z, c=c)


def formulate(lowered: Lowered, person: Person, need: Floats, bounds: Bounds, *, clear: float = 0.0) -> Program:
    """MIP-OBJ of one person; `need` is what each output condition must reach, `clear` how far (relative to its terms)
    a rule about real numbers must be from its edge. Domains must not be empty.
    """
    side = input_side(lowered, person)
    encoded = _encoded(lowered, side, bounds, clear)
    form = encoded.form
    scale = 1.0 / float(max(form.cost.max(initial=0.0), form.square.max(initial=0.0)) or 1.0)
    return Program(
        form=replace(
            form,
            cost=form.cost * scale,
            square=form.square * scale,
            rows=np.vstack([form.rows, -encoded.z]),
            limit=np.append(form.limit, encoded.c - need),
        ),
        offset=side.offset,
        scale=scale,
        inputs=side.inputs,
        unstable=bounds.unstable_count,
    )


def formulate_output(lowered: Lowered, person: Person, budget: float, bounds: Bounds) -> tuple[Program, InputSide]:
    """MIP-EXP of one person: minus the smallest slack, the last column, is minimised within the budget."""
    side = input_side(lowered, person, budget)
    encoded = _encoded(lowered, side, bounds)
    form, conditions = encoded.form, len(encoded.c)
    least = float((bounds.lower[-1] - lowered.need).min())
    most = float((bounds.upper[-1] - lowered.need).min())
    room = 1.0 + most - least  # the rows bound the slack; these ends only have to be finite
    program = Program(
        form=Form(
            cost=np.append(form.cost, -1.0),
            square=np.append(form.square, 0.0),
            rows=np.vstack(
                [
                    np.hstack([form.rows, np.zeros((len(form.limit), 1))]),
                    np.hstack([-encoded.z, np.ones((conditions, 1))]),
                ]
            ),
            limit=np.concatenate([form.limit, encoded.c - lowered.need]),
            lower=np.append(form.lower, least - room),
            upper=np.append(form.upper, most + room),
            integer=np.append(form.integer, False),
        ),
        offset=0.0,
        scale=1.0,
        inputs=side.inputs,
        unstable=bounds.unstable_count,
    )
    return program, side


def _rule_rows(lowered: Lowered, layer: int, z: Floats, c: Floats, clear: float) -> tuple[Floats, Floats]:
    """z >= 0 for the neurons that stand for rules; for whole ones, anything above -1 says the same."""
    mine = lowered.required[:, 0] == layer
    places = lowered.required[mine, 1]
    size = np.abs(z[places]).sum(axis=1) + np.abs(c[places])
    edge = np.where(lowered.required_whole[mine], -WHOLE_EDGE, clear * size)
    scale = 1.0 / np.maximum(np.abs(z[places]).max(axis=1, initial=0.0), 1.0)
    return -z[places] * scale[:, None], (c[places] - edge) * scale


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

    A feature's change is a sum of columns plus a constant: its indicator, its options other than the factual's, or
    just 1 where it must change. An integer partner with an indicator also really moves: its direction is a binary d,
    and  v >= i - (D + 1)(1 - d),  v <= (U + 1) d - i  for its indicator i and its steps v in [-D, U].
    """
    rows: list[Floats] = []
    limits: list[float] = []
    change, always = np.zeros((lowered.features, columns)), np.zeros(lowered.features)
    for g in range(lowered.features):
        mine = np.flatnonzero(inputs.feature == g)
        if lowered.numeric[g]:
            must = not person.lower[g] <= person.factual[g] <= person.upper[g]
        else:
            must = not person.allowed[int(lowered.start[g]) + int(person.factual[g])]
        if must:
            always[g] = 1.0
        elif not lowered.numeric[g]:
            change[g, mine] = 1.0
        elif g in changed:
            change[g, len(inputs) + int(np.flatnonzero(changed == g)[0])] = 1.0
    if lowered.most_changes < lowered.features:
        rows.append(change.sum(axis=0))
        limits.append(lowered.most_changes - always.sum())
    for g, partner in lowered.partners.tolist():
        rows.append(change[g] - change[partner])
        limits.append(float(always[partner] - always[g]))
    turning = _turning(lowered, changed)
    for d, g in enumerate(turning.tolist(), start=len(inputs) + len(changed)):
        steps = np.zeros(columns)
        mine = np.flatnonzero(inputs.feature == g)
        steps[mine] = np.sign(inputs.unit[mine])
        step = lowered.step[g]
        down, up = (
            round((person.factual[g] - person.lower[g]) / step),
            round((person.upper[g] - person.factual[g]) / step),
        )
        one, other = change[g] - steps, change[g] + steps
        one[d] += down + 1.0
        other[d] -= up + 1.0
        rows += [one, other]
        limits += [down + 1.0 - always[g], -always[g]]
    return np.array(rows).reshape(len(rows), columns), np.array(limits)


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


def _relu_rows(
    z: Floats, c: Floats, low: Floats, high: Floats, h: NDArray[np.intp], a: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """z <= h;  h - z - l a <= -l  (from h <= z - l (1 - a));  h - u a <= 0, where z stands for z v + c."""
    each = np.arange(len(h))
    (above, limit), below, off = _above_rows(z, c, h), -z, np.zeros_like(z)
    below[each, h] += 1.0
    below[each, a] -= low
    off[each, h], off[each, a] = 1.0, -high
    return np.concatenate([above, below, off]), np.concatenate([limit, c - low, np.zeros(len(h))])


def _above_rows(z: Floats, c: Floats, h: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """z <= h."""
    above = z.copy()
    above[np.arange(len(h)), h] -= 1.0
    return above, -c


def _relu_states(z: Floats, c: Floats, h: NDArray[np.intp], a: NDArray[np.intp]) -> list[When]:
    """a = 1  =>  h <= z;  a = 0  =>  h <= 0."""
    states = []
    for row, constant, after, state in zip(-z, c.tolist(), h.tolist(), a.tolist(), strict=True):
        row[after] = 1.0
        used = np.flatnonzero(row)
        states.append(When(binary=state, value=True, columns=used, row=row[used], limit=constant))
        states.append(When(binary=state, value=False, columns=np.array([after]), row=np.ones(1), limit=0.0))
    return states


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
