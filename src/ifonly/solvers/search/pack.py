"""Packing of a question and its people into flat arrays, with bounds on rounding errors (outward rounding).

Numerics. The kernels compute in float64 and every bound is widened outward by what rounding can do to it: a bound in
advance over the box of the person (`slack`), or what the node itself gives, if that is less. With E the rounding error
of the deployed model over the same box (what underflow takes, in the model and in the kernels, is in both):

    LOW  = margin - E    no point below this is ever accepted by the deployed model: bounds are proven against it
    HIGH = margin + E    a point at or above this always is: only such points are returned (and a little more, for what
                         the kernels may lose themselves)
    AIM  = a little more: what leaf problems are solved for, so that an optimum on the margin survives its own rounding

Where E is too large for the two to meet, only points that are accepted under any rounding count (`robust_errors`): LOW
is then margin + E as well, and HIGH is above it by what the kernels' own rounding can do.

A real number on a grid is searched as so many steps from the factual, but is the float64 nearest to that, and so are
the factual and the step: 4 roundings of the number. The error of the first layer allows for 8 more than its sum has.

So in floating point the lower bound is that of real arithmetic up to the closed forms' own last-bit rounding (a
relative 1e-12 is given away for it); for a proof in exact arithmetic, see certificates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedQuestion
from ifonly.model.products import rows_times
from ifonly.model.smooth.activations import NAMES, Activation
from ifonly.problem import Lowered, Norm
from ifonly.problem import People as Allowed
from ifonly.resources import check_limits
from ifonly.schema import Choice, Numeric
from ifonly.solvers.search.kernels import layout
from ifonly.solvers.search.kernels.layout import (
    ADDITIVE,
    CHOICE,
    INTEGER,
    MAXIMUM,
    REAL,
    SQUARED,
    Pack,
    PackedPeople,
    Scratch,
    Tree,
    TriangleBuffers,
)
from ifonly.solvers.search.kernels.splits import MANY_NUMBERS
from ifonly.tolerances import Tolerances

NORMS = {Norm.L0: ADDITIVE, Norm.L1: ADDITIVE, Norm.L2: SQUARED, Norm.LINF: MAXIMUM}
UNIT_ROUNDOFF = 2.0**-53
LEAST_NORMAL = 2.0**-1022
LARGEST = 1e150
"""Of the numbers inside a search: their products and squares must not overflow."""
MOST_ROWS = 96
MOST_PROBED = 160
"""ReLUs of a node that are unstable or split: with more, none is probed."""
STEPS_A_RELU = 8
"""Two rounds, two sides, two programs."""
FIRST_LOG = 1 << 16
STEEPEST = 1.2
"""No activation has a slope beyond."""
LINE_UNITS = 2.0
"""Of a line's shift: what is lost of it, in units of all operations, which are more than 32."""

Floats = NDArray[np.float64]
Probing = Literal["by rule", "always", "never"]


def units(lowered: Lowered) -> Floats:
    """What one internal unit of each feature is: a step of an integer, 1 otherwise."""
    return np.where(lowered.in_steps, lowered.step, 1.0)


def pack_question(lowered: Lowered, tolerances: Tolerances) -> Pack:
    """The arrays of a question."""
    unit = units(lowered)
    first = lowered.layers[0][0].copy()
    for g in np.flatnonzero(lowered.numeric):
        first[:, lowered.start[g]] *= unit[g]
    stack = [(first, lowered.layers[0][1]), *lowered.layers[1:]]
    sizes = [lowered.width, *(len(bias) for _, bias in stack)]
    rules, pairs = len(lowered.required), len(lowered.partners)
    index = np.zeros((layout.TOUCHES + rules, max(lowered.features, len(sizes), rules, pairs) + 1), dtype=np.int64)
    index[layout.RULE_LAYER : layout.RULE_PLACE + 1, :rules] = lowered.required.T
    index[layout.PARTNERED : layout.PARTNER + 1, :pairs] = lowered.partners.T
    index[layout.UNCOUNTED, : lowered.features] = ~lowered.counts
    index[layout.TOUCHES :, : lowered.features] = lowered.required_touches
    index[layout.KIND, : lowered.features] = np.where(
        lowered.numeric, np.where(lowered.step > 0, INTEGER, REAL), CHOICE
    )
    index[layout.START, : lowered.features + 1] = lowered.start
    index[layout.SIZES, : len(sizes)] = sizes
    index[layout.WEIGHT_AT, 1 : len(stack)] = np.cumsum([weight.size for weight, _ in stack])[:-1]
    index[layout.BIAS_AT, 1 : len(stack)] = np.cumsum(sizes[1:])[:-1]
    return Pack(
        norm=NORMS[lowered.norm],
        layers=len(stack),
        gap=tolerances.gap,
        relative_gap=tolerances.relative_gap,
        index=index,
        price=np.array([lowered.rate * unit, lowered.jump, lowered.rate_down * unit]),
        weights=np.concatenate([weight.ravel() for weight, _ in stack]),
        biases=np.concatenate([bias for _, bias in stack]),
        first=np.ascontiguousarray(first),
        rules=rules,
        pairs=pairs,
    )


def pack_people(lowered: Lowered, people: Allowed, errors: Errors, box: Floats, z: Floats) -> PackedPeople:
    """The arrays of many people; `errors` are theirs, or the same for all of them; of `box` and `z` see `pack_rows`."""
    slack, need, start, lost = (_for_all(part, len(people)) for part in errors)
    if len(lowered.required):
        need[:, layout.HOLDS, -len(lowered.required) :] = lowered.holding(people.factual)
    return PackedPeople(
        z=z,
        box=box,
        mask=people.allowed.view(np.uint8),
        cost=people.cost,
        option=people.option,
        slack=slack,
        need=need,
        start=start,
        most=np.array([lowered.most_changes]).repeat(len(people)),
        lost=lost,
    )


def _for_all(part: Floats, count: int) -> Floats:
    """One row per person."""
    return part.copy() if len(part) == count else part.repeat(count, axis=0)


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
    return errors_within(lowered, Boxes(low[None, :], high[None, :], np.ones((1, lowered.width), dtype=np.bool_)))


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
    slack, start, lost = (_slacks if lowered.bends is None else _smooth_slacks)(lowered, *boxes)
    check_limits()
    question = lowered.question
    c, _ = question.conditions
    if model_error is None:
        model_error = question.model.error_over(*encoded_boxes(lowered, boxes))
    error = question.caution * (model_error @ np.abs(c).T)
    own = slack[-1]
    high = lowered.need + (error if question.rounding_bound is None else question.rounding_bound) + own
    need = np.stack([lowered.need - error, high, high + error + 2.0 * own], axis=1)
    flat = np.concatenate(slack, axis=1)
    return Errors(slack=flat, need=np.concatenate([need, _floors(lowered, flat)], axis=2), start=start, lost=lost)


def robust_errors(lowered: Lowered, errors: Errors, rounding_bound: Floats, own: Floats) -> Errors:
    """The same for rows that are accepted under any rounding: whose score is `rounding_bound` above the margin.

    `own` (box, condition) is what the kernels may lose of a score themselves, at the row that they find.
    """
    count = lowered.need.size
    need = np.array(np.broadcast_to(errors.need, (len(rounding_bound), *errors.need.shape[1:])))
    least = (lowered.need + rounding_bound[:, None])[:, None, :]
    need[:, :, :count] = least + own[:, None, :] * np.array([0.0, 1.0, 2.0])[:, None]
    return errors._replace(need=need)


def _floors(lowered: Lowered, slack: Floats) -> Floats:
    """Below which value a rule is broken under any rounding, and from which on it holds. Whole values are exact."""
    own = slack[:, lowered.required_neurons]
    return np.stack([-2.0 * own, np.where(lowered.required_whole, -0.5, 4.0 * own), np.zeros_like(own)], axis=1)


def encoded_boxes(lowered: Lowered, boxes: Boxes) -> tuple[Floats, Floats]:
    """The boxes over encoded columns."""
    schema, (low, high, options) = lowered.question.schema, boxes
    lower, upper = np.zeros((len(low), len(schema.columns))), np.zeros((len(low), len(schema.columns)))
    for g, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        if isinstance(feature, Choice):
            mine = options[:, lowered.start[g] : lowered.start[g + 1], None]
            lower[:, columns] = np.where(mine, feature.codes, np.inf).min(axis=1)
            upper[:, columns] = np.where(mine, feature.codes, -np.inf).max(axis=1)
        else:
            lower[:, columns[0]], upper[:, columns[0]] = low[:, g], high[:, g]
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
    for (weight, bias), taken in zip(lowered.layers[1:], lost[1:], strict=True):
        starts.append(np.stack([lower, upper], axis=1))
        off = upper <= 0.0
        active, size = np.maximum(upper, 0.0), np.abs(weight)
        slack = rows_times(np.where(off, 0.0, slack), size)
        slack = slack + unit * (rows_times(active, size) + np.abs(bias))
        slacks.append(slack + taken)
        inactive = np.maximum(lower, 0.0)
        centre, radius = (
            rows_times(0.5 * (inactive + active), weight) + bias,
            rows_times(0.5 * (active - inactive), size),
        )
        lower, upper = centre - radius - slacks[-1], centre + radius + slacks[-1]
    return slacks, np.concatenate(starts, axis=2) if starts else np.zeros((len(low), 2, 0)), lost[-1][:, 0]


def _smooth_slacks(
    lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]
) -> tuple[list[Floats], Floats, Floats]:
    """The same where smooth activations are between lines: the slope of a line is at most STEEPEST, and its shift no
    larger than the activation and what the slope makes of its argument."""
    assert lowered.bends is not None
    lost = _lost_below(lowered, low, high)
    lower, upper, slack, unit = _first_slack(lowered, low, high, options)
    slacks, starts, at = [slack + lost[0]], [], 0
    for (weight, bias), taken in zip(lowered.layers[1:], lost[1:], strict=True):
        starts.append(np.stack([lower, upper], axis=1))
        mine = slice(at, at + weight.shape[1])
        least, most = _bent(lowered.bends.code[mine], lowered.bends.alpha[mine], lower, upper)
        at, value = mine.stop, np.maximum(np.abs(least), np.abs(most))
        shift = value + STEEPEST * np.maximum(np.abs(lower), np.abs(upper))
        size = np.abs(weight)
        slack = rows_times(STEEPEST * slacks[-1] + LINE_UNITS * unit * shift, size)
        slack = slack + unit * (rows_times(value, size) + np.abs(bias))
        slacks.append(slack + taken)
        centre, radius = rows_times(0.5 * (least + most), weight) + bias, rows_times(0.5 * (most - least), size)
        lower, upper = centre - radius - slacks[-1], centre + radius + slacks[-1]
    return slacks, np.concatenate(starts, axis=2), lost[-1][:, 0]


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
    weight, bias = lowered.layers[0]
    lower = upper = np.zeros((len(low), len(bias))) + bias
    work = np.zeros((len(low), len(bias))) + np.abs(bias)
    for g in range(lowered.features):
        mine = weight[:, lowered.start[g] : lowered.start[g + 1]].T
        if lowered.numeric[g]:
            ends = low[:, g : g + 1] * mine, high[:, g : g + 1] * mine
            lower, upper = lower + np.minimum(*ends), upper + np.maximum(*ends)
            work += np.maximum(np.abs(ends[0]), np.abs(ends[1]))
        else:
            listed = options[:, lowered.start[g] : lowered.start[g + 1], None]
            lower = lower + np.where(listed, mine, np.inf).min(axis=1)
            upper = upper + np.where(listed, mine, -np.inf).max(axis=1)
            work += np.where(listed, np.abs(mine), 0.0).max(axis=1)
    return lower, upper, work


def _lost_below(lowered: Lowered, low: Floats, high: Floats) -> list[Floats]:
    """What underflow can take of a plane, layer by layer, shape (box, 1); a refusal where numbers are too large.

    Each of its coefficients, of every neuron on the way, is a sum of products, and may lose the least normal number
    with each operation; that is then multiplied by no more than the neuron could be, if every input were at least 1. So
    the loss is at most that number times all operations so far times all such neurons so far.
    """
    ends = np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    size = np.repeat(ends, np.diff(lowered.start), axis=1)
    total, operations, lost = size.sum(axis=1, keepdims=True), 16.0, []
    for weight, bias in lowered.layers:
        check_limits()
        with np.errstate(over="ignore"):
            size = 1.0 + rows_times(size, np.abs(weight)) + np.abs(bias)
            total = total + size.sum(axis=1, keepdims=True)
        if not (total < LARGEST).all():
            raise UnsupportedQuestion(
                f"On rows of the schema numbers inside the search may reach {total.max():.2g}, and beyond "
                f"{LARGEST:g} nothing can be proven; narrow the schema's bounds, or rescale the model's weights."
            )
        operations += 4.0 * (weight.size + len(bias))
        lost.append(operations * LEAST_NORMAL * total)
    return lost


# ---------------------------------------------------------------------------------------------- working memory


def hidden_neurons(pack: Pack) -> int:
    return int(pack.index[layout.SIZES, 1 : pack.layers].sum())


def new_scratch(pack: Pack, *, records: bool = False, rows: int = layout.FLOAT_ROWS) -> Scratch:
    """Buffers of one thread. `rows`: those of F."""
    features, columns = pack.price.shape[1], int(pack.index[layout.SIZES, 0])
    hidden, widest = hidden_neurons(pack), int(pack.index[layout.SIZES, : pack.layers + 1].max())
    variables = 2 * features + columns + 1
    row = max(hidden + 3, widest, columns, features + 1)  # LOSS has three entries more
    return Scratch(
        F=np.zeros((rows, row)),
        I=np.zeros((layout.INT_ROWS, row), dtype=np.int64),
        Wc=np.zeros((int(pack.index[layout.SIZES, 1]), columns)),
        LF=np.zeros((layout.PROGRAM_FLOATS, variables + MOST_ROWS)),
        LI=np.zeros((layout.PROGRAM_INTS, variables + MOST_ROWS), dtype=np.int64),
        T=np.zeros((MOST_ROWS, max(variables, MOST_ROWS))),
        A=np.zeros((MOST_ROWS, columns)),
        B=np.zeros((MOST_ROWS if records else 0, hidden), dtype=np.uint8),
    )


def when_probing(pack: Pack, probing: Probing, *, records: bool = False) -> int:
    """When ReLUs are probed. By the rule it takes more numbers than `MANY_NUMBERS`, so that some questions never do;
    nor do those whose multipliers cannot be recorded.
    """
    if records and (pack.rules > 0 or pack.index[layout.SIZES, pack.layers] > hidden_neurons(pack)):
        return layout.NEVER
    numbers = np.count_nonzero(pack.index[layout.KIND, : pack.price.shape[1]] != CHOICE)
    if pack.layers == 1 or probing == "never" or (probing == "by rule" and numbers <= MANY_NUMBERS):
        return layout.NEVER
    return layout.ALWAYS if probing == "always" else layout.BY_RULE


def new_relaxation(pack: Pack, probing: int) -> TriangleBuffers:
    """Buffers of one thread for the relaxations of nodes; next to none where ReLUs are never probed."""
    hidden = hidden_neurons(pack) if probing != layout.NEVER else 0
    neurons = min(hidden, MOST_PROBED) if hidden else 0
    features, columns = (pack.price.shape[1], int(pack.index[layout.SIZES, 0])) if hidden else (0, 0)
    distances = 2 * columns if pack.norm == MAXIMUM else 0
    extra = int(pack.index[layout.SIZES, pack.layers]) + pack.rules + features
    rows = 2 * neurons + extra + distances
    width = columns + neurons + 2
    variables = max(columns + 1 + 4 * neurons + extra + distances, rows, width, hidden)
    widest = int(pack.index[layout.SIZES, 1 : pack.layers + 1].max()) if hidden else 0
    numbers = np.zeros((layout.LEVELS, layout.RELAXATION_INTS, max(variables, 4)), dtype=np.int64)
    numbers[0, layout.SIZE, layout.PROBING] = probing
    return TriangleBuffers(
        T=np.zeros((layout.LEVELS, rows, width)),
        F=np.zeros((layout.LEVELS, layout.RELAXATION_FLOATS, variables)),
        G=numbers,
        E=np.zeros((2 * widest, width)),
    )


def products_of(sizes: Sequence[int]) -> float:
    """About how many products bounding the neurons takes: a plane of each, down to the inputs, which come first."""
    wide = np.array(sizes, dtype=float)
    return float((np.cumsum(wide[:-1] * wide[1:]) * wide[1:]).sum())


def node_bytes(pack: Pack) -> int:
    """What one node of the pool takes."""
    return pack.price.shape[1] * 17 + int(pack.index[layout.SIZES, 0]) + hidden_neurons(pack) * 17 + 56


def most_steps(pack: Pack, probing: int) -> int:
    """How many multipliers of relaxations a node may record."""
    if probing == layout.NEVER:
        return 0
    rows = 1 if pack.index[layout.SIZES, pack.layers] == 1 else 2
    return rows * (STEPS_A_RELU * min(hidden_neurons(pack), MOST_PROBED) + 3)


def first_log(pack: Pack, probing: int) -> int:
    """Numbers of records that a tree has space for at first: at least those of three nodes."""
    row = 2 + hidden_neurons(pack)
    return max(FIRST_LOG, 3 * row * (most_steps(pack, probing) + MOST_ROWS + 2) if most_steps(pack, probing) else 0)


def new_tree(pack: Pack, capacity: int, *, log: int = 0, steps: int = 0) -> Tree:
    """An empty tree with space for `capacity` nodes and `log` numbers of records, with so many `steps` of each node."""
    count = np.zeros(layout.COUNTS, dtype=np.int64)
    count[layout.MOST_STEPS] = steps
    features, columns, hidden = pack.price.shape[1], int(pack.index[layout.SIZES, 0]), hidden_neurons(pack)
    return Tree(
        box=np.zeros((capacity, 2, features)),
        mask=np.zeros((capacity, columns), dtype=np.uint8),
        z=np.zeros((capacity, 2, hidden)),
        side=np.zeros((capacity, hidden), dtype=np.uint8),
        counted=np.zeros((capacity, features), dtype=np.uint8),
        num=np.zeros((2, capacity)),
        idx=np.zeros((5, capacity), dtype=np.int64),
        best=np.zeros(features),
        number=np.zeros(5),
        count=count,
        log=np.zeros(log),
    )


def enlarged(tree: Tree, pack: Pack, capacity: int, log: int) -> Tree:
    """The same tree with space for more nodes and records."""
    larger = new_tree(pack, capacity, log=log)
    old = tree.num.shape[1]
    for name in ("box", "mask", "z", "side", "counted"):
        getattr(larger, name)[:old] = getattr(tree, name)
    larger.num[:, :old] = tree.num
    larger.idx[:, :old] = tree.idx
    larger.idx[layout.FREE, old:] = np.arange(old, capacity)
    larger.log[: len(tree.log)] = tree.log
    return larger._replace(best=tree.best, number=tree.number, count=tree.count)
