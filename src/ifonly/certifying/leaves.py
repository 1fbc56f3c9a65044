"""A certificate's question in floating point, and the part of its tree that floating point can close by itself."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.activations import IDENTITY, Curve
from ifonly.certificate.check.box import Extent
from ifonly.certificate.check.distance import ADDITIVE, MAXIMUM, SQUARED
from ifonly.certificate.check.region import Bounds
from ifonly.certificate.check.schema import StatedChoice
from ifonly.certificate.check.statement import Statement
from ifonly.certifying.compiled import FLOAT_CHECK
from ifonly.certifying.float_check import layout
from ifonly.model.smooth.activations import Activation, Name
from ifonly.resources import LimitReached, check_limits, seconds_left
from ifonly.solvers.search.deadline import Deadline
from ifonly.solvers.search.pack import products_of
from ifonly.solvers.search.record import Record

NORMS = {ADDITIVE: layout.ADDITIVE, SQUARED: layout.SQUARED, MAXIMUM: layout.MAXIMUM}
SLACK = 1e-13
"""Of the largest sum of absolute terms, a layer: what rounding in floating point, and the checker's own, can do."""
NARROW = 1e-7
"""The same for what is doubtful: decided by so little that exact arithmetic should look at it."""
GRAINS = 1000.0
"""Roundings of the checker to its grid that are doubtful."""
PAID_ERROR = 1e-12
"""Relative: what is left of the ball after jumps were paid is made larger by so much."""
PLAIN_PRODUCTS = 3_000_000
"""So many take plain Python a second or two: for more, the compiled kernels are waited for."""
ROW_BYTES = 80
"""Of the rows that close a node, as the kernels write them, but for their slopes."""
ONE = (1.0).hex()

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Split = list[Any]
Leaf = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Open:
    """A region that floating point could not close, and where its record is in the log."""

    record: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A region that floating point closed, and whether by so little that exact arithmetic should look at it."""

    leaf: Leaf
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Solution:
    """Of the relaxation of a box that no rows close: the changes from its corner by column, the pre-activations of the
    ReLUs there, and their bounds, lower and upper."""

    y: Floats
    activations: Floats
    bounds: Floats


class NetworkFloats:
    """The network and the conditions of a question: the same for every person."""

    def __init__(self, statement: Statement) -> None:
        columns, sizes = statement.columns, statement.sizes
        features, layers = len(columns), statement.layers
        starts = [0, *np.cumsum([len(part) for part in columns]).tolist()]
        index = np.zeros((layout.INDEX_ROWS, max(features + 1, layers + 1)), dtype=np.int64)
        index[layout.LITERALS, 0] = statement.first_literal
        index[layout.CHOICE, :features] = [isinstance(f, StatedChoice) for f in statement.schema.features]
        index[layout.START, : features + 1] = starts
        index[layout.SIZES, : layers + 1] = [starts[-1], *sizes]
        counts = [0] + [size * before for size, before in zip(sizes[1:], sizes, strict=False)]
        index[layout.WEIGHT_AT, 1:layers] = np.cumsum(counts)[:-1]
        index[layout.BIAS_AT, :layers] = [0, *np.cumsum(sizes)[:-1].tolist()]
        self.index, self.starts = index, starts[:-1]
        grid = statement.grid
        self.layers = [
            (_wide(rows, bits, before), floats_of_rows([bias], bits + grid)[0])
            for rows, bias, bits, before in zip(
                statement.weight_rows, statement.biases, statement.exponents, (0, *sizes[:-1]), strict=True
            )
        ]
        self.weights = np.concatenate([np.zeros(0), *(weight.ravel() for weight, _ in self.layers[1:])])
        self.biases = np.concatenate([bias for _, bias in self.layers])
        self.first = np.ascontiguousarray(
            floats_of_rows([c for part in columns for c in part], statement.exponents[0]).T
        )
        largest = [np.abs(self.first[:, begin:end]).max(axis=1) for begin, end in pairwise(starts)]
        self.most = np.array(largest).T * np.where(index[layout.CHOICE, :features], 2.0, 1.0)
        """Neuron of the first layer, feature: what a change of the feature, or of a number by 1, adds to it at most."""
        self.products = products_of([starts[-1], *sizes])
        self.feeds = np.concatenate([np.zeros(0), *(np.abs(weight).sum(axis=0) for weight, _ in self.layers[1:])])
        """Of each hidden neuron: the sizes of the weights that it has in the next layer."""


class Leaves:
    """One person's question at one radius, in floating point."""

    def __init__(self, statement: Statement, network: NetworkFloats, radius: int | None) -> None:
        self.statement, self.radius, self.begun = statement, radius, time.perf_counter()
        self.products, self.network = network.products, network
        grid, unit = statement.grid, statement.cost_unit
        domains = statement.domains
        self.low = np.array([_float(d.low, grid) for d in domains])
        self.high = np.array([_float(d.high, grid) for d in domains])
        self.mask = np.zeros(network.first.shape[1], dtype=np.uint8)
        cost = np.zeros(len(self.mask))
        for g, domain in enumerate(domains):
            start = int(network.index[layout.START, g])
            self.mask[[start + option for option in domain.options]] = 1
            cost[start : start + len(statement.option_costs[g])] = [_float(c, unit) for c in statement.option_costs[g]]
        self.hidden = sum(statement.sizes[:-1])
        self.known = np.repeat([[-math.inf], [math.inf]], self.hidden, axis=1)
        """Bounds of the hidden neurons over the whole ball; the first walk finds them."""
        self.solution: Solution | None = None
        """Of the last box that no rows closed."""
        price = self._prices()
        z = np.array([_float(value, statement.exponents[0] + grid) for value in statement.at_factual])
        work, grains = self._work(network, price, z, radius)
        slack, close = SLACK * statement.layers * work + grains, NARROW * statement.layers * work + GRAINS * grains
        first = statement.first_literal
        slack[first : first + len(statement.rooms)] += [2.0 * _float(room, grid) for room in statement.rooms]
        self.proof_question = layout.ProofQuestion(
            norm=NORMS[statement.norm],
            layers=statement.layers,
            index=network.index,
            price=price,
            weights=network.weights,
            biases=network.biases,
            first=network.first,
            z=z,
            cost=cost,
            option=np.array([int(v) if isinstance(f, StatedChoice) else 0
                             for f, v in zip(statement.schema.features, statement.factual, strict=True)]),
            slack=slack,
            narrow=close,
            radius=math.inf if radius is None else _float(radius, unit),
        )  # fmt: skip

    def _prices(self) -> Floats:
        """Rates, jumps and steps of the features."""
        statement, domains = self.statement, self.statement.domains
        return np.array([
            self._rates([d.low for d in domains], [d.high for d in domains]),
            [_float(jump, statement.cost_unit) for jump in statement.jumps],
            [float(domain.step >> statement.grid) for domain in domains],
        ])  # fmt: skip

    def _rates(self, low: list[int], high: list[int]) -> list[float]:
        """What a unit of change costs at least, in the directions that an interval leaves."""
        pairs = zip(low, high, self.statement.rates, self.statement.rates_down, strict=True)
        rates = [up if a >= 0 else down if b <= 0 else min(up, down) for a, b, up, down in pairs]
        return [_float(rate, self.statement.cost_grid) for rate in rates]

    def _work(
        self, network: NetworkFloats, price: Floats, z: Floats, radius: int | None
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Of each neuron over the ball: the sum of its absolute terms, and what the checker's grid can do to it."""
        statement = self.statement
        far = np.maximum(np.abs(self.low), np.abs(self.high))
        if radius is not None:
            most = _float(radius, statement.cost_unit)
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.sqrt(most / price[0]) if statement.norm == SQUARED else most / price[0]
            far = np.minimum(far, np.where(price[0] > 0.0, reach, np.inf))
        work = np.abs(z) + network.most @ np.where(network.index[layout.CHOICE, : len(far)], 1.0, far)
        grain = 2.0 ** (2 - statement.grid)  # the checker rounds splits, reaches and bounds to its grid
        rounded = grain * (1.0 + np.abs(network.first).sum(axis=1))
        works, grains = [work], [rounded]
        for weight, bias in network.layers[1:]:
            work, rounded = np.abs(weight) @ work + np.abs(bias), np.abs(weight) @ rounded + grain
            works.append(work)
            grains.append(rounded)
        return np.concatenate(works), np.concatenate(grains)

    def learn(self, known: Bounds) -> None:
        """Bounds of the hidden neurons over the whole ball, from the checker itself."""
        low, high = (np.array([_float(v[end], self.statement.grid) for layer in known for v in layer])
                     for end in range(2))  # fmt: skip
        slack = self.proof_question.slack[: self.hidden]
        # what the checker finds stable is stable here
        self.known[0] = np.where(low >= 0.0, np.maximum(low - slack, 0.0), low - slack)
        self.known[1] = np.where(high <= 0.0, np.minimum(high + slack, 0.0), high + slack)

    # ------------------------------------------------------------------ closing

    def of_record(self, record: Record | None) -> list[Split | Closed | Open]:
        """The tree of a search's last phase in preorder, pruned, with what could not be closed."""
        start = self.low, self.high, self.mask, np.zeros(self.hidden, dtype=np.uint8), self.known
        found = list(self._walk(record.log, record.phases, *start)) if record is not None else []
        return found or list(self._walk(_nothing(self.hidden), 1, *start))

    @property
    def starts(self) -> NDArray[np.int64]:
        """Of each feature: its first column."""
        found: NDArray[np.int64] = self.network.index[layout.START]
        return found

    def of_box(self, extent: Extent, *, whole: bool = False) -> Closed | Solution | None:
        """The leaf that closes a box, of which the rules leave something; or the solution of its relaxation, or None.
        The bounds of the hidden neurons in the `whole` box are kept for all others."""
        asked = self.proof_question
        if self.statement.curved:  # the kernels know nothing but ReLUs
            return None
        if self.statement.rates != self.statement.rates_down:
            price = asked.price.copy()
            price[layout.RATE] = self._rates(extent.low, extent.high)
            self.proof_question = asked._replace(price=price)
        if paid := self._paid(extent):
            price, left = self.proof_question.price.copy(), asked.radius - float(asked.price[layout.JUMP, paid].sum())
            if left <= 0.0:  # more than the ball: exact arithmetic says so
                self.proof_question = asked
                return None
            price[layout.JUMP, paid] = 0.0
            self.proof_question = self.proof_question._replace(price=price, radius=left * (1.0 + PAID_ERROR))
        known = self.known if whole else self.known.copy()
        (found,) = self._walk(_nothing(self.hidden), 1, *self.floats_of(extent), known)
        self.proof_question = asked
        return found if isinstance(found, Closed) else self.solution

    def _paid(self, extent: Extent) -> list[int]:
        """The numbers that must change, though nothing else moves them: what any change costs is spent. (Options that
        change have it in their costs.)"""
        jumps, is_choice = self.statement.jumps, self.statement.is_choice
        return [g for g in extent.changed if jumps[g] and not is_choice[g] and extent.low[g] <= 0 <= extent.high[g]]

    def may_be_favourable(self, point: tuple[float, ...]) -> bool:
        """Does the row meet all conditions, but for what is narrow? Exact arithmetic then looks at it."""
        asked, starts = self.proof_question, self.proof_question.index[layout.START]
        columns = np.zeros(asked.first.shape[1])
        for g, (before, after) in enumerate(zip(self.statement.factual, point, strict=True)):
            if self.statement.is_choice[g]:
                columns[starts[g] + int(after)] += 1.0
                columns[starts[g] + int(before)] -= 1.0
            else:
                columns[starts[g]] = after - before
        z = asked.z + asked.first @ columns
        for layer, (weight, bias) in enumerate(self.network.layers[1:]):
            z = weight @ activated(self.statement, layer, z) + bias
        return bool((z >= -asked.narrow[len(asked.narrow) - len(z) :]).all())

    def floats_of(self, extent: Extent) -> tuple[Floats, Floats, Bytes, Bytes]:
        """Ends of numbers, options that are left, and sides of ReLUs."""
        one, starts, before = 1 << self.statement.grid, self.network.starts, self.statement.starts
        low, high = (np.array([v / one if v else 0.0 for v in ends]) for ends in (extent.low, extent.high))
        mask, side = np.zeros_like(self.mask), np.zeros(self.hidden, dtype=np.uint8)
        mask[[start + option for start, options in zip(starts, extent.options, strict=True) for option in options]] = 1
        for (layer, neuron), which in extent.sides.items():
            side[before[layer] + neuron] = which
        return low, high, mask, side

    def _walk(
        self, log: Floats, phase: int, low: Floats, high: Floats, mask: Bytes, side: Bytes, known: Floats
    ) -> Iterator[Split | Closed | Open]:  # fmt: skip
        self.make_ready(len(log))
        check_limits(2 * len(log) // (layout.HEAD + self.hidden) * (self.hidden + ROW_BYTES))
        halt = np.zeros(1, dtype=np.uint8)
        with Deadline(halt, seconds_left()) as deadline:
            found = FLOAT_CHECK.now.walk(self.proof_question, log, phase, low, high, mask, side, known, halt)
            if deadline.expired:
                raise LimitReached("seconds")
        nodes, values, about, multipliers, bits, seen = found
        self.solution = Solution(*seen) if len(seen[0]) else None
        rows = _rows(about, multipliers, bits)
        begun = 0
        for (became, which, end, record, doubtful), value in zip(nodes.tolist(), values.tolist(), strict=True):
            if became == layout.SPLIT:
                yield written_split(self.statement, which, value)
            elif became == layout.OPEN:
                yield Open(record)
            else:
                own = [[*rows[begun][:-1], ONE]] if end == begun + 1 else rows[begun:end]
                yield Closed({"rows": own}, bool(doubtful))
            begun = end

    def make_ready(self, log: int) -> None:
        """Load kernels that can walk a log of this length."""
        FLOAT_CHECK.prepare()
        FLOAT_CHECK.look(self.begun)
        if not FLOAT_CHECK.compiled and log // (layout.HEAD + self.hidden) * self.products > PLAIN_PRODUCTS:
            FLOAT_CHECK.wait_within_limits()


def activated(statement: Statement, layer: int, z: Floats) -> Floats:
    """The values of the neurons of a hidden layer, in floating point."""
    values = np.maximum(z, 0.0)
    if statement.curved:
        together: dict[Curve, list[int]] = {}
        for i, curve in statement.curved[layer].items():
            together.setdefault(curve, []).append(i)
        for curve, neurons in together.items():
            values[neurons] = (
                z[neurons]
                if curve.name == IDENTITY
                else Activation(cast(Name, curve.name), float(curve.alpha))(z[neurons])
            )
    return values


def floats_of_rows(rows: Sequence[Sequence[int]], bits: int) -> Floats:
    """Rows of whole numbers, in units of 2^-bits."""
    one = 1 << bits
    return np.array([[v / one for v in row] for row in rows])


def _wide(rows: Sequence[Sequence[int]], bits: int, inputs: int) -> Floats:
    """The weights of a layer; what leads nowhere has none."""
    wide = np.zeros((len(rows), inputs or max(map(len, rows), default=0)))
    if rows:
        wide[:, : len(rows[0])] = floats_of_rows(rows, bits)
    return wide


def _float(value: int, bits: int) -> float:
    return value / (1 << bits)


def _nothing(hidden: int) -> Floats:
    """A log with one node that was neither split nor closed."""
    log = np.zeros(layout.HEAD + hidden)
    log[:4] = 1.0, -1.0, 1.0, -1.0
    return log


def _rows(about: Any, multipliers: Floats, bits: Bytes) -> list[list[Any]]:
    """Rows as a certificate writes them."""
    packed = np.packbits(bits, axis=1, bitorder="little")
    return [
        [*row, f"{int.from_bytes(slopes.tobytes(), 'little'):x}", multiplier.hex()]
        for row, slopes, multiplier in zip(about.tolist(), packed, multipliers.tolist(), strict=True)
    ]


def written_split(statement: Statement, which: int, value: float) -> Split:
    """A split of a search's record as a certificate writes it."""
    if which < 0:
        return ["relu", *place(statement, -2 - which)]
    if isinstance(statement.schema.features[which], StatedChoice):
        return ["option", which, int(value)]
    step = statement.domains[which].step >> statement.grid
    return ["number", which, on_grid(statement, value * (step or 1))]


def place(statement: Statement, h: int) -> tuple[int, int]:
    """Layer and position of hidden neuron h."""
    for layer, size in enumerate(statement.sizes[:-1]):
        if h < size:
            return layer, h
        h -= size
    raise AssertionError("a record names a neuron that is not there")


def on_grid(statement: Statement, value: float) -> str:
    """A change as the certificate writes it: on the grid, and a float64."""
    if value.as_integer_ratio()[1] >> statement.grid > 1 or value == 0.0:
        value = math.floor(math.ldexp(value, statement.grid)) / (1 << statement.grid)
    return (value + 0.0).hex()
