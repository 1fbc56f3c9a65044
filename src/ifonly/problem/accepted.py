"""Another model that must accept the row: a constraint that is a decision."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import PREPARING
from ifonly.errors import ModelError, QuestionError, RowError, UnsupportedModel, UnsupportedQuestion
from ifonly.model import Model
from ifonly.model.given import as_model
from ifonly.model.importers.gaussian_models import import_density, is_density
from ifonly.printing import shown
from ifonly.problem.already_satisfied import already_decided
from ifonly.problem.open_target import OpenTarget
from ifonly.problem.target import ClassTarget, ProbabilityTarget, ScoreTarget, Target
from ifonly.schema import Schema
from ifonly.schema.editing import unlabelled

UNNAMED = "another model"
MOST_LETTERS = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class Accepted:
    """Another model must decide as asked, too: `Accepted(by=fraud, target="fine", name="fraud check")`.

    `by` is a Model, or anything that an explainer takes as one (a fitted estimator, a torch module, a Path), which is
    then imported under the explainer's schema; or the name of a model that the explainer knows (`explainer.knowing`).
    `target` is a class or a target, as in a query; of a density (a GaussianMixture) `ScoreTarget(at_least=...)`, of its
    `score_samples`. Answers name the model by `name`.
    """

    by: Any
    target: Any = None
    name: str = ""
    _made: dict[Any, Model] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        unnamed = isinstance(self.name, str) and not self.name
        name = (self.by if isinstance(self.by, str) else UNNAMED) if unnamed else self.name
        if not isinstance(name, str) or not name.strip() or len(name) > MOST_LETTERS:
            raise QuestionError(
                f"A model is named by a text of at most {MOST_LETTERS} letters; got {shown(self.name)}."
            )
        object.__setattr__(self, "name", " ".join(name.split()))
        if self.by is None or isinstance(self.by, type | bool | int | float):
            raise QuestionError(f"Say which model must accept with by=...; got {shown(self.by)}.")
        if isinstance(self.target, OpenTarget):
            raise UnsupportedQuestion(
                f"'{self.name}' can be asked for one class, score or probability, not for one of several decisions "
                f"({self.target.describe()})."
            )
        if self.target is not None and not isinstance(self.target, Target):
            object.__setattr__(self, "target", ClassTarget(self.target))

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.by if isinstance(self.by, str) else id(self.by), self.target, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accepted) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    # ------------------------------------------------------------------ the model and what it must decide

    def model(self, schema: Schema) -> Model:
        """The model of rows of this schema, imported once."""
        if isinstance(self.by, Model):
            if not _same_rows(self.by.schema, schema):
                raise QuestionError(
                    f"'{self.name}' has another schema than the model that is explained; import it under that schema "
                    f"(explainer.schema), with the same features and columns."
                )
            return self.by
        if isinstance(self.by, str):
            raise QuestionError(
                f"No model is known as '{self.by}'; give the model itself with by=..., or tell the explainer of it: "
                f"explainer.knowing(Accepted(by=model, target=..., name={self.by!r}))."
            )
        if schema not in self._made:
            try:
                with PREPARING:
                    self._made[schema] = self._imported(schema)
            except UnsupportedModel as error:
                raise UnsupportedModel(f"'{self.name}': {error}", operation=error.operation) from None
            except ModelError as error:
                raise ModelError(f"'{self.name}': {error}") from None
        return self._made[schema]

    def _imported(self, schema: Schema) -> Model:
        if not self._of_density:
            return as_model(self.by, schema)
        assert isinstance(self.target, ScoreTarget)
        if self.target.at_least is None or self.target.at_most is not None:
            raise UnsupportedModel(
                "a density is asked to be at least so much: ScoreTarget(at_least=...), of its score_samples.",
                operation="a density from above",
            )
        return import_density(self.by, schema, self.target.at_least + self.target.margin)

    @property
    def _of_density(self) -> bool:
        """Is it a density, whose threshold is in the target, and then in the model?"""
        return isinstance(self.target, ScoreTarget) and is_density(self.by)

    def bound(self, schema: Schema) -> Accepted:
        """The same with the model imported."""
        if isinstance(self.by, Model | str):
            return self
        return replace(self, by=self.model(schema), target=self.target_of(schema) if self._of_density else self.target)

    def target_of(self, schema: Schema) -> Target:
        """What the model must decide."""
        model = self.model(schema)
        if self.target is not None and not self._of_density:
            found: Target = self.target
            return found
        if model.accepted is not None:
            return ClassTarget(model.accepted, margin=0.0)
        asked = f"one of {', '.join(map(shown, model.classes))}" if model.classes else "a ScoreTarget"
        raise QuestionError(f"Say what '{self.name}' must decide with target=...: {asked}.")

    def check(self, schema: Schema) -> None:
        model, target = self.model(schema), self.target_of(schema)
        target.check(model)
        if isinstance(target, ProbabilityTarget) and target.curved(model):
            raise UnsupportedQuestion(
                f"'{self.name}' has {len(model.classes)} classes, and a probability of one of three or more can be "
                f"asked of the model that is explained only; ask '{self.name}' for a class."
            )

    def without(self, missing: Collection[str]) -> Accepted:
        """The same for rows in which these numbers are missing."""
        names = frozenset(missing)
        if not names:
            return self
        assert isinstance(self.by, Model)
        if names not in self._made:
            try:
                self._made[names] = self.by.with_missing(names)
            except ModelError as error:
                name = next(iter(names))
                message = f"Feature '{name}' has no value, and '{self.name}' cannot do without it: {error}"
                raise RowError(message, feature=name) from None
        return replace(self, by=self._made[names])

    @property
    def fingerprint(self) -> str:
        """Of the model's function; of a reference, what it says."""
        if isinstance(self.by, Model):
            return self.by.function.fingerprint
        if isinstance(self.by, str):
            return self.by
        raise QuestionError(
            f"'{self.name}' is written as plain data by its fingerprint, so it must be imported first: give by=... an "
            f"ifonly Model (import_model)."
        )

    # ------------------------------------------------------------------ verdicts of the model itself

    def accepts(self, schema: Schema, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows the user's own model decides as asked."""
        model, target = self.model(schema), self.target_of(schema)
        met = target.met(model, model.scores(points))
        return met & target.reported(model, points) if isinstance(target, ProbabilityTarget) else met

    def accepts_unchanged(self, schema: Schema, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The same of people's own rows, of which the default margin is not required."""
        model = self.model(schema)
        return already_decided(self.target_of(schema), model, points, model.scores(points))

    def describe(self) -> str:
        return f"{self.name} accepts"


def _same_rows(one: Schema, other: Schema) -> bool:
    """Have they the same features and columns? Labels and rules make no difference."""
    return one is other or (
        unlabelled(one).features == unlabelled(other).features and tuple(one.columns) == tuple(other.columns)
    )
