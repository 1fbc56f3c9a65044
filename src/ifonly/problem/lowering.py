"""Lowering: the one canonical numeric form of a question, which all methods read.

*Unrolled* columns: a numeric feature keeps one column, a feature with k options gets k one-hot columns whatever its
encoding was. The encoding is linear in them, so it is folded into the first layer, and any linear function of the
encoded row becomes a sum of per-feature gains: coefficient times change for numbers, one number per option for choices.

Rules between features are lowered to neurons of their own beside the model's (see `parts`): *required* neurons, whose
pre-activations must be >= 0 and that lead nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.problem.costs import Costs, Floats, costs_of
from ifonly.problem.lowered_network import Activations, Layers, LoweredNetwork, lowered_network
from ifonly.problem.question import Question
from ifonly.problem.rule import rows_allowed
from ifonly.schema import Choice


class CodedOptions(NamedTuple):
    """Columns that encode choices: of each, one after the other, its options (unrolled columns) and their codes."""

    columns: NDArray[np.intp]
    option: NDArray[np.intp]
    code: Floats
    starts: NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Lowered(Costs):
    """A question about a network in numbers."""

    network: LoweredNetwork

    @property
    def unroll(self) -> Floats:
        return self.network.unroll

    @property
    def layers(self) -> Layers:
        return self.network.layers

    @property
    def required(self) -> NDArray[np.int64]:
        return self.network.required

    @property
    def required_whole(self) -> NDArray[np.bool_]:
        return self.network.required_whole

    @property
    def required_gap(self) -> Floats:
        return self.network.required_gap

    @property
    def required_touches(self) -> NDArray[np.bool_]:
        return self.network.required_touches

    @property
    def required_rule(self) -> NDArray[np.int64]:
        return self.network.required_rule

    @property
    def bends(self) -> Activations | None:
        return self.network.bends

    @cached_property
    def number_columns(self) -> NDArray[np.intp]:
        """The encoded column of each number."""
        columns = self.question.schema.feature_columns
        return np.array([columns[g][0] for g in self.numbers.tolist()], dtype=np.intp)

    @cached_property
    def coded_options(self) -> CodedOptions:
        """The encoded columns of all choices."""
        schema, columns, counts = self.question.schema, list[int](), list[int]()
        option, code = list[int](), list[float]()
        for g in self.choices.tolist():
            codes, own = cast(Choice, schema.features[g]).codes, schema.feature_columns[g].tolist()
            columns += own
            counts += [len(codes)] * len(own)
            option += list(range(int(self.start[g]), int(self.start[g + 1]))) * len(own)
            code += codes.T.ravel().tolist()
        starts = np.cumsum([0, *counts])[:-1]
        return CodedOptions(np.array(columns, dtype=np.intp), np.array(option, dtype=np.intp), np.array(code), starts)

    @cached_property
    def need(self) -> Floats:
        """What each condition must reach: the margin."""
        return self.question.margins

    def holding(self, points: Floats) -> NDArray[np.bool_]:
        """(person, required neuron): does the person's own row meet the rule? Only of those that rounding leaves in
        doubt; others take whole values."""
        rules, schema = self.question.rules, self.question.schema
        held = np.zeros((len(points), len(self.required)), dtype=bool)
        if not len(self.required):
            return held
        if len(points) == 1 and (known := self._held_by_one.get(points.tobytes())) is not None:
            return known.copy()
        doubtful = np.flatnonzero(~self.required_whole).tolist()
        numbers = self.required_rule.tolist()
        verdict = {r: rows_allowed(rules[r], schema, points, points) for r in {numbers[j] for j in doubtful}}
        for j in doubtful:
            held[:, j] = verdict[numbers[j]]
        if len(points) == 1:  # a search over boxes asks for one person again and again
            self._held_by_one.clear()
            self._held_by_one[points.tobytes()] = held.copy()
        return held

    @cached_property
    def _held_by_one(self) -> dict[bytes, NDArray[np.bool_]]:
        return {}

    @property
    def required_neurons(self) -> NDArray[np.int64]:
        return self.network.required_neurons

    @property
    def columns(self) -> Floats:
        return self.network.columns

    def absolute(self, k: int) -> tuple[Floats, Floats]:
        return self.network.absolute(k)


def without_network(question: Question, method: str) -> str:
    """Why a method that searches a network cannot take a question; empty when it can."""
    function = question.model.function
    if function.as_network() is not None:
        return curved_rule(question, method)
    return f"The method '{method}' needs a piecewise-linear network, but this model is {function.name}"


def curved_rule(question: Question, method: str) -> str:
    """Why a method that takes rules as networks of ReLUs only cannot take a question; empty when it can."""
    curved = next((rule for rule in question.rules if getattr(rule, "smooth", False)), None)
    if curved is None:
        return ""
    return f"The method '{method}' needs piecewise-linear rules, but '{curved.describe()}' goes by a smooth equation"


def lower(question: Question, *, simplify: bool = False) -> Lowered:
    """Lower a question to numbers. `simplify`: with fewer neurons than the model, where some are of no use."""
    costs = costs_of(question)
    return Lowered(
        **{field.name: getattr(costs, field.name) for field in fields(Costs)},
        network=lowered_network(question, simplify=simplify),
    )
