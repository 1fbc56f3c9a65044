"""The network and the target of a certificate, in integers: layer k in units of 2^-e[k], conditions as last layer."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import Any

from ifonly.certificate.check.reading import CheckBudget, Refusal, entries, listed, number, scaled, whole
from ifonly.printing import quoted
from ifonly.schema import Choice, Numeric, Schema

MAX_WEIGHTS = 5_000_000
MOST_FINE = 1_074
"""No float64 is finer than 2^-this."""
SLOPE_BITS = 44
"""Slopes of chords are counted in units of 2^-S."""


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


def read_target(value: Any, outputs: int) -> tuple[str, float, list[tuple[dict[int, int], float]]]:
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
        wanted = f"the decision {quoted(value['label'])} (class {index} of {max(outputs, 2)})"
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
    stack: list[tuple[list[list[float]], list[float]]], rows: list[tuple[dict[int, int], float]], margin: float,
    grid: int, meter: CheckBudget,
) -> tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], ...], ...], tuple[tuple[int, ...], ...]]:  # fmt: skip
    """Exponents, weights and biases of every layer; the last one gives  C s - d - margin."""
    exponents, weights, biases = [], [], []
    for k, (weight, bias) in enumerate(stack):
        last = k == len(stack) - 1
        used = [*weight, bias, [d for _, d in rows] + [margin] if last else []]
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


def _fineness(row: list[float], meter: CheckBudget) -> int:
    meter.tick()
    return max((v.as_integer_ratio()[1].bit_length() - 1 for v in row), default=0)


def _scaled_row(row: list[float], bits: int, meter: CheckBudget) -> tuple[int, ...]:
    result = tuple(scaled(v, bits, "a weight") for v in row)
    meter.keep(sum(map(int.bit_length, result)))
    return result


def _combined(rows: list[tuple[int, ...]], coefficients: dict[int, int], meter: CheckBudget) -> tuple[int, ...]:
    result = tuple(sum(c * rows[j][t] for j, c in coefficients.items()) for t in range(len(rows[0])))
    meter.keep(sum(map(int.bit_length, result)))
    return result


def longest_number(
    weights: tuple[tuple[tuple[int, ...], ...], ...], biases: tuple[tuple[int, ...], ...],
    columns: tuple[tuple[tuple[int, ...], ...], ...], schema: Schema, grid: int,
) -> int:  # fmt: skip
    """No coefficient or constant of backward substitution, and no value of a neuron, has more bits than this."""
    far = max((math.frexp(max(abs(f.lower), abs(f.upper)))[1] for f in schema.features if isinstance(f, Numeric)),
              default=0)  # fmt: skip
    most = max(_bits(one) for part in columns for one in part) + len(schema).bit_length()
    total = most + max(far, 0) + 2 * max(grid, MOST_FINE) + 2
    for layer, bias in zip(weights, biases, strict=True):
        wide = max(len(layer), len(layer[0])).bit_length()
        total += max(max(map(_bits, layer)), _bits(bias) - grid) + SLOPE_BITS + wide + 1
    return total


def _bits(values: Sequence[int]) -> int:
    return max(map(int.bit_length, values))


def columns_of(
    schema: Schema, rows: tuple[tuple[int, ...], ...], meter: CheckBudget
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """What one unit of a number, or an option, adds to each neuron of layer 0."""
    result: list[tuple[tuple[int, ...], ...]] = []
    for feature, places in zip(schema.features, schema.feature_columns, strict=True):
        own = [tuple(row[place] for row in rows) for place in places.tolist()]
        if isinstance(feature, Choice) and feature.encoding == "thermometer":  # a level has its own bit and all below
            own = [*accumulate(own, lambda a, b: tuple(map(add, a, b)))]
        elif isinstance(feature, Choice) and feature.encoding == "dummy":  # the first option has no column
            own = [tuple([0] * len(rows)), *own]
        elif isinstance(feature, Choice) and feature.encoding == "code":  # the option's number
            meter.keep(len(feature.options) * sum(w.bit_length() + 24 for w in own[0]))
            own = [tuple(option * w for w in own[0]) for option in range(len(feature.options))]
        for column in own:
            meter.keep(64 * len(column) + sum(map(int.bit_length, column)))
        result.append(tuple(own))
    return tuple(result)
