"""Open targets: one of several classes, any but the present one, among the k highest.

An open target is met by any of several plain ones, its alternatives. The nearest row of an open target is the nearest
of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.model import Model
from ifonly.printing import shown
from ifonly.problem.target import (
    MARGIN,
    THE_DECISION,
    AheadTarget,
    Target,
    Words,
    checked_label,
    checked_margin,
    class_index,
    listed,
)
from ifonly.schema.arguments import items, whole_number

MOST_ALTERNATIVES = 64
"""An open target with more alternatives than this is refused: each is a search of its own."""


@dataclass(frozen=True, slots=True)
class OneOfTarget:
    """The model must decide for one of these classes, whichever is nearest."""

    labels: tuple[Any, ...]
    margin: float = MARGIN

    def __post_init__(self) -> None:
        labels = items(self.labels)
        if labels is None:
            raise QuestionError(
                f"Give the target classes as a list, such as ['good', 'fair']; got {shown(self.labels)}."
            )
        object.__setattr__(self, "labels", tuple(map(checked_label, labels)))
        object.__setattr__(self, "margin", checked_margin(self.margin))
        if not self.labels:
            raise QuestionError("The list of target classes is empty; name at least one.")

    def check(self, model: Model) -> None:
        chosen = self._indices(model)
        if len(chosen) == len(model.classes):
            raise QuestionError("These are all classes of the model: every row is decided as one of them.")
        _check_count(len(chosen), self.describe())

    def _indices(self, model: Model) -> list[int]:
        return sorted({class_index(model, label) for label in self.labels})

    def alternatives(self, model: Model, decided: int) -> tuple[Target, ...]:
        """One per target class: ahead of all other classes. Which of the target classes is highest does not matter."""
        chosen = self._indices(model)
        others = tuple(name for i, name in enumerate(model.classes) if i not in chosen)
        return tuple(AheadTarget(model.classes[i], others, self.margin) for i in chosen)

    def agrees(self, model: Model, scores: NDArray[np.float64], decided: int) -> NDArray[np.bool_]:
        """Which rows the model itself decides as asked."""
        return np.isin(model.decide(scores), self._indices(model))

    def describe(self) -> str:
        return f"one of {listed(self.labels)}"

    def words(self, model: Model, decided: int) -> Words:
        return Words(THE_DECISION, self.describe())

    def to_dict(self) -> dict[str, Any]:
        return {"one_of": list(self.labels), "margin": self.margin}


@dataclass(frozen=True, slots=True)
class OtherTarget:
    """The model must decide otherwise than it does now: any class but the present one."""

    margin: float = MARGIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", checked_margin(self.margin))

    def check(self, model: Model) -> None:
        if not model.classes:
            raise QuestionError("This model is a regression: it has no other class; ask for a score (ScoreTarget).")
        _check_count(len(model.classes) - 1, self.describe())

    def alternatives(self, model: Model, decided: int) -> tuple[Target, ...]:
        """One a class: ahead of the present one. Which of the others is highest does not matter."""
        now = model.classes[decided]
        return tuple(AheadTarget(name, (now,), self.margin) for i, name in enumerate(model.classes) if i != decided)

    def agrees(self, model: Model, scores: NDArray[np.float64], decided: int) -> NDArray[np.bool_]:
        return np.asarray(model.decide(scores) != decided)

    def describe(self) -> str:
        return "another decision"

    def words(self, model: Model, decided: int) -> Words:
        return Words(THE_DECISION, f"anything but {model.classes[decided]}")

    def to_dict(self) -> dict[str, Any]:
        return {"other": True, "margin": self.margin}


@dataclass(frozen=True, slots=True)
class TopTarget:
    """The class must be among the k that score highest."""

    label: Any
    k: int
    margin: float = MARGIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", checked_label(self.label))
        object.__setattr__(self, "margin", checked_margin(self.margin))
        words = "A class can be among the k highest for a whole number k >= 1; k is"
        object.__setattr__(self, "k", whole_number(self.k, words, 1))

    def check(self, model: Model) -> None:
        class_index(model, self.label)
        count = len(model.classes)
        if self.k >= count:
            raise QuestionError(f"The model has {count} classes: each is always among the {self.k} highest.")
        _check_count(math.comb(count - 1, self.k - 1), self.describe())

    def alternatives(self, model: Model, decided: int) -> tuple[Target, ...]:
        """One for each choice of the K - k others that it must be ahead of."""
        index = class_index(model, self.label)
        others = [name for i, name in enumerate(model.classes) if i != index]
        behind = combinations(others, len(model.classes) - self.k)
        return tuple(AheadTarget(self.label, these, self.margin) for these in behind)

    def agrees(self, model: Model, scores: NDArray[np.float64], decided: int) -> NDArray[np.bool_]:
        index = class_index(model, self.label)
        if model.outputs == 1:
            return np.asarray(model.decide(scores) == index)
        own = scores[:, [index]]
        before = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) < index))
        return np.asarray(before.sum(axis=1) < self.k)

    def describe(self) -> str:
        return f"{self.label} among the {self.k} highest" if self.k > 1 else f"{self.label} highest"

    def words(self, model: Model, decided: int) -> Words:
        return Words(f"{self.label}", f"among the {self.k} highest" if self.k > 1 else "highest")

    def to_dict(self) -> dict[str, Any]:
        return {"class": self.label, "among_highest": self.k, "margin": self.margin}


OpenTarget: TypeAlias = OneOfTarget | OtherTarget | TopTarget
"""Targets with alternatives, each of which is a question."""


def _check_count(count: int, what: str) -> None:
    if count > MOST_ALTERNATIVES:
        raise QuestionError(
            f"'{what}' has {count:,} alternatives, each a search of its own, and at most {MOST_ALTERNATIVES} are "
            f"searched; name fewer classes with OneOfTarget, or one with ClassTarget."
        )
