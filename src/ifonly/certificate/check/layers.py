"""The network and the target of a certificate, in integers: layer k in units of 2^-e[k], conditions as last layer."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from operator import add
from typing import Any, TypeAlias

from ...printing import quoted
from .reading import CheckBudget, Refusal, entries, listed, number, scaled, whole
from .rules import RuleLiteral
from .schema import StatedChoice, StatedNumeric, StatedSchema
from .softmax import ScoreRows, plane_rows

MAX_WEIGHTS = 5_000_000
MOST_FINE = 1_074
"""No float64 is finer than 2^-this."""
SLOPE_BITS = 44
"""Slopes of chords are counted in units of 2^-S."""

Weights: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
Biases: TypeAlias = tuple[tuple[int, ...], ...]
Columns: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
Integers: TypeAlias = tuple[tuple[int, ...], Weights, Biases, Columns]
"""Exponents, weights and biases of every layer, and what each column adds to layer 0."""


def read_network(value: Any, inputs: int, meter: CheckBudget) -> list[tuple[list[list[float]], list[float]]]:
    stack, total = [], 0
    for k, layer in enumerate(listed(value, "the network")):
        meter.tick()
        entries(layer, f"layer {k}", "weight", "bias")
        bias = [number(v, f"a bias of layer {k}") for v in listed(layer["bias"], f"the biases of layer {k}")]
        rows = listed(layer["weight"], f"the weights of layer {k}", len(bias))
        total += len(rows) * inputs
        if not bias or total > MAX_WEIGHTS:
            raise Refusal(f"layer {k} is empty, or the network has more than {MAX_WEIGHTS} weights")
        weight, what = [], f"a weight of layer {k}"
        for row in rows:
            meter.tick()
            weight.append([number(v, what) for v in listed(row, f"the weights of layer {k}", inputs)])
        stack.append((weight, bias))
        inputs = len(bias)
    if not stack:
        raise Refusal("the network has no layers")
    return stack


def read_target(value: Any, outputs: int, planes: Any, meter: CheckBudget) -> tuple[str, float, ScoreRows]:
    """What is wanted in words, the margin, and the conditions  sum of coefficient * output - d >= margin."""
    rows: ScoreRows
    if isinstance(value, dict) and "log_odds" in value:
        return _read_probability(value, outputs, planes, meter)
    if isinstance(value, dict) and "class" in value:
        entries(value, "the target", "class", "label", "margin")
        index = whole(value["class"], "the wanted class", 0, max(outputs - 1, 1))
        if not isinstance(value["label"], str):
            raise Refusal("the wanted class's label must be text")
        if outputs == 1:
            rows = [({0: 1 if index == 1 else -1}, 0.0)]
        else:
            rows = [({index: 1, j: -1}, 0.0) for j in range(outputs) if j != index]
        wanted = f"the decision {quoted(value['label'])} (class {index} of {max(outputs, 2)})"
    elif isinstance(value, dict) and "ahead" in value:
        entries(value, "the target", "ahead", "of", "label", "margin")
        index = whole(value["ahead"], "the wanted class", 0, outputs - 1)
        others = [whole(j, "another class", 0, outputs - 1) for j in listed(value["of"], "the other classes")]
        if not isinstance(value["label"], str) or not others or index in others or len(set(others)) < len(others):
            raise Refusal("the wanted class must have a label, and be ahead of others, each once")
        rows = [({index: 1, j: -1}, 0.0) for j in others]
        wanted = f"class {index} ({quoted(value['label'])}) ahead of {', '.join(f'class {j}' for j in others)}"
    else:
        wanted, rows = _read_score(value, outputs)
    margin = number(value["margin"], "the margin")
    if margin < 0.0:
        raise Refusal("the margin is negative")
    return wanted, margin, rows


def _read_score(value: Any, outputs: int) -> tuple[str, ScoreRows]:
    """A score from, up to, or between two ends."""
    entries(value, "the target", "output", "at_least", "at_most", "margin")
    output = whole(value["output"], "the target's output", 0, outputs - 1)
    rows: ScoreRows = []
    words = []
    if value["at_least"] is not None:
        end = number(value["at_least"], "the target's least score")
        rows.append(({output: 1}, end))
        words.append(f"at least {end!r}")
    if value["at_most"] is not None:
        end = number(value["at_most"], "the target's largest score")
        rows.append(({output: -1}, -end))
        words.append(f"at most {end!r}")
    if not rows:
        raise Refusal("the target asks for nothing")
    wanted = f"score {output} {' and '.join(words)}"
    return wanted, rows


def _read_probability(value: Any, outputs: int, planes: Any, meter: CheckBudget) -> tuple[str, float, ScoreRows]:
    """A probability of one of several classes: conditions that all rows which have it meet."""
    entries(value, "the target", "class", "label", "log_odds", "margin")
    index = whole(value["class"], "the wanted class", 0, outputs - 1)
    least, margin = number(value["log_odds"], "the wanted log-odds"), number(value["margin"], "the margin")
    if not isinstance(value["label"], str) or outputs < 2 or margin < 0.0:
        raise Refusal(
            "a probability is of one of several classes, which has a label, with a margin that is not negative"
        )
    wanted = f"the decision {quoted(value['label'])} (class {index} of {outputs}) log-odds of at least {least!r}"
    return wanted, margin, plane_rows(index, outputs, (least, margin), planes, meter)


def fingerprint(stack: list[tuple[list[list[float]], list[float]]], meter: CheckBudget) -> str:
    """sha256 over shapes and little-endian weights, as `Network.fingerprint` has it."""
    digest = hashlib.sha256(b"ifonly-network-1")
    for weight, bias in stack:
        meter.tick()
        digest.update(struct.pack("<2q", len(weight), len(weight[0])))
        for row in (*weight, bias):
            digest.update(struct.pack(f"<{len(row)}d", *row))
    return digest.hexdigest()


def integers(
    stack: Sequence[tuple[Sequence[Sequence[float | Fraction]], Sequence[float | Fraction]]],
    rows: ScoreRows, margin: float, grid: int, meter: CheckBudget,
) -> tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], ...], ...], tuple[tuple[int, ...], ...]]:  # fmt: skip
    """Exponents, weights and biases of every layer; the last one gives  C s - d - margin."""
    exponents, weights, biases = [], [], []
    for k, (weight, bias) in enumerate(stack):
        last = k == len(stack) - 1
        used: list[Sequence[float | Fraction]] = [*weight, bias, [*(d for _, d in rows), margin] if last else []]
        bits = max(_fineness(row, meter) for row in used)
        exact = [_scaled_row(row, bits, meter) for row in weight]
        constant = _scaled_row(bias, bits, meter)
        if last:
            constant = tuple(
                sum(c * constant[j] for j, c in row.items()) - scaled(d, bits, "d") - scaled(margin, bits, "margin")
                for row, d in rows
            )
            exact = [_combined(exact, row, meter) for row, _ in rows]
        exponents.append(bits)
        weights.append(tuple(exact))
        biases.append(tuple(b << grid for b in constant))
        meter.keep(sum(map(int.bit_length, biases[-1])))
    return tuple(exponents), tuple(weights), tuple(biases)


def _fineness(row: Sequence[float | Fraction], meter: CheckBudget) -> int:
    meter.tick()
    return max((v.as_integer_ratio()[1].bit_length() - 1 for v in row), default=0)


def _scaled_row(row: Sequence[float | Fraction], bits: int, meter: CheckBudget) -> tuple[int, ...]:
    result = tuple(scaled(v, bits, "a weight") for v in row)
    meter.keep(sum(map(int.bit_length, result)))
    return result


def _combined(rows: list[tuple[int, ...]], coefficients: dict[int, int], meter: CheckBudget) -> tuple[int, ...]:
    result = [0] * len(rows[0])
    for j, c in coefficients.items():
        meter.tick()
        if c:
            result = [a + c * w for a, w in zip(result, rows[j], strict=True)]
    meter.keep(sum(map(int.bit_length, result)))
    return tuple(result)


def longest_number(
    weights: tuple[tuple[tuple[int, ...], ...], ...], biases: tuple[tuple[int, ...], ...],
    columns: tuple[tuple[tuple[int, ...], ...], ...], schema: StatedSchema, grid: int,
) -> int:  # fmt: skip
    """No coefficient or constant of backward substitution, and no value of a neuron, has more bits than this."""
    far = max((math.frexp(max(abs(f.lower), abs(f.upper)))[1] for f in schema.features if isinstance(f, StatedNumeric)),
              default=0)  # fmt: skip
    most = max((_bits(one) for part in columns for one in part), default=0) + len(schema).bit_length()
    total = most + max(far, 0) + 2 * max(grid, MOST_FINE) + 2
    for layer, bias in zip(weights, biases, strict=True):
        wide = max(len(layer), len(layer[0]) if layer else 0).bit_length()
        total += max(max(map(_bits, layer), default=0), _bits(bias) - grid) + SLOPE_BITS + wide + 1
    return total


def beside(schema: StatedSchema, literals: tuple[RuleLiteral, ...], network: Integers, grid: int) -> Integers:
    """The network with the literals as neurons of its first hidden layer that lead nowhere: they have no weights.

    Without a hidden layer it gets one first: the conditions, lifted by a power of two so that they are never negative.
    """
    if not literals:
        return network
    exponents, weights, biases, columns = network if len(network[0]) > 1 else with_hidden_layer(schema, network, grid)
    bits = exponents[0]
    biases = ((*biases[0], *(one.constant << bits + grid for one in literals)), *biases[1:])
    own: list[dict[int, tuple[int, ...]]] = [
        {**{g: (a,) for g, a in one.numbers}, **dict(one.options)} for one in literals
    ]
    wider = []
    for g, part in enumerate(columns):
        wider.append(tuple(
            (*column, *(mine[g][c] << bits if g in mine else 0 for mine in own)) for c, column in enumerate(part)
        ))  # fmt: skip
    return exponents, weights, biases, tuple(wider)


def with_hidden_layer(schema: StatedSchema, network: Integers, grid: int) -> Integers:
    """A network without hidden layers, with one: its conditions, lifted by a power of two."""
    exponents, weights, biases, columns = network
    far = [max(abs(Fraction(f.lower)), abs(Fraction(f.upper))) if isinstance(f, StatedNumeric) else Fraction(1)
           for f in schema.features]  # fmt: skip
    size = sum(math.ceil(v) * max(abs(w) for one in part for w in one) for v, part in zip(far, columns, strict=True))
    bits = exponents[0]
    lift = 1 << max(size >> bits, max(map(abs, biases[0]), default=0) >> bits + grid, 1).bit_length() + 1
    count = len(biases[0])
    exponents = (bits, 0)
    same = tuple(tuple(int(i == j) for j in range(count)) for i in range(count))
    weights = (weights[0], same)
    lifted = tuple(b + (lift << bits + grid) for b in biases[0])
    biases = (lifted, tuple(-(lift << grid) for _ in range(count)))
    return exponents, weights, biases, columns


def _bits(values: Sequence[int]) -> int:
    return max(map(int.bit_length, values), default=0)


def columns_of(
    schema: StatedSchema, rows: tuple[tuple[int, ...], ...], meter: CheckBudget
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """What one unit of a number, or an option, adds to each neuron of layer 0."""
    result: list[tuple[tuple[int, ...], ...]] = []
    for feature, places in zip(schema.features, schema.feature_columns, strict=True):
        own = [tuple(row[place] for row in rows) for place in places]
        if (
            isinstance(feature, StatedChoice) and feature.encoding == "thermometer"
        ):  # a level has its own bit and all below
            own = [*accumulate(own, lambda a, b: tuple(map(add, a, b)))]
        elif isinstance(feature, StatedChoice) and feature.encoding == "dummy":  # the first option has no column
            own = [tuple([0] * len(rows)), *own]
        elif isinstance(feature, StatedChoice) and feature.encoding == "code":  # the option's number
            meter.keep(len(feature.options) * sum(w.bit_length() + 24 for w in own[0]))
            own = [tuple(option * w for w in own[0]) for option in range(len(feature.options))]
        for column in own:
            meter.keep(64 * len(column) + sum(map(int.bit_length, column)))
        result.append(tuple(own))
    return tuple(result)
