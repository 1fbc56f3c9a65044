"""Rules encoded as small networks, so that every method reads a rule as it reads the model.

A rule between features is a list of *parts*. A part is a small network over the unrolled columns u of a row (see
`lowering`) with one output, and the rule holds when every one of its parts is >= 0. Those of rules are ReLU networks:

    linear       c + L.u                                     Age - 21 >= 0
    hinges       c + L.u + sum_j w_j relu(H_j.u + o_j)       distances:  |x - p| = 2 relu(x - p) - (x - p)
    maximum      max(l_1, ..., l_k)                          one of several inequalities holds

Lowering puts the parts beside the model's own layers, so bounds, splits, programs and formulas need nothing new. What
follows from causes by smooth equations (`actions`) has parts with smooth activations, which the search takes.

A part that takes only whole values on rows of the schema (`whole`) is >= 0 exactly when it is > -1; it is lowered as
part + 1/2 >= 0, which rounding cannot invert. A part about real numbers on grids (money in cents) is >= 0 or <= -`gap`
on rows whose numbers are on them, and is taken to hold from -gap/2 on. For other real numbers the answer keeps clear of
the rule's edge by a few roundings, and never crosses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.smooth.activations import RELU, Activation, SideBySide
from ifonly.schema import Integer, Numeric, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

Floats = NDArray[np.float64]

END_ROOM = 2.0**-30
"""An inequality that holds only on the end of a range (`Income <= 0` over [0, 50000]) gets this share of its spread as
slack, or floating point could neither reach nor leave it. A method puts what it finds there on the end itself."""

LARGEST_SWITCH = 1000.0
"""A literal is used as a switch up to this value: what it lifts grows as much, and relaxations become weaker."""


@dataclass(frozen=True)
class UnrolledColumns:
    """The unrolled columns of a schema: one per number, one per option. `start[g]:start[g+1]`: those of feature g."""

    schema: Schema

    @cached_property
    def start(self) -> NDArray[np.int64]:
        widths = [1 if isinstance(f, Numeric) else len(f.options) for f in self.schema.features]
        return np.concatenate(([0], np.cumsum(widths))).astype(np.int64)

    @property
    def width(self) -> int:
        return int(self.start[-1])

    def of(self, feature: str) -> slice:
        g = self.schema.index(feature)
        return slice(int(self.start[g]), int(self.start[g + 1]))

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the largest value of every column (options: 0 and 1)."""
        low, high = np.zeros(self.width), np.ones(self.width)
        for g, feature in enumerate(self.schema.features):
            if isinstance(feature, Numeric):
                low[self.start[g]], high[self.start[g]] = feature.lower, feature.upper
        return low, high

    def least(self, weight: Floats) -> float:
        """A number below weight.u for every row of the schema."""
        return -self.largest(-weight)

    def largest(self, weight: Floats) -> float:
        low, high = self.ends
        most = np.where(self._options, weight, np.maximum(weight * low, weight * high))
        return float(sum(np.maximum.reduceat(most, self.start[:-1]).tolist()))

    def whole(self, weight: Floats, constant: float) -> bool:
        """Does constant + weight.u take only whole values on rows of the schema?"""
        if not (weight == np.round(weight))[self._options].all():
            return False
        total = constant
        for feature, own in zip(self.schema.features, weight[self.start[:-1]].tolist(), strict=True):
            if own == 0.0 or not isinstance(feature, Numeric):
                continue
            if not isinstance(feature, Integer) or not float(own * feature.step).is_integer():
                return False
            total += own * feature.lower
        return float(total).is_integer()

    @cached_property
    def _options(self) -> NDArray[np.bool_]:
        return np.repeat([not isinstance(f, Numeric) for f in self.schema.features], np.diff(self.start))


@dataclass(frozen=True)
class Part:
    """A network with one output, weights and biases layer by layer, the first over unrolled columns."""

    layers: tuple[tuple[Floats, Floats], ...]
    whole: bool = False
    activations: tuple[Activation | SideBySide, ...] = ()
    """After the first layers; ReLUs after all others but the last."""
    gap: float = 0.0
    """On rows whose numbers are on their grids, the output is >= 0 or <= -gap; 0 where that is not known."""

    def activation(self, k: int) -> Activation | SideBySide:
        """After layer k."""
        return self.activations[k] if k < len(self.activations) else RELU

    def value(self, unrolled: Floats) -> Floats:
        """The output for many rows."""
        h = unrolled
        for k, (weight, bias) in enumerate(self.layers[:-1]):
            h = self.activation(k)(h @ weight.T + bias)
        weight, bias = self.layers[-1]
        return np.asarray((h @ weight.T + bias)[:, 0])


@dataclass(frozen=True)
class Literal:
    """The inequality  constant + weight.u >= 0."""

    weight: Floats
    constant: float
    gap: float = 0.0
    """On rows whose numbers are on their grids, the left side is >= 0 or <= -gap; 0 where that is not known."""


def literal(
    columns: UnrolledColumns, numbers: Mapping[str, float], options: Mapping[str, Floats], constant: float
) -> Literal:
    """A literal by feature names: a coefficient for each number, a value for each option."""
    weight = np.zeros(columns.width)
    for name, coefficient in numbers.items():
        weight[columns.of(name)] += coefficient
    for name, values in options.items():
        weight[columns.of(name)] += values
    return Literal(weight, constant)


def linear_part(columns: UnrolledColumns, one: Literal) -> Part:
    whole = columns.whole(one.weight, one.constant)
    return Part(((one.weight[None, :], np.array([one.constant])),), whole, gap=one.gap)


def hinge_part(
    columns: UnrolledColumns, one: Literal, weights: Floats, hinges: Sequence[Literal], *, whole: bool, gap: float = 0.0
) -> Part:
    """constant + weight.u + sum_j weights[j] relu(hinge_j) >= 0.  The linear term passes as an always active ReLU."""
    shift = max(0.0, -columns.least(one.weight)) + 1.0
    first = np.vstack([one.weight[None, :], *(hinge.weight[None, :] for hinge in hinges)])
    bias = np.array([shift, *(hinge.constant for hinge in hinges)])
    last = np.concatenate([[1.0], weights])[None, :]
    return Part(((first, bias), (last, np.array([one.constant - shift]))), whole, gap=gap)


def clause_part(columns: UnrolledColumns, literals: Sequence[Literal]) -> Part:
    """At least one of the literals holds.

    A *switch* is a literal that is -1 where it fails and a whole number >= 0 elsewhere (an option; a whole number that
    is not at an end of its range): one more than it, times what another literal can fall short by, is added to that
    one. Three or more literals of which at most one is not whole need one layer as well: a whole literal l holds where
    relu(l + 1) >= 1. The rest is a maximum, by pairs: max(a, b) = b + relu(a - b).
    """
    switches: list[Literal] = []
    others: list[Literal] = []
    for one in literals:
        (switches if _is_switch(columns, one) else others).append(one)
    if not others:
        weight = np.sum([one.weight for one in switches], axis=0)
        return linear_part(columns, Literal(weight, float(len(switches) - 1 + sum(s.constant for s in switches))))
    certain = [columns.whole(one.weight, one.constant) for one in others]
    if len(others) > 2 and sum(certain) >= len(others) - 1:
        return _counted(columns, switches, others, certain)
    whole = all(certain)
    if not whole:  # literals that take whole values are lifted by a half: rounding of the others cannot invert them
        others = [
            Literal(one.weight, one.constant + 0.5, 0.5) if exact else one
            for one, exact in zip(others, certain, strict=True)
        ]
    if switches:
        others = [_or_switches(columns, others[0], switches), *others[1:]]
    if len(others) == 1:
        return linear_part(columns, others[0])
    return _maximum(columns, others, whole)


def _is_switch(columns: UnrolledColumns, one: Literal) -> bool:
    """Is it -1 or a whole number >= 0 on every row, and not large?"""
    return (
        columns.whole(one.weight, one.constant)
        and columns.least(one.weight) + one.constant == -1.0
        and columns.largest(one.weight) + one.constant <= LARGEST_SWITCH
    )


def _or_switches(columns: UnrolledColumns, one: Literal, switches: Sequence[Literal]) -> Literal:
    """The literal, lifted to 0 or above by any switch that is on."""
    return _lifted(one, switches, _shortfall(columns, one))


def _lifted(one: Literal, switches: Sequence[Literal], times: float) -> Literal:
    weight = one.weight + times * np.sum([s.weight for s in switches], axis=0)
    return Literal(weight, one.constant + times * (len(switches) + sum(s.constant for s in switches)), one.gap)


def _shortfall(columns: UnrolledColumns, one: Literal) -> float:
    """What a literal can fall short of 0 by, at least; if it is not whole, well more for rounding's sake."""
    least = columns.least(one.weight)
    short = max(0.0, -(least + one.constant))
    if columns.whole(one.weight, one.constant):
        return float(np.ceil(short))
    return short + 2.0**-10 * (columns.largest(one.weight) - least)


def _counted(
    columns: UnrolledColumns, switches: Sequence[Literal], others: Sequence[Literal], certain: Sequence[bool]
) -> Part:
    """At least one of several literals, of which at most one is not whole: that one, lifted by those that hold."""
    hinges = [Literal(one.weight, one.constant + 1.0) for one, exact in zip(others, certain, strict=True) if exact]
    if all(certain):
        base, times = Literal(np.zeros(columns.width), -1.0), 1.0
    else:
        base = others[list(certain).index(False)]
        times = _shortfall(columns, base)
    if switches:
        base = _lifted(base, switches, times)
    return hinge_part(columns, base, np.full(len(hinges), times), hinges, whole=all(certain), gap=base.gap)


def _maximum(columns: UnrolledColumns, literals: Sequence[Literal], whole: bool) -> Part:
    """A tree of pairs. Every value on the way is a row over the last layer's ReLUs plus a constant."""
    shifts = [max(0.0, -(columns.least(one.weight) + one.constant)) + 1.0 for one in literals]
    layers: list[tuple[Floats, Floats]] = []
    rows = np.array([one.weight for one in literals])
    constants = np.array([one.constant for one in literals])
    while len(rows) > 1:
        weight, bias, rest, later = [], [], [], []
        nxt: list[tuple[int, ...]] = []
        for i in range(0, len(rows), 2):
            if i + 1 < len(rows):
                a, b = i, i + 1
                weight += [rows[b], rows[a] - rows[b]]
                bias += [constants[b] + shifts[b], constants[a] - constants[b]]
                nxt.append((len(weight) - 2, len(weight) - 1))
                rest.append(-shifts[b])
                later.append(max(shifts[a], shifts[b]))
            else:
                weight.append(rows[i])
                bias.append(constants[i] + shifts[i])
                nxt.append((len(weight) - 1,))
                rest.append(-shifts[i])
                later.append(shifts[i])
        layers.append((np.array(weight), np.array(bias)))
        rows = np.zeros((len(nxt), len(weight)))
        for k, members in enumerate(nxt):
            rows[k, list(members)] = 1.0
        constants, shifts = np.array(rest), later
    layers.append((rows, constants))
    return Part(tuple(layers), whole, gap=min(one.gap for one in literals))
