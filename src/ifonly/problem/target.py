"""Targets: the decision, the score or the probability that a row must reach, and the margin.

A plain target is a conjunction of linear conditions on the scores,  C s - d >= margin:  one condition for a class of
two, a score threshold or a probability, K - 1 for one of K classes, two for a range. The margin is part of the
question, in units of the score. (An open target, `open_target`, is met by any of several plain ones.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached
from ifonly.errors import QuestionError
from ifonly.model import Model
from ifonly.printing import shown
from ifonly.problem.softmax import Weights, first_weights, log_odds, planes
from ifonly.schema.arguments import is_label, real_number
from ifonly.schema.values import plain, show_number

MARGIN = 1e-6
"""The default margin: tiny on the scale of log-odds, far above float64 rounding."""

THE_DECISION = "the decision"


@dataclass(frozen=True, slots=True)
class Words:
    """A target as part of a sentence: "the score would have been at least 2" has a subject and a state."""

    subject: str
    state: str


def checked_margin(margin: Any) -> float:
    """A valid margin, or an error."""
    return real_number(margin, "The margin must be a number >= 0; it is", lambda number: 0.0 <= number < math.inf)


def checked_label(label: Any) -> Any:
    """The name of a class, or an error."""
    if not is_label(label):
        raise QuestionError(f"A class is named by a text, a finite number or a boolean; got {shown(label)}.")
    return plain(label)


def class_index(model: Model, label: Any) -> int:
    """Which class the label names."""
    if not model.classes:
        raise QuestionError("This model is a regression: ask for a score (ScoreTarget), not for a class.")
    for i, name in enumerate(model.classes):
        if name == label and isinstance(name, str) == isinstance(label, str):
            return i
    for i, name in enumerate(model.classes):  # a command line knows only strings
        if str(name) == str(label):
            return i
    raise QuestionError(
        f"The model has no class {shown(label)}; its classes are {', '.join(map(repr, model.classes))}."
    )


def _ahead_of(index: int, others: list[int], outputs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """C and d of a class that must be ahead of these others; of one score, on its side of 0."""
    if outputs == 1:
        return np.array([[1.0 if index == 1 else -1.0]]), np.zeros(1)
    unit = np.eye(outputs)
    return np.array([unit[index] - unit[j] for j in others]), np.zeros(len(others))


@cached(2**22)
def _ahead_of_all(index: int, outputs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same of a class that must be ahead of all others."""
    c, d = _ahead_of(index, [j for j in range(outputs) if j != index], outputs)
    c.flags.writeable = d.flags.writeable = False
    return c, d


@dataclass(frozen=True, slots=True)
class ClassTarget:
    """The model must decide for this class (by the user's own name for it)."""

    label: Any
    margin: float = MARGIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", checked_label(self.label))
        object.__setattr__(self, "margin", checked_margin(self.margin))

    def check(self, model: Model) -> None:
        self._index(model)

    def _index(self, model: Model) -> int:
        return class_index(model, self.label)

    def conditions(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """C and d."""
        return _ahead_of_all(self._index(model), model.outputs)

    def met(self, model: Model, scores: NDArray[np.float64], margin: float | None = None) -> NDArray[np.bool_]:
        """Which rows of the user's own scores meet the target: the decision itself, and the margin (or another one)."""
        return (model.decide(scores) == self._index(model)) & _beyond(self, model, scores, margin)

    def describe(self) -> str:
        return f"{self.label}"

    def words(self) -> Words:
        return Words(THE_DECISION, self.describe())

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
        object.__setattr__(self, "margin", checked_margin(self.margin))
        output = plain(self.output)
        if isinstance(output, bool) or not isinstance(output, int):  # False and 0.0 are equal to 0, but no index
            raise QuestionError(f"There is no output {shown(self.output)}: an output is a whole number, from 0 on.")
        object.__setattr__(self, "output", output)
        for name in ("at_least", "at_most"):
            end = plain(getattr(self, name))
            if end is not None:
                words = f"A score threshold must be a finite number; '{name}' is"
                object.__setattr__(self, name, real_number(end, words))
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
        if not 0 <= self.output < model.outputs:
            raise QuestionError(f"The model has {model.outputs} output(s); there is no output {shown(self.output)}.")

    def conditions(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        unit = np.eye(model.outputs)[self.output]
        rows = [(unit, self.at_least)] if self.at_least is not None else []
        rows += [(-unit, -self.at_most)] if self.at_most is not None else []
        return np.array([row for row, _ in rows]), np.array([float(end) for _, end in rows])

    def met(self, model: Model, scores: NDArray[np.float64], margin: float | None = None) -> NDArray[np.bool_]:
        return _beyond(self, model, scores, margin)

    def describe(self) -> str:
        both = self.at_least is not None and self.at_most is not None
        return f"a score {'' if both else 'of '}{self._state()}"

    def words(self) -> Words:
        return Words("the score", self._state())

    def _state(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"in {self._range()}"
        if self.at_least is not None:
            return f"at least {show_number(self.at_least)}"
        return f"at most {show_number(self.at_most or 0.0)}"

    def to_dict(self) -> dict[str, Any]:
        return {"at_least": self.at_least, "at_most": self.at_most, "output": self.output, "margin": self.margin}


@dataclass(frozen=True, slots=True)
class ProbabilityTarget:
    """The model must give the class a probability of at least this much.

    For two classes that is linear in the scores,  s >= log(p / (1 - p)),  with s the log-odds of the class; where the
    scores are the probabilities (those of a forest are), s >= p. For three classes or more it is `curved`: convex in
    the scores, and its conditions are planes around it (`softmax`). The threshold is rounded up, and the row that is
    returned must also reach the probability that the model itself reports.
    """

    label: Any
    at_least: float = field(kw_only=True)
    margin: float = field(default=MARGIN, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", checked_label(self.label))
        object.__setattr__(self, "margin", checked_margin(self.margin))
        words = "A probability to reach lies between 0 and 1, such as 0.7 (both ends excluded); it is"
        object.__setattr__(self, "at_least", real_number(self.at_least, words, lambda p: 0.0 < p < 1.0))

    def check(self, model: Model) -> None:
        class_index(model, self.label)
        if model.probabilities is None:
            raise QuestionError(
                "This model reports no probabilities, and its score is not known to be a log-odds. If it is (a network "
                "trained with a logistic loss), say so with model.as_log_odds() or --log-odds; else ask for a score "
                "or for a class by a margin."
            )

    @property
    def threshold(self) -> float:
        """log(p / (1 - p)), not below its exact value."""
        p = self.at_least
        if p == 0.5:
            return 0.0
        up, down = math.log(p), math.log1p(-p)
        return up - down + 2.0**-50 * (abs(up) + abs(down))

    def conditions(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if model.scores_are == "probabilities":
            return ScoreTarget(at_least=self.at_least, output=class_index(model, self.label)).conditions(model)
        if self.curved(model):
            return self.tangents(model, first_weights(model.outputs)).conditions(model)
        c, d = ClassTarget(self.label).conditions(model)
        return c, d + self.threshold

    def curved(self, model: Model) -> bool:
        """Is it not linear in the scores?"""
        return len(model.classes) > 2 and model.scores_are == "log-odds"

    def tangents(self, model: Model, weights: tuple[Weights, ...], more: float = 0.0) -> TangentTarget:
        """Planes that every row with the probability meets."""
        index = class_index(model, self.label)
        return TangentTarget(index=index, threshold=self.threshold, weights=weights, margin=self.margin, more=more)

    def met(self, model: Model, scores: NDArray[np.float64], margin: float | None = None) -> NDArray[np.bool_]:
        if self.curved(model):
            own = log_odds(scores, class_index(model, self.label))
            return np.asarray(own - self.threshold >= _least(self, margin))
        return _beyond(self, model, scores, margin)

    def reported(self, model: Model, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows have the probability by the model's own report."""
        assert model.probabilities is not None
        own = np.asarray(model.probabilities(points), dtype=np.float64)
        return own[:, class_index(model, self.label)] >= self.at_least

    def as_score(self, model: Model) -> ScoreTarget:
        """The same of a model with one score."""
        if model.outputs != 1:
            raise QuestionError("Only for a model with one output is a probability a threshold on one score.")
        if class_index(model, self.label) == 1:
            return ScoreTarget(at_least=self.threshold, margin=self.margin)
        return ScoreTarget(at_most=-self.threshold, margin=self.margin)

    def _percent(self) -> str:
        return f"{(100 * Decimal(repr(self.at_least))).normalize():f} %"

    def describe(self) -> str:
        return f"a probability of {self.label} of at least {self._percent()}"

    def words(self) -> Words:
        return Words(f"the probability of {self.label}", f"at least {self._percent()}")

    def to_dict(self) -> dict[str, Any]:
        return {"probability_of": self.label, "at_least": self.at_least, "margin": self.margin}


@dataclass(frozen=True, slots=True, kw_only=True)
class TangentTarget:
    """So many planes of a probability that class number `index` must have, each by `more` than is necessary."""

    index: int
    threshold: float
    weights: tuple[Weights, ...]
    margin: float
    more: float = 0.0

    def check(self, model: Model) -> None:
        """Made from a target that is checked."""

    def conditions(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        c, d = planes(self.weights, self.index, self.threshold)
        return c, d + self.more

    def met(self, model: Model, scores: NDArray[np.float64], margin: float | None = None) -> NDArray[np.bool_]:
        return _beyond(self, model, scores, margin)

    def describe(self) -> str:
        return f"{len(self.weights)} planes of a log-odds of {self.threshold:g}"

    def words(self) -> Words:
        return Words("the log-odds", f"beyond {len(self.weights)} planes")

    def to_dict(self) -> dict[str, Any]:
        """What was asked; nothing reads it back."""
        return {"class_number": self.index, "log_odds": self.threshold, "planes": list(map(list, self.weights))}


@dataclass(frozen=True, slots=True)
class AheadTarget:
    """The class must score higher than these others: an alternative of the open targets."""

    label: Any
    others: tuple[Any, ...]
    margin: float = MARGIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", checked_label(self.label))
        object.__setattr__(self, "others", tuple(plain(other) for other in self.others))
        object.__setattr__(self, "margin", checked_margin(self.margin))

    def check(self, model: Model) -> None:
        index, others = self._indices(model)
        if not others or index in others:
            raise QuestionError(
                f"A class must be ahead of others than itself; got {shown(self.label)} and {shown(self.others)}."
            )

    def _indices(self, model: Model) -> tuple[int, list[int]]:
        return class_index(model, self.label), [class_index(model, other) for other in self.others]

    def conditions(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _ahead_of(*self._indices(model), model.outputs)

    def met(self, model: Model, scores: NDArray[np.float64], margin: float | None = None) -> NDArray[np.bool_]:
        """Ahead by the margin, and on a tie as the model decides: the first of several."""
        index, others = self._indices(model)
        c, d = self.conditions(model)
        score_margin = scores @ c.T - d
        first = np.array([index < j for j in others])
        return np.asarray(
            ((score_margin >= _least(self, margin)) & ((score_margin > 0.0) | (first & (score_margin == 0.0)))).all(
                axis=1
            )
        )

    def describe(self) -> str:
        return f"{self.label} ahead of {listed(self.others)}"

    def words(self) -> Words:
        return Words(f"{self.label}", f"ahead of {listed(self.others)}")

    def to_dict(self) -> dict[str, Any]:
        return {"class": self.label, "ahead_of": list(self.others), "margin": self.margin}


Target: TypeAlias = ClassTarget | ScoreTarget | ProbabilityTarget | TangentTarget | AheadTarget
"""Plain targets: what a question holds, and every method reads."""


def _beyond(target: Target, model: Model, scores: NDArray[np.float64], margin: float | None) -> NDArray[np.bool_]:
    """Which rows of scores are beyond all conditions of the target by the margin."""
    c, d = target.conditions(model)
    return np.asarray((scores @ c.T - d >= _least(target, margin)).all(axis=1))


def _least(target: Any, margin: float | None) -> float:
    """The margin that is asked for: the target's own unless another is given."""
    return float(target.margin if margin is None else margin)


def listed(labels: Iterable[Any]) -> str:
    return ", ".join(map(str, labels))
