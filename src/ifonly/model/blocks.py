"""Building blocks of a network: vectors of ReLU or smooth units, and affine maps of them.

A block is a vector of units of one depth: the input (depth 0), or relu(affine map of units one depth below). So every
expression reads blocks of one depth only, and the network is read off by depth: layer k holds the blocks of depth k. A
value that a deeper layer needs is passed on by units of its own that are always on:

    v = relu(v + lift) - lift,   v + lift > 0 on every row of the schema

The lift is a power of two, above the least value by interval arithmetic. Pass-through units that no other unit reads
are removed at the end.

A value that passes a layer of smooth units does so in ReLUs beside them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.network import MAX_WEIGHTS, MAX_WIDTH, Network
from ifonly.model.operations import BuiltOperation, Floats, Fold, LeakyReLU, Lifted, Majorant, Smooth, underflow_counts
from ifonly.model.rounding import LEAST
from ifonly.model.smooth import RELU, Activation, SmoothNetwork
from ifonly.model.smooth.activations import SideBySide

CLEAR = 2.0**-20
"""How far above 0 a pass-through unit is kept, relative to the size of the value that it passes on."""


@dataclass(eq=False, slots=True)
class UnitBlock:
    """Units of one depth, with their bounds on rows of the schema; `built` is the operation that they belong to."""

    built: BuiltOperation
    reads: Expression | None
    lower: Floats
    upper: Floats
    depth: int = 0
    passes: bool = False
    """Its units are pass-through units."""
    above: UnitBlock | None = None
    activation: Activation = RELU

    @property
    def lift(self) -> Floats:
        return lift_of(self.lower, self.upper)

    def deepened(self) -> UnitBlock:
        """Pass-through units for these, one layer deeper, each with its lift, which must be finite."""
        if self.above is None:
            lift = self.lift
            self.above = UnitBlock(
                built=BuiltOperation(Lifted(lift), (self.built,)),
                reads=replace(Expression.of(self), bias=lift),
                lower=self.lower + lift,
                upper=(self.upper + lift) * (1.0 + 1e-15),
                depth=self.depth + 1,
                passes=True,
            )
        return self.above


def lift_of(lower: Floats, upper: Floats) -> Floats:
    """What to add to values in an interval so that they are clearly above 0; infinite where they have no bound."""
    size = np.maximum(np.abs(lower), np.where(np.isfinite(upper), np.abs(upper), 1.0))
    need = CLEAR * size - lower + LEAST["float64"]
    with np.errstate(over="ignore"):
        lift = np.where(np.isfinite(need), np.ldexp(1.0, np.frexp(np.where(np.isfinite(need), need, 1.0))[1]), np.inf)
    return np.where(lower > 0.5 * CLEAR * size, 0.0, lift)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An affine map of blocks of one depth. A weight of one dimension is a diagonal.

    Of each block there is its weight, and the sizes of the terms that the weight is the sum of (None: the absolute
    values). `terms` counts the roundings of the weights, which follow the sizes; 0 where all weights are the model's
    own.
    """

    parts: tuple[tuple[UnitBlock, Floats, Floats | None], ...]
    bias: Floats
    size_bias: Floats | None = None
    terms: int = 0
    underflows: Floats | None = None
    """See `Majorant`: of the importer's own products."""

    @classmethod
    def of(cls, block: UnitBlock) -> Expression:
        return cls(((block, np.ones(len(block.lower)), None),), np.zeros(len(block.lower)))

    @property
    def width(self) -> int:
        return len(self.bias)

    @property
    def depth(self) -> int:
        return self.parts[0][0].depth

    @property
    def inputs(self) -> int:
        return sum(len(block.lower) for block, _, _ in self.parts)

    @property
    def is_block(self) -> bool:
        """Is it just the units of one block?"""
        if len(self.parts) != 1 or self.terms or self.parts[0][1].ndim == 2:
            return False
        return bool((self.parts[0][1] == 1.0).all() and not self.bias.any())

    def sizes(self) -> tuple[list[Floats], Floats]:
        weights = [np.abs(weight) if size is None else size for _, weight, size in self.parts]
        return weights, np.abs(self.bias) if self.size_bias is None else self.size_bias

    def all_underflows(self) -> Floats:
        if self.underflows is not None:
            return self.underflows
        return np.asarray(sum(underflow_counts(size) for size in self.sizes()[0]), dtype=np.float64)

    # ------------------------------------------------------------------ arithmetic

    def mapped(self, weight: Floats, bias: Floats, sizes: Majorant | None = None) -> Expression:
        """weight @ self + bias; `sizes` where the map is itself a product of several."""
        if self.is_block:
            block = self.parts[0][0]
            if sizes is None:
                return Expression(((block, weight, None),), bias)
            return Expression(((block, weight, sizes.weight),), bias, sizes.bias, sizes.terms, sizes.underflows)
        size = np.abs(weight) if sizes is None else sizes.weight
        own = underflow_counts(size) if sizes is None else sizes.underflows
        below, shift = self.sizes()
        products = [
            (block, _product(weight, inner), _product(size, inner_size))
            for (block, inner, _), inner_size in zip(self.parts, below, strict=True)
        ]
        columns = sum(s.sum(axis=0).max() if s.ndim == 2 else s.max() for s in below)
        growth = float(1.0 + shift.sum() + columns)  # of 1 + the sum of the values, at most
        return Expression(
            tuple(products),
            _applied(weight, self.bias) + bias,
            _applied(size, shift) + (np.abs(bias) if sizes is None else sizes.bias),
            self.terms + (self.width + 1 if sizes is None else sizes.terms),
            own * growth + _applied(size, self.all_underflows()),
        )

    def selected(self, columns: Sequence[int]) -> Expression:
        rows = np.asarray(columns, dtype=np.intp)
        parts = tuple(
            (block, _lines(weight, rows), None if size is None else _lines(size, rows))
            for block, weight, size in self.parts
        )
        size_bias = None if self.size_bias is None else self.size_bias[rows]
        return Expression(parts, self.bias[rows], size_bias, self.terms, self.all_underflows()[rows])

    def plus(self, other: Expression, sign: float = 1.0) -> Expression:
        sizes, shift = self.sizes()
        parts = {block: (weight, size) for (block, weight, _), size in zip(self.parts, sizes, strict=True)}
        more, shift_more = other.sizes()
        for (block, weight, _), size in zip(other.parts, more, strict=True):
            mine = parts.get(block)
            if mine is None:
                parts[block] = sign * weight, size
            else:
                parts[block] = _sum(mine[0], sign * weight), _sum(mine[1], size)
        return Expression(
            tuple((block, weight, size) for block, (weight, size) in parts.items()),
            self.bias + sign * other.bias,
            shift + shift_more,
            max(self.terms, other.terms) + 1,
            self.all_underflows() + other.all_underflows() + 3.0,
        )

    def shifted(self, bias: Floats) -> Expression:
        """The same plus a constant; a rounding more where there was one already."""
        _, shift = self.sizes()
        rounded = bool(((self.bias != 0.0) & (bias != 0.0)).any())
        return replace(
            self,
            bias=self.bias + bias,
            size_bias=shift + np.abs(bias),
            terms=self.terms + rounded,
            underflows=self.all_underflows() + 2.0,
        )

    def negated(self) -> Expression:
        return replace(self, parts=tuple((b, -weight, size) for b, weight, size in self.parts), bias=-self.bias)

    @staticmethod
    def stacked(expressions: Sequence[Expression]) -> Expression:
        if len(expressions) == 1:
            return expressions[0]
        blocks = list(dict.fromkeys(block for e in expressions for block, _, _ in e.parts))
        weights, sizes = ({block: [] for block in blocks} for _ in range(2))  # type: ignore[var-annotated]
        for e in expressions:
            own = {block: (w, s) for (block, w, _), s in zip(e.parts, e.sizes()[0], strict=True)}
            for block in blocks:
                none = np.zeros((e.width, len(block.lower)))
                weight, size = own.get(block, (none, none))
                weights[block].append(_dense(weight))
                sizes[block].append(_dense(size))
        return Expression(
            tuple((block, np.vstack(weights[block]), np.vstack(sizes[block])) for block in blocks),
            np.concatenate([e.bias for e in expressions]),
            np.concatenate([e.sizes()[1] for e in expressions]),
            max(e.terms for e in expressions),
            np.concatenate([e.all_underflows() for e in expressions]),
        )

    def deepened(self) -> Expression:
        """The same value, read from units one layer deeper that pass these on."""
        parts, bias, size_bias, terms = [], self.bias, self.sizes()[1], self.terms
        for (block, weight, size), own in zip(self.parts, self.sizes()[0], strict=True):
            above = block.deepened()
            assert above.reads is not None
            lift = above.reads.bias
            if lift.any():
                bias, terms = bias - _applied(weight, lift), terms + len(lift) + 1
                size_bias = size_bias + _applied(own, lift)
            parts.append((above, weight, size))
        return Expression(tuple(parts), bias, size_bias, terms, self.all_underflows() + 2.0 * self.inputs)

    # ------------------------------------------------------------------ bounds and operations

    def interval(self) -> tuple[Floats, Floats]:
        """Interval arithmetic over rows of the schema, rounded outward; infinite where not known."""
        lower, upper, work = self.bias, self.bias, self.sizes()[1]
        for (block, weight, _), size in zip(self.parts, self.sizes()[0], strict=True):
            with np.errstate(invalid="ignore"):
                ends = [_columns(weight, end) for end in (block.lower, block.upper)]
                low, high = (
                    np.nan_to_num(f(*ends), nan=0.0, posinf=np.inf, neginf=-np.inf) for f in (np.minimum, np.maximum)
                )
                taken = np.maximum(np.abs(block.lower), np.abs(block.upper))
                reach = np.nan_to_num(_columns(size, taken), nan=0.0, posinf=np.inf)
            if weight.ndim == 2:
                low, high, reach = low.sum(axis=1), high.sum(axis=1), reach.sum(axis=1)
            lower, upper, work = lower + low, upper + high, work + reach
        slack = np.where(np.isfinite(work), 1e-12 * work + LEAST["float64"] * self.all_underflows(), 0.0)
        return lower - slack, upper + slack

    def fold(self) -> Fold:
        weights, shift = self.sizes()
        return Fold(
            tuple(weight for _, weight, _ in self.parts),
            tuple(weights),
            self.bias,
            shift,
            self.terms,
            self.all_underflows(),
        )

    def unit_operations(self) -> tuple[BuiltOperation, ...]:
        """The operations that its units belong to."""
        return tuple(block.built for block, _, _ in self.parts)


def _product(a: Floats, b: Floats) -> Floats:
    """The matrix product, where either factor may be a diagonal."""
    if a.ndim == 1:
        return a * b if b.ndim == 1 else a[:, None] * b
    return a * b if b.ndim == 1 else a @ b


def _applied(a: Floats, values: Floats) -> Floats:
    return a * values if a.ndim == 1 else a @ values


def _columns(a: Floats, values: Floats) -> Floats:
    """Each column times its value; 0 times infinity is NaN."""
    return a * values


def _dense(a: Floats) -> Floats:
    return np.diag(a) if a.ndim == 1 else a


def _lines(a: Floats, rows: NDArray[np.intp]) -> Floats:
    """Some rows of a matrix or of a diagonal, which is never written out for that."""
    if a.ndim == 2:
        return a[rows]
    chosen = np.zeros((len(rows), len(a)))
    chosen[np.arange(len(rows)), rows] = a[rows]
    return chosen


def _sum(a: Floats, b: Floats) -> Floats:
    return a + b if a.ndim == b.ndim else _dense(a) + _dense(b)


# ---------------------------------------------------------------------- the network


def network_of(output: Expression) -> Network | SmoothNetwork:
    """Layer by layer, the blocks of each depth; the output is the last."""
    depths = _blocks(output)
    kept = _kept(depths, output)
    layers: list[tuple[Floats, Floats]] = []
    for below, here in itertools.pairwise(depths):
        pairs = [_rows(block.reads, below, kept, kept[block]) for block in here if block.reads is not None]
        layers.append((np.vstack([w for w, _ in pairs]), np.concatenate([b for _, b in pairs])))
        check_size(layers[-1][0].shape, "the network")
    everything = np.ones(output.width, dtype=np.bool_)
    network = Network.of([*layers, _rows(output, depths[-1], kept, everything)])
    if _is_bounded(depths):
        network = replace(network, within=(depths[0][0].lower, depths[0][0].upper))
    counted = [[(block, int(kept[block].sum())) for block in here if kept[block].any()] for here in depths[1:]]
    activations = [_activation(layer) for layer in counted]
    return network if all(a == RELU for a in activations) else SmoothNetwork(network, activations)


def _activation(layer: list[tuple[UnitBlock, int]]) -> Activation | SideBySide:
    """The activation of a layer, or of each of its blocks with so many units."""
    found = list(dict.fromkeys(block.activation for block, _ in layer))
    if len(found) == 1:
        return found[0]
    return SideBySide(tuple((block.activation, count) for block, count in layer))


def _is_bounded(depths: list[list[UnitBlock]]) -> bool:
    """Whether the network relies on bounds of its inputs, within which some of its units are always on."""
    operations = (block.built.operation for here in depths[1:] for block in here)
    return not all(isinstance(o, Smooth) or (isinstance(o, LeakyReLU) and o.plain) for o in operations)


def check_size(shape: tuple[int, ...], name: str) -> None:
    """Limit on sizes, checked before memory is allocated: a few bytes of a file can ask for any size."""
    if shape[0] > MAX_WIDTH or shape[0] * shape[1] > MAX_WEIGHTS:
        raise ModelError(
            f"'{name}' makes {shape[0]} values of {shape[1]}, which is more than the {MAX_WIDTH} values "
            f"or {MAX_WEIGHTS} weights that are read."
        )


def _blocks(output: Expression) -> list[list[UnitBlock]]:
    """Every block that the output depends on, by depth."""
    found: dict[UnitBlock, None] = {}
    todo: list[Iterable[UnitBlock]] = [[block for block, _, _ in output.parts]]
    while todo:
        for block in todo.pop():
            if block not in found:
                found[block] = None
                if block.reads is not None:
                    todo.append([b for b, _, _ in block.reads.parts])
    depths: list[list[UnitBlock]] = [[] for _ in range(output.depth + 1)]
    for block in found:
        depths[block.depth].append(block)
    return depths


def _kept(depths: list[list[UnitBlock]], output: Expression) -> dict[UnitBlock, NDArray[np.bool_]]:
    """The units that stay: all nonlinear ones, and those pass-through units that others read."""
    kept = {block: np.full(len(block.lower), not block.passes) for here in depths for block in here}
    for here in [[], *reversed(depths)]:
        readers = (
            [(block.reads, kept[block]) for block in here if block.reads is not None] if here else [(output, None)]
        )
        for reads, rows in readers:
            for block, weight, _ in reads.parts:
                used = weight != 0.0
                if weight.ndim == 2:
                    used = (used if rows is None else used[rows]).any(axis=0)
                elif rows is not None:
                    used = used & rows
                kept[block] = kept[block] | used
    for here in depths[1:]:  # a layer needs a unit
        if not any(kept[block].any() for block in here):
            kept[here[0]][0] = True
    return kept


def _rows(
    reads: Expression, below: list[UnitBlock], kept: dict[UnitBlock, NDArray[np.bool_]], rows: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    own = {block: weight for block, weight, _ in reads.parts}
    check_size((int(rows.sum()), sum(int(kept[block].sum()) for block in below)), "the network")
    columns = [
        _dense(own[block])[rows][:, kept[block]]
        if block in own
        else np.zeros((int(rows.sum()), int(kept[block].sum())))
        for block in below
    ]
    return np.ascontiguousarray(np.hstack(columns)), reads.bias[rows]
