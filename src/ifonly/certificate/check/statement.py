"""A certificate's question, read into exact integers. Nothing is assumed; whatever is malformed is a `Refusal`.

Numbers of a point are counted in units of 2^-P (`P` is the certificate's "grid"), weights of layer k in units of
2^-e[k], costs in units of 2^-K. Costs are rounded down: what is proven about smaller costs holds for the true ones.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any

from ...printing import quoted
from ..format import canonical_in_steps
from .causes import ABOUT_ACTIONS, ActionSet, StatedEquation, read_causes
from .distance import MAXIMUM, NORMS, SQUARED, Directions, floor_of, rates_of, read_distance
from .domains import KINDS, Domain, read_domains
from .layers import MAX_WEIGHTS, Integers, beside, longest_number
from .models import read_model
from .reading import (
    AT_ONCE,
    FEW,
    CheckBudget,
    Refusal,
    entries,
    listed,
    scaled,
    ticking,
)
from .reading_activations import Curves
from .rule_reading import OWN, read_rules
from .rules import RuleLiteral, Rules, rooms
from .schema import StatedChoice, StatedNumeric, StatedSchema, belongs, read_point, read_schema
from .softmax import BITS, has_probability
from .trees import StatedForest

MAX_BITS = 2400
"""Of the grids."""
MAX_NUMBER = 65_536
"""Bits of the largest number that backward substitution through the network can lead to."""
LONG_NUMBER, MANY_COLUMNS = 6_144, 512
"""Beyond these the time is checked within sums, not only between them."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The question in integers."""

    schema: StatedSchema
    factual: tuple[float, ...]
    norm: str
    norm_name: str
    weights: tuple[Fraction, ...]
    scales: tuple[Fraction, ...]
    jump: Fraction
    rate: Fraction
    costs: Directions
    constraints: tuple[dict[str, Any], ...]
    rules: Rules
    wanted: str
    """What is asked, in words."""
    margins: tuple[float | None, ...]
    """Of each model."""
    grid: int
    cost_grid: int
    cost_unit: int
    """K: costs are in units of 2^-K."""
    domains: tuple[Domain, ...]
    literal_starts: tuple[int, ...]
    """Of each literal: its constant and its numbers at the factual, without its options, in units of 2^-P."""
    rates: tuple[int, ...]
    """Numbers: cost of one unit of change up (l2: of one squared unit), in units that make rate * change a cost."""
    rates_down: tuple[int, ...]
    jumps: tuple[int, ...]
    option_costs: tuple[tuple[int, ...], ...]
    exponents: tuple[int, ...]
    weight_rows: tuple[tuple[tuple[int, ...], ...], ...]
    """Layer k, neuron i: its weights in units of 2^-e[k], literals left out; layer 0 is not here but in `columns`."""
    weight_columns: tuple[tuple[tuple[int, ...], ...], ...]
    """The same, input by input."""
    biases: tuple[tuple[int, ...], ...]
    """In units of 2^-(e[k] + P)."""
    columns: tuple[tuple[tuple[int, ...], ...], ...]
    """Feature g, column (1 for numbers, one per option for choices), neuron of layer 0."""
    at_factual: tuple[int, ...]
    """Layer 0 at the factual, in units of 2^-(e[0] + P)."""
    sizes: tuple[int, ...]
    """Neurons of each layer, literals included; the last one holds the conditions."""
    model: str
    """The model in words."""
    first_literal: int
    """Where the literals begin among the neurons of layer 0."""
    forest: StatedForest | None
    """Of trees; without networks beside them the layers hold nothing but literals."""
    rooms: tuple[int, ...]
    """Of each literal: what decimals can differ from float64 by, in units of 2^-P."""
    is_choice: tuple[bool, ...]
    starts: tuple[int, ...]
    """How many hidden neurons stand before each layer."""
    slow: bool
    """Numbers are so long, or features so many, that one sum may take long."""
    curves: tuple[tuple[int, int], ...]
    """Of the network's conditions, where those of a probability begin, and how many other classes there are."""
    curved: Curves
    """Of each hidden layer: the neurons that are no ReLUs; nothing for networks of ReLUs."""
    fingerprint: str
    """Of the network: the same as `Network.fingerprint`."""
    question: str
    """The sha256 of the question's canonical JSON."""
    meter: CheckBudget
    bare: Integers | None = None
    """Where some features have causes: the network without literals."""
    equations: tuple[StatedEquation, ...] = ()
    """Of the features with causes."""
    actions: ActionSet | None = None
    """Where some features have causes: which are acted on."""
    fee: Fraction = Fraction(0)
    """What acting on them costs, beside their changes (l2: squared)."""

    @property
    def layers(self) -> int:
        return len(self.exponents)

    @property
    def follows(self) -> frozenset[int]:
        """The features whose values follow from others: their changes cost nothing."""
        return frozenset() if self.actions is None else self.actions.follows

    @property
    def limits(self) -> tuple[dict[str, Any], ...]:
        """The constraints on single features, without those on actions for what follows."""
        free = {self.schema.features[g].name for g in self.follows}
        return tuple(one for one in self.constraints if one["kind"] in KINDS
                     and not (one["kind"] in ABOUT_ACTIONS and one.get("feature") in free))  # fmt: skip

    def about(self, factual: tuple[float, ...]) -> Statement:
        """The same question about another person."""
        schema, grid = self.schema, self.grid
        domains = read_domains(schema, factual, self.limits, grid, self.meter)
        options = tuple(_option_costs(self, g, factual[g]) for g in range(len(schema)))
        start = _at_factual(schema, self.columns, self.biases[0], factual, grid, self.meter)
        starts = tuple(
            (one.constant << grid) + sum(a * scaled(factual[g], grid, "the factual") for g, a in one.numbers)
            for one in self.rules.literals
        )
        return replace(self, factual=factual, domains=domains, option_costs=options, at_factual=start,
                       literal_starts=starts)  # fmt: skip

    # ------------------------------------------------------------------ a single row, exactly

    def feature_costs(self, point: tuple[float, ...]) -> list[Fraction]:
        """jump * [changed] + rate * delta of each feature, weighted; l2 and linf have only delta."""
        costs, follows = [], self.follows
        for g, feature in enumerate(self.schema.features):
            self.meter.tick()
            if g in follows:
                costs.append(Fraction(0))
                continue
            change = Fraction(point[g]) - Fraction(self.factual[g])
            if isinstance(feature, StatedChoice):
                size = self.costs.option_change(g, feature.kind, int(self.factual[g]), int(point[g]), self.scales[g])
            else:
                size = self.costs.times(g, change) * abs(change) / self.scales[g]
            costs.append(self.weights[g] * (self.jump * (change != 0) + self.rate * size))
        return costs

    def cost(self, point: tuple[float, ...]) -> Fraction:
        """The distance of a row, squared for l2; with the fees for what is acted on."""
        changes = self.cost_of_changes(point)
        return max(changes, self.fee) if self.norm == MAXIMUM else changes + self.fee

    def cost_of_changes(self, point: tuple[float, ...]) -> Fraction:
        """The same without fees."""
        costs, n = self.feature_costs(point), len(self.factual)
        if self.norm == MAXIMUM:
            return max(costs) / n
        total = Fraction(0)
        for c in costs:
            self.meter.tick()
            total += c * c if self.norm == SQUARED else c
        return total / n

    def number_cost(self, g: int, change: int) -> int:
        """The counted cost of a change of a number, of which the rest costs nothing."""
        rate = self.rates[g] if change > 0 else self.rates_down[g]
        return rate * change * change if self.norm == SQUARED else rate * abs(change) + (self.jumps[g] if change else 0)

    def total(self, costs: list[int]) -> int:
        """The counted cost of a row, from those of its features."""
        return max(costs) if self.norm == MAXIMUM else sum(costs)

    def conditions(self, point: tuple[float, ...]) -> list[int]:
        """C s - d - margin of a row, in some unit: all must be >= 0. The unit becomes finer layer by layer."""
        if self.forest is not None:
            trees = self.forest.conditions(point, self.meter)
            return [*self._network_conditions(point), *trees] if self.sizes[-1] else trees
        return self._network_conditions(point)

    def _network_conditions(self, point: tuple[float, ...]) -> list[int]:
        changes = [Fraction(0)] * len(point)
        for g, feature in enumerate(self.schema.features):
            if isinstance(feature, StatedNumeric):
                changes[g] = Fraction(point[g]) - Fraction(self.factual[g])
        finer = max(self.grid, *(change.denominator.bit_length() - 1 for change in changes))
        values = [z << finer - self.grid for z in self.at_factual]
        for g, columns in enumerate(self.columns):
            self.meter.tick()
            if isinstance(self.schema.features[g], StatedNumeric):
                step = (changes[g] * 2**finer).numerator
                values = [z + w * step for z, w in zip(values, columns[0], strict=True)] if step else values
            elif point[g] != self.factual[g]:
                new, old = columns[int(point[g])], columns[int(self.factual[g])]
                values = [z + (a - b << finer) for z, a, b in zip(values, new, old, strict=True)]
        bits = self.exponents[0] + finer
        if self.curved:
            return self._least_conditions(values, bits)
        for k in range(1, self.layers):
            hidden = [max(z, 0) for z in values]
            shift = bits - self.grid
            sums = self.products(hidden, self.weight_rows[k])
            values = [z + (bias << shift) for z, bias in zip(sums, self.biases[k], strict=True)]
            bits += self.exponents[k]
        return [*values, *self._of_curves(values, bits)]

    def _of_curves(self, values: list[int], bits: int) -> list[int]:
        """Of each probability that is asked for: 0 where the conditions' values show it, -1 where they do not."""
        exact = [
            [Fraction(value, 1 << bits) for value in values[first : first + count]] for first, count in self.curves
        ]
        return [0 if has_probability(one) else -1 for one in exact]

    def _least_conditions(self, values: list[int], bits: int) -> list[int]:
        """Numbers that the conditions of a smooth network are at least, from the pre-activations of layer 0."""
        ends = [(z, z) for z in values]
        for k in range(1, self.layers):
            curved, unit = self.curved[k - 1], BITS
            hidden = [
                curved[j].values(low, high, bits) if j in curved
                else (max(low, 0) << unit >> bits, -(-max(high, 0) << unit >> bits))
                for j, (low, high) in enumerate(ticking(ends, self.meter))
            ]  # fmt: skip
            bits, shift = unit + self.exponents[k], unit - self.grid
            biases = [b << shift if shift >= 0 else b >> -shift for b in self.biases[k]]
            high_biases = [b << shift if shift >= 0 else -(-b >> -shift) for b in self.biases[k]]
            ends = []
            for row, least, most in zip(self.weight_rows[k], biases, high_biases, strict=True):
                self.meter.tick()
                for w, (low, high) in zip(row, hidden, strict=False):
                    least, most = least + w * (low if w > 0 else high), most + w * (high if w > 0 else low)
                ends.append((least, most))
        found = [low for low, _ in ends]
        return [*found, *self._of_curves(found, bits)]

    def products(self, v: list[int], rows: Sequence[Sequence[int]]) -> list[int]:
        """The sum of products of v with each row; checks the time often enough, whatever the sizes."""
        self.meter.tick()
        if not self.slow and len(v) * len(rows) <= FEW:
            return [sum(map(mul, v, row)) for row in rows]
        return [self._product(v, row) for row in rows]

    def _product(self, v: list[int], row: Sequence[int]) -> int:
        total = 0
        for start in range(0, len(v), AT_ONCE):
            self.meter.tick()
            total += sum(map(mul, v[start : start + AT_ONCE], row[start : start + AT_ONCE]))
        return total

    def allows(self, point: tuple[float, ...]) -> str:
        """Why a row is not allowed, or nothing."""
        for g, feature in enumerate(self.schema.features):
            self.meter.tick()
            if not belongs(feature, point[g]):
                return f"{quoted(feature.name)} cannot be {point[g]!r}"
            domain = self.domains[g]
            if isinstance(feature, StatedChoice):
                if int(point[g]) not in domain.options:
                    return f"{quoted(feature.name)} may not become option {int(point[g])}"
                continue
            change = (Fraction(point[g]) - Fraction(self.factual[g])) * 2**self.grid
            if not domain.low <= change <= domain.high:
                return f"{quoted(feature.name)} may not become {point[g]!r}"
            if change and domain.inward(math.floor(change), math.floor(change)) != (change, change):
                return f"{quoted(feature.name)} may not become {point[g]!r}, which is between its steps"
        return self.rules.broken(self.schema, self.factual, point)


def read_statement(
    question: Any,
    grid: int,
    cost_grid: int,
    meter: CheckBudget | None = None,
    target: Any = None,
    *,
    planes: Any = None,
) -> Statement:
    """The question of a certificate, checked and in integers; of several targets this one."""
    meter = meter or CheckBudget()
    more = _check_entries(question)
    schema = read_schema(question["schema"], meter)
    factual = read_point(schema, question["factual"], "the factual")
    model = read_model(question["model"], schema, target or question["target"], grid, meter, planes)
    norm_name, jump, rate, weights, scales, costs = read_distance(question["distance"], schema, meter)
    constraints = _read_constraints(question["constraints"], meter)
    rules = read_rules(schema, tuple(one for one in constraints if one["kind"] in OWN), meter)
    equations = read_causes(question["causes"], schema, meter) if more else ()
    norm = NORMS[norm_name]
    unit = cost_grid + (2 * grid if norm == SQUARED else grid)
    exponents, weight_rows, biases, columns = with_literals(schema, rules.literals, model.network, grid, meter)
    sizes, longest = tuple(map(len, biases)), longest_number(weight_rows, biases, columns, schema, grid)
    if longest > MAX_NUMBER:
        raise Refusal(f"the network leads to numbers of {longest} bits; at most {MAX_NUMBER} are checked")
    pairs = tuple(zip(weights, scales, strict=True))
    up, down = (rates_of((norm, rate), pairs, some, cost_grid, meter) for some in (costs.up, costs.down))
    jumps = tuple(floor_of(jump * weight, len(schema), unit) for weight in ticking(weights, meter))
    statement = Statement(
        schema, (), norm, norm_name, weights, scales, jump, rate, costs, constraints, rules, model.wanted,
        model.margins, grid, cost_grid, unit, (), (), up, down, jumps, (),
        exponents, weight_rows, tuple(tuple(zip(*rows, strict=True)) for rows in weight_rows), biases, columns, (),
        sizes, model.words, sizes[0] - len(rules.literals), model.forest, rooms(schema, rules.literals, grid, meter),
        tuple(isinstance(f, StatedChoice) for f in schema.features),
        tuple(accumulate(sizes, initial=0)), longest + unit > LONG_NUMBER or sum(map(len, columns)) > MANY_COLUMNS,
        model.curves, model.curved, model.fingerprint,
        hashlib.sha256(canonical_in_steps(question, meter.tick)).hexdigest(), meter,
        model.network if equations else None, equations,
    )  # fmt: skip
    return statement.about(factual)


def _check_entries(question: Any) -> list[str]:
    """Refuse a question with other entries than it may have; those that it need not have."""
    more = ["causes"] if isinstance(question, dict) and "causes" in question else []
    entries(question, "the question", "schema", "model", "factual", "distance", "constraints", "target", *more)
    return more


def with_literals(
    schema: StatedSchema, literals: tuple[RuleLiteral, ...], network: Integers, grid: int, meter: CheckBudget
) -> Integers:
    """The network with literals beside its first hidden layer, if they are not too many."""
    width = sum(map(len, network[3]))
    if len(literals) * width > MAX_WEIGHTS:
        raise Refusal(f"the rules have more than {MAX_WEIGHTS} numbers")
    meter.keep(64 * len(literals) * width)
    return beside(schema, literals, network, grid)


def _read_constraints(value: Any, meter: CheckBudget) -> tuple[dict[str, Any], ...]:
    constraints = tuple(listed(value, "the constraints"))
    for one in ticking(constraints, meter):
        kind = one.get("kind") if isinstance(one, dict) else None
        if not isinstance(kind, str) or kind not in (*KINDS, *OWN):
            raise Refusal(f"there is no constraint {str(kind)[:60]!r}")
    return constraints


def _at_factual(
    schema: StatedSchema, columns: tuple[tuple[tuple[int, ...], ...], ...], bias: tuple[int, ...],
    factual: tuple[float, ...], grid: int, meter: CheckBudget,
) -> tuple[int, ...]:  # fmt: skip
    values = list(bias)
    for g, feature in enumerate(schema.features):
        meter.tick()
        if isinstance(feature, StatedNumeric):
            times, column = scaled(factual[g], grid, f"the factual's {quoted(feature.name)}"), columns[g][0]
        else:
            times, column = 1 << grid, columns[g][int(factual[g])]
        values = [z + times * w for z, w in zip(values, column, strict=True)]
    return tuple(values)


# ---------------------------------------------------------------------- costs


def _option_costs(statement: Statement, g: int, before: float) -> tuple[int, ...]:
    """Of each option of a choice, rounded down."""
    feature, n = statement.schema.features[g], len(statement.schema)
    if not isinstance(feature, StatedChoice):
        return ()
    if g in statement.follows:
        return (0,) * len(feature.options)
    own, costs, known = int(before), statement.costs, dict[tuple[bool, int] | int, int]()

    def cost(option: int) -> int:
        statement.meter.tick()
        size = costs.option_change(g, feature.kind, own, option, statement.scales[g])
        part = statement.weights[g] * (statement.jump + statement.rate * size)
        return floor_of(part * part if statement.norm == SQUARED else part, n, statement.cost_unit)

    result = []
    for option in range(len(feature.options)):
        listed_one = (g, own, option) in costs.transitions
        moved = abs(option - own) if feature.kind == "ordinal" else 1
        key = option if listed_one else (option > own, moved)  # of those that cost the same, one is worked out
        if option != own and key not in known:
            known[key] = cost(option)
        result.append(known[key] if option != own else 0)
    return tuple(result)
