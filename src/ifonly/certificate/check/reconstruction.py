"""The error of an autoencoder as a network, from the autoencoder's layers: how far what it returns is from the row.

    linf    y_k - x_k - t and x_k - y_k - t for each column, then 0, which is to be ahead of them
    l1      t - sum_k |y_k - x_k|, with a layer of relu(y_k - x_k) and relu(x_k - y_k)

The columns x are passed on through the hidden layers behind the autoencoder's own neurons, each less the least that it
can be.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

from .layers import MAX_WEIGHTS, read_network
from .reading import CheckBudget, Refusal, entries, number
from .schema import StatedNumeric, StatedSchema

Rows = list[list[Fraction]]
Layer = tuple[Rows, list[Fraction]]

ZERO = Fraction(0)
"""One for all: most weights of what is passed on are 0."""
BITS_PASSED_ON = 256
"""What a weight of what is passed on takes: places in rows of fractions, and in rows and columns of integers."""


def read_reconstruction(model: Any, schema: StatedSchema, meter: CheckBudget) -> tuple[list[Layer], str]:
    """The layers of the error's network, exactly; and what it is in words."""
    entries(model, "the model", "kind", "layers", "norm", "at_most")
    stack, size = read_network(model["layers"], len(schema.columns), meter), len(schema.columns)
    if len(stack[-1][1]) != size:
        raise Refusal("an autoencoder returns as many values as it takes")
    if model["norm"] not in ("l1", "linf"):
        raise Refusal("the error of an autoencoder is l1 or linf")
    most = number(model["at_most"], "the largest error")
    widths = [size, *(len(bias) + size for _, bias in stack[:-1]), 2 * size + 1, 1]
    if sum(a * b for a, b in pairwise(widths)) > MAX_WEIGHTS:
        raise Refusal(f"the network of the error has more than {MAX_WEIGHTS} weights")
    *hidden, (weight, bias) = _differences(stack, _least(schema), meter)
    both = [*weight, *([-w for w in row] for row in weight)], [*bias, *(-b for b in bias)]
    if model["norm"] == "l1":
        found = [*hidden, both, ([[Fraction(-1)] * (2 * size)], [Fraction(most)])]
    else:
        ends = [b - Fraction(most) for b in both[1]]
        found = [*hidden, ([*both[0], [ZERO] * len(weight[0])], [*ends, Fraction(0)])]
    sizes = ", ".join(str(len(bias)) for _, bias in stack[:-1]) or "no hidden neurons"
    return found, f"The {model['norm']} error of an autoencoder, at most {most!r}: hidden layers of {sizes}"


def _least(schema: StatedSchema) -> list[Fraction]:
    """The least that each column can be; 0 for those of options."""
    found = [Fraction(0)] * len(schema.columns)
    for feature, places in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, StatedNumeric):
            found[places[0]] = Fraction(feature.lower)
    return found


def _differences(
    stack: list[tuple[list[list[float]], list[float]]], least: list[Fraction], meter: CheckBudget
) -> list[Layer]:
    """The layers of y - x."""
    size, last = len(least), len(stack) - 1
    found: list[Layer] = []
    for k, (weight, bias) in enumerate(stack):
        rows, ends = [[Fraction(w) for w in row] for row in weight], [Fraction(b) for b in bias]
        for row in rows:
            meter.keep(BITS_PASSED_ON * (len(row) + size))
        meter.keep(BITS_PASSED_ON * size * (len(rows[0]) + size))
        if last == 0:
            found.append(([_with(row, i, -1) for i, row in enumerate(rows)], ends))
        elif k == last:
            shifted = [b - v for b, v in zip(ends, least, strict=True)]
            found.append(([[*row, *_unit(size, i, -1)] for i, row in enumerate(rows)], shifted))
        elif k == 0:
            found.append(([*rows, *(_unit(size, i, 1) for i in range(size))], [*ends, *(-v for v in least)]))
        else:
            passed = [[ZERO] * len(rows[0]) + _unit(size, i, 1) for i in range(size)]
            beside = [row + [ZERO] * size for row in rows]
            found.append(([*beside, *passed], ends + [ZERO] * size))
    return found


def _unit(size: int, i: int, value: int) -> list[Fraction]:
    return [*(ZERO,) * i, Fraction(value), *(ZERO,) * (size - i - 1)]


def _with(row: list[Fraction], i: int, more: int) -> list[Fraction]:
    return [w + more if j == i else w for j, w in enumerate(row)]
