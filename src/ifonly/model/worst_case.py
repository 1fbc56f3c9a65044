"""The lowest scores of all networks within a box of weights, as one ReLU network of the row, which is searched as any.

    layer 0   the parts of each input on either side of 0, where its sign is not the same for all rows of the schema
    layer k   the least and the largest values of each neuron over the box; those that nothing needs are left out
    last      one score per condition of the target

Both ends of a neuron are affine maps of both ends of those below it, since these are >= 0; so this network *is* the
bound of `weight_box`, and a search over it finds the nearest row that the bound accepts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.kind import Floats, Kind, Precision
from ifonly.model.model import Model
from ifonly.model.network import Network
from ifonly.model.own_layers import own_layers
from ifonly.model.rounding import column_box, exact_columns
from ifonly.model.weight_box import Ends, Layer, WeightBox, last_ends
from ifonly.schema import Schema

SLACK = 1e-15
"""Relative to the numbers that an input is the sum of: closer to 0 than this, rounding may change its sign."""


@dataclass(frozen=True, eq=False)
class WorstCase(Kind):
    """The least `conditions @ scores - ends` over the networks of the box, of rows within these bounds only.

    One condition is the score. Of several, each is a score with the sign turned, the last score is 0: the last is the
    largest if and only if all conditions are above 0.
    """

    box: WeightBox
    conditions: Floats
    ends: Floats
    rows: Ends
    """The least and the largest encoded columns of the schema."""
    around: str = ""
    """The fingerprint of the network in the middle of the box."""

    @property
    def name(self) -> str:
        return "the networks within a distance of a network's weights"

    @property
    def inputs(self) -> int:
        return int(self.box.centre.scale.shape[1])

    @property
    def outputs(self) -> int:
        return 1 if len(self.ends) == 1 else len(self.ends) + 1

    @property
    def within(self) -> Ends | None:
        return self.rows

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(b"ifonly-worst-case-1")
        digest.update(f"{self.box.delta!r} {self.box.relative} {self._network.fingerprint}".encode())
        return digest.hexdigest()

    def implies(self, other: Kind) -> bool:
        return other.fingerprint == self.around

    def scores(self, x: Floats) -> Floats:
        return self._network.scores(x)

    def steady_scores(self, x: Floats) -> Floats:
        return self._network.steady_scores(x)

    def lowest(self, x: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """The same scores by the definition of the box, worse by the rounding of any network of it."""
        margins = self.box.lowest(x, self.conditions) - self.ends - self._members((x, x), precision, exact)
        return margins if len(self.ends) == 1 else np.hstack([-margins, np.zeros((len(x), 1))])

    def _members(self, box: Ends, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        return np.asarray(self.box.member_error(box, precision, exact) @ np.abs(self.conditions).T)

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """Three times that of any network of the box beside its own: the original takes it off once and rounds itself,
        and the weights of both ends were multiplied with the scaling."""
        members = 3.0 * self._members((lower, upper), precision, exact)
        if len(self.ends) > 1:
            members = np.hstack([members, np.zeros((len(members), 1))])
        return self._network.error(lower, upper, precision, exact) + members

    def as_network(self) -> Network:
        return self._network

    @cached_property
    def _network(self) -> Network:
        *hidden, (weight, bias) = _layers(self.box, self.conditions, self.rows)
        last = weight, bias - self.ends
        if len(self.ends) > 1:
            last = np.vstack([-weight, np.zeros((1, weight.shape[1]))]), np.append(-last[1], 0.0)
        return replace(Network.of(_needed([*hidden, last])), within=self.rows)


@dataclass(frozen=True, eq=False)
class LowestScores:
    """The same at points of the schema, as the original of a model."""

    function: WorstCase
    schema: Schema
    precision: Precision

    def __call__(self, points: Floats) -> Floats:
        exact = exact_columns(self.schema, self.precision)
        return self.function.lowest(self.schema.encode(points), self.precision, exact)


@dataclass(frozen=True, eq=False)
class _Again:
    """The same of the model that is imported under another schema."""

    model: Model
    delta: float
    relative: bool
    conditions: Ends

    def __call__(self, schema: Schema) -> Model:
        assert self.model.for_schema is not None
        return worst_case(self.model.for_schema(schema), self.delta, self.relative, self.conditions)


def worst_case(model: Model, delta: float, relative: bool, conditions: Ends) -> Model:
    """The model that decides for its last class where C @ scores > d for all networks within delta of this one.

    `conditions` are C and d.
    """
    box, rows = WeightBox(own_layers(model), delta, relative), column_box(model.schema)
    function = WorstCase(box, *conditions, rows, model.function.fingerprint)
    return Model(
        function=function,
        schema=model.schema,
        original=LowestScores(function, model.schema, model.precision),
        classes=(*(f"condition {k} fails" for k in range(1, max(len(conditions[1]), 1) + 1)), "all accept"),
        source=model.source,
        precision=model.precision,
        for_schema=None if model.for_schema is None else _Again(model, delta, relative, conditions),
    )


# ---------------------------------------------------------------------- the network


def _layers(box: WeightBox, conditions: Floats, rows: Ends) -> list[Layer]:
    """Layer by layer, both ends of each neuron."""
    first, *others = [*box.layers[:-1], last_ends(box.layers[-1], conditions)]
    (weight, bias), changing = _parts(box, rows)
    alive = changing | (weight != 0.0).any(axis=1) | (bias != 0.0)
    below = weight[alive], bias[alive]
    stacked = [tuple(map(np.concatenate, zip(*first, strict=True))) if others else first[0]]
    for k, (least, largest) in enumerate(others, 1):
        low, high = _of_ends(least, False), _of_ends(largest, True)
        stacked.append(tuple(map(np.concatenate, zip(low, high, strict=True))) if k < len(others) else low)
    (own, offset), *rest = stacked
    own = own[:, alive]
    if changing.any():
        return [below, (own, offset), *rest]
    return [(own @ below[0], own @ below[1] + offset), *rest]


def _parts(box: WeightBox, rows: Ends) -> tuple[Layer, NDArray[np.bool_]]:
    """The parts of the inputs above and below 0 as affine maps of the row, 0 where they always are; and which of them
    are that only through a ReLU, since the input has either sign."""
    scale, shift = box.centre.scale, box.centre.shift
    ends = np.stack([scale * rows[0], scale * rows[1]])
    low, high = ends.min(axis=0).sum(axis=1) + shift, ends.max(axis=0).sum(axis=1) + shift
    room = np.where(shift == 0.0, 0.0, SLACK * (np.abs(ends).max(axis=0).sum(axis=1) + np.abs(shift)))
    up, down = high > -room, low < room
    kept, either = np.concatenate([up, down]), up & down
    weight, bias = np.concatenate([scale, -scale]), np.concatenate([shift, -shift])
    return (np.where(kept[:, None], weight, 0.0), np.where(kept, bias, 0.0)), np.concatenate([either, either])


def _of_ends(layer: Layer, largest: bool) -> Layer:
    """An end of each neuron, of the least and the largest values of those below, in this order."""
    weight, bias = layer
    up, down = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
    return np.hstack([down, up] if largest else [up, down]), bias


def _needed(layers: list[Layer]) -> list[Layer]:
    """The layers without neurons that nothing reads; each keeps one."""
    result = [layers[-1]]
    for weight, bias in reversed(layers[:-1]):
        above, offset = result[0]
        used = (above != 0.0).any(axis=0)
        used[0] |= not used.any()
        result = [(weight[used], bias[used]), (above[:, used], offset), *result[1:]]
    return result
