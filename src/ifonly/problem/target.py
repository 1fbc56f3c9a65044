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

MARGIN = 1e-6
"""The default margin: tiny on the scale of log-odds, far above float64 rounding."""


def _check_margin(margin: Any) -> None:
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0.0 <= margin < math.inf:
        raise QuestionError(f"The margin must be a number >= 0; it is {margin!r}.")


@dataclass(frozen=True, slots=True)
class ClassTarget:
    """The model must decide for this class (by the user's own name for it)."""

    label: Any
    margin: float = MARGIN

    def __post_init__(self) -> None:
        _check_margin(self.margin)

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
        _check_margin(self.margin)
        for end in (self.at_least, self.at_most):
            if end is not None and (isinstance(end, bool) or not isinstance(end, int | float) or math.isnan(end)):
                raise QuestionError(f"A score threshold must be a number; got {end!r}.")
        if self.at_least is None and self.at_most is None:
            raise QuestionError("A score target needs at_least, at_most, or both.")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise QuestionError(f"The score range [{self.at_least:g}, {self.at_most:g}] is empty; swap its ends.")

    def check(self, model: Model) -> None:
        if not 0 <= self.output < model.network.outputs:
            raise QuestionError(f"The model has {model.network.outputs} output(s); there is no output {self.output}.")

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
            return f"a score in [{self.at_least:g}, {self.at_most:g}]"
        return f"a score of at least {self.at_least:g}" if self.at_least is not None else (
            f"a score of at most {self.at_most:g}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"at_least": self.at_least, "at_most": self.at_most, "output": self.output, "margin": self.margin}


Target: TypeAlias = ClassTarget | ScoreTarget
