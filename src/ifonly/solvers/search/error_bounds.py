"""Error bounds of a search: what rounding can do to the kernels' bounds, and to the deployed model, over boxes of rows.

The kernels compute in float64 and every bound is widened outward by what rounding can do to it: a bound in
advance over the box of the person (`slack`), or what the node itself gives, if that is less. With E the rounding error
of the deployed model over the same box (what underflow takes, in the model and in the kernels, is in both):

    LOW  = margin - E    no point below this is ever accepted by the deployed model: bounds are proven against it
    HIGH = margin + E    a point at or above this always is: only such points are returned (and a little more, for what
                         the kernels may lose themselves)
    AIM  = a little more: what leaf problems are solved for, so that an optimum on the margin survives its own rounding

Where E is too large for the two to meet, only points that are accepted under every rounding count (`robust_errors`):
LOW is then margin + E as well, and HIGH is above it by what the kernels' own rounding can do.

A real number on a grid is searched as so many steps from the factual, but is the float64 nearest to that, and so are
the factual and the step: 4 roundings of the number. The error of the first layer allows for 8 more than its sum has.

So in floating point the lower bound is that of real arithmetic up to the closed forms' own last-bit rounding (a
relative 1e-12 is given away for it); for a proof in exact arithmetic, see certificates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedQuestion
from ifonly.model.products import rows_times
from ifonly.model.smooth.activations import NAMES, STEEPEST, Activation
from ifonly.problem import Lowered, Norm
from ifonly.problem import People as Allowed
from ifonly.resources import check_limits
from ifonly.schema import Numeric

UNIT_ROUNDOFF = 2.0**-53
LEAST_NORMAL = 2.0**-1022
LARGEST = 1e150
"""Of the numbers inside a search: their products and squares must not overflow."""
LINE_UNITS = 2.0
"""Of a line's shift: what is lost of it, in units of all operations, which are more than 32."""

TEMPORARY = 1 << 20
"""Numbers in an array that is needed for a moment."""

Floats = NDArray[np.float64]


class Errors(NamedTuple):
    """What rounding can do, and first bounds of the hidden neurons; one row per box."""

    slack: Floats
    """(box, neuron): of a computed bound of each neuron, outputs last."""
    need: Floats
    """(box, 3, condition): LOW, HIGH, AIM; then the same for the neurons that stand for rules."""
    start: Floats
    """(box, 2, hidden neuron): interval bounds of the pre-activations."""
    lost: Floats
    """(box): what underflow can take of any bound."""


def errors_everywhere(lowered: Lowered) -> Errors:
    """Over the whole schema: the same for everyone."""
    ends = [(f.lower, f.upper) if isinstance(f, Numeric) else (0.0, 0.0) for f in lowered.question.schema.features]
    low, high = np.array(ends).T
    everything = Boxes(low[None, :], high[None, :], np.ones((1, lowered.width), dtype=np.bool_))
    slacks = lowered.network.once("slacks", lambda: _slacks_in(lowered, everything))
    return _errors(lowered, slacks, lowered.question.model.error[None, :])


class Boxes(NamedTuple):
    """Boxes of rows: the least and largest point of each, and the options that may occur in it."""

    low: Floats
    high: Floats
    options: NDArray[np.bool_]


def balls(lowered: Lowered, people: Allowed, reach: Floats) -> Boxes:
    """For each person, a box that holds the ball of distance `reach` around them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(lowered.rate > 0, reach[:, None] / lowered.rate, np.inf) * (1.0 + 1e-9)
        down = np.where(lowered.rate_down > 0, reach[:, None] / lowered.rate_down, np.inf) * (1.0 + 1e-9)
    low = np.maximum(np.minimum(people.lower, people.factual), people.factual - down)
    high = np.minimum(np.maximum(people.upper, people.factual), people.factual + up)
    cost = reach**2 if lowered.norm is Norm.L2 else reach
    options = people.allowed | (lowered.unrolled(people.factual) != 0)
    return Boxes(low, high, options & (people.cost <= cost[:, None] * (1.0 + 1e-9)))


def errors_within(lowered: Lowered, boxes: Boxes, model_error: Floats | None = None) -> Errors:
    """The same over each of these boxes; `model_error`: what the deployed model's scores can be off by there, if that
    is known."""
    slacks = _slacks_in(lowered, boxes)
    check_limits()
    if model_error is None:
        model_error = lowered.question.model.error_over(*encoded_boxes(lowered, boxes))
    return _errors(lowered, slacks, model_error)


def _slacks_in(lowered: Lowered, boxes: Boxes) -> tuple[list[Floats], Floats, Floats]:
    """What rounding can do to the search itself in these boxes, which its network decides alone."""
    return (_slacks if lowered.bends is None else _smooth_slacks)(lowered, *boxes)


def _errors(lowered: Lowered, slacks: tuple[list[Floats], Floats, Floats], model_error: Floats) -> Errors:
    question, (slack, start, lost) = lowered.question, slacks
    c, _ = question.conditions
    error = question.caution * (model_error @ np.abs(c).T)
    own = slack[-1]
    high = lowered.need + (error if question.rounding_bound is None else question.rounding_bound) + own
    need = np.stack([lowered.need - error, high, high + error + 2.0 * own], axis=1)
    flat = np.concatenate(slack, axis=1)
    return Errors(slack=flat, need=np.concatenate([need, _floors(lowered, flat)], axis=2), start=start, lost=lost)


def robust_errors(lowered: Lowered, errors: Errors, rounding_bound: Floats, own: Floats) -> Errors:
    """The same for rows that are accepted under every rounding: whose score is `rounding_bound` above the margin.

    `own` (box, condition) is what the kernels may lose of a score themselves, at the row that they find.
    """
    count = lowered.need.size
    need = np.empty((len(rounding_bound), *errors.need.shape[1:]))
    need[:] = errors.need
    least = lowered.need + rounding_bound[:, None]
    for k in range(3):
        need[:, k, :count] = least + own * float(k)
    return errors._replace(need=need)


def _floors(lowered: Lowered, slack: Floats) -> Floats:
    """Below which value a rule is broken under every rounding, and from which on it holds. Whole values are exact."""
    own = slack[:, lowered.required_neurons]
    return np.stack([-2.0 * own, np.where(lowered.required_whole, -0.5, 4.0 * own), np.zeros_like(own)], axis=1)


def encoded_boxes(lowered: Lowered, boxes: Boxes) -> tuple[Floats, Floats]:
    """The boxes over encoded columns."""
    schema, (low, high, options) = lowered.question.schema, boxes
    numbers, columns = lowered.numbers, lowered.number_columns
    lower, upper = np.zeros((len(low), len(schema.columns))), np.zeros((len(low), len(schema.columns)))
    lower[:, columns], upper[:, columns] = low[:, numbers], high[:, numbers]
    coded = lowered.coded_options
    if len(coded.starts):
        listed = options[:, coded.option]
        lower[:, coded.columns] = np.minimum.reduceat(np.where(listed, coded.code, np.inf), coded.starts, axis=1)
        upper[:, coded.columns] = np.maximum.reduceat(np.where(listed, coded.code, -np.inf), coded.starts, axis=1)
    return lower, upper


def _slacks(
    lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]
) -> tuple[list[Floats], Floats, Floats]:
    """What rounding can do to a bound of each neuron, layer by layer, over the boxes; intervals of the hidden ones; and
    what underflow can take.

    A bound is a plane, found by substitution back through the layers. The coefficients c of a layer's neurons are sums
    of products, and off by their rounding times |c| |W|; each is the factor of a ReLU's own value, which is between 0
    and `active`. So a layer adds K u (|W| active + |b|), with K for all operations on the way, times the coefficients
    that its neurons have above, which the products of |W| bound. A ReLU that is off in the whole box has no part in any
    sum. The kernels do the same in each node, with the coefficients as they are (`network.begin_losses`).
    """
    lost = _lost_below(lowered, low, high)
    lower, upper, slack, unit = _first_slack(lowered, low, high, options)
    slacks, starts = [slack + lost[0]], []
    for k, (weight, bias) in enumerate(lowered.layers[1:], start=1):
        starts.append((lower, upper))
        size, size_bias = lowered.absolute(k)
        active, inactive = np.maximum(upper, 0.0), np.maximum(lower, 0.0)
        slack = rows_times(np.where(upper <= 0.0, 0.0, slack), size)
        slack = slack + unit * (rows_times(active, size) + size_bias)
        slacks.append(slack + lost[k])
        centre = rows_times(0.5 * (inactive + active), weight) + bias
        radius = rows_times(0.5 * (active - inactive), size)
        lower, upper = centre - radius - slacks[-1], centre + radius + slacks[-1]
    return slacks, _beside(starts, len(low)), lost[-1][:, 0]


def _beside(intervals: list[tuple[Floats, Floats]], count: int) -> Floats:
    """The intervals of all layers' neurons, shape (box, 2, neuron)."""
    result = np.empty((count, 2, sum(lower.shape[1] for lower, _ in intervals)))
    at = 0
    for lower, upper in intervals:
        mine = slice(at, at + lower.shape[1])
        result[:, 0, mine], result[:, 1, mine], at = lower, upper, mine.stop
    return result


def _smooth_slacks(
    lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]
) -> tuple[list[Floats], Floats, Floats]:
    """The same where smooth activations are between lines: the slope of a line is at most STEEPEST, and its shift no
    larger than the activation and what the slope makes of its argument."""
    assert lowered.bends is not None
    lost = _lost_below(lowered, low, high)
    lower, upper, slack, unit = _first_slack(lowered, low, high, options)
    slacks, starts, at = [slack + lost[0]], [], 0
    for k, (weight, bias) in enumerate(lowered.layers[1:], start=1):
        starts.append((lower, upper))
        size, size_bias = lowered.absolute(k)
        mine = slice(at, at + weight.shape[1])
        least, most = _bent(lowered.bends.code[mine], lowered.bends.alpha[mine], lower, upper)
        at, value = mine.stop, np.maximum(np.abs(least), np.abs(most))
        shift = value + STEEPEST * np.maximum(np.abs(lower), np.abs(upper))
        slack = rows_times(STEEPEST * slacks[-1] + LINE_UNITS * unit * shift, size)
        slack = slack + unit * (rows_times(value, size) + size_bias)
        slacks.append(slack + lost[k])
        centre, radius = rows_times(0.5 * (least + most), weight) + bias, rows_times(0.5 * (most - least), size)
        lower, upper = centre - radius - slacks[-1], centre + radius + slacks[-1]
    return slacks, _beside(starts, len(low)), lost[-1][:, 0]


def _bent(code: NDArray[np.int64], alpha: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The least and the largest values of activations, column by column."""
    least, most = np.empty_like(lower), np.empty_like(upper)
    for kind in set(zip(code.tolist(), alpha.tolist(), strict=True)):
        mine = (code == kind[0]) & (alpha == kind[1])
        least[:, mine], most[:, mine] = Activation(NAMES[kind[0]], kind[1]).values(lower[:, mine], upper[:, mine])
    return least, most


def _first_slack(
    lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Intervals of the first layer's neurons, what rounding can do to a bound of each, and to a sum of 1 anywhere."""
    lower, upper, work = _first_interval(lowered, low, high, options)
    first = 2.0 * (lowered.width + work.shape[1] + 8.0) * (UNIT_ROUNDOFF * work + LEAST_NORMAL)
    lower, upper = lower - first, upper + first
    operations = options.sum(axis=1, keepdims=True) + lowered.features + 4.0 * len(lowered.layers) + 16.0
    unit = 1.5 * UNIT_ROUNDOFF * (operations + 2.0 * sum(len(bias) for _, bias in lowered.layers))
    return lower, upper, first + unit * np.maximum(np.abs(lower), np.abs(upper)), unit


def _first_interval(
    lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Of each neuron of the first layer: the least and largest value over the boxes, and what its terms add up to."""
    step = max(1, TEMPORARY // lowered.columns.size)
    parts = [_added_up(lowered, low[i : i + step], high[i : i + step], options[i : i + step, :, None])
             for i in range(0, len(low), step)]  # fmt: skip
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(each) for each in zip(*parts, strict=True))  # type: ignore[return-value]


def _added_up(lowered: Lowered, low: Floats, high: Floats, listed: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """The same of boxes that are few enough for arrays of all their columns."""
    bias, size_bias = lowered.layers[0][1], lowered.absolute(0)[1]
    columns, numbers = lowered.columns, lowered.numbers
    least, most = np.where(listed, columns, np.inf), np.where(listed, columns, -np.inf)
    size = np.where(listed, np.abs(columns), 0.0)
    at = lowered.start[numbers]
    ends = low[:, numbers, None] * columns[at], high[:, numbers, None] * columns[at]
    least[:, at], most[:, at] = np.minimum(*ends), np.maximum(*ends)
    size[:, at] = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    sums = []
    for first, terms, chosen in ((bias, least, np.minimum), (bias, most, np.maximum), (size_bias, size, np.maximum)):
        of_features = np.empty((len(low), lowered.features + 1, len(bias)))
        of_features[:, 0] = first
        chosen.reduceat(terms, lowered.start[:-1], axis=1, out=of_features[:, 1:])
        sums.append(np.add.accumulate(of_features, axis=1, out=of_features)[:, -1])  # one after the other
    return sums[0], sums[1], sums[2]


def _lost_below(lowered: Lowered, low: Floats, high: Floats) -> list[Floats]:
    """What underflow can take of a plane, layer by layer, shape (box, 1); a refusal where numbers are too large.

    Each of its coefficients, of every neuron on the way, is a sum of products, and may lose the least normal number
    with each operation; that is then multiplied by no more than the neuron could be, if every input were at least 1. So
    the loss is at most that number times all operations so far times all such neurons so far.
    """
    ends = np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    size = ends[:, lowered.feature_of]
    total, operations, lost = size.sum(axis=1, keepdims=True), 16.0, []
    for k, (weight, bias) in enumerate(lowered.layers):
        check_limits()
        absolute, size_bias = lowered.absolute(k)
        with np.errstate(over="ignore"):
            size = 1.0 + rows_times(size, absolute) + size_bias
            total = total + size.sum(axis=1, keepdims=True)
        if not (total < LARGEST).all():
            raise UnsupportedQuestion(
                f"On rows of the schema numbers inside the search may reach {total.max():.2g}, and beyond "
                f"{LARGEST:g} nothing can be proven; narrow the schema's bounds, or rescale the model's weights."
            )
        operations += 4.0 * (weight.size + len(bias))
        lost.append(operations * LEAST_NORMAL * total)
    return lost
