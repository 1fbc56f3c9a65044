"""The one canonical numeric form that all methods read.

*Unrolled* columns: a numeric feature keeps one column, a feature with k options gets k one-hot columns whatever its
encoding was. The encoding is linear in them, so it is folded into the first layer, and any linear function of the
encoded row becomes a sum of per-feature gains: coefficient times change for numbers, one number an option for choices.

Costs are additive over features: the distance is their sum (l0, l1, mixtures), the root of their sum (l2), or their
maximum (linf). A numeric feature costs  jump * [changed] + rate * |change|  (l2: (rate * |change|)^2); an option costs
what the table says for the factual's own option.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.constraints import Domains
from ifonly.problem.distance import Norm
from ifonly.problem.question import Question
from ifonly.schema import Choice, Integer, Numeric

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lowered:
    """A question in numbers. `start[g]:start[g+1]` are the unrolled columns of feature g."""

    question: Question
    numeric: NDArray[np.bool_]
    step: Floats
    """Integers: the grid's step; 0 for reals; unused for choices."""
    start: NDArray[np.int64]
    unroll: Floats
    """encoded = unroll @ unrolled, shape (encoded columns, unrolled columns)."""
    layers: tuple[tuple[Floats, Floats], ...]
    """Weights and biases, first layer over unrolled columns, last layer giving C s - d."""
    norm: Norm
    jump: Floats
    rate: Floats
    option_cost: tuple[Floats, ...]
    """For each choice feature a (k, k) table: the cost of going from option i to option j; (1, 1) zeros for numbers."""

    @property
    def features(self) -> int:
        return len(self.numeric)

    @property
    def width(self) -> int:
        return int(self.start[-1])

    @cached_property
    def need(self) -> Floats:
        """What each condition must reach: the margin."""
        return np.full(len(self.layers[-1][1]), self.question.target.margin)

    def unrolled(self, points: Floats) -> Floats:
        """Points as unrolled columns."""
        many = np.atleast_2d(points)
        result = np.zeros((len(many), self.width))
        for g in range(self.features):
            if self.numeric[g]:
                result[:, self.start[g]] = many[:, g]
            else:
                result[np.arange(len(many)), self.start[g] + many[:, g].astype(np.intp)] = 1.0
        return result if np.ndim(points) == 2 else result[0]

    def domains(self, points: Floats) -> People:
        """What each of many people may change, under the schema and the constraints."""
        count = len(points)
        lower, upper = points.copy(), points.copy()
        allowed = np.zeros((count, self.width), dtype=bool)
        cost = np.zeros((count, self.width))
        for g, feature in enumerate(self.question.schema.features):
            here = slice(int(self.start[g]), int(self.start[g + 1]))
            mine = [c for c in self.question.by_feature if c.feature == feature.name]
            options = len(feature.options) if isinstance(feature, Choice) else 1
            domain = Domains(
                np.full(count, feature.lower if isinstance(feature, Numeric) else 0.0),
                np.full(count, feature.upper if isinstance(feature, Numeric) else options - 1.0),
                np.ones((count, options), dtype=bool),
            )
            for constraint in mine:
                constraint.restrict(feature, points[:, g], domain)
            if isinstance(feature, Numeric):
                if isinstance(feature, Integer):
                    _to_grid(domain, feature)
                lower[:, g], upper[:, g] = domain.lower, domain.upper
                allowed[:, here] = (domain.lower <= domain.upper)[:, None]
            else:
                allowed[:, here] = domain.allowed
                cost[:, here] = self.option_cost[g][points[:, g].astype(np.intp)]
        return People(points, lower, upper, allowed, cost)


@dataclass(frozen=True)
class People:
    """For each person: the factual point, the interval of each number, the allowed options and their costs."""

    factual: Floats
    lower: Floats
    upper: Floats
    allowed: NDArray[np.bool_]
    cost: Floats

    def __len__(self) -> int:
        return len(self.factual)

    def part(self, members: list[int]) -> People:
        """Only these people."""
        return People(*(getattr(self, name)[members] for name in ("factual", "lower", "upper", "allowed", "cost")))


def _to_grid(domain: Domains, feature: Integer) -> None:
    """Move the ends inward to the integer feature's grid; the last step undoes a rounding in the division."""
    base, step = feature.lower, feature.step
    low = base + step * np.ceil((domain.lower - base) / step)
    high = base + step * np.floor((domain.upper - base) / step)
    domain.lower = np.where(low < domain.lower, low + step, low)
    domain.upper = np.where(high > domain.upper, high - step, high)


def lower(question: Question) -> Lowered:
    """Lower a question to numbers."""
    schema, distance = question.schema, question.distance
    n = len(schema)
    widths = [1 if isinstance(f, Numeric) else len(f.options) for f in schema.features]
    start = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
    unroll = np.zeros((len(schema.columns), int(start[-1])))
    for g, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        codes = np.ones((1, 1)) if isinstance(feature, Numeric) else feature.codes
        unroll[np.ix_(columns, np.arange(start[g], start[g + 1]))] = codes.T
    c, d = question.conditions
    stack = [(layer.weight, layer.bias) for layer in question.model.network.layers]
    stack[-1] = (c @ stack[-1][0], c @ stack[-1][1] - d)
    stack[0] = (stack[0][0] @ unroll, stack[0][1])

    weight, scale = distance.weight_vector(schema), distance.scale_vector(schema)
    squared = distance.kind is Norm.L2
    share = 1.0 / np.sqrt(n) if squared else 1.0 / n
    jump = distance.jump * weight * share
    rate = distance.rate * weight * share / scale
    tables: list[Floats] = []
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            tables.append(np.zeros((1, 1)))
            continue
        moved = np.abs(np.subtract.outer(np.arange(widths[g]), np.arange(widths[g]))).astype(np.float64)
        if feature.kind != "ordinal":
            moved = (moved > 0).astype(np.float64)
        cost = jump[g] * (moved > 0) + rate[g] * moved
        tables.append(cost**2 if squared else cost)
    return Lowered(
        question=question,
        numeric=np.array([isinstance(f, Numeric) for f in schema.features]),
        step=np.array([float(f.step) if isinstance(f, Integer) else 0.0 for f in schema.features]),
        start=start,
        unroll=unroll,
        layers=tuple((np.ascontiguousarray(w), np.ascontiguousarray(b)) for w, b in stack),
        norm=distance.kind,
        jump=jump,
        rate=rate,
        option_cost=tuple(tables),
    )
