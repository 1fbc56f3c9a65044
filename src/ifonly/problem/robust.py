"""Robustness to changed weights: every network within delta of the model's weights must accept the row, too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ifonly.caching import PREPARING
from ifonly.errors import QuestionError, UnsupportedModel, UnsupportedQuestion
from ifonly.model import Model
from ifonly.model.worst_case import worst_case
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.target import ClassTarget, ProbabilityTarget, Target
from ifonly.schema import Schema
from ifonly.schema.arguments import real_number
from ifonly.schema.values import show_number

LARGEST = 1e6
"""Of delta: beyond, the scores of a network are any numbers."""


@dataclass(frozen=True)
class RobustToWeights:
    """Every network whose weights and biases are each within `delta` of the model's must decide as asked, too.

    `relative`: within so large a share of each weight. `of`: the networks around another model that must accept,
    instead of those around the explained one. Inputs are those that the first layer reads, after scaling.
    """

    delta: float
    relative: bool = False
    of: Accepted | None = None
    _made: dict[Any, Accepted] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = f"'delta' is how far each weight may change, a number from 0 to {LARGEST:g}; it is"
        object.__setattr__(self, "delta", real_number(self.delta, words, lambda number: 0.0 <= number <= LARGEST))
        if not isinstance(self.relative, bool | np.bool_):
            raise QuestionError(f"'relative' is True or False; got {shown(self.relative)}.")
        object.__setattr__(self, "relative", bool(self.relative))
        if self.of is not None and not isinstance(self.of, Accepted):
            raise QuestionError(f"Name another model with of=Accepted(by=model, target=...); got {shown(self.of)}.")

    def check(self, schema: Schema) -> None:
        if self.of is not None:
            self.of.check(schema)
            self.accepted(self.of.model(schema), self.of.target_of(schema))

    def bound(self, schema: Schema) -> RobustToWeights:
        """The same with the other model imported."""
        return self if self.of is None else replace(self, of=self.of.bound(schema))

    def without(self, missing: Any) -> RobustToWeights:
        """The same for rows in which these numbers are missing."""
        return self if self.of is None else replace(self, of=self.of.without(missing))

    def accepted(self, model: Model, target: Target) -> Accepted:
        """What is asked of a model and of all networks around it, as what is asked of one: their worst."""
        if self.of is not None:
            model, target = self.of.model(model.schema), self.of.target_of(model.schema)
        key = model.function.fingerprint, model.precision, model.schema, target
        if key not in self._made:
            with PREPARING:
                self._made[key] = self._worst(model, target)
        return self._made[key]

    def _worst(self, model: Model, target: Target) -> Accepted:
        if isinstance(target, ProbabilityTarget) and target.curved(model):
            raise UnsupportedQuestion(
                "Robustness to changed weights cannot be proven of a probability of one of three or more classes; ask "
                "for a class."
            )
        try:
            worst = worst_case(model, self.delta, self.relative, target.conditions(model))
        except UnsupportedModel as error:
            raise UnsupportedQuestion(str(error)) from None
        return Accepted(by=worst, target=ClassTarget(worst.classes[-1], target.margin), name=f"each {self.around}")

    @property
    def around(self) -> str:
        """Which networks, in words."""
        whose = "" if self.of is None else f" of {self.of.name}"
        unit = f"{show_number(100.0 * self.delta)} %" if self.relative else show_number(self.delta)
        return f"network with weights within {unit}{whose}"

    def describe(self) -> str:
        return f"each {self.around} accepts"
