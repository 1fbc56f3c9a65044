"""Several models as one function: their scores side by side, each with the rounding error of its own arithmetic.

    networks           one network: layers block by block, a shorter one passed on through identities (exactly)
    smooth networks    the same, with an activation per neuron
    trees              one list of trees, each of which adds to the scores of its own ensemble only
    networks, trees    no common form: the search for trees asks that for networks box by box

A question to several models is a question to this one, so every method that takes a network takes several.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.kind import Floats, Kind, Precision
from ifonly.model.model import Model
from ifonly.model.network import Network
from ifonly.model.rounding import column_box
from ifonly.model.smooth import SmoothNetwork
from ifonly.model.smooth.activations import RELU, Activation, SideBySide
from ifonly.model.trees.kind import Trees
from ifonly.model.trees.merging import merged
from ifonly.schema import Schema

Layers = list[tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Joint(Kind):
    """Functions of the rows of one schema; `precisions` says what each computes in."""

    functions: tuple[Kind, ...]
    precisions: tuple[Precision, ...]
    schema: Schema

    @property
    def name(self) -> str:
        return f"several models: {', '.join(dict.fromkeys(one.name for one in self.functions))}"

    @property
    def inputs(self) -> int:
        return len(self.schema.columns)

    @cached_property
    def outputs(self) -> int:
        return sum(one.outputs for one in self.functions)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(b"ifonly-joint-1")
        for one, precision in zip(self.functions, self.precisions, strict=True):
            digest.update(f"{one.fingerprint} {precision};".encode())
        return digest.hexdigest()

    # ------------------------------------------------------------------ evaluation

    def scores(self, x: Floats) -> Floats:
        return np.concatenate([one.scores(x) for one in self.functions], axis=1)

    def steady_scores(self, x: Floats) -> Floats:
        return np.concatenate([one.steady_scores(x) for one in self.functions], axis=1)

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """In float32, each in the precision that it computes in; in float64, all in that."""
        parts = [
            one.error(lower, upper, own if precision == "float32" else precision, exact)
            for one, own in zip(self.functions, self.precisions, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def without_constants(self, value: Floats) -> Kind:
        return Joint(tuple(one.without_constants(value) for one in self.functions), self.precisions, self.schema)

    # ------------------------------------------------------------------ common forms

    @property
    def search(self) -> str:
        kinds = {one.search for one in self.functions}
        if kinds & {"", "boxes"}:
            return ""
        return next(kind for kind in ("trees", "smooth network", "network") if kind in kinds)

    def as_network(self) -> Network | None:
        return self._network

    def as_smooth_network(self) -> SmoothNetwork | None:
        return self._smooth

    @cached_property
    def trees(self) -> Trees | None:
        """The trees of all, if all are trees: how their leaves become scores is each ensemble's own matter."""
        found = [trees for one in self.functions if (trees := one.as_trees()) is not None]
        return merged(found) if len(found) == len(self.functions) else None

    @cached_property
    def _network(self) -> Network | None:
        found = [network for one in self.functions if (network := one.as_network()) is not None]
        if len(found) < len(self.functions):
            return None
        depth = max(len(network.layers) for network in found)
        stacks = [self._deepened(_layers(network), [RELU] * len(network.hidden), depth)[0] for network in found]
        return Network.of(_blocks(stacks))

    @cached_property
    def _smooth(self) -> SmoothNetwork | None:
        parts: list[tuple[Network, list[Activation | SideBySide]]] = []
        for one in self.functions:
            smooth, network = one.as_smooth_network(), one.as_network()
            if smooth is not None:
                parts.append((smooth.linear, list(smooth.activations)))
            elif network is not None:
                parts.append((network, [RELU] * len(network.hidden)))
        if len(parts) < len(self.functions) or all(one.as_smooth_network() is None for one in self.functions):
            return None
        depth = max(len(network.layers) for network, _ in parts)
        deep = [self._deepened(_layers(network), each, depth) for network, each in parts]
        beside = [SideBySide.of([(acts[k], len(stack[k][1])) for stack, acts in deep]) for k in range(depth - 1)]
        return SmoothNetwork(Network.of(_blocks([stack for stack, _ in deep])), beside)

    def _deepened(
        self, stack: Layers, activations: Sequence[Activation | SideBySide], depth: int
    ) -> tuple[Layers, list[Activation | SideBySide]]:
        """The same function with so many layers: what is above 0 is passed on through ReLUs as it is; powers, of which
        some have no lower bound, as z and as -z; and all else is lifted above 0 first, which costs a rounding of the
        bias that the bounds of every method allow for."""
        activations = list(activations)
        if len(stack) == 1 < depth:
            weight, bias = stack[0]
            low, high = column_box(self.schema)
            least = (np.minimum(weight * low, weight * high)).sum(axis=1) + bias
            lift = 2.0 * np.maximum(-least, 0.0) + 1.0
            stack, activations = [(weight, bias + lift), (np.eye(len(bias)), -lift)], [RELU]
        while len(stack) < depth:
            weight, bias = stack[-1]
            size = weight.shape[1]
            if any(part.name == "power" for part, _ in _of_neurons(activations[-1], size)):
                both = np.vstack([np.eye(size), -np.eye(size)]), np.zeros(2 * size)
                stack = [*stack[:-1], both, (np.hstack([weight, -weight]), bias)]
                activations = [*activations, RELU]
                continue
            lift = 0.0 if activations[-1] == RELU else 1.0  # no activation goes below -1
            less = np.array([math.fsum([b, *(-lift * row)]) for b, row in zip(bias.tolist(), weight, strict=True)])
            stack = [*stack[:-1], (np.eye(size), np.full(size, lift)), (weight, less)]
            activations = [*activations, RELU]
        return stack, activations


def joint_model(models: Sequence[Model]) -> Model:
    """The models of one schema as one, whose scores are theirs side by side. Its original calls each one's own."""
    schema = models[0].schema
    if any(tuple(one.schema.columns) != tuple(schema.columns) for one in models[1:]):
        raise ModelError("Several models in one question must have one schema.")
    single = any(one.precision == "float32" for one in models)
    return Model(
        function=Joint(tuple(one.function for one in models), tuple(one.precision for one in models), schema),
        schema=schema,
        original=Originals(tuple(models)),
        source=" and ".join(dict.fromkeys(one.source for one in models)),
        precision="float32" if single else "float64",
    )


@dataclass(frozen=True)
class Originals:
    """The user's own models, one after another."""

    models: tuple[Model, ...]

    def __call__(self, points: Floats) -> Floats:
        return np.concatenate([one.scores(points) for one in self.models], axis=1)


def _of_neurons(activation: Activation | SideBySide, width: int) -> tuple[tuple[Activation, int], ...]:
    """Each activation of a layer, with how many neurons in a row have it."""
    return activation.parts if isinstance(activation, SideBySide) else ((activation, width),)


def _layers(network: Network) -> Layers:
    return [(layer.weight, layer.bias) for layer in network.layers]


def _blocks(stacks: Sequence[Layers]) -> Layers:
    """Layers of one depth side by side: the first reads the same columns, the others each its own neurons."""
    first = np.concatenate([stack[0][0] for stack in stacks]), np.concatenate([stack[0][1] for stack in stacks])
    result = [first]
    for k in range(1, len(stacks[0])):
        weights = [stack[k][0] for stack in stacks]
        block = np.zeros((sum(len(w) for w in weights), sum(w.shape[1] for w in weights)))
        row = column = 0
        for weight in weights:
            block[row : row + len(weight), column : column + weight.shape[1]] = weight
            row, column = row + len(weight), column + weight.shape[1]
        result.append((block, np.concatenate([stack[k][1] for stack in stacks])))
    return result
