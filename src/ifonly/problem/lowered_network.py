"""The network of a question: the model's layers over unrolled columns, with the target folded in and rules beside them.

It is the same for all distances and for all constraints on single features, so a model keeps those that were made of it
last: another question about it costs a fraction of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import SizedCache, bytes_of, cached, cached_property
from ifonly.model import Kind
from ifonly.model.operations import KEPT_WEIGHTS
from ifonly.model.smooth.activations import RELU, Activation, SideBySide
from ifonly.problem.parts import Part, UnrolledColumns
from ifonly.problem.question import Question
from ifonly.problem.simplify import Stack, simplified
from ifonly.resources import check_limits
from ifonly.schema import Numeric, Schema

Floats = NDArray[np.float64]
Layers: TypeAlias = tuple[tuple[Floats, Floats], ...]
T = TypeVar("T")

NETWORK_BYTES = 2**23
"""Of a model: networks of questions."""
UNROLLED_BYTES = 2**22
"""Unrolled columns of schemas."""


@dataclass(frozen=True)
class Activations:
    """What follows each hidden neuron, one entry per neuron over all layers: the code of its activation (0: ReLU), and
    ELU's alpha."""

    code: NDArray[np.int64]
    alpha: Floats


SLIGHTLY = 2.0**-20
"""By so much a bound may be below 0 for the sake of rounding."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LoweredNetwork:
    """The part of a lowered question that depends on its model, target and rules only."""

    unroll: Floats
    """encoded = unroll @ unrolled, shape (encoded columns, unrolled columns)."""
    layers: Layers
    """Weights and biases, first layer over unrolled columns, last layer giving C s - d."""
    required: NDArray[np.int64]
    """(required neuron, 2): its hidden layer, and its place there."""
    required_whole: NDArray[np.bool_]
    """Neurons that take only whole values on rows of the schema."""
    required_gap: Floats
    """Of each neuron: on rows whose numbers are on their grids it is >= 0 or at most minus this; 0 where unknown."""
    required_touches: NDArray[np.bool_]
    """(required neuron, feature): does it look at the feature?"""
    required_rule: NDArray[np.int64]
    """Which of the question's rules each stands for."""
    bends: Activations | None = None
    """The activations of the hidden neurons, where not all are ReLUs."""
    kept: bool
    """Does its model keep it, for other questions?"""

    @cached_property
    def size(self) -> int:
        """Its bytes when it was made, counted once for all questions that keep it."""
        return bytes_of(self)

    @cached_property
    def required_neurons(self) -> NDArray[np.int64]:
        """The required neurons, counted over all hidden layers."""
        before = np.cumsum([0, *(len(bias) for _, bias in self.layers)])
        return np.asarray(before[self.required[:, 0]] + self.required[:, 1])

    def absolute(self, k: int) -> tuple[Floats, Floats]:
        """The absolute values of a layer's weights and biases."""
        known = self._absolute[k]
        return (np.abs(self.layers[k][0]), np.abs(self.layers[k][1])) if known is None else known

    @cached_property
    def _absolute(self) -> list[tuple[Floats, Floats] | None]:
        """The same where keeping them takes little."""
        small = [weight.size <= KEPT_WEIGHTS for weight, _ in self.layers]
        return [(np.abs(w), np.abs(b)) if few else None for few, (w, b) in zip(small, self.layers, strict=True)]

    @cached_property
    def columns(self) -> Floats:
        """What one of each unrolled column adds to the first layer."""
        return np.ascontiguousarray(self.layers[0][0].T)

    @cached_property
    def _made(self) -> dict[str, Any]:
        return {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What a method works out from the network alone, made once."""
        if name not in self._made:
            self._made[name] = make()
        found: T = self._made[name]
        return found


def lowered_network(question: Question, *, simplify: bool) -> LoweredNetwork:
    """The network of a question, made once for all questions about the model with this target and these rules."""
    check_limits()
    function, (c, d) = question.model.function, question.conditions
    if sum(layer.weight.size for layer in question.model.searched_layers.layers) > KEPT_WEIGHTS:
        return _lowered_network(question, simplify, kept=False)
    known = _KNOWN.get(function)
    if known is None:
        known = _KNOWN[function] = SizedCache(NETWORK_BYTES, lambda network: network.size)
    key = (question.schema, simplify, c.shape, c.tobytes(), d.tobytes(), question.rules)
    return known.get_or_make(key, lambda: _lowered_network(question, simplify, kept=True))


_KNOWN: WeakKeyDictionary[Kind, SizedCache[LoweredNetwork]] = WeakKeyDictionary()
"""Of the models that are in use, one each."""


def _lowered_network(question: Question, simplify: bool, *, kept: bool) -> LoweredNetwork:
    schema, n, unrolled = question.schema, len(question.schema), unrolled_columns(question.schema)
    unroll, (c, d) = unrolling(schema), question.conditions
    smooth = question.model.function.as_smooth_network()
    stack = [(layer.weight, layer.bias) for layer in question.model.searched_layers.layers]
    check_limits(sum(weight.nbytes for weight, _ in stack))
    stack[-1] = (c @ stack[-1][0], c @ stack[-1][1] - d)
    stack[0] = (stack[0][0] @ unroll, stack[0][1])
    stack = simplified(stack) if simplify and smooth is None else stack
    listed = []
    for r, rule in enumerate(question.rules):
        check_limits()
        listed += [(r, part) for part in rule.parts(unrolled)]
    activations = [RELU] * (len(stack) - 1) if smooth is None else smooth.activations
    stack, required, bends = _beside(unrolled, stack, activations, [part for _, part in listed])
    start = unrolled.start[:-1]
    return LoweredNetwork(
        unroll=unroll,
        layers=tuple((np.ascontiguousarray(w), np.ascontiguousarray(b)) for w, b in stack),
        required=required,
        required_whole=np.array([part.whole for _, part in listed], dtype=bool),
        required_gap=np.array([part.gap for _, part in listed]),
        required_touches=np.array(
            [np.logical_or.reduceat(part.layers[0][0].any(axis=0), start) for _, part in listed], dtype=bool
        ).reshape(-1, n),
        required_rule=np.array([r for r, _ in listed], dtype=np.int64),
        bends=bends,
        kept=kept,
    )


@cached(UNROLLED_BYTES)
def unrolled_columns(schema: Schema) -> UnrolledColumns:
    """The unrolled columns of a schema."""
    return UnrolledColumns(schema)


@cached(UNROLLED_BYTES)
def unrolling(schema: Schema) -> Floats:
    """The matrix from unrolled to encoded columns."""
    start = unrolled_columns(schema).start
    unroll = np.zeros((len(schema.columns), int(start[-1])))
    for g, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        codes = np.ones((1, 1)) if isinstance(feature, Numeric) else feature.codes
        unroll[columns, int(start[g]) : int(start[g + 1])] = codes.T
    return unroll


class LayerActivations(NamedTuple):
    """The activation of each neuron of a layer."""

    code: NDArray[np.int64]
    alpha: Floats

    @classmethod
    def of(cls, activation: Activation | SideBySide, count: int) -> LayerActivations:
        code, alpha = np.zeros(count, dtype=np.int64), np.ones(count)
        code[:], alpha[:] = activation.code, activation.alpha
        return cls(code, alpha)


def _beside(
    columns: UnrolledColumns, stack: Stack, activations: Sequence[Activation | SideBySide], parts: Sequence[Part]
) -> tuple[Stack, NDArray[np.int64], Activations | None]:
    """The model's layers with those of the parts beside them; where the parts' outputs are; and the activations of all,
    of which those of the parts' outputs, that lead nowhere, are ReLUs."""
    required = np.zeros((len(parts), 2), dtype=np.int64)
    if parts:
        stack, activations = _deepened(columns, stack, activations, max(len(part.layers) for part in parts))
    every = [Part(tuple(stack), activations=tuple(activations)), *parts]
    merged: Stack = []
    curves: list[LayerActivations] = []
    starts, inputs = [0] * len(every), columns.width
    known: dict[tuple[int, ...], int] = {}
    for k in range(len(stack)):
        layer, curve, starts = _layer_beside(every, k, starts, inputs, known)
        merged.append(layer)
        curves.append(curve)
        inputs = len(layer[1])
        for p, part in enumerate(parts, start=1):
            if k == len(part.layers) - 1:
                required[p - 1] = k, starts[p]
    del curves[-1]
    if not any(one.code.any() for one in curves):
        return merged, required, None
    return merged, required, Activations(*map(np.concatenate, zip(*curves, strict=True)))


def _layer_beside(
    every: Sequence[Part], k: int, below: Sequence[int], inputs: int, known: dict[tuple[int, ...], int]
) -> tuple[tuple[Floats, Floats], LayerActivations, list[int]]:
    """Layer k of the model, which is the first, and of all parts; its activations; and where the neurons of each begin.
    `below`: where those below begin; `known`: hidden neurons that several parts share, by their layers."""
    rows: list[Floats] = []
    biases: list[Floats] = []
    bends: list[LayerActivations] = []
    starts, outputs = [], 0
    for p, part in enumerate(every):
        starts.append(outputs)
        if k >= len(part.layers):
            continue
        (weight, bias), last = part.layers[k], k == len(part.layers) - 1
        if p and not last:
            shared = tuple(id(before) for before, _ in part.layers[: k + 1])
            if shared in known:
                starts[-1] = known[shared]
                continue
            known[shared] = outputs
        block = np.zeros((len(bias), inputs))
        block[:, below[p] : below[p] + weight.shape[1]] = weight
        rows.append(block)
        biases.append(bias)
        bends.append(LayerActivations.of(RELU if last else part.activation(k), len(bias)))
        outputs += len(bias)
    activations = LayerActivations(*map(np.concatenate, zip(*bends, strict=True)))
    return (np.concatenate(rows), np.concatenate(biases)), activations, starts


def _deepened(
    columns: UnrolledColumns, stack: Stack, activations: Sequence[Activation | SideBySide], hidden: int
) -> tuple[Stack, list[Activation | SideBySide]]:
    """The same function with at least so many hidden layers. What passes through a ReLU is lifted above 0 first."""
    stack, activations = list(stack), list(activations)
    if len(stack) == 1:
        weight, bias = stack[0]
        lift = np.array([max(0.0, -(columns.least(row) + b)) + 1.0 for row, b in zip(weight, bias, strict=True)])
        stack, activations = [(weight, bias + lift), (np.eye(len(bias)), -lift)], [RELU]
    if len(stack) - 1 >= hidden:
        return stack, activations
    (weight, bias), size = stack[0], len(stack[0][1])
    ends = [np.array([end(row) for row in weight]) + bias for end in (columns.least, columns.largest)]
    lift = 1.0 - np.floor(np.minimum(activations[0].values(*ends)[0] + SLIGHTLY, 0.0))
    first = [stack[0], (np.eye(size), lift)]
    while len(first) < hidden:
        first.append((np.eye(size), np.zeros(size)))
    weight, bias = stack[1]
    more = len(first) - 1
    return [*first, (weight, bias - weight @ lift), *stack[2:]], [activations[0], *[RELU] * more, *activations[1:]]
