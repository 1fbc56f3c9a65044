"""The question, without the person: model, distance, target, constraints. Validated once; every method reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.model import Model
from ifonly.model.rounding import LARGEST
from ifonly.printing import shown
from ifonly.problem.constraints import Constraint
from ifonly.problem.distance import Distance, Measure
from ifonly.problem.rule import RowRule, is_row_rule
from ifonly.problem.target import Target
from ifonly.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Question:
    """Which row nearest to the factual does the model decide as asked, among those that the constraints allow?

    `caution` multiplies the bound on the deployed model's rounding error; 1 is rigorous for models that compute in the
    precision they claim.
    """

    model: Model
    target: Target
    distance: Distance = field(default_factory=Distance)
    constraints: Sequence[Constraint | RowRule] = ()
    caution: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.target, Target):
            raise QuestionError(f"The target must be a ClassTarget or a ScoreTarget; got {shown(self.target)}.")
        if not isinstance(self.distance, Distance):
            raise QuestionError(f"The distance must be a Distance; got {shown(self.distance)}.")
        object.__setattr__(self, "constraints", tuple(self.constraints))
        self.target.check(self.model)
        self.distance.check(self.schema)
        for constraint in self.constraints:
            if not hasattr(constraint, "restrict") and not is_row_rule(constraint):
                raise QuestionError(
                    f"{shown(constraint)} is not a constraint; use Fixed, OnlyUp, OnlyDown, Range, Allowed or a rule."
                )
            constraint.check(self.schema)
        if not np.isfinite(self.model.error).all():
            precision = self.model.precision
            raise UnsupportedQuestion(
                f"On rows of the schema numbers inside the model may overflow {precision} (which ends at "
                f"{LARGEST[precision]:.2g}), so nothing can be proven of it; narrow the schema's bounds, or rescale "
                f"the model's weights."
            )

    @cached_property
    def schema(self) -> Schema:
        return self.model.schema

    @cached_property
    def by_feature(self) -> tuple[Constraint, ...]:
        """The constraints on one feature each."""
        return tuple(c for c in self.constraints if not is_row_rule(c))  # type: ignore[misc]

    @cached_property
    def rules(self) -> tuple[RowRule, ...]:
        """The constraints on the row as a whole."""
        return tuple(c for c in self.constraints if is_row_rule(c))

    @cached_property
    def measure(self) -> Measure:
        """The distance between rows of the schema."""
        return self.distance.on(self.schema)

    @cached_property
    def conditions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """C and d of the target: C s - d >= margin."""
        return self.target.conditions(self.model)

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """E: how far the deployed model's C s - d can be from real arithmetic, one number per condition."""
        c, _ = self.conditions
        return np.asarray(self.caution * (np.abs(c) @ self.model.error))

    @cached_property
    def computed_error(self) -> NDArray[np.float64]:
        """E + e: how far the deployed model's C s - d can be from the network's own forward pass in float64."""
        c, _ = self.conditions
        return np.asarray(self.error + np.abs(c) @ self.model.error_in("float64"))

    def more_careful(self, factor: float) -> Question:
        return replace(self, caution=self.caution * factor)

    def allows(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> Constraint | RowRule | None:
        """The first constraint that the change breaks, or None."""
        for constraint in self.by_feature:
            i = self.schema.index(constraint.feature)
            if not constraint.allows(self.schema.features[i], float(before[i]), float(after[i])):
                return constraint
        return self.broken_rule(before, after)

    def broken_rule(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> RowRule | None:
        """The first rule that the change breaks, or None."""
        return next((rule for rule in self.rules if not rule.allows_row(self.schema, before, after)), None)

    def describe(self) -> dict[str, Any]:
        """The question as plain data."""
        return {
            "distance": self.distance.to_dict(),
            "target": self.target.to_dict(),
            "constraints": [c.describe() for c in self.constraints],
            "model": self.model.function.fingerprint,
        }
