"""Models of the row that follows from an action, as models of the action: the causes' network before the model's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import UnsupportedQuestion
from ifonly.model import Model, Network
from ifonly.model.kind import Kind, Precision
from ifonly.model.layers import interval, layers_of
from ifonly.model.rounding import column_box, exact_columns
from ifonly.model.smooth import RELU, Activation, SmoothNetwork
from ifonly.model.smooth.activations import STEEPEST, SideBySide
from ifonly.problem.actions import ActionSpace
from ifonly.schema import Choice

Floats = NDArray[np.float64]

PASSES = 2.0
"""Forward passes of the network of actions by whose rounding it may differ from the model: its own, and that of
following and folding."""


@dataclass(frozen=True, eq=False)
class ActionFunction(Kind):
    """`inner`, a network or a smooth network of rows, as a function of the action that they follow from."""

    inner: Kind
    space: ActionSpace

    @property
    def name(self) -> str:
        return self.network.name

    @property
    def inputs(self) -> int:
        return len(self.space.schema.columns)

    @property
    def outputs(self) -> int:
        return self.inner.outputs

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(b"ifonly-actions-1" + self.network.fingerprint.encode()).hexdigest()

    @cached_property
    def layers(self) -> tuple[list[tuple[Floats, Floats]], list[Activation | SideBySide]]:
        """The model's layers, and the activation after each but the last."""
        network = self.inner.as_smooth_network() or self.inner.as_network()
        assert network is not None
        return layers_of(network)

    @cached_property
    def network(self) -> Network | SmoothNetwork:
        """The network of the row, and behind it the model's."""
        layers, activations = self.layers
        flow = self.space.encoded_flow.linear(self.space.encoding, name="row")
        for k, (weight, bias) in enumerate(layers):
            flow = (flow.activated(activations[k - 1], name="model") if k else flow).linear(weight, bias, name="model")
        return flow.to_network()

    def scores(self, x: Floats) -> Floats:
        return self.network.scores(x)

    def steady_scores(self, x: Floats) -> Floats:
        return self.network.steady_scores(x)

    def decide(self, scores: Floats) -> NDArray[np.intp]:
        return self.inner.decide(scores)

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """What the deployed model's arithmetic may do on the rows that follow, what that of this network may, and what
        settling the values of followers does."""
        schema = self.space.rows_schema
        low, high = self._rows(lower, upper)
        deployed = self.inner.error(low, high, precision, exact_columns(schema, precision))
        return deployed + self._own

    def _rows(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Boxes of encoded rows that follow from boxes of encoded actions."""
        low, high = interval(self._row_network, lower, upper)
        least, largest = column_box(self.space.rows_schema)
        return np.clip(low, least, largest), np.clip(high, least, largest)

    @cached_property
    def _row_network(self) -> Network | SmoothNetwork:
        return self.space.encoded_flow.linear(self.space.encoding, name="row").to_network()

    @cached_property
    def _own(self) -> Floats:
        """The rounding of this network on any action, and what settling values does."""
        low, high = column_box(self.space.schema)
        exact = np.ones(self.inputs, dtype=np.bool_)
        return PASSES * self.network.error(low[None, :], high[None, :], "float64", exact)[0] + self._settled

    @cached_property
    def _settled(self) -> Floats:
        layers, activations = self.layers
        change = np.abs(self.space.encoding) @ self.space.deviation
        for (weight, _), activation in zip(layers, [*activations, RELU], strict=True):
            change = np.abs(weight) @ change
            change = change if activation == RELU else STEEPEST * change
        return np.asarray(change)

    @property
    def search(self) -> str:
        return self.network.search

    def as_network(self) -> Network | None:
        return self.network.as_network()

    def as_smooth_network(self) -> SmoothNetwork | None:
        return self.network.as_smooth_network()

    def without_constants(self, value: Floats) -> Kind:
        return self.network.without_constants(value)


def action_model(model: Model, space: ActionSpace) -> Model:
    """The model of the row that follows, asked about the action."""
    return Model(
        function=_of_actions(model.function, space),
        schema=space.schema,
        original=AfterAction(model.original, space),
        classes=model.classes,
        outcomes=model.outcomes,
        source=model.source,
        precision=model.precision,
        probabilities=AfterAction(model.probabilities, space) if model.probabilities else None,
        scores_are=model.scores_are,
        accepted=model.accepted,
    )


def _of_actions(function: Kind, space: ActionSpace) -> Kind:
    trees = function.as_trees()
    if trees is not None:  # the features of a row have the same places in an action, and trees read no other
        assert space.for_trees
        own = trees.ensemble
        widest = max((len(f.options) for f in space.schema.features if isinstance(f, Choice)), default=0)
        sets = np.pad(own.sets, ((0, 0), (0, widest - own.sets.shape[1])))  # cells may be more than options
        return replace(trees, ensemble=replace(own, columns=len(space.schema), sets=sets), schema=space.schema)
    if function.as_network() is None and function.as_smooth_network() is None:
        raise UnsupportedQuestion(
            f"The cheapest action under causes is found for networks, linear models, scorecards and trees; this model "
            f"is {function.name}."
        )
    return ActionFunction(function, space)


@dataclass(frozen=True)
class AfterAction:
    """The user's own model, asked about the row that follows by the user's own equations."""

    original: Any
    space: ActionSpace

    def __call__(self, actions: Floats) -> Any:
        return self.original(self.space.rows(actions))
