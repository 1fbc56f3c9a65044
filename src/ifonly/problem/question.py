"""The optimisation problem without the person: model, target, distance, constraints. Validated once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import QuestionError, UnsupportedQuestion, located
from ifonly.model import Model
from ifonly.model.joint import joint_model
from ifonly.model.rounding import LARGEST
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.constraints import Constraint
from ifonly.problem.distance import Distance, Measure
from ifonly.problem.joint_target import JointTarget
from ifonly.problem.rule import RowRule, is_row_rule, rows_allowed
from ifonly.problem.rules.derived import derived_features
from ifonly.problem.support import MaxChanges
from ifonly.problem.target import Target
from ifonly.schema import Schema
from ifonly.tolerances import FEW

FAR_BELOW = 1e-8
"""Score: a hundredth of the default margin."""
CLEARLY = 16.0
GUESS = 2.0
"""The factor between the rounding that is allowed for at a row and that at the row of the first guess."""
GUESSES = 6
ROOM = 1e-9
"""Relative slack on the change of a score: rows found in floating point may miss their aim by that; bounds may not."""


def rounded_up(numbers: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
    """Numbers with two digits that are no smaller."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = 10.0 ** (np.floor(np.log10(numbers)) - 1.0)
        return np.where(numbers > 0.0, np.ceil(numbers / power * (1.0 + 1e-12)) * power * (1.0 + 1e-15), 0.0)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Which row nearest to the factual does the model decide as asked, among those that the constraints allow?

    `caution` multiplies the bound on the deployed model's rounding error; 1 is rigorous for models that compute in the
    precision they claim.
    """

    model: Model
    target: Target | JointTarget
    distance: Distance = field(default_factory=Distance)
    constraints: Sequence[Constraint | RowRule | Accepted] = ()
    caution: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.target, Target | JointTarget):
            raise QuestionError(f"The target must be a ClassTarget or a ScoreTarget; got {shown(self.target)}.")
        if not isinstance(self.distance, Distance):
            raise QuestionError(f"The distance must be a Distance; got {shown(self.distance)}.")
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if derived := derived_features(self.constraints):
            object.__setattr__(self, "distance", self.distance.without(derived))
            object.__setattr__(self, "constraints", tuple(_not_counting(c, derived) for c in self.constraints))
        with located("target"):
            self.target.check(self.model)
        with located("distance"):
            self.distance.check(self.schema)
        for constraint in self.constraints:
            if not (hasattr(constraint, "restrict") or is_row_rule(constraint) or isinstance(constraint, Accepted)):
                raise _unusable(constraint)
            constraint.check(self.schema)
        if not np.isfinite(self.model.error).all():
            precision = self.model.precision
            raise UnsupportedQuestion(
                f"On rows of the schema numbers inside the model may overflow {precision} (which ends at "
                f"{LARGEST[precision]:.2g}), so nothing can be proven of it; narrow the schema's bounds, or rescale "
                f"the model's weights."
            )

    @cached_property
    def members(self) -> tuple[Question, ...]:
        """The question to each of several models alone."""
        target = self.target
        if not isinstance(target, JointTarget):
            return (self,)
        return tuple(self.to(target.part([k])) for k in range(len(target.models)))

    @property
    def single_target(self) -> Target:
        """The target of the one model that it is about."""
        assert not isinstance(self.target, JointTarget)
        return self.target

    @cached_property
    def schema(self) -> Schema:
        return self.model.schema

    @cached_property
    def derived(self) -> frozenset[str]:
        """The features whose values follow from others."""
        return derived_features(self.constraints)

    @cached_property
    def uncounted(self) -> frozenset[str]:
        """The features of which it does not count that they change."""
        return self.derived.union(*(one.uncounted for one in self.constraints if isinstance(one, MaxChanges)))

    @cached_property
    def by_feature(self) -> tuple[Constraint, ...]:
        """The constraints on one feature each."""
        return tuple(c for c in self.constraints if not is_row_rule(c) and not isinstance(c, Accepted))  # type: ignore[misc]

    @cached_property
    def rules(self) -> tuple[RowRule, ...]:
        """The constraints on the row as a whole."""
        return tuple(c for c in self.constraints if is_row_rule(c))

    @cached_property
    def others(self) -> tuple[Accepted, ...]:
        """The other models that must accept the row."""
        return tuple(c for c in self.constraints if isinstance(c, Accepted))

    @cached_property
    def joint(self) -> Question:
        """The same question to one model, which is this one and all others side by side."""
        if not self.others:
            return self
        models = (self.model, *(one.model(self.schema) for one in self.others))
        targets = (self.target, *(one.target_of(self.schema) for one in self.others))
        return self.to(JointTarget(models, targets))  # type: ignore[arg-type]

    def to(self, target: JointTarget) -> Question:
        """A question to these models instead, under the same constraints but those that other models accept."""
        own, *more = target.models
        kept = tuple(c for c in self.constraints if not isinstance(c, Accepted))
        if not more:
            return replace(self, model=own, target=target.targets[0], constraints=kept)
        return replace(self, model=joint_model(target.models), target=target, constraints=kept)

    @cached_property
    def measure(self) -> Measure:
        """The distance between rows of the schema."""
        return self.distance.on(self.schema)

    @cached_property
    def conditions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """C and d of the target: C s - d >= margin."""
        return self.target.conditions(self.model)

    @cached_property
    def margins(self) -> NDArray[np.float64]:
        """What C s - d must reach, one number per condition."""
        if isinstance(self.target, JointTarget):
            return self.target.margins
        return np.full(len(self.conditions[1]), self.target.margin)

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """E: how far the deployed model's C s - d can be from real arithmetic, one number per condition."""
        c, _ = self.conditions
        return np.asarray(self.caution * (np.abs(c) @ self.model.error))

    @cached_property
    def rounding_bound(self) -> float | None:
        """How much above the margin a score must be for a row to count, where one small number will do for all rows, as
        in float64; None where it depends on the row. Well above E, so that rows on the very margin are clearly below
        it.
        """
        rounding_bound = float(rounded_up(CLEARLY * self.largest_error))
        return rounding_bound if rounding_bound <= FAR_BELOW else None

    def first_rounding_bound(
        self, points: NDArray[np.float64], errors: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """The same for each of these people, guessed at their own rows where it depends on the row; with smooth
        activations, clearly more than what float64 takes from scores there. `errors`: of their scores, if known."""
        if self.rounding_bound is not None:
            return np.full(len(points), self.rounding_bound)
        guess = GUESS * (self.error_at(points) if errors is None else self.largest_of(errors))
        if self.model.function.as_smooth_network() is not None:
            guess = np.maximum(guess, CLEARLY * self.score_margin(points)[1])
        return np.minimum(guess, self.most_error)

    def error_at(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same at single points, one number per point: of the condition where it is largest, with two digits."""
        return self.largest_of(self.model.error_at(points))

    def largest_of(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Errors of scores, one row per point, as one number per point: see `error_at`."""
        c, _ = self.conditions
        return rounded_up(self.caution * (errors @ np.abs(c).T).max(axis=1, initial=0.0))

    def score_margin(
        self, points: NDArray[np.float64], *, quick: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By how much each point meets the condition that it meets worst, at least, in real arithmetic; and what
        float64 may have taken from that here (`quick`: on any row of the schema)."""
        score_margins, own = self.score_margins(points, quick=quick)
        return np.asarray(score_margins.min(axis=1, initial=np.inf)), np.asarray(own.max(axis=1, initial=0.0))

    def score_margins(
        self, points: NDArray[np.float64], *, quick: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same for each condition, shape (points, conditions)."""
        c, d = self.conditions
        scores, error = self.model.quick_scores(points) if quick else self.model.sharp_scores(points)
        own = error @ np.abs(c).T
        return np.asarray(scores @ c.T - d - self.margins - own), own

    @cached_property
    def largest_error(self) -> np.float64:
        """The largest of E; a target that asks for nothing has none."""
        return np.float64(self.error.max(initial=0.0))

    @cached_property
    def most_error(self) -> float:
        """The same with two digits."""
        return float(rounded_up(self.largest_error))

    @cached_property
    def own_error(self) -> NDArray[np.float64]:
        """e: how far the network's own forward pass in float64 can be from real arithmetic, per condition."""
        c, _ = self.conditions
        return np.asarray(np.abs(c) @ self.model.error_in("float64"))

    @cached_property
    def computed_error(self) -> NDArray[np.float64]:
        """E + e: how far the deployed model's C s - d can be from the network's own forward pass in float64."""
        return np.asarray(self.error + self.own_error)

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

    def keeps_rules(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Of many changes: which break no rule?"""
        if len(after) < FEW:
            pairs = zip(before, after, strict=True)
            return np.array([self.broken_rule(one, other) is None for one, other in pairs], dtype=np.bool_)
        result = np.ones(len(after), dtype=np.bool_)
        for rule in self.rules:
            result &= rows_allowed(rule, self.schema, before, after)
        return result

    def describe(self) -> dict[str, Any]:
        """The question as plain data."""
        return {
            "distance": self.distance.to_dict(),
            "target": self.target.to_dict(),
            "constraints": [c.describe() for c in self.constraints],
            "model": self.model.function.fingerprint,
        }


def _not_counting(constraint: Any, derived: frozenset[str]) -> Any:
    return (
        replace(constraint, uncounted=constraint.uncounted | derived)
        if isinstance(constraint, MaxChanges)
        else constraint
    )


def _unusable(constraint: Any) -> QuestionError:
    if hasattr(constraint, "alternatives"):  # a condition, see `disjunctions`
        return UnsupportedQuestion(
            f"'{constraint.describe()}' is met by branching over its alternatives, which is not possible here: a "
            f"certificate cannot state it, and a single method cannot search under it. `Explainer.explain` can."
        )
    return QuestionError(
        f"{shown(constraint)} is not a constraint; use Fixed, OnlyUp, OnlyDown, Range, Allowed or a rule."
    )
