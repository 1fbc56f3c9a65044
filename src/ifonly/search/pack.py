"""A question and its people, packed into flat arrays for the kernels.

Numerics. The kernels compute in float64 and every bound is widened outward by an a-priori error bound: a value that is a sum of
products through the layers, evaluated in any order with T terms in all, is off by at most gamma_T times the same sum with
absolute values, which is bounded over the box of the person (`slack`, four times that, since a bound is a difference of two
such sums with slopes at most 1). With E the rounding error of the deployed model over the same box:

    LOW  = margin - E    no point below this is ever accepted by the deployed model: bounds are proven against it
    HIGH = margin + E    a point at or above this surely is: only such points are returned
    AIM  = a little more: what leaf problems are solved for, so that an optimum on the margin survives its own rounding

So in floating point the lower bound is that of real arithmetic up to the closed forms' own last-bit rounding (a relative 1e-12 is
given away for it); a proof in exact arithmetic is the certificate's business.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ifonly.model.rounding import score_error
from ifonly.problem import Lowered, Norm
from ifonly.problem import People as Allowed
from ifonly.search.kernels import layout
from ifonly.search.kernels.layout import ADDITIVE, CHOICE, INTEGER, MAXIMUM, REAL, SQUARED, Pack, People, Scratch, Tree
from ifonly.tolerances import Tolerances

NORMS = {Norm.L0: ADDITIVE, Norm.L1: ADDITIVE, Norm.L2: SQUARED, Norm.LINF: MAXIMUM}
UNIT_ROUNDOFF = 2.0**-53
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
    index = np.zeros((5, max(lowered.features + 1, len(sizes) + 1)), dtype=np.int64)
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
        price=np.array([lowered.rate * unit, lowered.jump]),
        weights=np.concatenate([weight.ravel() for weight, _ in stack]),
        biases=np.concatenate([bias for _, bias in stack]),
        first=np.ascontiguousarray(first),
    )


def pack_people(lowered: Lowered, pack: Pack, people: Allowed, reach: Floats | None = None) -> People:
    """The arrays of many people. `reach` (cost, one a person) narrows the box over which rounding errors are bounded."""
    points, unit, numeric = people.factual, units(lowered), lowered.numeric
    integer = numeric & (lowered.step > 0)
    box = np.stack([(people.lower - points) / unit, (people.upper - points) / unit], axis=1)
    box = np.where(integer, np.round(box), np.where(numeric, box, 0.0))
    unrolled = lowered.unrolled(points)
    weight, bias = lowered.layers[0]
    slack, need = _errors(lowered, people, reach)
    return People(
        z=np.ascontiguousarray(unrolled @ weight.T + bias),
        box=np.ascontiguousarray(box),
        mask=people.allowed.astype(np.uint8),
        cost=people.cost,
        option=np.where(numeric, 0.0, points).astype(np.int64),
        slack=slack,
        need=need,
    )


def _errors(lowered: Lowered, people: Allowed, reach: Floats | None) -> tuple[Floats, Floats]:
    """Slack of every neuron, and LOW, HIGH, AIM of every condition, for each person (or one for all without `reach`)."""
    numbers = np.flatnonzero(lowered.numeric)
    low, high = people.lower[:, numbers], people.upper[:, numbers]
    if reach is not None:
        with np.errstate(divide="ignore"):
            room = np.where(lowered.rate[numbers] > 0, reach[:, None] / lowered.rate[numbers], np.inf) * (1 + 1e-9)
        factual = people.factual[:, numbers]
        low, high = np.maximum(low, factual - room), np.minimum(high, factual + room)
    else:  # over the whole schema: the same for everyone
        low = np.minimum(low.min(axis=0, keepdims=True), people.factual[:, numbers].min(axis=0))
        high = np.maximum(high.max(axis=0, keepdims=True), people.factual[:, numbers].max(axis=0))
    magnitude = np.ones((len(low), lowered.width))
    magnitude[:, lowered.start[numbers]] = np.maximum(np.abs(low), np.abs(high))
    terms = 4.0 * (lowered.width + sum(len(bias) for _, bias in lowered.layers) + 16.0) * UNIT_ROUNDOFF
    slack, size = [], magnitude
    for weight, bias in lowered.layers:
        size = size @ np.abs(weight).T + np.abs(bias)
        slack.append(terms * size)
    question = lowered.question
    c, _ = question.conditions
    encoded = magnitude @ np.abs(lowered.unroll).T
    error = question.caution * (score_error(question.model, encoded) @ np.abs(c).T)
    need = np.stack([lowered.need - error, lowered.need + error, lowered.need + 2.0 * error + 2.0 * slack[-1]], axis=1)
    count = len(people)
    every = np.concatenate(slack, axis=1)
    shape = (count, *every.shape[1:]), (count, *need.shape[1:])
    return np.array(np.broadcast_to(every, shape[0]), order="C"), np.array(np.broadcast_to(need, shape[1]), order="C")


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
    return pack.price.shape[1] * 16 + int(pack.index[layout.SIZES, 0]) + hidden_neurons(pack) * 17 + 56


def new_tree(pack: Pack, capacity: int, *, log: int = 0) -> Tree:
    """An empty tree with room for `capacity` nodes and `log` numbers of records."""
    features, columns, hidden = pack.price.shape[1], int(pack.index[layout.SIZES, 0]), hidden_neurons(pack)
    return Tree(
        box=np.zeros((capacity, 2, features)),
        mask=np.zeros((capacity, columns), dtype=np.uint8),
        z=np.zeros((capacity, 2, hidden)),
        side=np.zeros((capacity, hidden), dtype=np.uint8),
        num=np.zeros((2, capacity)),
        idx=np.zeros((5, capacity), dtype=np.int64),
        best=np.zeros(features),
        number=np.zeros(4),
        count=np.zeros(6, dtype=np.int64),
        log=np.zeros(log),
    )


def grown(tree: Tree, pack: Pack, capacity: int, log: int) -> Tree:
    """The same tree with room for more nodes and records."""
    larger = new_tree(pack, capacity, log=log)
    old = tree.num.shape[1]
    for name in ("box", "mask", "z", "side"):
        getattr(larger, name)[:old] = getattr(tree, name)
    larger.num[:, :old] = tree.num
    larger.idx[:, :old] = tree.idx
    larger.idx[layout.FREE, old:] = np.arange(old, capacity)
    larger.log[: len(tree.log)] = tree.log
    return larger._replace(best=tree.best, number=tree.number, count=tree.count)
