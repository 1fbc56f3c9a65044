"""A certificate's question, read into exact integers. Nothing is believed; whatever is malformed is a `Refusal`.

Numbers of a point are counted in units of 2^-P (`P` is the certificate's "grid"), weights of layer k in units of
2^-e[k], costs in units of 2^-K. Costs are rounded down: what is proven about smaller costs holds for the true ones.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import mul
from typing import Any

from ifonly.errors import IfonlyError
from ifonly.schema import Choice, Integer, Numeric, Schema
from ifonly.schema.io import schema_from_json

MAX_BITS = 2400
"""Of the grids."""
MAX_WEIGHTS = 5_000_000
MAX_COLUMNS = 20_000
ADDITIVE, SQUARED, MAXIMUM = "additive", "squared", "maximum"
NORMS = {"l0": ADDITIVE, "l1": ADDITIVE, "l0+l1": ADDITIVE, "l2": SQUARED, "linf": MAXIMUM}


class Refusal(Exception):
    """The first step of a certificate that fails, in words."""


class Stopped(Exception):
    """The check takes longer than it may."""


@dataclass(frozen=True, slots=True)
class Clock:
    """When a check has to be over; None: whenever. Every loop whose length a certificate chooses asks it."""

    until: float | None = None

    def tick(self) -> None:
        if self.until is not None and time.monotonic() > self.until:
            raise Stopped


def number(value: Any, what: str) -> float:
    """A finite float64, written canonically as hexadecimal text."""
    if isinstance(value, str) and len(value) < 40:
        try:
            read = float.fromhex(value)
        except (ValueError, OverflowError):
            read = math.nan
        if math.isfinite(read) and read.hex() == value:
            return read
    raise Refusal(f"{what} must be a finite number in hexadecimal; it is {str(value)[:60]!r}")


def whole(value: Any, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Refusal(f"{what} must be a whole number between {low} and {high}; it is {str(value)[:60]!r}")
    return value


def entries(value: Any, what: str, *keys: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise Refusal(f"{what} must have exactly the entries {', '.join(keys)}")
    return value


def listed(value: Any, what: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise Refusal(f"{what} must be a list" + ("" if length is None else f" of {length}"))
    return value


@dataclass(frozen=True, slots=True)
class Domain:
    """What one feature may become. Numbers: an interval of changes, in units of 2^-P, on the grid of `step` (0: any).
    Choices: `options`, the allowed ones.
    """

    low: int
    high: int
    step: int
    options: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """The question in integers."""

    schema: Schema
    factual: tuple[float, ...]
    norm: str
    norm_name: str
    weights: tuple[Fraction, ...]
    scales: tuple[Fraction, ...]
    jump: Fraction
    rate: Fraction
    constraints: tuple[dict[str, Any], ...]
    wanted: str
    margin: float
    grid: int
    cost_grid: int
    cost_unit: int
    """K: costs are in units of 2^-K."""
    domains: tuple[Domain, ...]
    rates: tuple[int, ...]
    """Numbers: cost of one unit of change (l2: of one squared unit), in units that make rate * change a cost."""
    jumps: tuple[int, ...]
    option_costs: tuple[tuple[int, ...], ...]
    exponents: tuple[int, ...]
    weight_rows: tuple[tuple[tuple[int, ...], ...], ...]
    """Layer k, neuron i: its weights in units of 2^-e[k]; layer 0 is not here but in `columns`."""
    weight_columns: tuple[tuple[tuple[int, ...], ...], ...]
    """The same, input by input."""
    biases: tuple[tuple[int, ...], ...]
    """In units of 2^-(e[k] + P)."""
    columns: tuple[tuple[tuple[int, ...], ...], ...]
    """Feature g, column (1 for numbers, one an option for choices), neuron of layer 0."""
    at_factual: tuple[int, ...]
    """Layer 0 at the factual, in units of 2^-(e[0] + P)."""
    clock: Clock

    @property
    def layers(self) -> int:
        return len(self.exponents)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Neurons of each layer; the last one holds the conditions."""
        return tuple(len(bias) for bias in self.biases)

    def about(self, factual: tuple[float, ...]) -> Statement:
        """The same question about somebody."""
        schema, grid = self.schema, self.grid
        domains = tuple(_domain(schema, g, factual[g], self.constraints, grid) for g in range(len(schema)))
        options = tuple(_option_costs(self, g, factual[g]) for g in range(len(schema)))
        start = _at_factual(schema, self.columns, self.biases[0], factual, grid)
        return replace(self, factual=factual, domains=domains, option_costs=options, at_factual=start)

    # ------------------------------------------------------------------ a single row, exactly

    def feature_costs(self, point: tuple[float, ...]) -> list[Fraction]:
        """jump * [changed] + rate * delta of each feature, weighted; l2 and linf have only delta."""
        costs = []
        for g, feature in enumerate(self.schema.features):
            change = abs(Fraction(point[g]) - Fraction(self.factual[g]))
            if isinstance(feature, Choice) and feature.kind != "ordinal":
                change = Fraction(change > 0)
            costs.append(self.weights[g] * (self.jump * (change > 0) + self.rate * change / self.scales[g]))
        return costs

    def cost(self, point: tuple[float, ...]) -> Fraction:
        """The distance of a row, squared for l2."""
        costs, n = self.feature_costs(point), len(self.factual)
        if self.norm == SQUARED:
            return sum((c * c for c in costs), Fraction(0)) / n
        return (max(costs) if self.norm == MAXIMUM else sum(costs, Fraction(0))) / n

    def conditions(self, point: tuple[float, ...]) -> list[Fraction]:
        """C s - d - margin of a row: all must be >= 0. In integers, whose unit 2^-bits becomes finer layer by layer."""
        changes = [Fraction(0)] * len(point)
        for g, feature in enumerate(self.schema.features):
            if isinstance(feature, Numeric):
                changes[g] = Fraction(point[g]) - Fraction(self.factual[g])
        finer = max(self.grid, *(change.denominator.bit_length() - 1 for change in changes))
        values = [z << finer - self.grid for z in self.at_factual]
        for g, columns in enumerate(self.columns):
            if isinstance(self.schema.features[g], Numeric):
                step = (changes[g] * 2**finer).numerator
                values = [z + w * step for z, w in zip(values, columns[0], strict=True)] if step else values
            elif point[g] != self.factual[g]:
                new, old = columns[int(point[g])], columns[int(self.factual[g])]
                values = [z + (a - b << finer) for z, a, b in zip(values, new, old, strict=True)]
        bits = self.exponents[0] + finer
        for k in range(1, self.layers):
            self.clock.tick()
            hidden = [max(z, 0) for z in values]
            shift = bits - self.grid
            values = [
                sum(map(mul, row, hidden)) + (bias << shift)
                for row, bias in zip(self.weight_rows[k], self.biases[k], strict=True)
            ]
            bits += self.exponents[k]
        return [Fraction(z, 1 << bits) for z in values]

    def allows(self, point: tuple[float, ...]) -> str:
        """Why a row is not allowed, or nothing."""
        for g, feature in enumerate(self.schema.features):
            if not _belongs(feature, point[g]):
                return f"'{feature.name}' cannot be {point[g]!r}"
            domain = self.domains[g]
            if isinstance(feature, Choice):
                if int(point[g]) not in domain.options:
                    return f"'{feature.name}' may not become option {int(point[g])}"
                continue
            change = (Fraction(point[g]) - Fraction(self.factual[g])) * 2**self.grid
            if not domain.low <= change <= domain.high:
                return f"'{feature.name}' may not become {point[g]!r}"
        return ""


def read_statement(question: Any, grid: int, cost_grid: int, clock: Clock | None = None) -> Statement:
    """The question of a certificate, checked and in integers."""
    clock = clock or Clock()
    entries(question, "the question", "schema", "network", "factual", "distance", "constraints", "target")
    try:
        schema = schema_from_json(question["schema"])
    except (IfonlyError, TypeError, ValueError, OverflowError) as error:
        raise Refusal(f"the schema cannot be read: {error}") from None
    if schema.rules:
        raise Refusal("the schema has rules of its own; a certificate states every rule among the constraints")
    if len(schema.columns) > MAX_COLUMNS:
        raise Refusal(f"the schema has more than {MAX_COLUMNS} columns")
    factual = read_point(schema, question["factual"], "the factual")
    stack = _read_network(question["network"], len(schema.columns), clock)
    wanted, margin, rows = _read_target(question["target"], len(stack[-1][1]))
    distance = entries(question["distance"], "the distance", "norm", "jump", "rate", "weights", "scales")
    norm_name = distance["norm"]
    if not isinstance(norm_name, str) or norm_name not in NORMS:
        raise Refusal(f"there is no norm {str(norm_name)[:60]!r}")
    jump, rate = (Fraction(number(distance[key], f"the distance's {key}")) for key in ("jump", "rate"))
    pure = (Fraction(norm_name == "l0"), Fraction(norm_name != "l0"))
    if not (jump > 0 and rate > 0 if norm_name == "l0+l1" else (jump, rate) == pure):
        raise Refusal(f"the shares of l0 and the rest do not fit the norm {norm_name}")
    weights, scales = (
        tuple(_positive(value, key) for value in listed(distance[key], key, len(schema)))
        for key in ("weights", "scales")
    )
    constraints = tuple(listed(question["constraints"], "the constraints"))
    norm = NORMS[norm_name]
    unit = cost_grid + (2 * grid if norm == SQUARED else grid)
    exponents, weight_rows, biases = _integers(stack, rows, margin, grid, clock)
    asked = Statement(
        schema, (), norm, norm_name, weights, scales, jump, rate, constraints, wanted, margin, grid, cost_grid, unit,
        (), *_rates(norm, jump, rate, weights, scales, cost_grid, unit), (),
        exponents, weight_rows, tuple(tuple(zip(*rows, strict=True)) for rows in weight_rows), biases,
        _columns(schema, weight_rows[0]), (), clock,
    )  # fmt: skip
    return asked.about(factual)


def read_point(schema: Schema, value: Any, what: str) -> tuple[float, ...]:
    """A row of the schema: one number a feature, options by index."""
    point = tuple(number(v, what) for v in listed(value, what, len(schema)))
    for feature, v in zip(schema.features, point, strict=True):
        if not _belongs(feature, v):
            raise Refusal(f"{what} is no row of the schema: '{feature.name}' cannot be {v!r}")
    return point


def _belongs(feature: Any, value: float) -> bool:
    if isinstance(feature, Choice):
        return value == int(value) and 0 <= value < len(feature.options)
    if not feature.lower <= value <= feature.upper:
        return False
    return not isinstance(feature, Integer) or (Fraction(value) - Fraction(feature.lower)) % feature.step == 0


def _positive(value: Any, what: str) -> Fraction:
    read = number(value, what)
    if read <= 0.0:
        raise Refusal(f"the {what} must be positive; one is {read!r}")
    return Fraction(read)


def scaled(value: float | Fraction, bits: int, what: str) -> int:
    """The number in units of 2^-bits; a refusal when it is not a whole number of them."""
    top, bottom = value.as_integer_ratio()  # the bottom is a power of two
    shift = bits - bottom.bit_length() + 1
    if shift < 0:
        raise Refusal(f"{what} does not lie on the grid of 2^-{bits}")
    return top << shift


# ---------------------------------------------------------------------- network and target


def _read_network(value: Any, inputs: int, clock: Clock) -> list[tuple[list[list[float]], list[float]]]:
    stack, total = [], 0
    for k, layer in enumerate(listed(value, "the network")):
        clock.tick()
        entries(layer, f"layer {k}", "weight", "bias")
        bias = [number(v, f"a bias of layer {k}") for v in listed(layer["bias"], f"the biases of layer {k}")]
        rows = listed(layer["weight"], f"the weights of layer {k}", len(bias))
        total += len(rows) * inputs
        if not bias or total > MAX_WEIGHTS:
            raise Refusal(f"layer {k} is empty, or the network has more than {MAX_WEIGHTS} weights")
        weight = [
            [number(v, f"a weight of layer {k}") for v in listed(row, f"the weights of layer {k}", inputs)]
            for row in rows
        ]
        stack.append((weight, bias))
        inputs = len(bias)
    if not stack:
        raise Refusal("the network has no layers")
    return stack


def _read_target(value: Any, outputs: int) -> tuple[str, float, list[tuple[dict[int, int], float]]]:
    """What is wanted in words, the margin, and the conditions  sum of coefficient * output - d >= margin."""
    rows: list[tuple[dict[int, int], float]]
    if isinstance(value, dict) and "class" in value:
        entries(value, "the target", "class", "label", "margin")
        index = whole(value["class"], "the wanted class", 0, max(outputs - 1, 1))
        if not isinstance(value["label"], str):
            raise Refusal("the wanted class's label must be text")
        if outputs == 1:
            rows = [({0: 1 if index == 1 else -1}, 0.0)]
        else:
            rows = [({index: 1, j: -1}, 0.0) for j in range(outputs) if j != index]
        wanted = f"the decision {value['label'][:200]!r} (class {index} of {max(outputs, 2)})"
    else:
        entries(value, "the target", "output", "at_least", "at_most", "margin")
        output = whole(value["output"], "the target's output", 0, outputs - 1)
        rows, words = [], []
        if value["at_least"] is not None:
            rows.append(({output: 1}, number(value["at_least"], "the target's least score")))
            words.append(f"at least {rows[-1][1]!r}")
        if value["at_most"] is not None:
            rows.append(({output: -1}, -number(value["at_most"], "the target's largest score")))
            words.append(f"at most {-rows[-1][1]!r}")
        if not rows:
            raise Refusal("the target asks for nothing")
        wanted = f"score {output} {' and '.join(words)}"
    margin = number(value["margin"], "the margin")
    if margin < 0.0:
        raise Refusal("the margin is negative")
    return wanted, margin, rows


def _integers(
    stack: list[tuple[list[list[float]], list[float]]], rows: list[tuple[dict[int, int], float]], margin: float,
    grid: int, clock: Clock,
) -> tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], ...], ...], tuple[tuple[int, ...], ...]]:  # fmt: skip
    """Exponents, weights and biases of every layer; the last one gives  C s - d - margin."""
    exponents, weights, biases = [], [], []
    for k, (weight, bias) in enumerate(stack):
        clock.tick()
        last = k == len(stack) - 1
        used = [v for row in weight for v in row] + bias + ([d for _, d in rows] + [margin] if last else [])
        bits = max(v.as_integer_ratio()[1].bit_length() - 1 for v in used)
        exact = [[scaled(v, bits, "a weight") for v in row] for row in weight]
        constant = [scaled(v, bits, "a bias") for v in bias]
        if last:
            constant = [
                sum(c * constant[j] for j, c in row.items()) - scaled(d, bits, "d") - scaled(margin, bits, "margin")
                for row, d in rows
            ]
            exact = [[sum(c * exact[j][t] for j, c in row.items()) for t in range(len(exact[0]))] for row, _ in rows]
        exponents.append(bits)
        weights.append(tuple(map(tuple, exact)))
        biases.append(tuple(b << grid for b in constant))
    return tuple(exponents), tuple(weights), tuple(biases)


def _columns(schema: Schema, rows: tuple[tuple[int, ...], ...]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """What one unit of a number, or an option, adds to each neuron of layer 0."""
    result: list[tuple[tuple[int, ...], ...]] = []
    for feature, places in zip(schema.features, schema.feature_columns, strict=True):
        where = places.tolist()
        if isinstance(feature, Numeric):
            result.append((tuple(row[where[0]] for row in rows),))
        else:
            codes = [[int(code) for code in option] for option in feature.codes.tolist()]
            result.append(
                tuple(
                    tuple(sum(code * row[place] for code, place in zip(option, where, strict=True)) for row in rows)
                    for option in codes
                )
            )
    return tuple(result)


def _at_factual(
    schema: Schema, columns: tuple[tuple[tuple[int, ...], ...], ...], bias: tuple[int, ...],
    factual: tuple[float, ...], grid: int,
) -> tuple[int, ...]:  # fmt: skip
    values = list(bias)
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            times, column = scaled(factual[g], grid, f"the factual's '{feature.name}'"), columns[g][0]
        else:
            times, column = 1 << grid, columns[g][int(factual[g])]
        values = [z + times * w for z, w in zip(values, column, strict=True)]
    return tuple(values)


# ---------------------------------------------------------------------- constraints and costs


def _domain(schema: Schema, g: int, before: float, constraints: tuple[Any, ...], grid: int) -> Domain:
    """The values that schema and constraints leave to feature g."""
    feature = schema.features[g]
    choice = isinstance(feature, Choice)
    low, high = (0.0, len(feature.options) - 1.0) if isinstance(feature, Choice) else (feature.lower, feature.upper)
    options = set(range(len(feature.options))) if isinstance(feature, Choice) else set()
    for constraint in constraints:
        kind = constraint.get("kind") if isinstance(constraint, dict) else None
        extra = {"range": ("lower", "upper"), "allowed": ("options",)}.get(str(kind), ())
        entries(constraint, "a constraint", "kind", "feature", *extra)
        if constraint["feature"] not in schema.names:
            raise Refusal(f"a constraint is about an unknown feature, {str(constraint['feature'])[:60]!r}")
        if constraint["feature"] != feature.name:
            continue
        if kind in ("fixed", "only_up"):
            low = max(low, before)
        if kind in ("fixed", "only_down"):
            high = min(high, before)
        if kind in ("only_up", "only_down") and isinstance(feature, Choice) and not feature.ordered:
            raise Refusal(f"'{feature.name}' has no order, so it cannot go only up or down")
        if kind == "range" and not choice:
            if constraint["lower"] is not None:
                low = max(low, number(constraint["lower"], "a range's lower end"))
            if constraint["upper"] is not None:
                high = min(high, number(constraint["upper"], "a range's upper end"))
        elif kind == "allowed" and isinstance(feature, Choice):
            most = len(feature.options) - 1
            options &= {whole(v, "an allowed option", 0, most) for v in listed(constraint["options"], "options")}
        elif kind not in ("fixed", "only_up", "only_down"):
            raise Refusal(f"there is no constraint {str(kind)[:60]!r} for '{feature.name}'")
    if choice:
        return Domain(0, 0, 0, tuple(sorted(o for o in options if low <= o <= high)))
    ends = [scaled(Fraction(end) - Fraction(before), grid, f"an end of '{feature.name}'") for end in (low, high)]
    step = feature.step << grid if isinstance(feature, Integer) else 0
    return Domain(*(to_step(ends[0], ends[1], step)), step, ())


def to_step(low: int, high: int, step: int) -> tuple[int, int]:
    """The interval with its ends moved inward to multiples of the step (changes are counted from the factual)."""
    return (-(-low // step) * step, high // step * step) if step else (low, high)


def _rates(
    norm: str, jump: Fraction, rate: Fraction, weights: tuple[Fraction, ...], scales: tuple[Fraction, ...],
    cost_grid: int, unit: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """Of each feature: what a unit of change costs (l2: a squared one), and what any change costs; rounded down."""
    n = len(weights)
    slopes = [rate * weight / scale for weight, scale in zip(weights, scales, strict=True)]
    costs = [slope * slope / n if norm == SQUARED else slope / n for slope in slopes]
    jumps = [jump * weight / n for weight in weights]
    return tuple(math.floor(c * 2**cost_grid) for c in costs), tuple(math.floor(j * 2**unit) for j in jumps)


def _option_costs(statement: Statement, g: int, before: float) -> tuple[int, ...]:
    """Of each option of a choice, rounded down."""
    feature, n = statement.schema.features[g], len(statement.schema)
    if not isinstance(feature, Choice):
        return ()
    weight, costs = statement.weights[g], {0: 0}
    moves = [abs(option - int(before)) for option in range(len(feature.options))]
    moves = moves if feature.kind == "ordinal" else [min(moved, 1) for moved in moves]
    for moved in set(moves) - {0}:
        part = weight * (statement.jump + statement.rate * moved / statement.scales[g])
        costs[moved] = math.floor((part * part if statement.norm == SQUARED else part) / n * 2**statement.cost_unit)
    return tuple(costs[moved] for moved in moves)
