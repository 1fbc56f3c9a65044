"""Big-M and indicator formulations of one person's question (paper eqs. 3 and 4), independent of any solver.

Network: bounds l <= z <= u of every pre-activation over the person's domain; u <= 0 gives h = 0, l >= 0 gives h = z,
the rest get a binary a and

    h >= z,   h >= 0,   h <= z - l (1 - a),   h <= u a

(bounded, eq. 4). Without bounds (eq. 3) every neuron gets one, and rows that count only for one state:

    h >= z,   h >= 0,   a = 1  =>  h <= z,   a = 0  =>  h <= 0

Columns: those of the input side (`common.input_side`), then h and a of the unstable neurons, layer by layer. Stable
neurons are substituted and cost neither columns nor rows. Neurons that stand for rules are rows  z >= 0.

An ensemble of trees adds its leaves (`tree_program`); the network is then what the rules need.

Two programs are made of it. MIP-OBJ minimises the distance under  C s - d >= need.  MIP-EXP maximises the smallest
slack of the conditions,  t <= C s - d - margin,  under  distance <= budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered
from ifonly.resources import check_limits
from ifonly.solvers.common.backends.protocol import Floats, Form, When
from ifonly.solvers.common.bounds import Bounds
from ifonly.solvers.common.input_side import InputSide, input_side
from ifonly.solvers.common.inputs import Inputs, Person
from ifonly.solvers.common.trees import PersonTrees
from ifonly.solvers.mip.tree_program import Encoded, with_trees

WHOLE_EDGE = 1e-6
"""A rule that takes only whole values may miss 0 by this: its big-M rows have coefficients of many sizes."""

BOUND_SLACK = 1e-7
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
    cuts: dict[int, NDArray[np.intp]] = field(default_factory=dict)
    """Of trees: the columns of the open cuts of each number."""


def _encoded(lowered: Lowered, side: InputSide, bounds: Bounds, clear: float = 0.0) -> Encoded:
    masks = _with_binaries(lowered, bounds, len(side.form.cost))
    counts = [int(mask.sum()) for mask in masks]
    at, more = len(side.form.cost), 2 * sum(counts)
    lower, upper = np.append(side.form.lower, np.zeros(more)), np.append(side.form.upper, np.ones(more))
    integer = np.append(side.form.integer, np.zeros(more, dtype=bool))
    parts = [(np.hstack([side.form.rows, np.zeros((len(side.form.limit), more))]), side.form.limit)]
    matrix, c = side.inputs.first_layer(*lowered.layers[0])
    z = np.zeros((len(matrix), at + more))
    z[:, : len(side.inputs)] = matrix
    when: list[When] = []
    for i, (mask, count) in enumerate(zip(masks, counts, strict=True)):
        low, high = bounds.lower[i], bounds.upper[i]
        parts.append(_rule_rows(lowered, i, z, c, clear))
        h, a = at + np.arange(count), at + count + np.arange(count)
        slack = BOUND_SLACK * (high - low)[mask]
        upper[h] = high[mask] + 2.0 * slack
        integer[a] = True
        if np.isfinite(slack).all():
            parts.append(_relu_rows(z[mask], c[mask], low[mask] - slack, high[mask] + slack, h, a))
        else:
            parts.append(_above_rows(z[mask], c[mask], h))
            when += _relu_states(z[mask], c[mask], h, a)
        live = low >= 0.0
        z, c = np.where(live[:, None], z, 0.0), np.where(live, c, 0.0)
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
    return Encoded(form=form, z=z, c=c)


def _with_binaries(lowered: Lowered, bounds: Bounds, inputs: int) -> list[NDArray[np.bool_]]:
    """Which neurons of each hidden layer get columns beside the inputs: the unstable ones, but for rules, from which
    nothing follows."""
    masks = [bounds.unstable(i) for i in range(len(lowered.layers) - 1)]
    for layer, place in lowered.required.tolist():
        masks[layer][place] = False
    count = sum(int(mask.sum()) for mask in masks)
    check_limits(2 * 8 * 3 * count * (inputs + 2 * count))  # three rows of each, and all of them once more as one array
    return masks


def formulate(
    lowered: Lowered,
    person: Person,
    need: Floats,
    bounds: Bounds,
    *,
    clear: float = 0.0,
    forest: PersonTrees | None = None,
) -> Program:
    """MIP-OBJ of one person; `need` is what each output condition must reach, `clear` how far (relative to its terms)
    a rule about real numbers must be from its edge. Domains must not be empty.
    """
    side = input_side(lowered, person)
    encoded = _encoded(lowered, side, bounds, clear)
    if forest is not None:
        encoded = with_trees(lowered, person, side, encoded.form, forest)
    form = encoded.form
    size = np.abs(encoded.z).max(axis=1, initial=0.0) if forest is not None else np.ones(len(need))
    size = np.where(size > 0.0, size, 1.0)
    scale = 1.0 / float(max(form.cost.max(initial=0.0), form.square.max(initial=0.0)) or 1.0)
    return Program(
        form=replace(
            form,
            cost=form.cost * scale,
            square=form.square * scale,
            rows=np.vstack([form.rows, -encoded.z / size[:, None]]),
            limit=np.append(form.limit, (encoded.c - need) / size),
        ),
        offset=side.offset,
        scale=scale,
        inputs=side.inputs,
        unstable=bounds.unstable_count,
        cuts=encoded.cuts,
    )


def formulate_output(
    lowered: Lowered, person: Person, budget: float, bounds: Bounds, forest: PersonTrees | None = None
) -> tuple[Program, InputSide]:
    """MIP-EXP of one person: minus the smallest slack, the last column, is minimised within the budget."""
    side = input_side(lowered, person, budget)
    encoded = _encoded(lowered, side, bounds)
    ends = bounds.lower[-1], bounds.upper[-1]
    if forest is not None:
        encoded, ends = with_trees(lowered, person, side, encoded.form, forest), forest.ends()
    form, conditions = encoded.form, len(encoded.c)
    least, most = (float((end - lowered.need).min()) for end in ends)
    reach = 1.0 + most - least  # the rows bound the slack; these ends only have to be finite
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
            lower=np.append(form.lower, least - reach),
            upper=np.append(form.upper, most + reach),
            integer=np.append(form.integer, False),
        ),
        offset=0.0,
        scale=1.0,
        inputs=side.inputs,
        unstable=bounds.unstable_count,
        cuts=encoded.cuts,
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
