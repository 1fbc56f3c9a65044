"""A question and its people, packed into flat arrays for the kernels.

Numerics. The kernels compute in float64 and every bound is widened outward by an a-priori error bound: a value that
is a sum of products through the layers, evaluated in any order with T terms in all, is off by at most gamma_T times
the same sum with absolute values, which is bounded over the box of the person (`slack`). With E the rounding error
of the deployed model over the same box (what underflow takes, in the model and in the kernels, is in both):

    LOW  = margin - E    no point below this is ever accepted by the deployed model: bounds are proven against it
    HIGH = margin + E    a point at or above this surely is: only such points are returned
    AIM  = a little more: what leaf problems are solved for, so that an optimum on the margin survives its own rounding

A real number on a grid is searched as so many steps from the factual, but is the float64 nearest to that, and so are
the factual and the step: 4 roundings of the number. The error of the first layer has room for 8 more than its sum has.

So in floating point the lower bound is that of real arithmetic up to the closed forms' own last-bit rounding (a
relative 1e-12 is given away for it); a proof in exact arithmetic is the certificate's business.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Lowered, Norm
from ifonly.problem import People as Allowed
from ifonly.schema import Choice, Numeric
from ifonly.search.kernels import layout
from ifonly.search.kernels.layout import (
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
)
from ifonly.tolerances import Tolerances

NORMS = {Norm.L0: ADDITIVE, Norm.L1: ADDITIVE, Norm.L2: SQUARED, Norm.LINF: MAXIMUM}
UNIT_ROUNDOFF = 2.0**-53
LEAST_NORMAL = 2.0**-1022
LARGEST = 1e150
"""Of the numbers inside a search: their products and squares must not overflow."""
MOST_ROWS = 96

Floats = NDArray[np.float64]


def units(lowered: Lowered) -> Floats:
    """What one internal unit of each feature is: a step of an integer, 1 otherwise."""
    return np.where(lowered.numeric & (lowered.step > 0), lowered.step, 1.0)


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


def pack_people(lowered: Lowered, people: Allowed, errors: Errors, unit: Floats) -> PackedPeople:
    """The arrays of many people; `errors` are theirs, or the same for all of them; `unit` is that of the question."""
    points, numeric = people.factual, lowered.numeric
    integer = numeric & (lowered.step > 0)
    box = np.stack([(people.lower - points) / unit, (people.upper - points) / unit], axis=1)
    lead = people.lead
    whole = np.where(box == 0.0, 0.0, np.round(box - lead[:, None]) + lead[:, None])
    box = np.where(integer, whole, np.where(numeric, box, 0.0))
    box = np.concatenate([box, lead[:, None]], axis=1)
    slack, need, start = (_for_all(part, len(points)) for part in errors)
    need[:, layout.HOLDS, need.shape[2] - len(lowered.required) :] = lowered.holding(points)
    return PackedPeople(
        z=_first_layer(lowered, points),
        box=np.ascontiguousarray(box),
        mask=people.allowed.astype(np.uint8),
        cost=people.cost,
        option=np.where(numeric, 0.0, points).astype(np.int64),
        slack=slack,
        need=need,
        start=start,
        most=np.full(len(points), lowered.most_changes, dtype=np.int64),
    )


def _for_all(part: Floats, count: int) -> Floats:
    """One row per person."""
    if len(part) == count:
        return part.copy()
    return np.array(np.broadcast_to(part, (count, *part.shape[1:])), order="C")


def _first_layer(lowered: Lowered, points: Floats) -> Floats:
    """The first layer at each point. Unlike in a matrix product, no one else's row matters to the last bit."""
    numbers, slopes, choices, starts, columns = lowered.first
    z = np.einsum("ng,gi->ni", points[:, numbers], slopes) + lowered.layers[0][1]
    if len(choices):
        z += columns[starts + points[:, choices].astype(np.intp)].sum(axis=1)
    return z


class Errors(NamedTuple):
    """What rounding can do, and first bounds of the hidden neurons; one row per box."""

    slack: Floats
    """(box, neuron): of a computed bound of each neuron, outputs last."""
    need: Floats
    """(box, 3, condition): LOW, HIGH, AIM; then the same for the neurons that stand for rules."""
    start: Floats
    """(box, 2, hidden neuron): interval bounds of the pre-activations."""


def errors_everywhere(lowered: Lowered) -> Errors:
    """Over the whole schema: the same for everyone."""
    ends = [(f.lower, f.upper) if isinstance(f, Numeric) else (0.0, 0.0) for f in lowered.question.schema.features]
    low, high = np.array(ends).T
    return _errors(lowered, low[None, :], high[None, :], np.ones((1, lowered.width), dtype=np.bool_))


def errors_within(lowered: Lowered, people: Allowed, reach: Floats) -> Errors:
    """The same for each person, over the ball of distance `reach` around them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(lowered.rate > 0, reach[:, None] / lowered.rate, np.inf) * (1.0 + 1e-9)
        down = np.where(lowered.rate_down > 0, reach[:, None] / lowered.rate_down, np.inf) * (1.0 + 1e-9)
    low = np.maximum(np.minimum(people.lower, people.factual), people.factual - down)
    high = np.minimum(np.maximum(people.upper, people.factual), people.factual + up)
    cost = reach**2 if lowered.norm is Norm.L2 else reach
    options = people.allowed | (lowered.unrolled(people.factual) != 0)
    return _errors(lowered, low, high, options & (people.cost <= cost[:, None] * (1.0 + 1e-9)))


def _errors(lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]) -> Errors:
    """Over boxes: the least and largest point of each, and the options that may occur in it."""
    slack, start = _slacks(lowered, low, high, options)
    question = lowered.question
    c, _ = question.conditions
    error = question.caution * (
        question.model.function.error(*_encoded(lowered, low, high, options), question.model.precision) @ np.abs(c).T
    )
    need = np.stack([lowered.need - error, lowered.need + error, lowered.need + 2.0 * error + 2.0 * slack[-1]], axis=1)
    flat = np.concatenate(slack, axis=1)
    return Errors(slack=flat, need=np.concatenate([need, _floors(lowered, flat)], axis=2), start=start)


def _floors(lowered: Lowered, slack: Floats) -> Floats:
    """When a rule is surely broken, and when it surely holds. A value that can only be whole is not in doubt."""
    own = slack[:, lowered.required_neurons]
    return np.stack([-2.0 * own, np.where(lowered.required_whole, -0.5, 4.0 * own), np.zeros_like(own)], axis=1)


def _encoded(lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The boxes over encoded columns."""
    schema = lowered.question.schema
    lower, upper = np.zeros((len(low), len(schema.columns))), np.zeros((len(low), len(schema.columns)))
    for g, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        if isinstance(feature, Choice):
            mine = options[:, lowered.start[g] : lowered.start[g + 1], None]
            lower[:, columns] = np.where(mine, feature.codes, np.inf).min(axis=1)
            upper[:, columns] = np.where(mine, feature.codes, -np.inf).max(axis=1)
        else:
            lower[:, columns[0]], upper[:, columns[0]] = low[:, g], high[:, g]
    return lower, upper


def _slacks(lowered: Lowered, low: Floats, high: Floats, options: NDArray[np.bool_]) -> tuple[list[Floats], Floats]:
    """What rounding can do to a bound of each neuron, layer by layer, over the boxes; and intervals of the hidden ones.

    The first layer at the factual is computed once, off by `first`; a plane is then a sum of products along the
    paths from there, each with at most T roundings, so off by T u times the sum of its absolute terms, `paths`. A
    ReLU that is off in the whole box has no part in any sum: the search starts from these interval bounds.
    """
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
    first = 2.0 * (lowered.width + 8.0) * (UNIT_ROUNDOFF * work + LEAST_NORMAL)
    lower, upper = lower - first, upper + first
    paths = np.maximum(np.abs(lower), np.abs(upper))
    terms = options.sum(axis=1, keepdims=True) + lowered.features + 4.0 * len(lowered.layers) + 16.0
    lost = _LostBelow(lowered, low, high)
    slacks, starts = [first + 1.5 * UNIT_ROUNDOFF * terms * paths + lost.after(weight, bias)], []
    for weight, bias in lowered.layers[1:]:
        starts.append(np.stack([lower, upper], axis=1))
        off = upper <= 0.0
        paths, first = np.where(off, 0.0, paths), np.where(off, 0.0, first)
        terms = terms + (~off).sum(axis=1, keepdims=True)
        size = np.abs(weight)
        paths, first = paths @ size.T + np.abs(bias), first @ size.T
        slack = first + 1.5 * UNIT_ROUNDOFF * terms * paths + lost.after(weight, bias)
        lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
        centre, radius = (0.5 * (lower + upper)) @ weight.T + bias, (0.5 * (upper - lower)) @ size.T + slack
        lower, upper = centre - radius, centre + radius
        slacks.append(slack)
    return slacks, np.concatenate(starts, axis=2) if starts else np.zeros((len(low), 2, 0))


class _LostBelow:
    """What underflow can take of a plane, layer by layer.

    Each of its coefficients, of every neuron on the way, is a sum of products, and may lose the least normal number
    with each operation; that is then multiplied by no more than the neuron could be, if every input were at least 1. So
    the loss is at most that number times all operations so far times all such neurons so far.
    """

    def __init__(self, lowered: Lowered, low: Floats, high: Floats) -> None:
        ends = np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
        self._size = np.repeat(ends, np.diff(lowered.start), axis=1)
        self._all, self._operations = self._size.sum(axis=1, keepdims=True), 16.0

    def after(self, weight: Floats, bias: Floats) -> Floats:
        """Of the neurons of the next layer, shape (box, 1)."""
        with np.errstate(over="ignore"):
            self._size = 1.0 + self._size @ np.abs(weight).T + np.abs(bias)
            self._all = self._all + self._size.sum(axis=1, keepdims=True)
        self._operations += 4.0 * (weight.size + len(bias))
        if not (self._all < LARGEST).all():
            raise UnsupportedQuestion(
                f"On rows of the schema numbers inside the search may reach {self._all.max():.2g}, and beyond "
                f"{LARGEST:g} nothing can be proven; narrow the schema's bounds, or rescale the model's weights."
            )
        return self._operations * LEAST_NORMAL * self._all


# ---------------------------------------------------------------------------------------------- working memory


def hidden_neurons(pack: Pack) -> int:
    return int(pack.index[layout.SIZES, 1 : pack.layers].sum())


def new_scratch(pack: Pack, *, records: bool = False) -> Scratch:
    """Buffers of one thread."""
    features, columns = pack.price.shape[1], int(pack.index[layout.SIZES, 0])
    hidden, widest = hidden_neurons(pack), int(pack.index[layout.SIZES, : pack.layers + 1].max())
    variables = 2 * features + columns + 1
    row = max(hidden, widest, columns, features + 1)
    return Scratch(
        F=np.zeros((layout.FLOAT_ROWS, row)),
        I=np.zeros((layout.INT_ROWS, row), dtype=np.int64),
        Wc=np.zeros((int(pack.index[layout.SIZES, 1]), columns)),
        LF=np.zeros((layout.PROGRAM_FLOATS, variables + MOST_ROWS)),
        LI=np.zeros((layout.PROGRAM_INTS, variables + MOST_ROWS), dtype=np.int64),
        T=np.zeros((MOST_ROWS, max(variables, MOST_ROWS))),
        A=np.zeros((MOST_ROWS, columns)),
        B=np.zeros((MOST_ROWS if records else 0, hidden), dtype=np.uint8),
    )


def node_bytes(pack: Pack) -> int:
    """What one node of the pool takes."""
    return pack.price.shape[1] * 17 + int(pack.index[layout.SIZES, 0]) + hidden_neurons(pack) * 17 + 56


def new_tree(pack: Pack, capacity: int, *, log: int = 0) -> Tree:
    """An empty tree with room for `capacity` nodes and `log` numbers of records."""
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
        count=np.zeros(6, dtype=np.int64),
        log=np.zeros(log),
    )


def grown(tree: Tree, pack: Pack, capacity: int, log: int) -> Tree:
    """The same tree with room for more nodes and records."""
    larger = new_tree(pack, capacity, log=log)
    old = tree.num.shape[1]
    for name in ("box", "mask", "z", "side", "counted"):
        getattr(larger, name)[:old] = getattr(tree, name)
    larger.num[:, :old] = tree.num
    larger.idx[:, :old] = tree.idx
    larger.idx[layout.FREE, old:] = np.arange(old, capacity)
    larger.log[: len(tree.log)] = tree.log
    return larger._replace(best=tree.best, number=tree.number, count=tree.count)
