"""What decision is asked for, and by what margin.

A target is a conjunction of linear conditions on the scores,  C s - d >= margin:  one condition for a class of two or a
score threshold, K - 1 for one of K classes, two for a range. The margin is part of the question, in units of the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.model import Model
from ifonly.schema.features import plain, show_number

MARGIN = 1e-6
"""The default margin: tiny on the scale of log-odds, far above float64 rounding."""


def _checked_margin(margin: Any) -> float:
    number = plain(margin)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 <= number < math.inf:
        raise QuestionError(f"The margin must be a number >= 0; it is {margin!r}.")
    return float(number)


@dataclass(frozen=True, slots=True)
class ClassTarget:
    """The model must decide for this class (by the user's own name for it)."""

    label: Any
    margin: float = MARGIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", plain(self.label))
        object.__setattr__(self, "margin", _checked_margin(self.margin))

    def check(self, model: Model) -> None:
        self._index(model)

    def _index(self, model: Model) -> int:
        if not model.classes:
            raise QuestionError("This model is a regression: ask for a score (ScoreTarget), not for a class.")
        for i, name in enumerate(model.classes):
            if name == self.label and isinstance(name, str) == isinstance(self.label, str):
                return i
        for i, name in enumerate(model.classes):  # a command line knows only strings
            if str(name) == str(self.label):
                return i
        raise QuestionError(
            f"The model has no class {self.label!r}; its classes are {', '.join(map(repr, model.classes))}."
        )

    def conditions(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """C and d."""
        index, outputs = self._index(model), model.network.outputs
        if outputs == 1:
            return np.array([[1.0 if index == 1 else -1.0]]), np.zeros(1)
        rows = [np.eye(outputs)[index] - np.eye(outputs)[j] for j in range(outputs) if j != index]
        return np.array(rows), np.zeros(outputs - 1)

    def met(self, model: Model, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows of the user's own scores meet the target: the decision itself, and the margin."""
        c, d = self.conditions(model)
        return (model.decide(scores) == self._index(model)) & (scores @ c.T - d >= self.margin).all(axis=1)

    def describe(self) -> str:
        return f"{self.label}"

    def to_dict(self) -> dict[str, Any]:
        return {"class": self.label, "margin": self.margin}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTarget:
    """A score must reach a threshold (or stay below one, or lie in a range)."""

    at_least: float | None = None
    at_most: float | None = None
    output: int = 0
    margin: float = MARGIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", _checked_margin(self.margin))
        object.__setattr__(self, "output", plain(self.output))
        for name in ("at_least", "at_most"):
            end = plain(getattr(self, name))
            if end is None:
                continue
            if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
                raise QuestionError(f"A score threshold must be a finite number; '{name}' is {end!r}.")
            object.__setattr__(self, name, float(end))
        if self.at_least is None and self.at_most is None:
            raise QuestionError("A score target needs at_least, at_most, or both.")
        if self.at_least is not None and self.at_most is not None:
            if self.at_least > self.at_most:
                raise QuestionError(f"The score range {self._range()} is empty; swap its ends.")
            if self.at_least + self.margin > self.at_most - self.margin:
                raise QuestionError(
                    f"The score range {self._range()} is narrower than twice the margin of "
                    f"{show_number(self.margin)}; widen it, or ask for a smaller margin."
                )

    def _range(self) -> str:
        return f"[{show_number(self.at_least or 0.0)}, {show_number(self.at_most or 0.0)}]"

    def check(self, model: Model) -> None:
        whole = isinstance(self.output, int) and not isinstance(self.output, bool)
        if not whole or not 0 <= self.output < model.network.outputs:
            raise QuestionError(f"The model has {model.network.outputs} output(s); there is no output {self.output!r}.")

    def conditions(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        unit = np.eye(model.network.outputs)[self.output]
        rows = [(unit, self.at_least)] if self.at_least is not None else []
        rows += [(-unit, -self.at_most)] if self.at_most is not None else []
        return np.array([row for row, _ in rows]), np.array([float(end) for _, end in rows])

    def met(self, model: Model, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        c, d = self.conditions(model)
        return np.asarray((scores @ c.T - d >= self.margin).all(axis=1))

    def describe(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"a score in {self._range()}"
        if self.at_least is not None:
            return f"a score of at least {show_number(self.at_least)}"
        return f"a score of at most {show_number(self.at_most or 0.0)}"

    def to_dict(self) -> dict[str, Any]:
        return {"at_least": self.at_least, "at_most": self.at_most, "output": self.output, "margin": self.margin}


Target: TypeAlias = ClassTarget | ScoreTarget
