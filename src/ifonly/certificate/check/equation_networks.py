"""Networks of ReLUs as equations: two more conditions for each feature that follows by one, beside those of the model.

    value - f(x) - noise + below >= 0      f(x) + noise + above - value >= 0

A neuron beside each hidden layer passes on the value less its lower end, which is never negative.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .layers import Integers, columns_of, integers, read_network
from .reading import CheckBudget, Refusal
from .schema import StatedChoice, StatedNumeric, StatedSchema

Stack = list[tuple[list[list[float]], list[float]]]


def read_layers(value: Any, schema: StatedSchema, meter: CheckBudget) -> Stack:
    """The layers of an equation, over all columns of the schema: at least one hidden one, and one output."""
    stack = read_network(value, len(schema.columns), meter)
    if len(stack) < 2 or len(stack[-1][1]) != 1:
        raise Refusal("an equation is a network with hidden layers and one output, or has cases")
    return stack


def causes_of(stack: Stack, schema: StatedSchema) -> set[int]:
    """The features that it reads."""
    return {g for g, places in enumerate(schema.feature_columns)
            if any(row[place] for row in stack[0][0] for place in places)}  # fmt: skip


def value_at(stack: Stack, schema: StatedSchema, point: tuple[float, ...], meter: CheckBudget) -> Fraction:
    """Of the network at a row, exactly."""
    x = [Fraction(0)] * len(schema.columns)
    for feature, places, value in zip(schema.features, schema.feature_columns, point, strict=True):
        for k, place in enumerate(places):
            x[place] = _column(feature, k, value)
    for k, (weight, bias) in enumerate(stack):
        h = [max(v, Fraction(0)) for v in x] if k else x
        x = []
        for row, b in zip(weight, bias, strict=True):
            meter.tick()
            x.append(Fraction(b) + sum((Fraction(w) * v for w, v in zip(row, h, strict=True) if w and v), Fraction(0)))
    return x[0]


def _column(feature: Any, k: int, value: float) -> Fraction:
    """The value of column k of a feature."""
    if isinstance(feature, StatedNumeric) or feature.encoding == "code":
        return Fraction(value)
    own = k + 1 if feature.encoding == "dummy" else k
    return Fraction(int(value >= own if feature.encoding == "thermometer" else value == own))


def condition_network(
    stack: Stack, schema: StatedSchema, g: int, ends: tuple[Fraction, Fraction], grid: int, meter: CheckBudget
) -> Integers:
    """The network of the two conditions: value - f(x) >= ends[0], and f(x) - value >= ends[1]."""
    feature, made = schema.features[g], list[tuple[list[list[float]], list[float]]]()
    start = 0.0 if isinstance(feature, StatedChoice) else float(feature.lower)
    for k, (weight, bias) in enumerate(stack):
        inputs = len(weight[0])
        if k == 0:
            rows, passed = [list(row) for row in weight], [0.0] * inputs
            for i, place in enumerate(schema.feature_columns[g]):
                passed[place] = _level(feature, i)
        else:
            rows, passed = [[*row, 0.0] for row in weight], [*([0.0] * inputs), 1.0]
        made.append(([*rows, passed], [*bias, start if k == len(stack) - 1 else -start if k == 0 else 0.0]))
    conditions = [({1: 1, 0: -1}, ends[0]), ({0: 1, 1: -1}, ends[1])]
    exponents, weights, biases = integers(made, conditions, 0.0, grid, meter)  # type: ignore[arg-type]
    return exponents, weights, biases, columns_of(schema, weights[0], meter)


def _level(feature: Any, k: int) -> float:
    """What column k of an ordered feature adds to the number of its option."""
    if isinstance(feature, StatedNumeric) or feature.encoding == "code":
        return 1.0
    if feature.encoding == "thermometer":
        return 0.0 if k == 0 else 1.0
    return float(k + 1 if feature.encoding == "dummy" else k)
