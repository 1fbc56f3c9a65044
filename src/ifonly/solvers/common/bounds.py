"""Bounds of the pre-activations: l <= z <= u over a person's domain (paper eqs. 5 and 6, Algorithm 2), in three ways.

Interval arithmetic, layer by layer:

    l_i = max(W_i, 0) l_{i-1} + min(W_i, 0) u_{i-1} + b_i        u_i likewise

The other two put the linear over-approximation of eq. 6 in place of an unstable ReLU:

    h >= z,   h >= 0,   h <= u (z - l) / (u - l)

*Linear* (the paper's way): with the distance budget among the rows, two linear programs per neuron. No optimum is
believed: any multipliers y >= 0 of the rows give, over the box of the columns,

    min c.v  >=  - y.limit + sum over columns of min((c + y rows) lower, (c + y rows) upper)

whatever the solver was up to. That is evaluated here and rounded outward.

*Backward* (no solver): a neuron is a sum over the layer before it; each h there is replaced by the side of the
over-approximation that its sign asks for (below: z or 0, whichever encloses the smaller triangle), layer by layer down
to the inputs, where the sum is bounded over the domain, and over the budget with the one multiplier that suits it best.

Neither is ever worse than the interval.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.problem import Lowered
from ifonly.solvers.common.backends.highs import loaded
from ifonly.solvers.common.backends.protocol import Floats, Form
from ifonly.solvers.common.input_side import input_side
from ifonly.solvers.common.inputs import Person

BoundsName: TypeAlias = Literal["linear", "backward", "interval"]
BOUNDS: tuple[str, ...] = get_args(BoundsName)

ROUNDING = 1e-12
"""Relative to the sum of absolute terms: far more than float64 loses in such sums."""
LEAST = 2.0**-1022
"""And far more than it loses below this."""


def _off(work: Any) -> Any:
    """What rounding and underflow may do to sums with these absolute terms; sums of nothing are exact."""
    return np.where(work > 0.0, ROUNDING * work + LEAST, 0.0)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds of every layer's pre-activations, the conditions C s - d last."""

    lower: tuple[Floats, ...]
    upper: tuple[Floats, ...]

    def unstable(self, layer: int) -> NDArray[np.bool_]:
        return (self.lower[layer] < 0.0) & (self.upper[layer] > 0.0)

    @property
    def unstable_count(self) -> int:
        return sum(int(self.unstable(i).sum()) for i in range(len(self.lower) - 1))


def neuron_bounds(
    lowered: Lowered,
    person: Person,
    budget: float | None,
    how: BoundsName | Literal["none"],
    *,
    until: float = math.inf,
) -> Bounds:
    """Bounds over a domain that is cut to the budget already; after `until` (as of `time.perf_counter`) wider ones."""
    match how:
        case "linear":
            return linear_bounds(lowered, person, budget, until=until)
        case "backward":
            return backward_bounds(lowered, person, budget)
        case "interval":
            return interval_bounds(lowered, person)
        case "none":
            return unbounded(lowered)
        case _:
            assert_never(how)


def check_bounds(how: str, names: tuple[str, ...]) -> None:
    """A sentence for a name that a method does not know."""
    if how not in names:
        raise QuestionError(f"There are no bounds {how!r} here; choose one of {', '.join(names)}.")


def unbounded(lowered: Lowered) -> Bounds:
    """Nothing is known of any neuron."""
    ends = [np.full(len(bias), np.inf) for _, bias in lowered.layers]
    return Bounds(lower=tuple(-end for end in ends), upper=tuple(ends))


def input_interval(lowered: Lowered, person: Person, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
    """weight x + bias over the person's domain; exactly one option of each choice."""
    at = lowered.start[:-1][lowered.numeric]
    ends = weight[:, at] * person.lower[lowered.numeric], weight[:, at] * person.upper[lowered.numeric]
    low, high = np.minimum(*ends).sum(axis=1) + bias, np.maximum(*ends).sum(axis=1) + bias
    work = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=1) + np.abs(bias)
    for g in np.flatnonzero(~lowered.numeric):
        here = slice(int(lowered.start[g]), int(lowered.start[g + 1]))
        options = weight[:, here][:, person.allowed[here]]
        low, high = low + options.min(axis=1), high + options.max(axis=1)
        work = work + np.abs(options).max(axis=1)
    return low - _off(work), high + _off(work)


def next_interval(weight: Floats, bias: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """One layer on, from the bounds of the pre-activations before it."""
    positive, negative = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
    below, above = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
    work = _off(np.abs(weight) @ above + np.abs(bias))
    return positive @ below + negative @ above + bias - work, positive @ above + negative @ below + bias + work


def interval_bounds(lowered: Lowered, person: Person) -> Bounds:
    """Interval arithmetic over the person's domain."""
    lows, highs = [], []
    low, high = input_interval(lowered, person, *lowered.layers[0])
    for weight, bias in lowered.layers[1:]:
        lows.append(low)
        highs.append(high)
        low, high = next_interval(weight, bias, low, high)
    return Bounds(lower=(*lows, low), upper=(*highs, high))


def backward_bounds(lowered: Lowered, person: Person, budget: float | None = None) -> Bounds:
    """Every neuron by substitution back to the inputs. `person` should be cut to what the budget allows."""
    side = input_side(lowered, person, budget, support=False)
    largest = np.ones(lowered.width)
    largest[lowered.start[:-1][lowered.numeric]] = np.maximum(np.abs(person.lower), np.abs(person.upper))[
        lowered.numeric
    ]
    lows: list[Floats] = []
    highs: list[Floats] = []

    def most(weight: Floats, bias: Floats) -> Floats:
        """What weight h + bias is never above, h being what the last layer that is bounded gives."""
        weight, bias = _substituted(lowered.layers[: len(lows)], lows, highs, weight, bias, largest)
        within_box = input_interval(lowered, person, weight, bias)[1]
        if budget is None:
            return within_box
        return np.minimum(within_box, _within_budget(side.form, *side.inputs.first_layer(weight, bias)))

    for i, (weight, bias) in enumerate(lowered.layers):
        low, high = -most(-weight, -bias), most(weight, bias)
        if i:
            least, greatest = next_interval(weight, bias, lows[-1], highs[-1])
            low, high = np.maximum(low, least), np.minimum(high, greatest)
        crossed = low > high  # only over an empty set
        low[crossed] = high[crossed] = 0.5 * (low + high)[crossed]
        lows.append(low)
        highs.append(high)
    return Bounds(lower=tuple(lows), upper=tuple(highs))


def _substituted(
    layers: Sequence[tuple[Floats, Floats]],
    lows: list[Floats],
    highs: list[Floats],
    weight: Floats,
    bias: Floats,
    largest: Floats,
) -> tuple[Floats, Floats]:
    """A function of the inputs (none larger than `largest`) that weight h + bias is never above, h after the layers."""
    size, work = np.abs(weight), np.abs(bias)
    for (before, constant), low, high in zip(reversed(layers), reversed(lows), reversed(highs), strict=True):
        not_robust = (low < 0.0) & (high > 0.0)
        roof = np.where(not_robust, high / np.where(not_robust, high - low, 1.0), low >= 0.0)
        floor = np.where(not_robust, high > -low, low >= 0.0)
        up, down = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        after = up * roof + down * floor
        bias = bias - up @ np.where(not_robust, roof * low, 0.0) + after @ constant
        weight = after @ before
        work = work + size @ (np.abs(low) + np.abs(high) + np.abs(constant))
        size = size @ np.abs(before)
    return weight, bias + _off(work + size @ largest)


def _within_budget(form: Form, matrix: Floats, constant: Floats) -> Floats:
    """What matrix v + constant, of the first columns, is never above in the box and within the last row (the budget).

    One multiplier: the bound is convex in it, and turns where it is the gain of a column for its share of the budget.
    """
    only = replace(form, rows=form.rows[-1:], limit=form.limit[-1:])
    gains = np.zeros((len(matrix), len(form.cost)))
    gains[:, : matrix.shape[1]] = matrix
    paid = only.rows[0] > 0.0
    prices = np.maximum(gains[:, paid] / only.rows[0, paid], 0.0)
    most = [
        -safe_bound(only, -gain, price[:, None]).max(initial=-np.inf) for gain, price in zip(gains, prices, strict=True)
    ]
    return np.array(most) + constant + _off(np.abs(constant))


def linear_bounds(lowered: Lowered, person: Person, budget: float | None = None, *, until: float = math.inf) -> Bounds:
    """Two linear programs per neuron whose interval leaves its state open (and for each condition).

    `person` should be cut to what the budget allows. A neuron whose interval already fixes its state is left alone.
    """
    side = input_side(lowered, person, budget, support=False)
    form, matrix, constant = side.form, *side.inputs.first_layer(*lowered.layers[0])
    z = np.zeros((len(matrix), len(form.cost)))
    z[:, : len(side.inputs)] = matrix
    c = constant
    low, high = input_interval(lowered, person, *lowered.layers[0])
    lows, highs = [], []
    for i in range(len(lowered.layers)):
        if time.perf_counter() < until:
            low, high = _tightened(form, z, c, low, high, until, last=i == len(lowered.layers) - 1)
        lows.append(low)
        highs.append(high)
        if i + 1 < len(lowered.layers):
            form, h, d = _with_relus(form, z, c, low, high)
            weight, bias = lowered.layers[i + 1]
            z, c = weight @ h, weight @ d + bias
            low, high = next_interval(weight, bias, low, high)
    return Bounds(lower=tuple(lows), upper=tuple(highs))


def _tightened(
    form: Form, z: Floats, c: Floats, low: Floats, high: Floats, until: float, *, last: bool
) -> tuple[Floats, Floats]:
    """Both ends of each open neuron z v + c by a linear program each, where that is better."""
    low, high = low.copy(), high.copy()
    neurons = np.arange(len(low)) if last else np.flatnonzero((low < 0.0) & (high > 0.0))
    if not len(neurons) or not len(form.cost):
        return low, high
    highs = loaded(replace(form, integer=np.zeros(len(form.cost), dtype=bool)))
    highs.setOptionValue("presolve", "off")
    highs.setOptionValue("solver", "simplex")
    for j in neurons.tolist():
        if time.perf_counter() > until:
            break
        low[j] = max(low[j], _least(highs, form, z[j]) + c[j] - float(_off(np.abs(c[j]))))
        high[j] = min(high[j], -_least(highs, form, -z[j]) + c[j] + float(_off(np.abs(c[j]))))
        if low[j] > high[j]:  # only over an empty set can this be; both ends hold there, and a program needs an order
            low[j] = high[j] = 0.5 * (low[j] + high[j])
    return low, high


def _least(highs: Any, form: Form, objective: Floats) -> float:
    """A number that objective.v is never below, from the solver's multipliers (or from none)."""
    columns = len(form.cost)
    highs.changeColsCost(columns, np.arange(columns, dtype=np.int32), objective)
    highs.run()
    best = safe_bound(form, objective, np.zeros(len(form.limit)))
    solution = highs.getSolution()
    if solution.dual_valid:
        multipliers = np.maximum(-np.array(solution.row_dual), 0.0)
        if np.isfinite(multipliers).all():
            best = max(best, safe_bound(form, objective, multipliers))
    return float(best)


def safe_bound(form: Form, objective: Floats, multipliers: Floats) -> Floats:
    """Safe dual bound: what the multipliers (>= 0) of the rows prove, rounded outward; one per line of multipliers."""
    reduced = objective + multipliers @ form.rows
    size = np.maximum(np.abs(form.lower), np.abs(form.upper))
    work = (np.abs(objective) + multipliers @ np.abs(form.rows)) @ size + multipliers @ np.abs(form.limit)
    bound = np.minimum(reduced * form.lower, reduced * form.upper).sum(axis=-1) - multipliers @ form.limit
    return np.asarray(bound - _off(work))


def _with_relus(form: Form, z: Floats, c: Floats, low: Floats, high: Floats) -> tuple[Form, Floats, Floats]:
    """The form with a column h for each unstable neuron and its triangle; then all h as functions of the columns."""
    mask = (low < 0.0) & (high > 0.0)
    count, columns = int(mask.sum()), len(form.cost)
    z = np.hstack([z, np.zeros((len(z), count))])
    open_z, open_c, least, most = z[mask], c[mask], low[mask], high[mask]
    each, h = np.arange(count), columns + np.arange(count)
    slope = most / (most - least)
    work = np.abs(open_c) + most - least
    above, roof = open_z.copy(), -slope[:, None] * open_z
    above[each, h] -= 1.0
    roof[each, h] += 1.0
    wide = Form(
        cost=np.zeros(columns + count),
        square=np.zeros(columns + count),
        rows=np.vstack([np.hstack([form.rows, np.zeros((len(form.limit), count))]), above, roof]),
        # outward: the slope is a rounded number
        limit=np.concatenate([form.limit, -open_c, slope * (open_c - least) + _off(work)]),
        lower=np.concatenate([form.lower, np.zeros(count)]),
        upper=np.concatenate([form.upper, most]),
        integer=np.zeros(columns + count, dtype=bool),
    )
    live = low >= 0.0
    after, d = np.where(live[:, None], z, 0.0), np.where(live, c, 0.0)
    after[np.flatnonzero(mask), h] = 1.0
    return wide, after, d
