"""A question packed into flat arrays for the kernels, once for all people.

Numerics. The kernels compute in float64 and every bound is widened outward by an a-priori error bound: a value that is a sum of
products through the layers, evaluated in any order with T terms in all, is off by at most gamma_T times the same sum with
absolute values, which is bounded over the whole schema once (`slack`, four times that, since a bound is a difference of two
such sums with slopes at most 1). With E the rounding error of the deployed model:

    need_low  = margin - E    no point below this is ever accepted by the deployed model: bounds are proven against it
    need_high = margin + E    a point at or above this surely is: only such points are returned
    need_aim  = a little more: what leaf problems are solved for, so that an optimum on the margin survives its own rounding

So in floating point the lower bound is that of real arithmetic up to the closed forms' own last-bit rounding (a relative 1e-12 is
given away for it); a proof in exact arithmetic is the certificate's business.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered, Norm
from ifonly.schema import Numeric
from ifonly.search.kernels.closed_forms import ADDITIVE, MAXIMUM, SQUARED
from ifonly.search.kernels.node import CHOICE, INTEGER, REAL
from ifonly.search.kernels.tree import Pack, Scratch, Tree
from ifonly.tolerances import Tolerances

NORMS = {Norm.L0: ADDITIVE, Norm.L1: ADDITIVE, Norm.L2: SQUARED, Norm.LINF: MAXIMUM}
UNIT = 2.0**-53


def units(lowered: Lowered) -> NDArray[np.float64]:
    """What one internal unit of each feature is: a step of an integer, 1 otherwise."""
    return np.where(lowered.numeric & (lowered.step > 0), lowered.step, 1.0)


def pack_question(lowered: Lowered, tolerances: Tolerances) -> Pack:
    """The arrays of a question."""
    unit = units(lowered)
    kind = np.where(lowered.numeric, np.where(lowered.step > 0, INTEGER, REAL), CHOICE).astype(np.int64)
    first = lowered.layers[0][0].copy()
    magnitude = np.ones(lowered.width)
    for g, feature in enumerate(lowered.question.schema.features):
        if isinstance(feature, Numeric):
            column = int(lowered.start[g])
            first[:, column] *= unit[g]
            magnitude[column] = max(abs(feature.lower), abs(feature.upper)) / unit[g]
    layers = ((first, lowered.layers[0][1]), *lowered.layers[1:])
    sizes = np.array([lowered.width, *(len(bias) for _, bias in layers)], dtype=np.int64)
    terms = 4.0 * (float(sizes.sum()) + 16.0) * UNIT
    slack = []
    for weight, bias in layers:
        magnitude = np.abs(weight) @ magnitude + np.abs(bias)
        slack.append(terms * magnitude)
    error = lowered.question.error
    return Pack(
        norm=NORMS[lowered.norm],
        kind=kind,
        start=lowered.start,
        rate=np.ascontiguousarray(lowered.rate * unit),
        jump=np.ascontiguousarray(lowered.jump),
        layers=len(layers),
        sizes=sizes,
        weight_at=_offsets([weight.size for weight, _ in layers]),
        weights=np.concatenate([weight.ravel() for weight, _ in layers]),
        bias_at=_offsets([bias.size for _, bias in layers]),
        biases=np.concatenate([bias for _, bias in layers]),
        slack=np.concatenate(slack),
        first_weight=np.ascontiguousarray(first),
        need_low=lowered.need - error,
        need_high=lowered.need + error,
        need_aim=lowered.need + 2.0 * error + 2.0 * slack[-1],
        gap=tolerances.gap,
        relative_gap=tolerances.relative_gap,
    )


def _offsets(lengths: list[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)


def new_scratch(pack: Pack) -> Scratch:
    """Buffers of one thread."""
    n, columns, first = len(pack.kind), int(pack.sizes[0]), int(pack.sizes[1])
    hidden, widest = hidden_neurons(pack), int(pack.sizes.max())
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(Scratch._fields, (n,))
    shapes |= dict.fromkeys(("column", "column_cost", "a", "a_best"), (columns,))
    shapes |= dict.fromkeys(("nu", "nu_best", "alpha", "pattern", "act"), (hidden,))
    shapes |= {"item_start": (n + 1,), "Wc": (first, columns), "zc": (first,), "v": (widest,), "g": (int(pack.sizes[-1]),)}
    kinds = {"item_feature": np.int64, "item_start": np.int64, "column": np.int64, "taken": np.bool_,
             "item_numeric": np.bool_, "item_integer": np.bool_}  # fmt: skip
    return Scratch(**{name: np.zeros(shapes[name], dtype=kinds.get(name, np.float64)) for name in Scratch._fields})


def hidden_neurons(pack: Pack) -> int:
    return int(pack.sizes[1:-1].sum())


def node_bytes(pack: Pack) -> int:
    """What one node of the pool takes."""
    return len(pack.kind) * 16 + int(pack.sizes[0]) + hidden_neurons(pack) * 16 + 48


def new_tree(pack: Pack, capacity: int) -> Tree:
    """An empty tree with room for `capacity` nodes."""
    n, columns, hidden = len(pack.kind), int(pack.sizes[0]), hidden_neurons(pack)
    return Tree(
        lo=np.zeros((capacity, n)),
        hi=np.zeros((capacity, n)),
        mask=np.zeros((capacity, columns), dtype=np.uint8),
        zl=np.zeros((capacity, hidden)),
        zu=np.zeros((capacity, hidden)),
        bound=np.zeros(capacity),
        split=np.zeros(capacity, dtype=np.int64),
        value=np.zeros(capacity),
        heap=np.zeros(capacity, dtype=np.int64),
        free=np.arange(capacity, dtype=np.int64),
        best=np.zeros(n),
        number=np.zeros(4),
        count=np.zeros(4, dtype=np.int64),
    )


PER_NODE = ("lo", "hi", "mask", "zl", "zu", "bound", "split", "value", "heap", "free")


def grown(tree: Tree, pack: Pack, capacity: int) -> Tree:
    """The same tree with room for more nodes."""
    larger = new_tree(pack, capacity)
    old = len(tree.bound)
    for name in PER_NODE:
        getattr(larger, name)[:old] = getattr(tree, name)
    return larger._replace(best=tree.best, number=tree.number, count=tree.count)
