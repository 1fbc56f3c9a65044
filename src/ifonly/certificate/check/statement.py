"""A certificate's question, read into exact integers. Nothing is assumed; whatever is malformed is a `Refusal`.

Numbers of a point are counted in units of 2^-P (`P` is the certificate's "grid"), weights of layer k in units of
2^-e[k], costs in units of 2^-K. Costs are rounded down: what is proven about smaller costs holds for the true ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any

from ifonly.certificate.check.layers import columns_of, fingerprint, integers, longest_number, read_network, read_target
from ifonly.certificate.check.reading import (
    AT_ONCE,
    FEW,
    CheckBudget,
    Refusal,
    entries,
    listed,
    number,
    scaled,
    whole,
)
from ifonly.certificate.format import canonical
from ifonly.errors import IfonlyError
from ifonly.printing import quoted
from ifonly.schema import Choice, Integer, Numeric, Schema
from ifonly.schema.io import schema_from_json, schema_to_json

MAX_BITS = 2400
"""Of the grids."""
MAX_COLUMNS = 20_000
"""Encoded columns, and numbers and options together."""
MAX_NUMBER = 65_536
"""Bits of the largest number that backward substitution through the network can lead to."""
LONG_NUMBER, MANY_COLUMNS = 4_096, 512
"""Beyond these the time is checked within sums, not only between them."""
ADDITIVE, SQUARED, MAXIMUM = "additive", "squared", "maximum"
NORMS = {"l0": ADDITIVE, "l1": ADDITIVE, "l0+l1": ADDITIVE, "l2": SQUARED, "linf": MAXIMUM}


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
    """Feature g, column (1 for numbers, one per option for choices), neuron of layer 0."""
    at_factual: tuple[int, ...]
    """Layer 0 at the factual, in units of 2^-(e[0] + P)."""
    sizes: tuple[int, ...]
    """Neurons of each layer; the last one holds the conditions."""
    starts: tuple[int, ...]
    """How many hidden neurons stand before each layer."""
    slow: bool
    """Numbers are so long, or features so many, that one sum may take long."""
    fingerprint: str
    """Of the network: the same as `Network.fingerprint`."""
    question: str
    """The sha256 of the question's canonical JSON."""
    meter: CheckBudget

    @property
    def layers(self) -> int:
        return len(self.exponents)

    def about(self, factual: tuple[float, ...]) -> Statement:
        """The same question about another person."""
        schema, grid = self.schema, self.grid
        domains = _domains(schema, factual, self.constraints, grid, self.meter)
        options = tuple(_option_costs(self, g, factual[g]) for g in range(len(schema)))
        start = _at_factual(schema, self.columns, self.biases[0], factual, grid, self.meter)
        return replace(self, factual=factual, domains=domains, option_costs=options, at_factual=start)

    # ------------------------------------------------------------------ a single row, exactly

    def feature_costs(self, point: tuple[float, ...]) -> list[Fraction]:
        """jump * [changed] + rate * delta of each feature, weighted; l2 and linf have only delta."""
        costs = []
        for g, feature in enumerate(self.schema.features):
            self.meter.tick()
            change = abs(Fraction(point[g]) - Fraction(self.factual[g]))
            if isinstance(feature, Choice) and feature.kind != "ordinal":
                change = Fraction(change > 0)
            costs.append(self.weights[g] * (self.jump * (change > 0) + self.rate * change / self.scales[g]))
        return costs

    def cost(self, point: tuple[float, ...]) -> Fraction:
        """The distance of a row, squared for l2."""
        costs, n = self.feature_costs(point), len(self.factual)
        if self.norm == MAXIMUM:
            return max(costs) / n
        total = Fraction(0)
        for c in costs:
            self.meter.tick()
            total += c * c if self.norm == SQUARED else c
        return total / n

    def conditions(self, point: tuple[float, ...]) -> list[int]:
        """C s - d - margin of a row, in some unit: all must be >= 0. The unit becomes finer layer by layer."""
        changes = [Fraction(0)] * len(point)
        for g, feature in enumerate(self.schema.features):
            if isinstance(feature, Numeric):
                changes[g] = Fraction(point[g]) - Fraction(self.factual[g])
        finer = max(self.grid, *(change.denominator.bit_length() - 1 for change in changes))
        values = [z << finer - self.grid for z in self.at_factual]
        for g, columns in enumerate(self.columns):
            self.meter.tick()
            if isinstance(self.schema.features[g], Numeric):
                step = (changes[g] * 2**finer).numerator
                values = [z + w * step for z, w in zip(values, columns[0], strict=True)] if step else values
            elif point[g] != self.factual[g]:
                new, old = columns[int(point[g])], columns[int(self.factual[g])]
                values = [z + (a - b << finer) for z, a, b in zip(values, new, old, strict=True)]
        bits = self.exponents[0] + finer
        for k in range(1, self.layers):
            hidden = [max(z, 0) for z in values]
            shift = bits - self.grid
            sums = self.products(hidden, self.weight_rows[k])
            values = [z + (bias << shift) for z, bias in zip(sums, self.biases[k], strict=True)]
            bits += self.exponents[k]
        return values

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
            if not _belongs(feature, point[g]):
                return f"{quoted(feature.name)} cannot be {point[g]!r}"
            domain = self.domains[g]
            if isinstance(feature, Choice):
                if int(point[g]) not in domain.options:
                    return f"{quoted(feature.name)} may not become option {int(point[g])}"
                continue
            change = (Fraction(point[g]) - Fraction(self.factual[g])) * 2**self.grid
            if not domain.low <= change <= domain.high:
                return f"{quoted(feature.name)} may not become {point[g]!r}"
        return ""


def read_statement(question: Any, grid: int, cost_grid: int, meter: CheckBudget | None = None) -> Statement:
    """The question of a certificate, checked and in integers."""
    meter = meter or CheckBudget()
    entries(question, "the question", "schema", "network", "factual", "distance", "constraints", "target")
    schema = _read_schema(question["schema"])
    width = sum(len(f.options) if isinstance(f, Choice) else 1 for f in schema.features)
    if max(len(schema.columns), width) > MAX_COLUMNS:
        raise Refusal(f"the schema has more than {MAX_COLUMNS} columns, or numbers and options")
    meter.tick()
    factual = read_point(schema, question["factual"], "the factual")
    meter.tick()
    stack = read_network(question["network"], len(schema.columns), meter)
    wanted, margin, rows = read_target(question["target"], len(stack[-1][1]))
    norm_name, jump, rate, weights, scales = _read_distance(question["distance"], len(schema))
    constraints = tuple(listed(question["constraints"], "the constraints"))
    norm = NORMS[norm_name]
    unit = cost_grid + (2 * grid if norm == SQUARED else grid)
    exponents, weight_rows, biases = integers(stack, rows, margin, grid, meter)
    columns = columns_of(schema, weight_rows[0], meter)
    sizes = tuple(map(len, biases))
    longest = longest_number(weight_rows, biases, columns, schema, grid)
    if longest > MAX_NUMBER:
        raise Refusal(f"the network leads to numbers of {longest} bits; at most {MAX_NUMBER} are checked")
    statement = Statement(
        schema, (), norm, norm_name, weights, scales, jump, rate, constraints, wanted, margin, grid, cost_grid, unit,
        (), *_rates(norm, jump, rate, weights, scales, cost_grid, unit, meter), (),
        exponents, weight_rows, tuple(tuple(zip(*rows, strict=True)) for rows in weight_rows), biases, columns, (),
        sizes, tuple(accumulate(sizes, initial=0)), longest + unit > LONG_NUMBER or width > MANY_COLUMNS,
        fingerprint(stack, meter), hashlib.sha256(canonical(question)).hexdigest(), meter,
    )  # fmt: skip
    return statement.about(factual)


def _read_schema(value: Any) -> Schema:
    _check_size(value)
    try:
        schema = schema_from_json(value)
    except (IfonlyError, TypeError, ValueError, OverflowError) as error:
        raise Refusal(f"the schema cannot be read: {error}") from None
    if canonical(schema_to_json(schema)) != canonical(value):
        raise Refusal("the schema is not written as ifonly writes it: other entries, other numbers, or another order")
    if schema.rules:
        raise Refusal("the schema has rules of its own; a certificate states every rule among the constraints")
    if schema.grids:
        raise Refusal("the schema has real numbers with steps, which a certificate cannot state")
    return schema


def _read_distance(
    value: Any, features: int
) -> tuple[str, Fraction, Fraction, tuple[Fraction, ...], tuple[Fraction, ...]]:
    """The norm's name, jump, rate, weights and scales."""
    distance = entries(value, "the distance", "norm", "jump", "rate", "weights", "scales")
    name = distance["norm"]
    if not isinstance(name, str) or name not in NORMS:
        raise Refusal(f"there is no norm {str(name)[:60]!r}")
    jump, rate = (Fraction(number(distance[key], f"the distance's {key}")) for key in ("jump", "rate"))
    pure = (Fraction(name == "l0"), Fraction(name != "l0"))
    if not (jump > 0 and rate > 0 if name == "l0+l1" else (jump, rate) == pure):
        raise Refusal(f"the shares of l0 and the rest do not fit the norm {name}")
    weights, scales = (
        tuple(_positive(value, key) for value in listed(distance[key], key, features)) for key in ("weights", "scales")
    )
    return name, jump, rate, weights, scales


def _check_size(schema: Any) -> None:
    """Refuse a schema that is too large before anything is made of it."""
    features = schema.get("features") if isinstance(schema, dict) else None
    count = len(features) if isinstance(features, list) else 0
    for feature in features if isinstance(features, list) and count <= MAX_COLUMNS else ():
        if isinstance(feature, dict):
            count += sum(len(value) for value in feature.values() if isinstance(value, list))
    if count > 2 * MAX_COLUMNS:
        raise Refusal(f"the schema has more than {MAX_COLUMNS} columns, or numbers and options")


def read_point(schema: Schema, value: Any, what: str) -> tuple[float, ...]:
    """A row of the schema: one number per feature, options by index."""
    point = tuple(number(v, what) for v in listed(value, what, len(schema)))
    for feature, v in zip(schema.features, point, strict=True):
        if not _belongs(feature, v):
            raise Refusal(f"{what} is no row of the schema: {quoted(feature.name)} cannot be {v!r}")
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


def _at_factual(
    schema: Schema, columns: tuple[tuple[tuple[int, ...], ...], ...], bias: tuple[int, ...],
    factual: tuple[float, ...], grid: int, meter: CheckBudget,
) -> tuple[int, ...]:  # fmt: skip
    values = list(bias)
    for g, feature in enumerate(schema.features):
        meter.tick()
        if isinstance(feature, Numeric):
            times, column = scaled(factual[g], grid, f"the factual's {quoted(feature.name)}"), columns[g][0]
        else:
            times, column = 1 << grid, columns[g][int(factual[g])]
        values = [z + times * w for z, w in zip(values, column, strict=True)]
    return tuple(values)


# ---------------------------------------------------------------------- constraints and costs


def _domains(
    schema: Schema, factual: tuple[float, ...], constraints: tuple[Any, ...], grid: int, meter: CheckBudget
) -> tuple[Domain, ...]:
    """The values that schema and constraints leave to each feature."""
    where = {name: g for g, name in enumerate(schema.names)}
    ends = [[0.0, len(f.options) - 1.0] if isinstance(f, Choice) else [f.lower, f.upper] for f in schema.features]
    allowed = [set(range(len(f.options))) if isinstance(f, Choice) else set() for f in schema.features]
    for constraint in constraints:
        meter.tick()
        kind = constraint.get("kind") if isinstance(constraint, dict) else None
        extra = {"range": ("lower", "upper"), "allowed": ("options",)}.get(str(kind), ())
        entries(constraint, "a constraint", "kind", "feature", *extra)
        name = constraint["feature"]
        if not isinstance(name, str) or name not in where:
            raise Refusal(f"a constraint is about an unknown feature, {str(name)[:60]!r}")
        g = where[name]
        _narrow(schema.features[g], factual[g], constraint, ends[g], allowed[g])
    domains = []
    for feature, before, own, options in zip(schema.features, factual, ends, allowed, strict=True):
        meter.tick()
        domains.append(_domain(feature, before, own, options, grid))
    return tuple(domains)


def _narrow(feature: Any, before: float, constraint: dict[str, Any], ends: list[float], options: set[int]) -> None:
    """What one constraint leaves of the interval and the options of its feature."""
    kind, name = constraint["kind"], quoted(feature.name)
    if kind in ("only_up", "only_down") and isinstance(feature, Choice) and not feature.ordered:
        raise Refusal(f"{name} has no order, so it cannot go only up or down")
    if kind in ("fixed", "only_up", "only_down"):
        if kind != "only_down":
            ends[0] = max(ends[0], before)
        if kind != "only_up":
            ends[1] = min(ends[1], before)
    elif kind == "range" and not isinstance(feature, Choice):
        if constraint["lower"] is not None:
            ends[0] = max(ends[0], number(constraint["lower"], "a range's lower end"))
        if constraint["upper"] is not None:
            ends[1] = min(ends[1], number(constraint["upper"], "a range's upper end"))
    elif kind == "allowed" and isinstance(feature, Choice):
        most = len(feature.options) - 1
        options &= {whole(v, "an allowed option", 0, most) for v in listed(constraint["options"], "options")}
    else:
        raise Refusal(f"there is no constraint {str(kind)[:60]!r} for {name}")


def _domain(feature: Any, before: float, interval: list[float], options: set[int], grid: int) -> Domain:
    low, high = interval
    if isinstance(feature, Choice):
        return Domain(0, 0, 0, tuple(sorted(o for o in options if low <= o <= high)))
    what = f"an end of {quoted(feature.name)}"
    ends = [scaled(Fraction(end) - Fraction(before), grid, what) for end in (low, high)]
    step = feature.step << grid if isinstance(feature, Integer) else 0
    return Domain(*(to_step(ends[0], ends[1], step)), step, ())


def to_step(low: int, high: int, step: int) -> tuple[int, int]:
    """The interval with its ends moved inward to multiples of the step (changes are counted from the factual)."""
    return (-(-low // step) * step, high // step * step) if step else (low, high)


def _rates(
    norm: str, jump: Fraction, rate: Fraction, weights: tuple[Fraction, ...], scales: tuple[Fraction, ...],
    cost_grid: int, unit: int, meter: CheckBudget,
) -> tuple[tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """Of each feature: what a unit of change costs (l2: a squared one), and what any change costs; rounded down."""
    n, rates, jumps = len(weights), [], []
    for weight, scale in zip(weights, scales, strict=True):
        meter.tick()
        slope = rate * weight / scale
        rates.append(_floor(slope * slope if norm == SQUARED else slope, n, cost_grid))
        jumps.append(_floor(jump * weight, n, unit))
    return tuple(rates), tuple(jumps)


def _option_costs(statement: Statement, g: int, before: float) -> tuple[int, ...]:
    """Of each option of a choice, rounded down."""
    feature, n = statement.schema.features[g], len(statement.schema)
    if not isinstance(feature, Choice):
        return ()
    weight, costs = statement.weights[g], {0: 0}
    moves = [abs(option - int(before)) for option in range(len(feature.options))]
    moves = moves if feature.kind == "ordinal" else [min(moved, 1) for moved in moves]
    for moved in set(moves) - {0}:
        statement.meter.tick()
        part = weight * (statement.jump + statement.rate * moved / statement.scales[g])
        costs[moved] = _floor(part * part if statement.norm == SQUARED else part, n, statement.cost_unit)
    return tuple(costs[moved] for moved in moves)


def _floor(value: Fraction, n: int, bits: int) -> int:
    """value / n in units of 2^-bits, rounded down."""
    return (value.numerator << bits) // (value.denominator * n)
