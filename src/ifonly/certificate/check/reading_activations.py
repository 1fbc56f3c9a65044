"""The activations of a certificate's network, read: of each hidden layer, which neurons are no ReLUs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .activations import LOGISTIC, PLAIN, Curve
from .layers import Biases, Weights
from .reading import CheckBudget, Refusal, entries, listed, number, ticking, whole

RELU, TANH = "relu", "tanh"
NAMED = (RELU, LOGISTIC, TANH, *PLAIN)

Names = list[str]
"""Of each neuron of a layer."""
Curves = tuple[dict[int, Curve], ...]
"""Of each hidden layer: the neurons that are no ReLUs."""


def read_activations(
    value: Any, widths: list[int], meter: CheckBudget
) -> tuple[list[str], Curves, list[set[int]]]:  # fmt: skip
    """The activation of each hidden layer: in words, the curves, and the neurons with tanh, which have the logistic
    function in its place."""
    given = listed(value, "the activations", len(widths))
    if not given:
        raise Refusal("a network with activations has hidden layers")
    words, curves, doubled = [], [], []
    for one, width in zip(given, widths, strict=True):
        parts = _parts(one, width, meter)
        words.append(" and ".join(dict.fromkeys(name for name, _, _ in parts)))
        found: dict[int, Curve] = {}
        twice: set[int] = set()
        start = 0
        for name, curve, count in parts:
            if curve is not None:
                found |= dict.fromkeys(range(start, start + count), curve)
            if name == TANH:
                twice |= set(range(start, start + count))
            start += count
        curves.append(found)
        doubled.append(twice)
    return words, tuple(curves), doubled


def _parts(value: Any, width: int, meter: CheckBudget) -> list[tuple[str, Curve | None, int]]:
    """The activations of a layer side by side, each with how many neurons have it."""
    if not isinstance(value, list):
        return [(*_activation(value), width)]
    found, what = [], "an activation of some neurons"
    for one, count in (listed(pair, what, 2) for pair in ticking(value, meter)):
        found.append((*_activation(one), whole(count, "how many neurons have an activation", 1, width)))
    if sum(count for *_, count in found) != width:
        raise Refusal(f"the activations of a layer must be of its {width} neurons")
    return found


def _activation(value: Any) -> tuple[str, Curve | None]:
    """By name, or `{"name": "elu", "alpha"}`, or `{"name": "power", "exponent"}`."""
    if isinstance(value, str) and value in NAMED:
        return value, None if value == RELU else Curve(LOGISTIC if value == TANH else value)
    if not isinstance(value, dict) or value.get("name") not in ("elu", "power"):
        raise Refusal(f"the activations of hidden layers are {', '.join(NAMED)}, elu, power")
    if value["name"] == "elu":
        alpha = number(entries(value, "an activation", "name", "alpha")["alpha"], "the alpha of ELU")
        if not 0.0 <= alpha <= 1.0:
            raise Refusal("the alpha of ELU is from 0 to 1")
        return "elu", Curve("elu", Fraction(alpha))
    exponent = number(entries(value, "an activation", "name", "exponent")["exponent"], "the exponent of a power")
    if exponent == 1.0:
        raise Refusal("the exponent of a power is not 1")
    return "power", Curve("power", Fraction(exponent))


def with_logistic(
    weights: Weights, biases: Biases, doubled: list[set[int]], grid: int, meter: CheckBudget
) -> tuple[Weights, Biases]:  # fmt: skip
    """The same network with the logistic function in the place of tanh:  tanh(z) = 2 s(2 z) - 1."""
    rows, constants = [*weights], [*biases]
    for k, twice in enumerate(doubled):
        if twice:
            rows[k] = tuple(
                tuple(w << (i in twice) for w in row) for i, row in enumerate(ticking(rows[k], meter))
            )  # fmt: skip
            constants[k] = tuple(b << (i in twice) for i, b in enumerate(constants[k]))
            above = rows[k + 1]
            constants[k + 1] = tuple(
                b - (sum(row[i] for i in twice) << grid)
                for b, row in zip(constants[k + 1], ticking(above, meter), strict=True)
            )
            rows[k + 1] = tuple(
                tuple(w << (i in twice) for i, w in enumerate(row)) for row in ticking(above, meter)
            )  # fmt: skip
    return tuple(rows), tuple(constants)
