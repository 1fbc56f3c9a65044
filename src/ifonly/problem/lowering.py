"""The one canonical numeric form that all methods read.

*Unrolled* columns: a numeric feature keeps one column, a feature with k options gets k one-hot columns whatever its
encoding was. The encoding is linear in them, so it is folded into the first layer, and any linear function of the
encoded row becomes a sum of per-feature gains: coefficient times change for numbers, one number per option for choices.

Costs are additive over features: the distance is their sum (l0, l1, mixtures), the root of their sum (l2), or their
maximum (linf). A numeric feature costs  jump * [changed] + rate * |change|  (l2: (rate * |change|)^2), with a rate for
either direction; an option costs what the table says for the factual's own option.

Rules between features are lowered to neurons of their own beside the model's (see `parts`): *required* neurons, whose
pre-activations must be >= 0 and that lead nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import QuestionError
from ifonly.problem.constraints import Constraint, Domains, Steps, narrowed
from ifonly.problem.distance import Distance, Norm
from ifonly.problem.parts import Part, UnrolledColumns
from ifonly.problem.question import Question
from ifonly.problem.simplify import Stack, simplified
from ifonly.problem.support import AtMostChanges, OnlyWith
from ifonly.schema import Integer, Numeric, Real, Schema
from ifonly.schema.decimals import stepped, steps_to, written

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a question says of changes in numbers, whatever kind its model is of: their costs, and what is allowed.

    `start[g]:start[g+1]` are the unrolled columns of feature g.
    """

    question: Question
    numeric: NDArray[np.bool_]
    step: Floats
    """Integers: the grid's step; 0 for reals; unused for choices."""
    start: NDArray[np.int64]
    norm: Norm
    jump: Floats
    rate: Floats
    """Of going up."""
    rate_down: Floats
    option_cost: tuple[Floats, ...]
    """For each choice feature a (k, k) table: the cost of going from option i to option j; (1, 1) zeros for numbers."""
    most_changes: int
    """How many features may change."""
    partners: NDArray[np.int64]
    """(pair, 2): a feature, and the one without which it does not change."""

    @property
    def features(self) -> int:
        return len(self.numeric)

    @property
    def width(self) -> int:
        return int(self.start[-1])

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

    def on_steps(self, factual: Floats, points: Floats) -> Floats:
        """Points (one per person) with every real number that moves in steps at the decimal that its step is."""
        for constraint in self.question.by_feature:
            g = self.question.schema.index(constraint.feature)
            if isinstance(constraint, Steps) and isinstance(self.question.schema.features[g], Real):
                step = float(self.step[g])
                pairs = zip(factual[:, g].tolist(), points[:, g].tolist(), strict=True)
                points[:, g] = [stepped(old, steps_to(old, new, step), step) for old, new in pairs]
        return points

    @cached_property
    def reals_in_steps(self) -> list[int]:
        """Real numbers that move in steps: their values are decimals, worked out exactly."""
        reals = [isinstance(feature, Real) for feature in self.question.schema.features]
        return np.flatnonzero(reals & (self.step > 0.0)).tolist()

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The ends of every number's domain in the schema, on its grid."""
        low, high = np.zeros(self.features), np.zeros(self.features)
        for g, feature in enumerate(self.question.schema.features):
            if isinstance(feature, Numeric):
                domain = Domains(np.array([feature.lower]), np.array([feature.upper]), np.ones((1, 1), dtype=bool))
                if isinstance(feature, Integer):
                    _to_grid(domain, feature)
                low[g], high[g] = domain.lower[0], domain.upper[0]
        return low, high

    @cached_property
    def _costs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64], Floats]:
        """Of each column of a choice: where it stands, its feature, where its costs begin in the table, the table."""
        places, features, starts, table, at = [], [], [], [np.zeros(0)], 0
        for g in np.flatnonzero(~self.numeric).tolist():
            cost = self.option_cost[g]  # (before, after)
            for option in range(cost.shape[1]):
                places.append(int(self.start[g]) + option)
                features.append(g)
                starts.append(at)
                table.append(cost[:, option])
                at += len(cost)
        return (
            np.array(places, dtype=np.intp),
            np.array(features, dtype=np.intp),
            np.array(starts),
            np.concatenate(table),
        )

    @cached_property
    def _constraints(self) -> list[tuple[int, list[Constraint]]]:
        """The features that have constraints, and these."""
        by_feature: dict[int, list[Constraint]] = {}
        for constraint in self.question.by_feature:
            by_feature.setdefault(self.question.schema.index(constraint.feature), []).append(constraint)
        return list(by_feature.items())

    def domains(self, points: Floats) -> People:
        """What each of many people may change, under the schema and the constraints."""
        low, high = self._ends
        lower, upper = np.where(self.numeric, low, points), np.where(self.numeric, high, points)
        allowed, cost = np.ones((len(points), self.width), dtype=bool), np.zeros((len(points), self.width))
        places, features, starts, table = self._costs
        if len(places):
            cost[:, places] = table[starts + points[:, features].astype(np.intp)]
        for g, constraints in self._constraints:
            feature, here = self.question.schema.features[g], slice(int(self.start[g]), int(self.start[g + 1]))
            domain = Domains(lower[:, g].copy(), upper[:, g].copy(), allowed[:, here].copy())
            domain = narrowed(feature, points[:, g], constraints, domain)
            if isinstance(feature, Numeric):
                if isinstance(feature, Integer):
                    _to_grid(domain, feature)
                lower[:, g], upper[:, g] = domain.lower, domain.upper
                allowed[:, here] = (domain.lower <= domain.upper)[:, None]
            else:
                allowed[:, here] = domain.allowed
        return People(points, lower, upper, allowed, cost)


@dataclass(frozen=True, kw_only=True)
class Lowered(Costs):
    """A question about a network in numbers."""

    unroll: Floats
    """encoded = unroll @ unrolled, shape (encoded columns, unrolled columns)."""
    layers: tuple[tuple[Floats, Floats], ...]
    """Weights and biases, first layer over unrolled columns, last layer giving C s - d."""
    required: NDArray[np.int64]
    """(required neuron, 2): its hidden layer, and its place there."""
    required_whole: NDArray[np.bool_]
    """Neurons that take only whole values on rows of the schema."""
    required_touches: NDArray[np.bool_]
    """(required neuron, feature): does it look at the feature?"""
    required_rule: NDArray[np.int64]
    """Which of the question's rules each stands for."""

    @cached_property
    def need(self) -> Floats:
        """What each condition must reach: the margin."""
        return np.full(len(self.layers[-1][1]), self.question.target.margin)

    @cached_property
    def required_neurons(self) -> NDArray[np.int64]:
        """The required neurons, counted over all hidden layers."""
        before = np.cumsum([0, *(len(bias) for _, bias in self.layers)])
        return np.asarray(before[self.required[:, 0]] + self.required[:, 1])

    def holding(self, points: Floats) -> NDArray[np.bool_]:
        """(person, required neuron): does the person's own row meet the rule?"""
        rules, schema = self.question.rules, self.question.schema
        held = np.zeros((len(points), len(self.required)), dtype=bool)
        if len(self.required):
            wanted = sorted(set(self.required_rule.tolist()))
            verdict = {r: [rules[r].allows_row(schema, point, point) for point in points] for r in wanted}
            for j, r in enumerate(self.required_rule.tolist()):
                held[:, j] = verdict[r]
        return held

    @cached_property
    def first(self) -> tuple[NDArray[np.intp], Floats, NDArray[np.intp], NDArray[np.int64], Floats]:
        """The first layer by features: the numbers and what one of each adds; the choices, where their columns begin,
        and what each column adds."""
        columns = np.ascontiguousarray(self.layers[0][0].T)
        numbers, choices = np.flatnonzero(self.numeric), np.flatnonzero(~self.numeric)
        starts = self.start[:-1]
        return numbers, np.ascontiguousarray(columns[starts[numbers]]), choices, starts[choices], columns


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


def without_network(question: Question, method: str) -> str:
    """Why a method that searches a network cannot take a question; empty when it can."""
    function = question.model.function
    if function.as_network() is not None:
        return ""
    return f"The method '{method}' needs a piecewise-linear network, but this model is {function.name}"


def lower(question: Question, *, simplify: bool = False) -> Lowered:
    """Lower a question to numbers. `simplify`: with fewer neurons than the model, where some are of no use."""
    schema, n, costs = question.schema, len(question.schema), costs_of(question)
    start, unroll = costs.start, _unrolling(schema, costs.start)
    c, d = question.conditions
    stack = [(layer.weight, layer.bias) for layer in question.model.network.layers]
    stack[-1] = (c @ stack[-1][0], c @ stack[-1][1] - d)
    stack[0] = (stack[0][0] @ unroll, stack[0][1])
    stack = simplified(stack) if simplify else stack
    unrolled = UnrolledColumns(schema)
    listed = [(r, part) for r, rule in enumerate(question.rules) for part in rule.parts(unrolled)]
    stack, required = _beside(unrolled, stack, [part for _, part in listed])
    return Lowered(
        **{field.name: getattr(costs, field.name) for field in fields(Costs)},
        unroll=unroll,
        layers=tuple((np.ascontiguousarray(w), np.ascontiguousarray(b)) for w, b in stack),
        required=required,
        required_whole=np.array([part.whole for _, part in listed], dtype=bool),
        required_touches=np.array(
            [np.logical_or.reduceat(part.layers[0][0].any(axis=0), start[:-1]) for _, part in listed], dtype=bool
        ).reshape(-1, n),
        required_rule=np.array([r for r, _ in listed], dtype=np.int64),
    )


def costs_of(question: Question) -> Costs:
    """The part of a question that needs no model: what changes cost, and which are allowed."""
    schema, distance = question.schema, question.distance
    jump, slope, tables = _rates(distance, schema)
    up, down = distance.direction_vectors(schema)
    return Costs(
        question=question,
        numeric=np.array([isinstance(f, Numeric) for f in schema.features]),
        step=_steps(question),
        start=UnrolledColumns(schema).start,
        norm=distance.kind,
        jump=jump,
        rate=slope * up,
        rate_down=slope * down,
        option_cost=tables,
        most_changes=min([len(schema), *(rule.most for rule in question.rules if isinstance(rule, AtMostChanges))]),
        partners=_partners(question),
    )


def _partners(question: Question) -> NDArray[np.int64]:
    """(feature, partner): pairs of which the first changes only with the second."""
    place = question.schema.index
    pairs = [(place(rule.feature), place(rule.partner)) for rule in question.rules if isinstance(rule, OnlyWith)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _unrolling(schema: Schema, start: NDArray[np.int64]) -> Floats:
    """The matrix from unrolled to encoded columns. `start`: where the unrolled columns of each feature begin."""
    unroll = np.zeros((len(schema.columns), int(start[-1])))
    for g, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        codes = np.ones((1, 1)) if isinstance(feature, Numeric) else feature.codes
        unroll[np.ix_(columns, np.arange(start[g], start[g + 1]))] = codes.T
    return unroll


def _rates(distance: Distance, schema: Schema) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Of each feature: what any change costs, what a unit of it costs, and (options) what each transition costs."""
    weight, scale = distance.weight_vector(schema), distance.scale_vector(schema)
    squared, n = distance.kind is Norm.L2, len(schema)
    share = 1.0 / np.sqrt(n) if squared else 1.0 / n
    jump, slope = distance.jump * weight * share, distance.rate * weight * share / scale
    tables: list[Floats] = []
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            tables.append(np.zeros((1, 1)))
            continue
        moved = distance.option_changes(feature)
        cost = jump[g] * (1.0 - np.eye(len(moved))) + slope[g] * scale[g] * moved
        tables.append(cost**2 if squared else cost)
    return jump, slope, tuple(tables)


def _steps(question: Question) -> Floats:
    """The grid of each number: an integer's own step, or the one that a constraint asks for; 0 for none."""
    step = np.array([float(f.step) if isinstance(f, Integer) else 0.0 for f in question.schema.features])
    for constraint in question.by_feature:
        if isinstance(constraint, Steps):
            g = question.schema.index(constraint.feature)
            step[g] = _common_step(question.schema.names[g], step[g], constraint.step)
    return step


def _common_step(name: str, one: float, other: float) -> float:
    """The coarsest grid that is on both."""
    if one == 0.0 or written(other) % written(one) == 0:
        return other
    if written(one) % written(other) == 0:
        return one
    raise QuestionError(f"'{name}' may not move by steps of {one:g} and of {other:g} at once; give one of them.")


def _beside(columns: UnrolledColumns, stack: Stack, parts: Sequence[Part]) -> tuple[Stack, NDArray[np.int64]]:
    """The model's layers with those of the parts beside them; and where the parts' outputs are."""
    required = np.zeros((len(parts), 2), dtype=np.int64)
    if not parts:
        return stack, required
    stack = _deepened(columns, stack, max(len(part.layers) for part in parts))
    merged: Stack = []
    offset = [0] * (1 + len(parts))  # where the neurons of the model and of each part begin in the layer below
    inputs = columns.width
    for k in range(len(stack)):
        rows: list[Floats] = []
        biases: list[Floats] = []
        starts, outputs = [], 0
        for p, layers in enumerate([stack, *(part.layers for part in parts)]):
            starts.append(outputs)
            if k >= len(layers):
                continue
            weight, bias = layers[k]
            block = np.zeros((len(bias), inputs))
            block[:, offset[p] : offset[p] + weight.shape[1]] = weight
            rows.append(block)
            biases.append(bias)
            if p and k == len(layers) - 1:
                required[p - 1] = k, outputs
            outputs += len(bias)
        merged.append((np.concatenate(rows), np.concatenate(biases)))
        offset, inputs = starts, outputs
    return merged, required


def _deepened(columns: UnrolledColumns, stack: Stack, hidden: int) -> Stack:
    """The same function with at least so many hidden layers. What passes through a ReLU is lifted above 0 first."""
    stack = list(stack)
    if len(stack) == 1:
        weight, bias = stack[0]
        lift = np.array([max(0.0, -(columns.least(row) + b)) + 1.0 for row, b in zip(weight, bias, strict=True)])
        stack = [(weight, bias + lift), (np.eye(len(bias)), -lift)]
    while len(stack) - 1 < hidden:
        size = len(stack[0][1])
        weight, bias = stack[1]
        stack[1:2] = [(np.eye(size), np.ones(size)), (weight, bias - weight.sum(axis=1))]
    return stack
