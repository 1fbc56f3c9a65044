"""Does every network within a box of weights decide a row as asked? With two hidden layers: by one more search.

At a row, the values h of the first hidden layer are any numbers between their ends, each by weights of its own. Given
h, the worst weights above are known: h >= 0, so each is at an end of its interval. The lowest score is thus the minimum
of one network of h over a box, and whether that is below a threshold is a question to the search: a proof that no such
h exists, or an h, and with it the weights of a network that refuses the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ifonly.answering.values import Floats
from ifonly.model import Model, Network
from ifonly.model.model import network_model
from ifonly.model.own_layers import OwnLayers
from ifonly.model.weight_attack import lowest_network
from ifonly.model.weight_box import Layer, WeightBox, last_ends
from ifonly.problem import Question, ScoreTarget
from ifonly.results import Claim
from ifonly.schema import Real, Schema

Ask: TypeAlias = Callable[[Question, Floats], Claim]
"""What the search claims of a point."""

WIDER = 1e-12
"""Relative: the ends of values are widened by this, for the rounding in them."""
DEEPER = (0.1, 0.01, 1e-3, 1e-4, 1e-5)
"""Shares of what weights can take from a score: how far below the threshold a network is looked for."""
SEARCHED = 3
"""Layers of the networks that the search decides."""


@dataclass(frozen=True)
class WeightVerdict:
    """Whether all networks of the box are above the threshold; one that is not, where one was found."""

    decided: bool
    network: OwnLayers | None = None


def verified(box: WeightBox, encoded: Floats, condition: Floats, above: tuple[float, float], ask: Ask) -> WeightVerdict:
    """Is `condition @ scores` of every network of the box at least the first number, at one encoded row? A network
    refuses the row where it is below the second, a larger one: what is between them is for rounding."""
    least, enough = above
    if box.lowest(encoded[None, :], condition[None, :])[0, 0] >= least + _rounding(box, encoded, condition):
        return WeightVerdict(True)
    value, network = lowest_network(box, encoded, condition)
    if value < enough:
        return WeightVerdict(True, network)
    if len(box.layers) != SEARCHED:
        return WeightVerdict(False)
    return _searched(box, encoded, condition, above, ask)


def _rounding(box: WeightBox, encoded: Floats, condition: Floats) -> float:
    row = encoded[None, :]
    error = box.member_error((row, row), "float64", np.ones(len(encoded), dtype=np.bool_))
    return 2.0 * float((error @ np.abs(condition))[0])


def _searched(
    box: WeightBox, encoded: Floats, condition: Floats, above: tuple[float, float], ask: Ask
) -> WeightVerdict:
    low, high = (end[0] for end in box.activations(encoded[None, :])[1])
    low, high = np.maximum(low - WIDER * (1.0 + high), 0.0), high + WIDER * (1.0 + high)
    middle, last = _worst_above(box, condition)
    model = _of_values(middle, last, low, high)
    least, enough = above

    def values_below(threshold: float) -> Claim:
        target = ScoreTarget(at_most=threshold, margin=0.0)
        return ask(Question(model=model, target=target), 0.5 * (low + high))

    claim = values_below(least + _rounding(box, encoded, condition))
    if claim.point is None:
        return WeightVerdict(claim.stop is None and claim.lower == np.inf)
    values = _descended(middle, last, (low, high), claim.point)
    drop = float(box.centre.scores(encoded) @ condition) - least
    for share in DEEPER:  # what is nearest is only just low enough; a network that refuses clearly cuts off more
        if _score(middle, last, values[None, :])[0] <= least - share * drop:
            break
        deeper = values_below(least - share * drop)
        if deeper.point is not None:
            values = _descended(middle, last, (low, high), deeper.point)
            break
    network = _with_values(box, encoded, values, condition)
    refuses = float(network.scores(encoded) @ condition) < enough
    return WeightVerdict(refuses, network if refuses else None)


def _worst_above(box: WeightBox, condition: Floats) -> tuple[Layer, Layer]:
    """The second layer and the last with the weights that are worst for any values >= 0 below them."""
    (least, least_bias), (largest, largest_bias) = box.layers[1]
    out, offset = last_ends(box.layers[2], condition[None, :])[0]
    falls = out[0] < 0.0
    middle = np.where(falls[:, None], largest, least), np.where(falls, largest_bias, least_bias)
    return middle, (out, offset)


def _of_values(middle: Layer, last: Layer, low: Floats, high: Floats) -> Model:
    schema = Schema([Real(f"h{j}", lower, upper) for j, (lower, upper) in enumerate(zip(low, high, strict=True))])
    return network_model(Network.of([middle, last]), schema, regression=True)


def _descended(middle: Layer, last: Layer, ends: tuple[Floats, Floats], values: Floats) -> Floats:
    """Coordinate descent: one value at a time goes to the end that lowers the score most, while one does."""
    best = float(_score(middle, last, values[None, :])[0])
    while True:
        tries = np.repeat(values[None, :], 2 * len(values), axis=0)
        tries[np.arange(len(tries)), np.tile(np.arange(len(values)), 2)] = np.concatenate(ends)
        scores = _score(middle, last, tries)
        lowest = int(scores.argmin())
        if not scores[lowest] < best:
            return values
        best, values = float(scores[lowest]), tries[lowest]


def _score(middle: Layer, last: Layer, values: Floats) -> Floats:
    return np.asarray((np.maximum(values @ middle[0].T + middle[1], 0.0) @ last[0].T + last[1])[:, 0])


def _with_values(box: WeightBox, encoded: Floats, values: Floats, condition: Floats) -> OwnLayers:
    """The network of the box whose first hidden layer has these values at the row, and that is worst above them."""
    centre = box.centre
    z = centre.inputs_of(encoded)
    weight, bias = centre.layers[0]
    reach, offset = box.radius(weight), box.radius(bias)
    towards = np.where(z < 0.0, -1.0, 1.0)[None, :] * reach
    middle, width = weight @ z + bias, reach @ np.abs(z) + offset
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(width > 0.0, (values - middle) / width, 0.0)
    share = np.clip(np.where(values > 0.0, share, -1.0), -1.0, 1.0)
    first = weight + share[:, None] * towards, bias + share * offset
    second, _ = _worst_above(box, condition)
    out, last_bias = centre.layers[2]
    sign = np.sign(condition)
    last = out - sign[:, None] * box.radius(out), last_bias - sign * box.radius(last_bias)
    return OwnLayers(centre.scale, centre.shift, (first, second, last))
